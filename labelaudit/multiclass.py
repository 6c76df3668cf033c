"""More than two classes: c-ary randomized response and class proportions, attacked exactly.

Priors have one more axis than with binary labels: `eta` is (n_bags, bag_size, classes), each last
axis a distribution. Labels are class numbers 0..classes - 1, of shape (n_bags, bag_size). In bags
of one the axis of members may be left out.

The counts of a bag's classes follow a Poisson multinomial. All the attacker needs about a member
is the law of the *others'* counts, a table with one axis for each class but the first. Its size
grows like bag_size^(classes - 1), so what is exact is for small bags; more is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelaudit import checks
from labelaudit.checks import Floats

# Additions that a call may cost: about half a minute on one core.
MOST_STEPS = 5e9
# Entries of one table of counts, over the bags that are worked on together.
TABLE_ENTRIES = 2_000_000


@dataclass(frozen=True)
class ClassRandomizedResponse:
    """Keep a label with probability e^epsilon / (classes - 1 + e^epsilon), else draw another.

    Every other class is equally likely: epsilon-label-DP. Two classes are `RandomizedResponse`.

    >>> ClassRandomizedResponse(3, math.log(2)).channel().tolist()
    [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]
    """

    classes: int
    epsilon: float
    bag_size: int = field(default=1, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the parameters."""
        object.__setattr__(self, "classes", checks.whole_number(self.classes, "classes", 2))
        epsilon = checks.real_number(self.epsilon, "epsilon", 0, math.inf)
        object.__setattr__(self, "epsilon", epsilon)

    def channel(self) -> Floats:
        """P(release = column | label = row)."""
        odds = math.exp(-self.epsilon)
        keep = 1 / (1 + (self.classes - 1) * odds)
        return np.where(np.eye(self.classes, dtype=bool), keep, odds * keep)

    def release(self, labels: ArrayLike, rng: np.random.Generator) -> Floats:
        """A class number for each label, (n_bags,)."""
        given = _labels(labels, self)[:, 0]
        shift = checks.generator(rng).random(given.size)
        cumulative = np.cumsum(np.roll(self.channel()[0], -1))[:-1]
        # How many classes on from the true one; the last place is the true class again.
        step = np.searchsorted(cumulative, shift, side="right") + 1
        return ((given + step) % self.classes).astype(np.float64)

    def debias(self, releases: ArrayLike) -> Floats:
        """Unbiased estimates of each label's indicator vector: (n_bags, classes)."""
        given = _class_numbers(releases, self.classes)
        keep, flip = self.channel()[0, :2]
        if keep == flip:
            raise ValueError(f"{self} cannot be debiased: at epsilon 0 the release says nothing")
        return np.asarray((np.eye(self.classes)[given] - flip) / (keep - flip))


