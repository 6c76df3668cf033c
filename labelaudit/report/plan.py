"""What an audit is asked to do, checked before any work: mechanisms, parameters, target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelaudit import checks
from labelaudit.report.settings import Setting, settings_of

TARGETS = ("additive", "multiplicative", "epsilon")
UTILITIES = ("none", "logistic", "network")
# Fewer bags than this say nothing about how bags differ.
LEAST_BAGS = 10
# The most records in a batch of the network, which holds whole bags.
MOST_IN_BATCH = 512


@dataclass(frozen=True)
class Target:
    """The most that is allowed: additive advantage, |I| at the plan's level, or epsilon.

    >>> Target.parse("additive=0.05")
    Target(kind='additive', value=0.05)
    >>> str(Target("multiplicative", 1.0))
    'multiplicative advantage of at most 1 for 98% of the records'
    """

    kind: str = "additive"
    value: float = 0.05
    # That of the plan, which sets it.
    level: float = field(default=0.98, repr=False)

    def __post_init__(self) -> None:
        """Check the kind and its value."""
        if self.kind not in TARGETS:
            raise ValueError(f"a target is one of {', '.join(TARGETS)}, not {self.kind!r}")
        most = 0.5 if self.kind == "additive" else math.inf
        number = checks.real_number(self.value, f"the {self.kind} target", 0, most)
        object.__setattr__(self, "value", number)

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read `kind=value`."""
        kind, _, value = text.partition("=")
        try:
            return cls(kind.strip(), float(value))
        except ValueError as error:
            if kind.strip() in TARGETS and not _is_number(value):
                raise ValueError(f"a target is written {kind}=NUMBER, not {text!r}") from None
            raise error from None

    def __str__(self) -> str:
        """In words."""
        names = {"additive": "additive advantage", "multiplicative": "multiplicative advantage"}
        whom = f" for {100 * self.level:.4g}% of the records"
        return f"{names.get(self.kind, 'epsilon')} of at most {self.value:g}" + (
            whom if self.kind == "multiplicative" else ""
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Plan:
    """What to compare, against which target, and how carefully.

    `mechanisms` are of rr, llp, geometric and laplace, a Python file with a class of your own
    (`mine.py` or `mine.py:Name`), or a channel matrix (`channel.csv`). `level` is that of the
    multiplicative percentile. `refits` is how often eta is estimated anew, from other folds, with
    other bags and fresh noise. `repeats` are the numbers of releases to look ahead to.
    """

    mechanisms: Sequence[str] = ("rr", "llp", "geometric", "laplace")
    bag_sizes: Sequence[int] = (2, 8, 32)
    epsilons: Sequence[float] = (0.5, 1.0, 2.0, 4.0)
    target: Target = Target()
    level: float = 0.98
    utility: str = "logistic"
    refits: int = 3
    repeats: Sequence[int] = (1, 2, 5)
    seed: int = 0

    def __post_init__(self) -> None:
        """Check all of it, and keep sequences as tuples without repetition."""
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, str) and one.name in ("mechanisms", "bag_sizes", "epsilons"):
                raise TypeError(f"{one.name} must be a list, as in [{value!r}], not a text")
        sizes = [checks.whole_number(size, "bag size") for size in self.bag_sizes]
        levels = [_epsilon(epsilon) for epsilon in self.epsilons]
        repeats = [checks.whole_number(times, "repeats") for times in self.repeats]
        for name, values in (("bag_sizes", sizes), ("epsilons", levels), ("repeats", repeats)):
            if not values:
                raise ValueError(f"{name} is empty: give at least one value")
            object.__setattr__(self, name, tuple(sorted(set(values))))
        object.__setattr__(self, "level", checks.real_number(self.level, "level", 0, 1))
        object.__setattr__(self, "target", replace(self.target, level=self.level))
        checks.whole_number(self.refits, "refits", least=2)
        checks.whole_number(self.seed, "seed", least=0)
        if self.utility not in UTILITIES:
            names = ", ".join(UTILITIES)
            raise ValueError(f"a utility model is one of {names}, not {self.utility!r}")
        if not self.mechanisms:
            raise ValueError("mechanisms is empty: name at least one")
        object.__setattr__(self, "mechanisms", tuple(dict.fromkeys(self.mechanisms)))
        object.__setattr__(self, "_settings", self._read_settings())
        largest = max(setting.mechanism.bag_size for setting in self.settings)
        if self.utility == "network" and largest > MOST_IN_BATCH:
            raise ValueError(
                f"the network learns from bags of at most {MOST_IN_BATCH}, not {largest}: use"
                " smaller bags, or another utility model"
            )

    def _read_settings(self) -> tuple[Setting, ...]:
        found: dict[Any, Setting] = {}
        for name in self.mechanisms:
            for setting in settings_of(name, self.bag_sizes, self.epsilons):
                found.setdefault((setting.family, setting.parameters), setting)
        return tuple(found.values())

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Every mechanism with every parameter value it takes."""
        return self._settings  # type: ignore[attr-defined]

    def check_rows(self, rows: int, bags: NDArray[np.int64] | None = None) -> None:
        """Refuse bags too large for the data, and a table whose own bags are too few."""
        if bags is not None and (own := np.unique(bags).size) < LEAST_BAGS:
            raise ValueError(
                f"the bag column has {own} different value{'s' if own > 1 else ''}; an interval by"
                f" bag needs {LEAST_BAGS}: name another column, or none"
            )
        largest = max(setting.mechanism.bag_size for setting in self.settings)
        if rows // largest < LEAST_BAGS:
            raise ValueError(
                f"a bag size of {largest} makes {rows // largest} bags of {rows:,} rows; an"
                f" interval by bag needs {LEAST_BAGS}: use bags of at most {rows // LEAST_BAGS}"
            )


def _epsilon(value: Any) -> float:
    epsilon = checks.real_number(value, "epsilon", 0, 100)
    if epsilon == 0:
        raise ValueError("epsilon must be above 0: at 0 nothing is released")
    return epsilon
