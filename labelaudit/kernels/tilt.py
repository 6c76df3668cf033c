"""Tilting: priors moved so that a rare count becomes a typical one."""

import math

from labelaudit.kernels import compiled


@compiled()
def log_product(first, second, n, factor):
    """The logarithm of prod_j (first[j] + factor second[j]), terms within 1e-250..1e260."""
    total = 0.0
    product = 1.0
    for j in range(n):
        product *= first[j] + factor * second[j]
        if not 1e-40 < product < 1e40:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@compiled(any_order=True)
def _tilted_moments(p, c, n, factor):
    """Mean and variance of the count when all odds are multiplied by `factor`."""
    mean = 0.0
    variance = 0.0
    for j in range(n):
        one = p[j] * factor
        scale = 1.0 / (one + c[j])
        mean += one * scale
        variance += one * scale * (c[j] * scale)
    return mean, variance


@compiled()
def _centre(p, c, n, x, limit):
    """The tilt in [-limit, limit] at which the mean count comes closest to x (guarded Newton)."""
    low = -limit
    high = limit
    tilt = 0.0
    for _ in range(200):
        mean, variance = _tilted_moments(p, c, n, math.exp(tilt))
        if abs(mean - x) <= 1e-9 + 0.5 * math.sqrt(variance) or high - low < 1e-9:
            break
        if mean < x:
            low = tilt
        else:
            high = tilt
        tilt += min(max((x - mean) / variance, -16.0), 16.0)
        if not low < tilt < high:
            tilt = 0.5 * (low + high)
    return tilt


@compiled()
def tilt_members(x, epsilon, n, p, c, odds):
    """Tilt the priors so that the count x is typical of them.

    Multiplying every member's odds by one factor changes the distribution of the count by a power
    of that factor, and leaves the posterior given the count as it was. With noise the tilt may not
    exceed epsilon: beyond it the noise, not the count, explains the release. Returns the tilt, and
    the logarithm of what the probability of x must be multiplied by to undo it.
    """
    tilt = _centre(p, c, n, x, epsilon)
    factor = math.exp(tilt)
    scale = log_product(c, p, n, factor) - tilt * x
    for j in range(n):
        one = p[j] * factor
        both = one + c[j]
        odds[j] = min(max(one / c[j], 1e-304), 1e304)
        p[j] = max(one / both, 1e-304)
        c[j] = max(c[j] / both, 1e-304)
    return tilt, scale
