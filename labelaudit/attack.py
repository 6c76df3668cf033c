"""The Bayes-optimal attacker: what a release tells about each label of its bag."""

from __future__ import annotations

import math
from typing import Literal

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
# Below this a prior, times what noise of that epsilon may take off it, loses digits to underflow
# in the compiled kernels.
FAINT_PRIOR = 1e-250
# Below this a chance is worked out in logarithms: some of its terms may have been out of range.
FAINT_CHANCE = 1e-200

# How the attacker's knowledge is told: P(y_i = 1 | release), a likelihood ratio, or its logarithm.
Form = Literal["posterior", "ratio", "shift"]


def likelihood_ratios(eta: ArrayLike, mechanism: Mechanism, releases: ArrayLike) -> Floats:
    """P(release | y_i = 1, x) / P(release | y_i = 0, x) for each example, in the shape of `eta`.

    All the attacker learns about label i is in this number: its log is the multiplicative
    advantage (Definition 3.6), and times the prior odds it gives the posterior odds. It is 1
    where the prior is exactly 0 or 1, and 0 or infinite where the label is revealed or the number
    leaves the range of a float.

    >>> from labelaudit import LabelProportions
    >>> likelihood_ratios([[0.2, 0.5]], LabelProportions(2), [0.5]).round(12).tolist()
    [[1.0, 4.0]]
    """
    return attack(eta, mechanism, releases, "ratio")


def posterior(eta: ArrayLike, mechanism: Mechanism, releases: ArrayLike) -> Floats:
    """P(y_i = 1 | x, release) for each example of each bag, in the shape of `eta` (Lemma A.1).

    >>> from labelaudit import LabelProportions
    >>> posterior([[0.2, 0.5]], LabelProportions(2), [0.5]).round(12).tolist()
    [[0.2, 0.8]]
    """
    return attack(eta, mechanism, releases, "posterior")


def bayes_guess(eta: ArrayLike, mechanism: Mechanism, releases: ArrayLike) -> NDArray[np.int64]:
    """The best guess of each label, 1 where its posterior is at least one half (Lemma A.1).

    >>> from labelaudit import LabelProportions
    >>> bayes_guess([[0.2, 0.6]], LabelProportions(2), [0.5]).tolist()
    [[0, 1]]
    """
    return (posterior(eta, mechanism, releases) >= 0.5).astype(np.int64)


def attack(eta: ArrayLike, mechanism: Mechanism, releases: ArrayLike, form: Form) -> Floats:
    """What each release says about each label of its bag, by the quickest exact way there is."""
    priors = checks.priors(eta, checks.bag_size(mechanism))
    given = checks.releases(releases, getattr(mechanism, "release_shape", ()))
    if len(given) != len(priors):
        raise ValueError(
            f"there must be one release for each bag: {len(priors)} bags, {len(given)} releases"
        )
    if mechanism.epsilon == 0:
        impossible = np.isneginf(_checked_logs(mechanism, given)).all(axis=1)
        result = priors.copy() if form == "posterior" else np.full_like(priors, form == "ratio")
        result[impossible] = np.nan
    elif isinstance(mechanism, NoisyCount) and not FAINT_NOISE < mechanism.epsilon < math.inf:
        result = _noisy_count(priors, mechanism, given, form)
    else:
        result = _any_channel(priors, mechanism, given, form)
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


def _noisy_count(eta: Floats, mechanism: NoisyCount, releases: Floats, form: Form) -> Floats:
    """The compiled attack; bags with a prior too faint for it go the way of any channel."""
    from labelaudit.kernels import ratio

    positions = mechanism.positions(releases)
    result = ratio.attack(eta, positions, mechanism.epsilon, form != "posterior")
    if form == "shift":
        result = _from_ratios(eta, result, form)
    if eta.size and eta.min() < FAINT_PRIOR:
        faint = ((eta > 0) & (eta < FAINT_PRIOR)).any(axis=1)
        result[faint] = _any_channel(eta[faint], mechanism, releases[faint], form)
    return result


