"""Chapter 12 at smoke scale, and the published results that it plots."""

import math
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
import smoke
from conftest import ROOT
from scipy import stats

from book.chapters import differences, selection
from book.tools.parameters import ContractError
from labelaudit.learning.sweep import comparisons
from labelaudit.learning.sweep.grid import read_grid

CHAPTER = "12_privacy_utility"
GRID = read_grid(ROOT / "results" / "published.yml")
SETS = ["higgs", "kdd12", "diabetes"]
executed = partial(smoke.executed, CHAPTER)
source = partial(smoke.text, CHAPTER)


def glued():
    return smoke.glued(executed())


def table(name):
    return smoke.table(executed(), name)


def shown():
    """The texts that the page's cells show."""
    outputs = [output for cell in executed().notebook.cells for output in cell.get("outputs", [])]
    return "\n".join(output.get("data", {}).get("text/markdown", "") for output in outputs)


@cache
def published():
    return pd.read_csv(ROOT / "results" / "published.csv.gz")


@cache
def selected():
    """The published settings at the rate that the honest rule chooses."""
    return selection.select(published(), by="released")


def test_a_bag_size_that_leaves_too_few_bags_is_refused():
    with pytest.raises(ContractError, match="bag_size 512 leaves too few bags: 600 training rows"):
        smoke.rejected(CHAPTER, train_rows=600, bag_sizes=[512])


# What is published


@pytest.mark.parametrize("name", SETS)
def test_every_published_run_is_one_of_the_grid(name):
    """At the grid's own rates, or at rates that a search from them would try; each run once."""
    own = GRID.for_data(name)
    settings = {
        (
            described["kind"],
            described.get("bag_size", 1),
            described.get("epsilon", math.inf),
            loss["loss"],
        )
        for described, loss in own.settings()
    }
    runs = published().query("dataset == @name")
    assert set(runs[comparisons.SETTING[1:]].itertuples(index=False, name=None)) <= settings
    assert not runs.duplicated(comparisons.RUN).any() and runs["trial"].between(0, 2).all()
    assert (runs["seed"] == own.seed + runs["trial"]).all()
    assert runs["fingerprint"].nunique() == 1 and runs["model"].nunique() == 1
    assert (runs["batch_size"] == runs["bag_size"].clip(own.training["batch_size"])).all()
    for _, setting in runs[~runs["learning_rate"].isin(own.learning_rates)].groupby(
        comparisons.SETTING
    ):
        assert setting["learning_rate"].between(*own.rate_limits).all()
        tried = np.sort([*setting["learning_rate"].unique(), *own.learning_rates])
        assert np.allclose(tried[1:] / tried[:-1], 4, rtol=0.01)  # no rate was left out


def test_every_published_row_says_what_made_it():
    frame = published()
    assert frame[["made_with", "made_on", "made_at"]].notna().all(axis=None)
    assert frame["made_with"].str.contains("torch 2.13.0").all()


def test_published_advantages_obey_the_theory():
    frame = published()
    response = frame[frame["kind"] == "RR"]
    assert np.allclose(response["multiplicative"], response["epsilon"])
    noisy = frame[frame["kind"].isin(["LLP+Geom", "LLP+Lap"])]
    assert (noisy["multiplicative"] <= noisy["epsilon"] * (1 + 1e-6)).all()
    private = np.isfinite(frame["epsilon"])
    assert (frame.loc[private, "infinite_share"] == 0).all()
    infinite = np.isinf(frame["multiplicative"])
    assert (infinite == (frame["infinite_share"] > 0.02)).all()
    assert (frame["multiplicative"] <= frame["maximum"]).all()
    assert frame["worth"].between(0, 1 + 1e-9).all()
    # Of one mechanism in one data set there is one advantage.
    mechanism = frame.groupby(comparisons.SETTING[:-1])[["additive", "multiplicative", "worth"]]
    assert (mechanism.nunique() == 1).all(axis=None)
    # The label-DP bound of chapter 4: the additive advantage is at most tanh(epsilon / 2) / 2.
    assert (frame.loc[private, "additive"] <= np.tanh(frame.loc[private, "epsilon"] / 2) / 2).all()


@pytest.mark.parametrize(
    ("kind", "parameter", "sign"), [("RR", "epsilon", 1), ("LLP", "bag_size", -1)]
)
def test_more_noise_and_larger_bags_reveal_less(kind, parameter, sign):
    chosen = published().query("kind == @kind")
    assert set(chosen["dataset"]) == set(published()["dataset"])
    for _, runs in chosen.groupby("dataset"):
        for measure in ("additive", "worth"):
            means = runs.groupby(parameter)[measure].first()
            assert (sign * np.diff(means) >= -1e-6).all()


def test_a_geometric_bag_of_one_is_not_needed():
    """LLP+Geom at k = 1 is RR (C-k1), so the published grid leaves it out."""
    assert 1 not in GRID.mechanisms["LLP+Geom"]["bag_size"]


# The chapter


def test_published_points_are_the_tables():
    found = table("published.csv").sort_values(comparisons.SETTING)
    expected = selected().sort_values(comparisons.SETTING)
    assert np.allclose(found["auc"], expected["auc"], rtol=1e-5)
    assert len(found) == published().drop_duplicates(comparisons.SETTING).shape[0]


