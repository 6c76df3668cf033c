"""Every number of an audit: as JSON, and as data frames."""

from __future__ import annotations

import dataclasses
import json
import math
import platform
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelaudit.report.attack import MOST_RECORDS, Exposure, rounds_for
from labelaudit.report.decisions import Advice, Decision
from labelaudit.report.plan import Setting, Target
from labelaudit.report.utility import Utility

if TYPE_CHECKING:
    import pandas

    from labelaudit.report.steps import Report


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
GROUPS = {
    "setting": "setting", "group": "group", "records": "records", "positive": "positive",
    "plug_in": "plug-in", "realised": "realised", "realised_error": "error",
    "revealed": "revealed", "label_advantage": "label advantage",
}  # fmt: skip


def frame(name: str, rows: Sequence[Any]) -> pandas.DataFrame:
    """One of the tables of `COLUMNS`."""
    import pandas

    columns = {title: attrgetter(path) for title, path in COLUMNS[name].items()}
    return pandas.DataFrame({title: list(map(get, rows)) for title, get in columns.items()})


class SavedReport:
    """A report that can be saved."""

    def save(self, path: str | Path = "report.html") -> Path:
        """Write the page, and beside it every number as JSON; returns the page's path."""
        from labelaudit.report.page import write_both

        return write_both(self, Path(path))


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecidedReport(SavedReport):
    """A report with a decision on each setting.

    `headline` says what to publish, `reasons` why, `warnings` what is wrong with the table or with
    eta.
    """

    target: Target
    decisions: tuple[Decision, ...]
    utilities: tuple[Utility, ...]
    advices: tuple[Advice, ...]
    headline: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    made: str
    command: str = ""

    @property
    def verdicts(self) -> pandas.DataFrame:
        """For each setting whether it meets the target, why, what it proves and guarantees."""
        columns = ["verdict", "why", "plug-in", "realised", "revealed", "epsilon"]
        return frame("attack", self.decisions).set_index("setting")[columns]


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
    groups = pandas.DataFrame(report.groups, columns=list(GROUPS)).rename(columns=GROUPS)
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


# Keys of the JSON file whose values are attributes of the report.
ATTRIBUTES = {
    "plan": "plan", "target": "target", "summary": "summary", "headline": "headline",
    "reasons": "reasons", "warnings": "warnings", "at_stake": "at_stake",
    "eta_histogram": "histogram", "utility": "utilities", "knowing_more": "knowing",
    "drawn_again": "drawn_again", "most_exposed": "exposed", "groups": "groups", "bags": "bags",
    "made": "made", "command": "command",
}  # fmt: skip


def as_json(report: Any) -> str:
    """Every number of a report. Infinite values are the text "inf", undefined ones null."""
    values = plain(report.values) | {"versions": versions()}
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
        {"family": advice.kind.title, **_recommended(advice.decision), "text": advice.text}
        | {"own_bags": _recommended(advice.own_bags) if advice.own_bags else None}
        for advice in report.advices
    ]
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


def made_at() -> str:
    """The time of now, for the page."""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


def versions() -> dict[str, str]:
    """The versions of what the numbers depend on, as far as it is installed."""
    found = {"python": platform.python_version()}
    for name in ("labelaudit", "numpy", "scipy", "numba", "pandas", "scikit-learn"):
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _recommended(decision: Decision | None) -> dict[str, Any]:
    """The setting that is advised, if any, with its decision in the words of the page."""
    if decision is None:
        return {"setting": None, "verdict": None, "why": None}
    return {"setting": decision.exposure.title, "verdict": decision.word, "why": decision.why}


def decided(decision: Decision) -> dict[str, Any]:
    """An exposure and its verdict, for JSON."""
    return _exposure(decision.exposure) | {"verdict": decision.word, "why": decision.why}


def _exposure(exposure: Exposure) -> dict[str, Any]:
    setting = exposure.setting
    any_size = "bag_size" in setting.kind.parameters and "bag_size" not in dict(setting.parameters)
    return plain(exposure) | {
        "bag_size": None if any_size else setting.mechanism.bag_size,
        "epsilon": exposure.epsilon,
        "epsilon_checked": setting.checked,
        "contradicted": exposure.contradicted,
    }


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
