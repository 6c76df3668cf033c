"""A percentile of |I| over more bags than memory holds, exactly: guessed, then found in windows.

The masses of a window add up over parts of the data. After a pass over all parts `narrow` gives the
next window, or the value. For discrete releases a window is a range of floats in bins; for Laplace
noise, whose distribution function has no jumps, it is three points of that function.
"""

import math
from typing import Any

import numpy as np
from scipy.interpolate import lagrange

from labelaudit.checks import Floats
from labelaudit.distribution import (
    ROUNDING,
    multiplicative_cdf,
    multiplicative_quantile,
    size_masses,
)
from labelaudit.mechanisms import Mechanism, NoisyCount

# Bits of a float that a pass gives, as in `kernels.distribution`.
RADIX = 16
BINS = 1 << RADIX
# A first window reaches 2^-10 to both sides of a guess; a last one has bins of 5e-13.
NEAR, FIRST, LAST = 42, 27, 11
# Laplace noise, as fractions of epsilon: the first two windows, and what is exact.
WIDTHS, EXACT = (4e-3, 1e-6), 1e-11
WHOLE = {"base": int(np.float64(1).view(np.int64)), "shift": 3 * RADIX}
# It has "value" when the percentile is known, "extreme" where it is probably epsilon.
Window = dict[str, Any]


def guess(eta: Floats, mechanism: Mechanism, level: float) -> Window:
    """The first window, from some bags.

    None is needed where the percentile is 0; where it is as large as can be, the masses at epsilon
    decide.
    """
    if mechanism.epsilon == 0 or level <= 0:
        return {"value": 0.0}
    value = multiplicative_quantile(eta, mechanism, level) if eta.size else 0.0
    if value >= mechanism.epsilon * (1 - ROUNDING):
        return {"extreme": True}
    if isinstance(mechanism, NoisyCount) and mechanism.continuous:
        return around(value, WIDTHS[0], mechanism.epsilon)
    bits = int(np.exp(min(value, 700.0)).view(np.int64)) - (1 << NEAR)
    return {"base": max(bits, WHOLE["base"]), "shift": FIRST}


def around(
    value: float, width: float, epsilon: float, low: float = 0.0, high: float = math.inf
) -> Window:
    """Three points about a value; the percentile is known to lie between `low` and `high`."""
    ends = np.array([value - width * epsilon, value, value + width * epsilon])
    points = np.clip(ends, 0.0, epsilon * (1 - ROUNDING)).tolist()
    return {"points": points, "width": width, "low": low, "high": min(high, epsilon)}


def masses(eta: Floats, mechanism: Mechanism, window: Window) -> Floats:
    """The masses of bags in a window; those of several parts are added up."""
    if {"value", "extreme"} & window.keys():
        return np.zeros(BINS + 2)
    if "points" not in window:
        return size_masses(eta, mechanism, window["base"], window["shift"])
    below = eta.size * multiplicative_cdf(eta, mechanism, window["points"])
    return np.pad(below, (0, BINS + 2 - below.size))


def narrow(
    window: Window, masses: Floats, members: float, level: float, mechanism: Mechanism
) -> Window:
    """The next window after a pass, or the value of the percentile."""
    epsilon = mechanism.epsilon
    if "extreme" in window:
        continuous = isinstance(mechanism, NoisyCount) and mechanism.continuous
        return around(epsilon, WIDTHS[0], epsilon) if continuous else WHOLE
    if "points" in window:
        return interpolated(window, masses[:3] / members - level, epsilon)
    reached = np.cumsum(masses) / members >= level
    index = int(np.argmax(reached)) if reached.any() else BINS + 1
    if index in (0, BINS + 1) and window["shift"] < 3 * RADIX:
        # The guess was wrong: search the whole range.
        return WHOLE
    base = window["base"] + (max(index - 1, 0) << window["shift"])
    if window["shift"] <= LAST:
        size = np.int64(base).view(np.float64)
        return {"value": min(float(np.log(size)), epsilon)}
    return {"base": base, "shift": max(window["shift"] - RADIX, 0)}


def interpolated(window: Window, excess: Floats, epsilon: float) -> Window:
    """For Laplace noise: a parabola through three points.

    Where the points miss the percentile, what is known to hold it is divided into four.
    """
    points, width = np.array(window["points"]), window["width"]
    if excess[-1] < 0 and points[-1] >= epsilon * (1 - ROUNDING):
        return {"value": epsilon}
    if excess[0] >= 0 and points[0] == 0:
        return {"value": 0.0}
    low = float(max([window["low"], *points[excess < 0]]))
    high = float(min([window["high"], *points[excess >= 0]]))
    if high - low <= EXACT * epsilon / 100:
        return {"value": high}
    if not excess[0] < 0 <= excess[-1]:
        return around((low + high) / 2, (high - low) / epsilon / 4, epsilon, low, high)
    curved = straight = float(np.interp(0.0, excess, points))
    if (np.diff(excess) > 0).all():
        curved = float(np.clip(lagrange(excess, points)(0.0), low, high))
    apart = abs(curved - straight) / epsilon
    if apart <= EXACT:
        return {"value": curved}
    width = min(max(WIDTHS[1], 3 * apart * width), width / 10)
    return around(curved, width, epsilon, low, high)


def mass_at_epsilon(eta: Floats, mechanism: NoisyCount) -> float:
    """The members with |I| = epsilon: those of bags whose noisy count is at or beyond an end.

    With q = e^(-epsilon), geometric noise reaches count 0 from s with probability q^s / (1 + q),
    Laplace noise with q^s / 2. The mean of q^s is a product over members; a label that is known
    neither moves nor shifts the ends.
    """
    q = math.exp(-mechanism.epsilon)
    known = (eta == 0) | (eta == 1)
    ends = sum(np.where(known, 1.0, side + (1 - side) * q).prod(axis=1) for side in (eta, 1 - eta))
    unknown = eta.shape[1] - known.sum(axis=1)
    return float((ends * unknown).sum()) / (2 if mechanism.continuous else 1 + q)
