"""The tables under `results/`: what their README says, and what the real samples give again."""

import gzip

import numpy as np
import pandas as pd
import pytest
import torch
from data_files import higgs_csv, higgs_rows, quiet, samples

from book.chapters import tables
from book.chapters.real import (
    REAL,
    RESULTS,
    population_priors,
    published_eta,
    real_priors,
)
from data_scripts import results
from labelaudit import datasets
from labelaudit.learning import calibration
from labelaudit.learning.learners import Boosting

SOURCES = {
    "higgs": "higgs_uci_real_57692.parquet",
    "kdd12": "kdd12_track2_click_prediction_small.parquet",
    "diabetes": "brfss2015_diabetes_253680.parquet",
}
ROWS = {"higgs": (47_692, 10_000), "kdd12": (29_948, 10_000), "diabetes": (203_680, 50_000)}


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELAUDIT_DATA", str(tmp_path / "data"))


@pytest.mark.parametrize("name", REAL)
def test_tables_are_as_the_readme_says(name):
    table = published_eta(name)
    facts = table.facts
    assert (facts["train_rows"], facts["test_rows"]) == ROWS[name]
    assert set(facts["temperature"]) <= set(table.estimates)
    for eta in table.estimates.values():
        assert eta.shape == (facts["test_rows"],) and (eta >= 0).all() and (eta <= 1).all()
    # A calibrated estimate has the mean of the labels: within 4 standard errors, which the label
    # of n rows and of the fifth that calibrates both have.
    rate, rows = facts["positive_rate"], min(facts["test_rows"], facts["train_rows"] / 5)
    error = np.sqrt(2 * rate * (1 - rate) / rows)
    for key in facts["temperature"]:
        assert abs(table.estimates[key].mean() - rate) < 4 * error, key


def test_labels_ship_where_the_licence_allows_it():
    assert published_eta("kdd12").labels is None
    for name in ("higgs", "diabetes"):
        table = published_eta(name)
        assert set(np.unique(table.labels)) == {0, 1}
        assert table.labels.mean() == pytest.approx(table.facts["positive_rate"], abs=1e-6)


def test_calibration_is_that_of_the_tables():
    """Recomputed from eta and label, to the four digits that eta is kept with."""
    graded = pd.read_csv(RESULTS / "calibration.csv").set_index(["dataset", "estimate"])
    for name in ("higgs", "diabetes"):
        table = published_eta(name)
        again = tables.grades(table.estimates, table.labels)
        for key, row in again.iterrows():
            listed = graded.loc[(name, key)]
            assert row["AUC"] == pytest.approx(listed["AUC"], abs=1e-3), key
            assert row["Brier"] == pytest.approx(listed["Brier"], abs=2e-4), key
    assert set(graded.index.get_level_values(0)) == set(REAL)


def test_everything_fits_in_two_megabytes_and_is_in_the_readme():
    readme = (RESULTS / "README.md").read_text(encoding="utf-8")
    files = [path for path in RESULTS.iterdir() if path.name != "README.md"]
    assert sum(path.stat().st_size for path in files) < 2_000_000
    assert [path.name for path in files if f"`{path.name}`" not in readme] == []


def test_tables_of_the_chapters_agree_with_one_another():
    for name in ("higgs", "kdd12"):
        scores = pd.read_csv(RESULTS / f"{name}_auc.csv", index_col=0)
        curves = pd.read_csv(RESULTS / f"{name}_roc.csv", index_col=0)
        assert set(curves.columns) == set(scores.index)
        areas = {key: np.trapezoid(curves[key], curves.index) for key in curves}
        # The curve is of the first training, the AUC a mean over three.
        for key, area in areas.items():
            spread = np.nan_to_num(scores.loc[key, "standard error"])
            assert area == pytest.approx(scores.loc[key, "AUC"], abs=0.004 + 4 * spread), key
        assert scores.loc["clean", "AUC"] > scores.loc["RR", "AUC"]
    reliability = pd.read_csv(RESULTS / "kdd12_reliability.csv")
    finished = reliability[reliability["estimate"].str.endswith("calibrated")]
    distance = (finished["score"] - finished["fraction of ones"]).abs()
    assert (distance < 5 * finished["standard error"] + 0.02).all()


