"""The attack, setting by setting: what eta promises, what the true labels show, and for whom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from labelaudit.advantage import additive_advantage, multiplicative_advantage
from labelaudit.attack import posterior
from labelaudit.checks import Floats
from labelaudit.mechanisms import Mechanism
from labelaudit.report.beliefs import Beliefs, Say
from labelaudit.report.intervals import Interval, Share, over_refits, over_rounds
from labelaudit.report.plan import Plan
from labelaudit.report.pool import Pool
from labelaudit.report.settings import Setting
from labelaudit.report.trial import refuse_more_than

# A mechanism of the user's own must see one type of label everywhere, and one that holds -1.
Labels = NDArray[np.int64]
# Records that one refit attacks; the standard errors of so many are far below any target. A small
# table is attacked several times over in each refit, in other bags and with fresh noise.
MOST_RECORDS = 250_000
MOST_ROUNDS = 10
# Groups of bags that give the error of a percentile.
GROUPS = 8
# A label counts as known where the attacker gives it at least this probability.
SURE = 0.95
# Every number that is a ratio of sums over bags, and what one record could have added to it.
NUMBERS = {
    "plug_in": 0.0, "realised": 1.0, "difference": 1.0, "revealed": 0.0,
    "gain 0": 1.0, "before 0": 0.0, "after 0": 1.0,
    "gain 1": 1.0, "before 1": 0.0, "after 1": 1.0,
}  # fmt: skip


@dataclass(frozen=True)
class ByLabel:
    """What the release does to the records with one true label.

    `gain` is the attacker's gain in accuracy on them; the shares are those whose true label the
    attacker gives a probability of at least `SURE`, before and after.
    """

    label: int
    gain: Interval
    sure_before: Interval
    sure_after: Interval


@dataclass(frozen=True)
class Exposure:
    """What one setting gives away, with intervals by bag that include refitting eta.

    `difference` is realised minus plug-in, from the same bags. `percentile` is that of |I| over
    the records, `revealed` the share of them whose label the release proves.
    """

    setting: Setting
    plug_in: Interval
    realised: Interval
    difference: Interval
    percentile: Interval
    revealed: Interval
    by_label: tuple[ByLabel, ...]
    method: str

    @property
    def title(self) -> str:
        """The setting in short."""
        return self.setting.title

    @property
    def epsilon(self) -> float:
        """What the mechanism says of itself."""
        return self.setting.mechanism.epsilon

    @property
    def guarantee(self) -> float:
        """Epsilon where it is known; none where it is only declared."""
        return self.epsilon if self.setting.checked else math.inf

    @property
    def contradicted(self) -> bool:
        """Whether plug-in and realised advantage differ by more than two standard errors."""
        error = self.difference.standard_error
        return bool(abs(self.difference.value) > 2 * error)


def expose(
    labels: NDArray[np.integer], beliefs: Beliefs, plan: Plan, say: Say = lambda line: None
) -> tuple[Exposure, ...]:
    """Attack every setting in every refit: new bags, a fresh release, the refit's own eta.

    >>> import numpy as np
    >>> from labelaudit.report.beliefs import Beliefs, calibration_of
    >>> labels, etas = np.tile([0, 1], 50), (np.full(100, 0.5),) * 2
    >>> beliefs = Beliefs(etas, False, calibration_of(etas, labels))
    >>> [found] = expose(labels, beliefs, Plan(mechanisms=["rr"], epsilons=[1.0]))
    >>> found.title, round(found.plug_in.value, 4), found.contradicted
    ('RR (epsilon 1)', 0.2311, False)
    """
    rng = np.random.default_rng([plan.seed, 2])
    sizes = sorted({setting.mechanism.bag_size for setting in plan.settings})
    some = rng.permutation(labels.size)[: max(MOST_RECORDS, 10 * sizes[-1])]
    truth = labels[some].astype(np.int64)
    etas = [eta[some] for eta in beliefs.etas]
    found: dict[Setting, Exposure] = {}
    for bag_size in sizes:
        here = [one for one in plan.settings if one.mechanism.bag_size == bag_size]
        say(f"attack: {len(here)} setting{'s' * (len(here) > 1)} with bags of {bag_size}")
        # Settings are compared in the same bags.
        refits = [
            [random_bags(some.size, bag_size, rng) for _ in range(rounds_for(labels.size))]
            for _ in etas
        ]
        lengths = np.full(some.size // bag_size, bag_size)
        for setting in here:
            gathered = Gathered(setting, plan.level, some.size)
            for eta, rounds in zip(etas, refits, strict=True):
                for bags in rounds:
                    with setting.blamed():
                        one = attack(eta[bags], truth[bags], setting.mechanism, rng)
                    gathered.add([one], bags.ravel(), lengths)
                gathered.end_refit()
            found[setting] = gathered.exposure()
    return tuple(found[setting] for setting in plan.settings)


def rounds_for(rows: int) -> int:
    """How often a refit attacks a table of so many rows."""
    return min(max(MOST_RECORDS // rows, 1), MOST_ROUNDS)


def random_bags(rows: int, bag_size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Row numbers of random bags: (n_bags, bag_size). Rows that do not fill one are left out."""
    n_bags = rows // bag_size
    return rng.permutation(rows)[: n_bags * bag_size].reshape(n_bags, bag_size)


