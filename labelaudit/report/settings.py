"""The mechanisms an audit compares: the paper's four, and the user's own."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from labelaudit.attack import posterior
from labelaudit.mechanisms import (
    CountChannel,
    GeometricProportions,
    LabelProportions,
    LaplaceProportions,
    Mechanism,
    RandomizedResponse,
)

Maker = Callable[..., Mechanism]


@dataclass(frozen=True)
class Family:
    """A kind of mechanism: its full and its short name, its colour, how to make it."""

    name: str
    short: str
    colour: str
    make: Maker


# The colours are those of every figure in the book.
FAMILIES = {
    "rr": Family("randomized response", "RR", "#555555", RandomizedResponse),
    "llp": Family("label proportions", "LLP", "#0072B2", LabelProportions),
    "geometric": Family("geometric noise", "LLP+Geom", "#E69F00", GeometricProportions),
    "laplace": Family("Laplace noise", "LLP+Lap", "#009E73", LaplaceProportions),
}
OWN_COLOUR = "#CC79A7"


# What a log ratio may exceed epsilon by, for rounding.
ROUNDING = 1e-6
# Releases of each count that are looked at before an audit, the most counts, the most labels.
TRIALS, MOST_COUNTS, MOST_LABELS = 20, 65, 1_000_000


@dataclass(frozen=True)
class Setting:
    """One mechanism with its parameters, as the report speaks of it.

    `checked` says whether epsilon was read off the law of the release. Where that law is not known
    epsilon is what the mechanism declares, and promises nothing.
    """

    family: Family
    # A user's own class may not be hashable; family and parameters tell settings apart.
    mechanism: Mechanism = field(compare=False)
    parameters: tuple[tuple[str, float], ...]
    checked: bool = True

    @property
    def title(self) -> str:
        """Short name and parameters."""
        words = {"bag_size": "bags of {:g}", "epsilon": "epsilon {:g}"}
        said = ", ".join(words[name].format(value) for name, value in self.parameters)
        return f"{self.family.short} ({said})" if said else self.family.short


def settings_of(name: str, bag_sizes: Sequence[int], epsilons: Sequence[float]) -> list[Setting]:
    """A mechanism at every combination of the parameters it takes.

    >>> [setting.title for setting in settings_of("rr", [8], [0.5, 1.0])]
    ['RR (epsilon 0.5)', 'RR (epsilon 1)']
    """
    family = FAMILIES.get(name) or own_family(name)
    values = {"bag_size": bag_sizes, "epsilon": epsilons}
    taken = [one for one in values if one in _parameters(family)]
    found = []
    for combination in itertools.product(*(values[one] for one in taken)):
        chosen = dict(zip(taken, combination, strict=True))
        setting = Setting(family, _made(family, chosen), tuple(chosen.items()))
        if name not in FAMILIES:
            try_out(setting.mechanism, setting.title)
            known = has_checked_epsilon(setting.mechanism, setting.title)
            setting = replace(setting, checked=known)
        found.append(setting)
    return found


def _made(family: Family, chosen: dict[str, Any]) -> Mechanism:
    try:
        return family.make(**chosen)
    except Exception as error:
        if family in FAMILIES.values():
            raise
        given = ", ".join(f"{name}={value:g}" for name, value in chosen.items())
        raise ValueError(
            f"{family.short}({given}) cannot be made: {type(error).__name__}: {error}"
        ) from None


def _parameters(family: Family) -> list[str]:
    """The names of the arguments without a default."""
    found = inspect.signature(family.make).parameters.values()
    needed = [one.name for one in found if one.default is inspect.Parameter.empty]
    unknown = sorted(set(needed) - {"bag_size", "epsilon"})
    if unknown:
        raise ValueError(
            f"{family.short} is made from {', '.join(needed)}; an audit can give bag_size and"
            f" epsilon alone: give {unknown[0]} a default"
        )
    return needed


def own_family(name: str) -> Family:
    """The mechanism in a Python file (`mine.py` or `mine.py:Name`) or in a matrix (`channel.csv`).

    A channel has one row for each count 0..k and one column for each release, without a header.
    """
    file, _, wanted = name.rpartition(":") if ".py:" in name else (name, "", "")
    path = Path(file)
    if path.suffix not in (".py", ".csv"):
        known = ", ".join(FAMILIES)
        raise ValueError(f"a mechanism is one of {known}, a .py or a .csv file, not {name!r}")
    if not path.is_file():
        raise ValueError(f"there is no file {path} to read a mechanism from")
    if path.suffix == ".csv":
        channel = _channel(path)
        return Family(f"the channel of {path.name}", path.stem, OWN_COLOUR, lambda: channel)
    kind = _class(path, wanted)
    return Family(f"{kind.__name__} of {path.name}", kind.__name__, OWN_COLOUR, kind)


def _channel(path: Path) -> CountChannel:
    try:
        matrix = np.loadtxt(path, delimiter=",", ndmin=2)
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} is no matrix of numbers with commas between them and no header: {error}"
        ) from None
    try:
        return CountChannel(matrix)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _class(path: Path, wanted: str) -> type[Mechanism]:
    name = f"labelaudit_own_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    # Dataclasses look their own module up there.
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"{path} cannot be run: {type(error).__name__}: {error}") from None
    classes = {
        each: value
        for each, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Mechanism) and value.__module__ == name
    }
    names = ", ".join(classes) or "none"
    if wanted and wanted not in classes:
        raise ValueError(f"{path} has no class {wanted} that is a labelaudit.Mechanism: {names}")
    if not wanted and len(classes) != 1:
        raise ValueError(
            f"{path} must hold one class that is a labelaudit.Mechanism, not {len(classes)}"
            f" ({names}); with several, say which: {path.name}:Name"
        )
    return classes[wanted] if wanted else next(iter(classes.values()))


def try_out(mechanism: Mechanism, name: str) -> None:
    """Release bags of every count and attack two, so that a mistake shows before any training."""
    rng = np.random.default_rng(0)
    try:
        size = mechanism.bag_size
        counts = np.unique(np.linspace(0, size, min(size + 1, MOST_COUNTS)).round())
        times = max(1, min(TRIALS, MOST_LABELS // (counts.size * size)))
        labels = np.arange(size) < np.repeat(counts, times)[:, None]
        releases = np.asarray(mechanism.release(labels.astype(np.int64), rng))
        ends = releases[[0, -1]]
        after: Any = posterior(np.full((2, size), 0.5), mechanism, ends)
        logs = np.asarray(mechanism.log_likelihood(releases), dtype=np.float64)
        epsilon = float(mechanism.epsilon)
    except Exception as error:
        raise ValueError(f"{name} cannot be audited: {type(error).__name__}: {error}") from None
    if not np.isfinite(after).all():
        raise ValueError(f"{name} cannot be audited: its posterior is not a number")
    if not epsilon >= 0:
        raise ValueError(f"{name} cannot be audited: its epsilon is {epsilon:g}, not 0 or more")
    with np.errstate(invalid="ignore"):
        steps = np.abs(np.diff(logs, axis=1))
    # Two counts that are both impossible given a release say nothing: their ratio is no number.
    refuse_more_than(epsilon, float(np.nanmax(steps, initial=0.0)), name, "its likelihood")


def has_checked_epsilon(mechanism: Mechanism, name: str) -> bool:
    """Whether the law of the release is known, and with it the true epsilon; refused if larger."""
    try:
        channel = mechanism.channel()
    except (TypeError, ValueError):
        return False
    if channel.bag_size != mechanism.bag_size:
        raise ValueError(
            f"{name} has bags of {mechanism.bag_size}, but its channel is one for bags of"
            f" {channel.bag_size}"
        )
    refuse_more_than(mechanism.epsilon, channel.epsilon, name, "its channel")
    return True


def refuse_more_than(epsilon: float, found: float, name: str, where: str) -> None:
    """Refuse a mechanism whose log ratios exceed the epsilon that it declares.

    >>> refuse_more_than(0.5, 2.0, "Mine", "its channel")
    Traceback (most recent call last):
    labelaudit.report.settings.FalseEpsilon: Mine declares epsilon 0.5, but its channel shows 2
    """
    if found > epsilon * (1 + ROUNDING) + ROUNDING:
        shown = "none" if math.isinf(found) else f"{found:.4g}"
        raise FalseEpsilon(f"{name} declares epsilon {epsilon:g}, but {where} shows {shown}")


class FalseEpsilon(ValueError):
    """A mechanism gives away more than its epsilon allows."""
