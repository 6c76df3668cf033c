"""What must hold of an answer: one function for each exercise that is computed.

A function takes the answer, and by name the page's parameters it depends on. It returns if the
answer is right and raises a `Hint` if not, the most helpful one first. Each works its numbers out
by another road than the chapter's solution where there is one, and never compares text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import stats

from labelaudit.checks import Floats

EXERCISES: dict[str, Callable[..., None]] = {}

# Answers are compared as a reader would round them.
TOLERANCE = 5e-4


class Hint(Exception):
    """What to think about next."""


def exercise(label: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register the property of an exercise's answer."""

    def register(test: Callable[..., None]) -> Callable[..., None]:
        EXERCISES[label] = test
        return test

    return register


def require(holds: Any, hint: str) -> None:
    """Raise the hint unless it holds."""
    if not holds:
        raise Hint(hint)


def numbers(answer: Any, *shape: int) -> Floats:
    """The answer as finite numbers of the expected shape."""
    wanted = " by ".join(str(side) for side in shape) or "one"
    try:
        values = np.asarray(answer, dtype=float)
    except (TypeError, ValueError):
        raise Hint(f"Give {wanted} number{'s' if shape else ''}, not {answer!r}.") from None
    if values.size == math.prod(shape):
        values = values.reshape(shape)
    require(
        values.shape == shape,
        f"Give {wanted} number{'s' if shape else ''}; this has the shape {values.shape}.",
    )
    require(np.isfinite(values).all(), f"Every number must be finite, not {answer!r}.")
    return values


def close(answer: Any, truth: Any, tolerance: float = TOLERANCE) -> bool:
    """Whether two numbers, or arrays of them, agree to a relative or absolute tolerance."""
    return bool(np.allclose(answer, truth, rtol=tolerance, atol=tolerance))


def uniform_bag(p: float, bag_size: float) -> float:
    """The chance that a bag has only zeros or only ones, for a mean prior of p."""
    return float(p**bag_size + (1 - p) ** bag_size)


def smallest(answer: Any, meets: Callable[[int], bool], too_small: str, too_large: str) -> None:
    """The answer is the least whole number from 1 on that meets a target."""
    number = float(numbers(answer))
    require(number == round(number) and number >= 1, f"A whole number, not {answer!r}.")
    require(meets(int(number)), too_small)
    require(number == 1 or not meets(int(number) - 1), too_large)


@exercise("ex-setting-two")
def two_people(answer: Any) -> None:
    """Posteriors of two people of whom exactly one has a one."""
    first, second = numbers(answer, 2)
    require(
        close(first + second, 1),
        "The two posteriors must add up to the published count, which is one.",
    )
    odds = (0.2 * 0.5) / (0.5 * 0.8)
    require(
        close(first * odds**-1, second),
        "Compare the two ways to have exactly one: first but not second, second but not first.",
    )


@exercise("ex-setting-mate")
def known_mate(answer: Any) -> None:
    """Posteriors in the book's bag once one member is known to have a zero."""
    values = numbers(answer, 4)
    require(values[3] == 0, "A prior of 0 cannot be moved: the last posterior is 0.")
    require(close(values.sum(), 1), "One of the other three has the one, so they add up to 1.")
    odds = np.array([0.05, 0.10, 0.30]) / (1 - np.array([0.05, 0.10, 0.30]))
    require(
        close(values[:3], odds / odds.sum(), 1e-3),
        "Given exactly one one among three, each has it in proportion to the odds of the prior.",
    )


@exercise("ex-setting-own")
def own_bag(answer: Any, *, bag_size: int, epsilon: float) -> None:
    """Chance that LLP reveals a bag of equal priors 0.1, and the ceiling under LLP+Geom."""
    revealed, largest = numbers(answer, 2)
    require(
        not close(revealed, 0.9**bag_size) or close(0.1**bag_size, 0),
        "A share of 1 reveals everybody just as a share of 0 does.",
    )
    require(
        close(revealed, uniform_bag(0.1, bag_size)),
        "Everybody is revealed when all labels are 0 or all are 1; each has a product as chance.",
    )
    odds = 0.1 / 0.9 * math.exp(epsilon)
    require(
        close(largest, odds / (1 + odds)),
        "The noise lets odds grow by at most a factor of exp(epsilon): start from odds of 1 to 9.",
    )


