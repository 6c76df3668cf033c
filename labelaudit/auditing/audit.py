"""The whole audit, step by step: of a label with two values, or with several classes."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from labelaudit.auditing import page, scenarios, words
from labelaudit.auditing.attack import (
    MOST_RECORDS,
    Attacks,
    BagComparison,
    Exposure,
    attack_classes,
    compare_bags,
)
from labelaudit.auditing.decisions import (
    Advice,
    Decision,
    Recommendation,
    advise,
    best_of,
    close_under_noise,
    decide,
    focus_of,
    guaranteed_epsilon,
    recommend,
    searched,
)
from labelaudit.auditing.eta import (
    FOLDS,
    SIGNIFICANT,
    BagFacts,
    EtaEstimates,
    Progress,
    at_stake,
    bag_facts,
    class_etas,
    estimate_eta,
)
from labelaudit.auditing.plan import AuditPlan, Setting, Target, prepared, prepared_classes
from labelaudit.auditing.table import Table
from labelaudit.auditing.utility import Utility, class_worth, measure_utility
from labelaudit.checks import Floats, Ints

if TYPE_CHECKING:
    import pandas

MOST_EXPOSED = 10
# About how long each step takes, relative to the others, by the first word of its line.
COSTS = {"eta": 4, "the table": 20, "attack": 8, "utility": 12, "who": 8}
HISTOGRAM_BINS = 20


@dataclass(frozen=True, kw_only=True)
class DecidedReport(page.SavedReport):
    """A report with a decision on each setting.

    `recommended` is what to publish. `headline` says it, `reasons` why, `warnings` what is wrong
    with the table or with eta. Nothing is recommended where columns `give_away` the label.
    """

    target: Target
    decisions: tuple[Decision, ...]
    utilities: tuple[Utility, ...]
    advices: tuple[Advice, ...]
    recommended: tuple[Recommendation, ...]
    give_away: tuple[str, ...]
    headline: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    made: str
    command: str = ""

    @property
    def verdicts(self) -> pandas.DataFrame:
        """For each setting whether it meets the target, why, what it proves and guarantees."""
        columns = ["verdict", "why", "plug-in", "realised", "revealed", "epsilon"]
        return page.frame("attack", self.decisions).set_index("setting")[columns]

    @property
    def command_without(self) -> str:
        """The command again, without the columns that give the label away; empty if none does."""
        words = shlex.split(self.command)
        if not (words and self.give_away):
            return ""
        options = [f"--leave-out={name}" for name in self.give_away]
        options += [] if "--overwrite" in words else ["--overwrite"]
        end = words.index("--") if "--" in words else len(words)
        return shlex.join([*words[:end], *options, *words[end:]])


@dataclass(frozen=True, repr=False)
class Report(DecidedReport):
    """Every number of an audit, and the advice that follows from them.

    `exposed` are the most exposed records by title of a setting. `own_bags` and `own_decisions` are
    about the table's own bags, where it has any.
    """

    table: Table
    plan: AuditPlan
    estimates: EtaEstimates
    exposed: dict[str, list[dict[str, Any]]]
    knowing: tuple[scenarios.KnowingMore, ...]
    drawn_again: tuple[scenarios.DrawnAgain, ...]
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

    tables = property(page.tables)
    values = property(page.values_of)
    figures = property(page.figures)

    def __repr__(self) -> str:
        """The conclusion in a line; never a label, a feature or an id."""
        return f"<audit of {self.table.name}: {len(self.decisions)} settings. {self.headline}>"


@dataclass(frozen=True, repr=False)
class ClassReport(DecidedReport):
    """What to publish of a label with several classes, and why; the parts are those of `Report`."""

    name: str
    label: str
    classes: tuple[str, ...]
    rows: int
    at_stake: float
    etas: tuple[Floats, ...]
    template = "classes.html.j2"

    @property
    def values(self) -> dict[str, Any]:
        """What the JSON file holds."""
        names = ["classes", "rows", "at_stake", "target", "headline", "reasons", "warnings"]
        names += ["give_away", "utilities", "made", "command"]
        values = {name: getattr(self, name) for name in names}
        values["recommended"] = [page.recommended(each) for each in self.recommended]
        return values | {"settings": [page.decided(each) for each in self.decisions]}

    def __repr__(self) -> str:
        """The conclusion in a line; never a label, a feature or an id."""
        return f"<audit of {self.name}: {len(self.classes)} classes. {self.headline}>"


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
    return begun(table, label, ids=ids, **options)(progress)


def begun(
    table: Any, label: str = "", *, ids: bool = True, **options: Any
) -> Callable[[Progress], Report | ClassReport]:
    """Check table and options, and return the work that is left, for two classes or more."""
    try:
        return partial(run, *prepared(table, label, **options), ids=ids)
    except ValueError as error:
        several = prepared_classes(table, label, **options)
        if several is None:
            raise error
    return partial(run_classes, *several)


def run(
    table: Table, plan: AuditPlan, progress: Progress = lambda line: None, *, ids: bool = True
) -> Report:
    """Estimate eta, attack every setting, find who is exposed and what it costs, and advise.

    >>> import pandas
    >>> from labelaudit.auditing.table import read_table
    >>> plan = AuditPlan(mechanisms=["rr"], target=Target("additive", 0.05), search=False)
    >>> frame = pandas.DataFrame({"eta": [0.5] * 200, "ill": [0, 1] * 100})
    >>> report = run(read_table(frame, label="ill", prior="eta"), plan)
    >>> [decision.word for decision in report.decisions]
    ['cannot tell', 'misses', 'misses', 'misses']
    """
    plan.check_table(table)
    start, progress = time.monotonic(), with_time_left(progress, table, plan)
    estimates, target = trusted_eta(table, plan, progress)
    etas, stake = estimates.etas, at_stake(estimates.etas, table.labels)
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
    decisions = close_under_noise([decided(each) for each in attacks(plan.settings)], target)
    if plan.search:
        decisions += tuple(searched(attacks, target, decisions, decided))
    own_decisions = close_under_noise([decided(each.own) for each in own_bags], target)
    settings = [decision.setting for decision in decisions]

    def measured(model: str, focus: Sequence[Setting] = ()) -> tuple[Utility, ...]:
        return measure_utility(table, estimates.mean, settings, model, plan.seed, focus, progress)

    utilities = measured("none" if plan.utility == "network" else plan.utility)
    leaks = scenarios.leaking_columns(table)
    focus = focus_of(advise(decisions, utilities), decisions)
    if plan.utility == "network":
        # The choice depends on noise; the network then shows what the chosen settings cost.
        utilities = measured("network", focus)
    progress("who is exposed, and what more an attacker may know")
    exposed = {}
    for setting in focus if ids else ():
        with setting.naming_errors():
            exposed[setting.title] = scenarios.most_exposed(
                etas, table.ids, setting.mechanism, MOST_EXPOSED, plan.seed
            )
    knowing = [scenarios.knowing_more(estimates, setting, plan) for setting in focus]
    again = [
        scenarios.drawn_again(table, etas[0], setting, plan.repeats, plan.seed) for setting in focus
    ]
    size = len(table), MOST_RECORDS
    texts = scenarios.leaks(table, leaks)
    facts_to_warn_of = (*size, texts, trusted, estimates.recalibrated, facts)
    return Report(
        **concluded(
            *(target, stake, decisions, utilities, leaks),
            own_decisions=own_decisions if facts else None,
        ),
        warnings=tuple(words.paragraphs("warnings", *facts_to_warn_of)),
        table=table,
        plan=plan,
        estimates=estimates,
        exposed=exposed,
        knowing=tuple(case for cases in knowing for case in cases),
        drawn_again=tuple(case for cases in again for case in cases),
        bags=facts,
        own_bags=own_bags,
        own_decisions=own_decisions,
        groups=scenarios.by_group(table, estimates, focus, plan.seed),
        seconds=time.monotonic() - start,
    )


def concluded(
    target: Target,
    stake: float,
    decisions: tuple[Decision, ...],
    utilities: tuple[Utility, ...],
    leaks: Sequence[scenarios.Leak],
    own_decisions: Sequence[Decision] | None = None,
) -> dict[str, Any]:
    """The parts of every `DecidedReport` that follow from its decisions and their costs.

    `own_decisions` are about the table's own bags, where it has any.
    """
    empty, give_away = target.empty(stake), tuple(leak.column for leak in leaks)
    none = empty or bool(give_away)
    advices = () if none else advise(decisions, utilities, own_decisions or ())
    facts = (decisions, target, stake, own_decisions is not None, give_away)
    recommended = recommend(advices)
    headline = words.sentence("headline", recommended, advices, decisions, empty, give_away)
    return {
        "target": target,
        "decisions": decisions,
        "utilities": utilities,
        "advices": advices,
        "recommended": recommended,
        "give_away": give_away,
        "headline": headline,
        "reasons": tuple(words.paragraphs("reasons", best_of(advices), advices, *facts)),
        "made": page.made_at(),
    }


def trusted_eta(table: Table, plan: AuditPlan, progress: Progress) -> tuple[EtaEstimates, Target]:
    """Eta and the target; eta is scaled once more where the labels contradict it and it matters."""
    estimates = estimate_eta(table, plan.refits, plan.seed, progress, plan.learners)
    stake = at_stake(estimates.etas, table.labels)
    if estimates.calibration.wrong_by(plan.target_of(stake).matters(stake)):
        progress("eta: the true labels contradict it, so it is scaled to them once more")
        estimates = estimates.recalibrate(table.labels, plan.seed, table.persons)
        stake = at_stake(estimates.etas, table.labels)
    return estimates, plan.target_of(stake)


def with_time_left(progress: Progress, table: Table, plan: AuditPlan) -> Progress:
    """The same lines, each with the time that is left if later steps take their usual part of it.

    >>> import pandas
    >>> from labelaudit.auditing.table import read_table
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


