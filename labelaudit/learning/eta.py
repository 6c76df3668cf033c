"""Estimates of eta in which no example's label has a part in its own estimate.

A learner is a frozen dataclass with `fit(features, labels, rng)`, which gives an object with
`predict(features)`. `cross_fit` turns any of them into a calibrated, cross-fitted eta. What an
audit computes from it is the advantage over an attacker who sees this model's score.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelaudit import checks
from labelaudit.checks import Floats
from labelaudit.datasets import Dataset, load_or_standin
from labelaudit.learning.calibration import Scaling, temperature_scale
from labelaudit.learning.encoding import HashedCategories
from labelaudit.priors import Beta, Empirical, TwoPoint, named


class Fitted(Protocol):
    """A trained model."""

    def predict(self, features: ArrayLike) -> Floats:
        """P(y = 1 | x) as the model has it, one for each row."""
        ...


class Learner(Protocol):
    """Anything that can be trained on features and labels."""

    def fit(
        self, features: NDArray[Any], labels: NDArray[np.int64], rng: np.random.Generator
    ) -> Fitted:
        """A model of P(y = 1 | x)."""
        ...


@dataclass(frozen=True)
class Boosting:
    """Gradient-boosted trees on histograms: mixed columns, missing values, no scaling needed.

    Features of an integer type are hashed categories with more values than a tree can tell apart.
    Each is replaced by the share of ones among its examples, shrunk to the mean and found without
    the example itself, and by how often it occurs; both from the rows of the fit alone.
    `categorical` names the columns of floats that hold codes of categories, below 255.

    `threads` is 1 unless told: on a machine that has other work, two threads wait for each other
    and take several times as long as one.
    """

    iterations: int = 200
    learning_rate: float = 0.1
    leaves: int = 15
    least_leaf: int = 40
    categorical: tuple[int, ...] = ()
    threads: int = 1

    def __post_init__(self) -> None:
        """Refuse settings that cannot be."""
        checks.whole_number(self.iterations, "iterations")
        checks.real_number(self.learning_rate, "learning_rate", 1e-6, 1.0)
        checks.whole_number(self.leaves, "leaves", least=2)
        checks.whole_number(self.least_leaf, "least_leaf")
        checks.whole_number(self.threads, "threads")
        for column in self.categorical:
            checks.whole_number(column, "categorical", least=0)

    def fit(
        self, features: NDArray[Any], labels: NDArray[np.int64], rng: np.random.Generator
    ) -> Fitted:
        """Trees, stopped early on a tenth of the rows."""
        from sklearn.ensemble import HistGradientBoostingClassifier
        from threadpoolctl import threadpool_limits

        encode = HashedCategories(features, labels, rng) if features.dtype.kind in "ui" else None
        model = HistGradientBoostingClassifier(
            max_iter=self.iterations,
            learning_rate=self.learning_rate,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=self.least_leaf,
            categorical_features=list(self.categorical) or None,
            # A tenth of a small sample cannot tell when to stop.
            early_stopping=len(labels) >= 2000,
            random_state=int(rng.integers(2**31)),
        )
        with threadpool_limits(self.threads):
            model.fit(features if encode is None else encode.seen, labels)
        return _Classifier(model, encode, self.threads)


@dataclass(frozen=True)
class _Classifier:
    """A scikit-learn classifier behind an encoding of its features."""

    model: Any
    encode: Any
    threads: int

    def predict(self, features: ArrayLike) -> Floats:
        """The chance of label 1."""
        from threadpoolctl import threadpool_limits

        rows = np.asarray(features)
        known = rows if self.encode is None else self.encode(rows)
        with threadpool_limits(self.threads):
            chances = self.model.predict_proba(known)
        return np.asarray(chances[:, 1], dtype=np.float64)


@dataclass(frozen=True)
class Neighbours:
    """The share of ones among the nearest examples, in standardised features.

    One more neighbour is counted than there is, with the mean label, so that no estimate is 0 or 1.
    """

    neighbours: int = 100

    def __post_init__(self) -> None:
        """Refuse a number of neighbours that cannot be."""
        checks.whole_number(self.neighbours, "neighbours")

    def fit(
        self, features: NDArray[Any], labels: NDArray[np.int64], rng: np.random.Generator
    ) -> Fitted:
        """The examples, standardised and indexed; nothing here is random."""
        from sklearn.neighbors import NearestNeighbors
        from sklearn.preprocessing import StandardScaler

        _refuse_missing(features)
        if len(labels) < self.neighbours:
            raise ValueError(
                f"{self.neighbours} neighbours need as many training rows, not {len(labels)}"
            )
        scaler = StandardScaler().fit(features)
        index = NearestNeighbors(n_neighbors=self.neighbours, algorithm="brute")
        return _Neighbourhood(scaler, index.fit(scaler.transform(features)), labels)


def _refuse_missing(features: NDArray[Any]) -> None:
    if features.dtype.kind in "ui":
        raise TypeError(
            "Neighbours needs measurements: hashed categories have no distances; use Boosting"
        )
    missing = np.isnan(features).any(axis=0)
    if missing.any():
        raise ValueError(
            f"Neighbours needs every feature of every row, but column {int(missing.argmax())} has"
            " missing values; use Boosting, or fill them in"
        )


@dataclass(frozen=True)
class _Neighbourhood:
    scaler: Any
    index: Any
    labels: NDArray[np.int64]

    def predict(self, features: ArrayLike) -> Floats:
        """The smoothed share of ones among the neighbours."""
        rows = np.asarray(features)
        _refuse_missing(rows)
        nearest = self.index.kneighbors(self.scaler.transform(rows), return_distance=False)
        count = nearest.shape[1]
        return (self.labels[nearest].sum(axis=1) + self.labels.mean()) / (count + 1)


@dataclass(frozen=True)
class Network:
    """A network of `labelaudit.learning.models`, trained on clean labels; it needs torch."""

    settings: Any

    def fit(
        self, features: NDArray[Any], labels: NDArray[np.int64], rng: np.random.Generator
    ) -> Fitted:
        """The network after training without privacy."""
        from labelaudit.learning.training import train

        split = SimpleNamespace(features=features, labels=labels)
        return train(split, None, self.settings, seed=int(rng.integers(2**31)))


@dataclass(frozen=True)
class CrossFitted:
    """An estimate of eta for each row, by a model and a scaling that never saw its label.

    `raw` is the model's score before scaling. The model of fold f was trained without folds f and
    f + 1 and scaled on fold f + 1.
    """

    eta: Floats
    raw: Floats
    fold: NDArray[np.int64]
    models: tuple[Fitted, ...]
    scalings: tuple[Scaling, ...]

    def predict(self, features: ArrayLike) -> Floats:
        """For rows that no model has seen: the mean over the folds' models, each scaled."""
        rows = np.asarray(features)
        pairs = zip(self.models, self.scalings, strict=True)
        return np.mean([scaling(model.predict(rows)) for model, scaling in pairs], axis=0)


