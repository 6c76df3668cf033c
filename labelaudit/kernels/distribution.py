"""Exact distribution of the multiplicative advantage |I| over bags, examples and releases.

`shift_masses` sorts |I| into the bins of some points. `size_masses` is for a quantile by radix
selection: the size of a ratio r is max(r, 1/r), a float in [1, inf], and such floats are ordered as
their bits are. One pass gives sixteen bits of the quantile; four passes give all, and no list of
sizes is stored.
"""

import math

import numpy as np
from numba import prange

from labelaudit.kernels import compiled
from labelaudit.kernels.bag import member_ratios, padded_pmf, read_bag, release_pmf
from labelaudit.kernels.count import TINY, n_chunks_of, run_sums

RADIX = 16
BINS = 1 << RADIX


@compiled()
def _split(total, odds, ratio):
    """Parts of `total` = (odds one + zero) / (1 + odds), where one / zero is `ratio`."""
    if math.isinf(ratio):
        return total * (1.0 + odds) / odds, 0.0
    zero = total * (1.0 + odds) / (1.0 + odds * ratio)
    return zero * ratio, zero


@compiled()
def _probability_below(target, odds, size, epsilon, pmf_sum, below, above, under, over, knots):
    """P(likelihood ratio <= target) under Laplace noise, for q < target < 1/q.

    The ratio grows with the release: find the two counts it lies between, then the point.
    """
    j = np.searchsorted(knots[:size], target) - 1
    if j < 0:
        # Releases below the counts' window have no probability worth counting.
        return 0.0
    one_under, zero_under = _split(below[j], odds, under[j])
    one_over, zero_over = _split(above[j + 1], odds, over[j + 1])
    rise = target * zero_under - one_under
    fall = one_over - target * zero_over
    t = 0.0
    if rise > 0.0:
        t = 1.0 if fall <= 0.0 else 0.5 * (1.0 + math.log(rise / fall) / epsilon)
        t = min(max(t, 0.0), 1.0)
    left = below[j] * math.exp(-epsilon * t)
    right = above[j + 1] * math.exp(-epsilon * (1.0 - t))
    return pmf_sum[j] - 0.5 * left + 0.5 * right


@compiled()
def _laplace_bag(odds, n, pmf, epsilon, points, work, mass):
    """Add the mass of a bag's members to the bins of `points`; releases are real numbers.

    The density between two counts is a mixture of the sums `below` and `above` of `run_sums`. Both
    are log-concave and obey the recursion.
    """
    below, above, under, over, knots = work[0], work[1], work[2], work[3], work[4]
    pmf_sum = work[5]
    sums = (pmf_sum, below, above, under, over, knots)
    q = math.exp(-epsilon)
    size = pmf.size
    run_sums(pmf, 0, size - 1, q, below, above)
    total = 0.0
    for j in range(size):
        total += pmf[j]
        pmf_sum[j] = total
    for i in range(n):
        member_ratios(odds[i], below[:size], 0.0, 1.0 / q, under)
        member_ratios(odds[i], above[:size], q, math.inf, over)
        for j in range(size - 1):
            one_under, zero_under = _split(below[j], odds[i], under[j])
            one_over, zero_over = _split(above[j + 1], odds[i], over[j + 1])
            knots[j] = (one_under + q * one_over) / (zero_under + q * zero_over)
        knots[size - 1] = 1.0 / q
        reached = 0.0
        for j in range(points.size):
            probability = 1.0
            if points[j] < epsilon:
                probability = 0.0
                for side in (1.0, -1.0):
                    target = math.exp(side * points[j])
                    probability += side * _probability_below(target, odds[i], size, epsilon, *sums)
            mass[j] += max(0.0, probability - reached)
            reached = max(reached, probability)
        mass[points.size] += 1.0 - reached


@compiled()
def _grid_bag(p, c, odds, n, epsilon, points, rows, work, mass):
    """The same where releases are whole counts."""
    q = math.exp(-epsilon)
    probability, ratios = work[1], work[2]
    noisy = release_pmf(p, c, n, q, rows, work[0], probability)
    for i in range(n):
        member_ratios(odds[i], noisy, q, 1.0 / q, ratios)
        for z in range(noisy.size):
            # No shift exceeds epsilon; a ratio of exp(epsilon) may not fit a float.
            shift = min(abs(math.log(ratios[z])), epsilon)
            mass[np.searchsorted(points, shift)] += probability[z]


@compiled(parallel=True)
def shift_masses(eta, epsilon, laplace, points):
    """Mass of |I| in (points[j-1], points[j]] for each j, and beyond the last, summed over eta."""
    n_bags, k = eta.shape
    n_chunks = n_chunks_of(eta)
    masses = np.zeros((n_chunks, points.size + 1))
    for chunk in prange(n_chunks):
        work = np.empty((9, k + 9))
        rows = np.empty((2, k + 9))
        member = np.empty(k, np.int64)
        for bag in range(chunk * n_bags // n_chunks, (chunk + 1) * n_bags // n_chunks):
            p, c, odds = work[6], work[7], work[8]
            n, _, _, _ = read_bag(eta[bag], p, c, odds, member)
            masses[chunk, 0] += k - n
            if n == 0:
                continue
            if laplace:
                # Laplace noise reaches every count, and an unlikely one can set the shift.
                pmf, lo, hi = padded_pmf(p, c, n, TINY, rows)
                _laplace_bag(odds, n, pmf[lo : hi + 1], epsilon, points, work, masses[chunk])
            else:
                _grid_bag(p, c, odds, n, epsilon, points, rows, work, masses[chunk])
    return masses.sum(axis=0)


@compiled(parallel=True)
def size_masses(eta, epsilon, base, shift):
    """Mass of ratio sizes by (bits - base) >> shift: below 0, in each of 65536 bins, above."""
    n_bags, k = eta.shape
    q = math.exp(-epsilon)
    n_chunks = n_chunks_of(eta)
    masses = np.zeros((n_chunks, BINS + 2))
    for chunk in prange(n_chunks):
        work = np.empty((6, k + 9))
        rows = np.empty((2, k + 9))
        member = np.empty(k, np.int64)
        p, c, odds, sizes, probability = work[0], work[1], work[2], work[3], work[4]
        mass = masses[chunk]
        bits = sizes.view(np.int64)
        for bag in range(chunk * n_bags // n_chunks, (chunk + 1) * n_bags // n_chunks):
            n, _, _, _ = read_bag(eta[bag], p, c, odds, member)
            sizes[0] = 1.0
            mass[min(max((bits[0] - base) >> shift, -1), BINS) + 1] += k - n
            if n == 0:
                continue
            noisy = release_pmf(p, c, n, q, rows, work[5], probability)
            for i in range(n):
                member_ratios(odds[i], noisy, q, 1.0 / q, sizes)
                for z in range(noisy.size):
                    sizes[z] = max(sizes[z], 1.0 / sizes[z])
                for z in range(noisy.size):
                    mass[min(max((bits[z] - base) >> shift, -1), BINS) + 1] += probability[z]
    return masses.sum(axis=0)
