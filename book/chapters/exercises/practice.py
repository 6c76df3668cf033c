"""Chapters 9 to 12, 14 and 17: learning, real data, and the audit of a table."""

import math
from bisect import bisect_left
from typing import Any

import numpy as np
from scipy import stats

from book.chapters.exercises.answers import Right, Rights, exercise, flip
from labelaudit import CountChannel, additive_advantage
from labelaudit.checks import Floats
from labelaudit.priors import Empirical


@exercise("ex-training-compute")
def loss_without_minimum(*, own_prior: float) -> Rights:
    """P(mean of 30 noisy targets <= 0), and the number of people from which it is below 0.001."""
    wrong = flip(1.0)
    people = np.arange(1, 2000)
    none = stats.binom.cdf(np.floor(people * wrong), people, wrong + (1 - 2 * wrong) * own_prior)
    last, small = int(people[none >= 1e-3][-1]), int(people[none < 1e-3][0])
    of_priors = float(stats.binom.cdf(math.floor(30 * wrong), 30, own_prior))
    return [Right(float(none[29]), of_priors), Right(last + 1, small if small < last else None)]


@exercise("ex-learning-compute")
def targets(*, own_prior: float) -> Rights:
    """The two targets of randomized response at epsilon 1, and a person's variance."""
    wrong = flip(1.0)
    noise = wrong * (1 - wrong) / (1 - 2 * wrong) ** 2
    return [
        Right(-wrong / (1 - 2 * wrong)),
        Right((1 - wrong) / (1 - 2 * wrong)),
        Right(own_prior * (1 - own_prior) + noise, noise),
    ]


@exercise("ex-learning-easy")
def easy_label(*, own_prior: float) -> Rights:
    """The label that EasyLLP makes of a count of 3 in a bag of eight, and its variance."""
    spread = own_prior * (1 - own_prior)
    return [Right(3 - 7 * own_prior, 3 / 8), Right(8 * spread, spread / 8)]


@exercise("ex-learning-printed")
def bias_of_printed_ends(*, own_prior: float) -> Rights:
    """The bias of the printed debiasing in a bag of four at epsilon 1: it lacks 1/4 at the ends."""
    ratio = math.exp(-1)
    excess = 3 / 4 / (math.e - 1) / (1 + ratio)
    high = (own_prior + (1 - own_prior) * ratio) ** 4
    low = (1 - own_prior + own_prior * ratio) ** 4
    return Right(excess * (high - low), excess * (ratio**4 - 1))


@exercise("ex-training-score")
def scores(*, own_prior: float) -> Rights:
    """The score in the log-odds after RR at epsilon 1 released a 1 and a 0, and its variance."""
    ones = own_prior + (1 - 2 * own_prior) * flip(1.0)
    spread = own_prior * (1 - own_prior) * (1 - 2 * flip(1.0))
    after = [spread / ones, -spread / (1 - ones)]
    slopes = [score / own_prior / (1 - own_prior) for score in after]
    worth = spread**2 / (ones * (1 - ones))
    return [
        Right(after[0], slopes[0], after[0] + own_prior),
        Right(after[1], slopes[1], after[1] + own_prior),
        Right(worth, worth / own_prior / (1 - own_prior)),
    ]


@exercise("ex-training-gradient")
def gradient_of_a_bag(*, own_prior: float) -> Rights:
    """Prior minus posterior of two people, with priors own_prior and 2/3, of whom one has a 1."""
    first = own_prior / (2 - own_prior)
    derivatives = own_prior - first, first - 1 / 3
    return [Right(derivative, -derivative) for derivative in derivatives]


@exercise("ex-higgs-sure")
def calibrated_and_sure(*, eta: Any, own_epsilon: float) -> Rights:
    """Mean advantage of randomized response from an estimate, and from one with odds cubed."""
    odds = np.asarray(eta) / (1 - np.asarray(eta))

    def mean_gain(scores: Floats) -> float:
        wrong = np.minimum(scores, 1) / (1 + scores)
        return float(np.maximum(wrong - flip(own_epsilon), 0).mean())

    return [Right(mean_gain(odds)), Right(mean_gain(odds**3))]


@exercise("ex-higgs-mean")
def features_or_mean(*, own_epsilon: float, own_prior: float) -> Rights:
    """The advantage of RR for an attacker who knows eta, and for one who knows its mean only."""
    undecided = 0.5 - flip(own_epsilon)
    mean = max(own_prior / 2 - flip(own_epsilon), 0.0)
    return [Right(own_prior * undecided, undecided), Right(mean)]


@exercise("ex-higgs-promised")
def promised_and_realised(*, own_epsilon: float, own_prior: float) -> Rights:
    """The advantage of RR that a score of 0.4 promises, and the one where the truth is another."""
    realised = own_prior - flip(own_epsilon)
    return [Right(0.4 - flip(own_epsilon)), Right(realised, 0.0 if realised < 0 else None)]