def test_the_page_says_how_much_of_the_run_is_done():
    numbers = glued()
    assert numbers["utility-published-runs"] == len(published())
    first = sum(len(GRID.for_data(name)) for name in set(published()["dataset"]))
    assert numbers["utility-planned-runs"] >= max(first, len(published()))
    complete = numbers["utility-planned-runs"] == len(published())
    assert ("The run is not complete" in shown()) != complete


def test_verdicts_follow_from_the_intervals():
    claims = table("claims.csv")
    assert set(claims["verdict"]) <= set(differences.CLAIM_RESULTS)
    assert len(claims) == 2 * claims.drop_duplicates(["claim", "data"]).shape[0]
    for _, row in claims.iterrows():
        similar, most = " like " in row["claim"], 0.02 * ("not above" in row["claim"])
        if row["trials"] < 2:
            assert row["verdict"] == "not testable here"
        elif row["verdict"] == "reproduced":
            assert (row["low"] > -0.02 and row["high"] < 0.02) if similar else row["high"] < most
        elif row["verdict"] == "differs":
            assert row["low"] > most or (similar and row["high"] < -0.02)


def test_the_comparisons_are_those_of_their_settings():
    """The mean over settings of the differences to RR, by a second way; none that is infinite."""
    equal = table("equal.csv")
    chosen = selected()
    able = chosen[
        (chosen["trained_bags"] >= 1000) & ((chosen["kind"] != "LLP") | (chosen["bag_size"] > 1))
    ]
    for _, row in equal[equal["at equal"] == "additive advantage"].iterrows():
        loss = {"the paper's loss": "cross_entropy", "the likelihood": "likelihood"}[row["learner"]]
        mine = able[(able["dataset"] == row["data"].lower()) & (able["loss"] == loss)]
        curve, points = (mine[mine["kind"] == kind] for kind in ("RR", row["mechanism"]))
        found = differences.against(curve, points, "additive")
        assert len(found) == row["settings"] <= len(points)
        if len(found) and row["trials"] == 1 == found["gaps"].map(len).max():
            assert row["difference"] == pytest.approx(found["difference"].mean(), abs=1e-5)


def test_the_readme_quotes_the_comparisons():
    """The sentence is about comparisons at an equal 98th percentile, where there are any."""
    equal = table("equal.csv")
    rows = equal[(equal["at equal"] == "98th percentile of |I|") & (equal["settings"] > 0)]
    assert set(rows["data"]) == {"Higgs", "KDD12", "Diabetes"}
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"published run, {len(published()):,} trainings on Higgs, KDD12 and Diab" in readme
    assert f"in {(rows['high'] < 0).sum()} of {len(rows)} comparisons at an equal 98th" in readme
    assert f"by {-rows['difference'].mean():.3f} of AUC on average" in readme
    landing = (ROOT / "book" / "index.md").read_text(encoding="utf-8")
    assert "noise or without, in every possible comparison on Higgs, KDD12 and Diab" in landing
    assert (rows["high"] < 0).all()


def test_targets_protect_somebody():
    """A target that clean labels meet is no target, and bags of one are clean labels."""
    bill = table("targets.csv")
    clean = published().query("kind == 'clean'").groupby("dataset")["additive"].first()
    for data, name in (("Higgs", "higgs"), ("KDD12", "kdd12"), ("Diabetes", "diabetes")):
        targets = bill.loc[bill["data"] == data, "target"].str.extract(r"additive ≤ ([\d.]+)")[0]
        assert name not in clean.index or (targets.dropna().astype(float) < clean[name]).all()
    assert (bill.loc[bill["mechanism"] == "LLP", "bag_size"] > 1).all()


def test_correlations_are_spearmans():
    order = table("order.csv")
    chosen = selected()
    for _, row in order[order["settings"] >= 10].iterrows():
        loss = {"the paper's loss": "cross_entropy", "the likelihood": "likelihood"}[row["learner"]]
        mine = chosen[(chosen["dataset"] == row["data"].lower()) & (chosen["loss"] == loss)]
        mine = mine[
            (mine["trained_bags"] >= 1000) & ((mine["kind"] != "LLP") | (mine["bag_size"] > 1))
        ]
        mine = mine[mine["kind"] != "clean"]
        ranks = mine[["worth", "auc"]].rank()
        assert row["worth"] == pytest.approx(ranks.corr().iloc[0, 1], abs=1e-4)


def test_nothing_is_left_behind():
    assert "mkdtemp" not in source()


@pytest.mark.parametrize("trials", [3, 10])
def test_the_power_of_a_detectable_difference(trials):
    """Against Student's non-central distribution, also for the published run's few trials."""
    shift = differences.difference(0.0, 1.0, trials).detectable
    edge = stats.t(trials - 1).ppf(0.975)
    shifted = stats.nct(trials - 1, shift)
    assert shifted.sf(edge) + shifted.cdf(-edge) == pytest.approx(0.8, abs=1e-5)


def test_the_honest_choice_never_beats_the_best_rate_of_each_trial():
    """It may beat the best rate on average, which is the same for all trials."""
    best = published().groupby([*comparisons.SETTING, "trial"])["auc"].max()
    bound = best.groupby(comparisons.SETTING).mean()
    honest = selected().set_index(comparisons.SETTING)["auc"]
    assert (honest <= bound[honest.index] + 1e-12).all()


def test_numbers_that_are_known():
    numbers = glued()
    assert numbers["utility-optimism"] == pytest.approx(1.4236, abs=1e-4)
    assert 0 < numbers["utility-composed-one"] < numbers["utility-composed-ten"] < 0.25126
