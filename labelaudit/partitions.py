"""Random partitions of a sample into bags, and averages over them with their standard errors."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labelaudit.checks import Floats


@dataclass(frozen=True)
class Estimate:
    """A number, its standard error, the number of draws behind it, and how it was made.

    `sampling_error` is the error from having a sample instead of the population, where there is
    a sample; `standard_error` is then the error from the random partitions alone.

    >>> estimate = Estimate(0.25, 0.01, n=400, method="independent bags, exact over releases")
    >>> estimate.value - 2 * estimate.standard_error
    0.23
    """

    value: float
    standard_error: float
    n: int
    method: str
    sampling_error: float | None = None


def partition(size: int, bag_size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Indices of a random partition of `size` examples into bags: (n_bags, bag_size).

    Examples that do not fill a bag are left out.

    >>> partition(7, 2, np.random.default_rng(0)).shape
    (3, 2)
    """
    n_bags = size // bag_size
    if n_bags == 0:
        raise ValueError(f"bag_size must be at most the number of examples, {size}, not {bag_size}")
    return rng.permutation(size)[: n_bags * bag_size].reshape(n_bags, bag_size)


def bags_by_size(sizes: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Each size of bags that lie one after another, and their examples: (n_bags, size).

    >>> [(size, rows.tolist()) for size, rows in bags_by_size(np.array([1, 2, 0, 1]))]
    [(1, [[0], [3]]), (2, [[1, 2]])]
    """
    starts = np.cumsum(sizes) - sizes
    for size in np.unique(sizes[sizes > 0]).tolist():
        yield size, starts[sizes == size][:, None] + np.arange(size)


class Average:
    """The mean of a bag's value over random partitions of one sample, with its standard error.

    The mean over one partition has the variance of a bag's value divided by the number of bags. The
    mean over many partitions of the same sample still has the variance k^2 sum_i w_i^2 zeta_i. Here
    zeta_i is the square of a difference: the average value of the bags with example i, minus the
    mean (the first Hoeffding projection). Take two bags of an example from different partitions:
    the product of their deviations estimates zeta_i without bias.
    """

    def __init__(self, bag_size: int, size: int, probabilities: Floats | None = None) -> None:
        self.bag_size, self.bags = bag_size, 0
        self.weights = np.full(size, 1 / size) if probabilities is None else probabilities
        self.seen, self.total, self.square = np.zeros(size), np.zeros(size), np.zeros(size)
        self.sum_of_squares = 0.0
        self.sums: list[float] = []

    def add(self, members: NDArray[np.int64], values: Floats) -> None:
        """One partition: the members of each bag, and the bag's value."""
        flat, repeated = members.ravel(), np.repeat(values, self.bag_size)
        size = self.seen.size
        self.seen += np.bincount(flat, minlength=size)
        self.total += np.bincount(flat, repeated, size)
        self.square += np.bincount(flat, repeated**2, size)
        self.sum_of_squares += float((values**2).sum())
        self.sums.append(float(values.sum()))
        self.bags += len(values)

    @property
    def mean(self) -> float:
        """The mean over all bags of all partitions."""
        return sum(self.sums) / self.bags

    def products(self) -> tuple[Floats, Floats]:
        """For each example, the sum of products of its bags' deviations, and their number.

        A product is of two bags in different partitions, which have only the example in common.
        """
        mean = self.mean
        squares = self.square - 2 * mean * self.total + self.seen * mean**2
        return (self.total - self.seen * mean) ** 2 - squares, self.seen * (self.seen - 1)

    def estimate(self) -> Estimate:
        """The mean, with the standard error of both the sample and the partitions."""
        rounds = len(self.sums)
        variance = max(0.0, self.sum_of_squares / self.bags - self.mean**2)
        alone = variance * rounds / self.bags
        products, pairs = self.products()
        often = pairs > 0
        squares = self.weights**2
        zeta = products[often] / pairs[often]
        scale = squares.sum() / squares[often].sum() if often.any() else 0.0
        common = self.bag_size**2 * scale * float(squares[often] @ zeta)
        common = min(max(common, 0.0), alone)
        error = math.sqrt(common + (alone - common) / rounds)
        return Estimate(self.mean, error, self.bags, f"{rounds} random partitions into bags")

    def estimate_with_sampling_error(self) -> Estimate:
        """The mean, with separate errors for the partitions and for the sample.

        The error of having a sample of m examples is the jackknife's, k sqrt((m - 1) zeta) /
        (m - k), where zeta is the variance over examples of the mean value of the bags that hold
        the example. A sample of a single bag has no estimate of it.
        """
        k, m, rounds = self.bag_size, self.seen.size, len(self.sums)
        means = np.array(self.sums) * rounds / self.bags
        products, pairs = self.products()
        zeta = float(products.sum() / pairs.sum()) if pairs.any() else 0.0
        return Estimate(
            self.mean,
            float(means.std(ddof=1)) / math.sqrt(rounds),
            self.bags,
            f"{rounds} random partitions",
            sampling_error=k * math.sqrt(max(zeta, 0.0) * (m - 1)) / (m - k) if m > k else None,
        )
