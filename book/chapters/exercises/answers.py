"""Reading and comparing answers, with a hint where something is wrong."""

import reprlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy.special import expit

from labelaudit.checks import Floats

# Answers are compared as a reader would round them: to four digits, whatever their size.
TOLERANCE = 5e-4
# Where the right number is 0, an answer may differ by the rounding of a computation.
ZERO = 1e-9


class Hint(Exception):
    """What to think about next."""


class Right:
    """One right number of an answer, or an array of them, and wrong ones that are common.

    A whole number is compared exactly. None stands for "no number has this property", and among
    the wrong ones for "no mistake with these parameters".
    """

    def __init__(self, truth: Any, *wrong: Any) -> None:
        """What is right comes first."""
        self.truth, self.wrong = truth, wrong


# What is right in an exercise: one number, several in order, or several by name.
Rights = Right | Sequence[Right] | Mapping[str, Right]
# Computes it from the parameters of a page, which are passed by name.
Exercise = Callable[..., Rights]
EXERCISES: dict[str, Exercise] = {}


def exercise(label: str) -> Callable[[Exercise], Exercise]:
    """Register what is right in an exercise."""

    def register(right: Exercise) -> Exercise:
        EXERCISES[label] = right
        return right

    return register


@cache
def all_hints() -> dict[str, Any]:
    """The hints of every exercise, by label."""
    return yaml.safe_load(Path(__file__).with_name("hints.yml").read_text(encoding="utf-8"))


def judge(label: str, answer: Any, rights: Rights) -> None:
    """Raise the hint that helps most unless the answer is right."""
    hints = all_hints()[label]
    if isinstance(rights, Right):
        compare(answer, rights, hints[0])
    elif isinstance(rights, Mapping):
        for name, right in rights.items():
            about = hints.get(name, [hints["any"]])
            compare(entry(answer, name), right, about, f"{name}: ")
    else:
        values = numbers(answer, len(rights), *np.shape(rights[0].truth))
        for value, right, about in zip(values, rights, hints, strict=True):
            compare(value, right, about)


def compare(answer: Any, right: Right, hints: Sequence[str], name: str = "") -> None:
    """Raise a hint unless the answer is the right number."""
    truth = right.truth
    if truth is None:
        require(answer is None, name + hints[0])
        return
    value = numbers(answer, *np.shape(truth))
    whole = isinstance(truth, int)
    require(not whole or float(value).is_integer(), f"{name}A whole number, not {shown(answer)}.")
    if same(value, truth):
        return
    for wrong, hint in zip(right.wrong, hints[1:], strict=False):
        require(wrong is None or not same(value, wrong), name + hint)
    coarse = not whole and any(same(value, rounded(truth, digits)) for digits in (1, 2, 3))
    require(not coarse, f"{name}This is rounded too much. Give at least four digits.")
    raise Hint(name + hints[0])


def same(value: Any, truth: Any) -> bool:
    """Whether two numbers, or arrays of them, agree: whole ones exactly, others to four digits."""
    if isinstance(truth, int):
        return bool(value == truth)
    allowed = np.where(np.equal(truth, 0), ZERO, TOLERANCE * np.abs(truth))
    return bool((np.abs(np.subtract(value, truth)) <= allowed).all())


def rounded(truth: Any, digits: int) -> Floats:
    """Numbers to this many significant digits."""
    return np.vectorize(lambda number: float(f"{number:.{digits}g}"))(truth)


def require(holds: Any, hint: str) -> None:
    """Raise the hint unless it holds."""
    if not holds:
        raise Hint(hint)


def shown(answer: Any) -> str:
    """An answer as a hint quotes it: on one line, shortened if it is long."""
    plain = (
        answer.item()
        if isinstance(answer, np.generic | np.ndarray) and not answer.shape
        else answer
    )
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


def entry(answer: Any, name: str) -> Any:
    """One entry of an answer that is a dictionary."""
    require(isinstance(answer, Mapping), f"Give a dictionary, not {shown(answer)}.")
    require(name in answer, f"There is no entry {name!r}.")
    return answer[name]


def first(meets: Callable[[int], bool], start: int = 1) -> int:
    """The smallest whole number from `start` on that meets a condition, for whole-number steps."""
    number = start
    while not meets(number):
        number += 1
    return number


def flip(epsilon: float) -> float:
    """The probability that randomized response flips a label: 1 / (1 + exp(epsilon))."""
    return float(expit(-epsilon))


def equal_labels(p: float, bag_size: float) -> float:
    """The probability that a bag has only zeros or only ones, for a mean prior of p."""
    return float(p**bag_size + (1 - p) ** bag_size)
