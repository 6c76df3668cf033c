"""The Bayes-optimal attacker: what a release says about each label of its bag."""

import math
from typing import Literal, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelaudit import checks
from labelaudit.checks import Floats
from labelaudit.mechanisms import Mechanism, NoisyCount
from labelaudit.poisson_binomial import leave_one_out, pmf

# Entries of a table of bags x members x counts that is in memory at a time.
TABLE_ENTRIES = 4_000_000
# Above this finite epsilon the noise leaves the range of a float within a few counts.
FAINT_NOISE = 100.0
# A prior below this, times a factor of the noise, loses digits to underflow in the kernels.
FAINT_PRIOR = 1e-250
# Probabilities below this are computed in logarithms: some of their terms may be out of range.
FAINT_PROBABILITY = 1e-200

# How the attacker's knowledge is expressed: P(y_i = 1 | release), a likelihood ratio, or its log.
Form = Literal["posterior", "ratio", "shift"]


def likelihood_ratios(eta: ArrayLike, mechanism: Mechanism, releases: ArrayLike) -> Floats:
    """P(release | y_i = 1, x) / P(release | y_i = 0, x) for each example, in the shape of `eta`.

    This number is all that the attacker learns about label i. Its log is the multiplicative
    advantage (Definition 3.6); times the prior odds it is the posterior odds. It is 1 where the
    prior is exactly 0 or 1, and 0 or infinite where the label is revealed or the number leaves the
    range of a float.

    >>> from labelaudit import LabelProportions
    >>> likelihood_ratios([[0.2, 0.5]], LabelProportions(2), [0.5]).round(12).tolist()
    [[1.0, 4.0]]
    """
    return attack(eta, mechanism, releases, "ratio")[0]


def posterior(eta: ArrayLike, mechanism: Mechanism, releases: ArrayLike) -> Floats:
    """P(y_i = 1 | x, release) for each example of each bag, in the shape of `eta` (Lemma A.1).

    >>> from labelaudit import LabelProportions
    >>> posterior([[0.2, 0.5]], LabelProportions(2), [0.5]).round(12).tolist()
    [[0.2, 0.8]]
    """
    return attack(eta, mechanism, releases, "posterior")[0]


def posterior_and_shift(
    eta: ArrayLike, mechanism: Mechanism, releases: ArrayLike
) -> tuple[Floats, Floats]:
    """`posterior` and `multiplicative_advantage` of the same releases, from one computation.

    >>> from labelaudit import LabelProportions
    >>> after, shift = posterior_and_shift([[0.2, 0.5]], LabelProportions(2), [0.5])
    >>> after.round(12).tolist(), shift.round(4).tolist()
    ([[0.2, 0.8]], [[0.0, 1.3863]])
    """
    after, shift = attack(eta, mechanism, releases, "posterior", "shift")
    return after, shift


def bayes_guess(eta: ArrayLike, mechanism: Mechanism, releases: ArrayLike) -> NDArray[np.int64]:
    """The best guess of each label, 1 where its posterior is at least one half (Lemma A.1).

    >>> from labelaudit import LabelProportions
    >>> bayes_guess([[0.2, 0.6]], LabelProportions(2), [0.5]).tolist()
    [[0, 1]]
    """
    return (posterior(eta, mechanism, releases) >= 0.5).astype(np.int64)


def log_evidence(eta: ArrayLike, mechanism: Mechanism, releases: ArrayLike) -> Floats:
    """Log P(release | x) of each bag, (n_bags,); -inf where the priors rule the release out.

    For a continuous release it is the log density. For a mechanism of your own it is the log of the
    sum over counts of probability times likelihood: a factor per bag that the likelihood lacks is
    missing here too. Its gradient in the log-odds of eta_i is the posterior minus the prior.

    >>> from labelaudit import GeometricProportions
    >>> mechanism = GeometricProportions(2, math.log(3))
    >>> np.exp(log_evidence([[0.2, 0.5]] * 3, mechanism, [0.0, 0.5, 1.0])).round(4).tolist()
    [0.4333, 0.3333, 0.2333]
    """
    priors = checks.priors(eta, checks.bag_size(mechanism))
    values = checks.releases(releases, getattr(mechanism, "release_shape", ()))
    checks.one_release_each(priors, values)
    logs = complete_logs(mechanism, values)
    with np.errstate(divide="ignore"):
        results = np.logaddexp.reduce(np.log(pmf(priors)) + logs, axis=1)
        # A count of probability below 1e-300 may be the only one that explains the release.
        faint = np.flatnonzero(results < math.log(FAINT_PROBABILITY) + logs.max(axis=1))
        if faint.size:
            forward = _forward_logs(priors[faint])[-1]
            results[faint] = np.logaddexp.reduce(forward + logs[faint], axis=1)
    return results


