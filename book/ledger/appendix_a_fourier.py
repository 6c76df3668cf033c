"""Checks of Appendix A, second part (paper lines 857 to 1035).

Lemmas A.4 and A.5, the sum of squared differences by a discrete Fourier transform; Propositions A.6
to A.8, the cosine sum behind them; and the proof of Theorem 3.4, the individual bound.
"""

from fractions import Fraction
from itertools import product
from math import e, pi
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from book.ledger import exact
from book.ledger.check import Case, Cases, Smallest, check, confirm
from book.ledger.closed_forms import enclosure, interval
from book.ledger.exact import HALF, total
from labelaudit.bounds import BESSEL_CONSTANT
from labelaudit.bounds.paper import squares_form, sum_form

TWO_THIRDS = 2 / 3


def cosines(k: int) -> NDArray[np.float64]:
    """cos t_u for t_u = 2 pi u/(k+2), u = 0, ..., k+1."""
    return np.asarray(np.cos(2 * np.pi * np.arange(k + 2) / (k + 2)))


def cosine_terms(k: int, b: NDArray[np.float64]) -> NDArray[np.float64]:
    """(1 - cos t_u) (a + b cos t_u)^k for each b (rows) and u = 0, ..., k+1; a = 1 - b."""
    return np.asarray((1 - cosines(k)) * (1 - b[:, None] * (1 - cosines(k))) ** k)


def expected_squares(k: int, mu: NDArray[np.float64]) -> NDArray[np.float64]:
    """E sum_s (P(Z_k=s) - P(Z_k=s-1))^2; only mu matters, not the rest of the distribution."""
    return np.asarray(2 / (k + 2) * cosine_terms(k, 2 * mu)[:, 1:].sum(axis=1))


@check("LA.4", {"factor": 2})
def squares_lemma(quick: bool, factor: int = 1) -> Cases:
    sizes = [*range(1, 260 if quick else 400), 1000, *(() if quick else (10_000, 100_000))]
    first, largest = 0, Smallest()
    for k in sizes:
        mu = np.geomspace(1e-3 / k, 0.25, 60 if k >= 10_000 else (120 if quick else 300))
        left = expected_squares(k, mu)
        confirm((left <= squares_form(k, mu, inner=4)).all(), "the bracket of Lemma A.3")
        ratio = left / squares_form(k, mu)
        largest.see(-ratio, [f"k = {k}, mu = {value:.4g}" for value in mu])
        first = first or k * int(ratio.max() > factor)
    confirm(-largest.value <= 2, "twice the right side is enough")
    sharp = exact.sum_of_squares(exact.binomial(191, Fraction(1, 44)))
    right = squares_form(interval.mpf(191), interval.mpf(43) / 1936, math=interval)
    confirm(enclosure(sharp) > right, "the counterexample")
    # eta = 1/2, up to 10^7: there the left side is 2/(k+1) C(2k, k) / 4^k
    n = np.unique(np.concatenate([np.arange(1.0, 30_000), np.round(np.geomspace(3e4, 1e7, 2000))]))
    holds = 2 / (n + 1) * stats.binom.pmf(n, 2 * n, 0.5) <= squares_form(n, 0.25)
    yield Case(
        not first, sharp=sharp, right=float(right.mid), first=first, excess=-largest.value - 1,
        start=n[holds][-1] + 1, size=sizes[-1],
    )  # fmt: skip


@check("LA.4-dft", {"length": 1})
def parseval(quick: bool, length: int = 2) -> Cases:
    worst = 0.0
    for eta in exact.small_bags(3 if quick else 6):
        steps = float_differences(eta)
        size = len(steps)
        angles = np.outer(np.arange(size), np.arange(size)) / (len(eta) + length)
        transform = np.exp(2j * np.pi * angles) / np.sqrt(size)
        off_unitary = np.abs(transform @ transform.conj().T - np.eye(size)).max()
        spectrum = transform @ steps
        gap = abs((steps**2).sum() - (np.abs(spectrum) ** 2).sum())
        worst = max(worst, off_unitary, gap, abs(spectrum[0]))
    yield Case(worst < 1e-12, worst=worst, size=len(eta))


def float_differences(eta: exact.Bag) -> NDArray[np.float64]:
    """P(Z_k=s) - P(Z_k=s-1) as floats."""
    return np.array([float(d) for d in exact.differences(exact.poisson_binomial(eta))])


