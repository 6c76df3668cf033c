"""What a mechanism is: a channel from a bag's label count to a release.

`Mechanism` is the base class of all; `CountChannel` is any finite channel, as a matrix.
"""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelaudit import checks
from labelaudit.checks import Floats

__all__ = ["CountChannel", "Mechanism"]


class Mechanism:
    """The base class of mechanisms. `epsilon` is infinite where there is no label-DP guarantee.

    A mechanism of your own sets `bag_size` and `epsilon` and defines `likelihood` or
    `log_likelihood`: that is all the attacker needs. Define also `release`, `debias` and, for exact
    sums over all releases, `channel` if you use them.

    >>> class AnyPositive(Mechanism):
    ...     # Releases only whether a bag of three has a positive label.
    ...     bag_size, epsilon = 3, math.inf
    ...     def likelihood(self, releases):
    ...         positive = np.arange(4) > 0
    ...         return np.where(np.equal(releases, 1)[:, None], positive, ~positive).astype(float)
    >>> from labelaudit import posterior
    >>> posterior([[0.1, 0.2, 0.3]], AnyPositive(), [1]).round(3).tolist()
    [[0.202, 0.403, 0.605]]
    """

    bag_size: int
    epsilon: float
    # The shape of the release of a single bag: () is a number.
    release_shape: ClassVar[tuple[int, ...]] = ()

    def __init_subclass__(cls) -> None:
        """Require `likelihood` or `log_likelihood`: each defaults to the other."""
        super().__init_subclass__()
        if cls.likelihood is Mechanism.likelihood and (
            cls.log_likelihood is Mechanism.log_likelihood
        ):
            raise TypeError(f"{cls.__name__} must define likelihood or log_likelihood")

    def likelihood(self, releases: ArrayLike) -> Floats:
        """P(release | count = s), up to a factor per bag: (n_bags, bag_size + 1)."""
        logs = self.log_likelihood(releases)
        return np.exp(logs - logs.max(axis=1, keepdims=True))

    def log_likelihood(self, releases: ArrayLike) -> Floats:
        """Log P(release | count = s), up to a term per bag: (n_bags, bag_size + 1)."""
        with np.errstate(divide="ignore"):
            return np.log(self.likelihood(releases))

    def log_scale(self, releases: ArrayLike) -> Floats:
        """The term per bag that `log_likelihood` leaves out; 0 where none is known."""
        return np.zeros(len(np.asarray(releases)))

    def release(self, labels: ArrayLike, rng: np.random.Generator) -> Floats:
        """Releases (n_bags,) for labels (n_bags, bag_size), as proportions of the bag."""
        raise TypeError(f"{self!r} does not say how to release: define its release method")

    def debias(self, releases: ArrayLike) -> Floats:
        """Unbiased estimates of the bags' proportions of positive labels."""
        raise self._no_debias("it does not say how")

    def channel(self) -> "CountChannel":
        """The distribution of the release given each count, where a matrix can hold it."""
        raise TypeError(
            f"the exact distribution of {self!r} is not known: give its channel as a CountChannel"
        )

    def _counts(self, labels: ArrayLike) -> NDArray[np.int64]:
        return checks.label_bags(labels, self.bag_size).sum(axis=1)

    def _check_parameters(self) -> None:
        """Check bag size and epsilon, and keep them as plain int and float."""
        object.__setattr__(self, "bag_size", checks.whole_number(self.bag_size, "bag_size"))
        epsilon = checks.real_number(self.epsilon, "epsilon", 0, math.inf)
        object.__setattr__(self, "epsilon", epsilon)

    def _no_debias(self, why: str) -> ValueError:
        return ValueError(f"{self} cannot be debiased: {why}")


@dataclass(frozen=True, eq=False)
class CountChannel(Mechanism):
    """Any finite channel: row s of `matrix` is the distribution of the release given count s.

    Releases are column numbers. `epsilon` is the largest log ratio between neighbouring rows.

    >>> channel = CountChannel([[0.75, 0.25], [0.25, 0.75]])
    >>> channel.bag_size, round(channel.epsilon, 6)
    (1, 1.098612)
    """

    matrix: Any
    bag_size: int = field(init=False, repr=False)
    epsilon: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        matrix = checks.probabilities(self.matrix, "matrix")
        if matrix.ndim != 2 or matrix.shape[0] < 2 or matrix.shape[1] < 1:
            raise ValueError(
                "matrix must have a row for each count 0..k, k at least 1, and a column for each "
                f"release, not shape {matrix.shape}"
            )
        sums = matrix.sum(axis=1)
        off = np.flatnonzero(np.abs(sums - 1) > 1e-9)
        if off.size:
            raise ValueError(
                f"the rows of matrix must sum to 1, but row {off[0]} sums to {sums[off[0]]:.12g}"
            )
        matrix = matrix / sums[:, None]
        matrix.setflags(write=False)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.abs(np.diff(np.log(matrix), axis=0))
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "bag_size", matrix.shape[0] - 1)
        object.__setattr__(self, "epsilon", float(np.where(np.isnan(steps), 0, steps).max()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CountChannel) and np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash((self.matrix.shape, self.matrix.tobytes()))

    def release(self, labels: ArrayLike, rng: np.random.Generator) -> Floats:
        """Column numbers: the inverse CDF of the count's row at one uniform draw for each bag."""
        counts = self._counts(labels)
        uniform = checks.generator(rng).random(counts.size)
        cumulative = np.cumsum(self.matrix, axis=1)
        columns = np.empty(counts.size)
        for count in np.unique(counts):
            bags = counts == count
            columns[bags] = np.searchsorted(cumulative[count], uniform[bags], side="right")
        last = np.array([np.flatnonzero(row)[-1] for row in self.matrix])
        return np.minimum(columns, last[counts])

    def channel(self) -> "CountChannel":
        """Itself."""
        return self

    def _columns(self, releases: ArrayLike) -> NDArray[np.int64]:
        top = int(self.matrix.shape[1]) - 1
        allowed = f"be one of the column numbers 0..{top}"
        return checks.grid_counts(releases, 1, top, allowed).astype(np.int64)

    def likelihood(self, releases: ArrayLike) -> Floats:
        """The releases' columns."""
        return np.ascontiguousarray(self.matrix[:, self._columns(releases)].T)

    def debias(self, releases: ArrayLike) -> Floats:
        """Raises ValueError: a channel's outputs are names, not numbers."""
        raise self._no_debias("its releases are column numbers, not proportions")