def plug_in_advantage(
    eta: Floats, mechanism: Mechanism, rng: np.random.Generator
) -> tuple[Floats, str]:
    """Additive advantage of each example, exact where the law of the release is known."""
    try:
        return additive_advantage(eta, mechanism), "exact over releases"
    except (TypeError, ValueError):
        drawn = mechanism.release((rng.random(eta.shape) < eta).astype(np.int64), rng)
        after = posterior(eta, mechanism, drawn)
        return np.maximum(after, 1 - after) - np.maximum(eta, 1 - eta), "by sampled releases"


@dataclass(frozen=True)
class Attacked:
    """One release of the true labels of equal bags: by bag every number, by record |I|."""

    sums: Floats
    sizes: Floats
    shifts: Floats
    method: str


def attack(eta: Floats, labels: Labels, mechanism: Mechanism, rng: np.random.Generator) -> Attacked:
    """Release the labels and guess them, with the release and without."""
    promised, method = plug_in_advantage(eta, mechanism, rng)
    shifts = multiplicative_advantage(eta, mechanism, mechanism.release(labels, rng))
    name, most = type(mechanism).__name__, float(np.abs(shifts).max())
    refuse_more_than(mechanism.epsilon, most, name, "the attack")
    after = moved(eta, shifts)
    one = labels == 1
    gain = ((after >= 0.5) == one) * 1.0 - ((eta >= 0.5) == one)
    columns = [promised, gain, gain - promised, np.isinf(shifts)]
    for these, before, now in ((~one, 1 - eta, 1 - after), (one, eta, after)):
        columns += [gain * these, (before >= SURE) & these, (now >= SURE) & these]
    ones = np.ones(mechanism.bag_size)
    sums = np.column_stack([column.astype(np.float64) @ ones for column in columns])
    positive = labels.astype(np.float64) @ ones
    sizes = np.empty_like(sums)
    sizes[:, :4] = mechanism.bag_size
    sizes[:, 4:7] = (mechanism.bag_size - positive)[:, None]
    sizes[:, 7:] = positive[:, None]
    return Attacked(sums, sizes, np.abs(shifts), method)


def moved(eta: Floats, shifts: Floats) -> Floats:
    """The posterior of a prior whose log-odds move by `shifts`; a certain prior stays.

    >>> moved(np.array([0.5, 0.0, 0.3]), np.array([0.0, 0.0, np.inf])).tolist()
    [0.5, 0.0, 1.0]
    """
    return np.asarray(expit(logit(eta) + shifts))


def percentile_of(groups: Sequence[Floats], level: float) -> Share:
    """The percentile of |I| over the records of a release; its error from groups of bags."""
    value = float(np.quantile(np.concatenate(groups), level, method="inverted_cdf"))
    found = [np.quantile(group, level, method="inverted_cdf") for group in groups]
    if not np.isfinite(found).all():
        return Share(value, math.inf, float(min(found)))
    return Share(value, float(np.std(found, ddof=1)) / math.sqrt(len(groups)))


def groups_of(attacked: Sequence[Attacked]) -> list[Floats]:
    """|I| of all records, in groups of bags; bags of every size are spread over the groups."""
    parts: list[list[Floats]] = [[] for _ in range(GROUPS)]
    first = 0
    for one in attacked:
        for place, part in enumerate(np.array_split(one.shifts, min(GROUPS, len(one.shifts)))):
            parts[(first + place) % GROUPS].append(part.ravel())
        # The next size goes on where this one ended, or the first group would have them all.
        first += len(one.shifts)
    return [np.concatenate(part) for part in parts if part]


class Gathered:
    """The rounds and refits of one setting, and at last its exposure."""

    def __init__(self, setting: Setting, level: float, units: int) -> None:
        """Units are what the rounds share, as in `Pool`."""
        self.setting, self.level = setting, level
        self.pool = Pool(NUMBERS, units)
        self.rounds: list[Share] = []
        self.refits: list[Share] = []
        self.method = ""

    def add(
        self, attacked: Sequence[Attacked], units: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> None:
        """One round, in one or several sizes of bags."""
        sums, sizes = (
            np.concatenate([getattr(one, name) for one in attacked]) for name in ("sums", "sizes")
        )
        self.pool.add(sums, sizes, units, lengths)
        self.rounds.append(percentile_of(groups_of(attacked), self.level))
        self.method = attacked[0].method

    def end_refit(self) -> None:
        """The rounds that follow have another eta."""
        self.pool.end_refit()
        self.refits.append(over_rounds(self.rounds))
        self.rounds = []

    def exposure(self) -> Exposure:
        """Everything, with intervals."""
        numbers = self.pool.intervals()
        level = over_refits(self.refits)
        most = self.setting.mechanism.epsilon if self.setting.checked else None
        # Neither below 0 nor, where epsilon is known, above it: no shift was, but an end may be.
        low, high = np.clip([level.low, level.high], 0, most)
        return Exposure(
            setting=self.setting,
            by_label=tuple(
                ByLabel(label, *(numbers[f"{one} {label}"] for one in ("gain", "before", "after")))
                for label in (0, 1)
            ),
            method=self.method,
            percentile=replace(level, low=float(low), high=float(high)),
            **{name: numbers[name] for name in ("plug_in", "realised", "difference", "revealed")},
        )
