"""Slow twins of the package: plain numpy, and brute force over all 2^k labels.

They share no code with what they check.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np

# Twice the digits of what is checked, and some for what cancels on the way.
mpmath.mp.prec = 160


def numpy_posterior(eta, likelihood):
    """Forward-backward over a bag's members, batched over bags: every term is positive."""
    n_bags, k = eta.shape
    forward = np.zeros((k + 1, n_bags, k + 1))
    forward[0, :, 0] = 1
    for j in range(k):
        p = eta[:, j, None]
        forward[j + 1] = forward[j] * (1 - p)
        forward[j + 1, :, 1:] += forward[j, :, :-1] * p
    posterior = np.empty((n_bags, k))
    backward = np.array(likelihood, dtype=float)
    for j in reversed(range(k)):
        p = eta[:, j]
        zero = (1 - p) * np.einsum("bs,bs->b", forward[j], backward)
        one = p * np.einsum("bs,bs->b", forward[j, :, :-1], backward[:, 1:])
        posterior[:, j] = one / (zero + one)
        ahead = np.zeros_like(backward)
        ahead[:, :-1] = backward[:, 1:]
        backward = backward * (1 - p)[:, None] + ahead * p[:, None]
    return posterior


def labellings(eta):
    """Every labelling of one bag with its probability, in the arithmetic of eta's entries."""
    for labels in itertools.product((0, 1), repeat=len(eta)):
        weight = eta[0] * 0 + 1
        for p, y in zip(eta, labels, strict=True):
            weight *= p if y else 1 - p
        yield labels, weight


def geometric_channel(k, q):
    """P(clipped noisy count = z | count = s), from the definition, in the arithmetic of q."""
    rows = []
    for s in range(k + 1):
        row = [(1 - q) / (1 + q) * q ** abs(z - s) for z in range(k + 1)]
        row[0] = q**s / (1 + q)
        row[k] = q ** (k - s) / (1 + q)
        rows.append(row)
    return rows


def precise_pmf(eta):
    """Distribution of the count in mpmath's arithmetic."""
    pmf = [mpmath.mpf(1)]
    for value in eta:
        p = mpmath.mpf(float(value))
        pmf = [
            (pmf[s] * (1 - p) if s < len(pmf) else 0) + (pmf[s - 1] * p if s else 0)
            for s in range(len(pmf) + 1)
        ]
    return pmf


class Bag:
    """One bag by enumeration of all 2^k labellings, in the arithmetic of eta's entries.

    `ones[i][s]` is P(y_i = 1, count = s), and `zeros[i][s]` is P(y_i = 0, count = s).
    """

    def __init__(self, eta):
        self.eta = list(eta)
        self.k = len(self.eta)
        nothing = self.eta[0] * 0
        self.ones = [[nothing] * (self.k + 1) for _ in self.eta]
        self.zeros = [[nothing] * (self.k + 1) for _ in self.eta]
        for labels, weight in labellings(self.eta):
            for i, y in enumerate(labels):
                (self.ones if y else self.zeros)[i][sum(labels)] += weight
        self.pmf = [a + b for a, b in zip(self.ones[0], self.zeros[0], strict=True)]

    def joints(self, i, channel):
        """Pairs P(y_i = 1, z), P(y_i = 0, z), one for each release z of a finite channel."""
        return [
            (_dot(self.ones[i], column), _dot(self.zeros[i], column))
            for column in zip(*channel, strict=True)
        ]

    def posterior(self, i, channel):
        """P(y_i = 1 | z) for each release z, None where z is impossible."""
        return [a / (a + b) if a + b else None for a, b in self.joints(i, channel)]

    def additive(self, i, channel):
        """f_1i - f_2i."""
        p = self.eta[i]
        return sum(max(a, b) for a, b in self.joints(i, channel)) - max(p, 1 - p)

    def conditional(self, i, channel):
        """Total variation between the releases given y_i = 1 and given y_i = 0."""
        p = self.eta[i]
        return sum(abs(a / p - b / (1 - p)) for a, b in self.joints(i, channel)) / 2

    def shifts(self, i, channel):
        """The distribution of the multiplicative advantage: pairs (log-odds shift, probability)."""
        p = self.eta[i]
        for a, b in self.joints(i, channel):
            if not a + b:
                continue
            if p in (0, 1):
                yield 0.0, a + b
            elif a and b:
                yield mpmath.log(precise(a / b)) - mpmath.log(precise(p / (1 - p))), a + b
            else:
                yield (mpmath.inf if a else -mpmath.inf), a + b


def _dot(left, right):
    return sum(a * b for a, b in zip(left, right, strict=True))


def precise(value):
    """A float or a fraction as an mpmath number."""
    if isinstance(value, Fraction):
        return mpmath.mpf(value.numerator) / value.denominator
    return mpmath.mpf(value)


