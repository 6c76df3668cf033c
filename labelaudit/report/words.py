"""The sentences that the page, the JSON file and chapter 14 share: conclusion, advice, eta.

What the page alone says is in its template. Nothing here decides: it only says what was decided.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from labelaudit.report import eta

if TYPE_CHECKING:
    from labelaudit.report.attack import Exposure
    from labelaudit.report.decisions import Advice, Decision
    from labelaudit.report.intervals import Interval
    from labelaudit.report.plan import Setting, Target
    from labelaudit.report.scenarios import BagFacts
    from labelaudit.report.utility import Utility

# Why a setting meets the target before anything is measured.
BY_GUARANTEE = "by its guarantee, if labels are independent given what the attacker knows"
# The rule behind every verdict, on the page and in chapter 14.
RULE = (
    "Facts by construction, which need no eta: epsilon and what it guarantees, labels that are"
    " proven, how far the odds of a label released alone can move.",
    "One test of eta on all true labels. If they contradict eta by more than"
    f" {eta.MATTERS:.0%} of what the target allows, eta is scaled to the labels once more; if they"
    " still do, every verdict that depends on eta is “cannot tell”, because a wrong eta makes"
    " the advantage on the true labels too small as well. A smaller contradiction is a remark.",
    "Otherwise two intervals decide, by eta and on the true labels: both below the target, it meets"
    " it; both above, it misses it; else the data cannot tell.",
)

# A small additive advantage is no promise about anybody's label.
ADDITIVE_ALONE = (
    "An additive target alone can be met by a release that reveals most labels: where the labels"
    " are easy to guess, proving them adds little. Look at the labels that are proven, too, or set"
    " a multiplicative target."
)
# What to do where labels are released again.
FIX_BAGS = (
    "If you publish again, fix the bags: keep everybody in the same bag, and give new people bags"
    " of their own. In bags drawn again each release adds to what the earlier ones told."
)


def target(target: Target) -> str:
    """A target in words."""
    if target.kind == "epsilon":
        return f"epsilon of at most {target.value:g}"
    records = f" for {100 * target.level:.4g}% of the records"
    ending = records if target.kind == "multiplicative" else ""
    return f"{target.kind} advantage of at most {target.value:g}{ending}"


def listed(names: Sequence[str], last: str = "and") -> str:
    """Names in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def explained(exposure: Exposure) -> str:
    """What a setting publishes, and by how much it can change the odds about anybody.

    >>> from labelaudit.report.plan import settings_of
    >>> from types import SimpleNamespace
    >>> [setting] = settings_of(["rr"], [8], [1.0])
    >>> explained(SimpleNamespace(setting=setting, epsilon=1.0, guarantee=1.0, rows=1))
    'each label is replaced by its opposite with probability 0.27; odds change at most 2.7 times'
    """
    setting = exposure.setting
    classes = getattr(setting.mechanism, "classes", 2)
    what = setting.kind.explanation.format(
        k=setting.mechanism.bag_size,
        flip=(classes - 1) / (classes - 1 + math.exp(min(exposure.epsilon, 700))),
        other="its opposite" if classes == 2 else "another class",
        counted="positive" if classes == 2 else "of each class",
    )
    if math.isinf(exposure.guarantee):
        return f"{what}; there is no limit to what an attacker who knows more can learn"
    if exposure.guarantee > math.log(1000):
        return f"{what}; odds can change more than a thousand times"
    whose = f" for a person with {exposure.rows} rows" if exposure.rows > 1 else ""
    return f"{what}; odds change at most {math.exp(exposure.guarantee):.2g} times{whose}"


def proving(decision: Decision) -> str:
    """That a setting proves labels; nothing where it proves none or next to none."""
    if not decision.proves:
        return ""
    return f"this proves {100 * decision.exposure.revealed.value:.2g}% of labels to anyone"


def _reasons(decisions: Sequence[Decision]) -> str:
    return "; ".join(dict.fromkeys(decision.why for decision in decisions))


# The conclusion over all kinds


