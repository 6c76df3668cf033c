"""Posteriors against enumeration, and against many digits where enumeration cannot go."""

import math

import mpmath
import numpy as np
import pytest
from cases import BAGS, exact, finite_cases, laplace_cases, relative_error
from reference import (
    Bag,
    channel_of,
    laplace_density,
    numpy_posterior,
    precise_pmf,
    precise_posteriors,
    release_values,
)

from labelaudit import (
    CountChannel,
    GeometricProportions,
    LabelProportions,
    LaplaceProportions,
    Mechanism,
    NoRelease,
    RandomizedResponse,
    additive_advantage,
    attack,
    bayes_guess,
    likelihood_ratios,
    multiplicative_advantage,
    multiplicative_cdf,
    posterior,
    posterior_and_shift,
)


def repeated(eta, releases):
    return np.tile(eta, (len(releases), 1))


@pytest.mark.parametrize("eta, mechanism", finite_cases(), ids=str)
def test_posterior_of_every_release_by_enumeration(eta, mechanism):
    bag, channel = Bag(exact(eta)), channel_of(mechanism)
    truth = np.array([bag.posterior(i, channel) for i in range(len(eta))], dtype=object).T
    possible = [z for z, row in enumerate(truth) if row[0] is not None]
    releases = np.array(release_values(mechanism))[possible]
    actual = posterior(repeated(eta, releases), mechanism, releases)
    guesses = bayes_guess(repeated(eta, releases), mechanism, releases)
    shifts = multiplicative_advantage(repeated(eta, releases), mechanism, releases)
    ratios = likelihood_ratios(repeated(eta, releases), mechanism, releases)
    both = posterior_and_shift(repeated(eta, releases), mechanism, releases)
    np.testing.assert_array_equal(both[1], shifts)
    assert len(possible) >= 1
    for row, z in enumerate(possible):
        for i, p in enumerate(exact(eta)):
            expected = truth[z][i]
            assert relative_error(actual[row, i], expected) <= 1e-13
            assert relative_error(both[0][row, i], expected) <= 1e-13
            if abs(expected - 0.5) > 1e-12:
                assert guesses[row, i] == (expected > 0.5)
            if p in (0, 1):
                assert shifts[row, i] == 0
                assert ratios[row, i] == 1
            elif expected in (0, 1):
                assert shifts[row, i] == (math.inf if expected else -math.inf)
                assert ratios[row, i] == (math.inf if expected else 0)
            else:
                ratio = expected / (1 - expected) * (1 - p) / p
                assert abs(shifts[row, i] - mpmath.log(ratio)) <= 1e-13
                assert relative_error(ratios[row, i], ratio) <= 1e-13


@pytest.mark.parametrize("eta, mechanism", laplace_cases(), ids=str)
def test_laplace_posterior_by_enumeration(eta, mechanism):
    bag, k = Bag(exact(eta)), len(eta)
    releases = np.array([-2.0, -0.01, 0.0, 0.26, 0.5, 0.77, 1.0, 1.3])
    actual = posterior(repeated(eta, releases), mechanism, releases)
    for row, z in enumerate(releases):
        x = mpmath.mpf(float(z)) * k
        for i in range(k):
            one = laplace_density(bag.ones[i], x, mpmath.mpf(mechanism.epsilon))
            zero = laplace_density(bag.zeros[i], x, mpmath.mpf(mechanism.epsilon))
            assert relative_error(actual[row, i], one / (one + zero)) <= 1e-12


def log_weights(mechanism, release):
    """Log P(release | count) up to a constant, from the definitions."""
    k, x = mechanism.bag_size, mpmath.mpf(float(release)) * mechanism.bag_size
    if not isinstance(mechanism, LaplaceProportions):
        x = mpmath.nint(x)
    if math.isinf(mechanism.epsilon):
        return [mpmath.mpf(0) if s == x else -mpmath.inf for s in range(k + 1)]
    return [-mpmath.mpf(mechanism.epsilon) * abs(x - s) for s in range(k + 1)]


def posterior_error(eta, mechanism, release):
    truth = precise_posteriors(eta, log_weights(mechanism, release))
    actual = posterior(eta[None], mechanism, [release])[0]
    pairs = list(zip(actual, truth, strict=True))
    # Below 1e-300 a float runs out of digits, and then out of range.
    assert all(value <= 1e-300 for value, p in pairs if p < 1e-300)
    return max((relative_error(v, p) for v, p in pairs if p >= 1e-300), default=0.0)


