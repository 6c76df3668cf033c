"""The results of chapter 13: every step of a proof as a check that can fail, and its mutants."""

import itertools
import math
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pandas as pd
import pytest
import smoke
from scipy import integrate, special, stats

from labelaudit import (
    CountChannel,
    GeometricProportions,
    LabelProportions,
    LaplaceProportions,
    additive_advantage,
    bounds,
    worth,
)
from labelaudit.poisson_binomial import leave_one_out, pmf

ROUNDING = 1 + 1e-9


def hard_bags(size, n_bags, rng):
    """Priors of every kind: mild, extreme, certain, nearly fair, a lone coin among sure people."""
    scale = rng.choice([0.1, 1.0, 4.0, 12.0], (n_bags, 1))
    shift = rng.choice([0.0, 0.0, -3.0, 5.0], (n_bags, 1))
    eta = special.expit(shift + scale * rng.standard_normal((n_bags, size)))
    eta[rng.random(eta.shape) < 0.03] = 0.0
    eta[rng.random(eta.shape) < 0.03] = 1.0
    eta[0], eta[1] = 0.5, np.append(0.5, np.full(size - 1, 1e-6))
    eta[2] = np.append(0.5, np.zeros(size - 1))
    return eta


def gaps_of(eta):
    """f_1 - f_2 of each bag under label proportions."""
    return additive_advantage(eta, LabelProportions(eta.shape[1])).mean(axis=1)


# --- one mode, one Bessel function ---------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 5, 17])
def test_the_chain_for_a_bag(size):
    """adv_i <= mu_i sum |P(s) - P(s-1)| = 2 mu_i max P <= 2 mu_i e^-V I0(V), link by link."""
    eta = hard_bags(size, 500, np.random.default_rng(size))
    others = leave_one_out(eta)
    mu = eta * (1 - eta)
    steps = np.abs(np.diff(others, axis=-1, prepend=0, append=0)).sum(axis=-1)
    np.testing.assert_allclose(steps, 2 * others.max(axis=-1), rtol=1e-12)
    gain = additive_advantage(eta, LabelProportions(size))
    assert np.all(gain <= mu * steps + 1e-14)
    rest = np.maximum(mu.sum(axis=1, keepdims=True) - mu, 0)
    assert np.all(others.max(axis=-1) <= special.ive(0, rest) * ROUNDING)


def test_the_bessel_function_cannot_be_smaller():
    """Skellam distributions come arbitrarily near to e^-V I0(V): nothing below it is a bound."""
    for total in (0.3, 0.79, 2.0):
        half = 4000
        tiny = np.full(half, total / (2 * half))
        law = np.convolve(pmf(tiny), pmf(1 - tiny))
        variance = 2 * half * tiny[0] * (1 - tiny[0])
        assert law.max() > 0.999 * special.ive(0, variance)
    assert 2 * math.sqrt(0.79) * special.ive(0, 0.79) > 0.9376


def bag_root_bound(eta):
    """BAG_CONSTANT times the root of the count's variance, over the bag size."""
    return bounds.BAG_CONSTANT * np.sqrt((eta * (1 - eta)).sum(axis=-1)) / eta.shape[-1]


@pytest.mark.parametrize("size", [1, 2, 3, 6, 20])
def test_every_bag_obeys_its_root(size):
    eta = hard_bags(max(size, 2), 3000, np.random.default_rng(size))[:, :size]
    used = gaps_of(eta) / np.maximum(bag_root_bound(eta), 1e-300)
    assert 0.5 < used.max() <= 1
    doubt = (eta * (1 - eta)).sum(axis=1)
    assert np.all(gaps_of(eta) <= np.sqrt(2 * doubt) / size + 1e-15)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
def test_nothing_contradicts_the_conjecture_on_the_mean_deviation(size):
    """The advantages add up to at most E|S - ES|; a mutant with 0.95 in front is contradicted."""
    rng = np.random.default_rng(size)
    sides = 0.5 + 0.5 * rng.random((300, 1)) * (-1.0) ** np.arange(size)
    eta = np.vstack([hard_bags(max(size, 2), 4000, rng)[:, :size], sides])
    away = np.abs(np.arange(size + 1) - eta.sum(axis=1, keepdims=True))
    deviation = (pmf(eta) * away).sum(axis=1)
    total = size * gaps_of(eta)
    assert np.all(total <= deviation + 1e-12)
    assert np.any(total > 0.95 * deviation + 1e-9)


