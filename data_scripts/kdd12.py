"""Fetch, prepare and verify KDD Cup 2012, track 2: see --help."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from data_scripts import reading
from data_scripts.reading import BadCell, HashedFile, Layout, Rows
from labelaudit.datasets.hashing import BUCKETS, bucket
from labelaudit.datasets.standins import KDD12_COLUMNS
from labelaudit.datasets.store import DataError

FIELDS = 11
INDICES = 54_686_452
TRACK2_COLUMNS = KDD12_COLUMNS[:10]


def layout_of(path: Path) -> Layout:
    """OpenML's table as parquet, the raw training.txt, FFM or LIBSVM text."""
    hashed = partial(Layout, dtype=np.int32, buckets=BUCKETS)
    if reading.container(path) == "parquet":
        return hashed("openml", TRACK2_COLUMNS, read=read_parquet, thinned=True)
    line = reading.first_line(path)
    if line.count(b"\t") >= 2 and b":" not in line:
        return hashed("track2", TRACK2_COLUMNS, read=read_track2)
    fields = tuple(f"field_{number}" for number in range(1, FIELDS + 1))
    words = line.split()
    if len(words) > 1 and words[1].count(b":") == 2:
        return hashed("ffm", fields, read=partial(read_sparse, with_field=True))
    return hashed("libsvm", fields, read=partial(read_sparse, with_field=False))


def read_sparse(path: Path, file: HashedFile, with_field: bool) -> Iterator[Rows]:
    """LIBSVM rows, `label index:value ...`, or FFM rows, `label field:index:value ...`.

    Values only say that a feature is present (KDD12 is one-hot), so they are checked and dropped.
    """
    from data_scripts.libsvm import parse

    def fast_rows(block: bytes) -> Rows | None:
        rows = block.count(b"\n")
        labels, indices = np.empty(rows, np.uint8), np.empty((rows, FIELDS), np.uint64)
        if not parse(np.frombuffer(block, np.uint8), with_field, INDICES, labels, indices):
            return None
        return Rows(bucket(0, indices), labels)

    slow = partial(slow_sparse_row, with_field=with_field)
    return reading.read_lines(path, file, fast_rows, slow, np.int32)


def slow_sparse_row(line: bytes, with_field: bool) -> tuple[int, list[int]]:
    """The label and the buckets of one line."""
    cells = [cell for cell in re.split(rb"[ \t]+", line.rstrip(b" \t")) if cell]
    if line[:1] not in (b"0", b"1") or len(cells[0]) > 1:
        raise BadCell(1, "the label is not 0 or 1", cells[0])
    pattern = re.compile((rb"\d+:" if with_field else b"") + rb"(\d{1,19}):(.*)", re.DOTALL)
    indices = []
    for column, cell in enumerate(cells[1 : FIELDS + 1], start=2):
        parts = pattern.fullmatch(cell)
        if parts is None or not 1 <= int(parts[1]) <= INDICES:
            raise BadCell(column, f"not an index from 1 to {INDICES}", cell)
        is_number = reading.NUMBER.fullmatch(parts[2])
        if not is_number or not 0 < abs(float(parts[2])) <= reading.LARGEST:
            raise BadCell(column, "the value of a feature is not a number other than zero", cell)
        indices.append(int(parts[1]))
    reading.check_count(cells, FIELDS + 1)
    return int(cells[0]), bucket(0, np.array(indices)).tolist()


def read_track2(path: Path, file: HashedFile) -> Iterator[Rows]:
    """The raw rows: clicks, impressions, then tab-separated whole numbers to hash."""
    return reading.read_lines(path, file, fast_track2_rows, slow_track2_row, np.int32)


def fast_track2_rows(block: bytes) -> Rows | None:
    """The rows of a block, or None if any of its bytes is unusual."""
    if block.translate(None, b"0123456789\t\r\n"):
        return None
    columns = reading.read_csv(block, ("click", "impression", *TRACK2_COLUMNS), "\t", "uint64")
    if columns is None:
        return None
    return Rows(_hashed(columns[2:]), (columns[0] > 0).astype(np.uint8))


def slow_track2_row(line: bytes) -> tuple[int, list[int]]:
    """The label and the buckets of one line."""
    cells = line.split(b"\t")
    count = len(TRACK2_COLUMNS) + 2
    for column, cell in enumerate(cells[:count], start=1):
        if not re.fullmatch(rb"\d{1,20}", cell) or int(cell) >= 1 << 64:
            raise BadCell(column, "not a number", cell)
    reading.check_count(cells, count)
    values = np.array([int(cell) for cell in cells], np.uint64)
    return int(values[0] > 0), _hashed(values[2:, np.newaxis])[0].tolist()


def read_parquet(path: Path, file: HashedFile) -> Iterator[Rows]:
    """OpenML's table. Its negatives were thinned to balance the classes."""
    for start, batch in reading.parquet_batches(path, ("click", *TRACK2_COLUMNS)):
        columns = [reading.numbers(batch, name, path, start) for name in TRACK2_COLUMNS]
        for name, values in zip(TRACK2_COLUMNS, columns, strict=True):
            if values.dtype.kind not in "ui":
                raise DataError(f"{path}: column {name} holds {values.dtype}, not whole numbers")
        clicks = reading.numbers(batch, "click", path, start)
        negative = np.less(clicks, 0)
        reading.check_rows(negative, path, start, "a number of clicks is below 0")
        yield Rows(_hashed(columns), (clicks > 0).astype(np.uint8))


def _hashed(columns: reading.Columns) -> reading.IntegerArray:
    return np.column_stack([bucket(field, values) for field, values in enumerate(columns)])


if __name__ == "__main__":
    from data_scripts.prepare import main

    sys.exit(main("kdd12"))
