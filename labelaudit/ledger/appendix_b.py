"""The proof of Theorem 3.7: the multiplicative advantage of a bag concentrates (1443 to 1484).

Labels are independent of features with P(y=1) = p, q = 1-p; z is the proportion of a bag of k, so
I(z) = ln(z q/((1-z) p)); L = ln(1/delta) and B = sqrt(2 p q L/k) + 2 L/(3k). With k = 192, p = 1/2
and delta = e^(-3/2), the condition k >= 32 L/(p q) is an equality and B = 13/192 exactly, so the
counts 83 and 109 sit exactly at p - B and p + B.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp, log

import numpy as np
import sympy
from numpy.typing import NDArray
from scipy import stats

from labelaudit.ledger.exact import HALF, label_proportions, posterior
from labelaudit.ledger.rows import Finding, Search, confirm, statement

CHAPTER = "05_multiplicative_advantage"
EDGE, BAG = Fraction(13, 192), 192
EDGE_TEXT = "k = 192, p = 1/2, delta = e^(-3/2), so B = 13/192"


def width(size: NDArray | float, p: NDArray | float, log_term: NDArray | float) -> NDArray:
    """B, the half-width of the proof."""
    root = np.sqrt(2 * np.multiply(p, np.subtract(1, p)) * log_term / size)
    return np.asarray(root + 2 * np.divide(log_term, size) / 3)


def shares(search: Search) -> tuple[NDArray, NDArray]:
    """A grid of p in (0, 1) and of b = B/(p q) in (0, 1/2]."""
    tiny = np.geomspace(1e-6, 0.5, search.pick(100, 1000))
    p = np.concatenate([tiny, 1 - tiny])
    return np.meshgrid(p, np.linspace(0.5 / 200, 0.5, 200))  # type: ignore[return-value]


def edge_example() -> tuple[float, float]:
    """I(p - B) and I(p + B) for the exact example of this module; they are opposite."""
    level = Fraction(3, 2)
    confirm(32 * level * 4 == BAG, "the condition on k is met with equality")
    root = Fraction(1, 16)
    confirm(root**2 == 2 * Fraction(1, 4) * level / BAG, "the root in B is 1/16")
    confirm(root + 2 * level / (3 * BAG) == EDGE, "B is 13/192")
    low, high = HALF - EDGE, HALF + EDGE
    confirm((low, high) == (Fraction(83, BAG), Fraction(109, BAG)), "both are possible proportions")
    return log(low / (1 - low)), log(high / (1 - high))


@statement(
    "T3.7-I",
    1450,
    "I(z) = ln(z(1-p)/((1-z)p)), since P(y_1=1|z) = z",
    chapter=CHAPTER,
    mutants=[{"off": 1}],
)
def closed_form(search: Search, off: int = 0) -> Finding:
    """For exchangeable labels the posterior of each is the proportion, whatever p is."""
    tried, agree = 0, True
    for size in range(1, search.pick(6, 10)):
        for p in (Fraction(1, 10**4), Fraction(1, 10), Fraction(2, 5), HALF, Fraction(9, 10)):
            for z, after in posterior((p,) * size, label_proportions, 0).items():
                agree &= after == Fraction(str(z)) * size / (size + off)
                tried += 1
    return Finding(
        "holds" if agree else "false",
        evidence=f"The enumerated posterior equals z as a fraction in all {tried} cases; the rest "
        "is the definition. At z = 0 and z = 1 both sides are infinite.",
        searched=f"bags of up to {search.pick(5, 9)}, p from 1e-4 to 0.9, every proportion",
    )


@statement(
    "T3.7-Bern",
    1458,
    "with probability >= 1-delta, |z-p| <= B with ln(1/delta)",
    chapter=CHAPTER,
    mutants=[{"sides": 2}],
)
def two_sided_bernstein(search: Search, sides: int = 1) -> Finding:
    """Two tails need ln(2/delta); with ln(1/delta) the claim fails for delta near 1."""
    worst = 0.0
    for size in search.pick((1, 2, 9, 100), (1, 2, 3, 9, 30, 100, 1000, 10**4, 10**5)):
        for p in (1e-4, 0.01, 0.1, 0.3, 0.5):
            for delta in (1e-9, 1e-3, 0.1, 0.5, 0.9, 0.99, 1.0):
                half = float(width(size, p, log(2 / delta)))
                upper = stats.binom.sf(np.floor(size * (p + half) + 1e-9), size, p)
                lower = stats.binom.cdf(np.ceil(size * (p - half) - 1e-9) - 1, size, p)
                worst = max(worst, (upper + lower) / delta)
    confirm(worst <= 1, "ln(2/delta) is enough for both tails")
    level, size, p = 1 / 128, 1, 0.5  # delta = e^(-1/128); 32 L/(p q) = 1 = k
    half = float(width(size, p, level + log(sides)))
    outside = float(abs(1 - p) > half)  # z is 0 or 1, both at distance 1/2
    return Finding(
        "false" if outside > exp(-level) else "holds",
        evidence=f"Take k = 1, p = 1/2, delta = e^(-1/128) = {exp(-level):.4f}, so that k >= "
        f"32 L/(p q). Then B = 13/192 = {half:.4f}, but z is 0 or 1, so |z-p| = 1/2 > B with "
        f"probability {outside:g} > delta. Bernstein's inequality gives delta for each tail.",
        searched=f"one exact case; the mended form for k up to {search.pick(100, '1e5')}, p from "
        f"1e-4 to 1/2, delta from 1e-9 to 1 (largest tail/delta {worst:.3f})",
        mended="Replace ln(1/delta) by ln(2/delta) in B. For delta <= 1/2 that is at most 2 "
        "ln(1/delta) and only constants change; for delta near 1 Theorem 3.7 itself needs it.",
    )


@statement(
    "T3.7-log",
    1468,
    "ln(1-B/((1-p+B)p)) = ln((p-B)(1-p)/((1-p+B)p)), and the same with +B",
    chapter=CHAPTER,
    mutants=[{"sign": -1}],
)
def log_identities(search: Search, sign: int = 1) -> Finding:
    """The two identities at the ends of the interval, and the order between them."""
    p, half, z = sympy.symbols("p B z", positive=True)
    low = 1 - sign * half / ((1 - p + half) * p) - (p - half) * (1 - p) / ((1 - p + half) * p)
    high = 1 + sign * half / ((1 - p - half) * p) - (p + half) * (1 - p) / ((1 - p - half) * p)
    slope = sympy.simplify(sympy.diff(sympy.log(z / (1 - z)), z) - 1 / (z * (1 - z)))
    exact = sympy.simplify(low) == 0 and sympy.simplify(high) == 0 and slope == 0
    return Finding(
        "holds" if exact else "false",
        evidence="sympy: both arguments of ln agree identically, and the derivative of ln(z/(1-z)) "
        "is 1/(z(1-z)) > 0. The ends are finite when B < min{p, 1-p}, which 2B <= p(1-p) gives.",
        searched="symbolic",
    )


@statement(
    "T3.7-32",
    1470,
    "k >= 32 ln(1/delta)/(p(1-p)) implies 2B <= p-p^2",
    chapter=CHAPTER,
    mutants=[{"constant": 8}],
)
def enough_examples(search: Search, constant: int = 32) -> Finding:
    """B/(pq) = sqrt(2t) + 2t/3 for t = L/(k p q) <= 1/32 is at most 1/4 + 1/48 = 13/48."""
    tiny = np.geomspace(1e-6, 0.5, search.pick(50, 400))
    worst = 0.0
    for level in np.geomspace(1e-6, 1e3, search.pick(50, 400)):
        size = np.ceil(constant * level / (tiny * (1 - tiny)))
        worst = max(worst, float((2 * width(size, tiny, level) / (tiny * (1 - tiny))).max()))
    return Finding(
        "holds" if worst <= 1 else "false",
        evidence=f"The largest 2B/(p-p^2) is {worst:.4f}; at equality it is 13/24 = 0.5417. With "
        "t = L/(k p q), B/(p q) = sqrt(2t) + 2t/3 increases in t, and t <= 1/32.",
        searched="p from 1e-6 to 1/2, ln(1/delta) from 1e-6 to 1e3, the least k allowed",
    )


@statement(
    "T3.7-half",
    1470,
    "2B <= p-p^2 implies B/((1-p+B)p) <= 1/2 and B/((1-p-B)p) > 0",
    chapter=CHAPTER,
    mutants=[{"bound": 0.49}],
)
def half_at_most(search: Search, bound: float = 0.5) -> Finding:
    """With B = b p q the first ratio is b/(1+bp), increasing in b and at most 1/(2+p)."""
    p, b = sympy.symbols("p b", positive=True)
    ratio = b * p * (1 - p) / ((1 - p + b * p * (1 - p)) * p)
    confirm(sympy.simplify(ratio - b / (1 + b * p)) == 0, "the ratio is b/(1+bp)")
    chances, grid = shares(search)
    largest = float((grid / (1 + grid * chances)).max())
    positive = bool(np.all(grid / (1 - grid * chances) > 0))
    return Finding(
        "holds" if largest <= bound and positive else "false",
        evidence=f"With B = b p(1-p) and b <= 1/2 the first ratio is b/(1+bp), at most "
        f"{largest:.6f} on the grid and 1/(2+p) < 1/2 in general; the second is b/(1-bp) > 0.",
        searched=f"{grid.size} pairs (p, b) with p from 1e-6 to 1-1e-6, and the identity in sympy",
    )


@statement(
    "T3.7-ln",
    1471,
    "ln(1-x) >= -x ln 2 for x in [0, 1/2]",
    chapter=CHAPTER,
    mutants=[{"factor": 2}],
)
def logarithm_step(search: Search, factor: int = 1) -> Finding:
    """ln(1-x) <= -x < -x ln 2 for every x > 0; the chord to x = 1/2 has slope -2 ln 2."""
    grid = np.linspace(0, 0.5, search.pick(1001, 100001))[1:]
    mended = np.log1p(-grid) + 2 * np.log(2) * grid
    confirm(mended.min() >= -1e-15, "ln(1-x) >= -2x ln 2 on [0, 1/2]")
    confirm(sympy.log(HALF) + 2 * sympy.log(2) / 2 == 0, "with equality at x = 1/2")
    slack = float((np.log1p(-grid) + factor * np.log(2) * grid).min())
    return Finding(
        "holds" if slack >= -1e-15 else "false",
        evidence=f"At x = 1/2 the left side is -ln 2 = {-log(2):.4f} and the right side -(ln 2)/2 "
        f"= {-log(2) / 2:.4f}. It fails for every x in (0, 1/2], since ln(1-x) <= -x < -x ln 2.",
        searched=f"{len(grid)} points of (0, 1/2]",
        mended="ln(1-x) >= -2x ln 2 on [0, 1/2], the chord of a concave function (equal at 1/2).",
    )


@statement(
    "T3.7-low",
    1473,
    "I(z) >= -B ln2/((1-p+B)p) on |z-p| <= B",
    chapter=CHAPTER,
    mutants=[{"factor": 2}],
)
def lower_end(search: Search, factor: int = 1) -> Finding:
    """The step inherits the false logarithm inequality."""
    chances, grid = shares(search)
    ratio = grid / (1 + grid * chances)
    confirm(np.all(np.log1p(-ratio) >= -2 * np.log(2) * ratio - 1e-15), "2 ln 2 is enough")
    value, _ = edge_example()
    bound = -factor * float(EDGE) * log(2) / ((0.5 + float(EDGE)) * 0.5)
    return Finding(
        "holds" if value >= bound else "false",
        evidence=f"{EDGE_TEXT}: at z = 83/192 = p-B, I(z) = ln(83/109) = {value:.4f}, below the "
        f"bound {bound:.4f}.",
        searched=f"one exact case; the mended form on {grid.size} pairs (p, B)",
        mended="I(z) >= -2 B ln2/((1-p+B)p).",
    )


@statement(
    "T3.7-mid",
    1477,
    "|I(z)| <= B ln2/((1-p-B)p) on |z-p| <= B",
    chapter=CHAPTER,
    mutants=[{"factor": 2}],
)
def both_ends(search: Search, factor: int = 1) -> Finding:
    """ln(1+x) > x ln 2 for 0 < x < 1, so the upper end fails too."""
    chances, grid = shares(search)
    upper, lower = grid / (1 - grid * chances), grid / (1 + grid * chances)
    size = np.maximum(np.log1p(upper), -np.log1p(-lower))
    confirm(np.all(size <= 2 * np.log(2) * upper + 1e-15), "2 ln 2 is enough")
    _, value = edge_example()
    bound = factor * float(EDGE) * log(2) / ((0.5 - float(EDGE)) * 0.5)
    return Finding(
        "holds" if value <= bound else "false",
        evidence=f"{EDGE_TEXT}: at z = 109/192 = p+B, I(z) = ln(109/83) = {value:.4f}, above the "
        f"bound {bound:.4f}.",
        searched=f"one exact case; the mended form on {grid.size} pairs (p, B)",
        mended="|I(z)| <= 2 B ln2/((1-p-B)p). The next line is true all the same (T3.7-fin).",
    )


@statement(
    "T3.7-fin",
    1481,
    "|I(z)| <= 2 B ln2/(p(1-p)) on |z-p| <= B when 2B <= p(1-p)",
    chapter=CHAPTER,
    mutants=[{"factor": 1.9}],
)
def final_bound(search: Search, factor: float = 2.0) -> Finding:
    """Both ends are at most -ln(1-b) for b = B/(pq) <= 1/2, below its chord 2 b ln 2."""
    chances, grid = shares(search)
    size = np.maximum(
        np.log1p(grid / (1 - grid * chances)), -np.log1p(-grid / (1 + grid * chances))
    )
    worst = float((size / (factor * np.log(2) * grid)).max())
    order = 2**0.5 + 2 / 3 / 32**0.5  # sqrt(2t) + 2t/3 over sqrt(t), at t = 1/32
    return Finding(
        "holds" if worst <= 1 + 1e-12 else "false",
        evidence=f"The largest |I|/bound is {worst:.6f}, approached at 2B = p(1-p) as p tends to 0 "
        "or 1. With b = B/(p(1-p)) both ends are at most -ln(1-b), which is convex and lies below "
        "its chord 2 b ln 2 on [0, 1/2]. So the final bound is true although two steps before it "
        f"are not; and b <= {order:.3f} sqrt(L/(p(1-p)k)) once k >= 32 L/(p(1-p)).",
        searched=f"{grid.size} pairs: p from 1e-6 to 1-1e-6, B up to p(1-p)/2, both ends",
    )
