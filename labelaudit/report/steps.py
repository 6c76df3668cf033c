"""The whole audit, step by step."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelaudit.command_line import did_you_mean
from labelaudit.datasets import Table, read_table
from labelaudit.report import numbers, people, words
from labelaudit.report.attack import MOST_RECORDS, Attacks, Exposure, most_exposed
from labelaudit.report.classes import ClassReport, audit_classes, class_names, class_settings
from labelaudit.report.decisions import Decision, advise, decide, focus_of
from labelaudit.report.eta import FOLDS, EtaEstimates, Progress, at_stake, estimate_eta
from labelaudit.report.plan import BAG_SIZES, LEAST_BAGS, AuditPlan, Target
from labelaudit.report.scenarios import (
    BagComparison,
    BagFacts,
    KnowingMore,
    bag_facts,
    compare_bags,
    knowing_more,
)
from labelaudit.report.search import searched
from labelaudit.report.utility import measure_utility

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_EXPOSED = 10
# In a small table refits of eta differ, and three of them say little about how much.
SMALL, REFITS_WHEN_SMALL = 20_000, 6
# About how long a step takes against others, by the first word of its line.
COSTS = {"eta": 4, "the table": 20, "attack": 8, "utility": 12, "who": 8}
HISTOGRAM_BINS = 20


@dataclass(frozen=True, repr=False)
class Report(numbers.DecidedReport):
    """Every number of an audit, and the advice that follows from them.

    `exposed` are the most exposed records by title of a setting. `own_bags` and `own_decisions` are
    about the table's own bags, where it has any.
    """

    table: Table
    plan: AuditPlan
    estimates: EtaEstimates
    exposed: dict[str, list[dict[str, Any]]]
    knowing: tuple[KnowingMore, ...]
    drawn_again: tuple[people.DrawnAgain, ...]
    bags: BagFacts | None
    own_bags: tuple[BagComparison, ...]
    own_decisions: tuple[Decision, ...]
    groups: list[dict[str, Any]]
    seconds: float
    template = "report.html.j2"

    @property
    def summary(self) -> str:
        """What to publish, and why."""
        return " ".join((self.headline, *self.reasons))

    @property
    def at_stake(self) -> float:
        """The most that any release can add to the attacker's accuracy."""
        return at_stake(self.estimates.etas, self.table.labels)

    @property
    def eta_sentence(self) -> str:
        """What the one test of eta says."""
        return words.sentence("eta_sentence", self.estimates, self.target.matters(self.at_stake))

    @property
    def histogram(self) -> tuple[int, ...]:
        """How many records have an eta in each of twenty equal parts of [0, 1]."""
        counts, _ = np.histogram(self.estimates.mean, HISTOGRAM_BINS, (0, 1))
        return tuple(counts.tolist())

    tables = property(numbers.tables)
    values = property(numbers.values_of)

    @property
    def figures(self) -> dict[str, Figure]:
        """The figures of the page, by name, as matplotlib makes them."""
        from labelaudit.report import figures

        return figures.drawn(self)

    def __repr__(self) -> str:
        """The conclusion in a line; never a label, a feature or an id."""
        return f"<audit of {self.table.name}: {len(self.decisions)} settings. {self.headline}>"


