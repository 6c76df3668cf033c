"""The audit of a table: its intervals, its verdicts, its refusals, and the two files it writes."""

import json
import math
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT

import labelaudit as la
from labelaudit import plots, report
from labelaudit.cli import main
from labelaudit.datasets import read_table
from labelaudit.learning.calibration import compare
from labelaudit.learning.eta import cross_fit
from labelaudit.report import advice, exposure, scenarios, utility
from labelaudit.report import report as whole
from labelaudit.report.beliefs import Beliefs, calibration_of
from labelaudit.report.html import epsilon as epsilon_cell
from labelaudit.report.intervals import Interval, Share, over_bags, over_refits, over_rounds
from labelaudit.report.settings import FAMILIES
from labelaudit.teach import check

SECRET = "zebra-crossing-77"


def some_rows(rows=600, seed=0):
    """A table with numbers, categories, missing values, unequal bags and a known prior."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(rows)
    kind = rng.choice(["plain", "other", SECRET], rows, p=[0.5, 0.3, 0.2])
    eta = 1 / (1 + np.exp(-(1.2 * x - 0.8 + 0.7 * (kind == "other"))))
    frame = pd.DataFrame({"x": np.where(rng.random(rows) < 0.05, np.nan, x), "kind": kind})
    frame["day"] = np.minimum(rng.geometric(0.05, rows), 60)
    frame["eta"] = eta
    frame["bought"] = (rng.random(rows) < eta).astype(int)
    return frame


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "shop.csv"
    some_rows().to_csv(path, index=False)
    return path


def known_beliefs(eta, labels, refits=2):
    etas = (np.asarray(eta, dtype=float),) * refits
    return Beliefs(etas, False, calibration_of(etas, np.asarray(labels, dtype=np.uint8)))


# Intervals


def test_ratios_over_bags_in_closed_form():
    sums, sizes = np.array([1.0, 0.0, 2.0, 1.0]), np.array([2.0, 2.0, 4.0, 2.0])
    share = over_bags(sums, sizes)
    assert share.value == pytest.approx(0.4)
    residuals = sums - 0.4 * sizes
    assert share.standard_error == pytest.approx(math.sqrt((residuals**2).sum() * 4 / 3) / 10)
    equal = over_bags(sums, np.full(4, 2.0))
    assert equal.standard_error == pytest.approx(sums.std(ddof=1) / 2 / math.sqrt(4))


def test_a_perfect_attack_keeps_a_positive_error():
    share = over_bags(np.full(50, 8.0), np.full(50, 8.0), unseen=1.0)
    assert share.value == 1
    assert 0 < share.standard_error < 0.01
    interval = over_refits([share, share])
    assert interval.low < 1 < interval.high


def test_rubins_rule():
    shares = [Share(0.1, 0.02), Share(0.2, 0.02), Share(0.3, 0.02)]
    interval = over_refits(shares)
    assert interval.value == pytest.approx(0.2)
    assert interval.standard_error == pytest.approx(math.sqrt(0.02**2 + 4 / 3 * 0.1**2))
    assert interval.high - interval.value > 2.5 * interval.standard_error
    alike = over_refits([Share(0.1, 0.02)] * 3)
    assert alike.high == pytest.approx(0.1 + 1.959964 * 0.02)


def test_infinite_and_empty_numbers_do_not_crash():
    endless = over_refits([Share(math.inf, math.inf), Share(2.0, 0.1)])
    assert (endless.low, endless.high) == (2.0, math.inf)
    assert math.isnan(over_refits([over_bags(np.zeros(3), np.zeros(3))]).value)


def test_one_endless_round_does_not_settle_a_percentile():
    rounds = [Share(1.0, 0.1), Share(math.inf, math.inf), Share(1.2, 0.1)]
    refit = over_rounds(rounds)
    assert (refit.value, refit.least) == (1.2, 1.0)
    endless = over_refits([refit, over_rounds([Share(math.inf, math.inf)] * 3)])
    assert (endless.low, endless.high) == (1.0, math.inf)
    plain = exposed(LLP, 0.1, 0.2)
    target = report.Target("multiplicative", 1.1)
    assert advice.judge(replace(plain, percentile=endless), target, GOOD).word == "cannot tell"
    always = over_refits([over_rounds([Share(math.inf, math.inf, math.inf)] * 3)] * 2)
    assert advice.judge(replace(plain, percentile=always), target, GOOD).word == "misses"


def test_groups_of_bags_keep_a_finite_end():
    shifts = np.full((80, 2), 1.0)
    shifts[:3] = math.inf
    share = exposure.percentile_of(shifts, 0.98)
    assert (share.value, share.least) == (math.inf, 1.0)


class Bins:
    """A learner quick enough to be fitted thousands of times: the share of ones in eight bins."""

    def fit(self, features, labels, rng):
        edges = np.quantile(features[:, 0], np.linspace(0, 1, 9)[1:-1])
        place = np.searchsorted(edges, features[:, 0])
        shares = (np.bincount(place, labels, 8) + labels.mean()) / (np.bincount(place, None, 8) + 1)
        return type(
            "Fitted", (), {"predict": lambda self, x: shares[np.searchsorted(edges, x[:, 0])]}
        )()


def test_intervals_cover_when_everything_is_drawn_again():
    """Fresh records, refits, bags and noise: the interval must hold the mean over all of them."""
    plan = report.Plan(mechanisms=["rr", "llp"], bag_sizes=[4], epsilons=[1.0], utility="none")
    found = {setting.title: [] for setting in plan.settings}
    for replicate in range(60):
        rng = np.random.default_rng([7, replicate])
        x = rng.standard_normal((400, 1))
        labels = (rng.random(400) < 1 / (1 + np.exp(-1.5 * x[:, 0]))).astype(np.uint8)
        etas = tuple(cross_fit(x, labels, Bins(), rng=rng).eta for _ in range(3))
        held = Beliefs(etas, True, calibration_of(etas, labels))
        for one in report.expose(labels, held, plan):
            found[one.title].append(one.realised)
    for intervals in found.values():
        mean = np.mean([one.value for one in intervals])
        covered = np.mean([one.low <= mean <= one.high for one in intervals])
        # At 95% coverage fewer than 50 of 60 happen once in ten thousand seeds.
        assert covered >= 50 / 60
        assert np.mean([one.high - one.low for one in intervals]) < 0.25


# The attack


def test_promise_and_reality_agree_with_the_comparison_of_the_package():
    frame = some_rows(4000)
    eta, labels = frame["eta"].to_numpy(), frame["bought"].to_numpy(np.uint8)
    plan = report.Plan(mechanisms=["geometric"], bag_sizes=[8], epsilons=[1.0], utility="none")
    (one,) = report.expose(labels, known_beliefs(eta, labels), plan)
    peer = compare(eta, labels, one.setting.mechanism, rng=np.random.default_rng(1))
    assert one.plug_in.value == pytest.approx(peer.plug_in.value, abs=0.003)
    gap = math.hypot(one.realised.standard_error, peer.realised.standard_error)
    assert abs(one.realised.value - peer.realised.value) < 4 * gap
    assert not one.contradicted


def test_parts_by_label_add_up_to_the_whole():
    frame = some_rows(800)
    labels = frame["bought"].to_numpy(np.uint8)[:, None]
    numbers = exposure.attack_once(
        frame[["eta"]].to_numpy(),
        labels,
        la.RandomizedResponse(2.0),
        0.98,
        np.random.default_rng(0),
    )
    share = labels.mean()
    whole = share * numbers["gain 1"].value + (1 - share) * numbers["gain 0"].value
    assert whole == pytest.approx(numbers["realised"].value)


def test_nothing_released_is_nothing_gained(tmp_path):
    path = tmp_path / "silent.csv"
    np.savetxt(path, np.tile([0.3, 0.7], (5, 1)), delimiter=",")
    frame = some_rows()
    labels = frame["bought"].to_numpy(np.uint8)
    plan = report.Plan(mechanisms=[str(path)], utility="none")
    (one,) = report.expose(labels, known_beliefs(frame["eta"], labels), plan)
    assert (one.plug_in.value, one.realised.value, one.percentile.value) == (0, 0, 0)
    assert one.realised.low < 0 < one.realised.high


def test_labels_without_doubt_leave_nothing_to_gain():
    labels = np.tile([0, 1], 200).astype(np.uint8)
    plan = report.Plan(mechanisms=["rr", "llp"], bag_sizes=[4], epsilons=[1.0], utility="none")
    for one in report.expose(labels, known_beliefs(labels, labels), plan):
        assert one.realised.value == one.plug_in.value == 0
        assert math.isfinite(one.realised.high)


def test_an_estimate_that_the_labels_contradict_is_noticed():
    labels = np.random.default_rng(0).integers(0, 2, 3000).astype(np.uint8)
    plan = report.Plan(mechanisms=["rr"], epsilons=[3.0], utility="none")
    (one,) = report.expose(labels, known_beliefs(np.full(3000, 0.9), labels), plan)
    assert one.contradicted
    assert known_beliefs(np.full(3000, 0.9), labels).calibration.fails


def test_an_estimate_that_is_too_sure_of_itself_fails():
    rng = np.random.default_rng(0)
    eta = rng.uniform(0.3, 0.7, 40_000)
    labels = (rng.random(40_000) < eta).astype(np.uint8)
    assert not known_beliefs(eta, labels).calibration.fails
    sure = 1 / (1 + np.exp(-1.12 * np.log(eta / (1 - eta))))
    calibration = known_beliefs(sure, labels).calibration
    # The binned error lets it pass, the ratio does not.
    assert calibration.error < calibration.noise + 0.01
    assert calibration.ratio > 3 and calibration.fails


def test_the_most_exposed_are_those_with_the_most_to_lose():
    eta = np.full(400, 0.02)
    eta[37] = 0.5
    ids = [f"row {number}" for number in range(400)]
    first = report.most_exposed([eta, eta], ids, la.RandomizedResponse(1.0), 3, seed=0)
    assert first[0]["id"] == "row 37"
    assert first[0]["advantage"] == pytest.approx(math.tanh(0.5) / 2)


# Bags that are not random


def test_unequal_bags_are_attacked_size_by_size():
    rng = np.random.default_rng(0)
    bags = rng.permutation(np.repeat(np.arange(30), rng.integers(1, 9, 30)))
    eta = rng.random(bags.size)
    labels = (rng.random(bags.size) < eta).astype(np.uint8)
    promised, _ = scenarios.attack_unequal(bags, labels, eta, la.LabelProportions, {}, rng)
    by_hand = sum(
        la.additive_advantage(
            eta[None, bags == bag], la.LabelProportions(int((bags == bag).sum()))
        ).sum()
        for bag in range(30)
    )
    assert promised.value == pytest.approx(by_hand / bags.size)


def test_bags_of_like_people_and_of_one_record_show():
    rng = np.random.default_rng(1)
    bags = np.repeat(np.arange(200), 10)
    shift = np.repeat(rng.standard_normal(200) * 2, 10)
    eta = np.full(2000, 0.5)
    together = (rng.random(2000) < 1 / (1 + np.exp(-shift))).astype(np.uint8)
    apart = (rng.random(2000) < eta).astype(np.uint8)
    assert report.bag_facts(bags, together, eta).move_together
    facts = report.bag_facts(bags, apart, eta)
    assert not facts.move_together
    assert facts.expected_of_one_label == pytest.approx(200 * 2 * 0.5**10)
    alone = report.bag_facts(np.arange(2000), apart, eta)
    assert alone.of_one_record == alone.of_one_label == 2000


def test_knowing_more_helps_up_to_the_guarantee():
    frame = some_rows()
    held = known_beliefs(frame["eta"], frame["bought"])
    plan = report.Plan(mechanisms=["llp", "geometric"], bag_sizes=[4], epsilons=[1.0])
    for setting in plan.settings:
        rows = report.knowing_more(held, setting, plan)
        mates = {row.known: row.advantage.value for row in rows if row.times == 1}
        assert list(mates) == [0, 1, 2, 3] and mates[3] > mates[0]
        again = {row.times: row for row in rows if row.times > 1}
        assert again[5].epsilon == 5 * setting.mechanism.epsilon
        assert again[5].advantage.value >= mates[0] - 1e-9


def test_knowing_more_looks_at_every_refit():
    eta = np.full(600, 0.5)
    held = replace(known_beliefs(eta, some_rows()["bought"]), etas=(eta, np.full(600, 0.1)))
    plan = report.Plan(mechanisms=["rr"], epsilons=[1.0], repeats=[1])
    (row,) = report.knowing_more(held, plan.settings[0], plan)
    # At 0.1 the release cannot change the guess: the mean is half of what 1/2 gives.
    assert row.advantage.value == pytest.approx(math.tanh(0.5) / 4)
    assert row.advantage.standard_error > 0.1


# What it costs


def test_debiased_labels_are_unbiased_and_in_other_bags_each_time():
    labels = np.array([0.0] * 9 + [1.0] * 3)
    mechanism = la.LabelProportions(3)
    rng = np.random.default_rng(0)
    total, bags = np.zeros(12), set()
    for _ in range(8000):
        found, rows = utility.debiased_labels(labels, mechanism, rng)
        assert sorted(rows) == list(range(12))
        bags.add(tuple(rows[:3]))
        total[rows] += found
    assert len(bags) > 1000
    # A mean over all bags, the record's own among them, would be 0.14 too low on the ones.
    np.testing.assert_allclose(total / 8000, labels, atol=0.06)


def test_runs_on_proportions_differ_by_their_bags(csv):
    data = read_table(csv, label="bought", features=["x", "kind"])
    plan = report.Plan(mechanisms=["llp"], bag_sizes=[8])
    _, one = report.measure_utility(data, plan.settings, "logistic", 0)
    _, other = report.measure_utility(data, plan.settings, "logistic", 1)
    assert one.auc.value != other.auc.value
    rows, labels = utility.design(data, np.arange(600)), data.labels.astype(float)
    curves = utility._logistic_curves(rows, labels, plan.settings, np.random.default_rng(0))
    assert len({curve.share.value for curve in curves[plan.settings[0]]}) > 1


def test_rare_labels_and_huge_bags_leave_a_number_out(tmp_path):
    frame = some_rows(3000).drop(columns=["eta", "day"])
    frame["bought"] = (np.arange(3000) < 24).astype(int)
    path = tmp_path / "rare.csv"
    frame.to_csv(path, index=False)
    data = read_table(path, label="bought")
    plan = report.Plan(mechanisms=["llp"], bag_sizes=[2, 300, 2000])
    clean, small, large, huge = report.measure_utility(data, plan.settings, "logistic", 0)
    assert 0 < clean.auc.value < 1 and math.isfinite(small.auc.value)
    assert large.worth is not None and large.auc is None
    assert huge.worth is None and huge.auc is None
    alone = replace(data, labels=(np.arange(3000) == 7).astype(np.uint8))
    for one in report.measure_utility(alone, plan.settings, "logistic", 0):
        assert one.auc is None or math.isfinite(one.auc.value)


@pytest.mark.parametrize("seed", range(5))
def test_every_stretch_of_rows_has_its_share_of_ones(seed):
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
def test_worth_in_closed_form(mechanism, noise):
    labels = (np.random.default_rng(0).random(200_000) < 0.3).astype(float)
    expected = 1 / (mechanism.bag_size + noise / (0.3 * 0.7))
    found = utility.worth_of(labels, mechanism, np.random.default_rng(1))
    assert found == pytest.approx(expected, rel=0.03)


def test_area_under_the_curve_and_its_error():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 500)
    scores = np.round(labels + rng.standard_normal(500), 1)
    curve = utility.Curve.of(scores, labels)
    assert curve.share.value == pytest.approx(roc_auc_score(labels, scores))
    draws = []
    for _ in range(300):
        rows = rng.integers(0, 500, 500)
        draws.append(roc_auc_score(labels[rows], scores[rows]))
    assert curve.share.standard_error == pytest.approx(np.std(draws), rel=0.2)
    assert (curve - curve).share == Share(0.0, 0.0)


def test_the_network_is_trained_for_the_settings_in_focus(csv):
    pytest.importorskip("torch")
    data = read_table(csv, label="bought", features=["x", "kind"])
    plan = report.Plan(mechanisms=["rr"], epsilons=[1.0, 4.0])
    first, second = plan.settings
    rows = report.measure_utility(data, plan.settings, "network", 0, focus=[second])
    found = {one.setting: one for one in rows}
    assert found[first].auc is None and found[first].worth < found[second].worth < 1
    assert 0.5 < found[second].auc.value < 1 and found[None].loss.value == 0


# Verdicts and advice


def exposed(setting, low, high, difference=0.0):
    middle = Interval((low + high) / 2, (high - low) / 4, low, high)
    gap = Interval(difference, 0.01, difference - 0.02, difference + 0.02)
    return exposure.Exposure(
        setting, setting.mechanism.epsilon, setting.mechanism.bag_size,
        middle, middle, gap, middle, middle, (), "exact",
    )  # fmt: skip


GOOD = known_beliefs(some_rows(3000)["eta"], some_rows(3000)["bought"]).calibration
BAD = known_beliefs(np.full(600, 0.9), some_rows()["bought"]).calibration
RR, LLP = (
    report.Plan(mechanisms=[name], bag_sizes=[8], epsilons=[2.0]).settings[0]
    for name in ("rr", "llp")
)


@pytest.mark.parametrize(
    "low, high, difference, calibration, word",
    [
        (0.01, 0.04, 0.0, GOOD, "meets"),
        (0.06, 0.09, 0.0, GOOD, "misses"),
        (0.04, 0.06, 0.0, GOOD, "cannot tell"),
        (0.01, 0.04, 0.03, GOOD, "cannot tell"),
        (0.01, 0.04, 0.0, BAD, "cannot tell"),
        (math.nan, math.nan, 0.0, GOOD, "cannot tell"),
    ],
)
def test_verdicts(low, high, difference, calibration, word):
    verdict = advice.judge(exposed(LLP, low, high, difference), report.Target(), calibration)
    assert verdict.word == word


def test_a_guarantee_needs_no_estimate():
    assert advice.judge(exposed(RR, 0.3, 0.4), report.Target("epsilon", 2.0), BAD).word == "meets"
    assert advice.judge(exposed(LLP, 0, 0.01), report.Target("epsilon", 2.0), GOOD).word == "misses"
    ceiling = math.tanh(1.0) / 2
    assert (
        advice.judge(exposed(RR, 0.3, 0.5), report.Target("additive", ceiling), BAD).word == "meets"
    )
    grid = np.linspace(0.01, 0.99, 99)
    assert la.additive_advantage(grid, RR.mechanism).max() == pytest.approx(ceiling)


def test_a_multiplicative_target_names_its_level():
    plan = report.Plan(target=report.Target("multiplicative", 1.5), level=0.9, mechanisms=["rr"])
    assert str(plan.target) == "multiplicative advantage of at most 1.5 for 90% of the records"


def test_advice_abstains_and_says_why():
    verdicts = [advice.judge(exposed(LLP, 0.04, 0.06), report.Target(), GOOD)]
    costs = [utility.Utility(None, 1.0, None, None), utility.Utility(LLP, 0.12, None, None)]
    (one,) = report.advise(verdicts, costs, report.Target())
    assert one.verdict is None and "no recommendation" in one.text and "holds it" in one.text
    assert "recommends none" in report.summary([one], verdicts, report.Target())


# One's own mechanism

MAJORITY = """
import numpy as np
from dataclasses import dataclass
from labelaudit import CountChannel, Mechanism

