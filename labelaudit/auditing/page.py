"""What an audit leaves behind: one HTML page with its figures, every number as JSON, data frames.

The page needs no other file: no script, no network. Figures have white and opaque grounds, so that
they read on a dark page, and each mechanism its colour and marker.
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import platform
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from labelaudit.auditing import words
from labelaudit.auditing.attack import MOST_RECORDS, MOST_WITH_MATRIX, SURE, Exposure, rounds_for
from labelaudit.auditing.decisions import (
    COMPARABLE,
    MATERIAL,
    MOST_PROVEN,
    Decision,
    Recommendation,
)
from labelaudit.auditing.eta import FOLDS, MATTERS
from labelaudit.auditing.intervals import COVERAGE, Interval
from labelaudit.auditing.plan import Setting
from labelaudit.auditing.scenarios import LEAST_IN_GROUP, MOST_WITH_KNOWN
from labelaudit.auditing.utility import MOST_ROWS
from labelaudit.files import write_atomically
from labelaudit.mechanisms import KINDS

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from labelaudit.auditing.audit import Report

# The version of the names in the JSON file: it grows where one of them changes its meaning.
SCHEMA = 1
# Features named on the page; the JSON file has all.
MOST_NAMED = 30
TARGET_COLOUR = "#a8320a"
# A mechanism may be named by the path of its file; the axes need their room.
MOST_LETTERS = 40
# An interval this many times as long as usual is cut at the edge of its axis.
LONGEST = 1.5
# The columns of each table, and the attributes of a row that hold them.
COLUMNS = {
    "attack": {
        "setting": "exposure.title", "plug-in": "exposure.plug_in.value",
        "realised": "exposure.realised.value", "low": "exposure.realised.low",
        "high": "exposure.realised.high", "revealed": "exposure.revealed.value",
        "|I|": "exposure.percentile.value", "|I| low": "exposure.percentile.low",
        "|I| high": "exposure.percentile.high", "verdict": "word", "why": "why",
        "epsilon": "exposure.guarantee",
    },
    "by_label": {
        "label": "label", "gain": "gain.value", "error": "gain.standard_error",
        "sure before": "sure_before.value", "sure after": "sure_after.value",
    },
    "knowing": {
        "setting": "setting.title", "members known": "known", "releases": "times",
        "epsilon": "epsilon", "advantage": "advantage.value", "method": "method",
    },
    "drawn_again": {
        "setting": "setting.title", "releases": "times", "advantage": "advantage",
        "error": "error", "proven": "proven",
    },
    "utility": {
        "setting": "title", "worth": "worth", "AUC": "auc.value", "AUC low": "auc.low",
        "AUC high": "auc.high", "lost": "loss.value", "error": "loss.standard_error",
    },
}  # fmt: skip
# Those of the table by group, whose rows are dictionaries.
BY_GROUP = {
    "setting": "setting", "group": "group", "records": "records", "positive": "positive",
    "plug_in": "plug-in", "realised": "realised", "realised_error": "error",
    "revealed": "revealed", "label_advantage": "label advantage",
}  # fmt: skip
# Keys of the JSON file whose values are attributes of the report.
ATTRIBUTES = {
    "plan": "plan", "target": "target", "summary": "summary", "headline": "headline",
    "reasons": "reasons", "warnings": "warnings", "give_away": "give_away", "at_stake": "at_stake",
    "eta_histogram": "histogram", "utility": "utilities", "knowing_more": "knowing",
    "drawn_again": "drawn_again", "most_exposed": "exposed", "groups": "groups", "bags": "bags",
    "made": "made", "command": "command",
}  # fmt: skip


class SavedReport:
    """A report that can be saved."""

    def save(self, path: str | Path = "report.html") -> Path:
        """Write the page, and beside it every number as JSON; returns the page's path."""
        page = Path(path)
        if page.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"the page must be an .html file, not {page}")
        _write({page: as_html(self), page.with_suffix(".json"): as_json(self)})
        return page


def as_html(report: Any) -> str:
    """The whole page of a report: of a table, of a label with several classes, or of priors."""
    return environment().get_template(report.template).render(report=report)


def environment() -> Any:
    """The templates of the pages; every value is escaped unless it is marked as safe."""
    import markupsafe

    made = words.templates(autoescape=True)
    made.filters["svg"] = inline_svg
    made.globals |= {
        "words": words, "matters": MATTERS, "folds": FOLDS, "coverage": COVERAGE, "sure": SURE,
        "most_rows": MOST_ROWS, "most_named": MOST_NAMED, "most_with_known": MOST_WITH_KNOWN,
        "most_with_matrix": MOST_WITH_MATRIX, "least_in_group": LEAST_IN_GROUP,
        "material": MATERIAL, "comparable": COMPARABLE, "most_proven": MOST_PROVEN,
        "most_records": MOST_RECORDS, "rounds_for": rounds_for,
        "css": markupsafe.Markup((words.FOLDER / "report.css").read_text(encoding="utf-8")),
        "versions": ", ".join(f"{name} {version}" for name, version in versions().items()),
    }  # fmt: skip
    return made


