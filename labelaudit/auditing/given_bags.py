"""The table's own bags: what they are like, and the attack on them beside random ones."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.random import Generator
from numpy.typing import NDArray

from labelaudit.auditing.attack import (
    MAX_OWN_ROUNDS,
    MAX_WITH_MATRIX,
    Attacked,
    SettingAverages,
    attack,
    rounds_for,
)
from labelaudit.auditing.eta import Eta
from labelaudit.auditing.options import Options
from labelaudit.auditing.settings import Setting
from labelaudit.auditing.table import Table
from labelaudit.checks import Floats, Ints
from labelaudit.intervals import ValueWithError, ratio_over_bags
from labelaudit.mechanisms import CountChannel
from labelaudit.mechanisms.custom import check_custom
from labelaudit.partitions import bags_by_size


@dataclass(frozen=True, kw_only=True)
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


def bag_facts(bags: Ints, labels: NDArray[np.integer], eta: Floats) -> BagFacts:
    """Sizes, bags whose labels are all equal, and whether labels agree more than eta explains.

    The dispersion is the sum over bags of (ones - expected ones)^2, divided by the sum of their
    variances. A mean of the bags' own ratios would depend on a small number of bags whose labels
    are nearly certain.

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
    dispersion = ValueWithError(1.0, math.inf)
    if variance.any():
        dispersion = ratio_over_bags(excess**2, variance)
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


def attack_given_bags(
    table: Table, eta: Eta, options: Options, settings: Sequence[Setting]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Each mechanism that takes bags of any size, on the table's bags and on random ones.

    >>> from labelaudit.auditing import Columns, read, settings_for
    >>> frame = pd.DataFrame({"p": 0.5, "day": np.arange(100) // 2, "ill": [0, 0, 1, 1] * 25})
    >>> table = read(frame, Columns(label="ill", prior="p", bag="day"))
    >>> options = Options(mechanisms=["llp"], bag_sizes=[2])
    >>> eta = Eta.of([[table.prior] * 2], table.labels, refitted=False)
    >>> own, random = attack_given_bags(table, eta, options, settings_for(table, options))
    >>> own["realised"].tolist(), bool(random["realised"][0] < 0.4)
    ([0.5], True)
    """
    bags, classes = np.asarray(table.bags), len(table.classes)
    sizes = np.unique(np.bincount(bags))
    given, shuffled = [], []
    for setting in settings_for_given_bags(settings, sizes[sizes > 0].tolist()):
        own = SettingAverages(setting, options, classes, units=int(bags.max()) + 1)
        random = SettingAverages(setting, options, classes, units=bags.size)
        streams = np.random.SeedSequence([options.seed, 6]).spawn(len(eta.refits))
        for refit, stream in zip(eta.refits, streams, strict=True):
            rng = np.random.default_rng(stream)
            for _ in range(min(rounds_for(bags.size), MAX_OWN_ROUNDS)):
                # Rounds on the table's bags share the bags, those on random bags the records.
                attacked, records, lengths = attack_by_size(bags, table, refit, setting, rng)
                units = bags[records[np.cumsum(lengths) - 1]]
                own.add(attacked, units, np.ones_like(lengths))
                random.add(*attack_by_size(rng.permutation(bags), table, refit, setting, rng))
            own.end_refit()
            random.end_refit()
        given.append(own.row(1))
        shuffled.append(random.row(1))
    return pd.DataFrame(given), pd.DataFrame(shuffled)


def settings_for_given_bags(settings: Sequence[Setting], sizes: Sequence[int]) -> Iterator[Setting]:
    """Settings whose bag size can be chosen, once each, without it, made for the largest size."""
    seen = set()
    for setting in settings:
        rest = tuple(pair for pair in setting.parameters if pair[0] != "bag_size")
        if len(rest) == len(setting.parameters) or (setting.kind, rest) in seen:
            continue
        has_matrix = setting.kind.own or isinstance(setting.mechanism, CountChannel)
        if has_matrix and sizes[-1] > MAX_WITH_MATRIX:
            continue
        seen.add((setting.kind, rest))
        checked = True
        for size in sizes if setting.kind.own else ():
            with setting.naming_errors():
                name = f"{setting.kind.name} (bags of {size})"
                checked &= check_custom(setting.in_bags_of(size), name)
        largest = setting.in_bags_of(sizes[-1])
        yield replace(setting, mechanism=largest, parameters=rest, checked=checked)


def attack_by_size(
    bags: Ints, table: Table, eta: Floats, setting: Setting, rng: Generator
) -> tuple[list[Attacked], Ints, Ints]:
    """Attack bags of unequal size, size by size; the records bag by bag, and the bags' sizes."""
    order = np.argsort(bags, kind="stable")
    attacked, records, lengths = [], [], []
    for size, positions in bags_by_size(np.bincount(bags)):
        rows = order[positions]
        with setting.naming_errors():
            attacked.append(attack(eta[rows], table.labels[rows], setting.in_bags_of(size), rng))
        records.append(rows.ravel())
        lengths.append(np.full(len(rows), size))
    return attacked, np.concatenate(records), np.concatenate(lengths)
