"""Chapter 12 at smoke scale, and the published results that it plots."""

import math
import re
from functools import cache, partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import smoke
from conftest import ROOT
from scipy import stats
from statsmodels.stats.multitest import multipletests

from book.chapters import differences, selection, tradeoff
from book.sweep import results
from book.sweep.grid import read_grid
from book.tools.parameters import ContractError

CHAPTER = "12_privacy_utility"
GRID = read_grid(ROOT / "results" / "published.yml")
SETS = ["higgs", "kdd12", "diabetes"]
executed = partial(smoke.executed, CHAPTER)
source = partial(smoke.text, CHAPTER)


def glued():
    return smoke.glued(executed())


def table(name):
    return smoke.table(executed(), name)


@cache
def published():
    return pd.read_csv(ROOT / "results" / "published.csv.gz")


@cache
def selected():
    """The published settings at the rate that the honest rule chooses."""
    return selection.select(published(), by="released")


def test_a_bag_size_that_leaves_too_few_bags_is_refused():
    with pytest.raises(
        ContractError, match="bag_size 512 leaves too few bags of 600 training rows"
    ):
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
    assert set(runs[results.SETTING[1:]].itertuples(index=False, name=None)) <= settings
    assert not runs.duplicated(results.RUN).any() and runs["trial"].between(0, own.trials - 1).all()
    assert (runs["seed"] == own.seed + runs["trial"]).all()
    assert runs["fingerprint"].nunique() == 1 and runs["model"].nunique() == 1
    assert (runs["batch_size"] == runs["bag_size"].clip(own.training["batch_size"])).all()
    for _, setting in runs[~runs["learning_rate"].isin(own.learning_rates)].groupby(
        results.SETTING
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
    mechanism = frame.groupby(results.SETTING[:-1])[["additive", "multiplicative", "worth"]]
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
    found = table("published.csv").sort_values(results.SETTING)
    expected = selected().sort_values(results.SETTING)
    assert np.allclose(found["auc"], expected["auc"], rtol=1e-5)
    assert len(found) == published().drop_duplicates(results.SETTING).shape[0]


def test_the_page_says_how_much_of_the_run_is_done():
    numbers = glued()
    assert numbers["utility-published-runs"] == len(published())
    first = sum(len(GRID.for_data(name)) for name in set(published()["dataset"]))
    assert numbers["utility-planned-runs"] >= max(first, len(published()))
    complete = numbers["utility-planned-runs"] == len(published())
    assert ("The run is not complete" in smoke.prose(executed())) != complete


def test_verdicts_follow_from_the_intervals():
    claims = table("claims.csv")
    assert set(claims["verdict"]) <= set(differences.CLAIM_RESULTS)
    assert len(claims) == 2 * claims.drop_duplicates(["claim", "data"]).shape[0]
    similar = claims["claim"].str.contains(" like ")
    reproduced, differs = (claims["verdict"] == word for word in ("reproduced", "differs"))
    inside = (claims["low"] > -claims["margin"]) & (claims["high"] < claims["margin"])
    outside = (claims["low"] > claims["margin"]) | (claims["high"] < -claims["margin"])
    decided = similar & (claims["trials"] > 1)
    assert (reproduced[decided] == inside[decided]).all()
    assert (differs[decided] == outside[decided]).all()
    decided = ~similar & (claims["trials"] > 1)
    assert (reproduced[decided] == (claims["high"] < 0)[decided]).all()
    assert (differs[decided] == (claims["low"] > 0)[decided]).all()
    assert (claims.loc[claims["trials"] < 2, "verdict"] == "not testable here").all()
    assert f"1/{2 ** published()['trial'].nunique()}" in smoke.prose(executed())


def test_no_difference_is_counted_under_two_claims():
    claims = table("claims.csv").query("settings > 0")
    assert not claims.duplicated(["data", "learner", "difference"]).any()


def test_similar_is_a_fraction_of_what_the_curve_climbs():
    claims = table("claims.csv").dropna(subset="margin")
    response = best_rates(1000).query("kind == 'RR'")
    means = response.groupby(["dataset", "loss", "epsilon"])["auc"].mean()
    ranges = means.groupby(["dataset", "loss"]).agg(np.ptp)
    expected = [
        ranges[data.lower(), LOSSES[name]]
        for data, name in zip(claims["data"], claims["learner"], strict=True)
    ]
    assert np.allclose(claims["margin"], glued()["utility-similar"] * np.array(expected), rtol=1e-4)


# The comparisons again, with pandas alone

LOSSES = {"the paper's loss": "cross_entropy", "the likelihood": "likelihood"}
COLUMNS = {
    "additive advantage": "additive",
    "98th percentile of |I|": "multiplicative",
    "largest |I|": "maximum",
}
PAIR = ["dataset", "kind", "loss"]


@cache
def best_rates(least):
    """Of each trial of a setting with enough bags, the rate with the least loss on its releases."""
    runs = published()
    held_out = np.floor(runs["bags"] * runs["validation"]).clip(lower=1)
    runs = runs[(runs["bags"] - held_out >= least) & ~runs["kind"].eq("clean")]
    runs = runs[(runs["kind"] != "LLP") | (runs["bag_size"] > 1)]
    runs = runs.fillna({"validation_loss": math.inf, "auc": 0.5})
    setting = [*PAIR, "bag_size", "epsilon", "trial"]
    return runs.loc[runs.groupby(setting)["validation_loss"].idxmin()]


@cache
def gaps(measure, least=1000):
    """A row for each trial of a setting of LLP and LLP+Geom: its AUC less RR's at its advantage."""
    parts = []
    for _, rows in best_rates(least).groupby(["dataset", "loss", "trial"]):
        response = rows[(rows["kind"] == "RR") & (rows[measure] > 0)]
        response = response.sort_values([measure, "epsilon"]).drop_duplicates(measure, keep="last")
        ends = response[measure].min(), response[measure].max()
        rest = rows[rows["kind"].isin(["LLP", "LLP+Geom"]) & rows[measure].between(*ends)]
        logarithms = np.log(rest[measure]), np.log(response[measure])
        parts.append(rest.assign(gap=rest["auc"] - np.interp(*logarithms, response["auc"])))
    return pd.concat(parts)


def by_trial(measure, least=1000):
    """A row for each comparison, a column for each trial."""
    return gaps(measure, least).groupby([*PAIR, "trial"])["gap"].mean().unstack("trial")


def test_the_comparisons_are_those_of_their_settings():
    """All three measures: how many settings, the mean difference and its interval."""
    equal = table("equal.csv")
    assert len(equal) == 3 * 3 * 2 * 2  # measures, data sets, mechanisms, learners
    keys = equal["data"].str.lower(), equal["mechanism"], equal["learner"].map(LOSSES)
    equal.index = pd.MultiIndex.from_arrays(keys, names=PAIR)
    for text, measure in COLUMNS.items():
        printed = equal[equal["at equal"] == text].sort_index()
        settings = gaps(measure).drop_duplicates([*PAIR, "bag_size", "epsilon"])
        counts = settings.groupby(PAIR).size().reindex(printed.index, fill_value=0)
        assert (printed["settings"] == counts).all() and counts.sum() > 0
        trials = by_trial(measure)
        known = printed.loc[trials.index]
        assert set(known.index) == set(printed.index[printed["settings"] > 0])
        assert np.allclose(known["difference"], trials.mean(axis=1), atol=1e-6)
        interval = stats.ttest_1samp(trials, 0, axis=1).confidence_interval()
        assert np.allclose(known[["low", "high"]], np.transpose(interval), atol=1e-6)


def headline():
    """What README, landing page and chapter say about the published run."""
    percentile, additive = by_trial("multiplicative"), by_trial("additive")
    compared = gaps("multiplicative").drop_duplicates(["dataset", "kind", "bag_size", "epsilon"])
    noisy = compared[compared["kind"] == "LLP+Geom"]
    proportions = published().query("kind == 'LLP' and bag_size > 1")
    student = stats.ttest_1samp(percentile, 0, axis=1)
    low, high = student.confidence_interval()
    return {
        "runs": len(published()),
        "trials": published()["trial"].nunique(),
        "comparisons": len(percentile),
        "ahead": (percentile.mean(axis=1) < 0).sum(),
        "additive": len(additive),
        "additive ahead": (additive.mean(axis=1) < 0).sum(),
        "pairs": len(percentile.index.droplevel("loss").unique()),
        "holm": multipletests(student.pvalue, method="holm")[0].sum(),
        "sure": (high < 0).sum(),
        "opposed": (low > 0).sum(),
        "llp": compared.query("kind == 'LLP'")["dataset"]
        .value_counts()
        .reindex(SETS, fill_value=0),
        "llp settings": len(proportions.drop_duplicates(["dataset", "bag_size"])),
        "geometric": len(noisy),
        "epsilon": np.isclose(noisy["multiplicative"], noisy["epsilon"]).sum(),
        **{least: -by_trial("multiplicative", least).mean(axis=1).mean() for least in BAGS},
    }


BAGS = (250, 1000, 8000)


@pytest.mark.parametrize("name", ["README.md", "book/index.md"])
def test_the_headline_says_what_it_rests_on(name):
    facts = headline()
    text = " ".join((ROOT / name).read_text(encoding="utf-8").replace("$\\eps$", "epsilon").split())
    of_sets = ", ".join(
        f"{title} {facts['llp'][data]}"
        for title, data in zip(("Higgs", "KDD12", "Diabetes"), SETS, strict=True)
    )
    for words in (
        f"{facts['runs']:,} trainings, with {facts['trials']} trials of each setting, on samples",
        f"in {facts['ahead']} of {facts['comparisons']} comparisons; at an equal additive",
        f"advantage it does in {facts['additive ahead']} of {facts['additive']}, and the order",
        f"The {facts['comparisons']} comparisons are {facts['pairs']} pairs of a data set",
        f"compared at {facts['llp'].sum()} of {facts['llp settings']} settings ({of_sets})",
        f"In {facts['epsilon']} of the {facts['geometric']} settings with geometric noise, the",
        "bags and noise, not the sample of rows",
        f"correction {facts['holm']} of the {facts['comparisons']} comparisons remain",
        f"is {facts[1000]:.3f} with at least 1,000 bags to train on, {facts[250]:.3f} with 250 and",
        f"and {facts[8000]:.3f} with 8,000",
    ):
        assert words in text, words


def test_the_chapter_says_what_its_answer_rests_on():
    facts, numbers = headline(), glued()
    expected = {
        "utility-published-trials": facts["trials"],
        "utility-ahead": f"{facts['ahead']} of {facts['comparisons']}",
        "utility-additive-ahead": f"{facts['additive ahead']} of {facts['additive']}",
        "utility-sides": f"{facts['sure']}, {facts['opposed']} and {facts['holm']}",
        "utility-pairs": facts["pairs"],
        "utility-llp-compared": f"{facts['llp'].sum()} of {facts['llp settings']}",
        "utility-geometric-epsilon": f"{facts['epsilon']} of {facts['geometric']}",
    }
    assert {name: numbers[name] for name in expected} == expected
    for name, least in zip(
        ("utility-lead-250", "utility-lead", "utility-lead-8000"), BAGS, strict=True
    ):
        assert numbers[name] == pytest.approx(facts[least], abs=1e-9)
    assert "garbling theorem" in smoke.prose(executed())
    assert "not the sample of rows" in smoke.prose(executed())


def test_bars_are_students_intervals():
    """Of the figure of worth as drawn, and of the trade-off; captions say how many trials."""
    likelihood = selected().query("loss == 'likelihood'").dropna(subset="worth")
    spread = likelihood["aucs"].map(lambda aucs: stats.sem(list(aucs.values())))
    factor = stats.t(published()["trial"].nunique() - 1).ppf(0.975)
    by_worth = dict(zip(likelihood["auc"].map("{:.6g}".format), factor * spread, strict=True))
    drawn = table("worth.csv")
    reach = (drawn["y high"] - drawn["y low"]) / 2
    expected = drawn["y"].map("{:.6g}".format).map(by_worth)
    assert expected.notna().all() and np.allclose(reach, expected, atol=2e-6)
    figure = tradeoff.tradeoff(likelihood.query("dataset == 'diabetes'"), "LLP+Geom", "bag_size")
    bars = [bar for axes in figure.axes for bar in axes.containers if bar.has_yerr]
    ends = [np.ptp(path.vertices[:, 1]) for bar in bars for path in bar.lines[2][0].get_paths()]
    assert len(ends) == 2 * len(likelihood.query("dataset == 'diabetes' and kind != 'LLP+Lap'"))
    assert max(ends) == pytest.approx(
        2
        * factor
        * spread[likelihood["dataset"].eq("diabetes") & likelihood["kind"].ne("LLP+Lap")].max()
    )
    plt.close(figure)
    captions = re.findall(r"caption: \|\n(.*?)\n  image", source(), re.DOTALL)
    assert len(captions) == 6
    for caption in captions:
        assert re.search(r"utility-(published|page|scaling)-trials`", caption), caption


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
    best = published().groupby([*results.SETTING, "trial"])["auc"].max()
    bound = best.groupby(results.SETTING).mean()
    honest = selected().set_index(results.SETTING)["auc"]
    assert (honest <= bound[honest.index] + 1e-12).all()


def test_numbers_that_are_known():
    numbers = glued()
    assert numbers["utility-optimism"] == pytest.approx(1.4236, abs=1e-4)
    assert 0 < numbers["utility-composed-one"] < numbers["utility-composed-ten"] < 0.25126
