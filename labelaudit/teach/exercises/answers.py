"""Reading and comparing answers, with a hint where something is wrong."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import expit

from labelaudit.checks import Floats

# Takes an answer, and parameters by name; raises a `Hint` if the answer is wrong.
Property = Callable[..., None]
EXERCISES: dict[str, Property] = {}

# Answers are compared as a reader would round them.
TOLERANCE = 5e-4
# No exercise needs a larger number, and every check is fast up to it.
LARGEST = 1_000_000


class Hint(Exception):
    """What to think about next."""


def exercise(label: str) -> Callable[[Property], Property]:
    """Register the test of an exercise's answer."""

    def register(test: Property) -> Property:
        EXERCISES[label] = test
        return test

    return register


def require(holds: Any, hint: str) -> None:
    """Raise the hint unless it holds."""
    if not holds:
        raise Hint(hint)


def shown(answer: Any) -> str:
    """An answer as a hint quotes it: on one line, shortened if it is long."""
    plain = answer.item() if isinstance(answer, np.generic) else answer
    return " ".join(reprlib.repr(plain).split())


def counted(shape: tuple[int, ...]) -> str:
    """The shape of an array in words, such as "2 by 4"."""
    return " by ".join(str(side) for side in shape) or "one"


def numbers(answer: Any, *shape: int) -> Floats:
    """The answer as finite numbers of the expected shape."""
    wanted = counted(shape) + (" numbers" if shape else " number")
    require(answer is not None, f"Give {wanted}, not None.")  # numpy would convert it to a number
    try:
        values = np.asarray(answer, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise Hint(f"Give {wanted}, not {shown(answer)}.") from None
    values = values.squeeze()  # a column or a nested row is accepted as a row
    require(values.shape == shape, f"Give {wanted}, not {counted(values.shape)}.")
    require(np.isfinite(values).all(), f"Every number must be finite, not {shown(answer)}.")
    return values


def whole(answer: Any, low: int = 1, high: int = LARGEST, also: str = "") -> int:
    """The answer as a whole number in the range."""
    number = float(numbers(answer))
    require(
        number.is_integer() and low <= number <= high,
        f"A whole number from {low} to {high}{also}, not {shown(answer)}.",
    )
    return int(number)


def entry(answer: Any, name: str) -> Any:
    """One entry of an answer that is a dictionary."""
    require(isinstance(answer, Mapping), f"Give a dictionary, not {shown(answer)}.")
    require(name in answer, f"There is no entry {name!r}.")
    return answer[name]


def close(answer: Any, truth: Any, tolerance: float = TOLERANCE) -> bool:
    """Whether two numbers, or arrays of them, agree to a relative or absolute tolerance."""
    return bool(np.allclose(answer, truth, rtol=tolerance, atol=tolerance))


def smallest(answer: Any, meets: Callable[[int], bool], too_small: str, too_large: str) -> None:
    """The answer is the smallest whole number from 1 on that meets a target."""
    number = whole(answer)
    require(meets(number), too_small)
    require(number == 1 or not meets(number - 1), too_large)


def flip(epsilon: float) -> float:
    """The probability that randomized response flips a label: 1 / (1 + exp(epsilon))."""
    return float(expit(-epsilon))


def equal_labels(p: float, bag_size: float) -> float:
    """The probability that a bag has only zeros or only ones, for a mean prior of p."""
    return float(p**bag_size + (1 - p) ** bag_size)
