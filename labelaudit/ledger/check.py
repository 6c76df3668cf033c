"""What a check is: a short function that computes numbers and decides whether a statement is true.

A check takes a `Search` (how far to look) and returns a truth value and the numbers behind it. The
table `statements.yml` turns these into a verdict and a sentence of evidence; it says what is shown
and how, so a check has a docstring only where there is more to say. Its further arguments
have the paper's values as defaults. A *mutant* replaces one of them by a wrong value, and must
change the verdict; the tests run every mutant.
"""

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from inspect import getgeneratorlocals, isgeneratorfunction
from math import inf
from typing import Any, TypeVar

Choice = TypeVar("Choice")
Result = tuple[bool, dict[str, Any]]
"""Whether the statement is true as printed, and the numbers that its evidence quotes."""
Cases = Generator[Any, None, Any]
"""The cases of a statement, one after the other; then such numbers, if any.

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
    labelaudit.ledger.check.Refuted: one and one make three
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
        whole = in_every_case(function) if isgeneratorfunction(function) else function
        CHECKS[id] = Check(whole, mutants)
        return function

    return register


def in_every_case(cases: Callable[..., Cases]) -> Function:
    """The check that all cases hold; `tried` counts them, `worst` is the largest ratio.

    The first truth value that is false ends the check, and shows the numbers of its case.

    >>> def squares(search: Search, last: int = 2):
    ...     for n in range(last):
    ...         yield n * n == n
    >>> truth, numbers = in_every_case(squares)(Search())
    >>> (truth, numbers["tried"]), in_every_case(squares)(Search(), last=4)
    ((True, 2), (False, {'last': 4, 'n': 2}))
    """

    @wraps(cases)
    def function(search: Search, **arguments: Any) -> Result:
        running, numbers = cases(search, **arguments), dict[str, Any](tried=0)
        slack, ratios = Smallest(), list[Any]([0])
        try:
            while True:
                match next(running):
                    case (values, names):
                        slack.see(values, names)
                    case float() | Fraction() as ratio:
                        ratios.append(ratio)
                    case truth if not truth:
                        kinds = int | float | str | Fraction
                        variables = getgeneratorlocals(running).items()
                        return False, {n: v for n, v in variables if isinstance(v, kinds)}
                numbers["tried"] += 1
        except StopIteration as end:
            numbers |= {"worst": max(ratios), "slack": slack} | (end.value or {})
        return slack.value >= 0 and max(ratios) <= 1, numbers

    return function


def certified(id: str, claim: str, wrong: tuple[str, str], **numbers: Any) -> None:
    """Register the verification of a polynomial claim of `claims.yml` as the check of `id`.

    The mutant replaces the text `wrong[0]` of the claim by `wrong[1]`.
    """

    @check(id, {"change": wrong})
    def verified(search: Search, change: tuple[str, str] = ("", "")) -> Result:
        from labelaudit.ledger import certify, verify

        [wanted] = [item for item in certify.claims() if item["name"] == claim]
        positive = [text.replace(*change) if change[0] else text for text in wanted["positive"]]
        halves = {**wanted, "positive": positive, "trees": ["/.."]}
        return set(verify.verify(halves)) == {"verified"}, numbers


def identity(id: str, sides: Mapping[str, str], wrong: tuple[str, str]) -> None:
    """Register equations as the check of `id`; a name that sympy does not know is positive.

    The mutant replaces the text `wrong[0]` by `wrong[1]`.
    """

    @check(id, {"change": wrong})
    def equal(search: Search, change: tuple[str, str] = ("", "")) -> Cases:
        import sympy

        words = set(re.findall(r"[A-Za-z]\w*", str(sides))) - set(dir(sympy))
        names = {word: sympy.Symbol(word, positive=True) for word in words}
        for pair in sides.items():
            texts = (text.replace(*change) if change[0] else text for text in pair)
            left, right = (sympy.sympify(text, names) for text in texts)
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
