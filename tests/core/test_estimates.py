"""Averages over random bags, against closed forms and enumeration.

Monte-Carlo checks allow 4.9 standard errors: a false alarm has probability 1e-6 each, and none at
all from one run to the next, since the seeds are fixed.
"""

import itertools
import math

import mpmath
import numpy as np
import pytest
from cases import exact, some_channel
from reference import Bag, channel_of, precise_pmf
from scipy import stats

from labelaudit import (
    GeometricProportions,
    LabelProportions,
    LaplaceProportions,
    RandomizedResponse,
    additive_advantage,
    advantage_with_known_members,
    expected_advantage,
    high_probability_advantage,
    realised_advantage,
)
from labelaudit.priors import Beta, Empirical, TwoPoint, Uniform

pytestmark = pytest.mark.usefixtures("one_numba_thread")
DEVIATIONS = 4.9


def agrees(estimate, truth):
    return abs(estimate.value - truth) <= DEVIATIONS * estimate.standard_error + 1e-12


def spread_agrees(values, predicted_variance):
    """Whether the variance of independent values is what was predicted: chi-square, 1e-6."""
    n = len(values) - 1
    statistic = n * np.var(values, ddof=1) / predicted_variance
    low, high = stats.chi2(n).ppf([5e-7, 1 - 5e-7])
    return low <= statistic <= high


@pytest.mark.parametrize("bag_size", [1, 2, 5, 32])
@pytest.mark.parametrize("p", [0.1, 0.5])
def test_independent_labels_have_the_closed_form(bag_size, p):
    others, middle = precise_pmf([p] * (bag_size - 1)), bag_size // 2
    expected = p * mpmath.fsum(others[middle:]) - (1 - p) * mpmath.fsum(others[middle + 1 :])
    rng = np.random.default_rng(0)
    actual = expected_advantage(TwoPoint(p, p), LabelProportions(bag_size), n_bags=5, rng=rng)
    assert actual.value == pytest.approx(float(expected), abs=1e-13)
    assert actual.standard_error <= 1e-15
    assert actual.n == 5
    assert actual.sampling_error is None


@pytest.mark.parametrize("prior", [Beta(2, 30), Uniform(), Beta(2, 5), Beta(40, 40)], ids=str)
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_randomized_response_is_the_integral_of_theorem_3_5(prior, epsilon):
    a, b = prior.a, prior.b
    flip = 1 / (1 + math.exp(epsilon))

    def integrand(eta):
        return (min(eta, 1 - eta) - flip) * eta ** (a - 1) * (1 - eta) ** (b - 1)

    truth = float(mpmath.quad(integrand, [flip, 0.5, 1 - flip]) / mpmath.beta(a, b))
    rng = np.random.default_rng(1)
    actual = expected_advantage(prior, RandomizedResponse(epsilon), n_bags=50_000, rng=rng)
    assert agrees(actual, truth)
    assert not agrees(actual, truth + 12 * actual.standard_error)


def test_two_point_prior_by_enumeration():
    prior, mechanism = TwoPoint(0.2, 0.6, weight=0.3), GeometricProportions(3, 1.0)
    truth = 0.0
    for bag in itertools.product((0.2, 0.6), repeat=3):
        weight = math.prod(0.3 if p == 0.6 else 0.7 for p in bag)
        gains = [Bag(exact(bag)).additive(i, channel_of(mechanism)) for i in range(3)]
        truth += weight * float(sum(gains)) / 3
    actual = expected_advantage(prior, mechanism, n_bags=4000, rng=np.random.default_rng(2))
    assert agrees(actual, truth)


def test_standard_error_over_bags_has_the_right_size():
    runs = [
        expected_advantage(Uniform(), LabelProportions(4), n_bags=50, rng=np.random.default_rng(s))
        for s in range(150)
    ]
    predicted = np.mean([run.standard_error**2 for run in runs])
    assert spread_agrees([run.value for run in runs], predicted)
    assert not spread_agrees([run.value for run in runs], predicted / 3)


def over_all_bags(values, mechanism):
    """The mean additive advantage over every bag of distinct examples, by enumeration."""
    k = mechanism.bag_size
    channel = channel_of(mechanism)
    bags = itertools.combinations(values, k)
    gains = [Bag(exact(bag)).additive(i, channel) for bag in bags for i in range(k)]
    return float(sum(gains) / len(gains))


