"""A sweep: every run of a grid that the store does not hold yet, here or on a cluster.

The process that sweeps hands out runs and writes their results; a worker only trains, so it needs
the data but not the store. joblib does the handing out: local processes, an existing Dask
cluster, or whatever `joblib.parallel_config` is in force.
"""

from __future__ import annotations

import contextlib
import platform
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any

from labelaudit import datasets
from labelaudit.checks import Floats
from labelaudit.command_line import CommandError
from labelaudit.datasets import Dataset
from labelaudit.learning.sweep import grid as grids
from labelaudit.learning.sweep.engines import deaths
from labelaudit.learning.sweep.plans import Configuration, Plan
from labelaudit.learning.sweep.store import Record, Store, key

Work = Callable[..., dict[str, Any]]

VERSIONS = ("labelaudit", "numpy", "torch")
MEASURED = (
    *("auc", "log_loss", "validation_loss", "best_epoch", "epochs_run"),
    *("dropped", "diverged", "seconds", "curve"),
)


class SweepFailed(CommandError):
    """Some runs failed or the workers are gone; what was finished is stored."""

    status = 1


def train_once(
    data: Dataset, configuration: Configuration, *, checkpoints: Path | None = None
) -> dict[str, Any]:
    """One training, as the store keeps it; with a folder of `checkpoints` it survives a kill."""
    from labelaudit.learning.training import Settings, train

    started = time.process_time()
    checkpoint = None
    if checkpoints is not None:
        checkpoint = _checkpoint(checkpoints, key(configuration, data.fingerprint))
    with warnings.catch_warnings():
        # That a run diverged is part of its result.
        warnings.simplefilter("ignore", RuntimeWarning)
        outcome = train(
            data.train,
            grids.mechanism(configuration["mechanism"]),
            Settings(**configuration["settings"]),
            seed=configuration["seed"],
            test=data.test,
            checkpoint=checkpoint,
        )
    measured = {name: getattr(outcome, name) for name in MEASURED}
    return measured | {"cpu_seconds": time.process_time() - started}


def _checkpoint(folder: Path, name: str) -> Path:
    return folder / f"{name}.pt"


def _forget_checkpoint(folder: Path | None, name: str) -> None:
    """Remove a run's checkpoint, and what a kill has left of one that was being written."""
    if folder is not None:
        for path in folder.glob(f"{name}.pt*"):
            path.unlink(missing_ok=True)


def run(
    todo: Plan,
    store: Store,
    *,
    work: Work = train_once,
    given: Floats | None = None,
    engine: contextlib.AbstractContextManager[Any] | None = None,
    checkpoints: Path | None = None,
    progress: bool = False,
) -> list[Record]:
    """Do what is to do, store each result as it comes, and give all records of the plan.

    `work` takes the data set, which each worker loads, and a configuration; or, in place of the
    data set, the array `given`, which joblib sends once, and not with every run, if it is large.

    The order is random. So the time left is estimated from runs like those to come, half a grid
    already shows all of it, and two sweeps on one store seldom do the same run at once. Without
    an `engine`, joblib's configuration in force decides where the runs take place. With a folder
    of `checkpoints`, which all workers see, a training cut short goes on where it stood; its
    checkpoint is removed once the result is stored.

    >>> import tempfile
    >>> from labelaudit.learning.sweep import load, plan
    >>> from labelaudit.learning.sweep.grid import Grid
    >>> from labelaudit.learning.sweep.store import Store
    >>> small = {"train_rows": 200, "training": {"epochs": 1}}
    >>> grid = Grid({"RR": {"epsilon": [1]}}, learning_rates=(1e-3,), trials=2, **small)
    >>> data = load("fair", grid)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     records = run(plan(grid, data, store), store)
    ...     len(records), len(plan(grid, data, store).to_do)
    (2, 0)
    """
    if checkpoints is not None:
        work = partial(work, checkpoints=checkpoints)
    for path in todo.damaged:
        store.set_aside(path.stem)
    order = todo.to_do
    random.shuffle(order)
    records, failed = dict(todo.done), list[str]()
    bar = _bar(len(todo.runs), len(todo.done), progress)
    with bar, engine or contextlib.nullcontext():
        try:
            for name, answer in _answers(todo, order, store, work, given):
                if "error" in answer:
                    failed.append(f"{_named(todo.runs[name])}: {answer['error']}")
                else:
                    record = Record(todo.runs[name], todo.data.fingerprint, **answer)
                    store.write(record)
                    records[name] = record
                    _forget_checkpoint(checkpoints, name)
                bar.update()
        except deaths() as error:
            raise SweepFailed(
                f"a worker process died ({_first_sentence(error)}); the {len(records):,} results"
                f" there are, of {len(todo.runs):,}, are safe; the same command goes on from there"
            ) from None
    if failed:
        raise SweepFailed(f"{len(failed):,} of {len(order):,} runs failed; {failed[0]}")
    for name in todo.runs.keys() - records.keys():
        found = store.read(name)
        if found is not None:
            records[name] = found
    return [records[name] for name in todo.runs if name in records]


def _first_sentence(error: BaseException) -> str:
    return str(error).splitlines()[0].split(". ")[0]


def _answers(
    todo: Plan, order: list[str], store: Store, work: Work, given: Floats | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    import joblib

    place = (todo.data.name, todo.train_rows, todo.data.fingerprint)
    # What another sweep on this store has finished meanwhile is not begun.
    tasks = (
        joblib.delayed(_answer)(name, work, todo.runs[name], place, given)
        for name in order
        if name not in store
    )
    return joblib.Parallel(return_as="generator_unordered")(tasks)


def _answer(
    name: str,
    work: Work,
    configuration: Configuration,
    place: tuple[str, int | None, str],
    given: Floats | None,
) -> tuple[str, dict[str, Any]]:
    """What a worker does. An error is an answer too, so that it does not end the sweep."""
    try:
        result = work(_data(*place) if given is None else given, configuration)
    except Exception as error:
        return name, {"error": f"{type(error).__name__}: {error}"}
    return name, {"result": result, "made": _made()}


@lru_cache(maxsize=2)
def _data(name: str, train_rows: int | None, fingerprint: str) -> Dataset:
    """The data, loaded once a process; on another machine they must be the same."""
    data = datasets.load(name, train_rows=train_rows)
    if data.fingerprint != fingerprint:
        raise ValueError(
            f"this worker's {name} is not the sweep's (fingerprint {data.fingerprint[:12]},"
            f" expected {fingerprint[:12]}): prepare it from the same file on every machine"
        )
    return data


def _made() -> dict[str, Any]:
    versions = {name: metadata.version(name) for name in VERSIONS}
    return {
        "versions": {"python": platform.python_version(), **versions},
        "device": _device(),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _device() -> str:
    """Where a training takes place if nobody says: `training.train` takes a GPU if there is one."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return f"cuda ({torch.cuda.get_device_name()})"
    return "cpu"


def _bar(total: int, done: int, shown: bool) -> Any:
    from tqdm import tqdm

    # smoothing 0: the rate of all runs so far, not of the last few.
    return tqdm(total=total, initial=done, smoothing=0, unit="run", disable=not shown)


def _named(configuration: Mapping[str, Any]) -> str:
    described = dict(configuration["mechanism"])
    kind = described.pop("kind")
    parameters = ", ".join(f"{name} {value:g}" for name, value in described.items())
    return f"{kind} ({parameters})" if parameters else kind
