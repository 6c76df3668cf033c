"""What the aggregation checks share: the smallest slack, the paper's c_k, the Bessel bound.

In these rows the paper's k counts the *other* examples of a bag of k + 1; Z_k is their label count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise
from math import inf
from typing import Any

import mpmath
import numpy as np
from scipy import special, stats

from labelaudit.ledger.exact import HALF, Law

interval: Any = mpmath.iv
"""Interval arithmetic: a comparison of two enclosures is a proof, not a float's opinion."""

SMALL_LAWS: dict[str, Law] = {
    "eta = 1/2": [(HALF, Fraction(1))],
    "eta = 1/10": [(Fraction(1, 10), Fraction(1))],
    "eta in {0, 1/2}": [(Fraction(0), Fraction(2, 3)), (HALF, Fraction(1, 3))],
    "eta in {0, 1}": [(Fraction(0), Fraction(3, 4)), (Fraction(1), Fraction(1, 4))],
    "eta in {1/5, 9/10}": [(Fraction(1, 5), Fraction(3, 5)), (Fraction(9, 10), Fraction(2, 5))],
}
"""Finite laws for eta on which expectations over the features are exact sums."""


@dataclass
class Smallest:
    """The smallest value seen so far, and where it was seen.

    >>> slack = Smallest()
    >>> slack.see([0.3, 0.1], ["here", "there"])
    >>> slack.value, slack.place
    (0.1, 'there')
    """

    value: Any = inf
    place: str = "nowhere"

    def see(self, values: Any, places: Sequence[object]) -> None:
        """Look at several values at once."""
        index = min(range(len(values)), key=lambda i: values[i])
        if values[index] < self.value:
            self.value, self.place = values[index], str(places[index])

    def __str__(self) -> str:
        """Value and place, as the evidence prints them."""
        return f"{float(self.value):.4g} at {self.place}"


def small_bags(size: int, steps: int) -> list[tuple[Fraction, ...]]:
    """Every bag of `size` priors (up to order) on the grid 0, 1/steps, ..., 1."""
    grid = [Fraction(j, steps) for j in range(steps + 1)]
    return list(combinations_with_replacement(grid, size))


def differences(pmf: Sequence[Fraction]) -> list[Fraction]:
    """P(Z = s) - P(Z = s - 1) for s = 0, ..., k + 1.

    >>> differences([Fraction(1, 4), Fraction(3, 4)])
    [Fraction(1, 4), Fraction(1, 2), Fraction(-3, 4)]
    """
    padded = [Fraction(0), *pmf, Fraction(0)]
    return [after - before for before, after in pairwise(padded)]


def spread(pmf: Sequence[Fraction]) -> Fraction:
    """The sum of |P(Z = s) - P(Z = s - 1)| over s = 0, ..., k + 1."""
    return sum((abs(step) for step in differences(pmf)), Fraction(0))


def c_k(k: Any, variance: Any, math: Any = np) -> Any:
    """The paper's c_k (Lemma A.2); `variance` is p(1 - p), `math` numpy or interval arithmetic."""
    logarithm = math.log(8 * k)
    root = math.sqrt(2 * logarithm + 12 * k * variance * logarithm)
    return (logarithm / 3 + root / 6) / math.sqrt(k)


def bessel_spread(k: Any, mu: Any) -> Any:
    """2 e^{-k mu} I0(k mu), at least E[sum_s |P(Z_k = s) - P(Z_k = s - 1)|] for every law.

    The pmf of Z_k is unimodal, so the sum is twice its maximum; Fourier inversion and
    E|phi| <= sqrt(E|phi|^2) bound the expected maximum by e^{-k mu} I0(k mu).
    """
    return 2 * special.ive(0, k * mu)


BESSEL_CONSTANT = 0.93765
"""bessel_spread(k, mu) <= BESSEL_CONSTANT / sqrt(k mu)."""


def bessel_constant_is_safe() -> bool:
    """Whether 2 sqrt(v) e^{-v} I0(v) stays below the constant; its peak is at v = 0.78998."""
    v = np.concatenate([np.geomspace(1e-9, 1e9, 4000), np.linspace(0.7, 0.9, 2001)])
    return bool((2 * np.sqrt(v) * special.ive(0, v)).max() < BESSEL_CONSTANT)


def binomial_spread(k: int, p: Any) -> Any:
    """The same sum for a constant eta = p: twice the binomial pmf at its mode."""
    p = np.asarray(p, dtype=float)
    return 2 * stats.binom.pmf(np.floor((k + 1) * p), k, p)


def thinned_spread(k: int, high: float, weight: float) -> float:
    """Its expectation when eta is `high` with probability `weight` and 0 otherwise."""
    number = np.arange(k + 1)
    mode = np.floor((number + 1) * high)
    chance = stats.binom.pmf(number, k, weight)
    return float(2 * (chance * stats.binom.pmf(mode, number, high)).sum())


def prior_of(mu: Any) -> Any:
    """The constant eta <= 1/2 with eta(1 - eta) = mu."""
    return 2 * mu / (1 + np.sqrt(1 - 4 * mu))
