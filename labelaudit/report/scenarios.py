"""What the average does not show: bags not drawn at random, and attackers who know more."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelaudit.advantage import additive_advantage
from labelaudit.checks import Floats
from labelaudit.estimates import advantage_with_known_members, sampled_advantage
from labelaudit.mechanisms import Mechanism, NoisyCount
from labelaudit.repeated import Repeated
from labelaudit.report.beliefs import Beliefs
from labelaudit.report.exposure import (
    Attacked,
    Exposure,
    Gathered,
    Labels,
    attack,
    plug_in_advantage,
    rounds_for,
)
from labelaudit.report.intervals import Interval, Share, over_bags, over_refits
from labelaudit.report.plan import Plan
from labelaudit.report.settings import Setting
from labelaudit.report.trial import check_own

# Records behind each number about an attacker who knows more.
RECORDS = 4096
DRAWS = 20
# Known mates are drawn anew for every member, which takes the cube of the bag size, and a repeated
# release has no law as simple as a single one's. Larger bags are left out of both.
MOST_WITH_MATES = 512
# A mechanism of the user's own gives its law as a matrix with a row for each count.
MOST_WITH_MATRIX = 2048
# Rounds in which a refit attacks the table's own bags, size by size, which takes its time.
MOST_IN_BAGS = 4


@dataclass(frozen=True)
class Knowing:
    """The mean advantage when the attacker knows some bag-mates, or sees several releases."""

    setting: Setting
    known: int
    times: int
    epsilon: float
    advantage: Interval
    method: str


def knowing_more(beliefs: Beliefs, setting: Setting, plan: Plan) -> list[Knowing]:
    """From nobody known to everybody known but one; from one release to several; in every refit.

    >>> import numpy as np
    >>> from labelaudit.report.beliefs import Beliefs, calibration_of
    >>> etas = (np.full(100, 0.5),) * 2
    >>> beliefs = Beliefs(etas, False, calibration_of(etas, np.tile([0, 1], 50)))
    >>> plan = Plan(mechanisms=["llp"], bag_sizes=[2], repeats=[1])
    >>> found = knowing_more(beliefs, plan.settings[0], plan)
    >>> [(one.known, one.advantage.value) for one in found]
    [(0, 0.25), (1, 0.5)]
    """
    rng = np.random.default_rng([plan.seed, 5])
    mechanism, k = setting.mechanism, setting.mechanism.bag_size
    n_bags = min(beliefs.etas[0].size, max(RECORDS, 10 * k)) // k
    mates = {min(one, k - 1) for one in (plan.known or (0, 1, k // 2, k - 1))} | {0}
    small = k <= MOST_WITH_MATES
    cases = [(known, 1) for known in sorted(mates) if small or known == 0]
    cases += [(0, times) for times in plan.repeats if times > 1 and (small or noiseless(mechanism))]
    found: dict[tuple[int, int], list[Share]] = {}
    methods: dict[tuple[int, int], str] = {}
    for eta in beliefs.etas:
        bags = eta[rng.permutation(eta.size)[: n_bags * k].reshape(n_bags, k)]
        for known, times in cases:
            with setting.blamed():
                share, method = (
                    _with_known(bags, mechanism, known, rng)
                    if times == 1 or noiseless(mechanism)
                    else _repeated(bags, Repeated(mechanism, times), rng)
                )
            if share is not None:
                found.setdefault((known, times), []).append(share)
                methods[known, times] = method
    return [
        Knowing(setting, known, times, times * mechanism.epsilon, over_refits(shares), method)
        for ((known, times), shares), method in zip(found.items(), methods.values(), strict=True)
    ]


def noiseless(mechanism: Mechanism) -> bool:
    """Whether the count itself is released, so that a second release tells nothing."""
    return isinstance(mechanism, NoisyCount) and math.isinf(mechanism.epsilon)


def _with_known(
    bags: Floats, mechanism: Mechanism, known: int, rng: np.random.Generator
) -> tuple[Share | None, str]:
    """Nothing where the law of the release is not known."""
    if known == 0:
        gains, method = plug_in_advantage(bags, mechanism, rng)
    else:
        try:
            gains = advantage_with_known_members(bags, mechanism, known, rng)
        except TypeError:
            return None, ""
        method = "mates drawn at random, exact over releases"
    return over_bags(gains.sum(axis=1), np.full(len(bags), float(bags.shape[1]))), method


def _repeated(bags: Floats, repeated: Repeated, rng: np.random.Generator) -> tuple[Share, str]:
    """Exact where the outcomes can be listed; the error over bags is there either way."""
    try:
        gains = additive_advantage(bags, repeated)
    except (TypeError, ValueError):
        sampled = sampled_advantage(bags, repeated, draws=DRAWS, rng=rng)
        return Share(sampled.value, sampled.standard_error), sampled.method
    sizes = np.full(len(bags), float(bags.shape[1]))
    return over_bags(gains.sum(axis=1), sizes), "exact over releases"


@dataclass(frozen=True)
class GivenBags:
    """The table's own bags beside random bags of the same sizes, for one mechanism."""

    given: Exposure
    random: Exposure

    @property
    def title(self) -> str:
        """The mechanism and its epsilon; bag sizes are the table's."""
        return self.given.title


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
    def sizes(self) -> str:
        """How large the bags are, in words."""
        if self.smallest == self.largest:
            return f"{self.largest:,} record{'s' * (self.largest > 1)} each"
        return f"{self.smallest:,} to {self.largest:,} records (median {self.median:g})"

    @property
    def move_together(self) -> bool:
        """Whether labels in a bag agree more than eta explains, by three standard errors."""
        return self.dispersion > 1 + 3 * self.dispersion_error


