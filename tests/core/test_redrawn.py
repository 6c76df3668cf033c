"""The same labels in bags that are drawn again: beliefs and proofs against enumeration."""

import itertools
import math

import numpy as np
import pytest
from cases import some_channel

from labelaudit import (
    CountChannel,
    GeometricProportions,
    LabelProportions,
    LaplaceProportions,
    Mechanism,
    NoRelease,
    RandomizedResponse,
    Repeated,
    posterior,
    priors,
    redrawn_attack,
)
from labelaudit.partitions import partition

# Counts up to 1 and from 2 are told apart, no more: a channel with zeros that is not a count.
CENSORED = CountChannel([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])


def mechanisms(k):
    kinds = [
        LabelProportions(k), GeometricProportions(k, 0.8), LaplaceProportions(k, 1.3),
        some_channel(k), Repeated(GeometricProportions(k, 0.5), 2), NoRelease(k),
    ]  # fmt: skip
    return kinds + [RandomizedResponse(1.2)] * (k == 1) + [CENSORED] * (k == 3)


def released(labels, mechanism, partitions, rng):
    """One release of each bag, in the shape of the partitions."""
    times, n_bags, k = np.shape(partitions)
    values = mechanism.release(labels[np.reshape(partitions, (-1, k))], rng)
    return values.reshape(times, n_bags, *values.shape[1:])


def drawn(people, k, times, rng, n_bags=None):
    return np.stack([partition(people, k, rng)[:n_bags] for _ in range(times)])


def enumerated(eta, mechanism, partitions, releases):
    """P(y_i = 1 | releases) by the sum over all labels, and which labels have one value only."""
    labels = np.array(list(itertools.product((0, 1), repeat=len(eta))))
    weights = np.where(labels == 1, eta, 1 - np.asarray(eta)).prod(axis=1)
    for bags, values in zip(partitions, releases, strict=True):
        for members, likelihood in zip(bags, mechanism.likelihood(values), strict=True):
            weights = weights * likelihood[labels[:, members].sum(axis=1)]
    possible = labels[weights > 0]
    fixed = (possible == possible[0]).all(axis=0) & (np.asarray(eta) > 0) & (np.asarray(eta) < 1)
    return weights @ labels / weights.sum(), fixed


def has_cycle(partitions, people):
    """Whether bags and people, joined where a person is in a bag, form a cycle."""
    bags = np.reshape(partitions, (-1, np.shape(partitions)[-1]))
    root = list(range(people + len(bags)))

    def find(node):
        while root[node] != node:
            node = root[node]
        return node

    for number, members in enumerate(bags):
        for person in members:
            one, other = find(person), find(people + number)
            if one == other:
                return True
            root[one] = other
    return False


def trees(k, seed):
    """Partitions of 13 people that form no cycle, two and three times."""
    rng = np.random.default_rng([k, seed])
    for times in (2, 3):
        n_bags = 2 if k < 4 else 1
        while has_cycle(partitions := drawn(13, k, times, rng, n_bags), 13):
            pass
        yield partitions, rng


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_without_cycles_beliefs_are_exact_and_proofs_complete(k, seed):
    for partitions, rng in trees(k, seed):
        for mechanism in mechanisms(k):
            eta = rng.choice([0.0, 0.05, 0.3, 0.5, 0.8, 1.0], 13, p=[0.1, 0.2, 0.2, 0.2, 0.2, 0.1])
            labels = (rng.random(13) < eta).astype(int)
            releases = released(labels, mechanism, partitions, rng)
            after = redrawn_attack(eta, mechanism, partitions, releases, tolerance=1e-13)
            expected, fixed = enumerated(eta, mechanism, partitions, releases)
            assert after.converged
            np.testing.assert_allclose(after.posterior, expected, atol=1e-10)
            np.testing.assert_array_equal(after.proven, fixed)


@pytest.mark.parametrize("k, times", [(2, 2), (2, 6), (3, 3), (4, 2), (4, 5), (6, 4)])
def test_with_cycles_every_proof_is_sound(k, times):
    proofs = 0
    for seed in range(8):
        rng = np.random.default_rng([k, times, seed])
        eta = rng.beta(1, 3, 12)
        eta[0] = seed % 2
        labels = (rng.random(12) < eta).astype(int)
        for mechanism in mechanisms(k):
            partitions = drawn(12, k, times, rng)
            releases = released(labels, mechanism, partitions, rng)
            after = redrawn_attack(eta, mechanism, partitions, releases)
            _, fixed = enumerated(eta, mechanism, partitions, releases)
            assert not (after.proven & ~fixed).any()
            np.testing.assert_array_equal(after.posterior[after.proven], labels[after.proven])
            certain = (after.posterior == 0) | (after.posterior == 1)
            np.testing.assert_array_equal(certain, after.proven | (eta == 0) | (eta == 1))
            if math.isfinite(mechanism.epsilon):
                assert not after.proven.any()
            proofs += int(after.proven.sum())
    assert proofs > 20


