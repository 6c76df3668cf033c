"""What is right: one function for each computed exercise.

A function takes the page's parameters by name. It gives the right numbers in their order, each with
the wrong numbers that are common. Where possible it computes in another way than the chapter's
solution. What a wrong answer is told stands in `hints.yml`.

A label such as `ex-setting-two` names its chapter, so `find_exercise` imports only that chapter's.
"""

from importlib import import_module

from book.chapters.exercises.answers import EXERCISES, Exercise, Hint, judge
from labelaudit.command_line import did_you_mean

__all__ = ["Hint", "all_exercises", "find_exercise", "judge"]

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
