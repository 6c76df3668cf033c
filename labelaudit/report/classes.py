"""An audit of a label with more than two classes: randomized response and class proportions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator

from labelaudit.checks import Floats, Ints
from labelaudit.datasets import Table, read_table
from labelaudit.datasets.frame import read_frame
from labelaudit.mechanisms import KINDS
from labelaudit.multiclass import (
    ClassMechanism,
    ClassProportions,
    ClassRandomizedResponse,
    ClassResponseWithPrior,
    additive_advantage,
    posterior,
    worth,
)
from labelaudit.report import words
from labelaudit.report.attack import AttackRound, Attacks
from labelaudit.report.decisions import advise, decide
from labelaudit.report.eta import EtaEstimates, Progress, estimate_eta
from labelaudit.report.numbers import DecidedReport, decided, made_at
from labelaudit.report.plan import LEAST_BAGS, LEAST_OF_EACH, AuditPlan, Setting, Target
from labelaudit.report.utility import WORTH_RECORDS, Utility, first_bags

if TYPE_CHECKING:
    import pandas

# More distinct labels are numbers or names rather than classes.
MOST_CLASSES = 20
# Ways to split a bag into classes: a bag with more takes too long.
MOST_SPLITS = 2000
NAMES = ("rr", "llp", "rr-prior")
RR_PRIOR = replace(
    KINDS["RR"], name="RR with prior", title="randomized response with a prior", option="rr-prior",
    colour="#332288", marker="d",
    explanation="of the likeliest classes one is released: the true one, or another at random",
)  # fmt: skip


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
        names += ["utilities", "made", "command"]
        values = {name: getattr(self, name) for name in names}
        return values | {"settings": [decided(each) for each in self.decisions]}

    def __repr__(self) -> str:
        """The conclusion in a line; never a label, a feature or an id."""
        return f"<audit of {self.name}: {len(self.classes)} classes. {self.headline}>"


def class_names(source: Any, label: str) -> tuple[Any, tuple[str, ...]]:
    """The data frame and the classes of its label; none where there are not three or more."""
    frame = read_frame(Path(source)) if isinstance(source, str | Path) else source
    if label not in getattr(frame, "columns", ()):
        return frame, ()
    found = sorted(frame[label].dropna().astype(str).unique())
    return frame, tuple(found) if 2 < len(found) <= MOST_CLASSES else ()


def class_settings(names: Sequence[str], plan: AuditPlan, classes: int) -> tuple[Setting, ...]:
    """Each mechanism at every parameter; bags whose classes are too many to count are left out.

    >>> plan = AuditPlan(bag_sizes=[2], epsilons=[1.0])
    >>> [setting.title for setting in class_settings(["rr", "llp"], plan, 3)]
    ['RR (epsilon 1)', 'LLP (bags of 2)']
    """
    settings = []
    for name in names:
        option, _, numbers = name.partition("=")
        if option not in NAMES:
            known = "rr, llp, rr-prior=P,P,..."
            raise ValueError(f"for several classes a mechanism is one of {known}, not {name}")
        kind, parameter, values = KINDS["RR"], "epsilon", plan.epsilons
        make: Any = partial(ClassRandomizedResponse, classes)
        if option == "llp":
            values = [k for k in plan.bag_sizes if math.comb(k + classes - 1, k) <= MOST_SPLITS]
            kind, parameter, make = KINDS["LLP"], "bag_size", partial(ClassProportions, classes)
        elif option == "rr-prior":
            try:
                prior = tuple(float(number) for number in numbers.split(","))
            except ValueError:
                raise ValueError(f"rr-prior is written rr-prior=P,P,..., not {name!r}") from None
            kind, make = RR_PRIOR, partial(ClassResponseWithPrior, classes, prior=prior)
        settings += [Setting(kind, make(value), ((parameter, value),)) for value in values]
    return tuple(settings)


def attack_classes(
    eta: Floats, labels: Ints, mechanism: ClassMechanism, rng: Generator
) -> AttackRound:
    """Release the classes and guess them, with the release and without.

    |I| is the largest change of the log-odds of any class, and a label is proven where one class is
    left.
    """
    expected = additive_advantage(eta, mechanism)
    after = posterior(eta, mechanism, mechanism.release(labels, rng))
    gain = (after.argmax(axis=-1) == labels) * 1.0 - (eta.argmax(axis=-1) == labels)
    proven = (after.max(axis=-1) == 1) & (eta.max(axis=-1) < 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.log(after / (1 - after)) - np.log(eta / (1 - eta))
    shifts = np.abs(np.where(np.isnan(moved), 0.0, moved)).max(axis=-1)
    columns = (expected, gain, gain - expected, proven)
    sums, sizes = np.zeros((2, len(eta), 10))
    sums[:, :4] = np.column_stack([column.sum(axis=1) for column in columns])
    sizes[:, :4] = mechanism.bag_size
    return AttackRound(sums, sizes, shifts, "exact over releases")


def class_worth(eta: Any, mechanism: Any) -> float:
    """The fraction of the classes' variance that a release explains, in bags of consecutive rows.

    >>> round(class_worth(np.full((80, 4), 0.25), ClassProportions(4, 2)), 6)
    0.5
    """
    bags = first_bags(eta, mechanism.bag_size, WORTH_RECORDS, 2)
    variance = (bags * (1 - bags)).sum(axis=-1)
    return float((worth(bags, mechanism) * variance).sum()) / max(float(variance.sum()), 1e-300)


def class_etas(
    table: Table, codes: Ints, plan: AuditPlan, progress: Progress
) -> tuple[tuple[Floats, ...], list[EtaEstimates]]:
    """P(class) for each row and refit: one model against the rest each, scaled to sum to 1."""
    found = []
    for number in range(int(codes.max()) + 1):
        one = replace(table, labels=(codes == number).astype(np.uint8))
        progress(f"class {number + 1} of {int(codes.max()) + 1}")
        found.append(estimate_eta(one, plan.refits, plan.seed, progress, plan.learners))
    stacked = [np.stack(each, axis=1) for each in zip(*(part.etas for part in found), strict=True)]
    return tuple(each / each.sum(axis=1, keepdims=True) for each in stacked), found


def audit_classes(
    frame: pandas.DataFrame,
    label: str,
    classes: tuple[str, ...],
    plan: AuditPlan,
    names: Sequence[str],
    columns: dict[str, Any],
    name: str = "a data frame",
    progress: Progress = lambda line: None,
) -> ClassReport:
    """Learn the class probabilities, attack every setting, and advise by the rule of two classes.

    >>> import pandas
    >>> import labelaudit as la
    >>> frame = pandas.DataFrame({"age": [20, 40, 60] * 60, "party": list("abc") * 60})
    >>> la.audit(frame, "party", mechanisms=["rr"], epsilons=[1.0], target="epsilon=1")
    <audit of a data frame: 3 classes. Publish RR (epsilon 1).>
    """
    for option in ("prior", "model", "bag", "by", "positive"):
        if columns.get(option) is not None:
            raise ValueError(f"an audit of {len(classes)} classes takes no {option}: leave it out")
    kept = frame[frame[label].notna()]
    codes = np.searchsorted(classes, kept[label].astype(str)).astype(np.int64)
    rarest = int(np.bincount(codes).min())
    if rarest < LEAST_OF_EACH:
        raise ValueError(
            f"the rarest of {len(classes)} classes of {label!r} occurs {rarest} times; an audit"
            f" needs at least {LEAST_OF_EACH} of each"
        )
    table = read_table(kept.assign(**{label: (codes == 0).astype(int)}), label=label, **columns)
    if len(table) != len(codes):
        raise ValueError("every row must have a person")
    settings = [
        setting
        for setting in class_settings(names, plan, len(classes))
        if setting.mechanism.bag_size * LEAST_BAGS <= len(table)
    ]
    etas, found = class_etas(table, codes, plan, progress)
    stake = max(
        float(np.mean([1 - eta.max(axis=1).mean() for eta in etas])),
        float(np.mean([(eta.argmax(axis=1) != codes).mean() for eta in etas])),
    )
    target = plan.target or Target.of_stake(stake, plan.level)
    # One test for every class; the smallest of their p-values counts for all.
    tests = [estimates.calibration for estimates in found]
    wrong = [
        each.p_value * len(tests) < 0.05 and each.excess > target.matters(stake) for each in tests
    ]
    estimates = EtaEstimates(etas, True, tests[0])
    attacks = Attacks(codes, estimates, plan, progress, table.persons, attack_classes)
    decisions = tuple(decide(each, target, trusted=not any(wrong)) for each in attacks(settings))
    shuffled = np.random.default_rng([plan.seed, 4]).permutation(np.mean(etas, axis=0))
    utilities = tuple(
        Utility(setting, class_worth(shuffled, setting.mechanism), None, None)
        for setting in settings
    )
    empty = target.empty(stake)
    advices = () if empty else advise(decisions, utilities)
    warnings = [
        f"The true labels contradict eta of class {name!r} by more than matters: verdicts that"
        " depend on eta wait."
        for name, bad in zip(classes, wrong, strict=True)
        if bad
    ]
    return ClassReport(
        *(name, label, classes, len(table), stake, etas),
        target=target,
        decisions=decisions,
        utilities=utilities,
        advices=advices,
        headline=words.sentence("headline", advices, decisions, empty),
        reasons=tuple(words.paragraphs("reasons", advices, decisions, target, stake)),
        warnings=tuple(warnings),
        made=made_at(),
    )
