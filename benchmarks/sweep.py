"""What a sweep costs besides its trainings: the store, the dispatch, the plan; what two gain."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from book import sweep
from book.chapters import selection
from book.sweep.engine import Engine
from book.sweep.grid import CLEAN, Grid
from book.sweep.results import results_frame
from book.sweep.runs import train_once
from book.sweep.scales import scale_grid
from book.sweep.store import Record, Store
from labelaudit.datasets import Dataset

PAPER = scale_grid("paper")
# All 220 settings of the paper with one learning rate, nine times over: 1,980 runs.
EMPTY = replace(
    PAPER,
    mechanisms={kind: own for kind, own in PAPER.mechanisms.items() if kind != CLEAN},
    learning_rates=(1e-3,),
    trials=9,
    train_rows=2000,
)
# Real trainings of the paper's network, long enough that handing them out is not what is timed.
BUSY = replace(
    EMPTY,
    mechanisms={"RR": {"epsilon": [1.0, 2.0]}},
    trials=6,
    train_rows=16_000,
    training={"epochs": 1, "batch_size": 256},
)


def nothing(data: Dataset, configuration: dict[str, Any]) -> dict[str, Any]:
    """A run without a training, its result as large as a real one's."""
    point = {"training_loss": 0.61, "validation_loss": 0.62, "auc": 0.71, "log_loss": 0.63}
    return {
        **{"auc": 0.7 + configuration["trial"] / 1e3, "log_loss": 0.63, "validation_loss": 0.62},
        **{"best_epoch": 3, "epochs_run": 5, "dropped": 0, "diverged": None},
        **{"seconds": 1.0, "cpu_seconds": 1.0},
        "curve": [{"epoch": epoch, **point} for epoch in range(5)],
    }


def alone(data: Dataset, configuration: dict[str, Any]) -> dict[str, Any]:
    """A training on one thread, as each of two workers has it: one worker is this process."""
    with threadpool_limits(1):
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return train_once(data, configuration)
        finally:
            torch.set_num_threads(threads)


def _row(what: str, value: float, unit: str, limit: float, *, at_most: bool = True) -> dict:
    met = value <= limit if at_most else value >= limit
    sign = "<=" if at_most else ">="
    print(f"{what:48} {value:8.2f} {unit:4} {sign} {limit:g}: {'met' if met else 'MISSED'}")
    return {"what": what, "value": value, "unit": unit, "limit": limit, "met": met}


def _swept(grid: Grid, folder: Path, work: Callable[..., Any], engine: Engine) -> float:
    """Seconds from the plan to the last result."""
    data, store = sweep.load("higgs-like", grid), Store(folder)
    started = time.perf_counter()
    sweep.complete(grid, data, store, work=work, engine=engine)
    return time.perf_counter() - started


def _overhead(folder: Path) -> dict:
    # A first small sweep starts the workers, which a real one does once in hours.
    engine = sweep.local(2)
    _swept(replace(EMPTY, trials=1), folder / "warm", nothing, engine)
    seconds = _swept(EMPTY, folder / "empty", nothing, engine)
    return _row(
        f"store and dispatch, {len(EMPTY):,} empty runs", 1e3 * seconds / len(EMPTY), "ms", 5
    )


def _hits(folder: Path) -> dict:
    """Plan and plot the whole paper grid when every result is there."""
    import matplotlib

    matplotlib.use("Agg")
    grid = replace(PAPER, train_rows=2000)
    data, store = sweep.load("higgs-like", grid), Store(folder / "paper")
    for run in sweep.configurations(grid, data):
        store.write(Record(configuration=run, data=data.fingerprint, result=nothing(data, run)))
    started = time.perf_counter()
    planned = sweep.plan(grid, data, store)
    assert (planned["state"] == "done").all()
    _plot(selection.select(results_frame(map(store.read, planned.index))))
    return _row(
        f"all hits: plan and plot {len(grid):,} results", time.perf_counter() - started, "s", 20
    )


def _plot(chosen: Any) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots()
    for _, points in chosen.groupby(["kind", "bag_size"]):
        axes.errorbar(points["epsilon"], points["auc"], 2 * points["error"])
    figure.canvas.draw()
    plt.close(figure)


def _speedup(folder: Path) -> dict:
    single, pair = sweep.local(1), sweep.local(2)
    _swept(replace(BUSY, trials=1), folder / "start", train_once, pair)
    # In turns, so that a busy machine slows both.
    slow = fast = float("inf")
    for turn in range(2):
        slow = min(slow, _swept(BUSY, folder / f"one-{turn}", alone, single))
        fast = min(fast, _swept(BUSY, folder / f"two-{turn}", train_once, pair))
    return _row("two local workers against one", slow / fast, "x", 1.5, at_most=False)


def run() -> list[dict]:
    """The whole table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [_overhead(folder), _hits(folder), _speedup(folder)]
