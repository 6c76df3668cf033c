"""Intervals of the audit: ratios over bags, rounds that share records, refits."""

import math
from collections import defaultdict

import numpy as np
import pytest
from audit_cases import LLP, attacked, row_of, table_of

from labelaudit import auditing, intervals
from labelaudit.auditing import attack
from labelaudit.auditing.decisions import decide
from labelaudit.intervals import (
    RoundAverages,
    ValueWithError,
    mean_over_rounds,
    pooled_by_rubin,
    ratio_over_bags,
)
from labelaudit.learning.eta import cross_fit


def test_ratios_ratio_over_bags_in_closed_form():
    sums, sizes = np.array([1.0, 0.0, 2.0, 1.0]), np.array([2.0, 2.0, 4.0, 2.0])
    ratio = ratio_over_bags(sums, sizes)
    assert ratio.value == pytest.approx(0.4)
    residuals = sums - 0.4 * sizes
    assert ratio.standard_error == pytest.approx(math.sqrt((residuals**2).sum() * 4 / 3) / 10)
    equal = ratio_over_bags(sums, np.full(4, 2.0))
    assert equal.standard_error == pytest.approx(sums.std(ddof=1) / 2 / math.sqrt(4))


def test_a_perfect_attack_keeps_a_positive_error():
    averages = RoundAverages({"gain": 1.0}, 400)
    for _ in range(2):
        for _ in range(10):
            bags, sizes = np.full((50, 1), 8.0), np.full(50, 8)
            averages.add(bags, bags, np.arange(400), sizes)
        averages.end_refit()
    interval = averages.intervals()["gain"]
    assert interval.value == 1
    assert 0.003 < interval.standard_error < 0.01
    assert interval.low < 1 < interval.high


def test_rubins_rule():
    refits = [ValueWithError(0.1, 0.02), ValueWithError(0.2, 0.02), ValueWithError(0.3, 0.02)]
    interval = pooled_by_rubin(refits)
    assert interval.value == pytest.approx(0.2)
    assert interval.standard_error == pytest.approx(math.sqrt(0.02**2 + 4 / 3 * 0.1**2))
    assert interval.high - interval.value > 2.5 * interval.standard_error
    equal = pooled_by_rubin([ValueWithError(0.1, 0.02)] * 3)
    assert equal.high == pytest.approx(0.1 + 1.959964 * 0.02)


def test_infinite_and_empty_numbers_do_not_crash():
    endless = pooled_by_rubin([ValueWithError(math.inf, math.inf), ValueWithError(2.0, 0.1)])
    assert (endless.low, endless.high) == (2.0, math.inf)
    assert math.isnan(pooled_by_rubin([ratio_over_bags(np.zeros(3), np.zeros(3))]).value)


def test_one_endless_round_does_not_settle_a_percentile():
    rounds = [
        ValueWithError(1.0, 0.1),
        ValueWithError(math.inf, math.inf),
        ValueWithError(1.2, 0.1),
    ]
    refit = mean_over_rounds(rounds)
    assert (refit.value, refit.least) == (1.2, 1.0)
    endless = pooled_by_rubin([refit, mean_over_rounds([ValueWithError(math.inf, math.inf)] * 3)])
    assert (endless.low, endless.high) == (1.0, math.inf)
    target = auditing.Target("multiplicative", 1.1)
    row = row_of(LLP, 0.1, 0.2, **endless.columns("percentile"))
    assert decide(row, target)[0] == "cannot tell"
    always = pooled_by_rubin(
        [mean_over_rounds([ValueWithError(math.inf, math.inf, math.inf)] * 3)] * 2
    )
    row = row_of(LLP, 0.1, 0.2, **always.columns("percentile"))
    assert decide(row, target)[0] == "misses"


def test_groups_take_bags_of_every_size():
    shifts = [np.arange(float(rows * size)).reshape(rows, size) for rows, size in ((3, 9), (90, 1))]
    groups = attack.groups_of(shifts)
    assert sorted(np.concatenate(groups)) == sorted(
        np.concatenate([sizes.ravel() for sizes in shifts])
    )
    assert max(map(len, groups)) - min(map(len, groups)) <= 9


def test_groups_of_bags_keep_a_finite_end():
    shifts = np.full((80, 2), 1.0)
    shifts[:3] = math.inf
    percentile = attack.percentile_of(attack.groups_of([shifts]), 0.98)
    assert (percentile.value, percentile.least) == (math.inf, 1.0)


class Bins:
    """A learner that can be fitted thousands of times: the fraction of ones in eight bins."""

    def fit(self, features, labels, rng):
        edges = np.quantile(features[:, 0], np.linspace(0, 1, 9)[1:-1])
        index = np.searchsorted(edges, features[:, 0])
        fractions = (np.bincount(index, labels, 8) + labels.mean()) / (
            np.bincount(index, None, 8) + 1
        )
        return type(
            "Fitted", (), {"predict": lambda self, x: fractions[np.searchsorted(edges, x[:, 0])]}
        )()