def bag_of(kind, bag_size, rng):
    return {
        "skewed": lambda: rng.beta(2, 30, bag_size),
        "even": lambda: rng.beta(2, 2, bag_size),
        "extreme": lambda: rng.choice([1e-9, 1 - 1e-9], bag_size),
        "homogeneous": lambda: np.full(bag_size, 0.3),
        "homogeneous, rare": lambda: np.full(bag_size, 1e-9),
        "half known": lambda: np.where(
            rng.random(bag_size) < 0.5, rng.random(bag_size), rng.integers(0, 2, bag_size)
        ),
        "ladder": lambda: 10.0 ** -rng.uniform(0, 30, bag_size),
        "mixed": lambda: rng.choice([1e-9, 1 - 1e-9, 0.5, 0.1, 1e-15, 1 - 1e-5], bag_size),
    }[kind]()


KINDS = (
    "skewed",
    "even",
    "extreme",
    "homogeneous",
    "homogeneous, rare",
    "half known",
    "ladder",
    "mixed",
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bag_size", [3, 20, 40, 90])
def test_posterior_at_any_release(kind, bag_size):
    """Releases from one end to the other, however improbable: far below what a float holds."""
    rng = np.random.default_rng(bag_size)
    eta = bag_of(kind, bag_size, rng)
    first, last = int((eta == 1).sum()), bag_size - int((eta == 0).sum())
    counts = {first, last, *rng.integers(first, last + 1, 3).tolist()}
    for count in counts:
        assert posterior_error(eta, LabelProportions(bag_size), count / bag_size) <= 1e-10
    for epsilon in (0.05, 1.0, 30.0):
        for count in rng.integers(0, bag_size + 1, 2):
            mechanism = GeometricProportions(bag_size, epsilon)
            assert posterior_error(eta, mechanism, count / bag_size) <= 1e-10
        release = rng.uniform(-0.2, 1.2)
        assert posterior_error(eta, LaplaceProportions(bag_size, epsilon), release) <= 1e-10


@pytest.mark.parametrize("kind", KINDS)
def test_posterior_at_a_typical_release(kind):
    rng = np.random.default_rng(8)
    for mechanism in (
        LabelProportions(100),
        GeometricProportions(100, 1.0),
        LaplaceProportions(100, 1.0),
    ):
        eta = bag_of(kind, 100, rng)
        labels = rng.random(100) < eta
        (release,) = mechanism.release(labels[None], rng)
        assert posterior_error(eta, mechanism, release) <= 1e-12


@pytest.mark.parametrize(
    "kind, mechanism, release",
    [
        ("skewed", LabelProportions(512), 500 / 512),
        ("mixed", GeometricProportions(512, 1.0), 40 / 512),
        ("even", LaplaceProportions(512, 0.5), 0.9),
    ],
    ids=str,
)
def test_posterior_of_a_large_bag(kind, mechanism, release):
    eta = bag_of(kind, 512, np.random.default_rng(9))
    with mpmath.workprec(110):
        assert posterior_error(eta, mechanism, release) <= 1e-10


@pytest.mark.parametrize("p", [1e-9, 0.01, 0.5, 1 - 1e-9])
def test_posterior_of_a_homogeneous_bag_is_the_proportion(p):
    """By symmetry, at every one of the releases, whatever the prior."""
    releases = np.arange(513) / 512
    actual = posterior(np.full((513, 512), p), LabelProportions(512), releases)
    np.testing.assert_allclose(actual, np.tile(releases[:, None], 512), rtol=1e-12)


def test_posterior_of_a_very_large_bag():
    """Against plain numpy, at releases that are typical, where no probability underflows."""
    rng = np.random.default_rng(10)
    eta = rng.beta(2, 5, (1, 2000))
    count = int((rng.random(2000) < eta[0]).sum())
    for mechanism in (LabelProportions(2000), GeometricProportions(2000, 1.0)):
        releases = [count / 2000]
        expected = numpy_posterior(eta, mechanism.likelihood(releases))
        np.testing.assert_allclose(posterior(eta, mechanism, releases), expected, rtol=1e-12)


@pytest.mark.parametrize("epsilon", [200.0, 600.0, 720.0, 1000.0])
def test_posterior_where_the_noise_nearly_vanishes(epsilon):
    """Weak noise is still noise: no release is impossible, and each reads as its nearest count."""
    eta = np.array([0.3, 0.4, 1e-6])
    for release in (-0.1, -1e-9, 0.0, 1 / 6, 0.3334, 0.4, 0.55, 1.0, 1.2):
        assert posterior_error(eta, LaplaceProportions(3, epsilon), release) <= 1e-10
    for count in range(4):
        assert posterior_error(eta, GeometricProportions(3, epsilon), count / 3) <= 1e-10
    likely = np.repeat([1 - 1e-9, 1e-9], 15)
    assert posterior_error(likely, LaplaceProportions(30, epsilon), -0.1) <= 1e-10
    known = np.array([[1.0, 1.0, 0.3]])
    assert posterior(known, GeometricProportions(3, epsilon), [0.0])[0, 0] == 1
    assert posterior(known, LaplaceProportions(3, epsilon), [0.1])[0, 0] == 1


@pytest.mark.parametrize("epsilon", [0.5, 30.0, 1000.0])
def test_the_shift_never_exceeds_epsilon(epsilon):
    eta = np.tile([0.2, 0.5, 0.97], (4, 1))
    releases = np.arange(4) / 3
    for mechanism in (GeometricProportions(3, epsilon), LaplaceProportions(3, epsilon)):
        shifts = multiplicative_advantage(eta, mechanism, releases)
        np.testing.assert_array_equal(posterior_and_shift(eta, mechanism, releases)[1], shifts)
        assert np.abs(shifts).max() <= epsilon
        assert shifts[0] == pytest.approx([-epsilon] * 3, rel=1e-14)
        assert shifts[3] == pytest.approx([epsilon] * 3, rel=1e-14)


FAINT_BAGS = [
    [1e-300, 1e-300, 1 - 1e-16, 1 - 1e-16],
    [5e-324, 0.5, 1.0, 1e-300],
    [1e-300, 0.0, 1e-300, 1e-300],
    [1e-251, 1e-160, 0.3, 1 - 1e-12],
]


@pytest.mark.parametrize("eta", FAINT_BAGS, ids=str)
@pytest.mark.parametrize("epsilon", [1e-300, 1.0, 40.0, 745.0, 1e300, math.inf])
@pytest.mark.parametrize("kind", [GeometricProportions, LaplaceProportions, CountChannel])
def test_priors_and_noise_at_the_ends_of_a_floats_range(kind, epsilon, eta):
    finite = kind is CountChannel
    mechanism = GeometricProportions(4, epsilon).channel() if finite else kind(4, epsilon)
    for z in range(5):
        x = 4 * (z / 4 + 0.05) if not finite and mechanism.continuous else z
        distances = [abs(mpmath.mpf(x) - s) for s in range(5)]
        weights = [mpmath.exp(-mpmath.mpf(epsilon) * d) if d else mpmath.mpf(1) for d in distances]
        if finite:
            weights = [mpmath.mpf(probability) for probability in mechanism.matrix[:, z].tolist()]
        joint = [joint_probabilities(eta, i, weights) for i in range(4)]
        releases = [x if finite else x / 4]
        if not any(joint[0]):
            with pytest.raises(ValueError, match="probability zero"):
                posterior([eta], mechanism, releases)
            continue
        truth = [float(one / (one + zero)) for one, zero in joint]
        actual = posterior([eta], mechanism, releases)[0]
        assert actual == pytest.approx(truth, rel=1e-11, abs=1e-300)
        shifts = [shift(p, *probabilities) for p, probabilities in zip(eta, joint, strict=True)]
        moved = multiplicative_advantage([eta], mechanism, releases)[0]
        assert moved == pytest.approx(shifts, rel=1e-12, abs=1e-12)
        both = posterior_and_shift([eta], mechanism, releases)
        assert both[0][0] == pytest.approx(truth, rel=1e-11, abs=1e-300)
        np.testing.assert_array_equal(both[1][0], moved)


def joint_probabilities(eta, i, weights):
    """P(y_i = 1, release) and P(y_i = 0, release), up to a factor, from the others' counts."""
    others, p = precise_pmf(np.delete(eta, i)), mpmath.mpf(eta[i])
    one = mpmath.fdot(others, weights[1:])
    return p * one, (1 - p) * mpmath.fdot(others, weights[:-1])


def shift(prior, one, zero):
    if prior in (0, 1):
        return 0.0
    if one == 0 or zero == 0:
        return math.inf if zero == 0 else -math.inf
    return float(mpmath.log(one * (1 - mpmath.mpf(prior)) / (zero * prior)))


def test_posterior_where_the_release_says_nothing():
    eta = np.random.default_rng(0).random((5, 3))
    for mechanism, releases in (
        (NoRelease(3), np.zeros(5)),
        (GeometricProportions(3, 0.0), np.ones(5)),
        (LaplaceProportions(3, 0.0), np.full(5, 0.4)),
        (CountChannel(np.full((4, 2), 0.5)), np.ones(5)),
    ):
        assert np.array_equal(posterior(eta, mechanism, releases), eta)
        assert not multiplicative_advantage(eta, mechanism, releases).any()


def test_shapes():
    assert posterior([0.1, 0.2], RandomizedResponse(1.0), [1, 0]).shape == (2,)
    assert posterior([[0.1], [0.2]], RandomizedResponse(1.0), [1, 0]).shape == (2, 1)
    assert bayes_guess(np.zeros((0, 4)), LabelProportions(4), []).shape == (0, 4)
    assert likelihood_ratios([0.1, 0.2], RandomizedResponse(1.0), [1, 0]).shape[0] == 2
    for kind in (np.float32, np.float16, bool, int):
        eta = np.array([[1, 0]], dtype=kind)
        assert posterior(eta, LabelProportions(2), [0.5]).tolist() == [[1, 0]]


@pytest.mark.parametrize("eta", BAGS[3:], ids=str)
def test_bag_size_off_by_one_is_noticed(eta):
    bag, k = Bag(exact(eta)), len(eta)
    truth = [bag.posterior(i, channel_of(GeometricProportions(k, 1.0)))[2] for i in range(k - 1)]
    actual = posterior([eta[:-1]], GeometricProportions(k - 1, 1.0), [2 / (k - 1)])[0]
    errors = [relative_error(v, p) for v, p in zip(actual, truth, strict=True)]
    assert max(errors) > 1e-3


class Faulty(Mechanism):
    """Counts the bag in units of two: known only by its likelihood."""

    bag_size = 3
    epsilon = math.inf

    def likelihood(self, releases):
        halves = np.arange(4) // 2
        return (np.asarray(releases)[:, None] == halves).astype(float)


class Smooth(Mechanism):
    """Gaussian noise on the count: known only by its log-likelihood, and not log-DP."""

    bag_size = 40
    epsilon = math.inf

    def log_likelihood(self, releases):
        return -50.0 * (np.asarray(releases)[:, None] * 40 - np.arange(41)) ** 2


def test_a_mechanism_of_ones_own_needs_only_its_likelihood():
    eta = [0.2, 0.5, 0.9]
    channel = [[1, 0], [1, 0], [0, 1], [0, 1]]
    bag = Bag(exact(eta))
    for z in (0, 1):
        actual = posterior([eta], Faulty(), [z])[0]
        for i in range(3):
            assert relative_error(actual[i], bag.posterior(i, channel)[z]) <= 1e-13
    with np.errstate(divide="ignore"):
        assert np.array_equal(Faulty().log_likelihood([1]), np.log(Faulty().likelihood([1])))


def test_a_mechanism_of_ones_own_in_the_far_tail():
    eta = np.random.default_rng(0).choice([1e-9, 1e-6, 0.2], 40)
    for release in (0.51, 1.0):
        x = mpmath.mpf(release) * 40
        truth = precise_posteriors(eta, [-50 * (x - s) ** 2 for s in range(41)])
        actual = posterior(eta[None], Smooth(), [release])[0]
        for value, p in zip(actual, truth, strict=True):
            assert relative_error(value, p) <= 1e-10


def test_a_label_that_the_channel_rules_out_needs_no_logarithms(monkeypatch):
    """They are for probabilities that a float may have lost, and several times as slow."""
    monkeypatch.setattr(attack, "_in_logs", lambda eta, logs: pytest.fail("in logarithms"))
    eta = [[0.2, 0.5, 0.9], [0.2, 0.0, 0.9], [1.0, 0.5, 0.9], [1.0, 0.0, 0.9], [1.0, 0.0, 1.0]]
    for counts in ([0, 0, 1, 1, 2], [3, 2, 3, 2, 2]):
        actual = posterior(eta, CountChannel(np.eye(4)), counts)
        assert actual == pytest.approx(posterior(eta, LabelProportions(3), np.divide(counts, 3)))


def test_the_exact_distribution_of_a_mechanism_of_ones_own_is_not_guessed():
    for measure in (
        lambda: additive_advantage([[0.2, 0.5, 0.9]], Faulty()),
        lambda: multiplicative_cdf([[0.2, 0.5, 0.9]], Faulty(), [1.0]),
    ):
        with pytest.raises(TypeError, match=r"Faulty.*CountChannel"):
            measure()
