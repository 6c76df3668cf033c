"""The tests of answers: one function for each computed exercise.

A function takes the answer and, by name, the page's parameters that it depends on. It returns if
the answer is right and raises a `Hint` if not, the most helpful hint first. Where possible it
computes the numbers in another way than the chapter's solution. It never compares text.

A label such as `ex-setting-two` names its chapter, so `find` imports only that chapter's tests.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping

from labelaudit.teach.exercises.answers import EXERCISES, Hint

__all__ = ["Hint", "all_exercises", "find"]

# The module with the tests of each chapter, by the second word of its labels.
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
}


def find(label: str) -> Callable[..., None] | None:
    """The test of the exercise with this label; None where there is no such exercise."""
    _, _, rest = label.partition("-")
    module = MODULES.get(rest.partition("-")[0])
    if module is not None:
        importlib.import_module(f"{__name__}.{module}")
    return EXERCISES.get(label)


def all_exercises() -> Mapping[str, Callable[..., None]]:
    """The tests of all exercises, by label."""
    for module in set(MODULES.values()):
        importlib.import_module(f"{__name__}.{module}")
    return EXERCISES
