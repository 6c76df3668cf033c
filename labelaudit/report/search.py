"""The least noisy epsilon, or the smallest bag, that meets the target: by bisection, not on a grid.

Advantages grow with epsilon and shrink with the bag size. So the parameter where the advantage by
eta reaches the target is found by bisection, for each bag size; the best of a kind is then attacked
like any other setting, and tried again with more noise while its intervals do not settle it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from labelaudit.advantage import additive_advantage
from labelaudit.checks import Floats
from labelaudit.distribution import multiplicative_cdf, multiplicative_quantile
from labelaudit.mechanisms import Kind, Mechanism
from labelaudit.mechanisms.own import construct, has_channel
from labelaudit.report.attack import Attacks, Exposure
from labelaudit.report.decisions import MATERIAL, MOST_PROVEN, Decision
from labelaudit.report.plan import LEAST_BAGS, AuditPlan, Setting, Target, setting_of
from labelaudit.report.utility import first_bags, worth_of

# Records on which the advantage by eta is computed while searching.
RECORDS = 10_000
LEAST_EPSILON, MOST_EPSILON = 0.01, 20.0
# Odds that change more than a thousand times are as good as proof.
AS_GOOD_AS_PROOF = math.log(1000)
# Steps of a bisection, and attempts with more noise where the intervals do not settle the target.
STEPS, ATTEMPTS = 14, 5
# The first attempt leaves this part of the target to the error of the attack.
MARGIN = 0.05


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
