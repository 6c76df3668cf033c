"""The tables that the chapters on Higgs and KDD12 share: trainings, and estimates of eta."""

from collections.abc import Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.linear_model import RidgeCV
from sklearn.preprocessing import StandardScaler

from book.chapters import figures
from book.chapters.compared import Comparison, calibration_ratio, compare
from labelaudit.checks import Floats, Ints
from labelaudit.datasets.dataset import Dataset
from labelaudit.learning import calibration
from labelaudit.learning.calibration import auc
from labelaudit.learning.training import TrainingSettings, train
from labelaudit.mechanisms import LabelProportions, Mechanism


class TrainingScores(NamedTuple):
    """What is kept of one training: its AUC, its best epoch, its scores on the test rows."""

    auc: float
    best_epoch: int
    scores: Floats


def trained(
    data: Dataset,
    mechanism: Mechanism | None,
    settings: TrainingSettings,
    *,
    seed: int,
    trials: int,
) -> list[TrainingScores]:
    """Train `trials` times, each with its own seed; models may be large and are not kept."""
    trainings = []
    for trial_seed in range(seed, seed + trials):
        outcome = train(data.train, mechanism, settings, seed=trial_seed, test=data.test)
        scores = outcome.predict(data.test.features)
        trainings.append(TrainingScores(outcome.auc, outcome.best_epoch, scores))
    return trainings


def auc_table(
    labels: ArrayLike,
    trainings: Mapping[str, Sequence[TrainingScores]],
    references: Mapping[str, ArrayLike],
) -> pd.DataFrame:
    """Mean AUC over trials with its standard error, and below it the AUC of other scores."""
    rows = {}
    for name, trials in trainings.items():
        aucs = pd.Series([trial.auc for trial in trials])
        epochs = float(np.mean([trial.best_epoch for trial in trials]))
        rows[name] = {"AUC": aucs.mean(), "standard error": aucs.sem(), "epochs kept": epochs}
    for name, score in references.items():
        rows[name] = {"AUC": auc(labels, score)}
    return pd.DataFrame(rows).T


def training_tables(
    data: Dataset,
    mechanisms: Mapping[str, Mechanism | None],
    settings: TrainingSettings,
    references: Mapping[str, ArrayLike],
    *,
    seed: int,
    trials: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The AUC of trainings with each mechanism beside other scores, and the curves of the first."""
    trainings = {
        name: trained(data, mechanism, settings, seed=seed, trials=trials)
        for name, mechanism in mechanisms.items()
    }
    curves = {**references} | {name: first.scores for name, (first, *_) in trainings.items()}
    scores = auc_table(data.test.labels, trainings, references)
    return scores.assign(trainings=trials), figures.roc_table(data.test.labels, curves)


def network_against_ridge(
    data: Dataset,
    bag_sizes: Sequence[int],
    settings: TrainingSettings,
    *,
    seed: int,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Test AUC by bag size of a network and of ridge regression, on bags and on as many rows.

    Ridge regresses a bag's released proportion on the averages of its measurements.
    """
    features, labels = np.asarray(data.train.features), np.asarray(data.train.labels)
    scaler = StandardScaler().fit(features)

    def ridge_auc(members: Ints) -> float:
        k = members.shape[1]
        proportions = LabelProportions(k).release(labels[members], rng)
        # Times the root of the bag size, means spread like single rows: one range serves.
        means = np.sqrt(k) * scaler.transform(features)[members].mean(axis=1)
        line = RidgeCV(alphas=np.geomspace(0.01, 1e4, 13)).fit(means, proportions).coef_
        return float(auc(data.test.labels, scaler.transform(data.test.features) @ line))

    @cache
    def network_auc(count: int, k: int) -> float:
        split = SimpleNamespace(features=features[:count], labels=labels[:count])
        return train(split, LabelProportions(k), settings, seed=seed, test=data.test).auc

    rows = {}
    for k in dict.fromkeys(bag_sizes):
        members = rng.permutation(len(labels) // k * k).reshape(-1, k)
        rows[k] = {
            "network on bags": network_auc(len(labels), k),
            "ridge on bag means": ridge_auc(members),
            "network on as many single rows": network_auc(len(members), 1),
            "ridge on as many single rows": ridge_auc(members[:, :1]),
        }
    return pd.DataFrame(rows).T.rename_axis("bag size")


def grades(estimates: Mapping[str, Floats], labels: ArrayLike) -> pd.DataFrame:
    """How well each estimate is calibrated on labels it has not seen; `ratio` is Spiegelhalter's.

    No label may have a part in the calibration: where folds calibrate one another, the fits nearly
    force the ratio to 0.
    """
    rows = {}
    for name, eta in estimates.items():
        truth = np.asarray(labels)[: len(eta)]
        diagram = calibration.reliability(eta, truth)
        rows[name] = {
            "mean": eta.mean(),
            "AUC": auc(truth, eta),
            "ECE": diagram.error,
            "ECE if calibrated": diagram.noise,
            "Brier": calibration.brier_score(eta, truth),
            "ratio": calibration_ratio(eta, truth),
        }
    return pd.DataFrame(rows).T


def reliability_table(
    estimates: Mapping[str, Floats], labels: ArrayLike, *, bins: int
) -> pd.DataFrame:
    """The points of a reliability diagram: a row for each estimate and group of rows."""
    points = []
    for name, eta in estimates.items():
        diagram = calibration.reliability(eta, labels, bins=bins)
        groups = zip(diagram.predicted, diagram.observed, diagram.standard_error, strict=True)
        points += [(name, *group) for group in groups]
    columns = ["estimate", "score", "fraction of ones", "standard error"]
    return pd.DataFrame(points, columns=columns)


def checked(
    estimates: Mapping[str, Floats],
    labels: ArrayLike,
    mechanisms: Mapping[str, Mechanism],
    *,
    rng: np.random.Generator,
) -> dict[str, dict[str, Comparison]]:
    """Plug-in beside realised advantage, for each estimate of eta and each mechanism."""
    compared: dict[str, dict[str, Comparison]] = {}
    for name, eta in estimates.items():
        truth = np.asarray(labels)[: len(eta)]
        compared[name] = {
            kind: compare(eta, truth, mechanism, partitions=10, rng=rng)
            for kind, mechanism in mechanisms.items()
        }
    return compared


def checked_table(comparisons: Mapping[str, Mapping[str, Comparison]]) -> pd.DataFrame:
    """A row for each estimate and mechanism; a mark where the labels contradict the estimate."""
    rows = {
        (name, kind): {
            "plug-in": comparison.plug_in.value,
            "realised": comparison.realised.value,
            "error": comparison.difference.standard_error,
            "ratio": comparison.ratio,
            "warning": "!" if comparison.warning else "",
        }
        for name, by_mechanism in comparisons.items()
        for kind, comparison in by_mechanism.items()
    }
    return pd.DataFrame(rows).T.rename_axis(["eta", "mechanism"]).infer_objects()


def warned(comparisons: Mapping[str, Comparison]) -> tuple[list[str], list[str]]:
    """The mechanisms with a warning for an estimate, and those without."""
    loud = [kind for kind, comparison in comparisons.items() if comparison.warning]
    return loud, [kind for kind in comparisons if kind not in loud]
