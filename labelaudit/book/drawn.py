"""The numbers behind a figure, read from what it draws."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer, ErrorbarContainer
    from matplotlib.figure import Figure

# The columns of a series, by name, all of one length.
Series = dict[str, Any]
BARS = ["x low", "x high", "y low", "y high"]


def write_numbers(figure: Figure, path: str) -> None:
    """Write every curve, point, bar and step of a figure: panel, series, x, y.

    Where points have error bars, their ends are further columns. Lines across a whole panel show
    no data, and bands are left to a table of the chapter's own. A panel is named by its title, a
    series by its entry in the legend.
    """
    drawn = [
        (axes.get_title() or f"panel {number}", name, columns)
        for number, axes in enumerate(figure.axes, start=1)
        for name, columns in _series(axes)
    ]
    bars = [bar for bar in BARS if any(bar in columns for _, _, columns in drawn)]
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

    errorbars = [one for one in axes.containers if isinstance(one, ErrorbarContainer)]
    data = {one.lines[0]: one for one in errorbars}
    caps = {cap for one in errorbars for cap in one.lines[1]}
    for line in axes.get_lines():
        if line not in caps and line.get_transform() == axes.transData:
            places = {"x": line.get_xdata(), "y": line.get_ydata()}
            bars = _ends(data[line]) if line in data else {}
            yield _name(data.get(line, line)), places | bars
    for points in axes.collections:
        if isinstance(points, PathCollection):
            x, y = np.ma.getdata(points.get_offsets()).T
            yield _name(points), {"x": x, "y": y}
    for container in axes.containers:
        if isinstance(container, BarContainer):
            yield _name(container), _bars(container)
    for patch in axes.patches:
        if isinstance(patch, StepPatch):
            values, edges, _ = patch.get_data()
            yield _name(patch), {"x": edges[:-1], "y": values}


def _bars(container: BarContainer) -> Series:
    """The lengths of bars, against the middles of their feet."""
    middles = np.array([bar.get_center() for bar in container]).reshape(-1, 2)
    if container.orientation == "horizontal":
        return {"x": [bar.get_width() for bar in container], "y": middles[:, 1]}
    return {"x": middles[:, 0], "y": [bar.get_height() for bar in container]}


def _ends(container: ErrorbarContainer) -> Series:
    """The lower and upper ends of the error bars, along x, y or both."""
    along = [name for name, has in (("x", container.has_xerr), ("y", container.has_yerr)) if has]
    found: Series = {}
    for name, bars in zip(along, container.lines[2], strict=True):
        ends = np.array([bar.vertices for bar in bars.get_paths()])[:, :, "xy".index(name)]
        found |= {f"{name} low": ends[:, 0], f"{name} high": ends[:, 1]}
    return found


def _name(artist: Any) -> str:
    label = str(artist.get_label())
    return "" if label.startswith("_") else label


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)
