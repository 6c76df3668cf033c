"""The attacker's prior: eta for every record, and tests of it against the true labels."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from labelaudit.auditing.intervals import Curve, Measured, over_bags
from labelaudit.auditing.table import Table
from labelaudit.checks import Floats, Ints
from labelaudit.learning.calibration import beta_scale, brier_score, reliability

# Called with a line for each step of the audit.
Progress = Callable[[str], None]
Labels = NDArray[np.integer]
FOLDS = 5
BINS = 15
LEARNERS = ("boosting", "logistic", "network")
# The most records in a batch of the network, which holds whole bags.
MOST_IN_BATCH = 512
NETWORK: dict[str, Any] = {
    "model": "small", "learning_rate": 3e-3, "batch_size": MOST_IN_BATCH, "epochs": 20
}  # fmt: skip
# The most values of a category, the frequent ones first, that get a column of a linear model.
LEVEL_COLUMNS = 10
# The one test of eta rejects a true eta with this probability.
SIGNIFICANT = 0.05
# A contradiction matters where it is larger than this fraction of what the target allows.
MATTERS = 0.1


@dataclass(frozen=True)
class Calibration:
    """How well eta fits labels that it was not trained on, averaged over the refits.

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

    def wrong_by(self, limit: float) -> bool:
        """Whether the labels contradict eta by more than `limit`."""
        return self.contradicted and self.excess > limit


@dataclass(frozen=True)
class EtaEstimates:
    """The eta of each refit; a ready-made prior is the same in all of them."""

    etas: tuple[Floats, ...]
    refitted: bool
    calibration: Calibration
    recalibrated: bool = False

    @classmethod
    def ready_made(
        cls, prior: Floats, labels: Labels, refits: int = 2, persons: Ints | None = None
    ) -> Self:
        """A prior that needs no estimate."""
        etas = (prior,) * refits
        return cls(etas, False, calibration_of(etas, labels, persons))

    @property
    def mean(self) -> Floats:
        """The mean over the refits, for figures."""
        return np.mean(self.etas, axis=0)

    def recalibrate(self, labels: Labels, seed: int, persons: Ints | None = None) -> Self:
        """Scale every eta to the labels once more, each fold on the labels of the others.

        >>> labels = np.tile([0, 0, 0, 1], 500)
        >>> estimates = EtaEstimates.ready_made(np.full(2000, 0.5), labels)
        >>> bool(abs(estimates.recalibrate(labels, 0).mean - 0.25).max() < 0.01)
        True
        """
        codes = np.arange(labels.size) if persons is None else persons
        fold = (np.random.default_rng([seed, 9]).permutation(int(codes.max()) + 1) % FOLDS)[codes]
        scaled = []
        for eta in distinct(self.etas):
            scaled.append(eta.copy())
            for index in range(FOLDS):
                kept = fold == index
                scaled[-1][kept] = beta_scale(eta[~kept], labels[~kept])(eta[kept])
        etas = tuple(scaled) if len(scaled) > 1 else tuple(scaled) * len(self.etas)
        calibration = calibration_of(etas, labels, persons)
        return replace(self, etas=etas, calibration=calibration, recalibrated=True)


