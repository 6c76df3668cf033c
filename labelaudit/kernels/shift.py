"""Exact distribution of the multiplicative advantage |I| over bags, examples and releases."""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from labelaudit.kernels import compiled
from labelaudit.kernels.count import N_CHUNKS, TINY
from labelaudit.kernels.ratio import read_bag
from labelaudit.kernels.select import grid_law, padded_pmf, sizes_of


@compiled()
def profile(odds, law, first, last, ratios):
    """Likelihood ratios law_i(z - 1) / law_i(z) of one example, for z over the whole of `law`.

    They are `first` and `last` at the two ends. The recursion of `ratio` runs upwards while it
    shrinks errors and the posterior is at most 0.9, and downwards from the top for the rest.
    """
    top = law.size - 1
    ratios[0] = first
    posterior = odds * first / (1.0 + odds * first)
    turn = 1
    while turn < top:
        step = odds * law[turn - 1] / law[turn]
        posterior = step * (1.0 - posterior)
        if not (step <= 1.0 and posterior <= 0.9):
            break
        ratios[turn] = posterior / ((1.0 - posterior) * odds)
        turn += 1
    ratios[top] = last
    other = 1.0 / (1.0 + odds * last)
    for z in range(top - 1, turn - 1, -1):
        other = min(law[z + 1] / law[z] / odds * (1.0 - other), 1.0)
        ratios[z] = (1.0 - other) / (other * odds)


@compiled()
def _bin(points, value):
    """The place of the first of the sorted `points` that is at least `value`."""
    low = 0
    high = points.size
    while low < high:
        middle = (low + high) // 2
        if points[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled()
def _split(total, odds, ratio):
    """Parts of `total` = (odds one + zero) / (1 + odds), where one / zero is `ratio`."""
    if math.isinf(ratio):
        return total * (1.0 + odds) / odds, 0.0
    zero = total * (1.0 + odds) / (1.0 + odds * ratio)
    return zero * ratio, zero


@compiled()
def _chance_below(target, odds, lo, hi, epsilon, pmf_sum, below, above, under, over, knots):
    """P(likelihood ratio <= target) under Laplace noise, for q < target < 1/q.

    The ratio grows with the release: find the two counts it lies between, then the point.
    """
    j = _bin(knots[: hi - lo + 1], target) - 1
    if j < 0:
        # Below the counts' window hardly a release is left.
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
def _laplace_bag(odds, n, pmf, lo, hi, epsilon, points, work, mass):
    """The same for Laplace noise, where the release is a real number.

    With below[j] = sum_{s <= j} P(s) q^(j-s) and above[j+1] = sum_{s > j} P(s) q^(s-j-1), counted
    from lo, the density between counts j and j + 1 is below[j] e^(-epsilon t) + above[j+1]
    e^(-epsilon (1-t)), up to a factor; both are log-concave and obey the recursion.
    """
    below, above, under, over, knots = work[0], work[1], work[2], work[3], work[4]
    pmf_sum = work[5]
    q = math.exp(-epsilon)
    size = hi - lo + 1
    run = 0.0
    total = 0.0
    for j in range(size):
        run = run * q + pmf[lo + j]
        total += pmf[lo + j]
        below[j] = run
        pmf_sum[j] = total
    run = 0.0
    for j in range(size - 1, -1, -1):
        run = run * q + pmf[lo + j]
        above[j] = run
    for i in range(n):
        profile(odds[i], below[:size], 0.0, 1.0 / q, under)
        profile(odds[i], above[:size], q, math.inf, over)
        for j in range(size - 1):
            one_under, zero_under = _split(below[j], odds[i], under[j])
            one_over, zero_over = _split(above[j + 1], odds[i], over[j + 1])
            knots[j] = (one_under + q * one_over) / (zero_under + q * zero_over)
        knots[size - 1] = 1.0 / q
        reached = 0.0
        for place in range(points.size):
            chance = 1.0
            if points[place] < epsilon:
                chance = 0.0
                for side in (1.0, -1.0):
                    target = math.exp(side * points[place])
                    chance += side * _chance_below(
                        target, odds[i], lo, hi, epsilon, pmf_sum, below, above, under, over, knots
                    )
            mass[place] += max(0.0, chance - reached)
            reached = max(reached, chance)
        mass[points.size] += 1.0 - reached


@compiled()
def _grid_bag(p, c, odds, n, epsilon, points, rows, work, mass):
    """Add the mass of a bag's members to the bins of `points`; releases lie on the grid."""
    law, steps, back, share, sizes = work[0], work[1], work[2], work[3], work[4]
    q = math.exp(-epsilon)
    top = grid_law(p, c, n, q, rows, law, steps, back, share)
    for i in range(n):
        sizes_of(odds[i], steps, back, top, q, sizes)
        for z in range(top + 1):
            # No shift exceeds epsilon; a ratio of exp(epsilon) may not fit a float.
            mass[_bin(points, min(math.log(sizes[z]), epsilon))] += share[z]


@compiled(parallel=True)
def shift_masses(eta, epsilon, laplace, points):
    """Mass of |I| in (points[j-1], points[j]] for each j, and beyond the last, summed over eta."""
    n_bags, k = eta.shape
    n_chunks = min(N_CHUNKS, n_bags)
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
                _laplace_bag(odds, n, pmf, lo, hi, epsilon, points, work, masses[chunk])
            else:
                _grid_bag(p, c, odds, n, epsilon, points, rows, work, masses[chunk])
    return masses.sum(axis=0)
