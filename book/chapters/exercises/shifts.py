"""Chapters 5, 7, 8 and 16: the multiplicative advantage, and what a target allows."""

import math
from collections.abc import Mapping

import numpy as np
from scipy import stats
from scipy.spatial import ConvexHull
from scipy.special import expit, logit

from book.chapters.exercises.answers import Right, Rights, equal_labels, exercise, first
from labelaudit import GeometricProportions
from labelaudit.checks import Floats


@exercise("ex-multiplicative-compute")
def no_bag_revealed(*, bag_size: int, own_prior: float) -> Rights:
    """The smallest bag size with fewer than one expected bag of equal labels, and their number."""

    def equal_bags(k: int) -> float:
        return 50_000_000 / k * equal_labels(own_prior, k)

    people = bag_size * equal_bags(bag_size)
    return [
        Right(first(lambda k: equal_bags(k) < 1)),
        Right(equal_bags(bag_size), people if bag_size > 1 else None),
    ]


@exercise("ex-multiplicative-range")
def posteriors_within(*, own_prior: float) -> Rights:
    """The smallest and the largest posterior that a 2-label-DP release can give."""
    return [
        Right(expit(logit(own_prior) + shift), own_prior * math.exp(shift)) for shift in (-2, 2)
    ]


@exercise("ex-multiplicative-rare")
def large_shift(*, own_prior: float) -> Rights:
    """The probability that the count of a hundred equal priors shifts log-odds by more than 1."""
    low, high = 100 * expit(logit(own_prior) + np.array([-1, 1]))
    below, above = stats.binom.cdf(low, 100, own_prior), stats.binom.sf(high, 100, own_prior)
    return Right(float(below + above), float(above), float(below))


@exercise("ex-scatter-large")
def never_revealed(*, own_prior: float) -> Rights:
    """The smallest bag that is revealed at most once in a million, and how often it is."""
    size = first(lambda k: equal_labels(own_prior, k) <= 1e-6)
    ones = first(lambda k: own_prior**k <= 1e-6)
    return [Right(size, ones), Right(equal_labels(own_prior, size))]


@exercise("ex-scatter-shift")
def three_of_eight(*, own_prior: float) -> Rights:
    """The posterior after three ones in a bag of eight equal priors, and the shift of log-odds."""
    shift = logit(3 / 8) - logit(own_prior)
    return [Right(3 / 8), Right(shift, math.log(3 / 8 / own_prior), -shift)]


@exercise("ex-scatter-ends")
def both_ends(*, own_prior: float) -> Rights:
    """The probabilities that LLP+Geom of eight equal priors releases 0 and 1, at epsilon 1."""
    q = math.exp(-1)
    zeros, ones = (1 - own_prior + own_prior * q) ** 8, ((1 - own_prior) * q + own_prior) ** 8
    return [
        Right(zeros / (1 + q), (1 - own_prior) ** 8, (1 - own_prior) ** 8 / (1 + q)),
        Right(ones / (1 + q), own_prior**8, own_prior**8 / (1 + q)),
    ]


@exercise("ex-distribution-size")
def finite_from(*, means: Mapping[str, float], level: float, own_prior: float) -> Rights:
    """For each distribution, the smallest bag whose population quantile can be finite."""
    sizes = {
        name: first(lambda k, p=p: equal_labels(p, k) <= 1 - level)  # type: ignore[misc]
        for name, p in [*means.items(), ("own", own_prior)]
    }
    mass = Right(equal_labels(own_prior, sizes["own"]))
    return {name: Right(size) for name, size in sizes.items()} | {"mass": mass}


@exercise("ex-distribution-ten")
def one_of_ten(*, bag_size: int, own_prior: float) -> Rights:
    """The probability that at least one of ten bags is revealed."""
    revealed = equal_labels(own_prior, bag_size)
    if bag_size == 1:  # every bag is revealed
        return Right(1.0)
    return Right(float(-np.expm1(10 * np.log1p(-revealed))), revealed**10, revealed)


