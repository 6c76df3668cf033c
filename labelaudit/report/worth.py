"""How much of a clean label a released one is worth.

With debiased proportions every record gets an unbiased label of its own, y_hat = k z - (k - 1) p,
where z is its bag's proportion and p the mean of all others.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from labelaudit.bounds import debiased_variance
from labelaudit.checks import Floats
from labelaudit.mechanisms import (
    GeometricProportions,
    LabelProportions,
    LaplaceProportions,
    Mechanism,
    RandomizedResponse,
)

# Whose noise has a closed form. A class derived from one of them may release something else.
KNOWN_NOISE = (RandomizedResponse, LabelProportions, GeometricProportions, LaplaceProportions)


def debiased_labels(
    labels: NDArray[Any], mechanism: Mechanism, rng: np.random.Generator
) -> tuple[Floats, NDArray[np.int64]]:
    """An unbiased label for each record of random bags, and the rows of these records.

    >>> from labelaudit import LabelProportions
    >>> rng = np.random.default_rng(0)
    >>> found, rows = debiased_labels(np.array([0, 1, 1]), LabelProportions(1), rng)
    >>> found[np.argsort(rows)].tolist()
    [0.0, 1.0, 1.0]
    """
    k = mechanism.bag_size
    n_bags = labels.size // k
    if n_bags < 2:
        raise ValueError(f"{labels.size} records make {n_bags} bags of {k}: there must be two")
    rows = rng.permutation(labels.size)[: n_bags * k]
    shares = mechanism.debias(mechanism.release(labels[rows].reshape(n_bags, k), rng))
    # A bag's own share in the mean would bias its labels towards themselves.
    others = (shares.sum() - shares) / (n_bags - 1)
    return np.repeat(k * shares - (k - 1) * others, k), rows


def worth_of(labels: NDArray[Any], mechanism: Mechanism, rng: np.random.Generator) -> float:
    """The share of a clean label that a released one is worth: 1 / (k + V / (p (1 - p))).

    V is the variance of the noise on a count and p the share of ones.

    >>> from labelaudit import LabelProportions
    >>> worth_of(np.array([0, 1, 1, 0, 1, 0, 0, 0]), LabelProportions(4), np.random.default_rng(1))
    0.25
    """
    k = mechanism.bag_size
    if labels.size < 2 * k:
        raise ValueError(f"{labels.size} records make fewer than two bags of {k}")
    share = float(labels.mean())
    noise = noise_variance(mechanism, share)
    if noise is None:
        bags = labels[rng.permutation(labels.size)[: labels.size // k * k]].reshape(-1, k)
        found = np.asarray(mechanism.debias(mechanism.release(bags, rng)), dtype=np.float64)
        noise = k**2 * float(np.mean((found - bags.mean(axis=1)) ** 2))
    return 1 / (k + noise / (share * (1 - share)))


def noise_variance(mechanism: Mechanism, share: float) -> float | None:
    """Variance of the debiased noise on the count of a random bag; none where it must be measured.

    An estimate would now and then call a noisier setting of two the less noisy one.

    >>> from labelaudit import LaplaceProportions
    >>> noise_variance(LaplaceProportions(4, 0.5), 0.3)
    8.0
    """
    k, epsilon = mechanism.bag_size, mechanism.epsilon
    if type(mechanism) not in KNOWN_NOISE:
        return None
    if math.isinf(epsilon):
        return 0.0
    if isinstance(mechanism, LaplaceProportions):
        return 2 / epsilon**2
    counts = np.arange(k + 1)
    law = stats.binom.pmf(counts, k, share)
    return k**2 * float(law @ debiased_variance(counts, k, epsilon))
