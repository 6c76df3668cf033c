"""How good an estimated eta is: its ranking, its calibration, and how to correct that.

An audit computed from an estimate is exact for an attacker who sees only the estimate, if that is
calibrated: among examples with score t a fraction t has label 1. This module measures or corrects
that, on labels that the estimate has not seen.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.special import expit, log_expit, logit, ndtr

from labelaudit import checks
from labelaudit.checks import Floats, Ints

__all__ = [
    "BetaScaling",
    "Reliability",
    "Scaling",
    "auc",
    "beta_scale",
    "brier_score",
    "log_loss",
    "reliability",
    "scores_and_labels",
    "temperature_scale",
]

# A score of exactly 0 or 1 has infinite log-odds; larger ones are replaced by this.
FARTHEST_LOG_ODDS = 15.0


def auc(labels: ArrayLike, scores: ArrayLike) -> float:
    """P(a positive example scores above a negative one), ties counting half; nan without either.

    >>> auc([0, 1, 1, 0], [0.1, 0.7, 0.7, 0.7])
    0.75
    """
    positive = np.asarray(labels) == 1
    pairs = float(positive.sum()) * float((~positive).sum())
    if not pairs:
        return math.nan
    from scipy import stats  # takes long to import

    least = positive.sum() * (positive.sum() + 1) / 2
    return float((stats.rankdata(scores)[positive].sum() - least) / pairs)


def log_loss(labels: ArrayLike, logits: ArrayLike) -> float:
    """Mean cross entropy of labels, from logits, with no probability cut off.

    >>> round(log_loss([1, 0], [0.0, -1000.0]), 6)  # half of log 2
    0.346574
    """
    values = np.asarray(logits, dtype=np.float64)
    signed = np.where(np.asarray(labels) == 1, values, -values)
    return float(-log_expit(signed).mean())


def scores_and_labels(eta: ArrayLike, labels: ArrayLike) -> tuple[Floats, NDArray[np.int64]]:
    """Scores and labels as two vectors of one length, checked.

    >>> scores_and_labels([0.2, 0.7], [False, True])[1].tolist()
    [0, 1]
    """
    scores = checks.probabilities(eta)
    truth = checks.label_bags(np.ravel(labels), 1)[:, 0]
    if scores.ndim != 1 or np.shape(labels) != scores.shape:
        raise ValueError(
            f"eta and labels must be vectors of one length, not of shapes {scores.shape}"
            f" and {np.shape(labels)}"
        )
    if not scores.size:
        raise ValueError("there must be at least one example, not 0")
    return scores, truth


# Groups of a reliability diagram over refits.
DIAGRAM_BINS = 15
# The test of eta rejects a true eta with this probability.
SIGNIFICANT = 0.05


@dataclass(frozen=True, kw_only=True)
class Reliability:
    """Bins of examples with similar scores: mean score, fraction of ones and its standard error."""

    predicted: Floats
    observed: Floats
    standard_error: Floats
    count: NDArray[np.int64]

    @property
    def error(self) -> float:
        """The expected calibration error: bins are weighted by their examples."""
        return float(np.average(np.abs(self.observed - self.predicted), weights=self.count))

    @property
    def noise(self) -> float:
        """About what `error` would be, on average, if the scores were calibrated."""
        # The mean size of a centred normal variable is sqrt(2 / pi) standard deviations.
        return float(np.average(math.sqrt(2 / math.pi) * self.standard_error, weights=self.count))


def reliability(eta: ArrayLike, labels: ArrayLike, *, bins: int = 15) -> Reliability:
    """The reliability diagram: examples sorted by score, in `bins` groups of similar size.

    Equal scores stay together, so there may be fewer groups. The standard error is that of
    calibrated scores.

    >>> diagram = reliability([0.1, 0.1, 0.8, 0.8], [0, 1, 1, 1], bins=2)
    >>> diagram.observed.tolist(), diagram.count.tolist()
    ([0.5, 1.0], [2, 2])
    """
    scores, truth = scores_and_labels(eta, labels)
    wanted = min(checks.whole_number(bins, "bins"), scores.size)
    order = np.argsort(scores, kind="stable")
    starts = order[np.arange(wanted) * scores.size // wanted]
    edges = np.unique(scores[starts])
    group = np.searchsorted(edges, scores, side="right") - 1
    count = np.bincount(group)

    def mean(values: NDArray) -> Floats:
        return np.bincount(group, values) / count

    spread = mean(scores * (1 - scores))
    return Reliability(
        predicted=mean(scores),
        observed=mean(truth),
        standard_error=np.sqrt(spread / count),
        count=count,
    )


def brier_score(eta: ArrayLike, labels: ArrayLike) -> float:
    """Mean squared distance between score and label; the true eta has the least.

    >>> brier_score([0.5, 1.0], [1, 1])
    0.125
    """
    scores, truth = scores_and_labels(eta, labels)
    return float(np.mean((scores - truth) ** 2))


@dataclass(frozen=True)
class Scaling:
    """A map of scores that keeps their order: log-odds times `slope`, plus `shift`.

    >>> Scaling(slope=0.5, shift=0.0)([0.1, 0.5, 0.9]).round(6).tolist()
    [0.25, 0.5, 0.75]
    """

    slope: float
    shift: float

    @property
    def temperature(self) -> float:
        """Above 1 the scores were overconfident, below 1 underconfident."""
        return math.inf if self.slope == 0 else 1 / self.slope

    def __call__(self, eta: ArrayLike) -> Floats:
        """The scores, mapped."""
        scores = checks.probabilities(eta)
        if self == Scaling(1.0, 0.0):
            return scores
        return np.asarray(expit(self.slope * _log_odds(scores) + self.shift))


def _log_odds(eta: Floats) -> Floats:
    return np.clip(logit(eta), -FARTHEST_LOG_ODDS, FARTHEST_LOG_ODDS)


def temperature_scale(eta: ArrayLike, labels: ArrayLike, *, shift: bool = True) -> Scaling:
    """The scaling of log-odds under which held-out labels are likeliest.

    With `shift=False` this is temperature scaling, with a shift Platt's scaling, which also
    corrects the mean. Labels count as slightly less than certain, as in Platt's, so the answer is
    always finite. The slope is at least 0.

    >>> sure = [0.01] * 10 + [0.99] * 10
    >>> scaling = temperature_scale(sure, [0] * 8 + [1] * 2 + [0] * 2 + [1] * 8)
    >>> scaling([0.01, 0.99]).round(3).tolist()
    [0.25, 0.75]
    """
    scores, truth = scores_and_labels(eta, labels)
    targets = _soft_targets(truth)
    log_odds = _log_odds(scores)
    columns = np.column_stack([log_odds, np.ones_like(log_odds)])[:, : 1 + shift]
    slope, *constant = _likeliest(columns, targets)
    if slope < 0 or np.ptp(log_odds) == 0:
        # Scores without information, or in reverse order: only the fraction of ones is left.
        slope, constant = 0.0, list(_likeliest(columns[:, 1:], targets)) if shift else []
    return Scaling(float(slope), float(sum(constant)))


@dataclass(frozen=True)
class BetaScaling:
    """A map of scores with a slope at either end: a log(eta) - b log(1 - eta) + c as log-odds.

    A score of exactly 0 or 1 stays: it claims to be certain.

    >>> BetaScaling((1.0, 1.0, 0.0))([0.2, 0.7, 1.0]).round(12).tolist()
    [0.2, 0.7, 1.0]
    """

    coefficients: tuple[float, float, float]

    def __call__(self, eta: ArrayLike) -> Floats:
        """The scores, mapped."""
        scores = checks.probabilities(eta)
        mapped = expit(_both_ends(scores) @ np.array(self.coefficients))
        return np.where((scores == 0) | (scores == 1), scores, mapped)


def _both_ends(eta: Floats) -> Floats:
    low, high = log_expit(_log_odds(eta)), log_expit(-_log_odds(eta))
    return np.column_stack([low, -high, np.ones_like(low)])


def beta_scale(eta: ArrayLike, labels: ArrayLike) -> BetaScaling:
    """Beta calibration (Kull, Silva Filho and Flach 2017): the likeliest `BetaScaling`.

    Unlike Platt's scaling it can correct the scores near 0 without changing those near 1.

    >>> scaling = beta_scale([0.5] * 10, [0] * 8 + [1] * 2)
    >>> scaling([0.5]).round(2).tolist()  # as in Platt's, slightly less certain than 0.2
    [0.23]
    """
    scores, truth = scores_and_labels(eta, labels)
    low, high, shift = _likeliest(_both_ends(scores), _soft_targets(truth)).tolist()
    return BetaScaling((low, high, shift))


def _soft_targets(truth: NDArray[np.int64]) -> Floats:
    """Labels that count as slightly less than certain, as in Platt's scaling."""
    ones = int(truth.sum())
    return np.where(truth == 1, (ones + 1) / (ones + 2), 1 / (truth.size - ones + 2))


