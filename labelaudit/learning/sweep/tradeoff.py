"""The figure of a sweep: AUC against advantage, also of a sweep that is half done.

What is not there is not drawn: a kind without runs, a setting whose advantage is not known yet, the
line of clean labels. An infinite advantage stands at the right edge with an arrow and the share of
labels that are revealed for certain. In grey the curves of one mechanism are known by the number at
their right end, and by the size of their markers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import NullFormatter

from labelaudit import plots
from labelaudit.learning.figures import TITLES
from labelaudit.learning.sweep.comparisons import LEAST_BAGS, SETTING, pareto
from labelaudit.learning.sweep.grid import KINDS
from labelaudit.mechanisms import Mechanism
from labelaudit.plots import Options

ADVANTAGES = {
    "additive": "additive advantage",
    "multiplicative": "98th percentile of multiplicative advantage",
}
FAMILIES = {"bag_size": "k = {:.0f}", "epsilon": r"$\varepsilon$ = {:g}"}
MARKER = 4.5
# The markers of a family of curves grow from the first size to the last.
GROWTH = (3.0, 7.5)
# A note on a figure takes so many points, across and down.
NOTE = (16.0, 9.5)


class Note(NamedTuple):
    """A few characters to the right of a point."""

    x: float
    y: float
    text: str
    colour: str


def tradeoff(chosen: pd.DataFrame, noisy: str, by: str) -> Figure:
    """AUC against both advantages, a column for each data set, from the rows of `select`.

    A curve for RR, one for LLP, and of the `noisy` kind one for each value of `by`, `"bag_size"` or
    `"epsilon"`.
    """
    if by not in FAMILIES:
        raise ValueError(f"by must be one of {', '.join(FAMILIES)}, not {by!r}")
    figure, axes = _both_advantages(chosen, 3.3)
    notes: dict[Axes, list[Note]] = {}
    for axis, here, measure in axes:
        finite = here.loc[np.isfinite(here[measure]), measure]
        edge = 2 * finite.max() if (finite > 0).any() else 1.0
        for auc in here.loc[here["kind"] == "clean", "auc"]:
            axis.axhline(auc, color="black", linestyle=":", linewidth=1.2, label="clean labels")
        for kind in ("RR", "LLP"):
            colour = plots.kind_of(_example(kind)).colour
            points = here[here["kind"] == kind]
            notes.setdefault(axis, []).extend(_drawn(axis, points, measure, edge, colour, kind))
        groups = list(here[here["kind"] == noisy].groupby(by))
        shades = plots.shades(_example(noisy), len(groups)) if groups else []
        growth = np.linspace(*GROWTH, len(groups)) if len(groups) > 1 else [MARKER] * len(groups)
        for (value, points), shade, size in zip(groups, shades, growth, strict=True):
            label = f"{noisy}, {FAMILIES[by].format(value)}"
            notes[axis] += _drawn(axis, points, measure, edge, shade, label, size, f"{value:g}")
        hollow: Options = {"color": "black", "markerfacecolor": "white", "markersize": MARKER}
        axis.plot([], [], "o", label=f"hollow: fewer than {LEAST_BAGS:,} bags", **hollow)
        _scaled(axis, measure)
    fullest = max(figure.axes, key=lambda axis: len(axis.get_legend_handles_labels()[1]))
    plots.legend(figure, fullest)
    if chosen["dataset"].str.endswith("-like").any():
        plots.simulated(figure, "simulated data")
    # Only after the layout is it known which notes would lie on each other.
    figure.draw_without_rendering()
    for axis, some in notes.items():
        _noted(axis, some)
    return figure


def fronts(chosen: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Every setting with a known, finite advantage, the Pareto front as a line, and its table."""
    figure, axes = _both_advantages(chosen, 3.1)
    found = []
    for axis, here, measure in axes:
        points = here[np.isfinite(here[measure])]
        for kind, some in points.groupby("kind", sort=False):
            look = plots.kind_of(_example(str(kind)))
            style: Options = {"color": look.colour, "markersize": 4.5, "label": kind}
            axis.plot(some[measure], some["auc"], look.marker, **style)
        best = points[pareto(points[measure], points["auc"])].sort_values(measure)
        axis.step(best[measure], best["auc"], where="post", color="black", linewidth=1.2, zorder=0)
        _scaled(axis, measure)
        found.append(best.assign(measure=measure))
    plots.legend(figure, figure.axes[0])
    columns = ["measure", *SETTING, *ADVANTAGES, "auc", "error"]
    return figure, pd.concat(found)[columns]


