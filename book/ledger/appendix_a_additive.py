"""Checks of Appendix A, first part (paper lines 544 to 849).

Lemma A.1, the optimal attacker; the proof of Theorem 3.2, labels independent of features; and
Lemmas A.2 and A.3, the general bound for label aggregation. In Lemmas A.2 and A.3 the paper's k
counts the *other* examples of a bag of k + 1, and Z_k is their count of positive labels.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import comb, e, exp
from typing import Any

import numpy as np
from scipy import stats

from book.ledger import closed_forms, exact
from book.ledger.check import Case, Cases, Smallest, check, confirm
from book.ledger.closed_forms import bessel_spread, enclosure, interval
from book.ledger.exact import HALF, total
from labelaudit import bounds
from labelaudit.bounds.paper import c_k, lemma_form, sum_form


def first_label(labels: exact.Labels) -> dict[Any, Fraction]:
    """A mechanism that reveals the first label and nothing else."""
    return {labels[0]: Fraction(1)}


@check("LA.1", {"threshold": Fraction(2, 3)})
def optimal_attacker(quick: bool, threshold: Fraction = HALF) -> Cases:
    flip = Fraction(1, 4)
    response = exact.randomized_response(flip)
    for eta in exact.small_bags(2 if quick else 3, steps=6):
        noisy = exact.geometric_proportions(len(eta), flip)
        channels = (exact.label_proportions, response, noisy, first_label)
        for channel, index in product(channels, range(len(eta))):
            best = exact.best_deterministic_gain(eta, channel, index)
            formula = exact.additive_advantage(eta, channel, index)
            pairs = exact.joint(eta, channel, index).values()
            success = total(pair[pair[1] >= threshold * sum(pair)] for pair in pairs)
            yield Case(best == formula == success - max(eta[index], 1 - eta[index]), size=len(eta))


def best_joint_success(eta: exact.Bag, channel: exact.Channel) -> Fraction:
    """The largest expected fraction of right guesses over all maps from releases to labellings."""
    tables, best = [exact.joint(eta, channel, i) for i in range(len(eta))], Fraction(0)
    for answers in product(product((0, 1), repeat=len(eta)), repeat=len(tables[0])):
        guesses = dict(zip(tables[0], answers, strict=True))
        right = (table[z][guesses[z][i]] for i, table in enumerate(tables) for z in guesses)
        best = max(best, total(right) / len(eta))
    return best


@check("e-advf1f2", {"mechanism": first_label})
def per_example(quick: bool, mechanism: exact.Channel = exact.label_proportions) -> Cases:
    distribution = [(Fraction(1, 5), Fraction(2, 3)), (Fraction(1, 2), Fraction(1, 3))]
    blind = total(w * max(v, 1 - v) for v, w in distribution)
    for size in (1, 2) if quick else (1, 2, 3):
        best = exact.mean_of(distribution, size, lambda eta: best_joint_success(eta, mechanism))
        gaps = {exact.expected_advantage(distribution, mechanism, size, i) for i in range(size)}
        yield Case(gaps == {best - blind}, size=size)
    pairs = exact.in_bags(mechanism, 2)
    one_bag = exact.expected_advantage(distribution, mechanism, 2)
    two_bags = {exact.expected_advantage(distribution, pairs, 4, i) for i in range(4)}
    yield Case(two_bags == {one_bag}, one_bag=one_bag)


@check("T3.2-post", {"tilt": Fraction(1, 10)})
def posterior_is_proportion(quick: bool, tilt: Fraction = Fraction(0)) -> Cases:
    for size, j in product(range(1, 6 if quick else 9), range(1, 10)):
        p = Fraction(j, 12)
        eta = [p + tilt, *[p] * (size - 1)]
        for alpha, after in exact.posterior(eta, exact.label_proportions, 0).items():
            yield Case(after == alpha, size=size)


@check("e-mindiff", {"constant": Fraction(9, 10)})
def lipschitz(quick: bool, constant: Fraction = Fraction(1)) -> Cases:
    steps = 60 if quick else 240
    grid = [Fraction(j, steps) for j in range(steps + 1)]
    for a in grid:
        gaps = [constant * abs(a - b) - min(a, 1 - a) + min(b, 1 - b) for b in grid]
        yield Case(slack=gaps, at=[f"a = {a}, b = {b}" for b in grid], steps=steps)


@check("T3.2-chain", {"constant": 0.99})
def absolute_deviation(quick: bool, constant: float = 1.0) -> Cases:
    for k, j in product(range(1, 9 if quick else 31), range(1, 20)):
        p = Fraction(j, 20)
        pmf = exact.binomial(k, p)
        deviation = total(mass * abs(Fraction(s, k) - p) for s, mass in enumerate(pmf))
        square = Fraction(constant) ** 2 * p * (1 - p) / k
        first = deviation - exact.independent_advantage(p, k)
        steps = [f"k = {k}, p = {p}, {name} step" for name in ("first", "second")]
        yield Case(slack=[first, square - deviation**2], at=steps, k=k)


@check("T3.2-step", {"slope": 3}, {"weight": Fraction(9, 10)})
def split_at_half(quick: bool, slope: int = 2, weight: Fraction = Fraction(1)) -> Cases:
    """Proof of Theorem 3.2, the case with a gap: rewrite the minimum, then use 2a - 1 <= 1."""
    steps = 100 if quick else 5000
    grid = [Fraction(j, steps) for j in range(steps + 1)]
    identity = [-abs(min(a, 1 - a) - a + (slope * a - 1) * (a > HALF)) for a in grid]
    bound = [min(a, 1 - a) - a + weight * (a > HALF) for a in grid]
    yield Case(slack=identity, at=[f"a = {a} in the identity" for a in grid], steps=steps)
    yield Case(slack=bound, at=[f"a = {a} in the inequality" for a in grid], steps=steps)


@check("T3.2-tail", {"constant": 0.9})
def advantage_by_majority(quick: bool, constant: float = 1.0) -> Cases:
    for k, j in product(range(1, 9 if quick else 31), range(1, 10)):
        p = Fraction(j, 20)
        tail = total(exact.binomial(k, p)[k // 2 + 1 :])
        gap = Fraction(constant) * tail - exact.independent_advantage(p, k)
        yield Case(slack=[gap / tail], at=[f"k = {k}, p = {p}, as a fraction of the tail"], k=k)


@check("T3.2-Bern", {"exponent": 2.0})
def majority_tail(quick: bool, exponent: float = 1.0) -> Cases:
    grid = np.concatenate([np.geomspace(1e-6, 0.4999, 400), 0.5 - np.geomspace(1e-4, 0.4, 200)])
    grid_of_sizes = np.geomspace(1, 1e4, 12) if quick else np.geomspace(1, 1e6, 40)
    sizes = sorted({round(k) for k in grid_of_sizes})
    slack = Smallest()
    for k in sizes:
        rate = k * (0.5 - grid) ** 2 / (2 * grid * (1 - grid) + (1 - 2 * grid) / 3)
        with np.errstate(divide="ignore"):  # of a tail that leaves the range of a float
            gaps = -exponent * rate - stats.binom.logsf(k // 2, k, grid)
        slack.see(gaps, [f"k={k}, p={p:.4g}" for p in grid])
    for j in range(51):
        p = Fraction(j, 100)
        denominator = 2 * p * (1 - p) + (1 - 2 * p) / 3
        confirm(Fraction(5, 9) - denominator == 2 * (p - Fraction(1, 3)) ** 2, "denominator <= 5/9")
    times = exp(min(slack.value, 50))
    yield Case(slack.value >= 0, times=times, least=slack, sizes=len(sizes), largest=sizes[-1])


@check("LA.2-ck", {"power": 1.0})
def size_of_c_k(quick: bool, power: float = 0.5) -> Cases:
    variances = np.concatenate([[0.0], np.geomspace(1e-15, 0.25, 200)])
    for k in np.geomspace(1, 1e18, 60 if quick else 600):
        ratio = c_k(k, variances) / (np.sqrt(variances) + k**-power) / np.log(8 * k)
        yield Case(slack=0.5 - ratio, at=[f"k = {k:.3g}, p(1-p) = {v:.3g}" for v in variances])


@check("LA.2", {"constant": bounds.LEMMA_CONSTANT / 100}, {"power": 0.0})
def aggregation_lemma(
    quick: bool, constant: float = bounds.LEMMA_CONSTANT, power: float = 0.25
) -> Cases:
    slack = Smallest()
    for case in closed_forms.all_cases(quick):
        k, gain = case.bag_size - 1, case.expected - 4 * case.standard_error
        confirm(gain <= case.mu * bessel_spread(k, case.mu) * (1 + 1e-9), "2 mu e^(-k mu) I0(k mu)")
        bound = lemma_form(k, case.mu, case.p * (1 - case.p), constant, power)
        name = f"k = {k}, eta {case.distribution}, mu = {case.mu:.3g}"
        slack.see([bound / max(gain, 1e-300)], [name])
    yield Case(slack.value >= 1, least=slack)


@check("LA.2-post", {"shift": 0})
def posterior_formula(quick: bool, shift: int = 1) -> Cases:
    for eta in exact.small_bags(3 if quick else 5):
        whole, rest = exact.poisson_binomial(eta), exact.poisson_binomial(eta[:-1])
        posteriors = exact.posterior(eta, exact.label_proportions, len(eta) - 1)
        for alpha, after in posteriors.items():
            count = int(alpha * len(eta))
            before = dict(enumerate(rest)).get(count - shift, Fraction(0))
            yield Case(after == eta[-1] * before / whole[count], size=len(eta))


@check("LA.2-chain", {"dropped": 1})
def mean_shift(quick: bool, dropped: int = 0) -> Cases:
    for eta in exact.small_bags(3 if quick else 5):
        last = eta[-1]
        pairs = exact.joint(eta, exact.label_proportions, len(eta) - 1).values()
        moved = total(abs(last * sum(pair) - pair[1]) for pair in pairs)
        steps = exact.differences(exact.poisson_binomial(eta[:-1]))
        counted = steps[: len(steps) - dropped]
        yield Case(moved == last * (1 - last) * sum(map(abs, counted)), size=len(eta))


@check("eq-exp_factor", {"tied": True})
def factorisation(quick: bool, tied: bool = False) -> Cases:
    """Equation (eq:exp_factor); the mutant lets the last example repeat the first."""

    def spread(eta: exact.Bag) -> Fraction:
        return exact.spread(exact.poisson_binomial(eta))

    def whole(eta: exact.Bag) -> Fraction:
        last = eta[0] if tied else eta[-1]
        return last * (1 - last) * spread(eta[:-1])

    distributions = exact.SMALL_CASES.values()
    for distribution, k in product(distributions, range(1, 4 if quick else 7)):
        factors = exact.mean_and_mu(distribution)[1] * exact.mean_of(distribution, k, spread)
        mean = exact.mean_of(distribution, k + 1, whole)
        yield Case(mean == factors, distributions=len(distributions), k=k)


@check("LA.2-1-2mu", {"coefficient": 1})
def agreement_probability(quick: bool, coefficient: int = 2) -> Cases:
    for x in (Fraction(j, 7) for j in range(8 if quick else 71)):
        yield Case(x**2 + (1 - x) ** 2 == 1 - coefficient * x * (1 - x))


@check("LA.2-argmax", {"numerator": 2}, {"constant": 1.1})
def largest_first_term(quick: bool, numerator: int = 1, constant: float = 1.0) -> Cases:
    for k in range(1, 20 if quick else 80):
        best = min(Fraction(numerator, k + 2), Fraction(1, 4))
        grid = [Fraction(j, 800) for j in range(201)]
        top = best**2 * (1 - 2 * best) ** k
        gaps = [1 - x**2 * (1 - 2 * x) ** k / top for x in grid]
        yield Case(slack=gaps, at=[f"k = {k}, x = {x}, fraction of the top" for x in grid])
    for k in np.unique(np.round(np.geomspace(1, 1e6, 200 if quick else 4000))):
        x = min(1 / (k + 2), 0.25)
        log_ratio = 2 * np.log(constant * e * k * x) + k * np.log1p(-2 * x)
        yield Case(slack=[-log_ratio], at=[f"k = {k:.0f}, log of 1/(ek)^2 over the top"])


@check("LA.2-minab", {"factor": 2})
def minimum_and_harmonic(quick: bool, factor: int = 1) -> Cases:
    grid = [Fraction(i, j) for i, j in product(range(1, 8 if quick else 13), repeat=2)]
    pairs = list(product(grid, repeat=2))
    ratios = [min(a, b) * (a + b) / (a * b) for a, b in pairs]  # the minimum over ab/(a+b)
    failing = sum(ratio > factor for ratio in ratios)
    confirm(min(ratios) >= 1 and max(ratios) <= 2, "ab/(a+b) <= min{a,b} <= 2ab/(a+b)")
    yield Case(not failing, failing=failing, pairs=len(pairs))


@check("LA.2-minfrac", {"factor": 2})
def minimum_and_fraction(quick: bool, factor: int = 1) -> Cases:
    """Proof of Lemma A.2: the previous step at a = mu^2, b = 1/(ek)^2, by interval arithmetic."""
    failing, cases = 0, list(product(range(1, 40 if quick else 200), range(1, 26)))
    for k, j in cases:
        mu, scale = interval.mpf(j) / 100, (interval.e * k) ** 2
        right = mu**2 / (mu**2 * scale + 1)
        confirm(not (mu**2 > 2 * right and 1 / scale > 2 * right), "corrected by a factor 2")
        failing += bool(mu**2 > factor * right and 1 / scale > factor * right)
    yield Case(not failing, failing=failing, cases=len(cases), end=k + 1)


@check("LA.2-last", {"constant": Fraction(2, 5)})
def last_term(quick: bool, constant: Fraction = Fraction(1)) -> Cases:
    """Proof of Lemma A.2: the quotient of the two sides is sqrt(mu/k) <= 1/2."""
    mus = [Fraction(j, 400) for j in range(1, 101)]
    for k in range(1, 30 if quick else 300):
        cases = [f"k = {k}, mu = {mu}, squares compared" for mu in mus]
        yield Case(slack=[constant**2 - mu / k for mu in mus], at=cases)


@check("LA.3", {"constant": 0.5})
def sum_lemma(quick: bool, constant: float = 1.0) -> Cases:
    priors = np.concatenate([np.geomspace(1e-4, 0.5, 100), [0.3, 0.4]])
    spread, weight, slack = priors * (1 - priors), np.geomspace(1e-3, 1, 20), Smallest()
    for k in (1, 10, 300, 3000) if quick else (1, 2, 5, 10, 100, 300, 1000, 3000, 10_000, 100_000):
        thinned = np.array([closed_forms.thinned_spread(k, 0.5, w) for w in weight])
        for distribution, mu, variance, sums in (
            ("constant eta", spread, spread, closed_forms.binomial_spread(k, priors)),
            ("eta in {0, 1/2}", weight / 4, weight / 2 * (1 - weight / 2), thinned),
        ):
            confirm((sums <= bessel_spread(k, mu) * (1 + 1e-9)).all(), "2 e^(-k mu) I0(k mu)")
            cases = [f"k = {k}, mu = {value:.4g}, {distribution}" for value in mu]
            slack.see(constant * sum_form(k, mu, variance) / sums, cases)
    yield Case(slack.value >= 1, least=slack)


def outside(pmf: list[Fraction], low: int, high: int) -> Fraction:
    """P(Z outside [low, high])."""
    return 1 - total(pmf[low : high + 1])


def inner_intervals(quick: bool) -> Iterator[tuple[tuple[Fraction, ...], int, int]]:
    """Small bags, each with every interval [low, high] between 1 and k - 1."""
    for eta in exact.small_bags(3 if quick else 5, least=2):
        for low in range(1, len(eta)):
            yield from ((eta, low, high) for high in range(low, len(eta)))


@check("LA.3-split", {"edge": 1})
def split_of_the_sum(quick: bool, edge: int = 0) -> Cases:
    coins, sure = exact.binomial(2, HALF), exact.poisson_binomial((Fraction(0), Fraction(1)))
    shown, right = outside(coins, 1, 1) + outside(coins, 0, 0), 2 * outside(coins, 1, 1)
    broken = exact.spread(sure) == 2 and outside(sure, 1, 1) == 0
    confirm(broken, "the chain fails for a certain count of 1")
    pairs, slack = list(inner_intervals(quick)), Smallest()
    for eta, low, high in pairs:
        pmf = exact.poisson_binomial(eta)
        left = outside(pmf, low, high) + outside(pmf, low - 1, high - 1)
        twice = 2 * outside(pmf, low, high)
        confirm(left == twice + pmf[high] - pmf[low - 1], "the exact form of the sum")
        confirm(left <= 2 * outside(pmf, low, high - 1), "the corrected bound")
        case = f"eta = ({', '.join(map(str, eta))}) and [a, b] = [{low}, {high}]"
        slack.see([twice + edge * pmf[high] - left], [case])
    yield Case(
        slack.value >= 0, shown=shown, right=right, excess=-slack.value, example=slack.case,
        pairs=len(pairs), size=len(eta),
    )  # fmt: skip


@check("LA.3-linear", {"shift": Fraction(1, 100)})
def binomial_on_average(quick: bool, shift: Fraction = Fraction(0)) -> Cases:
    distributions = exact.SMALL_CASES.values()
    for distribution, k in product(distributions, range(1, 5 if quick else 8)):
        mean = [Fraction(0)] * (k + 1)
        for eta, probability in exact.bags(distribution, k):
            for s, mass in enumerate(exact.poisson_binomial(eta)):
                mean[s] += probability * mass
        binomial = exact.binomial(k, exact.mean_and_mu(distribution)[0] + shift)
        yield Case(mean == binomial, distributions=len(distributions), k=k)


@check("LA.3-CS", {"extra": 1})
def cauchy_schwarz(quick: bool, extra: int = 0) -> Cases:
    holds = []
    for eta, low, high in inner_intervals(quick):
        inside = exact.differences(exact.poisson_binomial(eta))[low : high + 1]
        left, squares = sum(map(abs, inside)) ** 2, total(d**2 for d in inside)
        confirm(left <= len(inside) * squares, "with b - a + 1 it is true")
        holds.append(left <= (high - low + extra) * squares)
    step = exact.differences(exact.binomial(2, HALF))[1]
    yield Case(all(holds), left=abs(step), pairs=len(holds), size=len(eta))


@check("LA.3-Jensen", {"power": 2.0})
def jensen(quick: bool, power: float = 0.5) -> Cases:
    distributions = exact.SMALL_CASES.items()
    for (name, distribution), k in product(distributions, range(1, 5 if quick else 8)):
        bags = list(exact.bags(distribution, k))
        weights = np.array([float(weight) for _, weight in bags])
        pmfs = [exact.poisson_binomial(eta) for eta, _ in bags]
        squares = np.array([float(exact.sum_of_squares(pmf)) for pmf in pmfs])
        gap = (weights @ squares) ** power - weights @ squares**power
        gap = gap if abs(gap) > 1e-12 else 0.0
        yield Case(slack=[gap], at=[f"k = {k}, {name}"], distributions=len(distributions), k=k)


@check("LA.3-disp8", {"inner": 4})
def last_display(quick: bool, inner: int = 8) -> Cases:
    sizes = [*range(1, 1001 if quick else 3001), 10_000, 100_000]
    sums = [float(closed_forms.binomial_spread(k, 0.5)) for k in sizes]
    excess = [left / sum_form(k, 0.25, 0.25, inner) for k, left in zip(sizes, sums, strict=True)]
    failing = [k for k, ratio in zip(sizes, excess, strict=True) if ratio > 1]
    size, quarter = interval.mpf(1000), interval.mpf(1) / 4
    left = Fraction(2 * comb(1000, 500), 2**1000)
    printed, lemma = (sum_form(size, quarter, quarter, n, interval) for n in (8, 4))
    confirm(enclosure(left) > printed, "the counterexample at eta = 1/2, k = 1000")
    confirm(enclosure(left) < lemma, "Lemma A.3 at the same point")
    yield Case(
        not failing, first=min(failing, default=None), last=max(failing, default=None),
        left=left, printed=float(printed.mid), lemma=float(lemma.mid), size=sizes[-3],
    )  # fmt: skip


@check("LA.3-b1", {"cap": 100})
def upper_end(quick: bool, cap: int = 1) -> Cases:
    k, p = 100, 0.5
    reach = np.sqrt(k) * c_k(k, p * (1 - p))
    low, high = max(k * p - reach, 0), min(k * p + reach, cap)
    confirm(k * p <= min(k * p + reach, k), "the corrected interval contains the mean")
    yield Case(low <= high, k=k, low=low, high=high)


def two_tails(k: int, p: Any, reach: Any) -> Any:
    """P(|Bin(k, p) - kp| > reach)."""
    low, high = np.ceil(k * p - reach) - 1, np.floor(k * p + reach)
    return stats.binom.cdf(low, k, p) + stats.binom.sf(high, k, p)


@check("LA.3-tail", {"scale": 3.0})
def bernstein_tail(quick: bool, scale: float = 1.0) -> Cases:
    grid, ratio = np.linspace(0.001, 0.5, 500), {}
    for k in (*range(1, 40), 100, 1000, *((10_000,) if quick else (10_000, 100_000, 1_000_000))):
        variance, logarithm = grid * (1 - grid), np.log(4 * k)
        # the half width at which Bernstein's inequality gives two tails of 1/(2k) together
        reach = logarithm / 3 + np.sqrt(logarithm**2 / 9 + 2 * k * variance * logarithm)
        corrected = 2 * k * two_tails(k, grid, reach)
        confirm(corrected.max() <= 1, "the corrected c_k leaves at most 1/(2k)")
        reach = scale * np.sqrt(k) * c_k(k, variance)
        ratio[k] = float((2 * k * two_tails(k, grid, reach)).max())
    size = interval.mpf(10)
    reach = interval.sqrt(size) * c_k(size, interval.mpf(99) / 400, interval)
    confirm(4.5 - reach > 1 and 4.5 + reach < 8, "[a, b] contains no counts but 2 to 7")
    tail = outside(exact.binomial(10, Fraction(9, 20)), 2, 7)
    confirm(tail > Fraction(1, 20), "the counterexample at k = 10")
    yield Case(
        max(ratio.values()) <= 1, reach=float(reach.mid), tail=tail,
        at_1000=ratio[1000], at_k=ratio[k], k=k,
    )  # fmt: skip
