"""Calibration: closed forms, the null (a true eta), and mutants that must be noticed."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit, logit

import labelaudit as la
from book.chapters.compared import calibration_ratio, compare
from labelaudit.learning.calibration import (
    brier_score,
    reliability,
    temperature_scale,
)

MECHANISMS = {
    "rr": la.RandomizedResponse(1.0),
    "llp": la.LabelProportions(8),
    "geom": la.GeometricProportions(8, 1.0),
    "lap": la.LaplaceProportions(4, 1.0),
}


def drawn(size, rng):
    eta = rng.beta(1.0, 1.5, size)
    return eta, (rng.random(size) < eta).astype(int)


def test_reliability_against_a_loop():
    rng = np.random.default_rng(1)
    eta, labels = drawn(1003, rng)
    found = reliability(eta, labels, bins=7)
    order = np.argsort(eta)
    starts = [bin * 1003 // 7 for bin in range(8)]
    groups = [order[a:b] for a, b in pairwise(starts)]
    assert found.count.tolist() == [len(group) for group in groups]
    assert found.observed == pytest.approx([labels[group].mean() for group in groups])
    assert found.predicted == pytest.approx([eta[group].mean() for group in groups])
    gaps = [abs(labels[group].mean() - eta[group].mean()) * len(group) for group in groups]
    assert reliability(eta, labels, bins=7).error == pytest.approx(sum(gaps) / 1003)


def test_equal_scores_share_a_bin():
    found = reliability([0.2] * 50 + [0.7] * 20, [0] * 50 + [1] * 20, bins=10)
    assert found.count.tolist() == [50, 20]
    assert found.observed.tolist() == [0, 1]


def test_calibration_error_of_a_true_eta_is_its_noise():
    rng = np.random.default_rng(2)
    found = [reliability(*drawn(3000, rng)) for _ in range(60)]
    errors = np.array([calibration.error for calibration in found])
    noise = np.mean([calibration.noise for calibration in found])
    # Five standard errors of the mean: a false alarm in a million runs.
    assert abs(errors.mean() - noise) < 5 * errors.std() / math.sqrt(60)
    eta, labels = drawn(3000, rng)
    assert reliability(expit(3 * logit(eta)), labels).error > 3 * noise


def test_brier_score_is_least_at_the_true_eta():
    eta, labels = drawn(20_000, np.random.default_rng(3))
    assert brier_score(labels, labels) == 0
    assert brier_score(eta, labels) < brier_score(expit(2 * logit(eta)), labels)
    assert brier_score(eta, labels) < brier_score(expit(logit(eta) + 0.5), labels)


@pytest.mark.parametrize(("slope", "shift"), [(3.0, 0.0), (0.3, 0.0), (1.0, 1.0), (2.0, -1.0)])
def test_scaling_undoes_a_known_distortion(slope, shift):
    eta, labels = drawn(40_000, np.random.default_rng(4))
    bent = expit(slope * logit(eta) + shift)
    scaling = temperature_scale(bent, labels)
    assert scaling.slope == pytest.approx(1 / slope, rel=0.05)
    assert scaling.shift == pytest.approx(-shift / slope, abs=0.05)
    assert scaling(bent) == pytest.approx(eta, abs=0.03)


def test_scaling_is_the_logistic_regression_of_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(5)
    eta, labels = drawn(30_000, rng)
    bent = expit(2 * logit(eta) + 0.4)
    peer = LogisticRegression(C=np.inf, tol=1e-10).fit(logit(bent)[:, None], labels)
    scaling = temperature_scale(bent, labels)
    # They differ by the smoothing of labels, which fades with the number of rows.
    assert scaling.slope == pytest.approx(peer.coef_[0, 0], rel=2e-3)
    assert scaling.shift == pytest.approx(peer.intercept_[0], abs=2e-3)


def test_temperature_alone_keeps_one_half():
    eta, labels = drawn(5000, np.random.default_rng(6))
    scaling = temperature_scale(expit(4 * logit(eta)), labels, shift=False)
    assert scaling.temperature == pytest.approx(4, rel=0.1)
    assert scaling([0.5]).tolist() == [0.5]


@pytest.mark.parametrize(
    ("eta", "labels"),
    [
        ([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]),
        ([0.1, 0.2, 0.8, 0.9], [1, 1, 1, 1]),
        ([0.0, 1.0, 0.0, 1.0], [0, 1, 0, 1]),
        ([0.4, 0.4, 0.4, 0.4], [0, 1, 1, 1]),
        ([0.9, 0.9, 0.1, 0.1], [0, 0, 1, 1]),
    ],
)
def test_scaling_is_finite_and_keeps_the_order(eta, labels):
    scaling = temperature_scale(eta, labels)
    mapped = scaling(np.linspace(0, 1, 11))
    assert np.isfinite(mapped).all()
    assert (np.diff(mapped) >= 0).all()


def test_scores_that_tell_the_reverse_become_the_mean():
    scaling = temperature_scale([0.9] * 30 + [0.1] * 30, [0] * 30 + [1] * 30)
    assert scaling.slope == 0
    assert scaling.temperature == math.inf
    assert scaling([0.2, 0.9]) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("name", MECHANISMS)
def test_warnings_at_a_true_eta_are_rare(name):
    """The ratio is standard normal: of 60 its spread lies within four standard errors of 1."""
    rng = np.random.default_rng(7)
    found = [compare(*drawn(800, rng), MECHANISMS[name], partitions=5, rng=rng) for _ in range(60)]
    ratios = np.array([comparison.ratio for comparison in found])
    assert abs(ratios.mean()) < 4 / math.sqrt(60)
    assert abs(ratios.std() - 1) < 4 / math.sqrt(120)
    assert sum(comparison.warning for comparison in found) == (np.abs(ratios) > 2).sum() <= 12


@pytest.mark.parametrize(("slope", "shift"), [(1, 1), (1, -1), (0.25, 0)])
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_bent_eta_is_noticed(name, slope, shift):
    rng = np.random.default_rng(8)
    eta, labels = drawn(4000, rng)
    bent = expit(slope * logit(eta) + shift)
    found = compare(bent, labels, MECHANISMS[name], partitions=8, rng=rng)
    assert found.warning
    assert found.realised.value == pytest.approx(
        found.plug_in.value + found.difference.value, abs=1e-12
    )
    assert found.difference.standard_error <= (
        found.plug_in.standard_error + found.realised.standard_error
    )


def test_agreement_alone_does_not_show_calibration():
    rng = np.random.default_rng(8)
    eta, labels = drawn(4000, rng)
    sure = expit(4 * logit(eta))
    mechanism = la.LabelProportions(8)
    assert not compare(sure, labels, mechanism, rng=rng).warning
    assert calibration_ratio(sure, labels) > 20
    true = compare(eta, labels, mechanism, rng=rng).realised
    assert true.value > compare(sure, labels, mechanism, rng=rng).realised.value


def test_calibration_ratio_is_standard_normal_at_a_true_eta():
    rng = np.random.default_rng(14)
    ratios = np.array([calibration_ratio(*drawn(500, rng)) for _ in range(400)])
    assert abs(ratios.mean()) < 4 / math.sqrt(400)
    assert abs(ratios.std() - 1) < 4 / math.sqrt(800)
    eta, labels = drawn(4000, rng)
    assert calibration_ratio(expit(2 * logit(eta)), labels) > 5
    assert calibration_ratio(expit(logit(eta) / 2), labels) < -5
    assert calibration_ratio([0.0, 1.0, 0.5], [0, 1, 1]) == 0
    assert calibration_ratio([0.0, 1.0], [0, 0]) == math.inf


def test_plug_in_is_the_expected_advantage():
    rng = np.random.default_rng(9)
    eta, labels = drawn(2000, rng)
    mechanism = la.LabelProportions(4)
    found = compare(eta, labels, mechanism, partitions=30, rng=rng)
    wanted = la.expected_advantage(la.priors.Empirical(eta), mechanism, n_bags=15_000, rng=rng)
    assert found.plug_in.value == pytest.approx(wanted.value, abs=6 * wanted.standard_error)
    assert found.plug_in.standard_error == pytest.approx(wanted.sampling_error, rel=0.1)


def test_a_perfect_attack_and_a_single_class_have_errors():
    rng = np.random.default_rng(11)
    certain = compare(np.full(50, 0.5), rng.integers(0, 2, 50), la.LabelProportions(1), rng=rng)
    assert certain.plug_in.value == pytest.approx(0.5)
    single = compare(np.full(50, 0.4), np.zeros(50), la.LabelProportions(1), rng=rng)
    assert single.realised.value == 0
    # No bag differs from another; the error is that of 0.4 promised in 1000 guesses.
    assert single.ratio == pytest.approx(-0.4 / math.sqrt(0.4 / 1000))
    assert single.warning


def test_weights_undo_the_thinning_of_negatives():
    rng = np.random.default_rng(12)
    eta = rng.beta(1, 6, 60_000)
    labels = rng.random(60_000) < eta
    kept = labels | (rng.random(60_000) < 0.25)
    weights = np.where(labels[kept], 1.0, 4.0)
    seen = eta[kept] / (eta[kept] + 0.25 * (1 - eta[kept]))
    corrected = 0.25 * seen / (1 - seen + 0.25 * seen)
    mechanism = la.LabelProportions(4)
    whole = compare(eta, labels, mechanism, partitions=4, rng=rng)
    thinned = compare(corrected, labels[kept], mechanism, partitions=4, weights=weights, rng=rng)
    error = math.hypot(whole.realised.standard_error, thinned.realised.standard_error)
    assert abs(whole.realised.value - thinned.realised.value) < 4 * error
    assert abs(thinned.ratio) < 4
    unweighted = compare(corrected, labels[kept], mechanism, partitions=4, rng=rng)
    assert unweighted.warning


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: brier_score([0.5, 1.2], [0, 1]), r"\[0, 1\].*1.2"),
        (lambda: brier_score([0.5], [0, 1]), r"one length.*\(1,\).*\(2,\)"),
        (lambda: reliability([0.5, 0.5], [0, 2]), "0 or 1.*2"),
        (lambda: reliability([], []), "at least one example, not 0"),
        (lambda: reliability([0.5], [1], bins=0), "bins.*0"),
        (lambda: temperature_scale([float("nan")], [1]), "nan"),
        (lambda: _compare(partitions=1), "partitions.*1"),
        (lambda: _compare(weights=[1.0]), r"weights.*\(16,\).*\(1,\)"),
        (lambda: _compare(weights=[-1.0] * 16), "weights.*at least 0"),
        (lambda: _compare(la.LabelProportions(9)), "at least 18 examples, not 16"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def _compare(mechanism=None, **options):
    mechanism = mechanism or la.LabelProportions(2)
    rng = np.random.default_rng(0)
    return compare(np.full(16, 0.5), np.zeros(16), mechanism, rng=rng, **options)


def test_gains_too_rare_to_be_met_raise_no_alarm():
    """A true eta; at 5% a seed, more than six alarms in forty come up once in 300 times."""
    alarms = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        eta = rng.beta(2, 30, size=2000)
        labels = rng.random(2000) < eta
        alarms += compare(eta, labels, la.LabelProportions(64), partitions=4, rng=rng).warning
    assert alarms <= 6
