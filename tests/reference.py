"""Slow twins of the package: plain numpy, and brute force over all 2^k labels.

They share no code with what they check.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import mpmath
import numpy as np


def numpy_posterior(eta, likelihood):
    """Forward-backward over a bag's members, batched over bags: every term is positive."""
    n_bags, k = eta.shape
    forward = np.zeros((k + 1, n_bags, k + 1))
    forward[0, :, 0] = 1
    for j in range(k):
        p = eta[:, j, None]
        forward[j + 1] = forward[j] * (1 - p)
        forward[j + 1, :, 1:] += forward[j, :, :-1] * p
    posterior = np.empty((n_bags, k))
    backward = np.array(likelihood, dtype=float)
    for j in reversed(range(k)):
        p = eta[:, j]
        zero = (1 - p) * np.einsum("bs,bs->b", forward[j], backward)
        one = p * np.einsum("bs,bs->b", forward[j, :, :-1], backward[:, 1:])
        posterior[:, j] = one / (zero + one)
        ahead = np.zeros_like(backward)
        ahead[:, :-1] = backward[:, 1:]
        backward = backward * (1 - p)[:, None] + ahead * p[:, None]
    return posterior


def label_laws(eta):
    """Every labelling of one bag with its probability, in the arithmetic of eta's entries."""
    for labels in itertools.product((0, 1), repeat=len(eta)):
        weight = eta[0] * 0 + 1
        for p, y in zip(eta, labels, strict=True):
            weight *= p if y else 1 - p
        yield labels, weight


def brute_joints(eta, column):
    """P(y_i = 1, z) and P(y_i = 0, z) for each i, where column[s] = P(z | count s)."""
    ones = [eta[0] * 0 for _ in eta]
    zeros = [eta[0] * 0 for _ in eta]
    for labels, weight in label_laws(eta):
        mass = weight * column[sum(labels)]
        for i, y in enumerate(labels):
            if y:
                ones[i] += mass
            else:
                zeros[i] += mass
    return ones, zeros


def brute_advantage(eta, channel):
    """f_1i - f_2i: the sum over releases of the larger joint, less the better blind guess."""
    gain = [-max(p, 1 - p) for p in eta]
    for column in zip(*channel, strict=True):
        ones, zeros = brute_joints(eta, column)
        gain = [g + max(a, b) for g, a, b in zip(gain, ones, zeros, strict=True)]
    return gain


def geometric_channel(k, q):
    """P(clipped noisy count = z | count = s), from the definition, in the arithmetic of q."""
    rows = []
    for s in range(k + 1):
        row = [(1 - q) / (1 + q) * q ** abs(z - s) for z in range(k + 1)]
        row[0] = q**s / (1 + q)
        row[k] = q ** (k - s) / (1 + q)
        rows.append(row)
    return rows


def identity_channel(k):
    """Label proportions: the count itself."""
    return [[Fraction(int(s == z)) for z in range(k + 1)] for s in range(k + 1)]


def precise_pmf(eta):
    """Law of the count in mpmath's arithmetic."""
    pmf = [mpmath.mpf(1)]
    for value in eta:
        p = mpmath.mpf(float(value))
        pmf = [
            (pmf[s] * (1 - p) if s < len(pmf) else 0) + (pmf[s - 1] * p if s else 0)
            for s in range(len(pmf) + 1)
        ]
    return pmf


def precise_ratio(eta, i, log_weights):
    """P(z | y_i = 1) / P(z | y_i = 0) in mpmath, where log_weights[s] = log P(z | count s)."""
    rest = precise_pmf(np.delete(eta, i))
    weights = [mpmath.exp(mpmath.mpf(float(v))) for v in log_weights]
    one = mpmath.fsum(p * weights[s + 1] for s, p in enumerate(rest))
    zero = mpmath.fsum(p * weights[s] for s, p in enumerate(rest))
    return one / zero if zero else mpmath.inf
