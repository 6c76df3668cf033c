"""The figure of a sweep: AUC against advantage, also of a sweep that is half done.

What is not there is not drawn: a kind without runs, a setting whose advantage is not known yet, the
line of clean labels. An infinite advantage stands at the right edge with an arrow and the share of
labels that are revealed for certain.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from labelaudit import plots
from labelaudit.learning.comparisons import LEAST_BAGS, SETTING, pareto
from labelaudit.learning.figures import TITLES
from labelaudit.learning.grid import KINDS
from labelaudit.mechanisms import Mechanism
from labelaudit.plots import Options

ADVANTAGES = {
    "additive": "additive advantage",
    "multiplicative": "98th percentile of multiplicative advantage",
}
FAMILIES = {"bag_size": "k = {:.0f}", "epsilon": "epsilon = {:g}"}


def tradeoff(chosen: pd.DataFrame, noisy: str, by: str) -> Figure:
    """AUC against both advantages, a column for each data set, from the rows of `select`.

    A curve for RR, one for LLP, and of the `noisy` kind one for each value of `by`, `"bag_size"` or
    `"epsilon"`.
    """
    if by not in FAMILIES:
        raise ValueError(f"by must be one of {', '.join(FAMILIES)}, not {by!r}")
    figure, axes = _both_advantages(chosen, 3.3)
    for axis, here, measure in axes:
        finite = here.loc[np.isfinite(here[measure]), measure]
        edge = 2 * finite.max() if (finite > 0).any() else 1.0
        for auc in here.loc[here["kind"] == "clean", "auc"]:
            axis.axhline(auc, color="black", linestyle=":", linewidth=1.2, label="clean labels")
        for kind in ("RR", "LLP"):
            colour = plots.look(_example(kind)).colour
            _drawn(axis, here[here["kind"] == kind], measure, edge, colour, kind)
        groups = list(here[here["kind"] == noisy].groupby(by))
        shades = plots.shades(_example(noisy), len(groups)) if groups else []
        for (value, points), shade in zip(groups, shades, strict=True):
            label = f"{noisy}, {FAMILIES[by].format(value)}"
            _drawn(axis, points, measure, edge, shade, label)
        hollow: Options = {"color": "black", "markerfacecolor": "white", "markersize": 4.5}
        axis.plot([], [], "o", label=f"hollow: fewer than {LEAST_BAGS:,} bags", **hollow)
        _scaled(axis, measure)
    fullest = max(figure.axes, key=lambda axis: len(axis.get_legend_handles_labels()[1]))
    plots.legend(figure, fullest)
    if chosen["dataset"].str.endswith("-like").any():
        plots.simulated(figure, "simulated data")
    return figure


def fronts(chosen: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Every setting with a known, finite advantage, the Pareto front as a line, and its table."""
    figure, axes = _both_advantages(chosen, 3.1)
    found = []
    for axis, here, measure in axes:
        points = here[np.isfinite(here[measure])]
        for kind, some in points.groupby("kind", sort=False):
            look = plots.look(_example(str(kind)))
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
    axes: Axes, points: pd.DataFrame, measure: str, edge: float, colour: str, label: str
) -> None:
    """A curve with error bars; what is infinite stands at the edge with an arrow and its share."""
    known = points[points[measure].notna()]
    if known.empty:
        return
    look = plots.look(_example(known["kind"].iloc[0]))
    infinite = np.isinf(known[measure])
    known = known.assign(place=known[measure].mask(infinite, edge)).sort_values("place")
    style: Options = {"color": colour, "marker": look.marker, "markersize": 4.5, "capsize": 2}
    for some, line in ((~infinite, look.dashes), (infinite, "none")):
        here = known[some.reindex(known.index)]
        bars = 2 * here["error"].fillna(0)
        name = label if line != "none" or infinite.all() else None
        lines: Options = {"linestyle": line, "linewidth": 1.5, "elinewidth": 0.8, "label": name}
        if len(here):
            axes.errorbar(here["place"], here["auc"], bars, **style, **lines)
    few = known[known["trained_bags"] < LEAST_BAGS]
    hollow: Options = {"markerfacecolor": "white", "markeredgecolor": colour, "markersize": 4.5}
    axes.plot(few["place"], few["auc"], look.marker, linestyle="none", zorder=5, **hollow)
    for _, point in known[infinite.reindex(known.index)].iterrows():
        where: Options = {"xytext": (5, 0), "textcoords": "offset points", "va": "center"}
        text = f"{point['infinite_share']:.0%} →"
        place = (edge, point["auc"])
        axes.annotate(text, place, fontsize=8, color=colour, annotation_clip=False, **where)


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
