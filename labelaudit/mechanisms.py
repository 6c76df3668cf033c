"""Every mechanism of the paper is a noisy channel on a bag's label count.

A mechanism turns the count s of a bag's positive labels into a release z with likelihood
L(z | s). Randomized response is the bag of one. Three kinds cover all of them:

* the count plus two-sided noise whose neighbouring terms have ratio exp(-epsilon): label
  proportions (no noise), geometric and Laplace noise, randomized response (geometric, bag of one);
* `NoRelease`, the paper's uninformed attacker;
* `CountChannel`, any finite channel given as a matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelaudit import checks
from labelaudit.checks import Floats

# Laplace noise of a scale above 1e300 may not fit a float.
LEAST_RATE = 1e-300


class Mechanism:
    """What every mechanism offers. `epsilon` is infinite where there is no label-DP guarantee.

    A mechanism of your own sets `bag_size` and `epsilon` and defines `likelihood` or
    `log_likelihood`: that is all the attacker needs. `release`, `debias` and, for exact sums over
    all releases, `channel` are yours to add.
    """

    bag_size: int
    epsilon: float
    # The shape of what is released about one bag: () is one number.
    release_shape: ClassVar[tuple[int, ...]] = ()

    def __init_subclass__(cls) -> None:
        """Refuse a mechanism without a likelihood: each of the two falls back on the other."""
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

    def release(self, labels: ArrayLike, rng: np.random.Generator) -> Floats:
        """Releases (n_bags,) for labels (n_bags, bag_size), as proportions of the bag."""
        raise TypeError(f"{self!r} does not say how to release: define its release method")

    def debias(self, releases: ArrayLike) -> Floats:
        """Unbiased estimates of the bags' proportions of positive labels."""
        raise self._refuse_debias("it does not say how")

    def channel(self) -> CountChannel:
        """The whole law of the release given each count, where it can be written as a matrix."""
        raise TypeError(
            f"the exact law of {self!r} is not known: give its channel as a CountChannel"
        )

    def _counts(self, labels: ArrayLike) -> NDArray[np.int64]:
        return checks.label_bags(labels, self.bag_size).sum(axis=1)

    def _check(self, **parameters: Any) -> None:
        """Refuse bad parameters, and keep the good ones as plain int and float."""
        if "bag_size" in parameters:
            size = checks.whole_number(parameters["bag_size"], "bag_size")
            object.__setattr__(self, "bag_size", size)
        if "epsilon" in parameters:
            epsilon = checks.real_number(parameters["epsilon"], "epsilon", 0, math.inf)
            object.__setattr__(self, "epsilon", epsilon)

    def _refuse_debias(self, why: str) -> ValueError:
        return ValueError(f"{self} cannot be debiased: {why}")


