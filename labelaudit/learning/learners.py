"""Models of eta: boosted trees, nearest neighbours, the paper's network, or one's own.

A learner is a frozen dataclass with `fit(features, labels, rng)`, which gives an object with
`predict(features)`. `labelaudit.learning.eta.cross_fit` makes a calibrated estimate of any.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelaudit import checks
from labelaudit.checks import Floats
from labelaudit.learning.encoding import HashedCategories


class Fitted(Protocol):
    """A trained model."""

    def predict(self, features: ArrayLike) -> Floats:
        """P(y = 1 | x) as the model has it, one for each row."""
        ...


class Learner(Protocol):
    """Anything that can be trained on features and labels.

    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> from labelaudit.learning.eta import cross_fit
    >>> class Mean:
    ...     def fit(self, features, labels, rng):
    ...         return SimpleNamespace(predict=lambda rows: np.full(len(rows), labels.mean()))
    >>> labels = np.tile([0, 0, 0, 1], 25)
    >>> estimate = cross_fit(np.zeros((100, 1)), labels, Mean(), rng=np.random.default_rng(0))
    >>> bool(abs(estimate.eta - 0.25).max() < 0.05)
    True
    """

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
    """A network of `labelaudit.learning.models`, trained on clean labels; it needs torch.

    >>> import numpy as np
    >>> from labelaudit.learning.training import Settings
    >>> x, y = np.array([[0.0], [1.0]] * 50), np.array([0, 1] * 50)
    >>> model = Network(Settings("linear", epochs=2)).fit(x, y, np.random.default_rng(0))
    >>> model.predict(x).shape
    (100,)
    """

    settings: Any

    def fit(
        self, features: NDArray[Any], labels: NDArray[np.int64], rng: np.random.Generator
    ) -> Fitted:
        """The network after training without privacy."""
        from labelaudit.learning.training import train

        split = SimpleNamespace(features=features, labels=labels)
        return train(split, None, self.settings, seed=int(rng.integers(2**31)))
