"""Whether a setting meets the target, which settings to recommend, and the search between them.

The search tries round numbers, so that seeds agree, and the epsilon that meets the target by its
guarantee alone. Advantages grow with epsilon and shrink with the bag size: where the advantage by
eta passes the target is found by bisection, and what is below it is attacked like any other
setting.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from labelaudit.advantage import additive_advantage
from labelaudit.auditing import words
from labelaudit.auditing.attack import Attacks, Exposure
from labelaudit.auditing.eta import distinct
from labelaudit.auditing.plan import LEAST_BAGS, Setting, Target, setting_of
from labelaudit.auditing.utility import Utility, first_bags, worth_of
from labelaudit.bounds import label_dp_classes_bound
from labelaudit.checks import Floats
from labelaudit.distribution import multiplicative_cdf, multiplicative_quantile
from labelaudit.mechanisms import Kind, Mechanism
from labelaudit.mechanisms.custom import construct, has_channel

MEETS, MISSES, UNCLEAR = "meets", "misses", "cannot tell"
# Labels whose worth differs by less than this fraction count as worth the same.
MATERIAL = 0.2
# Among settings of equal cost, one is worse if its epsilon is above this many times another's.
COMPARABLE = 2
# A setting that proves more than this fraction of the labels is recommended only with a warning.
MOST_PROVEN = 0.001
# Records on which the advantage by eta is computed while searching.
RECORDS = 10_000
# What the search tries: each of these epsilons, each of these bag sizes that a table has room for.
EPSILONS = (0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20)
SIZES = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
# Odds that change more than a thousand times are as good as proof.
AS_GOOD_AS_PROOF = math.log(1000)
# The advantage by eta is of a sample: up to this much above the target the attack decides.
SLACK = 0.1
# Halvings that find the guaranteed epsilon to more digits than are shown.
HALVINGS = 60


@dataclass(frozen=True)
class Decision:
    """Whether a setting meets the target, and why: a key of `words.WHY`, and the text."""

    exposure: Exposure
    word: str
    why: str
    rule: str = ""

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
       on epsilon and no other. Epsilon and |I| count once for each row of a person.
    2. An eta that is not `trusted`, since the true labels contradict it by more than matters,
       leaves every other verdict open. So does an attack that loses on the true labels: with a true
       eta the best guess gains or changes nothing on average.
    3. Otherwise both intervals decide, by eta and on the true labels.

    >>> import numpy as np
    >>> from labelaudit.auditing import AuditPlan, expose
    >>> from labelaudit.auditing.eta import EtaEstimates
    >>> labels = np.tile([0, 1], 50)
    >>> estimates = EtaEstimates.ready_made(np.full(100, 0.5), labels)
    >>> [exposure] = expose(labels, estimates, AuditPlan(mechanisms=["rr"], epsilons=[1.0]))
    >>> decision = decide(exposure, Target("additive", 0.05))
    >>> decision.word, decision.why
    ('misses', 'both intervals are above it')
    """
    word, rule = _answer(exposure, target, trusted, together)
    why = words.reason(rule, exposure)
    if word == MEETS and together and rule.endswith("below"):
        why += words.WHY["unaware"]
    return Decision(exposure, word, why, rule)


