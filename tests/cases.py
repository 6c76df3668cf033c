"""Bags and mechanisms that several test files go through."""

from __future__ import annotations

import math

import mpmath
import numpy as np

from labelaudit import (
    CountChannel,
    GeometricProportions,
    LabelProportions,
    LaplaceProportions,
    NoRelease,
    RandomizedResponse,
)

# Known labels, near-known labels, ties at one half, and everyday priors, all in one bag.
BAGS = (
    [0.3],
    [0.7],
    [0.5, 0.5],
    [0.1, 0.4, 0.7],
    [0.0, 0.35, 1.0, 0.8],
    [1e-9, 1 - 1e-9, 0.5, 0.25, 0.03],
    [0.06, 0.02, 0.11, 0.07, 0.01, 0.16, 0.05, 0.09],
    [0.9, 0.2, 0.5, 0.65, 0.33, 0.33, 0.8, 0.01, 0.49, 0.71],
)
EPSILONS = (1e-3, 0.5, 2.0, 20.0)


def some_channel(bag_size, n_releases=4, seed=5):
    """A channel without symmetry, log-concavity or full support: some releases reveal labels."""
    matrix = np.random.default_rng(seed).dirichlet(np.full(n_releases, 0.6), bag_size + 1)
    matrix[0, -1] = 0
    return CountChannel(matrix / matrix.sum(axis=1, keepdims=True))


def finite_mechanisms(bag_size):
    """Every kind of mechanism with finitely many releases, for one bag size."""
    kinds = [LabelProportions(bag_size), NoRelease(bag_size), some_channel(bag_size)]
    kinds += [GeometricProportions(bag_size, epsilon) for epsilon in EPSILONS]
    if bag_size == 1:
        kinds += [RandomizedResponse(epsilon) for epsilon in EPSILONS]
    return kinds


def laplace_mechanisms(bag_size):
    return [LaplaceProportions(bag_size, epsilon) for epsilon in EPSILONS]


def finite_cases():
    """Pairs of a bag and a mechanism with finitely many releases."""
    return [(eta, mechanism) for eta in BAGS for mechanism in finite_mechanisms(len(eta))]


def laplace_cases():
    return [(eta, mechanism) for eta in BAGS for mechanism in laplace_mechanisms(len(eta))]


def exact(eta):
    """Priors as mpmath numbers, each equal to its float."""
    return [mpmath.mpf(float(p)) for p in eta]


def relative_error(value, truth):
    """|value - truth| / |truth|, where both may be 0 or infinite."""
    if truth in (0, mpmath.inf, -mpmath.inf):
        return 0.0 if value == truth else math.inf
    return float(abs(mpmath.mpf(float(value)) - truth) / abs(truth))
