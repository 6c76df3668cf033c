"""Numbers with their errors: ratios over bags, means over rounds and refits, areas under curves.

`RoundAverages` follows the records over rounds, each in other bags and with fresh noise. In a round
a number is a ratio of sums over bags. Its error from bags and noise averages out over rounds; the
error from the records, which all rounds share, is the covariance of two rounds: to first order a
sum over records of the products of the deviations of the record's two bags. Refits that differ by
more than this differ by their eta, and Rubin's rule adds the excess (1 + 1/refits) times: for the
mean over the splits that were drawn, and for training on records that were not.

`over_refits` takes a value and an error from each refit, and Rubin's rule. Its intervals are wider
than necessary, since bags and noise, which averaging reduces, are part of both terms.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from labelaudit.checks import Floats, Ints

COVERAGE = 0.95
# Units whose bags are followed from round to round; in a large table they are a sample.
MOST_UNITS = 25_000


@dataclass(frozen=True)
class Interval:
    """A value with its standard error and the ends of its 95% interval."""

    value: float
    standard_error: float
    low: float
    high: float

    def within(self, least: float, most: float) -> Self:
        """The same interval, its ends cut to what is possible.

        >>> str(Interval(0.01, 0.02, -0.03, 0.05).within(0, 1))
        '0.0100 (0.0000 to 0.0500)'
        """
        low, high = np.clip([self.low, self.high], least, most).tolist()
        return replace(self, low=low, high=high)

    def __str__(self) -> str:
        """The value and the interval."""
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


UNDEFINED = Interval(math.nan, math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Measured:
    """A number from one round or one refit, with its standard error over bags.

    Where some rounds or groups of bags were infinite, `least` is the smallest value of them.
    """

    value: float
    standard_error: float
    least: float = math.inf


def over_bags(sums: Floats, sizes: Floats) -> Measured:
    """The ratio of two sums over bags, with its linearised standard error.

    >>> measured = over_bags(np.array([0.0, 2.0]), np.array([2.0, 2.0]))
    >>> measured.value, round(measured.standard_error, 3)
    (0.5, 0.5)
    """
    total = float(sizes.sum())
    if total == 0:
        return Measured(math.nan, math.nan)
    value = float(sums.sum()) / total
    squares = float(((sums - value * sizes) ** 2).sum())
    n = len(sums)
    return Measured(value, math.sqrt(squares * n / max(n - 1, 1)) / total)


def over_rounds(rounds: Sequence[Measured]) -> Measured:
    """The mean over rounds on the same records; the median where some of them are infinite.

    The error is that of one round, which is wider than necessary: the part from bags and noise
    would shrink, the part from the records would not.

    >>> over_rounds([Measured(2.0, 0.1), Measured(math.inf, math.inf), Measured(3.0, 0.1)])
    Measured(value=3.0, standard_error=inf, least=2.0)
    """
    values = np.array([measured.value for measured in rounds])
    if not np.isfinite([measured.value + measured.standard_error for measured in rounds]).all():
        least = min(*values, *(measured.least for measured in rounds))
        return Measured(float(np.median(values)), math.inf, float(least))
    error = math.sqrt(np.mean([measured.standard_error**2 for measured in rounds]))
    return Measured(float(values.mean()), error)


def over_refits(refits: Sequence[Measured]) -> Interval:
    """Rubin's rule, with its degrees of freedom.

    >>> interval = over_refits([Measured(0.10, 0.01), Measured(0.12, 0.01)])
    >>> round(interval.value, 3), round(interval.standard_error, 4)
    (0.11, 0.02)
    """
    mean = over_rounds(refits)
    if math.isnan(mean.value):
        return UNDEFINED
    if math.isinf(mean.standard_error):
        return Interval(mean.value, math.inf, mean.least, math.inf)
    number = len(refits)
    spread = np.var([measured.value for measured in refits], ddof=1) if number > 1 else 0.0
    return _rubin(mean.value, mean.standard_error**2, (1 + 1 / number) * float(spread), number)


def _rubin(value: float, within: float, between: float, refits: int) -> Interval:
    """The interval of a mean over refits, from the two parts of its variance."""
    error = math.sqrt(within + between)
    # Rubin's degrees of freedom: a small number of refits says little about how far etas differ.
    freedom = (refits - 1) * (1 + within / between) ** 2 if between > 0 else math.inf
    reach = float(stats.t.ppf((1 + COVERAGE) / 2, freedom))
    return Interval(value, error, value - reach * error, value + reach * error)


class RoundAverages:
    """Several numbers of one setting, each a ratio of sums over bags, averaged over rounds.

    `unseen` holds, for each number, what one record could have added to its bag. One such change
    upwards and one downwards are counted in the error, so that it is above zero where all bags are
    equal, as under a perfect attack: an event that n bags do not show is still possible.
    """

    def __init__(self, unseen: Mapping[str, float], units: int, repeated: bool = False) -> None:
        """Units are what the rounds have in common: records, persons or, where fixed, bags.

        They are `repeated` where one may be in several bags of a round, as a person may.
        """
        self._repeated = repeated
        self.unseen = dict(unseen)
        followed = min(units, MOST_UNITS)
        self._weight = units / followed
        # The position of each unit among those that are followed; -1 for the others.
        self._position = np.full(units, -1)
        self._position[np.random.default_rng(0).permutation(units)[:followed]] = range(followed)
        # For each unit the deviations of its bags, over the rounds of this refit and over refits.
        self._in_refit, self._in_all = np.zeros((2, followed, len(self.unseen)))
        # Of each round and refit the numbers, their variance, the sum of the squared deviations of
        # the units, and the sizes of the bags.
        self._rounds: list[tuple[Floats, ...]] = []
        self._refits: list[tuple[Floats, ...]] = []
        self._moments: tuple[Floats, ...] = ()

    def add(self, sums: Floats, sizes: Floats, units: Ints, lengths: Ints) -> None:
        """Add a round: sums and sizes (n_bags, numbers), and the units of each bag, bag by bag."""
        n_bags = len(sums)
        total = np.ones(n_bags) @ sizes
        with np.errstate(invalid="ignore", divide="ignore"):
            value = np.ones(n_bags) @ sums / total
        # The sum of squares of sums - value * sizes, without a table of them.
        squares = _products(sums, sums) - 2 * value * _products(sums, sizes)
        squares += value**2 * _products(sizes, sizes)
        position = self._position[units]
        followed = np.flatnonzero(position >= 0)
        bag = np.searchsorted(np.cumsum(lengths), followed, side="right")
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = np.maximum(squares, 0) / total**2 * n_bags / max(n_bags - 1, 1)
            deviations = (sums[bag] - value * sizes[bag]) / total
        if self._repeated:
            np.add.at(self._in_refit, position[followed], deviations)
        else:
            self._in_refit[position[followed]] += deviations
        self._rounds.append((value, variance, _products(deviations, deviations), total))

    def end_refit(self) -> None:
        """The rounds that follow have another eta."""
        number = len(self._rounds)
        value, variance, squares, total = np.mean(self._rounds, axis=0)
        # Rounds that share records cannot differ more than rounds that do not.
        covariance = np.maximum(self._covariance(self._in_refit, number * squares), 0)
        self._in_refit /= number
        squares = _products(self._in_refit, self._in_refit)
        self._refits.append((value, variance / number + covariance / number**2, squares, total))
        self._in_all += self._in_refit
        self._in_refit[:] = 0
        self._rounds = []

    def close(self) -> None:
        """No refit follows: keep the moments, and not the deviations of every unit."""
        number = len(self._refits)
        value, variance, squares, _ = np.mean(self._refits, axis=0)
        covariance = self._covariance(self._in_all, number * squares)
        shared = np.clip(covariance / max(number * (number - 1), 1), 0, variance)
        values = [refit[0] for refit in self._refits]
        spread = np.var(values, axis=0, ddof=1) if number > 1 else np.zeros(len(shared))
        excess = spread - (variance - shared)
        with np.errstate(invalid="ignore", divide="ignore"):
            self.excess = excess / variance
            rare = 2 * (np.array([*self.unseen.values()]) / self._refits[0][-1]) ** 2
        within = (variance + (number - 1) * shared) / number + rare
        self._moments = value, within, variance, excess
        del self._in_refit, self._in_all

    def intervals(self, excess: Floats | None = None) -> dict[str, Interval]:
        """The mean over all refits of each number, with its 95% interval.

        `excess` is by how much refits differ beyond bags and noise, in variances of one refit. A
        small number of refits says little about it, so several settings may share theirs.
        """
        if not self._moments:
            self.close()
        number = len(self._refits)
        value, within, variance, own = self._moments
        between = (1 + 1 / number) * np.maximum(own if excess is None else excess * variance, 0)
        columns = (column.tolist() for column in (value, within, between))
        return {
            name: UNDEFINED if math.isnan(value) else _rubin(value, inner, outer, number)
            for name, value, inner, outer in zip(self.unseen, *columns, strict=True)
        }

    def _covariance(self, deviations: Floats, own: Floats) -> Floats:
        """Products of a unit's deviations in different rounds, summed over units and rounds."""
        return self._weight * (_products(deviations, deviations) - own)


