"""What is drawn: the numbers of a figure as a table, and the two figures of chapter 01 alone.

`write_numbers` makes the table that `book.chapters.numbers` writes.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch
from numpy.typing import ArrayLike

from labelaudit.mechanisms import Mechanism, kind_of

# The columns of a series by name, all of one length.
Series = dict[str, Any]
ERROR_BARS = ["x low", "x high", "y low", "y high"]


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


def beliefs(
    axes: Axes, names: Sequence[str], eta: ArrayLike, posteriors: Mapping[Mechanism, ArrayLike]
) -> None:
    """A line for each member of a bag: the prior as a vertical bar, the posteriors as markers."""
    lines = np.arange(len(names), dtype=float)
    axes.scatter(eta, lines, marker="|", s=420, color="black", linewidths=2, label="prior")
    for mechanism, values in posteriors.items():
        kind = kind_of(mechanism)
        axes.scatter(values, lines, marker=kind.marker, s=48, color=kind.colour, label=kind.name)
    axes.set(xlim=(-0.03, 1.03), xlabel="probability that the label is 1")
    named_lines(axes, names)


def named_lines(axes: Axes, names: Sequence[str]) -> None:
    """Name the horizontal lines 0, 1, ... from top to bottom."""
    axes.set_yticks(np.arange(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="y", color="#dddddd")
    axes.set_axisbelow(True)


def likelihood(axes: Axes, mechanism: Mechanism, release: float) -> None:
    """How well each count explains a release, the best one scaled to 1."""
    values = mechanism.likelihood([release])[0]
    kind = kind_of(mechanism)
    axes.bar(np.arange(values.size), values, color=kind.colour, edgecolor="black", linewidth=0.5)
    axes.set(title=kind.name, xlabel="number of ones", ylim=(0, 1.08))
    axes.set_xticks(np.arange(0, values.size, 1 + values.size // 9))