@dataclass(frozen=True)
class Majority(Mechanism):
    bag_size: int
    epsilon: float
    def channel(self):
        ones = np.arange(self.bag_size + 1) > self.bag_size / 2
        keep = 1 / (1 + np.exp(-self.epsilon))
        return CountChannel(np.where(ones[:, None] == [False, True], keep, 1 - keep))
    def likelihood(self, releases):
        return self.channel().likelihood(releases)
    def release(self, labels, rng):
        return self.channel().release(labels, rng)
"""


def test_a_class_in_a_file_is_a_mechanism(tmp_path):
    path = tmp_path / "majority.py"
    path.write_text(MAJORITY)
    plan = report.Plan(mechanisms=[str(path)], bag_sizes=[1, 3], epsilons=[1.0])
    assert [one.title for one in plan.settings] == [
        "Majority (bags of 1, epsilon 1)",
        "Majority (bags of 3, epsilon 1)",
    ]
    eta = np.linspace(0.1, 0.9, 9)
    np.testing.assert_allclose(
        la.additive_advantage(eta, plan.settings[0].mechanism),
        la.additive_advantage(eta, la.RandomizedResponse(1.0)),
        atol=1e-12,
    )


LIAR = """
import numpy as np
from labelaudit import CountChannel, Mechanism

