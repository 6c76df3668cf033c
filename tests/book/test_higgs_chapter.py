"""Chapters 10 and 11 at smoke scale: real tables, and prose that follows from them."""

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
import smoke
from data_files import higgs_csv, higgs_rows, kdd12_rows, libsvm, quiet

from book.chapters.real import RESULTS, published_eta

CHAPTER = "10_higgs"
executed = partial(smoke.executed, CHAPTER)
source = partial(smoke.text, CHAPTER)


def test_warnings_are_those_of_the_table():
    rows = smoke.table_of(CHAPTER, "realised.csv")
    distance = (rows["realised"] - rows["plug-in"]).abs()
    # The table has four decimals, so rows on the border may fall on either side.
    clear = (distance - 2 * rows["error"]).abs() > 4e-4
    warned = rows["warning"] == "!"
    assert (warned == (distance > 2 * rows["error"]))[clear].all()
    raw = warned[rows["eta"].str.endswith("raw")]
    assert smoke.glued_in(CHAPTER)["higgs-warnings-raw"] == f"{raw.sum()} of {len(raw)}"


def test_miscalibration_moves_the_two_advantages_in_opposite_ways():
    bent = (
        smoke.table_of(CHAPTER, "bias.csv")
        .query("case == 'slope' and mechanism == 'LLP'")
        .sort_values("value")
    )
    assert (bent["plug-in"].diff().dropna() < 0).all()
    assert (bent["quantile"].diff().dropna() > 0).all()
    true = bent.iloc[len(bent) // 2]
    assert true["value"] == pytest.approx(1)
    gap = abs(true["realised"] - true["plug-in"])
    assert gap < 4 * true["standard error of the difference"]


def test_the_overfitted_network_reports_far_too_little():
    rows = smoke.table_of(CHAPTER, "overfitted.csv").set_index(["eta", "mechanism"])["plug-in"]
    for mechanism in ("RR", "LLP", "LLP+Geom"):
        assert 1.5 * rows["by heart, raw", mechanism] < rows["by heart, calibrated", mechanism]
    ratio = rows["by heart, calibrated", "RR"] / rows["by heart, raw", "RR"]
    assert smoke.glued_in(CHAPTER)["higgs-heart-factor"] == pytest.approx(ratio, rel=0.05)


def test_certain_and_wrong_scores_do_not_end_the_chapter_where_bags_are_small():
    """An exact 0 of a label that is 1 left a bag of four without a possible release."""
    small = smoke.executed(CHAPTER, bag_size=4, audit_rows=1000, train_sizes=(200,), bag_sizes=(1,))
    numbers = smoke.glued(small)
    assert numbers["higgs-heart-certain"] >= numbers["higgs-heart-wrong"] > 0
    gains = smoke.table(small, "overfitted.csv").query("eta == 'by heart, raw'")["plug-in"]
    assert len(gains) == 3 and gains.between(0, 0.5).all()


@pytest.mark.parametrize(
    ("chapter", "simulated"), [(CHAPTER, {"fig-higgs-bias"}), ("11_kdd12", set())]
)
def test_every_figure_says_whether_it_is_real(chapter, simulated):
    """Without a prepared set: real tables, but for the figure that needs the true eta."""
    drawn = {
        settings["figure"]["name"]: (settings["figure"]["caption"], picture)
        for settings, picture in smoke.figures(smoke.executed(chapter))
    }
    assert len(drawn) == len(re.findall(r"^  figure:$", smoke.text(chapter), re.MULTILINE))
    for name, (caption, picture) in drawn.items():
        assert ("simulated" in caption) == ("simulated" in picture) == (name in simulated), name
        assert (re.search(r"\breal\b", caption) is not None) != (name in simulated), name


def test_results_are_those_that_ship():
    """AUC and estimates of the real set; the one training here is on the stand-in and says so."""
    shipped = pd.read_csv(RESULTS / "higgs_auc.csv", index_col=0)["AUC"]
    assert smoke.glued_in(CHAPTER)["higgs-auc-clean"] == shipped["clean"]
    assert smoke.glued_in(CHAPTER)["higgs-auc-trees"] == shipped["boosted trees, clean"]
    assert smoke.glued_in(CHAPTER)["higgs-example-rows"] == "1,500 rows of the simulated stand-in"
    eta = published_eta("higgs")
    quoted = smoke.glued_in(CHAPTER)["higgs-brier-boosting"]
    assert quoted == pytest.approx(((eta.estimates["boosting"] - eta.labels) ** 2).mean())
    assert "`make data-higgs SOURCE=FILE`" in "".join(
        output["data"].get("text/markdown", "")
        for _, output in smoke.outputs(executed())
        if "data" in output
    )


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """Made rows, prepared as if they were the real sets, so that chapters compute everything."""
    monkeypatch.setenv("LABELAUDIT_DATA", str(tmp_path / "data"))
    (tmp_path / "higgs").write_bytes(higgs_csv(*higgs_rows(2400), "%.9g"))
    quiet("higgs", tmp_path / "higgs")
    # A click depends on one field, so that there is something to learn.
    indices, labels = kdd12_rows(1500)
    indices[:, 0] = 1 + labels * (np.arange(1500) % 3 > 0)
    (tmp_path / "kdd12").write_bytes(libsvm(np.sort(indices, axis=1), labels))
    quiet("kdd12", tmp_path / "kdd12")


@pytest.mark.slow
@pytest.mark.parametrize("chapter", [CHAPTER, "11_kdd12"])
def test_a_prepared_set_is_computed_anew(prepared, chapter):
    values = smoke.DECLARED[chapter].values("smoke")
    execution = smoke.executed_in_process(chapter, values)
    numbers = smoke.glued(execution)
    prefix = "higgs" if chapter == CHAPTER else "kdd"
    assert numbers[f"{prefix}-test-rows"] == ("800" if prefix == "higgs" else "500")
    assert "of the real set" in numbers[f"{prefix}-example-rows"]
    scores = smoke.table(execution, "auc.csv", index_col=0)
    name = "higgs" if prefix == "higgs" else "kdd12"
    shipped = pd.read_csv(RESULTS / f"{name}_auc.csv", index_col=0)
    assert list(scores.index) == list(shipped.index)
    assert (scores["AUC"] != shipped["AUC"]).all()
    assert (scores["trainings"] == values["trials"]).all()
    assert len(smoke.table(execution, "reliability.csv"))
