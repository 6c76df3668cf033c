"""What an audit recommends: verdicts closed under noise, true guarantees, persons, leaks, data."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from audit_cases import frame_of, listed, row_of, run, some_rows
from conftest import ROOT

import labelaudit as la
from labelaudit import auditing
from labelaudit.auditing import words
from labelaudit.auditing.decisions import (
    close_under_noise,
    decide,
    guaranteed,
    guaranteed_epsilon,
)
from labelaudit.auditing.leaks import leaking_columns
from labelaudit.auditing.search import AS_GOOD_AS_PROOF, EPSILONS
from labelaudit.auditing.settings import Setting, settings_of

NOISY = ("rr", "geometric", "laplace")


def random_table(seed):
    """200 to 500 rows whose prior may be true or wrong, with rare labels or frequent ones."""
    rng = np.random.default_rng([91, seed])
    rows = int(rng.integers(200, 501))
    eta = rng.beta(*rng.uniform(0.3, 5, 2), rows)
    given = 1 / (1 + ((1 - eta) / eta) ** rng.choice([0.5, 1.0, 1.0, 2.0]))
    labels = rng.random(rows) < eta
    labels[:20], labels[20:40] = False, True
    return pd.DataFrame({"p": given.clip(0.001, 0.999), "ill": labels.astype(int)})


def meets(row):
    return row.verdict == "meets"


def noisier_pairs(settings):
    """Pairs of rows on one mechanism and bag size, the noisier one first."""
    rows = list(settings.itertuples())
    for noisier in rows:
        for other in rows:
            ours, theirs = dict(noisier.setting.parameters), dict(other.setting.parameters)
            same = noisier.setting.kind == other.setting.kind
            same &= ours.get("bag_size") == theirs.get("bag_size")
            if same and ours.get("epsilon", math.inf) < theirs.get("epsilon", math.inf):
                yield noisier, other


# Verdicts


def test_an_attack_that_loses_refutes_eta_and_meets_no_target():
    """No best guess loses on average: an interval wholly below 0 is not 'below the target'."""
    (setting,) = listed("rr", epsilons=[4.3])
    losing = row_of(setting, 0.0001, 0.0005, realised=(-0.0043, -0.0008))
    target = auditing.Target("additive", 0.0006)
    assert decide(losing, target) == ("cannot tell", "attack loses")
    holding_zero = row_of(setting, 0.0001, 0.0005, realised=(-0.0043, 0.0001))
    assert decide(holding_zero, target)[0] == "meets"
    # What epsilon alone guarantees needs no attack, and |I| of a single label no eta.
    assert decide(losing, auditing.Target("additive", 0.49))[0] == "meets"
    assert decide(losing, auditing.Target("epsilon", 4.3))[0] == "meets"
    bags = row_of(*listed("llp"), 0.1, 0.2, realised=(-0.2, -0.1))
    assert decide(bags, auditing.Target("multiplicative", 1.0))[0] == "cannot tell"


@pytest.mark.parametrize("seed", range(40))
def test_of_random_intervals_nothing_meets_while_more_noise_does_not(seed):
    rng = np.random.default_rng([92, seed])
    settings = listed(*NOISY, bag_sizes=[2, 8], epsilons=EPSILONS)
    target = auditing.Target("additive", float(rng.uniform(0.001, 0.1)))
    rows = []
    for setting in settings:
        plug_in, realised = np.sort(rng.normal(0, 0.05, (2, 2)), axis=1).tolist()
        rows.append(row_of(setting, *np.abs(plug_in), realised=realised))
    raw = auditing.decide_all(frame_of(rows), target, trusted=bool(seed % 5))
    closed = close_under_noise(raw, target)
    assert all(meets(noisier) or not meets(other) for noisier, other in noisier_pairs(closed))
    by_guarantee = [meets(row) for row in closed.itertuples() if guaranteed(row.epsilon, target)]
    assert all(by_guarantee)
    # Nothing else changes, and the least noisy of an unbroken row stays as it is.
    for before, after in zip(raw.itertuples(), closed.itertuples(), strict=True):
        same = (before.verdict, before.rule) == (after.verdict, after.rule)
        assert same or (meets(before) and after.rule == "noisier")
    multiplicative = raw.assign(verdict=["misses"] + ["meets"] * (len(raw) - 1))
    percentile = auditing.Target("multiplicative", 1.0)
    assert close_under_noise(multiplicative, percentile)["verdict"][1:].eq("meets").all()


@pytest.mark.parametrize("seed", range(24))
def test_of_random_tables_nothing_meets_while_more_noise_does_not(seed):
    frame = random_table(seed)
    target = ("additive=0.01", "additive=0.003", "epsilon=0.8")[seed % 3]
    options = {"mechanisms": NOISY, "bag_sizes": [4], "epsilons": [0.1, 1.0, 4.0], "refits": 2}
    audit = la.audit(frame, "ill", prior="p", target=target, seed=seed, **options)
    pairs = list(noisier_pairs(audit.settings))
    assert len(pairs) >= 9
    assert all(meets(noisier) or not meets(other) for noisier, other in pairs)
    for row in audit.settings.itertuples():
        if meets(row) and row.rule not in ("guaranteed", "epsilon known"):
            assert row.realised_high >= 0 and audit.target.kind == "additive"
        assert meets(row) or not guaranteed(row.guarantee, audit.target)
    # Whatever the attack shows, a setting that meets the target by its guarantee is found.
    assert audit.recommended and "cannot tell whether any" not in audit.headline


@pytest.mark.parametrize("classes", range(3, 21))
def test_a_guarantee_for_several_classes_is_one_for_equal_classes(classes):
    """On equal classes c-ary randomized response gains more than any two-class bound allows."""
    for setting in settings_of(["rr"], [], [0.5, 1.0, 2.0], classes=classes):
        epsilon = setting.mechanism.epsilon
        eta = np.full((1, 1, classes), 1 / classes)
        gain = float(la.multiclass.additive_advantage(eta, setting.mechanism).mean())
        kept = math.exp(epsilon) / (classes - 1 + math.exp(epsilon))
        assert gain == pytest.approx(kept - 1 / classes)
        below = auditing.Target("additive", 0.999 * gain)
        assert not guaranteed(epsilon, below, classes)
        assert decide(row_of(setting, 1.001 * gain, 1.002 * gain), below)[0] == "misses"
        sure = guaranteed_epsilon(below, classes=classes)
        assert 0 < sure < epsilon
    # The two-class bound would let epsilon 2 pass here: the advantage of three is .454.
    assert not guaranteed(2.0, auditing.Target("additive", 0.4), 3)
    assert guaranteed(2.0, auditing.Target("additive", 0.4), 2)


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(("kind", "values"), [
    ("additive", (0.0003, 0.01, 0.07, 0.3)), ("multiplicative", (0.1, 1.0, 4.3)),
    ("epsilon", (0.05, 1.0, 1.3, 3.0)),
])  # fmt: skip
def test_the_guaranteed_epsilon_is_the_largest_and_never_rounded_up(kind, values, rows, classes):
    for value in values:
        target = auditing.Target(kind, value)
        epsilon = guaranteed_epsilon(target, rows, classes)
        assert guaranteed(rows * epsilon, target, classes)
        # Three digits: the next number that can be shown is not guaranteed.
        digit = 10.0 ** (math.floor(math.log10(epsilon)) - 2)
        assert not guaranteed(rows * (epsilon + 1.001 * digit), target, classes)
        assert float(f"{epsilon:.3g}") == epsilon
    assert guaranteed_epsilon(auditing.Target(kind, 0.0), rows, classes) == 0


# The search


@pytest.mark.parametrize("name", NOISY)
def test_the_search_finds_the_largest_step_that_meets(name):
    """Against an audit of every step: the next one must not meet the target."""
    rng = np.random.default_rng(7)
    eta = rng.beta(2, 4, 8000)
    frame = pd.DataFrame({"p": eta, "ill": (rng.random(eta.size) < eta).astype(int)})
    options = {"prior": "p", "mechanisms": [name], "bag_sizes": [4], "refits": 2}
    options |= {"target": "additive=0.03", "utility": "none"}
    every = la.audit(frame, "ill", epsilons=EPSILONS, search=False, **options)
    meeting = every.settings["setting"][every.settings["verdict"] == "meets"].tolist()
    found = la.audit(frame, "ill", epsilons=[0.1, 20.0], **options)
    (recommended,) = found.recommended
    assert recommended.setting in meeting
    assert dict(recommended.setting.parameters)["epsilon"] == max(
        dict(setting.parameters)["epsilon"] for setting in meeting
    )


def test_the_steps_are_those_that_chapter_14_names():
    steps = f"{', '.join(f'{step:g}' for step in EPSILONS[:-1])} and {EPSILONS[-1]:g}"
    chapter = (ROOT / "notebooks" / "14_audit.md").read_text(encoding="utf-8")
    assert f"for $\\eps$ they are {steps}" in chapter


def test_seeds_find_the_same_steps():
    """By bisection to two digits these seeds found 0.56, 0.53, 0.57 and 0.55."""
    rng = np.random.default_rng(3)
    eta = rng.beta(2, 4, 10_000)
    frame = pd.DataFrame({"p": eta, "ill": (rng.random(eta.size) < eta).astype(int)})
    options = {"prior": "p", "mechanisms": ["rr"], "epsilons": [0.1], "target": "additive=0.03"}
    audits = [la.audit(frame, "ill", seed=seed, refits=2, **options) for seed in range(4)]
    (mechanism,) = {audit.recommended[0].setting.mechanism for audit in audits}
    assert mechanism.epsilon in EPSILONS


def test_where_no_attack_settles_anything_the_guarantee_does():
    """400 labels of a coin: too few for any interval, but epsilon 0.08 needs none."""
    labels = np.random.default_rng(0).integers(0, 2, 400)
    frame = pd.DataFrame({"p": np.full(400, 0.5), "ill": labels})
    options = {"prior": "p", "target": "additive=0.02", "utility": "none"}
    audit = la.audit(frame, "ill", mechanisms=["rr"], epsilons=[1.0], **options)
    (recommended,) = audit.recommended
    assert recommended.setting.mechanism == la.RandomizedResponse(0.08)
    assert recommended.guarantee.settles == "label-DP bound"
    assert math.tanh(0.08 / 2) / 2 <= 0.02 < math.tanh(0.0801 / 2) / 2


def test_of_several_classes_the_guarantee_settles_what_the_listed_settings_do_not():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.standard_normal(300), "party": rng.choice(list("abc"), 300)})
    asked = {"mechanisms": ["rr"], "epsilons": [4.0], "refits": 2, "target": "additive=0.01"}
    (recommended,) = la.audit(frame, "party", **asked).recommended
    epsilon = recommended.setting.mechanism.epsilon
    # Whatever the attack shows, the guaranteed epsilon meets the target; the attack may find more.
    sure = 4 * math.atanh(0.01)
    assert epsilon >= sure - 1e-4
    assert la.bounds.label_dp_classes_bound(0.04, 3) <= 0.01
    assert la.audit(frame, "party", search=False, **asked).recommended == ()


# Persons


@pytest.mark.parametrize("target", ["epsilon=1", "multiplicative=1"])
def test_targets_and_search_count_every_row_of_a_person(target):
    frame = pd.DataFrame({"p": 0.5, "ill": np.tile([0, 1], 150)})
    frame["who"] = np.arange(300) // 3
    options = {"mechanisms": ["rr"], "epsilons": [0.5, 1.0], "prior": "p", "person": "who"}
    audit = la.audit(frame, "ill", target=target, **options)
    (recommended,) = audit.recommended
    guarantee = recommended.guarantee
    assert guarantee.rows == 3 and guarantee.per_person == 3 * guarantee.epsilon
    assert guaranteed(guarantee.per_person, audit.target)
    assert audit.verdicts["verdict"]["RR (epsilon 1)"] != "meets"
    if target == "epsilon=1":
        assert guarantee.epsilon == 0.333 and guarantee.settles == "epsilon"
        row = audit.settings.set_index("title").loc["RR (epsilon 0.5)"]
        assert (row["rule"], row["declared"]) == ("epsilon of a person", 1.5)


def test_odds_of_a_person_with_many_rows_are_as_good_as_proof():
    frame = some_rows(2400, seed=2)[["eta", "bought"]].assign(who=np.arange(2400) // 12)
    options = {"mechanisms": ["rr"], "epsilons": [0.01], "prior": "eta", "target": "additive=0.2"}
    alone = la.audit(frame, "bought", **options).recommended[0].guarantee
    person = la.audit(frame, "bought", person="who", **options).recommended[0].guarantee
    assert person.per_person <= AS_GOOD_AS_PROOF < 12 * alone.epsilon


# Leaks


def read_table(source, **columns):
    return auditing.read(source, auditing.Columns(**columns))


def with_a_leak(rows=400):
    frame = some_rows(rows)[["x", "kind", "bought"]]
    # Written down with the label: a chapter for those alone who bought.
    frame["chapter"] = np.where(frame["bought"] == 1, "seven", None)
    return frame


def test_beside_a_leaked_column_nothing_is_recommended(tmp_path, capsys):
    path, page = tmp_path / "shop.csv", tmp_path / "page.html"
    with_a_leak().to_csv(path, index=False)
    asked = [path, "--label", "bought", "--mechanisms", "rr", "--refits", 2, "--utility", "none"]
    assert run(*asked, "--output", page) == 3
    printed = capsys.readouterr().out
    assert printed.startswith("No recommendation: column 'chapter' gives the label away.")
    numbers = json.loads(page.with_suffix(".json").read_text())
    assert numbers["recommended"] == numbers["advice"] == []
    assert numbers["give_away"] == ["chapter"]
    html = page.read_text()
    (command,) = [
        line for line in printed.splitlines() if line.startswith("The command that leaves")
    ]
    words = command.partition(": ")[2].split()
    assert " ".join(words) in html and "Publish" not in html
    # The command that is shown is one that works.
    assert words[:2] == ["labelaudit", "audit"]
    assert run(*words[2:]) == 0
    assert capsys.readouterr().out.startswith("Publish RR")
    numbers = json.loads(page.with_suffix(".json").read_text())
    assert "chapter" not in numbers["data"]["features"] and numbers["recommended"]


def test_of_several_classes_a_leak_of_one_is_noticed():
    rng = np.random.default_rng(0)
    result = rng.choice(["negative", "positive", "invalid"], 600, p=[0.7, 0.2, 0.1])
    frame = pd.DataFrame({"age": rng.integers(20, 80, 600), "result": result})
    frame["ct"] = np.where(result == "positive", rng.uniform(15, 35, 600), 45.0)
    options = {"mechanisms": ["rr"], "refits": 2, "target": "epsilon=1"}
    audit = la.audit(frame, "result", **options)
    assert audit.recommended == () and audit.give_away == ("ct",)
    assert leaking_columns(audit.table)[0].value == "positive"
    assert la.audit(frame, "result", leave_out=["ct"], **options).recommended


def test_columns_that_are_left_out_are_not_used():
    frame = with_a_leak()
    table = read_table(frame, label="bought", leave_out=["chapter"])
    assert [column.name for column in table.columns] == ["x", "kind"]
    named = read_table(frame, label="bought", features=["x", "chapter"], leave_out=["chapter"])
    assert [column.name for column in named.columns] == ["x"]
    assert leaking_columns(table) == leaking_columns(named) == ()
    for wrong, message in (("chaptr", "no column 'chaptr'"), ("bought", "label 'bought' cannot")):
        with pytest.raises(ValueError, match=message):
            read_table(frame, label="bought", leave_out=[wrong])
    with pytest.raises(TypeError, match="must be a list"):
        read_table(frame, label="bought", leave_out="chapter")


# The recommendation as data


def test_the_recommendation_is_data_and_the_page_says_it(tmp_path):
    audit = la.audit(some_rows(600), "bought", prior="eta", target="epsilon=1", refits=2)
    assert audit.recommended and all(
        isinstance(each.setting, Setting) and each.verdict == "meets" for each in audit.recommended
    )
    titles = [each.setting.title for each in audit.recommended]
    assert all(title in audit.headline for title in titles)
    page = audit.save(tmp_path / "page.html")
    numbers = json.loads(page.with_suffix(".json").read_text())
    assert numbers["schema"] == 1
    for each, written in zip(audit.recommended, numbers["recommended"], strict=True):
        assert written["setting"] == each.setting.title
        assert written["mechanism"] == each.setting.kind.option
        assert written["parameters"] == dict(each.setting.parameters)
        assert written["guarantee"]["settles"] == "epsilon"
        assert written["guarantee"]["per_person"] == each.setting.mechanism.epsilon
        assert written["worth"] == pytest.approx(each.worth)
    assert {"mechanism", "parameters", "rule"} <= set(numbers["settings"][0])
    with pytest.raises(AttributeError):
        audit.recommended[0].verdict = "misses"


@pytest.mark.parametrize(("target", "status"), [("epsilon=1", 0), ("epsilon=0", 3), ("one=1", 2)])
def test_the_exit_status_says_whether_anything_is_recommended(target, status, tmp_path, capsys):
    some_rows(300)[["eta", "bought"]].to_csv(tmp_path / "shop.csv", index=False)
    asked = [tmp_path / "shop.csv", "--label", "bought", "--prior", "eta", "--mechanisms", "rr"]
    assert run(*asked, "--target", target, "--output", tmp_path / "r.html") == status
    assert (tmp_path / "r.json").is_file() == (status != 2)
    with pytest.raises(SystemExit):
        run("--help")
    assert "3 the audit is done and recommends nothing" in " ".join(capsys.readouterr().out.split())


def test_a_name_with_a_colon_stays_whole_on_the_page(tmp_path):
    path = tmp_path / "a:b.csv"
    np.savetxt(path, [[0.8, 0.2], [0.3, 0.7]], delimiter=",")
    options = {"prior": "eta", "mechanisms": [str(path)], "target": "epsilon=2", "refits": 2}
    html = auditing.as_html(la.audit(some_rows(300), "bought", **options))
    assert "<strong>the channel of a:b.csv:</strong>" in html


def test_a_percentile_that_is_epsilon_is_written_so():
    epsilons = [0.7, 1.1, 2.3, 4.3, 6.1]
    options = {"prior": "eta", "mechanisms": ["rr"], "target": "epsilon=1", "search": False}
    audit = la.audit(some_rows(300), "bought", epsilons=epsilons, **options)
    numbers = json.loads(auditing.as_json(audit))["settings"]
    assert [each["percentile"]["value"] for each in numbers] == epsilons


def test_numbers_are_said_as_people_write_them():
    """Odds without an exponent, and a loss with its sign, not as 'more labels'."""
    (setting,) = listed("rr", epsilons=[6.1])
    assert "odds change at most 450 times" in words.explained(row_of(setting, 0.1, 0.2))
    frame = pd.DataFrame({"p": np.full(400, 0.4), "ill": np.arange(400) % 5 < 2})
    options = {"prior": "p", "mechanisms": ["rr"], "epsilons": [1.0], "refits": 2}
    audit = la.audit(frame, "ill", target="epsilon=1", **options)
    gain = audit.settings["realised"][0]
    assert any(f"by {gain:+.2%} (" in reason for reason in audit.reasons)
    assert not any("more labels right" in reason for reason in audit.reasons)