def run_classes(
    table: Table,
    codes: Ints,
    classes: tuple[str, ...],
    settings: Sequence[Setting],
    plan: AuditPlan,
    progress: Progress = lambda line: None,
) -> ClassReport:
    """Learn the class probabilities, attack every setting, and advise by the rule of two classes.

    `codes` are the positions of the labels among the classes.

    >>> import pandas
    >>> import labelaudit as la
    >>> frame = pandas.DataFrame({"age": [20, 40, 60] * 60, "party": list("abcbca") * 30})
    >>> la.audit(frame, "party", mechanisms=["rr"], epsilons=[1.0], target="epsilon=1")
    <audit of a data frame: 3 classes. Publish RR (epsilon 1).>
    """
    etas, tests = class_etas(table, codes, plan.refits, plan.seed, progress, plan.learners)
    stake = max(
        float(np.mean([1 - eta.max(axis=1).mean() for eta in etas])),
        float(np.mean([(eta.argmax(axis=1) != codes).mean() for eta in etas])),
    )
    target = plan.target_of(stake)
    # One test for every class; the smallest of their p-values counts for all.
    limit = target.matters(stake)
    wrong = [each.p_value * len(tests) < SIGNIFICANT and each.excess > limit for each in tests]
    estimates = EtaEstimates(etas, True, tests[0])
    attacks = Attacks(codes, estimates, plan, progress, table.persons, attack_classes)

    def decided(chosen: Sequence[Setting]) -> tuple[Decision, ...]:
        return tuple(decide(each, target, trusted=not any(wrong)) for each in attacks(chosen))

    decisions = close_under_noise(decided(settings), target)
    if plan.search:
        for setting in settings_by_guarantee(decisions, target, attacks.rows):
            decisions += decided([setting])
    settings = [decision.setting for decision in decisions]
    shuffled = np.random.default_rng([plan.seed, 4]).permutation(estimates.mean)
    utilities = tuple(
        Utility(setting, class_worth(shuffled, setting.mechanism), None, None)
        for setting in settings
    )
    doubtful = [repr(name) for name, bad in zip(classes, wrong, strict=True) if bad]
    leaks = scenarios.leaking_columns(table, codes, classes)
    return ClassReport(
        *(table.name, table.label, classes, len(table), stake, etas),
        **concluded(target, stake, decisions, utilities, leaks),
        warnings=tuple(words.paragraphs("class_warnings", doubtful, leaks)),
    )


def settings_by_guarantee(
    decisions: Sequence[Decision], target: Target, rows: int
) -> list[Setting]:
    """Of each kind of mechanism of which no setting meets the target the one that must meet it."""
    settings = {each.setting.kind: each.setting for each in decisions}
    for kind in {each.setting.kind for each in decisions if each.meets}:
        del settings[kind]
    by_guarantee = []
    for kind, setting in settings.items():
        mechanism: Any = setting.mechanism
        epsilon = guaranteed_epsilon(target, rows, mechanism.classes)
        if "epsilon" in dict(setting.parameters) and epsilon:
            made = replace(mechanism, epsilon=epsilon)
            by_guarantee.append(Setting(kind, made, (("epsilon", epsilon),)))
    return by_guarantee
