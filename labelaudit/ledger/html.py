"""The ledger as one piece of HTML: what the book's ledger page shows.

Every row is in the text, so the page reads and prints without scripts; the few lines of JavaScript
add buttons that filter by verdict and a box that filters by words.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from html import escape

from labelaudit.ledger import Entry, Row, Verdict, rows
from labelaudit.ledger.typeset import LETTERS, typeset

VERDICTS: tuple[Verdict, ...] = ("holds", "false", "misprint", "gap", "unchecked")
PARTS = {
    "section_2": "Section 2: the setting",
    "section_3": "Section 3: the measures and their bounds",
    "section_4": "Section 4: experiments",
    "appendix_a": "Appendix A: proofs for the additive advantage",
    "appendix_b": "Appendix B: proof for the multiplicative advantage",
    "appendix_c": "Appendix C: experimental setup",
    "appendix_d": "Appendix D: proportion matching with noise",
}

# The theme puts a light ground behind raw HTML on its dark pages; ours follows the page.
STYLE = """
html[data-theme] .bd-content .cell_output .text_html:has(.ledger-page) {
  background: none !important; color: inherit !important; padding: 0 !important; }
.bd-article :is(h2, h3) .verdict { font-size: 0.55em; vertical-align: 0.3em; }
.ledger-controls { display: flex; flex-wrap: wrap; gap: 0.4rem; margin: 1rem 0 0.3rem; }
.ledger-controls button { background: none; cursor: pointer; font: inherit; padding: 0 0.2rem;
  border: 2px solid transparent; border-radius: 0.4rem; color: inherit; }
.ledger-controls button[aria-pressed="true"] { border-color: currentcolor; }
.ledger-controls input { flex: 1 1 12rem; min-width: 0; padding: 0.15rem 0.5rem; font: inherit;
  color: inherit; background: var(--pst-color-background); border-radius: 0.4rem;
  border: 1px solid var(--pst-color-border); }
.bd-article table.ledger-table { display: table; width: 100%; table-layout: fixed;
  overflow: visible; font-size: 0.88rem; border-collapse: collapse; }
table.ledger-table :is(td, th) { text-align: left !important; vertical-align: top; padding: 0.5rem;
  white-space: normal; overflow-wrap: anywhere; border: 0;
  border-top: 1px solid var(--pst-color-border); background: none !important;
  color: var(--pst-color-text-base); font-weight: normal; }
table.ledger-table .ledger-id { width: 8.6rem; }
table.ledger-table .ledger-id :is(b, .ledger-line) { display: block; }
table.ledger-table .ledger-part th { font-weight: 600; font-size: 1rem; padding-top: 1.4rem; }
table.ledger-table p { margin: 0 0 0.35rem; }
table.ledger-table .ledger-statement { font-weight: 600; }
table.ledger-table .ledger-searched, table.ledger-table .ledger-links { font-size: 0.8rem;
  color: var(--pst-color-text-muted); }