def complete_logs(mechanism: Mechanism, releases: Floats) -> Floats:
    """Log P(release | count) with its scale, where the mechanism knows it."""
    return checked_logs(mechanism, releases) + mechanism.log_scale(releases)[:, None]


def is_compiled(mechanism: Mechanism) -> TypeGuard[NoisyCount]:
    """Whether the kernels attack this mechanism; all others go through `_any_channel`."""
    return isinstance(mechanism, NoisyCount) and not FAINT_NOISE < mechanism.epsilon < math.inf


def attack(
    eta: ArrayLike, mechanism: Mechanism, releases: ArrayLike, *forms: Form
) -> tuple[Floats, ...]:
    """What each release says about each label of its bag, in each of `forms`."""
    priors = checks.priors(eta, checks.bag_size(mechanism))
    values = checks.releases(releases, getattr(mechanism, "release_shape", ()))
    checks.one_release_each(priors, values)
    if mechanism.epsilon == 0:
        unmoved = {"posterior": priors, "ratio": np.ones_like(priors), "shift": 0 * priors}
        results = np.stack([unmoved[form] for form in forms])
        results[:, np.isneginf(checked_logs(mechanism, values)).all(axis=1)] = np.nan
    elif is_compiled(mechanism):
        results = _noisy_count(priors, mechanism, values, forms)
    else:
        results = _any_channel(priors, mechanism, values, forms)
    impossible = np.isnan(results[0, :, 0])
    if np.count_nonzero(impossible):
        bag = int(np.flatnonzero(impossible)[0])
        ones, zeros = (priors[bag] == 1).sum(), (priors[bag] == 0).sum()
        release = ", ".join(f"{value:g}" for value in np.ravel(values[bag]))
        raise ValueError(
            f"release {release} of bag {bag} has probability zero under its priors "
            f"({ones} of them are 1 and {zeros} are 0)"
        )
    if isinstance(mechanism, NoisyCount) and "shift" in forms:
        # No shift exceeds epsilon; a ratio of exp(epsilon) may not fit a float.
        shifts = results[forms.index("shift")]
        np.clip(shifts, -mechanism.epsilon, mechanism.epsilon, out=shifts)
    return tuple(result.reshape(np.shape(eta)) for result in results)


def _noisy_count(
    eta: Floats, mechanism: NoisyCount, releases: Floats, forms: tuple[Form, ...]
) -> Floats:
    """The compiled attack; bags with a prior too small for it go through `_any_channel`."""
    from labelaudit.kernels import attack as kernels

    as_ratio = forms != ("posterior",)
    results = kernels.attack(eta, mechanism.positions(releases), mechanism.epsilon, as_ratio)[None]
    if as_ratio:
        results = _from_ratios(eta, results[0], forms)
    if eta.size and eta.min() < FAINT_PRIOR:
        faint = ((eta > 0) & (eta < FAINT_PRIOR)).any(axis=1)
        results[:, faint] = _any_channel(eta[faint], mechanism, releases[faint], forms)
    return results


def within_range(eta: Floats) -> Floats:
    """Priors for the kernels: those between 0 and 1e-250 become 1e-250."""
    if not eta.size or eta.min() >= FAINT_PRIOR:
        return eta
    return np.where((eta > 0) & (eta < FAINT_PRIOR), FAINT_PRIOR, eta)


