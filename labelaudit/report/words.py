"""The sentences that the page, the JSON file and chapter 14 share: advice, summary, calibration.

What the page alone says is in its template. Nothing here decides: it only says what was decided.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from labelaudit.report import eta

if TYPE_CHECKING:
    from labelaudit.report.decisions import Advice, Decision
    from labelaudit.report.intervals import Interval
    from labelaudit.report.plan import Setting, Target
    from labelaudit.report.scenarios import BagFacts
    from labelaudit.report.utility import Utility

# Why a setting meets the target before anything is measured.
BY_GUARANTEE = "by its guarantee, if labels are independent given what the attacker knows"


def target(target: Target) -> str:
    """A target in words."""
    if target.kind == "epsilon":
        return f"epsilon of at most {target.value:g}"
    records = f" for {100 * target.level:.4g}% of the records"
    ending = records if target.kind == "multiplicative" else ""
    return f"{target.kind} advantage of at most {target.value:g}{ending}"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _verb(names: Sequence[object], singular: str, plural: str) -> str:
    return singular if len(names) == 1 else plural


def _range(interval: Interval) -> str:
    return f"{interval.value:.3f} ({interval.low:.3f} to {interval.high:.3f})"


def _reasons(decisions: Sequence[Decision]) -> str:
    return "; ".join(dict.fromkeys(decision.why for decision in decisions))


# The advice on one kind of mechanism


def advice(
    decisions: Sequence[Decision], chosen: Decision | None, costs: Mapping[Setting | None, Utility]
) -> str:
    """The recommended setting of a kind, or why there is none; decisions from the least noisy."""
    kind = decisions[0].setting.kind.title
    name = kind[0].upper() + kind[1:]
    unclear = [decision for decision in decisions if decision.unclear]
    if chosen is None and not unclear:
        if len(decisions) == 1:
            return f"{name}: the one setting tried misses the target."
        return f"{name}: none of the {len(decisions)} settings tried meets the target."
    if chosen is None:
        missed = len(decisions) - len(unclear)
        rest = f"{missed} miss{'es' * (missed == 1)} it"
        return (
            f"{name}: no recommendation. For {len(unclear)} of {len(decisions)} settings the data"
            f" cannot tell ({_reasons(unclear)}); {rest if missed else 'none is shown to miss it'}."
        )
    exposure = chosen.exposure
    sentences = [
        f"{name}: {exposure.title} is the least noisy setting tried that meets the target"
        f" ({chosen.why}).",
        f"Its additive advantage is {_range(exposure.plug_in)} by the estimate of eta and"
        f" {_range(exposure.realised)} on the true labels.",
        _cost(costs[chosen.setting], costs.get(None)),
    ]
    less_noisy = [each for each in decisions[: decisions.index(chosen)] if each.unclear]
    if less_noisy:
        title = less_noisy[-1].exposure.title
        sentences.append(f"Less noise might do as well, but the data cannot tell: {title}.")
    if not exposure.setting.checked:
        sentences.append("Its epsilon is declared, not checked.")
    elif math.isinf(exposure.epsilon):
        sentences.append("It has no guarantee against an attacker who knows more.")
    return " ".join(filter(None, sentences))


def _cost(cost: Utility, clean: Utility | None) -> str:
    parts = []
    if cost.worth is not None:
        parts.append(f"a released label is worth {cost.worth:.2g} of a clean one")
    if cost.auc and cost.loss and clean and clean.auc:
        parts.append(
            f"a model trained on releases has AUC {cost.auc.value:.3f} against"
            f" {clean.auc.value:.3f} on clean labels, a loss of {_range(cost.loss)}"
        )
    return f"What it costs: {', and '.join(parts)}." if parts else ""


def advice_on_own_bags(decisions: Sequence[Decision], best: Decision | None) -> str:
    """The same for the table's own bags; nothing where the mechanism was not tried on them."""
    if not decisions:
        return ""
    unclear = [decision for decision in decisions if decision.unclear]
    if best is not None:
        text = f"{best.exposure.title} is the least noisy that meets it ({best.why})"
    elif len(decisions) == 1:
        answer = "the data cannot tell" if unclear else "it does not meet it"
        text = f"{answer} ({decisions[0].why})"
    elif not unclear:
        text = "none meets it"
    else:
        text = (
            f"none is shown to meet it: for {len(unclear)} of {len(decisions)} the data cannot tell"
            f" ({_reasons(unclear)})"
        )
    return f" In the table's own bags {text}."


# The summary over all kinds


def summary(
    advices: Sequence[Advice], decisions: Sequence[Decision], target: Target, bags: bool = False
) -> str:
    """The recommendation in a small number of sentences; `bags`: whether the table has its own.

    >>> from labelaudit.report import Target
    >>> summary([], [], Target("epsilon", 1.0)).split(". ")[0]
    'No setting is shown to meet the target, epsilon of at most 1'
    """
    chosen = sorted((each for each in advices if each.decision), key=lambda each: each.cost)
    own = f" {_own_bags(advices)}" if bags else ""
    if not chosen:
        last = (
            "For some the data cannot tell, and so this audit recommends none."
            if any(decision.unclear for decision in decisions)
            else f"All that were tried miss it: {_what_to_try(decisions, target)}."
        )
        return f"No setting is shown to meet the target, {target}. {last}{own}"
    measured = [each for each in chosen if each.measured]
    cheapest = [each for each in measured if measured[0].costs_the_same(each)]
    unknown = _titles([each for each in chosen if not each.measured])
    sentences = [f"Target: {target}."]
    if cheapest:
        sentences += [_least_cost(cheapest), _strongest(cheapest)]
    if unknown:
        well = " as well" if cheapest else ""
        verb = _verb(unknown, "meets", "meet")
        sentences.append(f"{listed(unknown)} {verb} it{well}, at a cost that was not measured.")
    return " ".join(filter(None, sentences)) + own


