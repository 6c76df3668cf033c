"""The page on data, run without and with real sets: it says which, and shows both where it can."""

import ast
import re

import numpy as np
import pytest
import smoke
from data_files import quiet, samples
from smoke import DECLARED, executed_in_process

from labelaudit import datasets

SOURCE = smoke.text("data")
FIGURES = {"fig-data-higgs", "fig-data-kdd12", "fig-data-fair", "fig-data-eta"}


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELAUDIT_DATA", str(tmp_path / "data"))


def executed(**overrides):
    # The least number of rows: fast, and not the run of anybody's book.
    values = DECLARED["data"].resolve("smoke", {"rows": 500, **overrides})
    return list(smoke.outputs(executed_in_process("data", values, pictures=True)))


def glued(outputs):
    return {
        output["metadata"]["scrapbook"]["name"]: ast.literal_eval(*output["data"].values())
        for _, output in outputs
        if "scrapbook" in output.get("metadata", {})
    }


def statements(outputs):
    """The text that the page itself decides on."""
    return "".join(output.get("data", {}).get("text/markdown", "") for _, output in outputs)


def figures(outputs):
    """The words drawn on each figure; glyphs carry them as comments."""
    return {
        cell.metadata["mystnb"]["figure"]["name"]: re.findall(
            r"<!-- (.*?) -->", output["data"]["image/svg+xml"]
        )
        for cell, output in outputs
        if "image/svg+xml" in output.get("data", {})
    }


def heads(outputs, word):
    """The heads of the columns and rows of the computed table that has this word in one."""
    tables = (output.get("data", {}).get("text/html", "") for _, output in outputs)
    heads_of_tables = [re.findall(r"<th[^>]*>([^<]+)</th>", table) for table in tables]
    (wanted,) = [names for names in heads_of_tables if any(word in name for name in names)]
    return wanted


def test_without_real_sets_the_page_says_simulated_and_how_to_change_that():
    outputs = executed()
    for name in ("higgs", "kdd12"):
        assert f"`make data-{name} SOURCE=FILE` brings the real one" in statements(outputs)
        assert glued(outputs)[f"data-{name}-shown"] == "the simulated stand-in alone"
    drawn = figures(outputs)
    assert drawn.keys() == FIGURES
    for name in FIGURES - {"fig-data-fair"}:
        assert any("simulated" in words for words in drawn[name])
        assert not any(words.startswith("real") for words in drawn[name])
    assert set(re.findall(r"\{glue:text\}`([\w-]+)", SOURCE)) <= glued(outputs).keys()
    assert heads(outputs, "quartiles")[:2] == ["quartiles, simulated", "lepton_pT"]
    shown = heads(outputs, "seen once")
    assert shown.count("simulated") == 5 and "real" not in shown


def whole(data):
    return np.concatenate([data.test.features, data.train.features])


def columns(name, field):
    """A column of the real sample, and of a stand-in of the same length."""
    real = datasets.load(name)
    standin = datasets.load(f"{name}-like", train_rows=len(real.train))
    return [whole(data)[:, data.columns.index(field)] for data in (real, standin)]


def quartiles(values):
    return ", ".join(f"{value:.2f}" for value in np.quantile(values, [0.25, 0.5, 0.75]))


def concentration(values):
    """How many values there are, the share of the ten most frequent, and of those seen once."""
    counts = np.sort(np.unique(values, return_counts=True)[1])[::-1]
    ten, once = counts[:10].sum() / counts.sum(), (counts == 1).sum() / counts.sum()
    return f"{len(counts):,}", f"{ten:.1%}", f"{once:.1%}"


def test_with_the_real_samples_both_are_shown_and_the_tables_of_the_page_are_theirs():
    quiet("higgs", samples("higgs_uci_real_subset.parquet"))
    quiet("kdd12", samples("kdd12_track2_click_prediction_small.parquet"))
    outputs = executed(estimate=True)
    assert glued(outputs)["data-kdd12-fraction"] == pytest.approx(0.044)
    assert {"real", "simulated"} <= set(figures(outputs)["fig-data-higgs"])
    assert {"real, raw", "real, corrected"} <= set(figures(outputs)["fig-data-kdd12"])
    assert heads(outputs, "quartiles")[:2] == ["quartiles, real", "quartiles, simulated"]
    for field in ("lepton_pT", "jet_1_pt", "m_jj", "m_lv", "m_bb", "m_wwbb"):
        real, standin = map(quartiles, columns("higgs", field))
        assert f"| `{field}` | {real} | {standin} |" in SOURCE
    for field in ("advertiser_id", "ad_id", "query_id", "user_id"):
        cells = zip(*map(concentration, columns("kdd12", field)), strict=True)
        assert f"| `{field}` | " + " | ".join(map(" / ".join, cells)) + " |" in SOURCE
