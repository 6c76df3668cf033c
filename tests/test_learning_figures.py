"""Figures and tables of the learning chapters: what they draw, and that a part is enough."""

import itertools
import math
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text
from scipy.special import expit, logit

import labelaudit as la
from book import sweep
from book.chapters import figures, plots, selection, tables, tradeoff
from book.sweep import audits, results
from book.sweep.grid import Grid
from book.sweep.store import Record

PAIRS = {"bag_size": [2, 8], "epsilon": [0.5, 4.0]}
GRID = Grid(
    mechanisms={
        **{"clean": {}, "RR": {"epsilon": [0.5, 4.0]}, "LLP": {"bag_size": [1, 2, 8]}},
        **{"LLP+Lap": PAIRS, "LLP+Geom": PAIRS},
    },
    learning_rates=(1e-3, 1e-2),
    trials=2,
    train_rows=2400,
)
MECHANISMS = {"RR": la.RandomizedResponse(1.0), "LLP": la.LabelProportions(4)}


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@cache
def records():
    """A whole sweep of the stand-in: true advantages, made-up trainings."""
    data = sweep.load("higgs-like", GRID)
    rng = np.random.default_rng(0)
    trained = [
        Record(
            configuration=configuration,
            data=data.fingerprint,
            result={
                **{"auc": rng.uniform(0.5, 0.8), "validation_loss": rng.random(), "log_loss": 0.6},
                **{"best_epoch": 1, "epochs_run": 1, "seconds": 1.0, "cpu_seconds": 1.0},
                "diverged": None,
            },
        )
        for configuration in sweep.configurations(GRID, data)
    ]
    values = audits.populations(data, data.train.eta, GRID.seed)
    audited = [
        Record(
            configuration=configuration,
            data=data.fingerprint,
            result=audits.advantage_once(values, configuration, quality={"eta_auc": 0.8}),
        )
        for configuration in audits.configurations(GRID, data)
    ]
    return [*trained, *audited]


def of_kinds(*kinds):
    return [record for record in records() if record.configuration["mechanism"]["kind"] in kinds]


def drawn(axes):
    return [name for name in axes.get_legend_handles_labels()[1] if not name.startswith("hollow")]


def test_the_whole_sweep():
    chosen = selection.select(results.results_frame(records()))
    figure = tradeoff.tradeoff(chosen, "LLP+Geom", "bag_size")
    figure.canvas.draw()
    additive, multiplicative = figure.axes
    curves = ["clean labels", "RR", "LLP", "LLP+Geom, k = 2", "LLP+Geom, k = 8"]
    assert drawn(additive) == drawn(multiplicative) == curves
    arrows = {text.get_text() for text in multiplicative.texts}
    assert "100%" in arrows and sum("%" in text for text in arrows) >= 2
    assert {text.get_text() for text in additive.texts} == {"2", "8"} <= arrows
    assert figure.get_supxlabel() == "simulated data"


def test_the_axis_is_spaced_by_what_is_lost_against_clean_labels():
    """Equal factors of the loss are about equally far apart; without clean labels AUC is linear."""
    rows = [("clean", 0.9), ("RR", 0.88), ("RR", 0.7), ("LLP", 0.5)]
    frame = pd.DataFrame(rows, columns=["kind", "auc"]).assign(reach=0.0)
    _, axes = plots.grid(1, 2)
    for axis, part in zip(axes[0], (frame, frame.iloc[1:]), strict=True):
        tradeoff.scale_by_loss(axis, part)
    labels = [text.get_text() for text in axes[0, 0].get_yticklabels()]
    assert "0.900" in labels and "−0.2" in labels and "−0.4" not in labels
    pixels = axes[0, 0].transData.transform([(0, auc) for auc in (0.85, 0.8, 0.7)])[:, 1]
    assert (pixels[0] - pixels[1]) / (pixels[1] - pixels[2]) == pytest.approx(1, abs=0.1)
    assert axes[0, 1].get_yscale() == "linear"


def test_curves_of_one_mechanism_differ_in_more_than_their_shade():
    """Printed in grey, by the size of their markers and the value written at their right end."""
    chosen = selection.select(results.results_frame(of_kinds("LLP+Geom")))
    axes = tradeoff.tradeoff(chosen, "LLP+Geom", "bag_size").axes[0]
    sizes = [lines[0].get_markersize() for lines in axes.containers]
    assert len(sizes) == 2 and sizes[1] > 1.5 * sizes[0]
    ends = {float(note.get_text()): note.xy[0] for note in axes.texts}
    assert ends == chosen.groupby("bag_size")["additive"].max().to_dict()


