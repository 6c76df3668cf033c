"""The search for the least noisy setting of each kind that meets the target, between those listed.

It tries round numbers, so that seeds agree, and the epsilon that meets the target by its guarantee
alone. Advantages grow with epsilon and shrink with the bag size: where the advantage by eta passes
the target is found by bisection, and what is below it is attacked like any other setting.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pandas as pd

from labelaudit import multiclass
from labelaudit.advantage import additive_advantage
from labelaudit.auditing.attack import Attacks
from labelaudit.auditing.decisions import (
    MATERIAL,
    MAX_EPSILON,
    MAX_PROVEN,
    MEETS,
    guaranteed_epsilon,
    noisier_meet,
)
from labelaudit.auditing.options import MIN_BAGS, Target
from labelaudit.auditing.settings import setting_of
from labelaudit.auditing.utility import first_bags, worth_of
from labelaudit.checks import Floats
from labelaudit.distribution import multiplicative_cdf, multiplicative_quantile
from labelaudit.intervals import Row
from labelaudit.mechanisms import Kind, Mechanism
from labelaudit.mechanisms.custom import construct, has_channel

# Records on which the advantage by eta is computed.
RECORDS = 10_000
# What is tried: each of these epsilons, each of these bag sizes that a table has room for.
EPSILONS = (0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, MAX_EPSILON)
SIZES = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
# Odds that change more than a thousand times are as good as proof.
AS_GOOD_AS_PROOF = math.log(1000)
# The advantage by eta is of a sample: up to this much above the target the attack decides.
SLACK = 0.1

Step = dict[str, float]
AnyStep = TypeVar("AnyStep")


def searched(
    attacks: Attacks,
    target: Target,
    decided: pd.DataFrame,
    decide: Callable[[pd.DataFrame], pd.DataFrame],
) -> Iterator[pd.DataFrame]:
    """Of each kind that has an epsilon or a bag size the least noisy step that meets the target.

    For each bag size the steps are those of `EPSILONS` and the guaranteed epsilon, which needs no
    luck. Nothing is added where a setting of the kind that meets the target is worth about as much.
    """
    table, options = attacks.table, attacks.options
    rng = np.random.default_rng([options.seed, 11])
    eta = rng.permutation(np.concatenate(attacks.eta.distinct))
    classes = len(table.classes)
    sure = guaranteed_epsilon(target, table.rows_of_a_person, classes)
    for kind in dict.fromkeys(row.setting.kind for row in decided.itertuples()):
        if "epsilon" not in kind.parameters and (target.kind == "epsilon" or not kind.parameters):
            continue
        tried = decided[[setting.kind == kind for setting in decided["setting"]]]
        met = tried[(tried["verdict"] == MEETS) & ~tried["proves"].astype(bool)]
        most = max((worth_of(eta, each.mechanism) or 0.0 for each in met["setting"]), default=0.0)
        search = _Search(kind, eta, target, attacks, decide, [tried])
        largest = len(table) // MIN_BAGS
        for steps in steps_of(kind, options.bag_sizes or (), largest, sure, classes=classes):
            best = search.least_noisy(steps, most / (1 - MATERIAL / 2))
            if best is not None:
                most = worth_of(eta, best["setting"].iloc[0].mechanism) or 0.0
                yield best


@dataclass(frozen=True)
class _Search:
    """The search among settings of one kind; `tried` are tables of those that were attacked."""

    kind: Kind
    eta: Floats
    target: Target
    attacks: Attacks
    decide: Callable[[pd.DataFrame], pd.DataFrame]
    tried: list[pd.DataFrame]

    def least_noisy(self, steps: Sequence[Step], least: float) -> pd.DataFrame | None:
        """The last of the steps that meets the target, if it is worth more than `least`."""
        # Only a percentile of |I| may rise with noise.
        monotone = self.target.kind != "multiplicative"
        likely = steps[: last_that_holds(steps, self._within, monotone=monotone)]
        worthwhile = likely[bisect_right(likely, least, key=self._worth) :]
        number = last_that_holds(worthwhile, self._meets, monotone=monotone)
        return self._attacked(worthwhile[number - 1]) if number else None

    def _within(self, step: Step) -> bool:
        mechanism, rows = construct(self.kind, step), self.attacks.table.rows_of_a_person
        return within_target(mechanism, self.eta, self.target, rows)

    def _worth(self, step: Step) -> float:
        return worth_of(self.eta, construct(self.kind, step)) or 0.0

    def _meets(self, step: Step) -> bool:
        (row,) = self._attacked(step).itertuples()
        rows: list[Row] = [each for table in self.tried for each in table.itertuples()]
        return row.verdict == MEETS and noisier_meet(row, rows, self.target)

    def _attacked(self, step: Step) -> pd.DataFrame:
        """The row of this setting, which is attacked if it has not been tried."""
        for table in self.tried:
            same = [each.parameters == tuple(step.items()) for each in table["setting"]]
            if any(same):
                return table[same]
        self.tried.append(self.decide(self.attacks([setting_of(self.kind, step)])))
        return self.tried[-1]


def steps_of(
    kind: Kind, bag_sizes: Sequence[int], largest: int, sure: float, *, classes: int = 2
) -> list[list[Step]]:
    """The parameters that are tried, from the noisiest, for each bag size or over all of them.

    Bags of several classes are not searched: how many labels they prove is not known beforehand.

    >>> from labelaudit.mechanisms import KINDS
    >>> [len(steps) for steps in steps_of(KINDS["LLP+Geom"], [2, 8], 100, sure=0.08)]
    [18, 18]
    >>> steps_of(KINDS["LLP"], [2, 8], 4, sure=0.08)
    [[{'bag_size': 4}, {'bag_size': 3}, {'bag_size': 2}]]
    """
    if "epsilon" not in kind.parameters:
        sizes = {int(size * 10**power) for size in SIZES for power in range(8)}
        fitting = [size for size in sizes if 1 < size <= largest and classes == 2]
        return [[{"bag_size": size} for size in sorted(fitting, reverse=True)]]
    epsilons = sorted({float(epsilon) for epsilon in EPSILONS} | ({sure} if sure else set()))
    fixed = [{"bag_size": size} for size in bag_sizes] if "bag_size" in kind.parameters else [{}]
    return [[{**each, "epsilon": epsilon} for epsilon in epsilons] for each in fixed]


def last_that_holds(
    steps: Sequence[AnyStep], holds: Callable[[AnyStep], bool], *, monotone: bool
) -> int:
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


def within_target(mechanism: Mechanism, eta: Floats, target: Target, rows: int) -> bool:
    """Whether the advantage by eta is about within the target, and few labels are proven.

    Bags are consecutive in `eta`, which is in random order: the same ones for every epsilon. What a
    release says about a row it may say again with each of a person's `rows`.
    """
    if target.kind == "epsilon":
        return rows * mechanism.epsilon <= target.value
    limit = max(AS_GOOD_AS_PROOF, target.value) / rows
    bags = first_bags(eta, mechanism.bag_size, RECORDS, MIN_BAGS)
    if isinstance(mechanism, multiclass.ClassMechanism):
        if target.kind == "multiplicative":
            return rows * mechanism.epsilon <= target.value
        if mechanism.epsilon > limit:
            return False
        return (
            float(multiclass.additive_advantage(bags, mechanism).mean())
            <= (1 + SLACK) * target.value
        )
    if not has_channel(mechanism):
        return False
    positive = np.ascontiguousarray(bags[..., 1])
    if mechanism.epsilon > limit:
        # Half of what counts as proving none, so that no random error decides.
        proven = 1 - float(multiplicative_cdf(positive, mechanism, limit))
        if proven > MAX_PROVEN / 2:
            return False
    if target.kind == "additive":
        return float(additive_advantage(positive, mechanism).mean()) <= (1 + SLACK) * target.value
    return rows * multiplicative_quantile(positive, mechanism, target.level) <= target.value
