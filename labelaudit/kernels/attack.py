"""The attacker's inner loop: what a release says about each label of its bag.

The recursion of `bag` for one release: in a small bag member by member, in others for all members
at once.
"""

import math

import numpy as np
from numba import prange

from labelaudit.kernels import compiled
from labelaudit.kernels.bag import read_bag
from labelaudit.kernels.count import NEGLIGIBLE, TINY, count_pmf, n_chunks_of, noisy_pmf
from labelaudit.kernels.tilt import log_product, tilt_members

# Bags this small are never worth trimming, and their vectors are too short to be worth setting up.
SMALL = 32
# Beyond this exp(-epsilon) competes with NEGLIGIBLE.
LARGE_EPSILON = 32.0


@compiled()
def _sweep(odds, n, steps, n_steps, start, state):
    """The recursion for n members at once, from likelihood ratio `start`.

    Four steps a pass, so that a member's state stays in a register between them.
    """
    for i in range(n):
        state[i] = odds[i] * start / (1.0 + odds[i] * start)
    for j in range(0, n_steps - 3, 4):
        first, second, third, fourth = steps[j], steps[j + 1], steps[j + 2], steps[j + 3]
        for i in range(n):
            value = odds[i] * first
            posterior = value - value * state[i]
            value = odds[i] * second
            posterior = value - value * posterior
            value = odds[i] * third
            posterior = value - value * posterior
            value = odds[i] * fourth
            state[i] = value - value * posterior
    for j in range(n_steps - n_steps % 4, n_steps):
        for i in range(n):
            state[i] = odds[i] * steps[j] * (1.0 - state[i])


@compiled()
def _pick_out(work, where, n, lo, t, hi, left, right):
    """Fill rows 9 and 10, given the distribution of the noisy count in row 5."""
    p, c, odds, group, state = work[0], work[1], work[2], work[3], work[4]
    noisy, steps = work[5], work[6]
    p_zero, p_one = work[9], work[10]
    for j in range(lo, t + 1):
        steps[j - lo] = noisy[j] / noisy[j + 1]
    # Upwards where every step shrinks the error. Members are picked by adding a truth value to the
    # index, which avoids a branch that processors predict badly.
    turn = steps[t - lo]
    picked = 0
    for i in range(n):
        group[picked] = odds[i]
        where[picked] = i
        picked += odds[i] * turn <= 1.0
        p_one[i] = 1.0
    _sweep(group, picked, steps, t + 1 - lo, right, state)
    for j in range(picked):
        p_one[where[j]] = state[j]
    # Downwards for the others, and where the complement would have lost its digits.
    for j in range(hi - t):
        steps[j] = noisy[hi + 1 - j] / noisy[hi - j]
    picked = 0
    for i in range(n):
        p_zero[i] = 1.0 - p_one[i]
        group[picked] = c[i] / p[i]
        where[picked] = i
        picked += not p_one[i] <= 0.9
    _sweep(group, picked, steps, hi - t, left, state)
    for j in range(picked):
        p_zero[where[j]] = state[j]
        p_one[where[j]] = 1.0 - state[j]


@compiled()
def bag_posteriors(x, epsilon, q, n, mean, variance, work, where):
    """P(y_i = 0 | x) and P(y_i = 1 | x) of the n members that are not known, in rows 9 and 10.

    Returns the logarithm of the probability of x, with noise that is not normalised.
    """
    p_zero, p_one = work[9], work[10]
    p, c, odds, noisy = work[0], work[1], work[2], work[5]
    rows, pmf = work[7:9], work[7]
    if x <= 0 or x >= n:
        for i in range(n):
            up = q * odds[i] if x <= 0 else odds[i] / q
            p_one[i] = 1.0 if math.isinf(up) else up / (1.0 + up)
            p_zero[i] = 1.0 / (1.0 + up)
        return log_product(c, p, n, q) if x <= 0 else log_product(p, c, n, q)
    t = math.floor(x)
    tilt = scale = 0.0
    trim = n > SMALL and not LARGE_EPSILON < epsilon < math.inf
    lo, hi = 1, 0
    if not trim:
        pmf, lo, hi = count_pmf(p, c, n, TINY, rows)
    if (trim or hi - lo < n) and abs(x - mean) > 2.5 * math.sqrt(variance):
        tilt, scale = tilt_members(x, epsilon, n, p, c, odds)
        lo, hi = 1, 0
    if hi < lo:
        pmf, lo, hi = count_pmf(p, c, n, NEGLIGIBLE if trim else TINY, rows)
        if trim and q == 0.0 and not lo < t < hi:
            pmf, lo, hi = count_pmf(p, c, n, TINY, rows)
    left = math.exp(tilt - epsilon)
    right = math.exp(-tilt - epsilon)
    if q > 0.0 and (x <= lo or x >= hi):
        start = right if x <= lo else 1.0 / left
        for i in range(n):
            p_one[i] = odds[i] * start / (1.0 + odds[i] * start)
            p_zero[i] = 1.0 / (1.0 + odds[i] * start)
        if x <= lo:
            return scale + log_product(c, p, n, right) - x * math.log(right)
        return scale + log_product(p, c, n, left) - (n - x) * math.log(left)
    noisy_pmf(pmf, lo, hi, x - t, left, right, noisy)
    _pick_out(work, where, n, lo, t, hi, left, right)
    return scale + math.log(noisy[t + 1])


