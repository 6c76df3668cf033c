"""What the average does not show: attackers who know more, and bags that are not random."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from labelaudit.checks import Floats, Ints
from labelaudit.estimates import advantage_with_known_members, sampled_advantage
from labelaudit.mechanisms import Mechanism, NoisyCount
from labelaudit.mechanisms.own import check_own, construct, has_channel
from labelaudit.partitions import partition
from labelaudit.repeated import Repeated
from labelaudit.report.attack import (
    AttackRound,
    Exposure,
    ExposureBuilder,
    attack,
    plug_in_advantage,
    rounds_for,
)
from labelaudit.report.eta import EtaEstimates, Labels
from labelaudit.report.intervals import Interval, Measured, over_bags, over_refits
from labelaudit.report.plan import AuditPlan, Setting

# Records behind each number about an attacker who knows more.
RECORDS = 4096
DRAWS = 20
# Known members are drawn again for every member, which takes the cube of the bag size, and several
# noisy releases have many outcomes. Larger bags are left out of both.
MOST_WITH_KNOWN = 512
# The channel of a mechanism of the user's own is a matrix with a row for each count.
MOST_WITH_MATRIX = 2048
# The table's own bags are attacked size by size, which takes long: the most rounds of a refit.
MOST_OWN_ROUNDS = 4


@dataclass(frozen=True)
class KnowingMore:
    """The mean advantage of an attacker who knows some labels of a bag, or sees more releases."""

    setting: Setting
    known: int
    times: int
    epsilon: float
    advantage: Interval
    method: str


def knowing_more(estimates: EtaEstimates, setting: Setting, plan: AuditPlan) -> list[KnowingMore]:
    """From no other member known to all of them; from one release to several; in every refit.

    >>> import numpy as np
    >>> from labelaudit.report.eta import EtaEstimates
    >>> estimates = EtaEstimates.ready_made(np.full(100, 0.5), np.tile([0, 1], 50))
    >>> plan = AuditPlan(mechanisms=["llp"], bag_sizes=[2], repeats=[1])
    >>> cases = knowing_more(estimates, plan.settings[0], plan)
    >>> [(case.known, case.advantage.value) for case in cases]
    [(0, 0.25), (1, 0.5)]
    """
    rng = np.random.default_rng([plan.seed, 5])
    mechanism, k = setting.mechanism, setting.mechanism.bag_size
    n_bags = min(estimates.etas[0].size, max(RECORDS, 10 * k)) // k
    numbers = {min(known, k - 1) for known in (plan.known or (0, 1, k // 2, k - 1))} | {0}
    small = k <= MOST_WITH_KNOWN
    noiseless = isinstance(mechanism, NoisyCount) and math.isinf(mechanism.epsilon)
    cases = [(known, 1) for known in sorted(numbers) if small or known == 0]
    cases += [(0, times) for times in plan.repeats if times > 1 and (small or noiseless)]
    if not has_channel(mechanism):
        # Without the distribution of the release, known members would take too many samples.
        cases = [(known, times) for known, times in cases if known == 0]
    results: dict[tuple[int, int], list[tuple[Measured, str]]] = {case: [] for case in cases}
    for eta in estimates.etas:
        bags = eta[partition(eta.size, k, rng)[:n_bags]]
        for (known, times), refits in results.items():
            # Without noise a second release repeats the first.
            different = 1 if noiseless else times
            with setting.naming_errors():
                refits.append(_advantage(bags, mechanism, known, different, rng))
    return [
        KnowingMore(
            *(setting, known, times, times * mechanism.epsilon),
            advantage=over_refits([measured for measured, _ in refits]),
            method=refits[-1][1],
        )
        for (known, times), refits in results.items()
    ]


def _advantage(
    bags: Floats, mechanism: Mechanism, known: int, times: int, rng: Generator
) -> tuple[Measured, str]:
    """The mean advantage, exact over releases where they can be listed, with its error by bag."""
    released = mechanism if times == 1 else Repeated(mechanism, times)
    if times > 1 and not has_channel(released):
        sampled = sampled_advantage(bags, released, draws=DRAWS, rng=rng)
        return Measured(sampled.value, sampled.standard_error), sampled.method
    if known:
        gains = advantage_with_known_members(bags, released, known, rng)
        method = "known members drawn at random, exact over releases"
    else:
        gains, method = plug_in_advantage(bags, released, rng)
    return over_bags(gains.sum(axis=1), np.full(len(gains), float(gains.shape[1]))), method


@dataclass(frozen=True)
class BagFacts:
    """The table's own bags. `dispersion` is 1 where labels are independent given eta."""

    bags: int
    smallest: int
    median: float
    largest: int
    of_one_record: int
    of_one_label: int
    expected_of_one_label: float
    dispersion: float
    dispersion_error: float

    @property
    def move_together(self) -> bool:
        """Whether labels in a bag agree more than eta explains, by three standard errors."""
        return self.dispersion > 1 + 3 * self.dispersion_error


