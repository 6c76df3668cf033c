"""Translated Poisson laws and the lemmas cited for them (paper lines 1096 to 1172).

A bag has priors eta_1..eta_k and V is the sum of eta_i (1 - eta_i). d_TV is the total variation
distance, the largest difference of probability on one set: half the sum of the differences.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from math import exp, factorial, floor, log10, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from labelaudit.ledger.exact import HALF
from labelaudit.ledger.rows import Finding, Search, confirm, statement

WORKSHOP = "06_proof_workshop"
FAIR = (HALF,) * 4  # the smallest bag of fair coins with V = 1


def random_bags(search: Search) -> Iterator[NDArray]:
    """Bags from constant, two-point and Beta laws, some with certain labels mixed in."""
    rng = np.random.default_rng(20240)
    for size in search.pick((1, 2, 5, 12, 40), (1, 2, 3, 5, 8, 13, 30, 80, 120)):
        for _ in range(search.pick(20, 60)):
            low, high = 10 ** rng.uniform(-4, log10(0.5), 2)
            yield np.full(size, low)
            yield np.full(size, 0.5)
            yield np.where(rng.random(size) < rng.random(), low, 1 - high)
            yield np.where(rng.random(size) < rng.random(), 0.5, rng.integers(0, 2, size))
            a, b = 10 ** rng.uniform(-1.5, 1.5, 2)
            yield rng.beta(a, b, size)


def rest_laws(eta: NDArray) -> NDArray:
    """Row i: the law of the count of the bag without example i, for counts 0..k-1."""
    others = np.where(np.eye(len(eta), dtype=bool), 0.0, eta)
    rest = np.zeros_like(others)
    rest[:, 0] = 1.0
    for column in others.T:
        moved = rest[:, :-1] * column[:, None]
        rest *= 1 - column[:, None]
        rest[:, 1:] += moved
    return rest


def count_law(eta: NDArray) -> NDArray:
    """The law of the count of a bag, for counts 0..k."""
    law = np.ones(1)
    for prior in eta:
        law = np.append((1 - prior) * law, 0.0) + np.append(0.0, prior * law)
    return law


def total_variance(eta: Any) -> Any:
    """V, the sum of eta (1 - eta)."""
    return sum(prior * (1 - prior) for prior in eta)


def translate(mean: Any, variance: Any, sign: int = -1) -> tuple[int, Any]:
    """The shift and the Poisson rate of TP(mean, variance); `sign` is +1 as the paper prints it.

    >>> translate(Fraction(5, 2), Fraction(3, 4))
    (1, Fraction(3, 2))
    """
    return floor(mean + sign * variance), mean - floor(mean - variance)


def distance_to_translated(eta: NDArray, sign: int = -1) -> float:
    """d_TV between the count of a bag and the translated Poisson of its mean and variance."""
    shift, rate = translate(eta.sum(), total_variance(eta), sign)
    last = max(len(eta), shift + int(rate + 12 * sqrt(rate)) + 30)
    support = np.arange(last + 1)
    count = np.zeros(last + 1)
    count[: len(eta) + 1] = count_law(eta)
    return float(abs(count - stats.poisson.pmf(support - shift, rate)).sum() / 2)


def binomial_distance(size: int, p: float) -> float:
    """The same for a constant prior, on the window of 12 standard deviations that matters."""
    variance = size * p * (1 - p)
    shift, rate = translate(size * p, variance)
    width = int(12 * sqrt(rate)) + 30
    support = np.arange(max(0, int(size * p) - width), int(size * p) + width)
    count = stats.binom.pmf(support, size, p)
    return float(abs(count - stats.poisson.pmf(support - shift, rate)).sum() / 2)


def approximation_bound(eta: NDArray, offset: float = 2) -> float:
    """The right-hand side of Lemma A.12."""
    return float((sqrt((eta**3 * (1 - eta)).sum()) + offset) / total_variance(eta))


@statement(
    "DA.11",
    1096,
    "TP(mu, sigma^2) is floor(mu + sigma^2) + Poisson(sigma^2 + frac(mu - sigma^2))",
    chapter=WORKSHOP,
    mutants=[{"sign": -1}],
)
def definition(search: Search, sign: int = 1) -> Finding:
    """The mean of the translated Poisson must be its first parameter."""
    grid = [Fraction(a, 7) for a in range(-20, 60, search.pick(7, 1))]

    def mean_error(mean: Fraction, variance: Fraction, sign: int) -> Fraction:
        shift, rate = translate(mean, variance, sign)
        return shift + rate - mean

    pairs = [(mean, variance) for mean in grid for variance in grid if variance >= 0]
    for mean, variance in pairs:
        confirm(mean_error(mean, variance, -1) == 0, "TP has mean mu when the sign is minus")
        excess = translate(mean, variance)[1] - variance
        confirm(0 <= excess < 1, "the variance of TP exceeds sigma^2 by less than one")
    off = mean_error(Fraction(2), Fraction(1), sign)
    return Finding(
        "holds" if off == 0 else "misprint",
        evidence=f"With the printed plus sign TP(2, 1) is 3 + Poisson(1), of mean {2 + off}, not "
        "2. The proof of Lemma A.14 writes floor(mu - sigma^2), as the cited source does.",
        searched=f"{len(pairs)} exact pairs (mu, sigma^2) for the mended form",
        mended="Y = floor(mu - sigma^2) + Z; the mean is mu, and the variance is sigma^2 plus the "
        "fractional part of mu - sigma^2.",
    )


@statement(
    "LA.12",
    1127,
    "d_TV(Poisson binomial, TP(mu, sigma^2)) <= (sqrt(sum p^3(1-p))+2)/V",
    chapter=WORKSHOP,
    mutants=[{"sign": 1}, {"offset": 0.0}],
)
def approximation(search: Search, sign: int = -1, offset: float = 2) -> Finding:
    """Roellin's bound (3.4), with the translated Poisson as he defines it."""
    worst, tried = 0.0, 0
    for eta in random_bags(search):
        if total_variance(eta) > 0:
            distance = distance_to_translated(eta, sign)
            worst = max(worst, distance / approximation_bound(eta, offset))
            tried += 1
    for size in search.pick((10**3,), (10**3, 10**4, 10**5, 10**6)):
        for p in (1e-4, 0.01, 0.3, 0.5, 0.7, 0.99, 1 - 1e-4):
            variance = size * p * (1 - p)
            bound = (sqrt(p**2 * variance) + offset) / variance
            worst = max(worst, binomial_distance(size, p) / bound)
            tried += 1
    coins = np.full(400, 0.5)
    return Finding(
        "holds" if worst <= 1 else "false",
        evidence=f"The distance is at most {worst:.4f} of the bound, with TP as the cited source "
        "defines it. With the plus sign printed in DA.11 it would fail: for 400 fair coins the "
        f"distance is then {distance_to_translated(coins, 1):.3f} and the bound "
        f"{approximation_bound(coins):.3f}.",
        searched=f"{tried} bags: constant, two-point, Beta and partly certain priors up to size "
        f"{search.pick(40, 120)}, binomials up to {search.pick('1e3', '1e6')} with p from 1e-4 to "
        "1-1e-4",
    )


