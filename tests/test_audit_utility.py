"""What a mechanism costs in the audit of a table."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from audit_cases import LLP, RR, exposed, some_rows, write_shop
from matplotlib.figure import Figure

import labelaudit as la
from labelaudit import auditing as report
from labelaudit.auditing import eta, page, utility
from labelaudit.auditing.intervals import Curve, Interval, Measured
from labelaudit.auditing.table import read_table
from labelaudit.auditing.utility import Utility

PRIORS = np.random.default_rng(0).beta(2, 5, 3000)


@pytest.fixture
def csv(tmp_path):
    return write_shop(tmp_path)


def test_debiased_labels_are_unbiased_and_in_other_bags_each_time():
    labels = np.array([0.0] * 9 + [1.0] * 3)
    mechanism = la.LabelProportions(3)
    rng = np.random.default_rng(0)
    total, bags = np.zeros(12), set()
    for _ in range(8000):
        unbiased, rows = utility.debiased_labels(labels, mechanism, rng)
        assert sorted(rows) == list(range(12))
        bags.add(tuple(rows[:3]))
        total[rows] += unbiased
    assert len(bags) > 1000
    # A mean over all bags, the record's own among them, would be 0.14 too low on the ones.
    np.testing.assert_allclose(total / 8000, labels, atol=0.06)


def test_runs_on_proportions_differ_by_their_bags(csv):
    data = read_table(csv, label="bought", features=["x", "kind"])
    plan = report.AuditPlan(mechanisms=["llp"], bag_sizes=[8])
    _, first = report.measure_utility(data, PRIORS, plan.settings, "logistic", 0)
    _, second = report.measure_utility(data, PRIORS, plan.settings, "logistic", 1)
    assert first.auc.value != second.auc.value
    rows, labels = eta.design(data, np.arange(600)), data.labels.astype(float)
    curves = utility._logistic_curves(rows, labels, plan.settings, np.random.default_rng(0))
    assert len({curve.area.value for curve in curves[plan.settings[0]]}) > 1


def test_rare_labels_and_huge_bags_leave_a_number_out(tmp_path):
    frame = some_rows(3000).drop(columns=["eta", "day"])
    frame["bought"] = (np.arange(3000) < 24).astype(int)
    path = tmp_path / "rare.csv"
    frame.to_csv(path, index=False)
    data = read_table(path, label="bought")
    plan = report.AuditPlan(mechanisms=["llp"], bag_sizes=[2, 300, 2000])
    clean, small, large, huge = report.measure_utility(data, PRIORS, plan.settings, "logistic", 0)
    assert 0 < clean.auc.value < 1 and math.isfinite(small.auc.value)
    assert large.worth == pytest.approx(1 / 300, rel=0.2) and large.auc is None
    assert huge.worth is None and huge.auc is None
    alone = replace(data, labels=(np.arange(3000) == 7).astype(np.uint8))
    for measured in report.measure_utility(alone, PRIORS, plan.settings, "logistic", 0):
        assert measured.auc is None or math.isfinite(measured.auc.value)


@pytest.mark.parametrize("seed", range(5))
def test_every_stretch_of_rows_has_its_proportion_of_ones(seed):
    labels = (np.arange(1000) < 40).astype(np.uint8)
    order = utility.spread_out(labels, np.random.default_rng(seed))
    assert sorted(order) == list(range(1000))
    for start in range(0, 1000, 250):
        assert labels[order][start : start + 250].sum() in (9, 10, 11)


def test_logistic_model_agrees_with_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    matrix = np.column_stack([np.ones(3000), rng.standard_normal((3000, 4))])
    labels = (rng.random(3000) < 1 / (1 + np.exp(-(matrix @ [-1, 1, 0.5, 0, -2])))).astype(float)
    sums = (matrix.T @ labels / 3000)[:, None]
    ours = utility.fit_logistic(matrix, sums, [0.01])[0, :, 0]
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
    worth = utility.worth_of(np.full(2000, 0.3), mechanism)
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
    assert utility.worth_of(PRIORS, la.LabelProportions(2000)) is None
    assert utility.worth_of(PRIORS, la.Repeated(la.LaplaceProportions(4, 1.0), 2)) is None
    assert not utility.can_debias(NotDebiased(4, 1.0)) and utility.can_debias(
        la.LabelProportions(3)
    )
    with pytest.raises(ValueError, match="a fault of the release"):
        utility.can_debias(NotReleased(4, 1.0))


def test_noise_is_compared_without_random_error():
    """In large bags most of the cost is the bag's own, and an estimate would mix settings up."""
    for kind in (la.GeometricProportions, la.LaplaceProportions):
        worths = [utility.worth_of(PRIORS, kind(32, e)) for e in (0.25, 0.5, 1, 2, 4, 8)]
        assert (np.diff(worths) > 0).all() and worths[-1] <= utility.worth_of(
            PRIORS, la.LabelProportions(32)
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
    assert (curve - curve).area == Measured(0.0, 0.0)


def test_the_network_is_trained_for_the_settings_in_focus(csv):
    pytest.importorskip("torch")
    data = read_table(csv, label="bought", features=["x", "kind"])
    plan = report.AuditPlan(mechanisms=["rr"], epsilons=[1.0, 4.0])
    first, second = plan.settings
    rows = report.measure_utility(data, PRIORS, plan.settings, "network", 0, focus=[second])
    utilities = {utility.setting: utility for utility in rows}
    assert utilities[first].auc is None and utilities[first].worth < utilities[second].worth < 1
    assert 0.5 < utilities[second].auc.value < 1 and utilities[None].loss.value == 0


def test_one_long_interval_neither_stretches_the_axis_nor_is_hidden():
    kinds = [RR, LLP]
    areas = [Interval(0.75, 0.01, 0.73, 0.77), Interval(0.7, 0.01, 0.68, 0.72)]
    longer = [areas[0], Interval(0.7, 0.2, 0.3, 1.0)]

    def drawn(of_settings):
        utilities = [Utility(None, 1.0, Interval(0.76, 0.01, 0.74, 0.78), None)]
        utilities += [
            Utility(setting, 0.5, auc, None)
            for setting, auc in zip(kinds, of_settings, strict=True)
        ]
        decisions = [report.Decision(exposed(setting, 0.1, 0.2), "meets", "") for setting in kinds]
        made = SimpleNamespace(decisions=decisions, utilities=utilities)
        panel = page.draw_utility(made).axes[0]
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
        page.spread(values, panel)
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
