"""Trainings and estimates of eta judged side by side: the tables of the chapters on real data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.metrics import roc_auc_score

from labelaudit.checks import Floats
from labelaudit.datasets.dataset import Dataset
from labelaudit.learning import calibration
from labelaudit.learning.calibration import Comparison
from labelaudit.learning.training import Settings, train
from labelaudit.mechanisms import Mechanism

Checked = Mapping[str, Mapping[str, Comparison]]


class Trial(NamedTuple):
    """What is kept of one training: how it did, and its scores on the test rows."""

    auc: float
    best_epoch: int
    scores: Floats


def trained(
    data: Dataset, mechanism: Mechanism | None, settings: Settings, *, seed: int, trials: int
) -> list[Trial]:
    """Train so many times, each with a seed of its own; models are not kept, they may be large."""
    found = []
    for own in range(seed, seed + trials):
        outcome = train(data.train, mechanism, settings, seed=own, test=data.test)
        scores = outcome.predict(data.test.features)
        found.append(Trial(outcome.auc, outcome.best_epoch, scores))
    return found


def auc_table(
    labels: ArrayLike, trials: Mapping[str, Sequence[Trial]], references: Mapping[str, ArrayLike]
) -> pd.DataFrame:
    """Mean AUC over trials with its standard error, and below it the AUC of other scores."""
    rows = {}
    for name, found in trials.items():
        aucs = pd.Series([one.auc for one in found])
        epochs = float(np.mean([one.best_epoch for one in found]))
        rows[name] = {"AUC": aucs.mean(), "standard error": aucs.sem(), "epochs kept": epochs}
    for name, score in references.items():
        rows[name] = {"AUC": roc_auc_score(labels, score)}
    return pd.DataFrame(rows).T


def grades(estimates: Mapping[str, Floats], labels: ArrayLike) -> pd.DataFrame:
    """How well each estimate is calibrated on labels it has not seen.

    `ratio` is Spiegelhalter's, and is left out for estimates whose name ends in "calibrated": where
    each fold is calibrated on another, the fits nearly force it to 0, and it says nothing.
    """
    rows, held = {}, np.asarray(labels)
    for name, eta in estimates.items():
        truth = held[: len(eta)]
        diagram = calibration.reliability(eta, truth)
        rotated = name.endswith("calibrated")
        rows[name] = {
            "mean": eta.mean(),
            "AUC": roc_auc_score(truth, eta),
            "ECE": diagram.error,
            "ECE by chance": diagram.noise,
            "Brier": calibration.brier_score(eta, truth),
            "ratio": np.nan if rotated else calibration.calibration_ratio(eta, truth),
        }
    return pd.DataFrame(rows).T


def checked(
    estimates: Mapping[str, Floats],
    labels: ArrayLike,
    mechanisms: Mapping[str, Mechanism],
    *,
    rng: np.random.Generator,
    partitions: int = 10,
) -> dict[str, dict[str, Comparison]]:
    """Plug-in beside realised advantage, for each estimate of eta and each mechanism."""
    held = np.asarray(labels)
    return {
        name: {
            kind: calibration.compare(
                eta, held[: len(eta)], mechanism, partitions=partitions, rng=rng
            )
            for kind, mechanism in mechanisms.items()
        }
        for name, eta in estimates.items()
    }


def checked_table(found: Checked) -> pd.DataFrame:
    """A line for each estimate and mechanism; a mark where the labels contradict the estimate."""
    rows = {
        (name, kind): {
            "plug-in": one.plug_in.value,
            "realised": one.realised.value,
            "error": one.difference.standard_error,
            "ratio": one.ratio,
            "warning": "!" if one.warning else "",
        }
        for name, by_mechanism in found.items()
        for kind, one in by_mechanism.items()
    }
    return pd.DataFrame(rows).T.rename_axis(["eta", "mechanism"]).infer_objects()


def warned(found: Mapping[str, Comparison]) -> tuple[list[str], list[str]]:
    """The mechanisms under which an estimate is contradicted, and those that keep silent."""
    loud = [kind for kind, one in found.items() if one.warning]
    return loud, [kind for kind in found if kind not in loud]
