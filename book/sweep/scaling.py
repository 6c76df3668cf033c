"""The scaling study: how the order of mechanisms and the gaps between them move with the rows.

    python -m book.sweep.scaling --rows 10000 100000 --store FOLDER --export results/scaling.csv

The data are the simulated stand-ins, whose eta is known and of which there are as many rows as one
asks for. Each number of rows is a grid of its own, swept like any other: results are kept as they
come, and the same command goes on where it was stopped. An exported table keeps what it has of
other data sets and numbers of rows. Beyond 10,000 rows only the middle one of the learning rates is
trained, and beyond 100,000 with fewer passes.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from book import sweep
from book.sweep import audits
from book.sweep.grid import Grid
from book.sweep.results import results_frame
from book.sweep.store import Store
from labelaudit.files import write_atomically

MECHANISMS = {
    "clean": {},
    "RR": {"epsilon": [1]},
    "LLP": {"bag_size": [8]},
    "LLP+Geom": {"bag_size": [8], "epsilon": [1]},
}
# The most passes by rows: from a million on one pass is as long as ten of the smaller sets.
PASSES = {10_000: 12, 100_000: 12, 1_000_000: 3}
RATES = (2.5e-4, 1e-3, 4e-3)
BATCH_SIZES = {"higgs-like": 512, "kdd12-like": 1024}


def study(name: str, rows: int, trials: int, losses: Sequence[str]) -> Grid:
    """The grid of one data set and number of rows."""
    passes = next((PASSES[size] for size in PASSES if rows <= size), 1)
    return Grid(
        mechanisms=MECHANISMS,
        losses=tuple(losses),
        learning_rates=RATES if rows <= 10_000 else RATES[1:2],
        trials=trials,
        train_rows=rows,
        training={"batch_size": BATCH_SIZES[name], "epochs": passes},
    )


def export(frame: pd.DataFrame, path: Path) -> None:
    """Write the trainings into the table, in place of those of the same data and rows."""
    keys = ["dataset", "rows"]
    if path.exists():
        older = pd.read_csv(path)
        replaced = older.set_index(keys).index.isin(frame.set_index(keys).index)
        frame = pd.concat([older[~replaced], frame], ignore_index=True)
    frame = frame.sort_values(["rows", "dataset"], kind="stable")
    write_atomically(path, frame.to_csv(index=False, float_format="%.6g"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Sweep the sizes in turn and write the table after each."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--datasets", nargs="+", choices=BATCH_SIZES, default=list(BATCH_SIZES))
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--losses", nargs="+", default=["cross_entropy", "likelihood"])
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--export", type=Path, required=True)
    chosen = parser.parse_args(arguments)
    store = Store(chosen.store)
    for rows in sorted(chosen.rows):
        for name in chosen.datasets:
            print(f"{name}, {rows:,} rows", flush=True)
            grid = study(name, rows, chosen.trials, chosen.losses)
            data = sweep.load(name, grid)
            runs = sweep.complete(grid, data, store, progress=True)
            audited = audits.complete(grid, data, store)
            records = [store.read(key) for key in [*runs.index, *audited.index]]
            export(results_frame(records).assign(rows=rows), chosen.export)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
