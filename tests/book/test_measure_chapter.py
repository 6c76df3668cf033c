"""Chapter 16 at smoke scale and with other parameters: what it claims, from its own tables."""

import math

import numpy as np
import pytest
from smoke import executed, glued, glued_in, table, table_of

CHAPTER = "16_which_measure"


def test_every_mechanism_lies_between_the_norms():
    points = table_of(CHAPTER, "norms.csv")
    drawn = points[points["series"].isin(["RR", "LLP", "LLP+Geom, $\\varepsilon = 1$"])]
    assert len(drawn) >= 8
    assert (drawn["x"] ** 2 <= drawn["y"] + 1e-6).all()
    assert (drawn["y"] <= drawn["x"] + 1e-6).all()
    response = drawn[drawn["series"] == "RR"]
    np.testing.assert_allclose(response["y"], response["x"] ** 2, rtol=1e-5)
    noisy = drawn[drawn["series"].str.startswith("LLP+Geom")]
    assert (noisy["y"] <= noisy["x"] * math.tanh(0.5) + 1e-6).all()


def test_what_is_certain_at_no_advantage_is_what_the_proof_says():
    curves = table_of(CHAPTER, "gamed.csv")
    sure = curves[curves["series"] == "certain labels"]
    np.testing.assert_allclose(sure["y"], np.abs(1 - 2 * sure["x"]), atol=1e-5)
    gained = curves[curves["series"] == "worth"]
    eta = np.minimum(gained["x"], 1 - gained["x"])
    np.testing.assert_allclose(gained["y"], (1 - 2 * eta) / (2 * (1 - eta)), atol=1e-5)
    numbers = glued_in(CHAPTER)
    assert numbers["measure-certain"] == pytest.approx(0.9, abs=0.01)
    assert numbers["measure-hospital-worth"] == pytest.approx(0.9 / 1.9, abs=1e-9)


def test_no_mechanism_is_above_the_frontier():
    drawn = table_of(CHAPTER, "frontier.csv")
    top = drawn[drawn["series"].str.startswith("no limit")]
    markers = drawn[drawn["series"].isin(["RR", "LLP", "LLP+Geom"])]
    # The frontier is linear up to the clear label.
    assert (markers["y"] <= np.interp(markers["x"], top["x"], top["y"]) + 1e-5).all()
    assert top["y"].iloc[0] == pytest.approx(0.4 / 1.4, abs=1e-5)


@pytest.mark.parametrize(
    "overrides",
    [
        {"bag_sizes": (1,), "epsilons": (1.0,), "priors": ("constant-0.5",)},
        {"priors": ("zero-or-half",), "percentile": 0.6, "seed": 7},
    ],
)
def test_the_page_holds_with_other_parameters(overrides):
    execution = executed(CHAPTER, **overrides)
    assert (table(execution, "garbled.csv")["max"] <= 1 + 1e-9).all()
    values = table(execution, "worth.csv")["worth"]
    assert ((values >= 0) & (values <= 1 + 1e-12)).all()
    assert 0 <= glued(execution)["measure-unseen"] <= 1
