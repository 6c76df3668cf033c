"""Training: equal where theory says so, repeatable, resumable, stopped in time, and picky."""

import math
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn import metrics

from labelaudit.learning import bags, calibration, losses, training
from labelaudit.learning.training import STREAMS, Run, TrainingSettings, stream, train
from labelaudit.mechanisms import (
    GeometricProportions,
    LabelProportions,
    LaplaceProportions,
    NoRelease,
    RandomizedResponse,
)

QUICK = TrainingSettings("small", learning_rate=3e-3, batch_size=64, epochs=3, patience=None)
HASHED = TrainingSettings(
    "kdd12", learning_rate=1e-2, batch_size=32, epochs=2, patience=None, buckets=300
)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Tiny networks gain nothing from threads, and the suite runs several workers."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def measured(n=600, seed=0, fields=4):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, fields)).astype(np.float32)
    eta = 1 / (1 + np.exp(-3 * features[:, 0] + features[:, 1]))
    return SimpleNamespace(features=features, labels=(rng.random(n) < eta).astype(np.uint8))


def hashed(n=500, seed=0):
    rng = np.random.default_rng(seed)
    indices = (300 * rng.random((n, 5)) ** 3).astype(np.int32)
    eta = np.where(indices[:, 0] % 2 == 1, 0.8, 0.2)
    return SimpleNamespace(features=indices, labels=(rng.random(n) < eta).astype(np.uint8))


def weights(outcome):
    return torch.cat([value.ravel() for value in outcome.model.state_dict().values()])


def same(one, two):
    """Whether two outcomes agree to the last bit, in weights and in what was measured."""
    assert one.best_epoch == two.best_epoch and one.diverged == two.diverged
    np.testing.assert_equal(one.curve, two.curve)
    np.testing.assert_equal((one.auc, one.validation_loss), (two.auc, two.validation_loss))
    return torch.equal(weights(one), weights(two))


