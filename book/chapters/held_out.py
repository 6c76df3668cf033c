"""Estimates of eta for the test rows of a data set, whose labels no model sees."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from labelaudit import checks
from labelaudit.checks import Floats
from labelaudit.datasets import Dataset
from labelaudit.learning.calibration import temperature_scale
from labelaudit.learning.eta import folds_of
from labelaudit.learning.learners import Fitted, Labels, Learner, Rows


@dataclass(frozen=True)
class HeldOut:
    """An estimate of eta for each test row, by a model and a scaling that saw no test label."""

    eta: Floats
    raw: Floats  # before scaling
    temperature: float


def held_out_eta(data: Dataset, learner: Learner, rng: Generator) -> HeldOut:
    """eta of the test rows: trained on four fifths of the training rows, calibrated on the others.

    >>> from labelaudit.datasets import load
    >>> from labelaudit.learning.learners import Boosting
    >>> fair = load("fair", train_rows=500)
    >>> estimate = held_out_eta(fair, Boosting(iterations=10), np.random.default_rng(0))
    >>> estimate.eta.shape, bool(abs(estimate.eta.mean() - fair.test.labels.mean()) < 0.05)
    ((2122,), True)
    """
    labels = np.asarray(data.train.labels, np.int64)
    scaled = folds_of(labels, 5, checks.generator(rng)) == 0
    features = np.asarray(data.train.features)
    model = learner.fit(features[~scaled], labels[~scaled], rng)
    scaling = temperature_scale(model.predict(features[scaled]), labels[scaled])
    raw = model.predict(data.test.features)
    return HeldOut(scaling(raw), raw, scaling.temperature)


@dataclass(frozen=True)
class Neighbours:
    """The fraction of ones among the nearest examples, in standardised features.

    One more neighbour with the mean label is added, so that no estimate is 0 or 1.
    """

    neighbours: int = 100

    def __post_init__(self) -> None:
        checks.whole_number(self.neighbours, "neighbours")

    def fit(self, features: Rows, labels: Labels, rng: Generator) -> Fitted:
        """The examples, standardised and indexed; nothing is random."""
        from sklearn.neighbors import NearestNeighbors
        from sklearn.preprocessing import StandardScaler

        _check_measured(features)
        if len(labels) < self.neighbours:
            raise ValueError(
                f"{self.neighbours} neighbours need as many training rows, not {len(labels)}"
            )
        scaler = StandardScaler().fit(features)
        index = NearestNeighbors(n_neighbors=self.neighbours, algorithm="brute")
        index.fit(scaler.transform(features))

        def predict(features: ArrayLike) -> Floats:
            rows = np.asarray(features)
            _check_measured(rows)
            nearest = index.kneighbors(scaler.transform(rows), return_distance=False)
            return (labels[nearest].sum(axis=1) + labels.mean()) / (self.neighbours + 1)

        return cast(Fitted, SimpleNamespace(predict=predict))


def _check_measured(features: Rows) -> None:
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
