"""Fetch, prepare and verify UCI HIGGS: see --help."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from data_scripts import reading
from data_scripts.reading import BadCell, HashedFile, Layout, Rows
from labelaudit.datasets.standins import HIGGS_COLUMNS

COLUMNS = ("label", *HIGGS_COLUMNS)


def layout_of(path: Path) -> Layout:
    """Parquet with the columns' names, or comma-separated text without a header."""
    read = read_parquet if reading.container(path) == "parquet" else read_text
    name = "parquet" if read is read_parquet else "csv"
    return Layout(name, HIGGS_COLUMNS, np.float32, read)


def read_text(path: Path, file: HashedFile) -> Iterator[Rows]:
    """The published csv: the label, then 28 numbers."""
    return reading.read_lines(path, file, fast_rows, slow_row, np.float32)


def fast_rows(block: bytes) -> Rows | None:
    """The rows of a block, or None if any of its bytes is unusual."""
    if block.translate(None, b"0123456789.eE+-,\r\n"):
        return None
    columns = reading.read_csv(block, COLUMNS, ",", "float32")
    if columns is None:
        return None
    labels, features = columns[0], np.column_stack(columns[1:])
    if not (np.isfinite(features).all() and np.isin(labels, (0, 1)).all()):
        return None
    return Rows(features, labels.astype(np.uint8))


def slow_row(line: bytes) -> tuple[int, list[float]]:
    """The label and the features of one line."""
    cells = line.split(b",")
    start = reading.NUMBER.match(cells[0])
    if start and start.end() < len(cells[0]):
        raise BadCell(1, "not a number", cells[0])
    if not start or float(cells[0]) not in (0, 1):
        raise BadCell(1, "the label is not 0 or 1", cells[0])
    values = []
    for column, cell in enumerate(cells[1 : len(COLUMNS)], start=2):
        is_number = reading.NUMBER.fullmatch(cell)
        if not is_number and not re.match(rb"[+-]?(nan|inf)", cell, re.IGNORECASE):
            raise BadCell(column, "not a number", cell)
        if not is_number or abs(float(cell)) > reading.LARGEST:
            raise BadCell(column, "NaN or infinite, or beyond the range of float32", cell)
        values.append(float(cell))
    reading.check_count(cells, len(COLUMNS))
    return int(float(cells[0])), values


def read_parquet(path: Path, file: HashedFile) -> Iterator[Rows]:
    """A table with the columns of UCI, and perhaps the source of each row, which is its stratum."""
    known: dict[str, int] = {}
    for start, batch in reading.parquet_batches(path, COLUMNS, optional="source"):
        columns = [reading.numbers(batch, name, path, start) for name in HIGGS_COLUMNS]
        with np.errstate(over="ignore"):
            features = np.column_stack([values.astype(np.float32) for values in columns])
        unsound = np.asarray(~np.isfinite(features).all(axis=1))
        reading.check_rows(unsound, path, start, "a NaN or infinite feature")
        labels = reading.numbers(batch, "label", path, start)
        reading.check_rows(~np.isin(labels, (0, 1)), path, start, "the label is not 0 or 1")
        strata: Any = None
        if "source" in batch.schema.names:
            sources = batch.column("source").to_pylist()
            codes = [known.setdefault(str(source), len(known)) for source in sources]
            strata = np.array(codes, np.int32)
        yield Rows(features, labels.astype(np.uint8), strata)


if __name__ == "__main__":
    from data_scripts.prepare import main

    sys.exit(main("higgs"))