def bessel_series(v):
    """e^-v I0(v) for 0 <= v <= 4 by its power series: the terms left out are below 1e-40."""
    term = total = np.ones_like(v)
    for n in range(1, 40):
        term = term * (v / 2) ** 2 / n**2
        total = total + term
    return np.exp(-v) * total


@pytest.mark.parametrize(
    ("shift", "constant", "supremum"),
    [(0.0, bounds.BESSEL_CONSTANT, 0.9376448), (0.25, bounds.BAG_CONSTANT, 1.12541)],
)
def test_the_constants_are_proved_by_intervals(shift, constant, supremum):
    """2 sqrt(v + shift) e^-v I0(v) is below the constant: over [0, 4] by intervals, then in words.

    e^-v I0(v) is a mean of e^(-v (1 - cos t)), so it decreases, and over an interval the product
    is at most the root at the right end times the rest at the left end. Every term of the series
    is positive and 200 roundings of 2^-53 are less than 1e-13. Beyond 4 it is at most
    (1 + 0.21 / v) / sqrt(2 pi) + sqrt(v) e^-v / 2 times 2 sqrt(1 + shift / v), which decreases.
    """
    ends = np.linspace(0, 4, 2_000_001)
    largest = 2 * np.sqrt(ends[1:] + shift) * bessel_series(ends[:-1]) * (1 + 1e-12)
    assert largest.max() < constant
    at_most = (1 + 0.21 / 4) / math.sqrt(2 * math.pi) + math.exp(-4)
    assert 2 * at_most * math.sqrt(1 + shift / 4) < constant
    # The mutant: the constant cannot be rounded down instead.
    attained = (2 * np.sqrt(ends + shift) * bessel_series(ends)).max()
    assert attained == pytest.approx(supremum, abs=5e-7 if shift == 0 else 5e-6)
    assert attained > constant - 1e-4


def test_the_estimate_beyond_four():
    """Its two steps: 1 / sqrt(1 - y) <= 1 + 0.83 y for y <= 1/2, and the estimate itself."""
    y = np.linspace(0, 0.5, 10_001)
    assert np.all(1 / np.sqrt(1 - y) <= 1 + 0.83 * y)
    v = np.geomspace(0.01, 1e6, 10_001)
    estimate = (1 + 0.21 / v) / math.sqrt(2 * math.pi) + np.sqrt(v) * np.exp(-v) / 2
    assert np.all(np.sqrt(v) * special.ive(0, v) <= estimate)
    assert np.all(np.diff(estimate[v > 0.5]) <= 0)


# --- tails ---------------------------------------------------------------------------------------


def coin_tail(size, weight, scale):
    """P(f_1 - f_2 > scale sqrt(mu / k)) for one bag with eta in {0, 1/2}, exactly."""
    coins = np.arange(1, size + 1)
    gaps = np.append(0, coins / size * bounds.independent_advantage(0.5, coins))
    chance = stats.binom.pmf(np.arange(size + 1), size, weight)
    return chance[gaps > scale * math.sqrt(weight / 4 / size)].sum()


@pytest.mark.parametrize("scale", [1.2, 1.5, 2.0, 4.0])
def test_the_corrected_tail(scale):
    for size, weight in itertools.product((1, 2, 5, 40, 300), (1e-3, 0.02, 0.2, 0.7)):
        bound = bounds.tail_bound(weight / 4, size, scale)
        assert coin_tail(size, weight, scale) <= bound * ROUNDING


def test_the_corrected_tail_for_many_bags():
    """Two bags of three, eta in {0, 1/2}: all 16 pairs of bags by their coins, exactly."""
    size, weight = 3, 0.1
    coins = np.arange(1, size + 1)
    gaps = np.append(0, coins / size * bounds.independent_advantage(0.5, coins))
    chance = stats.binom.pmf(np.arange(size + 1), size, weight)
    mean, joint = (gaps[:, None] + gaps) / 2, np.outer(chance, chance)
    for scale in (1.2, 2.0, 3.0):
        tail = joint[mean > scale * math.sqrt(weight / 4 / size)].sum()
        assert tail <= bounds.tail_bound(weight / 4, 2 * size, scale)