@dataclass(frozen=True)
class ClassProportions:
    """Release each bag's proportion of every class: no noise, no label-DP.

    Releases are (n_bags, classes), rows of whole numbers over the bag size that sum to 1. Two
    classes are `LabelProportions`.

    >>> ClassProportions(3, 2).release([[0, 2]], np.random.default_rng(0)).tolist()
    [[0.5, 0.0, 0.5]]
    """

    classes: int
    bag_size: int
    epsilon: float = field(default=math.inf, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the parameters."""
        object.__setattr__(self, "classes", checks.whole_number(self.classes, "classes", 2))
        object.__setattr__(self, "bag_size", checks.whole_number(self.bag_size, "bag_size"))

    def release(self, labels: ArrayLike, rng: np.random.Generator) -> Floats:
        """The bags' proportions; nothing is random."""
        checks.generator(rng)
        given = _labels(labels, self)
        return (given[:, :, None] == np.arange(self.classes)).mean(axis=1)

    def debias(self, releases: ArrayLike) -> Floats:
        """The releases themselves."""
        return _counts(releases, self) / self.bag_size


Mechanism = ClassRandomizedResponse | ClassProportions


def posterior(eta: ArrayLike, mechanism: Mechanism, releases: ArrayLike) -> Floats:
    """P(y_i = a | x, release) for each member and class, in the shape of `eta`.

    In proportion to eta_i(a) P(the others' counts = release less one a).

    >>> eta = [[[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]]]
    >>> posterior(eta, ClassProportions(3, 2), [[0.0, 0.5, 0.5]]).tolist()
    [[[0.0, 0.5, 0.5], [0.0, 0.5, 0.5]]]
    """
    priors = _priors(eta, mechanism)
    if isinstance(mechanism, ClassRandomizedResponse):
        given = _one_each(_class_numbers(releases, mechanism.classes), priors)
        joint = priors * mechanism.channel()[:, given].T[:, None, :]
    else:
        joint = _joint_with_counts(priors, _one_each(_counts(releases, mechanism), priors))
    total = joint.sum(axis=-1, keepdims=True)
    impossible = np.flatnonzero((total[..., 0] == 0).any(axis=1))
    if impossible.size:
        bag = int(impossible[0])
        raise ValueError(
            f"release {np.asarray(releases)[bag]} of bag {bag} has probability zero under its "
            "priors, or less than a float can hold"
        )
    return (joint / total).reshape(np.shape(eta))


def bayes_guess(eta: ArrayLike, mechanism: Mechanism, releases: ArrayLike) -> NDArray[np.int64]:
    """The most probable class of each member after the release; the first of them if tied.

    >>> bayes_guess([[0.2, 0.5, 0.3]], ClassRandomizedResponse(3, 1.0), [2]).tolist()
    [2]
    """
    return posterior(eta, mechanism, releases).argmax(axis=-1)


def additive_advantage(eta: ArrayLike, mechanism: Mechanism) -> Floats:
    """The rise in the chance of guessing each label right: `eta` without its last axis.

    For randomized response it is the sum of (keep eta_a - flip eta_max)^+ over all classes a but
    the most probable one. For class proportions it is a sum over every table of counts.

    >>> additive_advantage([[1 / 3] * 3], ClassRandomizedResponse(3, 1.0)).round(4).tolist()
    [0.2428]
    >>> additive_advantage([[[0.5, 0.25, 0.25]] * 2], ClassProportions(3, 2)).tolist()
    [[0.1875, 0.1875]]
    """
    priors = _priors(eta, mechanism)
    if isinstance(mechanism, ClassRandomizedResponse):
        keep, flip = mechanism.channel()[0, :2]
        ordered = np.sort(priors, axis=-1)
        gains = np.maximum(keep * ordered[..., :-1] - flip * ordered[..., -1:], 0).sum(axis=-1)
    else:
        gains = _gains_from_counts(priors)
    # An advantage cannot leave this range; what is outside is rounding.
    return np.clip(gains, 0, 1 - priors.max(axis=-1)).reshape(np.shape(eta)[:-1])


def _gains_from_counts(priors: Floats) -> Floats:
    n_bags, k, classes = priors.shape
    _affordable(n_bags, k, classes)
    gains = np.empty((n_bags, k))
    for part in _chunks(n_bags, k, classes):
        for i, others in _leave_one_out(priors[part]):
            best = np.zeros((len(others), *[k + 1] * (classes - 1)))
            for a in range(classes):
                here = best[_places(classes, a, slice(1, k + 1), slice(k))]
                np.maximum(here, _factor(priors[part, i, a], classes) * others, out=here)
            rest = best.reshape(len(best), -1).sum(axis=1)
            gains[part, i] = rest - priors[part, i].max(axis=1)
    return gains


def _joint_with_counts(priors: Floats, counts: NDArray[np.int64]) -> Floats:
    """P(y_i = a, counts) for each member and class."""
    n_bags, k, classes = priors.shape
    _affordable(n_bags, k, classes)
    joint = np.zeros_like(priors)
    for part in _chunks(n_bags, k, classes):
        bags = np.arange(len(priors[part]))
        for i, others in _leave_one_out(priors[part]):
            for a in range(classes):
                less = counts[part] - np.eye(classes, dtype=np.int64)[a]
                # Nobody else can be the one a there is; such a place is read, and not used.
                place: tuple[Any, ...] = (bags, *np.clip(less[:, 1:], 0, k - 1).T)
                joint[part, i, a] = np.where(
                    less[:, a] < 0, 0.0, priors[part, i, a] * others[place]
                )
    return joint


def _leave_one_out(priors: Floats) -> Iterator[tuple[int, Floats]]:
    """The law of the other members' counts, for each member in turn.

    Halving: to leave out one half of the members, add the other half to the table. Only sums of
    positive terms, and each member is added about log2(bag_size) times.
    """
    n_bags, k, classes = priors.shape
    table = np.zeros((n_bags, *[k] * (classes - 1)))
    table.reshape(n_bags, -1)[:, 0] = 1.0
    pending = [(0, k, table)]
    while pending:
        first, last, table = pending.pop()
        if last - first == 1:
            yield first, table
            continue
        middle = (first + last) // 2
        pending.append((middle, last, _with_members(table, priors[:, first:middle])))
        pending.append((first, middle, _with_members(table, priors[:, middle:last])))


def _with_members(table: Floats, priors: Floats) -> Floats:
    """The law of counts after some more members."""
    classes, whole = priors.shape[-1], slice(None)
    for i in range(priors.shape[1]):
        added = _factor(priors[:, i, 0], classes) * table
        for a in range(1, classes):
            before = table[_places(classes, a, slice(-1), whole)]
            moved = _factor(priors[:, i, a], classes) * before
            added[_places(classes, a, slice(1, None), whole)] += moved
        table = added
    return table


def _places(classes: int, a: int, own: slice, others: slice) -> tuple[slice, ...]:
    """Index of a table of counts: `own` along the axis of class a, if it has one."""
    return (slice(None), *(own if b == a else others for b in range(1, classes)))


def _factor(values: Floats, classes: int) -> Floats:
    """One number a bag, ready to multiply tables of counts."""
    return values.reshape(-1, *[1] * (classes - 1))


def _chunks(n_bags: int, k: int, classes: int) -> Iterator[slice]:
    step = max(1, TABLE_ENTRIES // (k + 1) ** (classes - 1))
    for start in range(0, n_bags, step):
        yield slice(start, start + step)


def _affordable(n_bags: int, k: int, classes: int) -> None:
    """Refuse what would take too long, before it starts."""
    additions = k * max(1, math.ceil(math.log2(k))) + k
    steps = float(n_bags) * additions * classes * float(k + 1) ** (classes - 1)
    if steps > MOST_STEPS:
        raise ValueError(
            f"bags of {k} with {classes} classes, {n_bags} of them, would take about {steps:.1g} "
            f"steps, and at most {MOST_STEPS:.0e} are allowed: use fewer bags, smaller bags or "
            "fewer classes (merge rare ones)"
        )


def _priors(eta: ArrayLike, mechanism: Mechanism) -> Floats:
    """`eta` as (n_bags, bag_size, classes), every distribution checked."""
    if not isinstance(mechanism, ClassRandomizedResponse | ClassProportions):
        raise TypeError(
            f"mechanism must be a ClassRandomizedResponse or a ClassProportions, not {mechanism!r}"
        )
    given = checks.probabilities(eta)
    priors = given[:, None, :] if given.ndim == 2 and mechanism.bag_size == 1 else given
    if priors.ndim != 3 or priors.shape[1:] != (mechanism.bag_size, mechanism.classes):
        raise ValueError(
            f"eta must have shape (n_bags, {mechanism.bag_size}, {mechanism.classes}) for "
            f"{mechanism!r}, not {given.shape}"
        )
    sums = priors.sum(axis=-1)
    off = np.argwhere(np.abs(sums - 1) > 1e-9)
    if off.size:
        bag, member = off[0]
        raise ValueError(
            f"the classes of each member must sum to 1, but those of member {member} of bag {bag} "
            f"sum to {sums[bag, member]:.12g}"
        )
    return priors / sums[..., None]


def _class_numbers(values: ArrayLike, classes: int, name: str = "releases") -> NDArray[np.int64]:
    array = checks.numbers(values, name)
    bad = ~((array >= 0) & (array < classes) & (array == np.floor(array)))
    if bad.any():
        raise ValueError(
            f"{name} must be class numbers from 0 to {classes - 1}, not {array[bad].flat[0]:g}"
        )
    return array.astype(np.int64)


def _labels(labels: ArrayLike, mechanism: Mechanism) -> NDArray[np.int64]:
    given = _class_numbers(labels, mechanism.classes, "labels")
    return checks.bags(given.astype(np.float64), mechanism.bag_size, "labels").astype(np.int64)


def _counts(releases: ArrayLike, mechanism: ClassProportions) -> NDArray[np.int64]:
    """Proportions as whole numbers, checked against what a bag can release."""
    array, k = checks.numbers(releases, "releases"), mechanism.bag_size
    if array.ndim != 2 or array.shape[1] != mechanism.classes:
        raise ValueError(
            f"releases must have shape (n_bags, {mechanism.classes}), not {array.shape}"
        )
    counts = np.rint(array * k)
    bad = (~(np.abs(array * k - counts) <= 1e-9) | (counts < 0)).any(axis=1)
    bad |= counts.sum(axis=1) != k
    if bad.any():
        row = array[np.flatnonzero(bad)[0]]
        raise ValueError(
            f"releases must be rows of multiples of 1/{k} in [0, 1] that sum to 1, not {row}"
        )
    return counts.astype(np.int64)


def _one_each(releases: NDArray[np.int64], priors: Floats) -> NDArray[np.int64]:
    if len(releases) != len(priors):
        raise ValueError(
            f"there must be one release for each bag: {len(priors)} bags, {len(releases)} releases"
        )
    return releases