def slow_propagation(eta, mechanism, partitions, releases, sweeps=80):
    """Belief propagation with all shifts at once, halved steps, and sums over all labels."""
    bags = np.reshape(partitions, (-1, mechanism.bag_size))
    likelihoods = mechanism.likelihood(np.ravel(releases))
    base, shifts = np.log(eta / (1 - eta)), np.zeros(bags.shape)
    patterns = np.array(list(itertools.product((0, 1), repeat=mechanism.bag_size)))
    for _ in range(sweeps):
        total = base + np.bincount(bags.ravel(), shifts.ravel(), len(eta))
        for number, members in enumerate(bags):
            prior = 1 / (1 + np.exp(shifts[number] - total[members]))
            weights = np.where(patterns == 1, prior, 1 - prior).prod(axis=1)
            weights *= likelihoods[number][patterns.sum(axis=1)]
            after = weights @ patterns / weights.sum()
            new = np.log(after / (1 - after)) - np.log(prior / (1 - prior))
            shifts[number] = (shifts[number] + new) / 2
    return 1 / (1 + np.exp(-base - np.bincount(bags.ravel(), shifts.ravel(), len(eta))))


@pytest.mark.parametrize("mechanism", [GeometricProportions(4, 0.7), some_channel(4)])
def test_with_cycles_the_beliefs_are_the_fixed_point_of_a_slow_twin(mechanism):
    rng = np.random.default_rng(5)
    eta = rng.uniform(0.1, 0.9, 14)
    partitions = drawn(14, 4, 3, rng)
    releases = released((rng.random(14) < eta).astype(int), mechanism, partitions, rng)
    after = redrawn_attack(eta, mechanism, partitions, releases, tolerance=1e-12)
    expected = slow_propagation(eta, mechanism, partitions, releases)
    np.testing.assert_allclose(after.posterior, expected, atol=1e-9)
    exact, _ = enumerated(eta, mechanism, partitions, releases)
    # Close to the truth, and not equal to it: the bags form cycles.
    assert 1e-6 < np.abs(after.posterior - exact).max() < 0.1


@pytest.mark.parametrize("mechanism", [*mechanisms(3), LabelProportions(40), RandomizedResponse(2)])
def test_one_release_is_the_attack_on_its_bags(mechanism):
    rng = np.random.default_rng(1)
    k = mechanism.bag_size
    eta = np.append(rng.beta(1, 2, 41 * k), [0.0, 1.0, 1e-300, 1 - 1e-16])
    partitions = drawn(eta.size, k, 1, rng)
    releases = released((rng.random(eta.size) < eta).astype(int), mechanism, partitions, rng)
    after = redrawn_attack(eta, mechanism, partitions, releases)
    members = partitions[0]
    expected = posterior(eta[members], mechanism, releases[0])
    np.testing.assert_allclose(after.posterior[members], expected, atol=1e-12)
    outside = np.setdiff1d(np.arange(eta.size), members)
    np.testing.assert_allclose(after.posterior[outside], eta[outside], atol=1e-15)


def test_nothing_is_learned_where_nothing_new_is_released():
    rng = np.random.default_rng(2)
    eta = rng.random(60)
    labels = (rng.random(60) < eta).astype(int)
    partitions = drawn(60, 4, 5, rng)
    for mechanism in (NoRelease(4), GeometricProportions(4, 0.0)):
        after = redrawn_attack(eta, mechanism, partitions, np.zeros((5, 15)))
        np.testing.assert_allclose(after.posterior, eta, atol=1e-15)
        assert not after.proven.any() and after.converged
    # The same bags every week, their members in another order: without noise as good as once.
    fixed = np.stack([rng.permuted(partitions[0], axis=1)[rng.permutation(15)] for _ in range(5)])
    once = redrawn_attack(eta, LabelProportions(4), partitions[:1], labels[partitions[:1]].mean(-1))
    again = redrawn_attack(eta, LabelProportions(4), fixed, labels[fixed].mean(-1))
    np.testing.assert_allclose(again.posterior, once.posterior, atol=1e-12)
    np.testing.assert_array_equal(again.proven, once.proven)
    empty = redrawn_attack(eta, LabelProportions(4), np.zeros((0, 15, 4)), np.zeros((0, 15)))
    np.testing.assert_allclose(empty.posterior, eta, atol=1e-15)
    assert redrawn_attack([], LabelProportions(2), np.zeros((3, 0, 2)), np.zeros((3, 0))).converged


