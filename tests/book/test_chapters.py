"""Chapters 01, 02, 07 and 08 at smoke scale and with other parameters: what they claim."""

import itertools
import math
import re

import jupytext
import numpy as np
import pytest
from scipy import integrate, stats
from smoke import CHECKOUT, executed, glued, prose, table

import labelaudit as la
from book.chapters.real import published_eta

TITLES = {"beta-2-30": "Beta(2, 30)", "kdd12": "KDD12", "higgs": "Higgs", "diabetes": "Diabetes"}


def priors_of(execution):
    """The priors a run was made with, each once, as the page names them."""
    names = dict.fromkeys(execution.facts["parameters"]["priors"])
    return [TITLES.get(name, name) for name in names]


def test_the_bag_by_hand():
    execution = executed("01_setting")
    beliefs = table(execution, "beliefs.csv")
    eta = beliefs["prior"].to_numpy()
    weights = np.zeros(4)
    for labels in itertools.product([0, 1], repeat=4):
        if sum(labels) == 1:
            weights += np.prod(np.where(labels, eta, 1 - eta)) * np.array(labels)
    np.testing.assert_allclose(beliefs["LLP"], weights / weights.sum(), rtol=1e-12)
    numbers = glued(execution)
    assert 0 < numbers["setting-noisy-largest-shift"] <= 1 + 1e-12
    assert numbers["setting-buyers-down"] == "Cleo"


def test_attacking_agrees_with_the_formula():
    execution = executed("02_additive_advantage")
    results = table(execution, "bag_size.csv")
    drawn = results[results["mechanism"] != "RR"]
    level = results[results["mechanism"] == "RR"].set_index("distribution")["exact"]
    allowance = 4 * drawn["standard error"] + 1e-3
    assert ((drawn["exact"] - drawn["counted"]).abs() <= allowance).all()
    # Of uniform priors, the mean of (min(eta, 1 - eta) - flip)^+ is (1/2 - flip)^2.
    assert level["uniform"] == pytest.approx((0.5 - 1 / (1 + math.e)) ** 2, rel=0.02)
    numbers = glued(execution)
    assert numbers["additive-label-rr"] == pytest.approx(math.tanh(0.5), rel=1e-12)
    assert numbers["additive-label-llp"] > 100 * numbers["additive-llp"] > 0


@pytest.mark.parametrize("overrides", [{}, {"priors": ("uniform",), "epsilon": 4.0, "bag_size": 3}])
def test_the_prediction_on_averages_is_answered_with_its_own_numbers(overrides):
    numbers = glued(executed("02_additive_advantage", **overrides))
    flip = 1 / (1 + math.e)
    mean, _ = integrate.quad(lambda eta: (eta - flip) * stats.beta(2, 30).pdf(eta), flip, 0.5)
    above, _ = integrate.quad(
        lambda eta: (1 - eta - flip) * stats.beta(2, 30).pdf(eta), 0.5, 1 - flip
    )
    assert numbers["additive-predicted-rise"] == pytest.approx(100 * (mean + above), rel=1e-6)
    assert numbers["additive-predicted-tells"] == pytest.approx(math.tanh(0.5))


@pytest.mark.parametrize(
    ("size", "buyers"), [(2, "nobody"), (6, "Cleo, Finn"), (10, "Cleo, Finn, Gita, Jan")]
)
def test_the_first_bag_reads_well_whoever_bought(size, buyers):
    execution = executed("01_setting", bag_size=size)
    assert f"Who bought: {buyers}." in prose(execution)
    assert "the buyer" not in prose(execution)
    posteriors = table(execution, "beliefs.csv")["LLP"]
    count = 0 if buyers == "nobody" else len(buyers.split(", "))
    assert posteriors.sum() == pytest.approx(count)
    assert (posteriors.rank() == table(execution, "beliefs.csv")["prior"].rank()).all() or not count


def test_individual_advantage_of_randomized_response():
    curves = table(executed("02_additive_advantage"), "individual.csv")
    flip = 1 / (1 + math.e)
    closed = np.maximum(np.minimum(curves["prior"], 1 - curves["prior"]) - flip, 0)
    np.testing.assert_allclose(curves["additive_advantage, RR, uniform"], closed, atol=1e-12)


