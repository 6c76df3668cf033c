"""The same bags released r times: likelihoods multiply, guarantees add up, nothing else changes."""

import itertools
import math

import numpy as np
import pytest
from cases import BAGS, some_channel
from scipy import stats

from labelaudit import (
    CountChannel,
    GeometricProportions,
    LabelProportions,
    LaplaceProportions,
    Mechanism,
    NoRelease,
    RandomizedResponse,
    Repeated,
    additive_advantage,
    advantage_with_known_members,
    label_advantage,
    multiplicative_advantage,
    multiplicative_quantile,
    posterior,
    sampled_advantage,
)

SMALL = [bag for bag in BAGS if len(bag) <= 4]


class Pair(Mechanism):
    """Two numbers for each bag: to repeat it would mix them up."""

    bag_size, epsilon, release_shape = 1, 1.0, (2,)

    def likelihood(self, releases):
        return np.ones((len(releases), 2))

    def __repr__(self):
        return "Pair()"


def kinds(k):
    noisy = [GeometricProportions(k, 0.7), LabelProportions(k), some_channel(k), NoRelease(k)]
    return noisy + ([RandomizedResponse(1.2)] if k == 1 else [])


def labelled_bags(eta):
    """Every labelling of a bag with its probability."""
    for labels in itertools.product((0, 1), repeat=len(eta)):
        probability = math.prod(p if y else 1 - p for p, y in zip(eta, labels, strict=True))
        if probability > 0:
            yield np.array(labels), probability


def joint(eta, mechanism, times):
    """P(y_i = 1, releases) and P(y_i = 0, releases) over all sequences, by brute force."""
    matrix = mechanism.channel().matrix
    sequences = list(itertools.product(range(matrix.shape[1]), repeat=times))
    one, zero = np.zeros((2, len(eta), len(sequences)))
    for labels, probability in labelled_bags(eta):
        row = matrix[labels.sum()]
        pmf = np.array([math.prod(row[list(sequence)]) for sequence in sequences])
        one[labels == 1] += probability * pmf
        zero[labels == 0] += probability * pmf
    return sequences, one, zero


def as_release(mechanism, column):
    grid = isinstance(mechanism, CountChannel | NoRelease)
    return float(column) if grid else column / mechanism.bag_size


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("eta", SMALL)
def test_posterior_and_advantages_agree_with_brute_force(eta, times):
    for mechanism in kinds(len(eta)):
        repeated = Repeated(mechanism, times)
        sequences, one, zero = joint(eta, mechanism, times)
        possible = np.flatnonzero((one + zero)[0] > 0)
        expected = one[:, possible] / (one + zero)[:, possible]
        releases = [[as_release(mechanism, z) for z in sequences[j]] for j in possible]
        actual = posterior(np.tile(eta, (possible.size, 1)), repeated, releases)
        np.testing.assert_allclose(actual, expected.T, atol=1e-12)
        blind = np.maximum(eta, 1 - np.array(eta))
        gain = np.maximum(one, zero).sum(axis=1) - blind
        np.testing.assert_allclose(additive_advantage([eta], repeated)[0], gain, atol=1e-12)


@pytest.mark.parametrize("times", [1, 2, 7, 300])
def test_randomized_response_is_a_binomial_count(times):
    epsilon = 0.8
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    ones = stats.binom.pmf(np.arange(times + 1), times, keep)
    eta = 0.3
    gain = np.maximum(eta * ones, (1 - eta) * ones[::-1]).sum() - 0.7
    repeated = Repeated(RandomizedResponse(epsilon), times)
    assert additive_advantage([eta], repeated)[0] == pytest.approx(max(gain, 0), abs=1e-12)
    distance = 0.5 * np.abs(ones - ones[::-1]).sum()
    assert label_advantage([eta], repeated)[0] == pytest.approx(distance, abs=1e-12)


