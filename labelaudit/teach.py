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

from importlib import import_module
from typing import Any

__all__ = ["Feedback", "check"]

# By name, as in `cli`: exercises belong to the book's chapters, which stand above.
_exercises: Any = import_module("book.chapters.exercises")
Feedback, check = _exercises.Feedback, _exercises.check
