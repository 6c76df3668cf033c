"""What an audit is asked to do, checked before any work: table, mechanisms, parameters, target."""

import inspect
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from labelaudit import checks
from labelaudit.auditing.eta import LEARNERS, MATTERS, MOST_IN_BATCH
from labelaudit.auditing.frame import read_frame
from labelaudit.auditing.table import Table, read_table
from labelaudit.checks import Ints
from labelaudit.command_line import did_you_mean
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

BAG_SIZES = (2, 8, 32)
# The default target as a fraction of what is at stake.
DEFAULT_FRACTION = 0.1
TARGETS = ("additive", "multiplicative", "epsilon")
UTILITIES = ("none", "logistic", "network")
# Fewer bags than this do not show how bags differ.
LEAST_BAGS = 10
# With fewer of either label no fold can be trained or checked.
LEAST_OF_EACH = 20
# A bag of this many members takes seconds for each setting and refit.
MOST_IN_OWN_BAG = 50_000
# In a small table refits of eta differ, and three of them say little about how much.
SMALL, REFITS_WHEN_SMALL = 20_000, 6
# More distinct labels are numbers or names rather than classes.
MOST_CLASSES = 20
# Ways to split a bag into classes: a bag with more takes too long.
MOST_SPLITS = 2000
# Mechanisms of several classes: the first two are those of two classes.
CLASS_OPTIONS = ("rr", "llp", "rr-prior")
RR_PRIOR = replace(
    KINDS["RR"], name="RR with prior", title="randomized response with a prior", option="rr-prior",
    colour=COUNT_CHANNELS["rr-prior"].colour, marker=COUNT_CHANNELS["rr-prior"].marker,
    explanation="of the likeliest classes one is released: the true one, or another at random",
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """The most that is allowed: additive advantage, |I| at the plan's level, or epsilon.

    >>> Target.parse("additive=0.05")
    Target(kind='additive', value=0.05)
    >>> str(Target("multiplicative", 1.0))
    'multiplicative advantage of at most 1 for 98% of the records'
    """

    kind: str = "additive"
    value: float = 0.05
    # A plan replaces it by its own level.
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

    @property
    def own(self) -> bool:
        """Whether the mechanism is the user's."""
        return self.kind.own

    def in_bags_of(self, size: int) -> Mechanism:
        """The mechanism with the same other parameters and bags of this size."""
        return construct(self.kind, dict(self.parameters) | {"bag_size": size})

    def naming_errors(self) -> AbstractContextManager[None]:
        """Whatever a mechanism of the user's own raises becomes one line that names it."""
        return (
            naming_user_errors(f"{self.title} failed", CustomMechanismError)
            if self.own
            else nullcontext()
        )


def settings_of(
    names: Sequence[str], bag_sizes: Sequence[int], epsilons: Sequence[float]
) -> tuple[Setting, ...]:
    """Each mechanism at every combination of the parameters it takes.

    >>> [setting.title for setting in settings_of(["rr"], [8], [0.5, 1.0])]
    ['RR (epsilon 0.5)', 'RR (epsilon 1)']
    """
    kinds = {name: kind_named(name) for name in dict.fromkeys(names)}
    occurrences = Counter(kind.name for kind in kinds.values())
    settings = []
    for name, kind in kinds.items():
        if occurrences[kind.name] > 1:
            # Mechanisms of the same name are told apart by their files.
            kind = replace(kind, title=f"{kind.name} of {name}", name=name)
        values = {"bag_size": bag_sizes, "epsilon": epsilons}
        taken = [parameter for parameter in PARAMETERS if parameter in kind.parameters]
        for combination in itertools.product(*(values[parameter] for parameter in taken)):
            settings.append(setting_of(kind, dict(zip(taken, combination, strict=True))))
    return tuple(settings)


def setting_of(kind: Kind, values: dict[str, Any]) -> Setting:
    """A setting of a kind, checked where the mechanism is the user's own."""
    setting = Setting(kind, construct(kind, values), tuple(values.items()))
    if setting.own:
        setting = replace(setting, checked=check_custom(setting.mechanism, setting.title))
    return setting


@dataclass(frozen=True)
class AuditPlan:
    """What to compare, against which target, and how carefully.

    `mechanisms` are rr, llp, geometric and laplace, a Python file with a class of your own
    (`mine.py` or `mine.py:Name`), or a channel matrix (`channel.csv`). Without a `target` it is a
    tenth of what an attacker gets wrong without any release. `level` is the level of the
    multiplicative percentile. `refits` is how often eta is estimated, each time from other folds,
    with other bags and fresh noise. `repeats` are numbers of releases to look ahead to. `known` are
    numbers of other members of a bag whose labels an attacker may know; a number too large for a
    bag stands for all of them. By default it is none, half, half of the others too, and so on until
    all are known. With `search` the least noisy epsilon or the smallest bag that meets the target
    is looked for between those listed. With several `learners` of eta the refits take turns, and
    intervals include how they differ.

    >>> plan = AuditPlan(mechanisms=["rr", "llp"], bag_sizes=[8], epsilons=[0.5, 1.0])
    >>> [setting.title for setting in plan.settings]
    ['RR (epsilon 0.5)', 'RR (epsilon 1)', 'LLP (bags of 8)']
    """

    mechanisms: Sequence[str] = ("rr", "llp", "geometric", "laplace")
    bag_sizes: Sequence[int] = BAG_SIZES
    epsilons: Sequence[float] = (0.5, 1.0, 2.0, 4.0)
    target: Target | None = None
    level: float = 0.98
    utility: str = "logistic"
    refits: int = 3
    repeats: Sequence[int] = (1, 2, 5)
    known: Sequence[int] = ()
    seed: int = 0
    search: bool = True
    learners: Sequence[str] = LEARNERS[:1]

    def __post_init__(self) -> None:
        """Check all of it, and keep sequences as sorted tuples without repetition."""
        for name in ("mechanisms", "bag_sizes", "epsilons", "repeats", "known", "learners"):
            if isinstance(value := getattr(self, name), str):
                raise TypeError(f"{name} must be a list, as in [{value!r}], not a text")
        lists: dict[str, list[Any]] = {
            "bag_sizes": [checks.whole_number(size, "bag size") for size in self.bag_sizes],
            "epsilons": [checks.real_number(value, "epsilon", 0, 100) for value in self.epsilons],
            "repeats": [checks.whole_number(times, "repeats") for times in self.repeats],
            "known": [checks.whole_number(known, "known", least=0) for known in self.known],
        }
        for name, values in lists.items():
            if not values and name != "known":
                raise ValueError(f"{name} is empty: give at least one value")
            object.__setattr__(self, name, tuple(sorted(set(values))))
        if 0 in self.epsilons:
            raise ValueError("epsilon must be above 0: at 0 nothing is released")
        object.__setattr__(self, "level", checks.real_number(self.level, "level", 0, 1))
        if self.target is not None:
            object.__setattr__(self, "target", replace(self.target, level=self.level))
        checks.whole_number(self.refits, "refits", least=2)
        checks.whole_number(self.seed, "seed", least=0)
        if self.utility not in UTILITIES:
            names = ", ".join(UTILITIES)
            raise ValueError(f"a utility model is one of {names}, not {self.utility!r}")
        for learner in self.learners or ("",):
            if learner not in LEARNERS:
                raise ValueError(f"a learner is one of {', '.join(LEARNERS)}, not {learner!r}")
        object.__setattr__(self, "learners", tuple(dict.fromkeys(self.learners)))
        if not self.mechanisms:
            raise ValueError("mechanisms is empty: name at least one")
        object.__setattr__(self, "mechanisms", tuple(dict.fromkeys(self.mechanisms)))
        settings = settings_of(self.mechanisms, self.bag_sizes, self.epsilons)
        object.__setattr__(self, "_settings", settings)
        if self.utility == "network" and self._largest > MOST_IN_BATCH:
            raise ValueError(
                f"the network learns from bags of at most {MOST_IN_BATCH}, not {self._largest}:"
                " use smaller bags, or another utility model"
            )

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Every mechanism with every parameter value it takes."""
        return self._settings  # type: ignore[attr-defined]

    @property
    def _largest(self) -> int:
        return max(setting.mechanism.bag_size for setting in self.settings)

    def target_of(self, stake: float) -> Target:
        """The target that was asked for, or the default, which depends on what is at stake."""
        return self.target or Target.of_stake(stake, self.level)

    def check_table(self, table: Table) -> None:
        """Reject a table whose labels, bags or features do not fit the plan."""
        _check_labels(table)
        rows, sizes = len(table), table.bag_sizes
        if table.prior is not None and self.utility == "network":
            raise ValueError("with a prior no features are read, and the network cannot be trained")
        if sizes is not None and sizes.size < LEAST_BAGS:
            raise ValueError(
                f"the bag column has {sizes.size} different value{'s' * (sizes.size > 1)}; an"
                f" interval by bag needs {LEAST_BAGS}: name another column, or none"
            )
        if sizes is not None and (most := int(sizes.max())) > MOST_IN_OWN_BAG:
            raise ValueError(
                f"the largest bag of the bag column has {most:,} records; an audit takes bags of at"
                f" most {MOST_IN_OWN_BAG:,}: name a finer column, or none"
            )
        if (made := rows // self._largest) < LEAST_BAGS:
            raise ValueError(
                f"a bag size of {self._largest} makes {made} bag{'' if made == 1 else 's'} of"
                f" {rows:,} rows; an interval by bag needs {LEAST_BAGS}: use bags of at most"
                f" {rows // LEAST_BAGS}"
            )


def _check_labels(table: Table) -> None:
    """Reject too few of either label to learn from, and a certain prior that a label refutes."""
    ones = int(table.labels.sum())
    rarer = min(ones, len(table) - ones)
    if rarer < LEAST_OF_EACH:
        raise ValueError(
            f"the rarer label occurs {rarer} times in {len(table):,} rows; an audit needs at least"
            f" {LEAST_OF_EACH} of each"
        )
    if table.prior is not None:
        refuted = np.flatnonzero(table.prior == 1 - table.labels.astype(float))
        if refuted.size:
            row = int(refuted[0])
            raise ValueError(
                f"the prior of row {table.ids[row]} is {table.prior[row]:g} and its label"
                f" {table.labels[row]}: a certain prior must be right, so keep others off 0 and 1"
            )


def prepared(table: Any, label: str = "", **options: Any) -> tuple[Table, AuditPlan]:
    """The table and the plan of an audit, checked; options are those of the two.

    >>> prepared("shop.csv", "bought", epsilon=[1.0])
    Traceback (most recent call last):
    TypeError: an audit has no option 'epsilon'; did you mean epsilons?
    """
    chosen, columns = _split(options)
    if columns.get("prior") is not None or columns.get("model") is not None:
        chosen.setdefault("utility", "none")
    plan = AuditPlan(**chosen)
    if not isinstance(table, Table):
        table = read_table(table, label=label, **columns)
    elif columns:
        raise TypeError(f"{next(iter(columns))!r} is for a file or a data frame, not for a Table")
    if "bag_sizes" not in chosen and (largest := len(table) // LEAST_BAGS) < max(BAG_SIZES):
        plan = replace(plan, bag_sizes=[max(min(size, largest), 1) for size in BAG_SIZES])
    if "refits" not in chosen and table.prior is None and len(table) < SMALL:
        plan = replace(plan, refits=REFITS_WHEN_SMALL)
    plan.check_table(table)
    return table, plan


def _split(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of the plan, and those about the columns of the table."""
    names = {each.name for each in fields(AuditPlan)}
    of_table = inspect.signature(read_table).parameters.keys() - {"source", "label"}
    for name in options.keys() - names - of_table:
        near = did_you_mean(name, names | of_table)
        raise TypeError(f"an audit has no option {name!r}{near}")
    chosen = {name: options[name] for name in options.keys() & names}
    if isinstance(chosen.get("target"), str):
        chosen["target"] = Target.parse(chosen["target"])
    return chosen, {name: options[name] for name in options.keys() & of_table}


def class_settings(names: Sequence[str], plan: AuditPlan, classes: int) -> tuple[Setting, ...]:
    """Each mechanism at every parameter; bags whose classes are too many to count are left out.

    >>> plan = AuditPlan(bag_sizes=[2], epsilons=[1.0])
    >>> [setting.title for setting in class_settings(["rr", "llp"], plan, 3)]
    ['RR (epsilon 1)', 'LLP (bags of 2)']
    """
    settings = []
    for name in names:
        option, _, numbers = name.partition("=")
        if option not in CLASS_OPTIONS:
            known = "rr, llp, rr-prior=P,P,..."
            raise ValueError(f"for several classes a mechanism is one of {known}, not {name}")
        kind, parameter, values = KINDS["RR"], "epsilon", plan.epsilons
        make: Any = partial(ClassRandomizedResponse, classes)
        if option == "llp":
            values = [k for k in plan.bag_sizes if math.comb(k + classes - 1, k) <= MOST_SPLITS]
            kind, parameter, make = KINDS["LLP"], "bag_size", partial(ClassProportions, classes)
        elif option == "rr-prior":
            try:
                prior = tuple(float(number) for number in numbers.split(","))
            except ValueError:
                raise ValueError(f"rr-prior is written rr-prior=P,P,..., not {name!r}") from None
            kind, make = RR_PRIOR, partial(ClassResponseWithPrior, classes, prior=prior)
        settings += [Setting(kind, make(value), ((parameter, value),)) for value in values]
    return tuple(settings)


def prepared_classes(
    source: Any, label: str, **options: Any
) -> tuple[Table, Ints, tuple[str, ...], tuple[Setting, ...], AuditPlan] | None:
    """What an audit of several classes needs; None where the label has not three or more.

    The table, the class of each row as a number, the names of the classes, settings and plan.
    """
    frame = read_frame(Path(source)) if isinstance(source, str | Path) else source
    if label not in getattr(frame, "columns", ()):
        return None
    classes = tuple(sorted(frame[label].dropna().astype(str).unique()))
    if not 2 < len(classes) <= MOST_CLASSES:
        return None
    chosen, columns = _split(options)
    names = chosen.pop("mechanisms", ("rr", "llp"))
    plan = AuditPlan(**chosen | {"utility": "none", "mechanisms": ["rr"]})
    settings = class_settings(names, plan, len(classes))
    for option in ("prior", "model", "bag", "by", "positive"):
        if columns.get(option) is not None:
            raise ValueError(f"an audit of {len(classes)} classes takes no {option}: leave it out")
    kept = frame[frame[label].notna()]
    codes = np.searchsorted(classes, kept[label].astype(str)).astype(np.int64)
    rarest = int(np.bincount(codes).min())
    if rarest < LEAST_OF_EACH:
        raise ValueError(
            f"the rarest of {len(classes)} classes of {label!r} occurs {rarest} times; an audit"
            f" needs at least {LEAST_OF_EACH} of each"
        )
    table = read_table(kept.assign(**{label: (codes == 0).astype(int)}), label=label, **columns)
    if len(table) != len(codes):
        raise ValueError("every row must have a person")
    if isinstance(source, str | Path):
        table = replace(table, name=Path(source).name)
    fitting = [each for each in settings if each.mechanism.bag_size * LEAST_BAGS <= len(table)]
    return table, codes, classes, tuple(fitting), plan
