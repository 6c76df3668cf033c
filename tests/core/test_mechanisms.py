"""Mechanisms against their definitions: the distribution of a release, likelihoods, debiasing."""

import dataclasses
import math

import mpmath
import numpy as np
import pytest
from cases import EPSILONS, finite_mechanisms, some_channel
from reference import channel_of, release_values
from scipy import stats

from labelaudit import (
    CountChannel,
    GeometricProportions,
    LabelProportions,
    LaplaceProportions,
    NoRelease,
    RandomizedResponse,
    additive_advantage,
    label_advantage,
    multiplicative_advantage,
    multiplicative_quantile,
    posterior,
)

BAG_SIZES = (1, 2, 3, 8)
N_UNIFORMS = 20_000


class EvenlySpaced(np.random.Generator):
    """A generator whose uniforms are the midpoints of equal cells, so that frequencies are exact.

    An outcome that is an interval of uniforms is then hit N P times, give or take one.
    """

    def __init__(self):
        super().__init__(np.random.PCG64(0))

    def random(self, size):
        return (np.arange(size) + 0.5) / size


def labels_with(count, bag_size, n_bags):
    return np.tile([1] * count + [0] * (bag_size - count), (n_bags, 1))


def channel_error(mechanism, channel):
    """The largest gap over counts between a channel and the distribution of the releases."""
    values, worst = np.array(release_values(mechanism)), 0.0
    for count, row in enumerate(channel):
        labels = labels_with(count, mechanism.bag_size, N_UNIFORMS)
        releases = mechanism.release(labels, EvenlySpaced())
        assert set(np.unique(releases)) <= set(values)
        actual = (releases[:, None] == values).mean(axis=0)
        worst = max(worst, np.abs(actual - np.array(row, dtype=float)).max())
    return worst


@pytest.mark.parametrize("bag_size", BAG_SIZES)
def test_release_has_the_distribution_of_the_channel(bag_size):
    for mechanism in finite_mechanisms(bag_size):
        assert channel_error(mechanism, channel_of(mechanism)) <= 1.01 / N_UNIFORMS, mechanism


def test_a_wrong_flip_probability_is_noticed():
    doubled = channel_of(RandomizedResponse(2.0))
    assert channel_error(RandomizedResponse(1.0), doubled) > 0.1
    assert (
        channel_error(GeometricProportions(3, 1.0), channel_of(GeometricProportions(3, 1.1))) > 0.01
    )


@pytest.mark.parametrize("bag_size", BAG_SIZES)
@pytest.mark.parametrize("epsilon", [1e-12, 1000.0])
def test_release_at_extreme_epsilon(bag_size, epsilon):
    mechanism = GeometricProportions(bag_size, epsilon)
    assert channel_error(mechanism, channel_of(mechanism)) <= 1.01 / N_UNIFORMS


def test_release_at_epsilon_zero_is_a_fair_coin_between_the_ends():
    channel = [[0.5, 0, 0, 0.5]] * 4
    assert channel_error(GeometricProportions(3, 0.0), channel) <= 1.01 / N_UNIFORMS


def test_release_from_an_ordinary_generator():
    """Chi-square over all counts and releases; a false alarm has probability 1e-6."""
    for mechanism in (RandomizedResponse(0.7), GeometricProportions(4, 0.7), some_channel(3)):
        for count, row in enumerate(channel_of(mechanism)):
            labels = labels_with(count, mechanism.bag_size, 20_000)
            releases = mechanism.release(labels, np.random.default_rng(count))
            values = np.array(release_values(mechanism))
            expected = 20_000 * np.array(row, dtype=float)
            actual = (releases[:, None] == values).sum(axis=0)
            assert actual[expected == 0].sum() == 0
            assert stats.chisquare(actual[expected > 0], expected[expected > 0]).pvalue > 1e-7


@pytest.mark.parametrize("epsilon", [0.8, 1.6])
def test_laplace_release_has_its_distribution_and_a_halved_scale_has_not(epsilon):
    """Kolmogorov-Smirnov; a false alarm has probability 1e-6."""
    labels = np.tile([1, 0, 0], (20_000, 1))
    releases = LaplaceProportions(3, epsilon).release(labels, np.random.default_rng(3))
    fit = stats.kstest(releases, stats.laplace(1 / 3, 1 / (3 * 0.8)).cdf)
    assert (fit.pvalue > 1e-6) == (epsilon == 0.8)


