"""The distribution of the multiplicative advantage over bags, examples and releases, exactly."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from labelaudit import checks
from labelaudit.advantage import release_distributions
from labelaudit.attack import within_range
from labelaudit.checks import Floats
from labelaudit.mechanisms import Mechanism, NoisyCount

# A cumulative probability this close below q counts as q: the difference is rounding error.
ROUNDING = 1e-12


def multiplicative_cdf(eta: ArrayLike, mechanism: Mechanism, points: ArrayLike) -> Floats:
    """P(|I| <= t) for each t in `points`: examples weighted equally, releases by probability.

    Exact, up to |I| = 575 where there is a prior between 0 and 1e-250. At a huge t it is 1 minus
    the fraction of labels that are revealed for certain.

    >>> from labelaudit import LabelProportions
    >>> multiplicative_cdf([[0.5, 0.5]], LabelProportions(2), [0.0, 100.0]).tolist()
    [0.5, 0.5]
    """
    priors = _at_least_one_bag(eta, mechanism)
    wanted = checks.numbers(points, "points")
    if np.isnan(wanted).any():
        raise ValueError("points must be numbers, not NaN")
    order, index = np.unique(wanted, return_inverse=True)
    below = np.cumsum(_masses(priors, mechanism, order))[:-1] / priors.size
    below[order < 0] = 0
    return np.minimum(below, 1.0)[index].reshape(wanted.shape)


def _at_least_one_bag(eta: ArrayLike, mechanism: Mechanism) -> Floats:
    priors = checks.priors(eta, checks.bag_size(mechanism))
    if priors.size == 0:
        raise ValueError("eta must hold at least one bag, not none")
    return priors


def _masses(eta: Floats, mechanism: Mechanism, points: Floats) -> Floats:
    """Mass of |I| between neighbouring sorted points, and beyond the last."""
    if mechanism.epsilon == 0:
        masses = np.zeros(points.size + 1)
        masses[np.searchsorted(points, 0.0)] = eta.size
        return masses
    if isinstance(mechanism, NoisyCount):
        from labelaudit.kernels.distribution import shift_masses

        start = np.searchsorted(points, 0.0)
        kind = mechanism.epsilon, mechanism.continuous
        inside = shift_masses(within_range(eta), *kind, points[start:])
        return np.concatenate([np.zeros(start), inside])
    masses = np.zeros(points.size + 1)
    for sizes, weights in _channel_sizes(eta, mechanism):
        bins = np.searchsorted(points, np.log(sizes))
        masses += np.bincount(bins, weights, points.size + 1)
    return masses


def _channel_sizes(eta: Floats, mechanism: Mechanism) -> Iterator[tuple[Floats, Floats]]:
    """Ratio sizes max(r, 1/r) of a finite channel and their probabilities, some bags at a time."""
    for part, if_one, if_zero in release_distributions(eta, mechanism):
        p = eta[part, :, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            sizes = np.where(if_one > if_zero, if_one / if_zero, if_zero / if_one)
        sizes = np.where((p == 0) | (p == 1), 1.0, sizes)
        weights = p * if_one + (1 - p) * if_zero
        possible = weights > 0
        yield sizes[possible], weights[possible]


def multiplicative_quantile(eta: ArrayLike, mechanism: Mechanism, q: float) -> float:
    """The smallest t with P(|I| <= t) >= q: examples weighted equally, releases by probability.

    As exact as `multiplicative_cdf`: by radix selection among all bags, examples and releases for
    discrete releases, as a root of that function for Laplace noise. Infinite where |I| is infinite
    with probability more than 1 - q.

    >>> from labelaudit import LabelProportions, RandomizedResponse
    >>> multiplicative_quantile([0.1, 0.7], RandomizedResponse(1.0), 0.98)
    1.0
    >>> multiplicative_quantile([[0.5, 0.5]], LabelProportions(2), 0.98)
    inf
    """
    level = checks.real_number(q, "q", 0, 1) - ROUNDING
    priors = _at_least_one_bag(eta, mechanism)
    if level <= 0 or mechanism.epsilon == 0:
        return 0.0
    if isinstance(mechanism, NoisyCount) and mechanism.continuous:
        return _laplace_quantile(priors, mechanism, level)
    size = _select(priors, mechanism, level)
    return min(float(np.log(size)), mechanism.epsilon)


def _laplace_quantile(eta: Floats, mechanism: NoisyCount, level: float) -> float:
    """Root of the continuous part of the CDF; the rest of the mass is at epsilon."""
    from scipy.optimize import brentq

    def excess(t: float) -> float:
        return float(multiplicative_cdf(eta, mechanism, t)) - level

    below = mechanism.epsilon * (1 - ROUNDING)
    if excess(0.0) >= 0:
        return 0.0
    if excess(below) < 0:
        return mechanism.epsilon
    root = brentq(excess, 0.0, below, xtol=1e-15 * mechanism.epsilon, rtol=1e-15)
    # The smallest float that reaches the level is a neighbour of the root.
    low, high = root, root
    while low > 0 and excess(low) >= 0:
        low = max(0.0, 2 * low - high - math.ulp(root))
    while excess(high) < 0:
        high = 2 * high - low + math.ulp(root)
    while (middle := low + (high - low) / 2) not in (low, high):
        low, high = (low, middle) if excess(middle) >= 0 else (middle, high)
    return float(high)


def _select(eta: Floats, mechanism: Mechanism, level: float) -> np.float64:
    """The smallest ratio size max(r, 1/r) that is not exceeded with probability `level` or more."""
    from labelaudit.kernels.distribution import RADIX

    base = int(np.float64(1.0).view(np.int64))
    for shift in (3 * RADIX, 2 * RADIX, RADIX, 0):
        reached = np.cumsum(size_masses(eta, mechanism, base, shift)) / eta.size >= level
        index = int(np.argmax(reached)) if reached.any() else reached.size - 1
        base += max(index - 1, 0) << shift
    return np.int64(base).view(np.float64)


def size_masses(eta: Floats, mechanism: Mechanism, base: int, shift: int) -> Floats:
    """Mass of the ratio sizes below, in each bin, and above, over bags, examples and releases."""
    from labelaudit.kernels.distribution import BINS, size_masses

    if isinstance(mechanism, NoisyCount):
        return size_masses(within_range(eta), mechanism.epsilon, base, shift)
    masses = np.zeros(BINS + 2)
    for sizes, weights in _channel_sizes(eta, mechanism):
        bins = np.clip((sizes.view(np.int64) - base) >> shift, -1, BINS)
        masses += np.bincount(bins + 1, weights, BINS + 2)
    return masses