def test_notes_do_not_lie_on_each_other():
    figure, axes = plots.grid(1, 1)
    axes[0, 0].set(xlim=(0, 1), ylim=(0, 1))
    figure.draw_without_rendering()
    notes = [tradeoff.Note(0.5, y, f"{y:.0%}", "black") for y in (0.5, 0.505, 0.51, 0.9)]
    tradeoff._write_notes(axes[0, 0], notes)
    figure.draw_without_rendering()
    # The letters alone, without the line that leads back to the point.
    boxes = sorted(map(Text.get_window_extent, axes[0, 0].texts), key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 2 for low, high in itertools.pairwise(boxes))
    low, middle, high, lone = (text.xyann for text in axes[0, 0].texts)
    assert lone == (5, 0) and middle == pytest.approx((5, 0), abs=0.1)
    assert low[1] == pytest.approx(-high[1], abs=0.1) and high[1] > 0


def test_no_marker_hides_the_note_of_a_curve():
    figure, axes = plots.grid(1, 1)
    x = np.linspace(0, 1, 60)
    axes[0, 0].plot(x, x, "o")
    figure.draw_without_rendering()
    tradeoff._write_notes(axes[0, 0], [tradeoff.Note(0.5, 0.5, "16", "black")])
    figure.draw_without_rendering()
    box = Text.get_window_extent(axes[0, 0].texts[0])
    points = axes[0, 0].transData.transform(np.column_stack([x, x]))
    assert not any(box.contains(*point) for point in points)


def test_hollow_markers_are_the_settings_with_few_bags_to_train_on():
    """Of 2,400 rows bags of 2 leave 1,200, and 1,080 to train on; bags of 8 leave too few."""
    chosen = selection.select(results.results_frame(of_kinds("LLP")))
    figure = tradeoff.tradeoff(chosen, "LLP+Geom", "epsilon")
    (hollow,) = [
        line
        for line in figure.axes[0].get_lines()
        if line.get_markerfacecolor() == "white" and len(line.get_xdata())
    ]
    large = chosen[chosen["bag_size"] == 8]
    assert hollow.get_xdata().tolist() == large["additive"].tolist()


@pytest.mark.parametrize("kind", ["clean", "RR", "LLP", "LLP+Lap", "LLP+Geom"])
def test_one_kind_alone_is_drawn(kind):
    chosen = selection.select(results.results_frame(of_kinds(kind)))
    figure = tradeoff.tradeoff(chosen, "LLP+Geom", "epsilon")
    expected = {"clean": 1, "RR": 1, "LLP": 1, "LLP+Lap": 0, "LLP+Geom": 2}[kind]
    assert len(drawn(figure.axes[0])) == expected


def test_half_a_store_is_drawn():
    rng = np.random.default_rng(0)
    some = [record for record in records() if rng.random() < 0.5]
    chosen = selection.select(results.results_frame(some))
    tradeoff.tradeoff(chosen, "LLP+Lap", "epsilon").canvas.draw()


def test_trainings_whose_advantages_are_not_known_yet():
    trained = [record for record in records() if record.configuration["task"] == "train"]
    chosen = selection.select(results.results_frame(trained))
    figure = tradeoff.tradeoff(chosen, "LLP+Geom", "bag_size")
    assert drawn(figure.axes[0]) == ["clean labels"]


def test_zero_and_infinity_have_bins_of_their_own():
    values = pd.Series([0.0, 1e-4, 1e-2, np.inf])
    bins = tradeoff.Bins.of(values)
    at = bins.positions(values)
    assert at.iloc[0] < bins.low < 1e-4 and at.iloc[3] > bins.high > 1e-2
    assert at.iloc[1:3].tolist() == [1e-4, 1e-2]
    _, axes = plots.grid(1, 1)
    bins.set_scale(axes[0, 0])
    ticks = {
        text.get_text(): x
        for text, x in zip(axes[0, 0].get_xticklabels(), axes[0, 0].get_xticks(), strict=True)
    }
    assert ticks["0"] == at.iloc[0] and ticks["∞"] == at.iloc[3] and ticks["0.001"] == 1e-3
    assert axes[0, 0].get_xlim()[0] < at.iloc[0] and axes[0, 0].get_xlim()[1] > at.iloc[3]


@pytest.mark.parametrize("values", [[], [np.nan], [0.0], [np.inf], [0.5], [0.3, 0.31]])
def test_an_axis_of_few_values_can_be_drawn(values):
    bins = tradeoff.Bins.of(pd.Series(values, dtype=float))
    figure, axes = plots.grid(1, 1)
    axes[0, 0].plot(bins.positions(pd.Series(values, dtype=float)), [0.5] * len(values), "o")
    bins.set_scale(axes[0, 0])
    figure.canvas.draw()
    assert bins.low < bins.high and len(axes[0, 0].get_xticks()) >= 1