class Liar(Mechanism):
    bag_size, epsilon = 1, 0.01
    def likelihood(self, releases):
        return np.asarray(releases)[:, None] == [0, 1]
    def release(self, labels, rng):
        return np.asarray(labels)[:, 0].astype(float)
"""
# Neither the likelihood nor the release betrays it, the channel does.
HALF_LIAR = (
    LIAR.replace("== [0, 1]", "* 0.0 + [1, 1]")
    + """
    def channel(self):
        return CountChannel(np.eye(2))
"""
)


@pytest.mark.parametrize(
    "text, message",
    [
        (LIAR, "Liar declares epsilon 0.01, but its likelihood shows none"),
        (LIAR.replace("0.01", "0.0"), "Liar declares epsilon 0, but its likelihood shows none"),
        (HALF_LIAR, "Liar declares epsilon 0.01, but its channel shows none"),
        (LIAR.replace("0.01", "float('nan')"), "its epsilon is nan"),
        (MAJORITY.replace("-self.epsilon)", "-9 * self.epsilon)"), "but its likelihood shows 9"),
    ],
)
def test_a_false_epsilon_is_refused(tmp_path, text, message):
    path = tmp_path / "liar.py"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        report.Plan(mechanisms=[str(path)], bag_sizes=[3], epsilons=[1.0])


# The release 2 says nothing, and any other gives the label away: too rare to show beforehand.
SLIPS = """
import numpy as np
from labelaudit import Mechanism

