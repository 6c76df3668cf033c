"""Chapters 5, 7, 8 and 16: the multiplicative advantage, and what a target allows."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy import stats
from scipy.special import expit, logit

from labelaudit.teach.exercises.answers import Step, Wanted, equal_labels, exercise, first

SMALLEST = "The smallest bag size that meets the target is another. Both p^k and (1-p)^k count."


@exercise("ex-multiplicative-compute")
def no_bag_revealed(*, bag_size: int, own_prior: float) -> Wanted:
    """The smallest bag size with fewer than one expected bag of equal labels, and their number."""

    def equal_bags(k: int) -> float:
        return 50_000_000 / k * equal_labels(own_prior, k)

    return [
        Step(first(lambda k: equal_bags(k) < 1), SMALLEST),
        Step(
            equal_bags(bag_size),
            "There are people / k bags. One has equal labels with probability p^k + (1-p)^k.",
            {}
            if bag_size == 1
            else {"There are not as many bags as people.": bag_size * equal_bags(bag_size)},
        ),
    ]


@exercise("ex-multiplicative-range")
def posteriors_within(*, own_prior: float) -> Wanted:
    """The smallest and the largest posterior that a 2-label-DP release can give."""
    hint = "The log-odds of the prior move by at most epsilon. Turn the {} odds into a probability."
    odds = "Epsilon limits the odds, not the probability."
    return [
        Step(
            expit(logit(own_prior) + shift), hint.format(word), {odds: own_prior * math.exp(shift)}
        )
        for shift, word in ((-2, "smaller"), (2, "larger"))
    ]


@exercise("ex-scatter-large")
def never_revealed(*, own_prior: float) -> Wanted:
    """The smallest bag that is revealed at most once in a million, and how often it is."""
    size = first(lambda k: equal_labels(own_prior, k) <= 1e-6)
    return [
        Step(
            size,
            SMALLEST,
            {"A bag of ones is rare, but a bag of zeros is not.": first(
                lambda k: own_prior**k <= 1e-6
            )},
        ),
        Step(equal_labels(own_prior, size), "p^k + (1-p)^k at this bag size."),
    ]  # fmt: skip


@exercise("ex-scatter-shift")
def three_of_eight(*, own_prior: float) -> Wanted:
    """The posterior after three ones in a bag of eight equal priors, and the shift of log-odds."""
    shift = logit(3 / 8) - logit(own_prior)
    ratio = math.log(3 / 8 / own_prior)
    return [
        Step(3 / 8, "With equal priors everybody's posterior is the published fraction."),
        Step(
            shift,
            "Subtract the log-odds of the prior from those of the posterior.",
            {
                "Take odds before the logarithm, not probabilities.": ratio,
                "The sign says whether the release speaks for a one.": -shift,
            },
        ),
    ]


@exercise("ex-distribution-size")
def finite_from(*, means: Mapping[str, float], level: float, own_prior: float) -> Wanted:
    """For each distribution, the smallest bag whose population quantile can be finite."""
    steps = {}
    for name, p in [*means.items(), ("own", own_prior)]:
        size = first(lambda k, p=p: equal_labels(p, k) <= 1 - level)  # type: ignore[misc]
        hint = f"The smallest k with at most {1 - level:.3g} of the mass at infinity is another."
        steps[name] = Step(size, hint)
    mass = equal_labels(own_prior, int(steps["own"].truth))
    return steps | {"mass": Step(mass, "p^k + (1-p)^k at your own prior and the bag size found.")}


@exercise("ex-distribution-ten")
def one_of_ten(*, bag_size: int, own_prior: float) -> Wanted:
    """The probability that at least one of ten bags is revealed."""
    revealed = equal_labels(own_prior, bag_size)
    mistakes = {
        "That is the probability that all ten are revealed.": revealed**10,
        "That is the probability for one given bag.": revealed,
    }
    hint = "None of ten bags is revealed with probability (1 - r)^10, where r = p^k + (1-p)^k."
    if bag_size == 1:  # every bag is revealed
        return Step(1.0, hint)
    return Step(float(-np.expm1(10 * np.log1p(-revealed))), hint, mistakes)


@exercise("ex-measure-compute")
def certain_without_advantage(*, own_prior: float) -> Wanted:
    """The mean of |1 - 2 eta| over priors that are uniform between own_prior and 1."""
    return Step(
        float(((0.5 - own_prior) ** 2 + 0.25) / (1 - own_prior)),
        "At prior eta at most |1 - 2 eta| of the labels can be certain. Average this over eta.",
        {
            "Advantage 0 does not mean that no label is certain.": 0.0,
            "That is |1 - 2 eta| at the mean prior. Average after taking the absolute value.": (
                own_prior
            ),
        },
    )


@exercise("ex-measure-censor")
def censored_from(*, own_prior: float) -> Wanted:
    """The smallest bag whose count can be cut in two with shifts of at most 1, and P(low part)."""

    def cuts(k: int) -> list[int]:
        """The s for which neither "at most s" nor "more than s" shifts log-odds by more than 1."""
        others = stats.binom(k - 1, own_prior)
        s = np.arange(k)
        low = math.e * others.cdf(s - 1) >= others.cdf(s)
        high = others.sf(s - 1) <= math.e * others.sf(s)
        return [int(cut) for cut in s[low & high]]

    size = first(lambda k: bool(cuts(k)))
    hint = (
        'The smallest bag with a cut "at most s" whose two sides shift no log-odds by more than 1'
    )
    return [
        Step(size, f"{hint} is another."),
        Step(
            float(stats.binom.cdf(cuts(size)[0], size, own_prior)),
            "The probability that the whole bag's count is at most the cut.",
            {
                "All members of the bag are counted, not all but one.": float(
                    stats.binom.cdf(cuts(size)[0], size - 1, own_prior)
                )
            },
        ),
    ]
