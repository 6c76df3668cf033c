"""The numbers behind a figure, read from what it draws."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Series = tuple[str, Any, Any]


def write_numbers(figure: Figure, path: str) -> None:
    """Write every curve, point, upright bar and step of a figure: panel, series, x, y.

    Bands and error bars are left to a table of the chapter's own. A panel is named by its title,
    a series by its entry in the legend.
    """
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["panel", "series", "x", "y"])
        for number, axes in enumerate(figure.axes, start=1):
            panel = axes.get_title() or f"panel {number}"
            for name, horizontal, vertical in _series(axes):
                for x, y in zip(horizontal, vertical, strict=True):
                    writer.writerow([panel, name, *map(_short, (x, y))])


def _series(axes: Axes) -> Iterator[Series]:
    from matplotlib.collections import PathCollection
    from matplotlib.patches import Rectangle, StepPatch

    for line in axes.get_lines():
        yield _name(line), line.get_xdata(), line.get_ydata()
    for points in axes.collections:
        if isinstance(points, PathCollection):
            places = np.ma.getdata(points.get_offsets())
            yield _name(points), places[:, 0], places[:, 1]
    for container in axes.containers:
        bars = [bar for bar in getattr(container, "patches", ()) if isinstance(bar, Rectangle)]
        middles = [bar.get_x() + bar.get_width() / 2 for bar in bars]
        yield _name(container), middles, [bar.get_height() for bar in bars]
    for patch in axes.patches:
        if isinstance(patch, StepPatch):
            values, edges, _ = patch.get_data()
            yield _name(patch), edges[:-1], values


def _name(artist: Any) -> str:
    label = str(artist.get_label())
    return "" if label.startswith("_") else label


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)