def test_bags_that_elimination_makes_equal_count_once():
    """Persons 0 and 1 share both bags; all others are proven, so the second bag says nothing."""
    eta = [0.3, 0.6, 0.5, 0.5, 0.5, 0.5]
    partitions = [[[0, 1, 2], [3, 4, 5]], [[0, 1, 3], [2, 4, 5]]]
    releases = np.array([[1, 0], [1, 0]]) / 3
    after = redrawn_attack(eta, LabelProportions(3), partitions, releases)
    expected, _ = enumerated(np.array(eta), LabelProportions(3), partitions, releases)
    np.testing.assert_allclose(after.posterior, expected, atol=1e-12)
    assert after.proven.tolist() == [False, False, True, True, True, True]


@pytest.mark.parametrize("times", [1, 2])
def test_equal_bags_are_one_bag_with_repeated_releases(times):
    rng = np.random.default_rng(3)
    eta = rng.random(30)
    base = GeometricProportions(3, 0.9)
    mechanism = base if times == 1 else Repeated(base, times)
    partitions = np.repeat(drawn(30, 3, 1, rng), 4, axis=0)
    releases = released((rng.random(30) < eta).astype(int), mechanism, partitions, rng)
    after = redrawn_attack(eta, mechanism, partitions, releases)
    together = np.moveaxis(releases.reshape(4, 10, times), 0, 1).reshape(10, -1)
    expected = posterior(eta[partitions[0]], Repeated(base, 4 * times), together)
    np.testing.assert_allclose(after.posterior[partitions[0]], expected, atol=1e-12)


def reconstruction(prior, mechanism, times, seed=0, people=16_000):
    rng = np.random.default_rng(seed)
    eta = prior.sample((people,), rng)
    labels = (rng.random(people) < eta).astype(int)
    partitions = drawn(people, mechanism.bag_size, times, rng)
    after = redrawn_attack(eta, mechanism, partitions, released(labels, mechanism, partitions, rng))
    np.testing.assert_array_equal(after.posterior[after.proven], labels[after.proven])
    assert after.converged
    return after.proven.mean(), ((after.posterior >= 0.5) == labels).mean(), after.posterior


def test_rare_labels_fall_by_elimination():
    """After one release the proven labels are those of bags of zeros: probability (30/32)^8."""
    once, *_ = reconstruction(priors.Beta(2, 30), LabelProportions(8), 1)
    # 2,000 bags: four standard errors, a false alarm in less than one of ten thousand seeds.
    assert abs(once - (30 / 32) ** 8) < 4 * math.sqrt(0.24 / 2000)
    assert 0.82 < reconstruction(priors.Beta(2, 30), LabelProportions(8), 2)[0] < 0.86
    assert reconstruction(priors.Beta(2, 30), LabelProportions(8), 3)[0] > 0.999


def test_even_labels_fall_by_belief():
    for times, low, high in ((1, 0.78, 0.81), (2, 0.83, 0.86), (3, 0.99, 1), (5, 1, 1)):
        proven, accuracy, _ = reconstruction(priors.Uniform(), LabelProportions(8), times)
        assert low <= accuracy <= high and proven < 0.06


@pytest.mark.parametrize("times, low, high", [(1, 0.935, 0.945), (5, 0.94, 0.96), (20, 0.99, 1)])
def test_noise_delays_and_beliefs_are_calibrated(times, low, high):
    mechanism = GeometricProportions(8, 1.0)
    proven, accuracy, beliefs = reconstruction(priors.Beta(2, 30), mechanism, times)
    assert proven == 0 and low < accuracy < high
    confidence = np.maximum(beliefs, 1 - beliefs).mean()
    # Four standard errors of a proportion of 16,000, and 0.002 for the cycles.
    assert abs(accuracy - confidence) < 4 * math.sqrt(0.06 / 16_000) + 0.002