def _titles(advices: Sequence[Advice]) -> list[str]:
    return [each.decision.exposure.title for each in advices if each.decision]


def _what_to_try(decisions: Sequence[Decision], target: Target) -> str:
    """Which parameters of the settings that were tried could bring them to the target."""
    if target.kind == "epsilon" and target.value == 0:
        return "at epsilon 0 nothing is released"
    taken = {name for decision in decisions for name, _ in decision.setting.parameters}
    # Without noise epsilon is infinite for every bag size.
    larger = ["larger bags"] * ("bag_size" in taken and target.kind != "epsilon")
    smaller = ["a smaller epsilon" if "epsilon" in taken else "a mechanism with noise"]
    return f"try {' or '.join(larger + smaller)}"


def _least_cost(cheapest: Sequence[Advice]) -> str:
    names = listed(_titles(cheapest))
    by_model = cheapest[0].utility is not None and cheapest[0].utility.loss is not None
    measure = "" if by_model else ", by the worth of a label alone: no model was trained"
    if len(cheapest) == 1:
        return f"{names} meets it at the least cost of all that was measured{measure}."
    if by_model:
        return f"{names} meet it, and this data cannot tell their costs apart."
    return f"{names} meet it at about the same cost{measure}."


def _strongest(cheapest: Sequence[Advice]) -> str:
    """Which of several that cost the same has the smallest epsilon."""
    least = min(each.guarantee for each in cheapest)
    strongest = [each for each in cheapest if each.guarantee == least]
    if len(cheapest) == 1 or math.isinf(least):
        return ""
    if len(strongest) == len(cheapest):
        return "Their guarantee is the same."
    verb = _verb(strongest, "has", "have")
    return f"Of these, {listed(_titles(strongest))} {verb} the strongest guarantee."


def _own_bags(advices: Sequence[Advice]) -> str:
    titles = [each.own_bags.exposure.title for each in advices if each.own_bags]
    if titles:
        return f"In the table's own bags {listed(titles)} {_verb(titles, 'meets', 'meet')} it."
    return "In the table's own bags no setting is shown to meet it."


def empty_target(target: Target, stake: float) -> str:
    """A warning about a target that the labels themselves would meet; otherwise nothing.

    No release adds more to the attacker's accuracy than the `stake` that is missing without one.

    >>> from labelaudit.report import Target
    >>> empty_target(Target("additive", 0.05), 0.1)
    ''
    """
    if target.kind != "additive" or stake > target.value:
        return ""
    return (
        "But every release meets this target: without any release the attacker is wrong about"
        f" {stake:.1%} of the records at most, so that even the labels themselves would meet it."
        " Set a smaller target, or a multiplicative one."
    )


# Sentences of the page


def calibration_ratio_sentence(estimates: eta.EtaEstimates) -> str:
    """Spiegelhalter's ratio of a ready-made eta, and why it is not computed for another.

    >>> import numpy as np
    >>> labels = np.tile([0, 1], 50)
    >>> calibration_ratio_sentence(eta.EtaEstimates.ready_made(np.full(100, 0.75), labels))
    "Spiegelhalter's ratio is 5.8, and eta lies 0.2500 too far from 1/2 on average."
    """
    if estimates.refitted:
        return (
            "Spiegelhalter's ratio is not computed: each fold was scaled on the labels of another,"
            " which moves the ratio over all folds towards 0 for every eta."
        )
    distance = estimates.calibration.overconfidence
    return (
        f"Spiegelhalter's ratio is {estimates.calibration.ratio:.1f}, and eta lies"
        f" {abs(distance):.4f} too {'far from' if distance > 0 else 'near to'} 1/2 on average."
    )


def calibration_test_sentence(refitted: bool) -> str:
    """What an estimate of eta must pass.

    >>> calibration_test_sentence(refitted=True)
    'an error of at most 2 times that of a calibrated eta, or no more than 0.01 above it.'
    """
    error = (
        f"an error of at most {eta.NOISE_FACTOR:g} times that of a calibrated eta, or no more than"
        f" {eta.LEAST_MARGIN:g} above it"
    )
    if refitted:
        return f"{error}."
    return (
        f"{error}; and a ratio of at most {eta.MOST_RATIO:g} in absolute value, where a true eta"
        f" gives a standard normal number, or a distance of at most {eta.LEAST_OVERCONFIDENCE:g}."
    )


def bag_sizes(facts: BagFacts) -> str:
    """How large the table's bags are."""
    if facts.smallest == facts.largest:
        return f"{facts.largest:,} record{'s' * (facts.largest > 1)} each"
    return f"{facts.smallest:,} to {facts.largest:,} records (median {facts.median:g})"
