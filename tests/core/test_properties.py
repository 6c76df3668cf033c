"""What must hold for every bag, mechanism and release (hypothesis, the same examples each run)."""

import itertools
import math

import numpy as np
import pytest
from cases import some_channel
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference import channel_of, release_values

from labelaudit import (
    CountChannel,
    GeometricProportions,
    LabelProportions,
    LaplaceProportions,
    NoRelease,
    additive_advantage,
    label_advantage,
    multiplicative_advantage,
    multiplicative_cdf,
    multiplicative_quantile,
    poisson_binomial,
    posterior,
)

pytestmark = pytest.mark.usefixtures("one_numba_thread")
steady = settings(derandomize=True, deadline=None, max_examples=60, database=None)

PRIORS = st.one_of(
    st.sampled_from([0.0, 1.0, 0.5, 1e-9, 1 - 1e-9, 1e-300]), st.floats(0, 1, allow_subnormal=False)
)
BAGS = st.lists(PRIORS, min_size=1, max_size=12).map(np.array)
EPSILONS = st.one_of(st.sampled_from([1e-12, 700.0]), st.floats(1e-3, 40))


def channel(bag_size, epsilon):
    return CountChannel(np.array(channel_of(GeometricProportions(bag_size, epsilon)), dtype=float))


KINDS = st.sampled_from(
    [
        lambda k, epsilon: LabelProportions(k),
        GeometricProportions,
        LaplaceProportions,
        lambda k, epsilon: NoRelease(k),
        lambda k, epsilon: some_channel(k),
    ]
)
GRIDS = st.sampled_from(
    [
        lambda k, epsilon: LabelProportions(k),
        GeometricProportions,
        lambda k, epsilon: some_channel(k),
    ]
)


def releases_of(mechanism, eta):
    """All releases of a finite mechanism with positive probability, and those probabilities."""
    weights = poisson_binomial.pmf(eta) @ np.array(channel_of(mechanism), dtype=float)
    possible = np.flatnonzero(weights > 0)
    return np.array(release_values(mechanism))[possible], weights[possible]


@steady
@given(BAGS, KINDS, EPSILONS, st.integers(0, 2**32))
def test_posterior_is_a_probability(eta, kind, epsilon, seed):
    mechanism, rng = kind(eta.size, epsilon), np.random.default_rng(seed)
    labels = rng.random((1, eta.size)) < eta
    releases = mechanism.release(labels, rng)
    actual = posterior(eta[None], mechanism, releases)
    assert ((actual >= 0) & (actual <= 1)).all()
    assert (actual[0][eta == 0] == 0).all()
    assert (actual[0][eta == 1] == 1).all()
    shifts = multiplicative_advantage(eta[None], mechanism, releases)
    assert (np.abs(shifts) <= mechanism.epsilon * (1 + 1e-12) + 1e-15).all()


@steady
@given(BAGS, GRIDS, EPSILONS)
def test_average_posterior_is_the_prior(eta, kind, epsilon):
    releases, weights = releases_of(kind(eta.size, epsilon), eta)
    actual = posterior(np.tile(eta, (releases.size, 1)), kind(eta.size, epsilon), releases)
    np.testing.assert_allclose(weights @ actual, eta, rtol=0, atol=1e-13)


@steady
@given(BAGS, GRIDS, EPSILONS)
def test_additive_advantage_is_the_average_gain_of_the_posterior(eta, kind, epsilon):
    """The two come from different kernels: one sums over releases, the other is given them."""
    mechanism = kind(eta.size, epsilon)
    releases, weights = releases_of(mechanism, eta)
    actual = posterior(np.tile(eta, (releases.size, 1)), mechanism, releases)
    gain = weights @ np.maximum(actual, 1 - actual) - np.maximum(eta, 1 - eta)
    advantage = additive_advantage(eta[None], mechanism)[0]
    np.testing.assert_allclose(advantage, gain, rtol=0, atol=1e-13)


@steady
@given(BAGS, KINDS, EPSILONS)
def test_advantages_stay_in_their_range(eta, kind, epsilon):
    mechanism = kind(eta.size, epsilon)
    additive = additive_advantage(eta[None], mechanism)[0]
    conditional = label_advantage(eta[None], mechanism)[0]
    assert ((additive >= 0) & (additive <= np.minimum(eta, 1 - eta))).all()
    assert (additive[(eta == 0) | (eta == 1)] == 0).all()
    assert ((conditional >= 0) & (conditional <= 1)).all()
    if not isinstance(mechanism, CountChannel):
        # Theorem 3.5's value is the most that any mechanism with this epsilon can give.
        flip = 1 / (1 + math.exp(min(mechanism.epsilon, 700)))
        most = np.maximum(np.minimum(eta, 1 - eta) - flip, 0)
        assert (additive <= most + 1e-13).all()
        assert (conditional <= math.tanh(mechanism.epsilon / 2) + 1e-13).all()


