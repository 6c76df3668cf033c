"""What the attacker believes beforehand: eta for every record, and whether to trust it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelaudit.checks import Floats
from labelaudit.datasets import Table
from labelaudit.learning.calibration import (
    auc,
    brier_score,
    calibration_ratio,
    reliability,
)
from labelaudit.report.plan import check_labels

Say = Callable[[str], None]
FOLDS = 5
BINS = 15
# Calibration fails where the error is twice what chance gives a calibrated estimate, and by a
# margin that matters: an advantage moves about as much as eta does.
CHANCE_FACTOR = 2.0
LEAST_MARGIN = 0.01
# It fails as well where Spiegelhalter's ratio, standard normal for a true eta, is beyond this, and
# eta leans so far that it matters: in a large table the ratio alone finds fault with every model.
MOST_RATIO = 3.0
LEAST_LEAN = 0.005


@dataclass(frozen=True)
class Calibration:
    """How eta fares on labels it has not seen, averaged over the refits.

    `noise` is what the expected calibration error would be by chance, were eta calibrated. `ratio`
    is Spiegelhalter's: positive where eta is too sure of itself, negative where not sure enough.
    `lean` is by how much, on average, eta lies too far from 1/2. Both are NaN for an eta whose
    folds were scaled on one another's labels, of which the ratio is not asked.
    """

    auc: float
    brier: float
    error: float
    noise: float
    ratio: float
    lean: float
    predicted: tuple[float, ...]
    observed: tuple[float, ...]
    standard_error: tuple[float, ...]
    count: tuple[int, ...]

    @property
    def fails(self) -> bool:
        """Whether the audit would lean on a poor estimate."""
        margin = max(CHANCE_FACTOR * self.noise, self.noise + LEAST_MARGIN)
        leans = abs(self.ratio) > MOST_RATIO and abs(self.lean) > LEAST_LEAN
        return self.error > margin or leans


@dataclass(frozen=True)
class Beliefs:
    """One eta for each refit; a ready-made prior is the same every time."""

    etas: tuple[Floats, ...]
    refitted: bool
    calibration: Calibration

    @property
    def mean(self) -> Floats:
        """The mean over the refits, for pictures."""
        return np.mean(self.etas, axis=0)


def believe(table: Table, refits: int, seed: int, say: Say = lambda line: None) -> Beliefs:
    """The table's ready-made prior, or eta by cross-fitted, calibrated gradient boosting.

    >>> import pandas
    >>> import tempfile
    >>> from labelaudit.datasets import read_table
    >>> frame = pandas.DataFrame({"age": [30, 30, 60, 60] * 100, "ill": [0, 0, 1, 1] * 100})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame.to_csv(f"{folder}/survey.csv", index=False)
    ...     table = read_table(f"{folder}/survey.csv", label="ill")
    >>> believe(table, refits=2, seed=0).mean[:4].round(1).tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    check_labels(table)
    if table.prior is not None:
        etas = (table.prior,) * refits
    else:
        from labelaudit.learning.eta import cross_fit
        from labelaudit.learning.learners import Boosting

        columns = tuple(int(column) for column in np.flatnonzero(table.categorical))
        learner = _Told(Boosting(categorical=columns), refits * FOLDS, say)
        streams = np.random.SeedSequence([seed, 1]).spawn(refits)
        etas = tuple(
            cross_fit(
                table.features, table.labels, learner, folds=FOLDS, rng=np.random.default_rng(one)
            ).eta
            for one in streams
        )
    refitted = table.prior is None
    return Beliefs(etas, refitted, calibration_of(etas, table.labels, scaled=refitted))


class _Told:
    """A learner that says how far it is."""

    def __init__(self, learner: Any, total: int, say: Say) -> None:
        self.learner, self.total, self.say, self.done = learner, total, say, 0

    def fit(self, features: Any, labels: Any, rng: np.random.Generator) -> Any:
        """Say so, then train."""
        self.done += 1
        self.say(f"eta: model {self.done} of {self.total}")
        return self.learner.fit(features, labels, rng)


