"""Chapters 5, 7, 8 and 16: the multiplicative advantage, and what a target allows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from labelaudit.teach.exercises.answers import (
    close,
    entry,
    equal_labels,
    exercise,
    numbers,
    require,
    smallest,
    whole,
)


@exercise("ex-multiplicative-compute")
def no_bag_revealed(answer: Any, *, bag_size: int) -> None:
    """The smallest bag size with fewer than one expected bag of equal labels, and their number."""
    size, expected = numbers(answer, 2)

    def equal_bags(k: float) -> float:
        return 50_000_000 / k * equal_labels(0.04, k)

    smallest(
        size,
        lambda k: equal_bags(k) < 1,
        "With this bag size at least one bag of equal labels is expected.",
        "A smaller bag suffices.",
    )
    require(
        close(expected, equal_bags(bag_size), 1e-3),
        "There are people / k bags, and a bag has equal labels with probability p^k + (1-p)^k.",
    )


@exercise("ex-scatter-large")
def never_revealed(answer: Any) -> None:
    """The smallest bags that are revealed at most once in a million."""
    for p, size in zip((1 / 2, 1 / 16), numbers(answer, 2), strict=True):
        smallest(
            size,
            lambda k, p=p: equal_labels(p, k) <= 1e-6,  # type: ignore[misc]
            f"p = {p:g}: a bag of this size is revealed more often than once in a million.",
            f"p = {p:g}: a smaller bag suffices.",
        )


@exercise("ex-distribution-size")
def finite_from(answer: Any, *, means: Mapping[str, float], level: float) -> None:
    """For each distribution, the smallest bag whose population quantile can be finite."""
    for name, mean in means.items():
        smallest(
            entry(answer, name),
            lambda k, p=mean: equal_labels(p, k) <= 1 - level,  # type: ignore[misc]
            f"{name}: more than {1 - level:.3g} of the mass is infinite at this bag size.",
            f"{name}: a smaller bag suffices.",
        )


@exercise("ex-measure-compute")
def certain_without_advantage(answer: Any) -> None:
    """The mean of |1 - 2 eta| over Beta(2, 30)."""
    from scipy import stats

    # E|1 - 2 eta| = 2 E max(eta, 1 - eta) - 1 = 1 - 2 E eta + 2 E (2 eta - 1)^+.
    prior = stats.beta(2, 30)
    truth = prior.expect(lambda eta: abs(1 - 2 * eta), points=[0.5])
    value = numbers(answer)
    require(not close(value, 0, 1e-9), "Advantage 0 does not mean that no label is certain.")
    require(
        close(value, truth, 1e-4),
        "At prior eta below 1/2 the posterior is 0 or 1/2, and its mean is eta. Average over eta.",
    )


@exercise("ex-measure-censor")
def censored_from(answer: Any) -> None:
    """The smallest bag of priors 0.3 whose count can be cut in two with shifts of at most 1."""
    from scipy import stats

    def can_be_cut(k: int) -> bool:
        """Whether "at most s" and "more than s" shift no log-odds by more than 1, for some s."""
        below = stats.binom(k - 1, 0.3).cdf(range(-1, k))
        # P(count <= s) is below[s] if the label is 1 and below[s + 1] if it is 0.
        one, zero = below[:-2], below[1:-1]
        return bool(((math.e * one >= zero) & (1 - one <= math.e * (1 - zero))).any())

    size = whole(answer)
    require(
        can_be_cut(size), "In a bag of this size every cut shifts some log-odds by more than 1."
    )
    require(not any(map(can_be_cut, range(1, size))), "A smaller bag suffices.")
