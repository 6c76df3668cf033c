"""Checks of Appendix A, third part (paper lines 1058 to 1441).

HPAdv and Theorem A.9; Lemma A.10, translated Poisson distributions and the proof of Theorem A.9;
then randomized response, Lemma A.16 and Theorem A.17.

mu_i = eta_i (1-eta_i), and mu is its mean over the features. V is the sum of mu_i over a bag and
sigma its root; V_i leaves out example i (V1 and sigma_1 the first). Sigma is the count of the bag,
Sigma1 or Sigma^(-i) the count without an example, Gamma and Gamma1 the translated Poisson
distributions with their means and variances. d_TV is the total variation distance, half the sum of
the absolute differences. The gap of a bag is f1 - f2, the mean additive advantage of its examples
under LLP. The flip probability is pi = 1/(1+e^epsilon); exact checks take e^epsilon rational.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise, product
from math import e, exp, factorial, floor, log10, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from book.ledger import closed_forms, exact
from book.ledger.check import Case, Cases, check, confirm
from book.ledger.closed_forms import enclosure, interval
from book.ledger.exact import HALF, total
from labelaudit.advantage import additive_advantage
from labelaudit.bounds import BAG_CONSTANT, BESSEL_CONSTANT
from labelaudit.mechanisms import LabelProportions
from labelaudit.poisson_binomial import leave_one_out, pmf

FAIR = (HALF,) * 4  # the smallest bag of fair coins with V = 1
OTHERS = [FAIR, (Fraction(1, 5),) * 9, (Fraction(1, 3),) * 7, (Fraction(0), *FAIR)]


def random_bags(quick: bool) -> Iterator[NDArray]:
    """Bags from constant, two-point and Beta distributions, some with certain labels mixed in."""
    rng = np.random.default_rng(20240)
    for size in (1, 2, 5, 12, 40) if quick else (1, 2, 3, 5, 8, 13, 30, 80, 120):
        for _ in range(20 if quick else 60):
            low, high = 10 ** rng.uniform(-4, log10(0.5), 2)
            yield np.full(size, low)
            yield np.full(size, 0.5)
            yield np.where(rng.random(size) < rng.random(), low, 1 - high)
            yield np.where(rng.random(size) < rng.random(), 0.5, rng.integers(0, 2, size))
            a, b = 10 ** rng.uniform(-1.5, 1.5, 2)
            yield rng.beta(a, b, size)


def total_variance(eta: Any) -> Any:
    """V, the sum of eta (1 - eta)."""
    return sum(prior * (1 - prior) for prior in eta)


def translate(mean: Any, variance: Any, sign: int = -1) -> tuple[int, Any]:
    """The shift and the Poisson rate of TP(mean, variance); `sign` is +1 as the paper prints it.

    >>> translate(Fraction(5, 2), Fraction(3, 4))
    (1, Fraction(3, 2))
    """
    return floor(mean + sign * variance), mean - floor(mean - variance)


def distance(support: NDArray, count: NDArray, shift: int, rate: float) -> float:
    """d_TV between a count with these probabilities and a translated Poisson distribution."""
    return float(abs(count - stats.poisson.pmf(support - shift, rate)).sum() / 2)


def distance_to_translated(eta: NDArray, sign: int = -1, fraction: bool = True) -> float:
    """d_TV between the count of a bag and the translated Poisson of its mean and variance."""
    shift, rate = translate(eta.sum(), total_variance(eta), sign)
    rate = rate if fraction else total_variance(eta)
    count = np.zeros(max(len(eta), shift + int(rate + 12 * sqrt(rate)) + 30) + 1)
    count[: len(eta) + 1] = pmf(eta)
    return distance(np.arange(len(count)), count, shift, rate)


def binomial_distance(size: int, p: float, fraction: bool = True) -> float:
    """The same for a constant prior, on the window of 12 standard deviations that matters."""
    shift, rate = translate(size * p, size * p * (1 - p))
    rate = rate if fraction else size * p * (1 - p)
    width = int(12 * sqrt(rate)) + 30
    support = np.arange(max(0, int(size * p) - width), int(size * p) + width)
    return distance(support, stats.binom.pmf(support, size, p), shift, rate)


def approximation_bound(eta: NDArray, offset: float = 2) -> float:
    """The right-hand side of Lemma A.12."""
    return float((sqrt((eta**3 * (1 - eta)).sum()) + offset) / total_variance(eta))


@check("DA.11", {"sign": -1})
def translated_poisson_definition(quick: bool, sign: int = 1) -> Cases:
    grid = [Fraction(a, 7) for a in range(-20, 60, 7 if quick else 1)]
    pairs = [(mean, variance) for mean in grid for variance in grid if variance >= 0]
    for mean, variance in pairs:
        shift, rate = translate(mean, variance)
        confirm(shift + rate == mean, "TP has mean mu when the sign is minus")
        confirm(0 <= rate - variance < 1, "the variance of TP exceeds sigma^2 by less than one")
    shift, rate = translate(Fraction(2), Fraction(1), sign)
    yield Case(shift + rate == 2, mean=shift + rate, pairs=len(pairs))


@check("LA.12", {"sign": 1}, {"offset": 0.0}, {"fraction": False})
def approximation(quick: bool, sign: int = -1, offset: float = 2, fraction: bool = True) -> Cases:
    coins = np.full(400, 0.5)
    far, near = distance_to_translated(coins, 1), approximation_bound(coins)
    for eta in random_bags(quick):
        if total_variance(eta) > 0:
            ratio = distance_to_translated(eta, sign, fraction) / approximation_bound(eta, offset)
            yield Case(ratio=ratio, far=far, near=near)
    rng = np.random.default_rng(2007)
    sizes = (10**3, 10**5) if quick else (10**3, 10**4, 10**5, 10**6)
    for size, small in product(sizes, 10 ** rng.uniform(-4, log10(0.5), 12)):  # no round numbers
        for p in (small, 1 - small):
            variance = size * p * (1 - p)
            bound = (sqrt(p**2 * variance) + offset) / variance
            yield Case(ratio=float(binomial_distance(size, p, fraction) / bound))


@check("LA.13", {"offset": 0.0}, {"scale": 0.5})
def two_translated(quick: bool, offset: float = 1.0, scale: float = 1.0) -> Cases:
    rng, pairs = np.random.default_rng(2006), 1500 if quick else 20000
    for _ in range(pairs):
        ratio = rng.choice([10 ** rng.uniform(-4, 1), 1 + rng.normal(0, 1e-4)])
        variances = 10 ** rng.uniform(-1, 2.5 if quick else 4.3) * np.array([1, ratio])
        means = variances[0] + rng.integers(0, 9) + rng.normal(0, 1, 2) * rng.choice([0, 1e-3, 1])
        means[1] += rng.choice([0, ratio - 1]) * variances[0]
        (shift1, rate1), (shift2, rate2) = map(translate, means, variances)
        if shift1 > shift2:
            continue  # the condition of the lemma
        top = max(shift1 + rate1, shift2 + rate2) + 12 * sqrt(max(rate1, rate2)) + 30
        support = np.arange(shift1, int(top))
        first = stats.poisson.pmf(support - shift1, rate1)
        change = abs(variances[0] - variances[1]) + offset
        bound = abs(means[0] - means[1]) / sqrt(variances[0]) + change / variances[0]
        apart = distance(support, first, shift2, rate2)
        yield Case(ratio=float(apart / bound / scale), pairs=pairs)


@check("LA.14", {"second": Fraction(1)})
def shifted(quick: bool, second: Fraction = Fraction(2)) -> Cases:
    grid = [Fraction(a, 5) for a in range(-15, 40, 3 if quick else 1)]
    for mean, variance in product(grid, (v for v in grid if v >= 0)):
        shift, rate = translate(mean, variance)
        moved = translate(mean + 1, variance) == (shift + 1, rate)
        confirm(moved, "equal variances shift by exactly one")
    shift, rate = translate(Fraction(1), Fraction(1))
    yield Case((shift + 1, rate) == translate(Fraction(2), second))


@check("LA.10-TV1", {"factor": 2, "last": 60})
def sum_is_twice(quick: bool, factor: int = 1, last: int = 5) -> Cases:
    """Total variation, as the two cited lemmas use it, is half the sum over all integers."""
    eta = (Fraction(0), *FAIR)
    confirm(translate(sum(eta), total_variance(eta)) == (1, 1), "Gamma is 1 + Poisson(1)")
    moved = translate(sum(eta[1:]) + 1, total_variance(eta[1:]))
    confirm(moved == (2, 1), "Gamma2 is 2 + Poisson(1)")

    def terms(upto: int) -> Fraction:  # in units of 1/e, s = 1..upto
        masses = [Fraction(0), *(Fraction(1, factorial(j)) for j in range(upto))]
        return total(abs(b - a) for a, b in pairwise(masses))

    distance = 1  # sup over sets: the largest mass of Poisson(1), in units of 1/e
    confirm(abs(float(terms(60)) - 2 * distance) < 1e-15, "over all integers the sum is 2 d_TV")
    twice = abs(float(terms(last)) - factor * distance) < 1e-15
    yield Case(twice, terms=terms(5), value=float(terms(5)) / e)


def bag_gap(eta: NDArray) -> float:
    """f1 - f2 of one bag under LLP."""
    return float(additive_advantage(eta[None], LabelProportions(len(eta))).mean())


def exact_gap(eta: exact.Bag, channel: exact.Channel = exact.label_proportions) -> Fraction:
    """f1 - f2 of one data set, by enumeration."""
    return total(exact.additive_advantage(eta, channel, i) for i in range(len(eta))) / len(eta)


def two_point_tails(quick: bool) -> Iterator[tuple[int, float, NDArray, NDArray, NDArray]]:
    """For eta in {low, high}: k, mu, and for n = 0..k high priors the gap, V and P(n)."""
    for size in (2, 5, 30, 1000) if quick else (2, 3, 5, 10, 30, 100, 1000, 10**4, 10**5):
        number = np.arange(size + 1)
        points = [(0.0, 0.5), (0.1, 0.5), (0.01, 0.9), (0.3, 0.3)]
        for low, high in points[:1] if size > 100 else points:
            if (low, high) == (0.0, 0.5):  # (n/k) C(n-1, (n-1)//2) / 2^n
                rest = np.maximum(number - 1, 0)
                gaps = number / size * stats.binom.pmf(rest // 2, rest, 0.5) / 2
            else:
                gaps = np.array([bag_gap(np.repeat([low, high], [size - n, n])) for n in number])
            a, b = low * (1 - low), high * (1 - high)
            for weight in (1e-4, 1e-2, 0.1, 0.4, 1.0):
                probability = stats.binom.pmf(number, size, weight)
                mu = (1 - weight) * a + weight * b
                yield size, mu, gaps, (size - number) * a + number * b, probability


@check("HP-def", {"subtract_uninformed": False})
def high_probability_definition(quick: bool, subtract_uninformed: bool = True) -> Cases:
    """HPAdv is the tail of a variable in [0, 1] whose mean is EAdv: its integral is EAdv."""
    distributions = [
        [(Fraction(1, 5), HALF), (HALF, HALF)],
        [(Fraction(0), Fraction(2, 3)), (HALF, Fraction(1, 3))],
        [(Fraction(1, 10), Fraction(1, 4)), (Fraction(9, 10), Fraction(3, 4))],
    ]
    for distribution, size in product(distributions, range(1, 4 if quick else 6)):
        mass: dict[Fraction, Fraction] = defaultdict(Fraction)
        for eta, weight in exact.bags(distribution, size):
            prior = 0 if subtract_uninformed else total(max(a, 1 - a) for a in eta) / size
            mass[exact_gap(eta) + prior] += weight
        confirm(all(0 <= value <= 1 for value in mass), "the gap lies in [0, 1]")
        area = Fraction(0)  # under theta -> P(gap > theta), a step function
        for low, high in pairwise(sorted({Fraction(0), *mass})):
            area += (high - low) * sum(mass[value] for value in mass if value > low)
        yield Case(area == exact.expected_advantage(distribution, exact.label_proportions, size))


@check("HP-RR", {"eta": (HALF,)})
def gap_of_response(quick: bool, eta: exact.Bag = (HALF, Fraction(0))) -> Cases:
    """f1 - f2 averages over the m examples, so it is IEAdv(x_1) only for m = 1."""
    channel = exact.randomized_response(Fraction(1, 4))
    grid = [Fraction(j, 5) for j in range(6)]
    for first in grid:
        single = exact.additive_advantage((first,), channel, 0)
        confirm(exact_gap((first,), channel) == single, "for m = 1 the two agree")
        for other in grid[:: (2 if quick else 1)]:
            alone = [exact_gap((value,), channel) for value in (first, other)]
            confirm(exact_gap((first, other), channel) == sum(alone) / 2, "the gap is the mean")
    own, mean = exact.additive_advantage(eta, channel, 0), exact_gap(eta, channel)
    yield Case(own == mean, own=own, mean=mean)


@check("TA.9", {"c1": 0.5}, {"c2": 40.0})
def tail_theorem(quick: bool, c1: float = 2.0, c2: float = 5.8) -> Cases:
    """Theorem A.9 with c1 = 2 and c2 = 5.8: even without the factor k + 1 and for every k.

    For every bag f1 - f2 <= 1.1255 sqrt(V)/k, and Chernoff's bound applies to V.
    """
    scaled = 0.0
    for eta in random_bags(quick):
        if (variance := total_variance(eta)) > 1e-12:
            scaled = max(scaled, bag_gap(eta) * len(eta) / sqrt(variance))
    for size, mu, gaps, variances, probability in two_point_tails(quick):
        tail = float(probability[gaps > c1 * sqrt(mu / size)].sum())
        inside = variances > 0
        scaled = max(scaled, float((gaps[inside] * size / np.sqrt(variances[inside])).max()))
        confirm(scaled <= BAG_CONSTANT, "f1 - f2 <= 1.1255 sqrt(V)/k")
        over = tail / max(exp(-c2 * size * mu), 1e-280) if tail > 1e-280 else 0.0
        yield Case(ratio=over, scaled=scaled, c1=c1, c2=c2)


@check("TA.9-m", {"c1": 0.5})
def many_bags(quick: bool, c1: float = 2.0, c2: float = 5.8) -> Cases:
    worst, example, weights = 0.0, {}, (Fraction(1, 10), HALF, Fraction(1))
    for size in (4, 12) if quick else (2, 4, 8, 12, 24):
        numbers = range(size + 1)
        gaps = [Fraction(n, size) * exact.independent_advantage(HALF, n) for n in numbers]
        for weight, n_bags in product(weights, range(1, 3 if quick else 4)):
            one_bag = list(zip(gaps, exact.binomial(size, weight), strict=True))
            means = [(total(bag) / n_bags, mass) for bag, mass in exact.bags(one_bag, n_bags)]
            threshold = c1 * sqrt(weight / 4 / size)
            tail = float(sum(mass for value, mass in means if value > threshold))
            worst = max(worst, tail * exp(c2 * n_bags * size * float(weight) / 4))
            if (size, weight) == (4, HALF):
                example[n_bags] = sum(mass for value, mass in means if value > Fraction(1, 8))
    confirm(worst <= 1, "the tail of n bags is at most exp(-c2 n k mu)")
    alone, twice = example[1], example[2]
    yield Case(alone == twice, alone=alone, twice=twice, c1=c1, c2=c2, worst=worst)


@check("e-truebound", {"constant": 0.5})
def explicit_bound(quick: bool, constant: float = 9.0) -> Cases:
    for size, mu, gaps, _, probability in two_point_tails(quick):
        for fraction in (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999):
            beta = fraction * (size - 1) * mu
            threshold = constant * (size * mu + beta) / (size * sqrt((size - 1) * mu - beta))
            right = (size + 1) * exp(-(beta**2) / (2 * size * mu + beta / 6))
            yield Case(ratio=float(probability[gaps > threshold].sum()) / max(right, 1e-280))


def float_moves(masses: NDArray) -> NDArray:
    """|P(Z = s) - P(Z = s - 1)| along the last axis."""
    return np.asarray(abs(np.diff(masses, prepend=0.0, append=0.0)))


def expected_move(eta: exact.Bag) -> Fraction:
    """The sum of |P(Sigma1 = s) - P(Sigma1 = s - 1)| over the counts that the bag can have."""
    moves = exact.differences(exact.poisson_binomial(eta[1:]))
    pairs = zip(moves, exact.poisson_binomial(eta), strict=True)
    return total(abs(move) for move, mass in pairs if mass)


@check("LA.10", {"constant": 0.93})
def neighbouring_counts(quick: bool, constant: float = 9.0) -> Cases:
    """Lemma A.10: compare with the sharp form, twice the largest mass of Sigma1."""
    scaled = []
    for eta in [*random_bags(quick), closed_forms.nearly_sharp_bag()]:
        if total_variance(eta) >= 1:
            moves, variance = float_moves(pmf(eta[1:])), total_variance(eta[1:])
            bessel = closed_forms.bessel_spread(1, variance)
            confirm(moves.sum() <= bessel + 1e-12, "the Bessel bound")
            scaled.append(moves[pmf(eta) > 0].sum() * sqrt(variance))
    sizes = (10, 1000) if quick else (5, 10, 100, 1000, 10**4, 10**5, 10**6)
    for size, p in product(sizes, (0.5, 0.3, 0.05, 1e-2, 1e-3, 1e-4)):
        if size * p * (1 - p) >= 1:
            top = stats.binom.pmf(floor(size * p), size - 1, p)
            scaled.append(2 * top * sqrt((size - 1) * p * (1 - p)))
    yield Case(max(scaled) <= constant, worst=max(scaled), constant=constant, bags=len(scaled))


@check("LA.10-eq2", {"first": HALF})
def second_equality(quick: bool, first: Fraction = Fraction(0)) -> Cases:
    for j, rest in product(range(7), OTHERS[: (1 if quick else 4)]):
        mean = expected_move((Fraction(j, 6), *rest))
        whole = exact.spread(exact.poisson_binomial(rest))
        confirm(mean <= whole, "the expectation is at most the sum")
        confirm(mean == whole or j in (0, 6), "they agree when 0 < eta_1 < 1")
    mean, whole = expected_move((first, *FAIR)), exact.spread(exact.poisson_binomial(FAIR))
    yield Case(mean == whole, first=first, mean=mean, whole=whole)


@check("LA.10-tri", {"compared": "Sigma"})
def triangle_step(quick: bool, compared: str = "Sigma1") -> Cases:
    eta = (Fraction(1), *FAIR)
    confirm(translate(sum(eta), total_variance(eta)) == (2, 1), "Gamma is 2 + Poisson(1)")
    unit = 1 / interval.e
    gamma = [0 * unit, 0 * unit, *(unit / factorial(j) for j in range(4))]
    count, rest = exact.poisson_binomial(eta), [*exact.poisson_binomial(eta[1:]), Fraction(0)]

    def apart(masses: list[Fraction]) -> Any:  # the sum over s = 0..5 of absolute differences
        return sum(abs(enclosure(a) - b) for a, b in zip(masses, gamma, strict=True))

    full = apart(count) + 1 - sum(gamma)  # and the mass of Gamma beyond 5
    printed = apart(rest if compared == "Sigma1" else count)
    for bag in random_bags(quick):
        variance = total_variance(bag[1:])
        if variance >= 1:
            left = float_moves(pmf(bag[1:])).sum()
            rate1 = translate(bag[1:].sum(), variance)[1]
            top = float(stats.poisson.pmf(floor(rate1), rate1))
            right = 4 * distance_to_translated(bag[1:]) + 2 * top
            confirm(left <= right + 1e-9, "the triangle inequality through Gamma1")
            whole = 4 * approximation_bound(bag[1:]) + 2 * top
            confirm(whole <= 13 / sqrt(variance), "the corrected chain ends below 13/sigma_1")
    whole = float(full.mid)
    yield Case(not printed > full, printed=float(printed.mid), distance=whole / 2, full=whole)


@check("LA.10-3s", {"power": 1.0})
def root_of_sigma(quick: bool, power: float = 0.5) -> Cases:
    grid = np.linspace(1, 50 if quick else 5000, 20001)
    confirm(np.all(np.sqrt(grid) + 2 <= 3 * np.sqrt(grid) + 1e-12), "3/sigma is enough")
    end, lemma_side = 9 / 16 ** (power / 2), 9 / sqrt(16)
    yield Case(end <= lemma_side, end=end, lemma_side=lemma_side, largest=grid[-1])


@check("LA.10-V1", {"constant": Fraction(7, 2)})
def needs_rest(quick: bool, constant: Fraction = Fraction(3)) -> Cases:
    rest = (Fraction(9, 10),) * 9
    variance = total_variance(rest)
    sigma, root = Fraction(9, 10), Fraction(81, 100)  # roots of V1 and of the sum of eta^3 (1-eta)
    confirm(sigma**2 == variance, "sigma_1 is 9/10")
    confirm(root**2 == sum(a**3 * (1 - a) for a in rest), "the other root is 81/100")
    confirm(variance + Fraction(1, 4) >= 1, "V is at least 1")
    left = (root + 2) / variance
    corrected = 1 + 4 / sqrt(3)
    near_one = np.array([0.5, *[0.99] * 76])
    both = [approximation_bound(eta) for eta in (near_one, near_one[1:])]
    allowed = [float(constant) / sqrt(total_variance(eta)) for eta in (near_one, near_one[1:])]
    right = constant / sigma
    for eta in random_bags(quick):
        if total_variance(eta) >= 1:
            scaled = approximation_bound(eta[1:]) * sqrt(total_variance(eta[1:]))
            confirm(scaled <= corrected, "V >= 1 gives 1 + 4/sqrt(3) instead of 3")
    yield Case(
        left <= right or sum(both) <= sum(allowed), left=left, constant=constant, right=right,
        both=sum(both), allowed=sum(allowed),
    )  # fmt: skip


@check("LA.10-fin", {"first": Fraction(0)})
def final_display(quick: bool, first: Fraction = Fraction(1)) -> Cases:
    def sides(eta: exact.Bag) -> tuple[Fraction, Fraction]:
        rest = [Fraction(0), *exact.poisson_binomial(eta[1:])]
        pairs = zip(exact.poisson_binomial(eta), rest, strict=True)
        return total(abs(mass - before) for mass, before in pairs if mass), expected_move(eta)

    for j, rest in product(range(9), OTHERS[: (1 if quick else 4)]):
        shown, wanted = sides((Fraction(j, 8), *rest))
        same = shown == (1 - Fraction(j, 8)) * wanted
        confirm(same, "the display is 1 - eta_1 times the lemma's side")
        confirm(shown <= 9 / sqrt(sqrt(total_variance(rest))), "the display is true")
    shown, wanted = sides((first, *FAIR))
    yield Case(shown == wanted, first=first, shown=shown, wanted=wanted)


def weighted_moves(eta: np.ndarray) -> np.ndarray:
    """mu_i E_s|(P(Sigma^(-i)=s) - P(Sigma^(-i)=s-1))/P(Sigma=s)| for each i."""
    moves = float_moves(leave_one_out(eta))
    return np.asarray(eta * (1 - eta) * moves[:, pmf(eta) > 0].sum(axis=1))


@check("TA.9-E", {"average": True})
def missing_expectation(quick: bool, average: bool = False) -> Cases:
    def right(eta: exact.Bag, count: int) -> Fraction:
        size, moves = len(eta), []
        for i, prior in enumerate(eta):
            posteriors = exact.posterior(eta, exact.label_proportions, i)
            moves.append(abs(prior - posteriors.get(Fraction(count, size), prior)))
        return total(moves) / size

    def mean_right(eta: exact.Bag) -> Fraction:
        return total(right(eta, s) * mass for s, mass in enumerate(exact.poisson_binomial(eta)))

    grid = list(exact.small_bags(3 if quick else 4, steps=6))
    slack = min(mean_right(eta) - exact_gap(eta) for eta in grid)
    confirm(slack >= 0, "with the expectation over Sigma the step holds")
    coins = (HALF, HALF)
    gap, shown = exact_gap(coins), mean_right(coins) if average else right(coins, 1)
    yield Case(gap <= shown, gap=gap, shown=shown, least=slack, bags=len(grid))


@check("TA.9-post", {"shift": 0})
def posterior_formula(quick: bool, shift: int = 1) -> Cases:
    for eta in exact.small_bags(3 if quick else 5, steps=6):
        # entry s + 1 is P(Sigma^(-1) = s), for s = -1..k
        rest = [Fraction(0), *exact.poisson_binomial(eta[1:]), Fraction(0)]
        for alpha, after in exact.posterior(eta, exact.label_proportions, 0).items():
            s = int(alpha * len(eta))
            positive, negative = eta[0] * rest[s + 1 - shift], (1 - eta[0]) * rest[s + 1]
            yield Case(positive == after * (positive + negative) and positive + negative > 0)


@check("e-eff_diff", {"factor": 0.9})
def effective_difference(quick: bool, factor: float = 1.0) -> Cases:
    """Each summand is E|eta_i - posterior|."""
    gaps = [factor * weighted_moves(eta).mean() - bag_gap(eta) for eta in random_bags(quick)]
    # the least slack without rounding
    yield Case(min(gaps) >= -1e-12, least=max(min(gaps), 0.0), bags=len(gaps))


@check("TA.9-le1", {"bound": 0.4})
def at_most_one(quick: bool, bound: float = 1.0) -> Cases:
    """The left side is E|eta_i - posterior|, which is at most 2 mu_i."""
    largest = [weighted_moves(eta).max() for eta in random_bags(quick)]
    yield Case(max(largest) <= bound, largest=max(largest), bound=bound, bags=len(largest))


@check("TA.9-fn", {"bag_size": 10})
def footnote(quick: bool, bag_size: int = 2) -> Cases:
    mu, beta = Fraction(1, 4), Fraction(1, 8)  # eta = 1/2 always, so V_i = (k-1) mu
    rest = (bag_size - 1) * mu
    event, needed = rest > rest - beta, 1 + beta  # the first is C = 0
    expected, no_variance = 16 * Fraction(1, 8), Fraction(0)  # eta in {0, 1/2}, k = 17, b = 1/2
    confirm(expected >= 1 + HALF, "the condition holds for the second distribution")
    confirm(no_variance <= expected - HALF, "a bag of zeros still has C = 1")
    holds = event == (rest >= needed)
    yield Case(holds, bag_size=bag_size, rest=rest, needed=needed, variance=bag_size * mu)


@check("TA.9-Bern", {"variance": 1 / 16})
def bernstein(quick: bool, variance: float = 1.0) -> Cases:
    sharper = 0.0
    sizes = (1, 5, 50, 1000) if quick else (1, 2, 5, 20, 50, 200, 1000, 10**4, 10**5)
    for size, weight in product(sizes, (1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5, 0.8, 0.99)):
        mu = weight / 4  # mu_i is 1/4 with probability `weight`, else 0
        for beta in np.geomspace(1e-3, 1, 25) * size * max(mu, 0.25 - mu):
            right = exp(-(beta**2) / (2 * variance * size * mu + beta / 6))
            quarter = exp(-(beta**2) / (size * mu / 2 + beta / 6))
            low = np.floor(4 * ((size - 1) * mu - beta) + 1e-9)
            upper = stats.binom.sf(np.floor(4 * (size * mu + beta) + 1e-9), size, weight)
            for tail in (upper, stats.binom.cdf(low, size - 1, weight)):
                sharper = max(sharper, tail / max(quarter, 1e-280))
                yield Case(ratio=float(tail / max(right, 1e-280)), sharper=sharper)


@check("RA.15", {"constant": 0.5})
def conditional_bound(quick: bool, constant: float = BESSEL_CONSTANT) -> Cases:
    ratios = []
    for eta in random_bags(quick):
        variances = eta * (1 - eta)
        own, rest = (values[variances > 0] for values in (variances, variances.sum() - variances))
        if own.size and np.all(rest > 1e-9):
            right = (own / np.sqrt(rest)).sum() / len(eta)
            ratios.append(bag_gap(eta) / right)
    yield Case(max(ratios) <= constant, worst=max(ratios), constant=constant, bags=len(ratios))


@check("RA.15-need", {"near": 0.1})
def further_assumption(quick: bool, near: float = 1e-6) -> Cases:
    worst = max(bag_gap(eta) * sqrt(len(eta)) for eta in random_bags(quick))
    confirm(worst <= BAG_CONSTANT / 2, "f1-f2 <= 0.5628/sqrt(k) for every bag")

    def displayed_sum(eta: NDArray) -> float:
        variances = eta * (1 - eta)
        return float((variances / np.sqrt(variances.sum() - variances)).sum() / len(eta))

    for eta in random_bags(quick):
        if total_variance(eta) >= 0.5:
            small = displayed_sum(eta) <= sqrt(0.5 / len(eta)) + 1e-12
            confirm(small, "V >= 1/2 is enough for the display")
    shown = displayed_sum(np.array([0.5, *[near] * 7])) * sqrt(8)
    yield Case(shown > 10, near=near, shown=shown, worst=worst)


def one_coin(flip: Fraction) -> exact.Channel:
    """A wrong mechanism: one coin flips all labels together."""
    return lambda labels: {labels: 1 - flip, tuple(1 - label for label in labels): flip}


Response = Callable[[Fraction], exact.Channel]


@check("LA.16", {"mechanism": one_coin})
def many_examples(quick: bool, mechanism: Response = exact.randomized_response) -> Cases:
    priors = (Fraction(1, 10), Fraction(2, 5), HALF, Fraction(9, 10))
    distribution = [(Fraction(1, 5), Fraction(1, 3)), (HALF, Fraction(2, 3))]
    for flip in (Fraction(0), Fraction(1, 10), Fraction(1, 3), HALF):
        channel = mechanism(flip)
        single = exact.expected_advantage(distribution, channel, 1)
        for size in range(2, 4 if quick else 5):
            confirm(exact.expected_advantage(distribution, channel, size) == single, "and EAdv")
            for eta, other in product(priors, repeat=2):
                alone = exact.additive_advantage((eta,), channel, 0)
                data = (eta, *(other,) * (size - 1))
                yield Case(exact.additive_advantage(data, channel, 0) == alone)


@check("TA.17", {"flip_of": lambda odds: 1 / (2 + odds)}, {"one_sided": True})
def advantage_formula(
    quick: bool, flip_of: exact.Flip = exact.flip_for, one_sided: bool = False
) -> Cases:
    """Theorem A.17 against every deterministic adversary; the formula uses pi = 1/(1+e^eps)."""
    powers = [exp(2.0**j) for j in (range(-4, 3) if quick else range(-4, 6))]
    for odds in (*(Fraction(2) ** j for j in range(0, 9, 2)), *map(Fraction, powers)):
        channel, pi = exact.randomized_response(flip_of(odds)), exact.flip_for(odds)
        grid = [Fraction(j, 20) for j in range(21)]
        for eta in (*grid, pi, 1 - pi, pi / 2, Fraction(1, 10**4)):
            best = exact.best_deterministic_gain((eta,), channel, 0)
            formula = (min(eta, 1 - eta) - pi) * (pi <= eta <= (1 if one_sided else 1 - pi))
            guess = {(z,): 1 if eta > 1 - pi else 0 if eta < pi else z for z in (0, 1)}
            pairs = exact.joint((eta,), channel, 0)
            printed = total(pair[guess[z]] for z, pair in pairs.items()) - max(eta, 1 - eta)
            yield Case(best == formula == printed)


@check("TA.17-info", {"flip": HALF})
def still_informative(quick: bool, flip: Fraction = Fraction(1, 4)) -> Cases:
    channel = exact.randomized_response(Fraction(1, 4))
    for eta in (Fraction(j, 40) for j in range(10)):  # eta < pi = 1/4
        guesses = {pair[1] > pair[0] for pair in exact.joint((eta,), channel, 0).values()}
        confirm(guesses == {False}, "outside G(pi) the best guess ignores the noisy label")
    prior = Fraction(1, 10)
    after = exact.posterior((prior,), exact.randomized_response(flip), 0)[(1,)]
    yield Case(after == prior, prior=prior, after=after)