def test_once_is_the_mechanism_itself():
    eta = np.random.default_rng(0).random((50, 8))
    mechanism = GeometricProportions(8, 1.0)
    once = Repeated(mechanism, 1)
    np.testing.assert_allclose(
        additive_advantage(eta, once), additive_advantage(eta, mechanism), atol=1e-13
    )
    labels = (np.random.default_rng(1).random(eta.shape) < eta).astype(int)
    single = mechanism.release(labels, np.random.default_rng(2))
    twin = once.release(labels, np.random.default_rng(2))
    assert twin.shape == (50, 1)
    np.testing.assert_array_equal(twin[:, 0], single)
    np.testing.assert_allclose(posterior(eta, once, twin), posterior(eta, mechanism, single))


def test_no_noise_and_no_release_repeat_themselves():
    eta = np.random.default_rng(0).random((20, 6))
    for mechanism in (LabelProportions(6), NoRelease(6)):
        more = additive_advantage(eta, Repeated(mechanism, 5))
        np.testing.assert_allclose(more, additive_advantage(eta, mechanism), atol=1e-12)


def test_guarantees_compose_and_bind():
    rng = np.random.default_rng(3)
    eta = rng.random((200, 5))
    for mechanism in (GeometricProportions(5, 0.4), LaplaceProportions(5, 0.4)):
        repeated = Repeated(mechanism, 3)
        assert repeated.epsilon == pytest.approx(1.2)
        releases = repeated.release(rng.random(eta.shape) < eta, rng)
        shifts = np.abs(multiplicative_advantage(eta, repeated, releases))
        assert 0.8 < shifts.max() <= 1.2 + 1e-9
    assert math.isinf(Repeated(LabelProportions(5), 3).epsilon)
    assert Repeated(NoRelease(5), 3).epsilon == 0
    thrice = Repeated(GeometricProportions(5, 0.4), 3)
    assert multiplicative_quantile(eta, thrice, 1.0) == pytest.approx(1.2)


def test_more_releases_never_help_less():
    eta = np.random.default_rng(4).random((40, 4))
    gains = [additive_advantage(eta, Repeated(GeometricProportions(4, 0.5), r)) for r in (1, 2, 4)]
    assert (gains[1] >= gains[0] - 1e-12).all() and (gains[2] >= gains[1] - 1e-12).all()
    assert gains[2].mean() > 1.5 * gains[0].mean()


def test_debias_is_the_mean_and_unbiased():
    mechanism = GeometricProportions(4, 1.0)
    labels = np.tile([1, 0, 0, 1], (40_000, 1))
    repeated = Repeated(mechanism, 3)
    releases = repeated.release(labels, np.random.default_rng(5))
    estimates = repeated.debias(releases)
    np.testing.assert_allclose(
        estimates, np.mean([mechanism.debias(column) for column in releases.T], axis=0)
    )
    error = estimates.std() / math.sqrt(estimates.size)
    # Five standard errors: a false alarm in less than one of a million seeds.
    assert abs(estimates.mean() - 0.5) < 5 * error


@pytest.mark.parametrize("mechanism", [GeometricProportions(6, 0.5), RandomizedResponse(0.9)])
def test_sampling_agrees_with_the_exact_sum(mechanism):
    rng = np.random.default_rng(6)
    eta = rng.random((4000, mechanism.bag_size))
    repeated = Repeated(mechanism, 3)
    exact = additive_advantage(eta, repeated).mean()
    sampled = sampled_advantage(eta, repeated, draws=5, rng=rng)
    assert sampled.n == 20_000
    # Four and a half standard errors of the sample: one false alarm in a hundred thousand seeds.
    assert abs(sampled.value - exact) < 4.5 * sampled.standard_error
    assert sampled.standard_error < 0.005


