"""Exact arithmetic for the checks: slow, plain twins of the audit on `fractions.Fraction`.

Everything follows the definitions word for word. A bag is a tuple of priors. A mechanism is a
function from the labels of the bag to a distribution over releases. The advantage is a sum over
every labelling, so bags have at most about eight examples; `closed_forms` serves larger ones.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product
from math import comb, inf, prod
from typing import Any

import numpy as np

Labels = tuple[int, ...]
Bag = Sequence[Fraction]
Channel = Callable[[Labels], Mapping[Hashable, Fraction]]
Flip = Callable[[Fraction], Fraction]
Distribution = Sequence[tuple[Fraction, Fraction]]
"""A finite distribution of eta: pairs (value, weight)."""

HALF = Fraction(1, 2)
SMALL_CASES: dict[str, Distribution] = {
    "eta = 1/2": [(HALF, Fraction(1))],
    "eta = 1/10": [(Fraction(1, 10), Fraction(1))],
    "eta in {0, 1/2}": [(Fraction(0), Fraction(2, 3)), (HALF, Fraction(1, 3))],
    "eta in {0, 1}": [(Fraction(0), Fraction(3, 4)), (Fraction(1), Fraction(1, 4))],
    "eta in {1/5, 9/10}": [(Fraction(1, 5), Fraction(3, 5)), (Fraction(9, 10), Fraction(2, 5))],
}
"""Distributions of eta for which expectations over the features are exact sums."""

RATIOS = (Fraction(1, 50), Fraction(1, 10), Fraction(1, 3), HALF, Fraction(9, 10), Fraction(49, 50))
"""Values of e^-epsilon for the checks of geometric noise."""


def total(values: Iterable[Fraction]) -> Fraction:
    """The sum of fractions; a fraction also when there are none."""
    return sum(values, Fraction(0))


def poisson_binomial(eta: Bag) -> list[Fraction]:
    """The distribution of the number of positive labels in a bag, for counts 0..k.

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
    """The binomial distribution for counts 0..size."""
    return [comb(size, s) * p**s * (1 - p) ** (size - s) for s in range(size + 1)]


def differences(pmf: Sequence[Fraction]) -> list[Fraction]:
    """P(Z = s) - P(Z = s - 1) for s = 0, ..., k + 1.

    >>> differences([Fraction(1, 4), Fraction(3, 4)])
    [Fraction(1, 4), Fraction(1, 2), Fraction(-3, 4)]
    """
    return [after - before for before, after in pairwise([Fraction(0), *pmf, Fraction(0)])]


def spread(pmf: Sequence[Fraction]) -> Fraction:
    """The sum of |P(Z = s) - P(Z = s - 1)| over s = 0, ..., k + 1."""
    return total(map(abs, differences(pmf)))


def sum_of_squares(pmf: Sequence[Fraction]) -> Fraction:
    """The sum of (P(Z = s) - P(Z = s - 1))^2 over s = 0, ..., k + 1."""
    return total(step**2 for step in differences(pmf))


def label_proportions(labels: Labels) -> Mapping[Hashable, Fraction]:
    """LLP on one bag: the fraction of positive labels."""
    return {Fraction(sum(labels), len(labels)): Fraction(1)}


def flip_for(odds: Fraction) -> Fraction:
    """The flip probability 1/(1 + e^epsilon) of randomized response; `odds` is e^epsilon."""
    return 1 / (1 + odds)


def randomized_response(flip: Fraction) -> Channel:
    """Flip every label of the data set independently with probability `flip`."""

    def channel(labels: Labels) -> Mapping[Hashable, Fraction]:
        return dict(labellings([1 - flip if label else flip for label in labels]))

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
    return lambda labels: {Fraction(z, size): m for z, m in enumerate(rows[sum(labels)])}


def debiased(size: int, ratio: Fraction, divide: bool = True) -> list[Fraction]:
    """The debiased proportion for each clipped count; the printed one does not divide by k."""
    excess = ratio / (1 - ratio) / (size if divide else 1)
    return [-excess, *(Fraction(z, size) for z in range(1, size)), 1 + excess]


