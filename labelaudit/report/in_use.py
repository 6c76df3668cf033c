"""Mechanisms in use, by a name and a number: suppressed=5, rounded=5, rr-prior=0.1."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from labelaudit import checks
from labelaudit.design import censored
from labelaudit.mechanisms import (
    KINDS,
    CountChannel,
    Kind,
    discrete_gaussian,
    random_subset,
    response_with_prior,
    rounded,
    suppressed,
)


def censored_ends(bag_size: int, margin: int) -> CountChannel:
    """The count, but at least `margin` and at most k less that; the middle in a small bag.

    >>> censored_ends(5, 1).matrix.argmax(axis=1).tolist()
    [1, 1, 2, 3, 4, 4]
    """
    low = min(margin, bag_size // 2)
    return censored(bag_size, low, bag_size - low)


_COUNT = "for every {k} records, drawn at random, how many are {counted}"
_RR_PRIOR = (
    "each label is replaced by {other} with probability {flip:.2g}, or nothing is told where the"
    " guess without it is better; the guess is by P(label = 1) ="
)
# Constructor, colour, marker, and what is published, with the number after it.
IN_USE: dict[str, tuple[Callable[..., CountChannel], str, str, str]] = {
    "suppressed": (suppressed, "#D55E00", "P", f"{_COUNT}, unless there are fewer than"),
    "rounded": (rounded, "#56B4E9", "X", f"{_COUNT}, to the nearest multiple of"),
    "censored": (censored_ends, "#8C510A", "p", f"{_COUNT}, kept away from 0 and {{k}} by"),
    "gaussian": (discrete_gaussian, "#AA4499", "h", f"{_COUNT}, plus Gaussian noise of size"),
    "subset": (random_subset, "#882255", "*", "a random fraction of the labels:"),
    "rr-prior": (response_with_prior, "#332288", "d", _RR_PRIOR),
}


def kind_in_use(name: str) -> Kind:
    """A kind from a text such as rounded=5.

    >>> kind_in_use("rounded=5").make(bag_size=8).matrix.shape
    (9, 3)
    """
    option, _, text = name.partition("=")
    make, colour, marker, published = IN_USE[option]
    try:
        value: Any = float(text)
    except ValueError:
        raise ValueError(f"{option} is written {option}=NUMBER, not {name!r}") from None
    if option not in ("gaussian", "subset", "rr-prior"):
        value = checks.whole_number(int(value) if value.is_integer() else value, option)
    parameters = {"subset": (), "rr-prior": ("epsilon",)}.get(option, ("bag_size",))

    def ready(*, bag_size: int = 1, epsilon: float = 1.0) -> Any:
        given = {"bag_size": bag_size, "epsilon": epsilon}
        return make(*(given[name] for name in parameters), value)

    # A number that cannot be is rejected here, before any work.
    ready()
    return replace(
        KINDS["channel"], name=f"{option} {value:g}", title=f"{option} {value:g}", option=name,
        make=cast(Any, ready), parameters=parameters, colour=colour, marker=marker,
        explanation=f"{published} {value:g}",
    )  # fmt: skip
