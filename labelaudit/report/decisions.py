"""Whether a setting meets the target, and which settings to recommend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from labelaudit.bounds import label_dp_half_bound
from labelaudit.mechanisms import Kind
from labelaudit.report import words
from labelaudit.report.attack import Exposure
from labelaudit.report.eta import Calibration
from labelaudit.report.plan import Setting, Target
from labelaudit.report.utility import Utility

MEETS, MISSES, UNCLEAR = "meets", "misses", "cannot tell"
# Without a model, labels whose worth differs by less than this fraction count as worth the same.
MATERIAL = 0.1


@dataclass(frozen=True)
class Decision:
    """Whether a setting meets the target, and why."""

    exposure: Exposure
    word: str
    why: str

    @property
    def setting(self) -> Setting:
        """The setting that was decided on."""
        return self.exposure.setting

    @property
    def meets(self) -> bool:
        """Whether it is shown to meet the target."""
        return self.word == MEETS

    @property
    def unclear(self) -> bool:
        """Whether the data cannot tell."""
        return self.word == UNCLEAR


def guaranteed(epsilon: float, target: Target) -> bool:
    """Whether epsilon alone keeps the target, if labels are independent given what is known.

    Then no epsilon-label-DP release has an additive advantage above `label_dp_half_bound`, or a
    multiplicative one above epsilon. The attacker may know other labels. But where labels depend on
    one another, as those of twins, a release about one label is also a release about the others.

    >>> guaranteed(0.2, Target("additive", 0.05)), guaranteed(0.3, Target("additive", 0.05))
    (True, False)
    """
    most = float(label_dp_half_bound(epsilon)) if target.kind == "additive" else epsilon
    return most <= target.value


def decide(
    exposure: Exposure, target: Target, calibration: Calibration, *, together: bool = False
) -> Decision:
    """Meets, misses, or cannot tell: an interval holds the target, or eta is not to be trusted.

    Where labels move `together`, a guarantee settles a target on epsilon and no other. For a
    mechanism of the user's own, a contradiction by the true labels comes first.

    >>> import numpy as np
    >>> from labelaudit.report import AuditPlan, expose
    >>> from labelaudit.report.eta import EtaEstimates
    >>> labels = np.tile([0, 1], 50)
    >>> estimates = EtaEstimates.ready_made(np.full(100, 0.5), labels)
    >>> [exposure] = expose(labels, estimates, AuditPlan(mechanisms=["rr"], epsilons=[1.0]))
    >>> decision = decide(exposure, Target("additive", 0.05), estimates.calibration)
    >>> decision.word, decision.why
    ('misses', 'the interval is above it')
    """
    return Decision(exposure, *_answer(exposure, target, calibration, together))


def _answer(
    exposure: Exposure, target: Target, calibration: Calibration, together: bool
) -> tuple[str, str]:
    """The decision in a word, and why; the first rule that applies decides."""
    if exposure.setting.own and exposure.contradicted:
        return UNCLEAR, "the true labels contradict eta or the mechanism's channel"
    if target.kind == "epsilon":
        if guaranteed(exposure.guarantee, target):
            return MEETS, "its epsilon is known"
        if guaranteed(exposure.epsilon, target):
            return UNCLEAR, "its epsilon is declared, not checked"
        epsilon = "none" if math.isinf(exposure.epsilon) else f"{exposure.epsilon:g}"
        return MISSES, f"its epsilon is {epsilon}"
    if guaranteed(exposure.guarantee, target) and not together:
        return MEETS, words.BY_GUARANTEE
    additive = target.kind == "additive"
    intervals = [exposure.plug_in, exposure.realised] if additive else [exposure.percentile]
    if any(math.isnan(interval.value) for interval in intervals):
        return UNCLEAR, "there is nothing to measure"
    if calibration.fails:
        return UNCLEAR, "the estimate of eta is not calibrated"
    if exposure.contradicted:
        return UNCLEAR, "the true labels contradict the estimate of eta"
    if all(interval.high <= target.value for interval in intervals):
        unaware = ", for an attacker who does not know that labels move together"
        return MEETS, "the interval is below it" + unaware * together
    if any(interval.low > target.value for interval in intervals):
        return MISSES, "the interval is above it"
    return UNCLEAR, "the interval holds it"


@dataclass(frozen=True)
class Advice:
    """For one kind of mechanism: the least noisy setting that meets the target, in plain words.

    `own_bags` is the same for the table's own bags, where it has any and the mechanism takes them.
    """

    kind: Kind
    decision: Decision | None
    utility: Utility | None
    text: str
    own_bags: Decision | None = None

    @property
    def guarantee(self) -> float:
        """The epsilon of the recommended setting, infinite where there is no guarantee."""
        return math.inf if self.decision is None else self.decision.exposure.guarantee

    @property
    def measured(self) -> bool:
        """Whether the cost of the recommended setting is known."""
        return self.utility is not None and self.utility.worth is not None

    @property
    def cost(self) -> tuple[float, float]:
        """By AUC, then by the worth of a label: the least costly sorts first."""
        if self.utility is None:
            return (0.0, 0.0)
        area = self.utility.auc.value if self.utility.auc else 0.0
        return (-area, -(self.utility.worth or 0.0))

    def costs_the_same(self, other: Advice) -> bool:
        """Whether losses agree within two standard errors or, without a model, worths are close."""
        if self.utility is None or other.utility is None:
            return False
        first, second = self.utility.loss, other.utility.loss
        if first is not None and second is not None:
            error = math.hypot(first.standard_error, second.standard_error)
            return abs(first.value - second.value) <= 2 * error
        if first is not None or second is not None:
            return False
        worths = [self.utility.worth or 0.0, other.utility.worth or 0.0]
        return min(worths) >= (1 - MATERIAL) * max(worths)


def advise(
    decisions: Sequence[Decision], utilities: Sequence[Utility], own_bags: Sequence[Decision] = ()
) -> tuple[Advice, ...]:
    """Advice for each kind of mechanism; `own_bags` are the decisions on the table's own bags.

    >>> import numpy as np
    >>> from labelaudit.report import AuditPlan, expose
    >>> from labelaudit.report.eta import EtaEstimates
    >>> labels = np.tile([0, 1], 50)
    >>> estimates = EtaEstimates.ready_made(np.full(100, 0.5), labels)
    >>> exposures = expose(labels, estimates, AuditPlan(mechanisms=["rr"], epsilons=[1.0, 2.0]))
    >>> target = Target("epsilon", 1.0)
    >>> decisions = [decide(each, target, estimates.calibration) for each in exposures]
    >>> utilities = [Utility(each.setting, None, None, None) for each in exposures]
    >>> [advice] = advise(decisions, utilities)
    >>> advice.decision.exposure.title
    'RR (epsilon 1)'
    """
    costs = {utility.setting: utility for utility in utilities}
    advices = []
    for kind in dict.fromkeys(decision.setting.kind for decision in decisions):
        of_kind = [decision for decision in decisions if decision.setting.kind == kind]
        of_kind.sort(key=lambda decision: noise_of(decision, costs[decision.setting]))
        chosen = next((decision for decision in of_kind if decision.meets), None)
        cost = costs[chosen.setting] if chosen else None
        # The table's bags are fixed: only epsilon is left to choose.
        in_bags = [decision for decision in own_bags if decision.setting.kind == kind]
        in_bags.sort(key=lambda decision: -decision.exposure.epsilon)
        best = next((decision for decision in in_bags if decision.meets), None)
        text = words.advice(of_kind, chosen, costs)
        text += words.advice_on_own_bags(in_bags, best)
        advices.append(Advice(kind, chosen, cost, text, best))
    return tuple(advices)


def noise_of(decision: Decision, utility: Utility) -> tuple[float, float, float]:
    """A key that sorts the least noisy first: by worth where it is known, else by parameters."""
    worth = 0.0 if utility.worth is None else utility.worth
    return (-worth, -decision.exposure.epsilon, decision.setting.mechanism.bag_size)


def focus_of(advices: Sequence[Advice], decisions: Sequence[Decision]) -> list[Setting]:
    """For each kind of mechanism the recommended setting, or the one with the least advantage."""
    settings = []
    for advice in advices:
        if advice.decision is not None:
            settings.append(advice.decision.setting)
            continue
        exposures = [each.exposure for each in decisions if each.setting.kind == advice.kind]
        least = min(exposures, key=lambda exposure: (exposure.plug_in.value, exposure.epsilon))
        settings.append(least.setting)
    return settings
