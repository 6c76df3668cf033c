"""Random partitions of a sample into bags, and averages over them with their standard errors."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelaudit import checks
from labelaudit.checks import Floats
from labelaudit.estimates import Estimate


def partition(size: int, bag_size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Indices of a random partition of `size` examples into bags: (n_bags, bag_size).

    Examples that do not fill a bag are left out.

    >>> partition(7, 2, np.random.default_rng(0)).shape
    (3, 2)
    """
    n_bags = size // bag_size
    if n_bags == 0:
        raise ValueError(f"{size} examples do not fill one bag of {bag_size}")
    return rng.permutation(size)[: n_bags * bag_size].reshape(n_bags, bag_size)


def probabilities_of(weights: ArrayLike | None, size: int) -> Floats | None:
    """Weights as the probability that each example is drawn; None where all are equal."""
    if weights is None:
        return None
    given = checks.numbers(weights, "weights")
    if given.shape != (size,):
        raise ValueError(f"weights must have shape ({size},), not {given.shape}")
    if not (np.isfinite(given) & (given >= 0)).all() or given.sum() == 0:
        wrong = given[~(np.isfinite(given) & (given >= 0))]
        found = f"{wrong[0]}" if wrong.size else "only zeros"
        raise ValueError(f"weights must be finite, at least 0, and not all 0, not {found}")
    return given / given.sum()


def drawn_bags(
    size: int, bag_size: int, probabilities: Floats | None, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The members of each bag: a random partition, or draws with the given probabilities."""
    if probabilities is None:
        return partition(size, bag_size, rng)
    return rng.choice(size, (size // bag_size, bag_size), p=probabilities)


class Average:
    """The mean of a bag's value over partitions of one sample, with its standard error.

    One partition has the variance of its bags over their number. Over many partitions of the same
    sample it falls only to k^2 sum_i w_i^2 zeta_i, where zeta_i is the squared distance from the
    mean of the average value of the bags that hold example i (the first Hoeffding projection). The
    products of an example's bags in different partitions show zeta_i without bias.
    """

    def __init__(self, bag_size: int, size: int, probabilities: Floats | None) -> None:
        """Over bags of `bag_size` of `size` examples, drawn with these probabilities."""
        self.bag_size, self.rounds, self.bags = bag_size, 0, 0
        self.weights = np.full(size, 1 / size) if probabilities is None else probabilities
        self.seen, self.total, self.square = np.zeros(size), np.zeros(size), np.zeros(size)
        self.sum, self.sum_of_squares = 0.0, 0.0

    def add(self, members: NDArray[np.int64], values: Floats) -> None:
        """One partition: the members of each bag, and the bag's value."""
        flat, spread = members.ravel(), np.repeat(values, self.bag_size)
        size = self.seen.size
        self.seen += np.bincount(flat, minlength=size)
        self.total += np.bincount(flat, spread, size)
        self.square += np.bincount(flat, spread**2, size)
        self.sum += float(values.sum())
        self.sum_of_squares += float((values**2).sum())
        self.rounds, self.bags = self.rounds + 1, self.bags + len(values)

    def estimate(self) -> Estimate:
        """The mean over all bags of all partitions."""
        mean = self.sum / self.bags
        variance = max(0.0, self.sum_of_squares / self.bags - mean**2)
        alone = variance * self.rounds / self.bags
        pairs = self.seen * (self.seen - 1)
        products = (self.total - self.seen * mean) ** 2 - (
            self.square - 2 * mean * self.total + self.seen * mean**2
        )
        often = pairs > 0
        squares = self.weights**2
        zeta = products[often] / pairs[often]
        scale = squares.sum() / squares[often].sum() if often.any() else 0.0
        common = self.bag_size**2 * scale * float(squares[often] @ zeta)
        common = min(max(common, 0.0), alone)
        error = math.sqrt(common + (alone - common) / self.rounds)
        return Estimate(mean, error, self.bags, f"{self.rounds} random partitions into bags")
