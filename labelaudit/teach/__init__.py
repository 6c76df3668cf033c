"""Self-checks for the book's exercises.

`check` says whether an answer is right and, if it is not, gives a hint. It computes the numbers
itself and tests the answer's properties, so every correct method is accepted.

>>> check("ex-setting-two", [0.2, 0.8])
ex-setting-two: right
>>> check("ex-setting-two", [0.2, 0.5])
ex-setting-two: not yet. The two posteriors must add up to the published count, which is one.
>>> check("ex-setting-two", ...)
ex-setting-two: not answered yet. Put your answer in place of the three dots.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

__all__ = ["Feedback", "check"]


@dataclass(frozen=True)
class Feedback:
    """The result of a self-check: whether the answer is right and, if not, a hint."""

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


def check(label: str, answer: Any, **parameters: Any) -> Feedback:
    """Test an answer to the exercise with this label.

    Parameters of the page that the answer depends on are passed by name, so the same check works
    in every student's copy.

    >>> check("ex-setting-two", [0.2, 0.8])
    ex-setting-two: right
    """
    from labelaudit.teach.exercises import Hint, find_exercise

    test = find_exercise(label)
    if answer is ...:
        hint = "not answered yet. Put your answer in place of the three dots."
        return Feedback(label, False, hint)
    _, *wanted = inspect.signature(test).parameters
    if set(parameters) != set(wanted):
        needed = ", ".join(f"{name}={name}" for name in wanted) or "the answer and nothing else"
        raise TypeError(f"{label}: pass {needed}")
    try:
        test(answer, **parameters)
    except Hint as hint:
        return Feedback(label, False, f"not yet. {hint}")
    return Feedback(label, True)
