"""What only chapters import: numbers for their prose, tables for their figures, their files.

`glue` stores a value under a name, which the prose quotes as ``{glue:text}`name:.3f` ``. `headline`
does the same for the numbers that summarise a chapter; a re-run shows them beside the book's.
`numbers` writes the table behind the current figure. `repository_file` finds a file of the clone:
what reads the tables of `results/` works in a clone only.
"""

import os
from pathlib import Path
from typing import Any

# Set where the book runs its chapters.
IN_BOOK = "LABELAUDIT_BOOK"
_HIDDEN = "application/papermill.record/"


def glue(name: str, value: Any) -> None:
    """Store a number or a piece of text in the notebook, under a name the prose can quote.

    numpy scalars become plain ones, so that a format such as `.2e` applies. In the book the cell
    shows nothing. In a reader's own notebook, whose text cannot quote, it shows name and value.
    """
    _store(name, value, {})


def headline(
    name: str, value: float, meaning: str, setting: str = "", *, computed: bool = True
) -> None:
    """Glue a number and mark it as one of the chapter's headline numbers.

    `meaning` is the line that the table "your run against the book's" shows, so it must be true
    under every parameter. `setting` names what the number is about, such as `Beta(2, 30), k = 8`;
    the table shows it where the two sides differ. A number that no parameter changes, because the
    page reads it from a table (`computed` is false), is only glued.
    """
    about = {"labelaudit": {"meaning": meaning, "setting": setting}}
    _store(name, value, about if computed else {})


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


def clone_folder(start: Path | None = None) -> Path | None:
    """The clone around a folder (the current one), or the one this file lies in; else None."""
    first = (start or Path.cwd()).resolve()
    for folder in [first, *first.parents, Path(__file__).resolve().parents[2]]:
        if (folder / "notebooks" / "chapters.yml").is_file():
            return folder
    return None


def repository_file(name: str) -> Path | None:
    """The path of a file of the repository; None outside a clone, or where there is no such file.

    >>> repository_file("no/such/file") is None
    True
    """
    clone = clone_folder()
    return clone / name if clone and (clone / name).is_file() else None


def numbers(path: str) -> None:
    """Write what the current figure draws as a table, for the page to offer as a file."""
    import matplotlib.pyplot as plt

    from book.chapters.drawn import write_numbers

    write_numbers(plt.gcf(), path)
