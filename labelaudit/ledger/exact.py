"""Slow, plain, exact twins of the audit, for the ledger's checks.

Everything here follows the definitions word for word on `fractions.Fraction`: a bag is a tuple of
priors, a mechanism is a function from the labels of the bag to a distribution over releases, and
the advantage is a sum over every labelling. Use it for bags of up to about eight examples. The
float helpers at the end reach large bags through closed forms.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import comb, inf, log, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Labels = tuple[int, ...]
Bag = Sequence[Fraction]
Channel = Callable[[Labels], Mapping[Hashable, Fraction]]
Law = Sequence[tuple[Fraction, Fraction]]
"""A finite law for eta: pairs (value, weight)."""

HALF = Fraction(1, 2)


def poisson_binomial(eta: Bag) -> list[Fraction]:
    """The law of the number of positive labels in a bag, for counts 0..k.

    >>> poisson_binomial([Fraction(1, 2), Fraction(1, 3)])
    [Fraction(1, 3), Fraction(1, 2), Fraction(1, 6)]
    """
    pmf = [Fraction(1)]
    for prior in eta:
        stay = [(1 - prior) * mass for mass in [*pmf, Fraction(0)]]
        step = [prior * mass for mass in [Fraction(0), *pmf]]
        pmf = [a + b for a, b in zip(stay, step, strict=True)]
    return pmf


def binomial(size: int, p: Fraction) -> list[Fraction]:
    """The binomial law for counts 0..size."""
    return [comb(size, s) * p**s * (1 - p) ** (size - s) for s in range(size + 1)]


def label_proportions(labels: Labels) -> Mapping[Hashable, Fraction]:
    """LLP on one bag: the fraction of positive labels."""
    return {Fraction(sum(labels), len(labels)): Fraction(1)}


def no_release(labels: Labels) -> Mapping[Hashable, Fraction]:
    """The uninformative mechanism."""
    return {"nothing": Fraction(1)}


def randomized_response(flip: Fraction) -> Channel:
    """Flip every label of the data set independently with probability `flip`."""

    def channel(labels: Labels) -> Mapping[Hashable, Fraction]:
        return {
            noisy: prod(
                (1 - flip if a == b else flip for a, b in zip(labels, noisy, strict=True)),
                start=Fraction(1),
            )
            for noisy in product((0, 1), repeat=len(labels))
        }

    return channel


def geometric_count(size: int, ratio: Fraction) -> list[list[Fraction]]:
    """P(clipped noisy count = z | count = s), two-sided geometric noise with ratio e^-epsilon."""

    def upper(step: int) -> Fraction:  # P(noise >= step)
        return ratio**step / (1 + ratio) if step > 0 else 1 - upper(1 - step)

    return [
        [
            (Fraction(1) if z == 0 else upper(z - s)) - (upper(z - s + 1) if z < size else 0)
            for z in range(size + 1)
        ]
        for s in range(size + 1)
    ]


def geometric_proportions(size: int, ratio: Fraction) -> Channel:
    """LLP+Geom on one bag, clipped to [0, 1]; `ratio` is e^-epsilon."""
    rows = geometric_count(size, ratio)

    def channel(labels: Labels) -> Mapping[Hashable, Fraction]:
        return {Fraction(z, size): mass for z, mass in enumerate(rows[sum(labels)])}

    return channel


def in_bags(channel: Channel, bag_size: int) -> Channel:
    """Apply a one-bag mechanism to consecutive bags of a larger data set, independently."""

    def whole(labels: Labels) -> Mapping[Hashable, Fraction]:
        parts = [channel(labels[i : i + bag_size]) for i in range(0, len(labels), bag_size)]
        return {
            tuple(z for z, _ in choice): prod((mass for _, mass in choice), start=Fraction(1))
            for choice in product(*(part.items() for part in parts))
        }

    return whole


def labellings(eta: Bag) -> Iterator[tuple[Labels, Fraction]]:
    """Every labelling of the bag with its probability given the features."""
    for labels in product((0, 1), repeat=len(eta)):
        factors = (e if y else 1 - e for e, y in zip(eta, labels, strict=True))
        yield labels, prod(factors, start=Fraction(1))


def joint(eta: Bag, channel: Channel, index: int) -> dict[Hashable, list[Fraction]]:
    """For each release z of positive probability: [P(y_i = 0, z), P(y_i = 1, z)]."""
    table: dict[Hashable, list[Fraction]] = defaultdict(lambda: [Fraction(0), Fraction(0)])
    for labels, mass in labellings(eta):
        for release, chance in channel(labels).items():
            table[release][labels[index]] += mass * chance
    return {release: pair for release, pair in table.items() if sum(pair) > 0}


def posterior(eta: Bag, channel: Channel, index: int) -> dict[Hashable, Fraction]:
    """P(y_i = 1 | x, z) for every release z.

    >>> posterior([Fraction(1, 3)] * 2, label_proportions, 0)[Fraction(1, 2)]
    Fraction(1, 2)
    """
    return {z: one / (zero + one) for z, (zero, one) in joint(eta, channel, index).items()}


def additive_advantage(eta: Bag, channel: Channel, index: int) -> Fraction:
    """f_1i - f_2i: least error of the uninformed attacker minus that of the informed one."""
    informed = sum((min(pair) for pair in joint(eta, channel, index).values()), Fraction(0))
    return min(eta[index], 1 - eta[index]) - informed


def best_deterministic_gain(eta: Bag, channel: Channel, index: int) -> Fraction:
    """The same, by trying every map from releases to guesses: the supremum of Definition 3.1."""
    table = list(joint(eta, channel, index).values())
    success = max(
        sum((pair[guess] for pair, guess in zip(table, guesses, strict=True)), Fraction(0))
        for guesses in product((0, 1), repeat=len(table))
    )
    return success - max(eta[index], 1 - eta[index])


def multiplicative_advantage(eta: Bag, channel: Channel, index: int) -> dict[Hashable, float]:
    """I(z), Definition 3.6, for each release; 0 < eta_i < 1 is required."""
    prior = eta[index]
    if not 0 < prior < 1:
        raise ValueError(f"the prior must lie strictly between 0 and 1, not {prior}")
    return {
        z: (inf if zero == 0 else -inf if one == 0 else log(one * (1 - prior) / (zero * prior)))
        for z, (zero, one) in joint(eta, channel, index).items()
    }


def bags(law: Law, size: int) -> Iterator[tuple[tuple[Fraction, ...], Fraction]]:
    """Every bag of `size` independent draws from a finite law for eta, with its probability."""
    for draw in product(law, repeat=size):
        yield tuple(v for v, _ in draw), prod((w for _, w in draw), start=Fraction(1))


def expected_advantage(law: Law, channel: Channel, size: int, index: int = 0) -> Fraction:
    """EAdv of a mechanism on `size` examples whose eta are independent draws from `law`."""
    terms = (w * additive_advantage(eta, channel, index) for eta, w in bags(law, size))
    return sum(terms, Fraction(0))


def mean_and_mu(law: Law) -> tuple[Fraction, Fraction]:
    """p = E[eta] and mu = E[eta (1 - eta)]."""
    return (
        sum((w * v for v, w in law), Fraction(0)),
        sum((w * v * (1 - v) for v, w in law), Fraction(0)),
    )


def advantage_from_rest(eta: Any, rest: NDArray[np.float64]) -> Any:
    """f_1i - f_2i under LLP for one example, from the count law of the rest of its bag.

    The last axis of `rest` runs over the counts of the other examples; `eta` has one axis less.
    """
    eta = np.asarray(eta)[..., None]
    edge = np.zeros((*rest.shape[:-1], 1))
    negative = (1 - eta) * np.concatenate([rest, edge], axis=-1)
    positive = eta * np.concatenate([edge, rest], axis=-1)
    least = np.minimum(eta, 1 - eta)[..., 0]
    return least - np.minimum(negative, positive).sum(axis=-1)


def independent_advantage_fraction(p: Fraction, bag_size: int) -> Fraction:
    """EAdv(LLP) for labels independent of features: the book's closed form, exactly.

    With p <= 1/2, Z ~ Bin(n - 1, p) and m = floor(n/2) it is p P(Z >= m) - (1 - p) P(Z >= m + 1).

    >>> independent_advantage_fraction(Fraction(1, 4), 2)
    Fraction(1, 16)
    """
    p = min(p, 1 - p)
    rest = binomial(bag_size - 1, p)
    middle = bag_size // 2
    return p * sum(rest[middle:], Fraction(0)) - (1 - p) * sum(rest[middle + 1 :], Fraction(0))


def log_independent_advantage(p: Any, bag_size: int) -> Any:
    """log EAdv(LLP) for labels independent of features, for bags of 10^5 and beyond.

    With p <= 1/2 the advantage is E[(2 alpha - 1)^+], a sum of positive terms, so nothing cancels.
    Terms further than 20 standard deviations above k/2 are below e^-200 of the first and dropped.

    >>> round(float(np.exp(log_independent_advantage(0.5, 9))), 12) == comb(8, 4) / 2**9
    True
    """
    from scipy import special

    p = np.minimum(p, 1 - np.asarray(p, dtype=float))[..., None]
    first = bag_size // 2 + 1
    last = min(bag_size, first + int(10 * bag_size**0.5) + 40)
    count = np.arange(first, last + 1)
    log_terms = (
        special.gammaln(bag_size + 1)
        - special.gammaln(count + 1)
        - special.gammaln(bag_size - count + 1)
        + special.xlogy(count, p)
        + special.xlog1py(bag_size - count, -p)
        + np.log(2 * count / bag_size - 1)
    )
    return special.logsumexp(log_terms, axis=-1)


def two_point_advantage(
    low: float, high: float, weight: float, bag_size: int
) -> tuple[float, float, float]:
    """LLP when eta is `high` with probability `weight` and `low` otherwise.

    Returns IEAdv at low, IEAdv at high, and EAdv: exact mixtures over the number of high priors
    among the other examples, up to float rounding. Numbers of probability below 1e-18 are skipped.
    """
    from scipy import stats

    others = bag_size - 1
    number_high = np.arange(others + 1)
    chance = stats.binom.pmf(number_high, others, weight)
    totals = np.zeros(2)
    for number in number_high[chance > 1e-18]:
        rest = np.convolve(
            stats.binom.pmf(np.arange(number + 1), number, high),
            stats.binom.pmf(np.arange(others - number + 1), others - number, low),
        )
        totals += chance[number] * advantage_from_rest(np.array([low, high]), np.tile(rest, (2, 1)))
    return float(totals[0]), float(totals[1]), float((1 - weight) * totals[0] + weight * totals[1])


def bag_advantage(eta: NDArray[np.float64]) -> NDArray[np.float64]:
    """f_1i - f_2i under LLP of the first example of each bag; `eta` is (n_bags, bag_size).

    Priors are exchangeable, so the mean over bags drawn from a law estimates EAdv.
    """
    rest = np.zeros_like(eta)
    rest[:, 0] = 1.0
    for column in eta[:, 1:].T:
        moved = rest[:, :-1] * column[:, None]
        rest *= 1 - column[:, None]
        rest[:, 1:] += moved
    return np.asarray(advantage_from_rest(eta[:, 0], rest))
