"""Tables that lead an audit astray, and the options that answer to them."""

import numpy as np
import pandas as pd
import pytest

import labelaudit as la
from labelaudit.auditing import Options, words
from labelaudit.auditing.attack import draw_bags
from labelaudit.auditing.flow import prepare

FEW = {"mechanisms": ["rr", "llp"], "epsilons": [1.0], "search": False, "utility": "none"}


def drawn(eta, seed=0):
    return (np.random.default_rng(seed).random(len(eta)) < eta).astype(int)


def test_one_class_is_rejected():
    with pytest.raises(ValueError, match="must have 2 to 20 values, not 1"):
        la.audit(pd.DataFrame({"x": range(100), "ill": [1] * 100}), "ill")


def test_forty_rows_are_rejected_or_get_small_bags():
    frame = pd.DataFrame({"p": [0.5] * 40, "ill": [0, 1] * 20})
    options = prepare(frame, "ill", prior="p")[1]
    assert max(options.bag_sizes) == 4
    report = la.audit(frame, "ill", prior="p", target="epsilon=1", **FEW)
    assert report.verdicts["verdict"].tolist() == ["meets", "misses", "misses"]
    assert not report.verdicts["plug-in"].isna().any()
    with pytest.raises(ValueError, match="occurs 19 times in 40 rows"):
        la.audit(frame.assign(ill=[1] * 19 + [0] * 21), "ill", prior="p")


def test_rare_labels_do_not_make_bags_look_safe():
    # Of 1.5% positive labels a bag of 8 has none in nine of ten cases, and then it proves them all.
    eta = np.full(4000, 0.015)
    frame = pd.DataFrame({"p": eta, "ill": drawn(eta)})
    report = la.audit(frame, "ill", prior="p", bag_sizes=[8], **FEW)
    proven = report.verdicts["revealed"]["LLP (bags of 8)"]
    assert proven == pytest.approx(0.985**8, abs=0.03)
    assert report.verdicts["verdict"]["LLP (bags of 8)"] == "meets"
    assert not report.headline.startswith("Publish LLP")
    assert f"this proves {100 * proven:.2g}% of labels to anyone" in report.headline
    assert words.ADDITIVE_ALONE in report.reasons[0]
    assert report.target.value == pytest.approx(report.at_stake / 10, rel=0.05)


def test_only_an_additive_target_gets_its_warning():
    frame = pd.DataFrame({"p": [0.5] * 4000, "ill": [0, 1] * 2000})
    for target, said in (("additive=0.1", True), ("multiplicative=1", False), ("epsilon=1", False)):
        report = la.audit(frame, "ill", prior="p", target=target, **FEW)
        assert any(words.ADDITIVE_ALONE in reason for reason in report.reasons) == said
        fixed = any(words.FIX_BAGS in reason for reason in report.reasons)
        assert fixed == ("LLP" in report.headline.partition(".")[0])
        assert fixed == said


def test_rows_of_a_person_are_in_one_bag():
    persons = np.random.default_rng(0).permutation(np.repeat(np.arange(300), 4))
    bags = draw_bags(persons, 8, np.random.default_rng(1), together=True)
    assert bags.shape == (150, 8) and np.unique(bags).size == 1200
    assert all(np.unique(persons[bag]).size == 2 for bag in bags)
    # The order of persons is random: first and last bags are no special ones.
    again = draw_bags(persons, 8, np.random.default_rng(2), together=True)
    assert not np.array_equal(persons[bags], persons[again])


def test_bags_of_one_person_prove_more_than_bags_of_strangers():
    # Four rows of each person have the same label, and the bag holds just these.
    eta = np.repeat(np.random.default_rng(0).uniform(0.2, 0.8, 500), 4)
    labels = np.repeat(drawn(eta[::4], seed=1), 4)
    frame = pd.DataFrame({"p": eta, "ill": labels, "who": np.repeat(np.arange(500), 4)})
    asked = {"prior": "p", "bag_sizes": [4], "mechanisms": ["llp"], "search": False}
    strangers = la.audit(frame, "ill", **asked)
    together = la.audit(frame, "ill", person="who", **asked)
    assert together.verdicts["revealed"].iloc[0] == 1.0
    assert strangers.verdicts["revealed"].iloc[0] < 0.4


def test_several_learners_widen_the_intervals():
    # Only trees can learn this label; a linear model knows nothing.
    x = np.random.default_rng(0).uniform(-1, 1, 1500)
    frame = pd.DataFrame({"x": x, "ill": drawn(np.where(np.abs(x) > 0.5, 0.85, 0.15))})
    asked = FEW | {"mechanisms": ["rr"], "refits": 2}
    alone = la.audit(frame, "ill", **asked)
    both = la.audit(frame, "ill", learners=["boosting", "logistic"], **asked)
    ends = [each.settings[["plug_in_low", "plug_in_high"]].iloc[0] for each in (alone, both)]
    widths = [high - low for low, high in ends]
    assert widths[1] > 3 * widths[0]
    assert len(both.eta.refits) == 2
    with pytest.raises(ValueError, match="a learner is one of boosting, logistic, not"):
        Options(learners=["forest"])


def test_small_tables_get_more_refits():
    frame = pd.DataFrame({"x": np.arange(400.0), "ill": [0, 1] * 200})
    assert prepare(frame, "ill")[1].refits == 6
    assert prepare(frame, "ill", refits=2)[1].refits == 2
    assert prepare(frame.assign(p=0.5), "ill", prior="p")[1].refits == 3
