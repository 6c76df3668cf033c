"""Every bound bounds the exact advantage on a wide grid, and a smaller constant does not."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import special, stats

from labelaudit import (
    CountChannel,
    GeometricProportions,
    LabelProportions,
    LaplaceProportions,
    RandomizedResponse,
    additive_advantage,
    bounds,
    multiplicative_cdf,
    priors,
)

# Exact advantages come with rounding; a bound may be touched but not crossed by more than this.
ROUNDING = 1 + 1e-9


def mean_and_mu(low, high, weight):
    """p and mu when eta is `high` with probability `weight`, else `low`."""
    mu = (1 - weight) * low * (1 - low) + weight * high * (1 - high)
    return (1 - weight) * low + weight * high, mu


def two_point_advantages(low, high, weight, size):
    """IEAdv at each point and EAdv, exactly: a mixture over how many of the others are high."""
    number = np.arange(size)
    weights = stats.binom.pmf(number, size - 1, weight)
    bags = np.where(number[:, None] > np.arange(size - 1), high, low)
    gains = [
        weights @ additive_advantage(np.column_stack([np.full(size, own), bags]), llp(size))[:, 0]
        for own in (low, high)
    ]
    return gains[0], gains[1], (1 - weight) * gains[0] + weight * gains[1]


def llp(size):
    return LabelProportions(size)


def constant_cases():
    """(p, mu, bag size, IEAdv = EAdv, mu_i) for labels independent of features, to 10^5."""
    p = np.concatenate([np.geomspace(1e-4, 0.45, 20), [0.499, 0.5]])
    for size in (2, 3, 4, 5, 9, 16, 33, 100, 1000, 10_000, 100_000):
        for prior, gain in zip(p, bounds.independent_advantage(p, size), strict=True):
            mu = prior * (1 - prior)
            yield prior, mu, size, gain, gain, mu


def two_point_cases():
    """The same for two-point distributions, with a lone outlier and eta in {0, 1/2} among them."""
    pairs = [(0, 0.5), (0.001, 0.4), (0.1, 0.9), (0.3, 0.6), (0.0, 0.99)]
    for (low, high), weight, size in itertools.product(pairs, (0.01, 0.3, 0.9), (2, 3, 6, 25, 80)):
        p, mu = mean_and_mu(low, high, weight)
        at_low, at_high, mean = two_point_advantages(low, high, weight, size)
        yield p, mu, size, at_low, mean, low * (1 - low)
        yield p, mu, size, at_high, mean, high * (1 - high)


@pytest.fixture(scope="module")
def cases():
    columns = np.array([*constant_cases(), *two_point_cases()]).T
    return dict(zip(("p", "mu", "size", "individual", "mean", "mu_i"), columns, strict=True))


def largest_ratio(gain, bound):
    """How much of the bound is used, at most; a bound of 0 must not be exceeded at all."""
    assert np.all(gain[bound == 0] <= 1e-15)
    return float((gain[bound > 0] / bound[bound > 0]).max())


def test_the_closed_form_is_the_exact_advantage():
    for size in (1, 2, 3, 8, 31):
        p = np.linspace(0, 1, 21)
        exact = additive_advantage(np.tile(p[:, None], size), llp(size))[:, 0]
        np.testing.assert_allclose(bounds.independent_advantage(p, size), exact, atol=1e-14)


def test_the_closed_form_keeps_its_precision_in_the_far_tail():
    p, size = Fraction(1, 20), 200
    exact = sum(
        math.comb(size, s) * p**s * (1 - p) ** (size - s) * Fraction(2 * s - size, size)
        for s in range(size // 2 + 1, size + 1)
    )
    assert float(exact) < 1e-70
    assert bounds.independent_advantage(0.05, size) == pytest.approx(float(exact), rel=1e-11)


@pytest.mark.parametrize("prior", [priors.Beta(2, 5), priors.TwoPoint(0.1, 0.7, weight=0.2)])
def test_revealed_bags_are_those_of_equal_labels(prior):
    eta = prior.sample((40_000, 3), np.random.default_rng(1))
    infinite = 1 - multiplicative_cdf(eta, llp(3), [1e9])[0]
    equal = eta.prod(axis=1) + (1 - eta).prod(axis=1)
    assert infinite == pytest.approx(equal.mean())
    error = equal.std() / math.sqrt(len(equal))
    assert abs(bounds.revealed_probability(prior.mean, 3) - infinite) < 4.5 * error
    assert abs(bounds.revealed_probability(prior.mean, 2) - infinite) > 50 * error


# How much of each bound the settings use, at most: more would be a violation, and the second number
# is the fraction that must be seen, so that a bound smaller by that factor is caught.
@pytest.mark.parametrize(
    ("bound", "arguments", "gain", "fraction"),
    [
        (bounds.lemma_bound, "p mu size", "mean", 0.25),
        (bounds.general_form, "p mu size", "mean", 0.75),
        (bounds.aggregation_bound, "mu size", "mean", 0.99),
        (bounds.root_bound, "mu size", "mean", 0.85),
        (bounds.individual_form, "mu_i p mu size", "individual", 0.7),
        (bounds.individual_lemma_bound, "mu_i p mu size", "individual", 0.5),
        (bounds.individual_bound, "mu_i mu size", "individual", 0.99),
    ],
)
def test_bounds_on_the_advantage(bound, arguments, gain, fraction, cases):
    values = bound(*(cases[name] for name in arguments.split()))
    assert fraction < largest_ratio(cases[gain], values) <= ROUNDING


def test_bounds_for_independent_labels():
    p = np.concatenate([np.geomspace(1e-4, 0.499, 40), [0.5]])[:, None]
    p = np.concatenate([p, 1 - p])
    size = np.unique(np.geomspace(1, 1e5, 60).astype(int))
    gain = bounds.independent_advantage(p, size)
    root = largest_ratio(gain, bounds.independent_root_bound(p, size))
    assert 0.99 < root <= ROUNDING
    assert np.all(gain <= bounds.independent_gap_bound(p, size))
    assert np.all(gain <= bounds.independent_bernstein_bound(p, size))
    # Bernstein's inequality for 24 labels with variance 3/16, at a distance of 1/4 from the mean.
    value = math.exp(-24 * (1 / 16) / (2 * 3 / 16 + 2 * (1 / 4) / 3))
    assert bounds.independent_bernstein_bound([0.25, 0.75], 24) == pytest.approx(value, rel=1e-14)


def test_the_bessel_constant_is_the_supremum_rounded_up():
    v = np.geomspace(1e-3, 1e3, 200_001)
    top = float((2 * np.sqrt(v) * special.ive(0, v)).max())
    assert top < bounds.BESSEL_CONSTANT < top + 1e-5
    cells = bounds.aggregation_bound(0.25, np.arange(2, 2000)) / bounds.root_bound(
        0.25, np.arange(2, 2000)
    )
    assert cells.max() <= 1


def random_bags(size, n_bags, rng):
    """Priors from mild to extreme, some of them certain."""
    shape = rng.choice([0.05, 0.3, 1.0, 5.0, 50.0], (n_bags, 1))
    eta = rng.beta(shape, shape * rng.choice([1.0, 10.0], (n_bags, 1)), (n_bags, size))
    eta[rng.random(eta.shape) < 0.05] = 0.0
    eta[rng.random(eta.shape) < 0.05] = 1.0
    eta[0], eta[1], eta[2] = 0.5, 0.1, 0.9
    return eta


@pytest.mark.parametrize("size", [1, 2, 3, 5, 12, 40])
@pytest.mark.parametrize("function", [bounds.bag_bounds, bounds.bag_gap_bounds])
def test_bounds_for_given_bags(function, size):
    eta = random_bags(size, 2000, np.random.default_rng(size))
    gain = additive_advantage(eta, llp(size))
    bound = function(eta)
    assert bound.shape == eta.shape
    assert np.all(gain <= bound * ROUNDING + 1e-14)


def test_the_bag_bounds_are_no_more_than_ten_per_cent_too_large_somewhere():
    fair = np.full((1, 40), 0.5)
    gain = additive_advantage(fair, llp(40))
    assert np.all(gain > 0.9 * bounds.bag_bounds(fair))
    assert np.all(gain > 0.9 * bounds.bag_gap_bounds(fair))


def test_the_tilted_bound_finds_the_exponential_rate():
    """For constant eta the rate is log(2 sqrt(p q)) a person, which the plain bound misses."""
    eta = np.full((1, 200), 0.2)
    tilted, plain = bounds.bag_gap_bounds(eta)[0, 0], bounds.bag_bounds(eta)[0, 0]
    exact = bounds.independent_advantage(0.2, 200)
    assert exact <= tilted < 1000 * exact
    assert plain > 1e15 * exact


def gap_cases():
    for beta, weight, size in itertools.product((0.05, 0.2, 0.4), (0.05, 0.5, 1), (2, 3, 12, 60)):
        for low, high in ((0.5 - beta, 0.5 + beta), (0.0, 0.5 - beta), (0.0, 0.5 + beta)):
            mu = mean_and_mu(low, high, weight)[1]
            yield mu, beta, size, two_point_advantages(low, high, weight, size)[2]


def test_the_bound_from_a_gap_in_eta():
    mu, beta, size, gain = np.array([*gap_cases()]).T
    assert np.all(gain <= bounds.gap_bound(mu, beta, size))
    p, size = 0.47, 100_000
    mutant = bounds.gap_bound(p * (1 - p), 0.03, size) ** 1.2
    assert bounds.independent_advantage(p, size) > mutant > 0


def test_a_gap_in_p_alone_gives_no_exponential_bound():
    """eta in {0, 1/2}: p = 1/4 is far from 1/2, yet EAdv sqrt(k) tends to 0.282."""
    mean = two_point_advantages(0.0, 0.5, 0.5, 150)[2]
    assert mean * math.sqrt(150) == pytest.approx(0.282, abs=0.003)
    assert mean > bounds.independent_gap_bound(0.25, 150)


def bag_gap_tail(low, high, weight, size):
    """f_1 - f_2 of a bag and its probability, by the number of high priors in it."""
    number = np.arange(size + 1)
    bags = np.where(number[:, None] > np.arange(size), high, low)
    gaps = additive_advantage(bags, llp(size)).mean(axis=1)
    return gaps, stats.binom.pmf(number, size, weight)


@pytest.mark.parametrize("size", [2, 5, 30, 100])
def test_the_explicit_tail_bound(size):
    settings = itertools.product([(0, 0.5), (0.1, 0.5), (0.01, 0.9)], (1e-3, 0.1, 0.5, 1.0))
    for (low, high), weight in settings:
        mu = mean_and_mu(low, high, weight)[1]
        gaps, probability = bag_gap_tail(low, high, weight, size)
        for fraction in (0.0, 0.1, 0.5, 0.9):
            exceeded = probability[gaps > bounds.tail_threshold(mu, size, fraction)].sum()
            assert exceeded <= bounds.tail_probability(mu, size, fraction)


def test_a_smaller_tail_constant_is_caught():
    """0.5 in place of 9: every bag of fair coins then exceeds the level."""
    size, fraction = 1000, 0.5
    fair = bounds.independent_advantage(0.5, size)
    assert fair > bounds.tail_threshold(0.25, size, fraction) * 0.25 / 9
    assert bounds.tail_probability(0.25, size, fraction) < 1


def test_label_dp_bounds_hold_for_random_channels_and_are_attained():
    rng = np.random.default_rng(7)
    largest = 0.0
    for _ in range(300):
        size = int(rng.integers(1, 4))
        matrix = rng.dirichlet(np.ones(rng.integers(2, 5)), size + 1)
        mechanism = CountChannel(matrix)
        eta = rng.random((20, size))
        gain = additive_advantage(eta, mechanism)
        assert np.all(gain <= bounds.response_advantage(eta, mechanism.epsilon) + 1e-12)
        largest = max(largest, float(gain.max() / bounds.label_dp_half_bound(mechanism.epsilon)))
    assert 0.9 < largest <= ROUNDING


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0, math.inf])
def test_randomized_response_is_the_theorem(epsilon):
    eta = np.linspace(0, 1, 101)
    exact = additive_advantage(eta, RandomizedResponse(epsilon))
    np.testing.assert_allclose(bounds.response_advantage(eta, epsilon), exact, atol=1e-15)
    assert exact.max() == pytest.approx(bounds.label_dp_half_bound(epsilon))


@pytest.mark.parametrize("mechanism", [GeometricProportions(4, 1.0), LaplaceProportions(4, 1.0)])
def test_noisy_proportions_stay_below_the_label_dp_bound(mechanism):
    eta = random_bags(4, 500, np.random.default_rng(1))
    gain = additive_advantage(eta, mechanism)
    assert np.all(gain <= bounds.response_advantage(eta, 1.0) + 1e-12)


def shift_tail(p, size, level):
    """P(|I| > level) for label proportions when every prior is p."""
    count = np.arange(size + 1)
    with np.errstate(divide="ignore"):
        shift = special.logit(count / size) - special.logit(p)
    return float(stats.binom.pmf(count, size, p)[np.abs(shift) > level].sum())


@pytest.mark.parametrize("p", [0.002, 0.05, 0.3, 0.5])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.05, 0.5, 0.9, 1.0])
def test_the_corrected_tail_of_the_multiplicative_advantage(p, delta):
    least = math.ceil(32 * math.log(2 / delta) / (p * (1 - p)))
    for size in (least, 2 * least, 10 * least):
        assert shift_tail(p, size, bounds.multiplicative_tail_bound(p, size, delta)) <= delta
    assert np.isinf(bounds.multiplicative_tail_bound(p, max(1, least // 2), delta))


def test_a_smaller_multiplicative_constant_is_caught():
    """With 1 in place of 2.13 the probability exceeds delta."""
    level = bounds.multiplicative_tail_bound(0.5, 10_000, 0.05) / 2.13
    assert shift_tail(0.5, 10_000, level) > 0.05


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bounds.root_bound(0.3, 4), r"mu must lie in \[0, 0.25\], not 0.3"),
        (lambda: bounds.root_bound(0.2, 2.5), "bag_size must be a whole number of at least 1"),
        (lambda: bounds.lemma_bound(0.5, 0.2, 1), "at least 2, not 1"),
        (lambda: bounds.general_form(1.5, 0.2, 4), r"p must lie in \[0, 1\]"),
        (lambda: bounds.label_dp_bound(-1), r"epsilon must lie in \[0, inf\], not -1"),
        (lambda: bounds.bag_bounds(0.5), r"eta must have shape \(\.\.\., k\) with k at least 1"),
        (lambda: bounds.gap_bound(0.2, 0.7, 4), "beta must lie in"),
        (
            lambda: bounds.gap_bound([0.09, 0.25], 0.4, [[4], [5]]),
            r"mu must be at most 1/4 - beta\^2 = 0.09 under a gap beta of 0.4, not 0.25",
        ),
        (lambda: bounds.revealed_probability(1.2, 4), r"p must lie in \[0, 1\]"),
        (lambda: bounds.revealed_probability(0.2, 0), "bag_size must be a whole number"),
        (lambda: bounds.individual_bound(0.4, 0.2, 4), "mu_i must lie in"),
        (lambda: bounds.debiased_variance([0, 3], 2, 1.0), "to bag_size, not 3 in a bag of 2"),
        (lambda: bounds.debiased_variance(1, [4, 2, 0.5], 1.0), "bag_size must be"),
        (lambda: bounds.debiased_variance([[0.0], [0.5]], [4, 2], 1.0), "not 0.5 in a bag of 4"),
        (lambda: bounds.debiased_variance(1, 2, 0.0), "above 0"),
    ],
)
def test_bad_input_is_refused_with_the_value(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_the_printed_form_of_the_theorem_is_at_least_the_root():
    """mu <= p (1 - p) always, so Theorem 3.3 holds with constant 1 and no logarithm."""
    p, fraction = np.linspace(0.001, 0.5, 100)[:, None], np.linspace(0.001, 1, 101)
    mu = fraction * p * (1 - p)
    for size in (2, 3, 4, 8, 9, 30, 10_000):
        assert np.all(bounds.root_bound(mu, size) <= bounds.general_form(p, mu, size))


def test_extremes():
    for function in (bounds.aggregation_bound, bounds.root_bound, bounds.tail_threshold):
        assert function(0.0, 5) == 0
    assert bounds.aggregation_bound(0.25, 1) == 0.5
    assert bounds.label_dp_bound(0) == bounds.response_advantage(0.5, 0) == 0
    assert bounds.label_dp_half_bound(math.inf) == bounds.response_advantage(0.5, math.inf) == 0.5
    np.testing.assert_array_equal(bounds.bag_gap_bounds([0.0, 1.0]), [0, 0])
    assert bounds.bag_bounds(np.empty((0, 3))).shape == (0, 3)
