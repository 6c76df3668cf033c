"""More than two classes: against brute force over all c^k labels, and against binary labels."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import labelaudit
from labelaudit import LabelProportions, RandomizedResponse, bounds, multiclass
from labelaudit.multiclass import ClassProportions, ClassRandomizedResponse
from labelaudit.poisson_multinomial import Splits

CASES = [(2, 1), (2, 5), (3, 1), (3, 2), (3, 5), (4, 3), (5, 4), (40, 1), (20, 2), (9, 3)]


def brute_force(eta, channel):
    """P(y_i = a, release) for one bag, by enumeration: {release: array (members, classes)}."""
    k, classes = len(eta), len(eta[0])
    joint = {}
    for labels in itertools.product(range(classes), repeat=k):
        weight = math.prod(eta[i][label] for i, label in enumerate(labels))
        for release, probability in channel(labels):
            table = joint.setdefault(release, [[0] * classes for _ in range(k)])
            for i, label in enumerate(labels):
                table[i][label] += weight * probability
    return joint


def counts_channel(classes):
    def channel(labels):
        yield tuple(labels.count(a) for a in range(classes)), 1

    return channel


def response_channel(classes, ratio, total=None):
    """c-ary randomized response with e^epsilon = ratio, from its definition."""
    keep = ratio / (total or classes - 1 + ratio)

    def channel(labels):
        for release in range(classes):
            yield release, keep if release == labels[0] else (1 - keep) / (classes - 1)

    return channel


def brute_advantage(joint, i, prior):
    return sum(max(table[i]) for table in joint.values()) - max(prior)


def random_priors(rng, n_bags, size, classes):
    """Distributions from mild to extreme; the first bag is uniform, the second has zeros."""
    shape = rng.choice([0.2, 1.0, 8.0], (n_bags, 1, 1))
    eta = rng.gamma(np.broadcast_to(shape, (n_bags, size, classes))) + 1e-12
    eta[0] = 1.0
    eta[1, :, 0] = 0.0
    eta[2, 0] = np.eye(classes)[-1]
    return eta / eta.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize(("classes", "size"), CASES)
def test_class_proportions_against_brute_force(classes, size):
    eta = random_priors(np.random.default_rng(classes * 10 + size), 5, size, classes)
    mechanism = ClassProportions(classes, size)
    gains = multiclass.additive_advantage(eta, mechanism)
    assert gains.shape == (5, size)
    for bag, gain in zip(eta, gains, strict=True):
        joint = brute_force(bag, counts_channel(classes))
        expected = [brute_advantage(joint, i, bag[i]) for i in range(size)]
        np.testing.assert_allclose(gain, expected, atol=1e-14)
        possible = {r: np.array(t) for r, t in joint.items() if np.sum(t) > 0}
        releases = np.array(list(possible)) / size
        beliefs = multiclass.posterior(np.tile(bag, (len(releases), 1, 1)), mechanism, releases)
        for belief, table in zip(beliefs, possible.values(), strict=True):
            np.testing.assert_allclose(belief, table / table.sum(axis=1, keepdims=True), atol=1e-13)


@pytest.mark.parametrize("classes", [2, 3, 4, 7])
@pytest.mark.parametrize("ratio", [1, 2, 9])
def test_randomized_response_is_the_formula_in_fractions(classes, ratio):
    weights = [Fraction(a * a + 1) for a in range(classes)]
    for weighted in (weights, [Fraction(1)] * classes, [*weights[:-1], Fraction(0)]):
        prior = [weight / sum(weighted) for weight in weighted]
        joint = brute_force([prior], response_channel(classes, Fraction(ratio)))
        exact = brute_advantage(joint, 0, prior)
        total = classes - 1 + ratio
        top = prior.index(max(prior))
        formula = sum(
            max(Fraction(0), ratio * p - max(prior)) / total
            for a, p in enumerate(prior)
            if a != top
        )
        assert formula == exact
        mechanism = ClassRandomizedResponse(classes, math.log(ratio))
        eta = np.array([prior], dtype=float)
        gain = multiclass.additive_advantage(eta, mechanism)
        assert gain.shape == (1,)
        assert gain[0] == pytest.approx(float(exact), abs=1e-14)
        for release, table in joint.items():
            belief = multiclass.posterior(eta, mechanism, [release])[0]
            np.testing.assert_allclose(belief, [float(p / sum(table[0])) for p in table[0]])


def test_a_number_of_classes_off_by_one_breaks_the_formula():
    prior = [Fraction(1, 3)] * 3
    gain = multiclass.additive_advantage([[1 / 3] * 3], ClassRandomizedResponse(3, math.log(3)))[0]
    for total in (4, 6):
        joint = brute_force([prior], response_channel(3, Fraction(3), Fraction(total)))
        assert abs(float(brute_advantage(joint, 0, prior)) - gain) > 0.05


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_two_classes_are_binary_labels(size):
    rng = np.random.default_rng(size)
    eta = rng.beta(0.6, 0.9, (20, size))
    pairs = np.stack([1 - eta, eta], axis=-1)
    mechanism, binary = ClassProportions(2, size), LabelProportions(size)
    expected = labelaudit.additive_advantage(eta, binary)
    np.testing.assert_allclose(
        multiclass.additive_advantage(pairs, mechanism), expected, atol=1e-13
    )
    labels = (rng.random(eta.shape) < eta).astype(int)
    releases = mechanism.release(labels, rng)
    np.testing.assert_allclose(releases[:, 1], binary.release(labels, rng))
    beliefs = multiclass.posterior(pairs, mechanism, releases)
    expected = labelaudit.posterior(eta, binary, releases[:, 1])
    np.testing.assert_allclose(beliefs[..., 1], expected, atol=1e-11)


def test_two_classes_are_binary_randomized_response():
    eta = np.linspace(0, 1, 41)
    pairs = np.stack([1 - eta, eta], axis=-1)
    for epsilon in (0.0, 0.7, 3.0, math.inf):
        expected = labelaudit.additive_advantage(eta, RandomizedResponse(epsilon))
        gains = multiclass.additive_advantage(pairs, ClassRandomizedResponse(2, epsilon))
        np.testing.assert_allclose(gains, expected, atol=1e-15)


def test_null_and_extremes():
    eta = random_priors(np.random.default_rng(3), 6, 1, 4)
    assert np.all(multiclass.additive_advantage(eta, ClassRandomizedResponse(4, 0.0)) == 0)
    full = multiclass.additive_advantage(eta, ClassRandomizedResponse(4, math.inf))
    np.testing.assert_allclose(full, 1 - eta.max(axis=-1), atol=1e-15)
    np.testing.assert_allclose(
        multiclass.additive_advantage(eta, ClassProportions(4, 1)), full, atol=1e-15
    )
    certain = np.tile(np.eye(3)[[0, 1, 2, 2]], (1, 1, 1))
    assert np.all(multiclass.additive_advantage(certain, ClassProportions(3, 4)) == 0)
    empty = multiclass.additive_advantage(np.empty((0, 4, 3)), ClassProportions(3, 4))
    assert empty.shape == (0, 4)
    same = multiclass.posterior(eta, ClassRandomizedResponse(4, 0.0), [0, 1, 2, 3, 0, 3])
    np.testing.assert_allclose(same, eta)


def test_releases_follow_the_channel():
    """400,000 draws; a fraction is off by more than 5 standard errors in one run of 10^5."""
    mechanism = ClassRandomizedResponse(4, 1.2)
    rng = np.random.default_rng(11)
    labels = np.repeat(np.arange(4), 100_000)
    releases = mechanism.release(labels, rng)
    for label in range(4):
        fractions = np.bincount(releases[labels == label].astype(int), minlength=4) / 100_000
        row = mechanism.channel()[label]
        assert np.all(np.abs(fractions - row) < 5 * np.sqrt(row * (1 - row) / 100_000))
        mean = mechanism.debias(releases[labels == label]).mean(axis=0)
        np.testing.assert_allclose(mean, np.eye(4)[label], atol=0.02)


def test_an_attack_gains_what_is_promised():
    """Guess 60,000 bags: the fraction of right ones is within 5 standard errors of the formula."""
    rng = np.random.default_rng(5)
    mechanism = ClassProportions(3, 4)
    bag = rng.dirichlet(np.ones(3), 4)
    eta = np.tile(bag, (60_000, 1, 1))
    labels = (rng.random(eta.shape[:2])[..., None] > eta.cumsum(axis=-1)[..., :-1]).sum(axis=-1)
    releases = mechanism.release(labels, rng)
    guess = multiclass.bayes_guess(eta, mechanism, releases)
    promised = multiclass.additive_advantage(eta[:1], mechanism)[0] + bag.max(axis=-1)
    error = np.sqrt(promised * (1 - promised) / len(eta))
    assert np.all(np.abs((guess == labels).mean(axis=0) - promised) < 5 * error)


def test_the_channel_is_label_private_and_no_more():
    for classes, epsilon in itertools.product((2, 3, 10), (0.1, 2.0)):
        logs = np.log(ClassRandomizedResponse(classes, epsilon).channel())
        largest = np.abs(logs[:, None] - logs[None]).max()
        assert largest == pytest.approx(epsilon)


@pytest.mark.parametrize("classes", [2, 3, 4, 9])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.5, 6.0])
def test_the_bound_for_any_number_of_classes(classes, epsilon):
    rng = np.random.default_rng(classes)
    bound = bounds.label_dp_classes_bound(epsilon, classes)
    assert bound <= math.tanh(epsilon / 4) + 1e-15
    largest = 0.0
    for _ in range(400):
        eta = rng.dirichlet(np.full(classes, rng.choice([0.3, 1, 20])))
        outputs = int(rng.integers(2, 6))
        channel = rng.choice([1.0, math.exp(epsilon)], (classes, outputs))
        channel = np.hstack([channel, (channel.sum(axis=1).max() - channel.sum(axis=1))[:, None]])
        channel /= channel.sum(axis=1, keepdims=True)
        # The balancing output may break privacy; only private channels count.
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.log(channel.max(axis=0) / channel.min(axis=0))
        if not np.all(np.nan_to_num(spread) <= epsilon + 1e-12):
            continue
        gain = (eta[:, None] * channel).max(axis=0).sum() - eta.max()
        largest = max(largest, float(gain))
    uniform = np.full((1, classes), 1 / classes)
    response = multiclass.additive_advantage(uniform, ClassRandomizedResponse(classes, epsilon))[0]
    assert largest <= bound + 1e-12 and response <= bound + 1e-12
    if classes < 1 + math.exp(epsilon / 2):
        assert response == pytest.approx(float(bound), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.4, 1.0, 3.7, 20.0, math.inf])
def test_the_bound_for_unlimited_classes_is_the_hyperbolic_tangent(epsilon):
    for classes in (math.inf, 10**9):
        bound = bounds.label_dp_classes_bound(epsilon, classes)
        assert bound == pytest.approx(math.tanh(epsilon / 4), rel=1e-8, abs=0)


def test_the_bound_for_two_classes_does_not_do_for_three():
    gain = multiclass.additive_advantage([[1 / 3] * 3], ClassRandomizedResponse(3, 1.0))[0]
    assert bounds.label_dp_half_bound(1.0) < gain < bounds.label_dp_classes_bound(1.0, 3)


@pytest.mark.parametrize(("classes", "size"), [(2, 7), (3, 1), (3, 6), (5, 4), (12, 2)])
def test_splits_are_numbered_without_gaps(classes, size):
    """m people have the first numbers, and one more in a class leads to the number it should."""
    splits = Splits(1, size, classes)
    for people in range(size + 1):
        every = itertools.combinations_with_replacement(range(classes), people)
        counts = np.array([[labels.count(a) for a in range(classes)] for labels in every])
        numbers = splits.numbers(counts)
        assert sorted(numbers) == list(range(splits.sizes[people]))
        for a in range(classes if people < size else 0):
            further = splits.numbers(counts + np.eye(classes, dtype=int)[a])
            np.testing.assert_array_equal(splits.after[a][numbers], further)


def test_many_classes_in_small_bags_are_no_trouble():
    """Two of twenty classes have 210 outcomes; a fair die of twenty sides has a closed form.

    With counts a + b the guess is right with probability 1/2, with two of a kind it is certain.
    """
    gain = multiclass.additive_advantage(np.full((1, 2, 20), 1 / 20), ClassProportions(20, 2))
    np.testing.assert_allclose(gain, 19 / 20 * 1 / 2 + 1 / 20 - 1 / 20, rtol=1e-13)
    eta = np.random.default_rng(0).dirichlet(np.ones(40), (5000, 1))
    gain = multiclass.additive_advantage(eta, ClassProportions(40, 1))
    np.testing.assert_allclose(gain, 1 - eta.max(axis=-1), rtol=1e-14)


def test_too_much_is_refused_before_it_starts(monkeypatch):
    monkeypatch.setattr(Splits, "leave_one_out", lambda *_: pytest.fail("work was begun"))
    monkeypatch.setattr(itertools, "combinations_with_replacement", None)
    eta = np.full((100, 30, 8), 1 / 8)
    with pytest.raises(
        ValueError, match="bags of 30 with 8 classes, 100 of them, would take about"
    ):
        multiclass.additive_advantage(eta, ClassProportions(8, 30))
    with pytest.raises(ValueError, match="fewer classes"):
        multiclass.posterior(eta, ClassProportions(8, 30), np.tile(np.eye(8)[0], (100, 1)))
    for size, classes in ((1000, 200), (6, 40)):
        with pytest.raises(ValueError, match="use fewer bags, smaller bags or fewer classes"):
            Splits(1, size, classes)


RR2, PAIRS = ClassRandomizedResponse(2, 1), ClassProportions(2, 2)
COINS = [[[0.5, 0.5]] * 2]
BAD = {
    "classes must be .* at least 2": lambda: ClassRandomizedResponse(1, 1.0),
    r"epsilon must lie in \[0, inf\]": lambda: ClassRandomizedResponse(3, -1),
    "sum to 1, but those of member 0 of bag 0 sum to 1.1": lambda: multiclass.additive_advantage(
        [[0.5, 0.4, 0.2]], ClassRandomizedResponse(3, 1)
    ),
    r"eta must have shape \(n_bags, 2, 2\)": lambda: multiclass.worth([[[0.5, 0.5]]], PAIRS),
    r"class numbers, 0 to 1, but releases\[0\] is 2": lambda: multiclass.posterior(
        [[0.5, 0.5]], RR2, [2]
    ),
    "one release for each bag: 1 bags, 2 releases": lambda: multiclass.posterior(
        [[0.5, 0.5]], RR2, [0, 1]
    ),
    r"releases must have shape \(n_bags,\), not \(1, 1\)": lambda: multiclass.posterior(
        [[0.5, 0.5]], RR2, [[0]]
    ),
    r"releases must have shape \(n_bags,\), not \(\)": lambda: multiclass.posterior(
        [[0.5, 0.5]], RR2, 0
    ),
    "multiples of 1/2": lambda: multiclass.posterior(COINS, PAIRS, [[0.3, 0.7]]),
    "sum to 1": lambda: multiclass.posterior(COINS, PAIRS, [[0.5, 1.0]]),
    "bag 0 has probability zero": lambda: multiclass.posterior(
        [[[1.0, 0]] * 2], PAIRS, [[0.5, 0.5]]
    ),
    r"labels must be class numbers, 0 to 2, but labels\[.*\] is 3": lambda: ClassProportions(
        3, 2
    ).release([[0, 3]], np.random.default_rng(0)),
    "at epsilon 0 the release says nothing": lambda: ClassRandomizedResponse(3, 0.0).debias([0]),
    "classes must be": lambda: bounds.label_dp_classes_bound(1.0, 1),
}


@pytest.mark.parametrize("words, call", BAD.items())
def test_bad_values_are_refused(words, call):
    with pytest.raises(ValueError, match=words):
        call()


def test_bad_types_are_refused():
    with pytest.raises(TypeError, match="bag_size must be a whole number"):
        ClassProportions(3, 2.5)
    with pytest.raises(TypeError, match="must be a ClassRandomizedResponse or a ClassProportions"):
        multiclass.additive_advantage([[0.5, 0.5]], LabelProportions(1))


@pytest.mark.parametrize(("classes", "size"), [(2, 1), (2, 5), (3, 1), (3, 3), (4, 2)])
def test_worth_is_the_variance_that_enumeration_explains(classes, size):
    eta = random_priors(np.random.default_rng(classes), 4, size, classes)
    cases = [(ClassProportions(classes, size), counts_channel(classes))]
    if size == 1:
        response = ClassRandomizedResponse(classes, math.log(3))
        cases.append((response, response_channel(classes, 3)))
    # Where a class is nearly certain the ratio loses digits; the variance explained does not.
    variance = (eta * (1 - eta)).sum(axis=-1)
    for mechanism, channel in cases:
        explained = multiclass.worth(eta, mechanism) * variance
        if (classes, size) == (2, 5):
            binary = labelaudit.worth(eta[..., 1], LabelProportions(5)) * variance
            assert explained == pytest.approx(binary, abs=1e-14)
        for bag, value in zip(eta, explained, strict=True):
            tables = [np.array(table) for table in brute_force(bag, channel).values()]
            after = sum((t**2).sum(axis=1) / max(t[0].sum(), 1e-300) for t in tables)
            assert value == pytest.approx(after - (bag**2).sum(axis=1), abs=1e-14)
