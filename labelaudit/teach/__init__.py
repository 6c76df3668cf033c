"""Self-checks for the book's exercises, and copies of its chapters for a class.

`check` looks at an answer and says whether it is right; where it is not, it gives a hint. It
tests what must hold of the answer, with numbers worked out afresh, so any way of getting there
counts.

>>> check("ex-setting-two", [0.2, 0.8])
ex-setting-two: right
>>> check("ex-setting-two", [0.2, 0.5])
ex-setting-two: not yet. The two posteriors must add up to the published count, which is one.
>>> check("ex-setting-two", ...)
ex-setting-two: not answered yet. Put your answer in place of the three dots.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from labelaudit.command_line import did_you_mean

__all__ = ["Verdict", "check"]


@dataclass(frozen=True)
class Verdict:
    """What a self-check found: whether the answer is right and, if not, a hint."""

    label: str
    right: bool
    hint: str = ""

    def __bool__(self) -> bool:
        """Whether the answer is right, so that `assert check(...)` can fail."""
        return self.right

    def __repr__(self) -> str:
        """One line for the notebook."""
        if self.right:
            return f"{self.label}: right"
        return f"{self.label}: {self.hint}"


def check(label: str, answer: Any, **parameters: Any) -> Verdict:
    """Test an answer to the exercise with this label.

    Where the answer depends on the page's parameters they are passed by name, so the same check
    serves every student's own copy.

    >>> check("ex-setting-two", [0.2, 0.8])
    ex-setting-two: right
    """
    from labelaudit.teach.exercises import EXERCISES, Hint

    if label not in EXERCISES:
        raise ValueError(f"there is no self-check for {label!r}{did_you_mean(label, EXERCISES)}")
    if answer is ...:
        hint = "not answered yet. Put your answer in place of the three dots."
        return Verdict(label, False, hint)
    _refuse_other_parameters(label, EXERCISES[label], parameters)
    try:
        EXERCISES[label](answer, **parameters)
    except Hint as hint:
        return Verdict(label, False, f"not yet. {hint}")
    return Verdict(label, True)


def _refuse_other_parameters(
    label: str, test: Callable[..., None], given: Mapping[str, Any]
) -> None:
    _, *wanted = inspect.signature(test).parameters
    if set(given) != set(wanted):
        needed = ", ".join(f"{name}={name}" for name in wanted) or "the answer and nothing else"
        raise TypeError(f"{label}: pass {needed}")
