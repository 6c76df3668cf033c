"""Checks of the sentences of the experimental section (paper lines 437 to 491)."""

from collections.abc import Iterable
from fractions import Fraction
from itertools import product

import numpy as np

from book.ledger import exact
from book.ledger.check import Case, Cases, check, confirm
from book.ledger.exact import HALF, total

PAPER_BAGS = tuple(2**j for j in range(10))


def squared_errors(size: int, ratio: Fraction, values: list[Fraction]) -> list[Fraction]:
    """Mean squared error of a postprocessed clipped proportion, at each true count."""
    rows = exact.geometric_count(size, ratio)
    return [
        total(mass * (v - Fraction(s, size)) ** 2 for mass, v in zip(row, values, strict=True))
        for s, row in enumerate(rows)
    ]


@check("S4-optpp", {"unbiased_only": True})
def optimal_postprocessing(quick: bool, unbiased_only: bool = False) -> Cases:
    import sympy

    size = 6 if quick else 12
    ratios = (Fraction(1, 10), Fraction(1, 3), HALF, Fraction(9, 10))
    beaten = 0
    for k, ratio in product(range(1, size + 1), ratios):
        unbiased = exact.debiased(k, ratio)
        if k <= 5:
            means = [exact.moments(k, ratio, count)[0] * k for count in range(k + 1)]
            confirm(means == list(range(k + 1)), "debiasing is unbiased")
            unique = sympy.Matrix(exact.geometric_count(k, ratio)).det() != 0
            confirm(unique, "debiasing is the only unbiased map")
        rival = unbiased if unbiased_only else [Fraction(z, k) for z in range(k + 1)]
        ours, theirs = squared_errors(k, ratio, unbiased), squared_errors(k, ratio, rival)
        beaten += all(a > b for a, b in zip(ours, theirs, strict=True))
    values = [Fraction(0), Fraction(1)], exact.debiased(1, HALF), [Fraction(1, 3), Fraction(2, 3)]
    clipped, debiased, posterior_mean = (squared_errors(1, HALF, two)[0] for two in values)
    confirm(posterior_mean < clipped < debiased, "posterior mean < clipped < debiased at k = 1")
    yield Case(
        beaten < size * len(ratios), size=size,
        clipped=clipped, debiased=debiased, posterior_mean=posterior_mean,
    )  # fmt: skip


@check("S4-spindle", {"flip_scale": HALF})
def spindle_boundary(quick: bool, flip_scale: Fraction = Fraction(1)) -> Cases:
    rng = np.random.default_rng(466)
    for odds, n in product((Fraction(3, 2), Fraction(2), Fraction(8)), range(1, 20)):
        channel = exact.randomized_response(flip_scale * exact.flip_for(odds))
        shifts = exact.shift_in_odds([Fraction(n, 20)], channel, 0).values()
        yield Case(set(shifts) == {odds, 1 / odds})
    for k, _ in product(range(1, 6), range(3 if quick else 20)):
        eta = exact.random_bag(k, rng)
        shifts_of = exact.shift_in_odds(eta, exact.label_proportions, 0)
        for z, after in exact.posterior(eta, exact.label_proportions, 0).items():
            infinite = shifts_of[z] in (0, np.inf)
            confirm((after in (0, 1)) == infinite, "edge if and only if infinite")
            confirm((after in (0, 1)) == (z in (0, 1)), "edge if and only if the labels are equal")
        noisy = exact.shift_in_odds(eta, exact.geometric_proportions(k, HALF), 0).values()
        confirm(all(HALF <= shift <= 2 for shift in noisy), "LLP+Geom stays inside")


@check("S4-98", {"bag_sizes": (256, 512)})
def ninety_eighth_percentile(quick: bool, bag_sizes: tuple[int, ...] = PAPER_BAGS) -> Cases:
    means = {"1/2": HALF, "53/100": Fraction(53, 100), "1/25": Fraction(1, 25)}

    def infinite(p: Fraction, sizes: Iterable[int]) -> list[int]:
        return [k for k in sizes if p**k + (1 - p) ** k > Fraction(2, 100)]

    failing = {name: infinite(p, bag_sizes) for name, p in means.items()}
    first = {name: infinite(p, range(1, 999))[-1] + 1 for name, p in means.items()}
    for p, k in product(means.values(), (1, 2, 4) if quick else (1, 2, 3, 4, 6, 8)):
        distribution = [(p / 2, HALF), (3 * p / 2, HALF)] if p < HALF else [(p, Fraction(1))]
        equal = exact.mean_of(distribution, k, exact.equal_labels)
        confirm(equal == p**k + (1 - p) ** k, "P(equal labels) = p^k + (1-p)^k in every case")
    least_bags = ", ".join(f"{k} at p = {name}" for name, k in first.items())
    yield Case(
        not any(failing.values()),
        at_half=failing["1/2"], at_small=failing["1/25"],
        bag_sizes=bag_sizes, least_bags=least_bags,
    )  # fmt: skip


@check("S4-RRcdf", {"bag_size": 2})
def response_step(quick: bool, bag_size: int = 1) -> Cases:
    rng, odds, widest = np.random.default_rng(491), Fraction(5, 2), Fraction(0)
    for _ in range(10 if quick else 60):
        eta = exact.random_bag(bag_size, rng)
        channel = exact.geometric_proportions(bag_size, 1 / odds)
        if bag_size == 1:
            response = exact.randomized_response(exact.flip_for(odds))
            both = exact.posterior(eta, response, 0)[(0,)], exact.posterior(eta, channel, 0)[0]
            confirm(both[0] == both[1], "LLP+Geom with bags of one is RR")
        shifts = exact.shift_in_odds(eta, channel, 0).values()
        yield Case({max(s, 1 / s) for s in shifts} == {odds}, widest=widest)
    for k, _ in product(range(1, 6), range(2 if quick else 10)):
        eta = exact.random_bag(k, rng)
        shifts = exact.shift_in_odds(eta, exact.geometric_proportions(k, 1 / odds), 0).values()
        widest = max(widest, *(max(s, 1 / s) for s in shifts))
        yield Case(widest <= odds, widest=widest)
