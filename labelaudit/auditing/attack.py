"""The attack on every setting: what eta promises, what the true labels show, averaged over rounds.

A round puts the records into bags, releases their labels and guesses them. Bags are random ones of
one size, or the table's own; labels have two classes or more.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import expit, logit

from labelaudit import multiclass
from labelaudit.advantage import additive_advantage, multiplicative_advantage
from labelaudit.attack import posterior
from labelaudit.auditing.eta import EtaEstimates, Labels, Progress
from labelaudit.auditing.intervals import (
    Interval,
    Measured,
    RoundAverages,
    over_refits,
    over_rounds,
)
from labelaudit.auditing.plan import AuditPlan, Setting
from labelaudit.checks import Floats, Ints
from labelaudit.mechanisms import CountChannel, Mechanism
from labelaudit.mechanisms.custom import check_custom, check_epsilon, has_channel
from labelaudit.partitions import bags_by_size, partition

# Records that a refit attacks: their standard errors are far below any target. A small table is
# attacked several times in each refit, in other bags and with fresh noise.
MOST_RECORDS = 250_000
MOST_ROUNDS = 10
# The table's own bags are attacked size by size, which takes long: the most rounds of a refit.
MOST_OWN_ROUNDS = 4
# The largest bag for a channel that is a matrix with a row for each count.
MOST_WITH_MATRIX = 2048
# Groups of bags that give the error of a percentile.
GROUPS = 8
# A label counts as known where the attacker gives it at least this probability.
SURE = 0.95
# Every number that is a ratio of sums over bags: what one record could have added to it, and its
# smallest and largest possible value.
NUMBERS = {
    "plug_in": (0.0, 0, 0.5), "realised": (1.0, -1, 1), "difference": (1.0, -1.5, 1),
    "revealed": (0.0, 0, 1),
    "gain 0": (1.0, -1, 1), "before 0": (0.0, 0, 1), "after 0": (1.0, 0, 1),
    "gain 1": (1.0, -1, 1), "before 1": (0.0, 0, 1), "after 1": (1.0, 0, 1),
}  # fmt: skip


@dataclass(frozen=True)
class ByLabel:
    """What the release does to the records with one true label.

    `gain` is the attacker's gain in accuracy on them. `sure_before` and `sure_after` are the
    fractions whose true label the attacker gives a probability of at least `SURE`.
    """

    label: int
    gain: Interval
    sure_before: Interval
    sure_after: Interval


@dataclass(frozen=True)
class Exposure:
    """What a setting reveals, with intervals by bag that include refitting eta.

    `difference` is realised minus plug-in advantage, from the same bags. `percentile` is that of
    |I| over the records, `revealed` the fraction of them whose label the release proves. `rows` are
    the most rows of a person.
    """

    setting: Setting
    plug_in: Interval
    realised: Interval
    difference: Interval
    percentile: Interval
    revealed: Interval
    by_label: tuple[ByLabel, ...]
    method: str
    rows: int = 1

    @property
    def title(self) -> str:
        """The setting in short."""
        return self.setting.title

    @property
    def epsilon(self) -> float:
        """What the mechanism declares."""
        return self.setting.mechanism.epsilon

    @property
    def guarantee(self) -> float:
        """Epsilon for a person where it was checked; infinite where it is only declared."""
        return self.epsilon * self.rows if self.setting.checked else math.inf

    @property
    def contradicted(self) -> bool:
        """Whether plug-in and realised advantage differ by more than two standard errors."""
        return bool(abs(self.difference.value) > 2 * self.difference.standard_error)

    @property
    def refuted(self) -> bool:
        """Whether they differ by more than happens at random in any of many settings."""
        return bool(abs(self.difference.value) > 4 * self.difference.standard_error)


@dataclass(frozen=True)
class AttackRound:
    """A release of the true labels in bags of one size: numbers by bag and by record.

    `records` are expected gain, realised gain, their difference, and whether the label is proven.
    """

    sums: Floats
    sizes: Floats
    shifts: Floats
    method: str
    records: Sequence[Floats] = ()


def attack(eta: Floats, labels: Ints, mechanism: Mechanism, rng: Generator) -> AttackRound:
    """Release the labels and guess them, with the release and without."""
    expected, method = plug_in_advantage(eta, mechanism, rng)
    shifts = multiplicative_advantage(eta, mechanism, mechanism.release(labels, rng))
    name, largest = type(mechanism).__name__, float(np.abs(shifts).max())
    check_epsilon(mechanism.epsilon, largest, name, "the attack")
    # The log-odds move by the shifts; a certain prior stays.
    after = expit(logit(eta) + shifts)
    positive = labels == 1
    gain = ((after >= 0.5) == positive) * 1.0 - ((eta >= 0.5) == positive)
    records = [expected, gain, gain - expected, np.isinf(shifts) * 1.0]
    columns = [*records]
    for members, prior, then in ((~positive, 1 - eta, 1 - after), (positive, eta, after)):
        columns += [gain * members, (prior >= SURE) & members, (then >= SURE) & members]
    sums = np.column_stack([column.sum(axis=1) for column in columns])
    ones = labels.sum(axis=1)
    bags = np.stack([np.full_like(ones, mechanism.bag_size), mechanism.bag_size - ones, ones])
    sizes = np.repeat(bags.T, [4, 3, 3], axis=1).astype(np.float64)
    return AttackRound(sums, sizes, np.abs(shifts), method, records)


def plug_in_advantage(eta: Floats, mechanism: Mechanism, rng: Generator) -> tuple[Floats, str]:
    """Additive advantage of each example, exact where the mechanism has a channel."""
    if has_channel(mechanism):
        return additive_advantage(eta, mechanism), "exact over releases"
    drawn = mechanism.release((rng.random(eta.shape) < eta).astype(np.int64), rng)
    after = posterior(eta, mechanism, drawn)
    return np.maximum(after, 1 - after) - np.maximum(eta, 1 - eta), "by sampled releases"


def attack_classes(
    eta: Floats, labels: Ints, mechanism: multiclass.ClassMechanism, rng: Generator
) -> AttackRound:
    """Release the classes and guess them, with the release and without.

    |I| is the largest change of the log-odds of any class, and a label is proven where one class is
    left.
    """
    expected = multiclass.additive_advantage(eta, mechanism)
    after = multiclass.posterior(eta, mechanism, mechanism.release(labels, rng))
    gain = (after.argmax(axis=-1) == labels) * 1.0 - (eta.argmax(axis=-1) == labels)
    proven = (after.max(axis=-1) == 1) & (eta.max(axis=-1) < 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.log(after / (1 - after)) - np.log(eta / (1 - eta))
    shifts = np.abs(np.where(np.isnan(moved), 0.0, moved)).max(axis=-1)
    columns = (expected, gain, gain - expected, proven)
    sums, sizes = np.zeros((2, len(eta), 10))
    sums[:, :4] = np.column_stack([column.sum(axis=1) for column in columns])
    sizes[:, :4] = mechanism.bag_size
    return AttackRound(sums, sizes, shifts, "exact over releases")


class ExposureBuilder:
    """Collects the rounds and refits of one setting, and makes its exposure."""

    def __init__(self, setting: Setting, level: float, units: int, repeated: bool = False) -> None:
        """Units are what the rounds have in common, as in `RoundAverages`."""
        self.setting, self.level = setting, level
        unseen = {name: most for name, (most, _, _) in NUMBERS.items()}
        self.averages = RoundAverages(unseen, units, repeated)
        self.rounds: list[Measured] = []
        self.refits: list[Measured] = []
        self.method = ""

    def add(self, attacked: Sequence[AttackRound], units: Ints, lengths: Ints) -> None:
        """Add a round, in bags of one size or of several."""
        sums = np.concatenate([part.sums for part in attacked])
        sizes = np.concatenate([part.sizes for part in attacked])
        self.averages.add(sums, sizes, units, lengths)
        self.rounds.append(percentile_of(groups_of(attacked), self.level))
        self.method = attacked[0].method

    def end_refit(self) -> None:
        """The rounds that follow have another eta."""
        self.averages.end_refit()
        self.refits.append(over_rounds(self.rounds))
        self.rounds = []

    def exposure(self, excess: Floats | None = None) -> Exposure:
        """Everything, with intervals; `excess` as in `RoundAverages.intervals`."""
        # No advantage is above what guessing at random gets wrong.
        most = 1 - 1 / getattr(self.setting.mechanism, "classes", 2)
        limits = {name: ends for name, (_, *ends) in NUMBERS.items()} | {"plug_in": [0, most]}
        numbers = {
            name: interval.within(*limits[name])
            for name, interval in self.averages.intervals(excess).items()
        }
        most = self.setting.mechanism.epsilon if self.setting.checked else math.inf
        percentile = over_refits(self.refits).within(0, most)
        # Where |I| is epsilon for everybody, it is so up to rounding.
        if math.isclose(percentile.value, most):
            percentile = replace(percentile, value=most)
        names = ("gain", "before", "after")
        by_label = [[numbers[f"{name} {label}"] for name in names] for label in (0, 1)]
        return Exposure(
            setting=self.setting,
            by_label=tuple(ByLabel(label, *values) for label, values in enumerate(by_label)),
            method=self.method,
            percentile=percentile,
            plug_in=numbers["plug_in"],
            realised=numbers["realised"],
            difference=numbers["difference"],
            revealed=numbers["revealed"],
        )


def percentile_of(groups: Sequence[Floats], level: float) -> Measured:
    """The percentile of |I| over the records of a release; its error from groups of bags."""
    value = float(np.quantile(np.concatenate(groups), level, method="inverted_cdf"))
    quantiles = [np.quantile(group, level, method="inverted_cdf") for group in groups]
    if not np.isfinite(quantiles).all():
        return Measured(value, math.inf, float(min(quantiles)))
    return Measured(value, float(np.std(quantiles, ddof=1)) / math.sqrt(len(groups)))


def groups_of(attacked: Sequence[AttackRound]) -> list[Floats]:
    """|I| of all records, in groups of bags; bags of every size are spread over the groups."""
    groups: list[list[Floats]] = [[] for _ in range(GROUPS)]
    first = 0
    for part in attacked:
        pieces = np.array_split(part.shifts, min(GROUPS, len(part.shifts)))
        for index, piece in enumerate(pieces, start=first):
            groups[index % GROUPS].append(piece.ravel())
        # The next size continues where this one ended, or the first group would have them all.
        first += len(part.shifts)
    return [np.concatenate(group) for group in groups if group]


class Attacks:
    """Attacks settings in every refit: new bags, a fresh release, the refit's own eta.

    The etas of the refits are the same for every setting. So by how much refits differ beyond what
    bags and noise explain is pooled over the settings of the first call, and kept for later ones.
    """

    def __init__(
        self,
        labels: Labels,
        estimates: EtaEstimates,
        plan: AuditPlan,
        progress: Progress = lambda line: None,
        persons: Ints | None = None,
        attacker: Callable[..., AttackRound] = attack,
    ) -> None:
        """With `persons`, the person of each row from 0, errors and epsilon are by person."""
        self.labels, self.estimates, self.plan, self.progress = labels, estimates, plan, progress
        self.persons, self.attacker = persons, attacker
        self.excess: Floats | None = None
        # The most rows of a person.
        self.rows = 1 if persons is None else int(np.bincount(persons).max())

    def __call__(self, settings: Sequence[Setting]) -> tuple[Exposure, ...]:
        """The exposures of the settings, in their order."""
        rng = np.random.default_rng([self.plan.seed, 2])
        sizes = sorted({setting.mechanism.bag_size for setting in settings})
        sample = rng.permutation(self.labels.size)[: max(MOST_RECORDS, 10 * sizes[-1])]
        units = np.arange(sample.size)
        if self.persons is not None:
            units = np.unique(self.persons[sample], return_inverse=True)[1]
        builders: dict[Setting, ExposureBuilder] = {}
        for bag_size in sizes:
            of_size = [each for each in settings if each.mechanism.bag_size == bag_size]
            self.progress(f"attack: bags of {bag_size}, settings: {len(of_size)}")
            builders |= self._in_bags(bag_size, of_size, sample, units, rng)
        if self.excess is None:
            with warnings.catch_warnings(category=RuntimeWarning, action="ignore"):
                ratios = [builder.averages.excess for builder in builders.values()]
                self.excess = np.nan_to_num(np.nanmedian(ratios, axis=0))
        return tuple(
            replace(builders[setting].exposure(self.excess), rows=self.rows) for setting in settings
        )

    def _in_bags(
        self, bag_size: int, settings: Sequence[Setting], sample: Ints, units: Ints, rng: Generator
    ) -> dict[Setting, ExposureBuilder]:
        """Settings with bags of one size, in the same bags, so that they can be compared."""
        # A mechanism of the user's own must get labels of the same type everywhere.
        truth = self.labels[sample].astype(np.int64)
        etas = [eta[sample] for eta in self.estimates.etas]
        together, number = self.persons is not None, rounds_for(self.labels.size)
        refits = [[drawn_bags(units, bag_size, rng, together) for _ in range(number)] for _ in etas]
        lengths = np.full(sample.size // bag_size, bag_size)
        builders = {}
        for setting in settings:
            builder = ExposureBuilder(setting, self.plan.level, int(units.max()) + 1, together)
            for eta, rounds in zip(etas, refits, strict=True):
                for bags in rounds:
                    with setting.naming_errors():
                        attacked = self.attacker(eta[bags], truth[bags], setting.mechanism, rng)
                    builder.add([attacked], units[bags.ravel()], lengths)
                builder.end_refit()
            builder.averages.close()
            builders[setting] = builder
        return builders


def expose(
    labels: Labels,
    estimates: EtaEstimates,
    plan: AuditPlan,
    *,
    settings: Sequence[Setting] = (),
    **options: Any,
) -> tuple[Exposure, ...]:
    """Attack every setting of the plan, or the given ones; options are those of `Attacks`.

    >>> import numpy as np
    >>> from labelaudit.auditing.eta import EtaEstimates
    >>> labels = np.tile([0, 1], 50)
    >>> estimates = EtaEstimates.ready_made(np.full(100, 0.5), labels)
    >>> [exposure] = expose(labels, estimates, AuditPlan(mechanisms=["rr"], epsilons=[1.0]))
    >>> exposure.title, round(exposure.plug_in.value, 4), exposure.contradicted
    ('RR (epsilon 1)', 0.2311, False)
    """
    return Attacks(labels, estimates, plan, **options)(settings or plan.settings)


def drawn_bags(units: Ints, bag_size: int, rng: Generator, together: bool) -> Ints:
    """Random bags; a person's rows stay `together`, but for those at the edge of a bag.

    >>> units = np.array([0, 1, 0, 1, 2, 2])
    >>> np.ptp(units[drawn_bags(units, 2, np.random.default_rng(0), True)], axis=1).tolist()
    [0, 0, 0]
    """
    if not together:
        return partition(units.size, bag_size, rng)
    order = np.argsort(rng.permutation(int(units.max()) + 1)[units], kind="stable")
    return order[: units.size // bag_size * bag_size].reshape(-1, bag_size)


def rounds_for(rows: int) -> int:
    """How often a refit attacks a table with this number of rows."""
    return min(max(MOST_RECORDS // rows, 1), MOST_ROUNDS)


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
    >>> from labelaudit.auditing.eta import EtaEstimates
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
    for setting in of_any_size(plan.settings, sizes[sizes > 0].tolist()):
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
        has_matrix = setting.own or isinstance(setting.mechanism, CountChannel)
        if has_matrix and sizes[-1] > MOST_WITH_MATRIX:
            continue
        seen.add((setting.kind, rest))
        checked = True
        for size in sizes if setting.own else ():
            with setting.naming_errors():
                name = f"{setting.kind.name} (bags of {size})"
                checked &= check_custom(setting.in_bags_of(size), name)
        largest = setting.in_bags_of(sizes[-1])
        yield replace(setting, mechanism=largest, parameters=rest, checked=checked)


def attack_unequal(
    bags: Ints, labels: Ints, eta: Floats, setting: Setting, rng: Generator
) -> tuple[list[AttackRound], Ints, Ints]:
    """Attack bags of unequal size, size by size; the records bag by bag, and the bags' sizes."""
    order = np.argsort(bags, kind="stable")
    attacked, records, lengths = [], [], []
    for size, positions in bags_by_size(np.bincount(bags)):
        rows = order[positions]
        with setting.naming_errors():
            attacked.append(attack(eta[rows], labels[rows], setting.in_bags_of(size), rng))
        records.append(rows.ravel())
        lengths.append(np.full(len(rows), size))
    return attacked, np.concatenate(records), np.concatenate(lengths)