def _write(texts: dict[Path, str]) -> None:
    """Write every file or none: each is renamed only after the next one is complete."""
    (path, text), *rest = texts.items()
    content = text.encode()

    def write(file: BinaryIO) -> None:
        file.write(content)
        if rest:
            _write(dict(rest))

    write_atomically(path, write)


def inline_svg(figure: Any, description: str) -> Any:
    """A figure as SVG within a page, with a description for those who cannot see it."""
    import markupsafe
    import matplotlib.pyplot as plt

    file = io.StringIO()
    # Letters stay text, which is lighter than outlines; the salt keeps ids of figures apart.
    style: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": description,
        "font.sans-serif": ["DejaVu Sans"],
    }
    with plt.rc_context(style):
        figure.savefig(file, format="svg", metadata={"Date": None})
    plt.close(figure)
    svg = file.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    # Nothing refers to the ids of groups, and every figure has the same ones.
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)
    width = 96 * figure.get_figwidth()
    # On a narrow screen it scrolls: smaller letters could not be read.
    attributes = markupsafe.Markup(
        '<svg role="img" aria-label="{}" style="max-width:{:.0f}px;min-width:{:.0f}px" '
    ).format(description, width, 0.85 * width)
    return markupsafe.Markup(svg.replace("<svg ", attributes, 1))


def as_json(report: Any) -> str:
    """Every number of a report. Infinite values are the text "inf", undefined ones null."""
    values = {"schema": SCHEMA} | plain(report.values) | {"versions": versions()}
    return json.dumps(values, indent=1, allow_nan=False) + "\n"


def values_of(report: Report) -> dict[str, Any]:
    """What the JSON file of an audited table holds."""
    table, estimates = report.table, report.estimates
    values: dict[str, Any] = {
        "data": {
            "file": table.name,
            "label": table.label,
            "positive_value": table.positive,
            "sha256": table.fingerprint,
            "rows": len(table),
            "positive": int(table.labels.sum()),
            "features": [column.name for column in table.columns],
            "notes": table.notes,
        }
    }
    values |= {key: getattr(report, name) for key, name in ATTRIBUTES.items()}
    values["advice"] = [
        {"family": advice.kind.title, **_advised(advice.decision), "text": advice.text}
        | {"own_bags": _advised(advice.own_bags) if advice.own_bags else None}
        for advice in report.advices
    ]
    values["recommended"] = [recommended(each) for each in report.recommended]
    eta = {"refitted": estimates.refitted, "recalibrated": estimates.recalibrated}
    values["calibration"] = plain(estimates.calibration) | {"sentence": report.eta_sentence} | eta
    values["settings"] = [decided(decision) for decision in report.decisions]
    values["given_bags"] = [
        {"given": decided(decision), "random": _exposure(comparison.random)}
        for comparison, decision in zip(report.own_bags, report.own_decisions, strict=True)
    ]
    values["attacked_in_each_refit"] = {
        "records": min(len(table), MOST_RECORDS),
        "times": rounds_for(len(table)),
    }
    return values | {"seconds": round(report.seconds, 1)}


def plain(value: Any) -> Any:
    """What JSON can hold: dataclasses as dictionaries, a setting as its title, no infinite number.

    >>> plain({"low": math.nan, "high": (1.0, math.inf)})
    {'low': None, 'high': [1.0, 'inf']}
    """
    if isinstance(value, Setting):
        return value.title
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        value = {name: getattr(value, name) for name in names}
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def decided(decision: Decision) -> dict[str, Any]:
    """An exposure and its verdict, for JSON."""
    verdict = {"verdict": decision.word, "rule": decision.rule, "why": decision.why}
    return _exposure(decision.exposure) | verdict


def recommended(recommendation: Recommendation) -> dict[str, Any]:
    """A setting to publish, for JSON."""
    return plain(recommendation) | _named(recommendation.setting)


def _named(setting: Setting) -> dict[str, Any]:
    """A mechanism as a user names it, and its parameters."""
    return {"mechanism": setting.kind.option, "parameters": dict(setting.parameters)}


def _exposure(exposure: Exposure) -> dict[str, Any]:
    setting = exposure.setting
    any_size = "bag_size" in setting.kind.parameters and "bag_size" not in dict(setting.parameters)
    return (
        plain(exposure)
        | _named(setting)
        | {
            "bag_size": None if any_size else setting.mechanism.bag_size,
            "epsilon": exposure.epsilon,
            "epsilon_checked": setting.checked,
            "contradicted": exposure.contradicted,
        }
    )


