"""The likelihood of a release: value by brute force, gradient by differences, and limits."""

import itertools
import math
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
import torch
from scipy import integrate

from labelaudit import log_evidence, posterior
from labelaudit.learning.likelihood import Likelihood
from labelaudit.learning.training import Run, TrainingSettings, train
from labelaudit.mechanisms import (
    CountChannel,
    GeometricProportions,
    LabelProportions,
    LaplaceProportions,
    Mechanism,
    NoRelease,
    RandomizedResponse,
)

MECHANISMS = [
    RandomizedResponse(0.7),
    RandomizedResponse(0.0),
    RandomizedResponse(math.inf),
    LabelProportions(1),
    LabelProportions(5),
    GeometricProportions(4, 0.5),
    GeometricProportions(3, 150.0),
    LaplaceProportions(4, 0.8),
    LaplaceProportions(1, 2.0),
    LaplaceProportions(3, math.inf),
    CountChannel(np.random.default_rng(3).dirichlet(np.ones(6), size=4)),
    NoRelease(3),
]


class AnyPositive(Mechanism):
    """Whether a bag of three has a positive label; the likelihood lacks a factor per bag."""

    bag_size, epsilon = 3, math.inf

    def likelihood(self, releases):
        positive = np.arange(4) > 0
        return 7.0 * np.where(np.equal(releases, 1)[:, None], positive, ~positive)


def released(mechanism, n_bags=12, seed=0, spread=1.5):
    """Logits (n_bags, k), and releases of labels that have nothing to do with them."""
    rng = np.random.default_rng(seed)
    logits = spread * rng.standard_normal((n_bags, mechanism.bag_size))
    return logits, mechanism.release(rng.random(logits.shape) < 0.5, rng)


def by_enumeration(logits, mechanism, release):
    """P(release) of one bag by its definition: a sum over all labellings, in mpmath."""
    k = len(logits)
    total = mpmath.mpf(0)
    for labels in itertools.product((0, 1), repeat=k):
        weight = mpmath.mpf(1)
        for logit, y in zip(logits, labels, strict=True):
            weight *= 1 / (1 + mpmath.exp(-logit if y else logit))
        total += weight * probability(mechanism, sum(labels), release)
    return total


def probability(mechanism, count, release):
    """P(release | count), written out again from the definitions of the mechanisms."""
    k, epsilon = mechanism.bag_size, mpmath.mpf(mechanism.epsilon)
    if isinstance(mechanism, NoRelease):
        return 1
    if isinstance(mechanism, CountChannel):
        return float(mechanism.matrix[count, int(release)])
    if mpmath.isinf(epsilon):
        return int(round(release * k) == count)
    if isinstance(mechanism, LaplaceProportions):
        return k * epsilon / 2 * mpmath.exp(-k * epsilon * abs(release - mpmath.mpf(count) / k))
    q, z = mpmath.exp(-epsilon), round(release * k)
    return q ** abs(z - count) / (1 + q) * (1 - q if 0 < z < k else 1)


def loss_and_gradient(loss, logits, releases):
    members = torch.tensor(logits.ravel(), dtype=torch.float64, requires_grad=True)
    value = loss(members, loss.targets(releases))
    return value.item(), torch.autograd.grad(value, members)[0].numpy().reshape(logits.shape)


