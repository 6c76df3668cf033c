"""Writes `results/headlines.json`: the published book's headline numbers, chapter by chapter.

With them the page of a re-run has its comparison before the book is built. Each entry is taken from
an execution at laptop scale of the chapter as it is now; a chapter that has none keeps its entry if
every parameter in it is still there. Called by `make headlines`, after `make book`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from book.tools.cache_key import run_name
from book.tools.chapters import Chapter, load_chapters
from book.tools.checkout import Checkout, find_checkout
from book.tools.panels import DEFAULT_SCALE
from book.tools.runner import read_executed
from book.tools.runs import read_headlines
from labelaudit.files import file_digest, write_atomically


def main() -> int:
    """Write the table, and say which chapters it does not take from this clone."""
    checkout = find_checkout()
    chapters = load_chapters(checkout.chapters_file)
    before = read_headlines(checkout)
    table, kept = {}, []
    for chapter in chapters.values():
        entry = executed(checkout, chapter)
        if entry is None:
            entry = before.get(chapter.id)
            kept.append(chapter.id)
        if entry is not None and set(entry["parameters"]) <= set(chapter.parameters):
            table[chapter.id] = entry
    write_atomically(checkout.headlines, json.dumps(table, indent=1) + "\n")
    print(f"{len(table)} of {len(chapters)} chapters are in {checkout.shown(checkout.headlines)}")
    if kept:
        print(f"not run at {DEFAULT_SCALE} scale as they are now: {', '.join(kept)}")
    return 0


def executed(checkout: Checkout, chapter: Chapter) -> dict[str, Any] | None:
    """A chapter's numbers at laptop scale, if its text has not changed since it ran."""
    values = chapter.values(DEFAULT_SCALE)
    notebook = read_executed(checkout.executed(run_name(chapter.id, values)))
    if notebook is None:
        return None
    made = notebook.metadata["labelaudit"]
    if made["key"]["source"] != file_digest(checkout.source(chapter.id)):
        return None
    return {"scale": DEFAULT_SCALE, "parameters": values, "headlines": made["headlines"]}


if __name__ == "__main__":
    sys.exit(main())
