"""Bounds on the advantage: the paper's with their constants, and the book's sharper ones.

Throughout, `bag_size` is the number of people in the whole bag. Where the paper writes a bag of
k + 1 (Lemma A.2 and after), its k is `bag_size - 1`. `p` is the mean prior and `mu` the mean of
eta (1 - eta). All arguments broadcast. A bound whose condition fails is infinite: it says nothing.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from labelaudit import checks
from labelaudit.checks import Floats

# Twice the supremum of sqrt(v) exp(-v) I0(v), 0.4688224 at v = 0.78998, rounded up.
BESSEL_CONSTANT = 0.93765

# The constant of Lemma A.2.
LEMMA_CONSTANT = math.exp(-1.5) + math.pi / 4 + math.pi / math.e


def _sizes(bag_size: ArrayLike, least: int = 1) -> Floats:
    sizes = checks.numbers(bag_size, "bag_size")
    bad = ~((sizes >= least) & (sizes == np.floor(sizes)) & np.isfinite(sizes))
    if bad.any():
        value = sizes[bad].flat[0]
        raise ValueError(f"bag_size must be a whole number of at least {least}, not {value:g}")
    return sizes


def _at_most(values: ArrayLike, name: str, most: float) -> Floats:
    array = checks.numbers(values, name)
    bad = ~((array >= 0) & (array <= most))
    if bad.any():
        raise ValueError(f"{name} must lie in [0, {most:g}], not {array[bad].flat[0]:g}")
    return array


def _mu(mu: ArrayLike, name: str = "mu") -> Floats:
    return _at_most(mu, name, 0.25)


def _epsilons(epsilon: ArrayLike) -> Floats:
    return _at_most(epsilon, "epsilon", math.inf)


def independent_advantage(p: ArrayLike, bag_size: ArrayLike) -> Floats:
    """EAdv of label proportions when every prior is p: Theorem 3.2's equality, exactly.

    For p <= 1/2 it is E[(2 alpha - 1)^+], a sum of positive terms, so that nothing cancels even
    where it is as small as 1e-300. Terms more than 20 standard deviations past k/2 are dropped.

    >>> round(float(independent_advantage(0.5, 9)), 12) == round(math.comb(8, 4) / 2**9, 12)
    True
    """
    from scipy import special

    priors, sizes = np.broadcast_arrays(checks.probabilities(p, "p"), _sizes(bag_size))
    result = np.empty(priors.shape)
    for size in np.unique(sizes):
        q = np.minimum(priors, 1 - priors)[sizes == size][:, None]
        first = size // 2 + 1
        count = np.arange(first, min(size, first + int(10 * size**0.5) + 40) + 1)
        choose = special.gammaln(size + 1) - special.gammaln(count + 1)
        log_mass = choose - special.gammaln(size - count + 1)
        log_mass = log_mass + special.xlogy(count, q) + special.xlog1py(size - count, -q)
        result[sizes == size] = (np.exp(log_mass) * (2 * count / size - 1)).sum(axis=1)
    return result


def independent_root_bound(p: ArrayLike, bag_size: ArrayLike) -> Floats:
    """Theorem 3.2, first case: EAdv <= sqrt(p (1 - p) / k) for labels independent of features.

    >>> float(independent_root_bound(0.5, 25))
    0.1
    """
    prior = checks.probabilities(p, "p")
    return np.sqrt(prior * (1 - prior) / _sizes(bag_size))


def independent_gap_bound(p: ArrayLike, bag_size: ArrayLike, rate: float = 2.0) -> Floats:
    """Theorem 3.2, second case, with the constant 2 from Hoeffding: exp(-2 (p - 1/2)^2 k).

    >>> float(independent_gap_bound(0.0, 2)) == math.exp(-1)
    True
    """
    prior = checks.probabilities(p, "p")
    return np.exp(-rate * (prior - 0.5) ** 2 * _sizes(bag_size))


def independent_bernstein_bound(p: ArrayLike, bag_size: ArrayLike) -> Floats:
    """The bound the proof of Theorem 3.2 arrives at: Bernstein's for P(alpha > 1/2), p <= 1/2.

    >>> float(independent_bernstein_bound(0.5, 10))
    1.0
    """
    prior = checks.probabilities(p, "p")
    gap = np.abs(prior - 0.5)
    spread = 2 * prior * (1 - prior) + 2 * gap / 3
    return np.exp(-(gap**2) * _sizes(bag_size) / spread)


def _width(others: Floats, variance: Floats) -> Floats:
    """c_k of Lemma A.2 for k = `others`."""
    log = np.log(8 * others)
    return (log / 3 + np.sqrt(2 * log + 12 * others * variance * log) / 6) / np.sqrt(others)


def lemma_bound(p: ArrayLike, mu: ArrayLike, bag_size: ArrayLike) -> Floats:
    """Lemma A.2, the explicit form behind Theorem 3.3: EAdv of a bag of k + 1.

    >>> float(lemma_bound(0.5, 0.25, 101)).__round__(4)
    0.1475
    """
    prior, spread = checks.probabilities(p, "p"), _mu(mu)
    k = _sizes(bag_size, 2) - 1
    root = np.sqrt(LEMMA_CONSTANT * np.sqrt(spread) / k**1.5)
    return k**0.25 * np.sqrt(2 * _width(k, prior * (1 - prior))) * root + spread / k


def general_form(p: ArrayLike, mu: ArrayLike, bag_size: ArrayLike) -> Floats:
    """The expression inside Theorem 3.3's O~, with constant 1 and no logarithm.

    As such it is a bound for every bag of two or more: mu <= p (1 - p), and `root_bound` is
    smaller than it.

    >>> float(general_form(0.5, 0.25, 4)).__round__(4)
    0.4268
    """
    prior, spread = checks.probabilities(p, "p"), _mu(mu)
    k = _sizes(bag_size, 2)
    return (spread * prior * (1 - prior)) ** 0.25 / np.sqrt(k) + spread**0.25 / k


def individual_form(mu_i: ArrayLike, p: ArrayLike, mu: ArrayLike, bag_size: ArrayLike) -> Floats:
    """The expression of Theorem 3.4 with constant 1 and no logarithm: a bound on IEAdv.

    Infinite unless k >= (2 / mu) log(1 / mu), the theorem's condition.

    >>> individual_form(0.25, 0.5, 0.25, [11, 12]).round(4).tolist()
    [inf, 0.2064]
    """
    own, prior, spread = _mu(mu_i, "mu_i"), checks.probabilities(p, "p"), _mu(mu)
    k = _sizes(bag_size, 2)
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
    own, prior, spread = _mu(mu_i, "mu_i"), checks.probabilities(p, "p"), _mu(mu)
    k = _sizes(bag_size, 2) - 1
    with np.errstate(divide="ignore"):
        inner = (1 - 2 * spread) ** k + math.pi / (4 * spread * k) ** 1.5
        inner = inner + math.pi / (math.e * spread * k**2)
    total = 1 / k + k**0.25 * np.sqrt(2 * _width(k, prior * (1 - prior)) * inner)
    return np.where(own == 0, 0.0, own * total)


def tail_threshold(mu: ArrayLike, bag_size: ArrayLike, share: float = 0.5) -> Floats:
    """Theorem A.9, explicit: the level that f_1 - f_2 of a bag seldom exceeds.

    9 (k mu + beta) / (k sqrt((k - 1) mu - beta)) with beta = `share` of (k - 1) mu; how seldom,
    `tail_chance` says.

    >>> float(tail_threshold(0.25, 101)).__round__(4)
    0.9514
    """
    spread, k = _mu(mu), _sizes(bag_size, 2)
    beta = checks.real_number(share, "share", 0, 1) * (k - 1) * spread
    with np.errstate(divide="ignore", invalid="ignore"):
        level = 9 * (k * spread + beta) / (k * np.sqrt((k - 1) * spread - beta))
    return np.where(spread == 0, 0.0, level)


def tail_chance(mu: ArrayLike, bag_size: ArrayLike, share: float = 0.5) -> Floats:
    """Theorem A.9, explicit: the chance of exceeding `tail_threshold` is at most this.

    >>> float(tail_chance(0.25, 401)).__round__(5)
    0.00254
    """
    spread, k = _mu(mu), _sizes(bag_size, 2)
    beta = checks.real_number(share, "share", 0, 1) * (k - 1) * spread
    with np.errstate(invalid="ignore"):
        exponent = np.where(spread == 0, 0.0, beta**2 / (2 * k * spread + beta / 6))
    return (k + 1) * np.exp(-exponent)


def label_dp_bound(epsilon: ArrayLike) -> Floats:
    """The bound cited before Theorem 3.5: EAdv <= 1 - 2 / (1 + e^epsilon) under label-DP.

    >>> float(label_dp_bound(1.0)).__round__(4)
    0.4621
    """
    return np.tanh(_epsilons(epsilon) / 2)


def label_dp_half_bound(epsilon: ArrayLike) -> Floats:
    """Half of it is enough for binary labels: EAdv <= tanh(epsilon / 2) / 2, attained by RR.

    >>> float(label_dp_half_bound(1.0)).__round__(4)
    0.2311
    """
    return label_dp_bound(epsilon) / 2


def label_dp_classes_bound(epsilon: ArrayLike) -> Floats:
    """For any number of classes: EAdv <= tanh(epsilon / 4), the farthest a maximum can move.

    >>> float(label_dp_classes_bound(1.0)).__round__(4)
    0.2449
    """
    return np.tanh(_epsilons(epsilon) / 4)


def response_advantage(eta: ArrayLike, epsilon: ArrayLike) -> Floats:
    """Theorem 3.5: IEAdv of randomized response, (min{eta, 1 - eta} - pi)^+, pi = 1/(1+e^epsilon).

    It is also a bound on IEAdv for every epsilon-label-DP mechanism with binary labels.

    >>> float(response_advantage(0.5, math.log(3)))
    0.25
    """
    prior = checks.probabilities(eta)
    with np.errstate(over="ignore"):
        flip = 1 / (1 + np.exp(_epsilons(epsilon)))
    return np.maximum(np.minimum(prior, 1 - prior) - flip, 0.0)


def multiplicative_tail_bound(p: ArrayLike, bag_size: ArrayLike, delta: ArrayLike) -> Floats:
    """Theorem 3.7 with constants that work: |I| exceeds this with probability at most delta.

    3.07 sqrt(log(2 / delta) / (p (1 - p) k)) where k >= 32 log(2 / delta) / (p (1 - p)), for
    labels independent of features; infinite for smaller bags. The printed log(1 / delta) cannot
    do for delta near 1.

    >>> multiplicative_tail_bound(0.5, [400, 800], 0.05).round(4).tolist()
    [inf, 0.4169]
    """
    prior, k = checks.probabilities(p, "p"), _sizes(bag_size)
    level = checks.probabilities(delta, "delta")
    with np.errstate(divide="ignore"):
        scaled = np.log(2 / level) / (prior * (1 - prior) * k)
    return np.where(scaled <= 1 / 32, 3.07 * np.sqrt(scaled), np.inf)


def aggregation_bound(mu: ArrayLike, bag_size: ArrayLike) -> Floats:
    """Sharp bound on EAdv of label proportions: 2 mu exp(-v) I0(v), v = (bag_size - 1) mu.

    No logarithm, no condition; asymptotically exact where every prior is 1/2.

    >>> float(aggregation_bound(0.25, 1))
    0.5
    """
    return individual_bound(mu, mu, bag_size)


def individual_bound(mu_i: ArrayLike, mu: ArrayLike, bag_size: ArrayLike) -> Floats:
    """The same for one person, IEAdv <= 2 mu_i exp(-v) I0(v), averaged over the others' features.

    >>> float(individual_bound(0.09, 0.25, 5)).__round__(6)
    0.083837
    """
    from scipy import special

    own, spread = _mu(mu_i, "mu_i"), _mu(mu)
    return 2 * own * special.ive(0, (_sizes(bag_size) - 1) * spread)


def root_bound(mu: ArrayLike, bag_size: ArrayLike) -> Floats:
    """The sharp bound in plain form: EAdv <= 0.93765 sqrt(mu / (bag_size - 1)).

    >>> float(root_bound(0.25, 101)) == BESSEL_CONSTANT / 20
    True
    """
    spread, size = _mu(mu), _sizes(bag_size)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(spread == 0, 0.0, BESSEL_CONSTANT * np.sqrt(spread / (size - 1)))


def bag_bounds(eta: ArrayLike) -> Floats:
    """Sharp bound for each member of given bags: 2 mu_i exp(-V_i) I0(V_i), V_i the others' sum.

    Its mean over the last axis bounds f_1 - f_2 of the bag; it replaces the 9 of Lemma A.10.

    >>> bag_bounds([0.5, 0.5]).round(4).tolist()
    [0.3955, 0.3955]
    """
    from scipy import special

    spread = _members(eta)
    spread = spread * (1 - spread)
    # A difference of sums could dip below zero by rounding, where the bound would stop being one.
    others = np.maximum(spread.sum(axis=-1, keepdims=True) - spread, 0.0)
    return 2 * spread * special.ive(0, others)


def bag_gap_bounds(eta: ArrayLike) -> Floats:
    """A bound for each member that falls exponentially when the others are biased as it is.

    max(eta_i, 1 - eta_i) exp(-D_i) max_s Q_i(s): every other prior is tilted by the odds of
    eta_i, D_i is the divergence this costs, Q_i the tilted law of the others' count.

    >>> bag_gap_bounds([0.1] * 3).round(4).tolist()
    [0.162, 0.162, 0.162]
    """
    from scipy import special

    from labelaudit.poisson_binomial import pmf

    priors = _members(eta)
    result = np.zeros(priors.shape)
    for i in range(priors.shape[-1]):
        own, others = priors[..., i], np.delete(priors, i, axis=-1)
        doubtful = (own > 0) & (own < 1)
        mine, rest = own[doubtful], others[doubtful]
        largest = np.maximum(mine, 1 - mine)
        if rest.shape[-1]:
            logit = special.logit(rest) - special.logit(mine)[..., None]
            tilted, untilted = special.expit(logit), special.expit(-logit)
            cost = special.rel_entr(tilted, rest) + special.rel_entr(untilted, 1 - rest)
            largest = largest * np.exp(-cost.sum(axis=-1)) * pmf(tilted).max(axis=-1)
        result[..., i][doubtful] = largest
    return result


def gap_bound(mu: ArrayLike, beta: ArrayLike, bag_size: ArrayLike) -> Floats:
    """If |eta - 1/2| >= beta for everyone, EAdv <= exp(-3.49 mu beta^2 (bag_size - 1)).

    A gap in eta is needed: with a gap in p alone the advantage can fall as slowly as 1/sqrt(k).

    >>> float(gap_bound(0.09, 0.4, 101)).__round__(4)
    0.0066
    """
    distance = _at_most(beta, "beta", 0.5)
    return np.exp(-3.49 * _mu(mu) * distance**2 * (_sizes(bag_size) - 1))


def _members(eta: ArrayLike) -> Floats:
    priors = checks.probabilities(eta)
    if priors.ndim == 0 or priors.shape[-1] == 0:
        raise ValueError(f"eta must have shape (..., bag_size), not {priors.shape}")
    return priors