def bag_facts(bags: Ints, labels: Labels, eta: Floats) -> BagFacts:
    """Sizes, bags whose labels are all equal, and whether labels agree more than eta explains.

    The dispersion is the sum over bags of (ones - expected ones)^2, divided by the sum of their
    variances. A mean of the bags' own ratios would depend on a small number of bags whose labels
    are nearly certain.

    >>> import numpy as np
    >>> bags, labels = np.repeat(np.arange(50), 2), np.tile([0, 0, 1, 1], 25)
    >>> facts = bag_facts(bags, labels, np.full(100, 0.5))
    >>> facts.of_one_label, round(facts.expected_of_one_label, 6), facts.move_together
    (50, 25.0, True)
    """
    sizes = np.bincount(bags)
    ones = np.bincount(bags, labels)
    excess = np.asarray(ones - np.bincount(bags, eta), dtype=np.float64)
    variance = np.bincount(bags, eta * (1 - eta)).astype(np.float64)
    with np.errstate(divide="ignore"):
        all_one = np.exp(np.bincount(bags, np.log(eta)))
        all_zero = np.exp(np.bincount(bags, np.log1p(-eta)))
    dispersion = over_bags(excess**2, variance) if variance.any() else Measured(1.0, math.inf)
    return BagFacts(
        bags=sizes.size,
        smallest=int(sizes.min()),
        median=float(np.median(sizes)),
        largest=int(sizes.max()),
        of_one_record=int((sizes == 1).sum()),
        of_one_label=int(((ones == 0) | (ones == sizes)).sum()),
        expected_of_one_label=float((all_one + all_zero).sum()),
        dispersion=dispersion.value,
        dispersion_error=dispersion.standard_error,
    )


@dataclass(frozen=True)
class BagComparison:
    """The table's own bags beside random bags of the same sizes, for one mechanism."""

    own: Exposure
    random: Exposure

    @property
    def title(self) -> str:
        """The mechanism and its epsilon; the bag sizes are those of the table."""
        return self.own.title


def compare_bags(
    bags: Ints, labels: Labels, estimates: EtaEstimates, plan: AuditPlan
) -> list[BagComparison]:
    """Each mechanism that takes bags of any size, on the table's bags and on random ones.

    >>> import numpy as np
    >>> from labelaudit.report.eta import EtaEstimates
    >>> bags, labels = np.repeat(np.arange(50), 2), np.tile([0, 0, 1, 1], 25)
    >>> estimates = EtaEstimates.ready_made(np.full(100, 0.5), labels)
    >>> plan = AuditPlan(mechanisms=["llp"], bag_sizes=[2])
    >>> [comparison] = compare_bags(bags, labels, estimates, plan)
    >>> comparison.own.realised.value, comparison.random.realised.value < 0.4
    (0.5, True)
    """
    truth = labels.astype(np.int64)
    sizes = np.unique(np.bincount(bags))
    comparisons = []
    for setting in of_any_size(plan.settings, [int(size) for size in sizes if size]):
        own = ExposureBuilder(setting, plan.level, int(bags.max()) + 1)
        random = ExposureBuilder(setting, plan.level, bags.size)
        streams = np.random.SeedSequence([plan.seed, 6]).spawn(len(estimates.etas))
        for eta, stream in zip(estimates.etas, streams, strict=True):
            rng = np.random.default_rng(stream)
            for _ in range(min(rounds_for(bags.size), MOST_OWN_ROUNDS)):
                # Rounds on the table's bags share the bags, those on random bags the records.
                attacked, records, lengths = attack_unequal(bags, truth, eta, setting, rng)
                units = bags[records[np.cumsum(lengths) - 1]]
                own.add(attacked, units, np.ones_like(lengths))
                random.add(*attack_unequal(rng.permutation(bags), truth, eta, setting, rng))
            own.end_refit()
            random.end_refit()
        comparisons.append(BagComparison(own.exposure(), random.exposure()))
    return comparisons


def of_any_size(settings: Sequence[Setting], sizes: Sequence[int]) -> Iterator[Setting]:
    """Settings whose bag size can be chosen, once each, without it, made for the largest size."""
    seen = set()
    for setting in settings:
        rest = tuple(pair for pair in setting.parameters if pair[0] != "bag_size")
        if len(rest) == len(setting.parameters) or (setting.kind, rest) in seen:
            continue
        if setting.own and sizes[-1] > MOST_WITH_MATRIX:
            continue
        seen.add((setting.kind, rest))
        checked = True
        for size in sizes if setting.own else ():
            with setting.naming_errors():
                mechanism = construct(setting.kind, dict(rest) | {"bag_size": size})
                checked &= check_own(mechanism, f"{setting.kind.name} (bags of {size})")
        largest = construct(setting.kind, dict(rest) | {"bag_size": sizes[-1]})
        yield replace(setting, mechanism=largest, parameters=rest, checked=checked)


def attack_unequal(
    bags: Ints, labels: Ints, eta: Floats, setting: Setting, rng: Generator
) -> tuple[list[AttackRound], Ints, Ints]:
    """Attack bags of unequal size, size by size; the records bag by bag, and the bags' sizes."""
    order = np.argsort(bags, kind="stable")
    sizes = np.bincount(bags)
    starts = np.r_[0, np.cumsum(sizes)[:-1]]
    parameters: dict[str, Any] = dict(setting.parameters)
    attacked, records, lengths = [], [], []
    for size in np.unique(sizes[sizes > 0]):
        rows = order[starts[sizes == size][:, None] + np.arange(size)]
        with setting.naming_errors():
            mechanism = construct(setting.kind, parameters | {"bag_size": int(size)})
            attacked.append(attack(eta[rows], labels[rows], mechanism, rng))
        records.append(rows.ravel())
        lengths.append(np.full(len(rows), size))
    return attacked, np.concatenate(records), np.concatenate(lengths)
