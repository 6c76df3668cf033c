"""Whole laws of the count, for those who need every entry."""

from __future__ import annotations

import numpy as np
from numba import prange

from labelaudit.kernels.count import N_CHUNKS, TINY, compiled_parallel, count_pmf
from labelaudit.kernels.ratio import read_bag
from labelaudit.kernels.shift import profile


@compiled_parallel
def count_laws(eta):
    """Law of the count of every bag: (n_bags, k + 1)."""
    n_bags, k = eta.shape
    out = np.zeros((n_bags, k + 1))
    n_chunks = min(N_CHUNKS, n_bags)
    for chunk in prange(n_chunks):
        rows = np.empty((2, k + 9))
        complement = np.empty(k)
        for bag in range(chunk * n_bags // n_chunks, (chunk + 1) * n_bags // n_chunks):
            for j in range(k):
                complement[j] = 1.0 - eta[bag, j]
            pmf, lo, hi = count_pmf(eta[bag], complement, k, TINY, rows)
            out[bag, lo : hi + 1] = pmf[lo : hi + 1]
    return out


@compiled_parallel
def leave_one_out(eta):
    """Law of the count of every member's bag-mates: (n_bags, k, k)."""
    n_bags, k = eta.shape
    out = np.zeros((n_bags, k, k))
    n_chunks = min(N_CHUNKS, n_bags)
    for chunk in prange(n_chunks):
        rows = np.empty((2, k + 9))
        work = np.empty((4, k + 1))
        member = np.empty(k, np.int64)
        for bag in range(chunk * n_bags // n_chunks, (chunk + 1) * n_bags // n_chunks):
            p, c, odds, ratios = work[0], work[1], work[2], work[3]
            n, ones, _, _ = read_bag(eta[bag], p, c, odds, member)
            pmf, lo, hi = count_pmf(p, c, n, TINY, rows)
            # Stand-ins for what was trimmed, so that the recursion starts beyond the window.
            if hi < n:
                hi += 1
                pmf[hi] = 0.01 * TINY
            if lo > 0:
                lo -= 1
                pmf[lo] = 0.01 * TINY
            law = pmf[lo : hi + 1]
            # A known label shifts the count or leaves it alone.
            for j in range(k):
                shift = ones - 1 if eta[bag, j] == 1.0 else ones
                if eta[bag, j] == 0.0 or eta[bag, j] == 1.0:
                    out[bag, j, shift + lo : shift + hi + 1] = law
            for i in range(n):
                profile(odds[i], law, 0.0, np.inf, ratios)
                for z in range(law.size):
                    if lo + z < n:
                        zero = law[z] / (c[i] + p[i] * ratios[z])
                        out[bag, member[i], ones + lo + z] = zero
    return out
