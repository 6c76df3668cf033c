"""Mechanisms made for known priors, against linear programs that hold every constraint at once."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from labelaudit import (
    CountChannel,
    GeometricProportions,
    LabelProportions,
    RandomizedResponse,
    additive_advantage,
    design,
    multiplicative_quantile,
    posterior,
    worth,
)
from labelaudit.poisson_binomial import leave_one_out, pmf

GRID = np.linspace(0, 1, 4001)


def most_on_a_grid(eta, epsilon, advantage, convex):
    """The largest E convex(posterior) over distributions on a grid, by a linear program."""
    q = math.exp(-epsilon)
    low, high = eta * q / (1 - eta + eta * q), eta / (eta + (1 - eta) * q)
    points = np.unique(np.append(GRID[(low <= GRID) & (high >= GRID)], [low, 0.5, high, eta]))
    points = points[(points >= low) & (points <= high)]
    gain = np.maximum(points, 1 - points) - max(eta, 1 - eta)
    done = linprog(
        -convex(points), gain[None], [advantage], [np.ones(points.size), points], [1, eta]
    )
    return -done.fun


CONVEX = {
    "square": lambda eta: lambda r: (r - eta) ** 2,
    "fourth power": lambda eta: lambda r: (r - eta) ** 4,
    "entropy": lambda eta: (
        lambda r: (
            np.where((r > 0) & (r < 1), 0, 0.0)
            - np.nan_to_num(-r * np.log(np.maximum(r, 1e-300)))
            - np.nan_to_num(-(1 - r) * np.log(np.maximum(1 - r, 1e-300)))
        )
    ),
}


@pytest.mark.parametrize("eta", [0.01, 0.2, 0.45, 0.5, 0.8])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0, math.inf])
@pytest.mark.parametrize("advantage", [0.0, 0.02, 0.15, 0.5])
@pytest.mark.parametrize("convex", CONVEX)
def test_three_values_are_the_best_for_every_convex_measure(eta, epsilon, advantage, convex):
    posteriors, weights = design.three_values(eta, epsilon, advantage)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert weights @ posteriors == pytest.approx(eta, abs=1e-12)
    value = weights @ CONVEX[convex](eta)(posteriors)
    assert value == pytest.approx(
        most_on_a_grid(eta, epsilon, advantage, CONVEX[convex](eta)), abs=1e-7
    )


@pytest.mark.parametrize("eta", [0.0, 1e-9, 0.05, 0.3, 0.5, 0.7, 0.999, 1.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0, math.inf])
@pytest.mark.parametrize("advantage", [0.0, 0.03, 1.0])
def test_the_best_response_keeps_both_budgets(eta, epsilon, advantage):
    mechanism = design.best_response(eta, epsilon, advantage)
    assert additive_advantage([eta], mechanism)[0] <= advantage + 1e-12
    assert multiplicative_quantile([eta], mechanism, 1.0) <= epsilon + 1e-9
    assert worth([eta], mechanism)[0] == pytest.approx(mechanism.value, abs=1e-9)
    if advantage == 1 and 0 < eta < 1:
        response = RandomizedResponse(epsilon)
        assert worth([eta], response)[0] == pytest.approx(mechanism.value, abs=1e-9)


def test_nine_labels_in_ten_are_certain_at_an_additive_advantage_of_zero():
    mechanism = design.best_response(0.05, math.inf, 0.0)
    labels = (np.arange(20_000) % 20 == 0).astype(int)
    releases = mechanism.release(labels, np.random.default_rng(0))
    after = posterior(np.full(labels.size, 0.05), mechanism, releases)
    assert additive_advantage([0.05], mechanism)[0] == pytest.approx(0, abs=1e-15)
    assert (after == 0).mean() == pytest.approx(0.9, abs=0.01)
    assert not labels[after == 0].any()
    assert worth([0.05], mechanism)[0] == pytest.approx(0.9 / 1.9, abs=1e-12)
    estimates = mechanism.debias(releases)
    assert estimates.mean() == pytest.approx(0.05, abs=0.01)
    assert mechanism.matrix @ mechanism.debias([0, 1, 2]) == pytest.approx([0, 1], abs=1e-9)


def test_invalid_arguments_of_a_design_are_named():
    for arguments, message in (
        ((1.2, 1.0), r"eta must lie in \[0, 1\]"),
        ((0.2, -1.0), "epsilon"),
        ((0.2, math.nan), "epsilon"),
        ((0.2, 1.0, -0.1), "advantage"),
    ):
        with pytest.raises(ValueError, match=message):
            design.best_response(*arguments)
    with pytest.raises(ValueError, match="low <= high"):
        design.censored(4, 3, 2)
    with pytest.raises(ValueError, match="objective"):
        design.best_channel([[0.2, 0.3]], 2, objective="utility")
    with pytest.raises(ValueError, match="shape"):
        design.best_channel([[0.2, 0.3]], 3)
    with pytest.raises(ValueError, match="at least one bag"):
        design.best_channel(np.zeros((0, 2)), 2)
    with pytest.raises(ValueError, match="advantage"):
        design.best_channel([[0.2, 0.3]], 2, advantage=0.0)


def whole_program(eta, epsilon, advantage, objective):
    """The optimum of `best_channel`, with every constraint of every person and release."""
    n_bags, k = eta.shape
    size, people = k + 1, n_bags * k
    rest, own = leave_one_out(eta).reshape(people, k), eta.reshape(people)
    cells, total = size * size, size * size + people * size
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    weight = distance if objective == "error" else -(distance == 0).astype(float)
    cost = np.append((pmf(eta).mean(axis=0)[:, None] * weight).ravel(), np.zeros(people * size))
    rows, most = [], []
    for (i, p), z in itertools.product(enumerate(own), range(size)):
        one, zero = np.zeros(total), np.zeros(total)
        one[size + z : cells : size] = rest[i]
        zero[z : cells - size : size] = rest[i]
        if epsilon is not None:
            rows += [one - math.exp(epsilon) * zero, zero - math.exp(epsilon) * one]
            most += [0, 0]
        for joint in (p * one, (1 - p) * zero):
            joint[cells + i * size + z] = -1
            rows.append(joint)
            most.append(0)
    rows.append(np.append(np.zeros(cells), np.full(people * size, 1 / people)))
    most.append(np.maximum(own, 1 - own).mean() + (0.5 if advantage is None else advantage))
    equal = np.hstack([np.kron(np.eye(size), np.ones((1, size))), np.zeros((size, total - cells))])
    done = linprog(cost, np.array(rows), most, equal, np.ones(size))
    return done.fun if objective == "error" else -done.fun


@pytest.mark.parametrize("objective", ["error", "exact"])
@pytest.mark.parametrize(
    "epsilon, advantage", [(0.5, None), (None, 0.02), (1.5, 0.05), (0.0, None)]
)
@pytest.mark.parametrize("bag_size", [1, 2, 4])
def test_the_best_channel_is_the_optimum_of_the_whole_program(
    bag_size, epsilon, advantage, objective
):
    eta = np.random.default_rng(bag_size).uniform(0.05, 0.95, (3, bag_size))
    eta[0, 0] = 0.5
    channel = design.best_channel(eta, bag_size, epsilon, advantage, objective)
    expected = whole_program(eta, epsilon, advantage, objective)
    assert channel.value == pytest.approx(expected, abs=2e-5)
    assert channel.bound == pytest.approx(expected, abs=2e-5)
    assert channel.gap <= 1e-3
    if epsilon is not None:
        assert multiplicative_quantile(eta, channel, 1.0) <= epsilon + 1e-9
    if advantage is not None:
        assert additive_advantage(eta, channel).mean() <= advantage + 1e-12


def test_the_best_channel_of_many_bags_beats_geometric_noise():
    eta = np.random.default_rng(0).beta(2, 5, (100, 8))
    channel = design.best_channel(eta, 8, epsilon=1.0)
    assert channel.gap < 0.01
    assert multiplicative_quantile(eta, channel, 1.0) <= 1 + 1e-9
    counts = pmf(eta).mean(axis=0)
    distance = np.abs(np.subtract.outer(np.arange(9), np.arange(9)))
    geometric = counts @ (GeometricProportions(8, 1.0).channel().matrix * distance).sum(axis=1)
    assert channel.value < geometric


@pytest.mark.parametrize("budgets", [{"epsilon": 1.0}, {"epsilon": 2.0, "advantage": 0.03}])
def test_a_channel_made_for_worth_keeps_its_budgets_and_beats_the_one_made_for_the_count(budgets):
    eta = np.random.default_rng(1).beta(2, 5, (40, 6))
    channel = design.best_channel(eta, 6, objective="worth", **budgets)
    assert channel.value == pytest.approx(worth(eta, channel).mean(), abs=1e-12)
    counted = worth(eta, design.best_channel(eta, 6, **budgets)).mean()
    assert counted <= channel.value + 1e-12 <= channel.bound + 2e-12
    assert multiplicative_quantile(eta, channel, 1.0) <= budgets["epsilon"] + 1e-9
    assert additive_advantage(eta, channel).mean() <= budgets.get("advantage", 1) + 1e-12
    assert counted < channel.value


@pytest.mark.parametrize("prior", [0.05, 0.5, 0.8])
@pytest.mark.parametrize(
    "epsilon, advantage", [(0.0, None), (1.0, None), (2.0, 0.02), (None, 0.003)]
)
@pytest.mark.parametrize("bag_size", [1, 5])
def test_equal_priors_reach_the_bound_on_the_worth(bag_size, epsilon, advantage, prior):
    eta = np.full((1, bag_size), prior)
    channel = design.best_channel(eta, bag_size, epsilon, advantage, objective="worth")
    assert channel.bound - channel.value < 1e-3 * channel.bound + 1e-9
    if bag_size == 1:
        limits = np.inf if epsilon is None else epsilon, np.inf if advantage is None else advantage
        assert channel.bound == pytest.approx(design.best_response(prior, *limits).value, abs=1e-9)


@pytest.mark.parametrize("prior", [1e-9, 1e-6, 1 - 1e-6])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 3.0])
def test_the_bound_on_the_worth_is_exact_for_rare_labels(epsilon, prior):
    """Cancellation made it 0.02 % wrong; where it was too small it was raised to the value."""
    channel = design.best_channel([[prior]], 1, epsilon, objective="worth")
    expected = worth([prior], RandomizedResponse(epsilon))[0]
    assert channel.bound == pytest.approx(expected, rel=1e-8, abs=0)
    assert channel.value <= channel.bound * (1 + 1e-9)


def test_a_value_above_its_bound_is_an_error(monkeypatch):
    right = design._worth_bound
    monkeypatch.setattr(design, "_worth_bound", lambda *limits: 0.99 * right(*limits))
    with pytest.raises(ArithmeticError, match="was reached, above its bound"):
        design.best_channel(np.full((1, 4), 0.3), 4, 1.0, objective="worth")


def test_known_labels_and_missing_budgets_do_no_harm_to_a_design():
    known = np.array([[0.0, 1.0, 1.0]])
    assert design.best_channel(known, 3, epsilon=0.1).value == 0
    told = design.best_channel(known, 3, epsilon=0.1, objective="worth")
    assert (told.value, told.bound) == (0, 0)
    free = design.best_channel([[0.2, 0.4, 0.9]], 3)
    assert free.value == pytest.approx(0, abs=1e-12)
    assert free.debias([0, 1, 2, 3]) == pytest.approx([0, 1 / 3, 2 / 3, 1], abs=1e-9)
    mixed = design.best_channel([[0.2, 1.0, 0.0], [0.5, 0.5, 0.5]], 3, epsilon=0.7, advantage=0.05)
    assert multiplicative_quantile([[0.2, 1.0, 0.0], [0.5, 0.5, 0.5]], mixed, 1.0) <= 0.7 + 1e-9


def test_a_censored_count_reports_what_lies_in_between():
    channel = design.censored(5, 1, 3)
    labels = np.triu(np.ones((6, 5)), 0)[:, ::-1]
    releases = channel.release(labels, np.random.default_rng(0))
    assert releases.tolist() == np.clip(labels.sum(axis=1), 1, 3).tolist()
    assert channel == CountChannel(np.eye(6)[[1, 1, 2, 3, 3, 3]])
    assert design.censored(3, 0, 3) == CountChannel(LabelProportions(3).channel().matrix)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
def test_the_censoring_range_bounds_every_shift_and_is_the_widest(epsilon):
    """Theorem of chapter 16 on random bags; one count more at either end breaks it."""
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(100 if epsilon >= 1 else 20):
        # Large bags where epsilon is small: in small ones nothing but a constant would do.
        k = int(rng.integers(2, 17) if epsilon >= 1 else rng.integers(60, 80))
        eta = rng.beta(*rng.uniform(0.5, 4, 2), (1, k))
        eta[rng.random(eta.shape) < 0.05] = rng.integers(2)
        chosen = design.censoring_range(eta, epsilon)
        if chosen is None:
            continue
        found += 1
        low, high = chosen
        assert multiplicative_quantile(eta, design.censored(k, low, high), 1.0) <= epsilon + 1e-9
        counts = pmf(eta)[0]
        if low and counts[:low].sum() > 1e-9 and ((eta > 0) & (eta < 1)).any():
            wider = design.censored(k, low - 1, high)
            assert multiplicative_quantile(eta, wider, 1.0) > epsilon
    assert found > 10
    assert design.censoring_range(np.full((1, 3), 0.5), 0.01) is None
    assert design.censoring_range([[0.0, 1.0]], 0.5) == (0, 2)