def moments(size: int, ratio: Fraction, count: int, divide: bool = True) -> tuple[Fraction, ...]:
    """Mean and variance of the debiased release for a true count."""
    masses, values = geometric_count(size, ratio)[count], debiased(size, ratio, divide)
    mean, square = (total(m * v**n for m, v in zip(masses, values, strict=True)) for n in (1, 2))
    return mean, square - mean**2


def noisy_counts(quick: bool) -> Iterator[tuple[int, Fraction, int]]:
    """Bag size, e^-epsilon and true count, for the checks of geometric noise."""
    for size, ratio in product(range(1, 7 if quick else 13), RATIOS):
        yield from ((size, ratio, count) for count in range(size + 1))


def in_bags(channel: Channel, bag_size: int) -> Channel:
    """Apply a mechanism for one bag to consecutive bags of a larger data set, independently."""

    def whole(labels: Labels) -> Mapping[Hashable, Fraction]:
        parts = [channel(labels[i : i + bag_size]) for i in range(0, len(labels), bag_size)]
        return {
            tuple(z for z, _ in choice): prod((mass for _, mass in choice), start=Fraction(1))
            for choice in product(*(part.items() for part in parts))
        }

    return whole


def three_mechanisms(bag_size: int) -> dict[str, Channel]:
    """LLP, randomized response and LLP+Geom at e^epsilon = 2 on one bag."""
    return {
        "LLP": label_proportions,
        "RR": randomized_response(Fraction(1, 3)),
        "LLP+Geom": geometric_proportions(bag_size, HALF),
    }


def neighbours(size: int) -> Iterator[tuple[Labels, Labels]]:
    """Every ordered pair of labellings that differ in one label."""
    for labels in product((0, 1), repeat=size):
        for i in range(size):
            yield labels, (*labels[:i], 1 - labels[i], *labels[i + 1 :])


def random_channel(size: int, outputs: int, rng: np.random.Generator) -> Channel:
    """A mechanism on `size` labels with random rational probabilities, all positive."""
    rows: dict[Labels, dict[Hashable, Fraction]] = {}
    for labels in product((0, 1), repeat=size):
        weights = [int(w) for w in rng.integers(1, 12, outputs)]
        rows[labels] = {z: Fraction(w, sum(weights)) for z, w in enumerate(weights)}
    return rows.__getitem__


def odds_ceiling(channel: Channel, size: int) -> Fraction:
    """e^epsilon of a finite mechanism: its largest likelihood ratio between neighbours."""
    return max(channel(a)[z] / channel(b)[z] for a, b in neighbours(size) for z in channel(a))


def private_channels(quick: bool, seed: int) -> Iterator[tuple[Channel, int, Fraction]]:
    """Random mechanisms, randomized response and LLP+Geom, each with its exact e^epsilon."""
    rng = np.random.default_rng(seed)
    for _ in range(60 if quick else 600):
        size = int(rng.integers(1, 4))
        channel = random_channel(size, int(rng.integers(2, 5)), rng)
        odds = odds_ceiling(channel, size)
        if odds > 1:
            yield channel, size, odds
    for odds in (Fraction(17, 16), Fraction(2), Fraction(8), Fraction(1000)):
        yield randomized_response(flip_for(odds)), 2, odds
        yield geometric_proportions(3, 1 / odds), 3, odds


def random_bag(size: int, rng: np.random.Generator) -> list[Fraction]:
    """Priors n/20 strictly between 0 and 1."""
    return [Fraction(int(n), 20) for n in rng.integers(1, 20, size)]


def small_bags(largest: int, steps: int = 4, least: int = 1) -> Iterator[tuple[Fraction, ...]]:
    """Every bag of `least` to `largest` priors (up to order) on the grid 0, 1/steps, ..., 1."""
    grid = [Fraction(j, steps) for j in range(steps + 1)]
    for size in range(least, largest + 1):
        yield from combinations_with_replacement(grid, size)


def bags(distribution: Distribution, size: int) -> Iterator[tuple[tuple[Fraction, ...], Fraction]]:
    """Every bag of `size` independent draws of eta, with its probability."""
    for draw in product(distribution, repeat=size):
        yield tuple(v for v, _ in draw), prod((w for _, w in draw), start=Fraction(1))


