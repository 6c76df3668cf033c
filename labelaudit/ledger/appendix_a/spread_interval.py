"""The interval [a, b] of Lemma A.3's proof: what is left outside, and the display it leads to."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
from scipy import stats

from labelaudit.ledger import exact
from labelaudit.ledger.appendix_a.spread import sum_bound
from labelaudit.ledger.appendix_a.tools import binomial_spread, c_k, interval
from labelaudit.ledger.rows import Finding, Search, confirm, statement

CHAPTER = "06_proof_workshop"


@statement(
    "LA.3-disp8",
    845,
    "E sum_s |P(Z_k=s) - P(Z_k=s-1)| <= 1/k + sqrt(2 sqrt(k) c_k) "
    "sqrt(A^k + pi/(4Bk)^(3/2) + pi/(eBk^2)), B = 2 mu",
    chapter=CHAPTER,
    mutants=[{"inner": 4}],
)
def last_display(search: Search, inner: int = 8) -> Finding:
    """Proof of Lemma A.3: with B = 2 mu this says more than the lemma, and too much."""
    sizes = [*range(1, search.pick(1001, 3001)), 10_000, 100_000]
    excess = {k: float(binomial_spread(k, 0.5) / sum_bound(k, 0.25, 0.25, inner)) for k in sizes}
    failing = [k for k in sizes if excess[k] > 1]
    searched = f"eta = 1/2, k up to {sizes[-3]}, 10^4 and 10^5; k = 1000 with exact fractions"
    if not failing:
        return Finding("holds", f"The largest ratio is {max(excess.values()):.4g}.", searched)
    size, quarter = 1000, interval.mpf(1) / 4
    left = Fraction(2 * comb(size, size // 2), 2**size)
    printed = sum_bound(interval.mpf(size), quarter, quarter, interval.mpf(inner), interval)
    lemma = sum_bound(interval.mpf(size), quarter, quarter, interval.mpf(4), interval)
    sum_enclosure = interval.mpf(left.numerator) / left.denominator
    confirm(sum_enclosure > printed, "the counterexample at eta = 1/2, k = 1000")
    confirm(sum_enclosure < lemma, "Lemma A.3 at the same point")
    return Finding(
        "false",
        f"eta = 1/2, k = 1000: the sum is 2 C(1000,500)/2^1000 = {float(left):.5f}, the right side "
        f"{float(printed.mid):.5f}. At eta = 1/2 it fails first at k = {failing[0]} and still at "
        f"k = {failing[-1]}: the factor 2 lost in |g_u|^2 (LA.4-gu2) and the short c_k "
        "(LA.3-tail) both lower it. The display before it, with free a and b, rests on LA.3-split "
        "and LA.3-CS as well.",
        searched,
        mended="with mu in place of B = 2 mu, that is (4 mu k)^(3/2) and e mu k^2, which is Lemma "
        f"A.3 as stated (right side {float(lemma.mid):.5f} there; true for every law, see LA.3)",
    )


@statement(
    "LA.3-b1",
    849,
    "b = min{kp + sqrt(k) c_k, 1}",
    chapter=CHAPTER,
    mutants=[{"cap": 100}],
)
def upper_end(search: Search, cap: int = 1) -> Finding:
    """Proof of Lemma A.3: the count runs to k, so the cap must be k."""
    k, p = 100, 0.5
    reach = np.sqrt(k) * c_k(k, p * (1 - p))
    low, high = max(k * p - reach, 0), min(k * p + reach, cap)
    confirm(k * p - reach <= k * p <= min(k * p + reach, k), "the mended interval holds the mean")
    empty = low > high
    return Finding(
        "misprint" if empty else "holds",
        f"At k = {k}, p = 1/2 the interval is [{low:.2f}, {high:.2f}]"
        + (": it is empty and its complement has probability 1." if empty else "."),
        "k = 100, p = 1/2",
        mended="b = min{kp + sqrt(k) c_k, k}" if empty else None,
    )


def bernstein_reach(k: Any, variance: Any) -> Any:
    """The half width at which Bernstein's inequality gives two tails of 1/(2k) together."""
    logarithm = np.log(4 * k)
    return logarithm / 3 + np.sqrt(logarithm**2 / 9 + 2 * k * variance * logarithm)


def two_tails(k: int, p: Any, reach: Any) -> Any:
    """P(|Bin(k, p) - kp| > reach)."""
    low, high = np.ceil(k * p - reach) - 1, np.floor(k * p + reach)
    return stats.binom.cdf(low, k, p) + stats.binom.sf(high, k, p)


@statement(
    "LA.3-tail",
    849,
    "Q_k([a,b]^c) = 1/(2k) by Bernstein, for a, b = kp -+ sqrt(k) c_k",
    chapter=CHAPTER,
    mutants=[{"scale": 3.0}],
)
def bernstein_tail(search: Search, scale: float = 1.0) -> Finding:
    """Proof of Lemma A.3: the printed c_k is shorter than Bernstein's inequality needs."""
    grid, ratio = np.linspace(0.001, 0.5, 500), {}
    for k in (*range(1, 40), 100, 1000, *search.pick((10_000,), (10_000, 100_000, 1_000_000))):
        variance = grid * (1 - grid)
        mended = 2 * k * two_tails(k, grid, bernstein_reach(k, variance))
        confirm(mended.max() <= 1, "the mended c_k leaves at most 1/(2k)")
        reach = scale * np.sqrt(k) * c_k(k, variance)
        ratio[k] = float((2 * k * two_tails(k, grid, reach)).max())
    searched = f"p = j/1000 up to 1/2, k = 1..39 and powers of ten up to {k}"
    if max(ratio.values()) <= 1:
        return Finding("holds", f"2k Q_k is at most {max(ratio.values()):.4g}.", searched)
    size, p = 10, Fraction(9, 20)
    reach = interval.sqrt(interval.mpf(size)) * c_k(
        interval.mpf(size), interval.mpf(99) / 400, interval
    )
    confirm(4.5 - reach > 1 and 4.5 + reach < 8, "[a, b] holds no counts but 2 to 7")
    tail = 1 - sum(exact.binomial(size, p)[2:8], Fraction(0))
    confirm(tail > Fraction(1, 2 * size), "the counterexample at k = 10")
    return Finding(
        "false",
        f"k = 10, p = 9/20: sqrt(k) c_k = {float(reach.mid):.3f}, so [a,b] holds the counts 2 to "
        f"7, and Q_k outside is {float(tail):.5f} (exact fraction) > 1/20. The excess grows: 2k "
        f"Q_k reaches {ratio[1000]:.0f} at k = 1000 and {ratio[k]:.0f} at k = {k}. (The sign "
        "should be <=, and b is read as in LA.3-b1.)",
        searched,
        mended="Q_k([a,b]^c) <= 1/(2k) with sqrt(k) c_k = L/3 + sqrt(L^2/9 + 2kp(1-p)L), "
        "L = log(4k); the order of c_k is unchanged",
    )
