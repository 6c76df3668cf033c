"""Names that have moved: the old one works for one version, with a warning."""

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def deprecated(module: str, moved: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's `__getattr__` that gives names which are at `package.module:name` now.

    >>> load = deprecated("old", {"half": "math:sqrt"})
    >>> with warnings.catch_warnings(action="ignore"):
    ...     load("half")(4)
    2.0
    """

    def load(name: str) -> Any:
        if name not in moved:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, new = moved[name].partition(":")
        text = f"{module}.{name} is {home}.{new} now; the old name goes with the next version"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(import_module(home), new)

    return load
