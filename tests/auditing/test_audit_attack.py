"""The audit of a table: the attack, bags that are not random, decisions and advice."""

import math
from dataclasses import replace

import numpy as np
import pytest
from audit_cases import LLP, RR, attacked, frame_of, known_eta, listed, row_of, some_rows, table_of

import labelaudit as la
from book.chapters.compared import compare
from labelaudit import auditing
from labelaudit.auditing import attack, given_bags, words
from labelaudit.auditing.decisions import decide
from labelaudit.auditing.page import environment
from labelaudit.intervals import Interval

# The attack


def test_promise_and_reality_agree_with_the_comparison_of_the_package():
    frame = some_rows(4000)
    eta, labels = frame["eta"].to_numpy(), frame["bought"].to_numpy(np.uint8)
    (row,) = attacked(eta, labels, mechanisms=["geometric"], bag_sizes=[8], epsilons=[1.0])
    peer = compare(eta, labels, row.setting.mechanism, rng=np.random.default_rng(1))
    assert row.plug_in == pytest.approx(peer.plug_in.value, abs=0.003)
    gap = math.hypot(row.realised_error, peer.realised.standard_error)
    assert abs(row.realised - peer.realised.value) < 4 * gap
    assert abs(row.difference) <= 2 * row.difference_error


def test_parts_by_label_add_up_to_the_whole():
    frame = some_rows(800)
    labels = frame["bought"].to_numpy(np.int64)[:, None]
    eta = np.stack([1 - frame[["eta"]], frame[["eta"]]], axis=-1)
    once = attack.attack(eta, labels, la.RandomizedResponse(2.0), np.random.default_rng(0))
    sums, sizes = attack.sums_and_sizes(once, 2)
    ratios = sums.sum(axis=0) / sizes.sum(axis=0)
    numbers = dict(zip(attack.numbers_of(2), ratios, strict=True))
    fraction = labels.mean()
    whole = fraction * numbers["gain_1"] + (1 - fraction) * numbers["gain_0"]
    assert whole == pytest.approx(numbers["realised"])


def test_nothing_released_is_nothing_gained(tmp_path):
    path = tmp_path / "silent.csv"
    np.savetxt(path, np.tile([0.3, 0.7], (5, 1)), delimiter=",")
    frame = some_rows()
    (row,) = attacked(frame["eta"], frame["bought"], mechanisms=[str(path)])
    assert (row.plug_in, row.realised, row.percentile) == (0, 0, 0)
    assert row.realised_low < 0 < row.realised_high


def test_labels_without_doubt_leave_nothing_to_gain():
    labels = np.tile([0, 1], 200)
    rows = attacked(labels, labels, mechanisms=["rr", "llp"], bag_sizes=[4], epsilons=[1.0])
    assert len(rows) == 2
    for row in rows:
        assert row.realised == row.plug_in == 0
        assert math.isfinite(row.realised_high)


def test_an_estimate_that_the_labels_contradict_is_noticed():
    labels = np.random.default_rng(0).integers(0, 2, 3000)
    (row,) = attacked(np.full(3000, 0.9), labels, mechanisms=["rr"], epsilons=[3.0])
    assert abs(row.difference) > 4 * row.difference_error
    assert known_eta(np.full(3000, 0.9), labels).doubtful_classes(0.01) == [0]


def test_the_most_exposed_are_those_with_the_most_to_lose():
    eta = np.full(400, 0.02)
    eta[37] = 0.5
    ids = [f"row {number}" for number in range(400)]
    first = auditing.most_exposed([eta, eta], ids, la.RandomizedResponse(1.0), 3, seed=0)
    assert first[0] == ("row 37", pytest.approx(math.tanh(0.5) / 2))