@statement(
    "LA.13",
    1136,
    "floor(mu1-s1^2) <= floor(mu2-s2^2): d_TV(TP1, TP2) <= |mu1-mu2|/s1 + (|s1^2-s2^2|+1)/s1^2",
    chapter=WORKSHOP,
    mutants=[{"offset": 0.0}],
)
def two_translated(search: Search, offset: float = 1.0) -> Finding:
    """Barbour and Lindvall's bound between two translated Poisson laws."""
    rng = np.random.default_rng(2006)
    worst, tried = 0.0, search.pick(600, 20000)
    for _ in range(tried):
        variances = 10 ** rng.uniform(-1, search.pick(2, 4)) * np.array([1, rng.uniform(0.5, 2)])
        if rng.random() < 0.3:
            variances[1] = variances[0] + rng.normal(0, 1e-3)
        means = variances + rng.integers(0, 9) + rng.normal(0, 1, 2) * rng.choice([1e-3, 1, 9])
        (shift1, rate1), (shift2, rate2) = sorted(
            translate(mean, variance) for mean, variance in zip(means, variances, strict=True)
        )
        if shift1 != translate(means[0], variances[0])[0]:
            means, variances = means[::-1], variances[::-1]
        top = max(shift1 + rate1, shift2 + rate2) + 12 * sqrt(max(rate1, rate2)) + 30
        support = np.arange(shift1, int(top))
        gap = stats.poisson.pmf(support - shift1, rate1) - stats.poisson.pmf(
            support - shift2, rate2
        )
        change = abs(variances[0] - variances[1]) + offset
        bound = abs(means[0] - means[1]) / sqrt(variances[0]) + change / variances[0]
        worst = max(worst, abs(gap).sum() / 2 / bound)
    return Finding(
        "holds" if worst <= 1 else "false",
        evidence=f"The distance is at most {worst:.4f} of the bound. The condition is met where "
        "the lemma is used: mu - sigma^2 is the sum of eta_i^2 and eta_1^2 <= 1.",
        searched=f"{tried} random pairs with variances from 0.05 to {search.pick(200, 20000)}, "
        "many of them nearly equal",
    )


