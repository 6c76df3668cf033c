"""Closed forms in floating point: the advantage of LLP for large bags, and spreads of counts.

The paper's k counts the *other* examples of a bag of k + 1, and Z_k is their count of positive
labels. `all_cases` lists the distributions of eta on which the general bounds are tried.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from labelaudit import bounds
from labelaudit.advantage import additive_advantage
from labelaudit.bounds.exact import log_independent_advantage as log_independent_advantage
from labelaudit.mechanisms import LabelProportions

interval: Any = mpmath.iv
"""Interval arithmetic: a comparison of two enclosures is a proof."""


def enclosure(value: Fraction) -> Any:
    """A fraction as an interval that contains it."""
    return interval.mpf(value.numerator) / value.denominator


def bag_advantage(eta: NDArray[np.float64]) -> NDArray[np.float64]:
    """f_1i - f_2i under LLP of the first example of each bag; `eta` is (n_bags, bag_size).

    Priors are exchangeable, so the mean over bags of independent draws estimates EAdv.
    """
    return additive_advantage(eta, LabelProportions(eta.shape[1]))[:, 0]


def nearly_sharp_bag() -> NDArray[np.float64]:
    """A coin, then 400 rare and 400 nearly certain labels, each half with a variance of 0.395.

    The moves of the others' count times the root of their variance are 0.9371. The supremum over
    all bags is 0.937645 (chapter 13); random bags come near 0.90.
    """
    rare = (1 - np.sqrt(1 - 4 * 0.395 / 400)) / 2
    return np.repeat([0.5, rare, 1 - rare], [1, 400, 400])


def half_or_nothing(weight: float, bag_size: int) -> float:
    """IEAdv at eta = 1/2 when eta is 1/2 with probability `weight` and 0 otherwise.

    Zeros are known, so the bag is really one of J + 1 fair labels, J ~ Bin(k-1, weight), whose
    advantage is C(J, floor(J/2)) / 2^(J+1).
    """
    fair = np.arange(bag_size)
    gains = stats.binom.pmf(fair // 2, fair, 0.5) / 2
    return float(stats.binom.pmf(fair, bag_size - 1, weight) @ gains)


def bessel_spread(k: Any, mu: Any) -> Any:
    """2 e^{-k mu} I0(k mu) >= E[sum_s |P(Z_k = s) - P(Z_k = s - 1)|] for every distribution.

    The pmf of Z_k is unimodal, so the sum is twice its maximum. Fourier inversion and
    E|phi| <= sqrt(E|phi|^2) bound the expected maximum by e^{-k mu} I0(k mu).
    """
    return 2 * special.ive(0, k * mu)


def binomial_spread(k: int, p: Any) -> Any:
    """The sum of |P(Z_k = s) - P(Z_k = s - 1)| for eta = p: twice the binomial pmf at its mode."""
    p = np.asarray(p, dtype=float)
    return 2 * stats.binom.pmf(np.floor((k + 1) * p), k, p)


def thinned_spread(k: int, high: float, weight: float) -> float:
    """Its expectation when eta is `high` with probability `weight` and 0 otherwise."""
    number = np.arange(k + 1)
    mode = np.floor((number + 1) * high)
    probability = stats.binom.pmf(number, k, weight)
    return float(2 * (probability * stats.binom.pmf(mode, number, high)).sum())


@dataclass(frozen=True)
class Example:
    """One distribution of eta, a bag size, one example's prior, and the exact advantages."""

    distribution: str
    bag_size: int
    p: float
    mu: float
    eta: float
    individual: float
    expected: float
    standard_error: float = 0.0


def constant_cases(quick: bool) -> Iterator[Example]:
    """Labels independent of features, to bags of 10^5."""
    sizes = [2, 3, 4, 5, 8, 16, 100, 1000, 100_000]
    grid = np.concatenate([np.geomspace(1e-4, 0.4, 8 if quick else 40), [0.45, 0.49, 0.499, 0.5]])
    for k in sizes if quick else [*range(2, 200), *sizes[-2:], 10_000]:
        gains = np.exp(log_independent_advantage(grid, k))
        for p, gain in zip(grid, gains, strict=True):
            yield Example("constant", k, p, p * (1 - p), p, float(gain), float(gain))


def half_cases(quick: bool) -> Iterator[Example]:
    """eta in {0, 1/2}: the distribution that spends mu most effectively, to bags of 10^5.

    The last bag of each is the smallest that meets k >= (2/mu) log(1/mu), as Theorem 3.4 asks.
    """
    for weight in np.geomspace(4e-4, 1, 8 if quick else 30):
        mu = weight / 4
        sizes = (2, 3, 10, 100, 10_000) if quick else (2, 3, 4, 5, 7, 10, 30, 100, 1000, 100_000)
        for k in (*sizes, int(np.ceil(2 / mu * np.log(1 / mu)))):
            gain = half_or_nothing(float(weight), k)
            yield Example("{0, 1/2}", k, weight / 2, mu, 0.5, gain, weight * gain)


def two_point_cases(quick: bool) -> Iterator[Example]:
    """eta in {low, high}, exact mixtures of two binomials."""
    every = tuple(product((0, 1e-3, 0.1, 0.3), (0.4, 0.6, 0.99)))
    points = ((0.001, 0.4), (0.1, 0.9)) if quick else every
    for (low, high), weight in product(points, (0.0, 0.01, 0.3, 0.7)):
        p = (1 - weight) * low + weight * high
        mu = (1 - weight) * low * (1 - low) + weight * high * (1 - high)
        if mu == 0:
            continue
        for k in (2, 5, 40) if quick else (2, 3, 5, 12, 40, 150, 400):
            at_low, at_high, total = map(float, bounds.two_point_advantage(low, high, weight, k))
            name = f"{{{low}, {high}}}"
            yield Example(name, k, p, mu, low, at_low, total)
            yield Example(name, k, p, mu, high, at_high, total)


def beta_cases(quick: bool) -> Iterator[Example]:
    """eta ~ Beta(a, b): bags sampled, each bag's advantage exact; carries a standard error."""
    rng, draws = np.random.default_rng(20240), 2000 if quick else 20_000
    shapes, sizes = ((2, 30), (1, 1), (0.1, 0.3), (40, 40)), (2, 16) if quick else (2, 8, 64)
    for (a, b), k in product(shapes, sizes):
        p, mu = a / (a + b), a * b / ((a + b) * (a + b + 1))
        gains = bag_advantage(rng.beta(a, b, (draws, k)))
        error = float(gains.std(ddof=1)) / draws**0.5
        yield Example(f"Beta({a}, {b})", k, p, mu, np.nan, np.nan, float(gains.mean()), error)


def all_cases(quick: bool) -> list[Example]:
    """Every distribution of the search."""
    parts = (constant_cases, half_cases, two_point_cases, beta_cases)
    return [case for part in parts for case in part(quick)]
