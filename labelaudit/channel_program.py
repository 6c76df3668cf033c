"""The linear program behind `design.best_channel`: channels of a count under two budgets."""

import math

import numpy as np

from labelaudit.checks import Floats
from labelaudit.poisson_binomial import leave_one_out

# The most rounds, and the most people whose constraints a round adds for each release.
ROUNDS = 200
ADDED = 3
# Smaller than the violations that `_cut` looks for, so that no constraint is added twice.
TOLERANCE = {"primal_feasibility_tolerance": 1e-10}


class ChannelProgram:
    """Channels of least cost, with the constraints that were found to matter.

    Variables are the matrix, row by row, and for each release an upper bound on its part of the
    mean of sum_z max(eta P(z | 1), (1 - eta) P(z | 0)).
    """

    def __init__(self, priors: Floats, epsilon: float, advantage: float, cost: Floats) -> None:
        """`cost` has a row for each count and a column for each release; see `best_channel`."""
        self.size, self.columns = cost.shape
        unknown = (priors > 0) & (priors < 1)
        others, own = leave_one_out(priors)[unknown], priors[unknown][:, None]
        self.own = own
        # A column w of the matrix has P(z | y_i = b) = if_b[i] @ w.
        self.if_one, self.if_zero = (
            np.pad(others, ((0, 0), (1, 0))),
            np.pad(others, ((0, 0), (0, 1))),
        )
        # The same for the joint probabilities P(z, y_i = b).
        self.joint_one, self.joint_zero = own * self.if_one, (1 - own) * self.if_zero
        self.growth, self.advantage = math.exp(min(epsilon, 700.0)), advantage
        self.bounded = math.isfinite(epsilon)
        self.base = float(np.maximum(own, 1 - own).mean()) if len(own) else 1.0
        # People who are known count in the mean with an advantage of 0.
        self.scale = len(own) / priors.size
        self.cost = np.append(cost.ravel(), np.zeros(self.columns))
        self.rows: list[Floats] = []
        # The mean over all people is at most this.
        limit = np.append(np.zeros(cost.size), np.ones(self.columns))
        self.limits, self.most = [limit], [self.base + advantage / max(self.scale, 1e-300)]

    def solve(self) -> tuple[Floats, float]:
        """A feasible matrix, and a bound on the optimum of what is minimised."""
        from scipy.optimize import linprog

        size, columns = self.size, self.columns
        entries = size * columns
        sums = np.kron(np.eye(size), np.ones((1, columns)))
        equal = np.hstack([sums, np.zeros((size, columns))])
        for _ in range(ROUNDS):
            above = np.array([*self.limits, *self.rows])
            most = np.append(self.most, np.zeros(len(self.rows)))
            problem = (self.cost, above, most, equal, np.ones(size))
            done = linprog(*problem, options=TOLERANCE)
            if done.x is None:  # rarely the tolerance cannot be reached
                done = linprog(*problem, method="highs-ipm")
            if done.x is None:
                raise ArithmeticError(f"the linear program failed: {done.message}")
            matrix = np.clip(done.x[:entries].reshape(size, columns), 0, None)
            matrix /= matrix.sum(axis=1, keepdims=True)
            if not self._cut(matrix, done.x[entries:]):
                break
        return self._repair(matrix), float(done.fun)

    def slope(self, matrix: Floats) -> Floats:
        """The derivative of the mean worth in each entry of the matrix, up to a factor."""
        one, zero = self.if_one @ matrix, self.if_zero @ matrix
        total = self.own * one + (1 - self.own) * zero
        ratio = np.divide(one - zero, total, out=np.zeros_like(total), where=total > 1e-300)
        spread = self.own * (1 - self.own)
        up = self.if_one.T @ (spread * (2 * ratio - self.own * ratio**2))
        return up - self.if_zero.T @ (spread * (2 * ratio + (1 - self.own) * ratio**2))

    def _row(self, release: int, column: Floats, part: float = 0.0) -> Floats:
        row = np.zeros(self.cost.size)
        row[release : self.size * self.columns : self.columns] = column
        row[self.size * self.columns + release] = part
        return row

    def _cut(self, matrix: Floats, parts: Floats) -> bool:
        """Add the constraints that fail; return whether there were any."""
        before = len(self.rows)
        one, zero = self.if_one @ matrix, self.if_zero @ matrix
        for release in range(self.columns):
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
            larger = self.joint_one @ column > self.joint_zero @ column
            slope = np.where(larger[:, None], self.joint_one, self.joint_zero).sum(axis=0)
            slope /= max(len(larger), 1)
            if slope @ column > parts[release] + 1e-7:
                self.rows.append(self._row(release, slope, -1.0))
        return len(self.rows) > before

    def _repair(self, matrix: Floats) -> Floats:
        """Mix with a constant release until both budgets hold exactly."""
        if self.bounded and len(self.own):
            one, zero = self.if_one @ matrix, self.if_zero @ matrix
            excess = np.maximum(one - self.growth * zero, zero - self.growth * one).max(axis=0)
            excess = np.maximum(excess, 0)
            if excess.any():
                if self.growth == 1:
                    return np.tile(matrix.mean(axis=0), (self.size, 1))
                matrix = matrix + 1.0000001 * excess / (self.growth - 1)
                matrix /= matrix.sum(axis=1, keepdims=True)
        if len(self.own):
            right = np.maximum(self.joint_one @ matrix, self.joint_zero @ matrix)
            best = right.sum(axis=1).mean()
            gain = (best - self.base) * self.scale
            if gain > self.advantage:
                keep = self.advantage / gain * (1 - 1e-12)
                matrix = keep * matrix + (1 - keep) * matrix.mean(axis=0)
        return matrix
