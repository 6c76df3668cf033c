"""A mechanism of the user's own on trial, before anything is trained."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from labelaudit.attack import posterior
from labelaudit.checks import Floats
from labelaudit.mechanisms import CountChannel, Mechanism

# What a log ratio may exceed epsilon by, for rounding.
ROUNDING = 1e-6
# Releases of each count that are looked at before an audit, the most counts, the most labels.
TRIALS, MOST_COUNTS, MOST_LABELS = 20, 65, 1_000_000
# To compare frequencies with a channel takes more of each. An honest mechanism is refused once in
# so many; the draws are always the same, so that it is refused always or never.
LEAST_COMPARED, MOST_COMPARED = 100, 400
FALSE_ALARM = 1e-6
# Frequencies are compared where at least so many are expected.
LEAST_EXPECTED = 5
# Numbers by which two columns of a channel are told apart.
MARKS = 6


class OwnFault(ValueError):
    """A mechanism of the user's own did what it must not."""


class FalseEpsilon(OwnFault):
    """A mechanism gives away more than its epsilon allows."""


def check_own(mechanism: Mechanism, name: str) -> bool:
    """Refuse what cannot be audited; say whether epsilon is known from the law of the release."""
    try_out(mechanism, name)
    channel = channel_of(mechanism, name)
    if channel is None:
        return False
    refuse_more_than(mechanism.epsilon, channel.epsilon, name, "its channel")
    try:
        compare(mechanism, channel, name)
    except OwnFault:
        raise
    except Exception as error:
        raise ValueError(f"{name} cannot be audited: {type(error).__name__}: {error}") from None
    return True


