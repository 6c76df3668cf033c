"""The Bayes-optimal attacker: what a release tells about each label of its bag."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelaudit import checks
from labelaudit.checks import Floats
from labelaudit.mechanisms import Mechanism, NoisyCount
from labelaudit.poisson_binomial import leave_one_out

# Bags at a time where a table of bags x members x counts is made.
TABLE_ENTRIES = 4_000_000
# Above this epsilon noise that is still finite leaves the range of a float within a few counts.
FAINT_NOISE = 100.0


def likelihood_ratios(eta: ArrayLike, mechanism: Mechanism, releases: ArrayLike) -> Floats:
    """P(release | y_i = 1, x) / P(release | y_i = 0, x) for each example, in the shape of `eta`.

    All the attacker learns about label i is in this number: its log is the multiplicative
    advantage (Definition 3.6), and times the prior odds it gives the posterior odds. It is 1
    where the prior is exactly 0 or 1, and 0 or infinite where the label is revealed.

    >>> from labelaudit import LabelProportions
    >>> likelihood_ratios([[0.2, 0.5]], LabelProportions(2), [0.5]).round(12).tolist()
    [[1.0, 4.0]]
    """
    return _attack(eta, mechanism, releases, as_ratio=True)


def posterior(eta: ArrayLike, mechanism: Mechanism, releases: ArrayLike) -> Floats:
    """P(y_i = 1 | x, release) for each example of each bag, in the shape of `eta` (Lemma A.1).

    >>> from labelaudit import LabelProportions
    >>> posterior([[0.2, 0.5]], LabelProportions(2), [0.5]).round(12).tolist()
    [[0.2, 0.8]]
    """
    return _attack(eta, mechanism, releases, as_ratio=False)


def bayes_guess(eta: ArrayLike, mechanism: Mechanism, releases: ArrayLike) -> NDArray[np.int64]:
    """The best guess of each label, 1 where its posterior is at least one half (Lemma A.1).

    >>> from labelaudit import LabelProportions
    >>> bayes_guess([[0.2, 0.6]], LabelProportions(2), [0.5]).tolist()
    [[0, 1]]
    """
    return (posterior(eta, mechanism, releases) >= 0.5).astype(np.int64)


def _attack(eta: ArrayLike, mechanism: Mechanism, releases: ArrayLike, as_ratio: bool) -> Floats:
    """Likelihood ratios or posteriors, by the quickest exact way the mechanism allows."""
    priors = checks.priors(eta, checks.bag_size(mechanism))
    given = checks.releases(releases, getattr(mechanism, "release_shape", ()))
    if len(given) != len(priors):
        raise ValueError(
            f"there must be one release for each bag: {len(priors)} bags, {len(given)} releases"
        )
    if mechanism.epsilon == 0:
        impossible = np.isneginf(_checked_logs(mechanism, given)).all(axis=1)
        result = np.ones_like(priors) if as_ratio else priors.copy()
        result[impossible] = np.nan
    elif isinstance(mechanism, NoisyCount) and not FAINT_NOISE < mechanism.epsilon < math.inf:
        from labelaudit.kernels import ratio

        result = ratio.attack(priors, mechanism.positions(given), mechanism.epsilon, as_ratio)
    else:
        result = _any_channel(priors, mechanism, given)
        if not as_ratio:
            with np.errstate(invalid="ignore", over="ignore"):
                mixed = priors * result / (1 - priors + priors * result)
            result = np.where(np.isinf(result), 1.0, mixed)
    impossible = np.isnan(result[:, 0])
    if impossible.any():
        bag = int(np.flatnonzero(impossible)[0])
        ones, zeros = (priors[bag] == 1).sum(), (priors[bag] == 0).sum()
        raise ValueError(
            f"release {_shown(given[bag])} of bag {bag} has probability zero under its priors "
            f"({ones} of them are 1 and {zeros} are 0)"
        )
    return result.reshape(np.shape(eta))


def _shown(release: Floats) -> str:
    return ", ".join(f"{value:g}" for value in np.ravel(release))


def _any_channel(eta: Floats, mechanism: Mechanism, releases: Floats) -> Floats:
    """Likelihood ratios for any mechanism that knows its likelihood, NaN where impossible."""
    ratios = np.empty_like(eta)
    step = max(1, TABLE_ENTRIES // mechanism.bag_size**2)
    for start in range(0, len(eta), step):
        part = slice(start, start + step)
        logs = _checked_logs(mechanism, releases[part])
        peaks = logs.max(axis=1, keepdims=True)
        weights = np.exp(logs - np.where(np.isfinite(peaks), peaks, 0))
        others = leave_one_out(eta[part])
        one = np.einsum("bis,bs->bi", others, weights[:, 1:])
        zero = np.einsum("bis,bs->bi", others, weights[:, :-1])
        with np.errstate(all="ignore"):
            ratios[part] = one / zero
        # Where a chance is out of range for a float, logarithms still hold it. A channel without
        # zeros has no other way to a chance of zero.
        low = np.where(
            np.isfinite(logs).all(axis=1, keepdims=True), np.minimum(one, zero), one + zero
        )
        faint = np.flatnonzero((low < 1e-200).any(axis=1))
        if faint.size:
            ratios[part][faint] = _in_logs(eta[part][faint], logs[faint])
    impossible = np.isnan(ratios).any(axis=1)
    ratios[(eta == 0) | (eta == 1)] = 1.0
    ratios[impossible] = np.nan
    return ratios


def _checked_logs(mechanism: Mechanism, releases: Floats) -> Floats:
    """The mechanism's log likelihoods, refused where a table of its own making does not fit."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.asarray(mechanism.log_likelihood(releases), dtype=np.float64)
    shape = (len(releases), mechanism.bag_size + 1)
    name = type(mechanism).__name__
    if logs.shape != shape:
        raise ValueError(
            f"the likelihood of {name} must have shape (n_bags, bag_size + 1) = {shape}, "
            f"not {logs.shape}"
        )
    if np.isnan(logs).any() or np.isposinf(logs).any():
        raise ValueError(f"the likelihood of {name} must be finite and at least 0")
    return logs


def _in_logs(eta: Floats, logs: Floats) -> Floats:
    """Likelihood ratios by a forward-backward pass in logarithms; NaN for impossible releases."""
    n_bags, k = eta.shape
    with np.errstate(all="ignore"):
        one, zero = np.log(eta)[:, :, None], np.log1p(-eta)[:, :, None]
        forward = np.full((k + 1, n_bags, k + 1), -np.inf)
        forward[0, :, 0] = 0
        for j in range(k):
            forward[j + 1] = forward[j] + zero[:, j]
            step = forward[j, :, :-1] + one[:, j]
            forward[j + 1, :, 1:] = np.logaddexp(forward[j + 1, :, 1:], step)
        possible = np.logaddexp.reduce(forward[k] + logs, axis=1) > -np.inf
        ratios = np.empty_like(eta)
        ahead = logs.copy()
        for j in reversed(range(k)):
            here_one = np.logaddexp.reduce(forward[j, :, :-1] + ahead[:, 1:], axis=1)
            here_zero = np.logaddexp.reduce(forward[j] + ahead, axis=1)
            ratios[:, j] = np.exp(here_one - here_zero)
            moved = np.full_like(ahead, -np.inf)
            moved[:, :-1] = ahead[:, 1:] + one[:, j]
            ahead = np.logaddexp(ahead + zero[:, j], moved)
    ratios[~possible] = np.nan
    return ratios
