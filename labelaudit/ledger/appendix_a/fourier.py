"""Lemmas A.4 and A.5: the sum of squared differences by a discrete Fourier transform."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from labelaudit.ledger import exact
from labelaudit.ledger.appendix_a.tools import (
    SMALL_LAWS,
    Smallest,
    differences,
    interval,
    small_bags,
)
from labelaudit.ledger.rows import Finding, Search, confirm, statement

CHAPTER = "06_proof_workshop"


def squares_bound(k: Any, mu: Any, inner: int = 8, math: Any = np) -> Any:
    """The right side of Lemma A.4, where `inner` is 8; the bracket of Lemma A.3 has 4."""
    volume = inner * mu * k
    tail = 4 * math.pi / (inner * math.e * mu * k**2)
    return (1 - 2 * mu) ** k + math.pi / (volume * math.sqrt(volume)) + tail


def expected_squares(k: int, mu: NDArray[np.float64]) -> NDArray[np.float64]:
    """E sum_s (P(Z_k=s) - P(Z_k=s-1))^2, which depends on the law of eta through mu alone."""
    cosine = np.cos(2 * np.pi * np.arange(1, k + 2) / (k + 2))
    base = 1 - 2 * mu[:, None] * (1 - cosine)
    return np.asarray(2 / (k + 2) * ((1 - cosine) * base**k).sum(axis=1))


def first_failure_at_half() -> int:
    """The k from which Lemma A.4 fails for eta = 1/2, up to 10^7."""
    k = np.unique(np.concatenate([np.arange(1.0, 30_000), np.round(np.geomspace(3e4, 1e7, 2000))]))
    log_left = np.log(2 / (k + 1)) + special.gammaln(2 * k + 1) - 2 * special.gammaln(k + 1)
    holds = log_left - k * np.log(4) <= np.log(squares_bound(k, 0.25))
    return int(k[holds][-1]) + 1


@statement(
    "LA.4",
    857,
    "E sum_s (P(Z_k=s) - P(Z_k=s-1))^2 <= A^k + pi/(8 mu k)^(3/2) + pi/(2e mu k^2), A = 1 - 2 mu",
    chapter=CHAPTER,
    mutants=[{"factor": 2}],
)
def squares_lemma(search: Search, factor: int = 1) -> Finding:
    """Lemma A.4: a counterexample in exact arithmetic, and the smallest k that has one."""
    sizes = [*range(1, search.pick(260, 400)), 1000, *search.pick((), (10_000, 100_000))]
    first, largest = 0, Smallest()
    for k in sizes:
        mu = np.geomspace(1e-3 / k, 0.25, 60 if k >= 10_000 else search.pick(120, 300))
        left = expected_squares(k, mu)
        confirm((left <= squares_bound(k, mu, inner=4)).all(), "the bracket of Lemma A.3")
        ratio = left / squares_bound(k, mu)
        largest.see(-ratio, [f"k = {k}, mu = {value:.4g}" for value in mu])
        first = first or k * int(ratio.max() > factor)
    searched = f"mu from 1e-3/k to 1/4, k up to {sizes[-1]}; the sum depends on eta through mu only"
    if not first:
        return Finding(
            "holds", f"The ratio of the sides is at most {-largest.value:.4g}.", searched
        )
    confirm(-largest.value <= 2, "twice the right side is enough")
    k, p, mu = 191, Fraction(1, 44), interval.mpf(43) / 1936
    sharp = sum((d**2 for d in differences(exact.binomial(k, p))), Fraction(0))
    right = squares_bound(interval.mpf(k), mu, math=interval)
    confirm(interval.mpf(sharp.numerator) / sharp.denominator > right, "the counterexample")
    return Finding(
        "false",
        f"Constant eta = 1/44, k = 191: the left side is {float(sharp):.6f} (exact fraction), the "
        f"right side {float(right.mid):.6f}. The smallest k found to fail is {first}; the excess "
        f"is at most {-largest.value - 1:.1%} here. At eta = 1/2, where the left side is "
        f"2 C(2k,k)/((k+1) 4^k), it fails from k = {first_failure_at_half()} on: its main term is "
        "2/sqrt(pi) k^(-3/2), the right side's pi/2^(3/2) k^(-3/2). The cause is the factor 2 lost "
        "in LA.4-gu2.",
        searched,
        mended="twice the right side; or the bracket of Lemma A.3, A^k + pi/(4 mu k)^(3/2) + "
        "pi/(e mu k^2), which is never exceeded, so that Lemma A.3 is not affected",
    )


@statement(
    "LA.4-dft",
    866,
    "the discrete Fourier transform of length k+2 is unitary, so |p|^2 = |g|^2",
    chapter=CHAPTER,
    mutants=[{"length": 1}],
)
def parseval(search: Search, length: int = 2) -> Finding:
    """Proof of Lemma A.4: the transform as a matrix, and Parseval on differences of pmfs."""
    worst = 0.0
    for k in search.pick((1, 2, 3), (1, 2, 3, 4, 5, 6)):
        size = k + 2
        angles = np.outer(np.arange(size), np.arange(size)) / (k + length)
        transform = np.exp(2j * np.pi * angles) / np.sqrt(size)
        off_unitary = np.abs(transform @ transform.conj().T - np.eye(size)).max()
        for eta in small_bags(k, 4):
            steps = np.array([float(d) for d in differences(exact.poisson_binomial(eta))])
            spectrum = transform @ steps
            gap = abs((steps**2).sum() - (np.abs(spectrum) ** 2).sum())
            worst = max(worst, off_unitary, gap, abs(spectrum[0]))
    return Finding(
        "holds" if worst < 1e-12 else "false",
        f"The largest deviation is {worst:.2g}. The printed list of coordinates starts at g_1; "
        "g_0 = 0 because the differences sum to 0, so nothing is lost.",
        f"k up to {k}, priors on the grid j/4",
    )


def transform_square(steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """|g_u|^2 for u = 0, ..., k+1."""
    return np.asarray(np.abs(np.fft.fft(steps)) ** 2 / len(steps))


@statement(
    "LA.4-gu2",
    884,
    "|g_u|^2 = (1/(k+2)) (1 - cos t) prod_j ((1-eta_j)^2 + eta_j^2 + 2 eta_j(1-eta_j) cos t)",
    chapter=CHAPTER,
    mutants=[{"factor": 2}],
)
def size_of_transform(search: Search, factor: int = 1) -> Finding:
    """Proof of Lemma A.4: |1 - e^{it}|^2 is 2 - 2 cos t."""
    worst = mended = 0.0
    for k in search.pick((1, 2, 3), (1, 2, 3, 4, 5, 6)):
        cosine = np.cos(2 * np.pi * np.arange(k + 2) / (k + 2))
        for bag in small_bags(k, 4):
            eta = np.array([[float(value)] for value in bag])
            factors = (1 - eta) ** 2 + eta**2 + 2 * eta * (1 - eta) * cosine
            right = (1 - cosine) * factors.prod(axis=0) / (k + 2)
            steps = np.array([float(d) for d in differences(exact.poisson_binomial(bag))])
            worst = max(worst, np.abs(transform_square(steps) - factor * right).max())
            mended = max(mended, np.abs(transform_square(steps) - 2 * right).max())
    confirm(mended < 1e-12, "mended by the factor 2")
    searched = f"k up to {k}, priors on the grid j/4, every u"
    if worst < 1e-12:
        return Finding("holds", f"The largest deviation is {worst:.2g}.", searched)
    steps_at_zero = differences([Fraction(1), Fraction(0), Fraction(0)])
    alternating = sum(((-1) ** s * d for s, d in enumerate(steps_at_zero)), Fraction(0))
    return Finding(
        "false",
        "k = 2, u = 2 (t = pi), eta = 0: the differences are 1, -1, 0, 0, so g_2 = (1 + 1)/2 and "
        f"|g_2|^2 = {alternating**2 / 4}; the printed right side is (1/4)(1+1) = 1/2.",
        searched,
        mended="|g_u|^2 = (2/(k+2)) (1 - cos t) prod_j (...), since |1 - e^(it)|^2 = 2 - 2 cos t",
    )


@statement(
    "LA.4-eq",
    890,
    "E sum_s (P(Z_k=s) - P(Z_k=s-1))^2 = (1/(k+2)) sum_u (1 - cos t_u) (A + 2 mu cos t_u)^k",
    chapter=CHAPTER,
    mutants=[{"factor": 2}],
)
def squares_as_cosines(search: Search, factor: int = 1) -> Finding:
    """Proof of Lemma A.4: the same missing factor 2, now in expectation over the features."""
    worst = mended = 0.0
    for (_, law), k in product(SMALL_LAWS.items(), search.pick((1, 2, 3), (1, 2, 3, 4, 5, 6, 7))):
        left = Fraction(0)
        for eta, chance in exact.bags(law, k):
            left += chance * sum(d**2 for d in differences(exact.poisson_binomial(eta)))
        mu = np.array([float(exact.mean_and_mu(law)[1])])
        twice = expected_squares(k, mu)[0]
        worst = max(worst, abs(float(left) - factor * twice / 2))
        mended = max(mended, abs(float(left) - twice))
    confirm(mended < 1e-12, "mended by the factor 2")
    searched = f"{len(SMALL_LAWS)} finite laws for eta, k up to {k}"
    if worst < 1e-12:
        return Finding("holds", f"The largest deviation is {worst:.2g}.", searched)
    sure = sum(d**2 for d in differences([Fraction(1), Fraction(0), Fraction(0)]))
    return Finding(
        "false",
        f"eta = 0, k = 2: the differences are 1, -1, 0, 0, so the left side is {sure}; the right "
        "side is (1/4)(0 + 1 + 2 + 1) = 1. The left side is twice the right for every law tried "
        "(the last line of the display also lacks its equals sign).",
        searched,
        mended="the same with 2/(k+2) for 1/(k+2)",
    )


def counts_by_labelling(eta: tuple[Fraction, ...]) -> list[Fraction]:
    """The law of the count as a sum over labellings, a twin of the product form."""
    pmf = [Fraction(0)] * (len(eta) + 1)
    for labels, chance in exact.labellings(eta):
        pmf[sum(labels)] += chance
    return pmf


def times_linear(polynomial: list[Fraction], constant: Any, slope: Any) -> list[Fraction]:
    """The coefficients of (constant + slope w) times a polynomial in w."""
    up, down = [*polynomial, Fraction(0)], [Fraction(0), *polynomial]
    return [constant * a + slope * b for a, b in zip(up, down, strict=True)]


@statement(
    "LA.5",
    909,
    "g_u = (1/sqrt(k+2)) (1 - e^{it}) prod_j (1 - eta_j + eta_j e^{it}), t = 2 pi u/(k+2)",
    chapter=CHAPTER,
    mutants=[{"sign": 1}],
)
def transform_of_differences(search: Search, sign: int = -1) -> Finding:
    """Lemma A.5 as an identity of polynomials in w = e^{it}, coefficient by coefficient."""
    cases = 0
    for k in search.pick((1, 2, 3, 4), (1, 2, 3, 4, 5, 6)):
        for eta in small_bags(k, 4):
            right = [Fraction(1)]
            for prior in eta:
                right = times_linear(right, 1 - prior, prior)
            if differences(counts_by_labelling(eta)) != times_linear(right, 1, sign):
                place = f"eta = {[str(value) for value in eta]}"
                return Finding("false", f"The coefficients differ at {place}.", "up to there")
            cases += 1
    return Finding(
        "holds",
        f"sum_s p_s w^s = (1-w) prod_j (1-eta_j+eta_j w) as polynomials for {cases} bags, hence at "
        "every root of unity. (The vector is p_0, ..., p_(k+1); the text writes p_1, ..., p_s.)",
        f"bags of 1 to {k} with priors on the grid j/4, counts by enumeration, exact",
    )
