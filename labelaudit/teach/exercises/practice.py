"""Chapters 9 to 12 and 14: learning, real data, and an audit of one's own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats

from labelaudit import CountChannel, additive_advantage
from labelaudit.checks import Floats
from labelaudit.priors import Empirical
from labelaudit.teach.exercises.tools import close, exercise, flip, numbers, require, whole


@exercise("ex-learning-compute")
def loss_without_minimum(answer: Any) -> None:
    """The probability that 30 noisy targets average at most 0, and when it stays below 0.001."""
    probability, number = numbers(answer, 2)
    wrong = flip(1.0)

    def no_minimum(people: int) -> float:
        ones = np.arange(people + 1)
        targets = (ones / people - wrong) / (1 - 2 * wrong)
        distribution = stats.binom.pmf(ones, people, 0.2 * (1 - wrong) + 0.8 * wrong)
        return float(distribution[targets <= 0].sum())

    require(
        close(probability, no_minimum(30)),
        "The mean target is not above 0 when the fraction of released ones is at most pi.",
    )
    people = whole(number)
    above = [size for size in range(1, 1000) if no_minimum(size) >= 1e-3]
    require(people > above[-1], "At some larger number of people the probability is above 0.001 again.")
    require(people == above[-1] + 1, "From a smaller number on the probability stays below 0.001.")


@exercise("ex-higgs-sure")
def calibrated_and_sure(answer: Any, *, eta: Any, epsilon: float) -> None:
    """Mean advantage of randomized response, from an estimate and from one three times as sure."""
    plain, sure = numbers(answer, 2)
    odds = np.asarray(eta) / (1 - np.asarray(eta))
    for value, scores, name in ((plain, odds, "calibrated"), (sure, odds**3, "surer")):
        wrong = np.minimum(scores, 1) / (1 + scores)
        gain = np.maximum(wrong - flip(epsilon), 0).mean()
        require(
            close(value, gain, 1e-5),
            f"The {name} one: average what min(eta, 1 - eta) exceeds the probability of a flip by.",
        )


@exercise("ex-kdd-compute")
def tail_pays(answer: Any, *, eta: Any) -> None:
    """The fraction of the advantage at epsilon 1 that the largest tenth of contributions makes."""
    fraction = float(numbers(answer))
    require(0 <= fraction <= 1, f"A fraction lies between 0 and 1; {fraction:g} does not.")
    closeness = np.minimum(eta, 1 - np.asarray(eta))
    gains = sorted(float(gain) for gain in closeness - flip(1.0) if gain > 0)
    total, largest = math.fsum(gains), gains[::-1]
    tenth = len(gains) / 10
    allowed = [math.fsum(largest[:n]) / total for n in (math.floor(tenth), math.ceil(tenth)) if n]
    require(
        any(close(fraction, one) for one in (allowed if total else [0.0])),
        "Sort the contributions above zero, and divide the sum of the first tenth by the sum.",
    )


@exercise("ex-utility-nine")
def best_of_nine(answer: Any) -> None:
    """How much the largest of nine standard normal numbers exceeds that of eight, on average."""
    number = float(numbers(answer))
    # Means of two distributions differ by the area between their distribution functions.
    z = np.linspace(-10, 10, 20_001)
    gain = float((stats.norm.cdf(z) ** 8 - stats.norm.cdf(z) ** 9).sum() / 1000)
    require(number > 0, "The best of more rates lies higher, so the answer is above 0.")
    require(
        close(number, gain),
        "Take the mean of the largest of nine standard normal numbers, minus that of eight.",
    )


@exercise("ex-utility-trials")
def enough_trials(answer: Any) -> None:
    """The least number of trials at which Student's test sees half a deviation, power 0.8."""

    def sees(trials: int) -> bool:
        threshold = stats.t(trials - 1).ppf(0.975)
        distribution = stats.nct(trials - 1, 0.5 * math.sqrt(trials))
        return bool(distribution.sf(threshold) + distribution.cdf(-threshold) >= 0.8)

    number = whole(answer, low=2)
    fewer = range(2, min(number, 100))
    require(not any(sees(trials) for trials in fewer), "Fewer trials are enough already.")
    require(sees(number), "With so few trials 0.005 is seen less often than four in five.")


@exercise("ex-audit-bag")
def small_advantage(answer: Any, *, eta: Floats, seed: int) -> None:
    """The first bag size with an advantage of at most 0.03, by the whole distribution of the count."""
    largest = len(eta) // 10

    def enough(k: int) -> bool:
        bags = Empirical(eta).partition(k, np.random.default_rng(seed))
        return bool(additive_advantage(bags, CountChannel(np.eye(k + 1))).mean() <= 0.03)

    if answer is None:
        found = any(enough(k) for k in range(1, largest + 1))
        require(not found, "Some bag of at most a tenth of the records is enough: try them all.")
        return
    size = whole(answer, high=largest, also=", or None")
    require(enough(size), "At this size the advantage is still above 0.03.")
    require(
        not any(enough(k) for k in range(1, size)),
        "A smaller bag is enough already: try all sizes, from 1 on.",
    )