class NoisyCount(Mechanism):
    """The count plus two-sided geometric noise, clipped; infinite epsilon is no noise at all."""

    @property
    def continuous(self) -> bool:
        """Whether releases are real numbers rather than points of the grid."""
        return False

    def positions(self, releases: ArrayLike) -> Floats:
        """Releases in count units, checked against what the mechanism can release."""
        k = self.bag_size
        allowed = "be 0 or 1" if k == 1 else f"be a multiple of 1/{k} in [0, 1]"
        return checks.grid_counts(releases, k, k, allowed).astype(np.float64)

    def log_likelihood(self, releases: ArrayLike) -> Floats:
        """-epsilon |z - s| in count units, at the clipped ends too; z = s where there is no noise.

        Beyond an end every count is on one side, so clipping changes the sum by a constant only.
        """
        positions = np.clip(self.positions(releases), 0, self.bag_size)
        distance = np.abs(positions[:, None] - np.arange(self.bag_size + 1))
        if math.isinf(self.epsilon):
            return np.where(distance == 0, 0.0, -np.inf)
        return -self.epsilon * distance

    def release(self, labels: ArrayLike, rng: np.random.Generator) -> Floats:
        """Noisy proportions: one uniform a bag, the CDF of its count's row inverted."""
        counts = self._counts(labels)
        uniform = checks.generator(rng).random(counts.size)
        if math.isinf(self.epsilon):
            return counts / self.bag_size
        if self.epsilon == 0:
            return np.where(uniform < 0.5, 0.0, 1.0)
        q = math.exp(-self.epsilon)
        with np.errstate(divide="ignore"):
            below = np.ceil(np.log(uniform * (1 + q)) / -self.epsilon) - 1
            above = np.floor(np.log((1 - uniform) * (1 + q)) / -self.epsilon)
        noisy = counts + np.where(uniform * (1 + q) < q, -below, above)
        return np.clip(noisy, 0, self.bag_size) / self.bag_size

    def channel(self) -> CountChannel:
        """P(z | s) over the grid z = 0..k; each end holds all the noise beyond it.

        >>> GeometricProportions(bag_size=1, epsilon=math.log(3)).channel().matrix.tolist()
        [[0.75, 0.25], [0.25, 0.75]]
        """
        if self.continuous:
            return super().channel()
        counts = np.arange(self.bag_size + 1)
        distance = np.abs(counts[:, None] - counts)
        if math.isinf(self.epsilon):
            return CountChannel((distance == 0).astype(float))
        q = math.exp(-self.epsilon)
        inside = np.full(counts.size, -math.expm1(-self.epsilon))
        inside[[0, -1]] = 1.0
        return CountChannel(np.exp(-self.epsilon * distance) * inside / (1 + q))

    def debias(self, releases: ArrayLike) -> Floats:
        """E[noisy proportion | clipped]: off by 1 / (k (e^epsilon - 1)) at the two ends.

        Noise beyond an end has no memory of how far away the count was. The paper's display
        (appendix C) lacks the 1/k.
        """
        positions = self.positions(releases)
        if self.epsilon == 0:
            raise self._refuse_debias("at epsilon 0 the release says nothing")
        beyond = math.exp(-self.epsilon) / -math.expm1(-self.epsilon)
        ends = (positions == self.bag_size).astype(float) - (positions == 0)
        return (positions + beyond * ends) / self.bag_size