def _any_channel(eta: Floats, mechanism: Mechanism, releases: Floats, form: Form) -> Floats:
    """The attack on any mechanism that knows its likelihood, NaN where a release is impossible."""
    result = np.empty_like(eta)
    step = max(1, TABLE_ENTRIES // mechanism.bag_size**2)
    for start in range(0, len(eta), step):
        part = slice(start, start + step)
        priors = eta[part]
        logs = _checked_logs(mechanism, releases[part])
        peaks = logs.max(axis=1, keepdims=True)
        # A common term of huge size would swallow the differences.
        logs = logs - np.where(np.isfinite(peaks), peaks, 0)
        weights = np.exp(logs)
        others = leave_one_out(priors)
        one = np.einsum("bis,bs->bi", others, weights[:, 1:])
        zero = np.einsum("bis,bs->bi", others, weights[:, :-1])
        with np.errstate(all="ignore"):
            ratios = np.where((priors == 0) | (priors == 1), 1.0, one / zero)
        result[part] = _from_ratios(priors, ratios, form)
        faint = _faint_bags(priors, logs, one, zero)
        if faint.size:
            shifts = _in_logs(priors[faint], logs[faint])
            result[part][faint] = _from_shifts(priors[faint], shifts, form)
    return result


def _faint_bags(eta: Floats, logs: Floats, one: Floats, zero: Floats) -> NDArray[np.intp]:
    """Bags with a chance too small to trust, or a release that is impossible.

    A chance of zero is exact where the channel itself rules the label out. With one label in
    doubt at 0 or 1, the count can be anything from the known ones up to all but the known zeros,
    save the last or the first of these.
    """
    suspects = np.flatnonzero((np.minimum(one, zero) < FAINT_CHANCE).any(axis=1))
    priors, counts = eta[suspects], np.arange(logs.shape[1])
    least = (priors == 1).sum(axis=1, keepdims=True)
    most = (priors > 0).sum(axis=1, keepdims=True)
    possible = (logs[suspects] > -np.inf) & (counts >= least) & (counts <= most)
    can_be_one = (possible & (counts > least)).any(axis=1, keepdims=True)
    can_be_zero = (possible & (counts < most)).any(axis=1, keepdims=True)
    faint = can_be_one & (one[suspects] < FAINT_CHANCE)
    faint |= can_be_zero & (zero[suspects] < FAINT_CHANCE)
    faint &= (priors > 0) & (priors < 1)
    return suspects[faint.any(axis=1) | ~possible.any(axis=1)]


def _from_ratios(eta: Floats, ratios: Floats, form: Form) -> Floats:
    with np.errstate(all="ignore"):
        if form == "posterior":
            mixed = eta * ratios / (1 - eta + eta * ratios)
            return np.where(np.isinf(ratios), 1.0, mixed)
        return np.log(ratios) if form == "shift" else ratios


def _from_shifts(eta: Floats, shifts: Floats, form: Form) -> Floats:
    with np.errstate(all="ignore"):
        if form == "posterior":
            return 1 / (1 + np.exp(np.log1p(-eta) - np.log(eta) - shifts))
        return np.exp(shifts) if form == "ratio" else shifts


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
    """Log likelihood ratios by a forward-backward pass in logarithms; NaN where impossible."""
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
        shifts = np.zeros_like(eta)
        ahead = logs.copy()
        for j in reversed(range(k)):
            here_one = np.logaddexp.reduce(forward[j, :, :-1] + ahead[:, 1:], axis=1)
            here_zero = np.logaddexp.reduce(forward[j] + ahead, axis=1)
            shifts[:, j] = here_one - here_zero
            moved = np.full_like(ahead, -np.inf)
            moved[:, :-1] = ahead[:, 1:] + one[:, j]
            ahead = np.logaddexp(ahead + zero[:, j], moved)
    shifts[(eta == 0) | (eta == 1)] = 0
    shifts[~possible] = np.nan
    return shifts