def _both_advantages(chosen: pd.DataFrame, height: float) -> tuple[Figure, list[Any]]:
    """A column for each data set, a row for each measure; (axes, rows, measure) for each."""
    names = list(dict.fromkeys(chosen["dataset"]))
    figure, axes = plots.grid(2, len(names), width=4.4, height=height)
    cells = []
    for column, name in enumerate(names):
        axes[0, column].set_title(TITLES.get(name, name))
        here = chosen[chosen["dataset"] == name]
        cells += [(axes[row, column], here, one) for row, one in enumerate(ADVANTAGES)]
    for axis in axes[:, 0]:
        axis.set_ylabel("AUC on test")
    return figure, cells


def _drawn(
    axes: Axes,
    points: pd.DataFrame,
    measure: str,
    edge: float,
    colour: str,
    label: str,
    size: float = MARKER,
    end: str = "",
) -> list[Note]:
    """A curve with error bars; what is infinite stands at the edge. What is to be written beside.

    That is an arrow and the share at infinity, and `end` where the finite part of the curve ends.
    """
    known = points[points[measure].notna()]
    if known.empty:
        return []
    look = plots.kind_of(_example(known["kind"].iloc[0]))
    infinite = np.isinf(known[measure])
    known = known.assign(place=known[measure].mask(infinite, edge)).sort_values("place")
    style: Options = {"color": colour, "marker": look.marker, "markersize": size, "capsize": 2}
    for some, line in ((~infinite, look.dashes), (infinite, "none")):
        here = known[some.reindex(known.index)]
        bars = 2 * here["error"].fillna(0)
        name = label if line != "none" or infinite.all() else None
        lines: Options = {"linestyle": line, "linewidth": 1.5, "elinewidth": 0.8, "label": name}
        if len(here):
            axes.errorbar(here["place"], here["auc"], bars, **style, **lines)
    few = known[known["trained_bags"] < LEAST_BAGS]
    hollow: Options = {"markerfacecolor": "white", "markeredgecolor": colour, "markersize": size}
    axes.plot(few["place"], few["auc"], look.marker, linestyle="none", zorder=5, **hollow)
    revealed = known[infinite.reindex(known.index)]
    notes = [
        Note(edge, one["auc"], f"{one['infinite_share']:.0%} →", colour)
        for _, one in revealed.iterrows()
    ]
    for _, last in known.drop(revealed.index).tail(1).iterrows():
        notes += [Note(last["place"], last["auc"], end, "black")] * bool(end)
    return notes


def _noted(axes: Axes, notes: list[Note]) -> None:
    """Write the notes, each above those it would lie on."""
    taken: list[tuple[float, float]] = []
    scale = 72 / axes.figure.dpi
    for note in sorted(notes, key=lambda note: note.y):
        across, place = scale * axes.transData.transform((note.x, note.y))
        up = place
        for x, y in sorted(taken, key=lambda one: one[1]):
            if abs(across - x) < NOTE[0] and abs(up - y) < NOTE[1]:
                up = y + NOTE[1]
        taken.append((across, up))
        where: Options = {"xytext": (5, up - place), "textcoords": "offset points", "va": "center"}
        look: Options = {"fontsize": 9, "color": note.colour, "annotation_clip": False, "zorder": 6}
        written = axes.annotate(note.text, note[:2], **look, **where)
        written.set_path_effects([withStroke(linewidth=2, foreground="white")])


def _scaled(axes: Axes, measure: str) -> None:
    """Logarithms, and a place for an additive advantage of exactly 0."""
    if measure == "multiplicative":
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    else:
        axes.set_xscale("symlog", linthresh=1e-4)
        axes.set_xlim(left=-2e-5)
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(ADVANTAGES[measure])


def _example(kind: str) -> Mechanism:
    """A mechanism of that kind, for its look."""
    make, names = KINDS[kind]
    if make is None:
        raise ValueError(f"a kind of mechanism with a look must release something, not {kind!r}")
    return make(**dict.fromkeys(names, 1))
