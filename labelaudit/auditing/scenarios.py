"""What the average does not show: who is exposed, attackers who know more, bags drawn again."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator

from labelaudit.advantage import label_advantage
from labelaudit.auditing.attack import MAX_RECORDS, attack, plug_in_advantage
from labelaudit.auditing.eta import Eta
from labelaudit.auditing.options import Options
from labelaudit.auditing.settings import Setting
from labelaudit.auditing.table import Table
from labelaudit.checks import Floats, Ints
from labelaudit.estimates import advantage_with_known_members, sampled_advantage
from labelaudit.intervals import (
    ValueWithError,
    column_names,
    pooled_by_rubin,
    ratio_over_bags,
)
from labelaudit.mechanisms import Mechanism, NoisyCount
from labelaudit.mechanisms.custom import has_channel
from labelaudit.partitions import partition
from labelaudit.redrawn import redrawn_attack
from labelaudit.repeated import Repeated

# Priors at which the mean over the rest of a bag is computed, and the most members of those bags.
FINEST, COARSEST = 101, 11
MAX_MEMBERS = 300_000
# The mean is computed at records' own priors for this many times the number that is asked for.
CANDIDATES = 5
# Groups with fewer records are named, but their numbers would be noise.
MIN_IN_GROUP = 20
# Records behind each number about an attacker who knows more.
RECORDS = 4096
DRAWS = 20
# Known members are drawn again for every member, which takes the cube of the bag size, and several
# noisy releases have many outcomes. Larger bags are left out of both.
MAX_WITH_KNOWN = 512
# Records whose labels are attacked after several releases in new bags, and the largest bag for it.
RECORDS_DRAWN_AGAIN, MAX_DRAWN_AGAIN = 4096, 128
GROUP_COLUMNS = ("setting", "title", "group", "records", "positive")
KNOWING_COLUMNS = (
    "setting",
    "title",
    "known",
    "times",
    "epsilon",
    *column_names("advantage"),
    "method",
)
DRAWN_COLUMNS = ("setting", "title", "times", "records", "advantage", "error", "proven")


def most_exposed(
    etas: Sequence[Floats], ids: Sequence[str], mechanism: Mechanism, count: int, seed: int
) -> list[tuple[str, float]]:
    """The ids of the records with the largest advantage, averaged over refits and random bags.

    In random bags a record's mean advantage depends on its prior alone. It is computed on a grid
    first, then for the best candidates at their own priors. All records are compared in the same
    bags, so that none leads by a lucky bag. The values shown are from fresh bags.

    >>> from labelaudit import RandomizedResponse
    >>> etas, ids = [np.array([0.1, 0.5, 0.7])], ["Ada", "Ben", "Cleo"]
    >>> most = most_exposed(etas, ids, RandomizedResponse(1.0), count=2, seed=0)
    >>> [(name, round(advantage, 4)) for name, advantage in most]
    [('Ben', 0.2311), ('Cleo', 0.0311)]
    """
    rng = np.random.default_rng([seed, 3])
    rows = np.arange(len(ids))
    if mechanism.bag_size > 1:
        points = int(np.clip(MAX_MEMBERS // (2 * mechanism.bag_size), COARSEST, FINEST))
        grid = np.linspace(0, 1, points)
        curves = [np.interp(eta, grid, _mean_gains(grid, eta, mechanism, rng)) for eta in etas]
        rows = _largest(np.mean(curves, axis=0), CANDIDATES * count)
    scores = np.mean([_mean_gains(eta[rows], eta, mechanism, rng) for eta in etas], axis=0)
    rows = rows[_largest(scores, count)]
    shown = np.mean([_mean_gains(eta[rows], eta, mechanism, rng) for eta in etas], axis=0)
    return [(ids[row], value) for row, value in zip(rows.tolist(), shown.tolist(), strict=True)]


def _largest(scores: Floats, count: int) -> Ints:
    """The indices of the largest scores, the first of equal ones first."""
    return np.argsort(-scores, kind="stable")[:count]


def _mean_gains(priors: Floats, eta: Floats, mechanism: Mechanism, rng: Generator) -> Floats:
    """The mean advantage of records with these priors, all in the same bags of random others."""
    k = mechanism.bag_size
    if k == 1:
        return _gains(priors[:, None], mechanism, rng)[0][:, 0]
    n_bags = max(MAX_MEMBERS // (priors.size * k), 2)
    bags = np.repeat(rng.choice(eta, (n_bags, 1, k)), priors.size, axis=1)
    bags[:, :, 0] = priors
    gains = _gains(bags.reshape(-1, k), mechanism, rng)[0][:, 0]
    return gains.reshape(n_bags, priors.size).mean(axis=0)


def _gains(positive: Floats, mechanism: Mechanism, rng: Generator) -> tuple[Floats, str]:
    return plug_in_advantage(np.stack([1 - positive, positive], axis=-1), mechanism, rng)


def by_group(table: Table, eta: Eta, settings: Sequence[Setting], seed: int) -> pd.DataFrame:
    """What each setting gives away about each group of the table's `by` column, in random bags.

    `positive` is the fraction of the last class. `label_advantage` is how far apart the release is
    for the two labels, 0 to 1; NaN where the distribution of the release is not known, or of
    several classes.

    >>> from labelaudit.auditing import Columns, read, settings_of
    >>> frame = pd.DataFrame({"p": [0.5, 0.1] * 500, "sex": ["f", "m"] * 500})
    >>> columns = Columns(label="ill", prior="p", by="sex")
    >>> table = read(frame.assign(ill=[1, 0, 0, 0] * 250), columns)
    >>> eta = Eta.of([[table.prior] * 2], table.labels, refitted=False)
    >>> groups = by_group(table, eta, settings_of(["rr"], [], [1.0]), seed=0)
    >>> groups[["group", "plug_in", "revealed"]].round(3).values.tolist()
    [['f', 0.231, 0.0], ['m', 0.0, 0.0]]
    """
    numbers = ["plug_in", "realised", "revealed", "label_advantage"]
    if table.groups is None:
        return pd.DataFrame(columns=[*GROUP_COLUMNS, *numbers, "realised_error"])
    counts = np.bincount(table.groups)
    positive = np.bincount(table.groups, table.labels == len(table.classes) - 1) / counts
    rng = np.random.default_rng([seed, 10])
    rows = []
    for setting in settings:
        refits = [_by_record(table, refit, setting, rng) for refit in eta.distinct]
        means = sum(each.mean() for each in refits) / len(refits)
        means["realised_error"] = sum(each["realised"].sem() for each in refits) / len(refits)
        for group in means.index[counts[means.index] >= MIN_IN_GROUP]:
            names = (setting, setting.title, table.group_names[group])
            about = (*names, int(counts[group]), float(positive[group]))
            rows.append(dict(zip(GROUP_COLUMNS, about, strict=True)) | means.loc[group].to_dict())
    return pd.DataFrame(rows, columns=[*GROUP_COLUMNS, *numbers, "realised_error"])


def _by_record(table: Table, eta: Floats, setting: Setting, rng: Generator) -> Any:
    """Each record of random bags, as pandas groups: advantages, whether proven."""
    mechanism = setting.mechanism
    sample = rng.permutation(len(table))[: max(MAX_RECORDS, 10 * mechanism.bag_size)]
    bags = sample[partition(sample.size, mechanism.bag_size, rng)]
    labels = np.full(bags.shape, np.nan)
    with setting.naming_errors():
        attacked = attack(eta[bags], table.labels[bags], mechanism, rng)
        if len(table.classes) == 2 and has_channel(mechanism):
            labels = label_advantage(np.ascontiguousarray(eta[bags][..., 1]), mechanism)
    columns = {"plug_in": attacked.expected, "realised": attacked.gain}
    columns |= {"revealed": attacked.proven, "label_advantage": labels}
    frame = pd.DataFrame({name: column.ravel() for name, column in columns.items()})
    return frame.groupby(np.asarray(table.groups)[bags.ravel()])


def knowing_more(
    etas: Sequence[Floats], settings: Sequence[Setting], options: Options
) -> pd.DataFrame:
    """Advantages with no, some or all other members known, and after more releases, over refits.

    Knowledge hardly helps until few labels of a bag are unknown, so unless the options say which
    numbers to take, the labels that are not known, the record's own included, are halved in steps.

    >>> from labelaudit.auditing import settings_of
    >>> settings = settings_of(["llp"], [2], [])
    >>> cases = knowing_more([np.full(100, 0.5)] * 2, settings, Options(repeats=[1]))
    >>> cases[["known", "advantage"]].values.tolist()
    [[0.0, 0.25], [1.0, 0.5]]
    """
    rows = [row for setting in settings for row in _cases(etas, setting, options)]
    return pd.DataFrame(rows, columns=KNOWING_COLUMNS)


def _cases(etas: Sequence[Floats], setting: Setting, options: Options) -> Iterator[Sequence[Any]]:
    rng = np.random.default_rng([options.seed, 5])
    mechanism, k = setting.mechanism, setting.mechanism.bag_size
    n_bags = min(etas[0].size, max(RECORDS, 10 * k)) // k
    halved = (k - -(-k // 2**step) for step in range(k.bit_length() + 1))
    numbers = {min(known, k - 1) for known in options.known or halved} | {0}
    small = k <= MAX_WITH_KNOWN
    noiseless = isinstance(mechanism, NoisyCount) and math.isinf(mechanism.epsilon)
    cases = [(known, 1) for known in sorted(numbers) if small or known == 0]
    cases += [(0, times) for times in options.repeats if times > 1 and (small or noiseless)]
    if not has_channel(mechanism):
        # Without the distribution of the release, known members would take too many samples.
        cases = [(known, times) for known, times in cases if known == 0]
    results: dict[tuple[int, int], list[tuple[ValueWithError, str]]] = {case: [] for case in cases}
    for eta in etas:
        bags = eta[partition(eta.size, k, rng)[:n_bags]]
        for (known, times), refits in results.items():
            # Without noise a second release repeats the first.
            different = 1 if noiseless else times
            with setting.naming_errors():
                refits.append(_advantage(bags, mechanism, known, different, rng))
    for (known, times), refits in results.items():
        about = (setting, setting.title, known, times, times * mechanism.epsilon)
        advantage = pooled_by_rubin([value for value, _ in refits]).columns("advantage")
        yield *about, *advantage.values(), refits[-1][1]


def _advantage(
    bags: Floats, mechanism: Mechanism, known: int, times: int, rng: Generator
) -> tuple[ValueWithError, str]:
    """The mean advantage, exact over releases where they can be listed, with its error by bag."""
    released = mechanism if times == 1 else Repeated(mechanism, times)
    if times > 1 and not has_channel(released):
        sampled = sampled_advantage(bags, released, draws=DRAWS, rng=rng)
        return ValueWithError(sampled.value, sampled.standard_error), sampled.method
    if known:
        gains = advantage_with_known_members(bags, released, known, rng)
        method = "known members drawn at random, exact over releases"
    else:
        gains, method = _gains(bags, released, rng)
    return ratio_over_bags(gains.sum(axis=1), np.full(len(gains), float(gains.shape[1]))), method


def drawn_again(
    table: Table, eta: Floats, settings: Sequence[Setting], options: Options
) -> pd.DataFrame:
    """What several releases of the same labels in bags drawn anew give away, on the true labels.

    `advantage` is the gain in accuracy of belief propagation, so at least this much leaks. `proven`
    is the fraction of labels that elimination proves. Both are of a sample of `records`. Bags of
    one have no others.

    >>> from labelaudit.auditing import Columns, read, settings_of
    >>> frame = pd.DataFrame({"p": [0.5] * 400, "ill": [0, 1] * 200})
    >>> table = read(frame, Columns(label="ill", prior="p"))
    >>> again = drawn_again(table, table.prior, settings_of(["llp"], [4], []), Options())
    >>> again["proven"].round(1).tolist()
    [0.1, 0.5, 1.0]
    """
    with_bags = [each for each in settings if 1 < each.mechanism.bag_size <= MAX_DRAWN_AGAIN]
    rows = [row for setting in with_bags for row in _releases(table, eta, setting, options)]
    return pd.DataFrame(rows, columns=DRAWN_COLUMNS)


def _releases(
    table: Table, eta: Floats, setting: Setting, options: Options
) -> Iterator[Sequence[Any]]:
    mechanism, k, repeats = setting.mechanism, setting.mechanism.bag_size, options.repeats
    rng = np.random.default_rng([options.seed, 12])
    sample = rng.permutation(len(table))[: max(RECORDS_DRAWN_AGAIN // k, 2) * k]
    sample = sample[: sample.size // k * k]
    priors, truth = eta[sample], table.labels[sample]
    bags = [partition(sample.size, k, rng) for _ in range(max(repeats))]
    with setting.naming_errors():
        releases = [mechanism.release(truth[each], rng) for each in bags]
        attacked = {
            times: redrawn_attack(priors, mechanism, bags[:times], releases[:times])
            for times in repeats
        }
    before = (priors >= 0.5) == truth
    for times, after in attacked.items():
        gain = ((after.posterior >= 0.5) == truth) * 1.0 - before
        error = float(gain.std(ddof=1)) / math.sqrt(sample.size)
        numbers = (float(gain.mean()), error, float(after.proven.mean()))
        yield setting, setting.title, times, sample.size, *numbers
