"""From an exported table back into a store: trainings that were done elsewhere are not done again.

A table has all that names a run but not the curve of its epochs, and its numbers are rounded. What
is taken from it says so: `made` holds the digest of the table.
"""

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from book.sweep.comparisons import RUN, TRAINING
from book.sweep.grid import Grid, read_grid
from book.sweep.runs import load, plan
from book.sweep.store import Record, Store
from labelaudit.command_line import CommandError
from labelaudit.datasets import Dataset, NotPrepared
from labelaudit.files import file_digest

IDENTITY = [*RUN, *TRAINING, "seed", "fingerprint"]
WHOLE, REAL = ["best_epoch", "epochs_run"], ["auc", "log_loss", "validation_loss", "seconds"]
RESULT = [*WHOLE, *REAL, "cpu_seconds"]


def read_table(path: Path) -> dict[str, dict[str, Any]]:
    """The rows of an exported table by what names their training."""
    try:
        frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    except (OSError, EOFError, ValueError) as error:
        raise CommandError(f"cannot read the table {path}: {error}") from None
    missing = [name for name in (*IDENTITY, *RESULT, "diverged") if name not in frame]
    if missing:
        raise CommandError(f"{path} is no table of results: it lacks {', '.join(missing)}")
    rows = {_identity(row): row for row in frame.to_dict("records")}
    if len(rows) < len(frame):
        raise CommandError(f"{path} has a training more than once")
    return rows


def adopt_all(path: Path, grid_file: Path, dataset: str | None, store: Store) -> int:
    """Take trainings from a table, data set by data set: `labelbook results --import`.

    A set that is not prepared is left out, unless it is the one asked for or none is prepared.
    """
    grid = read_grid(grid_file)
    rows = Counter(row["dataset"] for row in read_table(path).values())
    names = [dataset] if dataset else sorted(rows)
    missing = []
    for name in names:
        try:
            data = load(name, grid)
        except NotPrepared:
            missing.append(name)
            if missing == names:
                raise
            print(f"{name}: left out, because it is not prepared")
            continue
        count = adopt(path, grid, data, store)
        print(f"{name}: {count:,} of the table's {rows[name]:,} trainings are new to the store")
    return 0


def adopt(path: Path, grid: Grid, data: Dataset, store: Store) -> int:
    """Store the table's trainings that are runs of the grid on this data; how many are new."""
    rows, source = read_table(path), f"{path.name}, sha256 {file_digest(path)[:12]}"
    count, before = 0, -1
    # What a search plans next depends on the results there are.
    while count > before:
        schedule, before = plan(grid, data, store), count
        for name in schedule.to_do:
            run = schedule.runs[name]
            described = {"bag_size": 1, "epsilon": math.inf, **run["settings"], **run["mechanism"]}
            fingerprint = {"fingerprint": data.fingerprint[:12]}
            if (row := rows.get(_identity({**run, **described, **fingerprint}))) is not None:
                store.set_aside(name)
                store.write(Record(run, data.fingerprint, _result(row), _made(row, source)))
                count += 1
    return count


def _identity(row: Mapping[str, Any]) -> str:
    """One text for a run and for its row, where a number has seven digits and None is missing.

    >>> _identity({"kind": "RR", "epsilon": 1}) == _identity({"kind": "RR", "epsilon": 1.00000001})
    True
    """
    values = [row.get(name) for name in IDENTITY]
    return " ".join(
        "" if pd.isna(value) else value if isinstance(value, str) else f"{value:.7g}"
        for value in values
    )


def _result(row: Mapping[str, Any]) -> dict[str, Any]:
    diverged = "the table does not say how" if row["diverged"] else None
    numbers = {name: row[name] for name in RESULT} | {name: int(row[name]) for name in WHOLE}
    return {**numbers, "diverged": diverged, "curve": []}


def _made(row: Mapping[str, Any], source: str) -> dict[str, Any]:
    versions = str(row.get("made_with", "")).split(", ")
    made = {
        "versions": dict(text.rsplit(" ", 1) for text in versions if " " in text),
        **{"device": row.get("made_on"), "finished": row.get("made_at"), "table": source},
    }
    return {name: value for name, value in made.items() if isinstance(value, dict | str)}
