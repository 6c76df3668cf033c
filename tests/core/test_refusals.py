"""Invalid input: each error names the offending value and what is allowed."""

import math
import warnings

import numpy as np
import pytest

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
    bayes_guess,
    bounds,
    expected_advantage,
    high_probability_advantage,
    label_advantage,
    multiclass,
    multiplicative_advantage,
    multiplicative_cdf,
    multiplicative_quantile,
    poisson_binomial,
    posterior,
    realised_advantage,
    worth,
)
from labelaudit.priors import Beta, Empirical, TwoPoint, Uniform

GEOMETRIC = GeometricProportions(2, 1.0)
LLP = LabelProportions(2)
PAIR = [[0.5, 0.5]]


class Untouched(np.random.Generator):
    """A generator that nobody may draw from: refusals come before any work."""

    def __init__(self):
        super().__init__(np.random.PCG64(0))

    def _drawn(self, *args, **kwargs):
        raise AssertionError("drew a random number before refusing the input")

    random = laplace = beta = choice = permutation = _drawn


RNG = Untouched()

# Each function of priors, called on eta with everything else in order.
OF_ETA = {
    "posterior": lambda eta: posterior(eta, LLP, [0.5]),
    "bayes_guess": lambda eta: bayes_guess(eta, LLP, [0.5]),
    "additive_advantage": lambda eta: additive_advantage(eta, LLP),
    "label_advantage": lambda eta: label_advantage(eta, LLP),
    "multiplicative_advantage": lambda eta: multiplicative_advantage(eta, LLP, [0.5]),
    "multiplicative_cdf": lambda eta: multiplicative_cdf(eta, LLP, [1.0]),
    "multiplicative_quantile": lambda eta: multiplicative_quantile(eta, LLP, 0.5),
    "realised_advantage": lambda eta: realised_advantage(eta, [[0, 1], [1, 1]], LLP, RNG),
    "known_members": lambda eta: advantage_with_known_members(eta, LLP, 1, RNG),
    "worth": lambda eta: worth(eta, LLP),
}


@pytest.mark.parametrize("call", OF_ETA.values(), ids=OF_ETA)
@pytest.mark.parametrize(
    "eta, error, message",
    [
        ([[0.5, 1.5]], ValueError, r"eta must lie in \[0, 1\].*eta\[0, 1\] is 1\.5"),
        ([[-0.25, 0.5]], ValueError, r"eta must lie in \[0, 1\].*eta\[0, 0\] is -0\.25"),
        ([[0.5, math.nan]], ValueError, r"eta must lie in \[0, 1\].*is nan"),
        ([[0.5, math.inf]], ValueError, r"eta must lie in \[0, 1\].*is inf"),
        ([[0.1, 0.2, 0.3]], ValueError, r"eta must have shape \(n_bags, 2\).*\(1, 3\)"),
        ([0.1, 0.2], ValueError, r"eta must have shape \(n_bags, 2\).*\(2,\)"),
        (0.5, ValueError, r"eta must have shape \(n_bags, 2\).*\(\)"),
        ([[0.1, 0.2], [0.3]], ValueError, r"eta must be a rectangular array of numbers"),
        ([["0.1", "0.2"]], TypeError, r"eta must be an array of real numbers.*<U3"),
        ([[0.1 + 0j, 0.2]], TypeError, r"eta must be an array of real numbers.*complex"),
        (np.ma.array([[0.1, 0.2]], mask=[[0, 1]]), ValueError, r"eta must.*masked"),
        (None, TypeError, r"eta must be an array of real numbers.*object"),
        ([[None, 0.2]], TypeError, r"eta must be an array of real numbers.*object"),
    ],
    ids=str,
)
def test_bad_priors(call, eta, error, message):
    with pytest.raises(error, match=message):
        call(eta)


