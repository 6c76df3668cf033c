"""The whole distribution of the count: of every bag, and of every bag without each member."""

import numpy as np
from numba import prange

from labelaudit.kernels import compiled
from labelaudit.kernels.bag import member_ratios, read_bag
from labelaudit.kernels.count import TINY, count_pmf, n_chunks_of

# Probabilities are computed times this power of two. On the way to a result of 1e-300 they may be
# far smaller, so nothing above 1e-570 is left out, and nothing loses digits to underflow.
SCALE = 2.0**900


@compiled()
def _scaled_pmf(p, c, n, rows):
    """Distribution of the count times SCALE, and the window that it fills.

    The first member's probabilities take the factor. It is a power of two, so nothing is rounded.
    """
    if n == 0:
        pmf, lo, hi = count_pmf(p, c, n, TINY, rows)
        pmf[0] = SCALE
        return pmf, lo, hi
    p[0] *= SCALE
    c[0] *= SCALE
    pmf, lo, hi = count_pmf(p, c, n, TINY, rows)
    p[0] /= SCALE
    c[0] /= SCALE
    return pmf, lo, hi


@compiled(parallel=True)
def count_pmfs(eta):
    """Distribution of the count of every bag: (n_bags, k + 1)."""
    n_bags, k = eta.shape
    out = np.zeros((n_bags, k + 1))
    n_chunks = n_chunks_of(eta)
    for chunk in prange(n_chunks):
        rows = np.empty((2, k + 9))
        p, c = np.empty(k), np.empty(k)
        for bag in range(chunk * n_bags // n_chunks, (chunk + 1) * n_bags // n_chunks):
            for j in range(k):
                p[j] = eta[bag, j]
                c[j] = 1.0 - eta[bag, j]
            pmf, lo, hi = _scaled_pmf(p, c, k, rows)
            out[bag, lo : hi + 1] = pmf[lo : hi + 1] / SCALE
    return out


@compiled(parallel=True)
def leave_one_out(eta):
    """Distribution of the count of the others, for every member: (n_bags, k, k)."""
    n_bags, k = eta.shape
    out = np.zeros((n_bags, k, k))
    n_chunks = n_chunks_of(eta)
    for chunk in prange(n_chunks):
        rows = np.empty((2, k + 9))
        work = np.empty((4, k + 1))
        member = np.empty(k, np.int64)
        for bag in range(chunk * n_bags // n_chunks, (chunk + 1) * n_bags // n_chunks):
            p, c, odds, ratios = work[0], work[1], work[2], work[3]
            n, ones, _, _ = read_bag(eta[bag], p, c, odds, member)
            pmf, lo, hi = _scaled_pmf(p, c, n, rows)
            # Tiny values for what was trimmed, so that the recursion starts beyond the window.
            if hi < n:
                hi += 1
                pmf[hi] = 0.01 * TINY
            if lo > 0:
                lo -= 1
                pmf[lo] = 0.01 * TINY
            window = pmf[lo : hi + 1]
            # A known label shifts the count or leaves it alone.
            for j in range(k):
                shift = ones - 1 if eta[bag, j] == 1.0 else ones
                if eta[bag, j] == 0.0 or eta[bag, j] == 1.0:
                    out[bag, j, shift + lo : shift + hi + 1] = window / SCALE
            for i in range(n):
                member_ratios(odds[i], window, 0.0, np.inf, ratios)
                for z in range(window.size):
                    if lo + z < n:
                        zero = window[z] / (c[i] + p[i] * ratios[z])
                        out[bag, member[i], ones + lo + z] = zero / SCALE
    return out