def twins(bags=200, size=10, seed=0):
    """Bags of people who all have the same label, and features that say nothing."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(rng.integers(0, 2, bags), size).astype(np.uint8)
    return np.repeat(np.arange(bags), size), labels, np.full(labels.size, 0.5)


def test_the_most_exposed_are_not_those_with_lucky_bags():
    rng = np.random.default_rng(5)
    etas = [rng.beta(2, 5, 2000)]
    ids = [str(number) for number in range(2000)]
    lists = [
        auditing.most_exposed(etas, ids, la.LabelProportions(8), 10, seed=seed) for seed in (0, 1)
    ]
    names = [{name for name, _ in rows} for rows in lists]
    assert len(names[0] & names[1]) >= 7
    # The value of the first is its mean over random bags, by brute force.
    row = int(lists[0][0][0])
    bags = rng.choice(etas[0], (20_000, 8))
    bags[:, 0] = etas[0][row]
    by_hand = la.additive_advantage(bags, la.LabelProportions(8))[:, 0]
    # Five standard errors of 600 bags.
    error = 5 * by_hand.std() / math.sqrt(600)
    assert lists[0][0][1] == pytest.approx(by_hand.mean(), abs=error)


# Bags that are not random


def test_unequal_bags_are_attacked_size_by_size():
    rng = np.random.default_rng(0)
    bags = rng.permutation(np.repeat(np.arange(30), rng.integers(1, 9, 30)))
    eta = rng.random(bags.size)
    labels = (rng.random(bags.size) < eta).astype(np.uint8)
    (setting,) = given_bags.settings_for_given_bags(listed("llp"), [8])
    both = np.column_stack([1 - eta, eta])
    parts, rows, lengths = given_bags.attack_by_size(
        bags, table_of(eta, labels), both, setting, rng
    )
    expected = sum(part.expected.sum() for part in parts) / bags.size
    assert sorted(rows) == list(range(bags.size)) and lengths.sum() == bags.size
    by_hand = sum(
        la.additive_advantage(
            eta[None, bags == bag], la.LabelProportions(int((bags == bag).sum()))
        ).sum()
        for bag in range(30)
    )
    assert expected == pytest.approx(by_hand / bags.size)


def test_bags_of_like_people_and_of_one_record_show():
    rng = np.random.default_rng(1)
    bags = np.repeat(np.arange(200), 10)
    shift = np.repeat(rng.standard_normal(200) * 2, 10)
    eta = np.full(2000, 0.5)
    together = (rng.random(2000) < 1 / (1 + np.exp(-shift))).astype(np.uint8)
    apart = (rng.random(2000) < eta).astype(np.uint8)
    assert auditing.bag_facts(bags, together, eta).move_together
    facts = auditing.bag_facts(bags, apart, eta)
    assert not facts.move_together
    assert facts.expected_of_one_label == pytest.approx(200 * 2 * 0.5**10)
    alone = auditing.bag_facts(np.arange(2000), apart, eta)
    assert alone.of_one_record == alone.of_one_label == 2000


def knowing_more(etas, setting, **options):
    return list(auditing.knowing_more(etas, [setting], auditing.Options(**options)).itertuples())


def test_knowing_more_helps_up_to_the_guarantee():
    frame = some_rows()
    for setting in listed("llp", "geometric", bag_sizes=[4], epsilons=[1.0]):
        rows = knowing_more([frame["eta"].to_numpy()] * 2, setting)
        members = {row.known: row.advantage for row in rows if row.times == 1}
        assert list(members) == [0, 2, 3] and members[3] > members[0]
        again = {row.times: row for row in rows if row.times > 1}
        assert again[5].epsilon == 5 * setting.mechanism.epsilon
        assert again[5].advantage >= members[0] - 1e-9


def test_the_labels_that_are_not_known_are_halved_until_one_is_left():
    """With equal priors, known members of a bag leave a bag of the others."""
    cases = knowing_more([np.full(480, 0.3)], *listed("llp", bag_sizes=[48]), repeats=[1])
    assert [case.known for case in cases] == [0, 24, 36, 42, 45, 46, 47]
    for case in cases:
        left = 48 - case.known
        alone = la.additive_advantage(np.full((1, left), 0.3), la.LabelProportions(left)).mean()
        assert case.advantage == pytest.approx(alone, abs=1e-12)


def test_knowing_more_looks_at_every_refit():
    etas = [np.full(600, 0.5), np.full(600, 0.1)]
    (row,) = knowing_more(etas, *listed("rr", epsilons=[1.0]), repeats=[1])
    # At 0.1 the release cannot change the guess: the mean is half of what 1/2 gives.
    assert row.advantage == pytest.approx(math.tanh(0.5) / 4)
    assert row.advantage_error > 0.1


def test_dispersion_does_not_rest_on_bags_that_are_all_but_certain():
    """One unexpected label where eta is tiny would dominate a mean of the bags' own ratios."""
    rng = np.random.default_rng(2)
    bags = np.repeat(np.arange(300), 5)
    eta = np.where(bags < 150, 1e-6, 0.5)
    labels = (rng.random(1500) < eta).astype(np.uint8)
    labels[0] = 1
    facts = auditing.bag_facts(bags, labels, eta)
    assert facts.dispersion < 1.5 and not facts.move_together


