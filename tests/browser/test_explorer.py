"""The explorer's arithmetic, in an empty page, against the package's."""

import math
import zlib

import numpy as np
import pytest
from commands import ROOT

import labelaudit as la

pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.browser

STATIC = ROOT / "book" / "_static"
CORE = tuple(
    f"explorer-{part}.js" for part in ("audit", "laplace", "people", "state", "again", "design")
)
MECHANISMS = {
    "rr": lambda bag_size, epsilon: la.RandomizedResponse(epsilon),
    "llp": lambda bag_size, epsilon: la.LabelProportions(bag_size),
    "geom": la.GeometricProportions,
    "lap": la.LaplaceProportions,
}
EVERYTHING = """([eta, name, bagSize, epsilon, positions, points]) => {
  const rate = epsilon === null ? Infinity : epsilon;
  const { audit, mechanism } = Explorer.auditing;
  const result = audit(Float64Array.from(eta), mechanism(name, bagSize, rate));
  return {
    additive: [...result.additive],
    posterior: [...result.posteriors(positions)],
    cdf: [...result.cdf(Float64Array.from(points))],
    quantiles: [0.5, 0.98].map((level) => result.quantile(level)),
    infinite: result.infiniteFraction(),
  };
}"""


def uniform(shape, rng):
    return rng.random(shape)


def rare(shape, rng):
    return rng.beta(2, 30, shape)


def tiny(shape, rng):
    """Half of the priors close to 0 or 1, down to 1e-12 from it."""
    faint = 10.0 ** -rng.uniform(1, 12, shape)
    faint = np.where(rng.random(shape) < 0.3, 1 - faint, faint)
    return np.where(rng.random(shape) < 0.5, faint, rng.random(shape))


def known(shape, rng):
    """Labels that are no secret, among others that are."""
    return rng.choice([0.0, 1.0, 0.3, 0.9, 1e-9], shape)


@pytest.fixture(scope="module")
def core(browser):
    """An empty page with the explorer's arithmetic."""
    page = browser.new_page()
    for name in CORE:
        page.add_script_tag(path=STATIC / name)
    yield page
    page.close()


def attacked(core, law, bag_size, epsilon, name):
    """The same attack by the package and by the page: two dictionaries."""
    rng = np.random.default_rng(zlib.crc32(f"{law.__name__} {bag_size} {epsilon} {name}".encode()))
    mechanism = MECHANISMS[name](bag_size, epsilon)
    eta = law((6, bag_size), rng).reshape(-1, mechanism.bag_size)
    labels = rng.random(eta.shape) < eta
    silent = name == "lap" and epsilon == 0
    releases = labels.mean(axis=1) if silent else mechanism.release(labels, rng)
    positions = releases * mechanism.bag_size
    if not mechanism.continuous:
        positions = np.rint(positions)
    points = np.sort(rng.random(20) * 3 * min(max(epsilon, 0.5), 4))
    ours = {
        "additive": la.additive_advantage(eta, mechanism).ravel(),
        "posterior": la.posterior(eta, mechanism, releases).ravel(),
        "cdf": la.multiplicative_cdf(eta, mechanism, points),
        "quantiles": [la.multiplicative_quantile(eta, mechanism, q) for q in (0.5, 0.98)],
        "infinite": 1 - la.multiplicative_cdf(eta, mechanism, 1e300),
    }
    rate = None if math.isinf(epsilon) else epsilon
    arguments = [eta.ravel(), name, bag_size, rate, positions, points]
    listed = [value.tolist() if isinstance(value, np.ndarray) else value for value in arguments]
    return ours, core.evaluate(EVERYTHING, listed)


