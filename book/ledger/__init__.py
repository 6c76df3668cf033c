"""The ledger: every checkable statement of the paper, its check, its evidence and its verdict.

`statements.yml` lists the statements by section of the paper. Each section has a module of checks,
which is imported when one of its statements is run.

>>> from book import ledger
>>> ledger.run(only="N-0.46")[0]["verdict"]
'misprint'
"""

import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, Literal, TypedDict

from book.ledger.check import CHECKS, Smallest, certified, identity
from book.ledger.check import Refuted as Refuted
from labelaudit.command_line import counted, did_you_mean

Verdict = Literal["holds", "false", "loose", "misprint", "gap", "answered", "unchecked"]
Grade = Literal["proved", "certified", "exact", "searched", "random", "read"]
"""How a verdict is known, the surest first."""
Rank = Literal["result", "step", "text"]
RANKS: dict[Rank, str] = {
    "result": "statements of results",
    "step": "steps of proofs",
    "text": "the text",
}
_NUMBER = re.compile(r"<([a-z_]\w*)(?::([^<>]+))?>")
_RANGE = re.compile(r"<([\w.]+)\|([\w.]+)>")


class Entry(TypedDict):
    """One line of the ledger as JSON."""

    id: str
    line: int
    verdict: Verdict
    grade: Grade
    rank: Rank
    slip: str
    evidence: str
    searched: str
    corrected: str | None
    proof: str | None


@dataclass(frozen=True)
class Row:
    """One checkable statement of the paper, as `statements.yml` describes it.

    `grade` says how the verdict is known, and `proof` has the proof of a row that is proved.
    `fault` is the verdict when the statement is not true as printed. Rows with the same `slip` have
    one cause. `evidence`, `searched` and `corrected` quote numbers of the check as <name:.2f>, and
    <9|99> is the end of a range in the quick and in the full search. A row that is read may have no
    check.
    """

    id: str
    line: int
    section: str
    chapter: str
    grade: Grade
    statement: str
    evidence: str
    searched: str
    fault: Verdict = "false"
    corrected: str | None = None
    proof: str | None = None
    rank: Rank | None = None
    slip: str | None = None

    @property
    def declared(self) -> Verdict:
        """The verdict that the table declares; `run` says what the check finds."""
        return "holds" if self.corrected is None and self.fault != "unchecked" else self.fault

    @property
    def mutants(self) -> Sequence[Mapping[str, Any]]:
        """Wrong arguments for the check; each must change the verdict."""
        import_module(f"{__name__}.{self.section}")
        return CHECKS[self.id].mutants if self.id in CHECKS else ()

    def run(self, quick: bool, **mutant: Any) -> Entry:
        """Run the check, as printed or with a mutant's wrong arguments."""
        import_module(f"{__name__}.{self.section}")
        truth, numbers = False, dict[str, Any]()
        if self.id in CHECKS or self.grade != "read":
            truth, numbers = CHECKS[self.id].run(quick, **mutant)
        expected = ("holds" if truth else self.fault) == self.declared
        kinds = int | float | str | Fraction | Smallest
        scalars = {name: value for name, value in numbers.items() if isinstance(value, kinds)}
        shown = ", ".join(f"{name} = {value}" for name, value in scalars.items())
        texts = [f"Not as the ledger's table has it: {shown}", "up to this case", ""]
        if expected:
            table = (self.evidence, self.searched, self.corrected or "")
            texts = [_fill(text, quick, numbers) for text in table]
        return {
            "id": self.id,
            "line": self.line,
            "verdict": "holds" if truth else self.fault,
            "grade": self.grade if expected else "searched",
            "rank": self.rank or ("step" if self.section.startswith("appendix") else "text"),
            "slip": self.slip or self.id,
            "evidence": texts[0],
            "searched": texts[1],
            "corrected": texts[2] or None,
            "proof": self.proof if expected else None,
        }


def _fill(text: str, quick: bool, numbers: Mapping[str, Any]) -> str:
    """Put the numbers and the ends of ranges where `text` has their marks.

    >>> _fill("P(y < 1), k to <9|99>, slack <slack:.2f>", quick=True, numbers={"slack": 0.5})
    'P(y < 1), k to 9, slack 0.50'
    >>> _fill("bags of <sizes>", quick=True, numbers={"sizes": (1, 2)})
    'bags of 1, 2'
    """

    def written(mark: re.Match[str]) -> str:
        value = numbers[mark[1]]
        if isinstance(value, list | tuple):
            return ", ".join(map(str, value))
        if mark[2] and isinstance(value, Fraction):  # Python 3.11 cannot format fractions
            value = float(value)
        return format(value, mark[2] or "")

    return _NUMBER.sub(written, _RANGE.sub(r"\1" if quick else r"\2", text))