def run(table: Table, plan: AuditPlan, progress: Progress = lambda line: None) -> Report:
    """Estimate eta, attack every setting, find who is exposed and what it costs, and advise.

    >>> import pandas
    >>> from labelaudit.datasets import read_table
    >>> plan = AuditPlan(mechanisms=["rr"], target=Target("additive", 0.05), search=False)
    >>> frame = pandas.DataFrame({"eta": [0.5] * 200, "ill": [0, 1] * 100})
    >>> report = run(read_table(frame, label="ill", prior="eta"), plan)
    >>> [decision.word for decision in report.decisions]
    ['cannot tell', 'misses', 'misses', 'misses']
    """
    plan.check_table(table)
    start, progress = time.monotonic(), with_time_left(progress, table, plan)
    estimates, target = trusted_eta(table, plan, progress)
    stake = at_stake(estimates.etas, table.labels)
    trusted = not estimates.calibration.wrong_by(target.matters(stake))
    facts: BagFacts | None = None
    own_bags: tuple[BagComparison, ...] = ()
    if table.bags is not None:
        progress("the table's own bags")
        facts = bag_facts(table.bags, table.labels, estimates.mean)
        own_bags = tuple(compare_bags(table.bags, table.labels, estimates, plan))
    together = facts is not None and facts.move_together

    def decided(exposure: Exposure) -> Decision:
        return decide(exposure, target, trusted=trusted, together=together)

    attacks = Attacks(table.labels, estimates, plan, progress, table.persons)
    decisions = tuple(map(decided, attacks(plan.settings)))
    if plan.search:
        decisions += tuple(searched(attacks, target, decisions, decided))
    settings = [decision.setting for decision in decisions]
    own_decisions = tuple(decided(comparison.own) for comparison in own_bags)
    model = "none" if plan.utility == "network" else plan.utility
    utilities = measure_utility(
        table, estimates.mean, settings, model, plan.seed, progress=progress
    )
    empty = target.empty(stake)
    advices = () if empty else advise(decisions, utilities, own_decisions)
    focus = focus_of(advices, decisions)
    if plan.utility == "network":
        # The choice depends on noise; the network then shows what the chosen settings cost.
        utilities = measure_utility(
            table, estimates.mean, settings, "network", plan.seed, focus, progress
        )
        advices = () if empty else advise(decisions, utilities, own_decisions)
    progress("who is exposed, and what more an attacker may know")
    exposed = {}
    for setting in focus:
        with setting.naming_errors():
            exposed[setting.title] = most_exposed(
                estimates.etas, table.ids, setting.mechanism, MOST_EXPOSED, plan.seed
            )
    reasons = words.paragraphs("reasons", advices, decisions, target, stake)
    if facts is not None and not empty:
        reasons.append(words.sentence("own_bags", advices))
    size = len(table), MOST_RECORDS
    doubts = (*size, people.leaks(table), trusted, estimates.recalibrated, facts)
    return Report(
        table=table,
        plan=plan,
        target=target,
        estimates=estimates,
        decisions=decisions,
        utilities=utilities,
        advices=advices,
        headline=words.sentence("headline", advices, decisions, empty),
        reasons=tuple(reasons),
        warnings=tuple(words.paragraphs("warnings", *doubts)),
        exposed=exposed,
        knowing=tuple(case for setting in focus for case in knowing_more(estimates, setting, plan)),
        drawn_again=tuple(
            case
            for setting in focus
            for case in people.drawn_again(
                table, estimates.etas[0], setting, plan.repeats, plan.seed
            )
        ),
        bags=facts,
        own_bags=own_bags,
        own_decisions=own_decisions,
        groups=people.by_group(table, estimates, focus, plan.seed),
        seconds=time.monotonic() - start,
        made=numbers.made_at(),
    )


def with_time_left(progress: Progress, table: Table, plan: AuditPlan) -> Progress:
    """The same lines, each with the time that is left if later steps take their usual part of it.

    >>> import pandas
    >>> frame = pandas.DataFrame({"p": [0.5] * 40, "ill": [0, 1] * 20})
    >>> table = read_table(frame, label="ill", prior="p")
    >>> with_time_left(print, table, AuditPlan())("who is exposed")
    who is exposed
    """
    kinds = len({setting.kind for setting in plan.settings})
    expected = {
        "eta": plan.refits * FOLDS * (table.prior is None),
        "the table": table.bags is not None,
        "attack": len(plan.bag_sizes) + 1 + kinds * plan.search,
        "utility": plan.utility != "none",
        "who": 1,
    }
    ahead = sum(COSTS[name] * number for name, number in expected.items())
    start, done, current = time.monotonic(), 0, 0

    def timed(line: str) -> None:
        nonlocal ahead, done, current
        done += current
        current = next((cost for name, cost in COSTS.items() if line.startswith(name)), 0)
        ahead -= current
        left = (time.monotonic() - start) * (current + max(ahead, 0)) / max(done, 1)
        progress(f"{line} (about {left:.0f} s left)" if done and left >= 1 else line)

    return timed


