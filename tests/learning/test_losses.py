"""The losses: gradients unbiased by exact enumeration, stable, equal where they must be."""

import itertools
import math

import numpy as np
import pytest
import torch

from labelaudit.learning.losses import (
    centred_llp,
    cross_entropy,
    easy_llp,
    matching_cross_entropy,
    matching_squared,
)
from labelaudit.mechanisms import (
    GeometricProportions,
    LabelProportions,
    LaplaceProportions,
    RandomizedResponse,
)

MATCHING = [matching_cross_entropy, matching_squared]


def features(bag_size):
    return torch.tensor(np.random.default_rng(5).normal(size=(bag_size, 3)))


def gradient(loss, inputs, targets):
    """The gradient of a loss in the weights of a linear model, in float64."""
    weights = torch.tensor([0.7, -1.1, 0.4], dtype=torch.float64, requires_grad=True)
    targets = torch.as_tensor(targets, dtype=torch.float64)
    return torch.autograd.grad(loss(inputs @ weights, targets), weights)[0].numpy()


def outcomes(mechanism, count):
    """Every release of a bag with `count` positive labels, and its probability.

    The geometric law is written out again here, the noise beyond an end being added to that end.
    Laplace noise is replaced by a quadrature that is exact for polynomials, as affine gradients
    are.
    """
    k = mechanism.bag_size
    if isinstance(mechanism, LaplaceProportions):
        nodes, weights = np.polynomial.laguerre.laggauss(8)
        noise = np.concatenate([nodes, -nodes]) / (k * mechanism.epsilon)
        return count / k + noise, np.concatenate([weights, weights]) / 2
    if math.isinf(mechanism.epsilon):
        return np.array([count / k]), np.ones(1)
    q = math.exp(-mechanism.epsilon)
    law = [(1 - q) / (1 + q) * q ** abs(z - count) for z in range(k + 1)]
    law[0], law[k] = q**count / (1 + q), q ** (k - count) / (1 + q)
    assert math.isclose(sum(law), 1)
    return np.arange(k + 1) / k, np.array(law)


def bias(loss, mechanism, debias):
    """The largest error over bags of the expected gradient, against that at the true proportion."""
    k = mechanism.bag_size
    inputs, worst = features(k), 0.0
    for count in range(k + 1):
        releases, law = outcomes(mechanism, count)
        drawn = [gradient(loss, inputs, [target]) for target in debias(releases)]
        error = law @ np.array(drawn) - gradient(loss, inputs, [count / k])
        worst = max(worst, float(np.abs(error).max()))
    return worst


def printed_debias(mechanism):
    """The paper's display (appendix C): the ends moved by 1 / (e^epsilon - 1), the 1/k missing."""

    def debias(releases):
        beyond = 1 / math.expm1(mechanism.epsilon)
        return releases + beyond * ((releases == 1).astype(float) - (releases == 0))

    return debias


