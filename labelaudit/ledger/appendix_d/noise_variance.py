"""How much variance each noise adds to a proportion (paper lines 1671 to 1677).

q = e^-epsilon; the estimates are debiased with the correct 1/k (C-deb).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import sinh

import sympy

from labelaudit.ledger.appendix_c.noise import (
    EPSILON,
    LEARNING,
    RATIOS,
    SIZE,
    Q,
    cells,
    laplace_variance,
    moments,
    searched,
)
from labelaudit.ledger.exact import HALF
from labelaudit.ledger.rows import Finding, Search, confirm, statement


@statement(
    "D-varLap",
    1672,
    "for Laplace noise the variance is 2/(k^2 epsilon^2)",
    chapter=LEARNING,
    mutants=[{"halving": 2}],
)
def variance_of_laplace(search: Search, halving: int = 1) -> Finding:
    """Twice the squared scale."""
    variance = sympy.simplify(laplace_variance(1 / (halving * SIZE * EPSILON)))
    found = str(variance).replace("**", "^").replace("*", " ")
    return Finding(
        "holds" if sympy.simplify(variance - 2 / (SIZE**2 * EPSILON**2)) == 0 else "false",
        evidence=f"sympy integrates z^2 against the density: {found}.",
        searched="symbolic",
    )


@statement(
    "D-varGeom",
    1673,
    "unclipped geometric noise: 2e^-eps/(k^2(1-e^-eps)^2), always smaller than Laplace",
    chapter=LEARNING,
    mutants=[{"laplace": 1.0}],
)
def variance_of_geometric(search: Search, laplace: float = 2.0) -> Finding:
    """The ratio to the Laplace variance is ((eps/2)/sinh(eps/2))^2, below 1 and decreasing."""
    generating = Q * sympy.diff(Q * sympy.diff(1 / (1 - Q), Q), Q)  # sum of j^2 q^j
    variance = 2 * (1 - Q) / (1 + Q) * generating
    exact = sympy.simplify(variance - 2 * Q / (1 - Q) ** 2) == 0
    square = (sympy.exp(EPSILON / 2) - sympy.exp(-EPSILON / 2)) ** 2
    rewritten = sympy.simplify((Q / (1 - Q) ** 2).subs(Q, sympy.exp(-EPSILON)) * square)
    confirm(rewritten == 1, "q/(1-q)^2 = 1/(2 sinh(eps/2))^2")
    grid = [2.0 ** (j / 4) for j in range(-4 * search.pick(6, 20), 21)]
    ratios = [2 / (2 * sinh(eps / 2)) ** 2 * eps**2 / laplace for eps in grid]
    smaller = max(ratios) < 1 and all(a > b for a, b in pairwise(ratios))
    return Finding(
        "holds" if exact and smaller else "false",
        evidence="sympy sums j^2 against the two-sided law and finds the printed form. Divided by "
        "the Laplace variance it is ((eps/2)/sinh(eps/2))^2, below 1 since sinh x > x; it falls "
        f"from {ratios[0]:.6f} at eps = {grid[0]:.3g} to {ratios[-1]:.2g} at eps = {grid[-1]:g}.",
        searched=f"identities symbolic; {len(grid)} values of epsilon up to 2^5",
    )


@statement(
    "D-clipvar",
    1673,
    "clipping and debiasing further reduces the variance",
    chapter=LEARNING,
    mutants=[{"divide": False}],
)
def clipping_helps(search: Search, divide: bool = True) -> Finding:
    """q/((1-q)^2 k^2) (2 - (q^s + q^(k-s))/(1+q)), against 2q/((1-q)^2 k^2) before clipping."""
    worst, printed = Fraction(0), moments(2, HALF, 1, False)[1]
    for size, ratio, count in cells(search):
        unit = ratio / (1 - ratio) ** 2 / size**2
        variance = moments(size, ratio, count, divide)[1]
        if divide:
            saved = (ratio**count + ratio ** (size - count)) / (1 + ratio)
            confirm(variance == unit * (2 - saved), "the closed form of the variance")
        worst = max(worst, variance / (2 * unit))
    return Finding(
        "holds" if worst < 1 else "false",
        evidence="With the correct 1/k the variance is q/((1-q)^2 k^2) (2 - (q^s+q^(k-s))/(1+q)), "
        f"always below 2q/((1-q)^2 k^2); the largest ratio met is {float(worst):.6f}. The saving "
        "is largest at the extreme counts, so for small bags. With the printed debiasing (no 1/k) "
        f"it would grow: at k = 2, s = 1, e^epsilon = 2 from 1 to {printed}.",
        searched=searched(search),
    )


@statement(
    "D-varRR",
    1675,
    "for randomized response the variance is e^eps/(1-e^eps)^2",
    chapter=LEARNING,
    mutants=[{"wrong": 1}],
)
def variance_of_response(search: Search, wrong: int = 0) -> Finding:
    """The debiased noisy label takes two values that are (e+1)/(e-1) apart."""
    odds = sympy.symbols("odds", positive=True)
    flip = 1 / (1 + wrong + odds)
    variance = flip * (1 - flip) * ((odds + 1) / (odds - 1)) ** 2
    for ratio in RATIOS:
        for label in (0, 1):
            confirm(
                moments(1, ratio, label)[1] == 1 / ratio / (1 - 1 / ratio) ** 2,
                "LLP+Geom with k = 1 has the same variance",
            )
    return Finding(
        "holds" if sympy.simplify(variance - odds / (1 - odds) ** 2) == 0 else "false",
        evidence="sympy: pi(1-pi)((e^eps+1)/(e^eps-1))^2 = e^eps/(1-e^eps)^2 for either label, and "
        "the clipped geometric with k = 1 gives the same fraction.",
        searched="symbolic, and six exact values of epsilon",
    )


@statement(
    "D-1/k2",
    1677,
    "at equal epsilon LLP+Geom adds less noise than averaging k RR labels: 1/k^2 versus 1/k",
    chapter=LEARNING,
    mutants=[{"clipped": False}],
)
def less_noise(search: Search, clipped: bool = True) -> Finding:
    """k independent debiased labels average to e^eps/((1-e^eps)^2 k), whatever the labels."""
    worst, scaled = Fraction(0), Fraction(2)
    for size, ratio, count in cells(search):
        unit = ratio / (1 - ratio) ** 2  # the variance of one debiased label
        variance = moments(size, ratio, count)[1] if clipped else 2 * unit / size**2
        confirm(size > 1 or not clipped or variance == unit, "at k = 1 the two coincide")
        if size > 1:
            worst = max(worst, variance * size / unit)
        scaled = min(scaled, variance * size**2 / unit)
    return Finding(
        "holds" if worst < 1 else "false",
        evidence=f"For k >= 2 the ratio to the average of k noisy labels is at most "
        f"{float(worst):.4f}; k^2 times the variance stays between {float(scaled):.4f} and 2 times "
        "that of one noisy label, so the order is 1/k^2 against 1/k. Clipping matters at k = 2, "
        "where unclipped noise would tie.",
        searched=searched(search),
    )
