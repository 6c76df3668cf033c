"""The attack on a small bag, whose vectors are too short to be worth setting up."""

from __future__ import annotations

import math

from labelaudit.kernels import compiled
from labelaudit.kernels.count import TINY, noisy_pmf

# Bags this small are never worth trimming.
SMALL = 32


@compiled()
def _attack_end(eta, low, q, as_ratio, out):
    """A release at or beyond an end says the same of every label: exp(-epsilon), or its inverse."""
    for i in range(eta.size):
        prior = eta[i]
        if prior <= 0.0 or prior >= 1.0:
            return False
        odds = prior / (1.0 - prior)
        if as_ratio:
            out[i] = q if low else 1.0 / q
        else:
            out[i] = odds * q / (1.0 + odds * q) if low else odds / (odds + q)
    return True


@compiled()
def _noisy_steps(eta, x, t, q, steps, noisy):
    """Ratios of neighbouring probabilities of the noisy count: up to t upwards, above it downwards.

    False where a label is known or a probability leaves the range of a float: either puts an end
    of the distribution out of reach.
    """
    k = eta.size
    pmf = steps
    pmf[0] = 1.0
    for j in range(k):
        prior = eta[j]
        pmf[j + 1] = pmf[j] * prior
        for s in range(j, 0, -1):
            pmf[s] = pmf[s] * (1.0 - prior) + pmf[s - 1] * prior
        pmf[0] *= 1.0 - prior
    if not (pmf[0] > TINY and pmf[k] > TINY):
        return False
    if q == 0.0:
        noisy[0] = 0.0
        for s in range(k + 1):
            noisy[s + 1] = pmf[s]
    else:
        noisy_pmf(pmf, 0, k, x - t, q, q, noisy)
    for j in range(t + 1):
        steps[j] = noisy[j] / noisy[j + 1]
    for j in range(t + 1, k + 1):
        steps[j] = noisy[j + 1] / noisy[j]
    return True


@compiled()
def attack_small_bag(eta, x, q, as_ratio, steps, noisy, out):
    """The recursion of `bag` member by member; False if the bag needs the general way."""
    k = eta.size
    if not 0.0 < x < k:
        return _attack_end(eta, x <= 0.0, q, as_ratio, out)
    t = math.floor(x)
    if not _noisy_steps(eta, x, t, q, steps, noisy):
        return False
    for i in range(k):
        prior = eta[i]
        odds = prior / (1.0 - prior)
        up = 1.0
        if odds * steps[t] <= 1.0:
            up = odds * q / (1.0 + odds * q)
            for j in range(t + 1):
                up = odds * steps[j] * (1.0 - up)
        if up <= 0.9:
            out[i] = up / ((1.0 - up) * odds) if as_ratio else up
        else:
            odds = (1.0 - prior) / prior
            down = odds * q / (1.0 + odds * q)
            for j in range(k, t, -1):
                down = odds * steps[j] * (1.0 - down)
            out[i] = (1.0 - down) * odds / down if as_ratio else 1.0 - down
    return True
