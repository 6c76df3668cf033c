"""Checks of Appendix D, proportion matching with noisy proportions (paper lines 1617 to 1712).

The exact model: x is 0 or 1 with equal probability, P(y=1|x) is 1/5 or 2/3, the predictor is
h(x) = theta_0 + theta_1 x, and the release is LLP+Geom with e^epsilon = 2, debiased with the
correct 1/k (C-deb). Its noise has mean zero for each proportion alpha and a variance that depends
on alpha.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise, product
from math import log, sinh
from typing import NamedTuple

import sympy
from scipy import special, stats

from book.ledger import exact
from book.ledger.check import Case, Cases, check, confirm
from book.ledger.exact import HALF, total

Q, EPSILON = sympy.symbols("q epsilon", positive=True)

PRIOR = {0: Fraction(1, 5), 1: Fraction(2, 3)}
TRUE_THETA = (Fraction(1, 5), Fraction(7, 15))  # h* as theta
OTHER_THETA = (Fraction(1, 3), Fraction(1, 4))
Theta = tuple[Fraction, Fraction]
Slope = Callable[[Fraction, Fraction], Fraction]
SLOPES: dict[str, Slope] = {
    "squared error": lambda p, y: 2 * (p - y),
    "cross entropy": lambda p, y: (p - y) / (p * (1 - p)),
}
RATES: dict[str, Callable[[Fraction], Fraction]] = {  # the derivative of the slope in y
    "squared error": lambda p: Fraction(-2),
    "cross entropy": lambda p: -1 / (p * (1 - p)),
}


class NoisyBag(NamedTuple):
    """One bag: its probability, mean feature, mean prediction, proportion and released noise.

    The gradient of the mean prediction in theta is (1, x), so its squared norm is 1 + x^2.
    """

    mass: Fraction
    x: Fraction
    p: Fraction
    alpha: Fraction
    noise: Fraction


def noisy_bags(size: int, divide: bool = True, theta: Theta = OTHER_THETA) -> Iterator[NoisyBag]:
    """Every bag, count and release of the exact model; divide=False is the printed debiasing."""
    rows, values = exact.geometric_count(size, HALF), exact.debiased(size, HALF, divide)
    for features in product((0, 1), repeat=size):
        x = Fraction(sum(features), size)
        p = theta[0] + theta[1] * x
        for count, probability in enumerate(exact.poisson_binomial([PRIOR[i] for i in features])):
            alpha = Fraction(count, size)
            for mass, value in zip(rows[count], values, strict=True):
                yield NoisyBag(HALF**size * probability * mass, x, p, alpha, value - alpha)


def square_terms(size: int, name: str, divide: bool = True) -> tuple[Fraction, ...]:
    """E|grad(noisy)|^2, E|grad(alpha)|^2, E Z^2|d grad|^2, and E|d grad|^2, exactly."""
    slope, rate, totals = SLOPES[name], RATES[name], [Fraction(0)] * 4
    for mass, x, p, alpha, noise in noisy_bags(size, divide):
        change = rate(p) ** 2
        squares = (slope(p, alpha + noise) ** 2, slope(p, alpha) ** 2, noise**2 * change, change)
        totals = [a + mass * (1 + x**2) * b for a, b in zip(totals, squares, strict=True)]
    return tuple(totals)


@check("TD.1", {"divide": False}, {"weight": Fraction(103, 100)})
def optimal_predictor(quick: bool, divide: bool = True, weight: Fraction = Fraction(1)) -> Cases:
    """At h* the risk of cross entropy (positives weighted) has zero slope and positive curvature.

    The excess of squared error is Var(h-h*)/k + (E(h-h*))^2, zero only for h = h* a.s.
    """
    grid = [Fraction(j, 12) for j in range(1, 12)]
    for size in range(1, 4 if quick else 5):
        table = list(noisy_bags(size, divide, TRUE_THETA))
        for low, high in product(grid, repeat=2):
            gaps, excess = (low - PRIOR[0], high - PRIOR[1]), Fraction(0)
            for mass, x, best, alpha, noise in table:
                p, noisy = low + (high - low) * x, alpha + noise
                excess += mass * ((p - noisy) ** 2 - (best - noisy) ** 2)
            closed = (gaps[0] - gaps[1]) ** 2 / 4 / size + (sum(gaps) / 2) ** 2
            yield Case(excess == closed > 0, points=len(grid), size=size)
        slopes, curves = [Fraction(0)] * 2, [Fraction(0)] * 3
        for mass, x, p, alpha, noise in table:  # h(0) counts 1 - x in the prediction, h(1) x
            y = alpha + noise
            slope, curve = (1 - y) / (1 - p) - weight * y / p, (1 - y) / (1 - p) ** 2 + y / p**2
            slopes = [a + mass * slope * b for a, b in zip(slopes, (1 - x, x), strict=True)]
            squares = ((1 - x) ** 2, x * (1 - x), x**2)
            curves = [a + mass * curve * b for a, b in zip(curves, squares, strict=True)]
        yield Case(not any(slopes) and curves[0] > 0 and curves[0] * curves[2] > curves[1] ** 2)


@check("TD.2-bias", {"divide": False}, {"slopes": {"fourth power": lambda p, y: 4 * (p - y) ** 3}})
def unbiased_gradient(quick: bool, divide: bool = True, slopes: dict[str, Slope] = SLOPES) -> Cases:
    for size, slope, axis in product(range(1, 4 if quick else 7), slopes.values(), (0, 1)):
        bias = total(
            mass * (slope(p, alpha + noise) - slope(p, alpha)) * x**axis
            for mass, x, p, alpha, noise in noisy_bags(size, divide)
        )
        yield Case(bias == 0)


@check("TD.2-var", {"divide": False})
def gradient_square(quick: bool, divide: bool = True) -> Cases:
    a, b, alpha, first, second, z = sympy.symbols("a b alpha m1 m2 Z")
    grown = sympy.expand((a * (alpha + z) + b) ** 2 - (a * alpha + b) ** 2)
    mean = grown.coeff(z, 1) * first + grown.coeff(z, 2) * second
    confirm(sympy.simplify(mean.subs(first, 0) - a**2 * second) == 0, "given the bag and alpha")
    for size, name in product(range(1, 4 if quick else 7), SLOPES):
        noisy, clean, added, _ = square_terms(size, name, divide)
        yield Case(noisy == clean + added)


@check("TD.2-max", {"choose": min})
def largest_variance(quick: bool, choose: Callable[[list[Fraction]], Fraction] = max) -> Cases:
    ratios = []
    for size, name in product(range(1, 4 if quick else 7), SLOPES):
        variances = [exact.moments(size, HALF, count)[1] for count in range(size + 1)]
        *_, added, bare = square_terms(size, name)
        ratios.append(added / (choose(variances) * bare))
    yield Case(max(ratios) <= 1, least=min(ratios), worst=max(ratios))


@check("D-varGeom", {"laplace": 1.0})
def variance_of_geometric(quick: bool, laplace: float = 2.0) -> Cases:
    generating = Q * sympy.diff(Q * sympy.diff(1 / (1 - Q), Q), Q)  # sum of j^2 q^j
    variance = 2 * (1 - Q) / (1 + Q) * generating
    same = sympy.simplify(variance - 2 * Q / (1 - Q) ** 2) == 0
    square = (sympy.exp(EPSILON / 2) - sympy.exp(-EPSILON / 2)) ** 2
    rewritten = sympy.simplify((Q / (1 - Q) ** 2).subs(Q, sympy.exp(-EPSILON)) * square)
    confirm(rewritten == 1, "q/(1-q)^2 = 1/(2 sinh(eps/2))^2")
    grid = [2.0 ** (j / 4) for j in range(-4 * (6 if quick else 20), 21)]
    ratios = [2 / (2 * sinh(eps / 2)) ** 2 * eps**2 / laplace for eps in grid]
    falls = max(ratios) < 1 and all(a > b for a, b in pairwise(ratios))
    first, last, start, end = ratios[0], ratios[-1], grid[0], grid[-1]
    yield Case(same and falls, first=first, last=last, start=start, end=end, points=len(grid))


@check("D-clipvar", {"divide": False})
def clipping_helps(quick: bool, divide: bool = True) -> Cases:
    """q/((1-q)^2 k^2) (2 - (q^s + q^(k-s))/(1+q)), against 2q/((1-q)^2 k^2) before clipping."""
    worst, printed = Fraction(0), exact.moments(2, HALF, 1, False)[1]
    for size, ratio, count in exact.noisy_counts(quick):
        unit = ratio / (1 - ratio) ** 2 / size**2
        variance = exact.moments(size, ratio, count, divide)[1]
        if divide:
            saved = (ratio**count + ratio ** (size - count)) / (1 + ratio)
            confirm(variance == unit * (2 - saved), "the closed form of the variance")
        worst = max(worst, variance / (2 * unit))
    yield Case(worst < 1, worst=worst, printed=printed)


@check("D-varRR", {"wrong": 1})
def variance_of_response(quick: bool, wrong: int = 0) -> Cases:
    """The debiased noisy label takes two values that are (e+1)/(e-1) apart."""
    odds = sympy.symbols("odds", positive=True)
    flip = 1 / (1 + wrong + odds)
    variance = flip * (1 - flip) * ((odds + 1) / (odds - 1)) ** 2
    for ratio, label in product(exact.RATIOS, (0, 1)):
        same = exact.moments(1, ratio, label)[1] == 1 / ratio / (1 - 1 / ratio) ** 2
        confirm(same, "LLP+Geom with k = 1 has the same variance")
    yield Case(sympy.simplify(variance - odds / (1 - odds) ** 2) == 0)


@check("D-1/k2", {"clipped": False})
def less_noise(quick: bool, clipped: bool = True) -> Cases:
    """The mean of k debiased labels has variance e^eps/((1-e^eps)^2 k), for all labels."""
    worst, scaled = Fraction(0), Fraction(2)
    for size, ratio, count in exact.noisy_counts(quick):
        unit = ratio / (1 - ratio) ** 2  # the variance of one debiased label
        variance = exact.moments(size, ratio, count)[1] if clipped else 2 * unit / size**2
        confirm(size > 1 or not clipped or variance == unit, "at k = 1 the two coincide")
        if size > 1:
            worst = max(worst, variance * size / unit)
        scaled = min(scaled, variance * size**2 / unit)
    yield Case(worst < 1, worst=worst, scaled=scaled)


@check("D-traj", {"predictor": "linear"})
def expected_trajectory(quick: bool, predictor: str = "logistic") -> Cases:
    start, rate, x, z1, z2, alpha = sympy.symbols("theta0 rate x z1 z2 alpha")
    first = start - 2 * rate * x * (x * start - alpha - z1)
    second = sympy.expand(first - 2 * rate * x * (x * first - alpha - z2))
    linear = all(sympy.degree(second, z) == 1 for z in (z1, z2)) and second.coeff(z1 * z2) == 0
    confirm(linear, "squared error with h = theta x: the second iterate is affine in the noise")

    step = log(3)  # logistic predictor, cross entropy, theta_0 = 0, k = 1 and the label always 1

    def second_iterate(mean_prediction: float) -> float:
        return step / 2 - step * (mean_prediction - 1)

    clean = second_iterate(special.expit(step / 2))
    predicted = stats.laplace.expect(lambda z: special.expit(step / 2 + step * z))
    noisy = second_iterate(predicted)
    # debiased RR at e^epsilon = 3 gives 3/2 or -1/2, so theta_1 is ln 3 (probability 3/4) or -ln 3
    response = second_iterate(3 / 4 * 3 / 4 + 1 / 4 * 1 / 4)
    apart = max(abs(noisy - clean), abs(response - clean))
    yield Case(predictor == "linear" or apart < 1e-9, clean=clean, noisy=noisy)


@check("D-proper", {"mean": HALF, "outcome": 1})
def proper_losses(quick: bool, mean: Fraction = Fraction(2), outcome: int = 2) -> Cases:
    p, mu = sympy.symbols("p mu")
    entropy = -mu * sympy.log(p) - (1 - mu) * sympy.log(1 - p)
    slope = sympy.simplify(sympy.diff(entropy, p) - (p - mu) / (p * (1 - p)))
    confirm(slope == 0, "d/dp E l(p, A) = (p - mu)/(p(1-p)) for cross entropy")
    square = sympy.diff((p - mu) ** 2, p)
    confirm(sympy.simplify(square - 2 * (p - mu)) == 0, "and 2(p - mu) for squared error")
    value = -outcome * log(0.9) - (1 - outcome) * log(0.1)
    yield Case(0 < mean < 1 and value >= 0, value=value)


@check("TD.1-mean", {"summed": True})
def mean_of_proportion(quick: bool, summed: bool = False) -> Cases:
    for size in range(1, 4 if quick else 7):
        for features in product((0, 1), repeat=size):
            pmf = exact.poisson_binomial([PRIOR[x] for x in features])
            mean = total(Fraction(s, size) * mass for s, mass in enumerate(pmf))
            confirm(mean == sum(PRIOR[x] for x in features) / size, "E(alpha) averages h*")
    mean = (PRIOR[0] + PRIOR[1]) / 2
    printed = [sum(PRIOR.values()) / 2] if summed else [PRIOR[x] / 2 for x in (0, 1)]
    yield Case(mean in printed)


@check("TD.2-cross", {"with_noise": True})
def cross_term(quick: bool, with_noise: bool = False) -> Cases:
    def cross(size: int, name: str, with_noise: bool) -> Fraction:
        return total(
            mass * SLOPES[name](p, alpha) * RATES[name](p) * (1 + x**2) * noise**with_noise
            for mass, x, p, alpha, noise in noisy_bags(size)
        )

    for size, name in product(range(1, 4 if quick else 7), SLOPES):
        confirm(cross(size, name, True) == 0, "with the noise the cross term vanishes")
    shown = cross(1, "squared error", with_noise)
    yield Case(shown == 0, shown=shown)


@check("TD.2-trace", {"theta": TRUE_THETA})
def trace_of_covariance(quick: bool, theta: Theta = OTHER_THETA) -> Cases:
    def parts(size: int, name: str) -> tuple[Fraction, Fraction, Fraction]:
        norm = trace = centre = Fraction(0)
        for axis in (0, 1):
            bags = list(noisy_bags(size, theta=theta))
            values = [(bag.mass, SLOPES[name](bag.p, bag.alpha) * bag.x**axis) for bag in bags]
            mean = total(mass * value for mass, value in values)
            norm += total(mass * value**2 for mass, value in values)
            trace += total(mass * (value - mean) ** 2 for mass, value in values)
            centre += mean**2
        return norm, trace, centre

    for size, name in product(range(1, 4 if quick else 7), SLOPES):
        norm, trace, centre = parts(size, name)
        confirm(norm == trace + centre, "E|X|^2 = tr Cov(X) + |E X|^2")
    norm, trace, centre = parts(1, "squared error")
    yield Case(norm == trace, norm=norm, trace=trace, centre=centre)
