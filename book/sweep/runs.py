"""A sweep: a grid's runs are compared with the store, and those it lacks are done and stored.

The process that sweeps hands out runs and writes their results. A worker only trains, so it needs
the data but not the store.
"""

import contextlib
import itertools
import json
import math
import platform
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import lru_cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from book.sweep.engine import Engine, Work, WorkerDied, local
from book.sweep.grid import Grid, mechanism, next_rate
from book.sweep.store import Record, Store, key
from labelaudit import datasets
from labelaudit.command_line import CommandError
from labelaudit.datasets import Dataset
from labelaudit.files import canonical


class SweepFailed(CommandError):
    """Some runs failed or the workers are gone; what was finished is stored."""

    status = 1


def load(name: str, grid: Grid) -> Dataset:
    """The data set that a grid is run on, verified: results are kept under its fingerprint."""
    datasets.verify(name)
    return datasets.load(name, train_rows=grid.for_data(name).train_rows)


def configurations(grid: Grid, data: Dataset) -> Iterator[dict[str, Any]]:
    """Every run as plain JSON values: mechanism, all settings of the training, trial and seed.

    A batch holds at least one bag, whatever the grid says. What a search adds is in a `plan`.
    """
    grid, rows = grid.for_data(data.name), len(data.train)
    for description, loss in grid.settings():
        settings = training_settings(data, "training", **grid.training, **loss)
        bag_size = description.get("bag_size", 1)
        if rows // bag_size < 1 + (settings["validation"] > 0):
            raise CommandError(f"bag_size {bag_size} leaves too few bags of {rows:,} training rows")
        settings["batch_size"] = max(settings["batch_size"], bag_size)
        for rate, trial in itertools.product(grid.learning_rates, range(grid.trials)):
            yield {
                "task": "train",
                "dataset": data.name,
                "mechanism": description,
                "settings": {**settings, "learning_rate": rate},
                "trial": trial,
                "seed": grid.seed + trial,
            }


def training_settings(data: Dataset, entry: str, **chosen: Any) -> dict[str, Any]:
    """Every setting of a training, with the paper's model for Higgs, KDD12 and their stand-ins."""
    from labelaudit.learning.training import TrainingSettings

    name = data.name.removesuffix("-like")
    model = name if name in ("higgs", "kdd12") else "small"
    try:
        return asdict(TrainingSettings(**{"model": model, "buckets": data.buckets, **chosen}))
    except (TypeError, ValueError) as error:
        raise CommandError(f"the grid's {entry} cannot be run: {error}") from None


def plan(grid: Grid, data: Dataset, store: Store, shard: tuple[int, int] = (1, 1)) -> pd.DataFrame:
    """The runs of a grid with their state in the store, in which nothing is changed.

    A search plans a further learning rate for each setting whose runs so far are all done, so a
    plan grows with the results: `complete` plans again until nothing is to do. `shard` (i, n) is
    the i-th of n equal parts, whatever has been done already; of settings, where there is a search.
    """
    limits, (part, parts) = grid.for_data(data.name).rate_limits, shard
    runs = compared(configurations(grid, data), data, store)
    units = runs["setting"] if limits else runs.index.to_series()
    runs = runs[units.isin(sorted(set(units))[part - 1 :: parts])]
    while limits and (further := list(_further(runs, limits))):
        runs = pd.concat([runs, compared(further, data, store)])
    return runs


def compared(runs: Iterable[Mapping[str, Any]], data: Dataset, store: Store) -> pd.DataFrame:
    """A row for each run by its key: its configuration as text, and what the store has of it.

    `state` is done, missing or damaged. `loss`, on released validation labels, is infinite for a
    run that is done without one, and not a number for a run that is not done.
    """
    rows = {}
    for run in runs:
        name, settings = key(run, data.fingerprint), run.get("settings", {})
        if (record := store.read(name)) is not None:
            loss = record.result.get("validation_loss")
            stored = {
                "state": "done",
                "loss": math.inf if loss is None or math.isnan(loss) else loss,
                "cpu_seconds": record.result.get("cpu_seconds"),
            }
        else:
            state = "damaged" if name in store else "missing"
            stored = {"state": state, "loss": math.nan, "cpu_seconds": math.nan}
        rows[name] = {
            # A mechanism with a loss: a search looks at all its runs together.
            "setting": canonical([run["mechanism"], settings.get("loss")]),
            "learning_rate": settings.get("learning_rate", 1.0),
            "trial": run.get("trial", 0),
            "configuration": canonical(run),
            **stored,
        }
    return pd.DataFrame.from_dict(rows, orient="index").sort_index()


def _further(runs: pd.DataFrame, limits: tuple[float, ...]) -> Iterator[dict[str, Any]]:
    """The next learning rate of each setting that is done and whose best rate is at an end."""
    losses = runs.groupby(["setting", "learning_rate"])["loss"].agg(lambda loss: sum(loss))
    for setting, by_rate in losses.groupby(level="setting"):
        rates = by_rate.droplevel("setting").to_dict()
        if by_rate.notna().all() and (further := next_rate(rates, limits)) is not None:
            similar = (runs["setting"] == setting) & (runs["learning_rate"] == min(rates))
            for run in map(json.loads, runs.loc[similar, "configuration"]):
                yield {**run, "settings": {**run["settings"], "learning_rate": further}}