@pytest.mark.parametrize(
    "eta, error, message",
    [
        ([0.2, 1.5], ValueError, r"eta must lie in \[0, 1\].*eta\[1\] is 1\.5"),
        ([math.nan], ValueError, r"eta must lie in \[0, 1\].*is nan"),
        (0.5, ValueError, r"shape \(\.\.\., k\) with k at least 1, not \(\)"),
        (np.zeros((2, 0)), ValueError, r"k at least 1, not \(2, 0\)"),
        ("half", TypeError, r"real numbers.*<U4"),
    ],
    ids=str,
)
def test_bad_priors_of_a_count(eta, error, message):
    for function in (poisson_binomial.pmf, poisson_binomial.leave_one_out):
        with pytest.raises(error, match=message):
            function(eta)


@pytest.mark.parametrize(
    "epsilon, error, message",
    [
        (-1, ValueError, r"epsilon must lie in \[0, inf\], not -1"),
        (-math.inf, ValueError, r"epsilon must lie in \[0, inf\], not -inf"),
        (math.nan, ValueError, r"epsilon must lie in \[0, inf\], not nan"),
        (10**400, ValueError, r"epsilon must .*\[0, inf\].*1329 bits"),
        ("1", TypeError, r"epsilon must be a number.*'1'"),
        (True, TypeError, r"epsilon must be a number.*True"),
        (np.True_, TypeError, r"epsilon must be a number.*True"),
        (1j, TypeError, r"epsilon must be a number.*1j"),
        (None, TypeError, r"epsilon must be a number.*None"),
        ([1.0, 2.0], TypeError, r"epsilon must be a number.*\[1\.0, 2\.0\]"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_bad_epsilon(epsilon, error, message):
    for make in (
        RandomizedResponse,
        lambda e: GeometricProportions(2, e),
        lambda e: LaplaceProportions(2, e),
    ):
        with pytest.raises(error, match=message):
            make(epsilon)


@pytest.mark.parametrize(
    "bag_size, error, message",
    [
        (0, ValueError, r"bag_size must be a whole number of at least 1, not 0"),
        (2.5, TypeError, r"bag_size must be a whole number of at least 1, not 2\.5"),
        (2.0, TypeError, r"bag_size must be a whole number of at least 1, not 2\.0"),
        (True, TypeError, r"bag_size must be a whole number.*True"),
        ("8", TypeError, r"bag_size must be a whole number.*'8'"),
        (None, TypeError, r"bag_size must be a whole number.*None"),
    ],
    ids=str,
)
def test_bad_bag_size(bag_size, error, message):
    for make in (
        LabelProportions,
        NoRelease,
        lambda k: GeometricProportions(k, 1.0),
        lambda k: LaplaceProportions(k, 1.0),
        lambda k: Empirical([0.1] * 4).partition(k, RNG),
    ):
        with pytest.raises(error, match=message):
            make(bag_size)


@pytest.mark.parametrize(
    "labels, error, message",
    [
        ([[0, 2]], ValueError, r"labels must be 0 or 1.*labels\[0, 1\] is 2"),
        ([[0.5, 1]], ValueError, r"labels must be 0 or 1.*is 0\.5"),
        ([[math.nan, 1]], ValueError, r"labels must be 0 or 1.*is nan"),
        ([[0, 1, 1]], ValueError, r"labels must have shape \(n_bags, 2\).*\(1, 3\)"),
        ([0, 1], ValueError, r"labels must have shape \(n_bags, 2\).*\(2,\)"),
        ([[0, 1], [1]], ValueError, r"labels must be a rectangular array"),
        ([["a", "b"]], TypeError, r"labels must be an array of real numbers.*<U1"),
        ([[1j, 0]], TypeError, r"labels must be an array of real numbers.*complex"),
    ],
    ids=str,
)
def test_bad_labels(labels, error, message):
    for mechanism in (
        LLP,
        GEOMETRIC,
        LaplaceProportions(2, 1.0),
        NoRelease(2),
        CountChannel(np.eye(3)),
    ):
        with pytest.raises(error, match=message):
            mechanism.release(labels, RNG)
    with pytest.raises(error, match=message):
        realised_advantage([[0.5, 0.5]], labels, LLP, RNG)


@pytest.mark.parametrize("rng", [None, 0, np.random, np.random.RandomState(0)], ids=type)
def test_bad_generator(rng):
    labels = [[0, 1], [1, 1]]
    for call in (
        lambda: LLP.release(labels, rng),
        lambda: GEOMETRIC.release(labels, rng),
        lambda: LaplaceProportions(2, 1.0).release(labels, rng),
        lambda: NoRelease(2).release(labels, rng),
        lambda: CountChannel(np.eye(3)).release(labels, rng),
        lambda: expected_advantage(Uniform(), LLP, n_bags=4, rng=rng),
        lambda: high_probability_advantage(Uniform(), LLP, 0.1, n_bags=4, n_draws=2, rng=rng),
        lambda: realised_advantage([[0.5, 0.5]] * 2, labels, LLP, rng),
        lambda: advantage_with_known_members([[0.5, 0.5]], LLP, 1, rng),
        lambda: Uniform().sample(3, rng),
        lambda: Beta(2, 5).sample(3, rng),
        lambda: TwoPoint(0.1, 0.2).sample(3, rng),
        lambda: Empirical([0.1]).sample(3, rng),
        lambda: Empirical([0.1]).partition(1, rng),
    ):
        with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator.*not "):
            call()


@pytest.mark.parametrize(
    "mechanism, release, message",
    [
        (LLP, 0.3, r"be a multiple of 1/2 in \[0, 1\].*releases\[0\] is 0\.3"),
        (LLP, 1.5, r"be a multiple of 1/2 in \[0, 1\].*is 1\.5"),
        (LLP, -0.5, r"be a multiple of 1/2 in \[0, 1\].*is -0\.5"),
        (LLP, 0.5 + 1e-6, r"be a multiple of 1/2 in \[0, 1\].*is 0\.500001"),
        (LLP, 1e308, r"be a multiple of 1/2 in \[0, 1\].*is 1e\+308"),
        (LLP, math.nan, r"be finite.*is nan"),
        (GEOMETRIC, 0.3, r"be a multiple of 1/2 in \[0, 1\].*is 0\.3"),
        (LaplaceProportions(2, math.inf), 0.3, r"be a multiple of 1/2 in \[0, 1\].*is 0\.3"),
        (LaplaceProportions(2, 1.0), math.inf, r"be finite.*is inf"),
        (NoRelease(2), 1.0, r"be 0, all that NoRelease releases.*is 1\.0"),
        (CountChannel(np.eye(3)), 3, r"be one of the column numbers 0\.\.2.*is 3"),
        (CountChannel(np.eye(3)), 0.5, r"be one of the column numbers 0\.\.2.*is 0\.5"),
        (CountChannel(np.eye(3)), -1, r"be one of the column numbers 0\.\.2.*is -1"),
    ],
    ids=str,
)
def test_a_release_the_mechanism_cannot_make(mechanism, release, message):
    calls = [
        lambda: posterior(PAIR, mechanism, [release]),
        lambda: multiplicative_advantage(PAIR, mechanism, [release]),
        lambda: mechanism.likelihood([release]),
    ]
    if not isinstance(mechanism, CountChannel | NoRelease):
        calls.append(lambda: mechanism.debias([release]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in calls:
            with pytest.raises(ValueError, match=f"releases must {message}"):
                call()


def test_randomized_response_releases_labels():
    with pytest.raises(ValueError, match=r"releases must be 0 or 1.*is 0\.5"):
        posterior([0.5], RandomizedResponse(1.0), [0.5])


@pytest.mark.parametrize(
    "releases, error, message",
    [
        ([0.5, 0.5], ValueError, r"one release for each bag: 1 bags, 2 releases"),
        ([], ValueError, r"one release for each bag: 1 bags, 0 releases"),
        (0.5, ValueError, r"releases must have shape \(n_bags,\), not \(\)"),
        ([[0.5]], ValueError, r"releases must have shape \(n_bags,\), not \(1, 1\)"),
        (["a"], TypeError, r"releases must be an array of real numbers.*<U1"),
        ([0.5j], TypeError, r"releases must be an array of real numbers.*complex"),
    ],
    ids=str,
)
def test_releases_of_the_wrong_shape_or_type(releases, error, message):
    with pytest.raises(error, match=message):
        posterior([[0.5, 0.5]], LLP, releases)


@pytest.mark.parametrize(
    "eta, mechanism, release",
    [
        ([1.0, 0.4], LLP, 0.0),
        ([0.0, 0.4], LLP, 1.0),
        ([1.0, 1.0], LLP, 0.0),
        ([1.0, 0.4], GeometricProportions(2, math.inf), 0.0),
        ([1.0, 0.4], CountChannel(np.eye(3)), 0),
        ([1.0, 1.0], CountChannel(np.eye(3)), 0),
        ([0.3, 0.4], CountChannel([[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0]]), 2),
        ([0.3, 0.4], CountChannel([[1, 0], [1, 0], [1, 0]]), 1),
    ],
    ids=str,
)
def test_a_release_of_probability_zero(eta, mechanism, release):
    possible = [0.3, 0.4]
    first = 0.5 if isinstance(mechanism, LabelProportions | GeometricProportions) else 0
    for measure in (posterior, bayes_guess, multiplicative_advantage):
        with pytest.raises(
            ValueError, match=rf"release {release:g} of bag 1 has probability zero.*of them are 1"
        ):
            measure([possible, eta], mechanism, [first, release])


@pytest.mark.parametrize(
    "matrix, error, message",
    [
        ([[0.5, 0.4], [0.5, 0.5]], ValueError, r"rows of matrix must sum to 1.*row 0 sums to 0\.9"),
        ([[0.5, 0.5], [1, 1]], ValueError, r"rows of matrix must sum to 1.*row 1 sums to 2"),
        ([[1.5, -0.5], [0.5, 0.5]], ValueError, r"matrix must lie in \[0, 1\].*is 1\.5"),
        ([[math.nan, 1], [0.5, 0.5]], ValueError, r"matrix must lie in \[0, 1\].*is nan"),
        ([0.5, 0.5], ValueError, r"matrix must have a row for each count.*\(2,\)"),
        ([[1.0]], ValueError, r"matrix must have a row for each count.*\(1, 1\)"),
        (np.zeros((3, 0)), ValueError, r"matrix must have a row for each count.*\(3, 0\)"),
        ([[1, 0], [1]], ValueError, r"matrix must be a rectangular array"),
        ([["a", "b"]], TypeError, r"matrix must be an array of real numbers"),
    ],
    ids=str,
)
def test_bad_channel(matrix, error, message):
    with pytest.raises(error, match=message):
        CountChannel(matrix)


@pytest.mark.parametrize(
    "mechanism, message",
    [
        (RandomizedResponse(0), r"RandomizedResponse\(epsilon=0\.0\) cannot be debiased"),
        (GeometricProportions(2, 0), r"GeometricProportions.*cannot be debiased"),
        (GeometricProportions(2, 1e-320), r"cannot be debiased: at epsilon 9\.99989e-321 the"),
        (LaplaceProportions(2, 0), r"LaplaceProportions.*cannot be debiased"),
        (multiclass.ClassRandomizedResponse(3, 1e-17), r"cannot be debiased: at epsilon 1e-17 the"),
        (NoRelease(2), r"NoRelease.*cannot be debiased: it releases nothing"),
        (CountChannel(np.eye(3)), r"(?s)CountChannel.*cannot be debiased: its releases are column"),
    ],
    ids=str,
)
def test_what_cannot_be_debiased(mechanism, message):
    with pytest.raises(ValueError, match=message):
        mechanism.debias([0.0])


@pytest.mark.filterwarnings("error")
def test_no_warning_at_the_ends_of_the_allowed_range():
    rng = np.random.default_rng(0)
    ends = GeometricProportions(3, 1e-320).release([[0, 1, 1]] * 50, rng)
    assert set(ends.tolist()) == {0.0, 1.0}
    assert LaplaceProportions(3, 1e308).likelihood([0.3, 1.0]).tolist() == [
        [0, 1, 0, 0],
        [0, 0, 0, 1],
    ]
    assert bounds.individual_lemma_bound(0.0, 0.5, 0.0, 10) == 0
    assert bounds.debiased_variance(0, 5, 1e-200) == math.inf
    with pytest.raises(ValueError, match=r"multiples of 1/2"):
        multiclass.ClassProportions(2, 2).debias([[1e308, 1.0]])


OF_MECHANISM = {
    "posterior": lambda m: posterior([0.5], m, [1]),
    "additive_advantage": lambda m: additive_advantage([0.5], m),
    "label_advantage": lambda m: label_advantage([0.5], m),
    "multiplicative_cdf": lambda m: multiplicative_cdf([0.5], m, [1.0]),
    "multiplicative_quantile": lambda m: multiplicative_quantile([0.5], m, 0.5),
    "multiplicative_advantage": lambda m: multiplicative_advantage([0.5], m, [1]),
    "expected_advantage": lambda m: expected_advantage(Uniform(), m, n_bags=4, rng=RNG),
    "expected_advantage, empirical": lambda m: expected_advantage(
        Empirical([0.5]), m, n_bags=4, rng=RNG
    ),
    "high_probability_advantage": lambda m: high_probability_advantage(
        Uniform(), m, 0.1, n_bags=2, n_draws=2, rng=RNG
    ),
    "realised_advantage": lambda m: realised_advantage([0.5, 0.5], [0, 1], m, RNG),
    "known_members": lambda m: advantage_with_known_members([0.5], m, 0, RNG),
}


@pytest.mark.parametrize("call", OF_MECHANISM.values(), ids=OF_MECHANISM)
@pytest.mark.parametrize("mechanism", ["RR", RandomizedResponse, None, 8], ids=str)
def test_something_that_is_no_mechanism(call, mechanism):
    with pytest.raises(TypeError, match=r"mechanism must be a Mechanism.*not "):
        call(mechanism)


@pytest.mark.parametrize("prior", [0.5, Beta, None, [0.1, 0.2]], ids=str)
def test_something_that_is_no_distribution_of_priors(prior):
    for call in (
        lambda: expected_advantage(prior, LLP, n_bags=4, rng=RNG),
        lambda: high_probability_advantage(prior, LLP, 0.1, n_bags=2, n_draws=2, rng=RNG),
    ):
        with pytest.raises(TypeError, match=r"prior must be a distribution.*not "):
            call()


UNIFORM = Uniform()


def expected(prior=UNIFORM, **options):
    return expected_advantage(prior, LLP, rng=RNG, **options)


def probable(theta=0.1, **options):
    sizes = {"n_bags": 1, "n_draws": 1} | options
    return high_probability_advantage(Uniform(), LLP, theta, **sizes, rng=RNG)


# What is wrong with a setting, and the calls that must say so.
VALUES = {
    r"q must.*1\.5": lambda: multiplicative_quantile(PAIR, LLP, 1.5),
    r"q must.*nan": lambda: multiplicative_quantile(PAIR, LLP, math.nan),
    r"points.*NaN": lambda: multiplicative_cdf(PAIR, LLP, [math.nan]),
    r"at least one bag": lambda: multiplicative_cdf(np.zeros((0, 2)), LLP, [1]),
    r"one bag": lambda: multiplicative_quantile(np.zeros((0, 2)), LLP, 0.5),
    r"n_bags must be a whole number of at least 2, not 1": lambda: expected(n_bags=1),
    r"bag_size must be at most the number of examples, 1, not 2": lambda: expected(
        Empirical([0.5]), n_bags=10
    ),
    r"theta must lie in \[0, 1\], not 2": lambda: probable(2),
    r"n_bags must be a whole number of at least 1, not 0": lambda: probable(n_bags=0),
    r"n_draws must be a whole number of at least 1, not 0": lambda: probable(n_draws=0),
    r"one shape, not \(2, 2\) and \(1, 2\)": lambda: realised_advantage(
        PAIR * 2, [[0, 1]], LLP, RNG
    ),
    r"at least 2 bags, not 1": lambda: realised_advantage(PAIR, [[0, 1]], LLP, RNG),
    r"known must be at most bag_size - 1 = 1, not 2": lambda: advantage_with_known_members(
        PAIR, LLP, 2, RNG
    ),
    r"known must be a whole number of at least 0, not -1": lambda: advantage_with_known_members(
        PAIR, LLP, -1, RNG
    ),
    r"a must be positive and finite, not 0": lambda: Beta(0, 1),
    r"b must be positive and finite, not inf": lambda: Beta(1, math.inf),
    r"a must lie in \[0, inf\], not -1": lambda: Beta(-1, 1),
    r"high must lie in \[0, 1\], not 1\.2": lambda: TwoPoint(0.1, 1.2),
    r"weight must.*nan": lambda: TwoPoint(0.1, 0.2, math.nan),
    r"values\[1\] is 1\.2": lambda: Empirical([0.1, 1.2]),
    r"at least one prior": lambda: Empirical([]),
    r"no distribution at epsilon 0": lambda: LaplaceProportions(2, 0.0).release([[0, 1]], RNG),
    r"no distribution at epsilon 1e-310": lambda: LaplaceProportions(2, 1e-310).release(
        [[0, 1]], RNG
    ),
}
TYPES = {
    r"q must.*'half'": lambda: multiplicative_quantile(PAIR, LLP, "half"),
    r"points must.*<U1": lambda: multiplicative_cdf(PAIR, LLP, ["a"]),
    r"n_bags must be a whole number of at least 2, not 10\.0": lambda: expected(n_bags=10.0),
    r"missing 1 required keyword-only argument: 'n_bags'": lambda: high_probability_advantage(
        Uniform(), LLP, 0.1, n_draws=2, rng=RNG
    ),
}


@pytest.mark.parametrize("message, call", VALUES.items())
def test_bad_values_of_settings(message, call):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("message, call", TYPES.items())
def test_bad_types_of_settings(message, call):
    with pytest.raises(TypeError, match=message):
        call()


class OnlyALikelihood(Mechanism):
    """The least that a mechanism of one's own can be."""

    bag_size = 1
    epsilon = 1.0

    def likelihood(self, releases):
        return np.ones((len(releases), 2))


def test_what_a_mechanism_of_ones_own_did_not_define():
    mechanism = OnlyALikelihood()
    with pytest.raises(TypeError, match=r"OnlyALikelihood.*does not say how to release"):
        mechanism.release([0, 1], RNG)
    with pytest.raises(ValueError, match=r"OnlyALikelihood.*cannot be debiased"):
        mechanism.debias([0.0])
    with pytest.raises(TypeError, match=r"Nothing must define likelihood or log_likelihood"):
        type("Nothing", (Mechanism,), {})


class Crooked(Mechanism):
    """A mechanism of a user's own whose likelihood is whatever it is given."""

    bag_size = 3
    epsilon = 1.0

    def __init__(self, table):
        self.table = np.asarray(table, dtype=float)

    def likelihood(self, releases):
        return self.table


@pytest.mark.parametrize("shape", [(2, 2), (1, 4), (2, 1), (8,)])
def test_a_likelihood_of_the_wrong_shape_is_refused(shape):
    with pytest.raises(ValueError, match=r"Crooked must have shape .*\(2, 4\), not"):
        posterior(np.full((2, 3), 0.4), Crooked(np.ones(shape)), [0, 0])


@pytest.mark.parametrize("value", [-0.5, np.nan, np.inf])
def test_a_likelihood_that_is_no_likelihood_is_refused(value):
    with pytest.raises(ValueError, match="Crooked must be finite and at least 0"):
        posterior(np.full((1, 3), 0.4), Crooked([[1, value, 1, 1]]), [0])


def test_a_mechanism_without_its_numbers_is_refused():
    class Nameless(Mechanism):
        def likelihood(self, releases):
            return np.ones((len(releases), 3))

    with pytest.raises(TypeError, match="Nameless must have an attribute bag_size"):
        posterior([[0.1, 0.2]], Nameless(), [0])


@pytest.mark.parametrize("number", [10**10 + 1, 2**63, 10**400])
@pytest.mark.parametrize(
    "name, call",
    [
        ("n_bags", lambda n: expected(n_bags=n)),
        ("n_bags", lambda n: probable(n_bags=n)),
        ("n_draws", lambda n: probable(n_draws=n)),
        ("times", lambda n: Repeated(LLP, n)),
    ],
)
def test_a_number_that_nobody_can_wait_for_is_refused(name, call, number):
    with pytest.raises(ValueError, match=f"{name} must be a whole number from . to 10000000000"):
        call(number)
