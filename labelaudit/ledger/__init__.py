"""The ledger: every checkable statement of the paper, its check, its evidence and its verdict.

>>> from labelaudit import ledger
>>> ledger.run(only="N-0.46")[0]["verdict"]
'misprint'
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import TypedDict

from labelaudit.command_line import did_you_mean
from labelaudit.ledger.rows import ROWS, Finding, Refuted, Row, Search, Verdict

__all__ = [
    "Entry",
    "Finding",
    "Refuted",
    "Row",
    "Search",
    "Verdict",
    "as_block",
    "as_table",
    "as_totals",
    "entry",
    "rows",
    "run",
    "select",
]

_PARTS = (
    "section_2",
    "section_3",
    "section_4",
    "appendix_a",
    "appendix_b",
    "appendix_c",
    "appendix_d",
)


class Entry(TypedDict):
    """One line of the ledger as JSON."""

    id: str
    line: int
    verdict: Verdict
    evidence: str
    searched: str
    mended: str | None


def rows() -> list[Row]:
    """Every row, in the order of the paper; the modules that hold the checks load on first use."""
    for part in _PARTS:
        module = import_module(f"{__name__}.{part}")
        for inner in iter_modules(getattr(module, "__path__", ())):
            import_module(f"{module.__name__}.{inner.name}")
    return sorted(ROWS.values(), key=lambda row: row.line)


def entry(row: Row, search: Search) -> Entry:
    """Run one check and put what it found in the ledger's form."""
    try:
        found = row.run(search)
    except Refuted as refuted:
        raise Refuted(
            f"the check of {row.id} broke off, this did not come out: {refuted}"
        ) from None
    return {
        "id": row.id,
        "line": row.line,
        "verdict": found.verdict,
        "evidence": found.evidence,
        "searched": found.searched,
        "mended": found.mended,
    }


def select(only: str | Sequence[str] | None = None) -> list[Row]:
    """The rows named by `only` (an id, several, or None for all), in the order of the paper."""
    every = rows()
    if only is None:
        return every
    wanted = {only} if isinstance(only, str) else set(only)
    unknown = sorted(wanted - {row.id for row in every})
    if unknown:
        known = {row.id.lower(): row.id for row in every}
        hint = did_you_mean(unknown[0], known.values(), "; ids look like 'T3.2-sqrt'")
        raise ValueError(f"no statement {unknown[0]!r} in the ledger{hint}")
    return [row for row in every if row.id in wanted]


def run(only: str | Sequence[str] | None = None, quick: bool = False) -> list[Entry]:
    """Run the checks and return the ledger, one entry for each statement."""
    search = Search(quick=quick)
    return [entry(row, search) for row in select(only)]


def as_block(item: Entry, width: int = 100) -> str:
    """One statement of the ledger as plain text."""
    notes = [("evidence", item["evidence"]), ("searched", item["searched"])]
    if item["mended"]:
        notes.append(("mended", item["mended"]))
    body = [
        textwrap.fill(f"{name}: {text}", width, initial_indent="    ", subsequent_indent="      ")
        for name, text in notes
    ]
    return "\n".join([f"{item['id']:<13} line {item['line']:<5} {item['verdict']}", *body])


def as_totals(entries: Sequence[Entry]) -> str:
    """How many statements have each verdict, in one line."""
    counts = Counter(item["verdict"] for item in entries)
    noun = "statement" if len(entries) == 1 else "statements"
    return f"{len(entries)} {noun}: " + ", ".join(
        f"{number} {verdict}" for verdict, number in sorted(counts.items())
    )


def as_table(entries: Sequence[Entry]) -> str:
    """The whole ledger as plain text."""
    return "\n".join([*map(as_block, entries), as_totals(entries)])