def mean_of(distribution: Distribution, size: int, value: Callable[[Bag], Fraction]) -> Fraction:
    """The expectation of `value` over bags of `size` independent draws of eta."""
    return total(weight * value(eta) for eta, weight in bags(distribution, size))


def equal_labels(eta: Bag) -> Fraction:
    """The probability that all labels of the bag are equal."""
    pmf = poisson_binomial(eta)
    return pmf[0] + pmf[-1]


def mean_and_mu(distribution: Distribution) -> tuple[Fraction, Fraction]:
    """p = E[eta] and mu = E[eta (1 - eta)]."""
    return total(w * v for v, w in distribution), total(w * v * (1 - v) for v, w in distribution)


def labellings(eta: Bag) -> Iterator[tuple[Labels, Fraction]]:
    """Every labelling of the bag with its probability given the features."""
    for labels in product((0, 1), repeat=len(eta)):
        factors = (e if y else 1 - e for e, y in zip(eta, labels, strict=True))
        yield labels, prod(factors, start=Fraction(1))


def joint(eta: Bag, channel: Channel, index: int) -> dict[Any, list[Fraction]]:
    """For each release z of positive probability: [P(y_i = 0, z), P(y_i = 1, z)]."""
    table: dict[Hashable, list[Fraction]] = defaultdict(lambda: [Fraction(0), Fraction(0)])
    for labels, mass in labellings(eta):
        for release, probability in channel(labels).items():
            table[release][labels[index]] += mass * probability
    return {release: pair for release, pair in table.items() if sum(pair) > 0}


def posterior(eta: Bag, channel: Channel, index: int) -> dict[Any, Fraction]:
    """P(y_i = 1 | x, z) for every release z.

    >>> posterior([Fraction(1, 3)] * 2, label_proportions, 0)[Fraction(1, 2)]
    Fraction(1, 2)
    """
    table = joint(eta, channel, index)
    return {z: positive / (negative + positive) for z, (negative, positive) in table.items()}


def additive_advantage(eta: Bag, channel: Channel, index: int) -> Fraction:
    """f_1i - f_2i: least error of the uninformed attacker minus that of the informed one."""
    informed = total(min(pair) for pair in joint(eta, channel, index).values())
    return min(eta[index], 1 - eta[index]) - informed


def best_deterministic_gain(eta: Bag, channel: Channel, index: int) -> Fraction:
    """The same, by trying every map from releases to guesses: the supremum of Definition 3.1."""
    table = list(joint(eta, channel, index).values())
    success = max(
        total(pair[guess] for pair, guess in zip(table, guesses, strict=True))
        for guesses in product((0, 1), repeat=len(table))
    )
    return success - max(eta[index], 1 - eta[index])


def expected_advantage(
    distribution: Distribution, channel: Channel, size: int, index: int = 0
) -> Fraction:
    """EAdv of a mechanism on `size` examples whose eta are independent draws."""
    return mean_of(distribution, size, lambda eta: additive_advantage(eta, channel, index))


def independent_advantage(p: Fraction, bag_size: int) -> Fraction:
    """EAdv(LLP) for labels independent of features, in closed form.

    With p <= 1/2, Z ~ Bin(n - 1, p) and m = floor(n/2) it is p P(Z >= m) - (1 - p) P(Z >= m + 1).

    >>> independent_advantage(Fraction(1, 4), 2)
    Fraction(1, 16)
    """
    p = min(p, 1 - p)
    rest, middle = binomial(bag_size - 1, p), bag_size // 2
    return p * total(rest[middle:]) - (1 - p) * total(rest[middle + 1 :])


def shift_in_odds(eta: Bag, channel: Channel, index: int) -> dict[Hashable, Any]:
    """exp(I(z)) from Definition 3.6 for each release: a fraction, or infinity; 0 < eta_i < 1."""
    odds = eta[index] / (1 - eta[index])
    return {
        z: positive / negative / odds if negative else inf
        for z, (negative, positive) in joint(eta, channel, index).items()
    }
