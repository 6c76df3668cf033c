"""The attacker's prior: eta for every record, and whether it is calibrated."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelaudit.checks import Floats
from labelaudit.datasets import Table
from labelaudit.learning.calibration import brier_score, calibration_ratio, reliability
from labelaudit.report.intervals import Curve

# Called with a line for each step of the audit.
Progress = Callable[[str], None]
Labels = NDArray[np.integer]
FOLDS = 5
BINS = 15
# Calibration fails where the error is twice the mean error of a calibrated estimate, and larger by
# a margin that matters: an advantage changes about as much as eta does.
NOISE_FACTOR = 2.0
LEAST_MARGIN = 0.01
# It also fails where Spiegelhalter's ratio, standard normal for a true eta, is beyond this and eta
# is overconfident by an amount that matters: in a large table the ratio alone fails every model.
MOST_RATIO = 3.0
LEAST_OVERCONFIDENCE = 0.005


@dataclass(frozen=True)
class Calibration:
    """How well eta fits labels that it was not trained on, averaged over the refits.

    `noise` is the expected calibration error of a calibrated eta. `ratio` is Spiegelhalter's:
    positive where eta is overconfident, negative where it is underconfident. `overconfidence` is
    the mean distance by which eta lies too far from 1/2. Both are NaN for an eta whose folds were
    scaled on one another's labels, where the ratio has no power.
    """

    auc: float
    brier: float
    error: float
    noise: float
    ratio: float
    overconfidence: float
    predicted: tuple[float, ...]
    observed: tuple[float, ...]
    standard_error: tuple[float, ...]
    count: tuple[int, ...]

    @property
    def fails(self) -> bool:
        """Whether the audit would rest on a poor estimate."""
        most = max(NOISE_FACTOR * self.noise, self.noise + LEAST_MARGIN)
        biased = abs(self.ratio) > MOST_RATIO and abs(self.overconfidence) > LEAST_OVERCONFIDENCE
        return self.error > most or biased


@dataclass(frozen=True)
class EtaEstimates:
    """The eta of each refit; a ready-made prior is the same in all of them."""

    etas: tuple[Floats, ...]
    refitted: bool
    calibration: Calibration

    @classmethod
    def ready_made(cls, prior: Floats, labels: Labels, refits: int = 2) -> EtaEstimates:
        """A prior that needs no estimate."""
        etas = (prior,) * refits
        return cls(etas, False, calibration_of(etas, labels))

    @property
    def mean(self) -> Floats:
        """The mean over the refits, for figures."""
        return np.mean(self.etas, axis=0)


def estimate_eta(
    table: Table, refits: int, seed: int, progress: Progress = lambda line: None
) -> EtaEstimates:
    """The table's ready-made prior, or eta by cross-fitted, calibrated gradient boosting.

    >>> import pandas
    >>> import tempfile
    >>> from labelaudit.datasets import read_table
    >>> frame = pandas.DataFrame({"age": [30, 30, 60, 60] * 100, "ill": [0, 0, 1, 1] * 100})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame.to_csv(f"{folder}/survey.csv", index=False)
    ...     table = read_table(f"{folder}/survey.csv", label="ill")
    >>> estimate_eta(table, refits=2, seed=0).mean[:4].round(1).tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    if table.prior is not None:
        return EtaEstimates.ready_made(table.prior, table.labels, refits)
    from labelaudit.learning.eta import cross_fit
    from labelaudit.learning.learners import Boosting

    boosting = Boosting(categorical=tuple(np.flatnonzero(table.categorical).tolist()))
    number = itertools.count(1)

    def fit(*arguments: Any) -> Any:
        progress(f"eta: model {next(number)} of {refits * FOLDS}")
        return boosting.fit(*arguments)

    learner = SimpleNamespace(fit=fit)
    etas = tuple(
        cross_fit(
            table.features, table.labels, learner, folds=FOLDS, rng=np.random.default_rng(stream)
        ).eta
        for stream in np.random.SeedSequence([seed, 1]).spawn(refits)
    )
    return EtaEstimates(etas, True, calibration_of(etas, table.labels, scaled=True))


def distinct(etas: Sequence[Floats]) -> Sequence[Floats]:
    """The etas without repetition: a ready-made prior is the same in every refit."""
    return etas if any(eta is not etas[0] for eta in etas) else etas[:1]


def at_stake(etas: Sequence[Floats], labels: Labels) -> float:
    """The most that any release can add: how often the attacker is wrong without one.

    By eta or on the true labels, whichever is more, averaged over the refits.

    >>> at_stake([np.array([0.1, 0.2, 0.3, 0.4])], np.array([0, 0, 0, 1]))
    0.25
    """
    expected = np.mean([np.minimum(eta, 1 - eta).mean() for eta in etas])
    realised = np.mean([((eta >= 0.5) != (labels == 1)).mean() for eta in etas])
    return float(max(expected, realised))


def overconfidence(eta: Floats, labels: Labels) -> float:
    """The mean distance by which eta lies too far from 1/2, weighted by its own distance.

    >>> overconfidence(np.full(10, 0.9), np.repeat([0, 1], [2, 8]).astype(np.uint8)).__round__(12)
    0.1
    """
    distance = 1 - 2 * eta
    total = float(np.abs(distance).sum())
    return float(((labels - eta) * distance).sum()) / total if total else 0.0


def calibration_of(
    etas: tuple[Floats, ...], labels: Labels, *, scaled: bool = False
) -> Calibration:
    """Averages over the refits, and the reliability diagram of the first.

    `scaled` says that folds were scaled on one another's labels.
    """
    several = distinct(etas)
    diagrams = [reliability(eta, labels, bins=BINS) for eta in several]

    averages: dict[str, list[float]] = {
        "auc": [Curve.of(eta, labels).area.value for eta in several],
        "brier": [brier_score(eta, labels) for eta in several],
        "error": [diagram.error for diagram in diagrams],
        "noise": [diagram.noise for diagram in diagrams],
        "ratio": [math.nan if scaled else calibration_ratio(eta, labels) for eta in several],
        "overconfidence": [math.nan if scaled else overconfidence(eta, labels) for eta in several],
    }
    values: dict[str, Any] = {name: float(np.mean(each)) for name, each in averages.items()}
    for name in ("predicted", "observed", "standard_error", "count"):
        values[name] = tuple(getattr(diagrams[0], name).tolist())
    return Calibration(**values)
