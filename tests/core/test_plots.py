"""Figures: one style for each mechanism, readable in grey, on white, and true to their numbers."""

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from commands import ROOT
from matplotlib.colors import to_rgb

import labelaudit as la
from book.chapters import figures, plots
from book.chapters.drawn import beliefs, likelihood, write_numbers
from book.chapters.simulated import named
from labelaudit import priors

MECHANISMS = {
    "rr": la.RandomizedResponse(1.0),
    "llp": la.LabelProportions(4),
    "geom": la.GeometricProportions(4, 1.0),
    "lap": la.LaplaceProportions(4, 1.0),
    "none": la.NoRelease(4),
}


@pytest.fixture
def panel():
    figure, axes = plots.grid(1, 1)
    yield axes[0, 0]
    plt.close(figure)


def grey(colour):
    """How light a colour is in a black-and-white print."""
    return float(np.dot(to_rgb(colour), [0.299, 0.587, 0.114]))


@pytest.mark.parametrize("name", MECHANISMS)
def test_colours_are_those_of_the_style_sheet(name):
    style = (ROOT / "book" / "_static" / "labelaudit.css").read_text(encoding="utf-8")
    colour = plots.kind_of(MECHANISMS[name]).colour.lower()
    assert f".swatch-{name} {{ background: {colour}; }}" in style


def test_every_mechanism_is_known_without_its_colour():
    kinds = [plots.kind_of(mechanism) for mechanism in MECHANISMS.values()]
    for feature in ("name", "colour", "dashes", "marker"):
        assert len({getattr(kind, feature) for kind in kinds}) == len(kinds), feature


def test_a_mechanism_without_a_look_is_refused():
    with pytest.raises(TypeError, match=r"RandomizedResponse.*not 'RR'"):
        plots.kind_of("RR")


@pytest.mark.parametrize("mechanism", list(MECHANISMS.values())[:4], ids=repr)
@pytest.mark.parametrize("count", [2, 3, 4, 6])
def test_shades_darken_visibly(mechanism, count):
    lightness = [grey(shade) for shade in plots.shades(mechanism, count)]
    assert max(np.diff(lightness)) < -0.03
    assert lightness[0] < 0.9


def test_one_shade_is_the_colour_itself():
    kind = plots.kind_of(MECHANISMS["llp"])
    assert plots.shades(MECHANISMS["llp"], 1) == [kind.colour.lower()]
    with pytest.raises(ValueError, match="count"):
        plots.shades(MECHANISMS["llp"], 0)


def test_grounds_are_white_and_opaque(panel):
    assert panel.figure.get_facecolor() == panel.get_facecolor() == (1, 1, 1, 1)


def test_a_figure_says_that_it_is_simulated(panel):
    plots.simulated(panel.figure)
    assert panel.figure.get_supxlabel() == "simulated priors"


@pytest.mark.parametrize("shift", [-50.0, -1.0, 0.0, 0.3, 50.0, 800.0])
def test_an_arc_moves_every_log_odds_by_the_same_amount(shift):
    eta = np.linspace(0.01, 0.99, 99)
    after = plots.arc(eta, shift)
    assert ((after >= 0) & (after <= 1)).all()
    if abs(shift) < 10:
        moved = np.log(after / (1 - after)) - np.log(eta / (1 - eta))
        np.testing.assert_allclose(moved, shift, atol=1e-12)
    assert plots.arc([0.0, 1.0], shift).tolist() == [0.0, 1.0]


def test_randomized_response_lands_on_its_spindle(panel):
    eta = np.linspace(0.01, 0.99, 99)
    mechanism = la.RandomizedResponse(1.3)
    plots.spindle(panel, 1.3)
    upper, lower = (line.get_xydata() for line in panel.get_lines())
    for release, line in ((1.0, upper), (0.0, lower)):
        after = la.posterior(eta, mechanism, np.full(eta.size, release))
        np.testing.assert_allclose(after, plots.arc(eta, 1.3 * (2 * release - 1)), rtol=1e-12)
        np.testing.assert_allclose(np.interp(eta, *line.T), after, atol=2e-3)


def test_many_points_become_pixels_and_few_do_not(panel):
    sparse, dense = np.linspace(0, 1, 10), np.linspace(0, 1, 5000)
    plots.scatter(panel, sparse, sparse, "black")
    plots.scatter(panel, dense, dense, "black")
    assert [bool(points.get_rasterized()) for points in panel.collections] == [False, True]


def test_sampled_markers_lie_on_the_distribution_function(panel):
    sample = np.array([0.0, 0.0, 0.5, 1.0, np.inf, np.inf])
    figures.sampled_cdf(panel, sample, MECHANISMS["llp"], count=6)
    shown = dict(panel.get_lines()[0].get_xydata())
    assert shown == pytest.approx({0.0: 2 / 6, 0.5: 3 / 6, 1.0: 4 / 6})


@pytest.mark.parametrize("fraction", [0.0, 0.0078, 0.6, 1.0])
def test_the_fraction_at_infinity_is_written_out(panel, fraction):
    figures.infinite_fraction(panel, fraction, MECHANISMS["llp"])
    assert f"{fraction:.2%}\nat infinity" in [text.get_text() for text in panel.texts]


def test_likelihood_bars_are_the_mechanisms(panel):
    likelihood(panel, MECHANISMS["geom"], 0.25)
    heights = [bar.get_height() for bar in panel.patches]
    np.testing.assert_allclose(heights, np.exp(-np.abs(1 - np.arange(5))))


