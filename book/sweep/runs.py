"""A sweep: a grid's runs are compared with the store, and those it lacks are done and stored.

The process that sweeps hands out runs and writes their results. A worker only trains, so it needs
the data but not the store.
"""

import contextlib
import itertools
import math
import platform
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from book.sweep import grid as grids
from book.sweep.grid import Grid, GridError
from book.sweep.store import Damaged, Record, Store, key
from labelaudit import datasets
from labelaudit.checks import Floats
from labelaudit.command_line import CommandError
from labelaudit.datasets import Dataset
from labelaudit.engines import Engine, deaths
from labelaudit.files import canonical

Configuration = dict[str, Any]
Work = Callable[..., dict[str, Any]]
Answer = tuple[str, dict[str, Any]]

# Seconds for a row and an epoch on one core of a laptop, used while the store has no runs.
GUESSED_SECONDS = 3e-5
# Seconds after which nobody is still writing a checkpoint.
LONGEST_WRITE = 3600
VERSIONS = ("labelaudit", "numpy", "torch")


class SweepFailed(CommandError):
    """Some runs failed or the workers are gone; what was finished is stored."""

    status = 1


@dataclass(frozen=True)
class Schedule:
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

    @property
    def middle_rate(self) -> float:
        """The median of the learning rates there are."""
        rates = {run.get("settings", {}).get("learning_rate", 1.0) for run in self.runs.values()}
        return sorted(rates)[len(rates) // 2]

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


def load(name: str, grid: Grid) -> Dataset:
    """The data set that a grid is run on, with as many training rows as it says.

    Results are kept under the fingerprint of the data for ever, so prepared arrays are verified.
    """
    datasets.verify(name)
    return datasets.load(name, train_rows=grid.for_data(name).train_rows)


def configurations(grid: Grid, data: Dataset) -> Iterator[Configuration]:
    """Every run as plain JSON values: mechanism, all settings of the training, trial and seed.

    A batch holds at least one bag, whatever the grid says. What a search adds is in a `plan`.
    """
    for mechanism, loss in grid.settings():
        bag_size = mechanism.get("bag_size", 1)
        for rate in grid.learning_rates:
            settings = training_settings(grid, data, learning_rate=rate, **loss)
            _check_bags(bag_size, len(data.train), settings)
            settings["batch_size"] = max(settings["batch_size"], bag_size)
            for trial in range(grid.trials):
                yield {
                    "task": "train",
                    "dataset": data.name,
                    "mechanism": mechanism,
                    "settings": settings,
                    "trial": trial,
                    "seed": grid.seed + trial,
                }


def plan(grid: Grid, data: Dataset, store: Store, shard: tuple[int, int] = (1, 1)) -> Schedule:
    """Compare a grid with the store, and change nothing in it. Damaged results are planned again.

    A search plans a further learning rate for each setting whose runs so far are all done, so a
    plan grows with the results: `complete` plans again until nothing is to do. `shard` (i, n) is
    the i-th of n equal parts, whatever has been done already; of settings, where there is a search.

    >>> from book.sweep.grid import Grid
    >>> from book.sweep.store import Store
    >>> grid = Grid({"RR": {"epsilon": [1, 2]}}, learning_rates=(1e-3,), trials=3)
    >>> schedule = plan(grid, load("fair", grid), Store("nothing-here-yet"))
    >>> len(schedule.runs), len(schedule.to_do)
    (6, 6)
    """
    own = grid.for_data(data.name)
    part, parts = shard
    keyed = {key(run, data.fingerprint): run for run in configurations(own, data)}
    units = {name: _setting(run) if own.rate_limits else name for name, run in keyed.items()}
    chosen = set(sorted(set(units.values()))[part - 1 :: parts])
    runs = [keyed[name] for name in sorted(keyed) if units[name] in chosen]
    schedule = compare(runs, own, data, store)
    while own.rate_limits is not None:
        further = list(_further(schedule, own.rate_limits))
        if not further:
            break
        schedule = compare([*schedule.runs.values(), *further], own, data, store)
    return schedule


def compare(runs: Iterable[Configuration], grid: Grid, data: Dataset, store: Store) -> Schedule:
    """Which of the runs have a result in the store."""
    keyed = {key(run, data.fingerprint): run for run in runs}
    done, damaged = {}, []
    for name in keyed:
        try:
            if (record := store.read(name)) is not None:
                done[name] = record
        except Damaged:
            damaged.append(store.path(name))
    return Schedule(data, grid.train_rows, keyed, done, tuple(damaged))


def _setting(run: Configuration) -> str:
    """The name of a setting, a mechanism with a loss: a search looks at all its runs together."""
    return canonical([run["mechanism"], run["settings"]["loss"]])


def _further(schedule: Schedule, limits: tuple[float, float]) -> Iterator[Configuration]:
    """The next learning rate of each setting that is done and whose best rate is at an end.

    The best has the least mean loss on *released* validation labels, infinite for a run without.
    """
    settings: dict[str, dict[float, list[str]]] = {}
    for name, run in schedule.runs.items():
        rates = settings.setdefault(_setting(run), {})
        rates.setdefault(run["settings"]["learning_rate"], []).append(name)
    for rates in settings.values():
        if all(name in schedule.done for names in rates.values() for name in names):
            losses = {
                rate: sum(validation_loss(schedule.done[name].result) for name in names)
                for rate, names in rates.items()
            }
            if (rate := grids.next_rate(losses, limits)) is not None:
                for name in next(iter(rates.values())):
                    run = schedule.runs[name]
                    yield {**run, "settings": {**run["settings"], "learning_rate": rate}}


def validation_loss(result: Mapping[str, Any]) -> float:
    """The loss on released validation labels, infinite where there is none."""
    loss = result.get("validation_loss")
    return math.inf if loss is None or math.isnan(loss) else loss


def _check_bags(bag_size: int, rows: int, settings: Mapping[str, Any]) -> None:
    """Raise an error where there are too few bags to train on some and hold out others."""
    if bag_size > rows:
        raise GridError(
            f"bag_size must be at most the number of training rows, {rows:,}, not {bag_size}"
        )
    if settings["validation"] and rows // bag_size < 2:
        raise GridError(
            f"bag_size {bag_size} leaves too few bags: {rows:,} training rows make one,"
            " and one more is needed for validation"
        )


def training_settings(
    grid: Grid, data: Dataset, part: str = "training", **others: Any
) -> dict[str, Any]:
    """Every setting of a training, with the paper's model for Higgs, KDD12 and their stand-ins.

    `part` is the entry of the grid that an error message names.
    """
    from labelaudit.learning.training import TrainingSettings

    name = data.name.removesuffix("-like")
    model = name if name in ("higgs", "kdd12") else "small"
    chosen = {"model": model, "buckets": data.buckets, **grid.training, **others}
    grids.check_names(chosen, TrainingSettings.__dataclass_fields__, f"the grid's {part}")
    try:
        return asdict(TrainingSettings(**chosen))
    except (TypeError, ValueError) as error:
        raise GridError(f"the grid's {part} cannot be run: {error}") from None


def _epochs(configuration: Mapping[str, Any]) -> int:
    return configuration.get("settings", {}).get("epochs", 1)


def train_once(
    data: Dataset, configuration: Configuration, *, checkpoints: Path | None = None
) -> dict[str, Any]:
    """One training, as the store keeps it; with a folder of `checkpoints` it survives a kill."""
    from labelaudit.learning.training import TrainingSettings, train

    started = time.process_time()
    checkpoint = checkpoints and checkpoints / f"{key(configuration, data.fingerprint)}.pt"
    with warnings.catch_warnings():
        # That a run diverged is part of its result.
        warnings.simplefilter("ignore", RuntimeWarning)
        outcome = train(
            data.train,
            grids.mechanism(configuration["mechanism"]),
            TrainingSettings(**configuration["settings"]),
            seed=configuration["seed"],
            test=data.test,
            checkpoint=checkpoint,
        )
    result = {**vars(outcome), "cpu_seconds": time.process_time() - started}
    del result["settings"], result["model"]
    return result


def complete(
    grid: Grid, data: Dataset, store: Store, shard: tuple[int, int] = (1, 1), **options: Any
) -> list[Record]:
    """Plan and run until nothing is to do; the options are those of `run`."""
    while (schedule := plan(grid, data, store, shard)).to_do:
        run(schedule, store, **options)
    return list(schedule.done.values())


def run(
    schedule: Schedule,
    store: Store,
    *,
    work: Work = train_once,
    values: Floats | None = None,
    engine: Engine | None = None,
    checkpoints: Path | None = None,
    progress: bool = False,
) -> list[Record]:
    """Do what is to do, store each result as it comes, and return all records of the schedule.

    `work` takes the data set, which each worker loads, or in its place the array `values`, which is
    sent to the workers; and a configuration. The first trial comes first, and in it the learning
    rates in the middle: a part of a grid already shows all settings. Apart from that the order is
    random, so that two sweeps on one store seldom do the same run at once. With a folder of
    `checkpoints`, which all workers see, an interrupted training continues where it was.

    >>> import tempfile
    >>> small = {"train_rows": 200, "training": {"epochs": 1}}
    >>> grid = Grid({"RR": {"epsilon": [1]}}, learning_rates=(1e-3,), trials=2, **small)
    >>> data = load("fair", grid)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     records = run(plan(grid, data, store), store)
    ...     len(records), len(plan(grid, data, store).to_do)
    (2, 0)
    """
    from tqdm import tqdm  # tables of a sweep do without it

    engine = engine or Engine()
    if checkpoints is not None:
        work = partial(work, checkpoints=checkpoints)
    for path in schedule.damaged:
        store.set_aside(path.stem)
    order, data = schedule.to_do, schedule.data
    random.shuffle(order)
    order.sort(key=lambda name: _turn(schedule.runs[name], schedule.middle_rate))
    source: Any = (data.name, schedule.train_rows, data.fingerprint)
    if values is not None:
        source = engine.send(values)

    def submit(name: str) -> Future[Answer]:
        return engine.executor.submit(_answer, name, work, schedule.runs[name], source)

    # What another sweep on this store has finished meanwhile is not begun.
    names = (name for name in order if name not in store)
    records, failed = dict(schedule.done), list[str]()
    total = len(schedule.runs)
    # With smoothing 0 the rate is that of all runs so far, not of the last ones.
    bar = tqdm(total=total, initial=len(records), smoothing=0, unit="run", disable=not progress)
    try:
        for name, answer in _answers(names, submit, engine.workers):
            if "error" in answer:
                title = _title(**schedule.runs[name]["mechanism"])
                failed.append(f"{title}: {answer['error']}")
            else:
                records[name] = Record(schedule.runs[name], data.fingerprint, **answer)
                store.write(records[name])
                if checkpoints is not None:
                    _remove_checkpoint(checkpoints / f"{name}.pt")
            bar.update()
    except deaths() as error:
        first_sentence = str(error).splitlines()[0].split(". ")[0]
        raise SweepFailed(
            f"a worker process died ({first_sentence}); the {len(records):,} results there are,"
            f" of {total:,}, are safe; the same command goes on from there"
        ) from None
    finally:
        bar.close()
    if failed:
        raise SweepFailed(f"{len(failed):,} of {len(order):,} runs failed; {failed[0]}")
    every = [records.get(name) or store.read(name) for name in schedule.runs]
    return [record for record in every if record is not None]


def _remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint, and what a writer that was killed has left of it.

    Another sweep may be writing the same checkpoint now, so only an old part of one is removed.
    """
    path.unlink(missing_ok=True)
    for part in path.parent.glob(f".{path.name}.*.partial"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - part.stat().st_mtime > LONGEST_WRITE:
                part.unlink()


def _turn(run: Configuration, middle: float) -> tuple[int, float]:
    """Smaller for runs that come earlier; advantages have neither trials nor rates."""
    rate = run.get("settings", {}).get("learning_rate", middle)
    return run.get("trial", 0), abs(math.log(rate / middle))


def _answers(
    names: Iterator[str], submit: Callable[[str], Future[Answer]], workers: int
) -> Iterator[Answer]:
    """The workers' answers as they come; no more runs are handed out than keep all workers busy."""
    most = 2 * workers if workers > 1 else 1
    pending: set[Future[Answer]] = set()
    try:
        while True:
            for name in itertools.islice(names, most - len(pending)):
                pending.add(submit(name))
            if not pending:
                return
            finished, pending = wait(pending, return_when=FIRST_COMPLETED)
            # Answers come before the news that a worker died, so that they are stored.
            for future in sorted(finished, key=lambda future: future.exception() is not None):
                yield future.result()
    finally:
        for future in pending:
            future.cancel()


def _answer(name: str, work: Work, configuration: Configuration, source: Any) -> Answer:
    """What a worker does. An error is an answer too, so that it does not end the sweep."""
    try:
        if isinstance(source, tuple):
            source = _data(*source)
        elif isinstance(source, Path):
            source = np.load(source, mmap_mode="r")
        result = work(source, configuration)
    except Exception as error:
        return name, {"error": f"{type(error).__name__}: {error}"}
    return name, {"result": result, "made": _made()}


@lru_cache(maxsize=2)
def _data(name: str, train_rows: int | None, fingerprint: str) -> Dataset:
    """The data, loaded once per process; on another machine they must be the same."""
    datasets.verify(name)
    data = datasets.load(name, train_rows=train_rows)
    if data.fingerprint != fingerprint:
        raise ValueError(
            f"this worker's {name} is not the sweep's (fingerprint {data.fingerprint[:12]},"
            f" expected {fingerprint[:12]}): prepare it from the same file on every machine"
        )
    return data


def _made() -> dict[str, Any]:
    """The versions, device and time that made a result."""
    versions = {name: metadata.version(name) for name in VERSIONS}
    torch, device = sys.modules.get("torch"), "cpu"
    if torch is not None and torch.cuda.is_available():  # and then `train` uses it
        device = f"cuda ({torch.cuda.get_device_name()})"
    return {
        "versions": {"python": platform.python_version(), **versions},
        "device": device,
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _title(kind: str, **parameters: float) -> str:
    values = ", ".join(f"{name} {value:g}" for name, value in parameters.items())
    return f"{kind} ({values})" if values else kind
