"""What a mechanism costs in the audit of a table."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from audit_cases import LLP, RR, frame_of, known_eta, listed, row_of, some_rows, write_shop
from matplotlib.figure import Figure

import labelaudit as la
from labelaudit import auditing, plots
from labelaudit.auditing import figures, utility
from labelaudit.intervals import Interval
from labelaudit.learning import debiased
from labelaudit.learning.calibration import Area, Curve

PRIORS = np.random.default_rng(0).beta(2, 5, 3000)
BOTH = np.column_stack([1 - PRIORS, PRIORS])


@pytest.fixture
def csv(tmp_path):
    return write_shop(tmp_path)


def test_debiased_labels_are_unbiased_and_in_other_bags_each_time():
    labels = np.array([0.0] * 9 + [1.0] * 3)
    mechanism = la.LabelProportions(3)
    rng = np.random.default_rng(0)
    total, bags = np.zeros(12), set()
    for _ in range(8000):
        unbiased, rows = debiased.debiased_labels(labels, mechanism, rng)
        assert sorted(rows) == list(range(12))
        bags.add(tuple(rows[:3]))
        total[rows] += unbiased
    assert len(bags) > 1000
    # A mean over all bags, the record's own among them, would be 0.14 too low on the ones.
    np.testing.assert_allclose(total / 8000, labels, atol=0.06)


def costs_of(data, settings, seed=0):
    """The rows of clean labels and of each setting."""
    eta = known_eta(PRIORS[: len(data)], data.labels)
    options = auditing.Options(utility="logistic", seed=seed)
    return list(auditing.measure_utility(data, eta, settings, options).itertuples())


def test_runs_on_proportions_differ_by_their_bags(csv):
    data = auditing.read(csv, auditing.Columns(label="bought", features=["x", "kind"]))
    settings = listed("llp")
    first, second = (costs_of(data, settings, seed=seed)[1] for seed in (0, 1))
    assert first.auc != second.auc
    rng = np.random.default_rng(0)
    curves = utility._logistic_curves(data, settings, rng, lambda line: None)
    assert len({curve.area.value for curve in curves[settings[0]]}) > 1


def test_rare_labels_and_huge_bags_leave_a_number_out(tmp_path):
    frame = some_rows(3000).drop(columns=["eta", "day"])
    frame["bought"] = (np.arange(3000) < 24).astype(int)
    path = tmp_path / "rare.csv"
    frame.to_csv(path, index=False)
    data = auditing.read(path, auditing.Columns(label="bought"))
    settings = listed("llp", bag_sizes=[2, 300, 2000])
    clean, small, large, huge = costs_of(data, settings)
    assert 0 < clean.auc < 1 and math.isfinite(small.auc)
    assert large.worth == pytest.approx(1 / 300, rel=0.2) and math.isnan(large.auc)
    assert math.isnan(huge.worth) and math.isnan(huge.auc)
    alone = replace(data, labels=(np.arange(3000) == 7).astype(np.int64))
    assert not any(math.isinf(row.auc) for row in costs_of(alone, settings))


@pytest.mark.parametrize("seed", range(5))
def test_every_stretch_of_rows_has_its_proportion_of_ones(seed):
    labels = (np.arange(1000) < 40).astype(np.uint8)
    order = utility.stratified_order(labels, np.random.default_rng(seed))
    assert sorted(order) == list(range(1000))
    for start in range(0, 1000, 250):
        assert labels[order][start : start + 250].sum() in (9, 10, 11)


def test_logistic_model_agrees_with_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    matrix = np.column_stack([np.ones(3000), rng.standard_normal((3000, 4))])
    labels = (rng.random(3000) < 1 / (1 + np.exp(-(matrix @ [-1, 1, 0.5, 0, -2])))).astype(float)
    sums = (matrix.T @ labels / 3000)[:, None]
    ours = debiased.fit_logistic(matrix, sums, [0.01])[0, :, 0]
    peer = LogisticRegression(C=1 / (0.01 * 3000), tol=1e-10, max_iter=500)
    peer.fit(matrix[:, 1:], labels)
    np.testing.assert_allclose(ours[1:], peer.coef_[0], atol=2e-3)
    assert ours[0] == pytest.approx(peer.intercept_[0], abs=2e-3)


@pytest.mark.parametrize(
    "mechanism, noise",
    [
        (la.RandomizedResponse(1.0), math.exp(1) / math.expm1(1) ** 2),
        (la.LaplaceProportions(4, 1.0), 2.0),
        (la.LabelProportions(4), 0.0),
    ],
)
def test_worth_where_everybody_has_the_same_prior(mechanism, noise):
    """To a linear model the worth is 1 / (k + V / (p (1 - p))); the exact one is no less."""
    linear = 1 / (mechanism.bag_size + noise / (0.3 * 0.7))
    worth = utility.worth_of(np.tile([0.7, 0.3], (2000, 1)), mechanism)
    assert linear - 1e-12 <= worth <= 1.2 * linear
    if not isinstance(mechanism, la.LaplaceProportions):
        assert worth == pytest.approx(linear, rel=1e-9)


class NotDebiased(la.GeometricProportions):
    def debias(self, releases):
        raise ValueError("it does not say how")


class NotReleased(la.GeometricProportions):
    def release(self, labels, rng):
        raise ValueError("a fault of the release")


def test_only_debias_may_say_that_no_model_can_be_trained():
    assert utility.worth_of(BOTH, la.LabelProportions(2000)) is None
    assert utility.worth_of(BOTH, la.Repeated(la.LaplaceProportions(4, 1.0), 2)) is None
    assert not debiased.can_debias(NotDebiased(4, 1.0)) and debiased.can_debias(
        la.LabelProportions(3)
    )
    with pytest.raises(ValueError, match="a fault of the release"):
        debiased.can_debias(NotReleased(4, 1.0))


def test_noise_is_compared_without_random_error():
    """In large bags most of the cost is the bag's own, and an estimate would mix settings up."""
    for kind in (la.GeometricProportions, la.LaplaceProportions):
        worths = [utility.worth_of(BOTH, kind(32, e)) for e in (0.25, 0.5, 1, 2, 4, 8)]
        assert (np.diff(worths) > 0).all() and worths[-1] <= utility.worth_of(
            BOTH, la.LabelProportions(32)
        )


