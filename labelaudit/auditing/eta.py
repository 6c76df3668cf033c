"""The attacker's prior: eta for every record and class, and tests of it against the true labels."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from labelaudit.auditing.options import Options, Target
from labelaudit.auditing.table import Table
from labelaudit.checks import Floats, Ints
from labelaudit.learning.calibration import (
    SIGNIFICANT,
    Calibration,
    beta_scale,
    calibration_of,
)
from labelaudit.learning.learners import Boosting, Learner, Logistic, Rows

# Called with a line for each step of the audit.
Progress = Callable[[str], None]
Labels = NDArray[np.integer]
FOLDS = 5
# The most values of a category, the frequent ones first, that get a column of a linear model.
LEVEL_COLUMNS = 10


@dataclass(frozen=True)
class Eta:
    """P(class) of each row in each refit, (rows, classes), and a test of each model on the labels.

    There is a model for each class against the rest, of two classes for the positive one alone. A
    ready-made prior is the same in all refits.
    """

    refits: tuple[Floats, ...]
    tests: tuple[Calibration, ...]
    refitted: bool
    recalibrated: bool = False

    @classmethod
    def of(
        cls,
        models: Sequence[Sequence[Floats]],
        labels: Labels,
        *,
        refitted: bool,
        persons: Ints | None = None,
        recalibrated: bool = False,
    ) -> Self:
        """From the refits of each model, which are scaled to sum to 1 over several classes.

        >>> eta = Eta.of([[np.full(4, 0.25)] * 2], np.array([0, 0, 0, 1]), refitted=False)
        >>> eta.refits[0][0].tolist(), eta.at_stake(np.array([0, 0, 0, 1]))
        ([0.75, 0.25], 0.25)
        """
        numbers = model_numbers(len(models))
        tests = [
            calibration_of(etas, (labels == number).astype(np.uint8), persons)
            for number, etas in zip(numbers, models, strict=True)
        ]
        refits: list[Floats] = []
        for index, columns in enumerate(zip(*models, strict=True)):
            if index and all(etas[index] is etas[0] for etas in models):
                refits.append(refits[0])
            elif len(columns) == 1:
                refits.append(np.column_stack([1 - columns[0], columns[0]]))
            else:
                stacked = np.stack(columns, axis=1)
                refits.append(stacked / stacked.sum(axis=1, keepdims=True))
        return cls(tuple(refits), tuple(tests), refitted, recalibrated)

    @property
    def positive(self) -> tuple[Floats, ...]:
        """P(positive) of each row in each refit, of two classes."""
        columns = [refit[:, -1] for refit in self.distinct]
        return tuple(columns) if len(columns) > 1 else tuple(columns) * len(self.refits)

    @property
    def mean(self) -> Floats:
        """P(class) of each row, the mean over the refits."""
        return np.mean(self.refits, axis=0)

    @property
    def distinct(self) -> tuple[Floats, ...]:
        """The refits without repetition."""
        return distinct(self.refits)

    def at_stake(self, labels: Labels) -> float:
        """The most that any release can add: how often the attacker is wrong without one.

        By eta or on the true labels, whichever is more, averaged over the refits.
        """
        # Of two classes the smaller probability: 1 minus the larger one rounds once more.
        expected = np.mean(
            [
                eta.min(axis=1).mean() if eta.shape[1] == 2 else 1 - eta.max(axis=1).mean()
                for eta in self.refits
            ]
        )
        realised = np.mean([(guess_of(eta) != labels).mean() for eta in self.refits])
        return float(max(expected, realised))

    def doubtful_classes(self, limit: float) -> list[int]:
        """Models that the labels contradict by more than `limit`; one test for all of them."""
        return [
            index
            for index, test in enumerate(self.tests)
            if test.p_value * len(self.tests) < SIGNIFICANT and test.excess > limit
        ]


def guess_of(probabilities: Floats) -> Ints:
    """The likeliest class; the last of equally likely ones.

    >>> guess_of(np.array([[0.5, 0.5], [0.6, 0.4]])).tolist()
    [1, 0]
    """
    return probabilities.shape[-1] - 1 - probabilities[..., ::-1].argmax(axis=-1)


def distinct(etas: Sequence[Floats]) -> tuple[Floats, ...]:
    """The etas without repetition: a ready-made prior is the same in every refit."""
    return tuple(etas if any(eta is not etas[0] for eta in etas) else etas[:1])


def trusted_eta(table: Table, options: Options, progress: Progress) -> tuple[Eta, Target]:
    """Eta and the target; eta is scaled once more where the labels contradict it and it matters."""
    models = estimate_eta(table, options, progress)
    facts: dict[str, Any] = {"refitted": table.prior is None, "persons": table.persons}
    eta = Eta.of(models, table.labels, **facts)
    stake = eta.at_stake(table.labels)
    if eta.doubtful_classes(options.target_of(stake).matters(stake)):
        progress("eta: the true labels contradict it, so it is scaled to them once more")
        numbers = model_numbers(len(models))
        models = [
            recalibrated(etas, table.labels == number, options.seed, table.persons)
            for number, etas in zip(numbers, models, strict=True)
        ]
        eta = Eta.of(models, table.labels, **facts, recalibrated=True)
        stake = eta.at_stake(table.labels)
    return eta, options.target_of(stake)


def estimate_eta(
    table: Table, options: Options, progress: Progress = lambda line: None
) -> list[tuple[Floats, ...]]:
    """For each model the refits of P(class): ready-made, or cross-fitted and calibrated.

    With several learners the refits take turns, each at least once, so that intervals include how
    they differ.

    >>> import pandas
    >>> from labelaudit.auditing import Columns, read
    >>> frame = pandas.DataFrame({"age": [30, 30, 60, 60] * 100, "ill": [0, 0, 1, 1] * 100})
    >>> [refits] = estimate_eta(read(frame, Columns(label="ill")), Options(refits=2))
    >>> refits[0][:4].round(1).tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    if table.prior is not None:
        return [(table.prior,) * (options.refits or 2)]
    c, models = len(table.classes), []
    for number in model_numbers(c):
        if c > 2:
            progress(f"class {number + 1} of {c}")
        models.append(_cross_fitted(table, table.labels == number, options, progress))
    return models