def bag_facts(bags: NDArray[np.int64], labels: NDArray[np.integer], eta: Floats) -> BagFacts:
    """Sizes, bags that label proportions give away whole, and whether labels move together.

    The dispersion is the squared excess of ones over all bags as a share of its variance. A mean
    of the bags' own shares would rest on the few bags whose labels are all but certain.

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
    share = over_bags(excess**2, variance) if variance.any() else Share(1.0, math.inf)
    return BagFacts(
        bags=sizes.size,
        smallest=int(sizes.min()),
        median=float(np.median(sizes)),
        largest=int(sizes.max()),
        of_one_record=int((sizes == 1).sum()),
        of_one_label=int(((ones == 0) | (ones == sizes)).sum()),
        expected_of_one_label=float((all_one + all_zero).sum()),
        dispersion=share.value,
        dispersion_error=share.standard_error,
    )


def given_bags(
    bags: NDArray[np.int64], labels: NDArray[np.integer], beliefs: Beliefs, plan: Plan
) -> list[GivenBags]:
    """Each mechanism that takes bags of any size, on the table's bags and on random ones.

    >>> import numpy as np
    >>> from labelaudit.report.beliefs import Beliefs, calibration_of
    >>> bags, labels = np.repeat(np.arange(50), 2), np.tile([0, 0, 1, 1], 25)
    >>> etas = (np.full(100, 0.5),) * 2
    >>> beliefs = Beliefs(etas, False, calibration_of(etas, labels))
    >>> [found] = given_bags(bags, labels, beliefs, Plan(mechanisms=["llp"], bag_sizes=[2]))
    >>> found.given.realised.value, found.random.realised.value < 0.4
    (0.5, True)
    """
    truth = labels.astype(np.int64)
    sizes = np.unique(np.bincount(bags))
    found = []
    for setting in of_any_size(plan.settings, [int(size) for size in sizes if size]):
        own = Gathered(setting, plan.level, int(bags.max()) + 1)
        random = Gathered(setting, plan.level, bags.size)
        streams = np.random.SeedSequence([plan.seed, 6]).spawn(len(beliefs.etas))
        for eta, stream in zip(beliefs.etas, streams, strict=True):
            rng = np.random.default_rng(stream)
            for _ in range(min(rounds_for(bags.size), MOST_IN_BAGS)):
                # The table's bags are the same in every round, so that they are what rounds share;
                # of random bags it is the records.
                attacked, units, lengths = attack_unequal(bags, truth, eta, setting, rng)
                own.add(attacked, bags[units[np.cumsum(lengths) - 1]], np.ones_like(lengths))
                random.add(*attack_unequal(rng.permutation(bags), truth, eta, setting, rng))
            own.end_refit()
            random.end_refit()
        found.append(GivenBags(own.exposure(), random.exposure()))
    return found


def of_any_size(settings: Sequence[Setting], sizes: Sequence[int]) -> Iterator[Setting]:
    """Settings whose bag size can be chosen, once each, without it and in the largest of sizes."""
    seen = set()
    for setting in settings:
        rest = tuple(one for one in setting.parameters if one[0] != "bag_size")
        if len(rest) == len(setting.parameters) or (setting.family, rest) in seen:
            continue
        if setting.family.own and sizes[-1] > MOST_WITH_MATRIX:
            continue
        seen.add((setting.family, rest))
        checked = True
        for size in sizes if setting.family.own else ():
            with setting.blamed():
                mechanism = setting.family.made(dict(rest) | {"bag_size": size})
                checked &= check_own(mechanism, f"{setting.family.short} (bags of {size})")
        largest = setting.family.made(dict(rest) | {"bag_size": sizes[-1]})
        yield replace(setting, mechanism=largest, parameters=rest, checked=checked)


def attack_unequal(
    bags: NDArray[np.int64],
    labels: Labels,
    eta: Floats,
    setting: Setting,
    rng: np.random.Generator,
) -> tuple[list[Attacked], NDArray[np.int64], NDArray[np.int64]]:
    """Bags of unequal size, size by size; the records of each, and how many there are."""
    order = np.argsort(bags, kind="stable")
    sizes = np.bincount(bags)
    starts = np.r_[0, np.cumsum(sizes)[:-1]]
    known: dict[str, Any] = dict(setting.parameters)
    found, records, lengths = [], [], []
    for size in np.unique(sizes[sizes > 0]):
        rows = order[starts[sizes == size][:, None] + np.arange(size)]
        with setting.blamed():
            mechanism = setting.family.make(bag_size=int(size), **known)
            found.append(attack(eta[rows], labels[rows], mechanism, rng))
        records.append(rows.ravel())
        lengths.append(np.full(len(rows), size))
    return found, np.concatenate(records), np.concatenate(lengths)
