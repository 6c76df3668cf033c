"""Estimates of eta in which no example's label has a part in its own estimate.

`cross_fit` turns any learner into a calibrated, cross-fitted eta. What an audit computes from it is
the advantage over an attacker who sees this model's score.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelaudit import checks
from labelaudit.checks import Floats
from labelaudit.learning.calibration import Scaling, temperature_scale
from labelaudit.learning.learners import Fitted, Learner

__all__ = ["CrossFitted", "cross_fit", "folds_of"]


@dataclass(frozen=True, kw_only=True)
class CrossFitted:
    """An estimate of eta for each row, by a model and a scaling that never saw its label."""

    eta: Floats
    raw: Floats  # before scaling
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
    persons: ArrayLike | None = None,
    rng: np.random.Generator,
) -> CrossFitted:
    """eta for every row, cross-fitted and calibrated on a third fold.

    Each class is spread evenly over the folds. Fold f is predicted by a model trained on all folds
    but f and f + 1, whose scores are scaled to the labels of fold f + 1. Without `calibrate` the
    model is trained on all folds but f. `persons` numbers the person of each row from 0: all rows
    of a person are in one fold.

    >>> from labelaudit.learning.learners import Boosting
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal((600, 2))
    >>> y = rng.random(600) < 1 / (1 + np.exp(-2 * x[:, 0]))
    >>> estimate = cross_fit(x, y, Boosting(iterations=40), rng=rng)
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
    codes = np.arange(len(rows)) if persons is None else np.asarray(persons)
    positive = np.zeros(int(codes.max(initial=0)) + 1, np.int64)
    np.maximum.at(positive, codes, truth)
    fold = folds_of(positive, number, checks.generator(rng))[codes]
    raw, eta = np.empty(len(rows)), np.empty(len(rows))
    fitted: list[tuple[Fitted, Scaling]] = []
    for index in range(number):
        predicted = fold == index
        scaled = calibrate & (fold == (index + 1) % number)
        model = learner.fit(rows[~(predicted | scaled)], truth[~(predicted | scaled)], rng)
        scaling = Scaling(1.0, 0.0)
        if calibrate:
            scaling = temperature_scale(model.predict(rows[scaled]), truth[scaled])
        raw[predicted] = model.predict(rows[predicted])
        eta[predicted] = scaling(raw[predicted])
        fitted.append((model, scaling))
    models, scalings = zip(*fitted, strict=True)
    return CrossFitted(eta=eta, raw=raw, fold=fold, models=models, scalings=scalings)


def folds_of(labels: NDArray[np.int64], number: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The fold of each row; each class is spread evenly over the folds.

    >>> np.bincount(folds_of(np.array([0, 0, 0, 0, 1, 1]), 2, np.random.default_rng(0))).tolist()
    [3, 3]
    """
    counts = np.bincount(labels, minlength=2)
    if counts.min() < number:
        raise ValueError(
            f"{number} folds need at least {number} examples of each label, but there are"
            f" {counts[0]} zeros and {counts[1]} ones"
        )
    rows = np.concatenate([rng.permutation(np.flatnonzero(labels == label)) for label in (0, 1)])
    fold = np.empty(labels.size, np.int64)
    fold[rows] = np.arange(rows.size) % number
    return fold
