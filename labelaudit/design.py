"""Mechanisms made for known priors: the best release of one label, the best channel of a bag.

All are finite channels, so whatever takes a `CountChannel` takes them. Their guarantees hold
against the attacker of the paper, who knows the priors and nothing else. `epsilon` is the label-DP
guarantee, which needs no priors; it is often infinite.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from labelaudit import checks
from labelaudit.advantage import worth
from labelaudit.channel_program import ChannelProgram
from labelaudit.checks import Floats
from labelaudit.mechanisms import CountChannel, GeometricProportions
from labelaudit.poisson_binomial import leave_one_out, pmf

__all__ = [
    "DesignedChannel",
    "best_channel",
    "best_response",
    "censored",
    "censoring_range",
    "three_values",
]

# The most steps towards a larger worth; the first gains the most.
TANGENTS = 4


def three_values(
    eta: ArrayLike, epsilon: float, advantage: ArrayLike = math.inf
) -> tuple[Floats, Floats]:
    """The best posteriors of one person, and their probabilities: two arrays of shape (..., 3).

    Under |I| <= epsilon and an additive advantage of at most `advantage` no release has a larger
    E phi(posterior), for any convex phi (chapter 16). The posterior takes at most three
    values: the two ends that epsilon allows, and 1/2 between them, at which the attacker gains
    nothing by a guess.

    >>> posteriors, weights = three_values(0.05, np.inf, 0.0)
    >>> posteriors.tolist(), weights.round(12).tolist()
    ([0.0, 0.5, 1.0], [0.9, 0.1, 0.0])
    """
    prior, budget = np.broadcast_arrays(
        checks.probabilities(eta), checks.at_most(advantage, "advantage", math.inf)
    )
    rate = checks.real_number(epsilon, "epsilon", 0, math.inf)
    q = math.exp(-rate)
    small = np.minimum(prior, 1 - prior)
    known = small == 0
    p = np.where(known, 0.5, small)
    low, high = p * q / (1 - p + p * q), p / (p + (1 - p) * q)
    # Randomized response has the two ends only; it is the best of all where the budget allows it.
    with np.errstate(divide="ignore", invalid="ignore"):
        response = np.where(high > low, (p - low) / (high - low), 0.5)
        most = np.where(high > 0.5, budget / (2 * high - 1), 1.0)
        top = np.minimum(response, most)
        # From the mean of posterior - low, which does not cancel at a small prior.
        middle = (p - low - top * (high - low)) / (0.5 - low)
    middle = np.where(top < response, middle, 0.0)
    bottom = 1 - top - middle
    posteriors = np.stack([low, np.full_like(p, 0.5), high], axis=-1)
    weights = np.clip(np.stack([bottom, middle, top], axis=-1), 0, 1)
    flipped = (prior > 0.5)[..., None]
    posteriors = np.where(flipped, 1 - posteriors[..., ::-1], posteriors)
    weights = np.where(flipped, weights[..., ::-1], weights)
    # Nothing can be learned about a known label.
    certain = known[..., None]
    return np.where(certain, prior[..., None], posteriors), np.where(certain, [0, 1, 0], weights)


@dataclass(frozen=True, eq=False, repr=False)
class DesignedChannel(CountChannel):
    """A channel made for given priors. `value` is its objective, `bound` the best that is possible.

    `probabilities` are those of the releases under the priors it was made for.
    """

    probabilities: Any
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """How far `value` may be from the optimum, as a fraction of the larger of the two."""
        larger = max(abs(self.value), abs(self.bound))
        return abs(self.bound - self.value) / larger if larger else 0.0

    def __repr__(self) -> str:
        """Short: the matrix is large."""
        shape = self.matrix.shape
        return f"DesignedChannel({shape[0]} counts, {shape[1]} releases, value={self.value:.6g})"

    def debias(self, releases: ArrayLike) -> Floats:
        """The unbiased estimates of the proportion with the least variance, where there are any."""
        scale = np.sqrt(np.maximum(self.probabilities, 1e-12))
        truth = np.arange(self.bag_size + 1) / self.bag_size
        estimates = np.linalg.lstsq(self.matrix / scale, truth, rcond=1e-12)[0] / scale
        if np.abs(self.matrix @ estimates - truth).max() > 1e-6:
            raise self._no_debias("no estimate from its releases is unbiased for every count")
        return estimates[self._columns(releases)]


def best_response(eta: float, epsilon: float, advantage: float = math.inf) -> DesignedChannel:
    """The most informative release of one person's label under both budgets (`three_values`).

    Releases are 0 (probably not), 1 (perhaps) and 2 (probably). It is made for people with this
    prior: people with other priors need mechanisms of their own. `value` is its worth.

    >>> mechanism = best_response(0.05, np.inf, 0.0)
    >>> mechanism.matrix.round(4).tolist(), round(mechanism.value, 4)
    ([[0.9474, 0.0526, 0.0], [0.0, 1.0, 0.0]], 0.4737)
    """
    prior = checks.real_number(eta, "eta", 0, 1)
    posteriors, weights = three_values(prior, epsilon, advantage)
    spread = prior * (1 - prior)
    if spread == 0:
        matrix, value = np.array([weights, weights]), 0.0
    else:
        matrix = np.array([weights * (1 - posteriors) / (1 - prior), weights * posteriors / prior])
        value = float(weights @ (posteriors - prior) ** 2 / spread)
    return DesignedChannel(matrix / matrix.sum(axis=1, keepdims=True), weights, value, value)


def censored(bag_size: int, low: int, high: int) -> CountChannel:
    """Report the count exactly between `low` and `high`, and `low` or `high` beyond: no noise.

    >>> censored(4, 1, 3).matrix.argmax(axis=1).tolist()
    [1, 1, 2, 3, 3]
    """
    k = checks.whole_number(bag_size, "bag_size")
    least = checks.whole_number(low, "low", least=0)
    most = checks.whole_number(high, "high", least=0)
    if not least <= most <= k:
        raise ValueError(f"low <= high <= bag_size must hold, not {least}, {most} and {k}")
    return CountChannel(np.eye(k + 1)[np.clip(np.arange(k + 1), least, most)])


def censoring_range(eta: ArrayLike, epsilon: float) -> tuple[int, int] | None:
    """The widest (low, high) with |I| <= epsilon for everyone in `eta`, or None (chapter 16).

    "At most low" moves the odds of label i by F_i(low - 1) / F_i(low), where F_i is the
    distribution function of the others' count. The ratio grows with `low`, and by log-concavity no
    exact count in between moves the odds further.

    >>> censoring_range(np.full((1, 16), 0.3), 1.0)
    (3, 8)
    """
    priors = checks.members(eta).reshape(-1, np.shape(eta)[-1])
    q = math.exp(-checks.real_number(epsilon, "epsilon", 0, math.inf))
    low = _least(priors, q)
    high = priors.shape[-1] - _least(1 - priors, q)
    return (low, high) if low < high else None


def _least(eta: Floats, q: float) -> int:
    """The least count from which on F_i(s - 1) >= q F_i(s) for all i and s."""
    cumulative = np.cumsum(leave_one_out(eta), axis=-1)[(eta > 0) & (eta < 1)]
    before = np.pad(cumulative, ((0, 0), (1, 0)))[:, :-1]
    fails = np.flatnonzero((before < q * cumulative * (1 - 1e-12)).any(axis=0))
    return int(fails[-1]) + 1 if fails.size else 0


def best_channel(
    eta_bags: ArrayLike,
    bag_size: int,
    epsilon: float | None = None,
    advantage: float | None = None,
    objective: Literal["error", "exact", "worth"] = "error",
) -> DesignedChannel:
    """The best channel for the given bags, from counts 0..k to 0..k; for "worth" to 0..k+2.

    `epsilon` limits every |I|, `advantage` the mean additive advantage, each against an attacker
    who knows these priors and nothing else. "error" minimises the mean of |reported - true|;
    "exact" maximises the probability that the reported count is the true one, which a constant
    release may do best where few counts are likely; "worth" raises the mean worth.

    The first two are a linear program: constraints are added where they fail, so its value bounds
    the optimum, and what still fails at the end is repaired by a little of a constant release.
    `gap` tells how much that costs. The worth is convex, so linear programs lead to a local
    maximum. Its `bound` holds for every channel of the count (chapter 16). Equal priors reach it
    to 0.1 %. For mixed priors it lets everybody have a channel of their own, so `gap` is large
    where a shared one costs much.

    >>> eta = np.full((1, 8), 0.3)
    >>> round(best_channel(eta, 8, epsilon=1.0).value, 3)
    0.12
    >>> best_channel(eta, 8, epsilon=1.0, objective="worth").gap < 1e-6
    True
    """
    k = checks.whole_number(bag_size, "bag_size")
    priors = checks.priors(eta_bags, k)
    if not len(priors):
        raise ValueError("eta_bags must hold at least one bag, not none")
    if objective not in ("error", "exact", "worth"):
        raise ValueError(f"objective must be 'error', 'exact' or 'worth', not {objective!r}")
    rate = checks.real_number(np.inf if epsilon is None else epsilon, "epsilon", 0, math.inf)
    budget = checks.real_number(0.5 if advantage is None else advantage, "advantage", 1e-6, 1)
    counts = pmf(priors).mean(axis=0)
    distance = np.abs(np.subtract.outer(np.arange(k + 1), np.arange(k + 1)))
    cost = counts[:, None] * (-np.eye(k + 1) if objective == "exact" else distance)
    if objective == "worth":  # two more releases, of no use for a count
        cost = np.pad(cost, ((0, 0), (0, 2)), constant_values=k)
    program = ChannelProgram(priors, rate, budget, cost)
    matrix, bound = program.solve()
    if objective == "worth":
        return _most_worth(program, priors, matrix, rate)
    sign = -1 if objective == "exact" else 1
    value = sign * float((cost * matrix).sum())
    return DesignedChannel(matrix, counts @ matrix, value, sign * bound)


def _most_worth(
    program: ChannelProgram, priors: Floats, matrix: Floats, epsilon: float
) -> DesignedChannel:
    """Raise the mean worth step by step, from three channels to start with.

    The worth is convex, so it lies above its tangents: a channel that is better on a tangent is at
    least as much better in worth.
    """

    def tangent(matrix: Floats) -> Floats:
        program.cost[: matrix.size] = -program.slope(matrix).ravel()
        return program.solve()[0]

    best, value = matrix, -1.0
    noisy = GeometricProportions(program.size - 1, epsilon).channel().matrix
    for channel in (None, np.eye(program.size), noisy):
        start = matrix if channel is None else tangent(np.pad(channel, ((0, 0), (0, 2))))
        reached = float(worth(priors, CountChannel(start)).mean())
        for _ in range(TANGENTS):
            moved = tangent(start)
            gained = float(worth(priors, CountChannel(moved)).mean())
            if gained <= reached * 1.001:
                break
            start, reached = moved, gained
        if reached > value:
            best, value = start, reached
    bound = _worth_bound(priors, epsilon, program.advantage)
    if value > bound * (1 + 1e-9) + 1e-12:  # equal priors reach the bound, to rounding
        raise ArithmeticError(f"a worth of {value!r} was reached, above its bound {bound!r}")
    return DesignedChannel(best, pmf(priors).mean(axis=0) @ best, value, bound)


def _worth_bound(priors: Floats, epsilon: float, advantage: float) -> float:
    """A bound on the mean worth of every channel of the count under both budgets (chapter 16).

    For each person the largest worth is a concave function of the additive advantage. The additive
    budget goes to the people for whom it buys the most worth. Equal priors attain the bound.
    """
    frontiers = [
        _frontier(float(prior), others, epsilon, advantage < 0.5)
        for bag, rest in zip(priors, leave_one_out(priors), strict=True)
        for prior, others in zip(bag, rest, strict=True)
        if 0 < prior < 1
    ]
    steps = np.concatenate([np.zeros((2, 0)), *(np.diff(pair) for pair in frontiers)], axis=1)
    costs, gains = steps[:, np.argsort(-steps[1] / steps[0])]
    paid = np.clip(advantage * priors.size - (np.cumsum(costs) - costs), 0, costs)
    return float((sum(pair[1, 0] for pair in frontiers) + paid @ (gains / costs)) / priors.size)


def _frontier(prior: float, others: Floats, epsilon: float, limited: bool) -> Floats:
    """Additive advantages of one person, and the most that the count is worth at each of them.

    u(t) = E(posterior - t)^+ is convex, and at most what label proportions and randomized response
    have: so at most the convex envelope of the smaller, whose corners are corners of the two. The
    worth is the area between u and (prior - t)^+, times 2 / (prior (1 - prior)); the additive
    advantage is 2 u(1/2). If not `limited`, only the largest additive advantage is returned.
    """
    if prior > 0.5:  # the two labels change places: what follows is exact for a rare label
        prior, others = 1 - prior, others[::-1]
    positive, negative = np.append(0, prior * others), np.append((1 - prior) * others, 0)
    mass = positive + negative
    posteriors, mass = positive[mass > 0] / mass[mass > 0], mass[mass > 0]
    (low, _, high), _ = three_values(prior, epsilon)
    points = np.unique([0, low, prior, high, 1, *posteriors])
    # First how much each u exceeds (prior - t)^+, on the side of the prior that does not cancel.
    below = np.maximum(np.subtract.outer(points, posteriors), 0) @ mass
    beyond = np.maximum(np.subtract.outer(-points, -posteriors), 0) @ mass
    counted = np.where(points < prior, below, beyond)
    sides = np.minimum((points - low) * (high - prior), (high - points) * (prior - low))
    response = np.maximum(sides, 0) / (high - low) if high > low else 0 * sides
    hull = _lower_hull(points, np.minimum(counted, response) + np.maximum(prior - points, 0))
    most = float(np.interp(0.5, *hull))
    heights = np.array([most])
    if limited:  # the area below is linear in u(1/2) between the extensions of the sides to 1/2
        ends = hull[1, :-1] + np.diff(hull[1]) / np.diff(hull[0]) * (0.5 - hull[0, :-1])
        heights = np.unique(np.clip([0, most, *ends], 0, most))
    areas = []
    for height in heights:
        at = np.searchsorted(hull[0], 0.5)
        lowered = _lower_hull(*np.insert(hull, at, [0.5, height], axis=1))
        corners = np.union1d(lowered[0], prior)
        excess = np.interp(corners, *lowered) - np.maximum(prior - corners, 0)
        areas.append(np.trapezoid(excess, corners))
    return np.array([2 * heights, 2 * np.array(areas) / (prior * (1 - prior))])


def _lower_hull(points: Floats, heights: Floats) -> Floats:
    """The corners of the convex envelope of a function given at increasing points."""
    hull: list[tuple[float, float]] = []
    for t, height in zip(points, heights, strict=True):
        while len(hull) > 1 and (
            (hull[-1][1] - hull[-2][1]) * (t - hull[-1][0])
            >= (height - hull[-1][1]) * (hull[-1][0] - hull[-2][0])
        ):
            hull.pop()
        hull.append((float(t), float(height)))
    return np.array(hull).T