@pytest.mark.parametrize("name", REAL)
def test_the_tables_come_again_from_the_samples(name):
    quiet(name, samples(SOURCES[name]))
    data, table = datasets.load(name), published_eta(name)
    assert data.facts["source_sha256"] == table.facts["source_sha256"]
    labels = np.asarray(data.test.labels)
    assert labels.mean() == pytest.approx(table.facts["positive_rate"], abs=1e-6)
    if table.labels is not None:
        assert np.array_equal(table.labels, labels)
    graded = pd.read_csv(RESULTS / "calibration.csv").set_index(["dataset", "estimate"])
    for key in table.facts["temperature"]:
        expected = graded.loc[(name, key), "AUC"]
        assert calibration.auc(labels, table.estimates[key]) == pytest.approx(expected, abs=1e-3)
    some = datasets.load(name, train_rows=8000).train
    rng = np.random.default_rng(0)
    quick = Boosting(iterations=60).fit(
        np.asarray(some.features), np.asarray(some.labels, np.int64), rng
    )
    predicted = quick.predict(data.test.features)
    assert np.corrcoef(predicted, table.estimates["boosting"])[0, 1] > (
        0.55 if name == "kdd12" else 0.85
    )


def test_prepared_rows_replace_the_table():
    quiet("kdd12", samples(SOURCES["kdd12"]))
    again = real_priors("kdd12", 4000, np.random.default_rng(0))
    shipped = published_eta("kdd12").estimates["boosting"]
    assert again.values.size == shipped.size
    assert again.mean == pytest.approx(0.044, abs=0.006)
    assert not np.isin(np.round(again.values, 6), np.round(shipped, 6)).all()


def test_population_priors_undo_thinning():
    """Against drawing the population and thinning it: Monte Carlo, 5 standard errors."""
    rng = np.random.default_rng(3)
    eta = rng.beta(2, 30, 400_000)
    labels = rng.random(eta.size) < eta
    kept = labels | (rng.random(eta.size) < 0.25)
    thinned = eta / (eta + 0.25 * (1 - eta))
    again = population_priors(thinned[kept], 0.25, rng)
    assert again.mean == pytest.approx(eta.mean(), abs=5 * eta.std() / np.sqrt(kept.sum()))
    for level in (0.1, 0.5, 0.9):
        assert again.cdf(np.quantile(eta, level)) == pytest.approx(level, abs=0.01)


def test_writing_a_table_twice_gives_the_same_bytes(tmp_path):
    frame = pd.DataFrame({"label": [0, 1], "boosting": [0.123456, 1e-7]})
    written = [results.write_table("higgs", frame, {"seed": 1}, tmp_path) for _ in range(2)]
    assert written[0].read_bytes() == written[1].read_bytes()
    table = published_eta("higgs", tmp_path)
    assert table.estimates["boosting"].tolist() == [0.1235, 1e-7]
    assert table.labels.tolist() == [0, 1] and table.facts == {"seed": 1}


def test_tables_of_training_are_made_by_functions_that_the_chapters_use(tmp_path, monkeypatch):
    path = tmp_path / "HIGGS.csv"
    path.write_bytes(higgs_csv(*higgs_rows(400)))
    quiet("higgs", path)
    monkeypatch.setattr(results, "BAG_SIZES", (1, 4))
    monkeypatch.setattr(results, "TRIALS", 2)
    threads = torch.get_num_threads()
    try:
        assert results.main(["chapters", "higgs", "--folder", str(tmp_path)]) == 0
    finally:
        torch.set_num_threads(threads)
    for name in ("auc", "roc", "bag_sizes"):
        made, shipped = (
            pd.read_csv(folder / f"higgs_{name}.csv", index_col=0) for folder in (tmp_path, RESULTS)
        )
        assert list(made) == list(shipped) and made.index.name == shipped.index.name
    scores = pd.read_csv(tmp_path / "higgs_auc.csv", index_col=0)
    assert list(scores.index) == ["clean", "RR", "LLP", "LLP+Geom", "boosted trees, clean"]
    assert (scores["trainings"] == 2).all()
    assert pd.read_csv(tmp_path / "higgs_bag_sizes.csv")["bag size"].tolist() == [1, 4]


DAMAGE = {
    "missing": None,
    "no archive": b"label\n",
    "no facts": gzip.compress(b"label\n0\n"),
    "a word": gzip.compress(b"# {}\nboosting\none\n"),
    "cut": gzip.compress(b"# {}\nboosting\n0.5\n")[:-9],
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_table_is_an_error_of_one_line(tmp_path, case):
    if DAMAGE[case] is not None:
        (tmp_path / "eta_higgs.csv.gz").write_bytes(DAMAGE[case])
    with pytest.raises(datasets.DataError, match="cannot be read"):
        published_eta("higgs", tmp_path)
    with pytest.raises(ValueError, match="one of higgs, kdd12, diabetes, not 'fair'"):
        published_eta("fair")


def test_the_script_rejects_what_it_cannot_make(capsys, tmp_path):
    assert results.main(["eta", "fair"]) == 1
    assert "one of higgs, kdd12, diabetes, not 'fair'" in capsys.readouterr().err
    assert results.main(["eta", "higgs", "--folder", str(tmp_path)]) == 1
    assert "make data-higgs SOURCE=FILE" in capsys.readouterr().err
    assert list(tmp_path.glob("*.csv*")) == []