class Liar(Mechanism):
    bag_size, epsilon = 1, 0.01
    def likelihood(self, releases):
        seen = np.asarray(releases)[:, None]
        return 1.0 * ((seen == [0, 1]) | (seen == 2))
    def release(self, labels, rng):
        slip = rng.random(len(labels)) < 1e-2
        slip[:100] = False
        return np.where(slip, np.asarray(labels)[:, 0], 2.0)
"""


def test_an_attack_that_beats_epsilon_ends_the_audit(csv, tmp_path, capsys):
    path = tmp_path / "slips.py"
    path.write_text(SLIPS)
    arguments = [csv, "--label", "bought", "--prior", "eta", "--mechanisms", path]
    assert run(*arguments, "--output", tmp_path / "r.html") == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert "Liar declares epsilon 0.01, but the attack shows" in last


def test_a_declared_epsilon_is_no_guarantee(tmp_path):
    path = tmp_path / "majority.py"
    path.write_text(MAJORITY.replace("def channel", "def _law").replace(".channel()", "._law()"))
    (setting,) = report.Plan(mechanisms=[str(path)], bag_sizes=[3], epsilons=[0.1]).settings
    assert not setting.checked
    one = exposed(setting, 0.2, 0.3)
    verdict = advice.judge(one, report.Target("epsilon", 1.0), GOOD)
    assert (verdict.word, verdict.why) == ("cannot tell", "its epsilon is declared, not checked")
    assert advice.judge(one, report.Target("additive", 0.1), GOOD).word == "misses"
    assert "declared, not checked" in epsilon_cell(0.1, checked=False)


def test_a_class_need_not_be_hashable(tmp_path):
    path = tmp_path / "majority.py"
    path.write_text(MAJORITY.replace("@dataclass(frozen=True)", "@dataclass"))
    frame = some_rows()
    plan = report.Plan(mechanisms=[str(path)], bag_sizes=[1, 3], epsilons=[1.0], utility="none")
    labels = frame["bought"].to_numpy(np.uint8)
    found = report.expose(labels, known_beliefs(frame["eta"], labels), plan)
    assert [one.bag_size for one in found] == [1, 3]


def test_without_a_channel_the_promise_is_sampled(tmp_path):
    path = tmp_path / "majority.py"
    path.write_text(MAJORITY.replace("def channel", "def _law").replace(".channel()", "._law()"))
    frame = some_rows(3000)
    plan = report.Plan(mechanisms=[str(path)], bag_sizes=[3], epsilons=[2.0], utility="none")
    (one,) = report.expose(
        frame["bought"].to_numpy(np.uint8), known_beliefs(frame["eta"], frame["bought"]), plan
    )
    assert one.method == "by sampled releases"
    channel = plan.settings[0].mechanism._law()
    eta = frame["eta"].to_numpy()[: 3000 // 3 * 3].reshape(-1, 3)
    exact = la.additive_advantage(eta, channel).mean()
    assert one.plug_in.value == pytest.approx(exact, abs=4 * one.plug_in.standard_error)


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("m.csv", "0.5,0.5\n0.5,0.6\n", r"row 1 sums to 1\.1"),
        ("m.csv", "a,b\n0.5,0.5\n", "no matrix of numbers"),
        ("m.py", "x = 1\n", "must hold one class"),
        ("m.py", "x = 1 / 0\n", "cannot be run: ZeroDivisionError"),
        ("m.py", MAJORITY.replace("self.epsilon))", "self.missing))"), "cannot be audited"),
        ("m.py", MAJORITY.replace("epsilon: float", "epsilon: float\n    scale: float"), "scale"),
        (
            "m.py",
            MAJORITY + "    def __post_init__(self):\n        {}['x']\n",
            r"Majority\(bag_size=2, epsilon=0.5\) cannot be made: KeyError: 'x'",
        ),
        ("m.txt", "", "a mechanism is one of rr, llp"),
    ],
)
def test_a_mechanism_that_cannot_be_audited_is_refused(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        report.Plan(mechanisms=[str(path)])


# The command


def run(*arguments):
    return main(["audit", *map(str, arguments)])


def test_one_command_writes_a_page_and_every_number(csv, tmp_path, capsys):
    page = tmp_path / "report.html"
    quick = ["--mechanisms", "rr", "llp", "--bag-sizes", 4, "--epsilons", 1, "--refits", 2]
    assert run(csv, "--label", "bought", "--bag", "day", *quick, "--output", page) == 0
    said = capsys.readouterr()
    assert "eta: model 10 of 10" in said.err and str(page) in said.out
    html = page.read_text()
    numbers = json.loads(page.with_suffix(".json").read_text(), parse_constant=pytest.fail)
    for text in (html, json.dumps(numbers)):
        assert SECRET not in text
    assert "<script" not in html and "src=" not in html and "href=" not in html
    assert [one["setting"] for one in numbers["settings"]] == ["RR (epsilon 1)", "LLP (bags of 4)"]
    for one in numbers["settings"]:
        assert f"{one['realised']['value']:.4f}".lstrip("-") in html
    assert numbers["settings"][1]["epsilon"] == "inf"
    assert numbers["data"]["rows"] == 600 and numbers["bags"]["bags"] > 10
    assert len(numbers["most_exposed"]["RR (epsilon 1)"]) == 10
    for title in ("Recommendation", "By true label", "own bags", "knows more", "does not promise"):
        assert title in html
    assert not list(tmp_path.glob("*.partial"))


def test_the_same_seed_gives_the_same_numbers(csv):
    data = read_table(csv, label="bought", prior="eta")
    plan = report.Plan(mechanisms=["rr", "laplace"], bag_sizes=[4], epsilons=[1.0], seed=5)
    first, second = (json.loads(report.as_json(report.audit(data, plan))) for _ in range(2))
    assert first.pop("seconds") is not None and second.pop("seconds") is not None
    assert first == second


BAD_ARGUMENTS = [
    (["--label", "sold"], "has no column 'sold'; it has 'x'"),
    (["--label", "kind"], "must have two values, not 3"),
    (["--label", "one"], "must have two values, not 1"),
    (
        ["--label", "bought", "--features", "empty"],
        "'empty' cannot be used: every value is missing",
    ),
    (["--label", "bought", "--features", "same"], "'same' cannot be used: it is constant"),
    (["--label", "bought", "--features", "name"], "600 distinct texts name rows"),
    (["--label", "bought", "--prior", "x"], "the prior 'x' is missing in row"),
    (["--label", "bought", "--bag-sizes", "700"], "a bag size of 700 makes 0 bags of 600 rows"),
    (["--label", "bought", "--bag-sizes", "0"], "bag size must be a whole number"),
    (["--label", "bought", "--epsilons", "0"], "epsilon must be above 0"),
    (["--label", "bought", "--target", "privacy=1"], "a target is one of additive"),
    (["--label", "bought", "--target", "additive=0.7"], "must lie in [0, 0.5], not 0.7"),
    (["--label", "bought", "--mechanisms", "dp"], "a mechanism is one of rr, llp"),
    (["--label", "bought", "--utility", "forest"], "a utility model is one of none"),
    (["--label", "bought", "--refits", "1"], "refits must be a whole number of at least 2"),
    (["--label", "rare"], "the rarer label occurs 3 times"),
    (["--label", "bought", "--prior", "certain"], "the prior of row 8 is 0 and its label 1"),
    (["--label", "bought", "--bag", "same"], "the bag column has 1 different value; an interval"),
    (
        ["--label", "bought", "--utility", "network", "--bag-sizes", "600"],
        "the network learns from bags of at most 512, not 600",
    ),
    (["--label", "bought", "--output", "nowhere/report.html"], "cannot write nowhere"),
    (["--label", "bought", "--output", "report.pdf"], "must be an .html file"),
]


@pytest.mark.parametrize("arguments, message", BAD_ARGUMENTS, ids=[m for _, m in BAD_ARGUMENTS])
def test_bad_input_is_one_line_before_any_training(
    arguments, message, tmp_path, monkeypatch, capsys
):
    frame = some_rows()
    frame["one"], frame["empty"], frame["same"] = 1, np.nan, 3
    frame["name"] = [f"person {number}" for number in range(600)]
    frame["rare"] = (np.arange(600) < 3).astype(int)
    frame["certain"], frame.loc[7, "certain"] = frame["bought"] * 1.0, 1 - frame["bought"][7]
    frame.to_csv(tmp_path / "shop.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(whole, "believe", lambda *a: pytest.fail("training began"))
    assert run("shop.csv", *arguments) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "reading" not in line]
    assert len(lines) == 1 and message in lines[0]


def test_a_file_that_is_not_what_its_name_says(csv, tmp_path, capsys):
    wrong = tmp_path / "shop.parquet"
    wrong.write_bytes(csv.read_bytes())
    assert run(wrong, "--label", "bought", "--output", tmp_path / "r.html") == 2
    assert "is not a parquet file" in capsys.readouterr().err


def test_what_is_not_installed_is_named(csv, monkeypatch, capsys):
    from labelaudit.report import command

    monkeypatch.setattr(command, "find_spec", lambda name: None if name == "sklearn" else name)
    assert run(csv, "--label", "bought") == 2
    assert "needs scikit-learn: pip install 'labelaudit[train]'" in capsys.readouterr().err


def test_ready_made_priors_need_neither_a_learner_nor_the_book(csv, tmp_path):
    code = f"""
