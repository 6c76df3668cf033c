"""How much a release helps the attacker, exact over every release the mechanism can make."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from labelaudit import checks
from labelaudit.attack import TABLE_ENTRIES, likelihood_ratios
from labelaudit.checks import Floats
from labelaudit.mechanisms import CountChannel, LaplaceProportions, Mechanism, NoisyCount
from labelaudit.poisson_binomial import leave_one_out

# A cumulative probability this close below q counts as q: it is the sum's rounding error.
ROUNDING = 1e-12


def additive_advantage(eta: ArrayLike, mechanism: Mechanism) -> Floats:
    """f_1i - f_2i of Lemma A.1: the gain in P(guess = y_i) from the release, for each example.

    The sum over releases of max(P(y_i = 1, z), P(y_i = 0, z)), less max(eta_i, 1 - eta_i). Its
    mean over examples is the expected attack advantage of Definition 3.1.

    >>> from labelaudit import LabelProportions, RandomizedResponse
    >>> additive_advantage([[0.5, 0.5]], LabelProportions(2)).tolist()
    [[0.25, 0.25]]
    >>> float(additive_advantage([0.4], RandomizedResponse(0.8))[0]).__round__(6)
    0.089974
    """
    return _gain(eta, mechanism, conditional=False)


def label_advantage(eta: ArrayLike, mechanism: Mechanism) -> Floats:
    """Total-variation distance between the release given y_i = 1 and given y_i = 0.

    The true-positive rate minus the false-positive rate of the best test of label i. On skewed
    data the additive advantage is near zero while the few positives are exposed: here it shows.

    >>> from labelaudit import RandomizedResponse
    >>> float(label_advantage([0.01], RandomizedResponse(1.0))[0]).__round__(6)
    0.462117
    """
    return _gain(eta, mechanism, conditional=True)


def _gain(eta: ArrayLike, mechanism: Mechanism, conditional: bool) -> Floats:
    priors = checks.priors(eta, checks.bag_size(mechanism))
    if mechanism.epsilon == 0:
        result = np.zeros_like(priors)
    elif isinstance(mechanism, NoisyCount):
        from labelaudit.kernels import gain

        laplace = isinstance(mechanism, LaplaceProportions) and np.isfinite(mechanism.epsilon)
        result = gain.gains(priors, mechanism.epsilon, laplace, conditional)
    else:
        result = np.empty_like(priors)
        for part, one, zero in _release_laws(priors, mechanism):
            p = priors[part, :, None]
            first, second = (one, zero) if conditional else (p * one, (1 - p) * zero)
            excess = np.maximum(first - second, 0).sum(axis=2)
            result[part] = excess - (0 if conditional else np.maximum(2 * priors[part] - 1, 0))
    # An advantage cannot leave this range; what is outside is rounding.
    most = 1.0 if conditional else np.minimum(priors, 1 - priors)
    return np.clip(result, 0, most).reshape(np.shape(eta))


def _release_laws(eta: Floats, mechanism: Mechanism) -> Iterator[tuple[slice, Floats, Floats]]:
    """P(z | y_i = 1) and P(z | y_i = 0) over all z of a finite channel, some bags at a time."""
    if not isinstance(mechanism, CountChannel):
        raise TypeError(
            f"the exact law of {mechanism!r} is not known: give its channel as a CountChannel"
        )
    step = max(1, TABLE_ENTRIES // (mechanism.bag_size * max(mechanism.matrix.shape)))
    for start in range(0, len(eta), step):
        part = slice(start, start + step)
        others = leave_one_out(eta[part])
        yield part, others @ mechanism.matrix[1:], others @ mechanism.matrix[:-1]


def multiplicative_advantage(eta: ArrayLike, mechanism: Mechanism, releases: ArrayLike) -> Floats:
    """Definition 3.6: log posterior odds minus log prior odds of each label (natural log).

    Signed, infinite where the release reveals the label, 0 where the prior is exactly 0 or 1.

    >>> from labelaudit import LabelProportions, RandomizedResponse
    >>> multiplicative_advantage([0.3, 0.3], RandomizedResponse(1.0), [1, 0]).tolist()
    [1.0, -1.0]
    >>> multiplicative_advantage([[0.3, 0.6]], LabelProportions(2), [0.0]).tolist()
    [[-inf, -inf]]
    """
    with np.errstate(divide="ignore"):
        shifts = np.log(likelihood_ratios(eta, mechanism, releases))
    if isinstance(mechanism, NoisyCount):
        # No shift exceeds epsilon; a ratio of exp(epsilon) may not fit a float.
        np.clip(shifts, -mechanism.epsilon, mechanism.epsilon, out=shifts)
    return shifts


def multiplicative_cdf(eta: ArrayLike, mechanism: Mechanism, points: ArrayLike) -> Floats:
    """P(|I| <= t) for each t in `points`: examples weighted equally, releases by probability.

    Exact. What is missing from 1 at t = inf's left is the share of infinite advantage.

    >>> from labelaudit import LabelProportions
    >>> multiplicative_cdf([[0.5, 0.5]], LabelProportions(2), [0.0, 100.0]).tolist()
    [0.5, 0.5]
    """
    priors = checks.priors(eta, checks.bag_size(mechanism))
    if priors.size == 0:
        raise ValueError("eta must hold at least one bag, not none")
    wanted = checks.numbers(points, "points")
    if np.isnan(wanted).any():
        raise ValueError("points must be numbers, not NaN")
    order, place = np.unique(wanted, return_inverse=True)
    below = np.cumsum(_masses(priors, mechanism, order))[:-1] / priors.size
    below[order < 0] = 0
    return np.minimum(below, 1.0)[place].reshape(wanted.shape)


def _masses(eta: Floats, mechanism: Mechanism, points: Floats) -> Floats:
    """Mass of |I| between neighbouring sorted points, and beyond the last."""
    if mechanism.epsilon == 0:
        masses = np.zeros(points.size + 1)
        masses[np.searchsorted(points, 0.0)] = eta.size
        return masses
    if isinstance(mechanism, NoisyCount):
        from labelaudit.kernels import shift

        laplace = isinstance(mechanism, LaplaceProportions) and np.isfinite(mechanism.epsilon)
        start = np.searchsorted(points, 0.0)
        inside = shift.shift_masses(eta, mechanism.epsilon, laplace, points[start:])
        return np.concatenate([np.zeros(start), inside])
    masses = np.zeros(points.size + 1)
    for part, one, zero in _release_laws(eta, mechanism):
        p = eta[part, :, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            sizes = np.abs(np.log(one) - np.log(zero))
        known = np.broadcast_to((p == 0) | (p == 1), sizes.shape)
        sizes = np.where(known, 0.0, sizes)
        weights = p * one + (1 - p) * zero
        possible = weights > 0
        places = np.searchsorted(points, sizes[possible])
        masses += np.bincount(places, weights[possible], points.size + 1)
    return masses


def multiplicative_quantile(eta: ArrayLike, mechanism: Mechanism, q: float) -> float:
    """The smallest t with P(|I| <= t) >= q: examples weighted equally, releases by probability.

    Exact: by radix selection among all bags, examples and releases where releases are discrete,
    as a root of `multiplicative_cdf` for Laplace noise. Infinite where more than 1 - q of the
    mass is.

    >>> from labelaudit import LabelProportions, RandomizedResponse
    >>> multiplicative_quantile([0.1, 0.7], RandomizedResponse(1.0), 0.98)
    1.0
    >>> multiplicative_quantile([[0.5, 0.5]], LabelProportions(2), 0.98)
    inf
    """
    level = checks.real_number(q, "q", 0, 1) - ROUNDING
    priors = checks.priors(eta, checks.bag_size(mechanism))
    if priors.size == 0:
        raise ValueError("eta must hold at least one bag, not none")
    if level <= 0 or mechanism.epsilon == 0:
        return 0.0
    if isinstance(mechanism, LaplaceProportions) and np.isfinite(mechanism.epsilon):
        return _laplace_quantile(priors, mechanism, level)
    size = _select(priors, mechanism, level)
    return min(float(np.log(size)), mechanism.epsilon)


def _laplace_quantile(eta: Floats, mechanism: LaplaceProportions, level: float) -> float:
    """Root of the continuous part of the CDF; what is left of the mass lies at epsilon."""
    from scipy.optimize import brentq

    def excess(t: float) -> float:
        return float(multiplicative_cdf(eta, mechanism, t)) - level

    below = mechanism.epsilon * (1 - ROUNDING)
    if excess(0.0) >= 0:
        return 0.0
    if excess(below) < 0:
        return mechanism.epsilon
    return float(brentq(excess, 0.0, below, xtol=1e-15 * mechanism.epsilon, rtol=1e-15))


def _select(eta: Floats, mechanism: Mechanism, level: float) -> np.float64:
    """The smallest ratio size max(r, 1/r) up to which at least `level` of the mass lies."""
    from labelaudit.kernels.select import RADIX

    base = int(np.float64(1.0).view(np.int64))
    for shift in (3 * RADIX, 2 * RADIX, RADIX, 0):
        reached = np.cumsum(_size_masses(eta, mechanism, base, shift)) / eta.size >= level
        place = int(np.argmax(reached)) if reached.any() else reached.size - 1
        base += max(place - 1, 0) << shift
    return np.int64(base).view(np.float64)


def _size_masses(eta: Floats, mechanism: Mechanism, base: int, shift: int) -> Floats:
    """Mass of the ratio sizes below, in each bin, and above, over bags, examples and releases."""
    from labelaudit.kernels import select

    if isinstance(mechanism, NoisyCount):
        return select.size_masses(eta, mechanism.epsilon, base, shift)
    masses = np.zeros(select.BINS + 2)
    for part, one, zero in _release_laws(eta, mechanism):
        p = eta[part, :, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            sizes = np.where(one > zero, one / zero, zero / one)
        sizes = np.where((p == 0) | (p == 1), 1.0, sizes)
        weights = p * one + (1 - p) * zero
        possible = weights > 0
        places = np.clip((sizes[possible].view(np.int64) - base) >> shift, -1, select.BINS)
        masses += np.bincount(places + 1, weights[possible], select.BINS + 2)
    return masses