@pytest.mark.parametrize("bag_size, size", [(1, 5), (2, 6), (3, 7), (3, 3), (4, 6)])
def test_empirical_estimand_is_the_mean_over_all_bags(bag_size, size):
    values = np.random.default_rng(size).random(size)
    for mechanism in (LabelProportions(bag_size), GeometricProportions(bag_size, 1.0)):
        truth = over_all_bags(values, mechanism)
        rng = np.random.default_rng(3)
        actual = expected_advantage(Empirical(values), mechanism, n_bags=300, rng=rng)
        assert agrees(actual, truth)
        assert actual.n >= 300
        assert ("left out" in actual.method) == (size % bag_size != 0)
        if size % bag_size:
            assert f"{size % bag_size} of {size} examples" in actual.method


def test_error_from_partitions_has_the_right_size():
    values = np.random.default_rng(4).beta(2, 5, 40)
    runs = [
        expected_advantage(
            Empirical(values), LabelProportions(4), n_bags=40, rng=np.random.default_rng(seed)
        )
        for seed in range(150)
    ]
    assert spread_agrees(
        [run.value for run in runs], np.mean([run.standard_error**2 for run in runs])
    )


@pytest.mark.parametrize("size, bag_size", [(12, 4), (300, 3)])
def test_error_from_having_a_sample_has_the_right_size(size, bag_size):
    runs = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        data = Empirical(rng.beta(2, 5, size))
        mechanism = GeometricProportions(bag_size, 2.0)
        runs.append(expected_advantage(data, mechanism, n_bags=2 * size // bag_size, rng=rng))
    predicted = np.mean([run.sampling_error**2 + run.standard_error**2 for run in runs])
    values = [run.value for run in runs]
    # The jackknife is unbiased to first order only: a fifth either way is its own error.
    assert any(spread_agrees(values, predicted * factor) for factor in (0.8, 1.0, 1.2))
    assert not spread_agrees(values, predicted / 4)


def test_a_single_bag_cannot_show_its_sampling_error():
    actual = expected_advantage(
        Empirical([0.2, 0.6]), LabelProportions(2), n_bags=4, rng=np.random.default_rng(0)
    )
    assert actual.sampling_error is None


@pytest.mark.parametrize(
    "mechanism",
    [
        RandomizedResponse(1.0),
        LabelProportions(4),
        GeometricProportions(4, 1.0),
        LaplaceProportions(4, 1.0),
        some_channel(4),
    ],
    ids=lambda m: type(m).__name__,
)
def test_realised_advantage_agrees_on_labels_drawn_from_eta(mechanism):
    rng = np.random.default_rng(5)
    eta = rng.beta(2, 3, (5000, mechanism.bag_size))
    labels = rng.random(eta.shape) < eta
    actual = realised_advantage(eta, labels, mechanism, rng)
    truth = additive_advantage(eta, mechanism).mean()
    assert agrees(actual, truth)
    assert not agrees(actual, truth + 12 * actual.standard_error)
    assert actual.n == 5000


def test_realised_advantage_shows_a_wrong_eta():
    rng = np.random.default_rng(6)
    truth = rng.beta(2, 3, (5000, 2))
    labels = rng.random(truth.shape) < truth
    mechanism = GeometricProportions(2, 0.5)
    wrong = 0.5 * truth
    actual = realised_advantage(wrong, labels, mechanism, rng)
    assert not agrees(actual, additive_advantage(wrong, mechanism).mean())


def test_a_blind_attacker_guesses_a_coin_as_before():
    """The guess at a prior of exactly 1/2 is the same with a release that says nothing."""
    labels = np.array([0, 0, 1, 0])
    rng = np.random.default_rng(0)
    actual = realised_advantage(np.full(4, 0.5), labels, RandomizedResponse(0.0), rng)
    assert (actual.value, actual.standard_error) == (0, 0)


def test_high_probability_advantage_by_enumeration():
    """All data sets of two bags of two examples, with priors from two points."""
    prior, mechanism = TwoPoint(0.2, 0.5, weight=0.4), GeometricProportions(2, 2.0)
    channel = channel_of(mechanism)
    outcomes = []
    for priors in itertools.product((0.2, 0.5), repeat=4):
        weight = math.prod(0.4 if p == 0.5 else 0.6 for p in priors)
        bags = [Bag(exact(priors[:2])), Bag(exact(priors[2:]))]
        gains = [bag.additive(i, channel) for bag in bags for i in range(2)]
        outcomes.append((float(sum(gains) / 4), weight))
    levels = sorted({round(gain, 9) for gain, _ in outcomes})
    assert len(levels) > 3
    for low, high in itertools.pairwise(levels):
        theta = (low + high) / 2
        truth = sum(weight for gain, weight in outcomes if gain > theta)
        actual = high_probability_advantage(
            prior, mechanism, theta, n_bags=2, n_draws=4000, rng=np.random.default_rng(8)
        )
        assert agrees(actual, truth)
        assert actual.n == 4000


def test_high_probability_advantage_counts_only_gains_above_theta():
    """A pair of coins gains exactly 1/4. The error adds a success and a failure, by hand."""
    prior, mechanism = TwoPoint(0.5, 0.5), LabelProportions(2)
    for theta, probability in ((0.25, 0.0), (math.nextafter(0.25, 0), 1.0)):
        actual = high_probability_advantage(
            prior, mechanism, theta, n_bags=3, n_draws=6, rng=np.random.default_rng(0)
        )
        assert actual.value == probability
        assert actual.standard_error == pytest.approx(math.sqrt(1 / 8 * 7 / 8 / 6), rel=1e-12)


def known_members_by_enumeration(eta, target, known, channel):
    """Mean over which others are known and over their labels, each branch by enumeration."""
    others = [j for j in range(len(eta)) if j != target]
    subsets = list(itertools.combinations(others, known))
    total = 0
    for subset in subsets:
        for labels in itertools.product((0, 1), repeat=known):
            view = exact(eta)
            weight = mpmath.mpf(1)
            for j, y in zip(subset, labels, strict=True):
                weight *= view[j] if y else 1 - view[j]
                view[j] = mpmath.mpf(y)
            total += weight * Bag(view).additive(target, channel)
    return float(total / len(subsets))


@pytest.mark.parametrize("known", [0, 1, 2, 3])
def test_known_members_by_enumeration(known):
    eta, n_bags = [0.2, 0.5, 0.7, 0.35], 4000
    for mechanism in (LabelProportions(4), GeometricProportions(4, 1.0)):
        rng = np.random.default_rng(known)
        gains = advantage_with_known_members(np.tile(eta, (n_bags, 1)), mechanism, known, rng)
        for i in range(4):
            truth = known_members_by_enumeration(eta, i, known, channel_of(mechanism))
            error = gains[:, i].std(ddof=1) / math.sqrt(n_bags)
            assert abs(gains[:, i].mean() - truth) <= DEVIATIONS * error + 1e-12


def test_what_is_known_of_all_members_or_none():
    eta = np.random.default_rng(10).random((6, 3))
    rng = np.random.default_rng(11)
    mechanism = LabelProportions(3)
    none = advantage_with_known_members(eta, mechanism, 0, rng)
    np.testing.assert_allclose(none, additive_advantage(eta, mechanism), atol=1e-14)
    everything = advantage_with_known_members(eta, mechanism, 2, rng)
    np.testing.assert_allclose(everything, np.minimum(eta, 1 - eta), atol=1e-14)
    assert advantage_with_known_members(np.zeros((0, 3)), mechanism, 1, rng).shape == (0, 3)
    assert advantage_with_known_members([0.3], RandomizedResponse(1.0), 0, rng).shape == (1,)


@pytest.mark.parametrize(
    "prior, cdf",
    [
        (Beta(2, 30), stats.beta(2, 30).cdf),
        (Uniform(), stats.uniform().cdf),
        (Beta(40, 40), stats.beta(40, 40).cdf),
    ],
    ids=["beta-2-30", "uniform", "beta-40-40"],
)
def test_draws_have_their_distribution(prior, cdf):
    """Kolmogorov-Smirnov; a false alarm has probability 1e-6."""
    draws = prior.sample((100, 50), np.random.default_rng(13))
    assert draws.shape == (100, 50)
    assert stats.kstest(draws.ravel(), cdf).pvalue > 1e-6


def test_draws_of_the_finite_priors():
    rng = np.random.default_rng(14)
    draws = TwoPoint(0.1, 0.9, weight=0.25).sample(10_000, rng)
    assert set(draws) == {0.1, 0.9}
    assert stats.binomtest(int((draws == 0.9).sum()), 10_000, 0.25).pvalue > 1e-6
    data = Empirical([0.1, 0.2, 0.3, 0.4, 0.5])
    assert set(data.sample(1000, rng)) == set(data.values)
    bags = data.partition(2, rng)
    assert bags.shape == (2, 2)
    assert len(set(bags.ravel())) == 4
