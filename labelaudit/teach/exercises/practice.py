"""Chapters 9 to 12 and 14: learning, real data, and the audit of a table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats

from labelaudit import CountChannel, additive_advantage
from labelaudit.checks import Floats
from labelaudit.priors import Empirical
from labelaudit.teach.exercises.answers import Step, Wanted, exercise, first, flip


@exercise("ex-learning-compute")
def loss_without_minimum(*, own_prior: float) -> Wanted:
    """P(mean of 30 noisy targets <= 0), and the number of people from which it is below 0.001."""
    wrong = flip(1.0)
    people = np.arange(1, 2000)
    released = wrong + (1 - 2 * wrong) * own_prior
    none = stats.binom.cdf(np.floor(people * wrong), people, released)
    small = people[none < 1e-3]
    last = int(people[none >= 1e-3][-1])
    hint = "From another number on it stays below 0.001."
    again = "For some larger number of people it is above 0.001 again."
    return [
        Step(
            float(none[29]),
            "The mean target is at most 0 when the fraction of released ones is at most pi.",
            {"A released label is a one more often than a true one is.": float(
                stats.binom.cdf(math.floor(30 * wrong), 30, own_prior)
            )},
        ),
        Step(last + 1, hint, {again: int(small[0])} if small[0] < last else {}),
    ]  # fmt: skip


@exercise("ex-learning-targets")
def targets(*, own_prior: float) -> Wanted:
    """The two targets of randomized response at epsilon 1, and a person's variance."""
    wrong = flip(1.0)
    noise = wrong * (1 - wrong) / (1 - 2 * wrong) ** 2
    unbiased = "The means of the targets are 0 for label 0 and 1 for label 1: two equations."
    return [
        Step(-wrong / (1 - 2 * wrong), f"{unbiased} Solve them for a released 0."),
        Step((1 - wrong) / (1 - 2 * wrong), f"{unbiased} Solve them for a released 1."),
        Step(
            own_prior * (1 - own_prior) + noise,
            "The variance of the target has two parts: from the label, and from the noise.",
            {"The label is random too: add its variance.": noise},
        ),
    ]


@exercise("ex-higgs-sure")
def calibrated_and_sure(*, eta: Any, own_epsilon: float) -> Wanted:
    """Mean advantage of randomized response from an estimate, and from one with odds cubed."""
    odds = np.asarray(eta) / (1 - np.asarray(eta))

    def mean_gain(scores: Floats) -> float:
        wrong = np.minimum(scores, 1) / (1 + scores)
        return float(np.maximum(wrong - flip(own_epsilon), 0).mean())

    hint = "The {}: average max(min(eta, 1 - eta) - pi, 0)."
    return [
        Step(mean_gain(odds), hint.format("calibrated one")),
        Step(mean_gain(odds**3), hint.format("surer one, whose odds are cubed")),
    ]


@exercise("ex-higgs-mean")
def features_or_mean(*, own_epsilon: float, own_prior: float) -> Wanted:
    """The advantage of RR for an attacker who knows eta, and for one who knows its mean only."""
    wrong = flip(own_epsilon)
    knows = own_prior * (0.5 - wrong)
    return [
        Step(
            knows,
            "Only people with eta = 1/2 can be gained, and there are few of them.",
            {"That is the gain on a person with eta = 1/2. Not all are.": 0.5 - wrong},
        ),
        Step(
            max(own_prior / 2 - wrong, 0.0),
            "For this attacker everybody has the mean as prior: 1 - own_prior / 2.",
        ),
    ]


@exercise("ex-kdd-compute")
def tail_pays(*, eta: Any, own_epsilon: float) -> Wanted:
    """The fraction of the advantage that the largest tenth of contributions makes."""
    closeness = np.minimum(eta, 1 - np.asarray(eta))
    gains = sorted(float(gain) for gain in closeness - flip(own_epsilon) if gain > 0)[::-1]
    largest = math.fsum(gains[: math.ceil(len(gains) / 10)])
    return Step(
        largest / math.fsum(gains) if gains else 0.0,
        "Sort the contributions above zero. Divide the sum of the first tenth by the sum of all.",
    )


