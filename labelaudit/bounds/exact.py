"""Exact values in closed form, or as a short sum."""

import math

import numpy as np
from numpy.typing import ArrayLike

from labelaudit import checks
from labelaudit.checks import Floats, at_most, epsilons, sizes

__all__ = ["debiased_variance", "independent_advantage", "response_advantage"]
__all__ += ["revealed_probability", "two_point_advantage"]

# Numbers of high priors among the others that are less likely than this are left out of a sum.
RARE = 1e-19
# Binomial distributions end this many standard deviations from the mean; less than 1e-30 is lost.
REACH = 12.0
# Above this bag size the convolution is a Fourier transform: quicker, and correct to 1e-13.
MAX_DIRECT = 2000


def independent_advantage(p: ArrayLike, bag_size: ArrayLike) -> Floats:
    """EAdv of label proportions when every prior is p: Theorem 3.2's equality, exactly.

    For p <= 1/2 it is E[(2 alpha - 1)^+], a sum of positive terms: nothing cancels, even where it
    is as small as 1e-300. Terms more than 20 standard deviations past k/2 are left out.

    >>> round(float(independent_advantage(0.5, 9)), 12) == round(math.comb(8, 4) / 2**9, 12)
    True
    """
    priors, bags = np.broadcast_arrays(checks.probabilities(p, "p"), sizes(bag_size))
    result = np.empty(priors.shape)
    for size in np.unique(bags):
        chosen = bags == size
        result[chosen] = np.exp(log_independent_advantage(priors[chosen], size))
    return result


def log_independent_advantage(p: Floats | float, bag_size: float) -> Floats:
    """Its logarithm, for bags of one size, also where the advantage is below 1e-300."""
    from scipy import special

    q = np.minimum(p, np.subtract(1, p))[..., None]
    first = bag_size // 2 + 1
    count = np.arange(first, min(bag_size, first + int(10 * bag_size**0.5) + 40) + 1)
    choose = special.gammaln(bag_size + 1) - special.gammaln(count + 1)
    log_mass = choose - special.gammaln(bag_size - count + 1)
    log_mass = log_mass + special.xlogy(count, q) + special.xlog1py(bag_size - count, -q)
    return special.logsumexp(log_mass + np.log(2 * count / bag_size - 1), axis=-1)


def revealed_probability(p: ArrayLike, bag_size: ArrayLike) -> Floats:
    """The probability that label proportions reveal every label of a bag: p^k + (1 - p)^k.

    The priors are independent draws from a distribution of mean p without mass at 0 or 1. Then a
    bag is revealed if and only if all of its labels are equal, which depends on the mean alone.

    >>> revealed_probability([0.5, 1 / 16], 8).round(4).tolist()
    [0.0078, 0.5967]
    """
    mean, bags = checks.probabilities(p, "p"), sizes(bag_size)
    return mean**bags + (1 - mean) ** bags


def two_point_advantage(low: float, high: float, weight: float, bag_size: int) -> Floats:
    """IEAdv of label proportions at `low` and at `high`, and EAdv, when those are the priors.

    A prior is `high` with probability `weight`, else `low`. The number j of high priors among the
    others is binomial, and given j their count is a sum of two binomials, so every value is a sum
    over j. The absolute error is below 1e-15, and below 1e-12 in bags of more than 2000 people.

    >>> two_point_advantage(0.0, 0.5, 0.5, 2).round(12).tolist()
    [0.0, 0.375, 0.1875]
    """
    from scipy import stats

    points = [checks.real_number(low, "low", 0, 1), checks.real_number(high, "high", 0, 1)]
    fraction = checks.real_number(weight, "weight", 0, 1)
    others = checks.whole_number(bag_size, "bag_size") - 1
    probabilities = stats.binom.pmf(np.arange(others + 1), others, fraction)
    gains = np.zeros(2)
    for j in np.flatnonzero(probabilities > RARE):
        counts = _sum_of_binomials(others - int(j), points[0], int(j), points[1])
        gains += probabilities[j] * np.array([_gain(own, counts) for own in points])
    return np.array([*gains, (1 - fraction) * gains[0] + fraction * gains[1]])


def _binomial(n: int, p: float) -> Floats:
    """A binomial distribution; a long one without its far tails."""
    from scipy import stats

    centre, reach = n * p, REACH * math.sqrt(n * p * (1 - p)) + 40
    first, last = max(0, math.floor(centre - reach)), min(n, math.ceil(centre + reach))
    return np.asarray(stats.binom.pmf(np.arange(first, last + 1), n, p))


def _sum_of_binomials(n: int, p: float, m: int, r: float) -> Floats:
    """The distribution of Bin(n, p) + Bin(m, r), without its far tails."""
    from scipy import signal

    first, second = _binomial(n, p), _binomial(m, r)
    if n + m < MAX_DIRECT:
        return np.convolve(first, second)
    return np.maximum(signal.fftconvolve(first, second), 0.0)


def _gain(own: float, others: Floats) -> float:
    """The advantage on a prior `own`, from the distribution of the others' count."""
    if own > 0.5:
        own, others = 1 - own, others[::-1]
    excess = own * np.append(0.0, others) - (1 - own) * np.append(others, 0.0)
    return float(np.maximum(excess, 0.0).sum())


def response_advantage(eta: ArrayLike, epsilon: ArrayLike) -> Floats:
    """Theorem 3.5: IEAdv of randomized response, (min{eta, 1 - eta} - pi)^+, pi = 1/(1+e^epsilon).

    It is also a bound on IEAdv for every epsilon-label-DP mechanism with binary labels.

    >>> float(response_advantage(0.5, math.log(3)))
    0.25
    """
    prior = checks.probabilities(eta)
    with np.errstate(over="ignore"):
        flip = 1 / (1 + np.exp(epsilons(epsilon)))
    return np.maximum(np.minimum(prior, 1 - prior) - flip, 0.0)


def debiased_variance(count: ArrayLike, bag_size: ArrayLike, epsilon: ArrayLike) -> Floats:
    """Variance of `GeometricProportions.debias` on a bag with `count` ones, after clipping.

    q / ((1 - q)^2 k^2) (2 - (q^s + q^(k-s)) / (1 + q)) with q = e^-epsilon: clipping and then
    debiasing *reduces* the variance 2 q / ((1 - q)^2 k^2) of the noise.

    >>> float(debiased_variance(0, 1, math.log(2)))
    2.0
    """
    bags, level = sizes(bag_size), epsilons(epsilon)
    ones = at_most(count, "count", math.inf)
    bad = (ones > bags) | (ones != np.floor(ones))
    if bad.any():
        value, size = (np.broadcast_to(array, bad.shape)[bad][0] for array in (ones, bags))
        raise ValueError(
            f"count must be a whole number from 0 to bag_size, not {value:g} in a bag of {size:g}"
        )
    if (level == 0).any():
        raise ValueError("epsilon must be above 0: at 0 nothing can be debiased")
    q = np.exp(-level)
    clipped = (q**ones + q ** (bags - ones)) / (1 + q)
    with np.errstate(divide="ignore"):
        return q / (np.expm1(-level) * bags) ** 2 * (2 - clipped)
