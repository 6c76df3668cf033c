"""What an audit leaves behind: every number as a table, as JSON, on a page; what to publish."""

import dataclasses
import json
import math
import shlex
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
import pandas as pd

from labelaudit.auditing import words
from labelaudit.auditing.attack import MAX_RECORDS, rounds_for
from labelaudit.auditing.decisions import Choice, Recommendation
from labelaudit.auditing.eta import Eta
from labelaudit.auditing.given_bags import BagFacts
from labelaudit.auditing.options import Options, Target
from labelaudit.auditing.page import as_html, versions
from labelaudit.auditing.settings import Setting
from labelaudit.auditing.table import Table
from labelaudit.files import write_atomically
from labelaudit.intervals import Interval, Row, column_names

# The version of the names in the JSON file: it grows where one of them changes its meaning.
SCHEMA = 1
HISTOGRAM_BINS = 20
# Columns that JSON leaves out, since the setting says them.
HIDDEN = ("Index", "title", "kind")
# The columns of each table of a report, and what they are called there.
ATTACK = {
    "title": "setting", "plug_in": "plug-in", "realised": "realised", "realised_low": "low",
    "realised_high": "high", "revealed": "revealed", "percentile": "|I|",
    "percentile_low": "|I| low", "percentile_high": "|I| high", "verdict": "verdict", "why": "why",
    "guarantee": "epsilon",
}  # fmt: skip
KNOWING = {
    "title": "setting", "known": "members known", "times": "releases", "epsilon": "epsilon",
    "advantage": "advantage", "method": "method",
}  # fmt: skip
DRAWN_AGAIN = {
    "title": "setting", "times": "releases", "advantage": "advantage", "error": "error",
    "proven": "proven",
}  # fmt: skip
GROUPS = {
    "title": "setting", "group": "group", "records": "records", "positive": "positive",
    "plug_in": "plug-in", "realised": "realised", "realised_error": "error",
    "revealed": "revealed", "label_advantage": "label advantage",
}  # fmt: skip
UTILITY = {
    "title": "setting", "worth": "worth", "auc": "AUC", "auc_low": "AUC low",
    "auc_high": "AUC high", "loss": "lost", "loss_error": "error",
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class SavedReport:
    """A report that can be saved as a page with a JSON file beside it."""

    made: str
    command: str = ""
    template: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """What the JSON file holds."""
        raise NotImplementedError

    def save(self, path: str | Path = "report.html") -> Path:
        """Write the page, and beside it every number as JSON; returns the page's path."""
        page = Path(path)
        if page.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"the page must be an .html file, not {page}")
        _write({page: as_html(self), page.with_suffix(".json"): as_json(self)})
        return page


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Report(SavedReport):
    """Every number of an audit, and the advice that follows from them.

    `settings` has a row for each setting that was tried: numbers of the attack with errors and
    interval ends, verdict and reason, what it costs. `own_bags` and `random_bags` are about the
    table's own bags, where it has any, and random ones of the same sizes. `recommended` is what to
    publish, `choices` the least noisy setting of each mechanism. `headline` says what to publish,
    `reasons` why, `warnings` what is wrong with the table or with eta. Nothing is recommended where
    columns `give_away` the label. `exposed` are the most exposed records by title of a setting.
    """

    table: Table
    options: Options
    target: Target
    eta: Eta
    settings: pd.DataFrame
    clean: Row
    own_bags: pd.DataFrame
    random_bags: pd.DataFrame
    bags: BagFacts | None
    choices: tuple[Choice, ...]
    recommended: tuple[Recommendation, ...]
    give_away: tuple[str, ...]
    headline: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    exposed: dict[str, list[tuple[str, float]]]
    knowing: pd.DataFrame
    drawn_again: pd.DataFrame
    groups: pd.DataFrame
    seconds: float
    template = "report.html.j2"

    def __repr__(self) -> str:
        """The conclusion in a line; never a label, a feature or an id."""
        of = f"{len(self.table.classes)} classes, " if len(self.table.classes) > 2 else ""
        return f"<audit of {self.table.name}: {of}{len(self.settings)} settings. {self.headline}>"

    @property
    def summary(self) -> str:
        """What to publish, and why."""
        return " ".join((self.headline, *self.reasons))

    @cached_property
    def at_stake(self) -> float:
        """The most that any release can add to the attacker's accuracy."""
        return self.eta.at_stake(self.table.labels)

    @property
    def eta_sentences(self) -> tuple[str, ...]:
        """What the test of eta says, for each class that has a model."""
        limit = self.target.matters(self.at_stake)
        return tuple(
            words.sentence("eta_sentence", test, self.eta.recalibrated, limit)
            for test in self.eta.tests
        )

    @property
    def histogram(self) -> tuple[int, ...]:
        """How many records have an eta in each of twenty equal parts of [0, 1]."""
        counts, _ = np.histogram(self.eta.mean[:, -1], HISTOGRAM_BINS, (0, 1))
        return tuple(counts.tolist())

    @property
    def command_without(self) -> str:
        """The command again, without the columns that give the label away; empty if none does."""
        given = shlex.split(self.command)
        if not (given and self.give_away):
            return ""
        options = [f"--leave-out={name}" for name in self.give_away]
        options += [] if "--overwrite" in given else ["--overwrite"]
        end = given.index("--") if "--" in given else len(given)
        return shlex.join([*given[:end], *options, *given[end:]])

    @property
    def verdicts(self) -> pd.DataFrame:
        """For each setting whether it meets the target, why, what it proves and guarantees."""
        return self.tables["attack"][
            ["verdict", "why", "plug-in", "realised", "revealed", "epsilon"]
        ]

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables behind the report's figures and sections, by name."""
        trained = pd.concat([pd.DataFrame([self.clean]), self.settings])
        trained = trained[trained["auc"].notna()]
        calibration, edges = self.eta.tests[-1], np.linspace(0, 1, HISTOGRAM_BINS + 1)
        names = ("predicted", "observed", "standard_error", "count")
        return {
            "attack": _renamed(self.settings, ATTACK),
            "by_label": self._by_label(),
            "knowing": _renamed(self.knowing, KNOWING),
            "drawn_again": _renamed(self.drawn_again, DRAWN_AGAIN),
            "groups": _renamed(self.groups, GROUPS),
            "utility": _renamed(trained, UTILITY),
            "calibration": pd.DataFrame({name: getattr(calibration, name) for name in names}),
            "histogram": pd.DataFrame(
                {"from": edges[:-1], "to": edges[1:], "records": self.histogram}
            ),
        }

    def _by_label(self) -> pd.DataFrame:
        of_labels = []
        for label in range(len(self.table.classes)):
            names = {
                f"gain_{label}": "gain", f"gain_{label}_error": "error",
                f"sure_before_{label}": "sure before", f"sure_after_{label}": "sure after",
            }  # fmt: skip
            of_label = self.settings[["title", *names]].rename(columns={"title": "setting"} | names)
            of_label.insert(1, "label", label)
            of_labels.append(of_label)
        return pd.concat(of_labels).sort_index(kind="stable").set_index("setting")

    def to_dict(self) -> dict[str, Any]:
        """What the JSON file holds."""
        table, number = self.table, len(self.table.classes)
        costs = [self.clean, *self.settings.itertuples()]
        pairs = zip(self.own_bags.itertuples(), self.random_bags.itertuples(), strict=True)
        data: dict[str, Any] = {
            "file": table.name,
            "label": table.label,
            "positive_value": table.positive,
        }
        data |= {"sha256": table.fingerprint, "rows": len(table), "notes": table.notes}
        data["positive"] = int((table.labels == number - 1).sum())
        data["features"] = [column.name for column in table.columns]
        values: dict[str, Any] = {
            "data": data,
            "classes": table.classes,
            "rows": len(table),
            "plan": self.options,
            "eta_histogram": self.histogram,
            "utility": [_cost(row) for row in costs],
            "knowing_more": [nested(row) for row in self.knowing.itertuples()],
            "drawn_again": [nested(row) for row in self.drawn_again.itertuples()],
            "most_exposed": {
                title: [{"id": name, "advantage": advantage} for name, advantage in records]
                for title, records in self.exposed.items()
            },
            "groups": [nested(row) for row in self.groups.itertuples()],
            "advice": [_advice(choice) for choice in self.choices],
            "recommended": [plain(each) | _named(each.setting) for each in self.recommended],
            "calibration": self._calibrations(),
            "settings": [_setting(row, number) for row in self.settings.itertuples()],
            "given_bags": [{"given": _setting(a, 2), "random": _setting(b, 2)} for a, b in pairs],
            "attacked_in_each_refit": {
                "records": min(len(table), MAX_RECORDS),
                "times": rounds_for(len(table)),
            },
            "seconds": round(self.seconds, 1),
        }
        names = "target summary headline reasons warnings give_away at_stake bags made command"
        values |= {name: getattr(self, name) for name in names.split()}
        # The name of it in earlier versions.
        return values | ({"utilities": values["utility"][1:]} if number > 2 else {})

    def _calibrations(self) -> Any:
        """The test of eta, of several classes one for each."""
        facts = {"refitted": self.eta.refitted, "recalibrated": self.eta.recalibrated}
        tests = [
            plain(test) | {"sentence": sentence} | facts
            for test, sentence in zip(self.eta.tests, self.eta_sentences, strict=True)
        ]
        return tests[0] if len(tests) == 1 else tests


