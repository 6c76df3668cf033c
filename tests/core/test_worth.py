"""The worth of a release, against enumeration, quadrature, closed forms and what it must obey."""

import math

import mpmath
import numpy as np
import pytest
from cases import BAGS, exact, finite_cases, laplace_cases, some_channel
from reference import Bag, channel_of

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
    expected_worth,
    multiplicative_quantile,
    worth,
)
from labelaudit.priors import Beta, Empirical, TwoPoint, Uniform


def enumerated(bag, i, channel):
    """The variance of the posterior of label i over that of the label, from all labellings."""
    p = bag.eta[i]
    if p in (0, 1):
        return 0
    pairs = bag.joints(i, channel)
    variance = sum((a + b) * (a / (a + b) - p) ** 2 for a, b in pairs if a + b)
    return variance / (p * (1 - p))


@pytest.mark.parametrize("eta, mechanism", finite_cases(), ids=str)
def test_worth_by_enumeration(eta, mechanism):
    bag, channel = Bag(exact(eta)), channel_of(mechanism)
    actual = worth([eta], mechanism)[0]
    for i in range(len(eta)):
        assert abs(actual[i] - enumerated(bag, i, channel)) <= 1e-13


def laplace_worth(bag, i, epsilon):
    """The same under Laplace noise: the exact tails, and quadrature between neighbouring counts."""
    p, rate = bag.eta[i], mpmath.mpf(epsilon)
    if p in (0, 1):
        return 0

    def density(z):
        weights = [mpmath.exp(-rate * abs(z - s)) * rate / 2 for s in range(bag.k + 1)]
        one = mpmath.fsum(a * w for a, w in zip(bag.ones[i], weights, strict=True))
        zero = mpmath.fsum(b * w for b, w in zip(bag.zeros[i], weights, strict=True))
        return (one + zero) * (one / (one + zero) - p) ** 2

    inside = mpmath.quad(density, [mpmath.mpf(s) / 2 for s in range(2 * bag.k + 1)])
    # Beyond either end the posterior is constant.
    outside = (density(mpmath.mpf(0)) + density(mpmath.mpf(bag.k))) / rate
    return (inside + outside) / (p * (1 - p))


