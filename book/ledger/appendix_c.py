"""Checks of Appendix C, how the experiments were run (paper lines 1488 to 1578).

q = e^-epsilon. The count of a bag of k gets two-sided geometric noise J with P(J = j)
proportional to q^|j|, is clipped to 0..k and divided by k; s is the true count.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from itertools import product
from math import exp

import numpy as np
import sympy

from book.ledger import exact
from book.ledger.check import Case, Cases, check, confirm
from book.ledger.exact import HALF

Q, RATE, Z = sympy.symbols("q rate z", positive=True)


@check("C-data")
def reported_sizes(quick: bool) -> Cases:
    settings = 10 + 10 + 100 + 100  # RR, LLP, LLP+Lap, LLP+Geom
    runs = settings * 8 * 10  # eight learning rates, ten repetitions
    yield Case(False, runs=runs, higgs_hours=runs // 6, kdd_hours=runs * 20)


@check("C-advsame", {"after": lambda value: Fraction(round(value) > 0)})
def advantage_unchanged(
    quick: bool, after: Callable[[Fraction], Fraction] = lambda value: value
) -> Cases:
    def debiased_channel(size: int, ratio: Fraction) -> exact.Channel:
        rows, values = exact.geometric_count(size, ratio), exact.debiased(size, ratio)

        def channel(labels: exact.Labels) -> Mapping[Hashable, Fraction]:
            moved: dict[Hashable, Fraction] = defaultdict(Fraction)
            for value, mass in zip(values, rows[sum(labels)], strict=True):
                moved[after(value)] += mass
            return moved

        return channel

    rng = np.random.default_rng(1531)
    ratios, draws = (Fraction(1, 10), HALF, Fraction(9, 10)), range(4 if quick else 20)
    for size, ratio, _ in product(range(1, 4 if quick else 6), ratios, draws):
        eta = tuple(Fraction(int(n), 20) for n in rng.integers(0, 21, size))
        plain = exact.additive_advantage(eta, exact.geometric_proportions(size, ratio), 0)
        yield Case(exact.additive_advantage(eta, debiased_channel(size, ratio), 0) == plain)


@check("C-lap", {"halving": 2})
def laplace(quick: bool, halving: int = 1) -> Cases:
    rate = halving * RATE  # k epsilon
    variance = sympy.integrate(Z**2 * sympy.exp(-Z * rate) * rate, (Z, 0, sympy.oo))
    same = sympy.simplify(variance - 2 / RATE**2) == 0
    worst = Fraction(0)
    for size in range(1, 6 if quick else 20):
        points = [Fraction(j, 4 * size) for j in range(-4 * size, 8 * size + 1)]
        for z, count in product(points, range(size)):
            low, high = Fraction(count, size), Fraction(count + 1, size)
            worst = max(worst, abs(abs(z - low) - abs(z - high)) * halving * size)
    yield Case(same and worst == 1, worst=worst)


@check("C-geom", {"power": 2})
def geometric(quick: bool, power: int = 1) -> Cases:
    """The difference of two geometrics is two-sided geometric; clipping keeps the ratio."""
    # P(Z+ - Z- = j) is the sum over i of (1-q)^2 q^(2i+j); the sum of q^(2i) is 1/(1-q^2)
    same = sympy.simplify((1 - Q) ** 2 / (1 - Q**2) - (1 - Q) / (1 + Q)) == 0
    worst = Fraction(0)
    for size, ratio, count in exact.noisy_counts(quick):
        rows = exact.geometric_count(size, ratio**power)
        plain = (1 - ratio**power) / (1 + ratio**power)
        for z in range(1, size):
            inside = rows[count][z] == plain * ratio ** (power * abs(z - count))
            confirm(inside, "unclipped outputs keep the two-sided geometric distribution")
        if count < size:
            pairs = zip(rows[count], rows[count + 1], strict=True)
            worst = max(worst, *(max(a / b, b / a) * ratio for a, b in pairs))
    yield Case(same and worst == 1, worst=worst)


@check("C-k1", {"flip_of": lambda odds: 1 / (2 + odds)})
def bag_of_one(quick: bool, flip_of: exact.Flip = exact.flip_for) -> Cases:
    for ratio in (*exact.RATIOS, *(Fraction(exp(-(2.0**j))) for j in range(-4, 6))):
        flip = flip_of(1 / ratio)
        yield Case(exact.geometric_count(1, ratio) == [[1 - flip, flip], [flip, 1 - flip]])
    confirm(sympy.simplify(Q / (1 + Q) - 1 / (1 + 1 / Q)) == 0, "P(J >= 1) = 1/(1+e^epsilon)")


@check("C-deb", {"divide": True})
def debiasing(quick: bool, divide: bool = False) -> Cases:
    """The overshoot is geometric in counts, so in proportions its mean is divided by k."""
    mean = (1 - Q) * Q * sympy.diff(1 / (1 - Q), Q)  # the sum of j (1-q) q^j
    confirm(sympy.simplify(mean - Q / (1 - Q)) == 0, "the mean overshoot is q/(1-q) counts")
    for size, ratio, count in exact.noisy_counts(quick):
        beyond = exact.geometric_count(size, ratio)[count][0]
        # P(s + J = -j | s + J <= 0), from the two-sided distribution, for each overshoot j
        tail = [(1 - ratio) / (1 + ratio) * ratio ** (count + j) / beyond for j in range(6)]
        memoryless = [(1 - ratio) * ratio**j for j in range(6)]
        confirm(tail == memoryless, "the overshoot does not depend on the true count")
    printed, true = exact.debiased(2, HALF, divide)[0], exact.debiased(2, HALF)[0]
    yield Case(printed == true, true=true, printed=printed)


@check("C-cond", {"divide": False})
def unbiased(quick: bool, divide: bool = True) -> Cases:
    bias = max(
        abs(exact.moments(size, ratio, count, divide)[0] - Fraction(count, size))
        for size, ratio, count in exact.noisy_counts(quick)
    )
    yield Case(bias == 0, bias=bias, example=exact.moments(2, HALF, 0, False)[0])