def on_any_device(mechanism):
    """The loss as another device than a processor computes it."""
    loss = Likelihood(mechanism)
    loss.is_compiled = False
    return loss


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("make", [Likelihood, on_any_device])
def test_value_is_the_probability_of_the_releases(make, mechanism):
    logits, releases = released(mechanism)
    bags = zip(logits, releases, strict=True)
    exact = [mpmath.log(by_enumeration(bag, mechanism, release)) for bag, release in bags]
    value, _ = loss_and_gradient(make(mechanism), logits, releases)
    assert value == pytest.approx(-float(sum(exact)) / 12, rel=1e-13, abs=1e-15)
    evidence = log_evidence(1 / (1 + np.exp(-logits)), mechanism, releases)
    np.testing.assert_allclose(evidence, np.array(exact, dtype=float), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("mechanism", [*MECHANISMS, GeometricProportions(48, 0.3)], ids=repr)
def test_gradient_is_that_of_finite_differences_and_the_attack(mechanism):
    logits, releases = released(mechanism, n_bags=3)
    loss = Likelihood(mechanism)
    _, gradient = loss_and_gradient(loss, logits, releases)
    eta = 1 / (1 + np.exp(-logits))
    attack = (eta - posterior(eta, mechanism, releases)) / 3
    np.testing.assert_allclose(gradient, attack, rtol=0, atol=1e-14)
    for index in itertools.product(range(3), range(min(4, mechanism.bag_size))):
        move = np.zeros_like(logits)
        move[index] = 1e-5
        above, below = (loss_and_gradient(loss, logits + s * move, releases)[0] for s in (1, -1))
        assert gradient[index] == pytest.approx((above - below) / 2e-5, abs=1e-9)


@pytest.mark.parametrize("k", [1, 2, 7, 32, 33, 70])
@pytest.mark.parametrize("spread", [1.0, 30.0, 400.0])
def test_any_device_agrees_with_the_compiled_attack(k, spread):
    for mechanism in (
        LabelProportions(k),
        GeometricProportions(k, 0.4),
        GeometricProportions(k, 5.0),
        LaplaceProportions(k, 1.0),
    ):
        logits, releases = released(mechanism, n_bags=20, seed=k, spread=spread)
        logits = np.clip(logits, -570, 570)
        value, gradient = loss_and_gradient(Likelihood(mechanism), logits, releases)
        theirs, slope = loss_and_gradient(on_any_device(mechanism), logits, releases)
        assert value == pytest.approx(theirs, rel=1e-12)
        np.testing.assert_allclose(gradient, slope, rtol=0, atol=1e-11)


def test_saturated_logits_against_high_precision():
    rows = [[500.0, 500.0, -500.0, -500.0], [40.0, 41.0, 42.0, 43.0], [-90.0, 3.0, 88.0, -560.0]]
    for mechanism in (LabelProportions(4), GeometricProportions(4, 1.0)):
        for row, count in itertools.product(rows, range(5)):
            value, gradient = loss_and_gradient(
                Likelihood(mechanism), np.array([row]), np.array([count / 4])
            )
            with mpmath.workprec(3000):
                exact = -mpmath.log(by_enumeration(row, mechanism, count / 4))
            assert value == pytest.approx(float(exact), rel=1e-12)
            assert np.isfinite(gradient).all() and np.abs(gradient).max() <= 1


def test_logits_beyond_the_range_count_as_its_end_and_others_than_numbers_show():
    loss = Likelihood(LabelProportions(1))
    value, gradient = loss_and_gradient(loss, np.array([[-1e6], [2.0]]), np.array([1.0, 1.0]))
    assert value == pytest.approx((575 + math.log1p(math.exp(-2))) / 2)
    assert gradient[0, 0] == -0.5
    for wrong in (math.nan, math.inf, -math.inf):
        for k in (2, 40):
            loss, logits = Likelihood(LabelProportions(k)), np.zeros((2, k))
            logits[1, 0] = wrong
            value, gradient = loss_and_gradient(loss, logits, np.array([0.5, 0.5]))
            assert math.isnan(value) and np.isnan(gradient[1]).all()
            assert np.isfinite(gradient[0]).all()


def test_single_precision_is_enough():
    mechanism = GeometricProportions(8, 1.0)
    logits, releases = released(mechanism, n_bags=50, spread=8.0)
    loss = Likelihood(mechanism)
    value, gradient = loss_and_gradient(loss, logits, releases)
    members = torch.tensor(logits.ravel(), dtype=torch.float32, requires_grad=True)
    rough = loss(members, loss.targets(releases))
    rough.backward()
    assert rough.dtype == members.grad.dtype == torch.float32
    assert rough.item() == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(members.grad.numpy(), gradient.ravel(), rtol=0, atol=1e-6)


def test_randomized_response_is_forward_correction():
    epsilon = 0.9
    logits, releases = released(RandomizedResponse(epsilon), n_bags=40)
    keep = 1 / (1 + math.exp(-epsilon))
    members = torch.tensor(logits.ravel(), requires_grad=True)
    flipped = keep * torch.sigmoid(members) + (1 - keep) * torch.sigmoid(-members)
    forward = torch.nn.functional.binary_cross_entropy(flipped, torch.from_numpy(releases))
    forward.backward()
    value, gradient = loss_and_gradient(Likelihood(RandomizedResponse(epsilon)), logits, releases)
    assert value == pytest.approx(forward.item(), rel=1e-13)
    np.testing.assert_allclose(gradient.ravel(), members.grad.numpy(), rtol=0, atol=1e-15)


def test_a_factor_per_bag_of_ones_own_likelihood_changes_no_gradient():
    mechanism = AnyPositive()
    logits, releases = np.array([[0.3, -1.0, 2.0], [0.0, 1.0, -2.0]]), np.array([1.0, 0.0])
    value, gradient = loss_and_gradient(Likelihood(mechanism), logits, releases)
    eta = 1 / (1 + np.exp(-logits))
    none = np.prod(1 - eta, axis=1)
    assert value == pytest.approx(-np.log(7 * np.array([1 - none[0], none[1]])).mean())
    expected = (eta - posterior(eta, mechanism, releases)) / 2
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-15)


