"""Ledger rows for LLP when labels are independent of features (Theorem 3.2 and around it)."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np

from labelaudit.ledger import exact
from labelaudit.ledger.rows import Finding, Search, confirm, statement

CHAPTER = "03_label_aggregation"


def bag_sizes(search: Search) -> list[int]:
    """A spread of bags from 1 to 10^5; the full search takes every bag to 5000."""
    large = [10_000, 30_000, 100_000]
    return search.pick([*range(1, 60), 100, 300, 1000, 3000, *large], [*range(1, 5001), *large])


def means(search: Search) -> np.ndarray:
    """Values of p from 10^-4 to 1/2, dense at both ends."""
    count = search.pick(12, 25)
    small = np.geomspace(1e-4, 0.3, count)
    return np.unique(np.concatenate([small, 0.5 - np.geomspace(1e-4, 0.2, count), [0.5]]))


@statement(
    "T3.2-eq",
    312,
    r"independent labels: EAdv = min{p, 1-p} - E min{alpha, 1-alpha}",
    chapter=CHAPTER,
    mutants=[{"extra": 1}],
)
def independent_equality(search: Search, extra: int = 0) -> Finding:
    """Theorem 3.2, the equality: all labellings against the formula, in fractions."""
    size, steps = search.pick((6, 10), (8, 24))
    grid = [Fraction(n, steps) for n in range(steps + 1)]
    searched = f"all 2^k labellings, k = 1 to {size}, p = 0, 1/{steps}, ..., 1, as fractions"
    for k, p in product(range(1, size + 1), grid):
        law = exact.binomial(k + extra, p)
        spread = sum(
            (w * Fraction(min(s, k + extra - s), k + extra) for s, w in enumerate(law)), Fraction(0)
        )
        formula = min(p, 1 - p) - spread
        truth = exact.additive_advantage([p] * k, exact.label_proportions, 0)
        if truth != formula:
            text = f"p = {p}, k = {k}: EAdv = {truth} but the formula gives {formula}."
            return Finding("false", text, searched)
        confirm(truth == exact.independent_advantage_fraction(p, k), "the closed form agrees")
    return Finding(
        "holds",
        "Equal as fractions in every case (slack 0); both equal the closed form "
        "p P(Z >= m) - (1-p) P(Z >= m+1), Z ~ Bin(k-1, p), m = floor(k/2), p <= 1/2.",
        searched,
    )


@statement(
    "T3.2-sqrt",
    324,
    r"EAdv <= sqrt(p(1-p)/k)",
    chapter=CHAPTER,
    mutants=[{"constant": 0.9}, {"power": 0.52}],
)
def independent_sqrt_bound(search: Search, constant: float = 1.0, power: float = 0.5) -> Finding:
    """Theorem 3.2, the first bound, for every p."""
    p = means(search)
    worst, late = (-np.inf, 0.0, 0), -np.inf
    for k in bag_sizes(search):
        ratio = np.exp(exact.log_independent_advantage(p, k)) * k**power
        ratio /= constant * np.sqrt(p * (1 - p))
        worst = max(worst, (float(ratio.max()), float(p[ratio.argmax()]), k))
        late = max(late, float(ratio.max())) if k >= 100 else late
    searched = f"{len(p)} values of p from 1e-4 to 1/2, bags of 1 to {bag_sizes(search)[-1]}"
    largest, at_p, at_k = worst
    if largest > 1 + 1e-9:
        text = f"EAdv is {largest:.4f} times the bound at p = {at_p:.4g}, k = {at_k}."
        return Finding("false", text, searched)
    return Finding(
        "holds",
        f"The largest ratio of EAdv to the bound is {largest:.6f}, at p = {at_p:.4g}, k = {at_k}, "
        f"where both sides are 1/2; from k = 100 on it is at most {late:.4f}, the limit at p = 1/2 "
        "being sqrt(2/pi) = 0.7979.",
        searched,
    )


@statement(
    "T3.2-exp",
    325,
    r"if |p - 1/2| >= beta then EAdv <= e^{-Omega(beta^2 k)}",
    chapter=CHAPTER,
    mutants=[{"rate": 2.5}],
)
def independent_gap_bound(search: Search, rate: float = 2.0) -> Finding:
    """Theorem 3.2, the second bound, with the constant 2 that Hoeffding's inequality supplies."""
    p = means(search)
    p = p[p < 0.5]
    gap = (0.5 - p) ** 2
    least, at = np.inf, (0.0, 0)
    for k in bag_sizes(search):
        rates = -exact.log_independent_advantage(p, k) / (gap * k)
        if rates.min() < least:
            least, at = float(rates.min()), (float(p[rates.argmin()]), k)
    searched = f"{len(p)} values of p from 1e-4 to 0.4999, bags of 1 to {bag_sizes(search)[-1]}"
    if least < rate:
        text = f"e^(-{rate} beta^2 k) fails at p = {at[0]:.5g}, k = {at[1]}: rate {least:.4f}."
        return Finding("false", text, searched)
    return Finding(
        "holds",
        f"EAdv <= e^(-2 beta^2 k) throughout; the smallest value of -ln(EAdv)/(beta^2 k) is "
        f"{least:.4f}, at p = {at[0]:.4g}, k = {at[1]}. It follows from EAdv <= P(alpha > 1/2) and "
        "Hoeffding, and 2 cannot be raised: the exact rate is -ln(1-4 beta^2)/2 = 2 beta^2 + ....",
        searched,
    )


