"""Estimates of eta: no example's label has a part in its own, whatever the learner."""

from dataclasses import dataclass, field

import numpy as np
import pytest

import labelaudit as la
from book.chapters.compared import compare
from book.chapters.held_out import Neighbours
from labelaudit import datasets
from labelaudit.learning.calibration import reliability
from labelaudit.learning.eta import cross_fit
from labelaudit.learning.learners import Boosting, NetworkLearner


def table(rows=1500, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, 3))
    eta = 1 / (1 + np.exp(-2 * x[:, 0] - x[:, 1] * x[:, 2]))
    return x, (rng.random(rows) < eta).astype(int), eta


@dataclass(frozen=True)
class Spy:
    """A learner that remembers which rows it was given; a row is known by its first feature."""

    fits: list = field(default_factory=list)

    def fit(self, features, labels, rng):
        self.fits.append(set(features[:, 0]))
        return Memory(dict(zip(features[:, 0], labels, strict=True)))


@dataclass(frozen=True)
class Memory:
    """What an overfitted model would be: the label itself where it was seen, 0.5 elsewhere."""

    known: dict

    def predict(self, features):
        return np.array([self.known.get(row, 0.5) for row in np.asarray(features)[:, 0]])


@pytest.mark.parametrize("calibrate", [True, False])
def test_no_row_is_predicted_by_a_model_that_saw_it(calibrate):
    x, y, _ = table(101)
    spy = Spy()
    found = cross_fit(x, y, spy, folds=4, calibrate=calibrate, rng=np.random.default_rng(0))
    assert found.raw.tolist() == [0.5] * 101
    assert calibrate or found.eta.tolist() == found.raw.tolist()
    for fold, seen in enumerate(spy.fits):
        away = {fold, (fold + 1) % 4} if calibrate else {fold}
        assert seen == set(x[~np.isin(found.fold, list(away)), 0])


def test_folds_are_even_in_both_classes():
    x, y, _ = table(1003)
    fold = cross_fit(x, y, Spy(), folds=5, rng=np.random.default_rng(0)).fold
    for rows in (fold, fold[y == 0], fold[y == 1]):
        assert np.ptp(np.bincount(rows, minlength=5)) <= 1


@pytest.mark.parametrize("learner", [Boosting(iterations=60), Neighbours(60)], ids=["trees", "knn"])
def test_estimates_are_near_the_truth_and_calibrated(learner):
    x, y, eta = table(4000)
    found = cross_fit(x, y, learner, rng=np.random.default_rng(1))
    assert np.sqrt(np.mean((found.eta - eta) ** 2)) < 0.11
    assert reliability(found.eta, y).error < 0.035
    fresh, _, true = table(1000, seed=5)
    assert np.sqrt(np.mean((found.predict(fresh) - true) ** 2)) < 0.11


def test_calibration_corrects_what_an_overfitted_model_breaks():
    x, y, _ = table(3000)
    wild = Boosting(iterations=400, learning_rate=0.5, least_leaf=1)
    found = cross_fit(x[:1900], y[:1900], wild, rng=np.random.default_rng(2))
    broken, corrected = (reliability(eta, y[:1900]).error for eta in (found.raw, found.eta))
    assert corrected < broken / 3
    rng = np.random.default_rng(3)
    assert compare(found.raw, y[:1900], la.LabelProportions(4), rng=rng).warning
    assert all(scaling.temperature > 1.5 for scaling in found.scalings)


def test_boosting_takes_missing_values_and_categories():
    x, y, _ = table(2500)
    kinds = np.random.default_rng(6).integers(0, 5, 2500)
    y = np.where(kinds == 3, 1, y)
    x = np.column_stack([x, kinds])
    x[::7, 0] = np.nan
    learner = Boosting(iterations=40, categorical=(3,))
    found = cross_fit(x, y, learner, rng=np.random.default_rng(0))
    assert found.eta[kinds == 3].mean() > 0.95
    assert found.eta[kinds != 3].mean() < 0.6


def test_boosting_learns_from_hashed_categories_without_seeing_the_label():
    data = datasets.load("kdd12-like", train_rows=12_000)
    x, y, eta = data.train.features, data.train.labels, data.train.eta
    found = cross_fit(x, y, Boosting(leaves=6), rng=np.random.default_rng(0))
    assert np.corrcoef(found.eta, eta)[0, 1] > 0.25
    # Identifiers seen once: an encoding with the row's own label would predict it outright.
    rng = np.random.default_rng(1)
    alone = np.arange(3000, dtype=np.int32)[:, None]
    coin = rng.integers(0, 2, 3000)
    model = Boosting(iterations=30).fit(alone, coin, rng)
    assert model.predict(alone).std() < 0.05