def test_a_rarer_tail_is_caught():
    tail = coin_tail(40, 0.02, 2.0)
    assert tail > bounds.tail_bound(0.005, 40, 2.0) ** 20
    assert bounds.tail_bound(0.1, 50, 1.0) == 1


# --- independent labels --------------------------------------------------------------------------


def test_the_tilted_bound_for_independent_labels():
    p = np.concatenate([np.geomspace(1e-3, 0.499, 25), [0.5]])[:, None]
    size = np.unique(np.geomspace(1, 1e5, 50).astype(int))
    bound, exact = bounds.independent_tilted_bound(p, size), bounds.independent_advantage(p, size)
    assert np.all(exact <= bound * (1 + 1e-8))
    np.testing.assert_allclose(bound[-1], exact[-1], rtol=1e-8)
    bags = np.full((1, 30), 0.2)
    assert bounds.bag_gap_bounds(bags)[0, 0] == pytest.approx(
        float(bounds.independent_tilted_bound(0.2, 30))
    )
    mutant = bound * (4 * p * (1 - p)) ** (0.01 * size)
    assert np.any((exact > mutant) & (exact > 1e-250))


def test_two_point_priors_against_bags_and_against_the_other_way():
    for low, high, weight, size in [(0.1, 0.5, 0.3, 7), (0.0, 0.9, 0.5, 12), (0.7, 0.2, 0.9, 5)]:
        number = np.arange(size)
        bags = np.where(number[:, None] > np.arange(size - 1), high, low)
        chance = stats.binom.pmf(number, size - 1, weight)
        expected = [
            chance
            @ additive_advantage(
                np.column_stack([np.full(size, own), bags]), LabelProportions(size)
            )[:, 0]
            for own in (low, high)
        ]
        found = bounds.two_point_advantage(low, high, weight, size)
        np.testing.assert_allclose(found[:2], expected, atol=1e-14)
        assert found[2] == pytest.approx((1 - weight) * expected[0] + weight * expected[1])
    np.testing.assert_allclose(
        bounds.two_point_advantage(0.3, 0.3, 0.4, 90), bounds.independent_advantage(0.3, 90)
    )


def test_transforms_and_plain_sums_agree(monkeypatch):
    plain = bounds.two_point_advantage(0.1, 0.5, 0.3, 400)
    monkeypatch.setattr("labelaudit.bounds.exact.MAX_DIRECT", 1)
    np.testing.assert_allclose(bounds.two_point_advantage(0.1, 0.5, 0.3, 400), plain, atol=1e-14)


# --- gaps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 8, 25])
def test_the_proof_of_the_gap_theorem_step_by_step(size):
    """Tilting, the place of the mode, and the divergence of the proof, on random bags."""
    rng = np.random.default_rng(size)
    for _ in range(200):
        eta = special.expit(rng.choice([0.5, 3.0]) * rng.standard_normal(size))
        own, rest = min(eta[0], 1 - eta[0]), eta[1:] if eta[0] <= 0.5 else 1 - eta[1:]
        ratio = (1 - own) / own
        law, tilted = pmf(rest), special.expit(special.logit(rest) + math.log(ratio))
        other, count = pmf(tilted), np.arange(size)
        scale = law @ ratio**count
        np.testing.assert_allclose(law, scale * ratio**-count * other, rtol=1e-8, atol=1e-290)
        mode = count[other >= other.max() * (1 - 1e-12)][-1]
        assert tilted.sum() - 1 < mode < tilted.sum() + 1 + 1e-9
        cost = special.rel_entr(tilted, rest) + special.rel_entr(1 - tilted, 1 - rest)
        assert math.log(scale) - tilted.sum() * math.log(ratio) == pytest.approx(-cost.sum())
        gain = additive_advantage(eta[None], LabelProportions(size))[0, 0]
        middle = own * scale * ratio ** -float(mode) * other.max()
        assert gain <= middle * ROUNDING + 1e-14
        assert middle <= bounds.bag_gap_bounds(eta)[0] * ROUNDING


def test_tilting_the_wrong_way_is_no_bound():
    eta = np.array([0.5 + 0.45, *[0.05] * 12])
    own, rest = eta[0], eta[1:]
    tilted = special.expit(special.logit(rest) + special.logit(own))
    cost = special.rel_entr(tilted, rest) + special.rel_entr(1 - tilted, 1 - rest)
    mutant = own * np.exp(-cost.sum()) * pmf(tilted).max()
    gain = additive_advantage(eta[None], LabelProportions(13))[0, 0]
    assert mutant < gain <= bounds.bag_gap_bounds(eta)[0]


