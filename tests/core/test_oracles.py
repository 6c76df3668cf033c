"""Libraries written by others for neighbouring questions must give the same numbers."""

import itertools
import math

import fast_poibin
import numpy as np
import pytest
from cases import BAGS, finite_cases, some_channel
from dp_accounting.pld import privacy_loss_distribution
from reference import channel_of
from scipy import stats

from labelaudit import (
    GeometricProportions,
    LabelProportions,
    LaplaceProportions,
    RandomizedResponse,
    additive_advantage,
    label_advantage,
    multiplicative_quantile,
    poisson_binomial,
)

EPSILONS = (0.1, 1.0, 3.0)
# Privacy-loss distributions are rounded to a grid of this step, which bounds their error.
STEP = 1e-3


@pytest.fixture
def qif():
    return pytest.importorskip("qif", reason="the oracle qif has no wheel for this system")


@pytest.fixture
def risk_analysis():
    reason = "the oracle riskcal has no wheel for this system and Python"
    return pytest.importorskip("riskcal.analysis", reason=reason)


def label_vectors(eta, mechanism):
    """The secret is the whole label vector: its prior and the channel, as qif wants them."""
    vectors = np.array(list(itertools.product((0, 1), repeat=len(eta))))
    prior = np.where(vectors, eta, 1 - np.array(eta)).prod(axis=1)
    channel = np.array(channel_of(mechanism), dtype=float)[vectors.sum(axis=1)]
    return vectors, prior, np.ascontiguousarray(channel)


@pytest.mark.parametrize("eta, mechanism", [c for c in finite_cases() if len(c[0]) <= 8], ids=str)
def test_additive_advantage_is_a_g_leakage(qif, eta, mechanism):
    """qif guesses one label of the vector: the gain is 1 where the guess is right."""
    vectors, prior, channel = label_vectors(eta, mechanism)
    actual = additive_advantage([eta], mechanism)[0]
    for i in range(len(eta)):
        gain = np.array([vectors[:, i] == 0, vectors[:, i] == 1], dtype=float)
        after = qif.measure.g_vuln.posterior(gain, prior, channel)
        before = qif.measure.g_vuln.prior(gain, prior)
        assert actual[i] == pytest.approx(after - before, abs=1e-12)


@pytest.mark.parametrize("eta", BAGS[3:6], ids=str)
def test_additive_advantage_is_a_bayes_leakage(qif, eta):
    """The secret is one label, and the channel averages over the other members of its bag."""
    for mechanism in (LabelProportions(len(eta)), some_channel(len(eta))):
        matrix = np.array(channel_of(mechanism), dtype=float)
        rest = poisson_binomial.leave_one_out(eta)
        actual = additive_advantage([eta], mechanism)[0]
        for i, p in enumerate(eta):
            channel = np.array([rest[i] @ matrix[:-1], rest[i] @ matrix[1:]])
            leakage = qif.measure.bayes_vuln.add_leakage(np.array([1 - p, p]), channel)
            assert actual[i] == pytest.approx(leakage, abs=1e-12)


def response_loss(epsilon):
    """dp_accounting's randomized response replaces a label by a coin with the noise parameter."""
    noise = 2 / (1 + math.exp(epsilon))
    return privacy_loss_distribution.from_randomized_response(
        noise, num_buckets=2, value_discretization_interval=STEP
    )


def laplace_loss(epsilon):
    return privacy_loss_distribution.from_laplace_mechanism(
        1 / epsilon, sensitivity=1, value_discretization_interval=STEP
    )


def geometric_loss(epsilon):
    return privacy_loss_distribution.from_discrete_laplace_mechanism(
        epsilon, sensitivity=1, value_discretization_interval=STEP
    )


# If the attacker knows every other member, one label moves the count by one and the rest is noise.
# Four others of each label keep the count away from the ends.
KNOWN_MEMBERS = [0.0] * 4 + [1.0] * 4

LOSSES = [
    (response_loss, RandomizedResponse, []),
    (laplace_loss, lambda epsilon: LaplaceProportions(9, epsilon), KNOWN_MEMBERS),
    (geometric_loss, lambda epsilon: GeometricProportions(9, epsilon), KNOWN_MEMBERS),
]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("loss, make, others", LOSSES, ids=["response", "laplace", "geometric"])
def test_privacy_loss_has_the_same_epsilon_and_total_variation(loss, make, others, epsilon):
    distribution, mechanism = loss(epsilon), make(epsilon)
    variation = distribution.get_delta_for_epsilon(0.0)
    assert label_advantage([[0.3, *others]], mechanism)[0, 0] == pytest.approx(variation, abs=STEP)
    assert epsilon == pytest.approx(distribution.get_epsilon_for_delta(1e-9), abs=2 * STEP)
    largest = multiplicative_quantile([[0.3, *others]], mechanism, 1.0)
    assert largest == pytest.approx(epsilon, abs=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("loss, make, others", LOSSES, ids=["response", "laplace", "geometric"])
def test_attack_risk_agrees(risk_analysis, loss, make, others, epsilon):
    """riskcal's advantage is ours for a label; its Bayes risk is the least error of a guess."""
    distribution, mechanism = loss(epsilon), make(epsilon)
    advantage = risk_analysis.get_advantage_from_pld(distribution)
    assert label_advantage([[0.3, *others]], mechanism)[0, 0] == pytest.approx(advantage, abs=STEP)
    for p in (0.1, 0.3, 0.5, 0.8):
        risk = risk_analysis.get_bayes_risk_from_pld(distribution, prior=p)
        gain = min(p, 1 - p) - risk
        actual = additive_advantage([[p, *others]], mechanism)[0, 0]
        assert actual == pytest.approx(gain, abs=STEP)


def test_an_oracle_can_disagree():
    variation = laplace_loss(1.0).get_delta_for_epsilon(0.0)
    halved = label_advantage([[0.3, *KNOWN_MEMBERS]], LaplaceProportions(9, 2.0))[0, 0]
    assert abs(halved - variation) > 100 * STEP


@pytest.mark.parametrize("bag_size", [1, 8, 64, 300])
def test_count_distribution_agrees_with_scipy_and_fast_poibin(bag_size):
    eta = np.random.default_rng(bag_size).beta(2, 5, bag_size)
    actual = poisson_binomial.pmf(eta)
    other = stats.poisson_binom(eta).pmf(np.arange(bag_size + 1))
    np.testing.assert_allclose(actual, other, rtol=0, atol=1e-13)
    np.testing.assert_allclose(actual, fast_poibin.PoiBin(eta).pmf, rtol=0, atol=1e-13)
