"""What a mechanism costs: how much of a clean label a released one is worth, and a model's AUC.

With debiased proportions every record gets an unbiased label of its own, y_hat = k z - (k - 1) p,
where z is its bag's proportion and p the mean of all other bags. A logistic model needs the labels
through the sums of x y alone, so it learns from debiased labels as from clean ones, but with
more noise.
"""

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from labelaudit import multiclass
from labelaudit.advantage import worth
from labelaudit.auditing.eta import NETWORK, Progress, design
from labelaudit.auditing.intervals import Curve, Interval, over_refits
from labelaudit.auditing.plan import Setting
from labelaudit.auditing.table import Table
from labelaudit.checks import Floats, Ints
from labelaudit.mechanisms import Mechanism
from labelaudit.mechanisms.custom import has_channel
from labelaudit.partitions import partition

MOST_ROWS = 20_000
# Records behind the worth of a setting.
WORTH_RECORDS = 20_000
TEST_FRACTION, VALIDATION_FRACTION = 0.25, 0.2
PENALTIES = (1e-4, 1e-2, 1e-1, 1.0)
RUNS = 3
STEPS = 40
# Scores are clipped in the loss on held-out debiased labels, so that no label dominates it.
CLIP = 3.0
# Curves of each setting, by run; those of clean labels have the key None.
Curves = dict[Setting | None, list[Curve]]


@dataclass(frozen=True)
class Utility:
    """The cost of one setting; `None` where it is not known, or no model could be trained.

    A released label is worth as much to a learner as `worth` clean ones. `auc` is that of the
    model trained on releases, on clean test labels. `loss` is the AUC of the model trained on clean
    labels less that, on the same test rows.
    """

    setting: Setting | None
    worth: float | None
    auc: Interval | None
    loss: Interval | None

    @property
    def title(self) -> str:
        """The setting in short; clean labels have none."""
        return "clean labels" if self.setting is None else self.setting.title


def measure_utility(
    table: Table,
    eta: Floats,
    settings: Sequence[Setting],
    model: str,
    seed: int,
    focus: Sequence[Setting] = (),
    progress: Progress = lambda line: None,
) -> tuple[Utility, ...]:
    """Clean labels first, then each setting; the network is trained for `focus` alone.

    >>> import pandas
    >>> from labelaudit.auditing.table import read_table
    >>> from labelaudit.auditing import AuditPlan
    >>> frame = pandas.DataFrame({"eta": [0.5] * 200, "ill": [0, 1] * 100})
    >>> table = read_table(frame, label="ill", prior="eta")
    >>> plan = AuditPlan(mechanisms=["rr"], epsilons=[1.0])
    >>> utilities = measure_utility(table, table.prior, plan.settings, "none", seed=0)
    >>> [(utility.title, round(utility.worth, 3)) for utility in utilities]
    [('clean labels', 1.0), ('RR (epsilon 1)', 0.214)]
    """
    rng = np.random.default_rng([seed, 4])
    shuffled = rng.permutation(eta)
    rows = spread_out(table.labels, rng)[:MOST_ROWS]
    truth = table.labels[rows].astype(np.int64)
    worths: dict[Setting | None, float | None] = {None: 1.0}
    for setting in settings:
        with setting.naming_errors():
            worths[setting] = worth_of(shuffled, setting.mechanism)
    labels = truth.astype(np.float64)
    curves: Curves = {}
    _, held, test = _parts(labels.size)
    if np.ptp(labels[test]) == 0:
        progress("utility: no model is trained, since the test rows have one label only")
    elif model != "none" and table.features.shape[1]:
        matrix = design(table, rows)
        largest = (held.stop - held.start) // 2
        usable = [
            setting
            for setting in settings
            if setting.mechanism.bag_size <= largest and can_debias(setting.mechanism)
        ]
        if model == "network":
            usable = [setting for setting in usable if setting in focus]
            curves = _network_curves(matrix, labels, usable, seed, progress)
        else:
            progress(f"utility: a logistic model for each of {len(usable)} settings")
            curves = _logistic_curves(matrix, labels, usable, rng)
    utilities = []
    for trained, value in worths.items():
        auc = loss = None
        if trained in curves:
            (clean,) = curves[None]
            auc = over_refits([curve.area for curve in curves[trained]]).within(0, 1)
            loss = over_refits([(clean - curve).area for curve in curves[trained]]).within(-1, 1)
        utilities.append(Utility(trained, value, auc, loss))
    return tuple(utilities)


