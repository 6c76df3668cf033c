"""What the average does not show: bags not drawn at random, and attackers who know more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelaudit.advantage import additive_advantage
from labelaudit.checks import Floats
from labelaudit.estimates import advantage_with_known_mates, sampled_advantage
from labelaudit.mechanisms import Mechanism
from labelaudit.repeated import Repeated
from labelaudit.report.beliefs import Beliefs
from labelaudit.report.exposure import Labels, attack, plug_in_advantage
from labelaudit.report.intervals import Interval, Share, over_bags, over_refits
from labelaudit.report.plan import Plan
from labelaudit.report.settings import FAMILIES, Setting

# Records behind each number about an attacker who knows more.
RECORDS = 4096
DRAWS = 20
# Known mates are drawn anew for every member, which takes the cube of the bag size.
MOST_WITH_MATES = 512


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
    """From nobody known to everybody known but one; from one release to several; in every refit."""
    rng = np.random.default_rng([plan.seed, 5])
    mechanism, k = setting.mechanism, setting.mechanism.bag_size
    n_bags = min(beliefs.etas[0].size, max(RECORDS, 10 * k)) // k
    some = {0, 1, k // 2, k - 1} if k <= MOST_WITH_MATES else {0}
    cases = [(known, 1) for known in sorted(some & set(range(k)))]
    cases += [(0, times) for times in plan.repeats if times > 1]
    found: dict[tuple[int, int], list[Share]] = {}
    methods: dict[tuple[int, int], str] = {}
    for eta in beliefs.etas:
        bags = eta[rng.permutation(eta.size)[: n_bags * k].reshape(n_bags, k)]
        for known, times in cases:
            share, method = (
                _with_known(bags, mechanism, known, rng)
                if times == 1
                else _repeated(bags, Repeated(mechanism, times), rng)
            )
            if share is not None:
                found.setdefault((known, times), []).append(share)
                methods[known, times] = method
    return [
        Knowing(setting, known, times, times * mechanism.epsilon, over_refits(shares), method)
        for ((known, times), shares), method in zip(found.items(), methods.values(), strict=True)
    ]


def _with_known(
    bags: Floats, mechanism: Mechanism, known: int, rng: np.random.Generator
) -> tuple[Share | None, str]:
    """Nothing where the law of the release is not known."""
    if known == 0:
        gains, method = plug_in_advantage(bags, mechanism, rng)
    else:
        try:
            gains = advantage_with_known_mates(bags, mechanism, known, rng)
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

    title: str
    epsilon: float
    given_plug_in: Interval
    given_realised: Interval
    random_plug_in: Interval
    random_realised: Interval


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


def bag_facts(bags: NDArray[np.int64], labels: Labels, eta: Floats) -> BagFacts:
    """Sizes, bags that label proportions give away whole, and whether labels move together."""
    sizes = np.bincount(bags)
    ones = np.bincount(bags, labels)
    excess = ones - np.bincount(bags, eta)
    variance = np.bincount(bags, eta * (1 - eta))
    doubt = variance > 0
    squares = excess[doubt] ** 2 / variance[doubt]
    with np.errstate(divide="ignore"):
        all_one = np.exp(np.bincount(bags, np.log(eta)))
        all_zero = np.exp(np.bincount(bags, np.log1p(-eta)))
    error = float(squares.std(ddof=1)) / np.sqrt(squares.size) if squares.size > 1 else np.inf
    return BagFacts(
        bags=sizes.size,
        smallest=int(sizes.min()),
        median=float(np.median(sizes)),
        largest=int(sizes.max()),
        of_one_record=int((sizes == 1).sum()),
        of_one_label=int(((ones == 0) | (ones == sizes)).sum()),
        expected_of_one_label=float((all_one + all_zero).sum()),
        dispersion=float(squares.mean()) if squares.size else 1.0,
        dispersion_error=float(error),
    )


def given_bags(
    bags: NDArray[np.int64], labels: Labels, beliefs: Beliefs, plan: Plan
) -> list[GivenBags]:
    """Each mechanism that takes bags of any size, on the table's bags and on random ones."""
    found = []
    for name in plan.mechanisms:
        if name not in FAMILIES or name == "rr":
            continue
        family = FAMILIES[name]
        for epsilon in (None,) if name == "llp" else plan.epsilons:
            known: dict[str, Any] = {} if epsilon is None else {"epsilon": epsilon}
            refits: dict[str, list[Share]] = {}
            streams = np.random.SeedSequence([plan.seed, 6]).spawn(len(beliefs.etas))
            for eta, stream in zip(beliefs.etas, streams, strict=True):
                rng = np.random.default_rng(stream)
                shuffled = rng.permutation(bags)
                for kind, assigned in (("given", bags), ("random", shuffled)):
                    pair = attack_unequal(assigned, labels, eta, family.make, known, rng)
                    for number, share in zip(("plug_in", "realised"), pair, strict=True):
                        refits.setdefault(f"{kind}_{number}", []).append(share)
            title = family.short if epsilon is None else f"{family.short}, epsilon {epsilon:g}"
            level = np.inf if epsilon is None else epsilon
            intervals = {name: over_refits(shares) for name, shares in refits.items()}
            found.append(GivenBags(title, float(level), **intervals))
    return found


def attack_unequal(
    bags: NDArray[np.int64],
    labels: Labels,
    eta: Floats,
    make: Any,
    known: dict[str, Any],
    rng: np.random.Generator,
) -> tuple[Share, Share]:
    """Plug-in and realised advantage over bags of unequal size, size by size."""
    order = np.argsort(bags, kind="stable")
    sizes = np.bincount(bags)
    starts = np.r_[0, np.cumsum(sizes)[:-1]]
    promised, gained = np.empty(sizes.size), np.empty(sizes.size)
    for size in np.unique(sizes):
        here = np.flatnonzero(sizes == size)
        rows = order[starts[here][:, None] + np.arange(size)]
        mechanism = make(bag_size=int(size), **known)
        attacked = attack(eta[rows], labels[rows], mechanism, rng)
        promised[here], gained[here] = attacked.promised, attacked.gain.sum(axis=1)
    weights = sizes.astype(np.float64)
    return over_bags(promised, weights), over_bags(gained, weights, unseen=1.0)
