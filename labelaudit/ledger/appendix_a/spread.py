"""Lemma A.3, the sum of |P(Z_k = s) - P(Z_k = s - 1)|, and its proof up to the choice of [a, b]."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from labelaudit.ledger import exact
from labelaudit.ledger.appendix_a.tools import (
    BESSEL_CONSTANT,
    SMALL_LAWS,
    Smallest,
    bessel_constant_is_safe,
    bessel_spread,
    binomial_spread,
    c_k,
    differences,
    small_bags,
    spread,
    thinned_spread,
)
from labelaudit.ledger.exact import HALF
from labelaudit.ledger.rows import Finding, Search, confirm, statement

CHAPTER = "06_proof_workshop"
FAIR_PAIR = (HALF, HALF)


def sum_bound(k: Any, mu: Any, variance: Any, inner: Any = 4, math: Any = np) -> Any:
    """The right side of Lemma A.3, where `inner` is 4; its proof ends with 8 and half the tail."""
    volume = inner * mu * k
    tail = 4 * math.pi / (inner * math.e * mu * k**2)
    square = (1 - 2 * mu) ** k + math.pi / (volume * math.sqrt(volume)) + tail
    return 1 / k + math.sqrt(2 * math.sqrt(k) * c_k(k, variance, math) * square)


def known_sums(search: Search) -> Iterator[tuple[str, int, Any, Any, Any]]:
    """Laws with a closed form: (law, k, mu, p(1-p), expected sum of the absolute differences)."""
    priors = np.concatenate([np.geomspace(1e-4, 0.5, 100), [0.3, 0.4]])
    for k in search.pick((1, 10, 300, 3000), (1, 2, 5, 10, 100, 300, 1000, 3000, 10_000, 100_000)):
        mu = priors * (1 - priors)
        yield "constant eta", k, mu, mu, binomial_spread(k, priors)
        weight = np.geomspace(1e-3, 1, 20)
        sums = np.array([thinned_spread(k, 0.5, w) for w in weight])
        yield "eta in {0, 1/2}", k, weight / 4, weight / 2 * (1 - weight / 2), sums


@statement(
    "LA.3",
    798,
    "E sum_s |P(Z_k=s) - P(Z_k=s-1)| <= 1/k + k^(1/4) sqrt(2c_k) "
    "sqrt(A^k + pi/(4 mu k)^(3/2) + pi/(e mu k^2)), A = 1 - 2 mu",
    chapter=CHAPTER,
    mutants=[{"constant": 0.5}],
)
def sum_lemma(search: Search, constant: float = 1.0) -> Finding:
    """Lemma A.3: exact sums, and the Bessel form that covers every law at once."""
    to_exact, to_bessel = Smallest(), Smallest()
    for law, k, mu, variance, total in known_sums(search):
        places = [f"k = {k}, mu = {value:.4g}, {law}" for value in mu]
        confirm((total <= bessel_spread(k, mu) * (1 + 1e-9)).all(), "sum <= 2 e^(-k mu) I0(k mu)")
        to_exact.see(constant * sum_bound(k, mu, variance) / total - 1, places)
    mus = np.geomspace(1e-12, 0.25, search.pick(300, 2000))
    for k in np.unique(np.round(np.geomspace(1, 1e9, search.pick(100, 600)))):
        ratio = constant * sum_bound(k, mus, mus) / bessel_spread(k, mus)
        to_bessel.see(ratio - 1, [f"k = {k:.0f}, mu = {value:.4g}" for value in mus])
    least = np.sqrt(2 * np.pi) / 4**0.75 * (np.log(8 * 6) / 3) ** 0.25
    confirm(least > BESSEL_CONSTANT and bessel_constant_is_safe(), "the proof for k >= 6")
    return Finding(
        "holds" if min(to_exact.value, to_bessel.value) >= 0 else "false",
        f"bound/sum - 1 is smallest, {to_exact}; against 2 e^(-k mu) I0(k mu), which is at least "
        f"the sum for every law, {to_bessel}. For k >= 6 it follows for all laws: c_k >= "
        f"sqrt(mu log(8k)/3) makes the bound at least {least:.4f}/sqrt(k mu), and the Bessel form "
        f"is at most {BESSEL_CONSTANT}/sqrt(k mu). So the lemma is true, though its printed proof "
        "does not show it: see LA.3-split, LA.3-CS, LA.3-tail and LA.3-disp8.",
        f"constant eta from 1e-4 to 1/2 and eta in {{0, 1/2}} with k up to "
        f"{search.pick(3000, 100_000)}, in closed form; every law with mu >= 1e-12, k up to 1e9",
    )


@statement(
    "LA.3-disp",
    805,
    "(4 E[eta_1(1-eta)_1)k)^(3/2) in the display of Lemma A.3",
    chapter=CHAPTER,
    mutants=[{"printed": "(4 E[eta_1(1-eta_1)] k)"}],
)
def display_of_the_lemma(search: Search, printed: str = "(4 E[eta_1(1-eta)_1)k)") -> Finding:
    """Lemma A.3: the brackets of the second term do not match."""
    counts = {mark: printed.count(mark) for mark in "()[]"}
    matched = counts["("] == counts[")"] and counts["["] == counts["]"]
    return Finding(
        "holds" if matched else "misprint",
        f"In {printed} there are {counts['(']} '(' against {counts[')']} ')' and {counts['[']} '[' "
        f"against {counts[']']} ']'"
        + ("." if matched else "; the subscript 1 has moved outside the bracket."),
        "the printed display",
        mended=None if matched else "(4 E[eta_1(1-eta_1)] k)^(3/2), the form checked in LA.3",
    )


def outside(pmf: list[Fraction], low: int, high: int) -> Fraction:
    """P(Z outside [low, high])."""
    return 1 - sum(pmf[low : high + 1], Fraction(0))


@statement(
    "LA.3-split",
    814,
    "sum over s not in [a,b] of P(Z_k=s) + P(Z_k=s-1) is at most 2 P(Z_k not in [a,b])",
    chapter=CHAPTER,
    mutants=[{"edge": 1}],
)
def split_of_the_sum(search: Search, edge: int = 0) -> Finding:
    """Proof of Lemma A.3: shifting the index moves mass across the ends of the interval."""
    slack, cases = Smallest(), 0
    for k in search.pick((2, 3), (2, 3, 4, 5)):
        for eta, low in product(small_bags(k, 4), range(1, k)):
            pmf = exact.poisson_binomial(eta)
            for high in range(low, k):
                left = outside(pmf, low, high) + outside(pmf, low - 1, high - 1)
                twice = 2 * outside(pmf, low, high)
                confirm(left == twice + pmf[high] - pmf[low - 1], "the exact form of the sum")
                confirm(left <= 2 * outside(pmf, low, high - 1), "the mended bound")
                gap = twice + edge * pmf[high] - left
                bag = ", ".join(map(str, eta))
                slack.see([gap], [f"eta = ({bag}) and [a, b] = [{low}, {high}]"])
                cases += 1
    pmf = exact.poisson_binomial(FAIR_PAIR)
    left, right = outside(pmf, 1, 1) + outside(pmf, 0, 0), 2 * outside(pmf, 1, 1)
    sure = exact.poisson_binomial((Fraction(0), Fraction(1)))
    confirm(spread(sure) == 2 and outside(sure, 1, 1) == 0, "a sure count of 1 breaks the chain")
    return Finding(
        "false" if slack.value < 0 else "holds",
        f"Two fair coins (k = 2) and a = b = 1: the left side is {left}, the right side {right}. "
        f"The largest excess is {-slack.value} for {slack.place}, a sure count: there the whole "
        "chain 2 <= 1 + 0 fails too."
        if slack.value < 0
        else f"The smallest slack is {slack}.",
        f"{cases} pairs of a bag and an interval with 0 < a <= b < k <= {k}, priors j/4, exact",
        mended="the sum equals 2 P(Z_k not in [a,b]) + P(Z_k=b) - P(Z_k=a-1) for integers a <= b, "
        "so it is at most 2 P(Z_k not in [a, b-1]): a slightly wider interval mends the proof"
        if slack.value < 0
        else None,
    )


@statement(
    "LA.3-linear",
    824,
    "E_x P(Z_k not in [a,b] | x) = Q_k([a,b]^c), Q_k binomial(k, p)",
    chapter=CHAPTER,
    mutants=[{"shift": Fraction(1, 100)}],
)
def binomial_on_average(search: Search, shift: Fraction = Fraction(0)) -> Finding:
    """Proof of Lemma A.3: the count's law is linear in each prior, and priors are independent."""
    worst = Smallest(Fraction(1))
    for (name, law), k in product(SMALL_LAWS.items(), range(1, search.pick(5, 8))):
        mean = [Fraction(0)] * (k + 1)
        for eta, chance in exact.bags(law, k):
            for s, mass in enumerate(exact.poisson_binomial(eta)):
                mean[s] += chance * mass
        binomial = exact.binomial(k, exact.mean_and_mu(law)[0] + shift)
        gap = max(abs(a - b) for a, b in zip(mean, binomial, strict=True))
        worst.see([-gap], [f"k = {k}, {name}"])
    return Finding(
        "holds" if worst.value == 0 else "false",
        "Every point probability agrees as a fraction, hence every interval."
        if worst.value == 0
        else f"The largest difference of two point probabilities: {worst}.",
        f"{len(SMALL_LAWS)} finite laws for eta, k up to {k}, exact",
    )


