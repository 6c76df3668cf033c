"""What is read off a sweep: tables, choices of the learning rate, comparisons."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from book.chapters import differences, selection
from book.sweep import results
from book.sweep.audits import REVISION
from book.sweep.store import Record
from labelaudit import LabelProportions
from labelaudit.learning.training import Run, TrainingSettings

SETTINGS = {
    **{"model": "small", "loss": "cross_entropy", "batch_size": 8, "epochs": 1},
    **{"patience": 3, "validation": 0.1, "clamp": 3.0},
}


def trained(
    kind, rate, trial, auc, loss, data="d" * 64, settings=SETTINGS, seed=2023, **parameters
):
    configuration = {
        "task": "train",
        "dataset": "higgs-like",
        "mechanism": {"kind": kind, **parameters},
        "settings": {"learning_rate": rate, **settings},
        "trial": trial,
        "seed": seed + trial,
    }
    result = {
        **{"auc": auc, "validation_loss": loss, "log_loss": 0.6, "best_epoch": 1, "epochs_run": 1},
        **{"seconds": 1.0, "cpu_seconds": 0.5, "diverged": None},
    }
    return Record(configuration=configuration, data=data, result=result)


def audited(kind, additive, multiplicative, data="d" * 64, source="known", **parameters):
    configuration = {
        "task": "advantage",
        "dataset": "higgs-like",
        "mechanism": {"kind": kind, **parameters},
        "eta": {"source": source},
        **{"estimand": "as sampled", "level": 0.98, "seed": 2023, "revision": REVISION},
    }
    result = dict.fromkeys(results.MEASURES, 0.0)
    result |= {"additive": additive, "multiplicative": multiplicative}
    return Record(configuration=configuration, data=data, result=result)


RATES = (1e-3, 1e-2)
RECORDS = [
    trained("RR", rate, trial, auc, loss, epsilon=1.0)
    for rate, rows in zip(
        RATES,
        # AUC and released loss in three trials: the second rate wins on test, not on its loss
        ([(0.70, 0.60), (0.71, 0.61), (0.69, 0.62)], [(0.72, 0.65), (0.73, 0.60), (0.71, 0.66)]),
        strict=True,
    )
    for trial, (auc, loss) in enumerate(rows)
]


def test_a_row_for_each_training_with_its_advantage_beside():
    frame = results.results_frame([*RECORDS, audited("RR", 0.05, 1.0, epsilon=1.0)])
    assert len(frame) == 6
    assert set(frame["additive"]) == {0.05} and set(frame["bag_size"]) == {1}
    assert frame[["learning_rate", "trial"]].to_numpy().tolist() == [
        [rate, trial] for rate in RATES for trial in range(3)
    ]


def test_an_advantage_on_other_data_is_not_taken():
    frame = results.results_frame([*RECORDS, audited("RR", 0.05, 1.0, data="e" * 64, epsilon=1.0)])
    assert frame["additive"].isna().all()


def test_an_advantage_of_an_earlier_revision_is_not_taken():
    old = audited("RR", 0.05, 1.0, epsilon=1.0)
    del old.configuration["revision"]
    assert results.results_frame([*RECORDS, old])["additive"].isna().all()


def test_a_table_says_what_made_each_training():
    made = {
        "versions": {"python": "3.11.9", "labelaudit": "1.2", "torch": "2.13.0"},
        **{"device": "cpu", "finished": "2024-05-01T10:00:00Z"},
    }
    one = RECORDS[0]
    known = replace(one, made=made)
    first, second = results.results_frame([known, RECORDS[1]])[results.MADE].to_numpy().tolist()
    assert first == ["labelaudit 1.2, python 3.11.9, torch 2.13.0", "cpu", "2024-05-01T10:00:00Z"]
    assert pd.isna(second).all()


def test_a_partial_table_has_every_column():
    assert list(results.results_frame([])) == list(results.results_frame(RECORDS[:1]))
    assert set(results.MEASURES) <= set(results.results_frame(RECORDS))


def test_advantages_of_different_estimates_are_not_mixed():
    one = audited("RR", 0.05, 1.0, epsilon=1.0)
    other = audited("LLP", 0.06, 1.0, source="network", bag_size=2)
    with pytest.raises(ValueError, match=r"more than one grid: advantages from different estimate"):
        results.results_frame([*RECORDS, one, other])
    assert results.results_frame([*RECORDS, one])["eta_recipe"].nunique() == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"settings": {**SETTINGS, "epochs": 2}}, "epochs is 1 and 2"),
        ({"settings": {**SETTINGS, "batch_size": 16}}, "batch_size is 8 and 16"),
        ({"settings": {**SETTINGS, "patience": None}}, "patience is 3.0 and nan"),
        ({"settings": {**SETTINGS, "model": "linear"}}, "model is small and linear"),
        ({"data": "e" * 64}, "fingerprint is dddddddddddd and eeeeeeeeeeee"),
        ({"seed": 7}, "seed is 2023 and 7"),
    ],
)
def test_grids_are_not_pooled(change, said):
    other = trained("RR", 1e-3, 0, 0.9, 0.5, epsilon=2.0, **change)
    frame = results.results_frame([*RECORDS, other])
    with pytest.raises(
        ValueError, match=f"results of higgs-like are of more than one grid: {said}"
    ):
        selection.select(frame)


def test_a_batch_raised_to_hold_its_bag_is_of_the_same_grid():
    large = trained("LLP", 1e-3, 0, 0.6, 0.6, settings={**SETTINGS, "batch_size": 16}, bag_size=16)
    assert len(selection.select(results.results_frame([*RECORDS, large]))) == 2


def test_a_run_counts_once():
    frame = results.results_frame([*RECORDS, RECORDS[4]])
    with pytest.raises(ValueError, match=r"trial 1 of RR .*learning rate 0.01 .* more than once"):
        selection.select(frame)


def test_no_run_to_select_from():
    with pytest.raises(ValueError, match="no run to select from"):
        selection.select(results.results_frame([]))


def test_half_a_grid_is_a_table_too():
    assert results.results_frame([]).empty
    chosen = selection.select(results.results_frame(RECORDS[:1]))
    assert len(chosen) == 1 and math.isnan(chosen["error"].iloc[0])


def test_the_papers_choice_takes_the_best_mean_test_auc():
    row = selection.select(results.results_frame(RECORDS), by="test").iloc[0]
    assert row["learning_rate"] == 1e-2 and row["auc"] == pytest.approx(0.72)
    assert row["error"] == pytest.approx(0.01 / math.sqrt(3)) and row["trials"] == 3
    assert row["reach"] == pytest.approx(4.3027 * row["error"], rel=1e-4)


def test_the_honest_choice_looks_at_released_labels_alone():
    row = selection.select(results.results_frame(RECORDS), by="released").iloc[0]
    assert row["aucs"] == {0: 0.70, 1: 0.73, 2: 0.69}
    assert row["learning_rate"] == 1e-3
    # Test AUCs have no part in it: others choose the same runs.
    other = results.results_frame(RECORDS)
    other["auc"] = np.random.default_rng(0).random(len(other))
    chosen = selection.select(other, by="released").iloc[0]["aucs"]
    lookup = other.set_index(["trial", "learning_rate"])["auc"]
    assert chosen == {0: lookup[0, 1e-3], 1: lookup[1, 1e-2], 2: lookup[2, 1e-3]}


def test_the_searchs_choice_takes_the_least_mean_loss():
    """The first rate is better in one trial by a little, the second in the other by much."""
    losses = {1e-3: (0.5, 0.9), 1e-2: (0.6, 0.6)}
    records = [
        trained("RR", rate, trial, 0.7 + rate, loss, epsilon=1.0)
        for rate, trials in losses.items()
        for trial, loss in enumerate(trials)
    ]
    row = selection.select(results.results_frame(records), by="mean").iloc[0]
    assert row["learning_rate"] == 1e-2 and row["aucs"] == {0: 0.71, 1: 0.71}
    honest = selection.select(results.results_frame(records), by="released").iloc[0]
    assert honest["aucs"] == {0: 0.701, 1: 0.71}


def test_a_run_without_a_loss_is_not_chosen():
    records = [
        trained("RR", 1e-3, 0, 0.9, math.nan, epsilon=1.0),
        trained("RR", 1e-2, 0, 0.6, 0.7, epsilon=1.0),
    ]
    assert selection.select(results.results_frame(records)).iloc[0]["auc"] == 0.6


def test_a_training_without_a_model_counts_as_a_guess():
    good = [trained("RR", 1e-3, trial, 0.7, 0.6, epsilon=1.0) for trial in range(2)]
    half = [
        trained("RR", 1e-2, trial, auc, math.nan, epsilon=1.0)
        for trial, auc in enumerate([0.8, math.nan])
    ]
    row = selection.select(results.results_frame([*good, *half]), by="test").iloc[0]
    assert row["learning_rate"] == 1e-3 and row["auc"] == 0.7 and row["no_model"] == 0


@pytest.mark.parametrize("by", ["test", "released", "mean"])
def test_a_setting_of_which_nothing_is_left(by):
    lost = [trained("RR", rate, 0, math.nan, math.nan, epsilon=1.0) for rate in RATES]
    row = selection.select(results.results_frame(lost), by=by).iloc[0]
    assert row["auc"] == 0.5 and row["no_model"] == 1 and row["aucs"] == {0: 0.5}


def test_in_half_a_grid_one_lucky_trial_does_not_win():
    lucky = trained("RR", 1e-1, 0, 0.99, 0.6, epsilon=1.0)
    row = selection.select(results.results_frame([*RECORDS, lucky]), by="test").iloc[0]
    assert row["learning_rate"] == 1e-2 and row["trials"] == 3


def test_an_unknown_choice_is_refused():
    with pytest.raises(ValueError, match=r"by must be 'released', 'mean' or 'test', not 'clean'"):
        selection.select(results.results_frame(RECORDS), by="clean")


def test_paired_differences_are_students():
    one, other = {0: 0.71, 1: 0.74, 2: 0.73, 3: 0.70}, {0: 0.70, 1: 0.71, 2: 0.72, 9: 0.1}
    found = differences.paired(one, other)
    gaps = np.array([0.01, 0.03, 0.01])
    low, high = stats.t.interval(0.95, 2, gaps.mean(), stats.sem(gaps))
    assert (found.low, found.high, found.trials) == (pytest.approx(low), pytest.approx(high), 3)
    assert found.low < 0 < found.high


def test_nothing_against_itself():
    same = {0: 0.7, 1: 0.71}
    assert differences.paired(same, same).value == 0
    with pytest.raises(ValueError, match="at least 2 trials in common, not 1"):
        differences.paired({0: 0.7, 1: 0.7}, {0: 0.7})


def test_the_detectable_difference_is_detected_four_times_in_five():
    """Monte Carlo, 4000 draws: a true 80% is missed by more than 4 points with probability 1e-9."""
    rng = np.random.default_rng(3)
    trials, sigma = 10, 1.0
    true = differences.difference(0.0, sigma / math.sqrt(trials), trials).detectable
    draws = rng.normal(true, sigma, (4000, trials))
    found = [
        differences.paired(dict(enumerate(row)), dict.fromkeys(range(trials), 0.0)) for row in draws
    ]
    seen = [not estimate.low <= 0 <= estimate.high for estimate in found]
    assert np.mean(seen) == pytest.approx(0.8, abs=0.04)


@pytest.mark.parametrize("count", [2, 3, 8])
def test_optimism_of_the_best_of_many(count):
    """Monte Carlo, 200,000 draws: off by 5 standard errors, at most 0.012, once in 10^6."""
    draws = np.random.default_rng(count).standard_normal((200_000, count))
    assert differences.optimism(count) == pytest.approx(draws.max(axis=1).mean(), abs=0.012)


def test_optimism_at_known_values():
    assert differences.optimism(2) == pytest.approx(1 / math.sqrt(math.pi))
    assert differences.optimism(8) == pytest.approx(1.4236, abs=1e-4)


def curve(points, kind="RR"):
    rows = [
        {
            **{"dataset": "d", "kind": kind, "bag_size": 1, "epsilon": float(x), "loss": "squared"},
            **{"additive": x, "auc": y, "aucs": {trial: y + 0.01 * trial for trial in range(3)}},
        }
        for x, y in points
    ]
    return pd.DataFrame(rows)


def test_points_against_a_curve_at_the_same_advantage():
    line = curve([(0.25, 0.5), (1.0, 0.7), (math.inf, 0.9)])
    found = differences.against(line, curve([(0.5, 0.65), (2.0, 0.9)], "LLP"), "additive")
    assert len(found) == 1  # beyond the curve's end nothing is compared
    assert found["difference"].iloc[0] == pytest.approx(0.05)
    assert found["gaps"].iloc[0] == pytest.approx(dict.fromkeys(range(3), 0.05))


def test_a_curve_that_rises_with_the_logarithm_is_met_between_its_settings():
    """A straight line between settings would lie below it, a bias of up to 0.009."""
    line = curve([(x, 0.6 + 0.1 * math.log2(x)) for x in (0.5, 1.0, 2.0, 4.0)])
    between = curve([(x, 0.6 + 0.1 * math.log2(x)) for x in (0.7, 1.5, 3.0)], "LLP")
    found = differences.against(line, between, "additive")
    assert len(found) == 3 and found["difference"].abs().max() < 1e-12


def test_an_advantage_of_zero_has_no_logarithm():
    line = curve([(0.0, 0.5), (0.5, 0.6), (1.0, 0.7)])
    found = differences.against(line, curve([(0.0, 0.5), (0.2, 0.5), (0.5, 0.6)]), "additive")
    assert found["additive"].tolist() == [0.5]


def test_a_curve_against_itself_is_level():
    line = curve([(0.1, 0.5), (0.3, 0.6), (1.0, 0.7)])
    assert differences.against(line, line, "additive")["difference"].abs().max() < 1e-12


def test_of_equal_advantages_the_largest_epsilon_counts():
    line = curve([(0.1, 0.5), (0.1, 0.6), (1.0, 0.7)])
    line["epsilon"] = [0.1, 0.2, 0.3]
    found = differences.against(line, curve([(0.1, 0.65)]), "additive")
    assert found["difference"].iloc[0] == pytest.approx(0.05)


def test_many_differences_count_once_a_trial():
    gaps = [{0: 0.01, 1: 0.03, 2: 0.02}] * 50
    assert differences.together(gaps) == differences.together(gaps[:1])
    assert differences.together(gaps).trials == 3


def test_a_curve_that_lacks_a_trial_is_compared_in_the_others():
    line = curve([(0.25, 0.5), (1.0, 0.7), (2.0, 0.8)])
    line.at[1, "aucs"] = {0: 0.7, 2: 0.72}
    found = differences.against(line, curve([(0.5, 0.65)], "LLP"), "additive")
    assert found["gaps"].iloc[0] == pytest.approx({0: 0.05, 2: 0.05})
    line.at[1, "aucs"] = {9: 0.7}
    assert differences.against(line, curve([(0.5, 0.65)], "LLP"), "additive").empty


def test_nothing_to_put_together():
    with pytest.raises(ValueError, match="no differences to take the mean of"):
        differences.together([])


def test_no_point_to_compare():
    line = curve([(0.1, 0.5), (1.0, 0.7)])
    assert differences.against(line, curve([(2.0, 0.9)]), "additive").empty
    assert differences.against(curve([(math.inf, 0.5)]), line, "additive").empty


@pytest.mark.parametrize(
    ("claim", "trials", "result"),
    [
        ("lower", [-0.03, -0.025, -0.02], "reproduced"),
        # Every trial goes the claim's way, but Student's interval reaches over 0.
        ("lower", [-0.05, -0.001, -0.002], "reproduced in shape"),
        ("lower", [-0.05, 0.001, -0.002], "not testable here"),
        ("lower", [0.03, 0.025, 0.02], "differs"),
        ("lower", [0.05, 0.001, 0.002], "not testable here"),
        ("similar", [0.001, -0.001, 0.002], "reproduced"),
        ("similar", [0.015, -0.015, 0.001], "reproduced in shape"),
        ("similar", [0.015, -0.03, 0.001], "not testable here"),
        ("similar", [-0.05, -0.06, -0.055], "differs"),
        ("similar", [0.05, 0.06, 0.055], "differs"),
        ("lower", [-0.05], "not testable here"),
        ("similar", [], "not testable here"),
    ],
)
def test_claim_results(claim, trials, result):
    assert differences.claim_result(claim, dict(enumerate(trials)), margin=0.02) == result
    assert result in differences.CLAIM_RESULTS


def test_an_unknown_claim_is_refused():
    with pytest.raises(ValueError, match=r"claim must be 'lower' or 'similar', not 'higher'"):
        differences.claim_result("higher", {0: 0.1, 1: 0.1}, margin=0.02)


def test_bags_held_out_are_not_trained_on():
    """As many as training itself leaves: a tenth is held out, and at least one."""
    features = np.zeros((45, 1), dtype=np.float32)
    split = SimpleNamespace(features=features, labels=np.zeros(45, dtype=int))
    for size in (1, 2, 9):
        run = Run(split, LabelProportions(size), TrainingSettings("linear"), 0, None, "cpu", None)
        record = trained("LLP", 1e-3, 0, 0.6, 0.6, bag_size=size)
        audit = audited("LLP", 0.1, 1.0, bag_size=size)
        audit.result["bags"] = 45 // size
        chosen = selection.select(results.results_frame([record, audit])).iloc[0]
        assert chosen["trained_bags"] == len(run.training)


def test_the_fraction_of_runs_that_kept_the_last_epoch():
    settings = {**SETTINGS, "epochs": 2}
    records = [trained("RR", 1e-3, t, 0.7, 0.6, settings=settings, epsilon=1.0) for t in range(4)]
    records[0].result["best_epoch"] = 2
    assert selection.select(results.results_frame(records))["last_epoch"].tolist() == [0.25]


def test_what_a_target_costs():
    line = curve([(0.1, 0.6), (0.2, 0.65), (0.4, 0.7)])
    line["error"] = 0.01
    found = differences.cost(line, "additive", 0.25, clean=0.75)
    assert (found["additive"], found["cost"]) == (0.2, pytest.approx(0.1))
    assert found["among"] == 2
    assert found["optimism"] == pytest.approx(0.01 * differences.optimism(2))
    assert differences.cost(line, "additive", 0.05, clean=0.75) is None
    line["auc"] = math.nan
    assert differences.cost(line, "additive", 0.25, clean=0.75) is None
