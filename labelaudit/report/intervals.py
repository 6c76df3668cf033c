"""Intervals from numbers of which no more is known than their error within a refit.

The spread between refits is added by Rubin's rule: the mean error within a refit, squared, plus
(1 + 1/refits) times the variance between them. That errs on the wide side, since other bags and
fresh noise, which averaging makes smaller, are part of both. `pool` does better where it can.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from labelaudit.checks import Floats

COVERAGE = 0.95


@dataclass(frozen=True)
class Interval:
    """A value with its standard error and the ends of its 95% interval."""

    value: float
    standard_error: float
    low: float
    high: float

    def __str__(self) -> str:
        """The value and the interval."""
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


@dataclass(frozen=True)
class Share:
    """A number from one refit, with its standard error over bags.

    Where some rounds or groups of bags came out infinite, `least` is the smallest of them.
    """

    value: float
    standard_error: float
    least: float = math.inf


def over_bags(sums: Floats, sizes: Floats) -> Share:
    """The ratio of two sums over bags, with its linearised standard error.

    >>> share = over_bags(np.array([0.0, 2.0]), np.array([2.0, 2.0]))
    >>> share.value, round(share.standard_error, 3)
    (0.5, 0.5)
    """
    total = float(sizes.sum())
    if total == 0:
        return Share(math.nan, math.nan)
    value = float(sums.sum()) / total
    squares = float(((sums - value * sizes) ** 2).sum())
    n = len(sums)
    return Share(value, math.sqrt(squares * n / max(n - 1, 1)) / total)


def over_refits(shares: Sequence[Share]) -> Interval:
    """Rubin's rule, with his degrees of freedom.

    >>> interval = over_refits([Share(0.10, 0.01), Share(0.12, 0.01)])
    >>> round(interval.value, 3), round(interval.standard_error, 4)
    (0.11, 0.02)
    """
    values = np.array([share.value for share in shares])
    if not np.isfinite([share.value + share.standard_error for share in shares]).all():
        return _unbounded(values, min(share.least for share in shares))
    within = float(np.mean([share.standard_error**2 for share in shares]))
    spread = float(values.var(ddof=1)) if values.size > 1 else 0.0
    between = (1 + 1 / values.size) * spread
    error = math.sqrt(within + between)
    if between > 0:
        freedom = (values.size - 1) * (1 + within / between) ** 2
        reach = float(stats.t.ppf((1 + COVERAGE) / 2, freedom))
    else:
        reach = float(stats.norm.ppf((1 + COVERAGE) / 2))
    value = float(values.mean())
    return Interval(value, error, value - reach * error, value + reach * error)


def over_rounds(shares: Sequence[Share]) -> Share:
    """The mean over rounds on the same records; the median where some of them are endless.

    Errors are not reduced: that errs on the wide side, since only the part from bags and noise
    would shrink.

    >>> over_rounds([Share(2.0, 0.1), Share(math.inf, math.inf), Share(3.0, 0.1)])
    Share(value=3.0, standard_error=inf, least=2.0)
    """
    values = np.array([share.value for share in shares])
    if np.isinf([share.value + share.standard_error for share in shares]).any():
        least = min(*values, *(share.least for share in shares))
        return Share(float(np.median(values)), math.inf, float(least))
    error = math.sqrt(np.mean([share.standard_error**2 for share in shares]))
    return Share(float(values.mean()), error)


def _unbounded(values: Floats, least: float) -> Interval:
    """Where a refit has an infinite value, or none because there was nothing to divide by."""
    if np.isnan(values).any():
        return Interval(math.nan, math.nan, math.nan, math.nan)
    value = float(np.median(values))
    return Interval(value, math.inf, min(float(values.min()), least), math.inf)