table.ledger-table [hidden] { display: none; }
@media (max-width: 600px) {
  table.ledger-table :is(tbody, tr, td, th) { display: block; width: auto !important; }
  table.ledger-table td { border-top: 0; padding-top: 0; }
  table.ledger-table .ledger-id :is(b, .ledger-line) { display: inline; margin-right: 0.6rem; }
}
"""

SCRIPT = """
(() => {
  const page = document.currentScript.closest(".ledger-page");
  const table = page.querySelector("table.ledger-table");
  const entries = [...table.querySelectorAll("tr[data-verdict]")];
  const controls = page.querySelector(".ledger-controls");
  const buttons = [...controls.querySelectorAll("button")];
  const box = controls.querySelector("input");
  const shown = page.querySelector(".ledger-shown");
  const letters = new Map(Object.entries(LETTERS));
  const lettered = word => word.replace(/[a-z]+/g, name => letters.get(name) ?? name);
  let wanted = "";
  const filter = () => {
    const words = box.value.toLowerCase().split(/\\s+/).filter(Boolean);
    let count = 0;
    for (const row of entries) {
      const text = row.textContent.toLowerCase();
      const right = !wanted || row.dataset.verdict === wanted;
      row.hidden = !right || !words.every(
        word => text.includes(word) || text.includes(lettered(word)));
      count += !row.hidden;
    }
    for (const part of table.querySelectorAll("tbody"))
      part.hidden = ![...part.querySelectorAll("tr[data-verdict]")].some(row => !row.hidden);
    shown.textContent = `${count} of ${entries.length} statements shown.`;
  };
  for (const button of buttons) button.addEventListener("click", () => {
    wanted = button.dataset.verdict;
    for (const other of buttons) other.setAttribute("aria-pressed", other === button);
    filter();
  });
  box.addEventListener("input", filter);
  controls.hidden = false;
})();
""".replace("LETTERS", json.dumps({name.lower(): sign.lower() for name, sign in LETTERS.items()}))


def badge(verdict: str) -> str:
    """A verdict as the coloured word the book uses everywhere."""
    return f'<span class="verdict verdict-{verdict}">{verdict}</span>'


def anchor(id: str) -> str:
    """A statement's id as it can stand in an address.

    >>> anchor("D-1/k2")
    'd-1-k2'
    """
    return re.sub(r"[^a-z0-9]+", "-", id.lower())


def as_html(entries: Sequence[Entry], chapters: Collection[str] = ()) -> str:
    """The table with its filters; it links to those of `chapters` that a row belongs to."""
    known = {row.id: row for row in rows()}
    bodies: dict[str, list[str]] = {}
    for item in entries:
        row = known[item["id"]]
        part = row.check.__module__.removeprefix("labelaudit.ledger.").split(".")[0]
        bodies.setdefault(part, []).append(_line(row, item, chapters))
    tables = "".join(
        f'<tbody><tr class="ledger-part"><th colspan="2" scope="rowgroup">{PARTS[part]}</th></tr>'
        f"{''.join(lines)}</tbody>"
        for part, lines in bodies.items()
    )
    return _table(tables, _controls(entries), f"<script>{SCRIPT}</script>")


def misprints(entries: Sequence[Entry]) -> str:
    """The misprints among the entries: where, what is printed, what is meant."""
    known = {row.id: row for row in rows()}
    lines = "".join(
        f'<tr><th class="ledger-id" scope="row"><b>{escape(item["id"])}</b> line {item["line"]}'
        f"</th><td>{_text('Printed', known[item['id']].statement)}"
        f"{_text('Meant', item['mended'])}{_text('Why', item['evidence'], 'searched')}</td></tr>"
        for item in entries
        if item["verdict"] == "misprint"
    )
    return _table(f"<tbody>{lines}</tbody>")


def summary(groups: Mapping[str, Sequence[str]], entries: Sequence[Entry]) -> str:
    """A line for each group of statements, such as the parts of a theorem, with their verdicts."""
    found = {item["id"]: item["verdict"] for item in entries}
    lines = "".join(
        f'<tr><th class="ledger-id" scope="row">{escape(name)}</th><td>'
        + ", ".join(f"{escape(id)} {badge(found[id])}" for id in ids)
        + "</td></tr>"
        for name, ids in groups.items()
    )
    return _table(f"<tbody>{lines}</tbody>")


def _table(bodies: str, before: str = "", after: str = "") -> str:
    return (
        f'<div class="ledger-page"><style>{STYLE}</style>{before}'
        f'<table class="ledger-table">{bodies}</table>{after}</div>'
    )


def _controls(entries: Sequence[Entry]) -> str:
    counts = Counter(item["verdict"] for item in entries)
    buttons = "".join(
        f'<button type="button" data-verdict="{verdict}" aria-pressed="false">{badge(verdict)} '
        f"{counts[verdict]}</button>"
        for verdict in VERDICTS
        if counts[verdict]
    )
    return (
        '<div class="ledger-controls" hidden role="group" aria-label="Filter the statements">'
        f'<button type="button" data-verdict="" aria-pressed="true">all {len(entries)}</button>'
        f'{buttons}<input type="search" aria-label="Words to look for" placeholder="words"></div>'
        '<p class="ledger-shown" aria-live="polite"></p>'
    )


def _line(row: Row, item: Entry, chapters: Collection[str]) -> str:
    links = []
    if row.chapter in chapters:
        number = int(row.chapter.split("_")[0])
        links.append(f'<a href="{row.chapter}.html">chapter {number}</a>')
    if "errata" in chapters and item["verdict"] in ("false", "gap"):
        links.append(
            f'<a href="errata.html#errata-{anchor(row.id)}">errata, with a cell to run</a>'
        )
    if "errata" in chapters and item["verdict"] == "misprint":
        links.append('<a href="errata.html#errata-misprints">errata</a>')
    see = f'<p class="ledger-links">See {", ".join(links)}.</p>' if links else ""
    return (
        f'<tr id="{anchor(row.id)}" data-verdict="{item["verdict"]}">'
        f'<th class="ledger-id" scope="row"><b>{escape(row.id)}</b>{badge(item["verdict"])} '
        f"line {item['line']}</th><td>{_text('', row.statement, 'statement')}"
        f"{_text('', item['evidence'])}{_text('Mended', item['mended'])}"
        f"{_text('Searched', item['searched'], 'searched')}{see}</td></tr>"
    )


def _text(title: str, text: str | None, kind: str = "text") -> str:
    if not text:
        return ""
    return f'<p class="ledger-{kind}">{f"<b>{title}:</b> " if title else ""}{typeset(text)}</p>'