@exercise("ex-kdd-bayes")
def after_a_bit(*, own_epsilon: float) -> Wanted:
    """The probabilities of a click after a released 1 and a released 0, for a prior of 0.04."""
    wrong = flip(own_epsilon)
    return [
        Step(
            0.04 * (1 - wrong) / (0.04 * (1 - wrong) + 0.96 * wrong),
            "A released 1 multiplies the prior odds of 1 to 24 by exp(epsilon).",
            {"That ignores how rare clicks are: it is the probability of a bit.": 1 - wrong},
        ),
        Step(
            0.04 * wrong / (0.04 * wrong + 0.96 * (1 - wrong)),
            "A released 0 divides the prior odds of 1 to 24 by exp(epsilon).",
            {"That is the probability that the bit was flipped.": wrong},
        ),
    ]


@exercise("ex-utility-nine")
def best_of_nine(*, own_deviation: float) -> Wanted:
    """How much the largest of nine equal AUCs exceeds that of eight, on average."""
    # The area between two distribution functions is the difference of their means.
    z = np.linspace(-10, 10, 20_001)
    gain = float((stats.norm.cdf(z) ** 8 - stats.norm.cdf(z) ** 9).sum() / 1000)
    return Step(
        own_deviation * gain,
        "Take the mean of the largest of nine normal numbers, minus that of eight.",
        {"That is in standard errors. Multiply by the standard error.": gain},
    )


@exercise("ex-utility-trials")
def enough_trials(*, own_deviation: float) -> Wanted:
    """The least number of trials for which Student's test of 0.005 has power 0.8, and the power."""

    def power(trials: int) -> float:
        threshold = stats.t(trials - 1).ppf(0.975)
        statistic = stats.nct(trials - 1, 0.005 / own_deviation * math.sqrt(trials))
        return float(statistic.sf(threshold) + statistic.cdf(-threshold))

    trials = first(lambda n: power(n) >= 0.8, 2)
    normal = math.ceil(
        (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) ** 2 * own_deviation**2 / 25e-6
    )
    fewer = "That is for a known deviation. Student's test has to estimate it."
    return [
        Step(
            trials,
            "The smallest number of trials with a power of at least 0.8 is another.",
            {} if normal == trials else {fewer: normal},
        ),
        Step(power(trials), "The power at this number of trials, of both sides of the test."),
    ]


@exercise("ex-audit-bag")
def small_advantage(*, eta: Floats, seed: int) -> Wanted:
    """The first bag size with an advantage of at most 0.03, from the channel of the count."""

    def advantage(k: int) -> float:
        return _mean_advantage(eta, seed, CountChannel(np.eye(k + 1)))

    sizes = range(1, len(eta) // 10 + 1)
    size = next((k for k in sizes if advantage(k) <= 0.03), None)
    if size is None:
        return Step(None, "No bag of at most a tenth of the records is enough.")
    return [
        Step(size, "Another size is the first with at most 0.03: try all sizes, from 1 on."),
        Step(advantage(size), "The plug-in advantage at the size that you found."),
    ]


@exercise("ex-audit-program")
def careless_clerk(*, eta: Floats, seed: int, own_probability: float) -> Wanted:
    """Epsilon and advantage of the count of eight, replaced by 0..8 at random now and then."""
    p = own_probability
    channel = CountChannel((1 - p) * np.eye(9) + p / 9)
    advantage = _mean_advantage(eta, seed, channel)
    bare = _mean_advantage(eta, seed, CountChannel(np.eye(9)))
    return [
        Step(
            math.log((1 - p + p / 9) / (p / 9)),
            "The largest ratio of two neighbouring rows is in a column of the true count.",
            {"The random number can be the true count.": math.log((1 - p) / (p / 9))},
        ),
        Step(
            advantage,
            "The mean additive advantage over the bags of `plug_in`, with your channel.",
            {"That is the advantage of the count without the clerk.": bare} if bare else {},
        ),
    ]


def _mean_advantage(eta: Floats, seed: int, channel: CountChannel) -> float:
    """The advantage in the partition that the seed decides, as chapter 14's `plug_in` has it."""
    bags = Empirical(np.asarray(eta)).partition(channel.bag_size, np.random.default_rng(seed))
    return float(additive_advantage(bags, channel).mean())
