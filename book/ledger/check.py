"""What a check is: a short generator that goes through the cases of a statement.

A check takes `quick` (search the smaller ranges) and yields a `Case` for each of its cases; the
statement is true if all hold. The table `statements.yml` turns this into a verdict, and the numbers
that the cases name into a sentence of evidence; it says what is shown and how, so a check has a
docstring only where there is more to say. Its further arguments have the paper's values as
defaults. A *mutant* replaces one of them by a wrong value, and must change the verdict; the tests
run every mutant.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from math import inf, isnan
from typing import Any


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


class Case:
    """One case of a statement: whether it holds, and numbers that the evidence may quote by name.

    A `ratio` may not exceed 1; no `slack` may be below 0, and `at` describes each of them.
    """

    def __init__(
        self, holds: object = True, *, ratio: Any = 0, slack: Any = (), at: Any = (), **numbers: Any
    ) -> None:
        self.holds, self.ratio, self.slack, self.at = bool(holds), ratio, slack, at
        self.numbers = numbers


Cases = Iterator[Case]
"""The cases of a statement, one after the other."""


@dataclass(frozen=True)
class Check:
    """The cases behind a statement, and the wrong arguments that must change its verdict."""

    cases: Callable[..., Cases]
    mutants: Sequence[Mapping[str, Any]] = ()

    def run(self, quick: bool = False, **mutant: Any) -> tuple[bool, dict[str, Any]]:
        """Whether all cases hold, and their numbers; the first that does not hold ends the check.

        Of a number that several cases name the last counts. Besides, `tried` counts the cases,
        `worst` is the largest ratio and `slack` the smallest slack. A case with NaN does not hold.

        >>> def squares(quick: bool, last: int = 2):
        ...     for n in range(last):
        ...         yield Case(n * n == n, largest=n)
        >>> truth, numbers = Check(squares).run(last=4)
        >>> truth, numbers["largest"], Check(squares).run()[0]
        (False, 2, True)
        """
        worst, slack, defined = 0, Smallest(), True
        numbers: dict[str, Any] = {"tried": 0}
        for case in self.cases(quick, **mutant):
            worst = max(worst, case.ratio)
            if len(case.slack):
                slack.see(case.slack, case.at)
            numbers |= {"tried": numbers["tried"] + 1, "worst": worst, "slack": slack}
            numbers |= case.numbers
            defined &= not any(isnan(value) for value in (case.ratio, *case.slack))
            if not case.holds:
                return False, numbers
        confirm(numbers["tried"], "the check has a case")
        return bool(defined and slack.value >= 0 and worst <= 1), numbers


CHECKS: dict[str, Check] = {}


def check(id: str, *mutants: Mapping[str, Any]) -> Callable[[Callable], Callable]:
    """Register the decorated function as the check of the statement `id`."""

    def register(function: Callable) -> Callable:
        if id in CHECKS:
            raise ValueError(f"statement {id!r} has two checks")
        CHECKS[id] = Check(function, mutants)
        return function

    return register


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
    def verified(quick: bool, change: tuple[str, str] = ("", "")) -> Cases:
        from book.ledger import verify

        [wanted] = [item for item in claims() if item["name"] == claim]
        positive = [text.replace(*change) for text in wanted["positive"]]
        halves = {**wanted, "positive": positive, "trees": ["/.."]}
        yield Case(set(verify.verify(halves)) == {"verified"})


def identity(id: str, sides: Mapping[str, str], wrong: Mapping[str, str]) -> None:
    """Register equations as the check of `id`; a name that sympy does not know is positive.

    Each mutant replaces a text in them as `wrong` says.
    """

    @check(id, *({"change": pair} for pair in wrong.items()))
    def equal(quick: bool, change: tuple[str, str] = ("", "")) -> Cases:
        import sympy

        words = set(re.findall(r"[A-Za-z]\w*", str(sides))) - set(dir(sympy))
        names = {word: sympy.Symbol(word, positive=True) for word in words}
        for pair in sides.items():
            left, right = (sympy.sympify(text.replace(*change), names) for text in pair)
            yield Case(sympy.simplify(left - right) == 0)
