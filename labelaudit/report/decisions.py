"""Whether a setting meets the target, and which settings to recommend."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from labelaudit.bounds import label_dp_half_bound
from labelaudit.mechanisms import Kind
from labelaudit.report import words
from labelaudit.report.attack import Exposure
from labelaudit.report.plan import Setting, Target
from labelaudit.report.utility import Utility

MEETS, MISSES, UNCLEAR = "meets", "misses", "cannot tell"
# Labels whose worth differs by less than this fraction count as worth the same.
MATERIAL = 0.2
# A setting that proves more than this fraction of the labels is never recommended without a word.
MOST_PROVEN = 0.001


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
    def proves(self) -> bool:
        """Whether it proves more than a small fraction of the labels to anyone."""
        return self.exposure.revealed.value > MOST_PROVEN

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
    exposure: Exposure, target: Target, *, trusted: bool = True, together: bool = False
) -> Decision:
    """Meets, misses, or cannot tell; the first rule that applies decides.

    1. Facts by construction, which need no eta: epsilon, what it guarantees, labels that are
       proven, and |I| of a single label. Where labels move `together`, a guarantee settles a target
       on epsilon and no other.
    2. An eta that is not `trusted`, since the true labels contradict it by more than matters,
       leaves every other verdict open.
    3. Otherwise both intervals decide, by eta and on the true labels.

    >>> import numpy as np
    >>> from labelaudit.report import AuditPlan, expose
    >>> from labelaudit.report.eta import EtaEstimates
    >>> labels = np.tile([0, 1], 50)
    >>> estimates = EtaEstimates.ready_made(np.full(100, 0.5), labels)
    >>> [exposure] = expose(labels, estimates, AuditPlan(mechanisms=["rr"], epsilons=[1.0]))
    >>> decision = decide(exposure, Target("additive", 0.05))
    >>> decision.word, decision.why
    ('misses', 'both intervals are above it')
    """
    return Decision(exposure, *_answer(exposure, target, trusted, together))


def _answer(exposure: Exposure, target: Target, trusted: bool, together: bool) -> tuple[str, str]:
    """The decision in a word, and why."""
    if exposure.setting.own and exposure.refuted:
        return UNCLEAR, "the true labels contradict the mechanism's channel"
    if target.kind == "epsilon":
        if guaranteed(exposure.guarantee, target):
            return MEETS, "its epsilon is known"
        if guaranteed(exposure.epsilon * exposure.rows, target):
            return UNCLEAR, "its epsilon is declared, not checked"
        epsilon = "none" if math.isinf(exposure.epsilon) else f"{exposure.epsilon:g}"
        return MISSES, f"its epsilon is {epsilon}"
    if guaranteed(exposure.guarantee, target) and not together:
        return MEETS, words.BY_GUARANTEE
    additive = target.kind == "additive"
    if not additive and exposure.revealed.low > 1 - target.level:
        return MISSES, f"it proves {exposure.revealed.value:.1%} of the labels"
    intervals = [exposure.plug_in, exposure.realised] if additive else [exposure.percentile]
    if any(math.isnan(interval.value) for interval in intervals):
        return UNCLEAR, "there is nothing to measure"
    # The log-odds of a label that is released alone move by as much for every eta.
    needs_eta = additive or exposure.setting.mechanism.bag_size > 1
    if needs_eta and not trusted:
        return UNCLEAR, "the true labels contradict eta"
    which = "both intervals are" if additive else "the interval is"
    if all(interval.high <= target.value for interval in intervals):
        unaware = ", for an attacker who does not know that labels move together"
        return MEETS, f"{which} below it" + unaware * together
    if all(interval.low > target.value for interval in intervals):
        return MISSES, f"{which} above it"
    return UNCLEAR, "the intervals do not settle it" if additive else "the interval holds it"


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
    def proves(self) -> bool:
        """Whether the recommended setting proves more labels than go without saying."""
        return self.decision is not None and self.decision.proves

    @property
    def guarantee(self) -> float:
        """The epsilon of the recommended setting, infinite where there is no guarantee."""
        return math.inf if self.decision is None else self.decision.exposure.guarantee

    @property
    def worth(self) -> float:
        """What a label released by the recommended setting is worth; 0 where that is not known."""
        return (self.utility.worth or 0.0) if self.utility else 0.0

    @property
    def order(self) -> tuple[bool, float]:
        """A key that sorts what proves labels last, and then the least costly first."""
        return self.proves, -self.worth

    def costs_the_same(self, other: Self) -> bool:
        """Whether labels released by the two are worth about the same."""
        worths = [self.worth, other.worth]
        return min(worths) >= (1 - MATERIAL) * max(worths)


def advise(
    decisions: Sequence[Decision], utilities: Sequence[Utility], own_bags: Sequence[Decision] = ()
) -> tuple[Advice, ...]:
    """Advice for each kind of mechanism; `own_bags` are the decisions on the table's own bags.

    A setting that proves labels is advised only where no other of its kind meets the target.

    >>> import numpy as np
    >>> from labelaudit.report import AuditPlan, expose
    >>> from labelaudit.report.eta import EtaEstimates
    >>> labels = np.tile([0, 1], 50)
    >>> estimates = EtaEstimates.ready_made(np.full(100, 0.5), labels)
    >>> exposures = expose(labels, estimates, AuditPlan(mechanisms=["rr"], epsilons=[1.0, 2.0]))
    >>> target = Target("epsilon", 1.0)
    >>> decisions = [decide(each, target) for each in exposures]
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
        chosen = least_noisy(of_kind)
        cost = costs[chosen.setting] if chosen else None
        # The table's bags are fixed: only epsilon is left to choose.
        in_bags = [decision for decision in own_bags if decision.setting.kind == kind]
        in_bags.sort(key=lambda decision: -decision.exposure.epsilon)
        best = least_noisy(in_bags)
        text = words.sentence("advice", of_kind, chosen, costs, in_bags, best)
        advices.append(Advice(kind, chosen, cost, text, best))
    return tuple(advices)


def least_noisy(decisions: Sequence[Decision]) -> Decision | None:
    """The first that meets the target, before all others one that proves no label."""
    meeting = sorted((each for each in decisions if each.meets), key=lambda each: each.proves)
    return meeting[0] if meeting else None


def noise_of(decision: Decision, utility: Utility) -> tuple[float, float, float]:
    """A key that sorts the least noisy first: by worth where it is known, else by parameters."""
    worth = 0.0 if utility.worth is None else utility.worth
    return (-worth, -decision.exposure.epsilon, decision.setting.mechanism.bag_size)


def focus_of(advices: Sequence[Advice], decisions: Sequence[Decision]) -> list[Setting]:
    """For each kind of mechanism the recommended setting, or the one with the least advantage."""
    chosen = {advice.kind: advice.decision for advice in advices if advice.decision}
    settings = []
    for kind in dict.fromkeys(decision.setting.kind for decision in decisions):
        exposures = [each.exposure for each in decisions if each.setting.kind == kind]
        least = min(exposures, key=lambda exposure: (exposure.plug_in.value, exposure.epsilon))
        settings.append(chosen[kind].setting if kind in chosen else least.setting)
    return settings