def _answer(exposure: Exposure, target: Target, trusted: bool, together: bool) -> tuple[str, str]:
    """The decision in a word, and the rule behind it."""
    rows, mechanism = exposure.rows, exposure.setting.mechanism
    if exposure.setting.own and exposure.refuted:
        return UNCLEAR, "channel refuted"
    if target.kind == "epsilon":
        if guaranteed(exposure.guarantee, target):
            return MEETS, "epsilon known"
        if guaranteed(exposure.epsilon * rows, target):
            return UNCLEAR, "epsilon declared"
        if math.isinf(exposure.epsilon):
            return MISSES, "no epsilon"
        return MISSES, "epsilon too large" if rows == 1 else "epsilon of a person"
    classes = getattr(mechanism, "classes", 2)
    if guaranteed(exposure.guarantee, target, classes) and not together:
        return MEETS, "guaranteed"
    additive = target.kind == "additive"
    if not additive and exposure.revealed.low > 1 - target.level:
        return MISSES, "proves labels"
    intervals = [exposure.plug_in, exposure.realised] if additive else [exposure.percentile]
    if any(math.isnan(interval.value) for interval in intervals):
        return UNCLEAR, "undefined"
    # The log-odds of a label that is released alone move by as much for every eta.
    needs_eta = additive or mechanism.bag_size > 1
    if needs_eta and not trusted:
        return UNCLEAR, "eta refuted"
    if needs_eta and exposure.realised.high < 0:
        return UNCLEAR, "attack loses"
    both = "both " if additive else ""
    if all(interval.low > target.value for interval in intervals):
        return MISSES, f"{both}above"
    if all(interval.high <= target.value for interval in intervals):
        if not additive and rows * exposure.percentile.high > target.value:
            return UNCLEAR, "rows of a person"
        return MEETS, f"{both}below"
    return UNCLEAR, f"{both}open"


def guaranteed(epsilon: float, target: Target, classes: int = 2) -> bool:
    """Whether epsilon alone keeps the target, if labels are independent given what is known.

    Then no epsilon-label-DP release of a label with so many classes has an additive advantage above
    `label_dp_classes_bound`, or a multiplicative one above epsilon. The attacker may know other
    labels. But where labels depend on one another, as those of twins, a release about one label is
    also a release about the others.

    >>> guaranteed(0.2, Target("additive", 0.05)), guaranteed(0.3, Target("additive", 0.05))
    (True, False)
    """
    additive = target.kind == "additive"
    return (
        float(label_dp_classes_bound(epsilon, classes)) if additive else epsilon
    ) <= target.value


def guaranteed_epsilon(target: Target, rows: int = 1, classes: int = 2) -> float:
    """The largest epsilon that is `guaranteed` for a person with so many rows, in three digits.

    It is rounded down, at most `EPSILONS[-1]`, and 0 where only no release keeps the target.

    >>> guaranteed_epsilon(Target("epsilon", 1.0)), guaranteed_epsilon(Target("epsilon", 1.0), 3)
    (1.0, 0.333)
    """
    low, high = 0.0, float(EPSILONS[-1])
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if guaranteed(rows * middle, target, classes) else (low, middle)
    digit = 10.0 ** (math.floor(math.log10(high)) - 2)
    # The halving ends just below a round number: one above it and those that follow.
    steps = (round((math.floor(high / digit) + step) * digit, 12) for step in (1, 0, -1))
    return next(
        (step for step in steps if step > 0 and guaranteed(rows * step, target, classes)), 0.0
    )


def close_under_noise(decisions: Sequence[Decision], target: Target) -> tuple[Decision, ...]:
    """Leave open what meets the target while the same with more noise is not shown to."""
    return tuple(
        replace(decision, word=UNCLEAR, rule="noisier", why=words.WHY["noisier"])
        if decision.meets and not noisier_meet(decision.setting, decisions, target)
        else decision
        for decision in decisions
    )


def noisier_meet(setting: Setting, decisions: Sequence[Decision], target: Target) -> bool:
    """Whether all of `decisions` meet the target that are on the same with a smaller epsilon.

    Noise can be added to a release, so that an additive advantage and epsilon never grow with it. A
    percentile of |I| may. Of a mechanism of the user's own nothing is known.
    """
    if target.kind == "multiplicative":
        return True
    return all(each.meets for each in decisions if _has_more_noise(each.setting, setting))


def _has_more_noise(first: Setting, second: Setting) -> bool:
    ours, theirs = dict(first.parameters), dict(second.parameters)
    smaller = ours.pop("epsilon", math.inf) < theirs.pop("epsilon", math.inf)
    return smaller and first.kind == second.kind and ours == theirs and not first.own


