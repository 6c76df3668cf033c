"""Chapters 9 to 12 and 14: learning, real data, and the audit of a table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats

from labelaudit import CountChannel, additive_advantage
from labelaudit.checks import Floats
from labelaudit.priors import Empirical
from labelaudit.teach.exercises.answers import close, exercise, flip, numbers, require, whole


@exercise("ex-learning-compute")
def loss_without_minimum(answer: Any) -> None:
    """P(mean of 30 noisy targets <= 0), and the number of people from which it is below 0.001."""
    probability, number = numbers(answer, 2)
    wrong = flip(1.0)

    def no_minimum(people: int) -> float:
        ones = np.arange(people + 1)
        targets = (ones / people - wrong) / (1 - 2 * wrong)
        masses = stats.binom.pmf(ones, people, 0.2 * (1 - wrong) + 0.8 * wrong)
        return float(masses[targets <= 0].sum())

    require(
        close(probability, no_minimum(30)),
        "The mean target is at most 0 when the fraction of released ones is at most pi.",
    )
    people = whole(number)
    above = [size for size in range(1, 1000) if no_minimum(size) >= 1e-3]
    require(people > above[-1], "For some larger number of people it is above 0.001.")
    require(people == above[-1] + 1, "From a smaller number on it stays below 0.001.")


@exercise("ex-higgs-sure")
def calibrated_and_sure(answer: Any, *, eta: Any, epsilon: float) -> None:
    """Mean advantage of randomized response from an estimate, and from one with odds cubed."""
    calibrated, overconfident = numbers(answer, 2)
    odds = np.asarray(eta) / (1 - np.asarray(eta))
    for value, scores, name in (
        (calibrated, odds, "calibrated"),
        (overconfident, odds**3, "surer"),
    ):
        wrong = np.minimum(scores, 1) / (1 + scores)
        gain = np.maximum(wrong - flip(epsilon), 0).mean()
        require(
            close(value, gain, 1e-5),
            f"The {name} one: average max(min(eta, 1 - eta) - flip probability, 0).",
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
        any(close(fraction, value) for value in (allowed if total else [0.0])),
        "Sort the contributions above zero, and divide the sum of the first tenth by the sum.",
    )


@exercise("ex-utility-nine")
def best_of_nine(answer: Any) -> None:
    """How much the largest of nine standard normal numbers exceeds that of eight, on average."""
    number = float(numbers(answer))
    # The area between two distribution functions is the difference of their means.
    z = np.linspace(-10, 10, 20_001)
    gain = float((stats.norm.cdf(z) ** 8 - stats.norm.cdf(z) ** 9).sum() / 1000)
    require(number > 0, "The largest of nine is larger on average, so the answer is above 0.")
    require(
        close(number, gain),
        "Take the mean of the largest of nine standard normal numbers, minus that of eight.",
    )


@exercise("ex-utility-trials")
def enough_trials(answer: Any) -> None:
    """The least number of trials for which Student's test of half a deviation has power 0.8."""

    def detects(trials: int) -> bool:
        threshold = stats.t(trials - 1).ppf(0.975)
        statistic = stats.nct(trials - 1, 0.5 * math.sqrt(trials))
        return bool(statistic.sf(threshold) + statistic.cdf(-threshold) >= 0.8)

    number = whole(answer, low=2)
    fewer = range(2, min(number, 100))
    require(not any(detects(trials) for trials in fewer), "Fewer trials are enough.")
    require(detects(number), "With this number of trials the power is below 0.8.")


@exercise("ex-audit-bag")
def small_advantage(answer: Any, *, eta: Floats, seed: int) -> None:
    """The first bag size with an advantage of at most 0.03, from the channel of the count."""
    largest = len(eta) // 10

    def enough(k: int) -> bool:
        bags = Empirical(eta).partition(k, np.random.default_rng(seed))
        return bool(additive_advantage(bags, CountChannel(np.eye(k + 1))).mean() <= 0.03)

    if answer is None:
        possible = any(enough(k) for k in range(1, largest + 1))
        require(not possible, "Some bag of at most a tenth of the records is enough: try them all.")
        return
    size = whole(answer, high=largest, also=", or None")
    require(enough(size), "At this size the advantage is still above 0.03.")
    require(
        not any(enough(k) for k in range(1, size)),
        "A smaller bag is enough: try all sizes, from 1 on.",
    )