def _renamed(table: pd.DataFrame, names: dict[str, str]) -> pd.DataFrame:
    return table[[*names]].rename(columns=names).set_index("setting")


def _write(texts: dict[Path, str]) -> None:
    """Write every file or none: each is renamed only after the next one is complete."""
    (path, text), *rest = texts.items()
    content = text.encode()

    def write(file: BinaryIO) -> None:
        file.write(content)
        if rest:
            _write(dict(rest))

    write_atomically(path, write)


def as_json(report: SavedReport) -> str:
    """Every number of a report. Infinite values are the text "inf", undefined ones null."""
    values = {"schema": SCHEMA} | plain(report.to_dict()) | {"versions": versions()}
    return json.dumps(values, indent=1, allow_nan=False) + "\n"


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
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _named(setting: Setting) -> dict[str, Any]:
    """A mechanism as a user names it, and its parameters."""
    return {"mechanism": setting.kind.option, "parameters": dict(setting.parameters)}


def nested(row: Row) -> dict[str, Any]:
    """A row for JSON: the four columns of each interval as one."""
    values = {name: value for name, value in row._asdict().items() if name not in HIDDEN}
    for name in [name for name in values if column_names(name)[-1] in values]:
        for column in column_names(name)[1:]:
            del values[column]
        values[name] = Interval.of(row, name)
    return values


