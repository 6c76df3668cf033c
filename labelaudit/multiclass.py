"""More than two classes: c-ary randomized response and class proportions, attacked exactly.

Priors have one more axis than with binary labels: `eta` is (n_bags, bag_size, classes), each last
axis a distribution. Labels are class numbers 0..classes - 1, of shape (n_bags, bag_size). In bags
of one the axis of members may be left out.

The counts of a bag's classes have a Poisson multinomial distribution. To attack one member it is
enough to know the distribution of the *other* members' counts: a table with an entry for each way
to split them into classes. With many people and many classes the table is too large, and the call
raises an error.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelaudit import checks
from labelaudit.checks import Floats
from labelaudit.poisson_multinomial import Splits

__all__ = [
    "ClassProportions",
    "ClassRandomizedResponse",
    "ClassResponseWithPrior",
    "additive_advantage",
    "bayes_guess",
    "posterior",
    "worth",
]


@dataclass(frozen=True)
class ClassRandomizedResponse:
    """Keep a label with probability e^epsilon / (classes - 1 + e^epsilon), else draw another.

    Every other class is equally likely: epsilon-label-DP. With two classes: `RandomizedResponse`.

    >>> ClassRandomizedResponse(3, math.log(2)).channel().tolist()
    [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]
    """

    classes: int
    epsilon: float
    bag_size: int = field(default=1, init=False, repr=False)

    def __post_init__(self) -> None:
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
        truth = _labels(labels, self)[:, 0]
        uniform = checks.generator(rng).random(truth.size)
        # The true class comes last, then the steps from it: with two classes as in the binary case.
        order = (np.arange(self.classes)[:, None] + np.arange(1, self.classes + 1)) % self.classes
        cumulative = np.cumsum(np.take_along_axis(self.channel(), order, axis=1), axis=1)[:, :-1]
        step = (cumulative[truth] <= uniform[:, None]).sum(axis=1)
        return order[truth, step].astype(np.float64)

    def debias(self, releases: ArrayLike) -> Floats:
        """Unbiased estimates of each label's indicator vector: (n_bags, classes)."""
        numbers = _released(releases, self)
        keep, flip = self.channel()[0, :2]
        if keep == flip:
            raise ValueError(
                f"{self} cannot be debiased: at epsilon {self.epsilon:g} the release says nothing"
            )
        return np.asarray((np.eye(self.classes)[numbers] - flip) / (keep - flip))


@dataclass(frozen=True)
class ClassResponseWithPrior(ClassRandomizedResponse):
    """Response among the likeliest classes of a public `prior`: as often right as epsilon allows.

    With e = e^epsilon, among the m likeliest classes the true one is released with probability
    e / (e + m - 1), and a class outside of them as one of them at random. The m is chosen so that
    the release is most often right: RRWithPrior of Ghazi, Golowich, Kumar, Manurangsi and Zhang
    (2021), epsilon-label-DP.

    >>> ClassResponseWithPrior(3, math.log(3), prior=(0.5, 0.4, 0.1)).channel().round(2).tolist()
    [[0.75, 0.25, 0.0], [0.25, 0.75, 0.0], [0.5, 0.5, 0.0]]
    """

    prior: tuple[float, ...] = field(kw_only=True)

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        values = checks.probabilities(self.prior, "prior")
        if values.shape != (self.classes,) or abs(values.sum() - 1) > 1e-9:
            raise ValueError(
                f"prior must be {self.classes} numbers that sum to 1, not {self.prior}"
            )
        object.__setattr__(self, "prior", tuple(values.tolist()))

    def channel(self) -> Floats:
        """P(release = column | label = row)."""
        order = np.argsort(-np.array(self.prior), kind="stable")
        numbers = np.arange(1, self.classes + 1)
        keep = 1 / (1 + (numbers - 1) * math.exp(-self.epsilon))
        m = int(numbers[np.argmax(keep * np.cumsum(np.array(self.prior)[order]))])
        likely = order[:m]
        matrix = np.zeros((self.classes, self.classes))
        matrix[:, likely] = 1 / m
        matrix[likely[:, None], likely] = (
            ClassRandomizedResponse(max(m, 2), self.epsilon).channel()[:m, :m] if m > 1 else 1.0
        )
        return matrix

    def debias(self, releases: ArrayLike) -> Floats:
        """Raises ValueError: a class that is never released leaves no trace to invert."""
        raise ValueError(f"{self} cannot be debiased: unlikely classes are not released")