@pytest.mark.parametrize(
    "eta, mechanism", [case for case in laplace_cases() if len(case[0]) <= 5], ids=str
)
def test_worth_under_laplace_noise_by_quadrature(eta, mechanism):
    bag = Bag(exact(eta))
    actual = worth([eta], mechanism)[0]
    with mpmath.workprec(80):
        for i in sorted({len(eta) // 2, len(eta) - 1}):
            assert abs(actual[i] - laplace_worth(bag, i, mechanism.epsilon)) <= 1e-13


@pytest.mark.parametrize("bag_size", [64, 512])
def test_worth_of_large_bags(bag_size):
    rng = np.random.default_rng(bag_size)
    eta = rng.beta(2, 5, (3, bag_size))
    eta[:, :6] = [0.0, 1.0, 1e-9, 1 - 1e-9, 0.5, 1e-40]
    for mechanism in (LabelProportions(bag_size), GeometricProportions(bag_size, 0.3)):
        expected = worth(eta, CountChannel(mechanism.channel().matrix))
        np.testing.assert_allclose(worth(eta, mechanism), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("bag_size", [1, 2, 3, 8, 40, 257])
def test_label_proportions_of_fair_coins_are_worth_one_over_the_bag_size(bag_size):
    actual = worth(np.full((2, bag_size), 0.5), LabelProportions(bag_size))
    np.testing.assert_allclose(actual, 1 / bag_size, rtol=0, atol=1e-14)


def test_randomized_response_has_a_closed_form():
    eta = np.linspace(0, 1, 101)[1:-1]
    for epsilon in (0.01, 1.0, 5.0):
        flip = 1 / (1 + math.exp(epsilon))
        said = eta * (1 - flip) + (1 - eta) * flip
        expected = eta * (1 - eta) * (1 - 2 * flip) ** 2 / (said * (1 - said))
        actual = worth(eta, RandomizedResponse(epsilon))
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-15)


def test_nothing_is_worth_nothing_and_the_label_in_clear_is_worth_one():
    eta = np.random.default_rng(0).random((10, 4))
    constant = CountChannel(np.tile([0.2, 0.8], (5, 1)))
    for mechanism in (NoRelease(4), GeometricProportions(4, 0.0), constant):
        assert not worth(eta, mechanism).any()
    one = eta.reshape(-1)
    for clear in (LabelProportions(1), RandomizedResponse(800.0), LaplaceProportions(1, 900.0)):
        np.testing.assert_allclose(worth(one, clear), 1, rtol=0, atol=1e-14)


@pytest.mark.parametrize("p", [0.0, 1.0, 5e-324, 1e-300, 1e-40, 1e-17, 1 - 1e-16])
@pytest.mark.parametrize("kind", [LabelProportions, GeometricProportions, LaplaceProportions])
def test_worth_at_the_ends_of_the_range(p, kind):
    """With a coin, half of the labels of a pair are revealed, however unlikely one of them is."""
    mechanism = kind(2) if kind is LabelProportions else kind(2, 2.0)
    actual = worth([[p, 0.5]], mechanism)[0]
    assert np.isfinite(actual).all()
    if p in (0, 1):
        assert actual[0] == 0
    elif kind is LabelProportions:
        assert actual[0] == pytest.approx(0.5, abs=1e-12)
    else:
        assert 0 <= actual[0] <= worth([0.5], RandomizedResponse(2.0))[0]


def test_a_mechanism_of_ones_own_has_a_worth():
    class AnyPositive(Mechanism):
        bag_size, epsilon = 3, math.inf

        def likelihood(self, releases):
            positive = np.arange(4) > 0
            return np.where(np.equal(releases, 1)[:, None], positive, ~positive).astype(float)

        def channel(self):
            return CountChannel([[1, 0], [0, 1], [0, 1], [0, 1]])

    eta = [0.1, 0.2, 0.3]
    bag, matrix = Bag(exact(eta)), AnyPositive().channel().matrix
    expected = [float(enumerated(bag, i, matrix)) for i in range(3)]
    assert worth([eta], AnyPositive())[0] == pytest.approx(expected, abs=1e-14)
    twice = Repeated(RandomizedResponse(1.0), 2)
    assert worth([0.5], twice) > worth([0.5], RandomizedResponse(1.0))


@pytest.mark.parametrize("kind", [GeometricProportions, LaplaceProportions])
def test_no_release_with_the_same_epsilon_is_worth_more_than_randomized_response(kind):
    """Theorem of chapter 16: what a label-DP release says of a label is a garbling of its bit."""
    rng = np.random.default_rng(1)
    for bag_size in (1, 2, 3, 8, 16):
        for epsilon in (1e-3, 0.1, 0.5, 1.0, 2.0, 4.0, 12.0):
            eta = rng.beta(*rng.uniform(0.2, 3, 2), (20, bag_size))
            best = worth(eta.reshape(-1), RandomizedResponse(epsilon)).reshape(eta.shape)
            assert (worth(eta, kind(bag_size, epsilon)) <= best + 1e-12).all()
    # One count of noise less, and it fails: the comparison can tell.
    assert worth([[0.3, 0.0]], kind(2, 2.2))[0, 0] > worth([0.3], RandomizedResponse(1.0))[0]


def test_three_norms_of_one_variable():
    """Theorem of chapter 16 for a coin: 4 tau^2 <= J <= 2 tau tanh(eps/2), for any channel."""
    rng = np.random.default_rng(2)
    for _ in range(300):
        columns = int(rng.integers(2, 7))
        matrix = rng.dirichlet(np.full(columns, rng.uniform(0.2, 3)), 2)
        channel = CountChannel(matrix)
        tau, information = additive_advantage([0.5], channel)[0], worth([0.5], channel)[0]
        ceiling = math.tanh(multiplicative_quantile([0.5], channel, 1.0) / 2)
        assert 4 * tau**2 <= information + 1e-12
        assert information <= 2 * tau * ceiling + 1e-12
        assert 2 * tau * ceiling <= ceiling**2 + 1e-12
    response = RandomizedResponse(1.0)
    tau, information = additive_advantage([0.5], response)[0], worth([0.5], response)[0]
    assert information == pytest.approx(4 * tau**2, abs=1e-15)


def test_a_uniform_prior_gives_a_quarter_of_a_coins_worth():
    """Theorem of chapter 16: the integral of the additive advantage over eta is J/4."""
    eta = (np.arange(20_000) + 0.5) / 20_000
    for mechanism in (RandomizedResponse(1.0), some_channel(1), some_channel(1, 6, 9)):
        average = additive_advantage(eta, mechanism).mean()
        assert average == pytest.approx(worth([0.5], mechanism)[0] / 4, abs=1e-8)


def test_the_expected_worth_is_the_mean_over_bags():
    rng = np.random.default_rng(3)
    mechanism = GeometricProportions(4, 1.0)
    estimate = expected_worth(Beta(2, 5), mechanism, n_bags=2_000, rng=rng)
    reference = worth(np.random.default_rng(4).beta(2, 5, (200_000, 4)), mechanism).mean()
    assert abs(estimate.value - reference) <= 4.9 * estimate.standard_error * math.sqrt(1.01)
    assert 0 < estimate.standard_error < 0.01
    coins = expected_worth(TwoPoint(0.5, 0.5), LabelProportions(3), n_bags=5, rng=rng)
    assert coins.value == pytest.approx(1 / 3, abs=1e-14)
    assert coins.standard_error == pytest.approx(0, abs=1e-15)
    values = rng.random(101)
    sample = expected_worth(Empirical(values), RandomizedResponse(1.0), n_bags=300, rng=rng)
    assert sample.value == pytest.approx(worth(values, RandomizedResponse(1.0)).mean(), abs=1e-12)
    assert "1 of 101" not in sample.method
    with pytest.raises(ValueError, match="n_bags"):
        expected_worth(Uniform(), mechanism, n_bags=1, rng=rng)


def test_a_wrong_channel_is_noticed():
    eta = BAGS[5]
    bag = Bag(exact(eta))
    right, wrong = GeometricProportions(5, 1.0), GeometricProportions(5, 1.1)
    truth = np.array([float(enumerated(bag, i, channel_of(right))) for i in range(5)])
    assert np.abs(worth([eta], right)[0] - truth).max() <= 1e-13
    assert np.abs(worth([eta], wrong)[0] - truth).max() > 1e-3


@pytest.mark.parametrize("epsilon", [500.0, 700.0, 745.0])
@pytest.mark.parametrize("p", [1e-200, 1e-300, 5e-324])
def test_laplace_noise_next_to_none_and_a_prior_next_to_zero(p, epsilon):
    """The coin is revealed, and half of the other labels where they are no rarer than noise."""
    actual = worth([[p, 0.5], [0.5, p]], LaplaceProportions(2, epsilon))
    np.testing.assert_allclose(actual[1], actual[0, ::-1], rtol=1e-12)
    assert actual[0, 1] == pytest.approx(1, abs=1e-12)
    assert 0 <= actual[0, 0] <= 0.5 + 1e-12
    if p == 1e-200:  # checked by numerical integration with 400 digits
        assert actual[0, 0] == pytest.approx(0.5, abs=1e-8)