def _likeliest(design: Floats, targets: Floats) -> Floats:
    """Coefficients of a logistic regression on soft targets, by Newton's steps with halving."""

    def loss(coefficients: Floats) -> float:
        z = design @ coefficients
        return float(np.sum(np.logaddexp(0, z) - targets * z))

    coefficients = np.zeros(design.shape[1])
    value = loss(coefficients)
    for _ in range(100):
        probability = expit(design @ coefficients)
        gradient = design.T @ (probability - targets)
        curvature = design.T @ (design * (probability * (1 - probability))[:, None])
        step = np.linalg.lstsq(curvature, gradient, rcond=None)[0]
        while (next_value := loss(coefficients - step)) > value and np.abs(step).max() > 1e-12:
            step /= 2
        if np.abs(step).max() <= 1e-10 * (1 + np.abs(coefficients).max()) or next_value > value:
            break
        coefficients, value = coefficients - step, next_value
    return coefficients


def excess_of(
    eta: Floats, labels: NDArray[np.integer], persons: Ints | None = None
) -> tuple[float, float, tuple[float, float, float, int]]:
    """One test of eta against all labels: excess, p-value, and the range where it occurs.

    Sort the records by eta and add up label minus eta. If eta is true, this sum moves like a
    Brownian motion whose time is the sum of eta (1 - eta). The distance between its highest and its
    lowest point is the largest excess over any range of eta, and the distribution of that distance
    is known (Feller 1951). The realised gain of randomized response differs from the promised one
    by such sums at either side of 1/2, so the test looks where advantages come from. Rows of one
    person may agree, so with `persons` the time is a sum of squares over persons.

    >>> excess, p_value, worst = excess_of(np.full(100, 0.5), np.repeat([0, 1], [30, 70]))
    >>> round(excess, 6), round(p_value, 4), worst
    (0.2, 0.0003, (0.5, 0.5, 50.0, 70))
    """
    order = np.argsort(eta, kind="stable")
    scores, truth = eta[order], labels[order].astype(np.float64)
    # Records with the same eta have no order among themselves: only their sum counts.
    ends = np.flatnonzero(np.r_[np.diff(scores) > 0, True])
    sums = np.r_[0.0, np.cumsum(truth - scores)[ends]]
    spread = math.sqrt(float(np.sum(scores * (1 - scores))))
    if persons is not None:
        spread = math.sqrt(float(np.sum(np.bincount(persons, labels - eta) ** 2)))
    first, last = sorted((int(sums.argmin()), int(sums.argmax())))
    start, stop = np.r_[0, ends + 1][[first, last]]
    reach = float(np.ptp(sums))
    if stop == start:
        return 0.0, 1.0, (0.0, 1.0, float(scores.sum()), int(truth.sum()))
    inside = slice(start, stop)
    promised, true = float(scores[inside].sum()), int(truth[inside].sum())
    worst = (float(scores[start]), float(scores[stop - 1]), promised, true)
    return reach / eta.size, range_p_value(reach / spread if spread else math.inf), worst


