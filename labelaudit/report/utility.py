"""What a mechanism costs: how much of a clean label a released one is worth, and a model's AUC.

A logistic model needs the labels through the sums of x y alone, so it learns from debiased labels
as it would from clean ones, with more noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit
from scipy.stats import rankdata

from labelaudit.checks import Floats
from labelaudit.datasets import Table
from labelaudit.report.beliefs import Say
from labelaudit.report.intervals import Interval, Share, over_refits
from labelaudit.report.plan import MOST_IN_BATCH
from labelaudit.report.settings import Setting
from labelaudit.report.trial import OwnFault
from labelaudit.report.worth import debiased_labels, worth_of

MOST_ROWS = 30_000
MOST_LEVELS = 10
TEST_SHARE, VALIDATION_SHARE = 0.25, 0.2
PENALTIES = (1e-4, 1e-2, 1e-1, 1.0)
RUNS = 5
STEPS = 40
# What the sum of a held-out debiased loss may see of a score, so that one wild label cannot rule.
CLAMP = 3.0


@dataclass(frozen=True)
class Utility:
    """The cost of one setting; `None` where its releases cannot be debiased.

    One released label says as much about a linear model as `worth` clean ones. `auc` is that of
    the model trained on releases, on clean test labels; `loss` is by how much the model trained on
    clean labels does better on the same test rows.
    """

    setting: Setting | None
    worth: float | None
    auc: Interval | None
    loss: Interval | None

    @property
    def title(self) -> str:
        """The setting in short; clean labels have none."""
        return "clean labels" if self.setting is None else self.setting.title


def design(table: Table, rows: NDArray[np.int64]) -> Floats:
    """Standardised columns for a linear model: numbers, marks of missing ones, frequent levels."""
    columns: list[Floats] = []
    for place, column in enumerate(table.columns):
        values = table.features[rows, place].astype(np.float64)
        missing = np.isnan(values)
        if column.categorical:
            levels = range(min(len(column.levels), MOST_LEVELS))
            columns += [(values == level).astype(float) for level in levels]
        else:
            known = values[~missing]
            columns.append(np.where(missing, known.mean() if known.size else 0.0, values))
        if missing.any():
            columns.append(missing.astype(float))
    matrix = np.column_stack(columns)
    spread = matrix.std(axis=0)
    kept = spread > 0
    matrix = (matrix[:, kept] - matrix[:, kept].mean(axis=0)) / spread[kept]
    # A few wild values would otherwise own the sums of x y.
    return np.column_stack([np.ones(len(matrix)), np.clip(matrix, -6, 6)])


def measure_utility(
    table: Table,
    settings: Sequence[Setting],
    model: str,
    seed: int,
    focus: Sequence[Setting] = (),
    say: Say = lambda line: None,
) -> tuple[Utility, ...]:
    """Clean labels first, then each setting; the network is trained for `focus` alone.

    >>> import pandas
    >>> import tempfile
    >>> from labelaudit.datasets import read_table
    >>> from labelaudit.report import Plan
    >>> frame = pandas.DataFrame({"eta": [0.5] * 200, "ill": [0, 1] * 100})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame.to_csv(f"{folder}/survey.csv", index=False)
    ...     table = read_table(f"{folder}/survey.csv", label="ill", prior="eta")
    >>> plan = Plan(mechanisms=["rr"], epsilons=[1.0])
    >>> found = measure_utility(table, plan.settings, "none", seed=0)
    >>> [(one.title, round(one.worth, 3)) for one in found]
    [('clean labels', 1.0), ('RR (epsilon 1)', 0.214)]
    """
    rng = np.random.default_rng([seed, 4])
    rows = spread_out(table.labels, rng)[:MOST_ROWS]
    # Settings whose noise must be measured are compared on the same draws.
    truth = table.labels[rows].astype(np.int64)
    worths: dict[Setting | None, float | None] = {None: 1.0}
    worths |= {one: _worth(truth, one, np.random.default_rng([seed, 8])) for one in settings}
    labels = truth.astype(np.float64)
    curves: dict[Setting | None, list[Curve]] = {}
    _, held, test = _parts(labels.size)
    if np.ptp(labels[test]) == 0:
        say("utility: no model is trained, since the test rows have one label only")
    elif model != "none" and table.features.shape[1]:
        matrix = design(table, rows)
        room = (held.stop - held.start) // 2
        chosen = [
            one for one in settings if worths[one] is not None and one.mechanism.bag_size <= room
        ]
        if model == "network":
            shown = [one for one in chosen if one in focus]
            curves = _network_curves(matrix, labels, shown, seed, say)
        else:
            say(f"utility: a logistic model for each of {len(chosen)} settings")
            curves = _logistic_curves(matrix, labels, chosen, rng)
    return tuple(_utility(one, worth, curves) for one, worth in worths.items())


def spread_out(labels: NDArray[Any], rng: np.random.Generator) -> NDArray[np.int64]:
    """A random order of rows in which every stretch holds each label in about its share.

    >>> labels = np.repeat([0, 1], [90, 10])
    >>> labels[spread_out(labels, np.random.default_rng(0))][:50].sum()
    np.int64(5)
    """
    places = np.empty(labels.size)
    for label in np.unique(labels):
        these = labels == label
        number = int(these.sum())
        places[these] = (rng.permutation(number) + rng.random()) / number
    return np.argsort(places, kind="stable")


def _utility(
    setting: Setting | None, worth: float | None, curves: dict[Setting | None, list[Curve]]
) -> Utility:
    if setting not in curves:
        return Utility(setting, worth, None, None)
    (clean,) = curves[None]
    auc = over_refits([curve.share for curve in curves[setting]])
    loss = over_refits([(clean - curve).share for curve in curves[setting]])
    return Utility(setting, worth, auc, loss)


def _worth(labels: NDArray[Any], setting: Setting, rng: np.random.Generator) -> float | None:
    try:
        with setting.blamed():
            return worth_of(labels, setting.mechanism, rng)
    except ValueError as error:
        if isinstance(error, OwnFault) and not isinstance(error.__cause__, TypeError | ValueError):
            raise
        # It cannot be debiased, or the rows make fewer than two of its bags.
        return None


def _parts(rows: int) -> tuple[slice, slice, slice]:
    """Rows to train on, to choose the penalty on (with released labels), and to test on."""
    test = int(rows * TEST_SHARE)
    held = int((rows - test) * VALIDATION_SHARE)
    return slice(test + held, rows), slice(test, test + held), slice(0, test)


def _logistic_curves(
    matrix: Floats, labels: Floats, settings: Sequence[Setting], rng: np.random.Generator
) -> dict[Setting | None, list[Curve]]:
    """All settings, runs and penalties as columns of one problem: they differ in sums of x y."""
    training, held, test = _parts(len(labels))
    jobs = [None, *(setting for setting in settings for _ in range(RUNS))]
    sums, checks = [], []
    for setting in jobs:
        seen, rows = _seen(labels[training], setting, rng)
        placed = np.zeros(training.stop - training.start)
        placed[rows] = seen
        sums.append(matrix[training].T @ placed / rows.size)
        checks.append(_seen(labels[held], setting, rng))
    weights = fit_logistic(matrix[training], np.column_stack(sums), PENALTIES)
    found: dict[Setting | None, list[Curve]] = {}
    for job, setting in enumerate(jobs):
        known, rows = checks[job]
        scores = matrix[held][rows] @ weights[:, :, job].T
        seen_scores = np.clip(scores, -CLAMP, CLAMP)
        losses = np.mean(np.logaddexp(0, seen_scores) - known[:, None] * seen_scores, axis=0)
        best = weights[int(np.argmin(losses)), :, job]
        found.setdefault(setting, []).append(Curve.of(matrix[test] @ best, labels[test]))
    return found


def _seen(
    labels: Floats, setting: Setting | None, rng: np.random.Generator
) -> tuple[Floats, NDArray[np.int64]]:
    if setting is None:
        return labels, np.arange(labels.size)
    with setting.blamed():
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
        chances = expit(matrix @ np.concatenate(list(ahead), axis=1))
        slopes = np.split(matrix.T @ chances / n, len(penalties), axis=1)
        steps = [
            cho_solve(factor, slope - sums + ridge @ here)
            for factor, slope, ridge, here in zip(factors, slopes, ridges, ahead, strict=True)
        ]
        following = ahead - np.stack(steps)
        larger = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = following + (momentum - 1) / larger * (following - weights)
        weights, momentum = following, larger
    return weights


@dataclass(frozen=True)
class Curve:
    """Where each positive stands among the negatives, and each negative among the positives.

    Their means are the area under the ROC curve; their spread is its error, and that of the
    difference between two scores of the same rows (DeLong, DeLong and Clarke-Pearson).
    """

    ones: Floats
    zeros: Floats

    @classmethod
    def of(cls, scores: Floats, labels: NDArray[Any]) -> Curve:
        """Ties count half."""
        positive = np.asarray(labels) == 1
        ranks = rankdata(scores)
        above = ranks[positive] - rankdata(scores[positive])
        below = ranks[~positive] - rankdata(scores[~positive])
        return cls(above / (~positive).sum(), 1 - below / positive.sum())

    def __sub__(self, other: Curve) -> Curve:
        """The difference of two curves over the same rows."""
        return Curve(self.ones - other.ones, self.zeros - other.zeros)

    @property
    def share(self) -> Share:
        """The area and its standard error."""
        parts = [one.var(ddof=1) / one.size for one in (self.ones, self.zeros) if one.size > 1]
        return Share(float(self.ones.mean()), math.sqrt(sum(parts)))


def _network_curves(
    matrix: Floats, labels: Floats, settings: Sequence[Setting], seed: int, say: Say
) -> dict[Setting | None, list[Curve]]:
    """The small network by minibatches, for clean labels and for the settings in focus."""
    from labelaudit.learning.training import TrainingSettings, train

    training, held, test = _parts(len(labels))
    both = slice(held.start, training.stop)
    seen = SimpleNamespace(
        features=matrix[both, 1:].astype(np.float32), labels=labels[both].astype(np.int64)
    )
    plan = TrainingSettings("small", learning_rate=3e-3, batch_size=MOST_IN_BATCH, epochs=20)
    seeds = np.random.SeedSequence([seed, 7]).generate_state(RUNS)
    found: dict[Setting | None, list[Curve]] = {}
    for setting in (None, *settings):
        say(f"utility: the network on {'clean labels' if setting is None else setting.title}")
        mechanism = None if setting is None else setting.mechanism
        for run in seeds[: 1 if setting is None else RUNS]:
            with setting.blamed() if setting else nullcontext():
                outcome = train(seen, mechanism, plan, seed=int(run), device="cpu")
            scores = outcome.predict(matrix[test, 1:].astype(np.float32))
            found.setdefault(setting, []).append(Curve.of(scores, labels[test]))
    return found