@statement(
    "LA.14",
    1143,
    "X1 ~ TP(mu, s1^2), X2 ~ TP(mu+1, s2^2): P(X1=l-1) = P(X2=l) for all l",
    chapter=WORKSHOP,
    mutants=[{"second": Fraction(1)}],
)
def shifted(search: Search, second: Fraction = Fraction(2)) -> Finding:
    """The shift by one only works when the two variances are the same."""
    grid = [Fraction(a, 5) for a in range(-15, 40, search.pick(3, 1))]
    for mean in grid:
        for variance in (v for v in grid if v >= 0):
            (shift, rate), (after, same) = translate(mean, variance), translate(mean + 1, variance)
            confirm((after, same) == (shift + 1, rate), "equal variances shift by exactly one")
    first = translate(Fraction(1), Fraction(1))
    other = translate(Fraction(2), second)
    equal = (first[0] + 1, first[1]) == other
    return Finding(
        "holds" if equal else "false",
        evidence="Take mu = 1, s1^2 = 1, s2^2 = 2: X1 is Poisson(1) and X2 = TP(2, 2) is "
        f"Poisson(2), so P(X1=0) = 1/e = {exp(-1):.4f} and P(X2=1) = 2/e^2 = {2 * exp(-2):.4f}.",
        searched="equal variances on an exact grid: the shift moves by one and the rate stays",
        mended="Require s1 = s2, which is how the lemma is used (Gamma2 has the variance of "
        "Gamma1). In the proof delta is unchanged, since (mu+1) - (gamma+1) = mu - gamma.",
    )


@statement(
    "LA.10-TV1",
    1162,
    "sum_{s=0}^k |P(Gamma=s)-P(Gamma2=s)| = d_TV(Gamma, Gamma2)",
    chapter=WORKSHOP,
    mutants=[{"factor": 2, "last": 60}],
)
def sum_is_twice(search: Search, factor: int = 1, last: int = 5) -> Finding:
    """Total variation, as the two cited lemmas use it, is half the sum over all integers."""
    eta = (Fraction(0), *FAIR)
    (shift, rate), (moved, same) = (
        translate(sum(eta), total_variance(eta)),
        translate(sum(eta[1:]) + 1, total_variance(eta[1:])),
    )
    confirm((shift, rate, moved, same) == (1, 1, 2, 1), "1 + Poisson(1) and 2 + Poisson(1)")

    def terms(upto: int) -> Fraction:  # in units of 1/e, s = 1..upto
        law = [Fraction(0), *(Fraction(1, factorial(j)) for j in range(upto))]
        return sum((abs(b - a) for a, b in pairwise(law)), Fraction(0))

    distance = 1  # sup over sets: the largest mass of Poisson(1), in units of 1/e
    confirm(abs(float(terms(60)) - 2 * distance) < 1e-15, "over all integers the sum is 2 d_TV")
    agrees = abs(float(terms(last)) - factor * distance) < 1e-15
    return Finding(
        "holds" if agrees else "false",
        evidence="For eta = (0, 1/2, 1/2, 1/2, 1/2), Gamma is 1 + Poisson(1) and Gamma2 is 2 + "
        f"Poisson(1). The sum over s = 0..5 is ({terms(5)})/e = {float(terms(5)) / np.e:.4f}; the "
        f"distance is the largest mass, 1/e = {1 / np.e:.4f}.",
        searched="one exact pair; the sum over all integers agrees with twice the distance",
        mended="The sum over all integers equals 2 d_TV, so each of the three terms of the chain "
        "carries a factor 2 when Lemmas A.12 and A.13 are used.",
    )


@statement(
    "LA.10-mid",
    1166,
    "(1-eta_1)/sigma + (eta_1(1-eta_1)+1)/sigma^2 <= 3/sqrt(sigma) for sigma >= 1",
    chapter=WORKSHOP,
    mutants=[{"constant": 1.9}],
)
def middle_term(search: Search, constant: float = 3.0) -> Finding:
    """For sigma >= 1 the left side is at most (2 - eta_1^2)/sigma, so 2/sigma would do."""
    prior, sigma = np.meshgrid(
        np.linspace(0, 1, 401), np.geomspace(1, 1e4, search.pick(200, 4000)), indexing="ij"
    )
    left = (1 - prior) / sigma + (prior * (1 - prior) + 1) / sigma**2
    printed, sharper = float((left * np.sqrt(sigma)).max()), float((left * sigma).max())
    return Finding(
        "holds" if printed <= constant else "false",
        evidence=f"The largest left side times sqrt(sigma) is {printed:.4f}, against {constant:g}; "
        f"times sigma it is {sharper:.4f}, so the stronger 3/sigma holds too. It is "
        "(1-eta_1) + (eta_1(1-eta_1)+1) = 2 - eta_1^2 at sigma = 1.",
        searched=f"{left.size} pairs, eta_1 in [0, 1] and sigma from 1 to 1e4",
    )
