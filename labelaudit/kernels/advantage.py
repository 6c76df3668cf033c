"""Exact sums over every release: the two advantages, and the worth (see `worth`).

With R the distribution of the noisy count, and R_i without example i (see `bag`), an advantage is
sum_z max(0, a R_i(z-1) - b R_i(z)), where (a, b) = (eta_i, 1 - eta_i) for the additive
advantage of an example with eta_i <= 1/2, and (1, 1) for the total-variation distance. R_i comes
out of R by deconvolution, whose absolute error cannot grow while eta_i <= 1/2; an example with
eta_i > 1/2 is handled with all labels flipped. Outside the counts' window every term is a
geometric tail.
"""

import math

import numpy as np
from numba import prange

from labelaudit.kernels import compiled
from labelaudit.kernels.count import TINY, count_pmf, n_chunks_of, noisy_pmf, run_sums
from labelaudit.kernels.worth import geometric_worths, laplace_worths

# What `measures` sums.
ADDITIVE, CONDITIONAL, WORTH = range(3)
# Counts less likely than this are left out; the sums need an absolute precision of 1e-13.
FLOOR = 1e-18


@compiled()
def _positive(x):
    """max(0, x), in the form that compiles to one instruction on a vector."""
    return x if x > 0.0 else 0.0


@compiled()
def _geometric_gains(pmf, lo, hi, q, eta, n, conditional, work, gain):
    """Gains under geometric noise (or none) of n examples with eta <= 1/2.

    Since eta R_i(z-1) + (1 - eta) R_i(z) = R(z), each term is max(0, m R_i(z-1) - R(z)) with
    m = 2 eta, or with m = 1 and divided by 1 - eta for the conditional one.
    """
    rest, inverse, m = work[0], work[1], work[2]
    for i in range(n):
        m[i] = 1.0 if conditional else 2.0 * eta[i]
        inverse[i] = 1.0 / (1.0 - eta[i])
        rest[i] = pmf[lo] / (1.0 - eta[i] + eta[i] * q)
        gain[i] = 0.0
    # Three terms a pass, so that an example's numbers stay in registers between them.
    for z in range(lo + 1, hi - 1, 3):
        first, second, third = pmf[z], pmf[z + 1], pmf[z + 2]
        for i in range(n):
            next1 = (first - eta[i] * rest[i]) * inverse[i]
            next2 = (second - eta[i] * next1) * inverse[i]
            terms = _positive(m[i] * rest[i] - first) + _positive(m[i] * next1 - second)
            gain[i] += terms + _positive(m[i] * next2 - third)
            rest[i] = (third - eta[i] * next2) * inverse[i]
    for z in range(hi + 1 - (hi - lo) % 3, hi + 1):
        for i in range(n):
            gain[i] += _positive(m[i] * rest[i] - pmf[z])
            rest[i] = (pmf[z] - eta[i] * rest[i]) * inverse[i]
    # Beyond hi each term is q times the one before, so one term and a factor sum them all.
    for i in range(n):
        last = _positive(m[i] * rest[i] - q * pmf[hi])
        scale = inverse[i] if conditional else 1.0
        gain[i] = (gain[i] * (1.0 - q) + last) / (1.0 + q) * scale


@compiled()
def _interval_gain(start, end, epsilon, q, fallen):
    """Integral over [0, 1] of epsilon max(0, start e^(-epsilon t) + end e^(-epsilon (1 - t))).

    The sum of a falling and a rising exponential has at most one root, in closed form. `fallen` is
    1 - q, with all its digits.
    """
    left = start + end * q
    right = start * q + end
    if left <= 0.0 and right <= 0.0:
        return 0.0
    if left >= 0.0 and right >= 0.0:
        return (start + end) * fallen
    root = min(max(0.5 * (1.0 + math.log(-start / end) / epsilon), 0.0), 1.0)
    fall = math.exp(-epsilon * root)
    rise = math.exp(-epsilon * (1.0 - root))
    if right > 0.0:
        return start * (fall - q) + end * (1.0 - rise)
    return start * (1.0 - fall) + end * (rise - q)