def test_probabilities_of_all_releases_sum_to_one():
    eta = np.random.default_rng(1).random((1, 6))
    for epsilon in (0.1, 2.0, math.inf):
        mechanism = GeometricProportions(6, epsilon)
        evidence = log_evidence(np.repeat(eta, 7, axis=0), mechanism, np.arange(7) / 6)
        assert np.exp(evidence).sum() == pytest.approx(1, rel=1e-13)
    laplace = LaplaceProportions(6, 0.5)
    corners = np.arange(-120, 127) / 6

    def density(release):
        return math.exp(log_evidence(eta, laplace, [release])[0])

    total = sum(
        integrate.fixed_quad(np.vectorize(density), *ends, n=4)[0]
        for ends in itertools.pairwise(corners)
    )
    assert total == pytest.approx(1, abs=1e-9)


def test_evidence_of_extreme_priors():
    eta = [[0.0, 1.0, 0.5], [0.0, 1.0, 0.5], [1e-290, 1e-290, 1e-290]]
    evidence = log_evidence(eta, LabelProportions(3), [1 / 3, 1.0, 1.0])
    np.testing.assert_allclose(evidence, [math.log(0.5), -math.inf, 3 * math.log(1e-290)])
    assert log_evidence(np.empty((0, 2)), LabelProportions(2), []).shape == (0,)


def test_invalid_input_is_named():
    loss = Likelihood(LabelProportions(4))
    with pytest.raises(ValueError, match=r"multiple of 1/4.*0\.3"):
        loss.targets(np.array([0.5, 0.3]))
    targets = loss.targets(np.array([0.5, 0.25]))
    for logits in (torch.zeros(7), torch.zeros(2, 4)):
        with pytest.raises(ValueError, match="2 bags of 4 need logits of shape"):
            loss(logits, targets)
    with pytest.raises(ValueError, match="at least one bag, not 0"):
        loss(torch.zeros(0), targets[:0])
    with pytest.raises(ValueError, match=r"cannot release 1\.0, the release of bag 1"):
        Likelihood(CountChannel([[1, 0, 0], [0, 0, 1]])).targets(np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match=r"cannot release 0\.5"):
        Likelihood(GeometricProportions(2, 0.0)).targets(np.array([0.5]))
    with pytest.raises(TypeError, match="mechanism must be"):
        Likelihood("RR")


