"""Models of eta: boosted trees, the paper's network, or one's own.

A learner is a frozen dataclass with `fit(features, labels, rng)`, which returns an object with
`predict(features)`. `labelaudit.learning.eta.cross_fit` makes a calibrated estimate with any.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from labelaudit import checks
from labelaudit.checks import Floats

__all__ = ["Boosting", "Fitted", "HashedCategories", "Learner", "NetworkLearner"]

Rows = NDArray[Any]
Labels = NDArray[np.int64]

# A hashed category's fraction of ones is shrunk as if it had this many more rows with the mean.
SHRINKAGE = 20.0


class Fitted(Protocol):
    """A trained model."""

    def predict(self, features: ArrayLike) -> Floats:
        """The model's P(y = 1 | x) for each row."""
        ...


class Learner(Protocol):
    """Anything that can be trained on features and labels.

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

    def fit(self, features: Rows, labels: Labels, rng: Generator) -> Fitted:
        """A model of P(y = 1 | x)."""
        ...


@dataclass(frozen=True, kw_only=True)
class Boosting:
    """Gradient-boosted trees on histograms: mixed columns, missing values, no scaling needed.

    Features of an integer type are hashed categories with more values than a tree can tell apart:
    `HashedCategories` turns each into two numbers. `categorical` are the indices of the float
    columns that hold codes of categories, below 255. `threads` is 1 by default, because several
    threads wait for each other on a machine that has other work.
    """

    iterations: int = 200
    learning_rate: float = 0.1
    leaves: int = 15
    least_leaf: int = 40
    categorical: tuple[int, ...] = ()
    threads: int = 1

    def __post_init__(self) -> None:
        for name in ("iterations", "leaves", "least_leaf", "threads"):
            checks.whole_number(getattr(self, name), name, least=2 if name == "leaves" else 1)
        checks.real_number(self.learning_rate, "learning_rate", 1e-6, 1.0)
        for column in self.categorical:
            checks.whole_number(column, "categorical", least=0)

    def fit(self, features: Rows, labels: Labels, rng: Generator) -> Fitted:
        """Trees, stopped early on a tenth of the rows where there are enough."""
        from sklearn.ensemble import HistGradientBoostingClassifier
        from threadpoolctl import threadpool_limits

        encode: Callable[[Rows], Rows] = np.asarray
        seen = features
        if features.dtype.kind in "ui":
            encode = categories = HashedCategories(features, labels, rng)
            seen = categories.seen
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
            model.fit(seen, labels)

        def predict(features: ArrayLike) -> Floats:
            with threadpool_limits(self.threads):
                return model.predict_proba(encode(np.asarray(features)))[:, 1]

        return _Model(predict)


@dataclass(frozen=True)
class Logistic:
    """A logistic model of standardised columns, as scikit-learn fits it."""

    iterations: int = 500

    def fit(self, features: Rows, labels: Labels, rng: Generator) -> Fitted:
        """Nothing is random."""
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(max_iter=self.iterations).fit(features, labels)
        return _Model(lambda rows: model.predict_proba(rows)[:, 1])


@dataclass(frozen=True)
class _Model:
    predict: Callable[[ArrayLike], Floats]


class HashedCategories:
    """Each hashed category as two numbers: a shrunken fraction of ones, the log of its frequency.

    A row's own label has no part in its fraction; otherwise the trees would see the label. So the
    rows of the fit (`seen`) are encoded fold by fold from the other folds. An unknown category
    gets the mean.

    >>> categories, labels = np.repeat([[3], [7]], 50, axis=0), np.repeat([0, 1], 50)
    >>> encoded = HashedCategories(categories, labels, np.random.default_rng(0))
    >>> encoded.seen.shape
    (100, 2)
    """

    def __init__(self, features: Rows, labels: Labels, rng: Generator) -> None:
        import pandas as pd
        from sklearn.base import clone
        from sklearn.model_selection import StratifiedKFold
        from sklearn.preprocessing import TargetEncoder

        encoder = TargetEncoder(target_type="binary", smooth=SHRINKAGE)
        self.encoder = clone(encoder).fit(features, labels)
        self.counts = [pd.Series(column).value_counts() for column in features.T]
        # The encoder's own cross-fitting takes its seed in another way in each version.
        folds = StratifiedKFold(5, shuffle=True, random_state=int(rng.integers(2**31)))
        fractions = np.empty(features.shape)
        for others, held in folds.split(features, labels):
            fitted = clone(encoder).fit(features[others], labels[others])
            fractions[held] = fitted.transform(features[held])
        # Without its own row, a category that occurs once is as frequent as an unknown one.
        self.seen = np.column_stack([fractions, np.log1p(self._frequencies(features) - 1)])

    def _frequencies(self, features: Rows) -> Rows:
        """How often each category of each row occurs among the rows of the fit."""
        pairs = zip(self.counts, features.T, strict=True)
        return np.column_stack([counts.reindex(column, fill_value=0) for counts, column in pairs])

    def __call__(self, features: Rows) -> Floats:
        """The numbers of rows that were not in the fit."""
        logarithms = np.log1p(self._frequencies(features))
        return np.column_stack([self.encoder.transform(features), logarithms])


@dataclass(frozen=True)
class NetworkLearner:
    """A network of `labelaudit.learning.models`, trained on clean labels; it needs torch.

    >>> from labelaudit.learning.training import TrainingSettings
    >>> x, y = np.array([[0.0], [1.0]] * 50), np.array([0, 1] * 50)
    >>> learner = NetworkLearner(TrainingSettings("linear", epochs=2))
    >>> model = learner.fit(x, y, np.random.default_rng(0))
    >>> model.predict(x).shape
    (100,)
    """

    settings: Any

    def fit(self, features: Rows, labels: Labels, rng: Generator) -> Fitted:
        """The network after training without privacy."""
        from labelaudit.learning.training import train

        split = SimpleNamespace(features=features, labels=labels)
        return train(split, None, self.settings, seed=int(rng.integers(2**31)))
