"""Repeated releases of the same labels, in the same bags, each with new noise."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelaudit import checks
from labelaudit.checks import Floats
from labelaudit.mechanisms import CountChannel, Mechanism, NoisyCount

# A table of more outcomes than this is slower than a good sample.
MAX_OUTCOMES = 20_000


@dataclass(frozen=True)
class Repeated(Mechanism):
    """`times` independent releases of the same bags by one mechanism: (n_bags, times) numbers.

    Given the count the releases are independent, so their likelihoods multiply and the posterior
    stays exact. By composition epsilon is multiplied by `times`. Label proportions without noise
    are the same in every release, so the attacker learns nothing more from a second one.

    >>> from labelaudit import RandomizedResponse, multiplicative_advantage
    >>> twice = Repeated(RandomizedResponse(1.0), 2)
    >>> twice.epsilon
    2.0
    >>> multiplicative_advantage([0.3, 0.3], twice, [[1, 1], [1, 0]]).round(12).tolist()
    [2.0, 0.0]
    """

    mechanism: Mechanism
    times: int
    bag_size: int = field(init=False, repr=False)
    epsilon: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        size = checks.bag_size(self.mechanism)
        if isinstance(self.mechanism, Repeated):
            product = f"Repeated({self.mechanism.mechanism!r}, r)"
            raise TypeError(f"a repeated mechanism cannot be repeated: write {product} instead")
        if self.mechanism.release_shape != ():
            raise TypeError(
                f"{self.mechanism!r} releases arrays of shape {self.mechanism.release_shape} for a"
                " bag; only a mechanism that releases one number can be repeated"
            )
        object.__setattr__(self, "times", checks.count(self.times, "times"))
        object.__setattr__(self, "bag_size", size)
        object.__setattr__(self, "epsilon", self.times * self.mechanism.epsilon)

    @property
    def release_shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """A number for each release of a bag."""
        return (self.times,)

    def release(self, labels: ArrayLike, rng: np.random.Generator) -> Floats:
        """One column for each release."""
        return np.column_stack([self.mechanism.release(labels, rng) for _ in range(self.times)])

    def log_likelihood(self, releases: ArrayLike) -> Floats:
        """The sum over the releases of each bag."""
        columns = checks.releases(releases, self.release_shape).T
        logs = np.zeros((columns.shape[1], self.bag_size + 1))
        for column in columns:
            logs = logs + self.mechanism.log_likelihood(column)
        return logs

    def debias(self, releases: ArrayLike) -> Floats:
        """The mean over the releases of their unbiased estimates."""
        columns = checks.releases(releases, self.release_shape).T
        return np.mean([self.mechanism.debias(column) for column in columns], axis=0)

    def channel(self) -> CountChannel:
        """The distribution of the releases without their order, which the attacker does not need.

        Of m possible releases there are (m + times - 1 choose times) such outcomes. For
        randomized response this is the binomial distribution of the number of zeros.

        >>> from labelaudit import RandomizedResponse
        >>> Repeated(RandomizedResponse(math.log(3)), 2).channel().matrix.round(12).tolist()
        [[0.0625, 0.375, 0.5625], [0.5625, 0.375, 0.0625]]
        """
        return self._channel

    @cached_property
    def _channel(self) -> CountChannel:
        from scipy.special import gammaln

        base = self.mechanism
        if isinstance(base, NoisyCount) and math.isfinite(base.epsilon) and not base.continuous:
            # A noisy count has k + 1 values: the table's size is known before it is made.
            self._require_few(self.bag_size + 1)
        once = base.channel().matrix
        # Without noise all releases are equal: the first has all the information.
        if self.times == 1 or np.isin(once, (0.0, 1.0)).all():
            return CountChannel(once)
        self._require_few(once.shape[1])
        tallies = _tallies(self.times, once.shape[1])
        orders = gammaln(self.times + 1) - gammaln(tallies + 1).sum(axis=1)
        logs = np.log(np.where(once > 0, once, 1.0)) @ tallies.T + orders
        possible = (once == 0).astype(float) @ tallies.T == 0
        return CountChannel(np.where(possible, np.exp(logs), 0.0))

    def _require_few(self, values: int) -> None:
        outcomes = math.comb(values + self.times - 1, self.times)
        if outcomes > MAX_OUTCOMES:
            raise ValueError(
                f"{self} has {outcomes:,} outcomes, more than {MAX_OUTCOMES:,}: "
                "estimate its advantage with sampled_advantage"
            )


def _tallies(times: int, values: int) -> NDArray[np.int64]:
    """All tallies of `times` releases over `values` possible values, one row each.

    >>> _tallies(2, 2).tolist()
    [[0, 2], [1, 1], [2, 0]]
    """
    length = times + values - 1
    bars = np.array(list(combinations(range(length), values - 1)), dtype=np.int64)
    edges = np.pad(bars, ((0, 0), (1, 1)), constant_values=((-1, -1), (-1, length)))
    return np.diff(edges, axis=1) - 1