def test_damping_lets_few_people_in_many_bags_settle():
    """With 48 people in bags of 16 cycles are short: priors may swing until steps are cut."""
    settled = {0.0: 0, 0.5: 0}
    for seed, damping in itertools.product(range(20), settled):
        rng = np.random.default_rng(seed)
        eta = rng.random(48)
        labels = (rng.random(48) < eta).astype(int)
        partitions = drawn(48, 16, 6, rng)
        releases = labels[partitions].mean(-1)
        after = redrawn_attack(eta, LabelProportions(16), partitions, releases, damping=damping)
        settled[damping] += after.converged
    assert settled[0.5] > settled[0.0] and settled[0.5] >= 17


def test_an_iteration_limit_is_reported():
    rng = np.random.default_rng(0)
    eta = rng.random(80)
    partitions = drawn(80, 8, 3, rng)
    labels = (rng.random(80) < eta).astype(int)
    after = redrawn_attack(
        eta, LabelProportions(8), partitions, labels[partitions].mean(-1), most_iterations=1
    )
    assert after.iterations == 1 and not after.converged


class Faint(Mechanism):
    """Label-DP at a large epsilon, with likelihoods that leave the range of a float."""

    bag_size, epsilon = 2, 2000.0

    def likelihood(self, releases):
        with np.errstate(under="ignore"):
            return np.exp(-2000.0 * np.abs(np.asarray(releases)[:, None] * 2 - np.arange(3)))


def test_a_likelihood_out_of_range_proves_nothing():
    after = redrawn_attack([0.3, 0.4], Faint(), [[[0, 1]]], [[0.0]])
    assert not after.proven.any() and 0 < after.posterior.max() < 1e-12


LLP = LabelProportions(2)
PAIR = [[[0, 1]]]


COINS = [0.5, 0.5]
TWICE = [[[0, 1], [2, 3]], [[0, 2], [3, 2]]]
WEEKS = [[[0, 1], [2, 3]], [[0, 2], [1, 3]]]
# The arguments after `eta` and the mechanism, and what is wrong with one of them.
INVALID = {
    r"shape \(people,\)": ([COINS], LLP, PAIR, [[1]]),
    r"eta\[1\] is 1.5": ([0.5, 1.5], LLP, PAIR, [[1]]),
    r"eta\[1\] is nan": ([0.5, np.nan], LLP, PAIR, [[1]]),
    r"shape \(times, n_bags, 2\) for bag size 2, not \(1, 2\)": (COINS, LLP, [[0, 1]], [[1]]),
    r"0 to 1, but partitions\[0, 0, 1\] is 2": (COINS, LLP, [[[0, 2]]], [[1]]),
    r"partitions\[0, 0, 1\] is -1": (COINS, LLP, [[[0, -1]]], [[1]]),
    r"partitions\[0, 0, 1\] is 0.5": (COINS, LLP, [[[0, 0.5]]], [[1]]),
    "partition 1 holds person 2 2 times": (COINS * 2, LLP, TWICE, [[1, 1]]),
    r"releases must have shape \(1, 1\) to fit the partitions, not \(1,\)": (COINS, LLP, PAIR, [1]),
    "multiple of 1/2": (COINS, LLP, PAIR, [[0.3]]),
    "be finite": (COINS, LLP, PAIR, [[np.nan]]),
    "no labels fit the release of bag 0 in partition 0": ([1.0, 0.5], LLP, PAIR, [[0.0]]),
    # Bag 0 of the second week makes person 2 positive, bag 1 of the first excludes it.
    r"no labels fit the release of bag \d in": (COINS * 2, LLP, WEEKS, [[0.5, 0], [1, 0]]),
    "no labels fit the release of bag 0 in partition ": (COINS, LLP, PAIR * 2, [[0.5], [1.0]]),
}


@pytest.mark.parametrize("message, arguments", INVALID.items())
def test_invalid_input_is_named(message, arguments):
    with pytest.raises(ValueError, match=message):
        redrawn_attack(*arguments)


@pytest.mark.parametrize("option", [{"damping": 1}, {"tolerance": -1}, {"most_iterations": 0}])
def test_invalid_options_are_named(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        redrawn_attack(COINS, LLP, PAIR, [[1]], **option)
    with pytest.raises(TypeError, match="must be a Mechanism"):
        redrawn_attack(COINS, "LLP", PAIR, [[1]])
