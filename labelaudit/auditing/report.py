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
from labelaudit.auditing.intervals import Interval, Row
from labelaudit.auditing.options import Options, Target
from labelaudit.auditing.page import as_html, versions
from labelaudit.auditing.settings import Setting
from labelaudit.auditing.table import Table
from labelaudit.files import write_atomically

# The version of the names in the JSON file: it grows where one of them changes its meaning.
SCHEMA = 1
HISTOGRAM_BINS = 20
MEASURED = ("plug_in", "realised", "difference", "percentile", "revealed")
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
        table, classes = self.table, self.table.classes
        settings = list(self.settings.itertuples())
        values: dict[str, Any] = {
            "data": {
                "file": table.name,
                "label": table.label,
                "positive_value": table.positive,
                "sha256": table.fingerprint,
                "rows": len(table),
                "positive": int((table.labels == len(classes) - 1).sum()),
                "features": [column.name for column in table.columns],
                "notes": table.notes,
            },
            "classes": classes,
            "rows": len(table),
            "plan": self.options,
            "eta_histogram": self.histogram,
            "utility": [_utility(row) for row in (self.clean, *settings)],
            "knowing_more": [_with_interval(row, "advantage") for row in self.knowing.itertuples()],
            "drawn_again": [_plain_row(row) for row in self.drawn_again.itertuples()],
            "most_exposed": {
                title: [{"id": name, "advantage": advantage} for name, advantage in records]
                for title, records in self.exposed.items()
            },
            "groups": [_plain_row(row) for row in self.groups.itertuples()],
            "advice": [_advice(choice) for choice in self.choices],
            "recommended": [plain(each) | _named(each.setting) for each in self.recommended],
            "calibration": self._calibrations(),
            "settings": [_decided(row, len(classes)) for row in settings],
            "given_bags": [
                {"given": _decided(own, 2), "random": _measured(random, 2)}
                for own, random in zip(
                    self.own_bags.itertuples(), self.random_bags.itertuples(), strict=True
                )
            ],
            "attacked_in_each_refit": {
                "records": min(len(table), MAX_RECORDS),
                "times": rounds_for(len(table)),
            },
            "seconds": round(self.seconds, 1),
        }
        names = "target summary headline reasons warnings give_away at_stake bags made command"
        values |= {name: getattr(self, name) for name in names.split()}
        if len(classes) > 2:
            # The name of it in earlier versions.
            values["utilities"] = values["utility"][1:]
        return values

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


def _plain_row(row: Row) -> dict[str, Any]:
    """A row without its index and the title, which is that of the setting."""
    values = row._asdict()
    return {name: values[name] for name in values if name not in ("Index", "title")}


def _with_interval(row: Row, name: str) -> dict[str, Any]:
    values = _plain_row(row)
    for column in ("error", "low", "high"):
        del values[f"{name}_{column}"]
    return values | {name: Interval.of(row, name)}


def _utility(row: Row) -> dict[str, Any]:
    intervals = {name: Interval.of(row, name) for name in ("auc", "loss")}
    known = {name: None if math.isnan(value.value) else value for name, value in intervals.items()}
    return {"setting": row.setting, "worth": row.worth} | known


def _measured(row: Row, classes: int) -> dict[str, Any]:
    """The numbers of an attack, for JSON."""
    setting = row.setting
    any_size = "bag_size" in setting.kind.parameters and "bag_size" not in dict(setting.parameters)
    parts = ("gain", "sure_before", "sure_after")
    return {
        "setting": setting,
        **{name: Interval.of(row, name) for name in MEASURED},
        "by_label": [
            {"label": label} | {part: Interval.of(row, f"{part}_{label}") for part in parts}
            for label in range(classes)
        ],
        "method": row.method,
        "rows": row.rows,
        **_named(setting),
        "bag_size": None if any_size else row.bag_size,
        "epsilon": row.epsilon,
        "epsilon_checked": setting.checked,
        "contradicted": abs(row.difference) > 2 * row.difference_error,
    }


def _decided(row: Row, classes: int) -> dict[str, Any]:
    verdict = {"verdict": row.verdict, "rule": row.rule, "why": row.why}
    return _measured(row, classes) | verdict


def _advice(choice: Choice) -> dict[str, Any]:
    """The setting of a kind that is advised, if any, with its verdict in the words of the page."""
    own = choice.own_bags and _advised(choice.own_bags)
    advised = {"family": choice.kind.title} | _advised(choice.row) | {"text": choice.text}
    return advised | {"own_bags": own}


def _advised(row: Row | None) -> dict[str, Any]:
    if row is None:
        return {"setting": None, "verdict": None, "why": None}
    return {"setting": row.title, "verdict": row.verdict, "why": row.why}