def trusted_eta(table: Table, plan: AuditPlan, progress: Progress) -> tuple[EtaEstimates, Target]:
    """Eta and the target; eta is scaled once more where the labels contradict it and it matters."""
    estimates = estimate_eta(table, plan.refits, plan.seed, progress, plan.learners)
    stake = at_stake(estimates.etas, table.labels)
    target = plan.target or Target.of_stake(stake, plan.level)
    if estimates.calibration.wrong_by(target.matters(stake)):
        progress("eta: the true labels contradict it, so it is scaled to them once more")
        estimates = estimates.recalibrate(table.labels, plan.seed, table.persons)
        stake = at_stake(estimates.etas, table.labels)
    return estimates, plan.target or Target.of_stake(stake, plan.level)


def _split(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of the plan, and those about the columns of the table."""
    names = {each.name for each in fields(AuditPlan)}
    of_table = inspect.signature(read_table).parameters.keys() - {"source", "label"}
    for name in options.keys() - names - of_table:
        near = did_you_mean(name, names | of_table)
        raise TypeError(f"an audit has no option {name!r}{near}")
    parts = [{name: options[name] for name in options.keys() & part} for part in (names, of_table)]
    return parts[0], parts[1]


def prepared(
    table: Any, label: str = "", target: Target | str | None = None, **options: Any
) -> tuple[Table, AuditPlan]:
    """The table and the plan of an audit, checked; options are those of the two.

    >>> prepared("shop.csv", "bought", epsilon=[1.0])
    Traceback (most recent call last):
    TypeError: an audit has no option 'epsilon'; did you mean epsilons?
    """
    chosen, columns = _split(options)
    if columns.get("prior") is not None or columns.get("model") is not None:
        chosen.setdefault("utility", "none")
    plan = AuditPlan(**chosen, target=Target.parse(target) if isinstance(target, str) else target)
    if not isinstance(table, Table):
        table = read_table(table, label=label, **columns)
    elif columns:
        raise TypeError(f"{next(iter(columns))!r} is for a file or a data frame, not for a Table")
    if "bag_sizes" not in chosen and (largest := len(table) // LEAST_BAGS) < max(BAG_SIZES):
        plan = replace(plan, bag_sizes=[max(min(size, largest), 1) for size in BAG_SIZES])
    if "refits" not in chosen and table.prior is None and len(table) < SMALL:
        plan = replace(plan, refits=REFITS_WHEN_SMALL)
    plan.check_table(table)
    return table, plan


def audit(
    table: Any,
    label: str = "",
    *,
    ids: bool = True,
    progress: Progress = lambda line: None,
    **options: Any,
) -> Report | ClassReport:
    """Audit a table with a sensitive label: which mechanism meets a target, at what cost.

    `table` is a path (csv or parquet), a pandas DataFrame or a `Table`. The options of
    `labelaudit.datasets.read_table` say what its columns are, those of `AuditPlan` what to compare.
    A target may be a text such as "additive=0.01". Without `ids` no record is named. A label with
    three or more classes gives a `ClassReport`.

    >>> import pandas
    >>> import labelaudit as la
    >>> frame = pandas.DataFrame({"eta": [0.5] * 200, "ill": [0, 1] * 100})
    >>> report = la.audit(frame, "ill", prior="eta", mechanisms=["rr"], target="epsilon=1")
    >>> report
    <audit of a data frame: 4 settings. Publish RR (epsilon 1).>
    >>> report.verdicts["verdict"].tolist()
    ['meets', 'meets', 'misses', 'misses']
    """
    work = begun(table, label, **options)
    report = work(progress)
    return report if ids or isinstance(report, ClassReport) else replace(report, exposed={})


def begun(
    table: Any, label: str = "", target: Target | str | None = None, **options: Any
) -> Callable[[Progress], Report | ClassReport]:
    """All that can be rejected is, and what is left to do comes back; several classes too."""
    try:
        return partial(run, *prepared(table, label, target, **options))
    except ValueError as error:
        frame, classes = ((), ()) if isinstance(table, Table) else class_names(table, label)
        if not classes:
            raise error
    chosen, columns = _split(options)
    names = chosen.pop("mechanisms", ("rr", "llp"))
    plan = AuditPlan(
        **{**chosen, "utility": "none", "mechanisms": ["rr"]},
        target=Target.parse(target) if isinstance(target, str) else target,
    )
    class_settings(names, plan, len(classes))
    name = Path(table).name if isinstance(table, str | Path) else "a data frame"
    return partial(audit_classes, frame, label, classes, plan, names, columns, name)
