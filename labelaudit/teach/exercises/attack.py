"""Chapters 1, 2 and 15: posteriors, the additive advantage, and bags drawn again."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy import stats

from labelaudit.checks import Floats
from labelaudit.teach.exercises.answers import Step, Wanted, exercise, flip


@exercise("ex-setting-two")
def two_people(*, own_prior: float) -> Wanted:
    """Posteriors of two people, one with prior 1/2, of whom exactly one has label 1."""
    return [
        Step(
            own_prior,
            "Compare the two ways to have exactly one: first but not second, second but not first.",
            {
                "A prior is the probability of a one. Multiply it by that of the other's zero.": (
                    own_prior / (own_prior + 0.5)
                )
            },
        ),
        Step(
            1 - own_prior,
            "The two posteriors must add up to the published count, which is one.",
        ),
    ]


@exercise("ex-setting-mate")
def known_member(*, eta: Floats, own_prior: float) -> Wanted:
    """Posteriors in the page's bag with one 1, if the last member is known to have label 0."""
    priors = np.array([own_prior, *eta[1:-1], 0])
    odds = priors / (1 - priors)
    mistakes = {
        "Odds, not priors, are in proportion to the posteriors.": priors / priors.sum(),
        "The last member cannot have the one: with prior 0 the posterior is 0.": (
            np.array([own_prior, *eta[1:]]) / np.sum([own_prior, *eta[1:]])
        ),
    }
    hint = (
        "With exactly one label 1, posteriors are in proportion to the prior odds. They sum to 1."
    )
    return Step(odds / odds.sum(), hint, mistakes if len(priors) > 2 else {})


@exercise("ex-setting-own")
def own_bag(*, bag_size: int, epsilon: float, own_prior: float) -> Wanted:
    """Probabilities of the two releases of LLP that reveal a bag; LLP+Geom's largest posterior."""
    odds = own_prior / (1 - own_prior) * math.exp(epsilon)
    product = "All labels are {0} with a probability that is a product of {1} equal factors."
    return [
        Step((1 - own_prior) ** bag_size, product.format(0, bag_size)),
        Step(own_prior**bag_size, product.format(1, bag_size)),
        Step(
            odds / (1 + odds),
            "With this noise the odds grow by a factor of at most exp(epsilon).",
            {"The factor is for the odds, not for the probability.": own_prior * math.exp(epsilon)},
        ),
    ]


@exercise("ex-additive-untouched")
def untouched(*, epsilon: float, own_prior: float) -> Wanted:
    """Additive and label advantage of four priors under randomized response."""
    eta = np.array([own_prior, 0.25, 0.3, 0.5])
    gain = eta - flip(epsilon)
    additive = np.maximum(gain, 0)
    below = {"Below the flip probability the attacker ignores the release: no loss.": gain}
    return [
        Step(
            additive,
            "The best guess follows the released bit only where it is surer than the prior.",
            below if (gain < 0).any() else {},
        ),
        Step(
            np.full(4, math.tanh(epsilon / 2)),
            "The second row, the label advantage, is 1 - 2 pi for every prior.",
            {"The second row is the first one again. It should not depend on the prior.": additive},
        ),
    ]


@exercise("ex-additive-coin")
def coin(*, own_prior: float) -> Wanted:
    """EAdv of label proportions for equal priors in bags of 2, 3 and 4."""
    steps = []
    for size in (2, 3, 4):
        fraction = np.arange(size + 1) / size
        masses = stats.binom.pmf(np.arange(size + 1), size, own_prior)
        error = float((masses * np.minimum(fraction, 1 - fraction)).sum())
        steps.append(
            Step(
                own_prior - error,
                f"At k = {size} the posterior is s/k, and its error min(s/k, 1 - s/k).",
                {f"At k = {size} that is the error left. What was it before?": error},
            )
        )
    return steps


@exercise("ex-again-hand")
def ten_people(*, own_prior: float) -> Wanted:
    """Posteriors of ten people after two releases in bags of two."""
    bags = [((0, 1), 1), ((2, 3), 2), ((4, 5), 1), ((0, 2), 1), ((1, 4), 1), ((3, 5), 2)]
    bags += [((6, 7), 1), ((8, 9), 1), ((6, 8), 1), ((7, 9), 1)]
    eta = np.where(np.arange(10) == 6, own_prior, 0.3)
    labels = np.array(list(itertools.product((0, 1), repeat=10)))
    possible = [all(row[list(bag)].sum() == count for bag, count in bags) for row in labels]
    weights = np.prod(np.where(labels == 1, eta, 1 - eta), axis=1) * possible
    truth = weights @ labels / weights.sum()
    return Step(
        truth,
        "Begin with the bag of two ones, and use each label in the person's other bag. For the last"
        " four people only two vectors of labels are possible.",
        {"The last four people are not independent: compare the two vectors of four labels.": (
            np.where(np.arange(10) < 6, truth, eta)
        )},
    )  # fmt: skip


@exercise("ex-again-limit")
def counting_limit(*, bag_size: int, own_prior: float) -> Wanted:
    """The bits of a bag's labels, those of its count, and the least number of releases."""
    needed = bag_size * stats.bernoulli(own_prior).entropy() / math.log(2)
    count = stats.binom(bag_size, own_prior).pmf(np.arange(bag_size + 1))
    released = stats.entropy(count, base=2)
    nats = "This is in nats. Take logarithms to base 2."
    return [
        Step(needed, "Each of the k labels has h(p) bits.", {nats: needed * math.log(2)}),
        Step(
            released,
            "The count is binomial: sum -P log2 P over its values.",
            {
                nats: released * math.log(2),
                "That is the largest entropy of a count, and counts are not equally likely.": (
                    math.log2(bag_size + 1)
                ),
            },
        ),
        Step(math.ceil(needed / released - 1e-9), "Each release brings the bits of one count."),
    ]
