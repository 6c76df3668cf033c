"""Proportion matching with noisy proportions: Theorems D.1 and D.2 (paper lines 1617 to 1712).

The exact model: x is 0 or 1 with equal chance, P(y=1|x) is 1/5 or 2/3, the predictor is h(x) =
theta_0 + theta_1 x, and the release is LLP+Geom with e^epsilon = 2, debiased with the correct
1/k, so that its noise has mean zero for each proportion alpha and a variance that depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from math import log
from typing import NamedTuple

import sympy

from labelaudit.ledger.appendix_c.noise import debiased
from labelaudit.ledger.exact import HALF, geometric_count, poisson_binomial
from labelaudit.ledger.rows import Finding, Search, confirm, statement

CHAPTER = "09_learning"
PRIOR = {0: Fraction(1, 5), 1: Fraction(2, 3)}
TRUE_THETA = (Fraction(1, 5), Fraction(7, 15))  # h* as theta
OTHER_THETA = (Fraction(1, 3), Fraction(1, 4))
Slope = Callable[[Fraction, Fraction], Fraction]
SLOPES: dict[str, Slope] = {
    "squared error": lambda p, y: 2 * (p - y),
    "cross entropy": lambda p, y: (p - y) / (p * (1 - p)),
}
RATES: dict[str, Callable[[Fraction], Fraction]] = {  # the derivative of the slope in y
    "squared error": lambda p: Fraction(-2),
    "cross entropy": lambda p: -1 / (p * (1 - p)),
}


class Outcome(NamedTuple):
    """One bag, its proportion and its noisy release, with their probability."""

    mass: Fraction
    features: tuple[int, ...]
    alpha: Fraction
    noise: Fraction


def outcomes(size: int, divide: bool = True) -> Iterator[Outcome]:
    """Every bag, count and release of the exact model; divide=False is the printed debiasing."""
    rows, values = geometric_count(size, HALF), debiased(size, HALF, divide)
    for features in product((0, 1), repeat=size):
        for count, chance in enumerate(poisson_binomial([PRIOR[x] for x in features])):
            alpha = Fraction(count, size)
            for mass, value in zip(rows[count], values, strict=True):
                yield Outcome(HALF**size * chance * mass, features, alpha, value - alpha)


def prediction(theta: tuple[Fraction, Fraction], features: tuple[int, ...]) -> Fraction:
    """The average prediction over the bag."""
    return theta[0] + theta[1] * Fraction(sum(features), len(features))


def direction(features: tuple[int, ...]) -> tuple[Fraction, Fraction]:
    """The gradient of the average prediction in theta."""
    return Fraction(1), Fraction(sum(features), len(features))


def square_norm(vector: tuple[Fraction, ...]) -> Fraction:
    """The squared Euclidean norm."""
    return sum((part**2 for part in vector), Fraction(0))


def mean_gradients(size: int, slope: Slope, divide: bool) -> tuple[list[Fraction], list[Fraction]]:
    """E grad l(h(B), noisy alpha) and E grad l(h(B), alpha), exactly."""
    noisy, clean = [Fraction(0)] * 2, [Fraction(0)] * 2
    for mass, features, alpha, noise in outcomes(size, divide):
        p = prediction(OTHER_THETA, features)
        for axis, part in enumerate(direction(features)):
            noisy[axis] += mass * slope(p, alpha + noise) * part
            clean[axis] += mass * slope(p, alpha) * part
    return noisy, clean


def square_terms(size: int, name: str, divide: bool = True) -> tuple[Fraction, ...]:
    """E|grad(noisy)|^2, E|grad(alpha)|^2, E Z^2|d grad|^2, and E|d grad|^2, exactly."""
    slope, rate, totals = SLOPES[name], RATES[name], [Fraction(0)] * 4
    for mass, features, alpha, noise in outcomes(size, divide):
        p, norm = prediction(OTHER_THETA, features), square_norm(direction(features))
        totals[0] += mass * slope(p, alpha + noise) ** 2 * norm
        totals[1] += mass * slope(p, alpha) ** 2 * norm
        totals[2] += mass * noise**2 * rate(p) ** 2 * norm
        totals[3] += mass * rate(p) ** 2 * norm
    return tuple(totals)


def sizes(search: Search) -> range:
    """The bag sizes of the exact model."""
    return range(1, search.pick(4, 7))


def model(search: Search) -> str:
    """The searched range in words."""
    return (
        f"exact fractions: bags of 1 to {sizes(search)[-1]}, debiased LLP+Geom at e^epsilon = 2, "
        "a linear predictor, squared error and cross entropy"
    )


@statement(
    "TD.1",
    1637,
    "h* minimises the noisy proportion-matching loss, essentially uniquely",
    chapter=CHAPTER,
    mutants=[{"divide": False}],
)
def optimal_predictor(search: Search, divide: bool = True) -> Finding:
    """The excess of squared error is Var(h-h*)/k + (E(h-h*))^2, zero only for h = h* a.s."""
    grid = [*(Fraction(j, 12) for j in range(1, 12)), *PRIOR.values()]
    least, entropy = Fraction(1), 1.0
    for size in sizes(search)[:4]:
        table = [(o.mass, sum(o.features), o.alpha + o.noise) for o in outcomes(size, divide)]
        for low, high in product(grid, repeat=2):
            if (low, high) == tuple(PRIOR.values()):
                continue
            gaps, excess, extra = (low - PRIOR[0], high - PRIOR[1]), Fraction(0), 0.0
            for mass, ones, noisy in table:
                p, best = (
                    (a * (size - ones) + b * ones) / size
                    for a, b in ((low, high), (PRIOR[0], PRIOR[1]))
                )
                excess += mass * ((p - noisy) ** 2 - (best - noisy) ** 2)
                odds = noisy * log(best / p) + (1 - noisy) * log((1 - best) / (1 - p))
                extra += float(mass) * odds
            mean = sum(gaps) / 2
            spread = (gaps[0] - gaps[1]) ** 2 / 4 / size
            confirm(not divide or excess == spread + mean**2, "the excess in closed form")
            least, entropy = min(least, excess), min(entropy, extra)
    return Finding(
        "holds" if least > 0 and entropy > 0 else "false",
        evidence="For squared error the excess over h* is Var(h-h*)/k + (E(h-h*))^2 as a fraction "
        "for every predictor tried: positive unless h = h* almost surely, because independent "
        f"terms with a constant sum are constant. The smallest excess is {float(least):.2g}, for "
        f"cross entropy {entropy:.2g}. (Cross entropy is not proper in the paper's sense, see "
        "D-proper; it obeys the theorem while 0 < h*(B) < 1 for almost every bag.)",
        searched=f"{len(grid)}^2 predictors of a binary feature, bags of up to "
        f"{min(4, sizes(search)[-1])}, debiased LLP+Geom at e^epsilon = 2",
    )


@statement(
    "TD.2-bias",
    1647,
    "E grad l(h(B), noisy alpha) = E grad l(h(B), alpha) when dl/dp is affine in y",
    chapter=CHAPTER,
    mutants=[
        {"divide": False},
        {"slopes": {"fourth power": lambda p, y: 4 * (p - y) ** 3}},
    ],
)
def unbiased_gradient(
    search: Search, divide: bool = True, slopes: dict[str, Slope] = SLOPES
) -> Finding:
    """Given the bag and alpha, the gradient is affine in the noise, whose mean is zero."""
    agree = True
    for size in sizes(search):
        for slope in slopes.values():
            noisy, clean = mean_gradients(size, slope, divide)
            agree &= noisy == clean
    return Finding(
        "holds" if agree else "false",
        evidence="The two expected gradients are the same fractions in every case. In general the "
        "gradient is (a(alpha + Z) + b) grad h(B), and E[Z | B, alpha] = 0 because the mechanism "
        "sees alpha alone.",
        searched=model(search),
    )


@statement(
    "TD.2-var",
    1651,
    "E|grad(noisy)|^2 = E|grad(alpha)|^2 + E(Z^2 |d/dalpha grad|^2)",
    chapter=CHAPTER,
    mutants=[{"divide": False}],
)
def gradient_square(search: Search, divide: bool = True) -> Finding:
    """The cross term vanishes because the noise has mean zero given alpha."""
    a, b, alpha, first, second = sympy.symbols("a b alpha m1 m2")
    z = sympy.symbols("Z")
    grown = sympy.expand((a * (alpha + z) + b) ** 2 - (a * alpha + b) ** 2)
    mean = grown.coeff(z, 1) * first + grown.coeff(z, 2) * second
    confirm(sympy.simplify(mean.subs(first, 0) - a**2 * second) == 0, "given the bag and alpha")
    agree = True
    for size in sizes(search):
        for name in SLOPES:
            noisy, clean, added, _ = square_terms(size, name, divide)
            agree &= noisy == clean + added
    return Finding(
        "holds" if agree else "false",
        evidence="Equal as fractions in every case, and by sympy for any affine slope a y + b: "
        "given the bag and alpha the square grows by a^2 E[Z^2] when E[Z] = 0. (One norm bar is "
        "missing in the printed left side.)",
        searched=model(search),
    )


@statement(
    "TD.2-max",
    1656,
    "E(Z^2 |d/dalpha grad|^2) <= max_alpha Var(Z_alpha) E|d/dalpha grad|^2",
    chapter=CHAPTER,
    mutants=[{"choose": min}],
)
def largest_variance(search: Search, choose: Callable[[list[Fraction]], Fraction] = max) -> Finding:
    """Var(Z_alpha) = E[Z_alpha^2], as the noise has mean zero."""
    ratios = []
    for size in sizes(search):
        rows, values = geometric_count(size, HALF), debiased(size, HALF)
        variances = [
            sum(
                (m * (v - Fraction(s, size)) ** 2 for m, v in zip(rows[s], values, strict=True)),
                Fraction(0),
            )
            for s in range(size + 1)
        ]
        for name in SLOPES:
            *_, added, bare = square_terms(size, name)
            ratios.append(added / (choose(variances) * bare))
    return Finding(
        "holds" if max(ratios) <= 1 else "false",
        evidence=f"The left side is between {float(min(ratios)):.4f} and {float(max(ratios)):.4f} "
        "of the right; it is an equality for a bag of one, where both proportions have the same "
        "noise variance.",
        searched=model(search),
    )
