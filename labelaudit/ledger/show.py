"""The ledger on a page: badges, the tables under a chapter's statements, errata, the whole ledger.

The pages' style sheet is `book/_static/labelaudit.css`. The colour shows the verdict, a mark with a
second word the grade. Every row is in the text, so a page can be read and printed without
scripts. A little JavaScript adds a filter by verdict, by grade and by words.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import get_args

from labelaudit import ledger
from labelaudit.ledger import Entry, Grade, Row, Verdict
from labelaudit.ledger.typeset import LETTERS, typeset

PARTS = {
    "section_2": "Section 2: the setting",
    "section_3": "Section 3: the measures and their bounds",
    "section_4": "Section 4: experiments",
    "appendix_a": "Appendix A: proofs for the additive advantage",
    "appendix_b": "Appendix B: proof for the multiplicative advantage",
    "appendix_c": "Appendix C: experimental setup",
    "appendix_d": "Appendix D: proportion matching with noise",
}
TITLES = {"gap": "Closed by", "answered": "Answer"}


@dataclass(frozen=True, repr=False)
class Verdicts:
    """Ledger entries in the order in which they were asked for; `row` gives their HTML."""

    entries: list[Entry]
    row: Callable[[Entry], str]

    def __repr__(self) -> str:
        """Plain text, for a notebook that shows no HTML."""
        return "\n".join(map(ledger.as_block, self.entries))

    def _repr_html_(self) -> str:
        rows = "".join(map(self.row, self.entries))
        return f'<table class="verdict-table"><tbody>{rows}</tbody></table>'


def verdicts(*ids: str) -> Verdicts:
    """Run the quick checks of these statements; show each verdict with its badge and evidence.

    >>> verdicts("N-0.46").entries[0]["verdict"]
    'misprint'
    """
    return _shown(ids, _verdict_row)


def erratum(*ids: str) -> Verdicts:
    """Show what the paper prints and the corrected form, as the quick checks of `ids` give it.

    >>> erratum("N-0.46").entries[0]["corrected"]
    '1 - 2/(1 + e^epsilon), which is 0.4621 at epsilon = 1'
    """
    return _shown(ids, _erratum_row)


def badge(verdict: str) -> str:
    """A verdict as the coloured word the book uses everywhere."""
    return f'<span class="verdict verdict-{verdict}">{verdict}</span>'


def mark(grade: str) -> str:
    """A grade as the word and the mark the book uses everywhere."""
    return f'<span class="grade grade-{grade}">{grade}</span>'


def anchor(id: str) -> str:
    """A statement's id as it can stand in an address.

    >>> anchor("D-1/k2")
    'd-1-k2'
    """
    return re.sub(r"[^a-z0-9]+", "-", id.lower())


def as_html(entries: Sequence[Entry], chapters: Collection[str] = ()) -> str:
    """The whole ledger with its filters; it links to those of `chapters` that a row belongs to."""
    bodies: dict[str, list[str]] = {}
    for item in entries:
        row = _known()[item["id"]]
        part = "_".join(row.section.split("_")[:2])
        bodies.setdefault(part, []).append(_ledger_row(row, item, chapters))
    tables = "".join(
        f'<tbody><tr class="ledger-part"><th colspan="2" scope="rowgroup">{PARTS[part]}</th></tr>'
        f"{''.join(lines)}</tbody>"
        for part, lines in bodies.items()
    )
    script = files("labelaudit.ledger").joinpath("filter.js").read_text(encoding="utf-8")
    letters = json.dumps({name.lower(): sign.lower() for name, sign in LETTERS.items()})
    script = script.replace("LETTERS", letters)
    return _page(tables, _controls(entries), f"<script>\n{script}</script>")


def misprints(entries: Sequence[Entry]) -> str:
    """The misprints among the entries: where, what is printed, what is meant."""
    lines = "".join(
        f'<tr><th class="ledger-id" scope="row"><b>{escape(item["id"])}</b> line {item["line"]}'
        f"</th><td>{_text('Printed', _known()[item['id']].statement)}"
        f"{_text('Meant', item['corrected'])}{_text('Why', item['evidence'], 'searched')}</td></tr>"
        for item in entries
        if item["verdict"] == "misprint"
    )
    return _page(f"<tbody>{lines}</tbody>")


def summary(groups: Mapping[str, Sequence[str]], entries: Sequence[Entry]) -> str:
    """A line for each group of statements, such as the parts of a theorem, with their verdicts."""
    verdict_of = {item["id"]: item["verdict"] for item in entries}
    grade_of = {item["id"]: item["grade"] for item in entries}
    lines = "".join(
        f'<tr><th class="ledger-id" scope="row">{escape(name)}</th><td>'
        + ", ".join(f"{escape(id)} {badge(verdict_of[id])} {mark(grade_of[id])}" for id in ids)
        + "</td></tr>"
        for name, ids in groups.items()
    )
    return _page(f"<tbody>{lines}</tbody>")


@cache
def _known() -> dict[str, Row]:
    return {row.id: row for row in ledger.rows()}


@cache
def _quick_entry(id: str) -> Entry:
    return ledger.run(id, quick=True)[0]


def _shown(ids: Sequence[str], row: Callable[[Entry], str]) -> Verdicts:
    ledger.select(ids)  # an unknown id is an error before any check runs
    return Verdicts([_quick_entry(id) for id in ids], row)


def _verdict_row(item: Entry) -> str:
    notes = [f"<b>{typeset(_known()[item['id']].statement)}</b>", typeset(item["evidence"])]
    notes.append(f"<em>Searched:</em> {typeset(item['searched'])}.")
    if item["corrected"]:
        notes.append(f"<em>Corrected:</em> {typeset(item['corrected'])}")
    head = f"<b>{escape(item['id'])}</b>{badge(item['verdict'])} {mark(item['grade'])}"
    return _short_row(head, *notes)


def _erratum_row(item: Entry) -> str:
    title = TITLES.get(item["verdict"], "Corrected")
    printed = f"<em>Printed:</em> {typeset(_known()[item['id']].statement)}"
    corrected = f"<em>{title}:</em> {typeset(item['corrected'] or '')}"
    return _short_row(f"<b>{escape(item['id'])}</b>line {item['line']}", printed, corrected)


def _short_row(head: str, *notes: str) -> str:
    text = "".join(f"<p>{note}</p>" for note in notes)
    return f'<tr><th scope="row">{head}</th><td>{text}</td></tr>'


def _page(bodies: str, before: str = "", after: str = "") -> str:
    table = f'<table class="ledger-table">{bodies}</table>'
    return f'<div class="ledger-page">{before}{table}{after}</div>'


def _controls(entries: Sequence[Entry]) -> str:
    verdicts = _buttons("verdict", badge, get_args(Verdict), [item["verdict"] for item in entries])
    grades = _buttons("grade", mark, get_args(Grade), [item["grade"] for item in entries])
    return (
        f'<div class="ledger-controls" hidden>{verdicts}{grades}'
        '<input type="search" aria-label="Words to look for" placeholder="words"></div>'
        '<p class="ledger-shown" aria-live="polite"></p>'
    )


def _buttons(
    field: str, shown: Callable[[str], str], names: Sequence[str], values: Sequence[str]
) -> str:
    counts = Counter(values)
    buttons = "".join(
        f'<button type="button" data-{field}="{name}" aria-pressed="false">{shown(name)} '
        f"{counts[name]}</button>"
        for name in names
        if counts[name]
    )
    return (
        f'<div role="group" aria-label="Filter by {field}"><button type="button" data-{field}="" '
        f'aria-pressed="true">every {field}</button>{buttons}</div>'
    )


def _ledger_row(row: Row, item: Entry, chapters: Collection[str]) -> str:
    links = []
    if row.chapter in chapters:
        number = int(row.chapter.split("_")[0])
        links.append(f'<a href="{row.chapter}.html">chapter {number}</a>')
    if "errata" in chapters and item["verdict"] not in ("holds", "misprint", "unchecked"):
        address = f"errata.html#errata-{anchor(row.id)}"
        links.append(f'<a href="{address}">errata, with a cell to run</a>')
    if "errata" in chapters and item["verdict"] == "misprint":
        links.append('<a href="errata.html#errata-misprints">errata</a>')
    see = f'<p class="ledger-links">See {", ".join(links)}.</p>' if links else ""
    return (
        f'<tr id="{anchor(row.id)}" data-verdict="{item["verdict"]}" data-grade="{item["grade"]}">'
        f'<th class="ledger-id" scope="row"><b>{escape(row.id)}</b>{badge(item["verdict"])} '
        f"{mark(item['grade'])} line {item['line']}</th><td>"
        f"{_text('', row.statement, 'statement')}{_text('', item['evidence'])}"
        f"{_text(TITLES.get(item['verdict'], 'Corrected'), item['corrected'])}"
        f"{_proof(item['proof'], chapters)}"
        f"{_text('Searched', item['searched'], 'searched')}{see}</td></tr>"
    )


_CITED = re.compile(r"[Cc]hapter (\d+) \[([\w-]+)\]")


def _proof(text: str | None, chapters: Collection[str]) -> str:
    """A folded proof; its statements of the book are links where the chapter is in the book."""
    if not text:
        return ""

    def link(cited: re.Match[str]) -> str:
        name = next((c for c in chapters if c.startswith(f"{int(cited[1]):02d}_")), None)
        words = f"{cited[0].split()[0]} {cited[1]}"
        return f'<a href="{name}.html#{cited[2]}">{words}</a>' if name else words

    body = _CITED.sub(link, typeset(text))
    return f'<details class="ledger-proof"><summary>Proof</summary><p>{body}</p></details>'


def _text(title: str, text: str | None, kind: str = "text") -> str:
    if not text:
        return ""
    return f'<p class="ledger-{kind}">{f"<b>{title}:</b> " if title else ""}{typeset(text)}</p>'