def test_beliefs_show_prior_and_posteriors(panel):
    eta = np.array([0.1, 0.4, 0.7, 0.2])
    after = la.posterior([eta], MECHANISMS["llp"], [0.25])[0]
    beliefs(panel, ["a", "b", "c", "d"], eta, {MECHANISMS["llp"]: after})
    prior, posterior = (points.get_offsets()[:, 0] for points in panel.collections)
    np.testing.assert_array_equal(prior, eta)
    np.testing.assert_array_equal(posterior, after)


def test_error_bars_span_two_standard_errors(panel):
    plots.measured(panel, [1, 2], [0.5, 0.4], [0.1, 0.05], MECHANISMS["lap"])
    segments = panel.collections[0].get_segments()
    np.testing.assert_allclose([s[:, 1] for s in segments], [[0.3, 0.7], [0.3, 0.5]])


def test_priors_go_by_their_names():
    assert named("beta-2-5") == priors.Beta(2, 5)
    assert named("beta-0.5-40") == priors.Beta(0.5, 40)
    assert named("constant-0.4") == priors.TwoPoint(0.4, 0.4)
    assert named("tenth-or-half") == priors.TwoPoint(0.1, 0.5, weight=0.5)
    draws = named("uniform").sample(20_000, np.random.default_rng(0))
    # The largest deviation of 20,000 uniform draws exceeds this once in a million.
    assert np.abs(np.sort(draws) - np.arange(20_000) / 20_000).max() < 0.02
    for wrong in ("Uniform", "beta", "beta-2", "beta-2-30-1", "beta--2-3", "constant-", ""):
        with pytest.raises(ValueError, match=f"not {wrong!r}"):
            named(wrong)
    with pytest.raises(ValueError, match=r"not \['uniform'\]"):
        named(["uniform"])


def test_priors_have_labels_for_figures():
    names = ["beta-2-30", "uniform", "beta-0.5-40", "constant-0.4", "zero-or-half"]
    labels = ["Beta(2, 30)", "uniform", "Beta(0.5, 40)", "constant 0.4", "0 or 0.5"]
    assert [named(name).label for name in names] == labels
    assert priors.TwoPoint(0.1, 0.7, weight=0.25).label == "0.1 or 0.7 (probability 0.25)"
    assert priors.Empirical([0.5], label="Higgs").label == "Higgs"
    assert priors.Uniform() == priors.Beta(1, 1)


def test_two_point_priors_know_their_mean_and_distribution():
    prior = priors.TwoPoint(0.1, 0.7, weight=0.25)
    assert prior.mean == pytest.approx(0.25)
    at = [0.0, 0.1, 0.5, 0.7, 1.0]
    np.testing.assert_array_equal(prior.cdf(at), [0, 0.75, 0.75, 1, 1])
    np.testing.assert_array_equal(priors.TwoPoint(0.3, 0.3).cdf([0.2, 0.3]), [0, 1])


@pytest.fixture
def written(panel, tmp_path):
    """What the table behind the panel holds, by series."""

    def read():
        write_numbers(panel.figure, tmp_path / "numbers.csv")
        table = pd.read_csv(tmp_path / "numbers.csv", keep_default_na=False)
        return {
            name: part.drop(columns=["panel", "series"]) for name, part in table.groupby("series")
        }

    return read


def test_the_table_behind_a_figure_names_points_with_error_bars(panel, written):
    panel.errorbar([1, 2, 3], [0.5, 0.4, np.nan], [0.1, 0.05, 0.1], capsize=2, label="measured")
    panel.plot([1, 2], [0.6, 0.3], label="exact")
    series = written()
    assert list(series) == ["exact", "measured"]
    assert series["measured"][:2].astype(float).to_numpy() == pytest.approx(
        np.array([[1, 0.5, 0.4, 0.6], [2, 0.4, 0.35, 0.45]])
    )
    assert (series["exact"][["y low", "y high"]] == "").all(axis=None)


def test_the_table_leaves_out_lines_across_the_panel(panel, written):
    panel.plot([1, 2], [3, 4], label="data")
    panel.axvline(1.5, label="here")
    panel.axhline(0.1)
    panel.axline((0, 0), slope=1)
    series = written()
    assert list(series) == ["data"]
    assert series["data"].to_numpy().tolist() == [[1, 3], [2, 4]]


def test_the_table_holds_points_bars_and_steps(panel, written):
    panel.scatter([1, 2], [3, 4], label="points")
    panel.bar([1, 3], [5, 6], width=1, label="bars")
    panel.barh([1, 2], [5, 6], label="flat bars")
    panel.stairs([7, 8], [0, 1, 2], label="steps")
    series = {name: part.to_numpy().tolist() for name, part in written().items()}
    assert series == {
        "points": [[1, 3], [2, 4]],
        "bars": [[1, 5], [3, 6]],
        "flat bars": [[5, 1], [6, 2]],
        "steps": [[0, 7], [1, 8]],
    }


def test_the_table_holds_bars_along_both_axes(panel, written):
    panel.errorbar([1.0], [0.5], [[0.1], [0.2]], [[0.5], [1.0]], capsize=2, label="both")
    [row] = written()["both"].to_dict("records")
    assert row == pytest.approx(
        {"x": 1, "y": 0.5, "x low": 0.5, "x high": 2, "y low": 0.4, "y high": 0.7}
    )


def test_a_line_of_one_point_can_be_seen(panel):
    for x in ([8], [8, 16]):
        plots.curve(panel, x, np.ones(len(x)), MECHANISMS["llp"])
    markers = [line.get_marker() for line in panel.lines]
    assert markers == ["o", "None"]