def test_area_under_the_curve_and_its_error():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 500)
    scores = np.round(labels + rng.standard_normal(500), 1)
    curve = Curve.of(scores, labels)
    assert curve.area.value == pytest.approx(roc_auc_score(labels, scores))
    draws = []
    for _ in range(300):
        rows = rng.integers(0, 500, 500)
        draws.append(roc_auc_score(labels[rows], scores[rows]))
    assert curve.area.standard_error == pytest.approx(np.std(draws), rel=0.2)
    assert (curve - curve).area == Area(0.0, 0.0)


def test_one_long_interval_neither_stretches_the_axis_nor_is_hidden():
    kinds = [RR, LLP]
    areas = [Interval(0.75, 0.01, 0.73, 0.77), Interval(0.7, 0.01, 0.68, 0.72)]
    longer = [areas[0], Interval(0.7, 0.2, 0.3, 1.0)]

    def drawn(of_settings):
        pairs = zip(kinds, of_settings, strict=True)
        rows = [row_of(setting, 0.1, 0.2, **auc.columns("auc")) for setting, auc in pairs]
        clean = SimpleNamespace(**Interval(0.76, 0.01, 0.74, 0.78).columns("auc"))
        panel = figures.draw_utility(SimpleNamespace(settings=frame_of(rows), clean=clean)).axes[0]
        heads = [line.get_marker() for line in panel.lines if not line.get_clip_on()]
        return panel.get_ylim(), heads

    (low, high), heads = drawn(areas)
    assert low < 0.68 and high > 0.78 and not heads
    (cut_low, cut_high), heads = drawn(longer)
    assert 0.6 < cut_low < 0.7 and 0.78 < cut_high < 0.82
    assert sorted(heads) == ["^", "v"]


def test_advantages_of_very_different_size_get_a_logarithmic_axis_that_says_so():
    def drawn(values):
        panel = Figure().subplots()
        panel.plot(values, values, "o")
        panel.set_xlabel("advantage")
        plots.spread(values, panel)
        return panel

    even = drawn([0.1, 0.15, 0.2])
    assert even.get_xscale() == "linear" and even.get_xlabel() == "advantage"
    skewed = drawn([-0.001, 0.004, 0.011, 0.02, 0.3])
    assert skewed.get_xlabel() == "advantage (logarithmic beyond 0.01)"
    places = skewed.transData.transform([(x, 0) for x in (0.004, 0.011, 0.3)])[:, 0]
    assert places[1] - places[0] > 0.1 * (places[2] - places[0])
    labels = [label.get_text() for label in skewed.get_xticklabels()]
    assert labels == ["0", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2"]
    assert drawn([0.0, 0.0, 0.1]).get_xscale() == "linear"
