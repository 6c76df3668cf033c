"""What a check is: a short generator that goes through the cases of a statement.

A check takes a `Search` (how far to look) and yields its cases; the statement is true if all hold.
The table `statements.yml` turns this into a verdict, and the check's variables into a sentence of
evidence; it says what is shown and how, so a check has a docstring only where there is more to say.
Its further arguments have the paper's values as defaults. A *mutant* replaces one of them by a
wrong value, and must change the verdict; the tests run every mutant.
"""

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from importlib.resources import files
from inspect import getgeneratorlocals
from math import inf, isnan
from typing import Any, TypeVar

Choice = TypeVar("Choice")
Result = tuple[bool, dict[str, Any]]
"""Whether the statement is true as printed, and the numbers that its evidence quotes."""
Cases = Generator[Any, None, None]
"""The cases of a statement, one after the other.

A case is a truth value, or a ratio that may not exceed 1, or slacks with a name for each, of which
none may be below 0.
"""
Function = Callable[..., Result]


@dataclass(frozen=True)
class Search:
    """How far a check looks: `quick` takes the smaller of each pair of ranges.

    >>> Search(quick=True).pick(range(3), range(1000))
    range(0, 3)
    """

    quick: bool = False

    def pick(self, quick: Choice, full: Choice) -> Choice:
        """The range for this run."""
        return quick if self.quick else full


class Refuted(ArithmeticError):
    """A claim that a verdict depends on (a corrected form, a counterexample) is not true."""


def confirm(truth: object, claim: str) -> None:
    """Stop the check when a claim that its verdict depends on is not true.

    >>> confirm(1 + 1 == 3, "one and one make three")
    Traceback (most recent call last):
    book.ledger.check.Refuted: one and one make three
    """
    if not truth:
        raise Refuted(claim)


@dataclass(frozen=True)
class Check:
    """The function behind a statement, and the wrong arguments that must change its verdict."""

    function: Function
    mutants: Sequence[Mapping[str, Any]]


CHECKS: dict[str, Check] = {}


def check(id: str, *mutants: Mapping[str, Any]) -> Callable[[Callable], Callable]:
    """Register the decorated function as the check of the statement `id`."""

    def register(function: Callable) -> Callable:
        if id in CHECKS:
            raise ValueError(f"statement {id!r} has two checks")
        CHECKS[id] = Check(in_every_case(function), mutants)
        return function

    return register


def in_every_case(cases: Callable[..., Cases]) -> Function:
    """The check that all cases hold; NaN does not. The first truth value that is false ends it.

    The numbers are the variables of the check at its last case; besides, `tried` counts the cases,
    `worst` is the largest ratio and `slack` the smallest slack.

    >>> def squares(search: Search, last: int = 2):
    ...     for n in range(last):
    ...         yield n * n == n
    >>> truth, numbers = in_every_case(squares)(Search(), last=4)
    >>> truth, numbers["n"], in_every_case(squares)(Search())[0]
    (False, 2, True)
    """

    @wraps(cases)
    def function(search: Search, **arguments: Any) -> Result:
        running, numbers = cases(search, **arguments), dict[str, Any]()
        worst: Any = 0
        slack, defined = Smallest(), True
        for tried, case in enumerate(running, start=1):
            match case:
                case (values, names):
                    slack.see(values, names)
                    defined &= not any(isnan(value) for value in values)
                case float() | Fraction():
                    worst = max(worst, case)
                    defined &= not isnan(case)
            so_far = {"tried": tried, "worst": worst, "slack": slack}
            numbers = {**so_far, **getgeneratorlocals(running)}
            if not isinstance(case, tuple | float | Fraction) and not case:
                return False, numbers
        confirm(numbers, "the check has a case")
        return defined and slack.value >= 0 and worst <= 1, numbers

    return function


def claims() -> list[dict[str, Any]]:
    """The table of claims, with every field filled in.

    >>> [claim["name"] for claim in claims()][:2]
    ['independent-root', 'geometric-noise']
    """
    import yaml

    table = yaml.safe_load(files(__package__).joinpath("claims.yml").read_text(encoding="utf-8"))
    return [{"whole": {}, **claim} for claim in table]


def certified(id: str, claim: str, wrong: Mapping[str, str]) -> None:
    """Register the verification of a polynomial claim of `claims.yml` as the check of `id`.

    Each mutant replaces a text of the claim as `wrong` says.
    """

    @check(id, *({"change": pair} for pair in wrong.items()))
    def verified(search: Search, change: tuple[str, str] = ("", "")) -> Cases:
        from book.ledger import verify

        [wanted] = [item for item in claims() if item["name"] == claim]
        positive = [text.replace(*change) for text in wanted["positive"]]
        halves = {**wanted, "positive": positive, "trees": ["/.."]}
        yield set(verify.verify(halves)) == {"verified"}


def identity(id: str, sides: Mapping[str, str], wrong: Mapping[str, str]) -> None:
    """Register equations as the check of `id`; a name that sympy does not know is positive.

    Each mutant replaces a text in them as `wrong` says.
    """

    @check(id, *({"change": pair} for pair in wrong.items()))
    def equal(search: Search, change: tuple[str, str] = ("", "")) -> Cases:
        import sympy

        words = set(re.findall(r"[A-Za-z]\w*", str(sides))) - set(dir(sympy))
        names = {word: sympy.Symbol(word, positive=True) for word in words}
        for pair in sides.items():
            left, right = (sympy.sympify(text.replace(*change), names) for text in pair)
            yield sympy.simplify(left - right) == 0


@dataclass
class Smallest:
    """The smallest value seen so far, and the case in which it was seen.

    >>> slack = Smallest()
    >>> slack.see([0.3, 0.1], ["k = 1", "k = 2"])
    >>> slack.value, slack.case
    (0.1, 'k = 2')
    """

    value: Any = inf
    case: str = "none"

    def see(self, values: Any, cases: Sequence[object]) -> None:
        """Look at several values at once; `cases` describes them."""
        index = min(range(len(values)), key=lambda i: values[i])
        if values[index] < self.value:
            self.value, self.case = values[index], str(cases[index])

    def __str__(self) -> str:
        """Value and case, as the evidence prints them."""
        return f"{float(self.value):.4g} at {self.case}"
