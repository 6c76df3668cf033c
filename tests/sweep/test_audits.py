"""The advantages of a sweep: exact, of the right population, computed without the data."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from book import sweep
from book.sweep import audits, results, runs
from book.sweep.grid import ETA
from book.sweep.scales import scale_grid
from book.sweep.store import Store
from labelaudit import LabelProportions, RandomizedResponse, multiplicative_cdf, posterior
from labelaudit.datasets import Dataset, Split
from labelaudit.datasets.dataset import Arrays
from sweep.conftest import GRID, records
from sweep.test_grid import SCALES


@pytest.fixture(scope="module")
def thinned():
    """Clicks of which a quarter of the negatives are kept, as if they were no simulation."""
    rng = np.random.default_rng(5)
    features = rng.standard_normal((8000, 2)).astype(np.float32)
    eta = 1 / (1 + np.exp(3 - features[:, 0]))
    labels = (rng.random(8000) < eta).astype(np.uint8)
    kept = (labels == 1) | (rng.random(8000) < 0.25)
    arrays = Arrays(features[kept], labels[kept], None)
    part = Split(lambda: arrays, 0.25)
    made = Dataset(
        name="higgs",
        train=part,
        test=part,
        fingerprint="f" * 64,
        simulated=False,
        description="thinned",
        columns=("a", "b"),
        negatives_kept=0.25,
    )
    return made, eta


def test_advantages_are_those_before_thinning(thinned):
    data, eta = thinned
    grid = replace(GRID, eta={"epochs": 3, "learning_rate": 0.02})
    first = next(audits.configurations(grid, data))
    assert first["estimand"] == "before thinning" and first["eta"]["source"] == "network"
    raw = audits.estimated_eta(data, first["eta"], first["seed"])
    values = audits.populations(data, raw, first["seed"])
    assert values[0].mean() == pytest.approx(data.train.labels.mean(), abs=0.02)
    assert values[1].mean() == pytest.approx(eta.mean(), abs=0.01)
    measured = audits.advantage_once(values, first, quality={"eta_auc": 0.7})
    # Clean labels: what a guess from eta gets wrong, in the data before thinning.
    assert measured["additive"] == pytest.approx(np.minimum(eta, 1 - eta).mean(), abs=0.01)
    sampled = np.minimum(raw, 1 - raw).mean()
    assert measured["additive_as_sampled"] == pytest.approx(sampled)
    assert measured["additive"] < 0.6 * sampled
    assert measured["estimand"] == "before thinning" and set(results.MEASURES) <= set(measured)


def test_without_thinning_there_is_one_population(data):
    assert next(audits.configurations(GRID, data))["estimand"] == "as sampled"
    assert np.array_equal(audits.populations(data, data.train.eta, 1), [data.train.eta])


def test_eta_has_a_network_of_its_own_at_every_scale(thinned):
    data, _ = thinned
    for scale in SCALES:
        settings = next(audits.configurations(scale_grid(scale), data))["eta"]["settings"]
        assert settings["epochs"] == ETA["epochs"] > 10
    changed = replace(scale_grid("smoke"), eta={"epochs": 3})
    settings = next(audits.configurations(changed, data))["eta"]["settings"]
    assert settings["epochs"] == 3 and settings["batch_size"] == ETA["batch_size"]


def test_the_recipe_for_eta_is_in_the_key(thinned, store):
    data, _ = thinned
    grids = [replace(GRID, eta={"epochs": epochs}) for epochs in (3, 4)]
    keys = [set(audits.plan(grid, data, store).index) for grid in grids]
    assert not keys[0] & keys[1]


def test_an_advantage_is_computed_once_and_without_the_data(data, store, monkeypatch):
    """Workers are sent the values of eta: to load the data would cost them time and memory."""

    def loaded(*source):
        raise AssertionError("an advantage loads no data")

    monkeypatch.setattr(runs, "_data", loaded)
    planned = audits.complete(GRID, data, store)
    assert sorted(planned.index) == list(store) and len(planned) == 6
    monkeypatch.setattr(audits, "estimated_eta", loaded)
    audits.complete(GRID, data, store)


def test_advantages_are_exact_and_stored(swept):
    frame = results.results_frame(records(Store(swept[0] / "store")))
    data = sweep.load("higgs-like", replace(GRID, train_rows=300))
    eta = data.train.eta
    clean = frame[frame["kind"] == "clean"].iloc[0]
    assert clean["additive"] == pytest.approx(np.minimum(eta, 1 - eta).mean())
    assert clean["multiplicative"] == math.inf and clean["infinite_share"] == 1
    response = frame[frame["kind"] == "RR"].iloc[0]
    gain = np.maximum(np.minimum(eta, 1 - eta) - 1 / (1 + math.e), 0)
    assert response["additive"] == pytest.approx(gain.mean())
    assert response["multiplicative"] == pytest.approx(1) and response["infinite_share"] == 0
    assert set(frame["eta"]) == {"known"} and set(frame["estimand"]) == {"as sampled"}
    assert (frame["additive"] == frame["additive_as_sampled"]).all()
    assert frame["eta_auc"].iloc[0] == pytest.approx(roc_auc_score(data.train.labels, eta))


def test_infinite_fraction_against_enumeration():
    eta = np.random.default_rng(0).random((50, 3))
    eta[:10, 0], eta[5:15, 1] = 0.0, 1.0
    mechanism, revealed = LabelProportions(3), np.zeros_like(eta)
    for labels in itertools.product([0, 1], repeat=3):
        possible = np.where(labels, eta, 1 - eta).prod(axis=1) > 0
        after = posterior(eta[possible], mechanism, np.full(possible.sum(), sum(labels) / 3))
        certain = np.isin(after, (0.0, 1.0)) & ~np.isin(eta[possible], (0.0, 1.0))
        revealed[possible] += certain * np.where(labels, eta, 1 - eta).prod(axis=1)[possible, None]
    share = audits.infinite_share(eta, mechanism)
    assert share == pytest.approx(revealed.mean())
    assert share == pytest.approx(1 - multiplicative_cdf(eta, mechanism, 1e300))
    assert audits.infinite_share(eta, RandomizedResponse(1.0)) == 0