@statement(
    "LA.3-CS",
    828,
    "sum over [a,b] of |P(Z_k=s) - P(Z_k=s-1)| <= sqrt((b-a) sum over [a,b] of its square)",
    chapter=CHAPTER,
    mutants=[{"extra": 1}],
)
def cauchy_schwarz(search: Search, extra: int = 0) -> Finding:
    """Proof of Lemma A.3: an interval [a, b] of integers has b - a + 1 members, not b - a."""
    slack, cases = Smallest(), 0
    for k in search.pick((2, 3), (2, 3, 4, 5)):
        for eta, low in product(small_bags(k, 4), range(1, k)):
            steps = differences(exact.poisson_binomial(eta))
            for high in range(low, k):
                inside = steps[low : high + 1]
                square = (high - low + extra) * sum((d**2 for d in inside), Fraction(0))
                confirm(
                    sum(map(abs, inside)) ** 2 <= len(inside) * sum(d**2 for d in inside), "mended"
                )
                slack.see([square - sum(map(abs, inside)) ** 2], [f"{eta}, [{low}, {high}]"])
                cases += 1
    step = differences(exact.poisson_binomial(FAIR_PAIR))[1]
    return Finding(
        "false" if slack.value < 0 else "holds",
        f"Two fair coins (k = 2) and a = b = 1: the left side is {abs(step)}, the right side 0."
        if slack.value < 0
        else f"The smallest slack of the squares is {float(slack.value):.4g}.",
        f"{cases} pairs of a bag and an interval with 0 < a <= b < k <= {k}, priors j/4, exact",
        mended="b - a + 1 for b - a: the number of integers in [a, b] is at most b - a + 1"
        if slack.value < 0
        else None,
    )


@statement(
    "LA.3-Jensen",
    835,
    "E sqrt(X) <= sqrt(E X)",
    chapter=CHAPTER,
    mutants=[{"power": 2.0}],
)
def jensen(search: Search, power: float = 0.5) -> Finding:
    """Proof of Lemma A.3: the square root is concave; X is the sum of squared differences."""
    slack = Smallest()
    for (name, law), k in product(SMALL_LAWS.items(), range(1, search.pick(5, 8))):
        chances, squares = [], []
        for eta, chance in exact.bags(law, k):
            steps = differences(exact.poisson_binomial(eta))
            chances.append(float(chance))
            squares.append(float(sum(d**2 for d in steps)))
        mean, weights = np.dot(chances, squares), np.array(chances)
        gap = mean**power - weights @ np.array(squares) ** power
        slack.see([gap if abs(gap) > 1e-12 else 0.0], [f"k = {k}, {name}"])
    return Finding(
        "holds" if slack.value >= 0 else "false",
        f"The smallest slack is {slack}, equality where X does not vary. It is Jensen for the "
        "concave square root.",
        f"{len(SMALL_LAWS)} finite laws for eta, k up to {k}",
    )