@pytest.mark.parametrize(
    ("mechanism", "equal"),
    [
        (RandomizedResponse(math.inf), None),
        (LabelProportions(1), None),
        (GeometricProportions(1, math.inf), None),
        (LaplaceProportions(1, math.inf), None),
        (GeometricProportions(1, 1.0), RandomizedResponse(1.0)),
        (LaplaceProportions(4, math.inf), LabelProportions(4)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("loss", ["cross_entropy", "squared", "easy_llp", "centred_llp"])
def test_mechanisms_that_coincide_train_the_same_model(mechanism, equal, loss):
    settings = TrainingSettings("small", loss=loss, batch_size=64, epochs=2)
    one = train(measured(), mechanism, settings, seed=3)
    two = train(measured(), equal, settings, seed=3)
    np.testing.assert_allclose(weights(one), weights(two), rtol=0, atol=1e-6)


def test_noise_makes_a_difference():
    one = train(measured(), RandomizedResponse(1.0), QUICK, seed=3)
    two = train(measured(), None, QUICK, seed=3)
    assert (weights(one) - weights(two)).abs().max() > 1e-3


@pytest.mark.parametrize(("data", "settings"), [(measured(), QUICK), (hashed(), HASHED)])
def test_same_seed_same_weights(data, settings):
    mechanism = GeometricProportions(2, 1.0)
    first, again, other = (
        train(data, mechanism, settings, seed=seed, test=data) for seed in (5, 5, 6)
    )
    assert same(first, again)
    assert not torch.equal(weights(first), weights(other))


def test_streams_are_kept_apart():
    """Another mechanism draws other noise, but the same bags and the same initial weights."""
    one, two = (
        Run(measured(), mechanism, QUICK, 7, None, "cpu", None)
        for mechanism in (LaplaceProportions(4, 1.0), GeometricProportions(4, 0.5))
    )
    assert np.array_equal(one.training.members, two.training.members)
    assert torch.equal(one.model.dense[0].weight, two.model.dense[0].weight)
    assert not torch.equal(one.training.targets, two.training.targets)
    draws = {name: stream(7, name).random() for name in STREAMS}
    assert len(set(draws.values())) == len(STREAMS)


def test_training_learns_what_is_there():
    data, fresh = measured(4000), measured(2000, seed=1)
    settings = TrainingSettings("small", learning_rate=1e-2, batch_size=128, epochs=10)
    clean = train(data, None, settings, seed=0, test=fresh)
    private = train(data, GeometricProportions(4, 0.5), settings, seed=0, test=fresh)
    assert clean.auc > 0.9 and clean.auc > private.auc > 0.8
    assert clean.log_loss < 0.4
    predicted = clean.predict(fresh.features)
    assert predicted.dtype == np.float64
    assert math.isclose(metrics.roc_auc_score(fresh.labels, predicted), clean.auc, abs_tol=1e-9)
    assert math.isclose(metrics.log_loss(fresh.labels, predicted), clean.log_loss, abs_tol=1e-6)


def test_nothing_is_learned_from_features_without_a_signal():
    data = measured(2000)
    data.labels = np.random.default_rng(9).integers(0, 2, 2000)
    outcome = train(data, LabelProportions(4), QUICK, seed=0, test=measured(2000, seed=1))
    assert abs(outcome.auc - 0.5) < 0.15


def test_every_bag_is_trained_on_once_an_epoch_and_whole(monkeypatch):
    seen = []
    plain = bags.Bags.batch

    def watched(self, chosen):
        rows, targets = plain(self, chosen)
        seen.append((self, chosen.tolist(), len(rows), len(targets)))
        return rows, targets

    monkeypatch.setattr(bags.Bags, "batch", watched)
    settings = TrainingSettings("linear", batch_size=50, epochs=2, patience=None, validation=0)
    outcome = train(measured(611), LabelProportions(8), settings, seed=0)
    assert outcome.dropped == 3 and math.isnan(outcome.validation_loss)
    chosen = [bag for _, numbers, _, _ in seen for bag in numbers]
    assert sorted(chosen[:76]) == sorted(chosen[76:]) == list(range(76))
    assert chosen[:76] != chosen[76:]
    assert {rows for _, _, rows, _ in seen} <= {40, 48}
    assert all(rows == 8 * count == 8 * len(numbers) for _, numbers, rows, count in seen)


def test_validation_bags_are_held_out_and_released_in_the_same_way():
    mechanism = GeometricProportions(4, 1.0)
    data = measured(611)
    run = Run(data, mechanism, TrainingSettings(validation=0.25), 2, None, "cpu", None)
    members = np.concatenate([run.validation.members, run.training.members])
    assert (len(run.validation), len(run.training)) == (38, 114)
    assert len(np.unique(members)) == members.size == 608
    released = mechanism.debias(mechanism.release(data.labels[members], stream(2, "noise")))
    targets = torch.cat([run.validation.targets, run.training.targets])
    np.testing.assert_allclose(targets, released, rtol=1e-6)


def test_validation_loss_is_that_of_clamped_logits():
    run = Run(measured(), RandomizedResponse(1.0), TrainingSettings("small"), 2, None, "cpu", None)
    with torch.no_grad():
        run.model.dense[-1].weight.mul_(50)
    rows = measured().features[run.validation.members[:, 0]]
    logits = torch.from_numpy(training.logits(run.model, rows))
    assert logits.abs().max() > 3
    slow = losses.cross_entropy(logits.clamp(-3, 3), run.validation.targets.double())
    found = training.validation_loss(run.model, run.loss, run.validation, 3.0)
    assert math.isclose(found, slow.item(), rel_tol=1e-6)


def test_rows_that_do_not_fit_on_the_device_train_the_same_model(monkeypatch):
    resident = train(measured(), LabelProportions(4), QUICK, seed=1)
    monkeypatch.setattr(bags, "_fits", lambda size, device: False)
    assert same(train(measured(), LabelProportions(4), QUICK, seed=1), resident)


class Killed(BaseException):
    pass


def read_checkpoint(path):
    return torch.load(training._unsealed(path.read_bytes()), weights_only=True)


@pytest.mark.parametrize(("data", "settings"), [(measured(), QUICK), (hashed(), HASHED)])
@pytest.mark.parametrize("steps", [4, 18])
def test_resumed_run_equals_the_unbroken_one(tmp_path, monkeypatch, data, settings, steps):
    """Stopped within the first epoch or a later one, with checkpoints every second step."""
    mechanism = LaplaceProportions(2, 1.0)
    arguments = {"seed": 4, "test": measured(50) if settings is QUICK else hashed(50)}
    unbroken = train(data, mechanism, settings, **arguments)
    monkeypatch.setattr(training, "CHECK_EVERY", 2)
    monkeypatch.setattr(training, "CHECKPOINT_EVERY", 0.0)
    with monkeypatch.context() as patch:
        plain, count = bags.Bags.batch, iter(range(1000))

        def batch(self, chosen):
            if next(count) == steps:
                raise Killed
            return plain(self, chosen)

        patch.setattr(bags.Bags, "batch", batch)
        with pytest.raises(Killed):
            train(data, mechanism, settings, checkpoint=tmp_path / "run.pt", **arguments)
    stood = read_checkpoint(tmp_path / "run.pt")["state"]["state"]
    assert (stood["epoch"] > 1) == (steps == 18)
    resumed = train(data, mechanism, settings, checkpoint=tmp_path / "run.pt", **arguments)
    assert same(resumed, unbroken)
    again = train(data, mechanism, settings, checkpoint=tmp_path / "run.pt", **arguments)
    assert same(again, unbroken)
    assert [file.name for file in tmp_path.iterdir()] == ["run.pt"]


KILLED_RUN = """
import os, signal, sys
sys.path[:0] = ["tests", "tests/learning"]
from test_training import HASHED, bags, hashed, torch, train
from labelaudit.mechanisms import RandomizedResponse
torch.set_num_threads(1)
plain, count = bags.Bags.batch, iter(range(1000))
def batch(self, chosen):
    if next(count) == 25:
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(self, chosen)
bags.Bags.batch = batch
train(hashed(), RandomizedResponse(1.0), HASHED, seed=4, checkpoint=sys.argv[1])
"""


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_killed_process_is_resumed(tmp_path, request):
    """The signal leaves no chance to tidy up; the first epoch's checkpoint is on disk."""
    path = tmp_path / "run.pt"
    command = [sys.executable, "-c", KILLED_RUN, str(path)]
    killed = subprocess.run(command, cwd=request.config.rootpath, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert read_checkpoint(path)["state"]["state"]["epoch"] == 2
    resumed = train(hashed(), RandomizedResponse(1.0), HASHED, seed=4, checkpoint=path)
    assert same(resumed, train(hashed(), RandomizedResponse(1.0), HASHED, seed=4))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"seed": 2}, "its seed is 1, not 2"),
        ({"split": measured(seed=8)}, "its training data is"),
        ({"mechanism": LabelProportions(2)}, r"its mechanism is 'None', not 'LabelProportions\("),
        ({"settings": TrainingSettings("linear")}, "its settings is"),
        ({"test": measured(40)}, "its test data is None"),
    ],
)
def test_checkpoint_of_another_run_is_refused(tmp_path, change, word):
    arguments = {"split": measured(), "mechanism": None, "settings": QUICK, "seed": 1}
    path = tmp_path / "run.pt"
    train(**arguments, checkpoint=path)
    with pytest.raises(ValueError, match=word):
        train(**{**arguments, **change}, checkpoint=path)