def test_intervals_cover_when_everything_is_drawn_again():
    """Fresh records, refits, bags and noise: the interval must hold the mean over all of them."""
    options = auditing.Options(mechanisms=["rr", "llp"], bag_sizes=[4], epsilons=[1.0])
    realised = defaultdict(list)
    for replicate in range(60):
        rng = np.random.default_rng([7, replicate])
        x = rng.standard_normal((400, 1))
        labels = (rng.random(400) < 1 / (1 + np.exp(-1.5 * x[:, 0]))).astype(np.uint8)
        etas = tuple(cross_fit(x, labels, Bins(), rng=rng).eta for _ in range(3))
        table, eta = table_of(etas[0], labels), auditing.Eta.of([etas], labels, refitted=True)
        for row in auditing.attack_settings(table, eta, options).itertuples():
            realised[row.title].append(intervals.Interval.of(row, "realised"))
    assert len(realised) == 2
    for found in realised.values():
        mean = np.mean([interval.value for interval in found])
        covered = np.mean([interval.low <= mean <= interval.high for interval in found])
        # At 95% coverage fewer than 50 of 60 happen once in ten thousand seeds.
        assert covered >= 50 / 60
        assert np.mean([interval.high - interval.low for interval in found]) < 0.25


@pytest.mark.parametrize("name", ["plug_in", "realised", "difference"])
def test_errors_are_as_large_as_the_spread_they_stand_for(spreads, name):
    """With a true eta everything that varies is drawn anew in each table."""
    for rows in spreads.values():
        measured = [intervals.Interval.of(row, name) for row in rows]
        spread = np.std([interval.value for interval in measured], ddof=1)
        # The spread of 100 values is within a quarter of the truth but once in 2,000 seeds.
        assert np.mean([interval.standard_error for interval in measured]) == pytest.approx(
            spread, rel=0.25
        )


def test_one_alarm_in_twenty_is_false(spreads):
    rows = [row for of_setting in spreads.values() for row in of_setting]
    alarms = sum(abs(row.difference) > 2 * row.difference_error for row in rows)
    # Fewer than 2 or more than 31 of 300 happen less than once in ten thousand seeds, were the
    # settings of a table independent; they share labels, and so the true rate is a little larger.
    assert 2 <= alarms <= 31


@pytest.fixture(scope="module")
def spreads():
    options = {"mechanisms": ["rr", "llp", "geometric"], "bag_sizes": [8], "epsilons": [1.0]}
    rows = defaultdict(list)
    for replicate in range(100):
        rng = np.random.default_rng([12, replicate])
        eta = rng.beta(2, 3, 600)
        for row in attacked(eta, rng.random(600) < eta, **options):
            rows[row.title].append(row)
    return rows


def test_records_that_rounds_share_do_not_average_out():
    """A number that depends on the records alone has the error of one round, however many."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal(1000)
    averages = RoundAverages({"mean": 0.0}, 1000)
    for _ in range(3):
        for _ in range(4):
            bags = rng.permutation(1000).reshape(250, 4)
            sums = values[bags].sum(axis=1, keepdims=True)
            averages.add(sums, np.full((250, 1), 4.0), bags.ravel(), np.full(250, 4))
        averages.end_refit()
    interval = averages.intervals()["mean"]
    assert interval.value == pytest.approx(values.mean())
    assert interval.standard_error == pytest.approx(values.std() / math.sqrt(1000), rel=0.1)


def averaged(values, refits=3, rounds=4):
    """The interval of the mean of the values, in other bags of four in each round."""
    rng = np.random.default_rng(0)
    averages = RoundAverages({"mean": 0.0}, len(values))
    for _ in range(refits):
        for _ in range(rounds):
            bags = rng.permutation(len(values)).reshape(-1, 4)
            sums = values[bags].sum(axis=1, keepdims=True)
            averages.add(sums, np.full(sums.shape, 4.0), bags.ravel(), np.full(len(bags), 4))
        averages.end_refit()
    return averages.intervals()["mean"]


def test_a_large_table_has_the_errors_of_all_its_records(monkeypatch):
    """Beyond a number of records only a sample of them is followed from round to round."""
    values = np.random.default_rng(2).standard_normal(4000)
    full = averaged(values)
    monkeypatch.setattr(intervals, "MAX_UNITS", 1000)
    sampled = averaged(values)
    assert sampled.value == full.value
    # The sum over 1,000 of the records has a standard error of 5%, its root half of it.
    assert sampled.standard_error == pytest.approx(full.standard_error, rel=0.1)
    assert full.standard_error == pytest.approx(values.std() / math.sqrt(4000), rel=0.1)


def test_two_bags_have_the_error_of_two():
    sums, sizes = np.array([[0.0], [2.0]]), np.array([[2.0], [2.0]])
    averages = RoundAverages({"mean": 0.0}, 4)
    averages.add(sums, sizes, np.arange(4), np.array([2, 2]))
    averages.end_refit()
    # The means of the bags are 0 and 1: a variance of 1/2, divided by their number.
    assert averages.intervals()["mean"].standard_error == pytest.approx(0.5)


def test_noise_averages_out_and_other_etas_do_not():
    rng = np.random.default_rng(1)
    quiet, apart = RoundAverages({"mean": 0.0}, 2000), RoundAverages({"mean": 0.0}, 2000)
    ones, units = np.ones((2000, 1)), np.arange(2000)
    for refit in range(3):
        for _ in range(5):
            noise = rng.standard_normal((2000, 1))
            quiet.add(noise, ones, units, np.ones(2000, dtype=np.int64))
            apart.add(noise + refit, ones, units, np.ones(2000, dtype=np.int64))
        quiet.end_refit()
        apart.end_refit()
    assert quiet.intervals()["mean"].standard_error == pytest.approx(
        1 / math.sqrt(15 * 2000), rel=0.3
    )
    # Three refits one apart: Rubin's rule gives sqrt(1 + 1/3).
    assert apart.intervals()["mean"].standard_error == pytest.approx(math.sqrt(4 / 3), rel=0.05)