def try_out(mechanism: Mechanism, name: str) -> None:
    """Release bags of every count and attack two, so that a mistake shows before any training."""
    rng = np.random.default_rng(0)
    try:
        size = mechanism.bag_size
        counts = np.unique(np.linspace(0, size, min(size + 1, MOST_COUNTS)).round())
        times = max(1, min(TRIALS, MOST_LABELS // (counts.size * size)))
        labels = np.arange(size) < np.repeat(counts, times)[:, None]
        releases = np.asarray(mechanism.release(labels.astype(np.int64), rng))
        ends = releases[[0, -1]]
        after: Any = posterior(np.full((2, size), 0.5), mechanism, ends)
        logs = np.asarray(mechanism.log_likelihood(releases), dtype=np.float64)
        epsilon = float(mechanism.epsilon)
    except Exception as error:
        raise ValueError(f"{name} cannot be audited: {type(error).__name__}: {error}") from None
    if not np.isfinite(after).all():
        raise ValueError(f"{name} cannot be audited: its posterior is not a number")
    if not epsilon >= 0:
        raise ValueError(f"{name} cannot be audited: its epsilon is {epsilon:g}, not 0 or more")
    with np.errstate(invalid="ignore"):
        steps = np.abs(np.diff(logs, axis=1))
    # Two counts that are both impossible given a release say nothing: their ratio is no number.
    refuse_more_than(epsilon, float(np.nanmax(steps, initial=0.0)), name, "its likelihood")


def channel_of(mechanism: Mechanism, name: str) -> CountChannel | None:
    """The law of the release; none where a TypeError says that there is none to give."""
    try:
        channel: Any = mechanism.channel()
    except TypeError:
        return None
    except Exception as error:
        raise ValueError(
            f"{name} cannot be audited: its channel: {type(error).__name__}: {error}"
        ) from None
    if not isinstance(channel, CountChannel):
        raise ValueError(
            f"{name} cannot be audited: its channel must be a CountChannel, not"
            f" {type(channel).__name__}"
        )
    if channel.bag_size != mechanism.bag_size:
        raise ValueError(
            f"{name} has bags of {mechanism.bag_size}, but its channel is one for bags of"
            f" {channel.bag_size}"
        )
    return channel


def compare(mechanism: Mechanism, channel: CountChannel, name: str) -> None:
    """Refuse a mechanism that does not release what its channel says.

    What it names its releases is its own affair. A release belongs to the columns that are
    proportional to its likelihood, which is all that the attacker reads in it. Of every count so
    many bags are released, with the ones first and with the ones last; how often each kind of
    column comes must fit the channel, and which release of a kind comes must not depend on the bag.
    """
    size = mechanism.bag_size
    number = min(size + 1, MOST_COUNTS, MOST_LABELS // (2 * LEAST_COMPARED * size))
    counts = np.unique(np.linspace(0, size, max(number, 2)).round()).astype(np.int64)
    times = min(max(MOST_LABELS // (2 * counts.size * size), LEAST_EXPECTED), MOST_COMPARED)
    ones = np.arange(size) < counts[:, None]
    bags = np.concatenate([ones, ones[:, ::-1]]).astype(np.int64)
    drawn = mechanism.release(np.repeat(bags, times, axis=0), np.random.default_rng(1))
    releases, which = np.unique(np.asarray(drawn), axis=0, return_inverse=True)
    table = np.zeros((len(bags), len(releases)))
    np.add.at(table, (np.repeat(np.arange(len(bags)), times), which.ravel()), 1)

    kinds, law = _kinds(mechanism, channel, releases, name)
    expected = times * np.concatenate([law[counts], law[counts]])
    found = np.zeros_like(expected)
    np.add.at(found.T, kinds, table.T)
    bag, kind = np.unravel_index(np.argmax(np.abs(found - expected)), found.shape)
    if (found[expected == 0] > 0).any() or _chance(found, expected) < FALSE_ALARM:
        raise OwnFault(
            f"{name} does not release what its channel says: for {bags[bag].sum()} ones of {size}"
            f" {found[bag, kind]:.0f} of {times} releases were of a kind that the channel expects"
            f" {expected[bag, kind]:.0f} times"
        )
    for kind in np.unique(kinds):
        alike = table[:, kinds == kind]
        alike = alike[alike.sum(axis=1) > 0]
        shares = alike.sum(axis=0) / alike.sum()
        if _chance(alike, alike.sum(axis=1, keepdims=True) * shares) < FALSE_ALARM:
            raise OwnFault(
                f"{name} releases more than its likelihood tells: it gives releases such as"
                f" {np.ravel(releases[kinds == kind])[0]:g} the likelihood of others, but they"
                " come with other labels"
            )


def _kinds(
    mechanism: Mechanism, channel: CountChannel, releases: Floats, name: str
) -> tuple[NDArray[np.int64], Floats]:
    """The kind of each release, and the law of the kinds given each count."""
    logs = np.asarray(mechanism.log_likelihood(releases), dtype=np.float64)
    seen = np.exp(logs - logs.max(axis=1, keepdims=True))
    possible = channel.matrix[:, channel.matrix.max(axis=0) > 0]
    columns = (possible / possible.max(axis=0)).T
    # A few random means over the counts tell columns apart that are not proportional.
    weights = np.random.default_rng(2).random((channel.bag_size + 1, MARKS))
    weights /= weights.sum(axis=0)
    marks = KDTree(columns @ weights)
    pairs = marks.query_pairs(ROUNDING, p=math.inf, output_type="ndarray")
    joined = coo_array((np.ones(len(pairs)), pairs.T), shape=(len(columns), len(columns)))
    number, kind_of = connected_components(joined, directed=False)
    distance, nearest = marks.query(seen @ weights, p=math.inf)
    off = distance > ROUNDING
    if off.any():
        raise OwnFault(
            f"{name} can release {np.ravel(releases[off])[0]:g}, whose likelihood is that of no"
            " column of its channel"
        )
    law = np.zeros((channel.bag_size + 1, number))
    np.add.at(law.T, kind_of, possible.T)
    return kind_of[nearest], law


def _chance(found: Floats, expected: Floats) -> float:
    """Pearson's chi-square test, row by row, of all cells with enough expected; the rest as one."""
    few = expected < LEAST_EXPECTED
    rests = [np.where(few, one, 0).sum(axis=1, keepdims=True) for one in (found, expected)]
    found, cells = np.hstack([found, rests[0]]), np.hstack([np.where(few, 0, expected), rests[1]])
    used = cells >= LEAST_EXPECTED
    shares = cells / expected.sum(axis=1, keepdims=True)
    # The mean of the sum: one less than the cells of a row where all of them are used.
    freedom = (1 - shares)[used].sum()
    total = ((found - cells)[used] ** 2 / cells[used]).sum()
    return float(stats.chi2.sf(total, freedom)) if freedom > ROUNDING else 1.0


def refuse_more_than(epsilon: float, found: float, name: str, where: str) -> None:
    """Refuse a mechanism whose log ratios exceed the epsilon that it declares.

    >>> refuse_more_than(0.5, 2.0, "Mine", "its channel")
    Traceback (most recent call last):
    labelaudit.report.trial.FalseEpsilon: Mine declares epsilon 0.5, but its channel shows 2
    """
    if found > epsilon * (1 + ROUNDING) + ROUNDING:
        shown = "none" if math.isinf(found) else f"{found:.4g}"
        raise FalseEpsilon(f"{name} declares epsilon {epsilon:g}, but {where} shows {shown}")