def test_what_is_no_checkpoint_is_refused(tmp_path):
    path = tmp_path / "run.pt"
    path.write_text("not a checkpoint")
    with pytest.raises(ValueError, match=r"run\.pt is not a checkpoint"):
        train(measured(), None, QUICK, seed=1, checkpoint=path)


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_checkpoint_is_named_and_never_resumed(tmp_path, seed):
    """One bit, of a weight or anywhere: torch would read another number and say nothing."""
    path, rng = tmp_path / "run.pt", np.random.default_rng(seed)
    model = train(measured(), None, QUICK, seed=1, checkpoint=path).model
    content = bytearray(path.read_bytes())
    index = int(rng.integers(len(content)))
    if seed < 4:
        weights = model.state_dict()["dense.4.weight"].numpy().tobytes()
        index = content.find(weights) + int(rng.integers(len(weights)))
    content[index] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"run\.pt is not a checkpoint.*remove it"):
        train(measured(), None, QUICK, seed=1, checkpoint=path)


def test_runaway_is_stopped_by_the_released_validation_labels():
    """Debiased labels: the training loss falls without bound, and the early epochs were better."""
    data, fresh = measured(800, fields=8), measured(2000, seed=1, fields=8)
    rate = {"model": "small", "learning_rate": 1e-2, "batch_size": 64}
    long = TrainingSettings(**rate, epochs=25, patience=None)
    ran_away = train(data, RandomizedResponse(0.5), long, seed=0, test=fresh)
    stopped = train(
        data, RandomizedResponse(0.5), TrainingSettings(**rate, epochs=25), seed=0, test=fresh
    )
    assert ran_away.curve[-1]["training_loss"] < -1
    assert ran_away.best_epoch == ran_away.epochs_run == 25
    assert stopped.epochs_run == stopped.best_epoch + 3 < 25
    assert stopped.curve == ran_away.curve[: stopped.epochs_run]
    assert stopped.auc == stopped.curve[stopped.best_epoch - 1]["auc"]
    assert stopped.auc > ran_away.auc + 0.02
    assert stopped.log_loss < ran_away.log_loss - 1
    bound = math.log1p(math.exp(3)) * (2 / math.expm1(0.5) + 1)
    assert all(abs(row["validation_loss"]) < bound for row in ran_away.curve)


