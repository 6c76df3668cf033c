"""Whether a setting meets the target, which settings to recommend, and the search between them.

Advantages grow with epsilon and shrink with the bag size. So the parameter where the advantage by
eta reaches the target is found by bisection, for each bag size; the best of a kind is then attacked
like any other setting, and tried again with more noise while its intervals do not settle it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from labelaudit.advantage import additive_advantage
from labelaudit.bounds import label_dp_half_bound
from labelaudit.checks import Floats
from labelaudit.distribution import multiplicative_cdf, multiplicative_quantile
from labelaudit.mechanisms import Kind, Mechanism
from labelaudit.mechanisms.own import construct, has_channel
from labelaudit.report import words
from labelaudit.report.attack import Attacks, Exposure
from labelaudit.report.plan import LEAST_BAGS, AuditPlan, Setting, Target, setting_of
from labelaudit.report.utility import Utility, first_bags, worth_of

MEETS, MISSES, UNCLEAR = "meets", "misses", "cannot tell"
# Labels whose worth differs by less than this fraction count as worth the same.
MATERIAL = 0.2
# Among settings of equal cost, one is worse if its epsilon is above this many times another's.
COMPARABLE = 2
# A setting that proves more than this fraction of the labels is recommended only with a warning.
MOST_PROVEN = 0.001
# Records on which the advantage by eta is computed while searching.
RECORDS = 10_000
LEAST_EPSILON, MOST_EPSILON = 0.01, 20.0
# Odds that change more than a thousand times are as good as proof.
AS_GOOD_AS_PROOF = math.log(1000)
# Steps of a bisection, and attempts with more noise where the intervals do not settle the target.
STEPS, ATTEMPTS = 14, 5
# The first attempt leaves this part of the target to the error of the attack.
MARGIN = 0.05


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


def meets_by_priors(target: Target, additive: float, percentile: float, epsilon: float) -> bool:
    """Whether a setting meets the target if the priors are true: nothing else is known of them.

    >>> meets_by_priors(Target("epsilon", 1.0), 0.2, 3.0, epsilon=1.0)
    True
    """
    known = {"additive": additive, "multiplicative": percentile, "epsilon": epsilon}
    return known[target.kind] <= target.value


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
    why = words.WHY
    if exposure.setting.own and exposure.refuted:
        return UNCLEAR, why["channel refuted"]
    if target.kind == "epsilon":
        if guaranteed(exposure.guarantee, target):
            return MEETS, why["epsilon known"]
        if guaranteed(exposure.epsilon * exposure.rows, target):
            return UNCLEAR, why["epsilon declared"]
        if math.isinf(exposure.epsilon):
            return MISSES, why["no epsilon"]
        return MISSES, why["epsilon too large"].format(exposure.epsilon)
    if guaranteed(exposure.guarantee, target) and not together:
        return MEETS, why["guaranteed"]
    additive = target.kind == "additive"
    if not additive and exposure.revealed.low > 1 - target.level:
        return MISSES, why["proves labels"].format(exposure.revealed.value)
    intervals = [exposure.plug_in, exposure.realised] if additive else [exposure.percentile]
    if any(math.isnan(interval.value) for interval in intervals):
        return UNCLEAR, why["undefined"]
    # The log-odds of a label that is released alone move by as much for every eta.
    needs_eta = additive or exposure.setting.mechanism.bag_size > 1
    if needs_eta and not trusted:
        return UNCLEAR, why["eta refuted"]
    both = "both " if additive else ""
    if all(interval.high <= target.value for interval in intervals):
        return MEETS, why[f"{both}below"] + why["unaware"] * together
    if all(interval.low > target.value for interval in intervals):
        return MISSES, why[f"{both}above"]
    return UNCLEAR, why[f"{both}open"]


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

    def of_equal_cost(self, chosen: Sequence[Self]) -> list[Self]:
        """Those of `chosen` that cost about as much as this one, the strongest guarantee first.

        At an equal cost nobody should take a much weaker guarantee: such settings are left out.
        """
        equal = [
            other for other in chosen if other.proves == self.proves and self.costs_the_same(other)
        ]
        strongest = min(other.guarantee for other in equal)
        comparable = [other for other in equal if other.guarantee <= COMPARABLE * strongest]
        return sorted(comparable, key=lambda other: other.guarantee)


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
    """The first that meets the target and proves no label; else the first that meets it."""
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


def searched(
    attacks: Attacks,
    target: Target,
    decisions: Sequence[Decision],
    decided: Callable[[Exposure], Decision],
) -> Iterator[Decision]:
    """One more setting of each kind that has an epsilon or a bag size: the best that was found.

    Nothing is added where a listed setting of the kind is worth about as much: round numbers are
    easier to agree on, and do not depend on the seed.
    """
    plan, estimates = attacks.plan, attacks.estimates
    rng = np.random.default_rng([plan.seed, 11])
    known, eta = set(plan.settings), rng.permutation(estimates.etas[0])

    def worth_by_eta(setting: Setting) -> float:
        return worth_of(eta, setting.mechanism) or 0.0

    for kind in dict.fromkeys(setting.kind for setting in plan.settings):
        if "epsilon" not in kind.parameters and (target.kind == "epsilon" or not kind.parameters):
            continue
        met = [each for each in decisions if each.setting.kind == kind and each.meets]
        listed = max((worth_by_eta(each.setting) for each in met if not each.proves), default=0.0)
        aim = target.value * (1 - MARGIN) if target.kind == "additive" else target.value
        for _ in range(ATTEMPTS):
            candidates = list(candidates_of(kind, eta, plan, replace(target, value=aim)))
            candidates = [setting for setting in candidates if setting not in known]
            if not candidates:
                break
            worths = {setting: worth_by_eta(setting) for setting in candidates}
            most = (1 - MATERIAL / 2) * max(worths.values())
            if most <= listed:
                break
            # Of those worth about the same, the strongest guarantee: no random error decides.
            equal = [setting for setting in candidates if worths[setting] >= most]
            best = min(equal, key=lambda setting: setting.mechanism.epsilon)
            known.add(best)
            decision = decided(*attacks([best]))
            if decision.meets or target.kind == "epsilon":
                yield decision
                break
            ends = (decision.exposure.plug_in.high, decision.exposure.realised.high)
            over = max(ends) if target.kind == "additive" else decision.exposure.percentile.high
            aim -= max(over - target.value, MARGIN * target.value)
            if not 0 < aim < math.inf:
                break


def candidates_of(kind: Kind, eta: Floats, plan: AuditPlan, target: Target) -> Iterator[Setting]:
    """For each bag size the largest epsilon, or the smallest bag of all, that keeps the target.

    Bags are consecutive in `eta`, which is in random order: the same ones for every epsilon.

    >>> import numpy as np
    >>> plan = AuditPlan(mechanisms=["rr"])
    >>> eta = np.full(1000, 0.5)
    >>> [found] = candidates_of(plan.settings[0].kind, eta, plan, Target("additive", 0.1))
    >>> found.title  # tanh(0.4 / 2) / 2 is 0.0987
    'RR (epsilon 0.4)'
    """
    if "epsilon" not in kind.parameters:
        largest = eta.size // LEAST_BAGS
        size = _smallest(lambda k: _keeps(kind, {"bag_size": k}, eta, target), largest)
        if size is not None:
            yield setting_of(kind, {"bag_size": size})
        return
    sizes = plan.bag_sizes if "bag_size" in kind.parameters else (None,)
    for bag_size in sizes:
        fixed: dict[str, Any] = {} if bag_size is None else {"bag_size": bag_size}

        def keeps(epsilon: float, fixed: dict[str, Any] = fixed) -> bool:
            return _keeps(kind, fixed | {"epsilon": epsilon}, eta, target)

        epsilon = _largest(keeps)
        if epsilon is not None:
            yield setting_of(kind, fixed | {"epsilon": epsilon})


def _keeps(kind: Kind, values: dict[str, Any], eta: Floats, target: Target) -> bool:
    """Whether the advantage by eta is within the target, and few labels are proven."""
    mechanism: Mechanism = construct(kind, values)
    if target.kind == "epsilon":
        return mechanism.epsilon <= target.value
    if not has_channel(mechanism):
        return False
    bags = first_bags(eta, mechanism.bag_size, RECORDS, LEAST_BAGS)
    limit = max(AS_GOOD_AS_PROOF, target.value)
    if mechanism.epsilon > limit:
        # Half of what counts as proving none, so that no random error decides.
        proven = 1 - float(multiplicative_cdf(bags, mechanism, limit))
        if proven > MOST_PROVEN / 2:
            return False
    if target.kind == "additive":
        return float(additive_advantage(bags, mechanism).mean()) <= target.value
    return multiplicative_quantile(bags, mechanism, target.level) <= target.value


def _largest(keeps: Callable[[float], bool]) -> float | None:
    """The largest epsilon that keeps the target, rounded down to two digits."""
    low, high = LEAST_EPSILON, MOST_EPSILON
    if keeps(high):
        return high
    if not keeps(low):
        return None
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if keeps(middle) else (low, middle)
    digit = 10.0 ** (math.floor(math.log10(high)) - 1)
    # A tenth of a percent above: the bisection ends just below a round number.
    return round(math.floor(low * 1.001 / digit) * digit, 10)


def _smallest(keeps: Callable[[int], bool], largest: int) -> int | None:
    """The smallest bag size that keeps the target; sizes beyond the first digits are round."""
    low, high = 0, 1
    while high <= largest and not keeps(high):
        low, high = high, 2 * high
    if high > largest:
        return None
    while high - low > max(1, low // 20):
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high
