"""A logistic model that learns from debiased labels of a release as from clean ones.

With debiased proportions every record gets an unbiased label of its own, y_hat = k z - (k - 1) p,
where z is its bag's proportion and p the mean of all other bags. A logistic model needs the labels
through the sums of x y alone, so it learns from debiased labels as from clean ones, but with
more noise.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from labelaudit.checks import Floats, Ints
from labelaudit.mechanisms import Mechanism
from labelaudit.partitions import partition

STEPS = 40


def can_debias(mechanism: Mechanism) -> bool:
    """Whether releases have an unbiased estimate, without which no model is trained on them."""
    labels = np.zeros((2, mechanism.bag_size), np.int64)
    releases = mechanism.release(labels, np.random.default_rng(0))
    try:
        mechanism.debias(releases)
    except ValueError:
        # That is how `debias` reports that there is no unbiased estimate.
        return False
    return True


def debiased_labels(
    labels: NDArray[Any], mechanism: Mechanism, rng: Generator
) -> tuple[Floats, Ints]:
    """An unbiased label for each record of random bags, and the rows of these records.

    >>> from labelaudit import LabelProportions
    >>> rng = np.random.default_rng(0)
    >>> unbiased, rows = debiased_labels(np.array([0, 1, 1]), LabelProportions(1), rng)
    >>> unbiased[np.argsort(rows)].tolist()
    [0.0, 1.0, 1.0]
    """
    k = mechanism.bag_size
    n_bags = labels.size // k
    if n_bags < 2:
        raise ValueError(f"{labels.size} records make {n_bags} bags of {k}: there must be two")
    bags = partition(labels.size, k, rng)
    proportions = mechanism.debias(mechanism.release(labels[bags], rng))
    # With the bag's own proportion in the mean, its labels would be biased towards themselves.
    others = (proportions.sum() - proportions) / (n_bags - 1)
    return np.repeat(k * proportions - (k - 1) * others, k), bags.ravel()


def fit_logistic(matrix: Floats, sums: Floats, penalties: Sequence[float]) -> Floats:
    """Minimise mean log(1 + e^xw) - w.sums + penalty |w|^2 / 2 for each column of `sums`.

    The curvature is at most X'X / 4n whatever the weights, which gives steps that never
    overshoot; Nesterov's momentum makes them quick. Shape: (penalties, features, columns).
    """
    n, d = matrix.shape
    gram = matrix.T @ matrix / (4 * n)
    ridges = [np.diag(np.r_[1e-8, np.full(d - 1, penalty)]) for penalty in penalties]
    factors = [cho_factor(gram + ridge) for ridge in ridges]
    weights = np.zeros((len(penalties), d, sums.shape[1]))
    ahead, momentum = weights.copy(), 1.0
    for _ in range(STEPS):
        probabilities = expit(matrix @ np.concatenate(list(ahead), axis=1))
        slopes = np.split(matrix.T @ probabilities / n, len(penalties), axis=1)
        steps = [
            cho_solve(factor, slope - sums + ridge @ point)
            for factor, slope, ridge, point in zip(factors, slopes, ridges, ahead, strict=True)
        ]
        following = ahead - np.stack(steps)
        larger = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = following + (momentum - 1) / larger * (following - weights)
        weights, momentum = following, larger
    return weights
