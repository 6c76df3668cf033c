"""Chapters 3, 4, 6 and 13: bounds on the advantage and the steps of their proofs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from labelaudit import bounds
from labelaudit.teach.exercises.answers import Step, Wanted, exercise, first, flip


def equal_priors(p: float, k: int) -> float:
    """EAdv of a count if all priors are p < 1/2: the attacker gains where ones are the majority."""
    ones = np.arange(k // 2 + 1, k + 1)
    return float((stats.binom.pmf(ones, k, p) * (2 * ones - k)).sum() / k)


def one_among(p: float, q: float, others: int) -> float:
    """The advantage on a person with prior p < 1/2 if the others have priors q."""
    counts = stats.binom.pmf(np.arange(others + 1), others, q)
    return float(np.maximum(p * np.append(0, counts) - (1 - p) * np.append(counts, 0), 0).sum())


@exercise("ex-aggregation-compute")
def how_large_a_bag(*, own_prior: float) -> Wanted:
    """The smallest bag of equal priors with EAdv at most 0.02, exactly and by three bounds."""
    mu = own_prior * (1 - own_prior)
    curves = {
        "exact": lambda k: equal_priors(own_prior, k),
        "root": lambda k: bounds.independent_root_bound(own_prior, k),
        "Lemma A.2": lambda k: bounds.lemma_bound(own_prior, mu, k),
        "Bessel": lambda k: bounds.aggregation_bound(mu, k),
    }
    hint = "The smallest bag size from 2 on at which the value is at most 0.02 is another."
    sizes = {name: first(lambda k, at=at: at(k) <= 0.02, 2) for name, at in curves.items()}  # type: ignore[misc]
    reached = equal_priors(own_prior, sizes["exact"])
    before = equal_priors(own_prior, sizes["exact"] - 1)
    return {name: Step(size, hint) for name, size in sizes.items()} | {
        "reached": Step(
            reached,
            "The exact advantage in the bag that is just large enough.",
            {} if math.isclose(before, reached) else {"That is the next smaller bag's.": before},
        )
    }


@exercise("ex-aggregation-hidden")
def hidden_by_others(*, own_prior: float, bag_size: int) -> Wanted:
    """The advantage on one person among fair coins, and among people with priors 0.01."""
    hint = "At each count compare eta P(Z = s - 1) with (1 - eta) P(Z = s), {0}."
    return [
        Step(one_among(own_prior, q, bag_size - 1), hint.format(f"where the others have prior {q}"))
        for q in (0.5, 0.01)
    ]


@exercise("ex-response-compute")
def when_it_starts(*, epsilon: float, own_prior: float) -> Wanted:
    """The least epsilon for a prior, the advantage at twice it, and the least prior."""
    odds = (1 - own_prior) / own_prior
    return [
        Step(
            math.log(odds),
            "The advantage starts where the flip probability equals the prior.",
            {"Epsilon is a logarithm of odds, not of a probability.": -math.log(own_prior)},
        ),
        Step(
            own_prior - 1 / (1 + odds**2),
            "At twice that epsilon the flip probability is 1 / (1 + odds squared).",
            {"That is the prior. Subtract the flip probability.": own_prior},
        ),
        Step(
            flip(epsilon),
            "On this page the advantage is positive where the prior exceeds the flip probability.",
        ),
    ]


@exercise("ex-response-half")
def half_of_the_advantage(*, own_prior: float) -> Wanted:
    """The epsilon at which the advantage is half the prior, and the label advantage there."""
    return [
        Step(
            math.log(2 / own_prior - 1),
            "The advantage is the prior minus pi, so pi must be half the prior. Solve for epsilon.",
            {"There the advantage only starts: pi equals the prior.": math.log(1 / own_prior - 1)},
        ),
        Step(1 - own_prior, "The label advantage is 1 - 2 pi at this epsilon."),
    ]


@exercise("ex-workshop-first")
def first_escape(*, own_prior: float) -> Wanted:
    """The smallest k at which the printed interval of Lemma A.3 loses too much binomial mass."""

    def outside(k: int) -> float:
        logarithm = math.log(8 * k)
        variance = 12 * k * own_prior * (1 - own_prior) * logarithm
        width = logarithm / 3 + math.sqrt(2 * logarithm + variance) / 6
        counts = np.arange(k + 1)
        return float(
            stats.binom.pmf(counts, k, own_prior)[abs(counts - own_prior * k) > width].sum()
        )

    k = first(lambda k: outside(k) > 1 / (2 * k))
    return [
        Step(k, "The claim first fails at another k. Failures are not permanent: scan from 1."),
        Step(
            outside(k),
            "Add the probabilities of all counts further than the width from kp, on both sides.",
        ),
    ]


@exercise("ex-workshop-variation")
def variation(*, own_prior: float) -> Wanted:
    """The sum of |P(s) - P(s - 1)| for the count of five equal priors."""
    masses = stats.binom.pmf(np.arange(6), 5, own_prior)
    return Step(
        2 * float(masses.max()),
        "The sum telescopes up to the mode and after it.",
        {
            "The differences at both ends count too: P(-1) = P(6) = 0.": (
                2 * masses.max() - masses[0] - masses[-1]
            ),
            "That is the largest probability. It is passed twice, up and down.": masses.max(),
        },
    )


@exercise("ex-sharper-compute")
def enough_for_two_priors(*, own_prior: float) -> Wanted:
    """The smallest listed bag with EAdv at most 0.001, for priors p or 1 - p, in four ways."""

    def exact(k: int) -> float:
        """Sum over the number of others with prior 1 - p; by symmetry the person's own is p."""
        total = 0.0
        for high, mass in enumerate(stats.binom.pmf(np.arange(k), k - 1, 0.5)):
            ones = stats.binom.pmf(np.arange(high + 1), high, 1 - own_prior)
            rest = stats.binom.pmf(np.arange(k - high), k - 1 - high, own_prior)
            counts = np.convolve(ones, rest)
            gain = own_prior * np.append(0, counts) - (1 - own_prior) * np.append(counts, 0)
            total += mass * np.maximum(gain, 0).sum()
        return float(total)

    mu, gap = own_prior * (1 - own_prior), 0.5 - own_prior
    curves: dict[str, Callable[[int], Any]] = {
        "gap": lambda k: bounds.gap_bound(mu, gap, k),
        "plain": lambda k: math.exp(-3.84 * mu * gap**2 * (k - 1)),
        "Bessel": lambda k: bounds.aggregation_bound(mu, k),
    }
    hint = "The first of 2, 4, ..., 1400 at which the value is at most 0.001 is another, or None."
    sizes = range(2, 1401, 2)
    listed = {name: next((k for k in sizes if at(k) <= 0.001), None) for name, at in curves.items()}
    enough = next(k for k in sizes if exact(k) <= 0.001)
    return {name: Step(size, hint) for name, size in (listed | {"exact": enough}).items()} | {
        "reached": Step(exact(enough), "The exact advantage in the bag that is just large enough.")
    }


@exercise("ex-sharper-ten")
def bag_of_ten(*, own_prior: float) -> Wanted:
    """EAdv of label proportions in bags of ten equal priors, and the bound from the gap."""
    mu, gap = own_prior * (1 - own_prior), 0.5 - own_prior
    exact = equal_priors(own_prior, 10)
    return [
        Step(
            exact,
            "With equal priors the posterior is s/10. Only counts above 5 change a guess.",
            {"A changed guess gains 2 s/10 - 1, not 1.": stats.binom.sf(5, 10, own_prior)},
        ),
        Step(
            float(bounds.gap_bound(mu, gap, 10)),
            "The bound takes mu = p (1 - p) and the gap 1/2 - p.",
        ),
    ]