def channel_of(mechanism):
    """The finite channel of a mechanism from its definition: rows are counts, columns releases."""
    k = mechanism.bag_size
    name = type(mechanism).__name__
    if name == "CountChannel":
        return [[precise(float(v)) for v in row] for row in mechanism.matrix]
    if name == "NoRelease":
        return [[mpmath.mpf(1)] for _ in range(k + 1)]
    if name == "RandomizedResponse":
        flip = 1 / (1 + mpmath.exp(mechanism.epsilon))
        return [[1 - flip, flip], [flip, 1 - flip]]
    if name == "LabelProportions" or mechanism.epsilon == math.inf:
        return [[mpmath.mpf(s == z) for z in range(k + 1)] for s in range(k + 1)]
    return geometric_channel(k, mpmath.exp(-mpmath.mpf(mechanism.epsilon)))


def release_values(mechanism):
    """The releases that `channel_of` has columns for."""
    if type(mechanism).__name__ in ("CountChannel", "NoRelease"):
        return [float(z) for z in range(len(channel_of(mechanism)[0]))]
    return [z / mechanism.bag_size for z in range(mechanism.bag_size + 1)]


def laplace_density(masses, x, epsilon):
    """Sum over counts s of masses[s] times the density of s plus Laplace(1 / epsilon) noise."""
    noise = (mpmath.exp(-epsilon * abs(x - s)) for s in range(len(masses)))
    return epsilon / 2 * mpmath.fsum(m * f for m, f in zip(masses, noise, strict=True))


def laplace_below(masses, x, epsilon):
    """The same for the probability that the noisy count is at most x."""
    total = mpmath.mpf(0)
    for s, mass in enumerate(masses):
        tail = mpmath.exp(-epsilon * abs(x - s)) / 2
        total += mass * (tail if x <= s else 1 - tail)
    return total


def laplace_excess(first, second, epsilon):
    """Integral of max(0, first - second) of two noisy counts: quadrature between sign changes."""
    epsilon = mpmath.mpf(epsilon)

    def difference(x):
        return laplace_density(first, x, epsilon) - laplace_density(second, x, epsilon)

    k = len(first) - 1
    total = sum(max(mpmath.mpf(0), difference(x)) for x in (0, k)) / epsilon
    for j in range(k):
        cuts = [mpmath.mpf(j), mpmath.mpf(j + 1)]
        if difference(j) * difference(j + 1) < 0:
            cuts.insert(1, mpmath.findroot(difference, (j, j + 1), solver="anderson"))
        for a, b in itertools.pairwise(cuts):
            if difference((a + b) / 2) > 0:
                total += mpmath.quad(difference, [a, b])
    return total


def laplace_shift_cdf(bag, i, t, epsilon):
    """P(|log-odds shift of label i| <= t) under Laplace noise, by bisection on the release."""
    p, epsilon, t = bag.eta[i], mpmath.mpf(epsilon), mpmath.mpf(t)
    if t >= epsilon:
        return mpmath.mpf(1)

    def crossing(target):
        low, high = mpmath.mpf(0), mpmath.mpf(bag.k)
        for _ in range(70):
            middle = (low + high) / 2
            one = laplace_density(bag.ones[i], middle, epsilon) / p
            zero = laplace_density(bag.zeros[i], middle, epsilon) / (1 - p)
            low, high = (middle, high) if one < target * zero else (low, middle)
        return low

    high, low = crossing(mpmath.exp(t)), crossing(mpmath.exp(-t))
    return laplace_below(bag.pmf, high, epsilon) - laplace_below(bag.pmf, low, epsilon)


def precise_posteriors(eta, log_weights):
    """Every member's posterior in mpmath by forward-backward: none of its terms is negative."""
    p = [mpmath.mpf(float(value)) for value in eta]
    ahead = [mpmath.exp(v) if v > -mpmath.inf else mpmath.mpf(0) for v in log_weights]
    forward = [[mpmath.mpf(1)]]
    for value in p:
        last = forward[-1]
        moved = [mpmath.mpf(0), *(value * m for m in last)]
        kept = [*((1 - value) * m for m in last), mpmath.mpf(0)]
        forward.append([a + b for a, b in zip(moved, kept, strict=True)])
    posteriors = [mpmath.mpf(0)] * len(p)
    for j in reversed(range(len(p))):
        one = p[j] * mpmath.fdot(forward[j], ahead[1 : j + 2])
        zero = (1 - p[j]) * mpmath.fdot(forward[j], ahead[: j + 1])
        posteriors[j] = one / (one + zero)
        ahead = [(1 - p[j]) * a + p[j] * b for a, b in itertools.pairwise(ahead)]
    return posteriors


def numpy_advantage(eta, channel, members):
    """Additive advantage of some members of one bag in numpy, without each of them in turn."""
    gains = []
    for i in members:
        rest = np.ones(1)
        for p in np.delete(eta, i):
            rest = np.convolve(rest, [1 - p, p])
        one, zero = eta[i] * (rest @ channel[1:]), (1 - eta[i]) * (rest @ channel[:-1])
        gains.append(np.maximum(one, zero).sum() - max(eta[i], 1 - eta[i]))
    return gains
