"""Self-checks: `check`, and what is right, one function for each computed exercise.

A function takes the page's parameters by name. It gives the right numbers in their order, each with
the wrong numbers that are common. Where possible it computes in another way than the chapter's
solution. What a wrong answer is told stands in `hints.yml`.

A label such as `ex-setting-two` names its chapter, so `find_exercise` imports only that chapter's.
"""

import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from book.chapters import IN_BOOK
from book.chapters.exercises.answers import EXERCISES, Exercise, Hint, judge
from labelaudit.command_line import did_you_mean

# Where the book runs a chapter, the metadata of a self-check's output hold the answer and the
# parameters, so that the answers of a class can be compared with them.
RECORD = "labelaudit-check"
TEACHER = "this one is for your teacher. Only numbers have a self-check."
# The module of each chapter, by the second word of its labels.
MODULES = {
    "setting": "attack",
    "additive": "attack",
    "aggregation": "bounds",
    "response": "bounds",
    "multiplicative": "shifts",
    "workshop": "bounds",
    "scatter": "shifts",
    "distribution": "shifts",
    "learning": "practice",
    "higgs": "practice",
    "kdd": "practice",
    "utility": "practice",
    "sharper": "bounds",
    "audit": "practice",
    "again": "attack",
    "measure": "shifts",
    "training": "practice",
}


def find_exercise(label: str) -> Exercise | None:
    """What is right in the exercise with this label; None if it is one for the teacher."""
    _, _, rest = label.partition("-")
    module = MODULES.get(rest.partition("-")[0])
    if not module:
        raise ValueError(f"there is no exercise {label!r}{did_you_mean(label, all_exercises())}")
    import_module(f"{__name__}.{module}")
    return EXERCISES.get(label)


def all_exercises() -> dict[str, Exercise]:
    """What is right in each computed exercise, by label."""
    for module in set(MODULES.values()):
        import_module(f"{__name__}.{module}")
    return dict(EXERCISES)


@dataclass(frozen=True, kw_only=True)
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
    >>> check("ex-setting-two", [0.2, 0.5], own_prior=0.2)
    ex-setting-two: not yet. The two posteriors must add up to the published count, which is one.
    >>> check("ex-setting-two", ..., own_prior=0.2)
    ex-setting-two: not answered yet. Put your answer in place of the three dots.
    >>> check("ex-setting-equal", "By symmetry all are equal.")
    ex-setting-equal: this one is for your teacher. Only numbers have a self-check.
    """
    right = find_exercise(label)
    if right is None:
        return Feedback(label=label, right=False, hint=TEACHER)
    if answer is ...:
        hint = "not answered yet. Put your answer in place of the three dots."
        return Feedback(label=label, right=False, hint=hint)
    wanted = list(inspect.signature(right).parameters)
    if set(parameters) != set(wanted):
        raise TypeError(f"{label}: pass {', '.join(f'{name}={name}' for name in wanted)}")
    try:
        judge(label, answer, right(**parameters))
    except Hint as hint:
        return Feedback(
            label=label, right=False, hint=f"not yet. {hint}", answer=answer, parameters=parameters
        )
    return Feedback(label=label, right=True, hint="", answer=answer, parameters=parameters)
