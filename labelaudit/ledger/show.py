"""The ledger inside a chapter: the checks of the page's statements, run where they stand."""

from __future__ import annotations

from html import escape

from labelaudit import ledger
from labelaudit.ledger.html import badge
from labelaudit.ledger.typeset import typeset

__all__ = ["Verdicts", "verdicts"]

# The theme centres cells, stripes rows and puts a light ground behind raw HTML on its dark pages.
STYLE = """
html[data-theme] .bd-content .cell_output .text_html:has(.verdict-table) {
  background: none !important; color: inherit !important; }
.bd-article table.verdict-table { display: table; width: 100%; margin: 0; font-size: 0.88rem; }
table.verdict-table :is(th, td) { text-align: left !important; vertical-align: top; border: 0;
  border-top: 1px solid var(--pst-color-border); padding: 0.5rem; white-space: normal;
  font-weight: normal; background: none !important; color: var(--pst-color-text-base); }
table.verdict-table tr:first-child > * { border-top: 0; }
table.verdict-table th { width: 6.5rem; }
table.verdict-table th b { display: block; }
table.verdict-table p { margin: 0 0 0.35rem; overflow-wrap: anywhere; }
"""


class Verdicts:
    """Ledger entries that show themselves as a table, each verdict with its badge."""

    def __init__(self, entries: list[ledger.Entry]) -> None:
        """Keep the entries in the order in which they were asked for."""
        self.entries = entries

    def __repr__(self) -> str:
        """Plain text, for a notebook that shows no HTML."""
        return "\n".join(map(ledger.as_block, self.entries))

    def _repr_html_(self) -> str:
        statements = {row.id: row.statement for row in ledger.rows()}
        lines = "".join(_as_row(item, statements[item["id"]]) for item in self.entries)
        return f'<style>{STYLE}</style><table class="verdict-table"><tbody>{lines}</tbody></table>'


def verdicts(*ids: str) -> Verdicts:
    """Run the quick checks of these statements and show what they found, as they are named.

    >>> verdicts("N-0.46").entries[0]["verdict"]
    'misprint'
    """
    found = {item["id"]: item for item in ledger.run(ids, quick=True)}
    return Verdicts([found[name] for name in ids])


def _as_row(item: ledger.Entry, statement: str) -> str:
    notes = [f"<b>{typeset(statement)}</b>", typeset(item["evidence"])]
    notes.append(f"<em>Searched:</em> {typeset(item['searched'])}.")
    if item["mended"]:
        notes.append(f"<em>Mended:</em> {typeset(item['mended'])}")
    text = "".join(f"<p>{note}</p>" for note in notes)
    head = f"<b>{escape(item['id'])}</b>{badge(item['verdict'])}"
    return f'<tr><th scope="row">{head}</th><td>{text}</td></tr>'
