"""The gradient of a release's log probability in the logits: posterior minus prior.

With logits l_i and priors eta_i = 1 / (1 + exp(-l_i)), P(release) = eta_i A + (1 - eta_i) B, where
A and B do not depend on l_i. So d log P(release) / d l_i = posterior_i - eta_i: the attack is the
gradient of maximum likelihood.
"""

import math

import numpy as np

from labelaudit.kernels import compiled
from labelaudit.kernels.attack import SMALL, attack_small_bag, bag_posteriors

# A logit beyond this counts as this: smaller priors, below 1e-250, would lose digits to underflow.
MAX_LOGIT = 575.0


@compiled()
def _read_logits(logits, start, k, p, c, odds):
    """Priors, complements and odds of k members; returns the moments of their count.

    They are NaN if a logit is not finite. A complement comes from the logit, not from the prior,
    which may be 1 to all digits.
    """
    mean = 0.0
    variance = 0.0
    for j in range(k):
        logit = float(logits[start + j])
        tail = math.exp(-min(abs(logit), MAX_LOGIT))
        near = 1.0 / (1.0 + tail)
        far = tail * near
        p[j] = near if logit > 0.0 else far
        c[j] = far if logit > 0.0 else near
        odds[j] = 1.0 / tail if logit > 0.0 else tail
        mean += p[j] + 0.0 * logit
        variance += p[j] * c[j]
    return mean, variance


@compiled()
def score(logits, targets, epsilon):
    """The mean of -log P(release) over bags, and its gradient in the logits, bag after bag.

    A row of `targets` is a release in count units, within 0..k, and the log scale of its noise.
    One thread: a batch of training is small.
    """
    n_bags = targets.shape[0]
    k = logits.size // n_bags
    q = math.exp(-epsilon)
    total = 0.0
    gradient = np.empty_like(logits)
    work = np.empty((12, k + 9))
    where = np.empty(k + 1, np.int64)
    p, c, odds, steps, noisy = work[0, :k], work[1, :k], work[2], work[5], work[6]
    prior = posterior = work[11]
    for bag in range(n_bags):
        x, scale, start = targets[bag, 0], targets[bag, 1], bag * k
        mean, variance = _read_logits(logits, start, k, p, c, odds)
        if math.isnan(mean):
            total = math.nan
            gradient[start : start + k] = math.nan
            continue
        value = 0.0
        if k <= SMALL:
            value = attack_small_bag(p, c, x, q, False, steps, noisy, posterior)
        if value > 0.0:
            total -= scale + math.log(value)
            for j in range(k):
                gradient[start + j] = (p[j] - posterior[j]) / n_bags
        else:
            prior[:k] = p
            total -= scale + bag_posteriors(x, epsilon, q, k, mean, variance, work, where)
            for j in range(k):
                gradient[start + j] = (prior[j] - work[10, j]) / n_bags
    return total / n_bags, gradient
