"""Laws for the prior eta = P(y = 1 | x) of an example drawn at random."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from labelaudit import checks
from labelaudit.checks import Floats


class Prior(Protocol):
    """Anything that can draw priors.

    >>> import numpy as np
    >>> class Known:
    ...     def sample(self, shape, rng):
    ...         return np.full(shape, 0.3)
    >>> from labelaudit import LabelProportions, expected_advantage
    >>> rng = np.random.default_rng(0)
    >>> round(expected_advantage(Known(), LabelProportions(2), n_bags=2, rng=rng).value, 6)
    0.09
    """

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Independent draws of eta."""
        ...


@dataclass(frozen=True)
class Beta:
    """Beta(a, b). The paper's synthetic data sets are Beta(2, 30) and the uniform law.

    >>> import numpy as np
    >>> Beta(2, 30).sample(3, np.random.default_rng(0)).shape
    (3,)
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        """Check the parameters."""
        for name in ("a", "b"):
            value = checks.real_number(getattr(self, name), name, 0, math.inf)
            if value == 0 or math.isinf(value):
                raise ValueError(f"{name} must be positive and finite, not {value}")
            object.__setattr__(self, name, value)

    @property
    def mean(self) -> float:
        """The share of ones."""
        return self.a / (self.a + self.b)

    def cdf(self, eta: ArrayLike) -> Floats:
        """The share of priors that are at most eta."""
        from scipy import special

        return np.asarray(special.betainc(self.a, self.b, np.clip(eta, 0, 1)))

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Independent draws."""
        return np.asarray(checks.generator(rng).beta(self.a, self.b, shape))


@dataclass(frozen=True)
class Uniform:
    """Every prior equally likely: the paper's second synthetic data set.

    >>> import numpy as np
    >>> Uniform().sample((2, 3), np.random.default_rng(0)).shape
    (2, 3)
    """

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Independent draws."""
        return np.asarray(checks.generator(rng).random(shape))


@dataclass(frozen=True)
class TwoPoint:
    """`high` with probability `weight`, else `low`; equal points give labels free of features.

    >>> import numpy as np
    >>> TwoPoint(0.1, 0.9, weight=1).sample(2, np.random.default_rng(0)).tolist()
    [0.9, 0.9]
    """

    low: float
    high: float
    weight: float = 0.5

    def __post_init__(self) -> None:
        """Check the parameters."""
        for name in ("low", "high", "weight"):
            object.__setattr__(self, name, checks.real_number(getattr(self, name), name, 0, 1))

    @property
    def mean(self) -> float:
        """The share of ones."""
        return (1 - self.weight) * self.low + self.weight * self.high

    def cdf(self, eta: ArrayLike) -> Floats:
        """The share of priors that are at most eta."""
        at_low, at_high = np.asarray(eta) >= self.low, np.asarray(eta) >= self.high
        return (1 - self.weight) * at_low + self.weight * at_high

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Independent draws."""
        return np.where(checks.generator(rng).random(shape) < self.weight, self.high, self.low)


@dataclass(frozen=True, eq=False)
class Empirical:
    """The priors of a data set. `partition` splits it into bags; `sample` draws with replacement.

    >>> import numpy as np
    >>> Empirical([0.1, 0.2, 0.3]).partition(2, np.random.default_rng(0)).shape
    (1, 2)
    """

    values: Any = field(repr=False)

    def __post_init__(self) -> None:
        """Check the values."""
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
        """The share of priors that are at most eta."""
        return np.searchsorted(np.sort(self.values), eta, side="right") / self.values.size

    def sample(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Independent draws, with replacement."""
        return np.asarray(checks.generator(rng).choice(self.values, shape))

    def partition(self, bag_size: int, rng: np.random.Generator) -> Floats:
        """The data set shuffled into bags; a remainder too small for a bag is left out."""
        return self.values[self.shuffle(bag_size, rng)]

    def shuffle(
        self, bag_size: int, rng: np.random.Generator
    ) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Indices of a random partition into bags: (n_bags, bag_size)."""
        size = checks.whole_number(bag_size, "bag_size")
        n_bags = self.values.size // size
        if n_bags == 0:
            raise ValueError(
                f"bag_size must be at most the number of priors, {self.values.size}, not {size}"
            )
        order = checks.generator(rng).permutation(self.values.size)
        return order[: n_bags * size].reshape(n_bags, size)


# Half of the people at one prior, half at the other.
HALVES = {"zero-or-half": TwoPoint(0, 0.5), "tenth-or-half": TwoPoint(0.1, 0.5)}


def named(name: str) -> Beta | TwoPoint:
    """The law a chapter's parameter names.

    `uniform`; `beta-a-b` for Beta(a, b); `constant-p` for one prior p; `zero-or-half` and
    `tenth-or-half` for two priors, each of half of the people. The uniform law comes as
    Beta(1, 1), so that every named law has a mean and a distribution function.

    >>> named("beta-2-30"), named("uniform")
    (Beta(a=2.0, b=30.0), Beta(a=1.0, b=1.0))
    >>> named("constant-0.1"), named("zero-or-half").mean
    (TwoPoint(low=0.1, high=0.1, weight=0.5), 0.25)
    """
    number = r"(\d+(?:\.\d+)?)"
    if name == "uniform":
        return Beta(1, 1)
    if str(name) in HALVES:
        return HALVES[str(name)]
    if found := re.fullmatch(f"constant-{number}", str(name)):
        return TwoPoint(float(found[1]), float(found[1]))
    if found := re.fullmatch(f"beta-{number}-{number}", str(name)):
        return Beta(float(found[1]), float(found[2]))
    allowed = f"uniform, {', '.join(HALVES)}, beta-a-b such as beta-2-30, constant-p"
    raise ValueError(f"a law must be named one of {allowed} such as constant-0.1, not {name!r}")
