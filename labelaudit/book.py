"""What a chapter of the book imports: numbers for its prose, tables for its figures, its files.

`glue` stores a value under a name, which the prose quotes as ``{glue:text}`name:.3f` ``. `headline`
does the same for the numbers that summarise a chapter; a re-run shows them beside the book's.
`numbers` writes the table behind the current figure. `repository_file` finds a file of the clone.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer, ErrorbarContainer
    from matplotlib.figure import Figure

__all__ = ["glue", "headline", "numbers", "repository_file"]

# Set where the book runs its chapters.
IN_BOOK = "LABELAUDIT_BOOK"
_HIDDEN = "application/papermill.record/"
# The columns of a series by name, all of one length.
Series = dict[str, Any]
ERROR_BARS = ["x low", "x high", "y low", "y high"]


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
    """The clone around a folder (the current one), or the one this package lies in; else None."""
    first = (start or Path.cwd()).resolve()
    for folder in [first, *first.parents, Path(__file__).resolve().parents[1]]:
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

    write_numbers(plt.gcf(), path)


def write_numbers(figure: Figure, path: str) -> None:
    """Write every curve, point, bar and step of a figure: panel, series, x, y.

    The ends of error bars are further columns. Lines across a whole panel show no data and are left
    out; bands need a table of the chapter's own. A panel is named by its title, a series by its
    entry in the legend.
    """
    drawn = [
        (axes.get_title() or f"panel {number}", name, columns)
        for number, axes in enumerate(figure.axes, start=1)
        for name, columns in _series(axes)
    ]
    bars = [bar for bar in ERROR_BARS if any(bar in columns for _, _, columns in drawn)]
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["panel", "series", "x", "y", *bars])
        for panel, name, columns in drawn:
            missing = [""] * len(columns["x"])
            values = [columns.get(column, missing) for column in ("x", "y", *bars)]
            for row in zip(*values, strict=True):
                writer.writerow([panel, name, *map(_short, row)])


def _series(axes: Axes) -> Iterator[tuple[str, Series]]:
    from matplotlib.collections import PathCollection
    from matplotlib.container import BarContainer, ErrorbarContainer
    from matplotlib.patches import StepPatch

    errorbars = [item for item in axes.containers if isinstance(item, ErrorbarContainer)]
    with_errors = {container.lines[0]: container for container in errorbars}
    caps = {cap for container in errorbars for cap in container.lines[1]}
    for line in axes.get_lines():
        if line not in caps and line.get_transform() == axes.transData:
            points = {"x": line.get_xdata(), "y": line.get_ydata()}
            bars = _ends(with_errors[line]) if line in with_errors else {}
            yield _name(with_errors.get(line, line)), points | bars
    for collection in axes.collections:
        if isinstance(collection, PathCollection):
            x, y = np.ma.getdata(collection.get_offsets()).T
            yield _name(collection), {"x": x, "y": y}
    for container in axes.containers:
        if isinstance(container, BarContainer):
            yield _name(container), _bars(container)
    for patch in axes.patches:
        if isinstance(patch, StepPatch):
            values, edges, _ = patch.get_data()
            yield _name(patch), {"x": edges[:-1], "y": values}


def _bars(container: BarContainer) -> Series:
    """The lengths of bars, against the middles of their bases."""
    middles = np.array([bar.get_center() for bar in container]).reshape(-1, 2)
    if container.orientation == "horizontal":
        return {"x": [bar.get_width() for bar in container], "y": middles[:, 1]}
    return {"x": middles[:, 0], "y": [bar.get_height() for bar in container]}


def _ends(container: ErrorbarContainer) -> Series:
    """The lower and upper ends of the error bars, along x, y or both."""
    along = [name for name, has in (("x", container.has_xerr), ("y", container.has_yerr)) if has]
    columns: Series = {}
    for name, bars in zip(along, container.lines[2], strict=True):
        ends = np.array([bar.vertices for bar in bars.get_paths()])[:, :, "xy".index(name)]
        columns |= {f"{name} low": ends[:, 0], f"{name} high": ends[:, 1]}
    return columns


def _name(artist: Any) -> str:
    label = str(artist.get_label())
    return "" if label.startswith("_") else label


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)