MECHANISMS = [
    RandomizedResponse(0.5),
    RandomizedResponse(2.0),
    LabelProportions(3),
    LaplaceProportions(3, 0.5),
    LaplaceProportions(1, 2.0),
    GeometricProportions(1, 1.0),
    GeometricProportions(3, 0.5),
    GeometricProportions(5, 2.0),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("loss", MATCHING)
def test_gradients_are_unbiased(loss, mechanism):
    assert bias(loss, mechanism, mechanism.debias) < 1e-12


@pytest.mark.parametrize("loss", MATCHING)
def test_wrong_debiasing_is_seen(loss):
    geometric = GeometricProportions(3, 0.5)
    assert bias(loss, geometric, lambda releases: releases) > 1e-3
    assert bias(loss, geometric, printed_debias(geometric)) > 1e-3
    assert bias(loss, geometric, lambda releases: np.clip(geometric.debias(releases), 0, 1)) > 1e-3
    assert bias(loss, geometric, GeometricProportions(3, 0.6).debias) > 1e-3
    laplace = LaplaceProportions(3, 0.5)
    assert bias(loss, laplace, lambda releases: np.clip(releases, 0, 1)) > 1e-3


def test_randomized_response_has_the_papers_debiased_loss():
    epsilon = 0.7
    mechanism = RandomizedResponse(epsilon)
    logits = torch.tensor([0.3], dtype=torch.float64)
    at_zero, at_one = (
        cross_entropy(logits, torch.tensor([y], dtype=torch.float64)) for y in (0, 1)
    )
    for release, value in ((0.0, at_zero), (1.0, at_one)):
        e = math.exp(epsilon)
        paper = (e + 1) / (e - 1) * value - (at_zero + at_one) / (e - 1)
        ours = cross_entropy(logits, torch.from_numpy(mechanism.debias([release])))
        torch.testing.assert_close(ours, paper, rtol=1e-12, atol=0)


def easy_bias(mechanism, prior):
    """Expected gradient of EasyLLP over bags, labels and noise, less that of the event-level loss.

    Four points with given eta, bags of members drawn independently and uniformly from them.
    """
    points, eta, k = features(4), np.array([0.1, 0.9, 0.4, 0.7]), mechanism.bag_size
    expected = np.zeros(3)
    for members in itertools.product(range(4), repeat=k):
        for labels in itertools.product((0, 1), repeat=k):
            chance = np.prod(
                [eta[i] if y else 1 - eta[i] for i, y in zip(members, labels, strict=True)]
            )
            releases, law = outcomes(mechanism, sum(labels))
            for target, weight in zip(mechanism.debias(releases), law, strict=True):
                found = gradient(
                    lambda logits, t: easy_llp(logits, t, prior), points[list(members)], [target]
                )
                expected += chance * weight / 4**k * found
    return float(np.abs(expected - gradient(cross_entropy, points, eta)).max())


@pytest.mark.parametrize(
    "mechanism",
    [LabelProportions(2), GeometricProportions(2, 1.0), RandomizedResponse(1.0)],
    ids=repr,
)
def test_easy_llp_is_unbiased_for_the_event_level_loss(mechanism):
    assert easy_bias(mechanism, prior=0.525) < 1e-12


def test_easy_llp_with_a_wrong_prior_is_seen():
    assert easy_bias(LabelProportions(2), prior=0.4) > 1e-2


def test_centred_llp_is_unbiased_for_the_event_level_loss():
    """Over all pairs of bags of two examples, each of two kinds and two labels."""
    logits, eta = np.array([0.7, -1.6]), np.array([0.8, 0.3])
    expected, total = 0.0, 0.0
    for members in itertools.product(itertools.product((0, 1), repeat=2), repeat=4):
        kinds, labels = np.transpose(members)
        weight = np.prod(np.where(labels == 1, eta[kinds], 1 - eta[kinds]) / 2)
        proportions = torch.from_numpy(labels.reshape(2, 2).mean(axis=1))
        total += weight
        expected += weight * centred_llp(torch.from_numpy(logits[kinds]), proportions, 0.55).item()
    p = 1 / (1 + np.exp(-logits))
    event = -(eta * np.log(p) + (1 - eta) * np.log(1 - p)).mean()
    assert total == pytest.approx(1) and expected == pytest.approx(event, rel=1e-12)


def test_centred_llp_has_a_variance_that_does_not_grow_with_the_bag():
    """Each bag's part of the loss estimate: EasyLLP's variance grows as k, this one's does not."""
    rng = np.random.default_rng(8)
    spread = {}
    for k in (4, 64):
        logits = torch.from_numpy(rng.normal(2.0, 1.0, (400, 16 * k)))
        labels = torch.from_numpy(rng.random(logits.shape)) < torch.sigmoid(logits)
        proportions = labels.double().view(400, 16, k).mean(dim=2)
        prior = proportions.mean().item()
        for loss in (easy_llp, centred_llp):
            values = [loss(*batch, prior) for batch in zip(logits, proportions, strict=True)]
            spread[loss, k] = torch.stack(values).var().item()
    # Ratios of sample variances of 400 vary by a tenth: these bounds are five deviations away.
    assert spread[easy_llp, 64] > 8 * spread[easy_llp, 4]
    assert spread[centred_llp, 64] < 1.5 * spread[centred_llp, 4]


def test_a_single_bag_is_treated_as_by_easy_llp():
    logits, targets = torch.tensor([0.3, -1.0, 2.0]), torch.tensor([0.4])
    assert torch.equal(centred_llp(logits, targets, 0.3), easy_llp(logits, targets, 0.3))


@pytest.mark.parametrize("bag_size", [1, 2, 5])
def test_losses_equal_their_slow_twins(bag_size):
    rng = np.random.default_rng(3)
    logits, targets = rng.normal(size=4 * bag_size), rng.normal(0.5, 0.7, size=4)
    cross, squared = [], []
    for bag, t in zip(logits.reshape(4, bag_size), targets, strict=True):
        p = np.mean([1 / (1 + math.exp(-z)) for z in bag])
        cross.append(-t * math.log(p) - (1 - t) * math.log(1 - p))
        squared.append((p - t) ** 2)
    logits, targets = torch.from_numpy(logits), torch.from_numpy(targets)
    assert math.isclose(matching_cross_entropy(logits, targets), np.mean(cross), rel_tol=1e-12)
    assert math.isclose(matching_squared(logits, targets), np.mean(squared), rel_tol=1e-12)


@pytest.mark.parametrize("bag_size", [1, 3])
def test_two_classes_are_the_binary_loss(bag_size):
    rng = np.random.default_rng(4)
    logits = torch.from_numpy(rng.normal(size=6 * bag_size))
    targets = torch.from_numpy(rng.normal(0.5, 0.5, size=6))
    pair = torch.stack([torch.zeros_like(logits), logits], dim=1)
    both = torch.stack([1 - targets, targets], dim=1)
    prior = torch.tensor([0.7, 0.3], dtype=torch.float64)
    close = {"rtol": 1e-12, "atol": 1e-12}
    for loss, factor in ((matching_cross_entropy, 1), (matching_squared, 2)):
        torch.testing.assert_close(loss(pair, both), factor * loss(logits, targets), **close)
    for loss in (easy_llp, centred_llp):
        torch.testing.assert_close(loss(pair, both, prior), loss(logits, targets, 0.3), **close)


@pytest.mark.parametrize("size", [50.0, 1e4])
@pytest.mark.parametrize("bag_size", [1, 4])
def test_sure_predictions_stay_finite(size, bag_size):
    signs = torch.tensor([1.0, -1.0] * 2 * bag_size)
    for logits in (size * signs, size * torch.ones_like(signs), -size * torch.ones_like(signs)):
        for loss in (*MATCHING, lambda z, t: easy_llp(z, t, 0.2)):
            moving = logits.clone().requires_grad_()
            value = loss(moving, torch.tensor([-0.5, 0.0, 0.5, 1.5]))
            value.backward()
            assert value.isfinite() and moving.grad.isfinite().all()


def test_sure_and_wrong_bag_has_the_right_gradient():
    logits = torch.full((2,), -60.0, requires_grad=True)
    matching_cross_entropy(logits, torch.tensor([1.0])).backward()
    np.testing.assert_allclose(logits.grad, [-0.5, -0.5], rtol=1e-5)


@pytest.mark.parametrize("loss", MATCHING)
def test_no_gradient_at_the_predicted_proportion(loss):
    inputs = features(4)
    predicted = torch.sigmoid(inputs @ torch.tensor([0.7, -1.1, 0.4], dtype=torch.float64)).mean()
    np.testing.assert_allclose(gradient(loss, inputs, [predicted.item()]), 0, atol=1e-14)


@pytest.mark.parametrize(
    ("logits", "targets", "word"),
    [
        (torch.zeros(0), torch.zeros(2), "0 examples for 2 bags"),
        (torch.zeros(4), torch.zeros(0), "4 examples for 0 bags"),
        (torch.zeros(5), torch.zeros(2), "5 examples for 2 bags"),
        (torch.zeros(4, 3), torch.zeros(2, 2), r"not \(4, 3\) and \(2, 2\)"),
        (torch.zeros(4), torch.zeros(4, 1), r"not \(4,\) and \(4, 1\)"),
    ],
)
def test_bags_that_do_not_fit_are_refused(logits, targets, word):
    for loss in (*MATCHING, cross_entropy):
        with pytest.raises(ValueError, match=word):
            loss(logits, targets)
    with pytest.raises(ValueError, match="a target for each example, not 2 for 4"):
        cross_entropy(torch.zeros(4), torch.zeros(2))
