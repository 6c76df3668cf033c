"""Chapters 3, 4, 6 and 13: bounds on the advantage and the steps of their proofs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from labelaudit import bounds
from labelaudit.teach.exercises.answers import (
    close,
    entry,
    exercise,
    flip,
    numbers,
    require,
    smallest,
    whole,
)


@exercise("ex-aggregation-compute")
def how_large_a_bag(answer: Any) -> None:
    """The smallest bag of fair coins with EAdv at most 0.02, exactly and by three bounds."""
    curves: dict[str, Callable[[int], float]] = {
        "exact": lambda k: float(stats.binom.pmf((k - 1) // 2, k - 1, 0.5) / 2),
        "root": lambda k: float(bounds.independent_root_bound(0.5, k)),
        "Lemma A.2": lambda k: float(bounds.lemma_bound(0.5, 0.25, k)),
        "Bessel": lambda k: float(bounds.aggregation_bound(0.25, k)),
    }
    for name, curve in curves.items():
        smallest(
            entry(answer, name),
            lambda k, curve=curve: k > 1 and curve(k) <= 0.02,  # type: ignore[misc]
            f"{name}: at this bag size the value is still above 0.02.",
            f"{name}: a smaller bag meets the target too.",
        )


@exercise("ex-response-compute")
def when_it_starts(answer: Any, *, epsilon: float) -> None:
    """The least epsilon for a prior of 0.05, the advantage at twice it, and the least prior."""
    threshold, advantage, least = numbers(answer, 3)
    require(
        close(flip(threshold), 0.05),
        "The advantage starts where the flip probability equals the prior.",
    )
    require(
        close(advantage, 0.05 - 1 / (1 + 19**2)),
        "At twice that epsilon the flip probability is 1 / (1 + 19 squared).",
    )
    require(
        close(least, flip(epsilon)),
        "On this page the advantage is positive where the prior exceeds the flip probability.",
    )


@exercise("ex-workshop-first")
def first_escape(answer: Any) -> None:
    """The smallest k at which the printed interval of Lemma A.3 loses too much binomial mass."""

    def escapes(k: int) -> bool:
        logarithm = math.log(8 * k)
        width = logarithm / 3 + math.sqrt(2 * logarithm + 12 * k * 0.09 * logarithm) / 6
        counts = np.arange(k + 1)
        outside = stats.binom.pmf(counts, k, 0.1)[abs(counts - 0.1 * k) > width].sum()
        return bool(outside > 1 / (2 * k))

    number = whole(answer)
    first = next(k for k in itertools.count(1) if escapes(k))
    require(number >= first, "At this k the mass outside is still at most 1/(2k).")
    require(
        number == first,
        "The claim already fails at a smaller k. Failures are not permanent, so scan from 1.",
    )


@exercise("ex-sharper-compute")
def enough_for_two_priors(answer: Any) -> None:
    """The smallest listed bag with EAdv at most 0.001, for priors 0.4 or 0.6, in four ways."""

    def exact(k: int) -> float:
        """Sum over the number of others with prior 0.6; by symmetry the person's own is 0.4."""
        right, high = 0.0, np.arange(k)
        probabilities = stats.binom.pmf(high, k - 1, 0.5)
        for j in high[probabilities > 1e-9]:
            ones = stats.binom.pmf(np.arange(j + 1), j, 0.6)
            counts = np.convolve(ones, stats.binom.pmf(np.arange(k - j), k - 1 - j, 0.4))
            best = np.maximum(0.4 * np.append(0, counts), 0.6 * np.append(counts, 0))
            right += probabilities[j] * best.sum()
        return right - 0.6 * float(probabilities[probabilities > 1e-9].sum())

    curves: dict[str, Callable[[int], float]] = {
        "exact": exact,
        "gap": lambda k: float(bounds.gap_bound(0.24, 0.1, k)),
        "plain": lambda k: math.exp(-3.84 * 0.24 * 0.01 * (k - 1)),
        "Bessel": lambda k: float(bounds.aggregation_bound(0.24, k)),
    }
    for name, curve in curves.items():
        listed_bag(entry(answer, name), name, curve)


def listed_bag(answer: Any, name: str, curve: Callable[[int], float]) -> None:
    """The answer is the first of 2, 4, ..., 1400 at which a falling curve is at most 0.001."""
    if answer is None:
        require(curve(1400) > 0.001, f"{name}: some bag of the list is enough. Try the largest.")
        return
    size = whole(answer, 2, 1400, also=", or None")
    require(size % 2 == 0, f"{name}: an even number from 2 to 1400, or None, not {size}.")
    require(curve(size) <= 0.001, f"{name}: at this bag size the value is still above 0.001.")
    require(
        size == 2 or curve(size - 2) > 0.001,
        f"{name}: a smaller bag of the list meets the target too.",
    )
