"""The audit of a table: the attack, bags that are not random, verdicts and advice."""

import math
from dataclasses import replace

import numpy as np
import pytest
from audit_cases import BAD, GOOD, LLP, RR, exposed, known_beliefs, some_rows

import labelaudit as la
from labelaudit import report
from labelaudit.learning.calibration import compare
from labelaudit.report import advice, exposure, scenarios, utility

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
    labels = frame["bought"].to_numpy(np.int64)[:, None]
    attacked = exposure.attack(
        frame[["eta"]].to_numpy(), labels, la.RandomizedResponse(2.0), np.random.default_rng(0)
    )
    ratios = attacked.sums.sum(axis=0) / attacked.sizes.sum(axis=0)
    numbers = dict(zip(exposure.NUMBERS, ratios, strict=True))
    share = labels.mean()
    whole = share * numbers["gain 1"] + (1 - share) * numbers["gain 0"]
    assert whole == pytest.approx(numbers["realised"])


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
    plan = report.Plan(mechanisms=["llp"])
    (setting,) = scenarios.of_any_size(plan.settings, [8])
    attacked, rows, lengths = scenarios.attack_unequal(
        bags, labels.astype(np.int64), eta, setting, rng
    )
    promised = sum(one.sums[:, 0].sum() for one in attacked) / bags.size
    assert sorted(rows) == list(range(bags.size)) and lengths.sum() == bags.size
    by_hand = sum(
        la.additive_advantage(
            eta[None, bags == bag], la.LabelProportions(int((bags == bag).sum()))
        ).sum()
        for bag in range(30)
    )
    assert promised == pytest.approx(by_hand / bags.size)


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


# Verdicts and advice


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
    (one,) = report.advise(verdicts, costs)
    assert one.verdict is None and "no recommendation" in one.text and "holds it" in one.text
    assert "recommends none" in report.summary([one], verdicts, report.Target())