@exercise("ex-additive-untouched")
def untouched(answer: Any, *, epsilon: float) -> None:
    """Additive and label advantage of four priors under randomized response."""
    additive, label = numbers(answer, 2, 4)
    eta = np.array([0.1, 0.25, 0.3, 0.5])
    require(
        close(label, math.tanh(epsilon / 2)),
        "The second row, the label advantage, does not depend on the prior.",
    )
    require(
        (additive <= eta + 1e-9).all() and (additive >= -1e-9).all(),
        "An additive advantage lies between 0 and min(eta, 1 - eta).",
    )
    flip = 1 / (1 + math.exp(epsilon))
    require(
        close(additive, np.maximum(eta - flip, 0)),
        "The best guess follows the released bit only where it is more reliable than the prior.",
    )


@exercise("ex-additive-coin")
def coin(answer: Any) -> None:
    """EAdv of label proportions for fair coins in bags of 2, 3 and 4."""
    values = numbers(answer, 3)
    for size, value in zip((2, 3, 4), values, strict=True):
        count = np.arange(size + 1)
        share = count / size
        left = (stats.binom.pmf(count, size, 0.5) * np.minimum(share, 1 - share)).sum()
        require(
            close(value, 0.5 - left),
            f"At k = {size}: the posterior is the share. Average min(share, 1 - share).",
        )