def _products(first: Floats, second: Floats) -> Floats:
    return np.einsum("ij,ij->j", first, second)


@dataclass(frozen=True)
class Curve:
    """The fraction of negatives that each positive ranks above, and the reverse for negatives.

    Their means are the area under the ROC curve. Their spread gives its error, and the error of the
    difference between two scores of the same rows (DeLong, DeLong and Clarke-Pearson).

    >>> Curve.of(np.array([0.1, 0.7, 0.7, 0.7]), np.array([0, 1, 1, 0])).area.value
    0.75
    """

    ones: Floats
    zeros: Floats

    @classmethod
    def of(cls, scores: Floats, labels: NDArray[Any]) -> Self:
        """Ties count half."""
        positive = np.asarray(labels) == 1
        ranks = stats.rankdata(scores)
        above = ranks[positive] - stats.rankdata(scores[positive])
        below = ranks[~positive] - stats.rankdata(scores[~positive])
        return cls(above / (~positive).sum(), 1 - below / positive.sum())

    def __sub__(self, other: Self) -> Self:
        """The difference of two curves over the same rows."""
        return type(self)(self.ones - other.ones, self.zeros - other.zeros)

    @property
    def area(self) -> Measured:
        """The area and its standard error."""
        sides = [side for side in (self.ones, self.zeros) if side.size > 1]
        variance = sum(side.var(ddof=1) / side.size for side in sides)
        return Measured(float(self.ones.mean()), math.sqrt(variance))
