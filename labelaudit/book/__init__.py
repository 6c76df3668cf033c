"""The book as a program: chapters that re-run, and what a chapter may say to its page.

A chapter imports three things from here. `glue` stores a value under a name, for the prose to
quote as ``{glue:text}`name:.3f` ``; `headline` does the same for the few numbers that sum a
chapter up, which a re-run then shows beside the book's; `numbers` writes the table behind the
figure that is being drawn.
"""

from __future__ import annotations

import os
from typing import Any

__all__ = ["glue", "headline", "numbers"]

# Set where the book runs its chapters.
IN_BOOK = "LABELAUDIT_BOOK"
_HIDDEN = "application/papermill.record/"


def glue(name: str, value: Any) -> None:
    """Store a number or a piece of text in the notebook, under a name the prose can quote.

    numpy scalars become plain ones, so that a format such as `.2e` applies. In the book nothing is
    shown where the cell stands. In a notebook of one's own, whose text cannot quote, the name and
    the value are. Nothing beyond IPython is needed to run it.
    """
    _store(name, value, {})


def headline(name: str, value: float, meaning: str) -> None:
    """Glue a number and mark it as one of the chapter's headline numbers.

    `meaning` is the line the table "your run against the book's" shows, so it must be true
    under every parameter.
    """
    _store(name, value, {"labelaudit": {"meaning": meaning}})


def numbers(path: str) -> None:
    """Write what the current figure draws as a table, for the page to offer as a file."""
    import matplotlib.pyplot as plt

    from labelaudit.book.drawn import write_numbers

    write_numbers(plt.gcf(), path)


def _store(name: str, value: Any, metadata: dict[str, Any]) -> None:
    from IPython.display import display

    plain = value.item() if getattr(value, "ndim", None) == 0 else value
    if not isinstance(plain, (bool, int, float, str)):
        raise TypeError(f"cannot glue {name!r}: {value!r} is not a number or a piece of text")
    metadata |= {"scrapbook": {"name": name, "mime_prefix": _HIDDEN}}
    shown = {f"{_HIDDEN}text/plain": repr(plain)}
    if IN_BOOK not in os.environ:
        shown["text/plain"] = f"{name}: {plain}"
    display(shown, raw=True, metadata=metadata)
