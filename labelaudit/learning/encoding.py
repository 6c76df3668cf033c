"""Hashed categories as numbers that trees can split, without showing a row its own label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelaudit.checks import Floats

# Imagined examples with the mean label that a hashed category's share of ones is shrunk by.
SHRINKAGE = 20.0
ENCODING_FOLDS = 5


class HashedCategories:
    """Hashed categories as two numbers each: a shrunken share of ones, the log of the frequency.

    Encoding a row with its own label would show it to the trees, so the rows of the fit (`seen`)
    are encoded fold by fold from the others.
    """

    def __init__(
        self, features: NDArray[Any], labels: NDArray[np.int64], rng: np.random.Generator
    ) -> None:
        """Take values, counts and shares from the rows of a fit."""
        self.mean = float(labels.mean())
        self.values = [np.unique(column) for column in features.T]
        self.counts, self.ones = self._tallied(features, labels)
        self.seen = np.empty((len(features), 2 * features.shape[1]))
        fold = rng.permutation(len(features)) % ENCODING_FOLDS
        for here in range(ENCODING_FOLDS):
            held = fold == here
            counts, ones = self._tallied(features[held], labels[held])
            self.seen[held] = self._encoded(
                features[held],
                [a - b for a, b in zip(self.counts, counts, strict=True)],
                [a - b for a, b in zip(self.ones, ones, strict=True)],
            )

    def _tallied(
        self, features: NDArray[Any], labels: NDArray[np.int64]
    ) -> tuple[list[Floats], list[Floats]]:
        """How often each value of each column occurs, and with label 1."""
        counts: list[Floats] = []
        ones: list[Floats] = []
        for values, column in zip(self.values, features.T, strict=True):
            place = np.searchsorted(values, column)
            counts.append(np.bincount(place, minlength=values.size).astype(float))
            ones.append(np.bincount(place, labels, values.size).astype(float))
        return counts, ones

    def _encoded(self, features: NDArray[Any], counts: list[Floats], ones: list[Floats]) -> Floats:
        shares, frequencies = [], []
        for at, column in enumerate(features.T):
            place = np.searchsorted(self.values[at], column).clip(max=self.values[at].size - 1)
            known = self.values[at][place] == column
            count, one = known * counts[at][place], known * ones[at][place]
            shares.append((one + SHRINKAGE * self.mean) / (count + SHRINKAGE))
            frequencies.append(np.log1p(count))
        return np.column_stack(shares + frequencies)

    def __call__(self, features: NDArray[Any]) -> Floats:
        """The numbers of rows that were not in the fit; an unknown category has the mean."""
        return self._encoded(features, self.counts, self.ones)
