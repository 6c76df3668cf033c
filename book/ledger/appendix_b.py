"""Checks of Appendix B, the proof of Theorem 3.7 (paper lines 1443 to 1484).

Labels are independent of features with P(y=1) = p, q = 1-p; z is the proportion of a bag of k, so
I(z) = ln(z q/((1-z) p)); L = ln(1/delta) and B = sqrt(2 p q L/k) + 2 L/(3k). With k = 192, p = 1/2
and delta = e^(-3/2), the condition k >= 32 L/(p q) is an equality and B = 13/192 exactly. Then the
proportions of the counts 83 and 109 are p - B and p + B.
"""

from fractions import Fraction
from functools import partial
from itertools import product
from math import exp, log
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray
from scipy import stats

from book.ledger import exact
from book.ledger.check import Case, Cases, check, confirm
from book.ledger.closed_forms import enclosure, interval
from book.ledger.exact import HALF

EDGE, BAG = Fraction(13, 192), 192


def width(size: NDArray | float, p: NDArray | float, log_term: NDArray | float) -> NDArray:
    """B, the half-width of the proof."""
    root = np.sqrt(2 * np.multiply(p, np.subtract(1, p)) * log_term / size)
    return np.asarray(root + 2 * np.divide(log_term, size) / 3)


def grid_of_p_and_b(quick: bool) -> tuple[NDArray, NDArray]:
    """A grid of p in (0, 1) and of b = B/(p q) in (0, 1/2]."""
    tiny = np.geomspace(1e-6, 0.5, 100 if quick else 1000)
    p = np.concatenate([tiny, 1 - tiny])
    return np.meshgrid(p, np.linspace(0.5 / 200, 0.5, 200))  # type: ignore[return-value]


def edge_example() -> tuple[Any, ...]:
    """I(p - B) and I(p + B) for the exact example of this module, enclosed; they are opposite."""
    level = Fraction(3, 2)
    confirm(32 * level * 4 == BAG, "the condition on k is met with equality")
    root = Fraction(1, 16)
    confirm(root**2 == 2 * Fraction(1, 4) * level / BAG, "the root in B is 1/16")
    confirm(root + 2 * level / (3 * BAG) == EDGE, "B is 13/192")
    low, high = HALF - EDGE, HALF + EDGE
    confirm((low, high) == (Fraction(83, BAG), Fraction(109, BAG)), "both are possible proportions")
    return tuple(interval.log(enclosure(z / (1 - z))) for z in (low, high))


@check("T3.7-I", {"off": 1})
def closed_form(quick: bool, off: int = 0) -> Cases:
    priors = (Fraction(1, 10**4), Fraction(1, 10), Fraction(2, 5), HALF, Fraction(9, 10))
    for size, p in product(range(1, 6 if quick else 10), priors):
        for z, after in exact.posterior((p,) * size, exact.label_proportions, 0).items():
            yield Case(after == z * size / (size + off))


@check("T3.7-Bern", {"sides": 2})
def two_sided_bernstein(quick: bool, sides: int = 1) -> Cases:
    worst = 0.0
    sizes = (1, 2, 9, 100) if quick else (1, 2, 3, 9, 30, 100, 1000, 10**4, 10**5)
    deltas = (1e-9, 1e-3, 0.1, 0.5, 0.9, 0.99, 1.0)
    for size, p, delta in product(sizes, (1e-4, 0.01, 0.1, 0.3, 0.5), deltas):
        half = float(width(size, p, log(2 / delta)))
        upper = stats.binom.sf(np.floor(size * (p + half) + 1e-9), size, p)
        lower = stats.binom.cdf(np.ceil(size * (p - half) - 1e-9) - 1, size, p)
        worst = max(worst, (upper + lower) / delta)
    confirm(worst <= 1, "ln(2/delta) is enough for both tails")
    level, size, p = 1 / 128, 1, 0.5  # delta = e^(-1/128); 32 L/(p q) = 1 = k
    half = float(width(size, p, level + log(sides)))
    outside = float(abs(1 - p) > half)  # z is 0 or 1, both at distance 1/2
    delta = exp(-level)
    yield Case(outside <= delta, delta=delta, half=half, outside=outside, worst=worst)


@check("T3.7-ln", {"factor": 2})
def logarithm_step(quick: bool, factor: int = 1) -> Cases:
    """ln(1-x) <= -x < -x ln 2 for every x > 0; the chord to x = 1/2 has slope -2 ln 2."""
    grid = np.linspace(0, 0.5, 1001 if quick else 100001)[1:]
    corrected = np.log1p(-grid) + 2 * np.log(2) * grid
    confirm(corrected.min() >= -1e-15, "ln(1-x) >= -2x ln 2 on [0, 1/2]")
    confirm(sympy.log(HALF) + 2 * sympy.log(2) / 2 == 0, "with equality at x = 1/2")
    yield Case((np.log1p(-grid) + factor * np.log(2) * grid).min() >= -1e-15, points=len(grid))


@check("T3.7-low", {"factor": 2})
def lower_end(quick: bool, factor: int = 1, side: int = -1) -> Cases:
    p, grid = grid_of_p_and_b(quick)
    ratio = grid / (1 - side * grid * p)
    confirm(np.all(abs(np.log1p(side * ratio)) <= 2 * log(2) * ratio + 1e-15), "2 ln 2 is enough")
    value = edge_example()[side > 0]
    bound = side * factor * enclosure(2 * EDGE / (HALF - side * EDGE)) * interval.log(2)
    beyond = side * value > side * bound
    yield Case(not beyond, value=float(value.mid), bound=float(bound.mid), pairs=grid.size)


# ln(1+x) > x ln 2 for 0 < x < 1, so the upper end fails too.
check("T3.7-mid", {"factor": 2})(partial(lower_end, side=1))


@check("T3.7-fin", {"factor": 1.9})
def final_bound(quick: bool, factor: float = 2.0) -> Cases:
    """Both ends are at most -ln(1-b) for b = B/(pq) <= 1/2, below its chord 2 b ln 2."""
    p, grid = grid_of_p_and_b(quick)
    size = np.maximum(np.log1p(grid / (1 - grid * p)), -np.log1p(-grid / (1 + grid * p)))
    worst = float((size / (factor * np.log(2) * grid)).max())
    order = 2**0.5 + 2 / 3 / 32**0.5  # sqrt(2t) + 2t/3 over sqrt(t), at t = 1/32
    yield Case(worst <= 1 + 1e-12, worst=worst, order=order, pairs=grid.size)