def model_numbers(classes: int) -> Sequence[int]:
    """The classes that have a model against the rest: of two classes the positive one alone."""
    return range(classes) if classes > 2 else [1]


def _cross_fitted(
    table: Table, ones: NDArray[np.bool_], options: Options, progress: Progress
) -> tuple[Floats, ...]:
    """P(one) of each row in each refit, from models that have not seen the row's label."""
    from labelaudit.learning.eta import cross_fit

    refits, count = max(options.refits or 2, len(options.learners)), itertools.count(1)
    streams = map(np.random.default_rng, np.random.SeedSequence([options.seed, 1]).spawn(refits))
    etas = []
    for name, rng in zip(itertools.cycle(options.learners), streams, strict=False):
        features, learner = _learner(name, table)

        def fit(*arguments: Any, learner: Learner = learner, name: str = name) -> Any:
            progress(f"eta: model {next(count)} of {refits * FOLDS}, {name}")
            return learner.fit(*arguments)

        fitting: Any = SimpleNamespace(fit=fit)
        fitted = cross_fit(
            features, ones.astype(np.uint8), fitting, folds=FOLDS, persons=table.persons, rng=rng
        )
        etas.append(fitted.eta)
    return tuple(etas)


def recalibrated(
    etas: Sequence[Floats], ones: NDArray[np.bool_], seed: int, persons: Ints | None
) -> tuple[Floats, ...]:
    """Every eta scaled to the labels once more, each fold on the labels of the others.

    >>> labels = np.tile([0, 0, 0, 1], 500) == 1
    >>> scaled, _ = recalibrated((np.full(2000, 0.5),) * 2, labels, 0, None)
    >>> bool(abs(scaled - 0.25).max() < 0.01)
    True
    """
    codes = np.arange(ones.size) if persons is None else persons
    fold = (np.random.default_rng([seed, 9]).permutation(int(codes.max()) + 1) % FOLDS)[codes]
    labels = ones.astype(np.uint8)
    scaled = []
    for eta in distinct(etas):
        scaled.append(eta.copy())
        for index in range(FOLDS):
            kept = fold == index
            scaled[-1][kept] = beta_scale(eta[~kept], labels[~kept])(eta[kept])
    return tuple(scaled) if len(scaled) > 1 else tuple(scaled) * len(etas)


def _learner(name: str, table: Table) -> tuple[Rows, Learner]:
    """One of `LEARNERS`, and the features as it takes them."""
    if name == "logistic":
        return design(table, np.arange(len(table)))[:, 1:].astype(np.float32), Logistic()
    codes = [index for index, column in enumerate(table.columns) if column.categorical]
    return table.features, Boosting(categorical=tuple(codes))


def design(table: Table, rows: Ints) -> Floats:
    """Standardised columns for a linear model: numbers, marks of missing ones, frequent levels."""
    columns: list[Floats] = []
    for index, column in enumerate(table.columns):
        values = table.features[rows, index].astype(np.float64)
        missing = np.isnan(values)
        if column.categorical:
            levels = range(min(len(column.levels), LEVEL_COLUMNS))
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
    # Extreme values would otherwise dominate the sums of x y.
    return np.column_stack([np.ones(len(matrix)), np.clip(matrix, -6, 6)])
