"""Likelihood ratios of a release: the attacker's inner loop.


One fact carries all of them. Write P for the law of a bag's label count, P_i for that law without
example i, and eta_i for its prior; then for any noise that is added to the count, with R and R_i
the laws of the noisy count,

    R(z) = eta_i R_i(z - 1) + (1 - eta_i) R_i(z).

So the posterior pi(z) = eta_i R_i(z - 1) / R(z) obeys

    pi(z) = odds_i * R(z - 1) / R(z) * (1 - pi(z - 1)).

R is log-concave, so odds_i R(z-1)/R(z) grows with z: run upwards while it is at most 1, and
downwards while it is above 1, the recursion shrinks every error it is handed. It never
subtracts nearly equal numbers, and costs one multiplication a step instead of a convolution.
Clipping two-sided geometric noise to 0..k loses nothing: below 0 and above k the release only
repeats what 0 and k say. All noise here is two-sided geometric or Laplace, with q = exp(-epsilon)
the ratio of neighbouring terms; q = 0 is no noise at all.
"""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from labelaudit.kernels.count import (
    N_CHUNKS,
    NEGLIGIBLE,
    TINY,
    compiled,
    compiled_parallel,
    count_pmf,
    noisy_law,
)

# Bags this small are never worth trimming.
SMALL = 32
# Beyond this exp(-epsilon) competes with NEGLIGIBLE.
LARGE_EPSILON = 32.0


@compiled
def _sigmoid(t):
    return 1.0 / (1.0 + math.exp(-t))


@compiled
def _centre(log_odds, n, x, limit):
    """The tilt in [-limit, limit] at which the mean count comes closest to x (guarded Newton)."""
    low = -limit
    high = limit
    tilt = 0.0
    for _ in range(200):
        mean = 0.0
        variance = 0.0
        for j in range(n):
            p = _sigmoid(log_odds[j] + tilt)
            mean += p
            variance += p * _sigmoid(-log_odds[j] - tilt)
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


@compiled
def _tilt_members(x, epsilon, n, p, c, odds):
    """Tilt the priors so that the count x is typical of them; returns the tilt.

    Multiplying every member's odds by one factor changes the law of the count by a power of that
    factor, and leaves the posterior given the count as it was. With noise the tilt may not
    exceed epsilon: beyond it the noise, not the count, explains the release.
    """
    for j in range(n):
        odds[j] = math.log(p[j]) - math.log(c[j])
    tilt = _centre(odds, n, x, epsilon)
    for j in range(n):
        lean = min(max(odds[j] + tilt, -700.0), 700.0)
        p[j] = _sigmoid(lean)
        c[j] = _sigmoid(-lean)
        odds[j] = math.exp(lean)
    return tilt


@compiled
def _sweep(odds, n, ratio, first, last, step, start, state):
    """The recursion of the module's head for n members at once, from likelihood ratio `start`."""
    for i in range(n):
        state[i] = odds[i] * start / (1.0 + odds[i] * start)
    for j in range(first, last, step):
        r = ratio[j]
        for i in range(n):
            state[i] = odds[i] * r * (1.0 - state[i])


@compiled
def read_bag(eta, p, c, odds, member):
    """Split a bag into members in doubt and known ones; returns counts, mean and variance."""
    n = 0
    ones = 0
    mean = 0.0
    variance = 0.0
    for j in range(eta.size):
        value = eta[j]
        if value == 1.0:
            ones += 1
        elif value > 0.0:
            p[n] = value
            c[n] = 1.0 - value
            odds[n] = value / (1.0 - value)
            member[n] = j
            mean += value
            variance += value * (1.0 - value)
            n += 1
    return n, ones, mean, variance


@compiled
def _bag_ratios(x, epsilon, q, n, mean, variance, eta, member, work, out):
    """Likelihood ratios of the n members in doubt, for a release strictly between 0 and n."""
    p, c, odds, group, state = work[0], work[1], work[2], work[3], work[4]
    law, ratio, rows, pmf = work[5], work[6], work[7:9], work[7]
    t = math.floor(x)
    tilt = 0.0
    trim = n > SMALL and not LARGE_EPSILON < epsilon < math.inf
    lo, hi = 1, 0
    if not trim:
        pmf, lo, hi = count_pmf(p, c, n, TINY, rows)
    if (trim or hi - lo < n) and abs(x - mean) > 2.5 * math.sqrt(variance):
        tilt = _tilt_members(x, epsilon, n, p, c, odds)
        lo, hi = 1, 0
    if hi < lo:
        pmf, lo, hi = count_pmf(p, c, n, NEGLIGIBLE if trim else TINY, rows)
        if trim and q == 0.0 and not lo < t < hi:
            pmf, lo, hi = count_pmf(p, c, n, TINY, rows)
    if q > 0.0 and (x <= lo or x >= hi):
        for j in range(n):
            out[member[j]] = q if x <= lo else 1.0 / q
        return
    left = math.exp(tilt - epsilon)
    right = math.exp(-tilt - epsilon)
    noisy_law(pmf, lo, hi, x - t, left, right, law)
    for j in range(lo, t + 1):
        ratio[j] = law[j] / law[j + 1]

    # Upwards for every member whose posterior may be below one half; where it then comes out
    # above 0.9, its complement has lost digits, and the member goes down with the others.
    up = 0
    for j in range(n):
        if odds[j] * ratio[t] <= 1.0:
            group[up] = odds[j]
            up += 1
    _sweep(group, up, ratio, lo, t + 1, 1, right, state)
    up = 0
    down = 0
    for j in range(n):
        pi = 1.0
        if odds[j] * ratio[t] <= 1.0:
            pi = state[up]
            up += 1
        if pi <= 0.9:
            value = eta[member[j]]
            out[member[j]] = pi * (1.0 - value) / ((1.0 - pi) * value)
        else:
            out[member[j]] = -1.0
            group[down] = 1.0 / odds[j]
            down += 1
    for j in range(t + 1, hi + 1):
        ratio[j] = law[j + 1] / law[j]
    _sweep(group, down, ratio, hi, t, -1, left, state)
    down = 0
    for j in range(n):
        if out[member[j]] == -1.0:
            pi = state[down]
            value = eta[member[j]]
            out[member[j]] = (1.0 - pi) * (1.0 - value) / (pi * value)
            down += 1


@compiled_parallel
def likelihood_ratios(eta, positions, epsilon):
    """P(release | y_i = 1) / P(release | y_i = 0) for each example of each bag.

    `positions` are releases in count units. Members with a prior of 0 or 1 get 1; a release
    that the priors rule out gives NaN throughout its bag.
    """
    n_bags, k = eta.shape
    q = math.exp(-epsilon)
    out = np.ones((n_bags, k))
    n_chunks = min(N_CHUNKS, n_bags)
    for chunk in prange(n_chunks):
        work = np.empty((9, k + 9))
        member = np.empty(k, np.int64)
        for bag in range(chunk * n_bags // n_chunks, (chunk + 1) * n_bags // n_chunks):
            n, ones, mean, variance = read_bag(eta[bag], work[0], work[1], work[2], member)
            x = positions[bag] - ones
            if q == 0.0 and not 0 <= x <= n:
                out[bag] = math.nan
            elif x <= 0 or x >= n:
                for j in range(n):
                    out[bag, member[j]] = q if x <= 0 else 1.0 / q
            else:
                _bag_ratios(x, epsilon, q, n, mean, variance, eta[bag], member, work, out[bag])
    return out