@pytest.mark.parametrize(
    "overrides", [{}, {"priors": ("beta-2-5", "beta-40-40"), "bag_sizes": (3,), "epsilons": (0.7,)}]
)
def test_clouds_lie_where_the_paper_says(overrides):
    execution = executed("07_scatter_plots", **overrides)
    numbers = glued(execution)
    assert numbers["scatter-rr-deviation"] < 1e-12
    assert numbers["scatter-geom-ratio"] <= 1 + 1e-12
    assert numbers["scatter-geom-edge"] == 0
    edges = table(execution, "edges.csv")
    means = {"Beta(2, 30)": 1 / 16, "uniform": 1 / 2, "Beta(2, 5)": 2 / 7, "Beta(40, 40)": 1 / 2}
    p, k = edges["priors"].map(means), edges["bag size"]
    np.testing.assert_allclose(edges["exact"], p**k + (1 - p) ** k, rtol=1e-12)
    distance = (edges["exact"] - edges["sampled"]).abs()
    assert (distance <= 4.5 * edges["standard error"] + 1e-12).all()


def test_the_real_columns_are_the_estimates_that_ship(tmp_path, monkeypatch):
    """With nothing prepared; KDD12 corrected for its thinning, and drawn as before it."""
    monkeypatch.setenv("LABELAUDIT_DATA", str(tmp_path))
    names = ("higgs", "kdd12", "diabetes")
    execution = executed("07_scatter_plots", priors=names, bag_sizes=(8,))
    assert glued(execution)["scatter-sources"] == "Higgs, KDD12, Diabetes: real rows"
    points = table(execution, "points.csv")
    for name in names:
        shipped = published_eta(name)
        eta, kept = shipped.estimates["boosting"], shipped.facts["negatives_kept"]
        possible = np.sort(eta * kept / (1 - eta + eta * kept))
        drawn = points.loc[points["priors"] == name, "eta"].to_numpy()
        nearest = possible[np.searchsorted(possible, drawn * (1 - 1e-3)).clip(max=eta.size - 1)]
        np.testing.assert_allclose(drawn, nearest, rtol=2e-3)
    revealed = table(execution, "edges.csv").set_index("priors")["exact"]
    # The mean of eta is the fraction of ones: 4.4% of the clicks before the sample was thinned.
    assert revealed["KDD12"] == pytest.approx((1 - 0.044) ** 8, rel=0.02)
    assert revealed["Diabetes"] == pytest.approx((1 - 0.139) ** 8, rel=0.03)


def test_infinite_mass_and_the_three_questions():
    numbers = glued(executed("08_advantage_distributions"))
    assert numbers["distribution-certain"] == pytest.approx((15 / 16) ** 8 + (1 / 16) ** 8)
    assert numbers["distribution-gap"] < 0.25
    assert math.isfinite(float(numbers["distribution-population"]))
    assert 0 < numbers["distribution-example-infinite"] < numbers["distribution-above"] < 1
    assert numbers["distribution-geom-most"] <= 1 + 1e-12
    assert numbers["distribution-any"] == pytest.approx(1 - (1 - 2 / 256) ** 1000)
    assert numbers["distribution-needed"] == "286 for Beta(2, 30), 28 for uniform"
    assert numbers["distribution-any-shown"] == "0.9996"


@pytest.mark.parametrize(
    ("overrides", "unbounded"),
    [
        ({}, "Beta(2, 30)"),
        ({"bag_size": 4}, "Beta(2, 30), uniform"),
        ({"priors": ("beta-2-30",)}, "Beta(2, 30)"),
        ({"priors": ("uniform",)}, "none of the priors"),
        ({"priors": ("uniform", "higgs", "kdd12", "diabetes")}, "KDD12, Diabetes"),
        ({"priors": ("uniform", "kdd12"), "level": 0.9}, "KDD12"),
        ({"priors": ("kdd12",), "bag_size": 1, "epsilon": 20.0, "level": 0.5}, "KDD12"),
    ],
)
def test_the_quantiles_read_well_under_any_parameters(overrides, unbounded):
    execution = executed("08_advantage_distributions", **overrides)
    numbers, read = glued(execution), prose(execution)
    assert not re.search(r"\b(inf|nan)\b", read)
    finite = numbers["distribution-example"] not in unbounded
    assert finite == (numbers["distribution-unbounded"] != ", ".join(priors_of(execution)))
    assert (numbers["distribution-population"] != "infinite") == finite
    assert ("Yet for" in numbers["distribution-people"]) == finite
    assert f"in the table above, for {unbounded}." in read


