"""Propositions A.6 to A.8: the cosine sum behind Lemma A.4."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import e, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from labelaudit.ledger.appendix_a.tools import Smallest, interval
from labelaudit.ledger.rows import Finding, Search, confirm, statement

CHAPTER = "06_proof_workshop"
TWO_THIRDS = 2 / 3


def cosine_terms(k: int, b: NDArray[np.float64]) -> NDArray[np.float64]:
    """(1 - cos t_u) (a + b cos t_u)^k for each b (rows) and u = 0, ..., k+1; a = 1 - b."""
    cosine = np.cos(2 * np.pi * np.arange(k + 2) / (k + 2))
    return np.asarray((1 - cosine) * (1 - b[:, None] * (1 - cosine)) ** k)


def cosine_bound(k: Any, b: Any, math: Any = np) -> Any:
    """The right side of Proposition A.6."""
    volume = 4 * k * b
    return (1 - b) ** k + math.pi / (volume * math.sqrt(volume)) + math.pi / (math.e * b * k**2)


def weights(largest: float, number: int) -> NDArray[np.float64]:
    """A grid for b in (0, largest), denser near 0."""
    grid = np.concatenate([np.geomspace(1e-6, 0.01, number // 4), np.linspace(0.01, 1, number)])
    return grid[(grid <= largest) & (grid < 1)]


@statement(
    "PA.6",
    929,
    "(1/(k+2)) sum_u (1 - cos t_u)(a + b cos t_u)^k <= a^k + pi/(4kb)^(3/2) + pi/(ebk^2), "
    "for any a, b, k > 0 with a + b = 1",
    chapter=CHAPTER,
    mutants=[{"largest": TWO_THIRDS}],
)
def cosine_sum(search: Search, largest: float = 1.0) -> Finding:
    """Proposition A.6: false for b near 1, true where the paper uses it (b = 2 mu <= 1/2)."""
    slack, mended = Smallest(), Smallest()
    sizes = [*range(1, search.pick(60, 300)), 1000, *search.pick((), (3000, 10_000))]
    for k in sizes:
        b = weights(largest, 60 if k >= 1000 else 400)
        gap = 1 - cosine_terms(k, b).sum(axis=1) / (k + 2) / cosine_bound(k, b)
        slack.see(gap, [f"k = {k}, b = {value:.4g}" for value in b])
        mended.see(gap[b <= TWO_THIRDS], [f"k = {k}, b = {v:.4g}" for v in b[b <= TWO_THIRDS]])
    confirm(mended.value > 0, "true for b <= 2/3")
    searched = f"k up to {sizes[-1]}, b from 1e-6 to {min(largest, 1):.3g}"
    if slack.value >= 0:
        return Finding("holds", f"1 - left/right is smallest, {slack}.", searched)
    a = Fraction(1, 100)
    left = (a**2 + (2 * a - 1) ** 2) / 2
    right = cosine_bound(interval.mpf(2), interval.mpf(99) / 100, interval)
    confirm(interval.mpf(left.numerator) / left.denominator > right, "the counterexample")
    return Finding(
        "false",
        f"k = 2, a = 1/100: the left side is (a^2 + (2a-1)^2)/2 = {left} = {float(left):.4f}, the "
        f"right side {float(right.mid):.4f}. For b <= 2/3 it is true: 1 - left/right is smallest, "
        f"{mended}. The paper needs b = 2 mu <= 1/2, so nothing that rests on it is lost.",
        searched,
        mended="add the condition b <= 2/3 (then |a + b cos t| <= a wherever cos t <= 0)",
    )


def middle_block(k: int) -> slice:
    """The indices u with (k+2)/4 < u <= 3(k+2)/4."""
    return slice((k + 2) // 4 + 1, 3 * (k + 2) // 4 + 1)


@statement(
    "PA.6-mid",
    945,
    "the block with cos t_u <= 0 is at most (k+2) a^k",
    chapter=CHAPTER,
    mutants=[{"largest": TWO_THIRDS}],
)
def middle_of_the_sum(search: Search, largest: float = 1.0) -> Finding:
    """Proof of Proposition A.6: a + b cos t can be negative and larger than a in size."""
    slack, mended = Smallest(), Smallest()
    for k in range(1, search.pick(60, 300)):
        b = weights(largest, 300)
        places = [f"k = {k}, b = {value:.4g}" for value in b]
        whole, block = (k + 2) * (1 - b) ** k, cosine_terms(k, b)[:, middle_block(k)].sum(axis=1)
        slack.see(whole - block + 1e-12 * whole, places)
        used = np.flatnonzero(b <= TWO_THIRDS)
        mended.see(1 - block[used] / whole[used], [places[i] for i in used])
    confirm(mended.value > -1e-12, "true for b <= 2/3")
    searched = f"k up to {k}, b from 1e-6 to {min(largest, 1):.3g}"
    if slack.value >= 0:
        return Finding("holds", f"1 - left/right is smallest, {mended}.", searched)
    a, b_exact = Fraction(1, 4), Fraction(3, 4)
    block = 2 * (a - b_exact) ** 2 + a**2
    confirm(block > 4 * a**2, "the counterexample")
    return Finding(
        "false",
        f"k = 2, a = 1/4, b = 3/4: the block is u = 2, 3 with cosines -1 and 0, so it is "
        f"2(a-b)^2 + a^2 = {block}, and (k+2)a^k = {4 * a**2}. For b <= 2/3 it is true, with "
        f"1 - left/right smallest, {mended}.",
        searched,
        mended="add the condition b <= 2/3, which b = 2 mu <= 1/2 satisfies",
    )


@statement(
    "PA.6-sym",
    955,
    "by symmetry the first and last blocks together equal twice the first",
    chapter=CHAPTER,
    mutants=[{"relation": "<="}],
)
def symmetry_of_the_blocks(search: Search, relation: str = "=") -> Finding:
    """Proof of Proposition A.6: when 4 divides k + 2 the index u = (k+2)/4 is counted once more."""
    b = np.array([0.01, 0.1, 0.3, 0.5, 0.8])
    unequal = []
    for k in range(1, search.pick(60, 400)):
        terms, block = cosine_terms(k, b), middle_block(k)
        first, last = terms[:, : block.start].sum(axis=1), terms[:, block.stop :].sum(axis=1)
        excess = first - last
        extra = (1 - b) ** k * ((k + 2) % 4 == 0)
        confirm(np.abs(excess - extra).max() < 1e-12, "the excess is a^k or 0")
        if (excess > 1e-12).any():
            unequal.append(k)
    a = Fraction(1, 2)
    searched = f"k up to {k}, b = 0.01 to 0.8; k = 2 exactly"
    if relation == "<=" or not unequal:  # the excess was confirmed to be at least 0
        return Finding("holds", "First plus last is at most twice the first.", searched)
    return Finding(
        "misprint",
        f"k = 2, a = b = 1/2: the first block is a^2 = {a**2}, the last is empty, and twice the "
        f"first is {2 * a**2}. The sides differ by a^k when 4 divides k + 2 (k = "
        f"{', '.join(map(str, unequal[:4]))}, ...) and are equal otherwise. The bound needs <=.",
        searched,
        mended="<= for =",
    )


@statement(
    "PA.6-const",
    967,
    "4 pi^2 (sqrt(pi)/(4 (4 pi k b)^(3/2)) + 1/(4 e pi b k(k+2))) <= pi/(4kb)^(3/2) + pi/(ebk^2)",
    chapter=CHAPTER,
    mutants=[{"inner": 5}],
)
def constants_of_the_sum(search: Search, inner: int = 4) -> Finding:
    """Proof of Proposition A.6: the first terms are equal, the second differ by k/(k+2)."""
    slack = Smallest()
    for k, j in product(range(1, search.pick(100, 1000)), range(1, 21)):
        b = j / 20
        left = (
            4
            * pi**2
            * (pi**0.5 / (4 * (4 * pi * k * b) ** 1.5) + 1 / (4 * e * pi * b * k * (k + 2)))
        )
        right = pi / (inner * k * b) ** 1.5 + pi / (e * b * k**2)
        slack.see([right / left - 1], [f"k = {k}, b = {b}"])
    first = 4 * interval.pi**2 * interval.sqrt(interval.pi) / 4
    second = interval.pi * interval.sqrt(4 * interval.pi) ** 3 / 8
    confirm(abs(float((first - second).mid)) < 1e-12, "4^(3/2) = 8: the first terms agree")
    return Finding(
        "holds" if slack.value >= 0 else "false",
        f"right/left - 1 is smallest, {slack}. The first terms are equal: "
        "pi^(5/2)/(4 pi)^(3/2) = pi/8; the second terms have quotient k/(k+2).",
        f"k up to {k}, b = j/20",
    )


def bump_sum(m: int, alpha: NDArray[np.float64]) -> NDArray[np.float64]:
    """sum_{u <= m/4} f(u/m)/m with f(x) = x^2 e^{-alpha x^2}, for each alpha."""
    x = np.arange(m // 4 + 1) / m
    return np.asarray((x**2 * np.exp(-alpha[:, None] * x**2)).sum(axis=1) / m)


@statement(
    "PA.7",
    974,
    "sum_{u <= m/4} (u/m)^2 e^{-alpha (u/m)^2}/m <= sqrt(pi)/(4 alpha^(3/2)) + 1/(e alpha m)",
    chapter=CHAPTER,
    mutants=[{"constant": 0.9}],
)
def riemann_sum(search: Search, constant: float = 1.0) -> Finding:
    """Proposition A.7: a Riemann sum of a bump against its integral."""
    alpha = np.geomspace(1e-3, 1e9, search.pick(200, 1500))
    slack, alone = Smallest(), Smallest()
    for m in (*range(1, search.pick(60, 400)), 1000, *search.pick((), (10_000,))):
        total, main = bump_sum(m, alpha), np.sqrt(np.pi) / (4 * alpha**1.5)
        bound = constant * main + 1 / (np.e * alpha * m)
        places = [f"m = {m}, alpha = {value:.4g}" for value in alpha]
        slack.see(1 - total / bound, places)
        alone.see(1 - total / main, places)
    confirm(alone.value > -1e-12, "the first term alone is enough on this grid")
    return Finding(
        "holds" if slack.value >= 0 else "false",
        f"1 - left/right is smallest, {slack}. On this grid the sum never exceeds the first term "
        "alone: the correction 1/(e alpha m) was not needed anywhere.",
        f"m up to {m}, alpha from 1e-3 to 1e9",
    )


def bump_integral(alpha: float, low: Any, high: Any) -> Any:
    """The integral of x^2 e^{-alpha x^2} from low to high, by the incomplete gamma function."""
    half = special.gamma(1.5) / (2 * alpha**1.5)
    return half * (special.gammainc(1.5, alpha * high**2) - special.gammainc(1.5, alpha * low**2))


def confirm_cells(m: int, alpha: float) -> None:
    """The mended argument of Proposition A.7, cell by cell."""
    u = np.arange(m // 4 + 1)
    peak = int(m / np.sqrt(alpha))
    height = (u / m) ** 2 * np.exp(-alpha * (u / m) ** 2) / m
    right, left = (bump_integral(alpha, v / m, (v + 1) / m) for v in (u, u - 1))
    below, above = u < peak, u > peak + 1
    confirm((height[below] <= right[below] + 1e-15).all(), "cells before the peak")
    confirm((height[above] <= left[above] + 1e-15).all(), "cells after the peak")
    pair = height[peak : peak + 2].sum()
    cell = bump_integral(alpha, peak / m, (peak + 1) / m)
    confirm(pair <= cell + 1 / (e * alpha * m) + 1e-15, "the two terms at the peak")


@statement(
    "PA.7-idx",
    987,
    "split the sum at u = floor(x0), x0 = 1/sqrt(alpha): the upper part is at most the integral "
    "of f from (ceil(x0)-1)/m to 1/4 - 1/m",
    chapter=CHAPTER,
    mutants=[{"scaled": True, "overshoot": 1}],
)
def split_at_the_peak(search: Search, scaled: bool = False, overshoot: int = 0) -> Finding:
    """Proof of Proposition A.7: x0 is a point, not an index, and the peak's cell needs care."""
    slack = Smallest()
    for m, alpha in product(range(4, search.pick(40, 200), 4), (1.0, 4.0, 16.0, 50.0, 400.0, 5e4)):
        start = int(np.ceil((m if scaled else 1) / np.sqrt(alpha)))
        x = np.arange(start, m // 4 + 1) / m
        upper = (x**2 * np.exp(-alpha * x**2)).sum() / m
        low, high = (start - 1) / m, 0.25 if scaled else 0.25 - 1 / m
        bound = bump_integral(alpha, low, max(low, high)) + overshoot / (e * alpha * m)
        slack.see([bound - upper + 1e-15], [f"m = {m}, alpha = {alpha:.4g}"])
        confirm_cells(m, alpha)
    searched = f"m = 4, 8, ..., {m}, six values of alpha from 1 to 5e4"
    if slack.value >= 0:
        return Finding("holds", f"The smallest slack is {slack}.", searched)
    whole = bump_integral(16.0, 0.0, 0.25)
    confirm(1 / (64 * e) > whole, "the counterexample survives the mended limits")
    return Finding(
        "false",
        "m = 4, alpha = 16: x0 = 1/4, so the upper part is the single term u = 1, "
        f"f(1/4)/4 = 1/(64e) = {1 / (64 * e):.5f}, and the integral runs from 0 to 1/4 - 1/4 = 0. "
        f"With m x0 for x0 and 1/4 for 1/4 - 1/m it is {whole:.5f}, still too small: the cell that "
        "holds the peak is the trouble. Proposition A.7 itself is true.",
        searched,
        mended="split at u0 = floor(m x0): terms below u0 are at most the integral over the cell "
        "to their right, terms above u0+1 over the cell to their left, and the two at the peak at "
        "most the integral over [u0/m, (u0+1)/m] plus max f/m",
    )


@statement(
    "PA.8",
    1000,
    "1 - 2 (pi t)^2 <= cos(2 pi t) <= 1 - 4 pi t^2 on [0, 1/4]",
    chapter=CHAPTER,
    mutants=[{"upper": 17.0}, {"lower": 1.9}],
)
def cosine_parabolas(search: Search, upper: float = 4 * pi, lower: float = 2.0) -> Finding:
    """Proposition A.8, as 1 - cos(2 pi t) = 2 sin^2(pi t), which does not cancel near 0."""
    t = np.concatenate(
        [np.geomspace(1e-9, 0.25, 2000), np.linspace(1e-4, 0.25, search.pick(999, 99_999))]
    )
    curvature = 2 * np.sin(np.pi * t) ** 2 / t**2
    left = lower * np.pi**2 * (1 + 1e-12) - curvature.max()  # equality in the limit t = 0
    right = curvature.min() - upper
    return Finding(
        "holds" if min(left, right) >= 0 else "false",
        f"(1 - cos(2 pi t))/t^2 falls from 2 pi^2 = {2 * pi**2:.4f} at 0 to {curvature.min():.4f} "
        f"at 1/4. It has to lie between {upper:.4f} and {lower * pi**2:.4f}: the slack is "
        f"{right:.4f} on the right side of the statement and {left:.4f} on the left, as t tends to "
        "0. The right side could be sharpened to 1 - 16 t^2.",
        f"{len(t)} values of t from 1e-9 to 1/4",
    )