@statement(
    "S3-nonneg",
    332,
    r"EAdv >= 0: E alpha = p and Jensen for the concave min{x, 1-x}",
    chapter=CHAPTER,
    mutants=[{"concave": False}],
)
def advantage_not_negative(search: Search, concave: bool = True) -> Finding:
    """Section 3.1: the remark after Theorem 3.2, its mean and its sign."""
    size, steps = search.pick((10, 10), (30, 20))
    searched = f"bags of 1 to {size}, p = 0, 1/{steps}, ..., 1, as fractions"
    smallest = Fraction(1)
    for k, n in product(range(1, size + 1), range(steps + 1)):
        p = Fraction(n, steps)
        law = exact.binomial(k, p)
        confirm(sum(w * Fraction(s, k) for s, w in enumerate(law)) == p, "E alpha = p")
        pick = min if concave else max
        mean = sum(w * pick(Fraction(s, k), 1 - Fraction(s, k)) for s, w in enumerate(law))
        smallest = min(smallest, pick(p, 1 - p) - mean)
    if smallest < 0:
        return Finding("false", f"The difference reaches {smallest}.", searched)
    return Finding(
        "holds",
        "E alpha = p in every case and the smallest value of min{p,1-p} - E min{alpha,1-alpha} is "
        f"{smallest}, at p = 0 and p = 1.",
        searched,
    )


@statement(
    "T3.3-spec",
    350,
    r"eta = p: the first term of Theorem 3.3 is sqrt(p(1-p)/k), the second (p(1-p))^{1/4}/k",
    chapter=CHAPTER,
    mutants=[{"exponent": Fraction(1, 2)}],
)
def general_bound_at_constant_eta(search: Search, exponent: Fraction = Fraction(1, 4)) -> Finding:
    """The specialisation printed after Theorem 3.3, and that the second term is of lower order."""
    import sympy

    variance, k = sympy.symbols("v k", positive=True)
    power = sympy.Rational(exponent.numerator, exponent.denominator)
    first = variance**power * variance ** sympy.Rational(1, 4) / sympy.sqrt(k)
    second = variance**power / k
    searched = "all p in (0, 1) and k, symbolically, with mu = p(1-p) = v"
    wanted = (sympy.sqrt(variance / k), variance ** sympy.Rational(1, 4) / k)
    if any(sympy.simplify(a / b - 1) != 0 for a, b in zip((first, second), wanted, strict=True)):
        return Finding("false", f"The terms are {first} and {second}.", searched)
    confirm(sympy.limit(second / first, k, sympy.oo) == 0, "the second term is of lower order")
    return Finding(
        "holds",
        "With eta constant mu = p(1-p) = v, so v^(1/4) v^(1/4)/sqrt(k) = sqrt(v/k) and the second "
        "term is v^(1/4)/k; their ratio v^(-1/4)/sqrt(k) tends to 0 as k grows with p fixed.",
        searched,
    )