def train_once(
    data: Dataset, configuration: Mapping[str, Any], *, checkpoints: Path | None = None
) -> dict[str, Any]:
    """One training, as the store keeps it; with a folder of `checkpoints` it survives a kill."""
    from labelaudit.learning.training import TrainingSettings, train

    started = time.process_time()
    checkpoint = checkpoints and checkpoints / f"{key(configuration, data.fingerprint)}.pt"
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        # That a run diverged is part of its result.
        outcome = train(
            data.train,
            mechanism(configuration["mechanism"]),
            TrainingSettings(**configuration["settings"]),
            seed=configuration["seed"],
            test=data.test,
            checkpoint=checkpoint,
        )
    result = {**vars(outcome), "cpu_seconds": time.process_time() - started}
    return {name: result[name] for name in result.keys() - {"settings", "model"}}


def complete(
    grid: Grid,
    data: Dataset,
    store: Store,
    *,
    shard: tuple[int, int] = (1, 1),
    work: Work = train_once,
    **options: Any,
) -> pd.DataFrame:
    """Plan and run until nothing is to do; the last plan. The options are those of `run`."""
    source = (data.name, grid.for_data(data.name).train_rows, data.fingerprint)
    while (runs := plan(grid, data, store, shard))["state"].ne("done").any():
        run(runs, data, store, work=work, source=source, **options)
    return runs


def run(
    runs: pd.DataFrame,
    data: Dataset,
    store: Store,
    *,
    work: Work,
    source: Any,
    engine: Engine | None = None,
    checkpoints: Path | None = None,
    progress: bool = False,
) -> None:
    """Do what is not done, and store each result as it comes.

    `source` says what data a worker loads, or is the array it is sent in their place. The first
    trial comes first, and in it the learning rates in the middle: a part of a grid already shows
    all settings. Apart from that the order is random, so that two sweeps on one store seldom do the
    same run at once. With a folder of `checkpoints`, which all workers see, an interrupted training
    continues where it was.
    """
    for name in runs.index[runs["state"] == "damaged"]:
        store.set_aside(name)
    rates = sorted(set(runs["learning_rate"]))
    order = np.log(runs["learning_rate"] / rates[len(rates) // 2]).abs()
    to_do = runs.assign(order=order)[runs["state"] != "done"].sample(frac=1)
    to_do = to_do.sort_values(["trial", "order"], kind="stable")["configuration"]
    # A task is a list of runs, for a worker that does several at once. What another sweep on this
    # store has finished meanwhile is not begun.
    tasks = ([named] for named in to_do.items() if named[0] not in store)
    work = partial(work, checkpoints=checkpoints) if checkpoints else work
    results = (engine or local(1))(partial(_answers, work), source, tasks)
    done, failed = len(runs) - len(to_do), list[str]()
    # With smoothing 0 the rate is that of all runs so far, not of the last ones.
    bar = tqdm(total=len(runs), initial=done, smoothing=0, unit="run", disable=not progress)
    try:
        # joblib warns of results that nobody reads, after an error or Ctrl-C.
        with warnings.catch_warnings(action="ignore"), bar, contextlib.closing(results):
            for name, answer in itertools.chain.from_iterable(results):
                bar.update()
                configuration = json.loads(to_do[name])
                if isinstance(answer, str):
                    failed.append(f"{configuration['mechanism']}: {answer}")
                    continue
                store.write(Record(configuration=configuration, data=data.fingerprint, **answer))
                if checkpoints is not None:  # another sweep may have removed it
                    (checkpoints / f"{name}.pt").unlink(missing_ok=True)
    except WorkerDied as error:
        raise SweepFailed(
            f"a worker process died ({str(error).split('. ')[0]}); the {bar.n - len(failed):,}"
            f" results of {len(runs):,} are safe, and the same command goes on from there"
        ) from None
    if failed:
        raise SweepFailed(f"{len(failed):,} of {len(to_do):,} runs failed; {failed[0]}")


def _answers(work: Work, source: Any, task: list[tuple[str, str]]) -> list[tuple[str, Any]]:
    """What a worker does with a task. An error is an answer too, and does not end the sweep."""
    answers: list[tuple[str, Any]] = []
    for name, configuration in task:
        try:
            values = _data(*source) if isinstance(source, tuple) else source
            result = work(values, json.loads(configuration))
            answers.append((name, {"result": result, "made": _made()}))
        except Exception as error:
            answers.append((name, f"{type(error).__name__}: {error}"))
    return answers


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
    import torch

    versions = {name: metadata.version(name) for name in ("labelaudit", "numpy", "torch")}
    cuda = torch.cuda.is_available()  # and then `train` uses it
    return {
        "versions": {"python": platform.python_version(), **versions},
        "device": f"cuda ({torch.cuda.get_device_name()})" if cuda else "cpu",
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
