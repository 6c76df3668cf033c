"""Chapters 5, 7 and 8: the multiplicative advantage and bags of equal labels."""

from __future__ import annotations

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