def _advised(decision: Decision | None) -> dict[str, Any]:
    """The setting that is advised, if any, with its decision in the words of the page."""
    if decision is None:
        return {"setting": None, "verdict": None, "why": None}
    return {"setting": decision.exposure.title, "verdict": decision.word, "why": decision.why}


def made_at() -> str:
    """The present time, as the page shows it."""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


def versions() -> dict[str, str]:
    """The versions of what the numbers depend on, as far as it is installed."""
    installed = {"python": platform.python_version()}
    for name in ("labelaudit", "numpy", "scipy", "numba", "pandas", "scikit-learn"):
        with suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    return installed


def tables(report: Report) -> dict[str, pandas.DataFrame]:
    """The tables behind the report's figures and sections, by name."""
    import pandas

    exposures = [decision.exposure for decision in report.decisions]
    by_label = frame("by_label", [part for each in exposures for part in each.by_label])
    by_label.insert(0, "setting", [each.title for each in exposures for _ in each.by_label])
    trained = [utility for utility in report.utilities if utility.auc]
    edges = np.linspace(0, 1, len(report.histogram) + 1)
    calibration = report.estimates.calibration
    names = ("predicted", "observed", "standard_error", "count")
    groups = pandas.DataFrame(report.groups, columns=list(BY_GROUP)).rename(columns=BY_GROUP)
    return {
        "attack": frame("attack", report.decisions).set_index("setting"),
        "by_label": by_label.set_index("setting"),
        "knowing": frame("knowing", report.knowing).set_index("setting"),
        "drawn_again": frame("drawn_again", report.drawn_again).set_index("setting"),
        "groups": groups.set_index("setting"),
        "utility": frame("utility", trained).set_index("setting"),
        "calibration": pandas.DataFrame({name: getattr(calibration, name) for name in names}),
        "histogram": pandas.DataFrame(
            {"from": edges[:-1], "to": edges[1:], "records": report.histogram}
        ),
    }


def frame(name: str, rows: Sequence[Any]) -> pandas.DataFrame:
    """One of the tables of `COLUMNS`."""
    import pandas

    columns = {title: attrgetter(path) for title, path in COLUMNS[name].items()}
    return pandas.DataFrame({title: list(map(get, rows)) for title, get in columns.items()})


def figures(report: Report) -> dict[str, Figure]:
    """Every figure of the page, by name; that of utility only where a model was trained."""
    made = {"calibration": draw_calibration(report), "attack": draw_attack(report)}
    if report.utilities[0].auc is not None:
        made["utility"] = draw_utility(report)
    return made


def draw_calibration(report: Report) -> Figure:
    """Fraction of ones against eta, with two standard errors, and how many records have which."""
    from labelaudit import plots

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


def draw_attack(report: Report) -> Figure:
    """A line for each setting: its additive advantage, and |I| at the level of the audit."""
    from labelaudit import plots

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
    additive.set_yticks(range(rows), [_literal(each.title) for each in exposures], fontsize=9)
    additive.set(xlabel="additive advantage", ylim=(rows - 0.4, -0.6))
    additive.locator_params(axis="x", nbins=5)
    additive.axvline(0, color="black", linewidth=0.8)
    multiplicative.set(xlabel=f"|I| at level {report.plan.level:g}", xlim=(0, 1.03 * edge))
    limited = {"additive": additive, "multiplicative": multiplicative}.get(target.kind)
    if limited:
        limited.axvline(target.value, color=TARGET_COLOUR, linestyle="--")
    plots.simulated(figure, "simulated releases")
    return figure


def draw_utility(report: Report) -> Figure:
    """AUC against realised advantage, with intervals; it says so where no model was trained."""
    from labelaudit import plots

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
    spread([d.exposure.realised.value for d in report.decisions if d.setting in areas], panel)
    plots.simulated(figure, "simulated releases")
    return figure


def spread(values: Sequence[float], panel: Axes) -> None:
    """Let the axis grow by factors where most advantages are far smaller than the greatest."""
    limit = float(f"{np.median(values):.0g}")
    if not 0 < limit < max(values) / 4:
        return
    panel.set_xscale("symlog", linthresh=limit)
    steps = np.outer(10.0 ** np.arange(-9, 1), [1, 2, 5]).ravel()
    ticks = [0.0, *(step for step in steps if limit / 2 <= step <= max(values))]
    panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.minorticks_off()
    panel.set_xlabel(f"{panel.get_xlabel()} (logarithmic beyond {limit:g})")


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


def _literal(name: str) -> str:
    """A name for a figure: short, no formula in dollars, a leading underscore kept in a legend.

    >>> _literal("$x$"), _literal("m" * 60).count("m")
    ('\\\\$x\\\\$', 39)
    """
    short = name if len(name) <= MOST_LETTERS else f"…{name[1 - MOST_LETTERS :]}"
    return ("\u200b" if short.startswith("_") else "") + short.replace("$", r"\$")