def _cost(row: Row) -> dict[str, Any]:
    values = nested(row)
    costs = {name: values[name] if values[name].known else None for name in ("auc", "loss")}
    return {"setting": row.setting, "worth": row.worth} | costs


def _setting(row: Row, classes: int) -> dict[str, Any]:
    """A row of settings, with its numbers by class apart."""
    values, setting = nested(row), row.setting
    parts = ("gain", "sure_before", "sure_after")
    values["by_label"] = [
        {"label": label} | {part: values.pop(f"{part}_{label}") for part in parts}
        for label in range(classes)
    ]
    if "bag_size" in setting.kind.parameters and "bag_size" not in dict(setting.parameters):
        # Made for the largest of the table's bags.
        values["bag_size"] = None
    values["contradicted"] = abs(row.difference) > 2 * row.difference_error
    return values | _named(setting) | {"epsilon_checked": setting.checked}


def _advice(choice: Choice) -> dict[str, Any]:
    """The setting of a kind that is advised, if any, with its verdict in the words of the page."""
    own = choice.own_bags and _advised(choice.own_bags)
    advised = {"family": choice.kind.title} | _advised(choice.row) | {"text": choice.text}
    return advised | {"own_bags": own}


def _advised(row: Row | None) -> dict[str, Any]:
    if row is None:
        return {"setting": None, "verdict": None, "why": None}
    return {"setting": row.title, "verdict": row.verdict, "why": row.why}
