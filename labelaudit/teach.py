"""Self-checks for the book's exercises.

`check` says whether an answer is right and, if it is not, gives a hint. It computes the numbers
itself, so every correct method is accepted.

>>> check("ex-setting-two", [0.2, 0.8], own_prior=0.2)
ex-setting-two: right
>>> check("ex-setting-two", [0.2, 0.5], own_prior=0.2)
ex-setting-two: not yet. The two posteriors must add up to the published count, which is one.
>>> check("ex-setting-two", ..., own_prior=0.2)
ex-setting-two: not answered yet. Put your answer in place of the three dots.
>>> check("ex-setting-equal", "By symmetry all are equal.")
ex-setting-equal: this one is for your teacher. Only numbers have a self-check.
"""

import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from labelaudit.book import IN_BOOK

__all__ = ["Feedback", "check"]

# Where the book runs a chapter, the metadata of a self-check's output hold the answer and the
# parameters, so that the answers of a class can be compared with them.
RECORD = "labelaudit-check"
TEACHER = "this one is for your teacher. Only numbers have a self-check."


@dataclass(frozen=True)
class Feedback:
    """The result of a self-check: whether the answer is right and, if not, a hint."""

    label: str
    right: bool
    hint: str = ""
    answer: Any = field(default=None, repr=False, compare=False)
    parameters: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __bool__(self) -> bool:
        """Whether the answer is right, so that `assert check(...)` can fail."""
        return self.right

    def __repr__(self) -> str:
        """One line for the notebook."""
        if self.right:
            return f"{self.label}: right"
        return f"{self.label}: {self.hint}"

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a notebook shows, and in the book's own run the record of the check."""
        record: dict[str, Any] = {}
        if IN_BOOK in os.environ:
            values = {"answer": plain(self.answer), "parameters": plain(self.parameters)}
            record = {RECORD: {"label": self.label, **values}}
        return {"text/plain": repr(self)}, record


def plain(value: Any) -> Any:
    """An answer as JSON can hold it: numbers, text, lists and dictionaries of these."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


def check(label: str, answer: Any, **parameters: Any) -> Feedback:
    """Test an answer to the exercise with this label.

    Parameters of the page that the answer depends on are passed by name, so the same check works
    in every student's copy.

    >>> check("ex-response-half", [2.1972, 0.8], own_prior=0.2)
    ex-response-half: right
    """
    # By name, as in `cli`: what is right belongs to the book's chapters, which stand above.
    exercises = import_module("book.chapters.exercises")
    right = exercises.find_exercise(label)
    if right is None:
        return Feedback(label, False, TEACHER)
    if answer is ...:
        hint = "not answered yet. Put your answer in place of the three dots."
        return Feedback(label, False, hint)
    wanted = list(inspect.signature(right).parameters)
    if set(parameters) != set(wanted):
        raise TypeError(f"{label}: pass {', '.join(f'{name}={name}' for name in wanted)}")
    try:
        exercises.judge(label, answer, right(**parameters))
    except exercises.Hint as hint:
        return Feedback(label, False, f"not yet. {hint}", answer, parameters)
    return Feedback(label, True, "", answer, parameters)