def estimate_eta(
    table: Table,
    refits: int,
    seed: int,
    progress: Progress = lambda line: None,
    learners: Sequence[str] = ("boosting",),
) -> EtaEstimates:
    """The table's ready-made prior, or eta by cross-fitted, calibrated gradient boosting.

    With several learners the refits take turns, each at least once, so that intervals include how
    they differ.

    >>> import pandas
    >>> from labelaudit.auditing.table import read_table
    >>> frame = pandas.DataFrame({"age": [30, 30, 60, 60] * 100, "ill": [0, 0, 1, 1] * 100})
    >>> table = read_table(frame, label="ill")
    >>> estimate_eta(table, refits=2, seed=0).mean[:4].round(1).tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    if table.prior is not None:
        return EtaEstimates.ready_made(table.prior, table.labels, refits, table.persons)
    from labelaudit.learning.eta import cross_fit

    refits = max(refits, len(learners))
    number = itertools.count(1)
    options: dict[str, Any] = {"folds": FOLDS, "persons": table.persons}
    streams = map(np.random.default_rng, np.random.SeedSequence([seed, 1]).spawn(refits))
    etas = []
    for name, rng in zip(itertools.cycle(learners), streams, strict=False):
        features, learner = _learner(name, table)

        def fit(*arguments: Any, learner: Any = learner, name: str = name) -> Any:
            progress(f"eta: model {next(number)} of {refits * FOLDS}, {name}")
            return learner.fit(*arguments)

        fitting = SimpleNamespace(fit=fit)
        etas.append(cross_fit(features, table.labels, fitting, **options, rng=rng).eta)
    return EtaEstimates(tuple(etas), True, calibration_of(tuple(etas), table.labels, table.persons))


def class_etas(
    table: Table, codes: Ints, refits: int, seed: int, progress: Progress, learners: Sequence[str]
) -> tuple[tuple[Floats, ...], list[Calibration]]:
    """P(class) for each row and refit, and a test of each class.

    One model for each class against the rest, scaled to sum to 1.
    """
    estimates = []
    for number in range(int(codes.max()) + 1):
        against_rest = replace(table, labels=(codes == number).astype(np.uint8))
        progress(f"class {number + 1} of {int(codes.max()) + 1}")
        estimates.append(estimate_eta(against_rest, refits, seed, progress, learners))
    refitted = zip(*(each.etas for each in estimates), strict=True)
    stacked = [np.stack(etas, axis=1) for etas in refitted]
    scaled = tuple(etas / etas.sum(axis=1, keepdims=True) for etas in stacked)
    return scaled, [each.calibration for each in estimates]


def _learner(name: str, table: Table) -> tuple[NDArray[Any], Any]:
    """One of `LEARNERS`, and the features as it takes them."""
    from labelaudit.learning.learners import Boosting, NetworkLearner

    if name == "boosting":
        categorical = tuple(np.flatnonzero(table.categorical).tolist())
        return table.features, Boosting(categorical=categorical)
    matrix = design(table, np.arange(len(table)))[:, 1:].astype(np.float32)
    if name == "network":
        from labelaudit.learning.training import TrainingSettings

        return matrix, NetworkLearner(TrainingSettings(**NETWORK))
    from sklearn.linear_model import LogisticRegression

    def fit(features: Floats, labels: Labels, rng: np.random.Generator) -> Any:
        model = LogisticRegression(max_iter=500).fit(features, labels)
        return SimpleNamespace(predict=lambda rows: model.predict_proba(rows)[:, 1])

    return matrix, SimpleNamespace(fit=fit)


def design(table: Table, rows: Ints) -> Floats:
    """Standardised columns for a linear model: numbers, marks of missing ones, frequent levels."""
    columns: list[Floats] = []
    for index, column in enumerate(table.columns):
        values = table.features[rows, index].astype(np.float64)
        missing = np.isnan(values)
        if column.categorical:
            levels = range(min(len(column.levels), LEVEL_COLUMNS))
            columns += [(values == level).astype(float) for level in levels]
        else:
            known = values[~missing]
            columns.append(np.where(missing, known.mean() if known.size else 0.0, values))
        if missing.any():
            columns.append(missing.astype(float))
    matrix = np.column_stack(columns)
    spread = matrix.std(axis=0)
    kept = spread > 0
    matrix = (matrix[:, kept] - matrix[:, kept].mean(axis=0)) / spread[kept]
    # Extreme values would otherwise dominate the sums of x y.
    return np.column_stack([np.ones(len(matrix)), np.clip(matrix, -6, 6)])


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


def calibration_of(
    etas: tuple[Floats, ...], labels: Labels, persons: Ints | None = None
) -> Calibration:
    """Averages over the refits; the reliability diagram and the worst range of the first."""
    several = distinct(etas)
    diagrams = [reliability(eta, labels, bins=BINS) for eta in several]
    tests = [excess_of(eta, labels, persons) for eta in several]
    excesses, p_values, worst = zip(*tests, strict=True)
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


def excess_of(
    eta: Floats, labels: Labels, persons: Ints | None = None
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


@dataclass(frozen=True)
class BagFacts:
    """The table's own bags. `dispersion` is 1 where labels are independent given eta."""

    bags: int
    smallest: int
    median: float
    largest: int
    of_one_record: int
    of_one_label: int
    expected_of_one_label: float
    dispersion: float
    dispersion_error: float

    @property
    def move_together(self) -> bool:
        """Whether labels in a bag agree more than eta explains, by three standard errors."""
        return self.dispersion > 1 + 3 * self.dispersion_error


def bag_facts(bags: Ints, labels: Labels, eta: Floats) -> BagFacts:
    """Sizes, bags whose labels are all equal, and whether labels agree more than eta explains.

    The dispersion is the sum over bags of (ones - expected ones)^2, divided by the sum of their
    variances. A mean of the bags' own ratios would depend on a small number of bags whose labels
    are nearly certain.

    >>> import numpy as np
    >>> bags, labels = np.repeat(np.arange(50), 2), np.tile([0, 0, 1, 1], 25)
    >>> facts = bag_facts(bags, labels, np.full(100, 0.5))
    >>> facts.of_one_label, round(facts.expected_of_one_label, 6), facts.move_together
    (50, 25.0, True)
    """
    sizes = np.bincount(bags)
    ones = np.bincount(bags, labels)
    excess = np.asarray(ones - np.bincount(bags, eta), dtype=np.float64)
    variance = np.bincount(bags, eta * (1 - eta)).astype(np.float64)
    with np.errstate(divide="ignore"):
        all_one = np.exp(np.bincount(bags, np.log(eta)))
        all_zero = np.exp(np.bincount(bags, np.log1p(-eta)))
    dispersion = over_bags(excess**2, variance) if variance.any() else Measured(1.0, math.inf)
    return BagFacts(
        bags=sizes.size,
        smallest=int(sizes.min()),
        median=float(np.median(sizes)),
        largest=int(sizes.max()),
        of_one_record=int((sizes == 1).sum()),
        of_one_label=int(((ones == 0) | (ones == sizes)).sum()),
        expected_of_one_label=float((all_one + all_zero).sum()),
        dispersion=dispersion.value,
        dispersion_error=dispersion.standard_error,
    )
