"""From an exported table back into a store: trainings that were done elsewhere are not done again.

A table has all that names a run but not the curve of its epochs, and its numbers are rounded. What
is taken from it says so: `made` holds the digest of the table.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd

from labelaudit.command_line import CommandError
from labelaudit.datasets import Dataset
from labelaudit.files import file_digest
from labelaudit.learning.sweep.comparisons import RUN, TRAINING, table
from labelaudit.learning.sweep.grid import Grid
from labelaudit.learning.sweep.runs import plan
from labelaudit.learning.sweep.store import Record, Store

# What names a training in a table; its numbers have seven digits there.
IDENTITY = [*RUN, *TRAINING, "seed", "fingerprint"]
RESULT = ["auc", "log_loss", "validation_loss", "best_epoch", "epochs_run"]
RESULT += ["seconds", "cpu_seconds"]


def read_table(path: Path) -> pd.DataFrame:
    """An exported table, .csv or .parquet, each training in it once."""
    try:
        frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise CommandError(f"cannot read the table {path}: {error}") from None
    missing = [name for name in (*IDENTITY, *RESULT, "diverged") if name not in frame]
    if missing:
        raise CommandError(f"{path} is no table of results: it lacks {', '.join(missing)}")
    if len(set(_identities(frame))) < len(frame):
        raise CommandError(f"{path} has a training more than once")
    return frame


def adopt(path: Path, frame: pd.DataFrame, grid: Grid, data: Dataset, store: Store) -> int:
    """Store the table's trainings that are runs of the grid on this data; how many are new."""
    rows = dict(zip(_identities(frame), frame.to_dict("records"), strict=True))
    source, count = f"{path.name}, sha256 {file_digest(path)[:12]}", 0
    # What a search plans next depends on the results there are.
    while to_do := (schedule := plan(grid, data, store)).to_do:
        wanted = [Record(schedule.runs[name], data.fingerprint, {}) for name in to_do]
        # A table of one record at a time keeps the order.
        identities = [_identities(table([record]))[0] for record in wanted]
        known = [
            Record(
                record.configuration, record.data, _result(rows[name]), _made(rows[name], source)
            )
            for record, name in zip(wanted, identities, strict=True)
            if name in rows
        ]
        for record in known:
            store.set_aside(record.key)
            store.write(record)
        count += len(known)
        if not known:
            break
    return count


def _identities(frame: pd.DataFrame) -> list[str]:
    return [" ".join(map(_text, row)) for row in frame[IDENTITY].itertuples(index=False)]


def _text(value: Any) -> str:
    """One text for a number and for the same number read from a csv; nothing where it is missing.

    >>> _text(3), _text(3.0), _text(None), _text(math.nan), _text("RR")
    ('3', '3', '', '', 'RR')
    """
    if isinstance(value, str):
        return value
    return "" if value is None or math.isnan(value) else f"{value:.7g}"


def _result(row: dict[str, Any]) -> dict[str, Any]:
    whole = {name: int(row[name]) for name in ("best_epoch", "epochs_run")}
    diverged = "the table does not say how" if row["diverged"] else None
    return {name: row[name] for name in RESULT} | whole | {"diverged": diverged, "curve": []}


def _made(row: dict[str, Any], source: str) -> dict[str, Any]:
    made = {name: row.get(f"made_{name}") for name in ("with", "on", "at")}
    texts = {name: text for name, text in made.items() if isinstance(text, str)}
    versions = dict(text.rsplit(" ", 1) for text in texts.get("with", "").split(", ") if text)
    known = {"versions": versions, "device": texts.get("on"), "finished": texts.get("at")}
    return {**{name: value for name, value in known.items() if value}, "table": source}
