"""How much a release helps the attacker, exact over every release the mechanism can make."""

from collections.abc import Iterator
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from labelaudit import checks
from labelaudit.attack import TABLE_ENTRIES, attack, within_range
from labelaudit.checks import Floats
from labelaudit.mechanisms import Mechanism, NoisyCount
from labelaudit.poisson_binomial import leave_one_out

# In the order of `kernels.advantage`.
Measure = Literal["additive", "conditional", "worth"]


def additive_advantage(eta: ArrayLike, mechanism: Mechanism) -> Floats:
    """f_1i - f_2i of Lemma A.1: the gain in P(guess = y_i) from the release, for each example.

    The sum over releases of max(P(y_i = 1, z), P(y_i = 0, z)), less max(eta_i, 1 - eta_i). Its
    mean over examples is the expected attack advantage of Definition 3.1.

    >>> from labelaudit import LabelProportions, RandomizedResponse
    >>> additive_advantage([[0.5, 0.5]], LabelProportions(2)).tolist()
    [[0.25, 0.25]]
    >>> float(additive_advantage([0.4], RandomizedResponse(0.8))[0]).__round__(6)
    0.089974
    """
    return measured(eta, mechanism, "additive")[0]


def label_advantage(eta: ArrayLike, mechanism: Mechanism) -> Floats:
    """Total-variation distance between the release given y_i = 1 and given y_i = 0.

    The true-positive rate minus the false-positive rate of the best test of label i. On skewed
    data it shows that the few positives are exposed, while the additive advantage is near zero.

    >>> from labelaudit import RandomizedResponse
    >>> float(label_advantage([0.01], RandomizedResponse(1.0))[0]).__round__(6)
    0.462117
    """
    return measured(eta, mechanism, "conditional")[0]


def worth(eta: ArrayLike, mechanism: Mechanism) -> Floats:
    """The fraction of each label's variance that the release explains, exact over releases.

    The variance of the posterior divided by eta (1 - eta): 1 if the label itself is released, 0 if
    nothing is. It is also the Fisher information on the logit of eta_i that the release keeps, so
    what an attacker learns about a person is what a learner can learn from them. A label whose
    prior is exactly 0 or 1 has no variance; its worth is 0. Laplace noise has closed forms too.

    >>> from labelaudit import LabelProportions
    >>> worth([[0.5] * 4], LabelProportions(4)).round(12).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    return measured(eta, mechanism, "worth")[0]


def measured(eta: ArrayLike, mechanism: Mechanism, *wanted: Measure) -> Floats:
    """Several measures from one computation: an array of each, in the shape of `eta`."""
    priors = checks.priors(eta, checks.bag_size(mechanism))
    results = np.zeros((len(wanted), *priors.shape))
    if priors.shape[1] == 1 and isinstance(mechanism, NoisyCount) and not mechanism.continuous:
        results = np.stack([_response_gain(priors, mechanism.epsilon, name) for name in wanted])
    elif mechanism.epsilon > 0 and isinstance(mechanism, NoisyCount):
        from labelaudit.kernels.advantage import measures

        indices = np.array([get_args(Measure).index(measure) for measure in wanted])
        kind = mechanism.epsilon, mechanism.continuous
        results = measures(within_range(priors), *kind, indices)
    elif mechanism.epsilon > 0:
        for part, if_one, if_zero in release_distributions(priors, mechanism):
            for result, measure in zip(results, wanted, strict=True):
                result[part] = _channel_gain(priors[part], if_one, if_zero, measure)
    for result, measure in zip(results, wanted, strict=True):
        if measure == "worth":
            result[(priors == 0) | (priors == 1)] = 0
        # A measure cannot leave this range; what is outside is rounding.
        most = np.minimum(priors, 1 - priors) if measure == "additive" else 1.0
        np.clip(result, 0, most, out=result)
    return results.reshape(len(wanted), *np.shape(eta))


def _response_gain(eta: Floats, epsilon: float, measure: Measure) -> Floats:
    """A measure of randomized response, in closed form."""
    flip, kept = np.exp(-epsilon) / (1 + np.exp(-epsilon)), np.tanh(epsilon / 2)
    if measure == "conditional":
        return np.full_like(eta, kept)
    if measure == "additive":
        return np.minimum(eta, 1 - eta) - flip
    explained = kept**2 * eta * (1 - eta)
    # The product of the probabilities of both releases.
    spread = flip * (1 - flip) + explained
    return np.divide(explained, spread, out=np.zeros_like(eta), where=spread > 0)


def _channel_gain(eta: Floats, if_one: Floats, if_zero: Floats, measure: Measure) -> Floats:
    """A measure from the distributions of the release given either label."""
    p = eta[:, :, None]
    if measure == "conditional":
        return np.maximum(if_one - if_zero, 0).sum(axis=2)
    if measure == "additive":
        excess = np.maximum(p * if_one - (1 - p) * if_zero, 0).sum(axis=2)
        return excess - np.maximum(2 * eta - 1, 0)
    total = p * if_one + (1 - p) * if_zero
    # A ratio of at most 1 / (eta (1 - eta)) each: nothing overflows where a square would.
    ratios = np.divide(if_one - if_zero, total, out=np.zeros_like(total), where=total > 0)
    return (p * (1 - p) * (if_one - if_zero) * ratios).sum(axis=2)


def release_distributions(
    eta: Floats, mechanism: Mechanism
) -> Iterator[tuple[slice, Floats, Floats]]:
    """P(z | y_i = 1) and P(z | y_i = 0) over all z of a finite channel, some bags at a time."""
    matrix = mechanism.channel().matrix
    step = max(1, TABLE_ENTRIES // (mechanism.bag_size * max(matrix.shape)))
    for start in range(0, len(eta), step):
        part = slice(start, start + step)
        others = leave_one_out(eta[part])
        yield part, others @ matrix[1:], others @ matrix[:-1]


def multiplicative_advantage(eta: ArrayLike, mechanism: Mechanism, releases: ArrayLike) -> Floats:
    """Definition 3.6: log posterior odds minus log prior odds of each label (natural log).

    Signed, infinite where the release reveals the label, 0 where the prior is exactly 0 or 1.

    >>> from labelaudit import LabelProportions, RandomizedResponse
    >>> multiplicative_advantage([0.3, 0.3], RandomizedResponse(1.0), [1, 0]).tolist()
    [1.0, -1.0]
    >>> multiplicative_advantage([[0.3, 0.6]], LabelProportions(2), [0.0]).tolist()
    [[-inf, -inf]]
    """
    return attack(eta, mechanism, releases, "shift")[0]
