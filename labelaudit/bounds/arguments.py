"""Checks of the arguments of bounds: bag sizes, variances eta (1 - eta), epsilons."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from labelaudit import checks
from labelaudit.checks import Floats


def sizes(bag_size: ArrayLike, least: int = 1, name: str = "bag_size") -> Floats:
    """Whole numbers of at least `least`, as floats."""
    array = checks.numbers(bag_size, name)
    bad = ~((array >= least) & (array == np.floor(array)) & np.isfinite(array))
    if bad.any():
        wrong = array[bad].flat[0]
        raise ValueError(f"{name} must be a whole number of at least {least}, not {wrong:g}")
    return array


def at_most(values: ArrayLike, name: str, most: float) -> Floats:
    """Numbers in [0, most]."""
    array = checks.numbers(values, name)
    bad = ~((array >= 0) & (array <= most))
    if bad.any():
        raise ValueError(f"{name} must lie in [0, {most:g}], not {array[bad].flat[0]:g}")
    return array


def variances(mu: ArrayLike, name: str = "mu") -> Floats:
    """Values of eta (1 - eta), or means of them: numbers in [0, 1/4]."""
    return at_most(mu, name, 0.25)


def epsilons(epsilon: ArrayLike) -> Floats:
    """Numbers of at least 0, or infinity."""
    return at_most(epsilon, "epsilon", math.inf)


def members(eta: ArrayLike) -> Floats:
    """Priors of whole bags: (..., bag_size)."""
    priors = checks.probabilities(eta)
    if priors.ndim == 0 or priors.shape[-1] == 0:
        raise ValueError(f"eta must have shape (..., bag_size), not {priors.shape}")
    return priors
