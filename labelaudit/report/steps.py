"""The whole audit, step by step."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelaudit.datasets import Table
from labelaudit.report import words
from labelaudit.report.attack import Exposure, expose, most_exposed
from labelaudit.report.decisions import Advice, Decision, advise, decide, focus_of
from labelaudit.report.eta import EtaEstimates, Progress, at_stake, estimate_eta
from labelaudit.report.plan import AuditPlan
from labelaudit.report.scenarios import (
    BagComparison,
    BagFacts,
    KnowingMore,
    bag_facts,
    compare_bags,
    knowing_more,
)
from labelaudit.report.utility import Utility, measure_utility

MOST_EXPOSED = 10
HISTOGRAM_BINS = 20


@dataclass(frozen=True)
class Report:
    """Every number of an audit, and the advice that follows from them.

    `exposed` are the most exposed records by title of a setting. `own_bags` and `own_decisions`
    are about the table's own bags, where it has any.
    """

    table: Table
    plan: AuditPlan
    estimates: EtaEstimates
    decisions: tuple[Decision, ...]
    utilities: tuple[Utility, ...]
    advices: tuple[Advice, ...]
    summary: str
    exposed: dict[str, list[dict[str, Any]]]
    knowing: tuple[KnowingMore, ...]
    bags: BagFacts | None
    own_bags: tuple[BagComparison, ...]
    own_decisions: tuple[Decision, ...]
    seconds: float

    @property
    def at_stake(self) -> float:
        """The most that any release can add to the attacker's accuracy."""
        return at_stake(self.estimates.etas, self.table.labels)

    @property
    def histogram(self) -> tuple[int, ...]:
        """How many records have an eta in each of twenty equal parts of [0, 1]."""
        counts, _ = np.histogram(self.estimates.mean, HISTOGRAM_BINS, (0, 1))
        return tuple(counts.tolist())


def audit(table: Table, plan: AuditPlan, progress: Progress = lambda line: None) -> Report:
    """Estimate eta, attack every setting, find who is exposed and what it costs, and advise.

    >>> import json
    >>> import pandas
    >>> import tempfile
    >>> from labelaudit.datasets import read_table
    >>> from labelaudit.report import Target, as_html, as_json
    >>> plan = AuditPlan(mechanisms=["rr"], epsilons=[0.1, 4.0], target=Target("additive", 0.05))
    >>> frame = pandas.DataFrame({"eta": [0.5] * 200, "ill": [0, 1] * 100})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame.to_csv(f"{folder}/survey.csv", index=False)
    ...     report = audit(read_table(f"{folder}/survey.csv", label="ill", prior="eta"), plan)
    ...     page, numbers = as_html(report), as_json(report)
    >>> [(decision.exposure.title, decision.word) for decision in report.decisions]
    [('RR (epsilon 0.1)', 'meets'), ('RR (epsilon 4)', 'misses')]
    >>> page[:15], json.loads(numbers)["advice"][0]["setting"]
    ('<!DOCTYPE html>', 'RR (epsilon 0.1)')
    """
    plan.check_table(table)
    start = time.monotonic()
    estimates = estimate_eta(table, plan.refits, plan.seed, progress)
    facts: BagFacts | None = None
    own_bags: tuple[BagComparison, ...] = ()
    if table.bags is not None:
        progress("the table's own bags")
        facts = bag_facts(table.bags, table.labels, estimates.mean)
        own_bags = tuple(compare_bags(table.bags, table.labels, estimates, plan))
    together = facts is not None and facts.move_together

    def decided(exposure: Exposure) -> Decision:
        return decide(exposure, plan.target, estimates.calibration, together=together)

    decisions = tuple(map(decided, expose(table.labels, estimates, plan, progress)))
    own_decisions = tuple(decided(comparison.own) for comparison in own_bags)
    model = "none" if plan.utility == "network" else plan.utility
    utilities = measure_utility(table, plan.settings, model, plan.seed, progress=progress)
    advices = advise(decisions, utilities, own_decisions)
    focus = focus_of(advices, decisions)
    if plan.utility == "network":
        # The choice depends on noise; the network then shows what the chosen settings cost.
        utilities = measure_utility(table, plan.settings, "network", plan.seed, focus, progress)
        advices = advise(decisions, utilities, own_decisions)
        focus = focus_of(advices, decisions)
    sentences = [
        words.summary(advices, decisions, plan.target, facts is not None),
        words.empty_target(plan.target, at_stake(estimates.etas, table.labels)),
    ]
    progress("who is exposed, and what more an attacker may know")
    exposed = {}
    for setting in focus:
        with setting.naming_errors():
            exposed[setting.title] = most_exposed(
                estimates.etas, table.ids, setting.mechanism, MOST_EXPOSED, plan.seed
            )
    return Report(
        table=table,
        plan=plan,
        estimates=estimates,
        decisions=decisions,
        utilities=utilities,
        advices=advices,
        summary=" ".join(filter(None, sentences)),
        exposed=exposed,
        knowing=tuple(case for setting in focus for case in knowing_more(estimates, setting, plan)),
        bags=facts,
        own_bags=own_bags,
        own_decisions=own_decisions,
        seconds=time.monotonic() - start,
    )