@cache
def rows() -> tuple[Row, ...]:
    """Every row, in the order of the paper."""
    import yaml

    text = files(__name__).joinpath("statements.yml").read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    table = [{"section": n, **row} for n, part in yaml.load(text, loader).items() for row in part]
    for row in table:
        for kind in (identity, certified):
            if kind.__name__ in row:
                kind(row["id"], row.pop(kind.__name__), row.pop("wrong"))
    return tuple(Row(**row) for row in table)


def select(only: str | Sequence[str] | None = None) -> Sequence[Row]:
    """The rows named by `only` (an id, several, or None for all), in the order of the paper."""
    every = rows()
    if only is None:
        return every
    wanted = {only} if isinstance(only, str) else set(only)
    unknown = sorted(wanted - {row.id for row in every})
    if unknown:
        hint = did_you_mean(unknown[0], [row.id for row in every], "; ids look like 'T3.2-sqrt'")
        raise ValueError(f"no statement {unknown[0]!r} in the ledger{hint}")
    return [row for row in every if row.id in wanted]


def badge(target: str) -> str:
    """What the badge of a statement says; `~` before the id leaves the id out.

    >>> badge("T3.5"), badge("~T3.5")
    ('T3.5 holds', 'holds')
    """
    [row] = select(target.removeprefix("~"))
    return row.declared if target.startswith("~") else f"{row.id} {row.declared}"


def entry(row: Row, quick: bool) -> Entry:
    """Run one check; an error names its row."""
    try:
        return row.run(quick)
    except Refuted as refuted:
        raise Refuted(f"the check of {row.id} stopped, this is not true: {refuted}") from None


def run(only: str | Sequence[str] | None = None, quick: bool = False) -> list[Entry]:
    """Run the checks and return the ledger, one entry for each statement."""
    return [entry(row, quick) for row in select(only)]


def as_block(item: Entry) -> str:
    """One statement of the ledger as plain text."""
    notes = [(name, item[name]) for name in ("evidence", "searched", "corrected", "proof")]  # type: ignore[literal-required]
    body = [
        textwrap.fill(f"{name}: {text}", 100, initial_indent="    ", subsequent_indent="      ")
        for name, text in notes
        if text
    ]
    head = f"{item['id']:<13} line {item['line']:<5} {item['verdict']}, {item['grade']}"
    return "\n".join([head, *body])


def as_totals(entries: Sequence[Entry]) -> str:
    """How many statements have each verdict and each grade, and what the false ones are."""
    verdicts, grades = (
        ", ".join(f"{number} {name}" for name, number in Counter(names).most_common())
        for names in ((item["verdict"] for item in entries), (item["grade"] for item in entries))
    )
    totals = f"{counted(len(entries), 'statement')}: {verdicts}\ngrades: {grades}"
    return totals + (f"\nfalse: {as_slips(entries)}" if "false" in verdicts else "")


def slips(entries: Sequence[Entry]) -> Counter[Rank]:
    """How many distinct slips make rows false; each counts where it does most harm."""
    worst: dict[str, Rank] = {}
    for rank in reversed(RANKS):
        false = (item for item in entries if (item["verdict"], item["rank"]) == ("false", rank))
        worst |= {item["slip"]: rank for item in false}
    return Counter(worst.values())


def as_slips(entries: Sequence[Entry]) -> str:
    """The distinct slips in one line.

    >>> as_slips(run(only=["LA.4", "LA.4-eq", "TD.2-trace"], quick=True))
    '2 distinct slips in 3 rows: 1 in statements of results, 1 in steps of proofs'
    """
    counts, false = slips(entries), sum(item["verdict"] == "false" for item in entries)
    parts = [f"{counts[rank]} in {name}" for rank, name in RANKS.items() if counts[rank]]
    distinct = counted(counts.total(), "distinct slip")
    return f"{distinct} in {counted(false, 'row')}: {', '.join(parts)}"