@dataclass(frozen=True)
class RandomizedResponse(NoisyCount):
    """Flip each label with probability 1 / (1 + e^epsilon): epsilon-label-DP (section 2).

    This is clipped geometric noise on a bag of one.

    >>> import numpy as np
    >>> mechanism = RandomizedResponse(epsilon=np.log(3))
    >>> mechanism.likelihood([1.0]).round(6).tolist()
    [[0.333333, 1.0]]
    """

    epsilon: float
    bag_size: int = field(default=1, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the parameters."""
        self._check(epsilon=self.epsilon)


@dataclass(frozen=True)
class LabelProportions(NoisyCount):
    """Release each bag's proportion of positive labels (LLP, section 2): no noise, no label-DP.

    >>> LabelProportions(4).likelihood([0.25]).tolist()
    [[0.0, 1.0, 0.0, 0.0, 0.0]]
    """

    bag_size: int
    epsilon: float = field(default=math.inf, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the parameters."""
        self._check(bag_size=self.bag_size)


@dataclass(frozen=True)
class GeometricProportions(NoisyCount):
    """LLP plus two-sided geometric noise, clipped to [0, 1]: epsilon-label-DP (appendix C).

    >>> import numpy as np
    >>> mechanism = GeometricProportions(bag_size=2, epsilon=np.log(2))
    >>> mechanism.debias([0.0, 0.5, 1.0]).round(12).tolist()
    [-0.5, 0.5, 1.5]
    """

    bag_size: int
    epsilon: float

    def __post_init__(self) -> None:
        """Check the parameters."""
        self._check(bag_size=self.bag_size, epsilon=self.epsilon)


@dataclass(frozen=True)
class LaplaceProportions(NoisyCount):
    """LLP plus Laplace noise of scale 1/(k epsilon), not clipped: epsilon-label-DP (appendix C).

    >>> LaplaceProportions(bag_size=2, epsilon=1.0).likelihood([0.5]).round(4).tolist()
    [[0.3679, 1.0, 0.3679]]
    """

    bag_size: int
    epsilon: float

    def __post_init__(self) -> None:
        """Check the parameters."""
        self._check(bag_size=self.bag_size, epsilon=self.epsilon)

    @property
    def continuous(self) -> bool:
        """Without noise the release is the count itself."""
        return math.isfinite(self.epsilon)

    def positions(self, releases: ArrayLike) -> Floats:
        """Noisy counts: any real number, or the grid where there is no noise."""
        if not self.continuous:
            return super().positions(releases)
        with np.errstate(over="ignore"):
            return checks.release_vector(releases) * self.bag_size

    def release(self, labels: ArrayLike, rng: np.random.Generator) -> Floats:
        """Noisy proportions."""
        rate = self.bag_size * self.epsilon
        if rate < LEAST_RATE:
            raise ValueError(
                f"Laplace noise has no law at epsilon {self.epsilon:g}: bag_size * epsilon must be "
                f"at least {LEAST_RATE:g} to release"
            )
        proportions = self._counts(labels) / self.bag_size
        scale = 1 / rate
        return proportions + checks.generator(rng).laplace(scale=scale, size=proportions.size)

    def debias(self, releases: ArrayLike) -> Floats:
        """The releases themselves: the noise has mean zero."""
        if self.epsilon == 0:
            raise self._refuse_debias("at epsilon 0 the release says nothing")
        if math.isinf(self.epsilon):
            return super().debias(releases)
        return checks.release_vector(releases).copy()


@dataclass(frozen=True)
class NoRelease(Mechanism):
    """Reveal nothing: the uninformed attacker's mechanism (section 2). It releases 0.

    >>> NoRelease(bag_size=2).likelihood([0.0]).tolist()
    [[1.0, 1.0, 1.0]]
    """

    bag_size: int = 1
    epsilon: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the parameters."""
        self._check(bag_size=self.bag_size)

    def release(self, labels: ArrayLike, rng: np.random.Generator) -> Floats:
        """Zeros."""
        checks.generator(rng)
        return np.zeros(self._counts(labels).size)

    def log_likelihood(self, releases: ArrayLike) -> Floats:
        """Constant."""
        counts = checks.grid_counts(releases, 1, 0, "be 0, all that NoRelease releases")
        return np.zeros((counts.size, self.bag_size + 1))

    def channel(self) -> CountChannel:
        """One column of ones."""
        return CountChannel(np.ones((self.bag_size + 1, 1)))

    def debias(self, releases: ArrayLike) -> Floats:
        """Refused."""
        raise self._refuse_debias("it releases nothing")


@dataclass(frozen=True, eq=False)
class CountChannel(Mechanism):
    """Any finite channel: row s of `matrix` is the law of the release given count s.

    Releases are column numbers. `epsilon` is the largest log ratio between neighbouring rows.

    >>> channel = CountChannel([[0.75, 0.25], [0.25, 0.75]])
    >>> channel.bag_size, round(channel.epsilon, 6)
    (1, 1.098612)
    """

    matrix: Any
    bag_size: int = field(init=False, repr=False)
    epsilon: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the matrix, and read bag size and epsilon off it."""
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
        """Channels are equal when their matrices are."""
        return isinstance(other, CountChannel) and np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        """In keeping with equality."""
        return hash((self.matrix.shape, self.matrix.tobytes()))

    def release(self, labels: ArrayLike, rng: np.random.Generator) -> Floats:
        """Column numbers: one uniform a bag, the row's CDF inverted."""
        counts = self._counts(labels)
        uniform = checks.generator(rng).random(counts.size)
        cumulative = np.cumsum(self.matrix, axis=1)
        columns = np.empty(counts.size)
        for count in np.unique(counts):
            here = counts == count
            columns[here] = np.searchsorted(cumulative[count], uniform[here], side="right")
        last = np.array([np.flatnonzero(row)[-1] for row in self.matrix])
        return np.minimum(columns, last[counts])

    def channel(self) -> CountChannel:
        """Itself."""
        return self

    def _columns(self, releases: ArrayLike) -> NDArray[np.int64]:
        top = int(self.matrix.shape[1]) - 1
        return checks.grid_counts(releases, 1, top, f"be one of the column numbers 0..{top}")

    def likelihood(self, releases: ArrayLike) -> Floats:
        """The releases' columns."""
        return np.ascontiguousarray(self.matrix[:, self._columns(releases)].T)

    def debias(self, releases: ArrayLike) -> Floats:
        """Refused: a channel's outputs are names, not numbers."""
        raise self._refuse_debias("its releases are column numbers, not proportions")
