"""The tables that the chapters on Higgs and KDD12 share: trainings, and estimates of eta."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from book.chapters.compared import Comparison, calibration_ratio, compare
from labelaudit.checks import Floats
from labelaudit.datasets.dataset import Dataset
from labelaudit.learning import calibration
from labelaudit.learning.calibration import auc
from labelaudit.learning.training import TrainingSettings, train
from labelaudit.mechanisms import Mechanism


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