import sys

class Absent:
    def find_spec(self, name, *rest):
        if name in ("sklearn", "torch", "matplotlib", "IPython", "nbformat"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
from labelaudit.cli import main
sys.exit(main(["audit", {str(csv)!r}, *sys.argv[1:]]))
"""
    arguments = ["--label", "bought", "--prior", "eta", "--bag-sizes", "4", "--output", "r.html"]
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "r.json").is_file() and "No model was trained" in (
        tmp_path / "r.html"
    ).read_text()


def test_an_interrupted_audit_leaves_nothing_behind(csv, tmp_path):
    call = "import sys; from labelaudit.cli import main; sys.exit(main())"
    arguments = ["audit", str(csv), "--label", "bought", "--refits", "200", "--output", "r.html"]
    audit = subprocess.Popen(
        [sys.executable, "-c", call, *arguments], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    for line in audit.stderr:
        if "eta: model 2 " in line:
            audit.send_signal(signal.SIGINT)
            break
    assert audit.stderr.read().splitlines()[-1] == "labelaudit: interrupted"
    assert audit.wait(60) == 130
    assert [path.name for path in tmp_path.iterdir()] == ["shop.csv"]


def test_colours_are_those_of_the_book():
    for family in FAMILIES.values():
        known = {"bag_size": 2, "epsilon": 1.0}
        taken = ["epsilon"] if family.short == "RR" else ["bag_size", "epsilon"]
        taken = ["bag_size"] if family.short == "LLP" else taken
        look = plots.look(family.make(**{name: known[name] for name in taken}))
        assert (look.name, look.colour) == (family.short, family.colour)


# The chapter


def test_the_smallest_bag_is_checked_by_another_road():
    rng = np.random.default_rng(4)
    eta = rng.uniform(0.1, 0.3, 400)
    sizes = (
        la.additive_advantage(
            la.priors.Empirical(eta).partition(k, np.random.default_rng(9)), la.LabelProportions(k)
        ).mean()
        for k in range(1, 41)
    )
    right = next(k for k, value in enumerate(sizes, 1) if value <= 0.03)
    assert 1 < right < 40
    assert check("ex-audit-bag", right, eta=eta, seed=9).right
    for wrong, hint in (
        (right - 1, "still above"),
        (right + 5, "already"),
        (41, "1 to 40"),
        (None, "is enough"),
        (2.5, "whole number"),
    ):
        assert hint in check("ex-audit-bag", wrong, eta=eta, seed=9).hint
    assert check("ex-audit-bag", None, eta=np.full(100, 0.5), seed=9).right


def test_the_chapter_runs_on_a_readers_own_table(csv):
    from labelaudit.book.checkout import Checkout
    from labelaudit.book.contract import load_chapters
    from labelaudit.book.runner import execute

    checkout = Checkout(ROOT)
    chapter = load_chapters(checkout.chapters_file)["14_audit"]
    given = {"table": str(csv), "label": "bought", "bag": "day", "bag_sizes": [4]}
    given |= {"features": ["x", "kind"], "target": "multiplicative", "target_value": 1.5}
    values = chapter.resolve("smoke", given | {"mechanisms": ["rr", "llp"], "epsilons": [1.0]})
    execution = execute(checkout, chapter, values, scale="smoke")
    written = json.loads((execution.folder / "files" / "report.json").read_text())
    assert written["data"]["file"] == "shop.csv" and written["bags"]["bags"] > 10
    assert written["data"]["features"] == ["x", "kind"]
    assert written["plan"]["target"] == {"kind": "multiplicative", "value": 1.5, "level": 0.98}
    assert len(execution.facts["headlines"]) >= 3
    costs = pd.read_csv(execution.folder / "files" / "utility.csv")
    assert {"realised", "low", "high", "AUC low", "AUC high"} <= set(costs.columns)
    assert pd.read_csv(execution.folder / "files" / "histogram.csv")["records"].sum() == 600
