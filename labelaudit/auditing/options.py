"""What an audit compares, against which target, how carefully: plain values, checked at once."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np

from labelaudit import checks
from labelaudit.auditing.table import Columns, Table
from labelaudit.command_line import did_you_mean
from labelaudit.mechanisms.custom import check_name

BAG_SIZES = (2, 8, 32)
MECHANISMS = ("rr", "llp", "geometric", "laplace")
# The default target as a fraction of what is at stake.
DEFAULT_FRACTION = 0.1
TARGETS = ("additive", "multiplicative", "epsilon")
UTILITIES = ("none", "logistic")
LEARNERS = ("boosting", "logistic")
# A contradiction of eta matters where it is larger than this fraction of what the target allows.
MATTERS = 0.1
# Fewer bags than this do not show how bags differ.
MIN_BAGS = 10
# With fewer of any label no fold can be trained or checked.
MIN_OF_EACH = 20
# A bag of this many members takes seconds for each setting and refit.
MAX_IN_OWN_BAG = 50_000
# In a small table refits of eta differ, and three of them say little about how much.
SMALL_TABLE, REFITS, REFITS_WHEN_SMALL = 20_000, 3, 6


@dataclass(frozen=True)
class Target:
    """The most that is allowed: additive advantage, |I| at the audit's level, or epsilon.

    >>> Target.parse("additive=0.05")
    Target(kind='additive', value=0.05)
    >>> str(Target("multiplicative", 1.0))
    'multiplicative advantage of at most 1 for 98% of the records'
    """

    kind: str = "additive"
    value: float = 0.05
    # The options of an audit replace it by their own level.
    level: float = field(default=0.98, repr=False)

    def __post_init__(self) -> None:
        """Check the kind and its value."""
        if self.kind not in TARGETS:
            raise ValueError(f"a target is one of {', '.join(TARGETS)}, not {self.kind!r}")
        most = 0.5 if self.kind == "additive" else math.inf
        number = checks.real_number(self.value, f"the {self.kind} target", 0, most)
        if math.isinf(number):
            raise ValueError(
                f"the {self.kind} target must be a finite number: every setting meets {number}"
            )
        object.__setattr__(self, "value", number)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `kind=value`."""
        kind, _, value = (part.strip() for part in text.partition("="))
        try:
            number = float(value)
        except ValueError:
            if kind in TARGETS:
                raise ValueError(f"a target is written {kind}=NUMBER, not {text!r}") from None
            # The kind is wrong, and the message must name it.
            number = 0.0
        return cls(kind, number)

    @classmethod
    def of_stake(cls, stake: float, level: float) -> Self:
        """The default: a release may undo a tenth of what an attacker gets wrong without it.

        A fixed number would ask nothing where one label is rare, and too much of a coin's labels.

        >>> Target.of_stake(0.1234, 0.98).value
        0.012
        """
        return cls("additive", float(f"{DEFAULT_FRACTION * stake:.2g}"), level)

    def empty(self, stake: float) -> bool:
        """Whether the labels themselves would meet it: no release adds more than the `stake`."""
        return self.kind == "additive" and stake <= self.value

    def matters(self, stake: float) -> float:
        """How wrong eta may be, as a fraction of the records, before decisions are left open."""
        return MATTERS * (self.value if self.kind == "additive" else stake)

    def __str__(self) -> str:
        """In words."""
        if self.kind == "epsilon":
            return f"epsilon of at most {self.value:g}"
        records = f" for {100 * self.level:.4g}% of the records"
        ending = records if self.kind == "multiplicative" else ""
        return f"{self.kind} advantage of at most {self.value:g}{ending}"


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to compare, against which target, and how carefully. Making one opens no file.

    `mechanisms` are rr, llp, geometric and laplace, a Python file with a class of your own
    (`mine.py` or `mine.py:Name`), or a channel matrix (`channel.csv`). Without a `target` it is a
    tenth of what an attacker gets wrong without any release. `level` is the level of the
    multiplicative percentile. `refits` is how often eta is estimated, each time from other folds,
    with other bags and fresh noise. `repeats` are numbers of releases to look ahead to. `known` are
    numbers of other members of a bag whose labels an attacker may know; a number too large for a
    bag stands for all of them. By default it is none, half, half of the others too, and so on until
    all are known. With `search` the least noisy epsilon or the smallest bag that meets the target
    is looked for between those listed. With several `learners` of eta the refits take turns, and
    intervals include how they differ. What is None depends on the table (`suit`).
    """

    mechanisms: Sequence[str] | None = None
    bag_sizes: Sequence[int] | None = None
    epsilons: Sequence[float] = (0.5, 1.0, 2.0, 4.0)
    target: Target | str | None = None
    level: float = 0.98
    utility: str | None = None
    refits: int | None = None
    repeats: Sequence[int] = (1, 2, 5)
    known: Sequence[int] = ()
    seed: int = 0
    search: bool = True
    learners: Sequence[str] = LEARNERS[:1]

    def __post_init__(self) -> None:
        """Check all of it, and keep sequences as tuples without repetition, numbers sorted."""
        for name in ("mechanisms", "bag_sizes", "epsilons", "repeats", "known", "learners"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise TypeError(f"{name} must be a list, as in [{value!r}], not a text")
            if value is not None and not len(value) and name != "known":
                raise ValueError(f"{name} is empty: give at least one value")
            if value is not None:
                object.__setattr__(self, name, tuple(dict.fromkeys(value)))
        wholes = {"bag_sizes": ("bag size", 1), "repeats": ("repeats", 1), "known": ("known", 0)}
        for name, (noun, least) in wholes.items():
            if (sizes := getattr(self, name)) is not None:
                numbers = {checks.whole_number(size, noun, least) for size in sizes}
                object.__setattr__(self, name, tuple(sorted(numbers)))
        epsilons = {checks.real_number(value, "epsilon", 0, 100) for value in self.epsilons}
        if 0 in epsilons:
            raise ValueError("epsilon must be above 0: at 0 nothing is released")
        object.__setattr__(self, "epsilons", tuple(sorted(epsilons)))
        object.__setattr__(self, "level", checks.real_number(self.level, "level", 0, 1))
        checks.whole_number(3 if self.refits is None else self.refits, "refits", least=2)
        checks.whole_number(self.seed, "seed", least=0)
        if self.utility not in (None, *UTILITIES):
            names = ", ".join(UTILITIES)
            raise ValueError(f"a utility model is one of {names}, not {self.utility!r}")
        for learner in self.learners:
            if learner not in LEARNERS:
                raise ValueError(f"a learner is one of {', '.join(LEARNERS)}, not {learner!r}")
        for name in self.mechanisms or ():
            check_name(name)
        target = Target.parse(self.target) if isinstance(self.target, str) else self.target
        if target is not None:
            object.__setattr__(self, "target", replace(target, level=self.level))

    def suit(self, table: Table) -> Self:
        """The same with defaults that suit the table; what does not fit it is an error."""
        _check_labels(table)
        rows, binary = len(table), len(table.classes) == 2
        sizes = self.bag_sizes
        if sizes is None:
            sizes = sorted({max(min(size, rows // MIN_BAGS), 1) for size in BAG_SIZES})
        _check_bags(table)
        refits = REFITS_WHEN_SMALL if table.prior is None and rows < SMALL_TABLE else REFITS
        without_model = table.prior is not None or not binary
        return replace(
            self,
            mechanisms=self.mechanisms or MECHANISMS[: 4 if binary else 2],
            bag_sizes=sizes,
            refits=self.refits or refits,
            utility=self.utility or ("none" if without_model else "logistic"),
        )

    def target_of(self, stake: float) -> Target:
        """The target that was asked for, or the default, which depends on what is at stake."""
        if isinstance(self.target, Target):
            return self.target
        return Target.of_stake(stake, self.level)


def split(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keywords about the columns of a table, and those about what to compare.

    >>> split({"epsilon": [1.0]})
    Traceback (most recent call last):
    TypeError: an audit has no option 'epsilon'; did you mean epsilons?
    """
    of_columns, of_options = ({each.name for each in fields(kind)} for kind in (Columns, Options))
    for name in given.keys() - of_columns - of_options:
        near = did_you_mean(name, of_columns | of_options)
        raise TypeError(f"an audit has no option {name!r}{near}")
    about, chosen = (
        {name: given[name] for name in given.keys() & names} for names in (of_columns, of_options)
    )
    return about, chosen


