"""Chapters 3, 4, 6 and 13: bounds on the advantage and the steps of their proofs."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from book.chapters.exercises.answers import Right, Rights, exercise, first, flip
from labelaudit import bounds


def equal_priors(p: float, k: int) -> float:
    """EAdv of a count if all priors are p < 1/2: the attacker gains where ones are the majority."""
    ones = np.arange(k // 2 + 1, k + 1)
    return float((stats.binom.pmf(ones, k, p) * (2 * ones - k)).sum() / k)


def gain(p: float, others: Any) -> float:
    """The advantage on a person with prior p < 1/2, from the distribution of the others' count."""
    return float(np.maximum(p * np.append(0, others) - (1 - p) * np.append(others, 0), 0).sum())


@exercise("ex-aggregation-compute")
def how_large_a_bag(*, own_prior: float) -> Rights:
    """The smallest bag of equal priors with EAdv at most 0.02, exactly and by three bounds."""
    mu = own_prior * (1 - own_prior)
    curves: dict[str, Callable[[int], Any]] = {
        "exact": lambda k: equal_priors(own_prior, k),
        "root": lambda k: bounds.independent_root_bound(own_prior, k),
        "Lemma A.2": lambda k: bounds.lemma_bound(own_prior, mu, k),
        "Bessel": lambda k: bounds.aggregation_bound(mu, k),
    }
    sizes = {name: first(lambda k, at=at: at(k) <= 0.02, 2) for name, at in curves.items()}  # type: ignore[misc]
    reached, before = (equal_priors(own_prior, sizes["exact"] - less) for less in (0, 1))
    last = Right(reached, None if math.isclose(before, reached) else before)
    return {name: Right(size) for name, size in sizes.items()} | {"reached": last}


@exercise("ex-aggregation-hidden")
def hidden_by_others(*, own_prior: float, bag_size: int) -> Rights:
    """The advantage on one person among fair coins, and among people with priors 0.01."""
    counts = np.arange(bag_size)
    return [Right(gain(own_prior, stats.binom.pmf(counts, bag_size - 1, q))) for q in (0.5, 0.01)]


