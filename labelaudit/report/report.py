"""The whole audit, step by step, and every number of it as JSON."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelaudit.datasets import Table
from labelaudit.mechanisms import Mechanism
from labelaudit.report.advice import Advice, Verdict, advise, judge, summary
from labelaudit.report.beliefs import Beliefs, Say, believe, check_table
from labelaudit.report.exposure import expose, most_exposed
from labelaudit.report.plan import Plan
from labelaudit.report.scenarios import (
    BagFacts,
    GivenBags,
    Knowing,
    bag_facts,
    given_bags,
    knowing_more,
)
from labelaudit.report.settings import Family, Setting
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
    seconds: float

    @property
    def histogram(self) -> tuple[int, ...]:
        """How many records have an eta in each of twenty equal parts of [0, 1]."""
        counts, _ = np.histogram(self.beliefs.mean, HISTOGRAM_BINS, (0, 1))
        return tuple(counts.tolist())


def audit(table: Table, plan: Plan, say: Say = lambda line: None) -> Report:
    """Estimate eta, attack every setting, look at who is exposed and at the cost, and advise."""
    start = time.monotonic()
    check_table(table)
    plan.check_rows(len(table), table.bags)
    beliefs = believe(table, plan.refits, plan.seed, say)
    exposures = expose(table.labels, beliefs, plan, say)
    verdicts = tuple(judge(one, plan.target, beliefs.calibration) for one in exposures)
    model = "none" if plan.utility == "network" else plan.utility
    utilities = measure_utility(table, plan.settings, model, plan.seed, say=say)
    advices = advise(verdicts, utilities, plan.target)
    if plan.utility == "network":
        # The choice rests on noise; the network then shows what the chosen settings cost.
        focus = focus_of(advices, verdicts)
        utilities = measure_utility(table, plan.settings, "network", plan.seed, focus, say)
        advices = advise(verdicts, utilities, plan.target)
    focus = focus_of(advices, verdicts)
    say("who is exposed, and what more an attacker may know")
    exposed = {
        one.title: most_exposed(beliefs.etas, table.ids, one.mechanism, MOST_EXPOSED, plan.seed)
        for one in focus
    }
    facts: BagFacts | None = None
    given: tuple[GivenBags, ...] = ()
    if table.bags is not None:
        say("the table's own bags")
        facts = bag_facts(table.bags, table.labels, beliefs.mean)
        given = tuple(given_bags(table.bags, table.labels, beliefs, plan))
    return Report(
        table=table,
        plan=plan,
        beliefs=beliefs,
        verdicts=verdicts,
        utilities=utilities,
        advices=advices,
        summary=summary(advices, verdicts, plan.target),
        exposed=exposed,
        knowing=tuple(row for one in focus for row in knowing_more(beliefs, one, plan)),
        bags=facts,
        given=given,
        seconds=time.monotonic() - start,
    )


def focus_of(advices: tuple[Advice, ...], verdicts: tuple[Verdict, ...]) -> list[Setting]:
    """For each kind of mechanism the recommended setting, or the one nearest to the target."""
    found = []
    for advice in advices:
        if advice.verdict is not None:
            found.append(advice.verdict.exposure.setting)
            continue
        own = [
            one.exposure for one in verdicts if one.exposure.setting.family.name == advice.family
        ]
        found.append(min(own, key=lambda one: (one.plug_in.value, one.epsilon)).setting)
    return found


def as_json(report: Report) -> str:
    """Every number of the report. Infinite values are the text "inf", undefined ones null."""
    table, plan = report.table, report.plan
    found = {
        "data": {
            "file": table.path.name,
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
        "advice": [{"family": one.family, "text": one.text} for one in report.advices],
        "calibration": _plain(report.beliefs.calibration)
        | {"fails": report.beliefs.calibration.fails, "refitted": report.beliefs.refitted},
        "eta_histogram": list(report.histogram),
        "settings": [
            _plain(one.exposure)
            | {
                "epsilon_checked": one.exposure.setting.checked,
                "contradicted": one.exposure.contradicted,
                "verdict": one.word,
                "why": one.why,
            }
            for one in report.verdicts
        ],
        "utility": [_plain(one) for one in report.utilities],
        "knowing_more": [_plain(one) for one in report.knowing],
        "most_exposed": report.exposed,
        "bags": None if report.bags is None else _plain(report.bags),
        "given_bags": [_plain(one) for one in report.given],
        "seconds": round(report.seconds, 1),
    }
    return json.dumps(_finite(found), indent=1, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    """Dataclasses as dictionaries; a setting as its title, a mechanism as it is written."""
    if isinstance(value, Setting):
        return value.title
    if isinstance(value, Mechanism | Family):
        return str(value)
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