def test_the_price_of_a_tilt():
    """KL = integral of s g(theta + s) >= mu (1 - (1 + t) e^-t), for every prior and tilt."""
    theta = np.linspace(-15, 15, 301)[:, None]
    tilt = np.geomspace(1e-2, 20, 120)
    eta, moved = special.expit(theta), special.expit(theta + tilt)
    cost = special.rel_entr(moved, eta) + special.rel_entr(
        special.expit(-theta - tilt), special.expit(-theta)
    )
    floor = eta * special.expit(-theta) * special.gammainc(2, tilt)
    assert np.all(cost >= floor - 1e-15)
    assert (floor / cost).max() > 0.99
    assert np.any(cost < 1.05 * floor)


def test_the_plain_rate_is_proved_by_intervals():
    """r(beta) >= 3.84 beta^2: interval arithmetic over log-odds 0.1 to 12, estimates beyond.

    Below 0.1: h >= t^2/2 - t^3/3, beta <= t/4 and 1 - e^-x >= x - x^2/2 give at least
    8 (1 - 2t/3) (1 - t^2/16) > 7. Above 12: h >= 1 - 13 e^-12, m <= e^-12 and beta <= 1/2 give at
    least 4 (1 - 13 e^-12) (1 - e^-12) > 3.99.
    """
    pending, proved = [(0.1, 12.0)], 0
    while pending:
        low, high = pending.pop()
        if _rate_over(low, high) > 3.84:
            proved += 1
            continue
        assert high - low > 1e-7, f"r(beta) / beta^2 may be below 3.84 at log-odds {low}"
        pending += [(low, (low + high) / 2), ((low + high) / 2, high)]
    assert proved > 100
    t = 0.1
    assert 8 * (1 - 2 * t / 3) * (1 - t * t / 16) > 7
    assert 4 * (1 - 13 * math.exp(-12)) * (1 - math.exp(-12)) > 3.99
    beta = np.linspace(1e-3, 0.5, 200_001)
    ratio = bounds.gap_rate(beta) / beta**2
    assert 3.84 < ratio.min() < 3.8401


def _rate_over(low, high):
    """A lower bound on r(beta) / beta^2 over an interval of log-odds: each factor is monotone."""
    iv = mpmath.iv
    first, last = iv.mpf(low), iv.mpf(high)
    least, most = 1 - (1 + first) * iv.exp(-first), 1 - (1 + last) * iv.exp(-last)
    x = most / (2 + iv.exp(first) + iv.exp(-first))
    gap = (iv.exp(last) - 1) / (iv.exp(last) + 1) / 2
    return (least * ((1 - iv.exp(-x)) / x) / gap**2).a


def test_the_factor_mu_stays():
    """eta in {0, 1/2 - beta}, P(eta != 0) = 1/n: no rate beta^2 n survives."""
    for beta, size in itertools.product((0.1, 0.25, 0.4), (10, 100, 1000)):
        own = 0.5 - beta
        gain = bounds.two_point_advantage(0.0, own, 1 / size, size)[2]
        assert gain >= own / (math.e * size)
        mu = own * (1 - own) / size
        assert gain <= bounds.gap_bound(mu, beta, size)
    without_mu = math.exp(-0.5 * 0.4**2 * 1000)
    assert bounds.two_point_advantage(0.0, 0.1, 1e-3, 1000)[2] > 1e6 * without_mu


# --- label-DP ------------------------------------------------------------------------------------


def test_a_channel_without_privacy_exceeds_the_bound():
    """The mutant: a channel of epsilon 2 against the bound for epsilon 1."""
    flip = 1 / (1 + math.exp(2.0))
    channel = CountChannel([[1 - flip, flip], [flip, 1 - flip]])
    gain = additive_advantage([[0.5]], channel)[0, 0]
    assert bounds.response_advantage(0.5, 1.0) < gain <= bounds.response_advantage(0.5, 2.0) + 1e-15


# --- Laplace and geometric noise -----------------------------------------------------------------


