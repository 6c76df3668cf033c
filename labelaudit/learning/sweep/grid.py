"""Which runs a sweep consists of: mechanisms, learning rates and trials, often from a file.

A grid file is YAML. It must name mechanisms; every other entry has the default of `Grid`:

    seed: 2023
    trials: 3
    train_rows: 40000
    learning_rates: [1.0e-4, 1.0e-3]
    mechanisms:
      clean: {}
      RR: {epsilon: [0.5, 1, 2]}
      LLP: {bag_size: [1, 8]}
      LLP+Geom: {bag_size: [2, 8], epsilon: [0.5, 1, 2]}
    training: {epochs: 3, batch_size: 512}
    eta: {epochs: 10}               # what differs from ETA for the network that estimates eta
    datasets:                       # what differs for one data set
      kdd12: {training: {epochs: 2}}
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from labelaudit import checks
from labelaudit.command_line import CommandError
from labelaudit.datasets import NAMES
from labelaudit.mechanisms import KINDS, Mechanism

# Training on the labels themselves, through no mechanism.
CLEAN = "clean"
# The kinds that a grid can name: those whose parameters are numbers.
TRAINABLE = {
    name: kind
    for name, kind in KINDS.items()
    if kind.parameters and set(kind.parameters) <= {"bag_size", "epsilon"}
}
# How the network that estimates eta differs from the trainings: an audit needs a good one, however
# short the trainings are. Twelve epochs are the most; it stops when its validation loss does.
ETA = {"learning_rate": 1e-3, "batch_size": 256, "epochs": 12}


class GridError(CommandError):
    """A grid that cannot be run; the message names the entry and what is allowed."""


@dataclass(frozen=True)
class Grid:
    """Every mechanism with every learning rate, in every trial.

    Trial t has the seed `seed + t` whatever the mechanism. So initial weights are the same, and for
    mechanisms of one bag size bags and shuffling too: mechanisms can be compared trial by trial.
    All learning rates of a trial see the same release. Other bag sizes make other bags, and a pair
    of them has less of its noise in common. `train_rows` None takes all rows.

    >>> grid = Grid({"RR": {"epsilon": [1, 2]}}, learning_rates=(1e-3, 5e-3), trials=2)
    >>> len(grid), next(grid.each())
    (8, {'kind': 'RR', 'epsilon': 1.0})
    """

    mechanisms: Mapping[str, Mapping[str, list[Any]]] = field(default_factory=dict)
    learning_rates: tuple[float, ...] = (1e-3, 5e-3)
    trials: int = 3
    seed: int = 2023
    train_rows: int | None = None
    training: Mapping[str, Any] = field(default_factory=dict)
    eta: Mapping[str, Any] = field(default_factory=dict)
    datasets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check all that can be checked without the data."""
        try:
            for name in ("mechanisms", "training", "eta", "datasets"):
                _mapping(getattr(self, name), name)
            rates = _numbers(self.learning_rates, "learning_rates")
            rates = [checks.real_number(rate, "a learning rate", 0, 100) for rate in rates]
            if 0 in rates:
                raise ValueError(f"a learning rate must be above 0, not {self.learning_rates!r}")
            if "learning_rate" in self.training:
                raise ValueError(
                    f"training: learning_rate {self.training['learning_rate']!r} would be ignored,"
                    " for it is searched; put it into learning_rates"
                )
            checks.whole_number(self.trials, "trials")
            checks.whole_number(self.seed, "seed", least=0)
            if self.train_rows is not None:
                checks.whole_number(self.train_rows, "train_rows")
            object.__setattr__(self, "learning_rates", tuple(dict.fromkeys(rates)))
            check_names(self.datasets, NAMES, "datasets")
            for name in self.datasets:
                self.for_data(name)
            if not list(self.each()):
                raise ValueError("mechanisms names none, and there is no default")
        except (ValueError, TypeError) as error:
            raise GridError(f"the grid cannot be run: {error}") from None

    def __len__(self) -> int:
        """How many runs."""
        return len(list(self.each())) * len(self.learning_rates) * self.trials

    def each(self) -> Iterator[dict[str, Any]]:
        """Every mechanism as its plain description, once."""
        every = itertools.starmap(_descriptions, self.mechanisms.items())
        once = {tuple(each.items()): each for each in itertools.chain.from_iterable(every)}
        yield from once.values()

    def for_data(self, name: str) -> Grid:
        """The grid as it is for one data set."""
        where = f"datasets: {name}"
        own = dict(_mapping(self.datasets.get(name, {}), where))
        check_names(own, _FIELDS - {"datasets"}, where)
        for part in ("training", "eta"):
            changed = _mapping(own.get(part, {}), f"{where}: {part}")
            own[part] = {**getattr(self, part), **changed}
        return replace(self, datasets={}, **own)


