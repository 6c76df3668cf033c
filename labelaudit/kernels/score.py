"""The gradient of a release's log probability in the logits: posterior minus prior.

With logits l_i and priors eta_i = 1 / (1 + exp(-l_i)), P(release) = eta_i A + (1 - eta_i) B, where
A and B do not depend on l_i. So d log P(release) / d l_i = posterior_i - eta_i: the attack is the
gradient of maximum likelihood.
"""

from __future__ import annotations

import math

import numpy as np

from labelaudit.kernels import compiled
from labelaudit.kernels.attack import SMALL, attack_small_bag, bag_posteriors

# A logit beyond this counts as this: exp(575) is 1e250, and the attack needs its square root twice.
LARGEST_LOGIT = 575.0


@compiled()
def _read_logits(logits, p, c, odds):
    """Priors, their complements and odds; the moments of the count, NaN if a logit is not finite.

    A complement comes from the logit, not from the prior, which may be 1 to all digits.
    """
    mean = 0.0
    variance = 0.0
    for j in range(logits.size):
        logit = float(logits[j])
        tail = math.exp(-min(abs(logit), LARGEST_LOGIT))
        near = 1.0 / (1.0 + tail)
        far = tail * near
        p[j] = near if logit > 0.0 else far
        c[j] = far if logit > 0.0 else near
        odds[j] = 1.0 / tail if logit > 0.0 else tail
        mean += p[j] + 0.0 * logit
        variance += p[j] * c[j]
    return mean, variance


@compiled()
def scores(logits, targets, epsilon):
    """Log P(release) of each bag, and its gradient in the logits: posterior minus prior.

    A row of `targets` is a release in count units, within 0..k, and the log scale of its noise.
    One thread: a batch of training is small.
    """
    n_bags, k = logits.shape
    q = math.exp(-epsilon)
    evidence = np.empty(n_bags)
    gradient = np.empty_like(logits)
    work = np.empty((12, k + 9))
    where = np.empty(k + 1, np.int64)
    prior = posterior = work[11]
    for bag in range(n_bags):
        x, scale = targets[bag, 0], targets[bag, 1]
        mean, variance = _read_logits(logits[bag], work[0], work[1], work[2])
        p, c = work[0, :k], work[1, :k]
        if math.isnan(mean):
            evidence[bag] = math.nan
            gradient[bag] = math.nan
            continue
        value = 0.0
        if k <= SMALL:
            value = attack_small_bag(p, c, x, q, False, work[5], work[6], posterior)
        if value > 0.0:
            evidence[bag] = scale + math.log(value)
            for j in range(k):
                gradient[bag, j] = posterior[j] - p[j]
        else:
            prior[:k] = p
            evidence[bag] = scale + bag_posteriors(x, epsilon, q, k, mean, variance, work, where)
            for j in range(k):
                gradient[bag, j] = work[10, j] - prior[j]
    return evidence, gradient
