"""Mechanisms made for known priors: the best answer of one person, the best channel of a bag.

All are finite channels, so whatever takes a `CountChannel` takes them. Their guarantees hold
against the attacker of the paper, who knows the priors and nothing else. `epsilon` is the label-DP
guarantee, which needs no priors; it is often infinite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from labelaudit import checks
from labelaudit.advantage import worth
from labelaudit.checks import Floats
from labelaudit.mechanisms import CountChannel, LabelProportions, RandomizedResponse
from labelaudit.poisson_binomial import leave_one_out, pmf

# The most rounds of `best_channel`, and the people whose constraints a round adds for a release.
ROUNDS = 200
ADDED = 3
# The most steps towards a larger worth; the first gains the most.
TANGENTS = 4
# Below what `_cut` looks for, so that no constraint is added twice.
TOLERANCE = {"primal_feasibility_tolerance": 1e-10}


def three_values(
    eta: ArrayLike, epsilon: float, advantage: ArrayLike = math.inf
) -> tuple[Floats, Floats]:
    """The best posteriors of one person, and their probabilities: two arrays of shape (..., 3).

    Under |I| <= epsilon and an additive advantage of at most `advantage` no release has a larger
    E phi(posterior), whatever the convex phi is (chapter 16). The posterior takes at most three
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
    """The best channel from counts 0..k to reported counts 0..k for the given bags.

    `epsilon` limits every |I|, `advantage` the mean additive advantage, each against an attacker
    who knows these priors and nothing else. "error" minimises the mean of |reported - true|;
    "exact" maximises the probability that the reported count is the true one, which a constant
    release may do best where few counts are likely; "worth" improves the mean worth step by step,
    up to a local maximum, and its bound is only what label proportions or randomized response
    are worth. A linear program:
    constraints are added where they fail, so its value bounds the optimum, and what still fails
    at the end is repaired by a little of a constant release. `gap` tells how much that costs.

    >>> eta = np.full((1, 8), 0.3)
    >>> round(best_channel(eta, 8, epsilon=1.0).value, 3)
    0.12
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
    program = _Program(priors, rate, budget, cost)
    matrix, bound = program.solve()
    if objective == "worth":
        return _most_worth(program, priors, matrix, rate)
    sign = -1 if objective == "exact" else 1
    value = sign * float((cost * matrix).sum())
    return DesignedChannel(matrix, counts @ matrix, value, sign * bound)


def _most_worth(
    program: _Program, priors: Floats, matrix: Floats, epsilon: float
) -> DesignedChannel:
    """Raise the mean worth from `matrix` on: it is convex, so its tangent is below it."""
    k = priors.shape[1]
    value = float(worth(priors, CountChannel(matrix)).mean())
    for _ in range(TANGENTS):
        program.cost[: matrix.size] = -program.slope(matrix).ravel()
        moved, _ = program.solve()
        reached = float(worth(priors, CountChannel(moved)).mean())
        if reached <= value * 1.001:
            break
        matrix, value = moved, reached
    alone = worth(priors.reshape(-1), RandomizedResponse(epsilon)).reshape(priors.shape)
    most = float(np.minimum(alone, worth(priors, LabelProportions(k))).mean())
    return DesignedChannel(matrix, pmf(priors).mean(axis=0) @ matrix, value, most)


class _Program:
    """The linear program of `best_channel`, with the constraints that were found to matter.

    Variables are the matrix, row by row, and for each release an upper bound on its part of the
    mean of sum_z max(eta P(z | 1), (1 - eta) P(z | 0)).
    """

    def __init__(self, priors: Floats, epsilon: float, advantage: float, cost: Floats) -> None:
        """As `best_channel` says."""
        self.size = cost.shape[0]
        unknown = (priors > 0) & (priors < 1)
        others, own = leave_one_out(priors)[unknown], priors[unknown][:, None]
        self.own = own
        # A column w of the matrix has P(z | y_i = b) = if_b[i] @ w.
        self.if_one, self.if_zero = (
            np.pad(others, ((0, 0), (1, 0))),
            np.pad(others, ((0, 0), (0, 1))),
        )
        self.one, self.zero = own * self.if_one, (1 - own) * self.if_zero
        self.growth, self.advantage = math.exp(min(epsilon, 700.0)), advantage
        self.bounded = math.isfinite(epsilon)
        self.base = float(np.maximum(own, 1 - own).mean()) if len(own) else 1.0
        # People who are known count in the mean with an advantage of 0.
        self.scale = len(own) / priors.size
        self.cost = np.append(cost.ravel(), np.zeros(self.size))
        self.rows: list[Floats] = []
        # The mean over all people is at most this.
        limit = np.append(np.zeros(cost.size), np.ones(self.size))
        self.limits, self.most = [limit], [self.base + advantage / max(self.scale, 1e-300)]

    def solve(self) -> tuple[Floats, float]:
        """A feasible matrix, and a bound on the optimum of what is minimised."""
        from scipy.optimize import linprog

        size = self.size
        equal = np.hstack([np.kron(np.eye(size), np.ones((1, size))), np.zeros((size, size))])
        for _ in range(ROUNDS):
            above = np.array([*self.limits, *self.rows])
            most = np.append(self.most, np.zeros(len(self.rows)))
            done = linprog(self.cost, above, most, equal, np.ones(size), options=TOLERANCE)
            if done.x is None:
                raise ArithmeticError(f"the linear program failed: {done.message}")
            matrix = np.clip(done.x[: size * size].reshape(size, size), 0, None)
            matrix /= matrix.sum(axis=1, keepdims=True)
            if not self._cut(matrix, done.x[size * size :]):
                break
        return self._repair(matrix), float(done.fun)

    def slope(self, matrix: Floats) -> Floats:
        """The derivative of the mean worth in each entry of the matrix, but for a factor."""
        one, zero = self.if_one @ matrix, self.if_zero @ matrix
        total = self.own * one + (1 - self.own) * zero
        ratio = np.divide(one - zero, total, out=np.zeros_like(total), where=total > 1e-300)
        spread = self.own * (1 - self.own)
        up = self.if_one.T @ (spread * (2 * ratio - self.own * ratio**2))
        return up - self.if_zero.T @ (spread * (2 * ratio + (1 - self.own) * ratio**2))

    def _row(self, release: int, column: Floats, part: float = 0.0) -> Floats:
        row = np.zeros(self.cost.size)
        row[release : self.size**2 : self.size] = column
        row[self.size**2 + release] = part
        return row

    def _cut(self, matrix: Floats, parts: Floats) -> bool:
        """Add constraints that fail; whether there were any."""
        before = len(self.rows)
        one, zero = self.if_one @ matrix, self.if_zero @ matrix
        for release in range(self.size):
            if self.bounded:
                for more, less, up, down in (
                    (one, zero, self.if_one, self.if_zero),
                    (zero, one, self.if_zero, self.if_one),
                ):
                    excess = more[:, release] - self.growth * less[:, release]
                    for person in np.argsort(excess)[-ADDED:]:
                        if excess[person] > 1e-8:
                            self.rows.append(
                                self._row(release, up[person] - self.growth * down[person])
                            )
            column = matrix[:, release]
            larger = self.one @ column > self.zero @ column
            slope = np.where(larger[:, None], self.one, self.zero).sum(axis=0) / max(len(larger), 1)
            if slope @ column > parts[release] + 1e-7:
                self.rows.append(self._row(release, slope, -1.0))
        return len(self.rows) > before

    def _repair(self, matrix: Floats) -> Floats:
        """Mix with a constant release until both budgets hold exactly."""
        if self.bounded and len(self.one):
            one, zero = self.if_one @ matrix, self.if_zero @ matrix
            excess = np.maximum(one - self.growth * zero, zero - self.growth * one).max(axis=0)
            excess = np.maximum(excess, 0)
            if excess.any():
                if self.growth == 1:
                    return np.tile(matrix.mean(axis=0), (self.size, 1))
                matrix = matrix + 1.0000001 * excess / (self.growth - 1)
                matrix /= matrix.sum(axis=1, keepdims=True)
        if len(self.one):
            best = np.maximum(self.one @ matrix, self.zero @ matrix).sum(axis=1).mean()
            gain = (best - self.base) * self.scale
            if gain > self.advantage:
                keep = self.advantage / gain * (1 - 1e-12)
                matrix = keep * matrix + (1 - keep) * matrix.mean(axis=0)
        return matrix
