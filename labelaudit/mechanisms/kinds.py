"""The kinds of mechanisms as users name them and as every figure draws them."""

from dataclasses import dataclass

from labelaudit.mechanisms.base import CountChannel, Mechanism
from labelaudit.mechanisms.paper import (
    GeometricProportions,
    LabelProportions,
    LaplaceProportions,
    NoRelease,
    RandomizedResponse,
)

__all__ = ["KINDS", "Kind", "kind_of"]


@dataclass(frozen=True)
class Kind:
    """A kind of mechanism: its names, its constructor, its style in figures.

    `name` is for figures and tables, `option` for the command line; `parameters` are what `make`
    needs.

    >>> KINDS["LLP"].make(8), KINDS["LLP"].parameters
    (LabelProportions(bag_size=8), ('bag_size',))
    """

    name: str
    title: str
    option: str
    make: type[Mechanism]
    parameters: tuple[str, ...]
    colour: str
    marker: str
    dashes: object
    # What is published, in a line; `k` is the bag size, `flip` the probability of a wrong label,
    # `other` what replaces it, `counted` what a count is of.
    explanation: str = "a mechanism of your own"
    # Whether its code or channel comes from a user's file.
    own: bool = False


_BAG, _NOISE = ("bag_size",), ("epsilon",)
COUNT = "for every {k} records, drawn at random, how many are {counted}"
_KINDS = (
    Kind(
        *("RR", "randomized response", "rr", RandomizedResponse, _NOISE),
        *("#555555", "s", (0, (5, 2))),
        "each label is replaced by {other} with probability {flip:.2g}",
    ),
    Kind(
        *("LLP", "label proportions", "llp", LabelProportions, _BAG, "#0072B2", "o", "-"),
        COUNT,
    ),
    Kind(
        *("LLP+Geom", "geometric noise", "geometric", GeometricProportions, _BAG + _NOISE),
        *("#E69F00", "^", (0, (7, 2, 1.5, 2)), f"{COUNT}, plus noise in whole numbers"),
    ),
    Kind(
        *("LLP+Lap", "Laplace noise", "laplace", LaplaceProportions, _BAG + _NOISE),
        *("#009E73", "D", (0, (1.5, 1.5)), f"{COUNT}, plus noise"),
    ),
    Kind("no release", "no release", "none", NoRelease, (), "#000000", "x", (0, (1, 3))),
    Kind(
        *("channel", "a channel of one's own", "channel", CountChannel, ("matrix",)),
        *("#CC79A7", "v", (0, (3, 1, 1, 1, 1, 1))),
    ),
)
KINDS: dict[str, Kind] = {kind.name: kind for kind in _KINDS}


def kind_of(mechanism: Mechanism) -> Kind:
    """The kind of a mechanism, whatever its parameters.

    >>> kind_of(LabelProportions(8)).name
    'LLP'
    """
    for kind in KINDS.values():
        if isinstance(mechanism, kind.make):
            return kind
    known = ", ".join(kind.make.__name__ for kind in KINDS.values())
    raise TypeError(f"a mechanism with a colour must be one of {known}, not {mechanism!r}")