def examples(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, 4)).astype(np.float32)
    eta = 1 / (1 + np.exp(-3 * features[:, 0] + features[:, 1]))
    return SimpleNamespace(features=features, labels=(rng.random(n) < eta).astype(np.uint8))


def weights(outcome):
    return torch.cat([value.ravel() for value in outcome.model.state_dict().values()])


@pytest.mark.parametrize("mechanism", [GeometricProportions(2, 1.0), CountChannel(np.eye(3))])
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.int64])
def test_the_loss_of_other_number_types_is_that_of_single_precision(mechanism, kind):
    """Mixed precision gives half-precision logits; the values here are the same in every type."""
    loss = Likelihood(mechanism)
    targets = loss.targets(mechanism.release(np.array([[0, 1], [1, 1]]), np.random.default_rng(0)))
    single = torch.tensor([1.0, -2.0, 0.0, 3.0], requires_grad=True)
    logits = single.detach().to(kind).requires_grad_(kind.is_floating_point)
    value, expected = loss(logits, targets), loss(single, targets)
    assert value.dtype == torch.float32 and value.item() == expected.item()
    if logits.requires_grad:
        value.backward()
        expected.backward()
        assert torch.equal(logits.grad, single.grad.to(kind))


@pytest.mark.parametrize("mechanism", [None, LabelProportions(1), RandomizedResponse(math.inf)])
def test_labels_in_clear_train_as_cross_entropy_does(mechanism):
    settings = TrainingSettings("small", batch_size=64, epochs=2)
    plain = train(examples(600), None, settings, seed=3)
    settings = TrainingSettings("small", loss="likelihood", batch_size=64, epochs=2)
    ours = train(examples(600), mechanism, settings, seed=3)
    np.testing.assert_allclose(weights(ours), weights(plain), rtol=0, atol=1e-6)
    assert ours.validation_loss == pytest.approx(plain.validation_loss, rel=1e-6)


@pytest.mark.parametrize(
    "mechanism",
    [
        RandomizedResponse(1.0),
        LabelProportions(8),
        GeometricProportions(8, 1.0),
        LaplaceProportions(8, 1.0),
        GeometricProportions(4, 1.0).channel(),
    ],
    ids=repr,
)
def test_training_learns_from_every_mechanism(mechanism):
    settings = TrainingSettings(
        "linear", loss="likelihood", learning_rate=0.03, batch_size=128, epochs=8
    )
    outcome = train(examples(), mechanism, settings, seed=1, test=examples(2000, seed=1))
    assert outcome.auc > 0.9 and outcome.diverged is None
    assert outcome.validation_loss < outcome.curve[0]["validation_loss"]


def test_bags_and_noise_are_those_of_the_other_losses():
    mechanism = GeometricProportions(4, 0.5)
    ours, theirs = (
        Run(examples(400), mechanism, TrainingSettings(loss=loss), 5, None, "cpu", None)
        for loss in ("likelihood", "cross_entropy")
    )
    assert np.array_equal(ours.training.members, theirs.training.members)
    releases = ours.training.targets[:, 0].numpy() / 4
    debiased = mechanism.debias(releases).astype(np.float32)
    assert np.array_equal(debiased, theirs.training.targets.numpy())


def test_nothing_is_learned_from_nothing():
    settings = TrainingSettings(loss="likelihood", batch_size=64, epochs=1, patience=None)
    run = Run(examples(200), NoRelease(2), settings, 5, None, "cpu", None)
    before = run.model(torch.from_numpy(examples(200).features))
    outcome = train(examples(200), NoRelease(2), settings, seed=5)
    after = outcome.model(torch.from_numpy(examples(200).features))
    torch.testing.assert_close(after, before, rtol=0, atol=1e-6)
    assert outcome.validation_loss == pytest.approx(0, abs=1e-6)