@pytest.mark.parametrize("bag_size", BAG_SIZES)
def test_likelihood_is_the_channel_column_up_to_a_factor(bag_size):
    for mechanism in finite_mechanisms(bag_size):
        likelihood = mechanism.likelihood(release_values(mechanism))
        columns = np.array(channel_of(mechanism), dtype=float).T
        assert likelihood.shape == columns.shape
        np.testing.assert_allclose(
            likelihood * columns.max(axis=1, keepdims=True),
            columns * likelihood.max(axis=1, keepdims=True),
            rtol=1e-12,
        )
        with np.errstate(divide="ignore"):
            logs = np.log(likelihood)
        actual = mechanism.log_likelihood(release_values(mechanism))
        shift = actual.max(axis=1, keepdims=True) - logs.max(axis=1, keepdims=True)
        np.testing.assert_allclose(actual - shift, logs, rtol=1e-12, atol=1e-12)


def test_laplace_likelihood_is_the_density_up_to_a_factor():
    mechanism, releases = LaplaceProportions(4, 1.3), np.array([-0.6, 0.0, 0.31, 0.5, 1.7])
    density = stats.laplace(np.arange(5) / 4, 1 / (4 * 1.3)).pdf(releases[:, None])
    likelihood = mechanism.likelihood(releases)
    ratio = likelihood / density
    np.testing.assert_allclose(ratio, ratio[:, :1] * np.ones(5), rtol=1e-12)


def test_laplace_likelihood_of_a_release_far_away():
    logs = LaplaceProportions(2, 1.5).log_likelihood([1e17, 1e300, -1e300])
    assert np.diff(logs, axis=1).tolist() == [[1.5, 1.5], [1.5, 1.5], [-1.5, -1.5]]


def bias(channel, debias):
    """The largest |E[debias(z)] - s / k| over true counts s, each an exact sum over releases."""
    k = len(channel) - 1
    means = (mpmath.fdot(row, [mpmath.mpf(float(v)) for v in debias]) for row in channel)
    return max(abs(mean - mpmath.mpf(s) / k) for s, mean in enumerate(means))


@pytest.mark.parametrize("bag_size", BAG_SIZES)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 40.0])
def test_debias_is_unbiased_for_every_true_count(bag_size, epsilon):
    kinds = [GeometricProportions(bag_size, epsilon), LabelProportions(bag_size)]
    if bag_size == 1:
        kinds.append(RandomizedResponse(epsilon))
    for mechanism in kinds:
        debias = mechanism.debias(release_values(mechanism))
        assert bias(channel_of(mechanism), debias) <= 1e-14 / -math.expm1(-epsilon)


@pytest.mark.parametrize("bag_size", [2, 3, 8])
def test_the_printed_debiasing_is_biased(bag_size):
    """Without the 1/k at the two ends the estimate of every count is off but the middle one's."""
    mechanism = GeometricProportions(bag_size, 1.0)
    printed = np.array(release_values(mechanism))
    printed[0] = -1 / math.expm1(1.0)
    printed[-1] = 1 + 1 / math.expm1(1.0)
    assert bias(channel_of(mechanism), printed) > 0.05


def test_laplace_debias_leaves_the_release_alone():
    releases = [-0.4, 0.0, 0.7, 2.0, 1e308]
    assert LaplaceProportions(3, 0.5).debias(releases).tolist() == releases


@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 0.3, 1.0, 8.0, math.inf])
def test_geometric_on_a_bag_of_one_is_randomized_response(epsilon):
    geometric, response = GeometricProportions(1, epsilon), RandomizedResponse(epsilon)
    assert (geometric.bag_size, geometric.epsilon) == (response.bag_size, response.epsilon)
    labels = np.random.default_rng(1).integers(0, 2, 1000)
    draws = [m.release(labels, np.random.default_rng(2)) for m in (geometric, response)]
    assert np.array_equal(*draws)
    eta = np.random.default_rng(3).random(1000)
    pairs = [
        lambda m: m.likelihood([0, 1]),
        lambda m: posterior(eta, m, draws[0]),
        lambda m: multiplicative_advantage(eta, m, draws[0]),
        lambda m: additive_advantage(eta, m),
        lambda m: label_advantage(eta, m),
        lambda m: multiplicative_quantile(eta, m, 0.9),
    ]
    if epsilon > 0:
        pairs.append(lambda m: m.debias([0, 1]))
    for measure in pairs:
        assert np.array_equal(measure(geometric), measure(response))