def headline(advices: Sequence[Advice], decisions: Sequence[Decision], empty: bool) -> str:
    """What to publish, what not, and what the data cannot tell, for a reader in a hurry."""
    if empty:
        return "No recommendation: the target asks nothing here."
    unclear = {each.setting.kind for each in decisions if each.unclear}
    chosen = sorted((each for each in advices if each.decision), key=lambda each: each.order)
    safe = [each for each in chosen if not each.proves]
    sentences = []
    if safe:
        titles = _titles(_first(chosen))
        cost = ", which cost about the same" * (len(titles) > 1)
        sentences.append(f"Publish {listed(titles, 'or')}{cost}.")
    elif not chosen and unclear:
        sentences.append("The data cannot tell whether any setting meets the target.")
    elif not chosen:
        sentences.append("Publish none of these: every setting tried misses the target.")
    for each in chosen:
        if (decision := each.decision) and decision.proves:
            sentences.append(
                f"{decision.exposure.title} meets the target, but {proving(decision)}."
            )
    without = [each.kind for each in advices if each.decision is None]
    if chosen and (missing := [kind.title for kind in without if kind not in unclear]):
        sentences.append(f"Do not publish {listed(missing, 'or')}: no setting tried meets it.")
    if chosen and (open_kinds := [kind.title for kind in without if kind in unclear]):
        sentences.append(f"For {listed(open_kinds)} the data cannot tell.")
    return " ".join(sentences)


def reasons(
    advices: Sequence[Advice], decisions: Sequence[Decision], target: Target, stake: float
) -> list[str]:
    """Why: the target, what the recommended settings publish, what an attacker gains by them."""
    wrong = f"Without any release an attacker who knows the features guesses {stake:.1%} wrong."
    if target.empty(stake):
        return [
            f"Every release meets the target, {target}. {wrong} Even the labels themselves would"
            " meet it. Set a smaller target, or none: the default is a tenth of that fraction."
        ]
    sentences = [f"The target is {target}."]
    if target.kind == "additive":
        sentences.append(f"{wrong} The target lets {target.value / stake:.0%} of these be undone.")
        sentences.append(ADDITIVE_ALONE)
    chosen = sorted((each for each in advices if each.decision), key=lambda each: each.order)
    if not chosen:
        unclear = [decision for decision in decisions if decision.unclear]
        sentences.append(
            f"{len(unclear)} of {len(decisions)} settings are open: {_reasons(unclear)}."
            if unclear
            else f"All that were tried miss it: {_what_to_try(decisions, target)}."
        )
        return [" ".join(sentences)]
    paragraphs = [" ".join(sentences)]
    in_bags = False
    for advice in _first(chosen):
        if advice.decision:
            exposure = advice.decision.exposure
            in_bags |= exposure.setting.mechanism.bag_size > 1
            paragraphs.append(
                f"{exposure.title}: {explained(exposure)}. An attacker guesses"
                f" {_percent(exposure.plug_in)} more labels right by eta,"
                f" {_percent(exposure.realised)} on the true labels."
            )
    return paragraphs + [FIX_BAGS] * in_bags


def _first(chosen: Sequence[Advice]) -> list[Advice]:
    """The best advice and what costs about the same, the strongest guarantee first."""
    equal = [
        each
        for each in chosen
        if each.proves == chosen[0].proves and chosen[0].costs_the_same(each)
    ]
    return sorted(equal, key=lambda each: each.guarantee)


def _percent(interval: Interval) -> str:
    return f"{100 * interval.value:.2f}% ({100 * interval.low:.2f}% to {100 * interval.high:.2f}%)"


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


# The advice on one kind of mechanism


