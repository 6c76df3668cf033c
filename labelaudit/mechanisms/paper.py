"""The mechanisms of the paper: the label count with noise, without noise, or nothing at all."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from labelaudit import checks
from labelaudit.checks import Floats
from labelaudit.mechanisms.base import CountChannel, Mechanism

__all__ = ["GeometricProportions", "LabelProportions", "LaplaceProportions", "NoisyCount"]
__all__ += ["NoRelease", "RandomizedResponse"]

# Noise of a scale above 1e300 may not fit a float.
MIN_RATE = 1e-300


class NoisyCount(Mechanism):
    """The count plus two-sided geometric noise, clipped; infinite epsilon is no noise at all."""

    def __post_init__(self) -> None:
        self._check_parameters()

    @property
    def continuous(self) -> bool:
        """Whether releases are real numbers rather than multiples of 1/k."""
        return False

    def positions(self, releases: ArrayLike) -> Floats:
        """Releases in count units, checked against what the mechanism can release."""
        k = self.bag_size
        allowed = "be 0 or 1" if k == 1 else f"be a multiple of 1/{k} in [0, 1]"
        return checks.grid_counts(releases, k, k, allowed)

    def log_likelihood(self, releases: ArrayLike) -> Floats:
        """-epsilon |z - s| in count units, at the clipped ends too; z = s where there is no noise.

        Beyond an end all counts are on the same side, so clipping subtracts a constant only.
        """
        positions = np.clip(self.positions(releases), 0, self.bag_size)
        distance = np.abs(positions[:, None] - np.arange(self.bag_size + 1))
        if math.isinf(self.epsilon):
            return np.where(distance == 0, 0.0, -np.inf)
        with np.errstate(over="ignore"):
            return -self.epsilon * distance

    def log_scale(self, releases: ArrayLike) -> Floats:
        """Log (1 - q) / (1 + q), where q = exp(-epsilon); -log (1 + q) at the two ends.

        >>> mechanism = GeometricProportions(bag_size=2, epsilon=math.log(3))
        >>> np.exp(mechanism.log_scale([0.0, 0.5, 1.0])).round(3).tolist()
        [0.75, 0.5, 0.75]
        """
        positions = self.positions(releases)
        inside = (positions > 0) & (positions < self.bag_size)
        with np.errstate(divide="ignore"):
            gap = np.log(-np.expm1(-self.epsilon))
        return np.where(inside, gap, 0.0) - math.log1p(math.exp(-self.epsilon))

    def release(self, labels: ArrayLike, rng: np.random.Generator) -> Floats:
        """Noisy proportions: the inverse CDF at one uniform draw for each bag."""
        counts = self._counts(labels)
        uniform = checks.generator(rng).random(counts.size)
        if math.isinf(self.epsilon):
            return counts / self.bag_size
        if self.epsilon == 0:
            return np.where(uniform < 0.5, 0.0, 1.0)
        q = math.exp(-self.epsilon)
        with np.errstate(divide="ignore", over="ignore"):
            below = np.ceil(np.log(uniform * (1 + q)) / -self.epsilon) - 1
            above = np.floor(np.log((1 - uniform) * (1 + q)) / -self.epsilon)
        noisy = counts + np.where(uniform * (1 + q) < q, -below, above)
        return np.clip(noisy, 0, self.bag_size) / self.bag_size

    def channel(self) -> CountChannel:
        """P(z | s) for z = 0..k in count units; each end has all the noise beyond it.

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
        """E[noisy proportion | clipped]: 1 / (k (e^epsilon - 1)) beyond an end for a release there.

        Geometric noise has no memory, so beyond an end its mean does not depend on the count. The
        formula of the paper (appendix C) lacks the 1/k.
        """
        positions = self.positions(releases)
        if self.epsilon < MIN_RATE:
            raise self._no_debias(f"at epsilon {self.epsilon:g} the release says nothing")
        beyond = math.exp(-self.epsilon) / -math.expm1(-self.epsilon)
        ends = (positions == self.bag_size).astype(float) - (positions == 0)
        return (positions + beyond * ends) / self.bag_size


