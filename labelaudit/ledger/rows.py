"""What a ledger row is: a statement of the paper, the check that runs, and what it found.

A check is a short function that takes a `Search` (how far to look) and returns a `Finding`.
The verdict is computed by the run, never written down beforehand: a check of a true statement
that is handed a wrong constant must come out `false`. Those wrong constants are its *mutants*,
listed in the decorator as keyword arguments for the check; the tests run them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

Verdict = Literal["holds", "false", "misprint", "gap", "unchecked"]
Choice = TypeVar("Choice")


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


@dataclass(frozen=True)
class Finding:
    """What a check found: the verdict, its evidence, the range searched, the mended statement."""

    verdict: Verdict
    evidence: str
    searched: str
    mended: str | None = None


class Refuted(ArithmeticError):
    """A claim that a verdict leans on (a mended statement, a counterexample) came out wrong."""


def confirm(truth: object, claim: str) -> None:
    """Stop the check when a claim its verdict leans on does not come out true.

    >>> confirm(1 + 1 == 3, "one and one make three")
    Traceback (most recent call last):
    labelaudit.ledger.rows.Refuted: one and one make three
    """
    if not truth:
        raise Refuted(claim)


@dataclass(frozen=True)
class Row:
    """One checkable statement of the paper and the function that checks it."""

    id: str
    line: int
    statement: str
    chapter: str
    check: Callable[..., Finding]
    mutants: Sequence[Mapping[str, Any]]

    def run(self, search: Search, **mutant: Any) -> Finding:
        """Run the check, as printed or with a mutant's wrong constants."""
        return self.check(search, **mutant)


ROWS: dict[str, Row] = {}


def statement(
    id: str, line: int, text: str, *, chapter: str, mutants: Sequence[Mapping[str, Any]] = ()
) -> Callable[[Callable[..., Finding]], Callable[..., Finding]]:
    """Register a check for the statement `id`, printed at `line` of the paper's source."""

    def register(check: Callable[..., Finding]) -> Callable[..., Finding]:
        if id in ROWS:
            raise ValueError(f"statement {id!r} is registered twice")
        ROWS[id] = Row(id, line, text, chapter, check, tuple(mutants))
        return check

    return register
