"""The loader: one interface for real, simulated and shipped data; stand-ins as promised."""

import hashlib

import numpy as np
import pytest

from labelaudit import datasets
from labelaudit.datasets import hashing, standins
from labelaudit.datasets.dataset import Arrays, Split


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELAUDIT_DATA", str(tmp_path / "data"))


def bayes_auc(eta):
    """AUC of eta itself, over the labels it could have drawn."""
    eta = np.sort(eta)
    negatives_below = np.cumsum(1 - eta) - (1 - eta) / 2
    return (eta * negatives_below).sum() / (eta.sum() * (1 - eta).sum())


@pytest.mark.parametrize(
    "name, rate, auc, shape, dtype",
    [
        ("higgs-like", 0.53, 0.88, (28,), np.float32),
        ("kdd12-like", 0.044, 0.80, (11,), np.int32),
    ],
)
def test_stand_in_is_as_described(name, rate, auc, shape, dtype):
    features, labels, eta = standins.draw(name, 200_000)
    assert features.shape[1:] == shape and features.dtype == dtype
    assert labels.dtype == np.uint8 and np.isfinite(features).all()
    assert abs(eta.mean() - rate) < 0.02 * rate
    assert abs(bayes_auc(eta) - auc) < 0.005
    # Labels are drawn from eta: in each tenth of the rows by eta, their mean is eta's within
    # 4.5 standard errors, which ten tenths exceed about once in 15,000 seeds.
    for tenth in np.array_split(np.argsort(eta), 10):
        error = np.sqrt((eta[tenth] * (1 - eta[tenth])).sum()) / len(tenth)
        assert abs(labels[tenth].mean() - eta[tenth].mean()) < 4.5 * error


def test_stand_in_eta_depends_on_the_features_shown():
    features, _, eta = standins.draw("kdd12-like", 5000)
    log_odds = standins._KDD12_INTERCEPT + standins._KDD12_SLOPE * standins._kdd12_score(features)
    np.testing.assert_allclose(np.log(eta / (1 - eta)), log_odds, rtol=1e-9)
    assert features.min() >= 0 and features.max() < hashing.BUCKETS


@pytest.mark.parametrize("name", ["higgs-like", "kdd12-like"])
def test_stand_in_is_the_same_for_the_same_seed(name):
    long = standins.draw(name, 40_000, seed=3)
    short = standins.draw(name, 100, seed=3)
    for whole, start in zip(long, short, strict=True):
        assert whole[:100].tobytes() == start.tobytes()
    assert standins.draw(name, 100, seed=4).features.tobytes() != short.features.tobytes()


def test_high_level_features_follow_from_low_ones():
    first = standins.draw("higgs-like", 3000).features
    low = {"lepton": list(first[:, 0:3].T), "missing": list(first[:, 3:5].T)}
    for jet in range(4):
        low[f"jet_{jet + 1}"] = list(first[:, 5 + 4 * jet : 9 + 4 * jet].T)
    np.testing.assert_allclose(np.column_stack(standins._masses(low)), first[:, 21:], rtol=2e-3)


def test_fair_is_the_survey():
    fair = datasets.load("fair")
    labels = np.concatenate([fair.train.labels, fair.test.labels])
    assert len(labels) == 6366 and labels.sum() == 2053
    assert fair.columns == (
        *("rate_marriage", "age", "yrs_married", "children", "religious", "educ"),
        *("occupation", "occupation_husb"),
    )
    assert fair.train.eta is None and not fair.simulated
    assert len(datasets.load("fair", train_rows=9).train) == 9
    assert abs(fair.train.labels.mean() - fair.test.labels.mean()) < 0.05


def test_fingerprint_needs_no_data(monkeypatch):
    def never(*_):
        raise AssertionError("a fingerprint must not draw the data")

    monkeypatch.setattr(standins, "draw", never)
    prints = [
        datasets.load_or_standin("higgs").fingerprint,
        datasets.load_or_standin("kdd12").fingerprint,
        datasets.load("higgs-like", seed=1).fingerprint,
        datasets.load("higgs-like", train_rows=9).fingerprint,
        datasets.load("fair").fingerprint,
        datasets.load("fair", train_rows=9).fingerprint,
    ]
    assert len(set(prints)) == len(prints)


def test_not_prepared_says_what_to_do():
    with pytest.raises(datasets.NotPrepared, match="make data-higgs SOURCE=FILE"):
        datasets.load("higgs")
    standin = datasets.load_or_standin("kdd12")
    assert standin.simulated and standin.name == "kdd12-like"


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"name": "iris"}, "one of higgs, kdd12"),
        ({"name": "fair", "train_rows": 0}, "at least 1, not 0"),
        ({"name": "higgs-like", "seed": -1}, "at least 0, not -1"),
    ],
)
def test_bad_requests_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        datasets.load(**arguments)


def test_correction_undoes_thinning():
    """Bayes' rule by hand: a population with P(y = 1 | x) = eta, of whose negatives r are kept."""
    eta, kept = np.linspace(0, 1, 11), 0.2273
    thinned = eta / (eta + kept * (1 - eta))
    part = Split(lambda: Arrays(np.zeros((2, 1)), np.array([0, 1], np.uint8), None), kept)
    about = {"name": "t", "fingerprint": "", "simulated": False, "description": ""}
    data = datasets.Dataset(**about, train=part, test=part, columns=("x",), negatives_kept=kept)
    np.testing.assert_allclose(data.correct_eta(thinned), eta, atol=1e-15)
    np.testing.assert_allclose(part.weights, [1 / kept, 1])
    assert Split(lambda: Arrays(np.zeros((1, 1)), np.zeros(1, np.uint8), None)).weights is None


def slow_bucket(field, value, buckets):
    """The hash of one value in plain Python."""
    mask = (1 << 64) - 1
    word = (value + (field + 1) * 0x9E3779B97F4A7C15) & mask
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & mask
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & mask
    word ^= word >> 31
    return (word >> 32) * buckets >> 32


def test_hash_is_the_documented_one_and_even():
    values = [0, 1, 54_686_452, 2**63, 2**64 - 1]
    for field in (0, 9):
        hashed = hashing.bucket(field, np.array(values, np.uint64)).tolist()
        assert hashed == [slow_bucket(field, value, hashing.BUCKETS) for value in values]
    counts = np.bincount(hashing.bucket(0, np.arange(100_000)) // 5000, minlength=100)
    # A chi-squared of 99 degrees of freedom exceeds 160 about once in 10,000 hashes.
    assert ((counts - 1000) ** 2 / 1000).sum() < 160


def test_stand_in_bytes_are_pinned():
    """The data behind the book's figures: a change here must raise `standins.VERSION`."""
    digest = hashlib.sha256(standins.draw("kdd12-like", 1000).features.tobytes()).hexdigest()
    assert (standins.VERSION, digest[:16]) == (1, "58d373ca7c53896e")