def cross_fit(
    features: ArrayLike,
    labels: ArrayLike,
    learner: Learner,
    *,
    folds: int = 5,
    calibrate: bool = True,
    rng: np.random.Generator,
) -> CrossFitted:
    """eta for every row, cross-fitted and calibrated on a third fold.

    Each class is spread evenly over the folds. Fold f is predicted by a model trained on all folds
    but f and f + 1, whose scores are scaled to the labels of fold f + 1. Without `calibrate` the
    model is trained on all folds but f.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal((600, 2))
    >>> y = rng.random(600) < 1 / (1 + np.exp(-2 * x[:, 0]))
    >>> estimate = cross_fit(x, y, Neighbours(40), rng=rng)
    >>> bool(estimate.eta[x[:, 0] > 1].mean() > 0.7 > 0.3 > estimate.eta[x[:, 0] < -1].mean())
    True
    """
    rows = np.asarray(features)
    if rows.ndim != 2 or rows.shape[1] == 0 or rows.dtype.kind not in "buif":
        raise ValueError(
            "features must be numbers of shape (rows, columns), with a column at least, not"
            f" {rows.dtype} of shape {rows.shape}"
        )
    truth = checks.label_bags(np.ravel(labels), 1)[:, 0]
    if np.shape(labels) != (len(rows),):
        raise ValueError(f"labels must have shape ({len(rows)},), not {np.shape(labels)}")
    number = checks.whole_number(folds, "folds", least=3 if calibrate else 2)
    checks.generator(rng)
    fold = _folds(truth, number, rng)
    raw, eta = np.empty(len(rows)), np.empty(len(rows))
    models: list[Fitted] = []
    scalings: list[Scaling] = []
    for here in range(number):
        beside = (here + 1) % number
        held = (fold == here) | (calibrate & (fold == beside))
        model = learner.fit(rows[~held], truth[~held], rng)
        aside = fold == beside
        scaling = (
            temperature_scale(model.predict(rows[aside]), truth[aside])
            if calibrate
            else Scaling(1.0, 0.0)
        )
        raw[fold == here] = model.predict(rows[fold == here])
        eta[fold == here] = scaling(raw[fold == here])
        models.append(model)
        scalings.append(scaling)
    return CrossFitted(eta, raw, fold, tuple(models), tuple(scalings))


def _folds(labels: NDArray[np.int64], number: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The fold of each row; every fold has its share of each class."""
    counts = np.bincount(labels, minlength=2)
    if counts.min() < number:
        raise ValueError(
            f"{number} folds need at least {number} examples of each label, but there are"
            f" {counts[0]} zeros and {counts[1]} ones"
        )
    fold = np.empty(labels.size, np.int64)
    start = 0
    for label in (0, 1):
        rows = rng.permutation(np.flatnonzero(labels == label))
        fold[rows] = (start + np.arange(rows.size)) % number
        start += rows.size
    return fold


def estimated_law(data: Dataset, learner: Learner, rng: np.random.Generator) -> Empirical:
    """The law of eta in a data set: every training row's cross-fitted estimate.

    Where negatives were thinned, estimates are corrected and rows drawn again by their weight, so
    that the law is that of the data before thinning.
    """
    part, weights = data.train, data.train.weights
    eta = data.correct_eta(cross_fit(part.features, part.labels, learner, rng=rng).eta)
    if weights is not None:
        eta = rng.choice(eta, eta.size, p=weights / weights.sum())
    return Empirical(eta)


def law_of(name: str, *, train_rows: int, seed: int) -> tuple[Beta | TwoPoint | Empirical, str]:
    """The law a chapter's parameter names, and what to say of it on a figure.

    Of a data set it is the law of its priors, estimated by boosted trees; the rest is simulated.

    >>> law_of("uniform", train_rows=0, seed=0)
    (Beta(a=1.0, b=1.0), 'uniform, simulated')
    """
    if name not in ("higgs", "kdd12"):
        return named(name), f"{name}, simulated"
    data = load_or_standin(name, train_rows=train_rows)
    law = estimated_law(data, Boosting(), np.random.default_rng(seed))
    return law, f"{name}, estimated" + " on a simulated stand-in" * data.simulated