def laplace_by_quadrature(eta, i, epsilon, scale=1.0):
    """f_1i - f_2i by numerical integration; `scale` widens the noise (the mutant)."""
    rest = pmf(np.delete(eta, i))
    count, rate = np.arange(rest.size), epsilon / scale

    def excess(z):
        one = eta[i] * (rest * np.exp(-rate * np.abs(z - count - 1))).sum()
        zero = (1 - eta[i]) * (rest * np.exp(-rate * np.abs(z - count))).sum()
        return rate / 2 * max(one, zero)

    ends = [-40 / rate, *range(len(eta) + 1), len(eta) + 40 / rate]
    total = sum(
        integrate.quad(excess, a, b, epsabs=1e-12, limit=200)[0]
        for a, b in itertools.pairwise(ends)
    )
    return total - max(eta[i], 1 - eta[i])


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_the_exact_laplace_advantage(epsilon):
    eta = np.array([0.5, 0.12, 0.8, 0.45, 0.33])
    exact = additive_advantage(eta[None], LaplaceProportions(5, epsilon))[0]
    for i in range(5):
        assert exact[i] == pytest.approx(laplace_by_quadrature(eta, i, epsilon), abs=2e-9)
    assert abs(exact[0] - laplace_by_quadrature(eta, 0, epsilon, scale=2.0)) > 1e-3


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_variance_after_clipping_in_fractions(size):
    q = Fraction(2, 5)
    for s in range(size + 1):
        law = [(1 - q) / (1 + q) * q ** abs(z - s) for z in range(size + 1)]
        law[0], law[-1] = q**s / (1 + q), q ** (size - s) / (1 + q)
        value = [Fraction(z, size) for z in range(size + 1)]
        value[0] -= q / (1 - q) / size
        value[-1] += q / (1 - q) / size
        mean = sum(p * v for p, v in zip(law, value, strict=True))
        assert mean == Fraction(s, size)
        variance = sum(p * v * v for p, v in zip(law, value, strict=True)) - mean**2
        formula = bounds.debiased_variance(s, size, -math.log(q))
        assert formula == pytest.approx(float(variance), rel=1e-12)
        noise = 2 * q / (1 - q) ** 2 / size**2
        assert variance < noise
        mechanism = GeometricProportions(size, -math.log(q))
        grid = np.arange(size + 1) / size
        np.testing.assert_allclose(mechanism.debias(grid), [float(v) for v in value])


# --- the chapter ---------------------------------------------------------------------------------


CHAPTER = "13_sharper_bounds"
executed = partial(smoke.executed, CHAPTER)


def test_the_bounds_hold():
    numbers = smoke.glued(executed())
    assert 1 <= numbers["sharper-coins"] < numbers["sharper-coins-form"]
    assert numbers["sharper-coins-form"] < numbers["sharper-coins-lemma"]
    assert numbers["sharper-mutant"] == "caught"
    assert numbers["sharper-coins-limit"] == pytest.approx(0.5 / math.sqrt(math.pi), rel=1e-3)
    assert numbers["sharper-lone"] >= numbers["sharper-lone-least"]
    assert 0.95 < numbers["sharper-most-root"] <= bounds.BAG_CONSTANT
    assert numbers["sharper-most-deviation"] <= ROUNDING
    assert numbers["sharper-tilt-mutant"] > 0
    reach = pd.read_csv(executed().folder / "files" / "reach.csv").dropna()
    slack = 4 * reach["error"] + 1e-12
    for name in ("LA.2", "T3.3", "Bessel", "0.93765"):
        assert (reach["exact"] <= reach[name] + slack).all(), name


# --- noise, uniform priors, and a density at one half --------------------------------------------


def noisy_excess(bound):
    """The largest excess of an advantage over `bound(eta, epsilon)` on hard bags and all noises."""
    excess = []
    for size, epsilon in itertools.product([1, 2, 3, 9, 33], [1e-6, 0.05, 0.5, 1.0, 3.0, math.inf]):
        eta = hard_bags(size, 200, np.random.default_rng(size))
        gain = additive_advantage(eta, GeometricProportions(size, epsilon))
        excess.append((gain - bound(eta, epsilon) * ROUNDING).max())
    return max(excess)


def test_one_bound_covers_response_aggregation_and_noise():
    assert noisy_excess(bounds.noisy_bag_bounds) <= 1e-15
    # Two per cent less is no bound any more, nor is the variance of one person more.
    assert noisy_excess(lambda eta, epsilon: 0.98 * bounds.noisy_bag_bounds(eta, epsilon)) > 1e-4
    shrunk = lambda eta, epsilon: bounds.noisy_bag_bounds(eta, 0.97 * epsilon)  # noqa: E731
    assert noisy_excess(shrunk) > 1e-4