@compiled()
def _write(eta, n, p_zero, p_one, as_ratio, member, out):
    """Write posteriors or likelihood ratios of the members that are not known."""
    if as_ratio:
        for i in range(n):
            value = eta[member[i]]
            p_one[i] = p_one[i] * (1.0 - value) / (p_zero[i] * value)
    if n == eta.size:
        out[:] = p_one[:n]
    else:
        for i in range(n):
            out[member[i]] = p_one[i]


@compiled()
def _attack_bag(eta, position, epsilon, q, as_ratio, work, member, where, out):
    """Fill `out` for one bag, whatever its priors and its release."""
    n, ones, mean, variance = read_bag(eta, work[0], work[1], work[2], member)
    if n < eta.size:
        for j in range(eta.size):
            out[j] = 1.0 if as_ratio else eta[j]
    x = position - ones
    if math.isinf(epsilon) and not 0 <= x <= n:
        out[:] = math.nan
        return
    bag_posteriors(x, epsilon, q, n, mean, variance, work, where)
    _write(eta, n, work[9], work[10], as_ratio, member, out)


@compiled()
def _attack_end(p, c, low, q, as_ratio, out):
    """A release at or beyond an end says the same of every label: exp(-epsilon), or its inverse."""
    evidence = 1.0
    for i in range(p.size):
        if p[i] <= 0.0 or c[i] <= 0.0:
            return 0.0
        odds = p[i] / c[i]
        evidence *= c[i] + p[i] * q if low else p[i] + c[i] * q
        if as_ratio:
            out[i] = q if low else 1.0 / q
        else:
            out[i] = odds * q / (1.0 + odds * q) if low else odds / (odds + q)
    return evidence


@compiled()
def _noisy_steps(p, c, x, t, q, steps, noisy):
    """Ratios of neighbouring probabilities of the noisy count: up to t upwards, above it downwards.

    Returns the probability of x, or 0 where a label is known or a probability leaves the range of
    a float: either puts an end of the distribution out of reach.
    """
    k = p.size
    pmf = steps
    pmf[0] = 1.0
    for j in range(k):
        one = p[j]
        zero = c[j]
        pmf[j + 1] = pmf[j] * one
        for s in range(j, 0, -1):
            pmf[s] = pmf[s] * zero + pmf[s - 1] * one
        pmf[0] *= zero
    if not (pmf[0] > TINY and pmf[k] > TINY):
        return 0.0
    if q == 0.0:
        noisy[0] = 0.0
        for s in range(k + 1):
            noisy[s + 1] = pmf[s]
    else:
        noisy_pmf(pmf, 0, k, x - t, q, q, noisy)
    for j in range(t + 1):
        steps[j] = noisy[j] / noisy[j + 1]
    for j in range(t + 1, k + 1):
        steps[j] = noisy[j + 1] / noisy[j]
    return noisy[t + 1]


@compiled()
def attack_small_bag(p, c, x, q, as_ratio, steps, noisy, out):
    """The recursion of `bag` member by member, for priors p and c = 1 - p.

    Returns the probability of x, with noise that is not normalised, or 0 where only `_attack_bag`
    can tell.
    """
    k = p.size
    if not 0.0 < x < k:
        return _attack_end(p, c, x <= 0.0, q, as_ratio, out)
    t = math.floor(x)
    evidence = _noisy_steps(p, c, x, t, q, steps, noisy)
    if evidence == 0.0:
        return 0.0
    for i in range(k):
        odds = p[i] / c[i]
        up = 1.0
        if odds * steps[t] <= 1.0:
            up = odds * q / (1.0 + odds * q)
            for j in range(t + 1):
                up = odds * steps[j] * (1.0 - up)
        if up <= 0.9:
            out[i] = up / ((1.0 - up) * odds) if as_ratio else up
        else:
            odds = c[i] / p[i]
            down = odds * q / (1.0 + odds * q)
            for j in range(k, t, -1):
                down = odds * steps[j] * (1.0 - down)
            out[i] = (1.0 - down) * odds / down if as_ratio else 1.0 - down
    return evidence


@compiled(parallel=True)
def attack(eta, positions, epsilon, as_ratio):
    """Posteriors of every example, or P(release | y_i = 1) / P(release | y_i = 0).

    `positions` are releases in count units. A prior of 0 or 1 stays as it is, with ratio 1; a
    release that the priors rule out gives NaN throughout its bag.
    """
    n_bags, k = eta.shape
    q = math.exp(-epsilon)
    out = np.empty((n_bags, k))
    n_chunks = n_chunks_of(eta)
    for chunk in prange(n_chunks):
        start = chunk * n_bags // n_chunks
        stop = (chunk + 1) * n_bags // n_chunks
        work = np.empty((11, k + 9))
        c = work[2, :k]
        member = np.empty(k, np.int64)
        where = np.empty(k + 1, np.int64)
        for bag in range(start, stop):
            p, x = eta[bag], positions[bag]
            if k <= SMALL:
                for j in range(k):
                    c[j] = 1.0 - p[j]
                if attack_small_bag(p, c, x, q, as_ratio, work[0], work[1], out[bag]) > 0.0:
                    continue
            _attack_bag(p, x, epsilon, q, as_ratio, work, member, where, out[bag])
    return out