@exercise("ex-aggregation-compute")
def how_large_a_bag(answer: Any) -> None:
    """The smallest bag of fair coins with EAdv at most 0.02, exactly and by three bounds."""
    from labelaudit import bounds

    require(isinstance(answer, Mapping), "Give a dictionary: a name and a bag size each.")
    curves: dict[str, Callable[[int], float]] = {
        "exact": lambda k: math.comb(k - 1, (k - 1) // 2) / 2**k,
        "root": lambda k: float(bounds.independent_root_bound(0.5, k)),
        "Lemma A.2": lambda k: float(bounds.lemma_bound(0.5, 0.25, k)),
        "Bessel": lambda k: float(bounds.aggregation_bound(0.25, k)),
    }
    for name, curve in curves.items():
        require(name in answer, f"There is no entry {name!r}.")
        smallest(
            answer[name],
            lambda k, curve=curve: k > 1 and curve(k) <= 0.02,  # type: ignore[misc]
            f"{name}: at this bag size the value is still above 0.02.",
            f"{name}: a smaller bag meets the target too.",
        )


@exercise("ex-response-compute")
def when_it_starts(answer: Any, *, epsilon: float) -> None:
    """When a prior of 0.05 is touched, how much at twice that epsilon, and the least prior."""
    threshold, advantage, least = numbers(answer, 3)
    require(
        close(1 / (1 + math.exp(threshold)), 0.05),
        "It starts where the chance of a flip equals the prior.",
    )
    require(
        close(advantage, 0.05 - 1 / (1 + 19**2)),
        "At twice that epsilon the flip probability is 1 / (1 + 19 squared).",
    )
    require(
        close(least, 1 / (1 + math.exp(epsilon))),
        "On this page a prior is touched as soon as it exceeds the chance of a flip.",
    )


@exercise("ex-multiplicative-compute")
def no_bag_revealed(answer: Any, *, bag_size: int) -> None:
    """The smallest bag with less than one uniform bag expected, and the number expected here."""
    size, expected = numbers(answer, 2)

    def uniform_bags(k: float) -> float:
        return 50_000_000 / k * uniform_bag(0.04, k)

    smallest(
        size,
        lambda k: uniform_bags(k) < 1,
        "With bags of this size one or more uniform bags are expected.",
        "A smaller bag suffices.",
    )
    require(
        close(expected, uniform_bags(bag_size), 1e-3),
        "There are people / k bags, and each is uniform with probability p^k + (1-p)^k.",
    )


@exercise("ex-scatter-large")
def never_revealed(answer: Any) -> None:
    """The smallest bags that are revealed at most once in a million."""
    for p, size in zip((1 / 2, 1 / 16), numbers(answer, 2), strict=True):
        smallest(
            size,
            lambda k, p=p: uniform_bag(p, k) <= 1e-6,  # type: ignore[misc]
            f"p = {p:g}: a bag of this size is revealed more often than once in a million.",
            f"p = {p:g}: a smaller bag suffices.",
        )


@exercise("ex-distribution-size")
def finite_from(answer: Any, *, means: Mapping[str, float], level: float) -> None:
    """For each law, the smallest bag whose population quantile can be finite."""
    require(isinstance(answer, Mapping), "Give a dictionary: a law and a bag size each.")
    for name, mean in means.items():
        require(name in answer, f"There is no entry {name!r}.")
        smallest(
            answer[name],
            lambda k, p=mean: uniform_bag(p, k) <= 1 - level,  # type: ignore[misc]
            f"{name}: more than {1 - level:.3g} of the mass is infinite at this bag size.",
            f"{name}: a smaller bag suffices.",
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

    number = float(numbers(answer))
    require(number == round(number) >= 1, f"A whole number of at least 1, not {answer!r}.")
    require(escapes(int(number)), "At this k the mass outside is still at most 1/(2k).")
    require(
        not any(escapes(k) for k in range(1, int(number))),
        "The claim fails at a smaller k already; failures come and go, so scan from 1.",
    )


@exercise("ex-sharper-compute")
def enough_for_two_priors(answer: Any) -> None:
    """The smallest listed bag with EAdv at most 0.001, for priors 0.4 or 0.6, by four roads."""
    from labelaudit import bounds

    require(isinstance(answer, Mapping), "Give a dictionary: a name and a bag size each.")

    def exact(k: int) -> float:
        """Sum over how many of the others have the prior 0.6; by symmetry one's own is 0.4."""
        right, high = 0.0, np.arange(k)
        chances = stats.binom.pmf(high, k - 1, 0.5)
        for j in high[chances > 1e-9]:
            ones = stats.binom.pmf(np.arange(j + 1), j, 0.6)
            law = np.convolve(ones, stats.binom.pmf(np.arange(k - j), k - 1 - j, 0.4))
            best = np.maximum(0.4 * np.append(0, law), 0.6 * np.append(law, 0))
            right += chances[j] * best.sum()
        return right - 0.6 * float(chances[chances > 1e-9].sum())

    curves: dict[str, Callable[[int], float]] = {
        "exact": exact,
        "gap": lambda k: float(bounds.gap_bound(0.24, 0.1, k)),
        "plain": lambda k: math.exp(-3.84 * 0.24 * 0.01 * (k - 1)),
        "Bessel": lambda k: float(bounds.aggregation_bound(0.24, k)),
    }
    for name, curve in curves.items():
        require(name in answer, f"There is no entry {name!r}.")
        listed_bag(answer[name], name, curve)


def listed_bag(answer: Any, name: str, curve: Callable[[int], float]) -> None:
    """The answer is the first of 2, 4, ..., 1400 at which a falling curve is at most 0.001."""
    if answer is None:
        require(curve(1400) > 0.001, f"{name}: some bag of the list is enough. Try the largest.")
        return
    size = float(numbers(answer))
    require(
        size % 2 == 0 and 2 <= size <= 1400,
        f"{name}: an even number from 2 to 1400, or None, not {answer!r}.",
    )
    require(curve(int(size)) <= 0.001, f"{name}: at this bag size the value is still above 0.001.")
    require(
        size == 2 or curve(int(size) - 2) > 0.001,
        f"{name}: a smaller bag of the list meets the target too.",
    )


@exercise("ex-audit-bag")
def small_advantage(answer: Any, *, eta: Floats, seed: int) -> None:
    """The first bag size with an advantage of at most 0.03, by the whole law of the count."""
    from labelaudit import CountChannel, additive_advantage
    from labelaudit.priors import Empirical

    largest = len(eta) // 10

    def enough(k: int) -> bool:
        bags = Empirical(eta).partition(k, np.random.default_rng(seed))
        return bool(additive_advantage(bags, CountChannel(np.eye(k + 1))).mean() <= 0.03)

    if answer is None:
        found = any(enough(k) for k in range(1, largest + 1))
        require(not found, "Some bag of at most a tenth of the records is enough: try them all.")
        return
    size = float(numbers(answer))
    require(
        size == round(size) and 1 <= size <= largest,
        f"A whole number from 1 to {largest}, or None, not {answer!r}.",
    )
    require(enough(int(size)), "At this size the advantage is still above 0.03.")
    require(
        not any(enough(k) for k in range(1, int(size))),
        "A smaller bag is enough already: try all sizes, from 1 on.",
    )


@exercise("ex-learning-compute")
def loss_without_minimum(answer: Any) -> None:
    """The chance that 30 noisy targets average at most 0, and when it stays below 0.001."""
    chance, number = numbers(answer, 2)
    flip = 1 / (1 + math.e)

    def no_minimum(people: int) -> float:
        ones = np.arange(people + 1)
        targets = (ones / people - flip) / (1 - 2 * flip)
        law = stats.binom.pmf(ones, people, 0.2 * (1 - flip) + 0.8 * flip)
        return float(law[targets <= 0].sum())

    require(
        close(chance, no_minimum(30)),
        "The mean target is not above 0 when the share of released ones is at most pi.",
    )
    require(number == round(number) >= 1, f"The second is a whole number, not {number:g}.")
    above = [people for people in range(1, 1000) if no_minimum(people) >= 1e-3]
    require(number > above[-1], "At some larger number of people the chance is above 0.001 again.")
    require(number == above[-1] + 1, "From a smaller number on the chance stays below 0.001.")


@exercise("ex-higgs-sure")
def calibrated_and_sure(answer: Any, *, eta: Any, epsilon: float) -> None:
    """Mean advantage of randomized response, from an estimate and from one three times as sure."""
    plain, sure = numbers(answer, 2)
    odds = np.asarray(eta) / (1 - np.asarray(eta))
    for value, scores, name in ((plain, odds, "calibrated"), (sure, odds**3, "surer")):
        wrong = np.minimum(scores, 1) / (1 + scores)
        gain = np.maximum(wrong - 1 / (1 + math.exp(epsilon)), 0).mean()
        require(
            close(value, gain, 1e-5),
            f"The {name} one: average what min(eta, 1 - eta) exceeds the chance of a flip by.",
        )


@exercise("ex-kdd-compute")
def tail_pays(answer: Any, *, eta: Any) -> None:
    """The share of the advantage at epsilon 1 that the largest tenth of contributions makes."""
    share = float(numbers(answer))
    require(0 <= share <= 1, f"A share lies between 0 and 1; {share:g} does not.")
    closeness = np.minimum(eta, 1 - np.asarray(eta))
    gains = sorted(float(gain) for gain in closeness - 1 / (1 + math.e) if gain > 0)
    total, largest = math.fsum(gains), gains[::-1]
    tenth = len(gains) / 10
    allowed = [math.fsum(largest[:n]) / total for n in (math.floor(tenth), math.ceil(tenth)) if n]
    require(
        any(close(share, one) for one in (allowed if total else [0.0])),
        "Sort the contributions above zero, and divide the sum of the first tenth by the sum.",
    )


@exercise("ex-utility-nine")
def best_of_nine(answer: Any) -> None:
    """How much the largest of nine standard normal numbers exceeds that of eight, on average."""
    number = float(numbers(answer))
    # Means of two laws differ by the area between their distribution functions.
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
        law = stats.nct(trials - 1, 0.5 * math.sqrt(trials))
        return bool(law.sf(threshold) + law.cdf(-threshold) >= 0.8)

    number = float(numbers(answer))
    require(
        number == round(number) and number >= 2,
        f"A whole number of trials from 2 on, not {answer!r}.",
    )
    fewer = range(2, min(int(number), 100))
    require(not any(sees(trials) for trials in fewer), "Fewer trials are enough already.")
    require(sees(int(number)), "With so few trials 0.005 is seen less often than four in five.")
