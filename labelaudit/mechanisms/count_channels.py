"""Counts and labels as they are published in practice, each as a `CountChannel`.

Only `response_with_prior` is label-DP. The others have an infinite epsilon, unless the release is
the same for every count. An audit knows them by a name and a number: suppressed=5, rounded=5,
rr-prior=0.1.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from labelaudit import checks
from labelaudit.mechanisms.base import CountChannel
from labelaudit.mechanisms.kinds import COUNT, KINDS, Kind

__all__ = ["discrete_gaussian", "random_subset", "response_with_prior", "rounded", "suppressed"]

# Discrete Gaussian noise beyond this many standard deviations has a probability below 1e-70.
REACH = 18


def suppressed(bag_size: int, threshold: int) -> CountChannel:
    """The count if it is at least `threshold`, else one symbol for the smaller counts, 0 included.

    >>> suppressed(4, 2).matrix.argmax(axis=1).tolist()
    [0, 0, 2, 3, 4]
    """
    least = checks.whole_number(threshold, "threshold")
    counts = np.arange(checks.whole_number(bag_size, "bag_size") + 1)
    return CountChannel(np.eye(counts.size)[np.where(counts < least, 0, counts)])


def rounded(bag_size: int, multiple: int) -> CountChannel:
    """The count rounded to the nearest multiple, halves upwards.

    >>> rounded(7, 5).matrix.argmax(axis=1).tolist()  # 0 to 2 as 0, 3 to 7 as 5
    [0, 0, 0, 1, 1, 1, 1, 1]
    """
    step = checks.whole_number(multiple, "multiple")
    counts = np.arange(checks.whole_number(bag_size, "bag_size") + 1)
    nearest = (2 * counts + step) // (2 * step)
    return CountChannel(np.eye(nearest[-1] + 1)[nearest])


def discrete_gaussian(bag_size: int, sigma: float) -> CountChannel:
    """The count plus noise x with probability proportional to exp(-x^2 / (2 sigma^2)).

    Column z is the release z - r, where r is the largest noise that is kept.

    >>> matrix = discrete_gaussian(1, 1.0).matrix
    >>> float(matrix[0].max()).__round__(4)  # 1 / (1 + 2 (e^-0.5 + e^-2 + e^-4.5 + ...))
    0.3989
    """
    k = checks.whole_number(bag_size, "bag_size")
    scale = checks.real_number(sigma, "sigma", 1e-3, 1e4)
    reach = max(1, math.ceil(REACH * scale))
    noise = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * scale**2))
    matrix = np.zeros((k + 1, k + 1 + 2 * reach))
    for count in range(k + 1):
        matrix[count, count : count + noise.size] = noise / noise.sum()
    return CountChannel(matrix)


def random_subset(fraction: float) -> CountChannel:
    """The label itself with probability `fraction`, else nothing; a bag of one.

    >>> random_subset(0.25).matrix.tolist()
    [[0.25, 0.0, 0.75], [0.0, 0.25, 0.75]]
    """
    shown = checks.real_number(fraction, "fraction", 0, 1)
    return CountChannel([[shown, 0.0, 1 - shown], [0.0, shown, 1 - shown]])


def response_with_prior(epsilon: float, prior: float) -> CountChannel:
    """Randomized response that knows P(label = 1): it tells nothing where guessing does better.

    Of all epsilon-label-DP responses it is the one that is most often right (Ghazi, Golowich,
    Kumar, Manurangsi and Zhang 2021). `multiclass.ClassResponseWithPrior` has more classes.

    >>> response_with_prior(math.log(3), 0.4).matrix.round(2).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    >>> response_with_prior(math.log(3), 0.1).matrix.tolist()  # "0" is right with probability 0.9
    [[1.0], [1.0]]
    """
    keep = 1 / (1 + math.exp(-checks.real_number(epsilon, "epsilon", 0, math.inf)))
    guess = checks.real_number(prior, "prior", 0, 1)
    if max(guess, 1 - guess) >= keep:
        return CountChannel([[1.0], [1.0]])
    return CountChannel([[keep, 1 - keep], [1 - keep, keep]])


def censored_ends(bag_size: int, margin: int) -> CountChannel:
    """The count, but at least `margin` and at most k less that; the middle in a small bag.

    >>> censored_ends(5, 1).matrix.argmax(axis=1).tolist()
    [1, 1, 2, 3, 4, 4]
    """
    # `design` builds on the mechanisms.
    from labelaudit.design import censored

    low = min(margin, bag_size // 2)
    return censored(bag_size, low, bag_size - low)


_RR_PRIOR = (
    "each label is replaced by {other} with probability {flip:.2g}, or nothing is told where the"
    " guess without it is better; the guess is by P(label = 1) ="
)


class CountChannelKind(NamedTuple):
    """A constructor, what it takes before its number, its style, and what it publishes."""

    make: Callable[..., CountChannel]
    parameters: tuple[str, ...]
    colour: str
    marker: str
    published: str
    whole: bool = False


_BAG = ("bag_size",)
COUNT_CHANNELS = {
    "suppressed": CountChannelKind(
        make=suppressed, parameters=_BAG, colour="#D55E00", marker="P",
        published=f"{COUNT}, unless there are fewer than", whole=True,
    ),
    "rounded": CountChannelKind(
        make=rounded, parameters=_BAG, colour="#56B4E9", marker="X",
        published=f"{COUNT}, to the nearest multiple of", whole=True,
    ),
    "censored": CountChannelKind(
        make=censored_ends, parameters=_BAG, colour="#8C510A", marker="p",
        published=f"{COUNT}, kept away from 0 and {{k}} by", whole=True,
    ),
    "gaussian": CountChannelKind(
        make=discrete_gaussian, parameters=_BAG, colour="#AA4499", marker="h",
        published=f"{COUNT}, plus Gaussian noise of size",
    ),
    "subset": CountChannelKind(
        make=random_subset, parameters=(), colour="#882255", marker="*",
        published="a random fraction of the labels:",
    ),
    "rr-prior": CountChannelKind(
        make=response_with_prior, parameters=("epsilon",), colour="#332288", marker="d",
        published=_RR_PRIOR,
    ),
}  # fmt: skip


def count_channel_kind(name: str) -> Kind:
    """A kind from a text such as rounded=5.

    >>> count_channel_kind("rounded=5").make(bag_size=8).matrix.shape
    (9, 3)
    """
    option, _, text = name.partition("=")
    known = COUNT_CHANNELS[option]
    try:
        value: Any = float(text)
    except ValueError:
        raise ValueError(f"{option} is written {option}=NUMBER, not {name!r}") from None
    if known.whole:
        value = checks.whole_number(int(value) if value.is_integer() else value, option)

    def ready(*, bag_size: int = 1, epsilon: float = 1.0) -> Any:
        values = {"bag_size": bag_size, "epsilon": epsilon}
        return known.make(*(values[name] for name in known.parameters), value)

    # A number that cannot be is rejected here, before any work.
    ready()
    return replace(
        KINDS["channel"], name=f"{option} {value:g}", title=f"{option} {value:g}", option=name,
        make=cast(Any, ready), parameters=known.parameters, colour=known.colour,
        marker=known.marker, explanation=f"{known.published} {value:g}",
    )  # fmt: skip