def test_divergence_names_step_and_learning_rate():
    settings = TrainingSettings("small", learning_rate=1e30, batch_size=64, epochs=3)
    with pytest.warns(RuntimeWarning, match=r"at step [23] with learning rate 1e\+30"):
        outcome = train(measured(), None, settings, seed=0, test=measured())
    assert "at step" in outcome.diverged
    assert (outcome.best_epoch, outcome.epochs_run, outcome.curve) == (0, 0, [])
    assert math.isnan(outcome.auc) and math.isnan(outcome.validation_loss)


def test_nothing_is_measured_after_divergence(monkeypatch):
    def measured_all_the_same(*_):
        raise AssertionError("a diverged network is not worth measuring")

    monkeypatch.setattr(training, "validation_loss", measured_all_the_same)
    settings = TrainingSettings("small", learning_rate=1e30, batch_size=64, epochs=3)
    with pytest.warns(RuntimeWarning, match="learning rate 1e"):
        assert train(measured(), None, settings, seed=0).epochs_run == 0


def test_divergence_keeps_the_weights_of_the_last_good_epoch(monkeypatch):
    plain = bags.Bags.batch
    count = iter(range(1000))

    def batch(self, chosen):
        rows, targets = plain(self, chosen)
        return rows, targets * math.nan if next(count) == 13 else targets

    monkeypatch.setattr(bags.Bags, "batch", batch)
    settings = TrainingSettings("small", batch_size=64, epochs=5, patience=None, validation=0)
    with pytest.warns(RuntimeWarning, match="the loss became nan at step 14 with learning rate"):
        outcome = train(measured(), None, settings, seed=0, test=measured())
    assert (outcome.best_epoch, outcome.epochs_run) == (1, 1)
    assert outcome.auc == outcome.curve[0]["auc"]
    assert weights(outcome).isfinite().all()


def test_progress_is_shown_and_says_what_is_dropped(capsys):
    train(measured(603), LabelProportions(4), QUICK, seed=0, progress=True)
    shown = capsys.readouterr()
    assert "3 examples do not fill a bag of 4: not used" in shown.out + shown.err
    assert "100%" in shown.err
    train(measured(603), LabelProportions(4), QUICK, seed=0)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"learning_rate": 0}, "learning_rate must be positive and finite, not 0.0"),
        ({"learning_rate": math.nan}, r"learning_rate must lie in \[0, inf\], not nan"),
        ({"learning_rate": math.inf}, "learning_rate must be positive and finite, not inf"),
        ({"learning_rate": -1e-3}, "not -0.001"),
        ({"clamp": 0}, "clamp must be positive"),
        ({"model": "big"}, "model must be one of higgs, kdd12, small, linear, not 'big'"),
        (
            {"loss": "hinge"},
            "loss must be one of cross_entropy, squared, easy_llp, .*likel.*, not 'hinge'",
        ),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, not 0"),
        ({"epochs": 0}, "epochs must be a whole number"),
        ({"patience": 0}, "patience must be a whole number"),
        ({"validation": 1.0}, "validation must lie in"),
        ({"validation": 0}, "patience needs validation labels"),
    ],
)
def test_bad_settings_are_refused(values, word):
    with pytest.raises(ValueError, match=word):
        TrainingSettings(**values)


