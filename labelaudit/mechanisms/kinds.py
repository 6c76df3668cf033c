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


@dataclass(frozen=True, kw_only=True)
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
        name="RR", title="randomized response", option="rr", make=RandomizedResponse,
        parameters=_NOISE, colour="#555555", marker="s", dashes=(0, (5, 2)),
        explanation="each label is replaced by {other} with probability {flip:.2g}",
    ),
    Kind(
        name="LLP", title="label proportions", option="llp", make=LabelProportions,
        parameters=_BAG, colour="#0072B2", marker="o", dashes="-", explanation=COUNT,
    ),
    Kind(
        name="LLP+Geom", title="geometric noise", option="geometric", make=GeometricProportions,
        parameters=_BAG + _NOISE, colour="#E69F00", marker="^", dashes=(0, (7, 2, 1.5, 2)),
        explanation=f"{COUNT}, plus noise in whole numbers",
    ),
    Kind(
        name="LLP+Lap", title="Laplace noise", option="laplace", make=LaplaceProportions,
        parameters=_BAG + _NOISE, colour="#009E73", marker="D", dashes=(0, (1.5, 1.5)),
        explanation=f"{COUNT}, plus noise",
    ),
    Kind(
        name="no release", title="no release", option="none", make=NoRelease, parameters=(),
        colour="#000000", marker="x", dashes=(0, (1, 3)),
    ),
    Kind(
        name="channel", title="a channel of one's own", option="channel", make=CountChannel,
        parameters=("matrix",), colour="#CC79A7", marker="v", dashes=(0, (3, 1, 1, 1, 1, 1)),
    ),
)  # fmt: skip
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