def _check_labels(table: Table) -> None:
    """Reject too few of a label to learn from, and a certain prior that a label refutes."""
    rarest = int(np.bincount(table.labels, minlength=len(table.classes)).min())
    if rarest < MIN_OF_EACH:
        raise ValueError(
            f"the rarest of {len(table.classes)} values of {table.label!r} occurs {rarest} times in"
            f" {len(table):,} rows; an audit needs at least {MIN_OF_EACH} of each"
        )
    if table.prior is not None:
        refuted = np.flatnonzero(table.prior == 1 - table.labels)
        if refuted.size:
            row = int(refuted[0])
            raise ValueError(
                f"the prior of row {table.ids[row]} is {table.prior[row]:g} and its label"
                f" {table.labels[row]}: a certain prior must be right, so keep others off 0 and 1"
            )


def _check_bags(table: Table) -> None:
    """Reject a bag column with too few bags, or with one that is too large."""
    if table.bags is None:
        return
    sizes = np.bincount(table.bags)
    if sizes.size < MIN_BAGS:
        values = "value" if sizes.size == 1 else "values"
        raise ValueError(
            f"the bag column has {sizes.size} different {values}; an interval by bag needs"
            f" {MIN_BAGS}: name another column, or none"
        )
    if sizes.max() > MAX_IN_OWN_BAG:
        raise ValueError(
            f"the largest bag of the bag column has {sizes.max():,} records; an audit takes bags of"
            f" at most {MAX_IN_OWN_BAG:,}: name a finer column, or none"
        )