def _any_channel(
    eta: Floats, mechanism: Mechanism, releases: Floats, forms: tuple[Form, ...]
) -> Floats:
    """The attack on any mechanism with a likelihood, NaN where a release is impossible."""
    results = np.empty((len(forms), *eta.shape))
    step = max(1, TABLE_ENTRIES // mechanism.bag_size**2)
    for start in range(0, len(eta), step):
        part = slice(start, start + step)
        priors = eta[part]
        logs = checked_logs(mechanism, releases[part])
        peaks = logs.max(axis=1, keepdims=True)
        # A common term of huge size would swallow the differences.
        logs = logs - np.where(np.isfinite(peaks), peaks, 0)
        weights = np.exp(logs)
        others = leave_one_out(priors)
        if_one = np.einsum("bis,bs->bi", others, weights[:, 1:])
        if_zero = np.einsum("bis,bs->bi", others, weights[:, :-1])
        with np.errstate(all="ignore"):
            ratios = np.where((priors == 0) | (priors == 1), 1.0, if_one / if_zero)
        results[:, part] = _from_ratios(priors, ratios, forms)
        faint = _faint_bags(priors, logs, if_one, if_zero)
        if faint.size:
            shifts = _in_logs(priors[faint], logs[faint])
            results[:, part][:, faint] = _from_shifts(priors[faint], shifts, forms)
    return results


def _faint_bags(eta: Floats, logs: Floats, if_one: Floats, if_zero: Floats) -> NDArray[np.intp]:
    """Bags with a probability too small to trust, or a release that is impossible.

    A probability of zero is exact where the channel itself excludes the label. The count ranges
    from the number of priors of 1 to the number of priors above 0; if a label that is not known
    is 0 the last of these counts is impossible, if it is 1 the first.
    """
    suspects = np.flatnonzero((np.minimum(if_one, if_zero) < FAINT_PROBABILITY).any(axis=1))
    priors, counts = eta[suspects], np.arange(logs.shape[1])
    least = (priors == 1).sum(axis=1, keepdims=True)
    most = (priors > 0).sum(axis=1, keepdims=True)
    possible = (logs[suspects] > -np.inf) & (counts >= least) & (counts <= most)
    can_be_one = (possible & (counts > least)).any(axis=1, keepdims=True)
    can_be_zero = (possible & (counts < most)).any(axis=1, keepdims=True)
    faint = can_be_one & (if_one[suspects] < FAINT_PROBABILITY)
    faint |= can_be_zero & (if_zero[suspects] < FAINT_PROBABILITY)
    faint &= (priors > 0) & (priors < 1)
    return suspects[faint.any(axis=1) | ~possible.any(axis=1)]


def _from_ratios(eta: Floats, ratios: Floats, forms: tuple[Form, ...]) -> Floats:
    def convert(form: Form) -> Floats:
        if form == "posterior":
            mixed = eta * ratios / (1 - eta + eta * ratios)
            return np.where(np.isinf(ratios), 1.0, mixed)
        return np.log(ratios) if form == "shift" else ratios

    with np.errstate(all="ignore"):
        return np.stack([convert(form) for form in forms])


def _from_shifts(eta: Floats, shifts: Floats, forms: tuple[Form, ...]) -> Floats:
    def convert(form: Form) -> Floats:
        if form == "posterior":
            return 1 / (1 + np.exp(np.log1p(-eta) - np.log(eta) - shifts))
        return np.exp(shifts) if form == "ratio" else shifts

    with np.errstate(all="ignore"):
        return np.stack([convert(form) for form in forms])


def checked_logs(mechanism: Mechanism, releases: Floats) -> Floats:
    """The mechanism's log likelihoods; a user's own mechanism may return an invalid table."""
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


def _forward_logs(eta: Floats) -> Floats:
    """Log P(count of the first j members = s): (k + 1, n_bags, k + 1)."""
    n_bags, k = eta.shape
    forward = np.full((k + 1, n_bags, k + 1), -np.inf)
    forward[0, :, 0] = 0
    with np.errstate(all="ignore"):
        one_log, zero_log = np.log(eta)[:, :, None], np.log1p(-eta)[:, :, None]
        for j in range(k):
            forward[j + 1] = forward[j] + zero_log[:, j]
            step = forward[j, :, :-1] + one_log[:, j]
            forward[j + 1, :, 1:] = np.logaddexp(forward[j + 1, :, 1:], step)
    return forward


def _in_logs(eta: Floats, logs: Floats) -> Floats:
    """Log likelihood ratios by a forward-backward pass in logarithms; NaN where impossible."""
    k = eta.shape[1]
    forward = _forward_logs(eta)
    with np.errstate(all="ignore"):
        one_log, zero_log = np.log(eta)[:, :, None], np.log1p(-eta)[:, :, None]
        possible = np.logaddexp.reduce(forward[k] + logs, axis=1) > -np.inf
        shifts = np.zeros_like(eta)
        ahead = logs.copy()
        for j in reversed(range(k)):
            log_one = np.logaddexp.reduce(forward[j, :, :-1] + ahead[:, 1:], axis=1)
            shifts[:, j] = log_one - np.logaddexp.reduce(forward[j] + ahead, axis=1)
            moved = np.full_like(ahead, -np.inf)
            moved[:, :-1] = ahead[:, 1:] + one_log[:, j]
            ahead = np.logaddexp(ahead + zero_log[:, j], moved)
    shifts[(eta == 0) | (eta == 1)] = 0
    shifts[~possible] = np.nan
    return shifts
