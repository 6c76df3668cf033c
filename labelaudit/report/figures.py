"""The figures of an audit, for its page and for chapter 14.

Grounds are white and opaque, so that figures read on a dark page. Each mechanism has its colour and
marker.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labelaudit import plots
from labelaudit.mechanisms import KINDS
from labelaudit.report.intervals import Interval
from labelaudit.report.steps import Report

DESCRIPTIONS = {
    "calibration": "On the left, the fraction of positive labels against estimated eta in groups of"
    " records; points on the diagonal are calibrated. On the right, the number of records by"
    " estimated eta, in twenty equal parts from 0 to 1.",
    "attack": "Every setting on a line. On the left its additive advantage: a hollow marker for"
    " what the estimate of eta promises, a filled one with its 95% interval for what the attack"
    " gained on the true labels. On the right its multiplicative advantage, an arrowhead where it"
    " is infinite.",
    "utility": "Area under the ROC curve of a model trained on each release, against the advantage"
    " that the release gives an attacker; the dashed line is the model trained on clean labels.",
}
TARGET_COLOUR = "#a8320a"
# A mechanism may be named by the path of its file; the axes need their room.
MOST_LETTERS = 40


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
    if None in areas:
        panel.axhline(areas[None].value, color="black", linestyle="--")
    for decision in report.decisions:
        kind = decision.setting.kind
        if decision.setting in areas:
            x, y = decision.exposure.realised, areas[decision.setting]
            panel.errorbar(
                *(x.value, y.value, _reach(y), _reach(x)),
                fmt=kind.marker,
                color=kind.colour,
                elinewidth=0.8,
                markersize=5,
            )
    for kind in dict.fromkeys(decision.setting.kind for decision in report.decisions):
        panel.plot([], [], kind.marker, color=kind.colour, label=_literal(kind.name))
    panel.set(xlabel="realised additive advantage", ylabel="AUC")
    plots.legend(figure, panel)
    if areas:
        plots.simulated(figure, "simulated releases")
    else:
        panel.text(0.5, 0.5, "no model was trained", transform=panel.transAxes, ha="center")
        panel.set(xticks=[], yticks=[])
    return figure


def _reach(interval: Interval) -> list[list[float]]:
    return [[interval.value - interval.low], [interval.high - interval.value]]
