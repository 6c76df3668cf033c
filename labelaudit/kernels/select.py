"""Mass of the likelihood ratio's size, bin by bin, for a quantile by radix selection.

The size of a ratio r is max(r, 1/r), a float in [1, inf], and such floats are ordered as their
bits are. One pass tells sixteen bits of the wanted one; four passes tell them all, with no atom
ever stored.
"""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from labelaudit.kernels import compiled
from labelaudit.kernels.count import (
    N_CHUNKS,
    NEGLIGIBLE,
    TINY,
    count_pmf,
    noisy_law,
)
from labelaudit.kernels.ratio import read_bag

RADIX = 16
BINS = 1 << RADIX
# Below this a prior lets the count's law fall so fast that a count of no mass sets the shift at
# its neighbour, which has some: then nothing may be left out.
FAINT = 1e-18


@compiled()
def padded_pmf(p, c, n, floor, rows):
    """Law of the count, with one count beyond its window: noise may reach where no label does."""
    pmf, lo, hi = count_pmf(p, c, n, floor, rows)
    if hi < n:
        hi += 1
        pmf[hi] = max(floor * floor, 0.01 * TINY)
    return pmf, lo, hi


@compiled()
def grid_law(p, c, n, q, rows, law, steps, back, share):
    """Law of the noisy count of n members on its grid: its last index; fills what `sizes` needs.

    steps[z] is law[z-1] / law[z], back[z] its inverse, and share[z] the mass of release z. Each
    end stands for all releases beyond it, which move every posterior alike.
    """
    floor = NEGLIGIBLE
    for j in range(n):
        if p[j] < FAINT:
            floor = TINY
    pmf, lo, hi = padded_pmf(p, c, n, floor, rows)
    noisy_law(pmf, lo, hi, 0.0, q, q, law)
    top = hi - lo
    for z in range(top + 1):
        value = law[lo + 1 + z]
        share[z] = value * (1.0 if z == 0 or z == top else 1.0 - q) / (1.0 + q)
        if z > 0:
            steps[z] = law[lo + z] / value
            back[z] = value / law[lo + z]
    return top


@compiled()
def sizes_of(odds, steps, back, top, q, sizes):
    """max(r, 1/r) at each release of one example, by the recursion of `ratio`; 1/q at the ends."""
    sizes[0] = 1.0 / q
    sizes[top] = 1.0 / q
    posterior = odds * q / (1.0 + odds * q)
    turn = 1
    while turn < top:
        step = odds * steps[turn]
        posterior = step * (1.0 - posterior)
        if not (step <= 1.0 and posterior <= 0.9):
            break
        zero = (1.0 - posterior) * odds
        sizes[turn] = posterior / zero if posterior > zero else zero / posterior
        turn += 1
    inverse = 1.0 / odds
    other = inverse * q / (1.0 + inverse * q)
    for z in range(top - 1, turn - 1, -1):
        other = min(back[z + 1] * inverse * (1.0 - other), 1.0)
        one = (1.0 - other) * inverse
        sizes[z] = one / other if one > other else other / one


@compiled(parallel=True)
def size_masses(eta, epsilon, base, shift):
    """Mass of ratio sizes by (bits - base) >> shift: below 0, in each of 65536 bins, above."""
    n_bags, k = eta.shape
    q = math.exp(-epsilon)
    n_chunks = min(N_CHUNKS, n_bags)
    masses = np.zeros((n_chunks, BINS + 2))
    for chunk in prange(n_chunks):
        work = np.empty((8, k + 9))
        rows = np.empty((2, k + 9))
        member = np.empty(k, np.int64)
        p, c, odds, law, steps, back = work[0], work[1], work[2], work[3], work[4], work[5]
        sizes, share = work[6], work[7]
        mass = masses[chunk]
        bits = sizes.view(np.int64)
        for bag in range(chunk * n_bags // n_chunks, (chunk + 1) * n_bags // n_chunks):
            n, _, _, _ = read_bag(eta[bag], p, c, odds, member)
            sizes[0] = 1.0
            place = min(max((bits[0] - base) >> shift, -1), BINS)
            mass[place + 1] += k - n
            if n == 0:
                continue
            top = grid_law(p, c, n, q, rows, law, steps, back, share)
            for i in range(n):
                sizes_of(odds[i], steps, back, top, q, sizes)
                for z in range(top + 1):
                    place = min(max((bits[z] - base) >> shift, -1), BINS)
                    mass[place + 1] += share[z]
    return masses.sum(axis=0)