def test_neighbours_are_those_of_a_loop():
    x, y, _ = table(200)
    x[:, 1] *= 1000
    model = Neighbours(7).fit(x[:150], y[:150], np.random.default_rng(0))
    scaled = (x - x[:150].mean(axis=0)) / x[:150].std(axis=0)
    for row, predicted in zip(scaled[150:], model.predict(x[150:]), strict=True):
        nearest = np.argsort(((scaled[:150] - row) ** 2).sum(axis=1))[:7]
        assert predicted == pytest.approx((y[nearest].sum() + y[:150].mean()) / 8)


def test_thinned_negatives_compose():
    x, y, _ = table(9000, seed=8)
    kept = (y == 1) | (np.random.default_rng(0).random(9000) < 0.3)
    part = datasets.Split(lambda: (x[kept], y[kept], None), 0.3)
    about = {"name": "thin", "fingerprint": "", "simulated": False, "description": ""}
    data = datasets.Dataset(
        **about, train=part, test=part, columns=("a", "b", "c"), negatives_kept=0.3
    )
    rng = np.random.default_rng(1)
    found = cross_fit(x[kept], y[kept], Boosting(iterations=60), rng=rng)
    eta = data.correct_eta(found.eta)
    assert eta @ weights_of(y[kept]) == pytest.approx(y[kept].sum(), rel=0.05)
    mechanism = la.GeometricProportions(4, 1.0)
    both = compare(eta, y[kept], mechanism, weights=weights_of(y[kept]), rng=rng)
    assert abs(both.ratio) < 4
    assert compare(found.eta, y[kept], mechanism, weights=weights_of(y[kept]), rng=rng).warning


def weights_of(labels):
    return np.where(labels == 1, 1.0, 1 / 0.3)


def test_network_is_a_learner():
    training = pytest.importorskip("labelaudit.learning.training", reason="needs torch")
    x, y, eta = table(3000)
    settings = training.TrainingSettings("small", learning_rate=0.02, batch_size=256, epochs=5)
    found = cross_fit(x, y, NetworkLearner(settings), folds=3, rng=np.random.default_rng(0))
    assert np.sqrt(np.mean((found.eta - eta) ** 2)) < 0.12


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x, y: _fit(x, y * 2), ValueError, "0 or 1.*2"),
        (lambda x, y: _fit(x, y * 0), ValueError, "60 zeros and 0 ones"),
        (lambda x, y: _fit(x, y[1:]), ValueError, r"\(60,\), not \(59,\)"),
        (lambda x, y: _fit(x[:, 0], y), ValueError, r"shape \(60,\)"),
        (lambda x, y: _fit(x[:, :0], y), ValueError, r"shape \(60, 0\)"),
        (lambda x, y: _fit(x.astype(str), y), ValueError, "features must be numbers"),
        (lambda x, y: _fit(x, y, folds=2), ValueError, "folds.*3.*2"),
        (lambda x, y: _fit(x, y, neighbours=50), ValueError, "50 neighbours.*36"),
        (lambda x, y: _fit(np.where(x > 2, np.nan, x), y), ValueError, "missing values"),
        (lambda x, y: _fit(x.astype(int), y), TypeError, "hashed categories"),
        (lambda x, y: Neighbours(0), ValueError, "neighbours.*0"),
        (lambda x, y: Boosting(learning_rate=0), ValueError, "learning_rate.*0"),
        (lambda x, y: Boosting(leaves=1), ValueError, "leaves.*2.*1"),
        (lambda x, y: Boosting(categorical=(-1,)), ValueError, "categorical.*-1"),
        (lambda x, y: cross_fit(x, y, Neighbours(5), rng=0), TypeError, "Generator"),
    ],
)
def test_bad_input_is_refused(call, error, words):
    x, y, _ = table(60)
    x[0, 0] = 3.0
    with pytest.raises(error, match=words):
        call(x, y)


def _fit(x, y, neighbours=5, **options):
    return cross_fit(x, y, Neighbours(neighbours), rng=np.random.default_rng(0), **options)
