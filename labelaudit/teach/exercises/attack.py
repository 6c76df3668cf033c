"""Chapters 1, 2 and 15: posteriors, the additive advantage, and bags drawn again."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from scipy import stats

from labelaudit.teach.exercises.answers import (
    close,
    equal_labels,
    exercise,
    flip,
    numbers,
    require,
    smallest,
)


@exercise("ex-setting-two")
def two_people(answer: Any) -> None:
    """Posteriors of two people of whom exactly one has label 1."""
    first, second = numbers(answer, 2)
    require(
        close(first + second, 1),
        "The two posteriors must add up to the published count, which is one.",
    )
    odds = (0.2 * 0.5) / (0.5 * 0.8)
    require(
        close(first * odds**-1, second),
        "Compare the two ways to have exactly one: first but not second, second but not first.",
    )


@exercise("ex-setting-mate")
def known_member(answer: Any) -> None:
    """Posteriors in the book's bag if one member is known to have label 0."""
    values = numbers(answer, 4)
    require(values[3] == 0, "A prior of 0 cannot change: the last posterior is 0.")
    require(
        close(values.sum(), 1),
        "One of the other three has label 1, so their posteriors add up to 1.",
    )
    odds = np.array([0.05, 0.10, 0.30]) / (1 - np.array([0.05, 0.10, 0.30]))
    require(
        close(values[:3], odds / odds.sum(), 1e-3),
        "With exactly one label 1 among three, posteriors are proportional to the prior odds.",
    )


@exercise("ex-setting-own")
def own_bag(answer: Any, *, bag_size: int, epsilon: float) -> None:
    """Probability that LLP reveals a bag of priors 0.1, and the largest posterior of LLP+Geom."""
    revealed, largest = numbers(answer, 2)
    require(
        not close(revealed, 0.9**bag_size) or close(0.1**bag_size, 0),
        "A fraction of 1 reveals everybody, as a fraction of 0 does.",
    )
    require(
        close(revealed, equal_labels(0.1, bag_size)),
        "Everybody is revealed when all labels are 0 or all are 1. Each probability is a product.",
    )
    odds = 0.1 / 0.9 * math.exp(epsilon)
    require(
        close(largest, odds / (1 + odds)),
        "With this noise odds grow by at most a factor of exp(epsilon). Start from odds of 1 to 9.",
    )


@exercise("ex-additive-untouched")
def untouched(answer: Any, *, epsilon: float) -> None:
    """Additive and label advantage of four priors under randomized response."""
    additive, label = numbers(answer, 2, 4)
    eta = np.array([0.1, 0.25, 0.3, 0.5])
    require(
        close(label, math.tanh(epsilon / 2)),
        "The second row, the label advantage, does not depend on the prior.",
    )
    require(
        (additive <= eta + 1e-9).all() and (additive >= -1e-9).all(),
        "An additive advantage lies between 0 and min(eta, 1 - eta).",
    )
    require(
        close(additive, np.maximum(eta - flip(epsilon), 0)),
        "The best guess follows the released bit only where it is more reliable than the prior.",
    )


@exercise("ex-additive-coin")
def coin(answer: Any) -> None:
    """EAdv of label proportions for fair coins in bags of 2, 3 and 4."""
    values = numbers(answer, 3)
    for size, value in zip((2, 3, 4), values, strict=True):
        count = np.arange(size + 1)
        fraction = count / size
        error = (stats.binom.pmf(count, size, 0.5) * np.minimum(fraction, 1 - fraction)).sum()
        require(
            close(value, 0.5 - error),
            f"At k = {size}: the posterior is the fraction. Average min(fraction, 1 - fraction).",
        )


@exercise("ex-again-hand")
def six_labels(answer: Any) -> None:
    """The labels of six people that two releases in bags of two prove, and -1 for the others."""
    values = numbers(answer, 6)
    bags = [((0, 1), 1), ((2, 3), 2), ((4, 5), 1), ((0, 2), 1), ((1, 4), 1), ((3, 5), 2)]
    possible = np.array(
        [
            labels
            for labels in itertools.product((0, 1), repeat=6)
            if all(sum(labels[person] for person in bag) == count for bag, count in bags)
        ]
    )
    truth = np.where((possible == possible[0]).all(axis=0), possible[0], -1)
    require(
        values[2] == values[3] == 1,
        "A bag of two with two ones proves both of its members: start there.",
    )
    require(
        (values != -1).sum() >= (truth != -1).sum(),
        "More labels are proven. Use each label you found in the person's other bag.",
    )
    require(close(values, truth), "Some of these labels contradict a published count.")


@exercise("ex-again-limit")
def counting_limit(answer: Any, *, bag_size: int) -> None:
    """The least number of releases by counting, for priors of 1/2 and of 1/16."""
    for p, releases in zip((1 / 2, 1 / 16), numbers(answer, 2), strict=True):
        needed = bag_size * stats.bernoulli(p).entropy()
        count = stats.binom(bag_size, p).pmf(np.arange(bag_size + 1))
        bought = stats.entropy(count)
        smallest(
            releases,
            lambda t, needed=needed, bought=bought: t * bought >= needed - 1e-9,  # type: ignore[misc]
            f"p = {p:g}: fewer bits are released than the labels have. Compare k h(p) with the "
            "entropy of the bag's count.",
            f"p = {p:g}: the counting limit allows fewer releases.",
        )
