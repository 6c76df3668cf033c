"""A mechanism of one's own in the audit of a table."""

import json
import math

import numpy as np
import pytest
from audit_cases import MAJORITY, attacked, listed, row_of, run, some_rows, write_shop

import labelaudit as la
from labelaudit import auditing
from labelaudit.auditing import attack, words
from labelaudit.auditing.decisions import decide
from labelaudit.auditing.page import environment
from labelaudit.mechanisms.count_channels import censored_ends


@pytest.fixture
def csv(tmp_path):
    return write_shop(tmp_path)


def test_a_class_in_a_file_is_a_mechanism(tmp_path):
    path = tmp_path / "majority.py"
    path.write_text(MAJORITY)
    settings = listed(str(path), bag_sizes=[1, 3], epsilons=[1.0])
    assert [setting.title for setting in settings] == [
        "Majority (bags of 1, epsilon 1)",
        "Majority (bags of 3, epsilon 1)",
    ]
    eta = np.linspace(0.1, 0.9, 9)
    np.testing.assert_allclose(
        la.additive_advantage(eta, settings[0].mechanism),
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
        listed(str(path), bag_sizes=[3], epsilons=[1.0])


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
    (setting,) = listed(str(path), bag_sizes=[3], epsilons=[0.1])
    assert not setting.checked
    row = row_of(setting, 0.2, 0.3)
    target = auditing.Target("epsilon", 1.0)
    assert decide(row, target) == ("cannot tell", "epsilon declared")
    assert decide(row, auditing.Target("additive", 0.1))[0] == "misses"
    cells = environment().get_template("cells.html.j2").module
    assert "declared, not checked" in cells.epsilon(0.1, checked=False)


def test_a_trial_release_of_large_bags_is_small(tmp_path):
    """A mechanism is tried before the audit, on at most a million labels."""
    path = tmp_path / "majority.py"
    limit = "        assert labels.size <= 1_000_000, 'too many labels'\n        return"
    text = MAJORITY.replace(
        "        return self.channel().release", f"{limit} self.channel().release"
    )
    path.write_text(text.replace("def channel", "def _law").replace(".channel()", "._law()"))
    settings = listed(str(path), bag_sizes=[3, 5000], epsilons=[1.0])
    assert [setting.mechanism.bag_size for setting in settings] == [3, 5000]
    path.write_text(path.read_text().replace("1_000_000", "10"))
    with pytest.raises(ValueError, match="too many labels"):
        listed(str(path), bag_sizes=[5000], epsilons=[1.0])


def test_a_class_need_not_be_hashable(tmp_path):
    path = tmp_path / "majority.py"
    path.write_text(MAJORITY.replace("@dataclass(frozen=True)", "@dataclass"))
    frame = some_rows()
    options = {"mechanisms": [str(path)], "bag_sizes": [1, 3], "epsilons": [1.0]}
    rows = attacked(frame["eta"], frame["bought"], **options)
    assert [row.bag_size for row in rows] == [1, 3]


def test_without_a_channel_the_promise_is_sampled(tmp_path):
    path = tmp_path / "majority.py"
    path.write_text(MAJORITY.replace("def channel", "def _law").replace(".channel()", "._law()"))
    frame = some_rows(3000)
    options = {"mechanisms": [str(path)], "bag_sizes": [3], "epsilons": [2.0]}
    (row,) = attacked(frame["eta"], frame["bought"], **options)
    assert row.method == "by sampled releases"
    channel = row.setting.mechanism._law()
    eta = frame["eta"].to_numpy()[: 3000 // 3 * 3].reshape(-1, 3)
    exact = la.additive_advantage(eta, channel).mean()
    assert row.plug_in == pytest.approx(exact, abs=4 * row.plug_in_error)


def test_an_error_of_the_exact_path_is_not_hidden_by_sampling(monkeypatch):
    """Only a mechanism without a channel is sampled."""

    def fail(eta, mechanism):
        raise ValueError("a fault")

    monkeypatch.setattr(attack, "additive_advantage", fail)
    with pytest.raises(ValueError, match="a fault"):
        attack.plug_in_advantage(
            np.full((4, 1, 2), 0.5), la.RandomizedResponse(1.0), np.random.default_rng(0)
        )


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
        listed(str(path), bag_sizes=[2], epsilons=[0.5])


RESPONSE = """
import numpy as np
from labelaudit import CountChannel, Mechanism, RandomizedResponse

class Mine(Mechanism):
    bag_size, epsilon = 1, 1.0
    def channel(self):
        return RandomizedResponse(1.0).channel()
    def likelihood(self, releases):
        return RandomizedResponse(1.0).likelihood(releases)
    def release(self, labels, rng):
        return RandomizedResponse(1.0).release(labels, rng)
"""
RELEASE = "RandomizedResponse(1.0).release(labels, rng)"
# Channel and likelihood say that nothing is released.
SILENT = (
    RESPONSE.replace("epsilon = 1, 1.0", "epsilon = 1, 0.0")
    .replace("RandomizedResponse(1.0).channel()", "CountChannel(np.ones((2, 1)))")
    .replace("RandomizedResponse(1.0).likelihood(releases)", "np.ones((len(releases), 2))")
)


def written(folder, text, name="mine.py"):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return str(path)


def test_an_honest_class_passes(tmp_path):
    for text in (RESPONSE, SILENT.replace(RELEASE, "rng.integers(0, 3, len(labels))")):
        (setting,) = listed(written(tmp_path, text))
        assert setting.checked


@pytest.mark.parametrize("kind", ["GeometricProportions", "LabelProportions", "NoRelease"])
def test_classes_derived_from_ours_pass(tmp_path, kind):
    text = f"import labelaudit as la\n\nclass Mine(la.{kind}):\n    pass\n"
    settings = listed(written(tmp_path, text), bag_sizes=[1, 40], epsilons=[0.3, 3])
    assert all(setting.checked for setting in settings)


@pytest.mark.parametrize(
    "text, message",
    [
        (RESPONSE.replace(RELEASE, "labels[:, 0]"), "does not release what its channel says"),
        (SILENT.replace(RELEASE, "labels[:, 0]"), "releases more than its likelihood tells"),
        (
            MAJORITY.replace("self.channel().release(labels, rng)", "labels[:, 0]"),
            "does not release what its channel says",
        ),
        (
            RESPONSE.replace(
                "RandomizedResponse(1.0).channel()", "RandomizedResponse(0.5).channel()"
            ),
            "whose likelihood is that of no column",
        ),
    ],
)
def test_a_release_that_leaks_more_than_its_channel_is_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        listed(written(tmp_path, text), bag_sizes=[5], epsilons=[1.0])


def test_of_ones_own_mechanism_a_contradiction_comes_before_its_guarantee(tmp_path):
    (setting,) = listed(written(tmp_path, RESPONSE))
    target = auditing.Target("additive", 0.4)
    assert decide(row_of(setting, 0.1, 0.2), target)[0] == "meets"
    assert decide(row_of(setting, 0.1, 0.2, difference=0.05), target)[0] == "cannot tell"


@pytest.mark.parametrize(
    "channel, message",
    [
        ("self._missing", "its channel: AttributeError"),
        ("1 / 0", "its channel: ZeroDivisionError"),
        ("np.eye(2)", "its channel must be a CountChannel, not ndarray"),
        ("CountChannel([[0.5, 0.6], [0.5, 0.5]])", "its channel: ValueError: the rows of matrix"),
    ],
)
def test_a_faulty_channel_is_naming_user_errors(tmp_path, channel, message):
    text = RESPONSE.replace("RandomizedResponse(1.0).channel()", channel)
    with pytest.raises(ValueError, match=f"Mine cannot be audited: {message}"):
        listed(written(tmp_path, text))


def test_every_release_sees_the_same_type_of_label(csv, tmp_path):
    check = "        if labels.dtype != np.int64:\n            raise TypeError(labels.dtype)\n"
    text = MAJORITY.replace("labels, rng):\n", f"labels, rng):\n{check}")
    text += "    def debias(self, releases):\n        return np.asarray(releases)\n"
    path = written(tmp_path, text)
    arguments = ["--label", "bought", "--bag", "day", "--bag-sizes", 3, "--epsilons", 1]
    page = tmp_path / "r.html"
    assert run(csv, *arguments, "--refits", 2, "--mechanisms", path, "--output", page) == 0
    # It can be made for any bag size, so it is tried on the table's bags as well.
    numbers = json.loads(page.with_suffix(".json").read_text())
    assert [pair["given"]["setting"] for pair in numbers["given_bags"]] == ["Majority (epsilon 1)"]
    assert numbers["given_bags"][0]["given"]["verdict"] in ("meets", "misses", "cannot tell")
    assert numbers["advice"][0]["own_bags"] is not None or numbers["bags"]["bags"] > 10
    assert "revealed" in page.read_text()


def test_a_mechanism_that_fails_under_way_is_naming_user_errors(csv, tmp_path, capsys):
    fault = "        len(labels) == 600 and {}['x']\n"
    text = RESPONSE.replace("labels, rng):\n", f"labels, rng):\n{fault}")
    arguments = ["--label", "bought", "--prior", "eta", "--mechanisms", written(tmp_path, text)]
    assert run(csv, *arguments, "--output", tmp_path / "r.html") == 1
    assert capsys.readouterr().err.splitlines()[-1].endswith("Mine failed: KeyError: 'x'")


def test_mechanisms_of_one_name_are_told_apart(tmp_path, csv):
    paths = [written(tmp_path / folder, RESPONSE, "mine.py") for folder in ("one", "two")]
    assert [setting.title for setting in listed(*paths)] == paths
    audit = la.audit(csv, "bought", prior="eta", mechanisms=paths)
    assert list(audit.exposed) == paths
    first, second = json.loads(auditing.as_json(audit))["advice"]
    assert first["family"] != second["family"]


def test_files_of_one_stem_are_modules_of_their_own(tmp_path):
    other = RESPONSE.replace("1.0", "2.0")
    paths = [written(tmp_path / "one", RESPONSE), written(tmp_path / "two", other)]
    kinds = [type(setting.mechanism) for setting in listed(*paths)]
    assert [kind.epsilon for kind in kinds] == [1.0, 2.0]
    assert kinds[0].__module__ != kinds[1].__module__


def test_a_file_that_ends_the_program_does_not(tmp_path):
    with pytest.raises(ValueError, match="cannot be run: SystemExit: 3"):
        listed(written(tmp_path, "import sys\nsys.exit(3)\n"))


# Mechanisms in use


def test_published_counts_say_what_they_should():
    counts = np.arange(13)
    for mechanism, published in (
        (la.mechanisms.suppressed(12, 5), np.where(counts < 5, 0, counts)),
        (la.mechanisms.rounded(12, 5), np.floor(counts / 5 + 0.5)),
        (censored_ends(12, 1), np.clip(counts, 1, 11)),
    ):
        labels = (np.arange(12) < counts[:, None]).astype(int)
        released = mechanism.release(labels, np.random.default_rng(0))
        assert released.tolist() == published.tolist()
    noisy = la.mechanisms.discrete_gaussian(3, 2.0)
    # The variance of discrete Gaussian noise is sigma^2 up to e^(-2 pi^2 sigma^2).
    places = np.arange(noisy.matrix.shape[1])
    for row in noisy.matrix:
        assert row @ places**2 - (row @ places) ** 2 == pytest.approx(4.0, abs=1e-9)
    assert noisy.epsilon == math.inf == la.mechanisms.random_subset(0.2).epsilon
    assert la.worth([0.3], la.mechanisms.random_subset(0.2))[0] == pytest.approx(0.2)


def test_a_named_mechanism_is_not_taken_for_the_users():
    """A wrong eta contradicts the channel of a file, not one that the package makes itself."""
    rng = np.random.default_rng(0)
    labels = rng.random(20_000) < 0.1
    options = {"mechanisms": ["rr", "rr-prior=0.4"], "epsilons": [1.0]}
    rows = attacked(np.full(labels.size, 0.45), labels, **options)
    assert any(abs(row.difference) > 4 * row.difference_error for row in rows)
    for row in rows:
        decided = decide(row, auditing.Target("epsilon", 1.0), trusted=False)
        assert decided == ("meets", "epsilon known")


def test_mechanisms_in_use_are_audited_by_name():
    names = ["suppressed=5", "rounded=5", "censored=1", "gaussian=2", "subset=0.1"]
    audit = la.audit(
        some_rows(3000),
        "bought",
        prior="eta",
        bag="day",
        mechanisms=names,
        bag_sizes=[12],
        refits=2,
    )
    assert audit.settings["title"].tolist()[:5] == [
        "suppressed 5 (bags of 12)", "rounded 5 (bags of 12)", "censored 1 (bags of 12)",
        "gaussian 2 (bags of 12)", "subset 0.1",
    ]  # fmt: skip
    assert audit.settings["worth"].notna().all()
    assert audit.settings["revealed"][4] == pytest.approx(0.1, abs=0.02)
    # Counts of 0 and 12 are not published, and without them nothing is proven.
    assert audit.settings["revealed"][2] == 0
    assert len(audit.own_bags) == 4
    assert "Gaussian noise" in words.explained(audit.settings.iloc[3])


@pytest.mark.parametrize("name", ["rounded", "rounded=x", "rounded=0", "rounded=2.5", "subset=2"])
def test_a_mechanism_in_use_needs_its_number(name):
    with pytest.raises((ValueError, TypeError), match=r"rounded|multiple|fraction"):
        auditing.Options(mechanisms=[name])