def test_knowing_more_takes_the_numbers_asked_for():
    frame = some_rows()
    (setting,) = listed("geometric", bag_sizes=[4], epsilons=[1.0])
    rows = knowing_more([frame["eta"].to_numpy()], setting, known=[2, 99], repeats=[1, 3])
    assert [(row.known, row.times) for row in rows] == [(0, 1), (2, 1), (3, 1), (0, 3)]


@pytest.mark.parametrize("name, times", [("llp", [1, 2, 5]), ("geometric", [1])])
def test_large_bags_are_left_out_where_they_cannot_be_done(name, times):
    """Without noise a second release adds nothing, in bags of any size."""
    eta = np.random.default_rng(0).random(400_000)
    rows = knowing_more([eta], *listed(name, bag_sizes=[40_000], epsilons=[1.0]))
    assert [(row.known, row.times) for row in rows] == [(0, time) for time in times]
    assert len({row.advantage for row in rows}) == 1


def in_given_bags(bags, eta, labels, mechanisms, epsilons, refits=2):
    table = table_of(eta, labels, bag=bags)
    options = auditing.Options(mechanisms=mechanisms, epsilons=epsilons).suit(table)
    settings = auditing.settings_for(table, options)
    return auditing.attack_given_bags(table, known_eta(eta, labels, refits), options, settings)