def worth_of(eta: Floats, mechanism: Mechanism) -> float | None:
    """The fraction of the labels' variance that a release in random bags explains (`worth`).

    None where the distribution of the release is not known, or two bags cannot be made. Bags are
    consecutive in `eta`, which is in random order.

    >>> from labelaudit import LabelProportions
    >>> round(worth_of(np.full(80, 0.3), LabelProportions(4)), 6)
    0.25
    """
    k = mechanism.bag_size
    if eta.size < 2 * k or not has_channel(mechanism):
        return None
    bags = first_bags(eta, k, WORTH_RECORDS, 2)
    variance = bags * (1 - bags)
    total = float(variance.sum())
    return float((worth(bags, mechanism) * variance).sum()) / total if total else 0.0


def first_bags(eta: Floats, size: int, records: int, least: int) -> Floats:
    """Bags of consecutive records: of this many records, or this many bags, as far as they go."""
    n_bags = min(max(records // size, least), len(eta) // size)
    return eta[: n_bags * size].reshape(n_bags, size, *eta.shape[1:])


def can_debias(mechanism: Mechanism) -> bool:
    """Whether releases have an unbiased estimate, without which no model is trained on them."""
    labels = np.zeros((2, mechanism.bag_size), np.int64)
    releases = mechanism.release(labels, np.random.default_rng(0))
    try:
        mechanism.debias(releases)
    except ValueError:
        # That is how `debias` reports that there is no unbiased estimate.
        return False
    return True


def debiased_labels(
    labels: NDArray[Any], mechanism: Mechanism, rng: Generator
) -> tuple[Floats, Ints]:
    """An unbiased label for each record of random bags, and the rows of these records.

    >>> from labelaudit import LabelProportions
    >>> rng = np.random.default_rng(0)
    >>> unbiased, rows = debiased_labels(np.array([0, 1, 1]), LabelProportions(1), rng)
    >>> unbiased[np.argsort(rows)].tolist()
    [0.0, 1.0, 1.0]
    """
    k = mechanism.bag_size
    n_bags = labels.size // k
    if n_bags < 2:
        raise ValueError(f"{labels.size} records make {n_bags} bags of {k}: there must be two")
    bags = partition(labels.size, k, rng)
    proportions = mechanism.debias(mechanism.release(labels[bags], rng))
    # With the bag's own proportion in the mean, its labels would be biased towards themselves.
    others = (proportions.sum() - proportions) / (n_bags - 1)
    return np.repeat(k * proportions - (k - 1) * others, k), bags.ravel()


def spread_out(labels: NDArray[Any], rng: Generator) -> Ints:
    """A random order of rows in which every stretch has about the same fraction of each label.

    >>> labels = np.repeat([0, 1], [90, 10])
    >>> labels[spread_out(labels, np.random.default_rng(0))][:50].sum()
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
    matrix: Floats, labels: Floats, settings: Sequence[Setting], rng: Generator
) -> Curves:
    """All settings, runs and penalties as columns of one problem: they differ in sums of x y."""
    training, held, test = _parts(len(labels))
    jobs = [None, *(setting for setting in settings for _ in range(RUNS))]
    sums, held_labels = [], []
    for setting in jobs:
        released, rows = _released(labels[training], setting, rng)
        by_row = np.zeros(training.stop - training.start)
        by_row[rows] = released
        sums.append(matrix[training].T @ by_row / rows.size)
        held_labels.append(_released(labels[held], setting, rng))
    weights = fit_logistic(matrix[training], np.column_stack(sums), PENALTIES)
    curves: Curves = {}
    for job, setting in enumerate(jobs):
        released, rows = held_labels[job]
        scores = np.clip(matrix[held][rows] @ weights[:, :, job].T, -CLIP, CLIP)
        losses = np.mean(np.logaddexp(0, scores) - released[:, None] * scores, axis=0)
        best = weights[int(np.argmin(losses)), :, job]
        curves.setdefault(setting, []).append(Curve.of(matrix[test] @ best, labels[test]))
    return curves


def _released(labels: Floats, setting: Setting | None, rng: Generator) -> tuple[Floats, Ints]:
    if setting is None:
        return labels, np.arange(labels.size)
    with setting.naming_errors():
        return debiased_labels(labels.astype(np.int64), setting.mechanism, rng)


def fit_logistic(matrix: Floats, sums: Floats, penalties: Sequence[float]) -> Floats:
    """Minimise mean log(1 + e^xw) - w.sums + penalty |w|^2 / 2 for each column of `sums`.

    The curvature is at most X'X / 4n whatever the weights, which gives steps that never
    overshoot; Nesterov's momentum makes them quick. Shape: (penalties, features, columns).
    """
    n, d = matrix.shape
    gram = matrix.T @ matrix / (4 * n)
    ridges = [np.diag(np.r_[1e-8, np.full(d - 1, penalty)]) for penalty in penalties]
    factors = [cho_factor(gram + ridge) for ridge in ridges]
    weights = np.zeros((len(penalties), d, sums.shape[1]))
    ahead, momentum = weights.copy(), 1.0
    for _ in range(STEPS):
        probabilities = expit(matrix @ np.concatenate(list(ahead), axis=1))
        slopes = np.split(matrix.T @ probabilities / n, len(penalties), axis=1)
        steps = [
            cho_solve(factor, slope - sums + ridge @ point)
            for factor, slope, ridge, point in zip(factors, slopes, ridges, ahead, strict=True)
        ]
        following = ahead - np.stack(steps)
        larger = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = following + (momentum - 1) / larger * (following - weights)
        weights, momentum = following, larger
    return weights


def _network_curves(
    matrix: Floats, labels: Floats, settings: Sequence[Setting], seed: int, progress: Progress
) -> Curves:
    """The small network by minibatches, for clean labels and for the settings in focus."""
    from labelaudit.learning.training import TrainingSettings, train

    training, held, test = _parts(len(labels))
    both = slice(held.start, training.stop)
    data = SimpleNamespace(
        features=matrix[both, 1:].astype(np.float32), labels=labels[both].astype(np.int64)
    )
    options = TrainingSettings(**NETWORK)
    seeds = np.random.SeedSequence([seed, 7]).generate_state(RUNS)
    curves: Curves = {}
    for setting in (None, *settings):
        name = "clean labels" if setting is None else setting.title
        progress(f"utility: the network on {name}")
        mechanism = None if setting is None else setting.mechanism
        for run in seeds[: 1 if setting is None else RUNS]:
            with setting.naming_errors() if setting else nullcontext():
                outcome = train(data, mechanism, options, seed=int(run), device="cpu")
            scores = outcome.predict(matrix[test, 1:].astype(np.float32))
            curves.setdefault(setting, []).append(Curve.of(scores, labels[test]))
    return curves


def class_worth(eta: Any, mechanism: Any) -> float:
    """The fraction of the classes' variance that a release explains, in bags of consecutive rows.

    >>> round(class_worth(np.full((80, 4), 0.25), multiclass.ClassProportions(4, 2)), 6)
    0.5
    """
    bags = first_bags(eta, mechanism.bag_size, WORTH_RECORDS, 2)
    variance = (bags * (1 - bags)).sum(axis=-1)
    explained = float((multiclass.worth(bags, mechanism) * variance).sum())
    return explained / max(float(variance.sum()), 1e-300)
