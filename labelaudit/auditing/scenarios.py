"""What the average does not show: who is exposed, attackers who know more, rows that mislead."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from labelaudit.advantage import label_advantage
from labelaudit.auditing import words
from labelaudit.auditing.attack import MOST_RECORDS, attack, plug_in_advantage
from labelaudit.auditing.eta import EtaEstimates, Labels, distinct
from labelaudit.auditing.intervals import Curve, Interval, Measured, over_bags, over_refits
from labelaudit.auditing.plan import AuditPlan, Setting
from labelaudit.auditing.table import Table
from labelaudit.checks import Floats, Ints
from labelaudit.estimates import advantage_with_known_members, sampled_advantage
from labelaudit.mechanisms import Mechanism, NoisyCount
from labelaudit.mechanisms.custom import has_channel
from labelaudit.partitions import partition
from labelaudit.redrawn import redrawn_attack
from labelaudit.repeated import Repeated

# Priors at which the mean over the rest of a bag is computed, and the most members of those bags.
FINEST, COARSEST = 101, 11
MOST_MEMBERS = 300_000
# The mean is computed at records' own priors for this many times the number that is asked for.
CANDIDATES = 5
# Groups with fewer records are named, but their numbers would be noise.
LEAST_IN_GROUP = 20
# Records behind each number about an attacker who knows more.
RECORDS = 4096
DRAWS = 20
# Known members are drawn again for every member, which takes the cube of the bag size, and several
# noisy releases have many outcomes. Larger bags are left out of both.
MOST_WITH_KNOWN = 512
# Records whose labels are attacked after several releases in new bags, and the largest bag for it.
RECORDS_DRAWN_AGAIN, MOST_DRAWN_AGAIN = 4096, 128
# A single column with an area under the curve above this probably holds the label.
LEAKS = 0.99
# Values of a column that are taken one by one; more are taken by their order.
MOST_VALUES = 255


def most_exposed(
    etas: Sequence[Floats], ids: Sequence[str], mechanism: Mechanism, count: int, seed: int
) -> list[dict[str, Any]]:
    """The records with the largest advantage, averaged over refits and random bags, by id.

    In random bags a record's mean advantage depends on its prior alone. It is computed on a grid
    first, then for the best candidates at their own priors. All records are compared in the same
    bags, so that none leads by a lucky bag. The values shown are from fresh bags.

    >>> import numpy as np
    >>> from labelaudit import RandomizedResponse
    >>> etas, ids = [np.array([0.1, 0.5, 0.7])], ["Ada", "Ben", "Cleo"]
    >>> records = most_exposed(etas, ids, RandomizedResponse(1.0), count=2, seed=0)
    >>> [(record["id"], round(record["advantage"], 4)) for record in records]
    [('Ben', 0.2311), ('Cleo', 0.0311)]
    """
    rng = np.random.default_rng([seed, 3])
    etas = distinct(etas)
    rows = np.arange(len(ids))
    if mechanism.bag_size > 1:
        points = int(np.clip(MOST_MEMBERS // (2 * mechanism.bag_size), COARSEST, FINEST))
        grid = np.linspace(0, 1, points)
        curves = [np.interp(eta, grid, _mean_gains(grid, eta, mechanism, rng)) for eta in etas]
        rows = _largest(np.mean(curves, axis=0), CANDIDATES * count)
    scores = np.mean([_mean_gains(eta[rows], eta, mechanism, rng) for eta in etas], axis=0)
    rows = rows[_largest(scores, count)]
    shown = np.mean([_mean_gains(eta[rows], eta, mechanism, rng) for eta in etas], axis=0)
    pairs = zip(rows.tolist(), shown.tolist(), strict=True)
    return [{"id": ids[row], "advantage": value} for row, value in pairs]


def _largest(scores: Floats, count: int) -> Ints:
    """The indices of the largest scores, the first of equal ones first."""
    return np.argsort(-scores, kind="stable")[:count]


def _mean_gains(priors: Floats, eta: Floats, mechanism: Mechanism, rng: Generator) -> Floats:
    """The mean advantage of records with these priors, all in the same bags of random others."""
    k = mechanism.bag_size
    if k == 1:
        return plug_in_advantage(priors[:, None], mechanism, rng)[0][:, 0]
    n_bags = max(MOST_MEMBERS // (priors.size * k), 2)
    bags = np.repeat(rng.choice(eta, (n_bags, 1, k)), priors.size, axis=1)
    bags[:, :, 0] = priors
    gains = plug_in_advantage(bags.reshape(-1, k), mechanism, rng)[0][:, 0]
    return gains.reshape(n_bags, priors.size).mean(axis=0)


def by_group(
    table: Table, estimates: EtaEstimates, settings: Sequence[Setting], seed: int
) -> list[dict[str, Any]]:
    """What each setting gives away about each group of the table's `by` column, in random bags.

    `label_advantage` is how far apart the release is for the two labels, 0 to 1; NaN where the
    distribution of the release is not known.

    >>> import pandas
    >>> from labelaudit.auditing.table import read_table
    >>> from labelaudit.auditing import AuditPlan, estimate_eta
    >>> frame = pandas.DataFrame({"eta": [0.5, 0.1] * 500, "sex": ["f", "m"] * 500})
    >>> frame["ill"] = [1, 0, 0, 0] * 250
    >>> table = read_table(frame, label="ill", prior="eta", by="sex")
    >>> [setting] = AuditPlan(mechanisms=["rr"], epsilons=[1.0]).settings
    >>> groups = by_group(table, estimate_eta(table, 2, 0), [setting], seed=0)
    >>> [(each["group"], round(each["plug_in"], 3), each["revealed"]) for each in groups]
    [('f', 0.231, 0.0), ('m', 0.0, 0.0)]
    """
    if table.groups is None:
        return []
    counts = np.bincount(table.groups)
    positive = np.bincount(table.groups, table.labels) / counts
    rng = np.random.default_rng([seed, 10])
    rows = []
    for setting in settings:
        refits = [_by_record(table, eta, setting, rng) for eta in distinct(estimates.etas)]
        means = sum(each.mean() for each in refits) / len(refits)
        means["realised_error"] = sum(each["realised"].sem() for each in refits) / len(refits)
        for group in means.index[counts[means.index] >= LEAST_IN_GROUP]:
            about = {"setting": setting.title, "group": table.group_names[group]}
            about |= {"records": int(counts[group]), "positive": float(positive[group])}
            rows.append(about | means.loc[group].to_dict())
    return rows


def _by_record(table: Table, eta: Floats, setting: Setting, rng: np.random.Generator) -> Any:
    """Each record of random bags, as pandas groups: advantages, whether proven."""
    import pandas

    mechanism = setting.mechanism
    sample = rng.permutation(len(table))[: max(MOST_RECORDS, 10 * mechanism.bag_size)]
    bags = sample[partition(sample.size, mechanism.bag_size, rng)]
    priors = eta[bags]
    with setting.naming_errors():
        attacked = attack(priors, table.labels[bags].astype(np.int64), mechanism, rng)
        known = has_channel(mechanism)
        labels = label_advantage(priors, mechanism) if known else np.full(bags.shape, np.nan)
    plug_in, realised, _, revealed = attacked.records
    columns = {"plug_in": plug_in, "realised": realised, "revealed": revealed}
    columns["label_advantage"] = labels
    frame = pandas.DataFrame({name: column.ravel() for name, column in columns.items()})
    return frame.groupby(np.asarray(table.groups)[bags.ravel()])


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
    """Advantages with no, some or all other members known, and after more releases, over refits.

    Knowledge hardly helps until few labels of a bag are unknown, so unless the plan says which
    numbers to take, the labels that are not known, the record's own included, are halved in steps.

    >>> import numpy as np
    >>> from labelaudit.auditing.eta import EtaEstimates
    >>> estimates = EtaEstimates.ready_made(np.full(100, 0.5), np.tile([0, 1], 50))
    >>> plan = AuditPlan(mechanisms=["llp"], bag_sizes=[2], repeats=[1])
    >>> cases = knowing_more(estimates, plan.settings[0], plan)
    >>> [(case.known, case.advantage.value) for case in cases]
    [(0, 0.25), (1, 0.5)]
    """
    rng = np.random.default_rng([plan.seed, 5])
    mechanism, k = setting.mechanism, setting.mechanism.bag_size
    n_bags = min(estimates.etas[0].size, max(RECORDS, 10 * k)) // k
    halved = (k - -(-k // 2**step) for step in range(k.bit_length() + 1))
    numbers = {min(known, k - 1) for known in plan.known or halved} | {0}
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
class DrawnAgain:
    """What several releases of the same labels in new bags give away, on the true labels.

    `advantage` is the gain in accuracy of belief propagation, so at least this much leaks. `proven`
    is the fraction of labels that elimination proves. Both are of a sample of `records`.
    """

    setting: Setting
    times: int
    records: int
    advantage: float
    error: float
    proven: float


def drawn_again(
    table: Table, eta: Floats, setting: Setting, repeats: Sequence[int], seed: int
) -> list[DrawnAgain]:
    """The attack on labels that are released again in bags drawn anew; bags of one have no others.

    >>> import pandas
    >>> from labelaudit.auditing.table import read_table
    >>> from labelaudit.auditing import AuditPlan
    >>> frame = pandas.DataFrame({"p": [0.5] * 400, "ill": [0, 1] * 200})
    >>> table = read_table(frame, label="ill", prior="p")
    >>> [setting] = AuditPlan(mechanisms=["llp"], bag_sizes=[4]).settings
    >>> [round(each.proven, 1) for each in drawn_again(table, table.prior, setting, [1, 5], 0)]
    [0.1, 1.0]
    """
    mechanism, k = setting.mechanism, setting.mechanism.bag_size
    if k == 1 or k > MOST_DRAWN_AGAIN:
        return []
    rng = np.random.default_rng([seed, 12])
    sample = rng.permutation(len(table))[: max(RECORDS_DRAWN_AGAIN // k, 2) * k]
    sample = sample[: sample.size // k * k]
    priors, truth = eta[sample], table.labels[sample].astype(np.int64)
    bags = [partition(sample.size, k, rng) for _ in range(max(repeats))]
    with setting.naming_errors():
        releases = [mechanism.release(truth[each], rng) for each in bags]
        attacked = {
            times: redrawn_attack(priors, mechanism, bags[:times], releases[:times])
            for times in repeats
        }
    before = (priors >= 0.5) == truth
    cases = []
    for times, after in attacked.items():
        gain = ((after.posterior >= 0.5) == truth) * 1.0 - before
        error = float(gain.std(ddof=1)) / math.sqrt(sample.size)
        proven = float(after.proven.mean())
        cases.append(DrawnAgain(setting, times, sample.size, float(gain.mean()), error, proven))
    return cases


@dataclass(frozen=True)
class Leak:
    """A column that alone separates the labels, or of several classes the one named `value`."""

    column: str
    area: float
    value: str = ""


def leaking_columns(
    table: Table, codes: Ints | None = None, classes: Sequence[str] = ()
) -> tuple[Leak, ...]:
    """The columns that alone give the label away; of several classes that separate any of them.

    >>> import pandas
    >>> from labelaudit.auditing.table import read_table
    >>> frame = pandas.DataFrame({"age": range(0, 400, 2), "copy": ["a", "b"] * 100})
    >>> leaking_columns(read_table(frame.assign(ill=[0, 1] * 100), label="ill"))
    (Leak(column='copy', area=1.0, value=''),)
    """
    of_classes = {"": table.labels}
    if codes is not None:
        of_classes = {name: codes == code for code, name in enumerate(classes)}
    leaks = []
    for column, values in zip(table.columns, table.features.T, strict=False):
        areas = {name: single_column_auc(values, ones) for name, ones in of_classes.items()}
        name = max(areas, key=lambda each: areas[each])
        if areas[name] > LEAKS:
            leaks.append(Leak(column.name, areas[name], name))
    return tuple(leaks)


def leaks(table: Table, copies: Sequence[Leak] = ()) -> list[str]:
    """What makes an audit look better than it is: repeated persons or rows, a copy of the label.

    >>> import pandas
    >>> from labelaudit.auditing.table import read_table
    >>> frame = pandas.DataFrame({"age": [1, 1, 2, 3], "ill": [0, 0, 1, 1]})
    >>> [text.split(" equal")[0] for text in leaks(read_table(frame, label="ill"))]
    ['1 rows (25.0%)']
    """
    persons = 0 if table.persons is None else int(table.persons.max()) + 1
    occurrences = Counter(table.ids if table.named else ())
    duplicated = 0
    if table.columns and not persons:
        import pandas

        rows = pandas.DataFrame(table.features).assign(label=table.labels)
        duplicated = int(rows.duplicated().sum())
    repeated = occurrences.total() - len(occurrences)
    most = max(occurrences.values(), default=0)
    return words.paragraphs("leaks", table, persons, repeated, most, duplicated, copies)


def single_column_auc(values: NDArray[np.floating], labels: Labels) -> float:
    """How well one column separates the labels, in either direction; values may be categories.

    A column with few values is scored by the fraction of ones of each value, learned on the other
    half of the rows.

    >>> single_column_auc(np.array([3.0, 3.0, 1.0, 1.0] * 10), np.array([0, 0, 1, 1] * 10))
    1.0
    """
    distinct_values, codes = np.unique(values, return_inverse=True, equal_nan=True)
    if distinct_values.size > MOST_VALUES:
        area = Curve.of(codes.astype(float), labels).area.value
        return max(area, 1 - area)
    half = np.random.default_rng(0).permutation(labels.size) % 2 == 0
    scores = np.empty(labels.size)
    for learned, scored in ((half, ~half), (~half, half)):
        ones = np.bincount(codes[learned], labels[learned], distinct_values.size)
        number = np.bincount(codes[learned], minlength=distinct_values.size)
        scores[scored] = ((ones + labels.mean()) / (number + 1))[codes[scored]]
    return Curve.of(scores, labels).area.value