def test_settings_are_judged_on_the_tables_own_bags():
    frame = some_rows(3000)
    eta, labels = frame["eta"].to_numpy(), frame["bought"].to_numpy(np.uint8)
    alone = np.r_[np.arange(1000), 1000 + np.arange(2000) // 20]
    own, _ = in_given_bags(alone, eta, labels, ["rr", "llp", "geometric"], [0.1, 4.0])
    titles = ["LLP", "LLP+Geom (epsilon 0.1)", "LLP+Geom (epsilon 4)"]
    assert own["title"].tolist() == titles
    # A bag of one is an open book, and a third of the records are in such bags.
    assert own["revealed"][0] > 0.33 and math.isinf(own["percentile"][0])
    assert own["percentile"][2] <= 4
    decided = auditing.decide_all(own, auditing.Target())
    assert decided["verdict"].tolist() == ["misses", "meets", "misses"]


def test_own_and_random_bags_agree_where_the_own_are_random():
    frame = some_rows(3000)
    eta, labels = frame["eta"].to_numpy(), frame["bought"].to_numpy(np.uint8)
    given = in_given_bags(np.arange(3000) // 6, eta, labels, ["geometric"], [2.0], refits=5)
    own, random = (next(table.itertuples()) for table in given)
    error = math.hypot(own.realised_error, random.realised_error)
    # Four standard errors: one false alarm in ten thousand seeds.
    assert abs(own.realised - random.realised) < 4 * error
    assert random.realised_error < 2 * own.realised_error


# Decisions and advice


@pytest.mark.parametrize("kind, value", [("additive", 0.05), ("multiplicative", 0.2)])
def test_no_guarantee_settles_an_advantage_where_labels_move_together(kind, value):
    (setting,) = listed("geometric", bag_sizes=[10], epsilons=[0.2])
    target = auditing.Target(kind, value)
    row = row_of(setting, 0.04, 0.3)
    assert decide(row, target) == ("meets", "guaranteed")
    for trusted in (True, False):
        assert decide(row, target, trusted=trusted, together=True)[0] == "cannot tell"
    assert decide(row, auditing.Target("epsilon", 0.2), together=True)[0] == "meets"


def test_ten_twins_give_away_more_than_epsilon_allows_strangers():
    channel = la.CountChannel(la.GeometricProportions(10, 0.2).channel().matrix[[0, 10]])
    gain = la.additive_advantage([0.5], channel).item()
    assert gain == pytest.approx(0.316, abs=5e-4)
    assert gain > 6 * la.bounds.label_dp_half_bound(0.2)
    bags, labels, eta = twins()
    assert auditing.bag_facts(bags, labels, eta).move_together


@pytest.mark.parametrize(
    "low, high, realised, trusted, word",
    [
        (0.01, 0.04, None, True, "meets"),
        (0.06, 0.09, None, True, "misses"),
        (0.04, 0.06, None, True, "cannot tell"),
        (0.01, 0.04, (0.06, 0.08), True, "cannot tell"),
        (0.06, 0.09, (0.02, 0.06), True, "cannot tell"),
        (0.01, 0.04, None, False, "cannot tell"),
        (0.06, 0.09, None, False, "cannot tell"),
        (math.nan, math.nan, None, True, "cannot tell"),
    ],
)
def test_decisions(low, high, realised, trusted, word):
    # A contradiction in one setting alone, here of three standard errors, decides nothing.
    row = row_of(LLP, low, high, difference=0.03, realised=realised)
    assert decide(row, auditing.Target(), trusted=trusted)[0] == word


def test_a_guarantee_needs_no_estimate():
    epsilon, ceiling = auditing.Target("epsilon", 2.0), math.tanh(1.0) / 2
    assert decide(row_of(RR, 0.3, 0.4), epsilon, trusted=False)[0] == "meets"
    assert decide(row_of(LLP, 0, 0.01), epsilon)[0] == "misses"
    additive = auditing.Target("additive", ceiling)
    assert decide(row_of(RR, 0.3, 0.5), additive, trusted=False)[0] == "meets"
    grid = np.linspace(0.01, 0.99, 99)
    assert la.additive_advantage(grid, RR.mechanism).max() == pytest.approx(ceiling)


def test_a_multiplicative_target_names_its_level():
    options = auditing.Options(target="multiplicative=1.5", level=0.9)
    assert str(options.target) == "multiplicative advantage of at most 1.5 for 90% of the records"


def test_advice_abstains_and_says_why():
    decided = auditing.decide_all(frame_of([row_of(LLP, 0.04, 0.06)]), auditing.Target())
    (choice,) = auditing.choose(decided)
    assert choice.row is None and decided["rule"].tolist() == ["both open"]
    assert decided["why"][0] in choice.text
    rows = list(decided.itertuples())
    assert words.sentence("headline", (), [choice], rows).startswith("The data cannot tell")


@pytest.mark.parametrize(
    ("names", "target", "hint"),
    [
        (["rr", "llp"], auditing.Target(), "try larger bags or a smaller epsilon."),
        (["rr"], auditing.Target(), "it: try a smaller epsilon."),
        (["llp"], auditing.Target(), "try larger bags or a mechanism with noise."),
        (["llp"], auditing.Target("epsilon", 1.0), "it: try a mechanism with noise."),
        (["rr", "llp"], auditing.Target("epsilon", 0.0), "at epsilon 0 nothing is released."),
    ],
)
def test_where_all_miss_the_hint_fits_what_was_tried(names, target, hint):
    settings = listed(*names, epsilons=[4.0])
    decided = auditing.decide_all(frame_of([row_of(each, 0.3, 0.4) for each in settings]), target)
    assert set(decided["verdict"]) == {"misses"}
    rows = list(decided.itertuples())
    (reason,) = words.paragraphs("reasons", [], [], rows, target, 0.6)
    assert reason.endswith(hint)
    assert words.sentence("headline", (), [], rows).startswith("Publish none of these")


def test_a_single_miss_is_in_the_singular():
    ends = [(0.04, 0.06), (0.3, 0.4)]
    pairs = zip(listed("llp", bag_sizes=[2, 8]), ends, strict=True)
    rows = frame_of([row_of(setting, *interval) for setting, interval in pairs])
    decided = auditing.decide_all(rows, auditing.Target())
    assert "; 1 misses it." in auditing.choose(decided)[0].text


def test_bags_of_one_size_are_named_so():
    labels = np.tile([0, 1], 30)
    facts = auditing.bag_facts(np.repeat(np.arange(12), 5), labels, np.full(60, 0.5))
    assert words.sentence("bag_sizes", facts) == "5 records each"
    assert words.sentence("bag_sizes", replace(facts, smallest=2)) == "2 to 5 records (median 5)"


def cells():
    """The pieces of the page's tables."""
    return environment().get_template("cells.html.j2").module


def test_records_that_gain_nothing_are_not_called_exposed():
    rows = [("Ada", 0.02), ("Ben", 0.0004)]
    assert cells().exposed(rows) == "Ada&nbsp;(0.020)"
    assert cells().exposed(rows[1:]) == "below 0.001 for every record"


def test_the_page_shows_no_end_that_cannot_be():
    interval = cells().interval
    possible = Interval(0.5, 1.0, -1.5, 2.5).within(-1, 1)
    assert interval(possible, 1) == "0.5<small>−1.0 to 1.0</small>"
    assert interval(Interval(2.0, 1.0, 0.5, 3.5), 1).endswith("to 3.5</small>")
    assert interval(Interval(math.inf, math.inf, 0.5, math.inf), 1).startswith("∞<small>")
    assert interval(None) == interval(Interval(math.nan, 1.0, 0.0, 1.0)) == "-"


@pytest.mark.parametrize("kind", ["multiplicative", "epsilon"])
def test_an_endless_target_is_refused(kind):
    with pytest.raises(ValueError, match="must be a finite number"):
        auditing.Target.parse(f"{kind}=inf")
