"""One interval from many rounds of attack on the same records.

In a round a number is a ratio of sums over bags, and its error follows from how bags differ. A
refit attacks the same records in several rounds, in other bags and with fresh noise; the next one
has another eta besides. What bags and noise add averages out over rounds. What the records add
does not, since every round has the same ones: it is the covariance of two rounds. To first order
that is the sum over records of the products of what their bags in the two rounds are off by, the
bag of the one round and the bag of the other having nothing but the record in common.

Refits that differ by more than this explains differ by their eta. The excess is added by Rubin's
rule, (1 + 1/refits) times: once for the mean over the splits that were drawn, once for training on
records that were not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from labelaudit.checks import Floats
from labelaudit.report.intervals import COVERAGE, Interval

# Units whose bags are followed from round to round; of a large table they stand for all.
MOST_UNITS = 25_000


@dataclass(frozen=True)
class _Mean:
    """Numbers of a round or a refit, their variance, and each unit's products with itself."""

    value: Floats
    variance: Floats
    products: Floats
    total: Floats


class Pool:
    """Several numbers of one setting, gathered round by round.

    `unseen` holds, for each number, what one record could have added to its bag. Counting one such
    change upwards and one downwards keeps the error above zero where every bag came out alike, as
    under a perfect attack: what did not happen in n bags may still happen.
    """

    def __init__(self, unseen: Mapping[str, float], units: int) -> None:
        """Units are what the rounds share: records or, where bags stay as they are, bags."""
        self.unseen = dict(unseen)
        looked_at = min(units, MOST_UNITS)
        self._stand_for = units / looked_at
        # Which units are looked at, and where they stand; the others stand nowhere.
        self._place = np.full(units, -1)
        self._place[np.random.default_rng(0).permutation(units)[:looked_at]] = range(looked_at)
        # For each unit: what its bags are off by, over this refit's rounds and over all refits.
        self._here, self._all = np.zeros((2, looked_at, len(self.unseen)))
        self._rounds: list[_Mean] = []
        self._refits: list[_Mean] = []

    def add(
        self, sums: Floats, sizes: Floats, units: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> None:
        """One round: sums and sizes (n_bags, numbers), and the units of each bag, bag by bag."""
        n_bags = len(sums)
        total = np.ones(n_bags) @ sizes
        with np.errstate(invalid="ignore", divide="ignore"):
            value = np.ones(n_bags) @ sums / total
        # The sum of squares of sums - value * sizes, without a table of them.
        squares = _products(sums, sums) - 2 * value * _products(sums, sizes)
        squares += value**2 * _products(sizes, sizes)
        place = self._place[units]
        seen = np.flatnonzero(place >= 0)
        bag = np.searchsorted(np.cumsum(lengths), seen, side="right")
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = np.maximum(squares, 0) / total**2 * n_bags / max(n_bags - 1, 1)
            off = (sums[bag] - value * sizes[bag]) / total
        self._here[place[seen]] += off
        self._rounds.append(_Mean(value, variance, _products(off, off), total))

    def end_refit(self) -> None:
        """The rounds that follow have another eta."""
        number = len(self._rounds)
        crossed = _products(self._here, self._here) - sum(one.products for one in self._rounds)
        crossed *= self._stand_for
        own = sum(one.variance for one in self._rounds)
        self._here /= number
        self._refits.append(
            _Mean(
                value=np.mean([one.value for one in self._rounds], axis=0),
                # Sharing records cannot make rounds differ more than they would without.
                variance=(own + np.maximum(crossed, 0)) / number**2,
                products=_products(self._here, self._here),
                total=np.mean([one.total for one in self._rounds], axis=0),
            )
        )
        self._all += self._here
        self._here[:] = 0
        self._rounds = []

    def intervals(self) -> dict[str, Interval]:
        """The mean over all refits of each number, with its 95% interval."""
        number = len(self._refits)
        crossed = _products(self._all, self._all) - sum(one.products for one in self._refits)
        crossed *= self._stand_for
        variance = np.mean([one.variance for one in self._refits], axis=0)
        shared = np.clip(crossed / max(number * (number - 1), 1), 0, variance)
        values = np.array([one.value for one in self._refits])
        spread = values.var(axis=0, ddof=1) if number > 1 else np.zeros(len(shared))
        eta = (1 + 1 / number) * np.maximum(spread - (variance - shared), 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            rare = 2 * (np.array([*self.unseen.values()]) / self._refits[0].total) ** 2
        rest = (variance + (number - 1) * shared) / number + rare
        found = zip(self.unseen, values.mean(axis=0), rest, eta, strict=True)
        return {name: _interval(value, one, two, number) for name, value, one, two in found}


def _products(one: Floats, other: Floats) -> Floats:
    return np.einsum("ij,ij->j", one, other)


def _interval(value: float, rest: float, eta: float, refits: int) -> Interval:
    if math.isnan(value):
        return Interval(math.nan, math.nan, math.nan, math.nan)
    error = math.sqrt(rest + eta)
    # Rubin's degrees of freedom: so few refits say little about how far etas differ.
    freedom = (refits - 1) * ((rest + eta) / eta) ** 2 if eta > 0 else math.inf
    reach = float(stats.t.ppf((1 + COVERAGE) / 2, freedom))
    return Interval(float(value), error, value - reach * error, value + reach * error)