@exercise("ex-aggregation-spread")
def spread_or_concentrated(*, own_prior: float) -> Rights:
    """EAdv in bags of eight: everyone has one prior, or a fraction of coins has the same mean."""
    coins = np.arange(8)  # the others that are coins; a coin among m of them gains this much
    gains = np.array([math.comb(m, m // 2) / 2 ** (m + 1) for m in coins])
    on_a_coin = float(stats.binom.pmf(coins, 7, 2 * own_prior) @ gains)
    return [Right(equal_priors(own_prior, 8)), Right(2 * own_prior * on_a_coin, on_a_coin)]


@exercise("ex-response-compute")
def when_it_starts(*, epsilon: float, own_prior: float) -> Rights:
    """The least epsilon for a prior, the advantage at twice it, and the least prior."""
    odds = (1 - own_prior) / own_prior
    return [
        Right(math.log(odds), -math.log(own_prior)),
        Right(own_prior - 1 / (1 + odds**2), own_prior),
        Right(flip(epsilon)),
    ]


@exercise("ex-response-half")
def half_of_the_advantage(*, own_prior: float) -> Rights:
    """The epsilon at which the advantage is half the prior, and the label advantage there."""
    return [
        Right(math.log(2 / own_prior - 1), math.log(1 / own_prior - 1)),
        Right(1 - own_prior),
    ]


@exercise("ex-response-uniform")
def uniform_priors(*, own_prior: float) -> Rights:
    """EAdv for uniform priors and a given flip probability, and the fraction who contribute."""
    return [Right((0.5 - own_prior) ** 2, 0.5 - own_prior), Right(1 - 2 * own_prior)]


@exercise("ex-workshop-first")
def first_escape(*, own_prior: float) -> Rights:
    """The smallest k at which the printed interval of Lemma A.3 loses too much binomial mass."""

    def outside(k: int) -> float:
        logarithm = math.log(8 * k)
        variance = 12 * k * own_prior * (1 - own_prior) * logarithm
        width = logarithm / 3 + math.sqrt(2 * logarithm + variance) / 6
        counts = np.arange(k + 1)
        masses = stats.binom.pmf(counts, k, own_prior)
        return float(masses[abs(counts - own_prior * k) > width].sum())

    k = first(lambda k: outside(k) > 1 / (2 * k))
    return [Right(k), Right(outside(k))]


@exercise("ex-workshop-variation")
def variation(*, own_prior: float) -> Rights:
    """The sum of |P(s) - P(s - 1)| for the count of five equal priors."""
    masses = stats.binom.pmf(np.arange(6), 5, own_prior)
    truth = 2 * masses.max()
    return Right(truth, truth - masses[0] - masses[-1], masses.max())


@exercise("ex-workshop-squares")
def squared_steps(*, own_prior: float) -> Rights:
    """The sum of squared steps for five equal priors, by the transform, and a bound on the sum."""
    lack = 1 - np.cos(2 * math.pi * np.arange(7) / 7)
    squares = float(2 / 7 * lack @ (1 - 2 * own_prior * (1 - own_prior) * lack) ** 5)
    return [Right(squares, squares / 2), Right(math.sqrt(7 * squares), math.sqrt(6 * squares))]


@exercise("ex-sharper-compute")
def enough_for_two_priors(*, own_prior: float) -> Rights:
    """The smallest listed bag with EAdv at most 0.001, for priors p or 1 - p, in four ways."""

    def exact(k: int) -> float:
        """Sum over the number of others with prior 1 - p; by symmetry the person's own is p."""
        total = 0.0
        for high, mass in enumerate(stats.binom.pmf(np.arange(k), k - 1, 0.5)):
            ones = stats.binom.pmf(np.arange(high + 1), high, 1 - own_prior)
            rest = stats.binom.pmf(np.arange(k - high), k - 1 - high, own_prior)
            total += mass * gain(own_prior, np.convolve(ones, rest))
        return total

    mu, gap = own_prior * (1 - own_prior), 0.5 - own_prior
    curves: dict[str, Callable[[int], Any]] = {
        "exact": exact,
        "gap": lambda k: bounds.gap_bound(mu, gap, k),
        "plain": lambda k: math.exp(-3.84 * mu * gap**2 * (k - 1)),
        "Bessel": lambda k: bounds.aggregation_bound(mu, k),
    }
    listed = range(2, 1401, 2)
    sizes = {name: next((k for k in listed if at(k) <= 0.001), None) for name, at in curves.items()}
    reached = exact(sizes["exact"] or 1400)
    return {name: Right(size) for name, size in sizes.items()} | {"reached": Right(reached)}


@exercise("ex-sharper-ten")
def bag_of_ten(*, own_prior: float) -> Rights:
    """EAdv of label proportions in bags of ten equal priors, and the bound from the gap."""
    bound = bounds.gap_bound(own_prior * (1 - own_prior), 0.5 - own_prior, 10)
    return [
        Right(equal_priors(own_prior, 10), stats.binom.sf(5, 10, own_prior)),
        Right(float(bound)),
    ]


@exercise("ex-sharper-average")
def averaged_prior(*, own_prior: float) -> Rights:
    """The advantage on one of four, averaged over a uniform prior, and its upper bound."""
    worth = 0.0
    for s, others in enumerate(np.pad(stats.binom.pmf(np.arange(4), 3, own_prior), 1)[:-1]):
        after = float(stats.binom.pmf(s, 3, own_prior))
        worth += (others - after) ** 2 / (others + after) / 2
    twice = 6 * own_prior * (1 - own_prior)
    return [Right(worth / 4, worth), Right(-math.expm1(-twice) / twice / 4)]


@exercise("ex-sharper-noise")
def bag_with_noise(*, own_prior: float) -> Rights:
    """The bound on the advantage of LLP+Geom at epsilon 1 in bags of four, with and without."""
    mu, q, angles = own_prior * (1 - own_prior), math.exp(-1), 2 * math.pi * np.arange(999) / 999
    counts = np.exp(-3 * mu * (1 - np.cos(angles)))
    noise = (1 - q) ** 2 / (1 - 2 * q * np.cos(angles) + q**2)
    return [Right(float(2 * mu * (counts * part).mean())) for part in (noise, 1.0)]
