"""The algebra inside the proof of Lemma A.2, from Lemma A.3 to the constant of the bound."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import e
from typing import Any

import numpy as np

from labelaudit.ledger.appendix_a.tools import Smallest, interval
from labelaudit.ledger.rows import Finding, Search, confirm, statement

CHAPTER = "06_proof_workshop"
QUARTER = Fraction(1, 4)


@statement(
    "eq-main",
    754,
    "mu times Lemma A.3 is at most k^(1/4) sqrt(2c_k) "
    "sqrt(mu^2 A^k + pi sqrt(mu)/(4k^(3/2)) + pi mu/(ek^2)) + mu/k",
    chapter=CHAPTER,
    mutants=[{"second": 9}, {"third": Fraction(11, 10)}],
)
def main_bound(search: Search, second: int = 4, third: Fraction = Fraction(1)) -> Finding:
    """Equation (eq:main_bound_running), term by term, with mu and k squares of rationals.

    Then mu^2/(4 mu k)^(3/2) and the printed sqrt(mu)/(4 k^(3/2)) are rational multiples of pi.
    """
    slack = Smallest()
    for i, j in product(range(1, search.pick(11, 51)), repeat=2):
        root_mu, root_k = Fraction(i, 100), Fraction(j)
        mu, k = root_mu**2, root_k**2
        gaps = [
            root_mu / (second * root_k**3) - mu**2 / (8 * root_mu**3 * root_k**3),
            mu / (third * k**2) - mu**2 / (mu * k**2),
        ]
        slack.see(gaps, [f"k = {k}, mu = {mu}, {n} term" for n in ("second", "third")])
    return Finding(
        "holds" if slack.value >= 0 else "false",
        "mu^2 pi/(4 mu k)^(3/2) = pi sqrt(mu)/(8 k^(3/2)), half of the printed second term; the "
        f"other terms are equal. The smallest slack is {slack}.",
        f"mu = (i/100)^2, k = j^2, i and j up to {i}, exact multiples of pi",
    )


@statement(
    "LA.2-1-2mu",
    757,
    "E[eta^2 + (1-eta)^2] = 1 - 2 mu",
    chapter=CHAPTER,
    mutants=[{"coefficient": 1}],
)
def agreement_probability(search: Search, coefficient: int = 2) -> Finding:
    """Proof of Lemma A.2: two labels with the same prior agree with probability 1 - 2 mu."""
    points = [Fraction(j, 7) for j in range(search.pick(8, 71))]
    off = [x for x in points if x**2 + (1 - x) ** 2 != 1 - coefficient * x * (1 - x)]
    return Finding(
        "false" if off else "holds",
        f"Different at eta = {off[0]}."
        if off
        else "Two quadratics in eta that agree at three points agree everywhere; expectations keep "
        "the equality.",
        f"{len(points)} values of eta, exact",
    )


@statement(
    "LA.2-argmax",
    763,
    "x^2 (1-2x)^k on [0, 1/4] is largest at min{1/(k+2), 1/4}, and there at most 1/(ek)^2",
    chapter=CHAPTER,
    mutants=[{"numerator": 2}, {"constant": 1.1}],
)
def largest_first_term(search: Search, numerator: int = 1, constant: float = 1.0) -> Finding:
    """Proof of Lemma A.2: maximise x^2 (1-2x)^k."""
    slack = Smallest()
    for k in range(1, search.pick(20, 80)):
        best = min(Fraction(numerator, k + 2), QUARTER)
        grid = [Fraction(j, 800) for j in range(201)]
        top = best**2 * (1 - 2 * best) ** k
        gaps = [1 - x**2 * (1 - 2 * x) ** k / top for x in grid]
        slack.see(gaps, [f"k = {k}, x = {x}, share of the top" for x in grid])
    for k in np.unique(np.round(np.geomspace(1, 1e6, search.pick(200, 4000)))):
        x = min(1 / (k + 2), 0.25)
        log_share = 2 * np.log(constant * np.e * k * x) + k * np.log1p(-2 * x)
        slack.see([-log_share], [f"k = {k:.0f}, log of 1/(ek)^2 over the top"])
    return Finding(
        "holds" if slack.value >= 0 else "false",
        f"The smallest slack is {slack}. The derivative is 2x(1-2x)^(k-1)(1-(k+2)x), and "
        "(k/(k+2))^(k+2) <= e^-2 since log(1-t) <= -t; the ratio tends to 1 as k grows.",
        f"exact for k < {search.pick(20, 80)} on x = j/800; the top for k up to 1e6",
    )


@statement(
    "LA.2-triv",
    771,
    "mu^2 E[eta^2 + (1-eta)^2] <= mu^2",
    chapter=CHAPTER,
    mutants=[{"power": lambda k: k}],
)
def trivial_bound(search: Search, power: Callable[[int], int] = lambda k: 1) -> Finding:
    """Proof of Lemma A.2: the display drops the power k that the next line uses."""
    agree = [1 - 2 * Fraction(j, 400) for j in range(101)]
    sizes = range(1, search.pick(20, 200))
    confirm(all(0 <= a**k <= 1 for a in agree for k in sizes), "A^k <= 1")
    different = [k for k in sizes if power(k) != k]
    return Finding(
        "misprint" if different else "holds",
        "As printed, without the power k, the inequality is true but not the one used next, which "
        f"bounds mu^2 A^k. At k = {different[0]}, eta = 1/2 the two left sides are 1/32 and "
        f"{Fraction(1, 16) / 2 ** different[0]}."
        if different
        else "A <= 1, so A^k <= 1.",
        f"A = 1 - 2 mu for mu = j/400 up to 1/4, k < {sizes[-1] + 1}, exact",
        mended="mu^2 E[eta^2 + (1-eta)^2]^k <= mu^2" if different else None,
    )


def harmonic(a: Any, b: Any, factor: int) -> Any:
    """factor * ab/(a+b)."""
    return factor * a * b / (a + b)


@statement(
    "LA.2-minab",
    779,
    "min{a, b} <= ab/(a+b)",
    chapter=CHAPTER,
    mutants=[{"factor": 2}],
)
def minimum_and_harmonic(search: Search, factor: int = 1) -> Finding:
    """Proof of Lemma A.2: ab/(a+b) is below the minimum, not above it."""
    grid = [Fraction(i, j) for i, j in product(range(1, search.pick(8, 13)), repeat=2)]
    pairs = list(product(grid, repeat=2))
    failing = sum(min(a, b) > harmonic(a, b, factor) for a, b in pairs)
    searched = f"{len(pairs)} pairs of positive fractions, exact"
    if not failing:
        return Finding("holds", "No pair fails; equality at a = b.", searched)
    confirm(all(harmonic(a, b, 1) <= min(a, b) <= harmonic(a, b, 2) for a, b in pairs), "mended")
    return Finding(
        "false",
        f"At a = b = 1 it says 1 <= 1/2. It fails for {failing} of the {len(pairs)} pairs "
        "tried: ab/(a+b) = "
        "min{a,b} max{a,b}/(a+b), and the last factor is below 1.",
        searched,
        mended="ab/(a+b) <= min{a,b} <= 2ab/(a+b); what the proof needs next is the geometric mean "
        "min{a,b} <= a^(1/4) b^(3/4), see LA.2-minfin",
    )


@statement(
    "LA.2-minfrac",
    776,
    "min{mu^2, 1/(ek)^2} <= mu^2 / (mu^2 e^2 k^2 + 1)",
    chapter=CHAPTER,
    mutants=[{"factor": 2}],
)
def minimum_and_fraction(search: Search, factor: int = 1) -> Finding:
    """Proof of Lemma A.2: the previous step at a = mu^2, b = 1/(ek)^2, by interval arithmetic."""
    sizes = range(1, search.pick(40, 200))
    failing = cases = 0
    for k, j in product(sizes, range(1, 26)):
        mu, scale = interval.mpf(j) / 100, (interval.e * k) ** 2
        right = factor * mu**2 / (mu**2 * scale + 1)
        failing += bool(mu**2 > right and 1 / scale > right)
        cases += 1
    searched = f"{cases} cases: k < {sizes[-1] + 1}, mu = j/100 up to 1/4, interval arithmetic"
    if not failing:
        return Finding("holds", "No case fails.", searched)
    confirm(minimum_and_fraction(search, factor=2).verdict == "holds", "mended by a factor 2")
    return Finding(
        "false",
        "At k = 1, mu = 1/4 the left side is 1/16 and the right side (1/16)/(e^2/16 + 1) = "
        f"{1 / (16 + e**2):.4f}: the denominator exceeds 1. It fails in "
        f"{failing} of the {cases} cases tried.",
        searched,
        mended="min{mu^2, 1/(ek)^2} <= 2 mu^2/(mu^2 e^2 k^2 + 1)",
    )


@statement(
    "LA.2-minfin",
    780,
    "min{mu^2, 1/(ek)^2} <= sqrt(mu)/(ek)^(3/2)",
    chapter=CHAPTER,
    mutants=[{"constant": Fraction(9, 10)}],
)
def minimum_and_root(search: Search, constant: Fraction = Fraction(1)) -> Finding:
    """Proof of Lemma A.2: with x = e k mu = r^2 it reads min{r^4, 1} <= r."""
    steps = search.pick(100, 1000)
    grid = [Fraction(j, steps) for j in range(5 * steps)]
    slack = Smallest()
    slack.see([constant * r - min(r**4, Fraction(1)) for r in grid], [f"x = ({r})^2" for r in grid])
    double = Smallest()
    double.see([r * (r**4 + 1) - 2 * r**4 for r in grid], [f"x = ({r})^2" for r in grid])
    confirm(double.value < 0, "the factor 2 of LA.2-minab does not lead here")
    return Finding(
        "holds" if slack.value >= 0 else "false",
        f"The smallest slack of min{{x^2, 1}} <= sqrt(x), x = e k mu, is {slack}, with equality at "
        "x = 0 and x = 1. It is min{a,b} <= a^(1/4) b^(3/4) at a = mu^2, b = 1/(ek)^2, so the step "
        "is true although the line before it is not (and doubling that line would not give it).",
        f"x = r^2, r = j/{steps} below 5, exact; beyond 1 the left side stays 1",
    )


@statement(
    "LA.2-poly",
    782,
    "x^2 - x^(3/2) + 1 >= 0",
    chapter=CHAPTER,
    mutants=[{"offset": Fraction(1, 10)}],
)
def polynomial(search: Search, offset: Fraction = Fraction(1)) -> Finding:
    """Proof of Lemma A.2: with x = r^2 the minimum is at r = 3/4."""
    low = Fraction(3, 4)
    for j in range(search.pick(20, 200)):
        r = Fraction(j, 10)
        square = (r - low) ** 2 * (r**2 + r / 2 + Fraction(3, 16))
        confirm(r**4 - r**3 + Fraction(27, 256) == square, "r^4 - r^3 + 27/256 is a square times +")
    least = offset - Fraction(27, 256)
    return Finding(
        "holds" if least >= 0 else "false",
        f"With x = r^2 it is (r-3/4)^2 (r^2 + r/2 + 3/16) plus {least}: the smallest value is "
        f"{least}, at x = 9/16.",
        "all x >= 0: a quartic identity checked at more than five points, exact",
    )


@statement(
    "LA.2-last",
    788,
    "pi mu/(ek^2) <= (pi/e) sqrt(mu)/k^(3/2)",
    chapter=CHAPTER,
    mutants=[{"constant": Fraction(2, 5)}],
)
def last_term(search: Search, constant: Fraction = Fraction(1)) -> Finding:
    """Proof of Lemma A.2: the quotient of the two sides is sqrt(mu/k) <= 1/2."""
    slack = Smallest()
    for k, j in product(range(1, search.pick(30, 300)), range(1, 101)):
        mu = Fraction(j, 400)
        slack.see([constant**2 - mu / k], [f"k = {k}, mu = {mu}, squares compared"])
    return Finding(
        "holds" if slack.value >= 0 else "false",
        f"The smallest slack is {slack}: the left side is sqrt(mu/k) times the right, at most 1/2.",
        f"k < {search.pick(30, 300)}, mu = j/400 up to 1/4, exact; monotone in both",
    )
