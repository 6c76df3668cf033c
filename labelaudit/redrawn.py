"""The same labels released several times, each time in bags that are drawn again.

`Repeated` is the case of bags that stay the same, where a second release without noise says nothing
new. In new bags it does: several bags together can determine a label that no single one determines.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelaudit import checks
from labelaudit.attack import attack, checked_logs
from labelaudit.checks import Floats, Ints
from labelaudit.mechanisms import Mechanism, NoisyCount
from labelaudit.repeated import Repeated

# The largest log odds of a belief. Beyond 36.7 a float would round to exactly 1, which would claim
# a proof. Negative log odds may be as low as those of the prior.
MAX_LOG_ODDS = 36.0
# Beyond this a number leaves the range of a float when it is no longer a logarithm.
MAX_LOG = 700.0
# Sweeps before damping starts: most populations need fewer.
FREE_SWEEPS = 30


@dataclass(frozen=True, kw_only=True)
class Redrawn:
    """What several releases of the same labels say about each person.

    `posterior` is the belief that a label is 1. `proven` is True where the releases leave only one
    value, by elimination. There, and where the prior was certain already, the belief is exactly
    0 or 1; elsewhere it never is. Where `converged` is False the beliefs still moved in the last
    iteration; what is proven does not depend on them.
    """

    posterior: Floats
    proven: NDArray[np.bool_]
    iterations: int
    converged: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class _Bags:
    """Bags without common members: who is in them, and what a mechanism released of each."""

    mechanism: Mechanism
    members: Ints
    releases: Floats
    index: Ints  # (bags, 2): partition and bag


def redrawn_attack(
    eta: ArrayLike,
    mechanism: Mechanism,
    partitions: ArrayLike,
    releases: ArrayLike,
    *,
    damping: float = 0.5,
    tolerance: float = 1e-6,
    most_iterations: int = 200,
) -> Redrawn:
    """Attack the labels of people with priors `eta` (people,) that were released several times.

    `partitions` (times, n_bags, bag_size) has the people's indices and may leave people out;
    `releases` (times, n_bags) is what the mechanism released of each bag.

    First comes elimination: a label is proven where a bag's release leaves it one value, given all
    that is proven already, until nothing changes. Then belief propagation: a person's prior log
    odds in a bag are those of `eta` plus the shifts from the person's other bags, and the exact
    attack on the bag gives its new shift. Partitions take turns. This is exact where the bags form
    no cycle, as in a single partition, and a heuristic otherwise. It has converged when no bag's
    prior moves by more than `tolerance`. After 30 iterations a prior moves only by the fraction
    1 - `damping` of the way to its new value.

    >>> from labelaudit import LabelProportions
    >>> partitions = [[[0, 1], [2, 3]], [[0, 2], [1, 3]]]
    >>> after = redrawn_attack(
    ...     [0.2, 0.3, 0.4, 0.5], LabelProportions(2), partitions, [[0.0, 0.5], [0.5, 0.0]]
    ... )
    >>> after.posterior.tolist(), after.proven.tolist()
    ([0.0, 0.0, 1.0, 0.0], [True, True, True, True])
    """
    priors = checks.probabilities(eta)
    if priors.ndim != 1:
        raise ValueError(f"eta must have shape (people,), not {priors.shape}")
    damping = checks.real_number(damping, "damping", 0, 0.99)
    tolerance = checks.real_number(tolerance, "tolerance", 0, 1)
    most_iterations = checks.whole_number(most_iterations, "most_iterations")
    members = _indices(partitions, checks.bag_size(mechanism), priors.size)
    drawn = list(_distinct_bags(mechanism, members, releases))
    known = _eliminate(priors, drawn)
    posterior, iterations, converged = _propagate(known, drawn, damping, tolerance, most_iterations)
    return Redrawn(
        posterior=posterior,
        proven=_open(priors) & ~_open(known),
        iterations=iterations,
        converged=converged,
    )


def _open(beliefs: Floats) -> NDArray[np.bool_]:
    return (beliefs > 0) & (beliefs < 1)


def _indices(partitions: ArrayLike, bag_size: int, people: int) -> Ints:
    """`partitions` as indices of people, each person at most once in a partition."""
    members = checks.indices(partitions, "partitions", people, "hold indices of people")
    if members.ndim != 3 or members.shape[2] != bag_size:
        raise ValueError(
            f"partitions must have shape (times, n_bags, {bag_size}) for bag size {bag_size}, "
            f"not {members.shape}"
        )
    for number, bags in enumerate(members):
        seen = np.bincount(bags.ravel(), minlength=1)
        if seen.max() > 1:
            raise ValueError(
                f"a partition must hold a person once at most, but partition {number} holds "
                f"person {seen.argmax()} {seen.max()} times"
            )
    return members


def _distinct_bags(mechanism: Mechanism, members: Ints, releases: ArrayLike) -> Iterator[_Bags]:
    """The bags of each partition; bags with the same members become one, released repeatedly.

    The releases of equal bags depend on the same count. Taken as different bags they would form a
    cycle, and what they have in common would count twice.
    """
    times, n_bags, size = members.shape
    shape = getattr(mechanism, "release_shape", ())
    values = checks.numbers(releases, "releases")
    if values.shape != (times, n_bags, *shape):
        raise ValueError(
            f"releases must have shape {(times, n_bags, *shape)} to fit the partitions, "
            f"not {values.shape}"
        )
    bags = members.reshape(times * n_bags, size)
    values = checks.releases(values.reshape(len(bags), *shape), shape)
    _, which, copies = np.unique(
        np.sort(bags, axis=1), axis=0, return_inverse=True, return_counts=True
    )
    order = np.argsort(which, kind="stable")
    for n_copies in np.unique(copies).tolist():
        rows = order[copies[which[order]] == n_copies].reshape(-1, n_copies)
        for number in np.unique(rows[:, 0] // n_bags).tolist():
            chosen = rows[rows[:, 0] // n_bags == number]
            index = np.column_stack(np.divmod(chosen[:, 0], n_bags))
            people = bags[chosen[:, 0]]
            if n_copies == 1:
                yield _Bags(
                    mechanism=mechanism, members=people, releases=values[chosen[:, 0]], index=index
                )
            else:
                again = _repeat(mechanism, n_copies)
                yield _Bags(
                    mechanism=again,
                    members=people,
                    releases=values[chosen].reshape(len(chosen), again.times),
                    index=index,
                )


def _repeat(mechanism: Mechanism, times: int) -> Repeated:
    if isinstance(mechanism, Repeated):
        return Repeated(mechanism.mechanism, times * mechanism.times)
    return Repeated(mechanism, times)


def _eliminate(eta: Floats, drawn: list[_Bags]) -> Floats:
    """`eta` with 0 or 1 in place of each prior that the releases decide."""
    known, limits = eta.copy(), [_count_limits(bags) for bags in drawn]
    changed = True
    while changed:
        changed = False
        for bags, (least, most) in zip(drawn, limits, strict=True):
            beliefs = known[bags.members]
            unknown, rows = _open(beliefs), np.arange(len(beliefs))
            ones, some = (beliefs == 1).sum(axis=1), (beliefs > 0).sum(axis=1)
            low, high = least[rows, ones], most[rows, some]
            if (low > high).any():
                partition, bag = bags.index[(low > high).argmax()]
                raise ValueError(
                    f"no labels fit the release of bag {bag} in partition {partition} together "
                    "with the priors and the other releases"
                )
            for label, decided in ((0, high == ones), (1, low == some)):
                proven = bags.members[unknown & decided[:, None]]
                known[proven] = label
                changed |= proven.size > 0
    return known


def _count_limits(bags: _Bags) -> tuple[Ints, Ints]:
    """For c = 0..k, the least possible count that is at least c, and the largest at most c."""
    size = bags.mechanism.bag_size
    possible = checked_logs(bags.mechanism, bags.releases) > -np.inf
    if math.isfinite(bags.mechanism.epsilon):
        # Label-DP excludes no count; a likelihood of zero has only left the range of a float.
        possible |= possible.any(axis=1, keepdims=True)
    counts = np.arange(size + 1)
    least = np.where(possible, counts, size + 1)[:, ::-1]
    return (
        np.minimum.accumulate(least, axis=1)[:, ::-1],
        np.maximum.accumulate(np.where(possible, counts, -1), axis=1),
    )


def _open_bags(unknown: NDArray[np.bool_], drawn: list[_Bags]) -> list[NDArray[np.bool_]]:
    """For each part, the bags that beliefs depend on: those with an unknown member.

    Without noise, bags that have the same unknown members say the same, so the first is enough.
    """
    parts = [np.asarray(unknown[bags.members].any(axis=1)) for bags in drawn]
    if not drawn or not _is_exact(drawn[0].mechanism):
        return parts
    rest = [np.where(unknown[bags.members], bags.members, unknown.size) for bags in drawn]
    _, first = np.unique(np.sort(np.concatenate(rest), axis=1), axis=0, return_index=True)
    is_first = np.zeros(sum(map(len, rest)), dtype=bool)
    is_first[first] = True
    ends = np.cumsum([len(part) for part in parts])[:-1]
    return [part & new for part, new in zip(parts, np.split(is_first, ends), strict=True)]


def _is_exact(mechanism: Mechanism) -> bool:
    """Whether the release is the count itself."""
    once = mechanism.mechanism if isinstance(mechanism, Repeated) else mechanism
    return isinstance(once, NoisyCount) and math.isinf(once.epsilon)


def _propagate(
    known: Floats, drawn: list[_Bags], damping: float, tolerance: float, most_iterations: int
) -> tuple[Floats, int, bool]:
    """Beliefs by sum-product messages, the number of sweeps, and whether they converged.

    Partitions take turns since bags of one partition have no member in common. Were they all
    updated at once, each would correct the same error in the total, and the beliefs could swing.
    """
    unknown = _open(known)
    with np.errstate(divide="ignore"):
        total = np.log(known) - np.log1p(-known)
    total = np.where(unknown, np.clip(total, -MAX_LOG, MAX_LOG), 0.0)
    lowest = np.minimum(total, -MAX_LOG_ODDS)

    def probability(log_odds: Floats, people: Ints | slice) -> Floats:
        inside = np.clip(log_odds, lowest[people], MAX_LOG_ODDS)
        return np.where(unknown[people], 1 / (1 + np.exp(-inside)), known[people])

    parts = _open_bags(unknown, drawn)
    members = [bags.members[part] for bags, part in zip(drawn, parts, strict=True)]
    releases = [bags.releases[part] for bags, part in zip(drawn, parts, strict=True)]
    shifts = [np.zeros(people.shape) for people in members]
    inputs = [np.full(people.shape, np.nan) for people in members]
    for sweep in range(1, most_iterations + 1):
        step, moving = 1 - damping if sweep > FREE_SWEEPS else 1.0, False
        for number, people in enumerate(members):
            shift, last = shifts[number], inputs[number]
            prior = probability(total[people] - shift, people)
            moved = ~(np.abs(prior - last) <= tolerance).all(axis=1)
            if not moved.any():
                continue
            moving = True
            if step < 1:
                prior = last + step * (prior - last)
            last[moved] = prior[moved]
            values = releases[number][moved]
            new = attack(prior[moved], drawn[number].mechanism, values, "shift")[0]
            new = np.clip(new, -MAX_LOG, MAX_LOG)
            total[people[moved]] += new - shift[moved]
            shift[moved] = new
        if not moving:
            return probability(total, slice(None)), sweep, True
    return probability(total, slice(None)), most_iterations, False
