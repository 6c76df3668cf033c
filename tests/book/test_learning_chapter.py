"""Chapters 09, 11 and 17 at smoke scale: the numbers their text rests on."""

import math

import pytest
from smoke import glued_in, table_of

pytest.importorskip("torch", reason="the learning chapters train with torch")


def test_the_right_debiasing_finds_the_truth_and_the_printed_one_does_not():
    numbers = glued_in("09_learning")
    assert numbers["learning-corrected"] == pytest.approx(0.2, abs=1e-5)
    assert abs(numbers["learning-printed"] - 0.2) > 0.1
    minima = table_of("09_learning", "minima.csv").set_index(["debiasing", "k"])
    for size in minima.loc["corrected"].index:
        assert minima.loc[("corrected", size)].tolist() == pytest.approx([0.2, 0.7], abs=1e-5)


def test_expected_gradients_agree_where_the_theorem_says_so():
    numbers = glued_in("09_learning")
    assert numbers["learning-gap"] < 1e-12
    assert numbers["learning-gap-printed"] > 1e-3 and numbers["learning-gap-fourth"] > 1e-4
    assert numbers["learning-least"] >= 1 - 1e-9 and numbers["learning-below"].startswith("0 of ")
    assert glued_in("17_training")["training-floored"] > 0.3


def test_variances_follow_the_formulas():
    variance = table_of("09_learning", "variance.csv")
    assert variance["exact"].tolist() == pytest.approx(variance["formula"].tolist(), rel=1e-6)
    assert set(variance["noise"]) == {"LLP+Geom", "LLP+Lap", "RR"}
    clipped = variance[variance["noise"] == "LLP+Geom"]
    assert (clipped["exact"] < clipped["before clipping"]).all()
    larger = clipped[clipped["k"] > 1]
    above = int((larger["printed"] > larger["exact"]).sum())
    assert above == glued_in("09_learning")["learning-above-corrected"] > 0


def test_simulated_fits_lie_on_the_sandwich():
    spread = table_of("09_learning", "spread.csv").set_index(["panel", "curve", "k"]).sort_index()
    for panel in ("difference of log-odds", "base rate"):
        fits = spread.loc[(panel, "simulated fits")]
        exact = spread.loc[(panel, "LLP+Geom"), "deviation"].loc[fits.index]
        assert ((fits["deviation"] - exact).abs() < 5 * fits["standard error"]).all()


def test_the_likelihood_does_not_run_away():
    losses = table_of("17_training", "likelihood.csv").set_index(["loss", "epoch"])["training_loss"]
    # No loss of a released label is below log(1 + exp(-epsilon)), at epsilon 1 about 0.31.
    assert losses["likelihood"].min() > math.log1p(math.exp(-1))


def test_the_skewed_case_is_small_and_below_the_bound():
    numbers = glued_in("11_kdd12")
    assert 0 <= numbers["kdd-response"] < numbers["kdd-bound"] / 5
    # A bag without a click is revealed, and nearly no other.
    empty = (1 - numbers["kdd-fraction"]) ** numbers["kdd-bag-size"]
    assert numbers["kdd-infinite"] == pytest.approx(empty, rel=0.2)
