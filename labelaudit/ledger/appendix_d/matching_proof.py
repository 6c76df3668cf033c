"""The losses of proportion matching, its expected trajectory, and the proofs of D.1 and D.2.

Paper lines 1618 to 1628 and 1683 to 1712; the exact model is that of `proportion_matching`.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import log, sqrt
from typing import Any

import mpmath
import sympy

from labelaudit.ledger.appendix_d.proportion_matching import (
    CHAPTER,
    OTHER_THETA,
    PRIOR,
    RATES,
    SLOPES,
    TRUE_THETA,
    direction,
    model,
    outcomes,
    prediction,
    sizes,
    square_norm,
)
from labelaudit.ledger.exact import HALF, poisson_binomial
from labelaudit.ledger.rows import Finding, Search, confirm, statement


def laplace_mean(function: Any, scale: float) -> Any:
    """E f(Z) for Laplace noise Z, by quadrature on both half-lines."""

    def both_sides(z: Any) -> Any:
        return (function(z) + function(-z)) * mpmath.exp(-z / scale) / (2 * scale)

    return mpmath.quad(both_sides, [0, scale, 10 * scale, mpmath.inf])


@statement(
    "D-traj",
    1622,
    "the expected SGD trajectory with LLP+Lap is the same for every epsilon, infinity included",
    chapter=CHAPTER,
    mutants=[{"predictor": "linear"}],
)
def expected_trajectory(search: Search, predictor: str = "logistic") -> Finding:
    """One step is; the second is not, unless the gradient is affine in the parameter."""
    start, rate, x, one, two, alpha = sympy.symbols("theta0 rate x z1 z2 alpha")
    first = start - 2 * rate * x * (x * start - alpha - one)
    second = sympy.expand(first - 2 * rate * x * (x * first - alpha - two))
    linear = all(sympy.degree(second, z) == 1 for z in (one, two)) and second.coeff(one * two) == 0
    confirm(linear, "squared error with h = theta x: the second iterate is affine in the noise")

    step = log(3)  # logistic predictor, cross entropy, theta_0 = 0, k = 1 and the label always 1

    def second_iterate(mean_prediction: Any) -> Any:
        return step / 2 - step * (mean_prediction - 1)

    def sigmoid(t: Any) -> Any:
        return 1 / (1 + mpmath.exp(-t))

    clean = second_iterate(sqrt(3) / (1 + sqrt(3)))  # sigmoid(ln(3)/2)
    noisy = second_iterate(laplace_mean(lambda z: sigmoid(step / 2 + step * z), 1.0))
    # debiased RR at e^epsilon = 3 gives 3/2 or -1/2, so theta_1 = +-ln 3 with chances 3/4 and 1/4
    response = second_iterate(Fraction(3, 4) * Fraction(3, 4) + Fraction(1, 4) * Fraction(1, 4))
    same = predictor == "linear" and linear
    same |= predictor == "logistic" and abs(noisy - clean) < 1e-9 and abs(response - clean) < 1e-9
    return Finding(
        "holds" if same else "false",
        evidence="Logistic predictor, cross entropy, theta_0 = 0, step ln 3, one example with "
        f"label 1 for sure. After two steps E[theta_2] = {clean:.4f} without noise and "
        f"{float(noisy):.4f} with Laplace noise at epsilon = 1. With debiased RR at e^epsilon = 3 "
        f"the mean prediction after one step is 5/8 exactly, not sqrt(3)/(1+sqrt(3)) = "
        f"{sqrt(3) / (1 + sqrt(3)):.4f}. The noise moves theta_1, and the gradient is not affine "
        "in theta.",
        searched="two steps, exactly; the linear case symbolically",
        mended="At each fixed theta the expected gradient is the same for every epsilon, so the "
        "first step is. The whole expected trajectory is the same when the gradient is affine in "
        "theta (linear predictor, squared error, fresh bags).",
    )


@statement(
    "D-proper",
    1625,
    "cross entropy is proper: for every real A, E l(p, A) has its unique minimiser at E(A); l >= 0",
    chapter=CHAPTER,
    mutants=[{"mean": HALF, "outcome": 1}],
)
def proper_losses(search: Search, mean: Fraction = Fraction(2), outcome: int = 2) -> Finding:
    """The derivative has the sign of p - E(A): without E(A) in (0, 1) there is no minimiser."""
    p, mu = sympy.symbols("p mu")
    entropy = -mu * sympy.log(p) - (1 - mu) * sympy.log(1 - p)
    slope = sympy.simplify(sympy.diff(entropy, p) - (p - mu) / (p * (1 - p)))
    confirm(slope == 0, "d/dp E l(p, A) = (p - mu)/(p(1-p)) for cross entropy")
    square = sympy.diff((p - mu) ** 2, p)
    confirm(sympy.simplify(square - 2 * (p - mu)) == 0, "and 2(p - mu) for squared error")
    value = -outcome * log(0.9) - (1 - outcome) * log(0.1)
    return Finding(
        "holds" if 0 < mean < 1 and value >= 0 else "false",
        evidence="Take A = 2, a value a noisy proportion can have. Then l(p, 2) = -2 ln p + "
        "ln(1-p) falls without bound as p tends to 1, so it has no minimiser, and l(9/10, 2) = "
        f"{value:.4f} is negative although losses are to take values in R+. Squared error "
        "is proper for every A of finite variance.",
        searched="derivatives in sympy; one exact case",
        mended="Cross entropy has its unique minimiser at E(A) whenever 0 < E(A) < 1, whatever "
        "values A takes, which is all Theorem D.1 uses if 0 < h*(B) < 1; it is nonnegative only "
        "for A in [0, 1].",
    )


@statement(
    "D-affine",
    1625,
    "d/dp l(p, y) is affine in y for cross entropy and squared error",
    chapter=CHAPTER,
    mutants=[{"power": 4}],
)
def affine_slopes(search: Search, power: int = 2) -> Finding:
    """The second derivative in y of dl/dp is zero."""
    p, y = sympy.symbols("p y")
    losses = [-y * sympy.log(p) - (1 - y) * sympy.log(1 - p), (p - y) ** power]
    curves = [sympy.simplify(sympy.diff(loss, p, y, y)) for loss in losses]
    slopes = [sympy.simplify(sympy.diff(loss, p, y)) for loss in losses]
    return Finding(
        "holds" if curves == [0, 0] else "false",
        evidence=f"sympy: the derivative of dl/dp in y is {slopes[0]} for cross entropy and "
        f"{slopes[1]} for squared error, neither of which contains y.",
        searched="symbolic",
    )


@statement(
    "TD.1-mean",
    1686,
    "argmin_p E l(p, noisy alpha) = E(alpha) = (1/k) h*(x)",
    chapter=CHAPTER,
    mutants=[{"summed": True}],
)
def mean_of_proportion(search: Search, summed: bool = False) -> Finding:
    """The mean proportion of a bag is the average of h* over it: the sum sign is missing."""
    for size in sizes(search):
        for features in product((0, 1), repeat=size):
            law = poisson_binomial([PRIOR[x] for x in features])
            mean = sum((Fraction(s, size) * mass for s, mass in enumerate(law)), Fraction(0))
            confirm(mean == sum(PRIOR[x] for x in features) / size, "E(alpha) averages h*")
    mean = (PRIOR[0] + PRIOR[1]) / 2
    printed = [sum(PRIOR.values()) / 2] if summed else [PRIOR[x] / 2 for x in (0, 1)]
    return Finding(
        "holds" if mean in printed else "misprint",
        evidence="For a bag of two examples with h* = 1/5 and 2/3, E(alpha) = 13/30, while "
        "(1/k) h*(x) is 1/10 or 1/3, depending on which x is meant.",
        searched=f"every bag of up to {sizes(search)[-1]} of the exact model",
        mended="E(alpha) = (1/k) sum over x in B of h*(x).",
    )


@statement(
    "TD.2-cross",
    1705,
    "the cross term E<grad l, d/dalpha grad l> in the sum of covariances is 0",
    chapter=CHAPTER,
    mutants=[{"with_noise": True}],
)
def cross_term(search: Search, with_noise: bool = False) -> Finding:
    """The printed cross term has lost its factor Z_alpha (and the 2 of a square)."""

    def cross(size: int, name: str, with_noise: bool) -> Fraction:
        slope, rate = SLOPES[name], RATES[name]
        terms = (
            mass * slope(p, alpha) * rate(p) * square_norm(direction(features)) * factor
            for mass, features, alpha, noise in outcomes(size)
            for p, factor in [(prediction(OTHER_THETA, features), noise if with_noise else 1)]
        )
        return sum(terms, Fraction(0))

    for size, name in product(sizes(search), SLOPES):
        confirm(cross(size, name, True) == 0, "with the noise the cross term vanishes")
    shown = cross(1, "squared error", with_noise)
    return Finding(
        "holds" if shown == 0 else "misprint",
        evidence=f"In the exact model with k = 1 and squared error the printed term is {shown}, "
        "not 0; in general it is the mean of a (a alpha + b) |grad h(B)|^2. The term meant has the "
        "factor Z_alpha, whose mean is zero given alpha, and is exactly 0.",
        searched=model(search),
        mended="2 E(Z_alpha <grad l, d/dalpha grad l>) = 0, once traces are taken. Equation "
        "(pm-variance) stands.",
    )


@statement(
    "TD.2-trace",
    1711,
    "E|X|^2 = tr Cov(X) for a random vector X",
    chapter=CHAPTER,
    mutants=[{"theta": TRUE_THETA}],
)
def trace_of_covariance(search: Search, theta: tuple[Fraction, Fraction] = OTHER_THETA) -> Finding:
    """Only for mean zero; both sides of the equality miss the same square of the mean."""

    def parts(size: int, name: str) -> tuple[Fraction, Fraction, Fraction]:
        mean, square = [Fraction(0)] * 2, [Fraction(0)] * 2
        for mass, features, alpha, _ in outcomes(size):
            for axis, part in enumerate(direction(features)):
                value = SLOPES[name](prediction(theta, features), alpha) * part
                mean[axis] += mass * value
                square[axis] += mass * value**2
        trace = sum((s - m**2 for s, m in zip(square, mean, strict=True)), Fraction(0))
        return sum(square, Fraction(0)), trace, square_norm(tuple(mean))

    for size, name in product(sizes(search), SLOPES):
        norm, trace, centre = parts(size, name)
        confirm(norm == trace + centre, "E|X|^2 = tr Cov(X) + |E X|^2")
    norm, trace, centre = parts(1, "squared error")
    return Finding(
        "holds" if norm == trace else "false",
        evidence="The constant X = 1 has E|X|^2 = 1 and covariance 0. The gradient of the exact "
        f"model with k = 1 and squared error has E|X|^2 = {norm} and tr Cov(X) = {trace}; "
        f"they differ by |E X|^2 = {centre}, which is 0 only where the "
        "expected gradient vanishes.",
        searched=model(search),
        mended="E|X|^2 = tr Cov(X) + |E X|^2. By (pm-bias) both gradients have the same mean, so "
        "the same term joins both sides and equation (pm-variance) is unaffected.",
    )


@statement(
    "TD.2-ref",
    1711,
    "the end of the proof: which display it cites, and which square it calls nonnegative",
    chapter=CHAPTER,
)
def wrong_references(search: Search) -> Finding:
    """The sentence is about the variance equation, and about |d/dalpha grad l|^2."""
    return Finding(
        "misprint",
        evidence="Squared norms are equated in (pm-variance); (pm-bias) was proved a few lines "
        "earlier. And what E[Z^2] multiplies, so what has to be nonnegative, is "
        "|d/dalpha grad l|^2.",
        searched="read closely: the last paragraph of the proof",
        mended="the equality in (pm-variance); the fact that |d/dalpha grad l|^2 is nonnegative.",
    )
