"""Chapters 1, 2 and 15: posteriors, the additive advantage, and bags drawn again."""

import itertools
import math

import numpy as np
from scipy import stats

from book.chapters.exercises.answers import Right, Rights, exercise, flip
from labelaudit.checks import Floats


@exercise("ex-setting-two")
def two_people(*, own_prior: float) -> Rights:
    """Posteriors of two people, one with prior 1/2, of whom exactly one has label 1."""
    return [Right(own_prior, own_prior / (own_prior + 0.5)), Right(1 - own_prior)]


@exercise("ex-setting-mate")
def known_member(*, eta: Floats, own_prior: float) -> Rights:
    """Posteriors in the page's bag with one 1, if the last member is known to have label 0."""
    all_priors = np.array([own_prior, *eta[1:]])
    priors = np.append(all_priors[:-1], 0)
    odds = priors / (1 - priors)
    if len(odds) == 2:  # the first member has the one
        return Right(odds / odds.sum())
    return Right(odds / odds.sum(), priors / priors.sum(), all_priors / all_priors.sum())


@exercise("ex-setting-own")
def own_bag(*, bag_size: int, epsilon: float, own_prior: float) -> Rights:
    """Probabilities of the two releases of LLP that reveal a bag; LLP+Geom's largest posterior."""
    odds = own_prior / (1 - own_prior) * math.exp(epsilon)
    return [
        Right((1 - own_prior) ** bag_size),
        Right(own_prior**bag_size),
        Right(odds / (1 + odds), own_prior * math.exp(epsilon)),
    ]


@exercise("ex-additive-untouched")
def untouched(*, epsilon: float, own_prior: float) -> Rights:
    """Additive and label advantage of four priors under randomized response."""
    gain = np.array([own_prior, 0.25, 0.3, 0.5]) - flip(epsilon)
    additive = np.maximum(gain, 0)
    return [
        Right(additive, gain if (gain < 0).any() else None),
        Right(np.full(4, math.tanh(epsilon / 2)), additive),
    ]


@exercise("ex-additive-coin")
def coin(*, own_prior: float) -> Rights:
    """EAdv of label proportions for equal priors in bags of 2, 3 and 4."""
    rights = []
    for size in (2, 3, 4):
        fraction = np.arange(size + 1) / size
        masses = stats.binom.pmf(np.arange(size + 1), size, own_prior)
        error = float((masses * np.minimum(fraction, 1 - fraction)).sum())
        rights.append(Right(own_prior - error, error))
    return rights


@exercise("ex-additive-pair")
def pair_of_priors(*, own_prior: float) -> Rights:
    """Additive and label advantage on a prior of 0.3 in a pair whose count is released."""
    additive = max(0.3 - 0.7 * own_prior, 0.3 * own_prior)
    return [Right(additive, (1 - own_prior) / 2), Right(1 - own_prior, own_prior)]


@exercise("ex-again-hand")
def ten_people(*, own_prior: float) -> Rights:
    """Posteriors of ten people after two releases in bags of two."""
    bags = [((0, 1), 1), ((2, 3), 2), ((4, 5), 1), ((0, 2), 1), ((1, 4), 1), ((3, 5), 2)]
    bags += [((6, 7), 1), ((8, 9), 1), ((6, 8), 1), ((7, 9), 1)]
    eta = np.where(np.arange(10) == 6, own_prior, 0.3)
    labels = np.array(list(itertools.product((0, 1), repeat=10)))
    possible = [all(row[list(bag)].sum() == count for bag, count in bags) for row in labels]
    weights = np.prod(np.where(labels == 1, eta, 1 - eta), axis=1) * possible
    truth = weights @ labels / weights.sum()
    return Right(truth, np.where(np.arange(10) < 6, truth, eta))


@exercise("ex-again-limit")
def counting_limit(*, bag_size: int, own_prior: float) -> Rights:
    """The bits of a bag's labels, those of its count, and the least number of releases."""
    nats = bag_size * stats.bernoulli(own_prior).entropy()
    count = stats.entropy(stats.binom(bag_size, own_prior).pmf(np.arange(bag_size + 1)))
    return [
        Right(nats / math.log(2), nats),
        Right(count / math.log(2), count, math.log2(bag_size + 1)),
        Right(math.ceil(nats / count - 1e-9)),
    ]


@exercise("ex-again-twice")
def proven_at_once(*, own_prior: float) -> Rights:
    """The probabilities of equal labels in one bag of four, and in at least one of two."""
    p = np.array([1 - own_prior, own_prior])
    once, both = float(p @ p**3), float(p @ p**6)
    return [Right(once, float(p @ p**2)), Right(2 * once - both, 1 - (1 - once) ** 2)]
