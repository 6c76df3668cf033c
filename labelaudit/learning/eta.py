"""Estimates of eta in which no example's label has a part in its own estimate.

`cross_fit` turns any learner into a calibrated, cross-fitted eta. What an audit computes from it is
the advantage over an attacker who sees this model's score. `chapter_priors` gives the distributions
of eta that a chapter's parameter names, simulated or estimated on a data set.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelaudit import checks
from labelaudit.checks import Floats
from labelaudit.datasets import Dataset, load_or_standin
from labelaudit.learning.calibration import Scaling, temperature_scale
from labelaudit.learning.learners import Boosting, Fitted, Learner
from labelaudit.priors import Empirical, Prior, named


@dataclass(frozen=True)
class CrossFitted:
    """An estimate of eta for each row, by a model and a scaling that never saw its label.

    `raw` is the model's score before scaling.
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
    persons: ArrayLike | None = None,
    rng: np.random.Generator,
) -> CrossFitted:
    """eta for every row, cross-fitted and calibrated on a third fold.

    Each class is spread evenly over the folds. Fold f is predicted by a model trained on all folds
    but f and f + 1, whose scores are scaled to the labels of fold f + 1. Without `calibrate` the
    model is trained on all folds but f. `persons` numbers the person of each row from 0: all rows
    of a person are in one fold.

    >>> import numpy as np
    >>> from labelaudit.learning.learners import Neighbours
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
    codes = np.arange(len(rows)) if persons is None else np.asarray(persons)
    positive = np.zeros(int(codes.max(initial=0)) + 1, np.int64)
    np.maximum.at(positive, codes, truth)
    fold = _folds(positive, number, checks.generator(rng))[codes]
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
    return CrossFitted(eta, raw, fold, models, scalings)


def _folds(labels: NDArray[np.int64], number: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The fold of each row; each class is spread evenly over the folds."""
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


def estimated_priors(data: Dataset, learner: Learner, rng: np.random.Generator) -> Empirical:
    """The distribution of eta in a data set: every training row's cross-fitted estimate.

    Where negatives were thinned, estimates are corrected and rows drawn again by their weight, so
    that the distribution is that of the data before thinning.

    >>> import numpy as np
    >>> from labelaudit.datasets import load
    >>> fair = load("fair", train_rows=300)
    >>> priors = estimated_priors(fair, Boosting(iterations=10), np.random.default_rng(0))
    >>> priors.values.size, bool(abs(priors.mean - fair.train.labels.mean()) < 0.05)
    (300, True)
    """
    part, weights = data.train, data.train.weights
    eta = data.correct_eta(cross_fit(part.features, part.labels, learner, rng=rng).eta)
    if weights is not None:
        eta = rng.choice(eta, eta.size, p=weights / weights.sum())
    return Empirical(eta)


@dataclass(frozen=True)
class ChapterPriors:
    """Prior distributions by name, in the order given, and where each of them is from."""

    priors: dict[str, Prior]
    sources: dict[str, str]

    @property
    def titles(self) -> dict[str, str]:
        """The sources in lines short enough for the title of a panel."""
        return {
            name: source.replace(", ", "\n").replace("estimated on a ", "")
            for name, source in self.sources.items()
        }

    @property
    def caption(self) -> str:
        """The sources in one line."""
        return "; ".join(self.sources.values())


def chapter_priors(names: Iterable[str], *, train_rows: int, seed: int) -> ChapterPriors:
    r"""The distributions that a chapter's parameter names, each of them once.

    A data set's is that of its priors, estimated by boosted trees; `priors.named` has the others,
    which are simulated.

    >>> chosen = chapter_priors(["uniform", "uniform"], train_rows=0, seed=0)
    >>> chosen.priors, chosen.titles
    ({'uniform': Beta(a=1.0, b=1.0)}, {'uniform': 'uniform\nsimulated'})
    """
    chosen = ChapterPriors({}, {})
    for name in dict.fromkeys(names):
        if name in ("higgs", "kdd12"):
            data = load_or_standin(name, train_rows=train_rows)
            prior: Prior = estimated_priors(data, Boosting(), np.random.default_rng(seed))
            source = "estimated" + " on a simulated stand-in" * data.simulated
        else:
            prior, source = named(name), "simulated"
        chosen.priors[name], chosen.sources[name] = prior, f"{name}, {source}"
    return chosen