@steady
@given(BAGS, st.sampled_from([GeometricProportions, LaplaceProportions]), EPSILONS, EPSILONS)
def test_advantages_do_not_fall_with_epsilon(eta, kind, first, second):
    low, high = sorted((first, second))
    for measure in (additive_advantage, label_advantage):
        weak, strong = (measure(eta[None], kind(eta.size, e)) for e in (low, high))
        assert (weak <= strong + 1e-13).all()
        assert (strong <= measure(eta[None], LabelProportions(eta.size)) + 1e-13).all()


@steady
@given(BAGS, KINDS, EPSILONS, st.integers(0, 2**32))
def test_the_order_of_a_bag_does_not_matter(eta, kind, epsilon, seed):
    mechanism, rng = kind(eta.size, epsilon), np.random.default_rng(seed)
    order = rng.permutation(eta.size)
    for measure in (additive_advantage, label_advantage):
        actual = measure(eta[order][None], mechanism)[0]
        np.testing.assert_allclose(actual, measure(eta[None], mechanism)[0][order], atol=1e-13)
    releases = mechanism.release(rng.random((1, eta.size)) < eta, rng)
    actual = posterior(eta[order][None], mechanism, releases)[0]
    expected = posterior(eta[None], mechanism, releases)[0][order]
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


@steady
@given(BAGS, KINDS, EPSILONS, st.integers(0, 2**32))
def test_flipping_all_labels_does_not_matter(eta, kind, epsilon, seed):
    """Priors that 1 - eta mirrors exactly; a channel is turned upside down with them."""
    eta = np.round(eta * 2**20) / 2**20
    mechanism, rng = kind(eta.size, epsilon), np.random.default_rng(seed)
    mirrored = mechanism
    if isinstance(mechanism, CountChannel):
        mirrored = CountChannel(mechanism.matrix[::-1])
    for measure in (additive_advantage, label_advantage):
        actual, expected = measure(1 - eta[None], mirrored), measure(eta[None], mechanism)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-13)
    releases = mechanism.release(rng.random((1, eta.size)) < eta, rng)
    turned = releases if isinstance(mechanism, CountChannel | NoRelease) else 1 - releases
    actual = posterior(1 - eta[None], mirrored, turned)
    np.testing.assert_allclose(1 - actual, posterior(eta[None], mechanism, releases), atol=1e-12)


@steady
@given(BAGS, KINDS, EPSILONS)
def test_cdf_of_the_multiplicative_advantage_is_a_cdf(eta, kind, epsilon):
    mechanism = kind(eta.size, epsilon)
    points = [-1.0, 0.0, 1e-6, 0.3, 1.0, 5.0, 40.0, 800.0, math.inf]
    actual = multiplicative_cdf(eta[None], mechanism, points)
    assert (np.diff(actual) >= 0).all()
    assert actual[0] == 0
    assert actual[-1] == pytest.approx(1, abs=1e-12)


@settings(steady, max_examples=15)
@given(BAGS, KINDS, EPSILONS, st.floats(0.01, 0.99))
def test_quantile_inverts_the_cdf(eta, kind, epsilon, q):
    mechanism = kind(eta.size, epsilon)
    t = multiplicative_quantile(eta[None], mechanism, q)
    assert t >= 0
    assert multiplicative_cdf(eta[None], mechanism, [t])[0] >= q - 1e-12
    if t > 0:
        assert multiplicative_cdf(eta[None], mechanism, [np.nextafter(t, 0)])[0] < q


@steady
@given(BAGS, EPSILONS, st.integers(0, 2**32))
def test_the_general_code_agrees_with_the_kernels(eta, epsilon, seed):
    """A channel written out as a matrix takes another path through the package."""
    assume(epsilon < 40)
    noisy, matrix = GeometricProportions(eta.size, epsilon), channel(eta.size, epsilon)
    rng = np.random.default_rng(seed)
    releases = noisy.release(rng.random((1, eta.size)) < eta, rng)
    np.testing.assert_allclose(
        posterior(eta[None], noisy, releases),
        posterior(eta[None], matrix, np.rint(releases * eta.size)),
        rtol=1e-11,
    )
    for measure in (additive_advantage, label_advantage):
        np.testing.assert_allclose(
            measure(eta[None], noisy), measure(eta[None], matrix), rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("a, b", [(2, 30), (1, 1), (2, 5), (40, 40)])
@pytest.mark.parametrize(
    "make",
    [
        LabelProportions,
        lambda k: GeometricProportions(k, 1.0),
        lambda k: LaplaceProportions(k, 1.0),
    ],
    ids=["label", "geometric", "laplace"],
)
def test_advantage_does_not_grow_with_the_bag_on_average(make, a, b):
    """Bags are nested: on average a member's release is noisier with more members."""
    eta = np.random.default_rng(0).beta(a, b, (4000, 32))
    gains = [additive_advantage(eta[:, :k], make(k))[:, 0] for k in (1, 2, 4, 8, 16, 32)]
    for smaller, larger in itertools.pairwise(gains):
        drop = smaller - larger
        # Paired differences: 4.9 standard errors, a false alarm of 1e-6 a pair.
        assert drop.mean() >= -4.9 * drop.std() / math.sqrt(drop.size)
    assert gains[0].mean() > gains[-1].mean() or gains[0].mean() == 0
