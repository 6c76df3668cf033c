"""Advantages against enumeration, closed forms and quadrature."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from cases import BAGS, exact, finite_cases, laplace_cases, relative_error, some_channel
from reference import (
    Bag,
    channel_of,
    laplace_excess,
    laplace_shift_cdf,
    numpy_advantage,
    precise_pmf,
)

from labelaudit import (
    CountChannel,
    GeometricProportions,
    LabelProportions,
    LaplaceProportions,
    NoRelease,
    RandomizedResponse,
    additive_advantage,
    label_advantage,
    multiplicative_cdf,
    multiplicative_quantile,
    worth,
)
from labelaudit.advantage import measured


@pytest.mark.parametrize("eta, mechanism", finite_cases(), ids=str)
def test_additive_and_label_advantage_by_enumeration(eta, mechanism):
    bag, channel = Bag(exact(eta)), channel_of(mechanism)
    additive = additive_advantage([eta], mechanism)[0]
    conditional = label_advantage([eta], mechanism)[0]
    for i, p in enumerate(exact(eta)):
        assert abs(additive[i] - bag.additive(i, channel)) <= 1e-13
        if 0 < p < 1:
            assert abs(conditional[i] - bag.conditional(i, channel)) <= 1e-13


@pytest.mark.parametrize("eta, mechanism", finite_cases() + laplace_cases(), ids=str)
def test_measures_of_one_computation_are_those_of_several(eta, mechanism):
    together = measured([eta], mechanism, "worth", "additive", "conditional")
    alone = [measure([eta], mechanism) for measure in (worth, additive_advantage, label_advantage)]
    assert np.abs(together - alone).max() <= 1e-15


@pytest.mark.parametrize("eta, mechanism", laplace_cases(), ids=str)
def test_laplace_advantages_by_quadrature(eta, mechanism):
    bag, epsilon = Bag(exact(eta)), mechanism.epsilon
    additive = additive_advantage([eta], mechanism)[0]
    conditional = label_advantage([eta], mechanism)[0]
    with mpmath.workprec(80):
        for i in sorted({len(eta) // 2, len(eta) - 1}):
            p = bag.eta[i]
            excess = laplace_excess(bag.ones[i], bag.zeros[i], epsilon)
            assert abs(additive[i] - (excess - max(0, 2 * p - 1))) <= 1e-13
            if 0 < p < 1:
                ones, zeros = [m / p for m in bag.ones[i]], [m / (1 - p) for m in bag.zeros[i]]
                assert abs(conditional[i] - laplace_excess(ones, zeros, epsilon)) <= 1e-13


def test_label_advantage_of_a_known_label_does_not_depend_on_its_prior():
    """Total variation conditions on the label, so it is defined where the prior is 0 or 1 too."""
    for mechanism in (GeometricProportions(3, 1.0), LaplaceProportions(3, 1.0), some_channel(3)):
        values = [label_advantage([[p, 0.4, 0.7]], mechanism)[0, 0] for p in (0.0, 0.3, 1.0)]
        assert values == pytest.approx([values[0]] * 3, abs=1e-13)
        assert values[0] > 0.05


def test_randomized_response_has_the_closed_form_of_theorem_3_5():
    eta = np.linspace(0, 1, 201)
    for epsilon in (1e-3, 0.5, 1.0, 4.0, 50.0):
        flip = 1 / (1 + math.exp(epsilon))
        expected = np.maximum(np.minimum(eta, 1 - eta) - flip, 0)
        actual = additive_advantage(eta, RandomizedResponse(epsilon))
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-15)
        actual = label_advantage(eta, RandomizedResponse(epsilon))
        np.testing.assert_allclose(actual, math.tanh(epsilon / 2), rtol=0, atol=1e-15)


def closed_form(n, p):
    """EAdv of label proportions where every prior is p <= 1/2: p P(Z >= m) - (1-p) P(Z > m)."""
    others = precise_pmf([p] * (n - 1))
    p, m = mpmath.mpf(p), n // 2
    return p * mpmath.fsum(others[m:]) - (1 - p) * mpmath.fsum(others[m + 1 :])


@pytest.mark.parametrize("bag_size", [1, 2, 3, 8, 33, 64, 257])
@pytest.mark.parametrize("p", [1e-9, 0.06, 0.3, 0.5])
def test_label_proportions_of_equal_priors_have_a_closed_form(bag_size, p):
    expected = closed_form(bag_size, p)
    actual = additive_advantage([[p] * bag_size], LabelProportions(bag_size))[0]
    assert max(abs(value - expected) for value in actual) <= 1e-13
    mirrored = additive_advantage([[1 - p] * bag_size], LabelProportions(bag_size))[0]
    assert max(abs(value - expected) for value in mirrored) <= 1e-13
    if p == 0.5:
        central = math.comb(bag_size - 1, (bag_size - 1) // 2)
        assert relative_error(actual[0], mpmath.mpf(central) / 2**bag_size) <= 1e-12


def mixed_bag(bag_size, seed):
    rng = np.random.default_rng(seed)
    eta = rng.beta(2, 5, bag_size)
    eta[: bag_size // 8] = rng.choice([0.0, 1.0, 1e-9, 1 - 1e-9, 0.5], bag_size // 8)
    return rng.permutation(eta)


@pytest.mark.parametrize("bag_size", [64, 512, 2000])
def test_additive_advantage_of_large_bags(bag_size):
    eta = mixed_bag(bag_size, bag_size)
    kinds = [LabelProportions(bag_size), GeometricProportions(bag_size, 0.7)]
    if bag_size <= 512:
        kinds.append(GeometricProportions(bag_size, 0.01))
    for mechanism in kinds:
        channel = np.array(channel_in_floats(mechanism))
        expected = numpy_advantage(eta, channel, range(40))
        actual = additive_advantage(eta[None], mechanism)[0]
        assert np.isfinite(actual).all()
        np.testing.assert_allclose(actual[:40], expected, rtol=0, atol=1e-13)


def channel_in_floats(mechanism):
    k = mechanism.bag_size
    if math.isinf(mechanism.epsilon):
        return np.eye(k + 1)
    q = math.exp(-mechanism.epsilon)
    distance = np.abs(np.subtract.outer(np.arange(k + 1), np.arange(k + 1)))
    channel = (1 - q) / (1 + q) * q**distance
    channel[:, [0, k]] /= 1 - q
    return channel


@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_laplace_advantage_of_a_larger_bag(epsilon):
    eta = mixed_bag(24, 3)
    actual = additive_advantage(eta[None], LaplaceProportions(24, epsilon))[0]
    with mpmath.workprec(80):
        for i in (0, 7, 15):
            p = mpmath.mpf(float(eta[i]))
            rest = precise_pmf(np.delete(eta, i))
            one, zero = [0, *(p * m for m in rest)], [*((1 - p) * m for m in rest), 0]
            expected = laplace_excess(one, zero, epsilon) - max(0, 2 * p - 1)
            assert abs(actual[i] - expected) <= 1e-12


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 300.0, 1000.0])
def test_advantages_at_extreme_epsilon(epsilon):
    eta = [0.5, 0.4, 0.7, 1e-9]
    bag = Bag(exact(eta))
    channel = channel_of(GeometricProportions(4, epsilon))
    for mechanism in (GeometricProportions(4, epsilon), LaplaceProportions(4, epsilon)):
        actual = additive_advantage([eta], mechanism)[0]
        assert np.isfinite(actual).all()
        if isinstance(mechanism, GeometricProportions):
            for i in range(4):
                assert abs(actual[i] - bag.additive(i, channel)) <= 1e-15
        else:
            assert (actual <= additive_advantage([eta], LabelProportions(4))[0] + 1e-13).all()


def test_advantages_vanish_where_nothing_is_released():
    eta = np.random.default_rng(0).random((10, 4))
    constant = CountChannel(np.tile([0.2, 0.8], (5, 1)))
    for mechanism in (
        NoRelease(4),
        GeometricProportions(4, 0.0),
        LaplaceProportions(4, 0.0),
        constant,
    ):
        assert not additive_advantage(eta, mechanism).any()
        assert not label_advantage(eta, mechanism).any()
        assert multiplicative_quantile(eta, mechanism, 1.0) == 0
        assert multiplicative_cdf(eta, mechanism, [-1.0, 0.0]).tolist() == [0, 1]


def shift_atoms(etas, mechanism):
    """All (|I|, weight) over bags, examples and releases, sorted, the weights summing to one."""
    channel = channel_of(mechanism)
    total = sum(len(eta) for eta in etas)
    pairs = []
    for eta in etas:
        bag = Bag(exact(eta))
        for i in range(len(eta)):
            pairs += [(abs(shift), weight / total) for shift, weight in bag.shifts(i, channel)]
    return sorted(pairs)


def groups(atoms):
    """Distinct values of |I| (to 1e-9) with the probability of being at most each."""
    actual, below = [], mpmath.mpf(0)
    for value, weight in atoms:
        below += weight
        if actual and (value == actual[-1][0] or value - actual[-1][0] < 1e-9):
            actual[-1] = (actual[-1][0], below)
        else:
            actual.append((value, below))
    return actual


@pytest.mark.parametrize("eta, mechanism", finite_cases(), ids=str)
def test_distribution_of_the_multiplicative_advantage_by_enumeration(eta, mechanism):
    """The CDF between its steps, and the quantile at levels inside them, for two bags at once."""
    other = [0.5 * p + 0.2 for p in eta[::-1]]
    steps = groups(shift_atoms([eta, other], mechanism))
    values, below = [float(v) for v, _ in steps], [float(p) for _, p in steps]
    between = [(a + b) / 2 for a, b in itertools.pairwise(values) if b < math.inf]
    if values[-1] < math.inf:
        between.append(values[-1] + 1)
    actual = multiplicative_cdf([eta, other], mechanism, between)
    np.testing.assert_allclose(actual, below[: len(between)], rtol=0, atol=1e-12)
    heavy = np.flatnonzero(np.diff([0.0, *below]) > 1e-6)
    for step in np.unique(heavy[np.linspace(0, len(heavy) - 1, 4).astype(int)]):
        middle = (below[step] + (below[step - 1] if step else 0)) / 2
        actual = multiplicative_quantile([eta, other], mechanism, middle)
        assert actual == pytest.approx(values[step], abs=1e-9)


@pytest.mark.parametrize("eta", BAGS[:4] + BAGS[6:7], ids=str)
@pytest.mark.parametrize("epsilon", [0.3, 2.0, 12.0])
def test_distribution_of_the_multiplicative_advantage_under_laplace_noise(eta, epsilon):
    bag, mechanism = Bag(exact(eta)), LaplaceProportions(len(eta), epsilon)
    points = [0.0, 0.1 * epsilon, 0.5 * epsilon, 0.97 * epsilon, epsilon]
    with mpmath.workprec(80):
        expected = [
            float(mpmath.fsum(laplace_shift_cdf(bag, i, t, epsilon) for i in range(len(eta))))
            / len(eta)
            for t in points
        ]
    actual = multiplicative_cdf([eta], mechanism, points)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-10)
    level = float(actual[2])
    assert multiplicative_quantile([eta], mechanism, level) == pytest.approx(points[2], rel=1e-8)
    assert multiplicative_quantile([eta], mechanism, 1.0) == pytest.approx(epsilon, rel=1e-8)


@pytest.mark.parametrize("epsilon", [1.0, 20.0, 301.0])
@pytest.mark.parametrize("p", [1e-300, 0.1])
def test_distribution_under_laplace_noise_beyond_the_likely_counts(epsilon, p):
    """Shifts that only very unlikely counts could cause, for labels and mirrored labels."""
    points = np.linspace(0, 1, 9) * epsilon
    for bag_size in (1, 64):
        eta, mechanism = np.full((3, bag_size), p), LaplaceProportions(bag_size, epsilon)
        actual = multiplicative_cdf(eta, mechanism, points)
        assert (np.diff(actual) >= 0).all()
        assert actual[-1] == pytest.approx(1, abs=1e-12)
        if p > 1e-16:
            mirrored = multiplicative_cdf(1 - eta, mechanism, points)
            np.testing.assert_allclose(actual, mirrored, rtol=0, atol=1e-10)


@pytest.mark.parametrize("epsilon", [1000.0, math.inf])
@pytest.mark.parametrize("p", [1e-17, 1e-40, 1e-80, 1e-240])
def test_a_count_of_hardly_any_mass_can_set_the_shift_at_a_likely_one(p, epsilon):
    """Of the pair (p, 1/2) half of the releases are one: then the other label was 0 but for p."""
    pair, mechanism, t = [[p, 0.5]], GeometricProportions(2, epsilon), -math.log(p)
    actual = multiplicative_cdf(pair, mechanism, [t - 1e-9, t + 1e-9])
    assert actual == pytest.approx([0.25, 0.5], abs=1e-13)
    assert multiplicative_quantile(pair, mechanism, 0.4) == pytest.approx(t, rel=1e-14)


@pytest.mark.parametrize("kind", [GeometricProportions, LaplaceProportions])
def test_priors_out_of_range_count_as_faint_ones(kind):
    mechanism, levels = kind(4, 1.0), (0.2, 0.3, 0.4, 0.7)
    bags = [[[p, p, 0.3, 0.5]] for p in (1e-100, 1e-307, 5e-324)]
    actual = [[multiplicative_quantile(bag, mechanism, q) for q in levels] for bag in bags]
    assert actual[1] == pytest.approx(actual[0], rel=1e-9)
    assert actual[2] == pytest.approx(actual[0], rel=1e-9)
    masses = [multiplicative_cdf(bag, mechanism, [0.1, 0.5, 0.8]) for bag in bags]
    np.testing.assert_allclose(masses[1:], [masses[0]] * 2, atol=1e-13)


def test_quantile_is_the_smallest_point_where_the_cdf_reaches_its_level():
    eta = np.random.default_rng(2).random((7, 5))
    for mechanism in (GeometricProportions(5, 1.0), LaplaceProportions(5, 1.0), some_channel(5)):
        for q in (0.1, 0.5, 0.9, 0.98):
            t = multiplicative_quantile(eta, mechanism, q)
            at, before = multiplicative_cdf(eta, mechanism, [t, np.nextafter(t, 0)])
            assert at >= q - 1e-12 > before


@pytest.mark.parametrize("epsilon", [1e-12, 0.5, 30.0, 1000.0])
def test_no_quantile_exceeds_epsilon(epsilon):
    eta = [[0.3, 0.4]]
    for mechanism in (GeometricProportions(2, epsilon), LaplaceProportions(2, epsilon)):
        assert multiplicative_quantile(eta, mechanism, 1.0) <= epsilon
        assert multiplicative_cdf(eta, mechanism, [epsilon]) == pytest.approx([1.0], abs=1e-12)
    actual = multiplicative_quantile([0.3], RandomizedResponse(epsilon), 0.5)
    assert actual == pytest.approx(epsilon, rel=1e-14, abs=1e-15)


def test_shapes_and_order_of_points():
    eta = [[0.3, 0.4]]
    points = np.array([[2.0, 0.1], [0.1, -1.0]])
    actual = multiplicative_cdf(eta, GeometricProportions(2, 1.0), points)
    assert actual.shape == points.shape
    assert actual[0, 1] == actual[1, 0]
    assert actual[1, 1] == 0
    assert multiplicative_cdf(eta, LabelProportions(2), 5.0).shape == ()
    assert additive_advantage(np.zeros((0, 3)), GeometricProportions(3, 1.0)).shape == (0, 3)
    assert label_advantage([0.2, 0.3], RandomizedResponse(1.0)).shape == (2,)


@pytest.mark.parametrize(
    "right, mutant",
    [
        (RandomizedResponse(1.0), RandomizedResponse(1.1)),
        (GeometricProportions(5, 1.0), GeometricProportions(5, 1.1)),
        (LabelProportions(5), GeometricProportions(5, 3.0)),
    ],
    ids=str,
)
def test_a_wrong_channel_is_noticed(right, mutant):
    eta = BAGS[0] if right.bag_size == 1 else BAGS[5]
    bag = Bag(exact(eta))
    truth = [float(bag.additive(i, channel_of(right))) for i in range(len(eta))]
    assert np.abs(additive_advantage([eta], right)[0] - truth).max() <= 1e-13
    assert np.abs(additive_advantage([eta], mutant)[0] - truth).max() > 1e-3


def test_laplace_shift_of_a_vanishing_prior_does_not_depend_on_it():
    # In a bag of one the likelihood ratio of a release has nothing to do with the prior.
    mechanism = LaplaceProportions(1, 1.0)
    points = np.array([0.1, 0.5, 0.9])
    ordinary = multiplicative_cdf([[0.01]], mechanism, points)
    for prior in (1e-20, 1e-40, 1e-200):
        vanishing = multiplicative_cdf([[prior]], mechanism, points)
        # The release then has the distribution it has at label 0.
        assert np.allclose(vanishing, multiplicative_cdf([[1e-12]], mechanism, points), atol=1e-9)
        assert np.abs(vanishing - ordinary).max() < 0.01