def test_the_bound_under_noise_has_its_two_ends():
    mu, k = np.array([0.01, 0.1, 0.25]), np.array([1, 7, 300])
    tanh = math.tanh(0.35)
    np.testing.assert_allclose(bounds.noisy_bound(mu, 1, 0.7), 2 * mu * tanh, rtol=1e-12)
    np.testing.assert_allclose(
        bounds.noisy_bound(mu, k, math.inf), bounds.aggregation_bound(mu, k), rtol=1e-14
    )
    assert bounds.noisy_bound(mu, k, 0.0).max() < 1e-15
    for epsilon, variance in ((0.2, 15.75), (1e-4, 3.0), (2.0, 0.5)):
        q = math.exp(-epsilon)

        def kernel(t, q=q, variance=variance):
            noise = (1 - q) ** 2 / (1 - 2 * q * math.cos(t) + q * q)
            return math.exp(-variance * (1 - math.cos(t))) * noise / math.pi

        peaks = [1e-4, 1e-3, 1e-2, 0.1, 1.0]
        exact, _ = integrate.quad(kernel, 0, math.pi, points=peaks, limit=500)
        actual = bounds.noisy_bound(0.25, 1 + variance / 0.25, epsilon)
        assert actual == pytest.approx(0.5 * exact, rel=1e-8)


def test_a_coin_among_others_has_a_worth_between_the_two_bounds():
    """Left: the best linear predictor. Right: which labels are coins is told to the attacker."""
    largest = 0.0
    for size in (2, 3, 9, 40):
        eta = hard_bags(size, 500, np.random.default_rng(size))
        eta[:, 0] = 0.5
        information = worth(eta, LabelProportions(size))[:, 0]
        others = (eta * (1 - eta))[:, 1:].sum(axis=1)
        low, high = bounds.coin_worth_bounds(others)
        assert np.all(low <= information * ROUNDING)
        assert np.all(information <= high * ROUNDING)
        largest = max(largest, (information / low).max())
        # The mutants: a bound as large as the other one's middle would fail on both sides.
        assert np.any(information < 1.02 * low)
        assert np.any(information > 0.98 * high)
    assert largest > 1.2


@pytest.mark.parametrize("size", [1, 2, 3, 10, 40])
def test_uniform_priors_have_an_advantage_of_one_over_the_bag_size(size):
    """A false alarm has probability 1e-6: the seed is fixed."""
    eta = np.random.default_rng(size).random((200_000 // size, size))
    gains = additive_advantage(eta, LabelProportions(size)).mean(axis=1)
    error = 4.9 * gains.std() / math.sqrt(len(gains))
    low, high = bounds.uniform_advantage_bounds(size)
    assert low - error <= gains.mean() <= high + error
    if size > 2:
        assert gains.mean() < 0.9 * high
    coin = eta.copy()
    coin[:, 0] = 0.5
    quarter = worth(coin, LabelProportions(size))[:, 0] / 4
    both = math.hypot(gains.std(), quarter.std()) / math.sqrt(len(gains))
    assert abs(gains.mean() - quarter.mean()) <= 4.9 * both + 1e-12


def test_a_density_at_one_half_sets_the_limit():
    """k EAdv of uniform priors and of Beta(2, 2), with an atom elsewhere, at k = 600."""
    rng = np.random.default_rng(0)
    k, n_bags = 600, 250

    def mixed(shape):
        return np.where(rng.random(shape) < 0.3, 0.1, rng.random(shape))

    for density, mu, draw in (
        (1.0, 1 / 6, rng.random),
        (1.5, 0.2, partial(rng.beta, 2, 2)),
        (0.7, 0.7 / 6 + 0.3 * 0.09, mixed),
    ):
        gains = additive_advantage(draw((n_bags, k)), LabelProportions(k)).mean(axis=1)
        error = 4.9 * gains.std() / math.sqrt(n_bags)
        limit = float(bounds.density_limit(density, mu))
        assert abs(k * gains.mean() - limit) <= k * error + 0.02 * limit
        assert abs(k * gains.mean() - 1.25 * limit) > k * error
