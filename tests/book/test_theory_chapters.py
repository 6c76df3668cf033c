"""Chapters 03 to 05 at smoke scale: the numbers they print."""

import math

import numpy as np
import pytest
from smoke import glued_in, table_of

import labelaudit as la
from labelaudit import bounds


def test_no_bound_of_chapter_three_is_crossed():
    loose = table_of("03_label_aggregation", "looseness.csv")
    error = loose["error"] / loose["exact"]
    for name in ("LA.2", "T3.3", "Bessel", "root"):
        assert (loose[name] > 1 - 4 * error - 1e-9).all(), name
    numbers = glued_in("03_label_aggregation")
    assert (numbers["two-mixed"], numbers["two-alone"]) == (0.1875, 0.5)
    assert numbers["coins-bessel"] >= 1 and numbers["coins-lemma"] > numbers["coins-bessel"]
    assert 0.125 < numbers["mu-crossing"] < 0.25


def test_the_numbers_of_chapter_four():
    numbers = glued_in("04_randomized_response")
    assert numbers["ada-gain"] == 0 and numbers["ada-guess"] == "still a 0"
    assert numbers["worked"] == pytest.approx(1 - 2 / (1 + math.e))
    assert numbers["worked-printed"] == 0
    eta = (np.arange(1_000_000) + 0.5) / 1_000_000
    mean = bounds.response_advantage(eta, 1.0).mean()
    assert numbers["uniform-mean"] == pytest.approx(mean, rel=1e-6)
    density = 930 * eta * (1 - eta) ** 29
    skewed = (density * bounds.response_advantage(eta, 1.0)).mean()
    assert numbers["skewed-mean"] == pytest.approx(skewed, rel=1e-6)


def test_the_numbers_of_chapter_five():
    numbers = glued_in("05_multiplicative_advantage")
    assert numbers["rare-certain"] == pytest.approx(0.96**8 + 0.04**8)
    assert (numbers["enough-uniform"], numbers["enough-skewed"]) == (7, 61)
    assert numbers["eight-skewed"] == pytest.approx((15 / 16) ** 8 + 16.0**-8)
    assert 0 < numbers["ceiling-laplace"] < numbers["ceiling-geometric"] < 1
    table = table_of("05_multiplicative_advantage", "percentiles.csv")
    assert (table["LLP+Geom"] <= 1 + 1e-12).all()
    exact = table[(table["distribution"] == "uniform") & (table["k"] <= 2)]
    assert np.isinf(exact["LLP"]).all()
    ceiling = table_of("05_multiplicative_advantage", "ceiling.csv")
    ceiling = ceiling.set_index("mechanism")["shift"]
    assert list(ceiling["LLP"].iloc[[0, -1]]) == [-math.inf, math.inf]
    assert list(ceiling["RR"]) == [-1, 1]


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_what_is_said_of_a_prior_of_half_the_flip(epsilon):
    flip = 1 / (1 + math.exp(epsilon))
    after = la.posterior([flip / 2], la.RandomizedResponse(epsilon), [1])[0]
    assert after == pytest.approx((1 - flip) / (3 - 2 * flip))
    assert flip / 2 < after < 0.5


def test_dividing_by_twelve_breaks_the_generous_bound_and_by_ten_does_not():
    eta = np.random.default_rng(10).random((4000, 60))
    step = np.abs(np.diff(np.pad(la.poisson_binomial.pmf(eta), ((0, 0), (1, 1))), axis=1))
    left = step.sum(axis=1) * np.sqrt((eta * (1 - eta)).sum(axis=1))
    assert left.max() < 9 / 10
    assert left.min() > 9 / 12 and left.max() < math.sqrt(2 / math.pi) + 0.001


def test_small_bags_alone_are_drawn_too():
    small = {"bag_sizes": (2, 3), "priors": ("beta-2-5",)}
    tail = table_of("03_label_aggregation", "tail.csv", **small)
    assert set(tail["series"].dropna()) == {"k = 2"}
