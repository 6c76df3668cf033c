"""The whole audit, step by step, and every number of it as JSON."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np

from labelaudit.datasets import Table
from labelaudit.report.advice import Advice, Verdict, advise, judge
from labelaudit.report.beliefs import Beliefs, Say, at_stake, believe
from labelaudit.report.exposure import MOST_RECORDS, Exposure, expose, rounds_for
from labelaudit.report.plan import Plan
from labelaudit.report.recommendation import asks_nothing, summary
from labelaudit.report.records import most_exposed
from labelaudit.report.scenarios import (
    BagFacts,
    GivenBags,
    Knowing,
    bag_facts,
    given_bags,
    knowing_more,
)
from labelaudit.report.settings import Setting
from labelaudit.report.utility import Utility, measure_utility

MOST_EXPOSED = 10
HISTOGRAM_BINS = 20


@dataclass(frozen=True)
class Report:
    """Every number of an audit, and the words drawn from them."""

    table: Table
    plan: Plan
    beliefs: Beliefs
    verdicts: tuple[Verdict, ...]
    utilities: tuple[Utility, ...]
    advices: tuple[Advice, ...]
    summary: str
    exposed: dict[str, list[dict[str, Any]]]
    knowing: tuple[Knowing, ...]
    bags: BagFacts | None
    given: tuple[GivenBags, ...]
    in_bags: tuple[Verdict, ...]
    seconds: float

    @property
    def at_stake(self) -> float:
        """The most that any release can add to the attacker's accuracy."""
        return at_stake(self.beliefs.etas, self.table.labels)

    @property
    def histogram(self) -> tuple[int, ...]:
        """How many records have an eta in each of twenty equal parts of [0, 1]."""
        counts, _ = np.histogram(self.beliefs.mean, HISTOGRAM_BINS, (0, 1))
        return tuple(counts.tolist())


def audit(table: Table, plan: Plan, say: Say = lambda line: None) -> Report:
    """Estimate eta, attack every setting, look at who is exposed and at the cost, and advise.

    >>> import json
    >>> import pandas
    >>> import tempfile
    >>> from labelaudit.datasets import read_table
    >>> from labelaudit.report import Target, as_html
    >>> plan = Plan(mechanisms=["rr"], epsilons=[0.1, 4.0], target=Target("additive", 0.05))
    >>> frame = pandas.DataFrame({"eta": [0.5] * 200, "ill": [0, 1] * 100})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame.to_csv(f"{folder}/survey.csv", index=False)
    ...     found = audit(read_table(f"{folder}/survey.csv", label="ill", prior="eta"), plan)
    ...     page, numbers = as_html(found), as_json(found)
    >>> [(verdict.exposure.title, verdict.word) for verdict in found.verdicts]
    [('RR (epsilon 0.1)', 'meets'), ('RR (epsilon 4)', 'misses')]
    >>> page[:15], json.loads(numbers)["advice"][0]["setting"]
    ('<!DOCTYPE html>', 'RR (epsilon 0.1)')
    """
    start = time.monotonic()
    plan.check_table(table)
    beliefs = believe(table, plan.refits, plan.seed, say)
    calibration = beliefs.calibration
    facts: BagFacts | None = None
    given: tuple[GivenBags, ...] = ()
    if table.bags is not None:
        say("the table's own bags")
        facts = bag_facts(table.bags, table.labels, beliefs.mean)
        given = tuple(given_bags(table.bags, table.labels, beliefs, plan))
    together = facts is not None and facts.move_together
    verdicts, in_bags = (
        tuple(judge(one, plan.target, calibration, together=together) for one in exposures)
        for exposures in (
            expose(table.labels, beliefs, plan, say),
            [one.given for one in given],
        )
    )
    model = "none" if plan.utility == "network" else plan.utility
    utilities = measure_utility(table, plan.settings, model, plan.seed, say=say)
    advices = advise(verdicts, utilities, in_bags)
    if plan.utility == "network":
        # The choice rests on noise; the network then shows what the chosen settings cost.
        focus = focus_of(advices, verdicts)
        utilities = measure_utility(table, plan.settings, "network", plan.seed, focus, say)
        advices = advise(verdicts, utilities, in_bags)
    focus = focus_of(advices, verdicts)
    said = [
        summary(advices, verdicts, plan.target, facts is not None),
        asks_nothing(plan.target, at_stake(beliefs.etas, table.labels)),
    ]
    say("who is exposed, and what more an attacker may know")
    return Report(
        table=table,
        plan=plan,
        beliefs=beliefs,
        verdicts=verdicts,
        utilities=utilities,
        advices=advices,
        summary=" ".join(filter(None, said)),
        exposed={one.title: _most_exposed(beliefs, table, one, plan.seed) for one in focus},
        knowing=tuple(row for one in focus for row in knowing_more(beliefs, one, plan)),
        bags=facts,
        given=given,
        in_bags=in_bags,
        seconds=time.monotonic() - start,
    )