@dataclass(frozen=True)
class Advice:
    """For one kind of mechanism: the least noisy setting that meets the target, in plain words.

    The text goes on after the kind's title. `own_bags` is the same for the table's own bags, where
    it has any and the mechanism takes them.
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
    >>> from labelaudit.auditing import AuditPlan, expose
    >>> from labelaudit.auditing.eta import EtaEstimates
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


@dataclass(frozen=True)
class Guarantee:
    """What epsilon promises about a row, and about a person with the most rows.

    Both are infinite where there is no guarantee. `settles` says what of it alone meets the target,
    "epsilon" or "label-DP bound"; None where the attack had to decide.
    """

    epsilon: float
    rows: int
    per_person: float
    settles: str | None


@dataclass(frozen=True)
class Recommendation:
    """A setting to publish: its verdict, what a released label is worth, what is guaranteed.

    `setting` has the mechanism and its parameters. `worth` is None where it is not known, `proven`
    the fraction of labels that the release proves, `why` the verdict's reason in words.
    """

    setting: Setting
    verdict: str
    why: str
    worth: float | None
    proven: float
    guarantee: Guarantee


def best_of(advices: Sequence[Advice]) -> list[Advice]:
    """The advices that cost least, of those that prove no labels where there are such."""
    chosen = sorted((each for each in advices if each.decision), key=lambda each: each.order)
    return chosen[0].of_equal_cost(chosen) if chosen else []


def recommend(advices: Sequence[Advice]) -> tuple[Recommendation, ...]:
    """What to publish: the settings that cost least; nothing that proves labels is among them."""
    recommended = []
    for advice in best_of(advices):
        if advice.decision is None or advice.proves:
            continue
        exposure, rule = advice.decision.exposure, advice.decision.rule
        epsilon = exposure.epsilon if exposure.setting.checked else math.inf
        settles = {"epsilon known": "epsilon", "guaranteed": "label-DP bound"}.get(rule)
        guarantee = Guarantee(epsilon, exposure.rows, exposure.guarantee, settles)
        worth = advice.utility.worth if advice.utility else None
        proven = exposure.revealed.value
        verdict, why = advice.decision.word, advice.decision.why
        recommended.append(Recommendation(exposure.setting, verdict, why, worth, proven, guarantee))
    return tuple(recommended)


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
    """Of each kind that has an epsilon or a bag size the least noisy step that meets the target.

    For each bag size the steps are those of `EPSILONS` and the guaranteed epsilon, which needs no
    luck. Nothing is added where a setting of the kind that meets the target is worth about as much.
    """
    plan = attacks.plan
    rng = np.random.default_rng([plan.seed, 11])
    eta = rng.permutation(np.concatenate(distinct(attacks.estimates.etas)))
    sure = guaranteed_epsilon(target, attacks.rows)
    largest = attacks.labels.size // LEAST_BAGS
    for kind in dict.fromkeys(setting.kind for setting in plan.settings):
        if "epsilon" not in kind.parameters and (target.kind == "epsilon" or not kind.parameters):
            continue
        of_kind = [decision for decision in decisions if decision.setting.kind == kind]
        met = [each.setting for each in of_kind if each.meets and not each.proves]
        most = max((worth_of(eta, each.mechanism) or 0.0 for each in met), default=0.0)
        search = _Search(kind, eta, target, attacks, decided, of_kind)
        for steps in steps_of(kind, plan.bag_sizes, largest, sure):
            best = search.least_noisy(steps, most / (1 - MATERIAL / 2))
            if best is not None:
                most = worth_of(eta, best.setting.mechanism) or 0.0
                yield best


@dataclass(frozen=True)
class _Search:
    """The search among settings of one kind; `decisions` has those that were tried."""

    kind: Kind
    eta: Floats
    target: Target
    attacks: Attacks
    decided: Callable[[Exposure], Decision]
    decisions: list[Decision]

    def least_noisy(self, steps: Sequence[dict[str, Any]], least: float) -> Decision | None:
        """The last of the steps that meets the target, if it is worth more than `least`."""
        # Only a percentile of |I| may rise with noise.
        monotone = self.target.kind != "multiplicative"
        likely = steps[: last_that_holds(steps, self._keeps, monotone=monotone)]
        worthwhile = likely[bisect_right(likely, least, key=self._worth) :]
        number = last_that_holds(worthwhile, self._meets, monotone=monotone)
        return self._decision(worthwhile[number - 1]) if number else None

    def _keeps(self, step: dict[str, Any]) -> bool:
        mechanism = construct(self.kind, step)
        return keeps_by_eta(mechanism, self.eta, self.target, self.attacks.rows)

    def _worth(self, step: dict[str, Any]) -> float:
        return worth_of(self.eta, construct(self.kind, step)) or 0.0

    def _meets(self, step: dict[str, Any]) -> bool:
        decision = self._decision(step)
        return decision.meets and noisier_meet(decision.setting, self.decisions, self.target)

    def _decision(self, step: dict[str, Any]) -> Decision:
        """What was decided on this setting, which is attacked if it has not been tried."""
        for decision in self.decisions:
            if decision.setting.parameters == tuple(step.items()):
                return decision
        decision = self.decided(*self.attacks([setting_of(self.kind, step)]))
        self.decisions.append(decision)
        return decision


def steps_of(
    kind: Kind, bag_sizes: Sequence[int], largest: int, sure: float
) -> list[list[dict[str, Any]]]:
    """The parameters that are tried, from the noisiest, for each bag size or over all of them.

    >>> from labelaudit.mechanisms import KINDS
    >>> [len(steps) for steps in steps_of(KINDS["LLP+Geom"], [2, 8], 100, sure=0.08)]
    [18, 18]
    >>> steps_of(KINDS["LLP"], [2, 8], 4, sure=0.08)
    [[{'bag_size': 4}, {'bag_size': 3}, {'bag_size': 2}]]
    """
    if "epsilon" not in kind.parameters:
        sizes = {int(size * 10**power) for size in SIZES for power in range(8)}
        return [[{"bag_size": size} for size in sorted(sizes, reverse=True) if 1 < size <= largest]]
    epsilons = sorted({float(epsilon) for epsilon in EPSILONS} | ({sure} if sure else set()))
    fixed = [{"bag_size": size} for size in bag_sizes] if "bag_size" in kind.parameters else [{}]
    return [[each | {"epsilon": epsilon} for epsilon in epsilons] for each in fixed]


def last_that_holds(steps: Sequence[Any], holds: Callable[[Any], bool], *, monotone: bool) -> int:
    """How many of the steps there are up to the last one that holds; by bisection if `monotone`.

    >>> last_that_holds([1, 2, 3, 4, 5], lambda step: step < 4, monotone=True)
    3
    """
    if not monotone:
        return next((number for number in range(len(steps), 0, -1) if holds(steps[number - 1])), 0)
    low, high = 0, len(steps) + 1
    while high - low > 1:
        # The last is tried first: most often it holds, or the first refutes it for all.
        middle = high - 1 if high > len(steps) else (low + high) // 2
        low, high = (middle, high) if holds(steps[middle - 1]) else (low, middle)
    return low


def keeps_by_eta(mechanism: Mechanism, eta: Floats, target: Target, rows: int) -> bool:
    """Whether the advantage by eta is about within the target, and few labels are proven.

    Bags are consecutive in `eta`, which is in random order: the same ones for every epsilon. What a
    release says about a row it may say again with each of a person's `rows`.
    """
    if target.kind == "epsilon":
        return rows * mechanism.epsilon <= target.value
    if not has_channel(mechanism):
        return False
    bags = first_bags(eta, mechanism.bag_size, RECORDS, LEAST_BAGS)
    limit = max(AS_GOOD_AS_PROOF, target.value) / rows
    if mechanism.epsilon > limit:
        # Half of what counts as proving none, so that no random error decides.
        proven = 1 - float(multiplicative_cdf(bags, mechanism, limit))
        if proven > MOST_PROVEN / 2:
            return False
    if target.kind == "additive":
        return float(additive_advantage(bags, mechanism).mean()) <= (1 + SLACK) * target.value
    return rows * multiplicative_quantile(bags, mechanism, target.level) <= target.value
