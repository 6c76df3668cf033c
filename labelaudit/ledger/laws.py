"""Laws for eta on which the general bounds are tried, with their exact advantages under LLP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from labelaudit.ledger import exact
from labelaudit.ledger.rows import Search

LAWS = (
    "constant eta (p from 1e-4 to 1/2, k to 1e5), eta in {0, 1/2} (mu from 1e-4, k to 1.8e5), "
    "other two-point laws including a lone outlier, and Beta laws by sampled bags"
)


@dataclass(frozen=True)
class Case:
    """One law for eta, a bag size, one example's prior, and the exact advantages."""

    law: str
    bag_size: int
    p: float
    mu: float
    eta: float
    individual: float
    expected: float
    standard_error: float = 0.0


def half_or_nothing(weight: float, bag_size: int) -> float:
    """IEAdv at eta = 1/2 when eta is 1/2 with probability `weight` and 0 otherwise.

    Zeros are known, so the bag is really one of J + 1 fair labels, J ~ Bin(k-1, weight), whose
    advantage is C(J, floor(J/2)) / 2^(J+1).
    """
    from scipy import special, stats

    fair = np.arange(bag_size)
    middle = fair // 2
    log_choose = (
        special.gammaln(fair + 1) - special.gammaln(middle + 1) - special.gammaln(fair - middle + 1)
    )
    gain = np.exp(log_choose - (fair + 1) * np.log(2))
    return float(stats.binom.pmf(fair, bag_size - 1, weight) @ gain)


def log_condition(mu: float) -> int:
    """The smallest bag that meets the condition k >= (2/mu) log(1/mu) of Theorem 3.4."""
    return int(np.ceil(2 / mu * np.log(1 / mu)))


def constant_cases(search: Search) -> Iterator[Case]:
    """Labels independent of features, to bags of 10^5."""
    sizes = [2, 3, 4, 5, 8, 16, 100, 1000, 100_000]
    grid = np.concatenate([np.geomspace(1e-4, 0.4, search.pick(8, 40)), [0.45, 0.49, 0.499, 0.5]])
    for k in search.pick(sizes, [*range(2, 200), *sizes[-2:], 10_000]):
        gains = np.exp(exact.log_independent_advantage(grid, k))
        for p, gain in zip(grid, gains, strict=True):
            yield Case("constant", k, p, p * (1 - p), p, float(gain), float(gain))


def half_cases(search: Search) -> Iterator[Case]:
    """eta in {0, 1/2}: the law that spends mu most effectively, to bags of 10^5."""
    for weight in np.geomspace(4e-4, 1, search.pick(8, 30)):
        sizes = search.pick((2, 3, 10, 100, 10_000), (2, 3, 4, 5, 7, 10, 30, 100, 1000, 100_000))
        for k in (*sizes, log_condition(weight / 4)):
            gain = half_or_nothing(float(weight), k)
            yield Case("{0, 1/2}", k, weight / 2, weight / 4, 0.5, gain, weight * gain)


def two_point_cases(search: Search) -> Iterator[Case]:
    """eta in {low, high}, exact mixtures of two binomials."""
    points = search.pick(
        ((0.001, 0.4), (0.1, 0.9)), tuple(product((0, 1e-3, 0.1, 0.3), (0.4, 0.6, 0.99)))
    )
    for (low, high), weight in product(points, (0.0, 0.01, 0.3, 0.7)):
        p = (1 - weight) * low + weight * high
        mu = (1 - weight) * low * (1 - low) + weight * high * (1 - high)
        if mu == 0:
            continue
        for k in search.pick((2, 5, 40), (2, 3, 5, 12, 40, 150, 400)):
            at_low, at_high, total = exact.two_point_advantage(low, high, weight, k)
            law = f"{{{low}, {high}}}"
            yield Case(law, k, p, mu, low, at_low, total)
            yield Case(law, k, p, mu, high, at_high, total)


def beta_cases(search: Search) -> Iterator[Case]:
    """eta ~ Beta(a, b): bags sampled, each bag's advantage exact; carries a standard error."""
    rng = np.random.default_rng(20240)
    draws = search.pick(2000, 20_000)
    for (a, b), k in product(
        ((2, 30), (1, 1), (0.1, 0.3), (40, 40)), search.pick((2, 16), (2, 8, 64))
    ):
        p = a / (a + b)
        mu = a * b / ((a + b) * (a + b + 1))
        gains = exact.bag_advantage(rng.beta(a, b, (draws, k)))
        error = float(gains.std(ddof=1)) / draws**0.5
        yield Case(f"Beta({a}, {b})", k, p, mu, np.nan, np.nan, float(gains.mean()), error)


def all_cases(search: Search) -> list[Case]:
    """Every law of the search."""
    parts = (constant_cases, half_cases, two_point_cases, beta_cases)
    return [case for part in parts for case in part(search)]
