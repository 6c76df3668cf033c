"""The paper's bounds on the advantage, with their constants."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from labelaudit import checks
from labelaudit.checks import Floats, epsilons, sizes, variances

__all__ = ["LEMMA_CONSTANT", "general_form", "independent_bernstein_bound", "independent_gap_bound"]
__all__ += ["independent_root_bound", "individual_form", "individual_lemma_bound", "label_dp_bound"]
__all__ += ["lemma_bound", "multiplicative_tail_bound", "tail_probability", "tail_threshold"]

# The constant of Lemma A.2.
LEMMA_CONSTANT = math.exp(-1.5) + math.pi / 4 + math.pi / math.e


def independent_root_bound(p: ArrayLike, bag_size: ArrayLike) -> Floats:
    """Theorem 3.2, first case: EAdv <= sqrt(p (1 - p) / k) for labels independent of features.

    >>> float(independent_root_bound(0.5, 25))
    0.1
    """
    prior = checks.probabilities(p, "p")
    return np.sqrt(prior * (1 - prior) / sizes(bag_size))


def independent_gap_bound(p: ArrayLike, bag_size: ArrayLike, rate: float = 2.0) -> Floats:
    """Theorem 3.2, second case, with the constant 2 from Hoeffding: exp(-2 (p - 1/2)^2 k).

    >>> float(independent_gap_bound(0.0, 2)) == math.exp(-1)
    True
    """
    prior = checks.probabilities(p, "p")
    return np.exp(-rate * (prior - 0.5) ** 2 * sizes(bag_size))


def independent_bernstein_bound(p: ArrayLike, bag_size: ArrayLike) -> Floats:
    """The bound in the proof of Theorem 3.2: Bernstein's for P(alpha > 1/2), p <= 1/2.

    >>> float(independent_bernstein_bound(0.5, 10))
    1.0
    """
    prior = checks.probabilities(p, "p")
    gap = np.abs(prior - 0.5)
    spread = 2 * prior * (1 - prior) + 2 * gap / 3
    return np.exp(-(gap**2) * sizes(bag_size) / spread)


def c_k(k: Any, variance: Any, math: Any = np) -> Any:
    """The paper's c_k (Lemma A.2); `variance` is p(1 - p), `math` numpy or interval arithmetic."""
    log = math.log(8 * k)
    return (log / 3 + math.sqrt(2 * log + 12 * k * variance * log) / 6) / math.sqrt(k)


def lemma_form(
    k: Any, mu: Any, variance: Any, constant: float = LEMMA_CONSTANT, power: float = 0.25
) -> Any:
    """The right side of Lemma A.2."""
    inner = np.sqrt(constant * np.sqrt(mu) / k**1.5)
    return k**power * np.sqrt(2 * c_k(k, variance)) * inner + mu / k


def squares_form(k: Any, mu: Any, inner: Any = 8, math: Any = np) -> Any:
    """The right side of Lemma A.4, where `inner` is 8; the bracket of Lemma A.3 has 4."""
    volume = inner * mu * k
    tail = 4 * math.pi / (inner * math.e * mu * k**2)
    return (1 - 2 * mu) ** k + math.pi / (volume * math.sqrt(volume)) + tail


def sum_form(k: Any, mu: Any, variance: Any, inner: Any = 4, math: Any = np) -> Any:
    """The right side of Lemma A.3, where `inner` is 4; its proof ends with 8 and half the tail."""
    square = squares_form(k, mu, inner, math)
    return 1 / k + math.sqrt(2 * math.sqrt(k) * c_k(k, variance, math) * square)


def lemma_bound(p: ArrayLike, mu: ArrayLike, bag_size: ArrayLike) -> Floats:
    """Lemma A.2, the explicit form behind Theorem 3.3: EAdv of a bag of k + 1.

    >>> float(lemma_bound(0.5, 0.25, 101)).__round__(4)
    0.1475
    """
    prior, spread = checks.probabilities(p, "p"), variances(mu)
    return lemma_form(sizes(bag_size, 2) - 1, spread, prior * (1 - prior))


def general_form(p: ArrayLike, mu: ArrayLike, bag_size: ArrayLike) -> Floats:
    """The expression inside Theorem 3.3's O~, with constant 1 and no logarithm.

    In this form it is a bound for every bag of two or more, which the paper does not state: since
    mu <= p (1 - p), it is at least `root_bound`.

    >>> float(general_form(0.5, 0.25, 4)).__round__(4)
    0.4268
    """
    prior, spread = checks.probabilities(p, "p"), variances(mu)
    k = sizes(bag_size, 2)
    return (spread * prior * (1 - prior)) ** 0.25 / np.sqrt(k) + spread**0.25 / k


