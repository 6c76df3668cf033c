"""Bounds that this book proves (chapter 13), with sharp or explicit constants."""

import math

import numpy as np
from numpy.typing import ArrayLike

from labelaudit import checks
from labelaudit.bounds.paper import label_dp_bound
from labelaudit.checks import Floats, at_most, epsilons, members, sizes, variances

__all__ = ["BAG_CONSTANT", "BESSEL_CONSTANT", "aggregation_bound", "bag_bounds", "bag_gap_bounds"]
__all__ += ["coin_worth_bounds", "density_limit", "gap_bound", "gap_rate"]
__all__ += ["independent_tilted_bound", "individual_bound", "label_dp_classes_bound"]
__all__ += ["label_dp_half_bound", "noisy_bag_bounds", "noisy_bound", "root_bound", "tail_bound"]
__all__ += ["uniform_advantage_bounds"]

# Twice the supremum of sqrt(v) exp(-v) I0(v), 0.4688224 at v = 0.78998, rounded up. A test proves
# this and the next by intervals.
BESSEL_CONSTANT = 0.93765
# The supremum of 2 sqrt(V) exp(-(V - 1/4)) I0(V - 1/4) over V >= 1/4, 1.12541 at V = 0.60636,
# rounded up. For every bag, with V the sum of eta_i (1 - eta_i), f_1 - f_2 <= 1.1255 sqrt(V) / k.
BAG_CONSTANT = 1.1255


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

    own, spread = variances(mu_i, "mu_i"), variances(mu)
    return 2 * own * special.ive(0, (sizes(bag_size) - 1) * spread)


def root_bound(mu: ArrayLike, bag_size: ArrayLike) -> Floats:
    """The sharp bound in plain form: EAdv <= 0.93765 sqrt(mu / (bag_size - 1)).

    >>> float(root_bound(0.25, 101)) == BESSEL_CONSTANT / 20
    True
    """
    spread, size = variances(mu), sizes(bag_size)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(spread == 0, 0.0, BESSEL_CONSTANT * np.sqrt(spread / (size - 1)))


def bag_bounds(eta: ArrayLike) -> Floats:
    """Sharp bound for each member of given bags: 2 mu_i exp(-V_i) I0(V_i), V_i the others' sum.

    Its mean over the last axis bounds f_1 - f_2 of the bag; it replaces the 9 of Lemma A.10.

    >>> bag_bounds([0.5, 0.5]).round(4).tolist()
    [0.3955, 0.3955]
    """
    from scipy import special

    spread = members(eta)
    spread = spread * (1 - spread)
    # Rounding could make a difference of sums negative, and the result too small for a bound.
    others = np.maximum(spread.sum(axis=-1, keepdims=True) - spread, 0.0)
    return 2 * spread * special.ive(0, others)


def noisy_bound(mu: ArrayLike, bag_size: ArrayLike, epsilon: ArrayLike) -> Floats:
    """One bound on EAdv of RR, LLP and LLP+Geom: `aggregation_bound` with geometric noise.

    2 mu (1 - q) / (1 + q) exp(-v) (I_0(v) + 2 sum_n q^n I_n(v)) with v = (bag_size - 1) mu and
    q = exp(-epsilon). For a bag of one it is 2 mu tanh(epsilon / 2).

    >>> noisy_bound(0.25, [1, 64], [1.0, 0.2]).round(4).tolist()
    [0.2311, 0.0294]
    """
    spread = variances(mu)
    return _noisy(spread, (sizes(bag_size) - 1) * spread, epsilons(epsilon))


def noisy_bag_bounds(eta: ArrayLike, epsilon: ArrayLike) -> Floats:
    """`noisy_bound` for each member of given bags, as `bag_bounds`.

    >>> noisy_bag_bounds([0.5, 0.5], 1.0).round(4).tolist()
    [0.1998, 0.1998]
    """
    spread = members(eta)
    spread = spread * (1 - spread)
    others = np.maximum(spread.sum(axis=-1, keepdims=True) - spread, 0.0)
    return _noisy(spread, others, epsilons(epsilon))