@check("LA.4-gu2", {"factor": 2})
def size_of_transform(quick: bool, factor: int = 1) -> Cases:
    """Proof of Lemma A.4: |1 - e^{it}|^2 is 2 - 2 cos t."""
    worst = corrected = 0.0
    for bag in exact.small_bags(3 if quick else 6):
        k = len(bag)
        cosine, eta = cosines(k), np.array([[float(value)] for value in bag])
        factors = (1 - eta) ** 2 + eta**2 + 2 * eta * (1 - eta) * cosine
        right = (1 - cosine) * factors.prod(axis=0) / (k + 2)
        transform_square = np.abs(np.fft.fft(float_differences(bag))) ** 2 / (k + 2)
        worst = max(worst, np.abs(transform_square - factor * right).max())
        corrected = max(corrected, np.abs(transform_square - 2 * right).max())
    confirm(corrected < 1e-12, "corrected by the factor 2")
    steps_at_zero = exact.differences([Fraction(1), Fraction(0), Fraction(0)])
    alternating = total((-1) ** s * d for s, d in enumerate(steps_at_zero))
    yield Case(worst < 1e-12, square=alternating**2 / 4, k=k)


@check("LA.4-eq", {"factor": 2})
def squares_as_cosines(quick: bool, factor: int = 1) -> Cases:
    def squares(eta: exact.Bag) -> Fraction:
        return exact.sum_of_squares(exact.poisson_binomial(eta))

    worst, corrected, distributions = 0.0, 0.0, exact.SMALL_CASES.values()
    for distribution, k in product(distributions, range(1, 4 if quick else 8)):
        left = exact.mean_of(distribution, k, squares)
        mu = np.array([float(exact.mean_and_mu(distribution)[1])])
        twice = expected_squares(k, mu)[0]
        worst = max(worst, abs(float(left) - factor * twice / 2))
        corrected = max(corrected, abs(float(left) - twice))
    confirm(corrected < 1e-12, "corrected by the factor 2")
    left = exact.sum_of_squares([Fraction(1), Fraction(0), Fraction(0)])
    yield Case(worst < 1e-12, left=left, distributions=len(distributions), k=k)


def times_linear(polynomial: list[Fraction], constant: Any, slope: Any) -> list[Fraction]:
    """The coefficients of (constant + slope w) times a polynomial in w."""
    up, down = [*polynomial, Fraction(0)], [Fraction(0), *polynomial]
    return [constant * a + slope * b for a, b in zip(up, down, strict=True)]


@check("LA.5", {"sign": 1})
def transform_of_differences(quick: bool, sign: int = -1) -> Cases:
    """Lemma A.5 as an identity of polynomials in w = e^{it}, coefficient by coefficient."""
    for eta in exact.small_bags(4 if quick else 6):
        right, pmf = [Fraction(1)], [Fraction(0)] * (len(eta) + 1)
        for prior in eta:
            right = times_linear(right, 1 - prior, prior)
        for labels, probability in exact.labellings(eta):
            pmf[sum(labels)] += probability
        yield Case(exact.differences(pmf) == times_linear(right, 1, sign), size=len(eta))


