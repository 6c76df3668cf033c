"""Numbers of statements as index entries, which Sphinx's own search looks through, offline too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx import addnodes

from book import ledger

INDEX_OF_PAPER, LEDGER = "book/paper", "notebooks/ledger"
STATEMENT = re.compile(
    r"(Theorem|Lemma|Definition|Proposition|Remark|Figure|Section)s? ([A-D]?\d*\.?\d+)"
)
NOT_STATEMENTS = ("figure", "table", "code-block", "section", "exercise", "solution")


def add_entries(app: Any, tree: nodes.document, page: str) -> None:
    """Give a page its entries; they are no part of the general index, which has been collected."""
    if INDEX_OF_PAPER in app.env.found_docs:
        entries = [
            ("single", name, anchor, "main", None) for name, anchor in names(app.env, tree, page)
        ]
        tree.append(addnodes.index(entries=entries))


def names(env: Any, tree: nodes.document, page: str) -> Iterator[tuple[str, str]]:
    """What a reader may type to find a page, and the anchor it leads to."""
    anchors = {anchor for node in tree.findall(nodes.Element) for anchor in node.get("ids", ())}
    for row in env.get_doctree(INDEX_OF_PAPER).findall(nodes.row):
        targets = [
            reference["reftarget"].rpartition("/")[2]
            for reference in row.findall(addnodes.pending_xref)
        ]
        places = [anchor for anchor in targets if anchor in anchors]
        if places or page == INDEX_OF_PAPER or page.rpartition("/")[2] in targets:
            for kind, number in STATEMENT.findall(row[0].astext()):
                for name in (f"{kind} {number}", number, f"{kind[0]}{number}"):
                    yield name, places[0] if places else ""
    # The full stop ranks the book's own numbers below the paper's.
    for kind, numbers in env.toc_fignumbers.get(page, {}).items():
        for anchor, number in numbers.items():
            text = f"{'.'.join(map(str, number))}."
            yield f"{kind} {text}", anchor
            if kind not in NOT_STATEMENTS:
                yield text, anchor
    if page == LEDGER:
        for statement in ledger.rows():
            yield statement.id, nodes.make_id(statement.id)