@dataclass(frozen=True)
class RandomizedResponse(NoisyCount):
    """Flip each label with probability 1 / (1 + e^epsilon): epsilon-label-DP (section 2).

    This is clipped geometric noise on a bag of one.

    >>> mechanism = RandomizedResponse(epsilon=np.log(3))
    >>> mechanism.likelihood([1.0]).round(6).tolist()
    [[0.333333, 1.0]]
    """

    epsilon: float
    bag_size: int = field(default=1, init=False, repr=False)


@dataclass(frozen=True)
class LabelProportions(NoisyCount):
    """Release each bag's proportion of positive labels (LLP, section 2): no noise, no label-DP.

    >>> LabelProportions(4).likelihood([0.25]).tolist()
    [[0.0, 1.0, 0.0, 0.0, 0.0]]
    """

    bag_size: int
    epsilon: float = field(default=math.inf, init=False, repr=False)


@dataclass(frozen=True)
class GeometricProportions(NoisyCount):
    """LLP plus two-sided geometric noise, clipped to [0, 1]: epsilon-label-DP (appendix C).

    >>> mechanism = GeometricProportions(bag_size=2, epsilon=np.log(2))
    >>> mechanism.debias([0.0, 0.5, 1.0]).round(12).tolist()
    [-0.5, 0.5, 1.5]
    """

    bag_size: int
    epsilon: float


@dataclass(frozen=True)
class LaplaceProportions(NoisyCount):
    """LLP plus Laplace noise of scale 1/(k epsilon), not clipped: epsilon-label-DP (appendix C).

    >>> LaplaceProportions(bag_size=2, epsilon=1.0).likelihood([0.5]).round(4).tolist()
    [[0.3679, 1.0, 0.3679]]
    """

    bag_size: int
    epsilon: float

    @property
    def continuous(self) -> bool:
        """Without noise the release is the count itself."""
        return math.isfinite(self.epsilon)

    def positions(self, releases: ArrayLike) -> Floats:
        """Noisy counts: any real number, or a whole number where there is no noise."""
        if not self.continuous:
            return super().positions(releases)
        with np.errstate(over="ignore"):
            return checks.releases(releases) * self.bag_size

    def log_scale(self, releases: ArrayLike) -> Floats:
        """Log (k epsilon / 2), for a density, minus epsilon times the distance outside 0..k."""
        positions = self.positions(releases)
        if not self.continuous:
            return np.zeros(len(positions))
        beyond = np.abs(positions - np.clip(positions, 0, self.bag_size))
        with np.errstate(divide="ignore"):
            return np.log(self.bag_size * self.epsilon / 2) - self.epsilon * beyond

    def release(self, labels: ArrayLike, rng: np.random.Generator) -> Floats:
        """Noisy proportions."""
        rate = self.bag_size * self.epsilon
        if rate < MIN_RATE:
            raise ValueError(
                f"Laplace noise has no distribution at epsilon {self.epsilon:g}: bag_size * "
                f"epsilon must be at least {MIN_RATE:g} to release"
            )
        proportions = self._counts(labels) / self.bag_size
        scale = 1 / rate
        return proportions + checks.generator(rng).laplace(scale=scale, size=proportions.size)

    def debias(self, releases: ArrayLike) -> Floats:
        """The releases themselves: the noise has mean zero."""
        if self.epsilon == 0:
            raise self._no_debias("at epsilon 0 the release says nothing")
        if math.isinf(self.epsilon):
            return super().debias(releases)
        return checks.releases(releases).copy()


@dataclass(frozen=True)
class NoRelease(Mechanism):
    """Reveal nothing: the uninformed attacker's mechanism (section 2). It releases 0.

    >>> NoRelease(bag_size=2).likelihood([0.0]).tolist()
    [[1.0, 1.0, 1.0]]
    """

    bag_size: int = 1
    epsilon: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        self._check_parameters()

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
        """Raises ValueError."""
        raise self._no_debias("it releases nothing")
