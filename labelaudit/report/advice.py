"""Which settings meet the target, which do not, and where the data cannot tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from labelaudit.bounds import label_dp_half_bound
from labelaudit.report.beliefs import Calibration
from labelaudit.report.exposure import Exposure
from labelaudit.report.intervals import Interval
from labelaudit.report.plan import Target
from labelaudit.report.utility import Utility

MEETS, MISSES, UNCLEAR = "meets", "misses", "cannot tell"


@dataclass(frozen=True)
class Verdict:
    """Whether a setting meets the target, and why one can say so or not."""

    exposure: Exposure
    word: str
    why: str


@dataclass(frozen=True)
class Advice:
    """For one kind of mechanism: the least noisy setting that meets the target, in plain words."""

    family: str
    verdict: Verdict | None
    utility: Utility | None
    text: str


def guaranteed(epsilon: float, target: Target) -> bool:
    """Whether epsilon alone keeps the target, whatever eta is.

    No epsilon-label-DP release has an additive advantage above `label_dp_half_bound`, or a
    multiplicative one above epsilon.

    >>> guaranteed(0.2, Target("additive", 0.05)), guaranteed(0.3, Target("additive", 0.05))
    (True, False)
    """
    most = float(label_dp_half_bound(epsilon)) if target.kind == "additive" else epsilon
    return most <= target.value


def judge(exposure: Exposure, target: Target, calibration: Calibration) -> Verdict:
    """Meets, misses, or abstains where an interval holds the target or eta is not to be trusted."""
    if guaranteed(exposure.guarantee, target):
        return Verdict(exposure, MEETS, "by its guarantee, whatever eta is")
    if target.kind == "epsilon":
        if guaranteed(exposure.epsilon, target):
            return Verdict(exposure, UNCLEAR, "its epsilon is declared, not checked")
        shown = "none" if math.isinf(exposure.epsilon) else f"{exposure.epsilon:g}"
        return Verdict(exposure, MISSES, f"its epsilon is {shown}")
    additive = target.kind == "additive"
    numbers = [exposure.plug_in, exposure.realised] if additive else [exposure.percentile]
    if any(math.isnan(number.value) for number in numbers):
        return Verdict(exposure, UNCLEAR, "there is nothing to measure")
    if calibration.fails:
        return Verdict(exposure, UNCLEAR, "the estimate of eta is not calibrated")
    if exposure.contradicted:
        return Verdict(exposure, UNCLEAR, "the true labels contradict the estimate of eta")
    if all(number.high <= target.value for number in numbers):
        return Verdict(exposure, MEETS, "the interval is below it")
    if any(number.low > target.value for number in numbers):
        return Verdict(exposure, MISSES, "the interval is above it")
    return Verdict(exposure, UNCLEAR, "the interval holds it")


def advise(
    verdicts: Sequence[Verdict], utilities: Sequence[Utility], target: Target
) -> tuple[Advice, ...]:
    """One piece of advice for each kind of mechanism."""
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
        found.append(Advice(family.name, chosen, cost, text))
    return tuple(found)


def noise_of(verdict: Verdict, utility: Utility) -> tuple[float, float, float]:
    """The least noisy first: by worth of a label where it is known, else by parameters."""
    worth = utility.worth
    exposure = verdict.exposure
    return (-worth if worth is not None else 0.0, -exposure.epsilon, exposure.bag_size)


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
    return f"{missed} miss it" if missed else "none is shown to miss it"


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


def summary(advices: Sequence[Advice], verdicts: Sequence[Verdict], target: Target) -> str:
    """The recommendation in two or three sentences."""
    chosen = sorted((one for one in advices if one.verdict is not None), key=_cost)
    if not chosen:
        last = (
            "For some the data cannot tell, and so this audit recommends none."
            if any(one.word == UNCLEAR for one in verdicts)
            else "All that were tried miss it: try larger bags or a smaller epsilon."
        )
        return f"No setting is shown to meet the target, {target}. {last}"
    alike = [one for one in chosen if one is chosen[0] or _alike(chosen[0], one)]
    shown = [one.verdict.exposure for one in alike if one.verdict is not None]
    start = f"Target: {target}."
    if len(shown) == 1:
        unknown = [one for one in chosen[1:] if one.utility and one.utility.worth is None]
        also = [one.verdict.exposure.title for one in unknown if one.verdict is not None]
        more = f" {', '.join(also)} would do as well, at a cost that was not measured."
        least = f"{start} {shown[0].title} meets it at the least cost of all that was measured."
        return least + (more if also else "")
    names = f"{', '.join(one.title for one in shown[:-1])} and {shown[-1].title}"
    safest = min(shown, key=lambda one: one.guarantee)
    last = (
        ""
        if math.isinf(safest.guarantee)
        else f" Of these, {safest.title} has the strongest guarantee."
    )
    return f"{start} {names} meet it, and this data cannot tell their costs apart.{last}"


def _cost(advice: Advice) -> tuple[float, float]:
    utility = advice.utility
    area = -utility.auc.value if utility and utility.auc else 0.0
    worth = -utility.worth if utility and utility.worth is not None else 0.0
    return (area, worth)


def _alike(one: Advice, other: Advice) -> bool:
    """Whether two losses are within two standard errors of one another."""
    first = one.utility.loss if one.utility else None
    second = other.utility.loss if other.utility else None
    if first is None or second is None:
        return False
    error = math.hypot(first.standard_error, second.standard_error)
    return abs(first.value - second.value) <= 2 * error
