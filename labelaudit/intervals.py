"""Numbers with their errors: ratios over bags, means over rounds and refits, areas under curves.

`RoundAverages` follows the records over rounds, each in other bags and with fresh noise. In a round
a number is a ratio of sums over bags. Its error from bags and noise averages out over rounds; the
error from the records, which all rounds share, is the covariance of two rounds: to first order a
sum over records of the products of the deviations of the record's two bags. Refits that differ by
more than this differ by their eta, and Rubin's rule adds the excess (1 + 1/refits) times: for the
mean over the splits that were drawn, and for training on records that were not.

`pooled_by_rubin` takes a value and an error from each refit, and Rubin's rule. Its intervals are
wider than necessary, since bags and noise, which averaging reduces, are part of both terms.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
from scipy import stats

from labelaudit.checks import Floats, Ints

# A row of a table of settings, as `DataFrame.itertuples` gives it: the checker cannot see columns.
Row: TypeAlias = Any
COVERAGE = 0.95
# Units whose bags are followed from round to round; in a large table they are a sample.
MAX_UNITS = 25_000


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

    def columns(self, name: str) -> dict[str, float]:
        """The four numbers under the names that they have in a table of settings."""
        values = (self.value, self.standard_error, self.low, self.high)
        return dict(zip(column_names(name), values, strict=True))

    @classmethod
    def of(cls, row: Row, name: str) -> Self:
        """The interval that `columns` put into a row."""
        return cls(*(float(getattr(row, column)) for column in column_names(name)))

    @property
    def known(self) -> bool:
        """Whether the value is a number."""
        return not math.isnan(self.value)

    def __str__(self) -> str:
        """The value and the interval."""
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


def column_names(name: str) -> tuple[str, str, str, str]:
    """The columns that hold an interval.

    >>> column_names("realised")
    ('realised', 'realised_error', 'realised_low', 'realised_high')
    """
    return name, f"{name}_error", f"{name}_low", f"{name}_high"


UNDEFINED = Interval(math.nan, math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class ValueWithError:
    """A number from one round or one refit, with its standard error over bags.

    Where some rounds or groups of bags were infinite, `least` is the smallest value of them.
    """

    value: float
    standard_error: float
    least: float = math.inf


def ratio_over_bags(sums: Floats, sizes: Floats) -> ValueWithError:
    """The ratio of two sums over bags, with its linearised standard error.

    >>> ratio = ratio_over_bags(np.array([0.0, 2.0]), np.array([2.0, 2.0]))
    >>> ratio.value, round(ratio.standard_error, 3)
    (0.5, 0.5)
    """
    total = float(sizes.sum())
    if total == 0:
        return ValueWithError(math.nan, math.nan)
    value = float(sums.sum()) / total
    squares = float(((sums - value * sizes) ** 2).sum())
    n = len(sums)
    return ValueWithError(value, math.sqrt(squares * n / max(n - 1, 1)) / total)


def mean_over_rounds(rounds: Sequence[ValueWithError]) -> ValueWithError:
    """The mean over rounds on the same records; the median where some of them are infinite.

    The error is that of one round, which is wider than necessary: the part from bags and noise
    would shrink, the part from the records would not.

    >>> rounds = [ValueWithError(2.0, 0.1), ValueWithError(math.inf, math.inf)]
    >>> mean_over_rounds([*rounds, ValueWithError(3.0, 0.1)])
    ValueWithError(value=3.0, standard_error=inf, least=2.0)
    """
    values = np.array([each.value for each in rounds])
    if not np.isfinite([each.value + each.standard_error for each in rounds]).all():
        least = min(*values, *(each.least for each in rounds))
        return ValueWithError(float(np.median(values)), math.inf, float(least))
    error = math.sqrt(np.mean([each.standard_error**2 for each in rounds]))
    return ValueWithError(float(values.mean()), error)


def pooled_by_rubin(refits: Sequence[ValueWithError]) -> Interval:
    """Rubin's rule, with its degrees of freedom.

    >>> interval = pooled_by_rubin([ValueWithError(0.10, 0.01), ValueWithError(0.12, 0.01)])
    >>> round(interval.value, 3), round(interval.standard_error, 4)
    (0.11, 0.02)
    """
    mean = mean_over_rounds(refits)
    if math.isnan(mean.value):
        return UNDEFINED
    if math.isinf(mean.standard_error):
        return Interval(mean.value, math.inf, mean.least, math.inf)
    number = len(refits)
    spread = np.var([each.value for each in refits], ddof=1) if number > 1 else 0.0
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
        followed = min(units, MAX_UNITS)
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