def _most_exposed(
    beliefs: Beliefs, table: Table, setting: Setting, seed: int
) -> list[dict[str, Any]]:
    with setting.blamed():
        return most_exposed(beliefs.etas, table.ids, setting.mechanism, MOST_EXPOSED, seed)


def focus_of(advices: tuple[Advice, ...], verdicts: tuple[Verdict, ...]) -> list[Setting]:
    """For each kind of mechanism the recommended setting, or the one with the least advantage."""
    found = []
    for advice in advices:
        if advice.verdict is not None:
            found.append(advice.verdict.exposure.setting)
            continue
        own = [one.exposure for one in verdicts if one.exposure.setting.family == advice.family]
        found.append(min(own, key=lambda one: (one.plug_in.value, one.epsilon)).setting)
    return found


def as_json(report: Report) -> str:
    """Every number of the report. Infinite values are the text "inf", undefined ones null."""
    table, plan = report.table, report.plan
    found = {
        "data": {
            "file": table.path.name,
            "label": table.label,
            "positive_value": table.positive,
            "sha256": table.fingerprint,
            "rows": len(table),
            "positive": int(table.labels.sum()),
            "features": [column.name for column in table.columns],
            "notes": list(table.notes),
        },
        "plan": {
            field.name: _plain(getattr(plan, field.name)) for field in dataclasses.fields(plan)
        },
        "summary": report.summary,
        "advice": [
            {
                "family": one.family.name,
                **_recommended(one.verdict),
                "own_bags": _recommended(one.given) if one.given else None,
                "text": one.text,
            }
            for one in report.advices
        ],
        "calibration": _plain(report.beliefs.calibration)
        | {"fails": report.beliefs.calibration.fails, "refitted": report.beliefs.refitted},
        "at_stake": report.at_stake,
        "eta_histogram": list(report.histogram),
        "settings": [_judged(one) for one in report.verdicts],
        "utility": [_plain(one) for one in report.utilities],
        "knowing_more": [_plain(one) for one in report.knowing],
        "most_exposed": report.exposed,
        "bags": None if report.bags is None else _plain(report.bags),
        "given_bags": [
            {"given": _judged(verdict), "random": _exposure(one.random)}
            for one, verdict in zip(report.given, report.in_bags, strict=True)
        ],
        "attacked_in_each_refit": {
            "records": min(len(table), MOST_RECORDS),
            "times": rounds_for(len(table)),
        },
        "labelaudit": metadata.version("labelaudit"),
        "seconds": round(report.seconds, 1),
    }
    return json.dumps(_finite(found), indent=1, allow_nan=False) + "\n"


def _recommended(verdict: Verdict | None) -> dict[str, Any]:
    """The setting that is advised, if any, with its verdict in the words of the page."""
    if verdict is None:
        return {"setting": None, "verdict": None, "why": None}
    return {"setting": verdict.exposure.title, "verdict": verdict.word, "why": verdict.why}


def _judged(verdict: Verdict) -> dict[str, Any]:
    return _exposure(verdict.exposure) | {"verdict": verdict.word, "why": verdict.why}


def _exposure(one: Exposure) -> dict[str, Any]:
    setting = one.setting
    any_size = "bag_size" in setting.family.parameters and "bag_size" not in dict(
        setting.parameters
    )
    return _plain(one) | {
        "bag_size": None if any_size else setting.mechanism.bag_size,
        "epsilon": one.epsilon,
        "epsilon_checked": one.setting.checked,
        "contradicted": one.contradicted,
    }


def _plain(value: Any) -> Any:
    """Dataclasses as dictionaries; a setting as its title."""
    if isinstance(value, Setting):
        return value.title
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return value


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return str(value) if math.isinf(value) else value
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list) else value