def test_repeated_laplace_is_attacked_exactly_and_measured_by_sampling():
    eta = np.array([[0.2, 0.6, 0.5]])
    repeated = Repeated(LaplaceProportions(3, 0.9), 2)
    releases = [[0.31, 0.77]]
    probabilities = np.zeros((3, 2))
    for labels, probability in labelled_bags(eta[0]):
        proportion = labels.mean()
        density = math.prod(math.exp(-2.7 * abs(z - proportion)) for z in releases[0])
        probabilities[np.arange(3), labels] += probability * density
    expected = probabilities[:, 1] / probabilities.sum(axis=1)
    np.testing.assert_allclose(posterior(eta, repeated, releases)[0], expected, atol=1e-13)
    with pytest.raises(TypeError, match="the exact distribution of LaplaceProportions"):
        additive_advantage(eta, repeated)
    many = np.tile(eta, (2000, 1))
    twice = sampled_advantage(many, repeated, draws=4, rng=np.random.default_rng(0))
    once = additive_advantage(eta, LaplaceProportions(3, 0.9)).mean()
    assert twice.value > once + 3 * twice.standard_error


def test_draws_of_a_bag_are_not_as_many_bags():
    repeated = Repeated(LaplaceProportions(2, 3.0), 2)
    actual = []
    for seed in range(60):
        rng = np.random.default_rng([11, seed])
        # A bag is either wide open or all but decided, so that bags differ more than draws.
        eta = np.where(rng.random((40, 1)) < 0.5, 0.5, 0.01) * np.ones((40, 2))
        actual.append(sampled_advantage(eta, repeated, draws=10, rng=rng))
    spread = np.std([estimate.value for estimate in actual], ddof=1)
    # A spread of 60 values is within a third of the truth but once in ten thousand seeds.
    assert np.mean([estimate.standard_error for estimate in actual]) == pytest.approx(
        spread, rel=0.35
    )
    alone = sampled_advantage([[0.5, 0.4]], repeated, draws=10, rng=np.random.default_rng(0))
    assert 0 < alone.standard_error < 0.2


def test_known_members_take_repeated_releases():
    eta = np.full((30, 3), 0.4)
    repeated = Repeated(GeometricProportions(3, 0.8), 2)
    gains = advantage_with_known_members(eta, repeated, 2, np.random.default_rng(0))
    alone = additive_advantage([0.4], Repeated(RandomizedResponse(0.8), 2))[0]
    assert 0 < gains.max() <= alone + 1e-12


RR = RandomizedResponse(1.0)
INVALID = {
    "times must be a whole number of at least 1, not 0": lambda: Repeated(RR, 0),
    # The table of a single release would already take 80 GB.
    "5,000,150,001 outcomes": lambda: Repeated(GeometricProportions(100_000, 1.0), 2).channel(),
    r"releases must have shape \(n_bags, 2\), not \(1,\)": lambda: posterior(
        [0.3], Repeated(RR, 2), [1.0]
    ),
    "releases must be 0 or 1": lambda: posterior([0.3], Repeated(RR, 2), [[1.0, 0.5]]),
    "release 1, 0.5 of bag 0 has probability zero": lambda: posterior(
        [[0.3, 0.1]], Repeated(LabelProportions(2), 2), [[1.0, 0.5]]
    ),
    r"211,915,132 outcomes, more than 20,000: .* sampled_advantage": lambda: additive_advantage(
        np.full((1, 30), 0.5), Repeated(GeometricProportions(30, 1.0), 9)
    ),
    "cannot be debiased": lambda: Repeated(CountChannel(np.eye(2)), 2).debias([[0, 1]]),
}


@pytest.mark.parametrize("message, call", INVALID.items())
def test_invalid_values_are_named(message, call):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "mechanism, times, message",
    [
        (RR, 1.5, "times must be a whole number"),
        ("rr", 2, "mechanism must be a Mechanism"),
        (Repeated(RR, 2), 2, r"write Repeated\(RandomizedResponse\(epsilon=1.0\), r\)"),
        (Pair(), 2, r"Pair\(\) releases arrays of shape \(2,\) for a bag"),
    ],
)
def test_what_cannot_be_repeated_is_named(mechanism, times, message):
    with pytest.raises(TypeError, match=message):
        Repeated(mechanism, times)
