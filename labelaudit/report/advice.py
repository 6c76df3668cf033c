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
# Without a model, labels whose worth differs by less than this share are taken as worth the same.
MATERIAL = 0.1


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
    """One piece of advice for each kind of mechanism; `given` are verdicts on the table's bags."""
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


def summary(
    advices: Sequence[Advice], verdicts: Sequence[Verdict], target: Target, bags: bool = False
) -> str:
    """The recommendation in a few sentences; `bags` says whether the table has its own."""
    chosen = sorted((one for one in advices if one.verdict is not None), key=_cost)
    own = f" {_own_bags(advices)}" if bags else ""
    if not chosen:
        last = (
            "For some the data cannot tell, and so this audit recommends none."
            if any(one.word == UNCLEAR for one in verdicts)
            else "All that were tried miss it: try larger bags or a smaller epsilon."
        )
        return f"No setting is shown to meet the target, {target}. {last}{own}"
    known = [one for one in chosen if one.utility and one.utility.worth is not None]
    unknown = [one for one in chosen if one not in known]
    alike = [one for one in known if _alike(known[0], one)]
    said = [f"Target: {target}."]
    if alike:
        by_model = alike[0].utility is not None and alike[0].utility.loss is not None
        said.append(_least(alike, by_model))
    if len(alike) > 1:
        said.append(_safest(alike))
    if unknown:
        well = " as well" if alike else ""
        verb = "meets" if len(unknown) == 1 else "meet"
        said.append(f"{_names(unknown)} {verb} it{well}, at a cost that was not measured.")
    return " ".join(sentence for sentence in said if sentence) + own


def _least(alike: Sequence[Advice], by_model: bool) -> str:
    measure = "" if by_model else ", by the worth of a label alone: no model was trained"
    if len(alike) == 1:
        return f"{_names(alike)} meets it at the least cost of all that was measured{measure}."
    if by_model:
        return f"{_names(alike)} meet it, and this data cannot tell their costs apart."
    return f"{_names(alike)} meet it at about the same cost{measure}."


def _safest(alike: Sequence[Advice]) -> str:
    least = min(_guarantee(one) for one in alike)
    safest = [one for one in alike if _guarantee(one) == least]
    if math.isinf(least):
        return ""
    if len(safest) == len(alike):
        return "Their guarantee is the same."
    verb = "has" if len(safest) == 1 else "have"
    return f"Of these, {_names(safest)} {verb} the strongest guarantee."


def _own_bags(advices: Sequence[Advice]) -> str:
    given = [one.given.exposure.title for one in advices if one.given is not None]
    if given:
        verb = "meets" if len(given) == 1 else "meet"
        return f"In the table's own bags {_listed(given)} {verb} it."
    return "In the table's own bags no setting is shown to meet it."


def _guarantee(advice: Advice) -> float:
    return advice.verdict.exposure.guarantee if advice.verdict else math.inf


def _names(advices: Sequence[Advice]) -> str:
    return _listed([one.verdict.exposure.title for one in advices if one.verdict is not None])


def _listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> _listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _cost(advice: Advice) -> tuple[float, float]:
    utility = advice.utility
    area = -utility.auc.value if utility and utility.auc else 0.0
    worth = -utility.worth if utility and utility.worth is not None else 0.0
    return (area, worth)


def _alike(one: Advice, other: Advice) -> bool:
    """Whether losses are within two standard errors; without a model, whether worths are close."""
    if one.utility is None or other.utility is None:
        return False
    first, second = one.utility.loss, other.utility.loss
    if first is not None and second is not None:
        error = math.hypot(first.standard_error, second.standard_error)
        return abs(first.value - second.value) <= 2 * error
    if first is not None or second is not None:
        return False
    worths = [one.utility.worth or 0.0, other.utility.worth or 0.0]
    return min(worths) >= (1 - MATERIAL) * max(worths)
