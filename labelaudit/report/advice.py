"""Which settings meet the target, which do not, and where the data cannot tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from labelaudit.bounds import label_dp_half_bound
from labelaudit.report.beliefs import Calibration
from labelaudit.report.exposure import Exposure
from labelaudit.report.families import Family
from labelaudit.report.intervals import Interval
from labelaudit.report.plan import Target
from labelaudit.report.utility import Utility

MEETS, MISSES, UNCLEAR = "meets", "misses", "cannot tell"
BY_GUARANTEE = "by its guarantee, if labels are independent given what the attacker knows"
BY_EPSILON = "its epsilon is known"


@dataclass(frozen=True)
class Verdict:
    """Whether a setting meets the target, and why one can say so or not."""

    exposure: Exposure
    word: str
    why: str


@dataclass(frozen=True)
class Advice:
    """For one kind of mechanism: the least noisy setting that meets the target, in plain words.

    `given` is the same for the table's own bags, where it has any and the mechanism takes them.
    """

    family: Family
    verdict: Verdict | None
    utility: Utility | None
    text: str
    given: Verdict | None = None


def guaranteed(epsilon: float, target: Target) -> bool:
    """Whether epsilon alone keeps the target, if labels are independent given what is known.

    No epsilon-label-DP release then has an additive advantage above `label_dp_half_bound`, or a
    multiplicative one above epsilon. The attacker may know other labels, but no twins: where labels
    depend on one another, a release about one speaks about the others as well.

    >>> guaranteed(0.2, Target("additive", 0.05)), guaranteed(0.3, Target("additive", 0.05))
    (True, False)
    """
    most = float(label_dp_half_bound(epsilon)) if target.kind == "additive" else epsilon
    return most <= target.value


def judge(
    exposure: Exposure, target: Target, calibration: Calibration, *, together: bool = False
) -> Verdict:
    """Meets, misses, or abstains where an interval holds the target or eta is not to be trusted.

    Where labels move `together`, a guarantee settles what epsilon is, and nothing else. Of a
    mechanism that is the user's own, labels that contradict its law come first.

    >>> import numpy as np
    >>> from labelaudit.report import Plan, expose
    >>> from labelaudit.report.beliefs import Beliefs, calibration_of
    >>> labels, etas = np.tile([0, 1], 50), (np.full(100, 0.5),) * 2
    >>> beliefs = Beliefs(etas, False, calibration_of(etas, labels))
    >>> [exposure] = expose(labels, beliefs, Plan(mechanisms=["rr"], epsilons=[1.0]))
    >>> verdict = judge(exposure, Target("additive", 0.05), beliefs.calibration)
    >>> verdict.word, verdict.why
    ('misses', 'the interval is above it')
    """
    epsilon = target.kind == "epsilon"
    if exposure.setting.family.own and exposure.contradicted:
        return Verdict(exposure, UNCLEAR, "the true labels contradict eta or the mechanism's law")
    if guaranteed(exposure.guarantee, target) and (epsilon or not together):
        return Verdict(exposure, MEETS, BY_EPSILON if epsilon else BY_GUARANTEE)
    if epsilon:
        if guaranteed(exposure.epsilon, target):
            return Verdict(exposure, UNCLEAR, "its epsilon is declared, not checked")
        shown = "none" if math.isinf(exposure.epsilon) else f"{exposure.epsilon:g}"
        return Verdict(exposure, MISSES, f"its epsilon is {shown}")
    numbers = (
        [exposure.plug_in, exposure.realised]
        if target.kind == "additive"
        else [exposure.percentile]
    )
    if any(math.isnan(number.value) for number in numbers):
        return Verdict(exposure, UNCLEAR, "there is nothing to measure")
    if calibration.fails:
        return Verdict(exposure, UNCLEAR, "the estimate of eta is not calibrated")
    if exposure.contradicted:
        return Verdict(exposure, UNCLEAR, "the true labels contradict the estimate of eta")
    if all(number.high <= target.value for number in numbers):
        alone = ", for an attacker who does not know that labels move together" if together else ""
        return Verdict(exposure, MEETS, f"the interval is below it{alone}")
    if any(number.low > target.value for number in numbers):
        return Verdict(exposure, MISSES, "the interval is above it")
    return Verdict(exposure, UNCLEAR, "the interval holds it")


def advise(
    verdicts: Sequence[Verdict], utilities: Sequence[Utility], given: Sequence[Verdict] = ()
) -> tuple[Advice, ...]:
    """One piece of advice for each kind of mechanism; `given` are verdicts on the table's bags.

    >>> import numpy as np
    >>> from labelaudit.report import Plan, expose
    >>> from labelaudit.report.beliefs import Beliefs, calibration_of
    >>> from labelaudit.report.utility import Utility
    >>> labels, etas = np.tile([0, 1], 50), (np.full(100, 0.5),) * 2
    >>> beliefs = Beliefs(etas, False, calibration_of(etas, labels))
    >>> exposures = expose(labels, beliefs, Plan(mechanisms=["rr"], epsilons=[1.0, 2.0]))
    >>> verdicts = [judge(one, Target("epsilon", 1.0), beliefs.calibration) for one in exposures]
    >>> utilities = [Utility(one.setting, None, None, None) for one in exposures]
    >>> [advice] = advise(verdicts, utilities)
    >>> advice.verdict.exposure.title
    'RR (epsilon 1)'
    """
    costs = {utility.setting: utility for utility in utilities}
    clean = costs.get(None)
    families = dict.fromkeys(verdict.exposure.setting.family for verdict in verdicts)
    found = []
    for family in families:
        own = [one for one in verdicts if one.exposure.setting.family == family]
        own.sort(key=lambda one: noise_of(one, costs[one.exposure.setting]))
        chosen = next((one for one in own if one.word == MEETS), None)
        cost = costs[chosen.exposure.setting] if chosen else None
        text = _words(family.name, own, chosen, cost, clean)
        # Bags are what they are: only epsilon is left to choose.
        in_bags = [one for one in given if one.exposure.setting.family == family]
        in_bags.sort(key=lambda one: -one.exposure.epsilon)
        best = next((one for one in in_bags if one.word == MEETS), None)
        if in_bags:
            text += f" In the table's own bags {_in_bags(in_bags, best)}."
        found.append(Advice(family, chosen, cost, text, best))
    return tuple(found)


def _in_bags(own: Sequence[Verdict], best: Verdict | None) -> str:
    if best is not None:
        return f"{best.exposure.title} is the least noisy that meets it ({best.why})"
    doubtful = [one for one in own if one.word == UNCLEAR]
    if len(own) == 1:
        return f"{'it does not' if not doubtful else 'one cannot tell'} ({own[0].why})"
    if not doubtful:
        return "none meets it"
    reasons = "; ".join(dict.fromkeys(one.why for one in doubtful))
    return (
        f"none is shown to meet it: for {len(doubtful)} of {len(own)} one cannot tell ({reasons})"
    )


def noise_of(verdict: Verdict, utility: Utility) -> tuple[float, float, float]:
    """The least noisy first: by worth of a label where it is known, else by parameters."""
    worth = utility.worth
    exposure = verdict.exposure
    size = exposure.setting.mechanism.bag_size
    return (-worth if worth is not None else 0.0, -exposure.epsilon, size)


def _words(
    family: str,
    own: Sequence[Verdict],
    chosen: Verdict | None,
    cost: Utility | None,
    clean: Utility | None,
) -> str:
    name = family[0].upper() + family[1:]
    doubtful = [one for one in own if one.word == UNCLEAR]
    if chosen is None:
        if not doubtful:
            if len(own) == 1:
                return f"{name}: the one setting tried misses the target."
            return f"{name}: none of the {len(own)} settings tried meets the target."
        reasons = "; ".join(dict.fromkeys(one.why for one in doubtful))
        return (
            f"{name}: no recommendation. For {len(doubtful)} of {len(own)} settings the data cannot"
            f" tell ({reasons}); {_rest(own)}."
        )
    sentences = [
        f"{name}: {chosen.exposure.title} is the least noisy setting tried that meets the target"
        f" ({chosen.why})."
    ]
    exposure = chosen.exposure
    sentences.append(
        f"Its additive advantage is {_range(exposure.plug_in)} by the estimate of eta and"
        f" {_range(exposure.realised)} on the true labels."
    )
    sentences.append(_cost_words(cost, clean))
    before = own[: own.index(chosen)]
    maybe = [one.exposure.title for one in before if one.word == UNCLEAR]
    if maybe:
        sentences.append(f"Less noise might do as well, but the data cannot tell: {maybe[-1]}.")
    if not exposure.setting.checked:
        sentences.append("Its epsilon is declared, not checked.")
    elif math.isinf(exposure.epsilon):
        sentences.append("It has no guarantee against an attacker who knows more.")
    return " ".join(sentence for sentence in sentences if sentence)


def _rest(own: Sequence[Verdict]) -> str:
    missed = sum(one.word == MISSES for one in own)
    verb = "misses" if missed == 1 else "miss"
    return f"{missed} {verb} it" if missed else "none is shown to miss it"


def _range(interval: Interval) -> str:
    return f"{interval.value:.3f} ({interval.low:.3f} to {interval.high:.3f})"


def _cost_words(cost: Utility | None, clean: Utility | None) -> str:
    said = []
    if cost and cost.worth is not None:
        said.append(f"a released label is worth {cost.worth:.2g} of a clean one")
    if cost and cost.auc and cost.loss and clean and clean.auc:
        said.append(
            f"a model trained on releases has AUC {cost.auc.value:.3f} against"
            f" {clean.auc.value:.3f} on clean labels, a loss of {_range(cost.loss)}"
        )
    return f"What it costs: {', and '.join(said)}." if said else ""