@pytest.mark.parametrize("kind", [GeometricProportions, LaplaceProportions])
@pytest.mark.parametrize("bag_size", [1, 4])
def test_infinite_epsilon_is_label_proportions(kind, bag_size):
    noisy, plain = kind(bag_size, math.inf), LabelProportions(bag_size)
    eta = np.random.default_rng(4).random((50, bag_size))
    labels = (np.random.default_rng(5).random(eta.shape) < eta).astype(int)
    releases = noisy.release(labels, np.random.default_rng(6))
    assert np.array_equal(releases, labels.mean(axis=1))
    assert np.array_equal(noisy.likelihood(releases), plain.likelihood(releases))
    assert np.array_equal(noisy.debias(releases), plain.debias(releases))
    assert np.array_equal(posterior(eta, noisy, releases), posterior(eta, plain, releases))
    assert np.array_equal(additive_advantage(eta, noisy), additive_advantage(eta, plain))
    assert np.array_equal(label_advantage(eta, noisy), label_advantage(eta, plain))
    for q in (0.1, 0.5, 0.98):
        assert multiplicative_quantile(eta, noisy, q) == multiplicative_quantile(eta, plain, q)


@pytest.mark.parametrize("bag_size", BAG_SIZES)
def test_epsilon_is_the_largest_log_ratio_of_neighbouring_counts(bag_size):
    for epsilon in EPSILONS:
        likelihood = GeometricProportions(bag_size, epsilon).log_likelihood([0.0, 1.0])
        assert np.abs(np.diff(likelihood, axis=1)).max() == pytest.approx(epsilon, rel=1e-12)
        channel = np.array(channel_of(GeometricProportions(bag_size, epsilon)), dtype=float)
        assert CountChannel(channel).epsilon == pytest.approx(epsilon, rel=1e-9)
    assert LabelProportions(bag_size).epsilon == math.inf
    assert NoRelease(bag_size).epsilon == 0
    assert CountChannel(np.eye(bag_size + 1)).epsilon == math.inf
    assert CountChannel(np.full((bag_size + 1, 2), 0.5)).epsilon == 0


def test_mechanisms_are_frozen_values():
    mechanism = GeometricProportions(np.int64(4), np.float32(0.5))
    assert mechanism == GeometricProportions(4, 0.5)
    assert repr(mechanism) == "GeometricProportions(bag_size=4, epsilon=0.5)"
    assert RandomizedResponse(1) != RandomizedResponse(2)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (RandomizedResponse, (0.5,)),
        (LabelProportions, (4,)),
        (GeometricProportions, (4, 0.5)),
        (LaplaceProportions, (4, 0.5)),
        (NoRelease, (4,)),
    ],
)
def test_a_mechanism_can_be_a_key_and_does_not_change(kind, arguments):
    mechanism = kind(*arguments)
    assert {mechanism: "kept"}[kind(*arguments)] == "kept"
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.epsilon = 1.0


def test_a_channel_keeps_a_matrix_of_its_own():
    matrix = np.array([[0.75, 0.25], [0.25, 0.75]])
    channel = CountChannel(matrix)
    matrix[0] = 0
    assert channel == CountChannel([[0.75, 0.25], [0.25, 0.75]])
    assert hash(channel) == hash(CountChannel([[0.75, 0.25], [0.25, 0.75]]))
    assert channel != CountChannel(np.eye(2))
    with pytest.raises(ValueError, match="read-only"):
        channel.matrix[0, 0] = 1.0


@pytest.mark.parametrize("kind", [int, bool, float, np.int8, np.uint8, np.float32])
def test_labels_of_any_kind_give_the_same_release(kind):
    labels = np.random.default_rng(0).integers(0, 2, (20, 3))
    expected = GeometricProportions(3, 1.0).release(labels, np.random.default_rng(1))
    actual = GeometricProportions(3, 1.0).release(labels.astype(kind), np.random.default_rng(1))
    assert np.array_equal(actual, expected)
    assert actual.dtype == np.float64


@pytest.mark.parametrize("bag_size", BAG_SIZES)
def test_an_empty_batch_is_legal(bag_size):
    for mechanism in [*finite_mechanisms(bag_size), LaplaceProportions(bag_size, 1.0)]:
        empty = mechanism.release(np.zeros((0, bag_size)), np.random.default_rng(0))
        assert empty.shape == (0,)
        assert mechanism.likelihood(empty).shape == (0, bag_size + 1)
    assert GeometricProportions(bag_size, 1.0).debias([]).shape == (0,)


def test_releases_within_rounding_of_the_grid_are_on_it():
    mechanism = GeometricProportions(3, 1.0)
    assert np.array_equal(mechanism.likelihood([1 / 3 + 3e-10]), mechanism.likelihood([1 / 3]))
    assert np.array_equal(mechanism.debias([1 / 3 + 3e-10]), mechanism.debias([1 / 3]))
