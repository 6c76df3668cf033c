"""Laplace and geometric noise on a bag's proportion (paper lines 1540 to 1568).

q = e^-epsilon. The count of a bag of k gets two-sided geometric noise J with P(J = j)
proportional to q^|j|, is clipped to 0..k and divided by k; s is the true count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import exp

import sympy

from labelaudit.ledger.exact import HALF, geometric_count
from labelaudit.ledger.rows import Finding, Search, confirm, statement

SETTING, LEARNING = "01_setting", "09_learning"
RATIOS = (Fraction(1, 50), Fraction(1, 10), Fraction(1, 3), HALF, Fraction(9, 10), Fraction(49, 50))
Q, EPSILON, SIZE = sympy.symbols("q epsilon k", positive=True)


def cells(search: Search) -> Iterator[tuple[int, Fraction, int]]:
    """Bag size, ratio q and true count of the exact search."""
    for size in range(1, search.pick(7, 13)):
        for ratio in RATIOS:
            for count in range(size + 1):
                yield size, ratio, count


def searched(search: Search) -> str:
    """The range of `cells` in words."""
    return (
        f"every count in bags of up to {search.pick(6, 12)} at six values of e^-epsilon from 1/50 "
        "to 49/50, exact fractions"
    )


def debiased(size: int, ratio: Fraction, divide: bool = True) -> list[Fraction]:
    """The estimate for each clipped count; the printed one does not divide the ends by k."""
    excess = ratio / (1 - ratio) / (size if divide else 1)
    return [-excess, *(Fraction(z, size) for z in range(1, size)), 1 + excess]


def moments(size: int, ratio: Fraction, count: int, divide: bool = True) -> tuple[Fraction, ...]:
    """Mean and variance of the debiased release given the true count."""
    law = geometric_count(size, ratio)[count]
    values = debiased(size, ratio, divide)
    mean = sum((mass * value for mass, value in zip(law, values, strict=True)), Fraction(0))
    square = sum((mass * value**2 for mass, value in zip(law, values, strict=True)), Fraction(0))
    return mean, square - mean**2


def laplace_variance(scale: sympy.Expr) -> sympy.Expr:
    """The variance of zero-mean Laplace noise, by integration."""
    z = sympy.symbols("z", positive=True)
    return sympy.integrate(z**2 * sympy.exp(-z / scale) / scale, (z, 0, sympy.oo))


@statement(
    "C-lap",
    1542,
    "LLP+Lap adds Lap(1/(k epsilon)): variance 2/(k^2 epsilon^2), epsilon-label-DP",
    chapter=SETTING,
    mutants=[{"halving": 2}],
)
def laplace(search: Search, halving: int = 1) -> Finding:
    """One label moves the proportion by 1/k, and the density by at most e^epsilon."""
    variance = laplace_variance(1 / (halving * SIZE * EPSILON))
    exact = sympy.simplify(variance - 2 / (SIZE**2 * EPSILON**2)) == 0
    worst = Fraction(0)
    for size in range(1, search.pick(6, 20)):
        for count in range(size):
            points = [Fraction(j, 4 * size) for j in range(-4 * size, 8 * size + 1)]
            low, high = Fraction(count, size), Fraction(count + 1, size)
            losses = (abs(abs(z - low) - abs(z - high)) * halving * size for z in points)
            worst = max(worst, *losses)
    return Finding(
        "holds" if exact and worst == 1 else "false",
        evidence="sympy integrates z^2 against the density and finds the printed variance. The log "
        f"ratio of the densities at neighbouring counts is at most {worst} times epsilon, reached "
        "outside the interval between the two proportions.",
        searched=f"variance symbolic; log ratios exact on grids for bags of up to "
        f"{search.pick(5, 19)}",
    )


@statement(
    "C-geom",
    1547,
    "Z = (Z+ - Z-)/k with geometric Z+, Z- of success 1-e^-epsilon; clipped, epsilon-label-DP",
    chapter=SETTING,
    mutants=[{"power": 2}],
)
def geometric(search: Search, power: int = 1) -> Finding:
    """The difference of two geometrics is two-sided geometric; clipping keeps the ratio."""
    # P(Z+ - Z- = j) is the sum over i of (1-q)^2 q^(2i+j); the sum of q^(2i) is 1/(1-q^2)
    exact = sympy.simplify((1 - Q) ** 2 / (1 - Q**2) - (1 - Q) / (1 + Q)) == 0
    worst = Fraction(0)
    for size, ratio, count in cells(search):
        rows = geometric_count(size, ratio**power)
        plain = (1 - ratio**power) / (1 + ratio**power)
        for z in range(1, size):
            inside = rows[count][z] == plain * ratio ** (power * abs(z - count))
            confirm(inside, "unclipped outputs keep the two-sided geometric law")
        if count < size:
            pairs = zip(rows[count], rows[count + 1], strict=True)
            worst = max(worst, *(max(a / b, b / a) * ratio for a, b in pairs))
    return Finding(
        "holds" if exact and worst == 1 else "false",
        evidence="P(Z+ - Z- = j) sums to (1-q)/(1+q) q^|j| (sympy). After clipping, the largest "
        f"ratio between neighbouring counts is {worst} times e^epsilon, as a fraction.",
        searched=searched(search),
    )


@statement(
    "C-k1",
    1549,
    "LLP+Geom with k = 1 coincides with RR at the same epsilon",
    chapter=SETTING,
    mutants=[{"flip_of": lambda odds: 1 / (2 + odds)}],
)
def bag_of_one(
    search: Search, flip_of: Callable[[Fraction], Fraction] = lambda odds: 1 / (1 + odds)
) -> Finding:
    """The clipped channel on a single label flips it with probability 1/(1+e^epsilon)."""
    ratios = [*RATIOS, *(Fraction(exp(-(2.0**j))) for j in range(-4, 6))]
    agree = True
    for ratio in ratios:
        flip = flip_of(1 / ratio)
        agree &= geometric_count(1, ratio) == [[1 - flip, flip], [flip, 1 - flip]]
    confirm(sympy.simplify(Q / (1 + Q) - 1 / (1 + 1 / Q)) == 0, "P(J >= 1) = 1/(1+e^epsilon)")
    return Finding(
        "holds" if agree else "false",
        evidence="Both channels are the same two by two table of fractions: P(J >= 1) = q/(1+q) = "
        "1/(1+e^epsilon).",
        searched=f"{len(ratios)} values of epsilon, 2^-4 to 2^5 among them",
    )


@statement(
    "C-deb",
    1556,
    "E[noisy proportion | clipped = 0] = -1/(e^epsilon-1), and 1+1/(e^epsilon-1) at 1",
    chapter=LEARNING,
    mutants=[{"divide": True}],
)
def debiasing(search: Search, divide: bool = False) -> Finding:
    """The overshoot is geometric in counts, so in proportions its mean is divided by k."""
    mean = (1 - Q) * Q * sympy.diff(1 / (1 - Q), Q)  # the sum of j (1-q) q^j
    confirm(sympy.simplify(mean - Q / (1 - Q)) == 0, "the mean overshoot is q/(1-q) counts")
    for size, ratio, count in cells(search):
        beyond = geometric_count(size, ratio)[count][0]
        # P(s + J = -j | s + J <= 0), from the two-sided law, for each overshoot j
        tail = [(1 - ratio) / (1 + ratio) * ratio ** (count + j) / beyond for j in range(6)]
        memoryless = [(1 - ratio) * ratio**j for j in range(6)]
        confirm(tail == memoryless, "the overshoot does not depend on the true count")
    size, ratio = 2, HALF
    printed, true = debiased(size, ratio, divide)[0], debiased(size, ratio)[0]
    return Finding(
        "holds" if printed == true else "false",
        evidence="For k = 2 and e^epsilon = 2 the overshoot below 0 is geometric with mean 1 "
        f"count, so the conditional mean is {true}, while the formula gives {printed}. It is "
        "right for k = 1, and so is the middle case for every k.",
        searched=searched(search),
        mended="-1/(k(e^epsilon-1)) at 0 and 1 + 1/(k(e^epsilon-1)) at 1. With the printed values "
        "the release would stay biased for k > 1 (C-cond).",
    )


@statement(
    "C-cond",
    1566,
    "the conditional expectation given the clipped proportion is unbiased for each alpha",
    chapter=LEARNING,
    mutants=[{"divide": False}],
)
def unbiased(search: Search, divide: bool = True) -> Finding:
    """The tower rule, with the mended conditional expectation of C-deb."""
    bias = max(
        abs(moments(size, ratio, count, divide)[0] - Fraction(count, size))
        for size, ratio, count in cells(search)
    )
    example = moments(2, HALF, 0, False)[0]
    return Finding(
        "holds" if bias == 0 else "false",
        evidence=f"The largest bias is {bias} as a fraction, with the correct conditional means; "
        "the overshoot is memoryless, so they do not depend on alpha. With the printed values (no "
        f"1/k) an empty bag of two at e^epsilon = 2 would have mean {example} instead of 0.",
        searched=searched(search),
    )
