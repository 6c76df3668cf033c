"""The recommendation of an audit, over all kinds of mechanisms, in a few sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence

from labelaudit.report.advice import UNCLEAR, Advice, Verdict
from labelaudit.report.plan import Target

# Without a model, labels whose worth differs by less than this share are taken as worth the same.
MATERIAL = 0.1


def summary(
    advices: Sequence[Advice], verdicts: Sequence[Verdict], target: Target, bags: bool = False
) -> str:
    """The recommendation in a few sentences; `bags` says whether the table has its own.

    >>> summary([], [], Target("epsilon", 1.0)).split(". ")[0]
    'No setting is shown to meet the target, epsilon of at most 1'
    """
    chosen = sorted((one for one in advices if one.verdict is not None), key=_cost)
    own = f" {_own_bags(advices)}" if bags else ""
    if not chosen:
        last = (
            "For some the data cannot tell, and so this audit recommends none."
            if any(one.word == UNCLEAR for one in verdicts)
            else f"All that were tried miss it: {_what_to_try(verdicts, target)}."
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


def _what_to_try(verdicts: Sequence[Verdict], target: Target) -> str:
    """What of the settings that were tried could yet be moved towards the target."""
    if target.kind == "epsilon" and target.value == 0:
        return "at epsilon 0 nothing is released"
    taken = {name for one in verdicts for name, _ in one.exposure.setting.parameters}
    # Without noise epsilon is infinite, however large the bags.
    larger = ["larger bags"] * ("bag_size" in taken and target.kind != "epsilon")
    smaller = ["a smaller epsilon" if "epsilon" in taken else "a mechanism with noise"]
    return f"try {' or '.join(larger + smaller)}"


def asks_nothing(target: Target, stake: float) -> str:
    """What to say of a target that the labels themselves would meet; else nothing.

    No release adds more to the attacker's accuracy than the `stake` that is missing without one.

    >>> asks_nothing(Target("additive", 0.05), 0.1)
    ''
    """
    if target.kind != "additive" or stake > target.value:
        return ""
    return (
        "But this target asks nothing here: without any release the attacker is wrong about"
        f" {stake:.1%} of the records at most, so that even the labels themselves would meet it."
        " Set a smaller target, or a multiplicative one."
    )


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