def test_an_unknown_family_is_refused():
    with pytest.raises(ValueError, match="by must be one of bag_size, epsilon, not 'trial'"):
        tradeoff.tradeoff(selection.select(results.results_frame(records())), "LLP+Geom", "trial")


def test_roc_curves_have_the_colour_of_their_mechanism():
    labels = np.tile([0, 1], 50)
    scores = {"trees": labels + 0.0, "clean": labels * 0.5, "LLP": np.zeros(100)}
    scores["line"] = scores["trees"]
    table = figures.roc_table(labels, scores)
    areas = {"trees": 1.0, "clean": 1.0, "LLP": 0.5, "line": 1.0}
    figure = figures.roc(table, areas, {"clean": None, **MECHANISMS})
    trees, clean, proportions, line = figure.axes[0].get_lines()[:4]
    assert [curve.get_linestyle() for curve in (trees, line, clean)] == [":", "-.", "-"]
    assert proportions.get_color() == plots.kind_of(MECHANISMS["LLP"]).colour
    assert "AUC 1.000" in clean.get_label() and "AUC 0.500" in proportions.get_label()
    np.testing.assert_allclose(table["LLP"], table.index)


def test_three_rows_show_the_exact_distributions():
    rng = np.random.default_rng(0)
    eta = rng.beta(2, 5, 403)
    labels = (rng.random(403) < eta).astype(int)
    found = figures.panels({"one": eta}, labels, MECHANISMS, rng=rng)
    figure = figures.three_rows(found, 1.0)
    cdfs, quantiles = figures.three_tables(found, 1.0)
    response = cdfs["one", "RR"]
    assert response[response.index < 1 - 1e-8].max() == 0
    assert response.iloc[-1] == pytest.approx(1, abs=1e-12)
    whole = eta[:400].reshape(-1, 4)
    share = la.multiplicative_cdf(whole, MECHANISMS["LLP"], 4.0)
    assert cdfs["one", "LLP"].iloc[-1] == pytest.approx(share)
    exact = la.additive_advantage(whole, MECHANISMS["LLP"])
    assert quantiles["one", "LLP"].iloc[-1] == exact.max()
    summary = figures.three_summaries(found, 0.9)
    assert summary.loc[("one", "LLP"), "mean additive"] == pytest.approx(exact.mean())
    shown = f"{found['one', 'LLP'].infinite:.2%}\nat infinity"
    top, middle, bottom = figure.axes
    assert shown in [text.get_text() for text in middle.texts]
    (curve,) = [line for line in bottom.get_lines() if line.get_label() == "LLP"]
    value, above = np.array(curve.get_data())[:, 200]
    assert above == pytest.approx((exact > value).mean())
    drawn_shifts = [points.get_offsets()[:, 1].max() for points in top.collections]
    assert drawn_shifts == pytest.approx([1.0, 1.08 * 4.0])


def test_the_ratio_tells_overconfident_scores_from_true_ones():
    rng = np.random.default_rng(1)
    eta = rng.random(2000)
    labels = (rng.random(2000) < eta).astype(int)
    sure = expit(3 * logit(eta))
    found = tables.grades({"sure": sure, "true eta": eta}, labels)
    # Standard normal for the truth: beyond 5 once in a million seeds.
    assert found.loc["sure", "ratio"] > 5 and abs(found.loc["true eta", "ratio"]) < 5
    assert found.loc["true eta", "Brier"] < found.loc["sure", "Brier"]


def test_warnings_by_mechanism():
    rng = np.random.default_rng(2)
    eta = rng.random(4000)
    labels = (rng.random(4000) < eta).astype(int)
    timid = expit(0.3 * logit(eta))
    found = tables.checked({"true": eta, "timid": timid}, labels, MECHANISMS, rng=rng)
    table = tables.checked_table(found)
    for name, by_mechanism in found.items():
        loud, silent = tables.warned(by_mechanism)
        marked = table.loc[name].query("warning == '!'").index.tolist()
        assert loud == marked and sorted([*loud, *silent]) == sorted(MECHANISMS)
    assert tables.warned(found["timid"])[0] == ["RR", "LLP"]


def test_the_table_of_aucs():
    trials = [
        tables.TrainingScores(0.7, 2, np.zeros(2)),
        tables.TrainingScores(0.8, 3, np.zeros(2)),
    ]
    labels, perfect = np.array([0, 1]), np.array([0.1, 0.9])
    found = tables.auc_table(labels, {"RR": trials, "LLP": trials[:1]}, {"trees": perfect})
    assert found.loc["RR"].tolist() == pytest.approx([0.75, 0.05, 2.5])
    assert math.isnan(found.loc["LLP", "standard error"]) and found.loc["trees", "AUC"] == 1