@pytest.mark.parametrize(
    "overrides", [{}, {"priors": ("beta-2-30",), "bag_size": 4, "level": 0.5, "epsilon": 4.0}]
)
def test_the_prediction_on_quantiles_is_answered_with_its_own_numbers(overrides):
    execution = executed("08_advantage_distributions", **overrides)
    eta = np.random.default_rng(8).random((400_000, 8))
    revealed = eta.prod(axis=1) + (1 - eta).prod(axis=1) > 1 - 0.98
    share = glued(execution)["distribution-infinite"]
    assert share == pytest.approx(revealed.mean(), abs=0.004)
    assert f"{share:.1%} of the people have an infinite own quantile" in prose(execution)


def test_every_part_of_the_three_rows_is_in_a_table():
    execution = executed("08_advantage_distributions")
    points = table(execution, "points.csv")
    assert set(points["mechanism"]) == {"RR", "LLP", "LLP+Geom"}
    shares = table(execution, "multiplicative.csv", header=[0, 1, 2], index_col=0)
    assert {kind for kind, *_ in shares.columns} == {"exact", "sample"}
    gap = (shares["exact"] - shares["sample"]).abs().max().max()
    assert gap == pytest.approx(glued(execution)["distribution-gap"], abs=1e-5)
    line = table(execution, "additive_response.csv", index_col=0)["uniform"]
    flip = 1 / (1 + math.e)
    np.testing.assert_allclose(line.loc[0.1], 2 * (flip + 0.1), rtol=1e-5)


@pytest.mark.parametrize("size", [1, 2, 8])
def test_probability_of_the_border_is_that_of_the_end_releases(size):
    cells = jupytext.read(CHECKOUT.source("07_scatter_plots")).cells
    (code,) = [
        cell.source for cell in cells if cell.source.startswith("def probability_of_an_end(")
    ]
    exec(code, scope := {"np": np})
    chance = scope["probability_of_an_end"](0.3, size, 0.8)
    mechanism = la.GeometricProportions(size, 0.8)
    below = la.multiplicative_cdf(np.full((1, size), 0.3), mechanism, 0.8 * (1 - 1e-9))
    assert chance == pytest.approx(1 - float(below), rel=1e-9)
    count = la.poisson_binomial.pmf(np.full((1, size), 0.3))[0]
    assert chance == pytest.approx(count @ clipped_geometric(size, 0.8)[:, [0, -1]].sum(axis=1))


@pytest.mark.parametrize(
    "mechanism", [la.LabelProportions(3), la.GeometricProportions(3, 0.8)], ids=repr
)
def test_own_quantiles_against_enumeration(mechanism):
    cells = jupytext.read(CHECKOUT.source("08_advantage_distributions")).cells
    scope = {"np": np, "la": la, "level": 0.9}
    for name in ("release_probabilities", "bag_quantiles", "own_quantiles"):
        (code,) = [cell.source for cell in cells if cell.source.startswith(f"def {name}(")]
        exec(code, scope)
    eta = np.random.default_rng(5).beta(2, 5, (6, 3))
    channel = (
        np.eye(4) if math.isinf(mechanism.epsilon) else clipped_geometric(3, mechanism.epsilon)
    )
    expected = [[own_quantile(bag, i, channel, 0.9) for i in range(3)] for bag in eta]
    np.testing.assert_allclose(scope["own_quantiles"](eta, mechanism), expected, rtol=1e-9)


def clipped_geometric(k, epsilon):
    """Rows: true count; columns: the count after noise and clipping, summed far out."""
    noise = np.arange(-200, 201)
    weight = np.exp(-epsilon * np.abs(noise))
    rows = [np.bincount(np.clip(s + noise, 0, k), weight, k + 1) for s in range(k + 1)]
    return np.array(rows) / weight.sum()


def own_quantile(bag, i, channel, level):
    """The quantile of one person's |I|, from the joint distribution of label and release."""
    joint = np.zeros((2, channel.shape[1]))
    for labels in itertools.product([0, 1], repeat=len(bag)):
        joint[labels[i]] += np.prod(np.where(labels, bag, 1 - bag)) * channel[sum(labels)]
    with np.errstate(divide="ignore"):
        shift = np.abs(np.log(joint[1] / joint[0]) - np.log(bag[i] / (1 - bag[i])))
    order = np.argsort(shift)
    reached = joint.sum(axis=0)[order].cumsum() >= level - 1e-12
    return shift[order][reached.argmax()]


def test_the_first_chapter_needs_the_exact_attacker_alone():
    modules = executed("01_setting").facts["modules"]
    assert "labelaudit.attack" in modules
    heavy = ("labelaudit.auditing", "labelaudit.datasets", "labelaudit.learning", "book.sweep")
    assert [name for name in modules if name.startswith(heavy)] == []