def advice(
    decisions: Sequence[Decision], chosen: Decision | None, costs: Mapping[Setting | None, Utility]
) -> str:
    """The recommended setting of a kind, or why there is none; decisions from the least noisy."""
    kind = decisions[0].setting.kind.title
    name = kind[0].upper() + kind[1:]
    unclear = [decision for decision in decisions if decision.unclear]
    if chosen is None and not unclear:
        return f"{name}: no setting tried meets the target ({_reasons(decisions)})."
    if chosen is None:
        missed = len(decisions) - len(unclear)
        rest = f"{missed} miss{'es' * (missed == 1)} it"
        return (
            f"{name}: no recommendation. For {len(unclear)} of {len(decisions)} settings the data"
            f" cannot tell ({_reasons(unclear)}); {rest if missed else 'none is shown to miss it'}."
        )
    exposure = chosen.exposure
    proves = f", but {proving(chosen)}" if chosen.proves else ""
    sentences = [
        f"{name}: {exposure.title} is the least noisy setting tried that meets the target"
        f" ({chosen.why}){proves}.",
        f"Its additive advantage is {exposure.plug_in} by the estimate of eta and"
        f" {exposure.realised} on the true labels.",
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
    if cost.worth is None:
        return "What it costs was not measured."
    parts = [f"a released label is worth {cost.worth:.2g} of a clean one"]
    if cost.auc and cost.loss and clean and clean.auc:
        parts.append(
            f"a model trained on releases has AUC {cost.auc.value:.3f} against"
            f" {clean.auc.value:.3f} on clean labels, a loss of {cost.loss}"
        )
    return f"What it costs: {', and '.join(parts)}."


def advice_on_own_bags(decisions: Sequence[Decision], best: Decision | None) -> str:
    """The same for the table's own bags; nothing where the mechanism was not tried on them."""
    if not decisions:
        return ""
    unclear = [decision for decision in decisions if decision.unclear]
    if best is not None:
        text = f"{best.exposure.title} is the least noisy that meets it ({best.why})"
        text += f", but {proving(best)}" if best.proves else ""
    elif not unclear:
        text = f"no setting meets it ({_reasons(decisions)})"
    else:
        number = f"{len(unclear)} of {len(decisions)}"
        text = f"for {number} settings the data cannot tell ({_reasons(unclear)}), none meets it"
    return f" In the table's own bags {text}."


def own_bags(advices: Sequence[Advice]) -> str:
    """Which settings meet the target in the table's own bags."""
    titles = [each.own_bags.exposure.title for each in advices if each.own_bags]
    if titles:
        return f"In the table's own bags {listed(titles)} meet{'s' * (len(titles) == 1)} it."
    return "In the table's own bags no setting is shown to meet it."


# Sentences of the page


def eta_sentence(estimates: eta.EtaEstimates, limit: float) -> str:
    """What the one test of eta on the true labels says; `limit` is what matters.

    >>> import numpy as np
    >>> labels = np.tile([0, 1], 50)
    >>> eta_sentence(eta.EtaEstimates.ready_made(np.full(100, 0.5), labels), 0.01)
    'The true labels do not contradict eta (p = 1.00).'
    """
    calibration = estimates.calibration
    before = "It was scaled to the labels once more, because they contradicted it. "
    start = before * estimates.recalibrated
    p_value = f"p = {calibration.p_value:.2f}" if calibration.p_value >= 0.01 else "p < 0.01"
    if not calibration.contradicted:
        return f"{start}The true labels do not contradict eta ({p_value})."
    low, high, promised, true = calibration.worst
    where = (
        f"The true labels contradict eta ({p_value}): where it lies between {low:.3g} and"
        f" {high:.3g} it promises {promised:,.0f} positive labels and there are {true:,}."
    )
    if calibration.wrong_by(limit):
        return (
            f"{start}{where} That is {calibration.excess:.2%} of all records, more than the"
            f" {limit:.2%} that would not matter. Every verdict that depends on eta is “cannot"
            " tell”: a wrong eta makes the advantage on the true labels too small as well."
        )
    return (
        f"{start}{where} That is {calibration.excess:.2%} of all records, no more than the"
        f" {limit:.2%} that does not matter."
    )


def bag_sizes(facts: BagFacts) -> str:
    """How large the table's bags are."""
    if facts.smallest == facts.largest:
        return f"{facts.largest:,} record{'s' * (facts.largest > 1)} each"
    return f"{facts.smallest:,} to {facts.largest:,} records (median {facts.median:g})"
