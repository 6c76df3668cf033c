"""The figures of an audit, for its page and for chapter 14.

Grounds are white and opaque, so that figures read on a dark page. Each mechanism has its colour and
marker.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labelaudit import plots
from labelaudit.mechanisms import KINDS
from labelaudit.report.intervals import Interval
from labelaudit.report.steps import Report

TARGET_COLOUR = "#a8320a"
# A mechanism may be named by the path of its file; the axes need their room.
MOST_LETTERS = 40
# An interval this many times as long as usual is cut at the edge of its axis.
LONGEST = 1.5


def _literal(name: str) -> str:
    """A name for a figure: short, no formula in dollars, a leading underscore kept in a legend.

    >>> _literal("$x$"), _literal("m" * 60).count("m")
    ('\\\\$x\\\\$', 39)
    """
    short = name if len(name) <= MOST_LETTERS else f"…{name[1 - MOST_LETTERS :]}"
    return ("\u200b" if short.startswith("_") else "") + short.replace("$", r"\$")


def drawn(report: Report) -> dict[str, Figure]:
    """Every figure of the page, by name; that of utility only where a model was trained."""
    made = {"calibration": calibration(report), "attack": attack(report)}
    if report.utilities[0].auc is not None:
        made["utility"] = utility(report)
    return made


def calibration(report: Report) -> Figure:
    """Fraction of ones against eta, with two standard errors, and how many records have which."""
    figure, axes = plots.grid(1, 2, width=3.6, height=3.4)
    diagram, histogram = axes[0]
    measured, blue = report.estimates.calibration, KINDS["LLP"].colour
    top = min(1.1 * max(*measured.predicted, *measured.observed, 0.05), 1.05)
    diagram.plot([0, top], [0, top], color="black", linestyle=":")
    diagram.errorbar(
        measured.predicted,
        measured.observed,
        2 * np.array(measured.standard_error),
        fmt="o",
        color=blue,
        capsize=2,
    )
    diagram.set(xlabel="estimated eta", ylabel="fraction of ones", xlim=(0, top), ylim=(0, top))
    edges = np.linspace(0, 1, len(report.histogram) + 1)
    histogram.bar(
        edges[:-1], report.histogram, edges[1], align="edge", color=blue, edgecolor="white"
    )
    histogram.set(xlabel="estimated eta", ylabel="records", xlim=(0, 1))
    return figure


def attack(report: Report) -> Figure:
    """A line for each setting: its additive advantage, and |I| at the level of the audit."""
    exposures = [decision.exposure for decision in report.decisions]
    rows, target = len(exposures), report.target
    figure, axes = plots.grid(1, 2, width=3.9, height=0.9 + 0.2 * rows, sharey=True)
    additive, multiplicative = axes[0]
    highs = [exposure.percentile.high for exposure in exposures]
    highs.append(target.value if target.kind == "multiplicative" else 0.5)
    edge = 1.1 * max(high for high in highs if np.isfinite(high))
    for row, exposure in enumerate(exposures):
        kind, realised, percentile = exposure.setting.kind, exposure.realised, exposure.percentile
        style = {"color": kind.colour, "marker": kind.marker, "linestyle": "none"}
        additive.plot([realised.low, realised.high], [row, row], color=kind.colour)
        additive.plot(realised.value, row, markersize=5, **style)
        additive.plot(exposure.plug_in.value, row, markersize=7, markerfacecolor="none", **style)
        ends = [min(percentile.low, edge), min(percentile.high, edge)]
        multiplicative.plot(ends, [row, row], color=kind.colour)
        style |= {"marker": ">"} if np.isinf(percentile.value) else {}
        multiplicative.plot(min(percentile.value, edge), row, markersize=5, **style)
    additive.set_yticks(range(rows), [_literal(each.title) for each in exposures], fontsize=8)
    additive.set(xlabel="additive advantage", ylim=(rows - 0.4, -0.6))
    additive.axvline(0, color="black", linewidth=0.8)
    multiplicative.set(xlabel=f"|I| at level {report.plan.level:g}", xlim=(0, 1.03 * edge))
    limited = {"additive": additive, "multiplicative": multiplicative}.get(target.kind)
    if limited:
        limited.axvline(target.value, color=TARGET_COLOUR, linestyle="--")
    plots.simulated(figure, "simulated releases")
    return figure


def utility(report: Report) -> Figure:
    """AUC against realised advantage, with intervals; it says so where no model was trained."""
    areas = {each.setting: each.auc for each in report.utilities if each.auc is not None}
    figure, axes = plots.grid(1, 1, width=6.4, height=3.8)
    panel: Axes = axes[0, 0]
    panel.set(xlabel="realised additive advantage", ylabel="AUC")
    for kind in dict.fromkeys(decision.setting.kind for decision in report.decisions):
        panel.plot([], [], kind.marker, color=kind.colour, label=_literal(kind.name))
    plots.legend(figure, panel)
    if not areas:
        panel.text(0.5, 0.5, "no model was trained", transform=panel.transAxes, ha="center")
        panel.set(xticks=[], yticks=[])
        return figure
    bottom, top = useful_range([*areas.values()])
    panel.set_ylim(bottom, top)
    panel.axhline(areas[None].value, color="black", linestyle="--")
    for decision in report.decisions:
        if decision.setting in areas:
            kind, x, y = decision.setting.kind, decision.exposure.realised, areas[decision.setting]
            panel.errorbar(
                *(x.value, y.value, _reach(y), _reach(x)),
                fmt=kind.marker,
                color=kind.colour,
                elinewidth=0.8,
                markersize=5,
            )
            if y.low < bottom:
                panel.plot(x.value, bottom, "v", color=kind.colour, clip_on=False)
            if y.high > top:
                panel.plot(x.value, top, "^", color=kind.colour, clip_on=False)
    plots.simulated(figure, "simulated releases")
    return figure


def useful_range(intervals: Sequence[Interval]) -> tuple[float, float]:
    """An axis for all values and for intervals of usual length, so that none flattens the others.

    >>> usual = [Interval(value, 0.01, value - 0.02, value + 0.02) for value in (0.6, 0.7)]
    >>> low, high = useful_range([*usual, Interval(0.65, 0.3, 0.05, 1.0)])
    >>> round(low, 2), round(high, 2)
    (0.57, 0.73)
    """
    longest = LONGEST * float(np.median([each.high - each.low for each in intervals])) / 2
    low = min(max(each.low, each.value - longest) for each in intervals)
    high = max(min(each.high, each.value + longest) for each in intervals)
    room = max(0.05 * (high - low), 0.005)
    return low - room, high + room


def _reach(interval: Interval) -> list[list[float]]:
    return [[interval.value - interval.low], [interval.high - interval.value]]
