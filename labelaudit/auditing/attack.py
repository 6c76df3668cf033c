"""The attack on every setting: what eta promises, what the true labels show, averaged over rounds.

A round puts the records into bags, releases their labels and guesses them. Bags are random ones of
one size, or the table's own. Labels have two classes or more, and eta has one more axis than they.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from scipy.special import expit, logit

from labelaudit import multiclass
from labelaudit.advantage import additive_advantage, multiplicative_advantage
from labelaudit.attack import posterior
from labelaudit.auditing.eta import Eta, Progress, guess_of
from labelaudit.auditing.options import Options
from labelaudit.auditing.settings import Setting, settings_for
from labelaudit.auditing.table import Table
from labelaudit.checks import Floats, Ints
from labelaudit.intervals import (
    RoundAverages,
    ValueWithError,
    mean_over_rounds,
    pooled_by_rubin,
)
from labelaudit.mechanisms import Mechanism
from labelaudit.mechanisms.custom import check_epsilon, has_channel
from labelaudit.partitions import partition

# Records that a refit attacks: their standard errors are far below any target. A small table is
# attacked several times in each refit, in other bags and with fresh noise.
MAX_RECORDS = 250_000
MAX_ROUNDS = 10
# The table's own bags are attacked size by size, which takes long: the most rounds of a refit.
MAX_OWN_ROUNDS = 4
# The largest bag for a channel that is a matrix with a row for each count.
MAX_WITH_MATRIX = 2048
# Groups of bags that give the error of a percentile.
GROUPS = 8
# A label counts as known where the attacker gives it at least this probability.
SURE = 0.95


@dataclass(frozen=True, kw_only=True)
class Attacked:
    """What a release of the true labels shows of each record: arrays (bags, members).

    The attacker's expected and realised gain in accuracy, whether the label is proven, |I|, and the
    probability of the true class without the release and with it.
    """

    labels: Ints
    expected: Floats
    gain: Floats
    proven: Floats
    shifts: Floats
    before: Floats
    after: Floats
    method: str


@dataclass(frozen=True, kw_only=True)
class Number:
    """A ratio of sums over bags: what one record can add to it unseen, its least and most."""

    unseen: float
    low: float
    high: float


def numbers_of(classes: int) -> dict[str, Number]:
    """Every number that is measured of a setting, by its column.

    `gain_0` is the gain in accuracy on records whose true class is the first; `sure_before_0` and
    `sure_after_0` are the fractions of them whose class has a probability of at least `SURE`.
    """
    # No advantage is above what guessing at random gets wrong.
    numbers = {
        "plug_in": Number(unseen=0.0, low=0, high=1 - 1 / classes),
        "realised": Number(unseen=1.0, low=-1, high=1),
        "difference": Number(unseen=1.0, low=-1.5, high=1),
        "revealed": Number(unseen=0.0, low=0, high=1),
    }
    for label in range(classes):
        numbers[f"gain_{label}"] = Number(unseen=1.0, low=-1, high=1)
        numbers[f"sure_before_{label}"] = Number(unseen=0.0, low=0, high=1)
        numbers[f"sure_after_{label}"] = Number(unseen=1.0, low=0, high=1)
    return numbers


def attack(eta: Floats, labels: Ints, mechanism: Mechanism, rng: Generator) -> Attacked:
    """Release the labels of bags and guess them, with the release and without.

    `eta` is (bags, members, classes). Of several classes |I| is the largest change of the log-odds
    of any, and a label is proven where one class is left.
    """
    expected, method = plug_in_advantage(eta, mechanism, rng)
    if isinstance(mechanism, multiclass.ClassMechanism):
        after = multiclass.posterior(eta, mechanism, mechanism.release(labels, rng))
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = np.log(after / (1 - after)) - np.log(eta / (1 - eta))
        shifts = np.abs(np.where(np.isnan(moved), 0.0, moved)).max(axis=-1)
        proven = (after.max(axis=-1) == 1) & (eta.max(axis=-1) < 1)
    else:
        positive = np.ascontiguousarray(eta[..., 1])
        moved = multiplicative_advantage(positive, mechanism, mechanism.release(labels, rng))
        shifts, proven = np.abs(moved), np.isinf(moved)
        name, largest = type(mechanism).__name__, float(shifts.max())
        check_epsilon(mechanism.epsilon, largest, name, "the attack")
        # The log-odds move by the shifts; a certain prior stays.
        ones = expit(logit(positive) + moved)
        after = np.stack([1 - ones, ones], axis=-1)
    of_truth = [np.take_along_axis(each, labels[..., None], -1)[..., 0] for each in (eta, after)]
    return Attacked(
        labels=labels,
        expected=expected,
        gain=(guess_of(after) == labels) * 1.0 - (guess_of(eta) == labels),
        proven=proven * 1.0,
        shifts=shifts,
        before=of_truth[0],
        after=of_truth[1],
        method=method,
    )


def plug_in_advantage(eta: Floats, mechanism: Mechanism, rng: Generator) -> tuple[Floats, str]:
    """Additive advantage of each record, exact where the mechanism has a channel."""
    if isinstance(mechanism, multiclass.ClassMechanism):
        return multiclass.additive_advantage(eta, mechanism), "exact over releases"
    positive = np.ascontiguousarray(eta[..., 1])
    if has_channel(mechanism):
        return additive_advantage(positive, mechanism), "exact over releases"
    drawn = mechanism.release((rng.random(positive.shape) < positive).astype(np.int64), rng)
    after = posterior(positive, mechanism, drawn)
    gains = np.maximum(after, 1 - after) - np.maximum(positive, 1 - positive)
    return gains, "by sampled releases"


def sums_and_sizes(attacked: Attacked, classes: int) -> tuple[Floats, Floats]:
    """Of each number of `numbers_of` the sums over a bag's members, and how many of them count."""
    everyone = np.ones(attacked.labels.shape)
    difference = attacked.gain - attacked.expected
    totals = (attacked.expected, attacked.gain, difference, attacked.proven)
    columns = [(column, everyone) for column in totals]
    for label in range(classes):
        of_class = attacked.labels == label
        parts = (attacked.gain, attacked.before >= SURE, attacked.after >= SURE)
        columns += [(part * of_class, of_class) for part in parts]
    sums, sizes = ([column.sum(axis=1) for column in side] for side in zip(*columns, strict=True))
    return np.column_stack(sums).astype(np.float64), np.column_stack(sizes).astype(np.float64)