def individual_form(mu_i: ArrayLike, p: ArrayLike, mu: ArrayLike, bag_size: ArrayLike) -> Floats:
    """The expression of Theorem 3.4 with constant 1 and no logarithm: a bound on IEAdv.

    Infinite unless k >= (2 / mu) log(1 / mu), the theorem's condition.

    >>> individual_form(0.25, 0.5, 0.25, [11, 12]).round(4).tolist()
    [inf, 0.2064]
    """
    own, prior, spread = variances(mu_i, "mu_i"), checks.probabilities(p, "p"), variances(mu)
    k = sizes(bag_size, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = spread + spread**-1.5
        form = (prior * (1 - prior)) ** 0.25 * np.sqrt(inner / k) + np.sqrt(inner) / k
        enough = k >= 2 / spread * np.log(1 / spread)
        return np.where(enough, own * form, np.inf)


def individual_lemma_bound(
    mu_i: ArrayLike, p: ArrayLike, mu: ArrayLike, bag_size: ArrayLike
) -> Floats:
    """Lemma A.3 times mu_i, the explicit form behind Theorem 3.4: IEAdv in a bag of k + 1.

    >>> float(individual_lemma_bound(0.25, 0.5, 0.25, 101)).__round__(4)
    0.0687
    """
    own, prior, spread = variances(mu_i, "mu_i"), checks.probabilities(p, "p"), variances(mu)
    with np.errstate(divide="ignore", invalid="ignore"):
        total = sum_form(sizes(bag_size, 2) - 1, spread, prior * (1 - prior))
        return np.where(own == 0, 0.0, own * total)


def tail_threshold(mu: ArrayLike, bag_size: ArrayLike, fraction: float = 0.5) -> Floats:
    """Theorem A.9, explicit: a level that f_1 - f_2 of a bag exceeds with small probability.

    9 (k mu + beta) / (k sqrt((k - 1) mu - beta)) with beta = `fraction` of (k - 1) mu. The
    probability is at most `tail_probability`.

    >>> float(tail_threshold(0.25, 101)).__round__(4)
    0.9514
    """
    spread, k = variances(mu), sizes(bag_size, 2)
    beta = checks.real_number(fraction, "fraction", 0, 1) * (k - 1) * spread
    with np.errstate(divide="ignore", invalid="ignore"):
        level = 9 * (k * spread + beta) / (k * np.sqrt((k - 1) * spread - beta))
    return np.where(spread == 0, 0.0, level)


def tail_probability(mu: ArrayLike, bag_size: ArrayLike, fraction: float = 0.5) -> Floats:
    """Theorem A.9, explicit: a bound on the probability of exceeding `tail_threshold`.

    >>> float(tail_probability(0.25, 401)).__round__(5)
    0.00254
    """
    spread, k = variances(mu), sizes(bag_size, 2)
    beta = checks.real_number(fraction, "fraction", 0, 1) * (k - 1) * spread
    with np.errstate(invalid="ignore"):
        exponent = np.where(spread == 0, 0.0, beta**2 / (2 * k * spread + beta / 6))
    return (k + 1) * np.exp(-exponent)


def label_dp_bound(epsilon: ArrayLike) -> Floats:
    """The bound cited before Theorem 3.5: EAdv <= 1 - 2 / (1 + e^epsilon) under label-DP.

    >>> float(label_dp_bound(1.0)).__round__(4)
    0.4621
    """
    return np.tanh(epsilons(epsilon) / 2)


def multiplicative_tail_bound(p: ArrayLike, bag_size: ArrayLike, delta: ArrayLike) -> Floats:
    """Theorem 3.7 with constants that work: |I| exceeds this with probability at most delta.

    2.13 sqrt(log(2 / delta) / (p (1 - p) k)) where k >= 32 log(2 / delta) / (p (1 - p)), for
    labels independent of features; infinite for smaller bags. The printed log(1 / delta) is not
    enough for delta near 1.

    >>> multiplicative_tail_bound(0.5, [400, 800], 0.05).round(4).tolist()
    [inf, 0.2893]
    """
    prior, k = checks.probabilities(p, "p"), sizes(bag_size)
    level = checks.probabilities(delta, "delta")
    with np.errstate(divide="ignore"):
        scaled = np.log(2 / level) / (prior * (1 - prior) * k)
    return np.where(scaled <= 1 / 32, 2.13 * np.sqrt(scaled), np.inf)