@pytest.mark.parametrize("law", [uniform, rare, tiny, known])
@pytest.mark.parametrize("bag_size", [1, 2, 3, 8, 17, 64])
@pytest.mark.parametrize("name", MECHANISMS)
def test_numbers_are_the_package_s(core, law, bag_size, name):
    for epsilon in (0.0, 0.1, 1.0, 3.0, 8.0, math.inf):
        ours, theirs = attacked(core, law, bag_size, epsilon, name)
        for key, value in ours.items():
            what = f"{key} of {name}, k = {bag_size}, epsilon = {epsilon}, {law.__name__} priors"
            np.testing.assert_allclose(theirs[key], value, rtol=0, atol=1e-9, err_msg=what)


def test_releases_are_the_package_s(core):
    """From the same uniforms the page draws the same noise as the package."""

    class Given:
        def __init__(self, values):
            self.values = values

        def random(self, size):
            assert size == self.values.size
            return self.values

    rng = np.random.default_rng(7)
    call = """([labels, chances, k, epsilon]) => [...Explorer.people.releases(
      Explorer.auditing.mechanism("geom", k, epsilon), labels, chances)]"""
    for bag_size, epsilon in ((1, 0.0), (1, 1.0), (8, 0.3), (8, 4.0)):
        labels, chances = rng.integers(0, 2, (400, bag_size)), rng.random(400)
        theirs = core.evaluate(call, [labels.ravel().tolist(), chances.tolist(), bag_size, epsilon])
        mechanism = la.GeometricProportions(bag_size, epsilon)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("labelaudit.checks.generator", lambda rng: rng)
            ours = mechanism.release(labels, Given(chances)) * bag_size
        np.testing.assert_allclose(theirs, ours, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "mean", "variance"),
    [
        ("uniform", 1 / 2, 1 / 12),
        ("beta-2-30", 1 / 16, 2 * 30 / (32**2 * 33)),
        ("beta-0.5-0.5", 1 / 2, 1 / 8),
        ("two-0.1-0.9-0.25", 0.3, 0.8**2 * 3 / 16),
        ("drawn-10000000000000000003", 0.025 + 0.75 * 0.95, 0.95**2 * 3 / 16 + 0.05**2 / 12),
    ],
)
def test_priors_have_their_moments(core, name, mean, variance):
    """Over 40 seeds; five standard errors, so a false alarm about once in a million."""
    call = """(name) => Array.from({ length: 40 },
      (_, seed) => [...Explorer.people.population(name, seed).eta])"""
    eta = np.array(core.evaluate(call, name)).ravel()
    assert abs(eta.mean() - mean) < 5 * math.sqrt(variance / eta.size)
    squares = (eta - mean) ** 2
    assert abs(squares.mean() - variance) < 5 * squares.std() / math.sqrt(eta.size)


BAD = {
    "k=900": ("k", 64),
    "k=0": ("k", 1),
    "k=eight": ("k", 8),
    "k=2.5": ("k", 3),
    "epsilon=-1": ("epsilon", 0.05),
    "epsilon=NaN": ("epsilon", 1),
    "epsilon=Infinity": ("epsilon", 6),
    "epsilon=": ("epsilon", 1),
    "seed=1e12": ("seed", 999999),
    "mechanism=llp2": ("mechanism", "llp"),
    "priors=beta-0-1": ("priors", "beta-2-30"),
    "priors=drawn-00000000000000000000": ("priors", "beta-2-30"),
    "priors=two-0.1-1.5-0.5": ("priors", "beta-2-30"),
    "colour=red": ("k", 8),
    "constructor=1": ("k", 8),
    "__proto__=1": ("k", 8),
    "priors=two-0.1-0.9-" + 60 * "5": ("priors", "beta-2-30"),
}


@pytest.mark.parametrize("query", BAD)
def test_bad_settings_are_corrected_and_named(core, query):
    answer = core.evaluate("(query) => Explorer.state.read(query)", query)
    name, value = BAD[query]
    assert answer["state"][name] == value
    assert len(answer["notes"]) == 1
    assert query.split("=")[0] in answer["notes"][0]
    assert "undefined" not in answer["notes"][0]
    assert len(answer["notes"][0]) < 160