@exercise("ex-distribution-quartile")
def lower_quartile(*, own_prior: float) -> Rights:
    """The lower quartile of |I| for the count of eight equal priors; and of I, a mistake."""
    masses = stats.binom.pmf(np.arange(9), 8, own_prior)
    shifts = logit(np.arange(9) / 8) - logit(own_prior)

    def quartile(values: Floats) -> float:
        order = np.argsort(values)
        return float(values[order][np.searchsorted(np.cumsum(masses[order]), 0.25)])

    truth, signed = quartile(np.abs(shifts)), quartile(shifts)
    return Right(truth, signed if signed < 0 and math.isfinite(signed) else None)


@exercise("ex-measure-compute")
def certain_without_advantage(*, own_prior: float) -> Rights:
    """The mean of |1 - 2 eta| over priors that are uniform between own_prior and 1."""
    return Right(((0.5 - own_prior) ** 2 + 0.25) / (1 - own_prior), 0.0, own_prior)


@exercise("ex-measure-censor")
def censored_from(*, own_prior: float) -> Rights:
    """The smallest bag whose count can be cut in two with shifts of at most 1, and P(low part)."""

    def cuts(k: int) -> list[int]:
        """The s for which neither "at most s" nor "more than s" shifts log-odds by more than 1."""
        others = stats.binom(k - 1, own_prior)
        s = np.arange(k)
        low = math.e * others.cdf(s - 1) >= others.cdf(s)
        high = others.sf(s - 1) <= math.e * others.sf(s)
        return [int(cut) for cut in s[low & high]]

    size = first(lambda k: bool(cuts(k)))
    below = [float(stats.binom.cdf(cuts(size)[0], k, own_prior)) for k in (size, size - 1)]
    return [Right(size), Right(*below)]


@exercise("ex-measure-norms")
def partly_in_clear(*, own_prior: float) -> Rights:
    """Advantage and worth of RR(1) that publishes some labels in clear; RR at that advantage."""
    rest = math.tanh(0.5)
    mean = own_prior + (1 - own_prior) * rest
    square = own_prior + (1 - own_prior) * rest**2
    return [Right(mean / 2, mean), Right(square, mean**2), Right(mean**2)]


@exercise("ex-measure-garble")
def garbled_response(*, own_prior: float) -> Rights:
    """The distribution of LLP+Geom's release, given what RR published, in a bag of two."""
    q, rows = math.exp(-1), GeometricProportions(2, 1.0).channel().matrix
    zero, one = (1 - own_prior) * rows[:2] + own_prior * rows[1:]
    return [Right((one - q * zero) / (1 - q), one), Right((zero - q * one) / (1 - q), zero)]


@exercise("ex-measure-envelope")
def most_of_a_count(*, own_prior: float) -> Rights:
    """What a count of eight is worth at most at |I| <= 1: the area below a convex envelope."""
    ends = expit(logit(own_prior) + np.array([-1, 1]))
    weights = np.array([ends[1] - own_prior, own_prior - ends[0]]) / (ends[1] - ends[0])
    posteriors, masses = np.arange(9) / 8, stats.binom.pmf(np.arange(9), 8, own_prior)
    points = np.unique([*posteriors, *ends])
    llp, response = (
        np.maximum(np.subtract.outer(points, at), 0) @ mass
        for at, mass in ((posteriors, masses), (ends, weights))
    )
    # All corners lie below the chord from end to end, so the hull lies between the two.
    hull = ConvexHull(np.column_stack([points, np.minimum(llp, response)]))
    mu = own_prior * (1 - own_prior)
    best = (1 - own_prior - 2 * hull.volume - (1 - own_prior) ** 2) / mu
    return Right(best, min(1 / 8, float(weights @ (ends - own_prior) ** 2 / mu)))