@exercise("ex-kdd-compute")
def tail_pays(*, eta: Any, own_epsilon: float) -> Rights:
    """The fraction of the advantage that the largest tenth of contributions makes."""
    closeness = np.minimum(eta, 1 - np.asarray(eta))
    gains = sorted(float(gain) for gain in closeness - flip(own_epsilon) if gain > 0)[::-1]
    largest = math.fsum(gains[: math.ceil(len(gains) / 10)])
    return Right(largest / math.fsum(gains) if gains else 0.0)


@exercise("ex-kdd-bayes")
def after_a_bit(*, own_epsilon: float) -> Rights:
    """The probabilities of a click after a released 1 and a released 0, for a prior of 0.04."""
    wrong = flip(own_epsilon)
    odds = math.exp(own_epsilon) / 24, math.exp(-own_epsilon) / 24
    return [Right(odds[0] / (1 + odds[0]), 1 - wrong), Right(odds[1] / (1 + odds[1]), wrong)]


@exercise("ex-kdd-thinned")
def before_and_after_thinning(*, own_epsilon: float) -> Rights:
    """The advantage of RR on a score of 0.3 where a tenth of the negatives was kept; corrected."""
    eta, wrong = 3 / 73, flip(own_epsilon)
    gains = [max(prior - wrong, 0.0) for prior in (eta, 0.03)]
    return [Right(0.3 - wrong), Right(gains[0], gains[1] if gains[0] else None)]


@exercise("ex-utility-nine")
def best_of_nine(*, own_deviation: float) -> Rights:
    """How much the largest of nine equal AUCs exceeds that of eight, on average."""
    # The area between two distribution functions is the difference of their means.
    z = np.linspace(-10, 10, 20_001)
    gain = float((stats.norm.cdf(z) ** 8 - stats.norm.cdf(z) ** 9).sum() / 1000)
    return Right(own_deviation * gain, gain)


@exercise("ex-utility-trials")
def enough_trials(*, own_deviation: float) -> Rights:
    """The least number of trials for which Student's test of 0.005 has power 0.8, and the power."""
    effect = 0.005 / own_deviation

    def power(trials: int) -> float:
        threshold = stats.t(trials - 1).ppf(0.975)
        statistic = stats.nct(trials - 1, effect * math.sqrt(trials))
        return float(statistic.sf(threshold) + statistic.cdf(-threshold))

    trials = 2 + bisect_left(range(2, 1000), 0.8, key=power)  # the power rises
    known = math.ceil(((stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) / effect) ** 2)
    return [Right(trials, known if known < trials else None), Right(power(trials))]


@exercise("ex-utility-paired")
def paired_seeds(*, own_deviation: float) -> Rights:
    """The standard error of a mean difference over ten seeds, with correlation 0.6 and without."""
    single = own_deviation / math.sqrt(10)
    paired, unpaired = (single * math.sqrt(2 * (1 - part)) for part in (0.6, 0.0))
    return [Right(paired, single, unpaired), Right(unpaired, single)]


@exercise("ex-audit-bag")
def small_advantage(*, eta: Floats, seed: int) -> Rights:
    """The first bag size with an advantage of at most 0.03, from the channel of the count."""

    def advantage(k: int) -> float:
        return mean_advantage(eta, seed, CountChannel(np.eye(k + 1)))

    sizes = range(1, len(eta) // 10 + 1)
    size = next((k for k in sizes if advantage(k) <= 0.03), None)
    return Right(None) if size is None else [Right(size), Right(advantage(size))]


@exercise("ex-audit-program")
def careless_clerk(*, eta: Floats, seed: int, own_probability: float) -> Rights:
    """Epsilon and advantage of the count of eight, replaced by 0..8 at random now and then."""
    other = own_probability / 9
    channel = CountChannel((1 - own_probability) * np.eye(9) + other)
    bare = mean_advantage(eta, seed, CountChannel(np.eye(9)))
    return [
        Right(math.log((1 - own_probability) / other + 1), math.log((1 - own_probability) / other)),
        Right(mean_advantage(eta, seed, channel), bare or None),
    ]


@exercise("ex-audit-three")
def three_answers(*, own_probability: float) -> Rights:
    """Epsilon of three answers that lie now and then, and the advantage on a fair coin."""
    single = math.log(1 / own_probability - 1)
    majority = float(stats.binom.cdf(1, 3, own_probability)) - 0.5
    one_right = 0.5 - own_probability**3
    return [Right(3 * single, single), Right(majority, 0.5 - own_probability, one_right)]


def mean_advantage(eta: Floats, seed: int, channel: CountChannel) -> float:
    """The advantage in the partition that the seed decides, as chapter 14's `plug_in` has it."""
    bags = Empirical(np.asarray(eta)).partition(channel.bag_size, np.random.default_rng(seed))
    return float(additive_advantage(bags, channel).mean())
