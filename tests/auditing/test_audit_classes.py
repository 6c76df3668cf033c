"""Labels with more than two classes, and randomized response that knows a prior."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from audit_cases import run
from scipy.optimize import linprog

import labelaudit as la
from labelaudit import auditing, multiclass
from labelaudit.auditing.attack import attack


def three_classes(rows=900, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(rows)
    odds = np.exp(np.column_stack([np.zeros(rows), x, -x - 0.5]))
    eta = odds / odds.sum(axis=1, keepdims=True)
    codes = (rng.random((rows, 1)) > np.cumsum(eta, axis=1)).sum(axis=1)
    return pd.DataFrame({"x": x, "party": np.array(["red", "green", "blue"])[codes]}), eta, codes


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_response_with_a_prior_is_the_best_one(classes, epsilon):
    # An outside oracle: the linear program over all epsilon-label-DP responses.
    prior = np.random.default_rng(classes).dirichlet(np.ones(classes))
    made = multiclass.ClassResponseWithPrior(classes, epsilon, prior=tuple(prior))
    below = []
    for column in range(classes):
        for label in range(classes):
            for other in set(range(classes)) - {label}:
                row = np.zeros((classes, classes))
                row[label, column], row[other, column] = 1, -math.exp(epsilon)
                below.append(row.ravel())
    rows = np.kron(np.eye(classes), np.ones(classes))
    best = linprog(-np.diag(prior).ravel(), below, np.zeros(len(below)), rows, np.ones(classes))
    channel = made.channel()
    assert channel.sum(axis=1) == pytest.approx(np.ones(classes))
    assert (np.array(below) @ channel.ravel()).max() <= 1e-12
    assert float(prior @ np.diag(channel)) == pytest.approx(-best.fun, abs=1e-9)
    if classes == 2:
        binary = la.mechanisms.response_with_prior(epsilon, prior[1])
        expected = channel[:, channel.max(axis=0) > 0]
        assert binary.matrix == pytest.approx(expected)


def test_response_with_a_prior_releases_its_channel():
    made = multiclass.ClassResponseWithPrior(3, 1.0, prior=(0.5, 0.4, 0.1))
    labels = np.repeat([0, 1, 2], 4000)
    released = made.release(labels, np.random.default_rng(0)).astype(int).reshape(3, -1)
    found = [np.bincount(each, minlength=3) / 4000 for each in released]
    # Four standard errors: a false alarm in about 1 of 1,700 runs over nine cells.
    assert np.abs(found - made.channel()).max() < 4 * math.sqrt(0.25 / 4000)
    with pytest.raises(ValueError, match="sum to 1"):
        multiclass.ClassResponseWithPrior(3, 1.0, prior=(0.5, 0.4, 0.2))
    with pytest.raises(ValueError, match="cannot be debiased"):
        made.debias([0.0])


def test_two_classes_are_attacked_as_in_the_binary_audit():
    rng = np.random.default_rng(1)
    eta = rng.beta(2, 3, (500, 2))
    labels = (rng.random(eta.shape) < eta).astype(np.int64)
    both = np.stack([1 - eta, eta], axis=-1)
    for mechanism, binary in [
        (multiclass.ClassProportions(2, 2), la.LabelProportions(2)),
    ]:
        attacked = attack(both, labels, mechanism, rng)
        expected = la.additive_advantage(eta, binary)
        assert attacked.expected == pytest.approx(expected, abs=1e-12)
        shifts = la.multiplicative_advantage(eta, binary, binary.release(labels, rng))
        assert np.array_equal(attacked.proven == 1, np.isinf(shifts))
        finite = np.isfinite(shifts)
        assert attacked.shifts[finite] == pytest.approx(np.abs(shifts[finite]), abs=1e-9)


def test_true_class_probabilities_keep_their_promise():
    frame, probabilities, codes = three_classes(6000)
    table = auditing.read(frame, auditing.Columns(label="party"))
    order = [table.classes.index(name) for name in ("red", "green", "blue")]
    assert np.array_equal(np.array(order)[codes], table.labels)
    eta = np.empty_like(probabilities)
    eta[:, order] = probabilities
    options = auditing.Options(
        mechanisms=["rr", "llp", "rr-prior=0.4,0.4,0.2"], bag_sizes=[2, 4], epsilons=[1.0]
    )
    rows = list(
        auditing.attack_settings(table, auditing.Eta((eta, eta), (), False), options).itertuples()
    )
    for row in rows:
        # Five standard errors of the difference.
        assert abs(row.difference) < 5 * row.difference_error
        assert row.percentile <= row.epsilon + 1e-9
        # By class too the gains add up.
        gains = [getattr(row, f"gain_{label}") for label in range(3)]
        assert row.realised == pytest.approx(np.bincount(table.labels) / 6000 @ gains, abs=1e-9)
    assert [row.title for row in rows] == [
        "RR (epsilon 1)", "LLP (bags of 2)", "LLP (bags of 4)", "RR with prior (epsilon 1)",
    ]  # fmt: skip
    response = multiclass.ClassRandomizedResponse(3, 1.0)
    expected = multiclass.additive_advantage(eta, response).mean()
    assert rows[0].plug_in == pytest.approx(expected, abs=1e-12)


@pytest.fixture(scope="module")
def report():
    frame, _, _ = three_classes()
    return la.audit(frame, "party", epsilons=[0.1, 4.0], bag_sizes=[2, 4], refits=2)


def test_the_audit_of_three_classes(report):
    verdicts = report.verdicts["verdict"]
    assert verdicts["RR (epsilon 0.1)"] == "meets" and verdicts["RR (epsilon 4)"] == "misses"
    (recommended,) = report.recommended
    # The search finds less noise than the listed epsilon of 0.1.
    assert recommended.setting.kind.name == "RR" and recommended.setting.mechanism.epsilon > 0.1
    assert recommended.verdict == "meets" and 0 < recommended.worth < 0.1
    assert "another class with probability 0.6" in " ".join(report.reasons)
    assert "red" not in repr(report)
    assert 0.2 < report.at_stake < 0.6
    assert len(report.tables["by_label"]) == 3 * len(report.settings)


def test_its_page_and_numbers(report, tmp_path):
    page = report.save(tmp_path / "party.html")
    html = page.read_text()
    assert report.headline in html and "A contradiction counts" in html
    numbers = json.loads(page.with_suffix(".json").read_text())
    assert len(numbers["settings"]) > 4 and numbers["classes"] == ["blue", "green", "red"]
    assert len(numbers["calibration"]) == len(numbers["settings"][0]["by_label"]) == 3
    worths = [each["worth"] for each in numbers["utilities"]]
    # A proportion of k labels explains 1 / k of their variance, and more where priors differ.
    assert worths[2:4] == pytest.approx([1 / 2, 1 / 4], rel=0.25)
    assert worths[0] < 0.01 < worths[1] and f"{worths[2]:.3g}" in html


def test_the_command_takes_three_classes(tmp_path, capsys):
    frame, _, _ = three_classes(300)
    frame.to_csv(tmp_path / "party.csv", index=False)
    asked = [tmp_path / "party.csv", "--label", "party", "--output", tmp_path / "page.html"]
    few = ["--epsilons", 1, "--bag-sizes", 2, "--refits", 2, "--target", "epsilon=1"]
    names = ["--mechanisms", "rr", "rr-prior=0.4,0.3,0.3"]
    assert run(*asked, *few, *names) == 0
    assert capsys.readouterr().out.startswith("Publish RR (epsilon 1)")
    for wrong, message in {
        "laplace": "is one of rr, llp, rr-prior",
        "rr-prior=a,b,c": "is written rr-prior=P,P,...",
        "rr-prior=0.5,0.5": "3 numbers that sum to 1",
    }.items():
        assert run(*asked, *few, "--overwrite", "--mechanisms", wrong) == 2
        assert message in capsys.readouterr().err
    assert run(*asked, *few, "--overwrite", "--bag", "x") == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith("an audit of 3 classes takes no bag: leave it out")


def test_too_few_of_a_class_and_too_many_classes():
    frame, _, _ = three_classes(300)
    frame.loc[:4, "party"] = "none"
    with pytest.raises(ValueError, match="rarest of 4 values of 'party' occurs 5 times"):
        la.audit(frame, "party")
    with pytest.raises(ValueError, match="must have 2 to 20 values, not 300"):
        la.audit(frame.assign(party=np.arange(300)), "party")
    frame, _, _ = three_classes(300)
    with pytest.raises(ValueError, match="takes no prior"):
        la.audit(frame.assign(p=0.5), "party", prior="p")


def test_rr_prior_in_a_binary_audit(tmp_path):
    frame = pd.DataFrame({"p": np.linspace(0.05, 0.95, 200)})
    frame["ill"] = np.random.default_rng(0).random(200) < frame["p"]
    report = la.audit(
        frame, "ill", prior="p", mechanisms=["rr-prior=0.3"], epsilons=[0.5, 2.0], search=False,
        target="epsilon=3",
    )  # fmt: skip
    # 0.7 is above e^0.5 / (1 + e^0.5) and below e^2 / (1 + e^2).
    assert report.verdicts["epsilon"].tolist() == pytest.approx([0.0, 2.0])
