"""Which runs a sweep consists of: mechanisms, losses, learning rates, trials; often from a file.

A grid file is YAML. It must name mechanisms; every other entry has the default of `Grid`:

    {trials: 3, train_rows: 40000, learning_rates: [2.5e-4, 1.0e-3, 4.0e-3]}
    rate_limits: [1.0e-6, 0.1]      # search on, setting by setting, while the best is at an end
    losses: [cross_entropy, likelihood]
    mechanisms: {clean: {}, RR: {epsilon: [0.5, 1]}, LLP+Geom: {bag_size: [2, 8], epsilon: [1]}}
    training: {epochs: 3, batch_size: 512}
    eta: {epochs: 10}               # what differs from ETA for the network that estimates eta
    datasets: {kdd12: {training: {epochs: 2}}}     # what differs for one data set
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from labelaudit import checks
from labelaudit.command_line import CommandError
from labelaudit.datasets import NAMES
from labelaudit.files import canonical
from labelaudit.mechanisms import KINDS, Mechanism

# Training on the labels themselves, through no mechanism.
CLEAN = "clean"
# How the network that estimates eta differs from the trainings: an audit needs a good one, however
# short the trainings are. It stops when its validation loss does, after twelve epochs at most.
ETA = {"learning_rate": 1e-3, "batch_size": 256, "epochs": 12}
# The parameters of each kind that a grid can name: those whose parameters are numbers.
PARAMETERS: dict[str, tuple[str, ...]] = {CLEAN: ()} | {
    name: kind.parameters
    for name, kind in KINDS.items()
    if kind.parameters and set(kind.parameters) <= {"bag_size", "epsilon"}
}


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Every mechanism with every loss and learning rate, in every trial.

    Trial t has the seed `seed + t` whatever the mechanism. So initial weights are the same, and for
    mechanisms of one bag size bags and shuffling too: mechanisms can be compared trial by trial.
    All learning rates of a trial see the same release. `train_rows` None takes all rows.

    A **setting** is a mechanism with a loss. Clean labels have the first of the `losses` only;
    without `losses` there is that of `training`. With `rate_limits` (least, most) a setting gets
    further learning rates while the best so far is at an end: see `next_rate`.

    >>> grid = Grid(mechanisms={"RR": {"epsilon": [1, 2]}}, learning_rates=(1e-3,), trials=2)
    >>> len(grid), grid.descriptions()[0]
    (4, {'kind': 'RR', 'epsilon': 1.0})
    """

    mechanisms: Mapping[str, Mapping[str, list[Any]]] = field(default_factory=dict)
    learning_rates: tuple[float, ...] = (1e-3, 5e-3)
    rate_limits: tuple[float, ...] | None = None
    losses: tuple[str, ...] = ()
    trials: int = 3
    seed: int = 2023
    train_rows: int | None = None
    training: Mapping[str, Any] = field(default_factory=dict)
    eta: Mapping[str, Any] = field(default_factory=dict)
    datasets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make every mechanism once, which checks it; trainings check their settings."""
        try:
            self._check()
        except (ValueError, TypeError) as error:
            raise CommandError(f"the grid cannot be run: {error}") from None

    def _check(self) -> None:
        for name in ("mechanisms", "training", "eta", "datasets"):
            if not isinstance(value := getattr(self, name), Mapping):
                raise ValueError(f"{name} must be a mapping of names to values, not {value!r}")
        for name in ("learning_rates", "rate_limits"):
            if (values := getattr(self, name)) is not None:
                rates = [checks.real_number(rate, name, 1e-12, 100) for rate in _list(values, name)]
                object.__setattr__(self, name, tuple(dict.fromkeys(rates)))
        if self.losses != ():
            object.__setattr__(self, "losses", tuple(dict.fromkeys(_list(self.losses, "losses"))))
        for name, entry in (("learning_rate", "learning_rates"), ("loss", "losses")):
            if getattr(self, entry) and name in self.training:
                raise ValueError(f"{name} in training would be ignored; put it in {entry}")
        ends = min(self.learning_rates), max(self.learning_rates)
        if (limits := self.rate_limits) and not (
            len(limits) == 2 and limits[0] <= ends[0] < ends[1] <= limits[1]
        ):
            raise ValueError(
                "rate_limits must be the least and the largest rate of a search, around two or more"
                f" learning_rates, not {limits} around {self.learning_rates}"
            )
        checks.whole_number(self.trials, "trials")
        checks.whole_number(self.seed, "seed", least=0)
        if self.train_rows is not None:
            checks.whole_number(self.train_rows, "train_rows")
        check_names(self.datasets, NAMES, "datasets")
        for name in self.datasets:
            self.for_data(name)
        if not self.descriptions():
            raise ValueError("mechanisms names none, and there is no default")

    def __len__(self) -> int:
        """How many runs, those that a search may add left out."""
        return len(list(self.settings())) * len(self.learning_rates) * self.trials

    def descriptions(self) -> list[dict[str, Any]]:
        """The kind and the parameters of every mechanism, each mechanism once."""
        described = {}
        for kind, values in self.mechanisms.items():
            check_names([kind], PARAMETERS, "mechanisms")
            names = PARAMETERS[kind]
            if set(values or ()) != set(names):
                raise ValueError(f"{kind} takes a list of each of {names}, not {values!r}")
            lists = [_list(values[name], f"{kind} {name}") for name in names]
            for numbers in itertools.product(*lists):
                description = describe(kind, dict(zip(names, numbers, strict=True)))
                described[canonical(description)] = description
        return list(described.values())

    def settings(self) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
        """Every mechanism with every loss: without noise or bags all losses are the same."""
        losses = [{"loss": loss} for loss in self.losses] or [{}]
        for description in self.descriptions():
            for loss in losses[:1] if description["kind"] == CLEAN else losses:
                yield description, loss

    def for_data(self, name: str) -> "Grid":
        """The grid as it is for one data set."""
        own = dict(self.datasets.get(name, {}))
        for part in ("training", "eta"):
            own[part] = {**getattr(self, part), **own.get(part, {})}
        return replace(self, datasets={}, **own)


def read_grid(path: str | Path) -> Grid:
    """A grid from a YAML file."""
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        why = " ".join(str(error).split())
        raise CommandError(f"cannot read the grid {path}: {why}") from None
    if not isinstance(content, dict):
        raise CommandError(f"the grid {path} must be a mapping such as trials: 3, not {content!r}")
    check_names(content, Grid.__dataclass_fields__, str(path))
    return Grid(**content)


def mechanism(description: Mapping[str, Any]) -> Mechanism | None:
    """The mechanism of a description, or None for clean labels."""
    parameters = dict(description)
    kind = parameters.pop("kind")
    return None if kind == CLEAN else KINDS[kind].make(**parameters)


def describe(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """A kind with its parameters out of `values`, checked."""
    made = mechanism({"kind": kind, **{name: values[name] for name in PARAMETERS[kind]}})
    if made is not None and made.epsilon == 0:
        raise ValueError(f"{kind}: at epsilon 0 there is nothing to learn from")
    return {"kind": kind, **{name: getattr(made, name) for name in PARAMETERS[kind]}}


def next_rate(losses: Mapping[float, float], limits: tuple[float, ...]) -> float | None:
    """The learning rate to try next, or None where the search ends.

    `losses` are mean validation losses by rate. The next rate lies as far beyond the best, in
    logarithms, as its neighbour on the other side; rounded to three digits, so that it has one
    name. The search ends with a best rate between two others, or at the `limits`.

    >>> next_rate({0.001: 0.66, 0.004: 0.65}, limits=(1e-5, 0.1))
    0.016
    """
    rates = sorted(losses)
    best = min(rates, key=losses.__getitem__)
    ends = {rates[0]: rates[1], rates[-1]: rates[-2]}
    if best not in ends:
        return None
    rate = float(f"{best**2 / ends[best]:.3g}")
    return rate if limits[0] <= rate <= limits[1] else None


def _list(values: object, name: str) -> list[Any]:
    if not isinstance(values, list | tuple) or not values:
        raise ValueError(f"{name} must be a list, not {values!r}")
    # YAML reads 1e-4 as text.
    texts = [isinstance(value, str) and not value.isidentifier() for value in values]
    return [float(value) if text else value for value, text in zip(values, texts, strict=True)]


def check_names(names: Iterable[str], allowed: Iterable[str], where: str) -> None:
    """Raise an error where a name means nothing."""
    for name in names:
        if name not in (known := sorted(allowed)):
            raise CommandError(f"{where}: {name!r} is unknown; there are {', '.join(known)}")