def with_entry(name, value):
    data = measured(40)
    array = getattr(data, name).astype(float if name == "labels" else np.float32)
    array[3] = value
    setattr(data, name, array)
    return data


@pytest.mark.parametrize(
    ("split", "mechanism", "settings", "word"),
    [
        (with_entry("labels", 2), None, QUICK, r"labels must be 0 or 1, but labels\[3\] is 2"),
        (with_entry("features", np.nan), None, QUICK, r"must be finite, but \[3, 0\] is nan"),
        (measured(3), LabelProportions(4), QUICK, "3 examples make 0 whole bags of 4"),
        (measured(7), LabelProportions(4), QUICK, "1 whole bags of 4: too few"),
        (measured(0), None, QUICK, "at least one example"),
        (measured(), LabelProportions(65), QUICK, "batch_size must hold a whole bag of 65, not 64"),
        (measured(fields=27), None, TrainingSettings("higgs"), "28 measured features, not 27"),
        (hashed(), None, TrainingSettings("kdd12", buckets=100), r"must lie in 0\.\.99, but"),
        (measured(), NoRelease(), QUICK, "cannot be debiased"),
        (measured(), RandomizedResponse(0.0), QUICK, "cannot be debiased"),
        (
            SimpleNamespace(features=measured(8).features, labels=measured(7).labels),
            None,
            QUICK,
            "8 rows of features but 7 labels",
        ),
    ],
)
def test_bad_data_are_refused(split, mechanism, settings, word):
    with pytest.raises(ValueError, match=word):
        train(split, mechanism, settings, seed=0)


def test_test_split_is_checked_too():
    with pytest.raises(ValueError, match="the test split has 3 features, the training split 4"):
        train(measured(), None, QUICK, seed=0, test=measured(fields=3))
    with pytest.raises(ValueError, match=r"labels\[3\] is 2"):
        train(measured(), None, QUICK, seed=0, test=with_entry("labels", 2))


def test_wrong_kinds_are_refused():
    with pytest.raises(TypeError, match="must be floats, not int32: set buckets"):
        train(hashed(), None, QUICK, seed=0)
    with pytest.raises(TypeError, match="must be whole numbers, not float32"):
        train(measured(), None, HASHED, seed=0)
    with pytest.raises(TypeError, match="mechanism must be a Mechanism"):
        train(measured(), RandomizedResponse, QUICK, seed=0)
    with pytest.raises(TypeError, match="settings must be TrainingSettings"):
        train(measured(), None, {"model": "small"}, seed=0)
    with pytest.raises(ValueError, match="device must be auto, cpu or cuda"):
        train(measured(), None, QUICK, seed=0, device="abacus")


def test_prediction_refuses_a_feature_count_that_does_not_fit():
    outcome = train(measured(), None, QUICK, seed=0)
    with pytest.raises(ValueError, match="the model takes 4 features, not 5"):
        outcome.predict(np.zeros((2, 5)))
    assert outcome.predict(np.zeros((0, 4))).shape == (0,)


def test_measures_equal_those_of_scikit_learn():
    rng = np.random.default_rng(2)
    labels, scores = rng.integers(0, 2, 500), rng.integers(-4, 5, 500).astype(float)
    assert math.isclose(calibration.auc(labels, scores), metrics.roc_auc_score(labels, scores))
    probabilities = 1 / (1 + np.exp(-scores))
    expected = metrics.log_loss(labels, probabilities)
    assert math.isclose(calibration.log_loss(labels, scores), expected)
    assert math.isnan(calibration.auc(np.ones(3), np.arange(3)))
    assert calibration.auc(labels, np.zeros(500)) == 0.5