def test_settings_survive_the_address(core):
    query = "mechanism=lap&priors=drawn-01234567899876543210&k=17&epsilon=0.35&seed=4&attack=3"
    call = (
        "(query) => { const { state, notes } = Explorer.state.read(query); return [state, notes]; }"
    )
    state, notes = core.evaluate(call, query)
    assert notes == []
    assert core.evaluate("(state) => Explorer.state.write(state)", state) == query


AGAIN = """([eta, name, bagSize, epsilon, weeks, tolerance]) => {
  const rate = epsilon === null ? Infinity : epsilon;
  const { posterior, proven, converged } = Explorer.again.attack(
    eta, Explorer.auditing.mechanism(name, bagSize, rate), weeks, tolerance);
  return { posterior: [...posterior], proven, converged };
}"""


@pytest.mark.parametrize("law", [uniform, rare, known])
@pytest.mark.parametrize(
    "name, bag_size, epsilon",
    [("llp", 4, math.inf), ("llp", 8, math.inf), ("geom", 6, 0.7), ("lap", 4, 1.5), ("rr", 1, 0.4)],
)
def test_the_town_is_attacked_as_by_the_package(core, law, name, bag_size, epsilon):
    rng = np.random.default_rng(zlib.crc32(f"town {law.__name__} {bag_size} {name}".encode()))
    mechanism = MECHANISMS[name](bag_size, epsilon)
    eta = law((48,), rng)
    labels = (rng.random(48) < eta).astype(int)
    first, second = (rng.permutation(48).reshape(-1, bag_size) for _ in range(2))
    partitions = np.stack([first, second, first[::-1, ::-1]])
    flat = labels[partitions.reshape(-1, bag_size)]
    releases = mechanism.release(flat, rng).reshape(3, -1)
    expected = la.redrawn_attack(eta, mechanism, partitions, releases, tolerance=1e-12)
    positions = releases * bag_size if mechanism.continuous else np.rint(releases * bag_size)
    weeks = [
        {"bags": bags.tolist(), "positions": values.tolist()}
        for bags, values in zip(partitions, positions, strict=True)
    ]
    rate = None if math.isinf(epsilon) else epsilon
    actual = core.evaluate(AGAIN, [eta.tolist(), name, bag_size, rate, weeks, 1e-12])
    assert actual["converged"] == expected.converged
    assert actual["proven"] == expected.proven.tolist()
    if expected.converged:
        np.testing.assert_allclose(actual["posterior"], expected.posterior, atol=1e-8)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 6.0, math.inf])
def test_the_best_release_is_the_package_s(core, epsilon):
    design = """([eta, epsilon, advantage]) => {
      const rate = epsilon === null ? Infinity : epsilon;
      const best = Explorer.design.threeValues(eta, rate, advantage);
      return { ...best, ...Explorer.design.measures(eta, best) };
    }"""
    for eta in (0.01, 0.05, 0.3, 0.5, 0.62, 0.99):
        for advantage in (0.0, 0.02, 0.2, 0.5):
            rate = None if math.isinf(epsilon) else epsilon
            actual = core.evaluate(design, [eta, rate, advantage])
            best = la.design.best_response(eta, epsilon, advantage)
            posteriors, weights = la.design.three_values(eta, epsilon, advantage)
            np.testing.assert_allclose(actual["weights"], weights, atol=1e-12)
            np.testing.assert_allclose(actual["posteriors"], posteriors, atol=1e-12)
            matrix = [actual["ifZero"], actual["ifOne"]]
            np.testing.assert_allclose(matrix, best.matrix, atol=1e-12)
            assert actual["worth"] == pytest.approx(best.value, abs=1e-12)
            gain = la.additive_advantage([eta], best)[0]
            assert actual["advantage"] == pytest.approx(gain, abs=1e-12)
            assert gain <= advantage + 1e-12