class SettingAverages:
    """The numbers of one setting over rounds and refits."""

    def __init__(
        self, setting: Setting, options: Options, classes: int, units: int, repeated: bool = False
    ) -> None:
        """Units are what the rounds have in common, as in `RoundAverages`."""
        self.setting, self.level, self.classes = setting, options.level, classes
        self.numbers = numbers_of(classes)
        unseen = {name: number.unseen for name, number in self.numbers.items()}
        self.averages = RoundAverages(unseen, units, repeated)
        self.rounds: list[ValueWithError] = []
        self.refits: list[ValueWithError] = []
        self.method = ""

    def add(self, attacked: Sequence[Attacked], units: Ints, lengths: Ints) -> None:
        """Add a round, in bags of one size or of several."""
        parts = [sums_and_sizes(part, self.classes) for part in attacked]
        sums, sizes = (np.concatenate(side) for side in zip(*parts, strict=True))
        self.averages.add(sums, sizes, units, lengths)
        groups = groups_of([part.shifts for part in attacked])
        self.rounds.append(percentile_of(groups, self.level))
        self.method = attacked[0].method

    def end_refit(self) -> None:
        """The rounds that follow have another eta."""
        self.averages.end_refit()
        self.refits.append(mean_over_rounds(self.rounds))
        self.rounds = []

    def row(self, rows: int, excess: Floats | None = None) -> dict[str, Any]:
        """The setting as a row of numbers; `excess` as in `RoundAverages.intervals`.

        `rows` are the most rows of a person, for whom the epsilon is `guarantee` where it was
        checked, and infinite where it is only declared.
        """
        setting, epsilon = self.setting, self.setting.mechanism.epsilon
        row: dict[str, Any] = {
            "setting": setting,
            "title": setting.title,
            "kind": setting.kind.title,
            "bag_size": setting.mechanism.bag_size,
            "epsilon": epsilon,
            "rows": rows,
            "declared": epsilon * rows,
            "guarantee": epsilon * rows if setting.checked else math.inf,
            "method": self.method,
        }
        for name, interval in self.averages.intervals(excess).items():
            number = self.numbers[name]
            row |= interval.within(number.low, number.high).columns(name)
        most = epsilon if setting.checked else math.inf
        percentile = pooled_by_rubin(self.refits).within(0, most)
        # Where |I| is epsilon for everybody, it is so up to rounding.
        if math.isclose(percentile.value, most):
            percentile = replace(percentile, value=most)
        return row | percentile.columns("percentile")


def percentile_of(groups: Sequence[Floats], level: float) -> ValueWithError:
    """The percentile of |I| over the records of a release; its error from groups of bags."""
    value = float(np.quantile(np.concatenate(groups), level, method="inverted_cdf"))
    quantiles = [np.quantile(group, level, method="inverted_cdf") for group in groups]
    if not np.isfinite(quantiles).all():
        return ValueWithError(value, math.inf, float(min(quantiles)))
    return ValueWithError(value, float(np.std(quantiles, ddof=1)) / math.sqrt(len(groups)))


