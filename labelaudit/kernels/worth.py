"""The worth of a release: the posterior's variance divided by eta (1 - eta), exact over releases.

The posterior b obeys the recursion of `bag`, run upwards for an example with eta <= 1/2. An error
in b(z) grows by at most R(z - 1) / R(z) a step, and b(z) has the weight R(z): the error of the sum
does not grow, as long as b stays at most 1.
"""

import math

from labelaudit.kernels import compiled
from labelaudit.kernels.count import run_sums


@compiled()
def _at_most_one(x):
    """min(1, x), in the form that compiles to one instruction on a vector."""
    return x if x < 1.0 else 1.0


@compiled()
def geometric_worths(pmf, lo, hi, q, eta, n, work, worth):
    """Worths under geometric noise (or none) of n examples with eta <= 1/2."""
    odds, state, steps, mass = work[0], work[1], work[2], work[3]
    for z in range(lo, hi + 1):
        # Each end has all the noise beyond it.
        mass[z] = pmf[z] * ((1.0 - q) / (1.0 + q) if lo < z < hi else 1.0 / (1.0 + q))
        steps[z] = pmf[z - 1] / pmf[z] if z > lo else 0.0
    for i in range(n):
        odds[i] = eta[i] / (1.0 - eta[i])
        state[i] = odds[i] * q / (1.0 + odds[i] * q)
        worth[i] = mass[lo] * (state[i] - eta[i]) ** 2
    # Three terms a pass, so that an example's numbers stay in registers between them.
    for z in range(lo + 1, hi - 1, 3):
        step1, step2, step3 = steps[z], steps[z + 1], steps[z + 2]
        mass1, mass2, mass3 = mass[z], mass[z + 1], mass[z + 2]
        for i in range(n):
            b1 = _at_most_one(odds[i] * step1 * (1.0 - state[i]))
            b2 = _at_most_one(odds[i] * step2 * (1.0 - b1))
            b3 = _at_most_one(odds[i] * step3 * (1.0 - b2))
            terms = mass1 * (b1 - eta[i]) ** 2 + mass2 * (b2 - eta[i]) ** 2
            worth[i] += terms + mass3 * (b3 - eta[i]) ** 2
            state[i] = b3
    for z in range(hi + 1 - (hi - lo) % 3, hi + 1):
        for i in range(n):
            state[i] = _at_most_one(odds[i] * steps[z] * (1.0 - state[i]))
            worth[i] += mass[z] * (state[i] - eta[i]) ** 2
    for i in range(n):
        worth[i] /= eta[i] * (1.0 - eta[i])


@compiled()
def laplace_worths(pmf, lo, hi, q, eta, n, work, worth):
    """Worths under Laplace noise of n examples with eta <= 1/2, in closed form.

    Between j and j + 1 the density is C w + D q / w, where w = q^t, C = below[j] and D =
    above[j + 1] of `run_sums`. Both parts obey the recursion, with posteriors b and d, and the
    posterior is their mixture. The integral of the density times (posterior - eta)^2 is 1 / epsilon
    times (1 - q) (C (b - eta)^2 + D (d - eta)^2) - M (b - d)^2. M contains an arctangent and does
    not depend on the example.
    """
    below, above, mixed, under, over = work[0], work[1], work[2], work[3], work[4]
    run_sums(pmf, lo, hi, q, below, above)
    for j in range(lo, hi + 1):
        root = math.sqrt(below[j] * above[j + 1])
        # Both factors of the divisor may be so small that their product is 0.
        angle = 0.0
        if q > 0.0 and root > 0.0:
            angle = (1.0 - q) * root / (math.sqrt(q) * (below[j] + above[j + 1]))
        mixed[j] = math.sqrt(q) * root * math.atan(angle)
    for i in range(n):
        over[i] = eta[i] * q / (1.0 - eta[i] + eta[i] * q)
        under[i] = 0.0
        worth[i] = above[lo] * (over[i] - eta[i]) ** 2
    for j in range(lo, hi + 1):
        from_below = below[j - 1] / below[j] if j > lo else 0.0
        from_above = above[j] / above[j + 1] if j < hi else 0.0
        # Beyond the last count the posterior stays as it is.
        left = below[j] * (1.0 - q if j < hi else 1.0)
        right, both = (1.0 - q) * above[j + 1], mixed[j]
        for i in range(n):
            odds = eta[i] / (1.0 - eta[i])
            b = _at_most_one(odds * from_below * (1.0 - under[i]))
            d = _at_most_one(odds * from_above * (1.0 - over[i]))
            terms = left * (b - eta[i]) ** 2 + right * (d - eta[i]) ** 2
            worth[i] += terms - both * (b - d) ** 2
            under[i] = b
            over[i] = d
    for i in range(n):
        worth[i] *= 0.5 / (eta[i] * (1.0 - eta[i]))
