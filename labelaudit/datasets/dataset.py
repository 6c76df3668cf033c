"""What every loader returns: a training and a test part, their labels, and their origin."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelaudit import checks
from labelaudit.checks import Floats

TEST_ROWS = 10_000


class Arrays(NamedTuple):
    """The arrays of one part of a data set; rows have the same order in each."""

    features: NDArray[Any]
    labels: NDArray[np.uint8]
    eta: Floats | None


class Split:
    """One part of a data set. Its arrays are mapped or computed when they are first used.

    >>> from labelaudit.datasets import load
    >>> train = load("fair").train
    >>> train.features.shape, train.labels[:3].tolist(), train.eta is None
    ((4244, 8), [1, 1, 0], True)
    """

    def __init__(self, open_arrays: Callable[[], Arrays], negatives_kept: float = 1.0) -> None:
        """`negatives_kept` is the fraction of negative examples that the data set still holds."""
        self._open = open_arrays
        self.negatives_kept = negatives_kept

    @cached_property
    def _arrays(self) -> Arrays:
        return self._open()

    @property
    def features(self) -> NDArray[Any]:
        """One row for each example: float32 measurements, or int32 hashed indices."""
        return self._arrays.features

    @property
    def labels(self) -> NDArray[np.uint8]:
        """0 or 1 for each example."""
        return self._arrays.labels

    @property
    def eta(self) -> Floats | None:
        """The true P(y = 1 | x) of each example, where the data are simulated; else None."""
        return self._arrays.eta

    @property
    def weights(self) -> Floats | None:
        """Weights that undo the thinning of negatives, if it was uniform; None without thinning."""
        if self.negatives_kept == 1.0:
            return None
        return np.where(self.labels == 1, 1.0, 1 / self.negatives_kept)

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A data set as every chapter uses it. `fingerprint` changes whenever the data do.

    >>> from labelaudit.datasets import load
    >>> fair = load("fair")
    >>> fair.columns[:3], fair.train.features.shape
    (('rate_marriage', 'age', 'yrs_married'), (4244, 8))
    """

    name: str
    train: Split
    test: Split
    fingerprint: str
    simulated: bool
    description: str
    columns: tuple[str, ...]
    buckets: int | None = None  # features are hashed indices below this number; None: measurements
    negatives_kept: float = 1.0
    facts: Mapping[str, Any] = field(default_factory=dict)

    def correct_eta(self, eta: ArrayLike) -> Floats:
        """P(y = 1 | x) before negatives were thinned, from an estimate made on the thinned data.

        Keeping a fraction r of the negatives multiplies the odds by 1 / r, so the correction
        multiplies them by r. It assumes that negatives were dropped uniformly at random,
        independently of their features.

        >>> from dataclasses import replace
        >>> from labelaudit.datasets import load
        >>> data = replace(load("fair"), negatives_kept=0.25)
        >>> data.correct_eta([0.0, 0.5, 1.0]).tolist()
        [0.0, 0.2, 1.0]
        """
        return before_thinning(eta, self.negatives_kept)


def before_thinning(eta: ArrayLike, negatives_kept: float) -> Floats:
    """eta before all but a fraction of the negatives were dropped: `Dataset.correct_eta`."""
    seen = checks.probabilities(eta)
    kept = negatives_kept * seen
    return kept / (1 - seen + kept)


def split(
    open_all: Callable[[], Arrays],
    test_rows: int,
    train_rows: int | None = None,
    negatives_kept: float = 1.0,
) -> dict[str, Any]:
    """The `train` and `test` part of the same arrays, whose first rows are for testing."""
    open_once = cache(open_all)

    def part(rows: slice) -> Split:
        def arrays() -> Arrays:
            features, labels, eta = open_once()
            return Arrays(features[rows], labels[rows], None if eta is None else eta[rows])

        return Split(arrays, negatives_kept)

    last = None if train_rows is None else test_rows + train_rows
    return {"train": part(slice(test_rows, last)), "test": part(slice(test_rows))}


def fingerprint(facts: Mapping[str, Any]) -> str:
    """A digest of facts that does not depend on the order of their keys.

    Stored sweeps and the published results name their data by it, so its form cannot change.
    """
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def held_out(rows: int, most: int = TEST_ROWS) -> int:
    """How many rows are for testing: at most 10,000, and a third of the rows where they are few.

    >>> held_out(11_000_000), held_out(6_366), held_out(253_680, most=50_000)
    (10000, 2122, 50000)
    """
    return min(most, rows // 3)
