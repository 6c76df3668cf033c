"""The ledger inside a chapter: the checks of the page's statements, run where they stand."""

from __future__ import annotations

from html import escape

from labelaudit import ledger

__all__ = ["Verdicts", "verdicts"]


class Verdicts:
    """Ledger entries that show themselves as a table, each verdict with its badge."""

    def __init__(self, entries: list[ledger.Entry]) -> None:
        """Keep the entries in the order in which they were asked for."""
        self.entries = entries

    def __repr__(self) -> str:
        """Plain text, for a notebook that shows no HTML."""
        return "\n".join(map(ledger.as_block, self.entries))

    def _repr_html_(self) -> str:
        rows = "".join(map(_as_row, self.entries))
        head = "<tr><th>statement</th><th>verdict</th><th>what the check found</th></tr>"
        return f'<table class="ledger"><thead>{head}</thead><tbody>{rows}</tbody></table>'


def verdicts(*ids: str) -> Verdicts:
    """Run the quick checks of these statements and show what they found, as they are named.

    >>> verdicts("N-0.46").entries[0]["verdict"]
    'misprint'
    """
    found = {item["id"]: item for item in ledger.run(ids, quick=True)}
    return Verdicts([found[name] for name in ids])


def _as_row(item: ledger.Entry) -> str:
    badge = f'<span class="verdict verdict-{item["verdict"]}">{item["verdict"]}</span>'
    notes = [escape(item["evidence"]), f"<em>Searched:</em> {escape(item['searched'])}."]
    if item["mended"]:
        notes.append(f"<em>Mended:</em> {escape(item['mended'])}")
    text = "<br>".join(notes)
    return f"<tr><td>{escape(item['id'])}</td><td>{badge}</td><td>{text}</td></tr>"
