"""Which runs a sweep consists of: mechanisms, losses, learning rates, trials; often from a file.

A grid file is YAML. It must name mechanisms; every other entry has the default of `Grid`:

    seed: 2023
    trials: 3
    train_rows: 40000
    learning_rates: [2.5e-4, 1.0e-3, 4.0e-3]
    rate_limits: [1.0e-6, 0.1]      # search on, setting by setting, while the best is at an end
    losses: [cross_entropy, likelihood]
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
# Rates that a search begins with differ by this factor or more: a smaller one would take long.
LEAST_STEP = 1.5


class GridError(CommandError):
    """A grid that cannot be run; the message names the entry and what is allowed."""


@dataclass(frozen=True)
class Grid:
    """Every mechanism with every loss and learning rate, in every trial.

    Trial t has the seed `seed + t` whatever the mechanism. So initial weights are the same, and for
    mechanisms of one bag size bags and shuffling too: mechanisms can be compared trial by trial.
    All learning rates of a trial see the same release. `train_rows` None takes all rows.

    A **setting** is a mechanism with a loss. Clean labels have the first of the `losses` only;
    without `losses` there is that of `training`. With `rate_limits` (least, most) a setting gets
    further learning rates while the best so far is at an end: see `next_rate`.

    >>> grid = Grid({"RR": {"epsilon": [1, 2]}}, learning_rates=(1e-3, 5e-3), trials=2)
    >>> len(grid), next(grid.descriptions())
    (8, {'kind': 'RR', 'epsilon': 1.0})
    """

    mechanisms: Mapping[str, Mapping[str, list[Any]]] = field(default_factory=dict)
    learning_rates: tuple[float, ...] = (1e-3, 5e-3)
    rate_limits: tuple[float, float] | None = None
    losses: tuple[str, ...] = ()
    trials: int = 3
    seed: int = 2023
    train_rows: int | None = None
    training: Mapping[str, Any] = field(default_factory=dict)
    eta: Mapping[str, Any] = field(default_factory=dict)
    datasets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            for name in ("mechanisms", "training", "eta", "datasets"):
                _mapping(getattr(self, name), name)
            rates = tuple(dict.fromkeys(_rates(self.learning_rates, "learning_rates")))
            object.__setattr__(self, "learning_rates", rates)
            if self.rate_limits is not None:
                limits = tuple(_rates(self.rate_limits, "rate_limits"))
                object.__setattr__(self, "rate_limits", limits)
                _check_search(sorted(rates), limits)
            losses: Any = self.losses
            if not isinstance(losses, (list, tuple)) or not {*map(type, losses)} <= {str}:
                raise ValueError(f"losses must be a list of names, not {losses!r}")
            object.__setattr__(self, "losses", tuple(dict.fromkeys(losses)))
            for name, entry in (("learning_rate", "learning_rates"), ("loss", "losses")):
                if getattr(self, entry) and name in self.training:
                    raise ValueError(
                        f"training: {name} {self.training[name]!r} would be ignored, for the grid"
                        f" has {entry}; put it there"
                    )
            checks.whole_number(self.trials, "trials")
            checks.whole_number(self.seed, "seed", least=0)
            if self.train_rows is not None:
                checks.whole_number(self.train_rows, "train_rows")
            check_names(self.datasets, NAMES, "datasets")
            for name in self.datasets:
                self.for_data(name)
            if not list(self.descriptions()):
                raise ValueError("mechanisms names none, and there is no default")
        except (ValueError, TypeError) as error:
            raise GridError(f"the grid cannot be run: {error}") from None

    def __len__(self) -> int:
        """How many runs, those that a search may add left out."""
        return len(list(self.settings())) * len(self.learning_rates) * self.trials

    def descriptions(self) -> Iterator[dict[str, Any]]:
        """The kind and the parameters of every mechanism, each mechanism once."""
        kinds = itertools.starmap(_descriptions, self.mechanisms.items())
        every = itertools.chain.from_iterable(kinds)
        yield from {tuple(description.items()): description for description in every}.values()

    def settings(self) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
        """Every mechanism with every loss: without noise or bags all losses are the same."""
        named = [{"loss": loss} for loss in self.losses] or [{}]
        for description in self.descriptions():
            for loss in named[:1] if description["kind"] == CLEAN else named:
                yield description, loss

    def for_data(self, name: str) -> "Grid":
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


def next_rate(losses: Mapping[float, float], limits: tuple[float, float]) -> float | None:
    """The learning rate to try next, or None where the search ends.

    `losses` are mean validation losses by rate. The next rate lies as far beyond the best, in
    logarithms, as its neighbour on the other side; rounded to three digits, so that it has one
    name. The search ends with a best rate between two others, or at the `limits`.

    >>> next_rate({0.001: 0.66, 0.004: 0.65}, limits=(1e-5, 0.1))
    0.016
    >>> next_rate({0.001: 0.66, 0.004: 0.65, 0.016: 0.69}, limits=(1e-5, 0.1)) is None
    True
    """
    rates = sorted(losses)
    best = min(rates, key=losses.__getitem__)
    ends = {rates[0]: rates[1], rates[-1]: rates[-2]}
    if best not in ends:
        return None
    rate = float(f"{best**2 / ends[best]:.3g}")
    return rate if limits[0] <= rate <= limits[1] else None


def _check_search(rates: list[float], limits: tuple[float, ...]) -> None:
    """Raise an error where a search within `limits` cannot begin with `rates`."""
    if len(limits) != 2 or not limits[0] <= rates[0] <= rates[-1] <= limits[1]:
        raise ValueError(
            "rate_limits must be the least and the largest rate of the search, with all"
            f" learning_rates between them, not {list(limits)}"
        )
    if len(rates) < 2 or min(b / a for a, b in itertools.pairwise(rates)) < LEAST_STEP:
        raise ValueError(
            f"a search between rate_limits begins with learning_rates of which each is at least"
            f" {LEAST_STEP:g} times the one before, not {rates}"
        )


def _rates(values: Any, name: str) -> list[float]:
    rates = [checks.real_number(rate, name, 0, 100) for rate in _numbers(values, name)]
    if 0 in rates:
        raise ValueError(f"{name}: a learning rate must be above 0, not {values!r}")
    return rates


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
