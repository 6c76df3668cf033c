"""The figure of a sweep: AUC against advantage, also of a sweep that is half done.

What is missing is not drawn: a kind without runs, a setting whose advantage is not known yet, the
line of clean labels. The axis is logarithmic, with a bin of its own for an advantage of 0 at the
left and for an infinite one at the right, there with the fraction of labels revealed for certain.
Without colour, the curves of one mechanism are told apart by the number at their right end and by
the size of their markers.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import NullFormatter

from book.chapters import plots
from book.chapters.figures import TITLES
from book.chapters.plots import Options
from book.chapters.selection import LEAST_BAGS
from book.sweep.grid import CLEAN
from labelaudit.checks import Floats
from labelaudit.mechanisms import KINDS

ADVANTAGES = {
    "additive": "additive advantage",
    "multiplicative": "98th percentile of multiplicative advantage",
}
FAMILIES = {"bag_size": "k = {:.0f}", "epsilon": r"$\varepsilon$ = {:g}"}
MARKER = 4.5
# The markers of a family of curves grow from the first size to the last.
GROWTH = (3.0, 7.5)
# An advantage below this is drawn as 0: it is rounding, or nothing that a reader could act on.
SMALLEST = 1e-9
# Losses of AUC are spaced evenly below this, and by their logarithm above.
LEAST_LOSS = 0.01
# The width and height of a note on a figure, in points.
NOTE = (16.0, 9.5)
# Where a note may stand, from its point to the middle of its left edge, in points: best ones first.
OFFSETS = [(6.0, 0.0), (6.0, -4.0), (6.0, 4.0), (6.0, -8.0), (6.0, 8.0), (-4.0, -13.0)]
OFFSETS += [(-4.0, 13.0), (-18.0, 0.0)]
OFFSETS += [(x, y) for x in (12.0, 20.0, -24.0) for y in (-12.0, 12.0, -20.0, 20.0)]


class Note(NamedTuple):
    """A short text to the right of a point."""

    x: float
    y: float
    text: str
    colour: str


def tradeoff(chosen: pd.DataFrame, noisy: str, by: str) -> Figure:
    """AUC against both advantages, a row for each data set, from the rows of `select`.

    A curve for RR, one for LLP, and of the `noisy` kind one for each value of `by`, `"bag_size"` or
    `"epsilon"`.
    """
    if by not in FAMILIES:
        raise ValueError(f"by must be one of {', '.join(FAMILIES)}, not {by!r}")
    # The legend takes its height from all rows; one alone must be taller.
    figure, axes = _both_advantages(chosen, 3.0 if chosen["dataset"].nunique() > 1 else 4.0)
    notes: dict[Axes, list[Note]] = {}
    for axis, rows, measure in axes:
        bins = Bins.of(rows[measure])
        for auc in rows.loc[rows["kind"] == CLEAN, "auc"]:
            axis.axhline(auc, color="black", linestyle=":", linewidth=1.2, label="clean labels")
        for kind in ("RR", "LLP"):
            points = rows[rows["kind"] == kind]
            drawn = _draw(axis, points, measure, bins, KINDS[kind].colour, kind)
            notes.setdefault(axis, []).extend(drawn)
        groups = list(rows[rows["kind"] == noisy].groupby(by))
        example = KINDS[noisy].make(**dict.fromkeys(KINDS[noisy].parameters, 1))
        shades = plots.shades(example, len(groups)) if groups else []
        growth = np.linspace(*GROWTH, len(groups)) if len(groups) > 1 else [MARKER] * len(groups)
        for (value, points), shade, size in zip(groups, shades, growth, strict=True):
            label = f"{noisy}, {FAMILIES[by].format(value)}"
            notes[axis] += _draw(axis, points, measure, bins, shade, label, size, f"{value:g}")
        hollow: Options = {"color": "black", "markerfacecolor": "white", "markersize": MARKER}
        axis.plot([], [], "o", label=f"hollow: fewer than {LEAST_BAGS:,} bags", **hollow)
        bins.set_scale(axis)
        scale_by_loss(axis, rows)
    fullest = max(figure.axes, key=lambda axis: len(axis.get_legend_handles_labels()[1]))
    plots.legend(figure, fullest)
    if chosen["dataset"].str.endswith("-like").any():
        plots.simulated(figure, "simulated data")
    # Which notes would overlap is known only after the layout.
    figure.draw_without_rendering()
    for axis, texts in notes.items():
        _write_notes(axis, texts)
    return figure


def scale_by_loss(axes: Axes, rows: pd.DataFrame) -> None:
    """Space AUC by the logarithm of what is lost against clean labels, if they were trained on.

    Most settings are near clean labels and a few far below, so equal steps of AUC show neither.
    """
    clean = rows.loc[rows["kind"] == CLEAN, "auc"].max()
    if not np.isfinite(clean):
        return
    top = clean + max(LEAST_LOSS, 1.5 * (rows["auc"].max() - clean))
    axes.set_yscale(
        "function",
        functions=(lambda auc: -np.log(np.maximum(top - auc, 1e-9)), lambda y: top - np.exp(-y)),
    )
    lowest = (rows["auc"] - rows["reach"].fillna(0)).min()
    axes.set_ylim(lowest - 0.01, top - 0.65 * (top - clean))
    losses = [loss for loss in (0.2, 0.1, 0.05, 0.02, 0.01, 0.005) if clean - loss > lowest]
    ticks = {clean - loss: f"−{loss:g}" for loss in losses} | {clean: f"{clean:.3f}"}
    axes.set_yticks(list(ticks), list(ticks.values()))


class Bins(NamedTuple):
    """A logarithmic axis from `low` to `high`, with a bin at either end for 0 and for infinity."""

    low: float
    high: float
    zero: bool
    infinite: bool

    @classmethod
    def of(cls, values: pd.Series) -> Bins:
        """The axis that shows all values; the smallest that has no bin is `SMALLEST`."""
        finite = values[np.isfinite(values) & (values > SMALLEST)]
        low, high = (finite.min(), finite.max()) if len(finite) else (0.1, 1.0)
        return cls(
            low / 1.4, high * 1.4, bool((values <= SMALLEST).any()), bool((values == np.inf).any())
        )

    @property
    def width(self) -> float:
        """The factor between the ends of a bin: a ninth of the axis between the bins."""
        return float((self.high / self.low) ** (1 / 9))

    def positions(self, values: pd.Series) -> pd.Series:
        """Where values are drawn: zero and infinite ones in the middle of their bins."""
        middle = self.width**0.5
        drawn = values.mask(values <= SMALLEST, self.low / middle)
        return drawn.mask(values == np.inf, self.high * middle)

    def set_scale(self, axes: Axes) -> None:
        """Set scale, limits and ticks, with a line where a bin begins."""
        axes.set_xscale("log")
        low = self.low / (self.width if self.zero else 1)
        high = self.high * (self.width if self.infinite else 1)
        axes.set_xlim(low, high)
        # A number beside a bin would touch the bin's own.
        space = self.width**0.4
        tens = 10.0 ** np.arange(-9, 4)
        for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)):
            every = np.sort(np.outer(tens, steps).ravel())
            inside = every[(every >= self.low * space) & (every <= self.high / space)]
            if len(inside) > 1:
                break
        shown = inside[:: max(1, -(-len(inside) // 5))]
        ticks = {tick: f"{tick:g}".replace("e-0", "e-") for tick in shown}
        middle = self.width**0.5
        for present, edge, position, text in (
            (self.zero, self.low, self.low / middle, "0"),
            (self.infinite, self.high, self.high * middle, "∞"),
        ):
            if present:
                axes.axvline(edge, color="grey", linewidth=0.8)
                ticks[position] = text
        axes.set_xticks(list(ticks), list(ticks.values()))
        axes.xaxis.set_minor_formatter(NullFormatter())


def _both_advantages(chosen: pd.DataFrame, height: float) -> tuple[Figure, list[Any]]:
    """A row for each data set, a column for each measure; (axes, rows, measure) for each."""
    names = list(dict.fromkeys(chosen["dataset"]))
    figure, axes = plots.grid(len(names), 2, width=4.7, height=height)
    cells = []
    for row, name in enumerate(names):
        axes[row, 0].set_ylabel(f"{TITLES.get(name, name)}: AUC on test")
        rows = chosen[chosen["dataset"] == name]
        cells += [(axes[row, at], rows, measure) for at, measure in enumerate(ADVANTAGES)]
    for axis, text in zip(axes[-1], ADVANTAGES.values(), strict=True):
        axis.set_xlabel(text)
    return figure, cells


def _draw(
    axes: Axes,
    points: pd.DataFrame,
    measure: str,
    bins: Bins,
    colour: str,
    label: str,
    size: float = MARKER,
    end: str = "",
) -> list[Note]:
    """Draw a curve with error bars, and return the notes beside it.

    Those are the fraction revealed for certain at infinity, and `end` where the finite part ends.
    """
    known = points[points[measure].notna()]
    if known.empty:
        return []
    kind = KINDS[known["kind"].iloc[0]]
    infinite = np.isinf(known[measure])
    known = known.assign(x=bins.positions(known[measure])).sort_values("x")
    style: Options = {"color": colour, "marker": kind.marker, "markersize": size, "capsize": 2}
    for part, line in ((~infinite, kind.dashes), (infinite, "none")):
        points = known[part.reindex(known.index)]
        bars = points["reach"].fillna(0)
        name = label if line != "none" or infinite.all() else None
        lines: Options = {"linestyle": line, "linewidth": 1.5, "elinewidth": 0.8, "label": name}
        if len(points):
            axes.errorbar(points["x"], points["auc"], bars, **style, **lines)
    small = known[known["trained_bags"] < LEAST_BAGS]
    hollow: Options = {"markerfacecolor": "white", "markeredgecolor": colour, "markersize": size}
    axes.plot(small["x"], small["auc"], kind.marker, linestyle="none", zorder=5, **hollow)
    revealed = known[infinite.reindex(known.index)]
    notes = [
        Note(point["x"], point["auc"], f"{point['infinite_share']:.0%}", colour)
        for _, point in revealed.iterrows()
    ]
    for _, last in known.drop(revealed.index).tail(1).iterrows():
        notes += [Note(last["x"], last["auc"], end, "black")] * bool(end)
    return notes


def _write_notes(axes: Axes, notes: list[Note]) -> None:
    """Write the notes where no marker and no other note hides them.

    A percentage stays to the right of its point, in the order of the points. Another note goes
    where the fewest markers and lines are; a thin line leads back from one that is far away.
    """
    scale = 72 / axes.figure.dpi
    points, lines = (scale * part for part in _obstacles(axes))
    taken: list[tuple[float, float]] = []

    def clashes(left: float, middle: float) -> int:
        def inside(obstacles: Floats, margin: float) -> int:
            x, y = obstacles[:, 0] - left, np.abs(obstacles[:, 1] - middle)
            near = (x > -margin) & (x < NOTE[0] + margin) & (y < NOTE[1] / 2 + margin)
            return int(near.sum())

        beside = [abs(left - x) < NOTE[0] and abs(middle - y) < NOTE[1] for x, y in taken]
        beside += [middle - NOTE[1] / 2 < scale * axes.bbox.y0, left < scale * axes.bbox.x0]
        return 100 * sum(beside) + 10 * inside(points, 2.5) + inside(lines, 0)

    notes = sorted(notes, key=lambda note: note.y)
    fractions = [note for note in notes if "%" in note.text]
    positions = [scale * axes.transData.transform(note[:2]) for note in fractions]
    heights = _apart([y for _, y in positions])
    for note, (x, y), height in zip(fractions, positions, heights, strict=True):
        taken.append((x + 5, height))
        _write_note(axes, note, (5, height - y))
    for note in notes:
        if note not in fractions:
            x, y = scale * axes.transData.transform(note[:2])
            offset = min(OFFSETS, key=lambda offset: clashes(x + offset[0], y + offset[1]))
            taken.append((x + offset[0], y + offset[1]))
            _write_note(axes, note, offset)


def _apart(heights: list[float]) -> list[float]:
    """Sorted heights, moved up and down until notes there do not overlap.

    >>> _apart([0.0, 1.0, 40.0])
    [-4.25, 5.25, 40.0]
    """
    up, down = list(heights), list(heights)
    for index in range(1, len(heights)):
        up[index] = max(up[index], up[index - 1] + NOTE[1])
        down[-1 - index] = min(down[-1 - index], down[-index] - NOTE[1])
    return [(high + low) / 2 for high, low in zip(up, down, strict=True)]


def _obstacles(axes: Axes) -> tuple[Floats, Floats]:
    """The markers of a figure, and points along its lines and bars, in pixels."""
    points, steps = [np.empty((0, 2))], [np.empty((0, 2))]
    for line in axes.get_lines():
        path = line.get_transform().transform(np.column_stack(line.get_data()).astype(float))
        if line.get_marker() not in ("None", "_", "|"):
            points.append(path)
        if line.get_linestyle() != "None":
            steps += [np.linspace(start, end, 40) for start, end in itertools.pairwise(path)]
    for bars in axes.collections:
        ends = [bars.get_transform().transform(path.vertices) for path in bars.get_paths()]
        steps += [np.linspace(path[0], path[-1], 20) for path in ends]
    return np.concatenate(points), np.concatenate(steps)


def _write_note(axes: Axes, note: Note, offset: tuple[float, float]) -> None:
    """Write a note `offset` points from its point."""
    style: Options = {"fontsize": 9, "color": note.colour, "zorder": 6, "va": "center"}
    style |= {"xytext": offset, "textcoords": "offset points", "annotation_clip": False}
    if max(abs(offset[0]) / 2, abs(offset[1])) > NOTE[1] / 2:
        style["arrowprops"] = {"arrowstyle": "-", "linewidth": 0.6, "color": note.colour}
    written = axes.annotate(note.text, note[:2], **style)
    written.set_path_effects([withStroke(linewidth=2, foreground="white")])