@compiled()
def _laplace_gain(below, above, lo, hi, epsilon, q, fallen, eta, a, b):
    """Gain under Laplace noise of one example with eta <= 1/2.

    Between j and j + 1 both joint densities mix e^(-epsilon t) and e^(-epsilon (1 - t)) with the
    coefficients of `run_sums`. Without example i they follow by the same deconvolution.
    """
    inverse = 1.0 / (1.0 - eta)
    under = 0.0
    over = above[lo] / (1.0 - eta + eta * q)
    gain = 0.0
    for j in range(lo, hi + 1):
        next_under = (below[j] - eta * under) * inverse
        next_over = (above[j + 1] - eta * over) * inverse
        start, end = a * under - b * next_under, a * over - b * next_over
        gain += _interval_gain(start, end, epsilon, q, fallen)
        under = next_under
        over = next_over
    return 0.5 * (gain + max(0.0, a * under - b * q * under))


@compiled()
def _laplace_gains(pmf, lo, hi, epsilon, eta, n, conditional, work, gain):
    """Gains under Laplace noise of n examples with eta <= 1/2."""
    below, above = work[0], work[1]
    q, fallen = math.exp(-epsilon), -math.expm1(-epsilon)
    run_sums(pmf, lo, hi, q, below, above)
    for i in range(n):
        a = 1.0 if conditional else eta[i]
        b = 1.0 if conditional else 1.0 - eta[i]
        gain[i] = _laplace_gain(below, above, lo, hi, epsilon, q, fallen, eta[i], a, b)


@compiled()
def _half_bag(eta, pmf, lo, hi, q, epsilon, laplace, wanted, flipped, work, where, out):
    """Measures of the members on one side of one half; if `flipped`, of all labels flipped."""
    group, gain, scratch = work[0], work[1], work[2:8]
    n = 0
    for j in range(eta.size):
        group[n] = 1.0 - eta[j] if flipped else eta[j]
        where[n] = j
        n += (eta[j] > 0.5) == flipped
    if n == 0:
        return
    for row, measure in enumerate(wanted):
        if measure == WORTH and laplace:
            laplace_worths(pmf, lo, hi, q, group, n, scratch, gain)
        elif measure == WORTH:
            geometric_worths(pmf, lo, hi, q, group, n, scratch, gain)
        elif laplace:
            _laplace_gains(pmf, lo, hi, epsilon, group, n, measure == CONDITIONAL, scratch, gain)
        else:
            _geometric_gains(pmf, lo, hi, q, group, n, measure == CONDITIONAL, scratch, gain)
        for i in range(n):
            out[row, where[i]] = gain[i]


@compiled()
def _floor(eta, wanted):
    """Counts less likely than this are left out; it is lower for the worth, which divides."""
    least = 1.0
    if (wanted == WORTH).any():
        for j in range(eta.size):
            if 0.0 < eta[j] < 1.0:
                least = min(least, eta[j] * (1.0 - eta[j]))
    return max(FLOOR * least, TINY)


@compiled(parallel=True)
def measures(eta, epsilon, laplace, wanted):
    """The measures in `wanted`, for every example: (wanted, *eta.shape)."""
    n_bags, k = eta.shape
    q = math.exp(-epsilon)
    out = np.empty((wanted.size, n_bags, k))
    n_chunks = n_chunks_of(eta)
    for chunk in prange(n_chunks):
        rows = np.empty((2, k + 9))
        work = np.empty((10, k + 9))
        where = np.empty(k + 1, np.int64)
        for bag in range(chunk * n_bags // n_chunks, (chunk + 1) * n_bags // n_chunks):
            complement, pmf, mirrored = work[0], work[0], work[1]
            for j in range(k):
                complement[j] = 1.0 - eta[bag, j]
            floor = _floor(eta[bag], wanted)
            counts, lo, hi = count_pmf(eta[bag], complement, k, floor, rows)
            if laplace or q == 0.0:
                for j in range(lo, hi + 1):
                    pmf[j] = counts[j]
            else:
                noisy_pmf(counts, lo, hi, 0.0, q, q, mirrored)
                for j in range(lo, hi + 1):
                    pmf[j] = mirrored[j + 1]
            for j in range(lo, hi + 1):
                mirrored[k - j] = pmf[j]
            for side in range(2):
                start, end = (k - hi, k - lo) if side == 1 else (lo, hi)
                bounds = (start, end, q, epsilon)
                kind = (laplace, wanted, side == 1)
                _half_bag(eta[bag], work[side], *bounds, *kind, work[2:10], where, out[:, bag])
    return out
