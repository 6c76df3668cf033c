"""The figures of an audit."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labelaudit import plots
from labelaudit.intervals import Interval
from labelaudit.mechanisms import KINDS

if TYPE_CHECKING:
    from labelaudit.auditing.report import Report

TARGET_COLOUR = "#a8320a"


def draw_calibration(report: "Report") -> Figure:
    """Fraction of ones against eta, with two standard errors, and how many records have which."""
    figure, axes = plots.grid(1, 2, width=3.6, height=3.4)
    diagram, histogram = axes[0]
    measured, blue = report.eta.tests[-1], KINDS["LLP"].colour
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


def draw_attack(report: "Report") -> Figure:
    """A line for each setting: its additive advantage, and |I| at the level of the audit."""
    settings, target = list(report.settings.itertuples()), report.target
    height = 0.9 + 0.2 * len(settings)
    figure, axes = plots.grid(1, 2, width=3.9, height=height, sharey=True)
    additive, multiplicative = axes[0]
    highs = [row.percentile_high for row in settings]
    highs.append(target.value if target.kind == "multiplicative" else 0.5)
    edge = 1.1 * max(high for high in highs if np.isfinite(high))
    for line, row in enumerate(settings):
        kind = row.setting.kind
        style = {"color": kind.colour, "marker": kind.marker, "linestyle": "none"}
        additive.plot([row.realised_low, row.realised_high], [line, line], color=kind.colour)
        additive.plot(row.realised, line, markersize=5, **style)
        additive.plot(row.plug_in, line, markersize=7, markerfacecolor="none", **style)
        ends = [min(row.percentile_low, edge), min(row.percentile_high, edge)]
        multiplicative.plot(ends, [line, line], color=kind.colour)
        style |= {"marker": ">"} if np.isinf(row.percentile) else {}
        multiplicative.plot(min(row.percentile, edge), line, markersize=5, **style)
    titles = [plots.literal(row.title) for row in settings]
    additive.set_yticks(range(len(settings)), titles, fontsize=9)
    additive.set(xlabel="additive advantage", ylim=(len(settings) - 0.4, -0.6))
    additive.locator_params(axis="x", nbins=5)
    additive.axvline(0, color="black", linewidth=0.8)
    multiplicative.set(xlabel=f"|I| at level {report.options.level:g}", xlim=(0, 1.03 * edge))
    limited = {"additive": additive, "multiplicative": multiplicative}.get(target.kind)
    if limited:
        limited.axvline(target.value, color=TARGET_COLOUR, linestyle="--")
    plots.simulated(figure, "simulated releases")
    return figure


def draw_utility(report: "Report") -> Figure:
    """AUC against realised advantage, with intervals; it says so where no model was trained."""
    rows = [row for row in report.settings.itertuples() if not np.isnan(row.auc)]
    figure, axes = plots.grid(1, 1, width=6.4, height=3.8)
    panel: Axes = axes[0, 0]
    panel.set(xlabel="realised additive advantage", ylabel="AUC")
    for kind in dict.fromkeys(setting.kind for setting in report.settings["setting"]):
        panel.plot([], [], kind.marker, color=kind.colour, label=plots.literal(kind.name))
    plots.legend(figure, panel)
    if np.isnan(report.clean.auc):
        panel.text(0.5, 0.5, "no model was trained", transform=panel.transAxes, ha="center")
        panel.set(xticks=[], yticks=[])
        return figure
    bottom, top = plots.useful_range([Interval.of(row, "auc") for row in (report.clean, *rows)])
    panel.set_ylim(bottom, top)
    panel.axhline(report.clean.auc, color="black", linestyle="--")
    for row in rows:
        kind, x = row.setting.kind, row.realised
        panel.errorbar(
            x, row.auc, _reach(Interval.of(row, "auc")), _reach(Interval.of(row, "realised")),
            fmt=kind.marker, color=kind.colour, elinewidth=0.8, markersize=5,
        )  # fmt: skip
        if row.auc_low < bottom:
            panel.plot(x, bottom, "v", color=kind.colour, clip_on=False)
        if row.auc_high > top:
            panel.plot(x, top, "^", color=kind.colour, clip_on=False)
    plots.spread([row.realised for row in rows], panel)
    plots.simulated(figure, "simulated releases")
    return figure


def _reach(interval: Interval) -> list[list[float]]:
    return [[interval.value - interval.low], [interval.high - interval.value]]
