"""The settings of an audit: each mechanism at each of its parameters, of two classes or more."""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

from labelaudit.auditing.options import MIN_BAGS, Options
from labelaudit.auditing.table import Table
from labelaudit.mechanisms import KINDS, Kind, Mechanism
from labelaudit.mechanisms.count_channels import COUNT_CHANNELS
from labelaudit.mechanisms.custom import (
    PARAMETERS,
    CustomMechanismError,
    check_custom,
    construct,
    kind_named,
    naming_user_errors,
)
from labelaudit.multiclass import ClassProportions, ClassRandomizedResponse, ClassResponseWithPrior

# Ways to split a bag into classes: a bag with more takes too long.
MAX_SPLITS = 2000


@dataclass(frozen=True)
class Setting:
    """A mechanism with its parameters.

    `checked` says whether epsilon was computed from the distribution of the release. Where that is
    not known, epsilon is what the mechanism declares, and promises nothing.
    """

    kind: Kind
    # A user's own class may not be hashable; kind and parameters tell settings apart.
    mechanism: Mechanism = field(compare=False)
    parameters: tuple[tuple[str, float], ...]
    checked: bool = True

    @property
    def title(self) -> str:
        """Short name and parameters."""
        formats = {"bag_size": "bags of {:g}", "epsilon": "epsilon {:g}"}
        values = ", ".join(formats[name].format(value) for name, value in self.parameters)
        return f"{self.kind.name} ({values})" if values else self.kind.name

    def in_bags_of(self, size: int) -> Mechanism:
        """The mechanism with the same other parameters and bags of this size."""
        return construct(self.kind, dict(self.parameters) | {"bag_size": size})

    def naming_errors(self) -> AbstractContextManager[None]:
        """Whatever a mechanism of the user's own raises becomes one line that names it."""
        if not self.kind.own:
            return nullcontext()
        return naming_user_errors(f"{self.title} failed", CustomMechanismError)


def settings_for(table: Table, options: Options) -> tuple[Setting, ...]:
    """The settings that are listed for a table; a user's own code runs here, once."""
    made = settings_of(
        options.mechanisms or (),
        options.bag_sizes or (),
        options.epsilons,
        classes=len(table.classes),
    )
    if not made:
        raise ValueError(
            f"bags of {options.bag_sizes} split into too many counts: use smaller ones"
        )
    rows, largest = len(table), max(setting.mechanism.bag_size for setting in made)
    if (number := rows // largest) < MIN_BAGS:
        raise ValueError(
            f"a bag size of {largest} makes {number} {'bag' if number == 1 else 'bags'} of"
            f" {rows:,} rows; an interval by bag needs {MIN_BAGS}: use bags of at most"
            f" {rows // MIN_BAGS}"
        )
    return made


def settings_of(
    names: Sequence[str], bag_sizes: Sequence[int], epsilons: Sequence[float], *, classes: int = 2
) -> tuple[Setting, ...]:
    """Each mechanism at every combination of the parameters it takes.

    Of several classes, bags that can be split into too many counts are left out.

    >>> [setting.title for setting in settings_of(["rr"], [8], [0.5, 1.0])]
    ['RR (epsilon 0.5)', 'RR (epsilon 1)']
    >>> [setting.title for setting in settings_of(["rr", "llp"], [2, 99], [1.0], classes=3)]
    ['RR (epsilon 1)', 'LLP (bags of 2)']
    """
    named = kind_named if classes == 2 else partial(_class_kind, classes=classes)
    kinds = {name: named(name) for name in dict.fromkeys(names)}
    occurrences = Counter(kind.name for kind in kinds.values())
    settings = []
    for name, kind in kinds.items():
        if occurrences[kind.name] > 1:
            # Mechanisms of the same name are told apart by their files.
            kind = replace(kind, title=f"{kind.name} of {name}", name=name)
        values = {"bag_size": bag_sizes, "epsilon": epsilons}
        taken = [parameter for parameter in PARAMETERS if parameter in kind.parameters]
        for combination in itertools.product(*(values[parameter] for parameter in taken)):
            chosen = dict(zip(taken, combination, strict=True))
            size = int(chosen.get("bag_size", 1))
            if classes == 2 or math.comb(size + classes - 1, size) <= MAX_SPLITS:
                settings.append(setting_of(kind, chosen))
    return tuple(settings)


def setting_of(kind: Kind, values: Mapping[str, float]) -> Setting:
    """A setting of a kind, checked where the mechanism is the user's own."""
    setting = Setting(kind, construct(kind, dict(values)), tuple(values.items()))
    if kind.own:
        setting = replace(setting, checked=check_custom(setting.mechanism, setting.title))
    return setting


def _class_kind(name: str, classes: int) -> Kind:
    """A mechanism of several classes: rr and llp are those of two classes."""
    option, _, numbers = name.partition("=")
    if option in ("rr", "llp") and not numbers:
        make: Any = ClassRandomizedResponse if option == "rr" else ClassProportions
        return replace(KINDS[option.upper()], make=cast(Any, partial(make, classes)))
    if option != "rr-prior":
        known = "rr, llp, rr-prior=P,P,..."
        raise ValueError(f"for several classes a mechanism is one of {known}, not {name}")
    try:
        prior = tuple(float(number) for number in numbers.split(","))
    except ValueError:
        raise ValueError(f"rr-prior is written rr-prior=P,P,..., not {name!r}") from None
    style, response = COUNT_CHANNELS[option], partial(ClassResponseWithPrior, classes, prior=prior)
    return replace(
        KINDS["RR"], name="RR with prior", title="randomized response with a prior", option=option,
        make=cast(Any, response), colour=style.colour,
        marker=style.marker,
        explanation="of the likeliest classes one is released: the true one, or another at random",
    )  # fmt: skip
