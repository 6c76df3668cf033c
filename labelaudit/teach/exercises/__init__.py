"""The tests of answers: one function for each computed exercise.

A function takes the answer and, by name, the page's parameters that it depends on. It returns if
the answer is right and raises a `Hint` if not, the most helpful hint first. Where possible it
computes the numbers in another way than the chapter's solution. It never compares text.

A label such as `ex-setting-two` names its chapter, so `find_exercise` imports only the tests of
that chapter.
"""

from __future__ import annotations

from importlib import import_module

from labelaudit.command_line import did_you_mean
from labelaudit.teach.exercises.answers import EXERCISES, Hint, Property

__all__ = ["Hint", "all_exercises", "find_exercise"]

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
    "again": "attack",
    "measure": "shifts",
}


def find_exercise(label: str) -> Property:
    """The test of the exercise with this label, or an error that names the nearest label."""
    _, _, rest = label.partition("-")
    module = MODULES.get(rest.partition("-")[0])
    if module:
        import_module(f"{__name__}.{module}")
    if label not in EXERCISES:
        near = did_you_mean(label, all_exercises())
        raise ValueError(f"there is no self-check for {label!r}{near}")
    return EXERCISES[label]


def all_exercises() -> dict[str, Property]:
    """The tests of all exercises, by label."""
    for module in set(MODULES.values()):
        import_module(f"{__name__}.{module}")
    return dict(EXERCISES)