def weights(largest: float, number: int) -> NDArray[np.float64]:
    """A grid for b in (0, largest), denser near 0."""
    grid = np.concatenate([np.geomspace(1e-6, 0.01, number // 4), np.linspace(0.01, 1, number)])
    return grid[(grid <= largest) & (grid < 1)]


@check("PA.6", {"largest": TWO_THIRDS})
def cosine_sum(quick: bool, largest: float = 1.0) -> Cases:
    """Proposition A.6: false for b near 1, true where the paper uses it (b = 2 mu <= 1/2).

    Its right side is that of Lemma A.4 with b = 2 mu.
    """
    slack, corrected = Smallest(), Smallest()
    sizes = [*range(1, 60 if quick else 300), 1000, *(() if quick else (3000, 10_000))]
    for k in sizes:
        b = weights(largest, 60 if k >= 1000 else 400)
        gap = 1 - cosine_terms(k, b).sum(axis=1) / (k + 2) / squares_form(k, b / 2)
        cases = [f"k = {k}, b = {value:.4g}" for value in b]
        slack.see(gap, cases)
        corrected.see(gap[b <= TWO_THIRDS], cases)  # b increases
    confirm(corrected.value > 0, "true for b <= 2/3")
    a = Fraction(1, 100)
    left = (a**2 + (2 * a - 1) ** 2) / 2
    right = squares_form(interval.mpf(2), interval.mpf(99) / 200, math=interval)
    confirm(enclosure(left) > right, "the counterexample")
    yield Case(
        slack.value >= 0, left=left, right=float(right.mid), corrected=corrected,
        size=sizes[-1], largest=largest,
    )  # fmt: skip


def middle_block(k: int, closed: bool = False) -> slice:
    """The indices u with (k+2)/4 < u <= 3(k+2)/4; `closed` has the left end as well."""
    return slice((k + 5) // 4 if closed else (k + 6) // 4, 3 * (k + 2) // 4 + 1)


@check("PA.6-mid", {"largest": TWO_THIRDS})
def middle_of_the_sum(quick: bool, largest: float = 1.0) -> Cases:
    slack, corrected = Smallest(), Smallest()
    for k in range(1, 60 if quick else 300):
        b = weights(largest, 300)
        cases = [f"k = {k}, b = {value:.4g}" for value in b]
        whole, block = (k + 2) * (1 - b) ** k, cosine_terms(k, b)[:, middle_block(k)].sum(axis=1)
        slack.see(whole - block + 1e-12 * whole, cases)
        used = b <= TWO_THIRDS  # b increases, so these are the first cases
        corrected.see(1 - block[used] / whole[used], cases)
    confirm(corrected.value > -1e-12, "true for b <= 2/3")
    a = Fraction(1, 4)
    left, right = 2 * (a - (1 - a)) ** 2 + a**2, 4 * a**2
    confirm(left > right, "the counterexample")
    yield Case(slack.value >= 0, left=left, right=right, corrected=corrected, k=k, largest=largest)


@check("PA.6-sym", {"closed": True})
def symmetry_of_the_blocks(quick: bool, closed: bool = False) -> Cases:
    """Proof of Proposition A.6: when 4 divides k + 2 the index u = (k+2)/4 is counted once more.

    With that index in the middle block (`closed`) the first and the last block are equal.
    """
    b = np.array([0.01, 0.1, 0.3, 0.5, 0.8])
    unequal = []
    for k in range(1, 60 if quick else 400):
        terms, block = cosine_terms(k, b), middle_block(k, closed)
        excess = terms[:, : block.start].sum(axis=1) - terms[:, block.stop :].sum(axis=1)
        extra = (1 - b) ** k * ((k + 2) % 4 == 0 and not closed)
        confirm(np.abs(excess - extra).max() < 1e-12, "the excess is a^k or 0")
        if (np.abs(excess) > 1e-12).any():
            unequal.append(k)
    first = HALF**2  # the first block at k = 2, a = b = 1/2
    yield Case(not unequal, first=first, twice=2 * first, shown=unequal[:4], k=k)


def bump(x: Any, alpha: Any) -> Any:
    """f(x) = x^2 e^{-alpha x^2}."""
    return x**2 * np.exp(-alpha * x**2)


@check("PA.7", {"constant": 0.99})
def riemann_sum(quick: bool, constant: float = 1.0) -> Cases:
    alpha = np.geomspace(1e-3, 1e9, 200 if quick else 1500)
    slack, alone = Smallest(), Smallest()
    for m in (*range(1, 60 if quick else 400), 1000, *(() if quick else (10_000,))):
        sums = bump(np.arange(m // 4 + 1) / m, alpha[:, None]).sum(axis=1) / m
        main = constant * np.sqrt(np.pi) / (4 * alpha**1.5)
        cases = [f"m = {m}, alpha = {value:.4g}" for value in alpha]
        slack.see(1 - sums / (main + 1 / (e * alpha * m)), cases)
        alone.see(1 - sums / main, cases)
    yield Case(alone.value >= -1e-12, least=slack, m=m)


def bump_integral(alpha: float, low: Any, high: Any) -> Any:
    """The integral of x^2 e^{-alpha x^2} from low to high, by the incomplete gamma function."""
    half = special.gamma(1.5) / (2 * alpha**1.5)
    return half * (special.gammainc(1.5, alpha * high**2) - special.gammainc(1.5, alpha * low**2))


@check("PA.7-idx", {"scaled": True, "overshoot": 1})
def split_at_the_peak(quick: bool, scaled: bool = False, overshoot: int = 0) -> Cases:
    whole = bump_integral(16.0, 0.0, 0.25)
    confirm(1 / (64 * e) > whole, "the counterexample survives the corrected limits")
    for m, alpha in product(range(4, 40 if quick else 200, 4), (1.0, 4.0, 16.0, 50.0, 400.0, 5e4)):
        start = int(np.ceil((m if scaled else 1) / np.sqrt(alpha)))
        upper = bump(np.arange(start, m // 4 + 1) / m, alpha).sum() / m
        low, high = (start - 1) / m, 0.25 if scaled else 0.25 - 1 / m
        bound = bump_integral(alpha, low, max(low, high)) + overshoot / (e * alpha * m)
        slack = bound - upper + 1e-15
        yield Case(slack=[slack], at=[f"m = {m}, alpha = {alpha:.4g}"], whole=whole, m=m)


@check("PA.8", {"upper": 17.0}, {"lower": 1.9})
def cosine_parabolas(quick: bool, upper: float = 4 * pi, lower: float = 2.0) -> Cases:
    """Proposition A.8, as 1 - cos(2 pi t) = 2 sin^2(pi t), which does not cancel near 0."""
    linear = np.linspace(1e-4, 0.25, 999 if quick else 99_999)
    t = np.concatenate([np.geomspace(1e-9, 0.25, 2000), linear])
    curvature = 2 * np.sin(np.pi * t) ** 2 / t**2
    ceiling, least = lower * pi**2, curvature.min()
    left = lower * np.pi**2 * (1 + 1e-12) - curvature.max()  # equality in the limit t = 0
    right = least - upper
    yield Case(
        min(left, right) >= 0, least=least, upper=upper, ceiling=ceiling, right=right, points=len(t)
    )


@check("T3.4-range", {"last": 1})
def range_of_the_sum(quick: bool, last: int = 0) -> Cases:
    pair = exact.independent_advantage(HALF, 2)
    for k in range(1, 7 if quick else 13):
        steps = exact.differences(exact.binomial(k, HALF))[: k + 1 + last]
        bound = Fraction(1, 4) * sum(map(abs, steps))
        slack = bound - exact.independent_advantage(HALF, k + 1)
        yield Case(slack=[slack], at=[f"k = {k}, eta = 1/2"], pair=pair, k=k)


def printed_roots(k: Any, mu: Any, power: float) -> tuple[Any, Any]:
    """The two roots of the display at line 1030 for a constant eta, p(1-p) = mu."""
    first = mu**0.25 * np.sqrt((1 - 2 * mu) ** k * np.sqrt(k) + 1 / (mu**1.5 * k))
    second = np.sqrt(((1 - 2 * mu) ** k + 1 / (mu * k) ** 1.5) * k ** (-power))
    return first, second


@check("T3.4-2nd", {"power": 0.0})
def second_root(quick: bool, power: float = 0.5) -> Cases:
    """Proof of Theorem 3.4: put c_k = sqrt(p(1-p)) + 1/sqrt(k) into Lemma A.3.

    The part 1/sqrt(k) of c_k gives k^(1/4) sqrt(1/sqrt(k)) = 1 times sqrt(A^k + 1/(mu k)^(3/2)).
    """
    mu, largest = np.geomspace(1e-6, 0.25, 60), 0.0
    factor = (printed_roots(16.0, mu, power)[1] / printed_roots(16.0, mu, 0)[1]).min()
    for stretch in np.geomspace(1, 1e4, 40 if quick else 400):
        k = np.ceil(2 / mu * np.log(1 / mu) * stretch)
        first, second = printed_roots(k, mu, 0.5)
        largest = max(largest, (sum_form(k, mu, mu) / (first + second) / np.log(8 * k)).max())
        confirm((BESSEL_CONSTANT / np.sqrt(k * mu) <= first).all(), "the first root is enough")
    confirm(largest <= 2, "the display bounds Lemma A.3 up to 2 log(8k) under the condition on k")
    yield Case(abs(factor - 1) <= 1e-9, factor=factor, largest=largest)


@check("T3.4-cond", {"factor": 1.0})
def condition_on_size(quick: bool, factor: float = 2.0) -> Cases:
    mu = np.geomspace(1e-12, 0.25, 400 if quick else 4000)
    start = factor / mu * np.log(1 / mu)
    yield Case((1.5 / start < 2 * mu).all(), values=len(mu))  # then the left side falls
    for stretch in np.geomspace(1, 1e6, 30 if quick else 200):
        k = start * stretch
        left = k * np.log1p(-2 * mu) + 1.5 * np.log(k)
        cases = [f"mu = {m:.4g}, k = {j:.4g}" for m, j in zip(mu, k, strict=True)]
        yield Case(slack=np.log(mu) - left, at=cases, values=len(mu))