def range_p_value(reach: float) -> float:
    """The probability that a Brownian motion on [0, 1] has a range above `reach`.

    >>> round(range_p_value(2.4977), 3), range_p_value(0.0)
    (0.05, 1.0)
    """
    if reach < 0.4:
        return 1.0
    numbers = np.arange(1, 100)
    return float(np.clip(8 * np.sum(-((-1.0) ** numbers) * numbers * ndtr(-numbers * reach)), 0, 1))


class Area(NamedTuple):
    """The area under a ROC curve, with its standard error."""

    value: float
    standard_error: float


@dataclass(frozen=True)
class Curve:
    """The fraction of negatives that each positive ranks above, and the reverse for negatives.

    Their means are the area under the ROC curve. Their spread gives its error, and the error of the
    difference between two scores of the same rows (DeLong, DeLong and Clarke-Pearson).

    >>> Curve.of(np.array([0.1, 0.7, 0.7, 0.7]), np.array([0, 1, 1, 0])).area.value
    0.75
    """

    ones: Floats
    zeros: Floats

    @classmethod
    def of(cls, scores: Floats, labels: NDArray[Any]) -> Self:
        """Ties count half."""
        positive = np.asarray(labels) == 1
        ranks = stats.rankdata(scores)
        above = ranks[positive] - stats.rankdata(scores[positive])
        below = ranks[~positive] - stats.rankdata(scores[~positive])
        return cls(above / (~positive).sum(), 1 - below / positive.sum())

    def __sub__(self, other: Self) -> Self:
        """The difference of two curves over the same rows."""
        return type(self)(self.ones - other.ones, self.zeros - other.zeros)

    @property
    def area(self) -> Area:
        """The area and its standard error."""
        sides = [side for side in (self.ones, self.zeros) if side.size > 1]
        variance = sum(side.var(ddof=1) / side.size for side in sides)
        return Area(float(self.ones.mean()), math.sqrt(variance))


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """How well eta of one class fits labels it was not trained on, averaged over the refits.

    `error` is the expected calibration error in groups of similar size, `noise` that of a
    calibrated eta. `excess` is the largest difference between the ones that eta promises and the
    ones there are, over the records in any range of eta, as a fraction of all records: an advantage
    computed from eta is wrong by at most about that. `p_value` is that of the excess if eta is
    true. `worst` is the range where it occurs, with its promised and true numbers of ones.
    """

    auc: float
    brier: float
    error: float
    noise: float
    excess: float
    p_value: float
    worst: tuple[float, float, float, int]
    predicted: tuple[float, ...]
    observed: tuple[float, ...]
    standard_error: tuple[float, ...]
    count: tuple[int, ...]

    @property
    def contradicted(self) -> bool:
        """Whether the true labels contradict eta, by however little."""
        return self.p_value < SIGNIFICANT


def calibration_of(
    etas: Sequence[Floats], labels: NDArray[np.integer], persons: Ints | None = None
) -> Calibration:
    """Averages over the refits; the reliability diagram and the worst range of the first."""
    several = etas if any(eta is not etas[0] for eta in etas) else etas[:1]
    diagrams = [reliability(eta, labels, bins=DIAGRAM_BINS) for eta in several]
    excesses, p_values, worst = zip(
        *(excess_of(eta, labels, persons) for eta in several), strict=True
    )
    averages: dict[str, Sequence[float]] = {
        "auc": [Curve.of(eta, labels).area.value for eta in several],
        "brier": [brier_score(eta, labels) for eta in several],
        "error": [diagram.error for diagram in diagrams],
        "noise": [diagram.noise for diagram in diagrams],
        "excess": excesses,
        "p_value": p_values,
    }
    values: dict[str, Any] = {name: float(np.mean(each)) for name, each in averages.items()}
    for name in ("predicted", "observed", "standard_error", "count"):
        values[name] = tuple(getattr(diagrams[0], name).tolist())
    return Calibration(worst=worst[0], **values)
