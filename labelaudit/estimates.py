"""Averages and tails of advantage and worth over random bags, each with its standard error."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from labelaudit import checks
from labelaudit.advantage import additive_advantage, worth
from labelaudit.attack import bayes_guess, posterior
from labelaudit.checks import Floats
from labelaudit.mechanisms import Mechanism
from labelaudit.partitions import Average
from labelaudit.partitions import Estimate as Estimate
from labelaudit.priors import Empirical, Prior

# Priors drawn at a time.
BATCH = 4_000_000
ExactMeasure = Callable[[Floats, Mechanism], Floats]


def expected_advantage(
    prior: Prior, mechanism: Mechanism, *, n_bags: int, rng: np.random.Generator
) -> Estimate:
    """EAdv of Definition 3.1: the mean additive advantage over random bags, exact over releases.

    For a distribution, bags are independent draws. For `Empirical` priors the estimand is the mean
    over uniformly drawn bags of the data set. It is estimated from whole random partitions: at
    least two, and enough for `n_bags` bags. If the advantage comes from rare bags alone and none
    of them was drawn, the standard error is 0 and means nothing: draw more bags.

    >>> from labelaudit import LabelProportions
    >>> from labelaudit.priors import TwoPoint
    >>> rng = np.random.default_rng(0)
    >>> expected_advantage(TwoPoint(0.5, 0.5), LabelProportions(2), n_bags=10, rng=rng).value
    0.25
    """
    return _expected(additive_advantage, prior, mechanism, n_bags, rng)


def expected_worth(
    prior: Prior, mechanism: Mechanism, *, n_bags: int, rng: np.random.Generator
) -> Estimate:
    """The mean `worth` over random bags, exact over releases; bags as in `expected_advantage`.

    >>> from labelaudit import LabelProportions
    >>> from labelaudit.priors import TwoPoint
    >>> rng = np.random.default_rng(0)
    >>> expected_worth(TwoPoint(0.5, 0.5), LabelProportions(2), n_bags=10, rng=rng).value
    0.5
    """
    return _expected(worth, prior, mechanism, n_bags, rng)


def _expected(
    measure: ExactMeasure, prior: Prior, mechanism: Mechanism, n_bags: int, rng: np.random.Generator
) -> Estimate:
    wanted = checks.count(n_bags, "n_bags", least=2)
    checks.generator(rng)
    checks.prior(prior)
    k = checks.bag_size(mechanism)
    if not isinstance(prior, Empirical):
        means = [
            measure(prior.sample((size, k), rng), mechanism).mean(axis=1)
            for size in _batches(wanted, k)
        ]
        return _mean(np.concatenate(means), "independent bags, exact over releases")
    m = prior.values.size
    average = Average(k, m)
    while average.bags < wanted or len(average.sums) < 2:
        members = prior.shuffle(k, rng)
        average.add(members, measure(prior.values[members], mechanism).mean(axis=1))
    estimate = average.estimate_with_sampling_error()
    left_out = f", {m % k} of {m} examples left out of each" if m % k else ""
    return replace(estimate, method=f"{estimate.method}, exact over releases{left_out}")


def _mean(values: Floats, method: str) -> Estimate:
    """The mean of independent values."""
    error = float(values.std(ddof=1)) / math.sqrt(values.size)
    return Estimate(float(values.mean()), error, values.size, method)


def _batches(n_bags: int, bag_size: int) -> list[int]:
    step = max(1, BATCH // bag_size)
    return [min(step, n_bags - start) for start in range(0, n_bags, step)]


def high_probability_advantage(
    prior: Prior,
    mechanism: Mechanism,
    theta: float,
    *,
    n_bags: int,
    n_draws: int,
    rng: np.random.Generator,
) -> Estimate:
    """HPAdv of appendix A: P over the features that a data set's mean advantage exceeds theta.

    It depends on how many bags the data set has, so `n_bags` has no default. The standard error
    is that of a proportion with one success and one failure added, so that it is never zero.
    `Empirical` priors are drawn with replacement: the features are what is random.

    >>> from labelaudit import LabelProportions
    >>> from labelaudit.priors import TwoPoint
    >>> high_probability_advantage(
    ...     TwoPoint(0.5, 0.5), LabelProportions(2), 0.2,
    ...     n_bags=3, n_draws=5, rng=np.random.default_rng(0),
    ... ).value
    1.0
    """
    level = checks.real_number(theta, "theta", 0, 1)
    bags = checks.count(n_bags, "n_bags")
    draws = checks.count(n_draws, "n_draws")
    checks.generator(rng)
    checks.prior(prior)
    k = checks.bag_size(mechanism)
    exceeding = 0
    for size in _batches(draws, bags * k):
        eta = prior.sample((size * bags, k), rng)
        means = additive_advantage(eta, mechanism).reshape(size, bags * k).mean(axis=1)
        exceeding += int((means > level).sum())
    smooth = (exceeding + 1) / (draws + 2)
    error = math.sqrt(smooth * (1 - smooth) / draws)
    return Estimate(exceeding / draws, error, draws, f"independent data sets of {bags} bags")


def realised_advantage(
    eta: ArrayLike, labels: ArrayLike, mechanism: Mechanism, rng: np.random.Generator
) -> Estimate:
    """The gain in accuracy of the attack on known labels, over guessing from the prior.

    On labels drawn from eta the mean agrees with `additive_advantage`; on real labels the
    difference measures how wrong eta is. The standard error is over bags.

    >>> from labelaudit import RandomizedResponse
    >>> eta, labels = np.full(1000, 0.5), np.tile([0, 1], 500)
    >>> gain = realised_advantage(eta, labels, RandomizedResponse(50), np.random.default_rng(0))
    >>> gain.value
    0.5
    """
    priors = checks.priors(eta, checks.bag_size(mechanism))
    truth = checks.label_bags(labels, mechanism.bag_size)
    if priors.shape != truth.shape:
        raise ValueError(
            f"eta and labels must have one shape, not {priors.shape} and {truth.shape}"
        )
    if len(priors) < 2:
        raise ValueError(f"a standard error over bags needs at least 2 bags, not {len(priors)}")
    releases = mechanism.release(truth, checks.generator(rng))
    informed = bayes_guess(priors, mechanism, releases) == truth
    uninformed = (priors >= 0.5) == truth
    gains = (informed.astype(float) - uninformed).mean(axis=1)
    return _mean(gains, "one release of the given labels")


def sampled_advantage(
    eta: ArrayLike, mechanism: Mechanism, *, draws: int, rng: np.random.Generator
) -> Estimate:
    """Mean additive advantage from drawn releases, for a mechanism with too many to sum over.

    Labels are drawn from eta and released. The advantage is E max(posterior, 1 - posterior) less
    max(eta, 1 - eta), which is free of the noise of the labels themselves. The standard error is
    over bags, each with the mean of its draws; for a single bag it is over its draws.

    >>> from labelaudit import RandomizedResponse
    >>> rng = np.random.default_rng(0)
    >>> sampled_advantage(np.full(10, 0.5), RandomizedResponse(50.0), draws=2, rng=rng).value
    0.5
    """
    priors = checks.priors(eta, checks.bag_size(mechanism))
    rounds = checks.whole_number(draws, "draws")
    checks.generator(rng)
    if len(priors) * rounds < 2:
        raise ValueError(f"a standard error needs at least 2 bags or draws, not {len(priors)} bags")
    uninformed = np.maximum(priors, 1 - priors)
    gains = []
    for _ in range(rounds):
        labels = rng.random(priors.shape) < priors
        after = posterior(priors, mechanism, mechanism.release(labels, rng))
        gains.append((np.maximum(after, 1 - after) - uninformed).mean(axis=1))
    table = np.array(gains)
    # The draws of one bag share its priors, so they are not independent bags.
    values = table.mean(axis=0) if len(priors) > 1 else table[:, 0]
    estimate = _mean(values, f"{rounds} releases of drawn labels")
    return replace(estimate, value=float(table.mean()), n=table.size)


def advantage_with_known_members(
    eta: ArrayLike, mechanism: Mechanism, known: int, rng: np.random.Generator
) -> Floats:
    """Additive advantage of each example if the attacker knows `known` other labels of its bag.

    A known label is a prior of exactly 0 or 1, so side information needs no theory of its own.
    For each example the known members are drawn at random, and their labels from eta. This is one
    draw; average several for the mean over what the attacker may know.

    >>> from labelaudit import LabelProportions
    >>> eta = [[0.3, 0.4, 0.9]]
    >>> rng = np.random.default_rng(0)
    >>> advantage_with_known_members(eta, LabelProportions(3), 2, rng).round(12).tolist()
    [[0.3, 0.4, 0.1]]
    """
    priors = checks.priors(eta, checks.bag_size(mechanism))
    n_bags, k = priors.shape
    count = checks.whole_number(known, "known", least=0)
    if count > k - 1:
        raise ValueError(f"known must be at most bag_size - 1 = {k - 1}, not {count}")
    checks.generator(rng)
    result = np.empty_like(priors)
    targets = np.arange(k)
    step = max(1, BATCH // k**2)
    for start in range(0, n_bags, step):
        part = priors[start : start + step]
        views = np.repeat(part[:, None, :], k, axis=1)
        order = rng.random(views.shape)
        order[:, targets, targets] = 2
        ranks = order.argsort(axis=2).argsort(axis=2)
        drawn = (rng.random(views.shape) < views).astype(float)
        views = np.where(ranks < count, drawn, views)
        gains = additive_advantage(views.reshape(-1, k), mechanism).reshape(views.shape)
        result[start : start + step] = gains[:, targets, targets]
    return result.reshape(np.shape(eta))
