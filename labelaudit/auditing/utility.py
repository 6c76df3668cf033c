"""What a setting costs: how much of a clean label a released one is worth, and a model's AUC."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from numpy.typing import NDArray

from labelaudit import multiclass
from labelaudit.advantage import worth
from labelaudit.auditing.eta import Eta, Progress, design
from labelaudit.auditing.options import Options
from labelaudit.auditing.settings import Setting
from labelaudit.auditing.table import Table
from labelaudit.checks import Floats, Ints
from labelaudit.intervals import UNDEFINED, ValueWithError, pooled_by_rubin
from labelaudit.learning.calibration import Curve
from labelaudit.learning.debiased import can_debias, debiased_labels, fit_logistic
from labelaudit.mechanisms import Mechanism
from labelaudit.mechanisms.custom import has_channel

MAX_ROWS = 20_000
# Records behind the worth of a setting.
WORTH_RECORDS = 20_000
TEST_FRACTION, VALIDATION_FRACTION = 0.25, 0.2
PENALTIES = (1e-4, 1e-2, 1e-1, 1.0)
RUNS = 3
# Scores are clipped in the loss on held-out debiased labels, so that no label dominates it.
CLIP = 3.0
# Curves of each setting, by run; those of clean labels have the key None.
Curves = dict[Setting | None, list[Curve]]


def measure_utility(
    table: Table,
    eta: Eta,
    settings: Sequence[Setting],
    options: Options,
    progress: Progress = lambda line: None,
) -> pd.DataFrame:
    """A row for clean labels, then one for each setting: `worth`, `auc`, and the `loss` of it.

    A released label is worth as much to a learner as `worth` clean ones. `auc` is that of the
    model trained on releases, on clean test labels. `loss` is the AUC of the model trained on clean
    labels less that, on the same test rows. Numbers are NaN where they are not known, or no model
    could be trained.

    >>> from labelaudit.auditing import Columns, Eta, read, settings_for
    >>> frame = pd.DataFrame({"p": [0.5] * 200, "ill": [0, 1] * 100})
    >>> table = read(frame, Columns(label="ill", prior="p"))
    >>> options = Options(mechanisms=["rr"], epsilons=[1.0]).suit(table)
    >>> eta = Eta.of([[table.prior] * 2], table.labels, refitted=False)
    >>> costs = measure_utility(table, eta, settings_for(table, options), options)
    >>> costs[["title", "worth"]].round(3).values.tolist()
    [['clean labels', 1.0], ['RR (epsilon 1)', 0.214]]
    """
    rng = np.random.default_rng([options.seed, 4])
    shuffled = rng.permutation(eta.mean)
    worths: dict[Setting | None, float | None] = {None: 1.0}
    for setting in settings:
        with setting.naming_errors():
            worths[setting] = worth_of(shuffled, setting.mechanism)
    curves: Curves = {}
    if options.utility == "logistic" and table.features.shape[1] and len(table.classes) == 2:
        curves = _logistic_curves(table, settings, rng, progress)
    rows = []
    for trained, value in worths.items():
        title = "clean labels" if trained is None else trained.title
        row: dict[str, Any] = {"setting": trained, "title": title}
        row["worth"] = np.nan if value is None else value
        auc = loss = UNDEFINED
        if trained in curves:
            (clean,) = curves[None]
            auc = pooled_by_rubin(
                [ValueWithError(*curve.area) for curve in curves[trained]]
            ).within(0, 1)
            loss = pooled_by_rubin(
                [ValueWithError(*(clean - curve).area) for curve in curves[trained]]
            )
        rows.append(row | auc.columns("auc") | loss.within(-1, 1).columns("loss"))
    return pd.DataFrame(rows)


def worth_of(eta: Floats, mechanism: Mechanism) -> float | None:
    """The fraction of the labels' variance that a release in random bags explains (`worth`).

    None where the distribution of the release is not known, or two bags cannot be made. Bags are
    consecutive in `eta` (rows, classes), which is in random order.

    >>> from labelaudit import LabelProportions
    >>> round(worth_of(np.tile([0.7, 0.3], (80, 1)), LabelProportions(4)), 6)
    0.25
    >>> round(worth_of(np.full((80, 4), 0.25), multiclass.ClassProportions(4, 2)), 6)
    0.5
    """
    if len(eta) < 2 * mechanism.bag_size or not has_channel(mechanism):
        return None
    bags = first_bags(eta, mechanism.bag_size, WORTH_RECORDS, 2)
    if isinstance(mechanism, multiclass.ClassMechanism):
        variance, values = (bags * (1 - bags)).sum(axis=-1), multiclass.worth(bags, mechanism)
    else:
        bags = np.ascontiguousarray(bags[..., 1])
        variance, values = bags * (1 - bags), worth(bags, mechanism)
    total = float(variance.sum())
    return float((values * variance).sum()) / total if total else 0.0


def first_bags(eta: Floats, size: int, records: int, least: int) -> Floats:
    """Bags of consecutive records: of this many records, or this many bags, as far as they go."""
    n_bags = min(max(records // size, least), len(eta) // size)
    return eta[: n_bags * size].reshape(n_bags, size, *eta.shape[1:])


def stratified_order(labels: NDArray[Any], rng: Generator) -> Ints:
    """A random order of rows in which every stretch has about the same fraction of each label.

    >>> labels = np.repeat([0, 1], [90, 10])
    >>> labels[stratified_order(labels, np.random.default_rng(0))][:50].sum()
    np.int64(5)
    """
    positions = np.empty(labels.size)
    for label in np.unique(labels):
        rows = labels == label
        number = int(rows.sum())
        positions[rows] = (rng.permutation(number) + rng.random()) / number
    return np.argsort(positions, kind="stable")


def _parts(rows: int) -> tuple[slice, slice, slice]:
    """Rows to train on, to choose the penalty on (with released labels), and to test on."""
    test = int(rows * TEST_FRACTION)
    held = int((rows - test) * VALIDATION_FRACTION)
    return slice(test + held, rows), slice(test, test + held), slice(0, test)


def _logistic_curves(
    table: Table, settings: Sequence[Setting], rng: Generator, progress: Progress
) -> Curves:
    """All settings, runs and penalties as columns of one problem: they differ in sums of x y."""
    rows = stratified_order(table.labels, rng)[:MAX_ROWS]
    labels = table.labels[rows].astype(np.float64)
    training, held, test = _parts(labels.size)
    if np.ptp(labels[test]) == 0:
        progress("utility: no model is trained, since the test rows have one label only")
        return {}
    matrix, largest = design(table, rows), (held.stop - held.start) // 2
    usable = [
        setting
        for setting in settings
        if setting.mechanism.bag_size <= largest and can_debias(setting.mechanism)
    ]
    progress(f"utility: a logistic model for each of {len(usable)} settings")
    jobs = [None, *(setting for setting in usable for _ in range(RUNS))]
    sums, held_labels = [], []
    for setting in jobs:
        released, order = _released(labels[training], setting, rng)
        by_row = np.zeros(training.stop - training.start)
        by_row[order] = released
        sums.append(matrix[training].T @ by_row / order.size)
        held_labels.append(_released(labels[held], setting, rng))
    weights = fit_logistic(matrix[training], np.column_stack(sums), PENALTIES)
    curves: Curves = {}
    for job, setting in enumerate(jobs):
        released, order = held_labels[job]
        scores = np.clip(matrix[held][order] @ weights[:, :, job].T, -CLIP, CLIP)
        losses = np.mean(np.logaddexp(0, scores) - released[:, None] * scores, axis=0)
        best = weights[int(np.argmin(losses)), :, job]
        curves.setdefault(setting, []).append(Curve.of(matrix[test] @ best, labels[test]))
    return curves


def _released(labels: Floats, setting: Setting | None, rng: Generator) -> tuple[Floats, Ints]:
    if setting is None:
        return labels, np.arange(labels.size)
    with setting.naming_errors():
        return debiased_labels(labels.astype(np.int64), setting.mechanism, rng)