def _noisy(own: Floats, others: Floats, epsilon: Floats) -> Floats:
    from scipy import special

    own, others, epsilon = np.broadcast_arrays(own, others, epsilon)
    q = np.exp(-epsilon)
    last = int(40 + 10 * math.sqrt(float(others.max(initial=0.0))))
    terms = sum(2 * q**n * special.ive(n, others) for n in range(1, last))
    # The Bessel functions fall with n, so a geometric series bounds what is left out.
    rest = 2 * q**last * special.ive(last, others)
    return 2 * own * ((1 - q) * (special.ive(0, others) + terms) + rest) / (1 + q)


def coin_worth_bounds(variance: ArrayLike) -> tuple[Floats, Floats]:
    """Bounds on the worth of LLP for a coin among others whose count has this variance V.

    1 / (4 V + 1) and (1 - exp(-2 V)) / (2 V). A quarter of the worth is the additive advantage
    averaged over a uniform prior of that person.

    >>> [bound.round(4).tolist() for bound in coin_worth_bounds([0.0, 2.0])]
    [[1.0, 0.1111], [1.0, 0.2454]]
    """
    spread = at_most(variance, "variance", math.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        above = np.where(spread > 0, -np.expm1(-2 * spread) / (2 * spread), 1.0)
    return 1 / (4 * spread + 1), above


def uniform_advantage_bounds(bag_size: ArrayLike) -> tuple[Floats, Floats]:
    """Bounds on EAdv of LLP under uniform priors: 3 / (8 k + 4) and (1 - 2^-k) / (2 k).

    >>> [round(float(bound), 4) for bound in uniform_advantage_bounds(10)]
    [0.0357, 0.05]
    """
    size = sizes(bag_size)
    return 3 / (8 * size + 4), (1 - 0.5**size) / (2 * size)


def density_limit(density: ArrayLike, mu: ArrayLike) -> Floats:
    """The limit of k EAdv under LLP, f(1/2) / (16 mu), if eta has a density f continuous at 1/2.

    >>> float(density_limit(1.0, 1 / 6))
    0.375
    """
    with np.errstate(divide="ignore"):
        return at_most(density, "density", math.inf) / (16 * variances(mu))


def bag_gap_bounds(eta: ArrayLike) -> Floats:
    """A bound per member; it falls exponentially if the others are on the same side of 1/2.

    max(eta_i, 1 - eta_i) exp(-D_i) max_s Q_i(s): every other prior is tilted by the odds of
    eta_i, D_i is the divergence this costs, Q_i the tilted distribution of the others' count.

    >>> bag_gap_bounds([0.1] * 3).round(4).tolist()
    [0.162, 0.162, 0.162]
    """
    from scipy import special

    from labelaudit.poisson_binomial import pmf

    priors = members(eta)
    result = np.zeros(priors.shape)
    for i in range(priors.shape[-1]):
        own, others = priors[..., i], np.delete(priors, i, axis=-1)
        unknown = (own > 0) & (own < 1)
        mine, rest = own[unknown], others[unknown]
        largest = np.maximum(mine, 1 - mine)
        if rest.shape[-1]:
            logit = special.logit(rest) - special.logit(mine)[..., None]
            tilted, untilted = special.expit(logit), special.expit(-logit)
            cost = special.rel_entr(tilted, rest) + special.rel_entr(untilted, 1 - rest)
            largest = largest * np.exp(-cost.sum(axis=-1)) * pmf(tilted).max(axis=-1)
        result[..., i][unknown] = largest
    return result


def independent_tilted_bound(p: ArrayLike, bag_size: ArrayLike) -> Floats:
    """`bag_gap_bounds` when every prior is p: max(p, q) (2 sqrt(p q))^(k-1) P(fair count = mode).

    The fair count is that of k - 1 coins. The rate, log(2 sqrt(p q)) a person, is the true one.

    >>> float(independent_tilted_bound(0.5, 9)).__round__(6), math.comb(8, 4) / 2**9
    (0.136719, 0.13671875)
    """
    from scipy import special

    prior, others = checks.probabilities(p, "p"), sizes(bag_size) - 1
    half = np.floor(others / 2)
    choose = special.gammaln(others + 1) - special.gammaln(half + 1)
    choose = choose - special.gammaln(others - half + 1)
    return np.maximum(prior, 1 - prior) * np.exp(
        choose + special.xlogy(others / 2, prior) + special.xlog1py(others / 2, -prior)
    )


def gap_rate(beta: ArrayLike) -> Floats:
    """The rate r(beta) in `gap_bound`: (1 - e^(-h m)) / m, at least 3.84 beta^2.

    h = 1 - (1 + t) e^-t with t the log-odds of 1/2 + beta, and m = 1/4 - beta^2. For a small gap
    it is about 8 beta^2, as it must be; for beta = 1/2 it is 1.

    >>> gap_rate([0.0, 0.1, 0.5]).round(4).tolist()
    [0.0, 0.0625, 1.0]
    """
    from scipy import special

    gap = at_most(beta, "beta", 0.5)
    odds = special.logit(0.5 + gap)
    # gammainc(2, t) is 1 - (1 + t) e^-t without the cancellation at small t.
    cost = special.gammainc(2, odds)
    most = 0.25 - gap**2
    with np.errstate(invalid="ignore"):
        return np.where(most > 0, -np.expm1(-cost * most) / np.where(most > 0, most, 1), cost)


def gap_bound(mu: ArrayLike, beta: ArrayLike, bag_size: ArrayLike) -> Floats:
    """If |eta - 1/2| >= beta for everyone, EAdv <= exp(-r(beta) mu (bag_size - 1)), r `gap_rate`.

    In plain form, EAdv <= exp(-3.84 mu beta^2 (bag_size - 1)). A gap in eta is needed: with a gap
    in p alone the advantage can fall as slowly as 1/sqrt(k). The gap keeps mu below 1/4 - beta^2.

    >>> float(gap_bound(0.09, 0.4, 101)).__round__(4)
    0.0036
    """
    spread, gap = np.broadcast_arrays(variances(mu), at_most(beta, "beta", 0.5))
    # A mu computed from priors at the edge of the gap has a rounding error.
    bad = spread > 0.25 - gap**2 + 1e-9
    if bad.any():
        value, edge = spread[bad].flat[0], gap[bad].flat[0]
        raise ValueError(
            f"mu must be at most 1/4 - beta^2 = {0.25 - edge**2:g} under a gap beta of {edge:g}, "
            f"not {value:g}"
        )
    return np.exp(-gap_rate(gap) * spread * (sizes(bag_size) - 1))


def tail_bound(mu: ArrayLike, people: ArrayLike, scale: ArrayLike = 2.0) -> Floats:
    """Theorem A.9 corrected: HPAdv(scale sqrt(mu / k)) of m people in bags of k is at most this.

    exp(-4 m mu (x log x - x + 1)) with x = (scale / 1.1255)^2, and 1 where x <= 1. For the level
    2 sqrt(mu / k) it is below exp(-5.8 m mu), whatever k is: no factor k + 1 and no condition.

    >>> bool(tail_bound(0.25, 4) < math.exp(-5.8))
    True
    """
    x = np.maximum(at_most(scale, "scale", 1e100) / BAG_CONSTANT, 1.0) ** 2
    exponent = x * np.log(x) - x + 1
    return np.exp(-4 * exponent * variances(mu) * sizes(people, name="people"))


def label_dp_half_bound(epsilon: ArrayLike) -> Floats:
    """For binary labels half of `label_dp_bound`: EAdv <= tanh(epsilon / 2) / 2, attained by RR.

    >>> float(label_dp_half_bound(1.0)).__round__(4)
    0.2311
    """
    return label_dp_bound(epsilon) / 2


def label_dp_classes_bound(epsilon: ArrayLike, classes: ArrayLike = math.inf) -> Floats:
    """For any number of classes EAdv <= tanh(epsilon / 4).

    With few classes, 2 <= c < 1 + e^(epsilon / 2), it is the advantage of c-ary randomized
    response on the uniform prior, which attains it; two classes give `label_dp_half_bound`.

    >>> label_dp_classes_bound(1.0, [2, 3]).round(4).tolist()
    [0.2311, 0.2449]
    """
    level, most = epsilons(epsilon), checks.numbers(classes, "classes")
    bad = ~((most >= 2) & (most == np.floor(most)))
    if bad.any():
        raise ValueError(
            f"classes must be whole numbers of at least 2, or inf, not {most[bad].flat[0]:g}"
        )
    prior = np.maximum(1 / most, 1 / (1 + np.exp(np.minimum(level / 2, 700))))
    odds = np.exp(-level)
    return prior * (1 - prior) * (1 - odds) / (prior + (1 - prior) * odds)
