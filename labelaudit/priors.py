"""Distributions of the prior eta = P(y = 1 | x) of an example drawn at random.

Each has a `label`, the name that figures and captions print.
"""

import math
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelaudit import checks
from labelaudit.checks import Floats
from labelaudit.partitions import partition

__all__ = ["Beta", "Empirical", "Prior", "TwoPoint", "Uniform"]

Shape = int | tuple[int, ...]


class Prior(Protocol):
    """Anything that can draw priors.

    >>> class Known:
    ...     def sample(self, shape, rng):
    ...         return np.full(shape, 0.3)
    >>> from labelaudit import LabelProportions, expected_advantage
    >>> rng = np.random.default_rng(0)
    >>> round(expected_advantage(Known(), LabelProportions(2), n_bags=2, rng=rng).value, 6)
    0.09
    """

    def sample(self, shape: Shape, rng: np.random.Generator) -> Floats:
        """Independent draws of eta."""
        ...


@dataclass(frozen=True)
class Beta:
    """Beta(a, b). The paper's synthetic data sets are Beta(2, 30) and Beta(1, 1), the uniform.

    >>> Beta(2, 30).sample(3, np.random.default_rng(0)).shape
    (3,)
    >>> Beta(2, 30).label, Beta(1, 1).label
    ('Beta(2, 30)', 'uniform')
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            value = checks.real_number(getattr(self, name), name, 0, math.inf)
            if value == 0 or math.isinf(value):
                raise ValueError(f"{name} must be positive and finite, not {value}")
            object.__setattr__(self, name, value)

    @property
    def label(self) -> str:
        """The name in figures."""
        return "uniform" if self.a == self.b == 1 else f"Beta({self.a:g}, {self.b:g})"

    @property
    def mean(self) -> float:
        """The mean prior."""
        return self.a / (self.a + self.b)

    def cdf(self, eta: ArrayLike) -> Floats:
        """The probability that a prior is at most eta."""
        from scipy import special

        return np.asarray(special.betainc(self.a, self.b, np.clip(eta, 0, 1)))

    def sample(self, shape: Shape, rng: np.random.Generator) -> Floats:
        """Independent draws."""
        return np.asarray(checks.generator(rng).beta(self.a, self.b, shape))


def Uniform() -> Beta:
    """Every prior equally likely, the paper's second synthetic data set: Beta(1, 1).

    >>> Uniform().mean
    0.5
    """
    return Beta(1, 1)


@dataclass(frozen=True)
class TwoPoint:
    """`high` with probability `weight`, else `low`; if equal, labels do not depend on features.

    >>> TwoPoint(0.1, 0.9, weight=1).sample(2, np.random.default_rng(0)).tolist()
    [0.9, 0.9]
    >>> TwoPoint(0, 0.5).label, TwoPoint(0.1, 0.1).label
    ('0 or 0.5', 'constant 0.1')
    """

    low: float
    high: float
    weight: float = 0.5

    def __post_init__(self) -> None:
        for name in ("low", "high", "weight"):
            object.__setattr__(self, name, checks.real_number(getattr(self, name), name, 0, 1))

    @property
    def label(self) -> str:
        """The name in figures."""
        if self.low == self.high:
            return f"constant {self.low:g}"
        weight = "" if self.weight == 0.5 else f" (probability {self.weight:g})"
        return f"{self.low:g} or {self.high:g}{weight}"

    @property
    def mean(self) -> float:
        """The mean prior."""
        return (1 - self.weight) * self.low + self.weight * self.high

    def cdf(self, eta: ArrayLike) -> Floats:
        """The probability that a prior is at most eta."""
        at_low, at_high = np.asarray(eta) >= self.low, np.asarray(eta) >= self.high
        return (1 - self.weight) * at_low + self.weight * at_high

    def sample(self, shape: Shape, rng: np.random.Generator) -> Floats:
        """Independent draws."""
        return np.where(checks.generator(rng).random(shape) < self.weight, self.high, self.low)


@dataclass(frozen=True, eq=False)
class Empirical:
    """The priors of a data set. `partition` splits it into bags; `sample` draws with replacement.

    >>> Empirical([0.1, 0.2, 0.3], label="Higgs").partition(2, np.random.default_rng(0)).shape
    (1, 2)
    """

    values: Any = field(repr=False)
    label: str = "empirical"

    def __post_init__(self) -> None:
        values = checks.probabilities(self.values, "values").ravel()
        if values.size == 0:
            raise ValueError("values must hold at least one prior, not none")
        values = values.copy()
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    @property
    def mean(self) -> float:
        """The mean prior."""
        return float(self.values.mean())

    def cdf(self, eta: ArrayLike) -> Floats:
        """The fraction of priors that are at most eta."""
        return np.searchsorted(np.sort(self.values), eta, side="right") / self.values.size

    def sample(self, shape: Shape, rng: np.random.Generator) -> Floats:
        """Independent draws, with replacement."""
        return np.asarray(checks.generator(rng).choice(self.values, shape))

    def partition(self, bag_size: int, rng: np.random.Generator) -> Floats:
        """The data set shuffled into bags; a remainder too small for a bag is left out."""
        return self.values[self.shuffle(bag_size, rng)]

    def shuffle(self, bag_size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Indices of a random partition into bags: (n_bags, bag_size)."""
        size = checks.whole_number(bag_size, "bag_size")
        return partition(self.values.size, size, checks.generator(rng))
