"""Ledger rows for the tail of the multiplicative advantage (paper lines 418 to 435)."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import ceil, exp, inf, log

import numpy as np

from labelaudit.ledger import exact
from labelaudit.ledger.exact import HALF
from labelaudit.ledger.rows import Finding, Search, confirm, statement

CHAPTER = "05_multiplicative_advantage"


def outside(p: float, k: int, shift: float) -> float:
    """P(|I| >= shift) for LLP with independent labels, where I(z) = logit z - logit p."""
    from scipy import special, stats

    low = np.floor(k * special.expit(special.logit(p) - shift) + 1e-9)
    high = np.ceil(k * special.expit(special.logit(p) + shift) - 1e-9)
    return float(stats.binom.cdf(low, k, p) + stats.binom.sf(high - 1, k, p))


def worst_failure(search: Search, c1: float, c2: float, deltas: list[tuple[float, float]]) -> float:
    """Largest P(|I| >= c2 sqrt(L/(p(1-p)k)))/delta over the search, for pairs (delta, L)."""
    worst = 0.0
    for p in search.pick((1e-2, 0.2, 0.5), (1e-3, 1e-2, 0.05, 0.2, 0.35, 0.5)):
        for (delta, log_term), factor in product(deltas, search.pick((1, 3), (1, 1.5, 4, 30))):
            k = ceil(factor * c1 * log_term / (p * (1 - p)))
            threshold = c2 * (log_term / (p * (1 - p) * k)) ** 0.5
            worst = max(worst, outside(p, k, threshold) / delta)
    return worst


@statement(
    "T3.7",
    423,
    r"exist c1, c2: k >= c1 ln(1/delta)/(p(1-p)) implies "
    r"P(|I| > c2 sqrt(ln(1/delta)/(p(1-p)k))) <= delta",
    chapter=CHAPTER,
    mutants=[{"largest_delta": 0.5}],
)
def tail_of_multiplicative(search: Search, largest_delta: float = 1.0) -> Finding:
    """Theorem 3.7: fails for delta near 1 whatever the constants, holds for delta <= 1/2."""
    searched = (
        "c1 up to 1e9 at k = 1, p = 1/2; the mended forms for p from 1e-3 to 1/2, delta from 1e-12 "
        "to 1/2 (or 1), k from the smallest allowed to 30 times that"
    )
    deltas = search.pick((1e-6, 0.1, 0.5), (1e-12, 1e-6, 1e-3, 0.05, 0.2, 0.5))
    worst = worst_failure(search, 64, 4.34, [(delta, log(1 / delta)) for delta in deltas])
    confirm(worst <= 1, "c1 = 64, c2 = 4.34 work for delta <= 1/2")
    wider = worst_failure(search, 32, 3.07, [(d, log(2 / d)) for d in (*deltas, 0.9, 0.999, 1.0)])
    confirm(wider <= 1, "c1 = 32, c2 = 3.07 work with ln(2/delta) for delta <= 1")
    alone = exact.multiplicative_advantage([HALF], exact.label_proportions, 0)
    confirm(all(abs(shift) == inf for shift in alone.values()), "a bag of one has |I| infinite")
    deltas_near_one = [exp(-1 / (4 * c1)) for c1 in (1.0, 32.0, 1e3, 1e6, 1e9)]
    refuted = [delta for delta in deltas_near_one if delta <= largest_delta and delta < 1]
    if not refuted:
        return Finding(
            "holds", f"With c1 = 64, c2 = 4.34 the largest P/delta is {worst:.3g}.", searched
        )
    return Finding(
        "false",
        "delta is not restricted, and near 1 no constants work. Given c1 and c2 take p = 1/2, "
        "delta = exp(-1/(4 c1)) < 1 and k = 1, which meets k >= c1 ln(1/delta)/(p(1-p)) = 1: a bag "
        "of one always has |I| infinite, so the probability is 1 > delta. The cause is Bernstein's "
        "inequality on two sides with ln(1/delta) where ln(2/delta) belongs.",
        searched,
        "For delta in (0, 1/2] it holds with c1 = 64 and c2 = 4.34 (largest P/delta seen "
        f"{worst:.2g}); for delta in (0, 1] with ln(2/delta) in place of ln(1/delta), c1 = 32 and "
        "c2 = 3.07. The second form has a proof that gives 2.13, and the first follows from it: "
        "ln(2/delta) <= 2 ln(1/delta) there, and 2.13 sqrt(2) < 4.34.",
    )


@statement(
    "T3.7-union",
    430,
    r"delta = delta' k/m covers all bags; bags must be of size about log(n)/(p(1-p))",
    chapter=CHAPTER,
    mutants=[{"scale": 0.3}],
)
def union_over_bags(search: Search, scale: float = 1.0) -> Finding:
    """The remark after Theorem 3.7, through n(p^k + (1-p)^k), the expected bags of equal labels."""
    grid = np.concatenate([np.geomspace(1e-4, 0.45, search.pick(30, 300)), [0.5]])
    rate = -np.log1p(-grid) / (grid * (1 - grid))
    counts = 10.0 ** np.arange(2, search.pick(10, 40))
    size = scale * np.log(counts)[:, None] / (grid * (1 - grid))
    expected = counts[:, None] * (np.exp(size * np.log1p(-grid)) + np.exp(size * np.log(grid)))
    searched = f"p from 1e-4 to 1/2, n from 100 to {counts[-1]:.0g} bags"
    confirm(rate.max() <= 4 * log(2) + 1e-9, "-ln(1-p) <= 4 ln(2) p(1-p)")
    if not (np.diff(expected, axis=0) < 0).all() or expected.max() > 2:
        text = (
            f"With k = {scale} log(n)/(p(1-p)) the expected number grows to {expected.max():.3g}."
        )
        return Finding("false", text, searched)
    return Finding(
        "holds",
        "n = m/k bags with delta = delta'/n each add up to delta', and all examples of a bag share "
        "one I. For bags of equal labels, n(p^k + (1-p)^k) in expectation, k = log(n)/(p(1-p)) "
        "suffices for every p, since -ln(1-p)/(p(1-p)) lies in "
        f"[{rate.min():.4f}, {rate.max():.4f}], and less than 1/(4 ln 2) = 0.36 of it leaves at "
        "least one on average.",
        searched,
    )


@statement(
    "S3.3-TPR",
    435,
    r"multiplicative advantage bounds TPR/FPR of the Bayes test; additive advantage measures "
    r"TPR - FPR",
    chapter=CHAPTER,
    mutants=[{"weighted": True}],
)
def rates_of_the_bayes_test(search: Search, weighted: bool = False) -> Finding:
    """Section 3.3: the ratio half is right; the difference is weighted by the prior."""
    tables: list[tuple[list[Fraction], list[Fraction]]] = [
        ([Fraction(1, 4), Fraction(3, 4)], [Fraction(3, 4), Fraction(1, 4)]),
        ([Fraction(1, 6), Fraction(1, 3), HALF], [HALF, Fraction(3, 8), Fraction(1, 8)]),
    ]
    gaps = []
    for (given_one, given_zero), prior in product(tables, (Fraction(1, 5), Fraction(2, 5), HALF)):
        pairs = list(zip(given_one, given_zero, strict=True))
        guessed = [(a, b) for a, b in pairs if prior * a > (1 - prior) * b]
        true_rate = sum((a for a, _ in guessed), Fraction(0))
        false_rate = sum((b for _, b in guessed), Fraction(0))
        advantage = prior - sum((min(prior * a, (1 - prior) * b) for a, b in pairs), Fraction(0))
        ceiling = max(a / b for a, b in pairs)
        confirm(true_rate <= ceiling * false_rate, "TPR <= exp(max I) FPR")
        balance = prior * true_rate - (1 - prior) * false_rate
        confirm(advantage == balance, "additive advantage = eta TPR - (1-eta) FPR, eta <= 1/2")
        gaps.append((balance if weighted else true_rate - false_rate) - advantage)
    searched = "a two-point and a three-point mechanism, eta = 1/5, 2/5, 1/2, in fractions"
    if not any(gaps):
        return Finding("holds", "The difference equals the advantage in every case.", searched)
    return Finding(
        "false",
        "The first half is right: TPR <= exp(max_z I(z)) FPR. The second is not: for RR with "
        "pi = 1/4 and eta = 1/2, TPR - FPR = 3/4 - 1/4 = 1/2 but the additive advantage is 1/4; "
        f"the two differ by up to {max(gaps)} here.",
        searched,
        "For eta <= 1/2 the additive advantage is eta TPR - (1-eta) FPR (for eta > 1/2 swap the "
        "labels); it is half of TPR - FPR at eta = 1/2.",
    )
