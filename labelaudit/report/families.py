"""Kinds of mechanisms: the paper's four, a class in a Python file, a channel in a csv file."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

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
    """A kind of mechanism: its full and its short name, its colour, how to make it, its marker."""

    name: str
    short: str
    colour: str
    make: Maker
    marker: str = "v"

    @property
    def own(self) -> bool:
        """Whether it is the user's."""
        return self not in FAMILIES.values()

    @property
    def parameters(self) -> list[str]:
        """The names of the arguments without a default."""
        found = inspect.signature(self.make).parameters.values()
        needed = [one.name for one in found if one.default is inspect.Parameter.empty]
        unknown = sorted(set(needed) - {"bag_size", "epsilon"})
        if unknown:
            raise ValueError(
                f"{self.short} is made from {', '.join(needed)}; an audit can give bag_size and"
                f" epsilon alone: give {unknown[0]} a default"
            )
        return needed

    def made(self, chosen: dict[str, Any]) -> Mechanism:
        """A mechanism with these parameters; one line where the user's own cannot be made."""
        try:
            return self.make(**chosen)
        except Exception as error:
            if not self.own:
                raise
            given = ", ".join(f"{name}={value:g}" for name, value in chosen.items())
            raise ValueError(
                f"{self.short}({given}) cannot be made: {type(error).__name__}: {error}"
            ) from None


# Colours and markers are those of every figure in the book.
FAMILIES = {
    "rr": Family("randomized response", "RR", "#555555", RandomizedResponse, "s"),
    "llp": Family("label proportions", "LLP", "#0072B2", LabelProportions, "o"),
    "geometric": Family("geometric noise", "LLP+Geom", "#E69F00", GeometricProportions, "^"),
    "laplace": Family("Laplace noise", "LLP+Lap", "#009E73", LaplaceProportions, "D"),
}
OWN_COLOUR = "#CC79A7"


def family_of(name: str) -> Family:
    """One of the four, or the mechanism in a file (`mine.py`, `mine.py:Name`, `channel.csv`).

    A channel has one row for each count 0..k and one column for each release, without a header.
    """
    if name in FAMILIES:
        return FAMILIES[name]
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
    # Two files may have one stem.
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]
    name = f"labelaudit_own_{path.stem}_{digest}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    # Dataclasses look their own module up there.
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
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