def at_stake(etas: Sequence[Floats], labels: NDArray[np.integer]) -> float:
    """The most that any release can add: how often the attacker is wrong without one.

    By eta or on the true labels, whichever is more, averaged over the refits.

    >>> at_stake([np.array([0.1, 0.2, 0.3, 0.4])], np.array([0, 0, 0, 1]))
    0.25
    """
    promised = np.mean([np.minimum(eta, 1 - eta).mean() for eta in etas])
    realised = np.mean([((eta >= 0.5) != (labels == 1)).mean() for eta in etas])
    return float(max(promised, realised))


def lean_of(eta: Floats, labels: NDArray[np.uint8]) -> float:
    """By how much eta lies too far from 1/2, on average, those far from it counting for more.

    >>> lean_of(np.full(10, 0.9), np.repeat([0, 1], [2, 8]).astype(np.uint8)).__round__(12)
    0.1
    """
    away = 1 - 2 * eta
    total = float(np.abs(away).sum())
    return float(((labels - eta) * away).sum()) / total if total else 0.0


def calibration_of(
    etas: tuple[Floats, ...], labels: NDArray[np.uint8], *, scaled: bool = False
) -> Calibration:
    """Averages over the refits, and the reliability diagram of the first.

    `scaled` says that folds were scaled on one another's labels.
    """
    distinct = etas if any(eta is not etas[0] for eta in etas) else etas[:1]
    diagrams = [reliability(eta, labels, bins=BINS) for eta in distinct]
    first = diagrams[0]
    return Calibration(
        auc=float(np.mean([auc(labels, eta) for eta in distinct])),
        brier=float(np.mean([brier_score(eta, labels) for eta in distinct])),
        error=float(np.mean([diagram.error for diagram in diagrams])),
        noise=float(np.mean([diagram.noise for diagram in diagrams])),
        ratio=_unless(scaled, [calibration_ratio(eta, labels) for eta in distinct]),
        lean=_unless(scaled, [lean_of(eta, labels) for eta in distinct]),
        predicted=tuple(first.predicted.tolist()),
        observed=tuple(first.observed.tolist()),
        standard_error=tuple(first.standard_error.tolist()),
        count=tuple(first.count.tolist()),
    )


def _unless(scaled: bool, values: list[float]) -> float:
    return math.nan if scaled else float(np.mean(values))


def calibration_ratio_said(beliefs: Beliefs) -> str:
    """What Spiegelhalter's ratio tells of a ready-made eta, and why it tells nothing of another.

    >>> import numpy as np
    >>> from labelaudit.report.beliefs import Beliefs, calibration_of
    >>> etas, labels = (np.full(100, 0.75),), np.tile([0, 1], 50).astype(np.uint8)
    >>> calibration_ratio_said(Beliefs(etas, False, calibration_of(etas, labels)))
    "Spiegelhalter's ratio is 5.8, and eta lies 0.2500 too far from 1/2 on average."
    """
    if beliefs.refitted:
        return (
            "Spiegelhalter's ratio is not asked: each fold was scaled on the labels of another,"
            " which pulls the ratio over all folds to 0 whatever eta is worth."
        )
    ratio, lean = beliefs.calibration.ratio, beliefs.calibration.lean
    return (
        f"Spiegelhalter's ratio is {ratio:.1f}, and eta lies {abs(lean):.4f} too"
        f" {'far from' if lean > 0 else 'near to'} 1/2 on average."
    )


def calibration_test(refitted: bool) -> str:
    """What an estimate of eta must pass, in words.

    >>> calibration_test(refitted=True)
    'an error of at most 2 times what chance gives, or no more than 0.01 above it.'
    """
    error = (
        f"an error of at most {CHANCE_FACTOR:g} times what chance gives, or no more than"
        f" {LEAST_MARGIN:g} above it"
    )
    if refitted:
        return f"{error}."
    return (
        f"{error}; and a ratio between -{MOST_RATIO:g} and {MOST_RATIO:g}, where a true eta gives a"
        f" standard normal number, or a distance of at most {LEAST_LEAN:g}."
    )