def groups_of(shifts: Sequence[Floats]) -> list[Floats]:
    """|I| of all records, in groups of bags; bags of every size are spread over the groups."""
    groups: list[list[Floats]] = [[] for _ in range(GROUPS)]
    first = 0
    for of_size in shifts:
        pieces = np.array_split(of_size, min(GROUPS, len(of_size)))
        for index, piece in enumerate(pieces, start=first):
            groups[index % GROUPS].append(piece.ravel())
        # The next size continues where this one ended, or the first group would have them all.
        first += len(of_size)
    return [np.concatenate(group) for group in groups if group]


class Attacks:
    """Attacks settings in every refit: new bags, a fresh release, the refit's own eta.

    The etas of the refits are the same for every setting. So by how much refits differ beyond what
    bags and noise explain is pooled over the settings of the first call, and kept for later ones.
    """

    def __init__(
        self, table: Table, eta: Eta, options: Options, progress: Progress = lambda line: None
    ) -> None:
        """Where the table names persons, errors and epsilon are by person."""
        self.table, self.eta, self.options, self.progress = table, eta, options, progress
        self.excess: Floats | None = None

    def __call__(self, settings: Sequence[Setting]) -> pd.DataFrame:
        """A row for each setting, in their order."""
        rng, persons = np.random.default_rng([self.options.seed, 2]), self.table.persons
        sizes = sorted({setting.mechanism.bag_size for setting in settings})
        sample = rng.permutation(len(self.table))[: max(MAX_RECORDS, 10 * sizes[-1])]
        units = np.arange(sample.size)
        if persons is not None:
            units = np.unique(persons[sample], return_inverse=True)[1]
        averages: dict[Setting, SettingAverages] = {}
        for bag_size in sizes:
            of_size = [setting for setting in settings if setting.mechanism.bag_size == bag_size]
            self.progress(f"attack: bags of {bag_size}, settings: {len(of_size)}")
            averages |= self._in_bags(bag_size, of_size, sample, units, rng)
        if self.excess is None:
            with warnings.catch_warnings(category=RuntimeWarning, action="ignore"):
                ratios = [average.averages.excess for average in averages.values()]
                self.excess = np.nan_to_num(np.nanmedian(ratios, axis=0))
        rows = self.table.rows_of_a_person
        return pd.DataFrame([averages[setting].row(rows, self.excess) for setting in settings])

    def _in_bags(
        self, bag_size: int, settings: Sequence[Setting], sample: Ints, units: Ints, rng: Generator
    ) -> dict[Setting, SettingAverages]:
        """Settings with bags of one size, in the same bags, so that they can be compared."""
        truth, classes = self.table.labels[sample], len(self.table.classes)
        etas = [eta[sample] for eta in self.eta.refits]
        together, number = self.table.persons is not None, rounds_for(len(self.table))
        refits = [[draw_bags(units, bag_size, rng, together) for _ in range(number)] for _ in etas]
        lengths = np.full(sample.size // bag_size, bag_size)
        averages = {}
        for setting in settings:
            average = SettingAverages(
                setting, self.options, classes, units=int(units.max()) + 1, repeated=together
            )
            for eta, rounds in zip(etas, refits, strict=True):
                for bags in rounds:
                    with setting.naming_errors():
                        attacked = attack(eta[bags], truth[bags], setting.mechanism, rng)
                    average.add([attacked], units[bags.ravel()], lengths)
                average.end_refit()
            average.averages.close()
            averages[setting] = average
        return averages


def draw_bags(units: Ints, bag_size: int, rng: Generator, together: bool) -> Ints:
    """Random bags; a person's rows stay `together`, but for those at the edge of a bag.

    >>> units = np.array([0, 1, 0, 1, 2, 2])
    >>> np.ptp(units[draw_bags(units, 2, np.random.default_rng(0), True)], axis=1).tolist()
    [0, 0, 0]
    """
    if not together:
        return partition(units.size, bag_size, rng)
    order = np.argsort(rng.permutation(int(units.max()) + 1)[units], kind="stable")
    return order[: units.size // bag_size * bag_size].reshape(-1, bag_size)


def rounds_for(rows: int) -> int:
    """How often a refit attacks a table with this number of rows."""
    return min(max(MAX_RECORDS // rows, 1), MAX_ROUNDS)


def attack_settings(
    table: Table, eta: Eta, options: Options, progress: Progress = lambda line: None
) -> pd.DataFrame:
    """A row for each setting that the options list, with every number of the attack.

    >>> from labelaudit.auditing import Columns, read
    >>> frame = pd.DataFrame({"p": [0.5] * 100, "ill": [0, 1] * 50})
    >>> table = read(frame, Columns(label="ill", prior="p"))
    >>> options = Options(mechanisms=["rr"], epsilons=[1.0]).suit(table)
    >>> eta = Eta.of([[table.prior] * 2], table.labels, refitted=False)
    >>> attack_settings(table, eta, options)[["title", "plug_in"]].round(4).values.tolist()
    [['RR (epsilon 1)', 0.2311]]
    """
    return Attacks(table, eta, options, progress)(settings_for(table, options))
