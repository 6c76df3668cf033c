"""What must hold of an answer: one function for each exercise that is computed.

A function takes the answer, and by name the page's parameters it depends on. It returns if the
answer is right and raises a `Hint` if not, the most helpful one first. Where possible it computes
its numbers by another method than the chapter's solution. It never compares text.
"""

from __future__ import annotations

from importlib import import_module

from labelaudit.command_line import did_you_mean
from labelaudit.teach.exercises.tools import EXERCISES, Hint, Property

__all__ = ["Hint", "all_exercises", "find_exercise"]

# The module that holds a chapter's exercises, by the second word of their labels. A chapter loads
# its own module only.
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


def find_exercise(label: str) -> Property:
    """The function for the exercise with this label, or an error that names the nearest label."""
    _, _, rest = label.partition("-")
    module = MODULES.get(rest.partition("-")[0])
    if module:
        import_module(f"{__name__}.{module}")
    if label not in EXERCISES:
        near = did_you_mean(label, all_exercises())
        raise ValueError(f"there is no self-check for {label!r}{near}")
    return EXERCISES[label]


def all_exercises() -> dict[str, Property]:
    """The functions of every chapter, by the labels of their exercises."""
    for module in set(MODULES.values()):
        import_module(f"{__name__}.{module}")
    return dict(EXERCISES)
