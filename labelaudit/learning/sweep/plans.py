"""What a sweep has to do: a grid's runs, held against the store before anything is trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from labelaudit import datasets
from labelaudit.datasets import Dataset
from labelaudit.learning.sweep import grid as grids
from labelaudit.learning.sweep.grid import Grid, GridError
from labelaudit.learning.sweep.store import Damaged, Record, Store, key

Configuration = dict[str, Any]

# Seconds for a row and an epoch on one core of a laptop, for want of runs in the store.
GUESSED_SECONDS = 3e-5


@dataclass(frozen=True)
class Plan:
    """What a sweep has to do: its runs by key, the records there are, the damaged files."""

    data: Dataset
    train_rows: int | None
    runs: dict[str, Configuration]
    done: dict[str, Record]
    damaged: tuple[Path, ...] = ()

    @property
    def to_do(self) -> list[str]:
        """Keys of the runs without a result."""
        return [name for name in self.runs if name not in self.done]

    def seconds(self) -> tuple[float, str]:
        """CPU-seconds of what is to do, and where the estimate comes from."""
        rows = len(self.data.train)
        todo = [_epochs(self.runs[name]) * rows for name in self.to_do]
        known = [record for record in self.done.values() if record.result.get("cpu_seconds")]
        if not known:
            return GUESSED_SECONDS * sum(todo), "a guess: no run of this grid is in the store"
        work = sum(_epochs(record.configuration) * rows for record in known)
        rate = sum(record.result["cpu_seconds"] for record in known) / work
        return rate * sum(todo), f"from {len(known):,} runs in the store"


def plan(grid: Grid, data: Dataset, store: Store, shard: tuple[int, int] = (1, 1)) -> Plan:
    """Compare a grid with the store, and change nothing in it. Damaged results are planned again.

    `shard` (i, n) is the i-th of n parts, equal in size whatever has been done already.

    >>> from labelaudit.learning.sweep.grid import Grid
    >>> from labelaudit.learning.sweep.store import Store
    >>> grid = Grid({"RR": {"epsilon": [1, 2]}}, learning_rates=(1e-3,), trials=3)
    >>> todo = plan(grid, load("fair", grid), Store("nothing-here-yet"))
    >>> len(todo.runs), len(todo.to_do)
    (6, 6)
    """
    own = grid.for_data(data.name)
    runs = {key(one, data.fingerprint): one for one in configurations(own, data)}
    part, parts = shard
    names = sorted(runs)[part - 1 :: parts]
    return compare({name: runs[name] for name in names}, data, own.train_rows, store)


def compare(
    runs: dict[str, Configuration], data: Dataset, train_rows: int | None, store: Store
) -> Plan:
    """The plan of given runs: those in the store, those to do, those whose file was damaged."""
    done, damaged = {}, []
    for name in runs:
        try:
            record = store.read(name)
        except Damaged:
            damaged.append(store.path(name))
        else:
            if record is not None:
                done[name] = record
    return Plan(data, train_rows, runs, done, tuple(damaged))


def load(name: str, grid: Grid) -> Dataset:
    """The data set that a grid is run on, with as many training rows as it says."""
    return datasets.load(name, train_rows=grid.for_data(name).train_rows)


def configurations(grid: Grid, data: Dataset) -> Iterator[Configuration]:
    """Every run as plain JSON values: mechanism, all settings of the training, trial and seed.

    A batch holds at least one bag, whatever the grid says.
    """
    settings = [settings_of(grid, data, learning_rate=rate) for rate in grid.learning_rates]
    for mechanism in grid.each():
        bag_size = mechanism.get("bag_size", 1)
        _refuse_large_bags(bag_size, len(data.train), settings[0])
        for one in settings:
            for trial in range(grid.trials):
                yield {
                    "task": "train",
                    "dataset": data.name,
                    "mechanism": mechanism,
                    # The published run has bags of 512 in a grid of batches of 256.
                    "settings": {**one, "batch_size": max(one["batch_size"], bag_size)},
                    "trial": trial,
                    "seed": grid.seed + trial,
                }


def _refuse_large_bags(bag_size: int, rows: int, settings: Mapping[str, Any]) -> None:
    """Refuse bags too few to train on some and hold out others."""
    if bag_size > rows:
        raise GridError(
            f"bag_size must be at most the number of training rows, {rows:,}, not {bag_size}"
        )
    if settings["validation"] and rows // bag_size < 2:
        raise GridError(
            f"bag_size {bag_size} leaves too few bags: {rows:,} training rows make one,"
            " and one more is needed for validation"
        )


def settings_of(grid: Grid, data: Dataset, part: str = "training", **others: Any) -> dict[str, Any]:
    """Every setting of a training, those that the grid does not mention too.

    The model is the paper's for Higgs and KDD12 and for their stand-ins, a small one for a table.
    `part` names what of the grid a refusal is about.
    """
    from labelaudit.learning.settings import Settings

    models = {"higgs": "higgs", "kdd12": "kdd12"}
    model = models.get(data.name.removesuffix("-like"), "small")
    chosen = {"model": model, "buckets": data.buckets, **grid.training, **others}
    known = set(Settings.__dataclass_fields__)
    if strange := chosen.keys() - known:
        raise GridError(grids.unknown(strange, known, f"the grid's {part}"))
    try:
        return asdict(Settings(**chosen))
    except (TypeError, ValueError) as error:
        raise GridError(f"the grid's {part} cannot be run: {error}") from None


def _epochs(configuration: Mapping[str, Any]) -> int:
    return configuration.get("settings", {}).get("epochs", 1)