@dataclass(frozen=True)
class ClassProportions:
    """Release each bag's proportion of every class: no noise, no label-DP.

    Releases are (n_bags, classes): rows of multiples of 1 / bag_size that sum to 1. With two
    classes this is `LabelProportions`.

    >>> ClassProportions(3, 2).release([[0, 2]], np.random.default_rng(0)).tolist()
    [[0.5, 0.0, 0.5]]
    """

    classes: int
    bag_size: int
    epsilon: float = field(default=math.inf, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", checks.whole_number(self.classes, "classes", 2))
        object.__setattr__(self, "bag_size", checks.whole_number(self.bag_size, "bag_size"))

    def release(self, labels: ArrayLike, rng: np.random.Generator) -> Floats:
        """The bags' proportions; nothing is random."""
        checks.generator(rng)
        truth = _labels(labels, self)
        return (truth[:, :, None] == np.arange(self.classes)).mean(axis=1)

    def debias(self, releases: ArrayLike) -> Floats:
        """The releases themselves."""
        return _counts(releases, self) / self.bag_size


ClassMechanism = ClassRandomizedResponse | ClassProportions


def posterior(eta: ArrayLike, mechanism: ClassMechanism, releases: ArrayLike) -> Floats:
    """P(y_i = a | x, release) for each member and class, in the shape of `eta`.

    Proportional to eta_i(a) P(counts of the others = released counts minus one of class a).

    >>> eta = [[[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]]]
    >>> posterior(eta, ClassProportions(3, 2), [[0.0, 0.5, 0.5]]).tolist()
    [[[0.0, 0.5, 0.5], [0.0, 0.5, 0.5]]]
    """
    priors = _priors(eta, mechanism)
    if isinstance(mechanism, ClassRandomizedResponse):
        numbers = _released(releases, mechanism)
        checks.one_release_each(priors, numbers)
        joint = priors * mechanism.channel()[:, numbers].T[:, None, :]
    else:
        counts = _counts(releases, mechanism)
        checks.one_release_each(priors, counts)
        joint = _joint_with_counts(priors, counts)
    total = joint.sum(axis=-1, keepdims=True)
    impossible = np.flatnonzero((total[..., 0] == 0).any(axis=1))
    if impossible.size:
        bag = int(impossible[0])
        raise ValueError(
            f"release {np.asarray(releases)[bag]} of bag {bag} has probability zero under its "
            "priors, or less than a float can hold"
        )
    return (joint / total).reshape(np.shape(eta))


def bayes_guess(
    eta: ArrayLike, mechanism: ClassMechanism, releases: ArrayLike
) -> NDArray[np.int64]:
    """The most probable class of each member after the release; the first of them if tied.

    >>> bayes_guess([[0.2, 0.5, 0.3]], ClassRandomizedResponse(3, 1.0), [2]).tolist()
    [2]
    """
    return posterior(eta, mechanism, releases).argmax(axis=-1)


def additive_advantage(eta: ArrayLike, mechanism: ClassMechanism) -> Floats:
    """The gain in P(guess = label) for each member: `eta` without its last axis.

    The sum over releases of max_a eta_a P(release | a), less max_a eta_a. For class proportions the
    releases are all tables of counts.

    >>> additive_advantage([[1 / 3] * 3], ClassRandomizedResponse(3, 1.0)).round(4).tolist()
    [0.2428]
    >>> additive_advantage([[[0.5, 0.25, 0.25]] * 2], ClassProportions(3, 2)).tolist()
    [[0.1875, 0.1875]]
    """
    priors = _priors(eta, mechanism)
    gains = _over_releases(priors, mechanism, False) - priors.max(axis=-1)
    # An advantage cannot leave this range; what is outside is rounding.
    return np.clip(gains, 0, 1 - priors.max(axis=-1)).reshape(np.shape(eta)[:-1])


def worth(eta: ArrayLike, mechanism: ClassMechanism) -> Floats:
    """The fraction of each label's variance that the release explains: `eta` without its last axis.

    The variances of the classes' indicators are added up, before and after the release. With two
    classes it is `labelaudit.worth`. A label whose class is certain has no variance and worth 0.

    >>> worth([[1 / 3] * 3], ClassRandomizedResponse(3, 1.0)).round(4).tolist()
    [0.1326]
    >>> worth([[[0.25, 0.25, 0.5]] * 4], ClassProportions(3, 4)).round(12).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    priors = _priors(eta, mechanism)
    before = (priors**2).sum(axis=-1)
    variance = (priors * (1 - priors)).sum(axis=-1)
    explained = _ratio(_over_releases(priors, mechanism, True) - before, variance)
    return np.clip(explained, 0, 1).reshape(np.shape(eta)[:-1])


def _over_releases(priors: Floats, mechanism: ClassMechanism, squared: bool) -> Floats:
    """For each member the mean over releases of the posterior's maximum, or its squared norm."""
    n_bags, k, classes = priors.shape
    if isinstance(mechanism, ClassRandomizedResponse):
        joints = [priors * column for column in mechanism.channel().T]
        if not squared:
            return np.sum([joint.max(axis=-1) for joint in joints], axis=0)
        return np.sum([_ratio((j**2).sum(axis=-1), j.sum(axis=-1)) for j in joints], axis=0)
    if k == 1:
        return np.ones((n_bags, 1))
    splits = Splits(n_bags, k, classes)
    means = np.empty((n_bags, k))
    for part in splits.chunks():
        for i, others in splits.leave_one_out(priors[part]):
            table, total = np.zeros((2, splits.sizes[k], others.shape[1]))
            for a, after in enumerate(splits.after):
                joint = priors[part, i, a] * others
                if squared:
                    table[after] += joint**2
                    total[after] += joint
                else:
                    table[after] = np.maximum(table[after], joint)
            means[part, i] = (_ratio(table, total) if squared else table).sum(axis=0)
    return means


def _ratio(above: Floats, below: Floats) -> Floats:
    """0 where nothing is divided by nothing: a release without probability, a certain class."""
    return above / np.where(below > 0, below, 1.0)


def _joint_with_counts(priors: Floats, counts: NDArray[np.int64]) -> Floats:
    """P(y_i = a, counts) for each member and class."""
    n_bags, k, classes = priors.shape
    if k == 1:
        return priors * counts[:, None]
    splits = Splits(n_bags, k, classes)
    joint = np.zeros_like(priors)
    for part in splits.chunks():
        for i, others in splits.leave_one_out(priors[part]):
            for a in range(classes):
                bags = np.flatnonzero(counts[part, a])
                less = counts[part][bags] - np.eye(classes, dtype=np.int64)[a]
                probability = others[splits.numbers(less), bags]
                joint[part, i, a][bags] = priors[part, i, a][bags] * probability
    return joint


def _priors(eta: ArrayLike, mechanism: ClassMechanism) -> Floats:
    """`eta` as (n_bags, bag_size, classes), every distribution checked."""
    if not isinstance(mechanism, ClassRandomizedResponse | ClassProportions):
        raise TypeError(
            f"mechanism must be a ClassRandomizedResponse or a ClassProportions, not {mechanism!r}"
        )
    values = checks.probabilities(eta)
    priors = values[:, None, :] if values.ndim == 2 and mechanism.bag_size == 1 else values
    if priors.ndim != 3 or priors.shape[1:] != (mechanism.bag_size, mechanism.classes):
        raise ValueError(
            f"eta must have shape (n_bags, {mechanism.bag_size}, {mechanism.classes}) for "
            f"{mechanism!r}, not {values.shape}"
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


def _released(releases: ArrayLike, mechanism: ClassRandomizedResponse) -> NDArray[np.int64]:
    values = checks.releases(releases)
    return checks.indices(values, "releases", mechanism.classes, "be class numbers")


def _labels(labels: ArrayLike, mechanism: ClassMechanism) -> NDArray[np.int64]:
    numbers = checks.indices(labels, "labels", mechanism.classes, "be class numbers")
    return checks.bags(numbers.astype(np.float64), mechanism.bag_size, "labels").astype(np.int64)


def _counts(releases: ArrayLike, mechanism: ClassProportions) -> NDArray[np.int64]:
    """Proportions as whole numbers, checked against what a bag can release."""
    array, k = checks.numbers(releases, "releases"), mechanism.bag_size
    if array.ndim != 2 or array.shape[1] != mechanism.classes:
        raise ValueError(
            f"releases must have shape (n_bags, {mechanism.classes}), not {array.shape}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        counts = np.rint(array * k)
        bad = (~(np.abs(array * k - counts) <= 1e-9) | (counts < 0)).any(axis=1)
    bad |= counts.sum(axis=1) != k
    if bad.any():
        row = array[np.flatnonzero(bad)[0]]
        raise ValueError(
            f"releases must be rows of multiples of 1/{k} in [0, 1] that sum to 1, not {row}"
        )
    return counts.astype(np.int64)