_FIELDS = set(Grid.__dataclass_fields__)


def read_grid(path: str | Path) -> Grid:
    """A grid from a YAML file.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
    ...     print("{mechanisms: {LLP: {bag_size: [2, 8]}}, trials: 1}", file=file, flush=True)
    ...     len(read_grid(file.name))
    4
    """
    import yaml

    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise GridError(f"cannot read the grid {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise GridError(f"the grid {path} is not YAML: {_in_one_line(error)}") from None
    if not isinstance(content, dict):
        raise GridError(f"the grid {path} must be a mapping such as trials: 3, not {content!r}")
    check_names(content, _FIELDS, str(path))
    return Grid(**content)


def _in_one_line(error: Exception) -> str:
    """What is wrong with a text, in one line; YAML's own message has several."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return str(error).splitlines()[0]
    return f"{getattr(error, 'problem', error)}, line {mark.line + 1}, column {mark.column + 1}"


def mechanism(description: Mapping[str, Any]) -> Mechanism | None:
    """The mechanism of a description, or None for clean labels.

    >>> mechanism({"kind": "LLP+Geom", "bag_size": 2, "epsilon": 1.0})
    GeometricProportions(bag_size=2, epsilon=1.0)
    """
    parameters = dict(description)
    kind = parameters.pop("kind")
    return None if kind == CLEAN else TRAINABLE[kind].make(**parameters)


def _descriptions(kind: str, parameters: Any) -> Iterator[dict[str, Any]]:
    """Every combination of a kind's parameters; each mechanism is made once, which checks it."""
    if kind != CLEAN and kind not in TRAINABLE:
        known = ", ".join([CLEAN, *TRAINABLE])
        raise ValueError(f"mechanism {kind!r} is unknown; there are {known}")
    names = () if kind == CLEAN else TRAINABLE[kind].parameters
    lists = {} if parameters is None else parameters
    if not isinstance(lists, Mapping) or set(lists) != set(names):
        wanted = ", ".join(f"{name}: [...]" for name in names)
        raise ValueError(f"mechanism {kind} takes {{{wanted}}}, not {parameters!r}")
    numbers = [_numbers(lists[name], f"{kind} {name}") for name in names]
    for values in itertools.product(*numbers):
        try:
            made = mechanism({"kind": kind, **dict(zip(names, values, strict=True))})
        except (ValueError, TypeError) as error:
            raise ValueError(f"mechanism {kind}: {error}") from None
        if made is not None and made.epsilon == 0:
            raise ValueError(f"mechanism {kind}: at epsilon 0 there is nothing to learn from")
        yield {"kind": kind, **{name: getattr(made, name) for name in names}}


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a mapping of names to values, not {value!r}")
    return value


def _numbers(values: Any, name: str) -> list[Any]:
    """A list of numbers; YAML reads 1e-4 as text, which is accepted."""
    if not isinstance(values, (list, tuple)) or not values:
        raise ValueError(f"{name} must be a list of numbers, not {values!r}")
    numbers = list(values)
    for index, value in enumerate(numbers):
        if isinstance(value, str):
            with contextlib.suppress(ValueError):
                numbers[index] = float(value)
    return numbers


def check_names(names: Iterable[str], allowed: Iterable[str], where: str) -> None:
    """Raise an error where a name means nothing."""
    known = sorted(allowed)
    for name in names:
        if name not in known:
            raise GridError(f"{where}: {name!r} is unknown; there are {', '.join(known)}")
