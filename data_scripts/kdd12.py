"""Fetch, prepare and verify KDD Cup 2012, track 2: see --help."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from data_scripts import reading
from data_scripts.reading import BadRow, Layout, Rows
from labelaudit.datasets.columns import TRACK2
from labelaudit.datasets.hashing import BUCKETS, bucket

FIELDS = 11
INDICES = 54_686_452


def layout_of(path: Path) -> Layout:
    """OpenML's table as parquet, the raw training.txt, FFM or LIBSVM text."""
    hashed = partial(Layout, dtype=np.int32, buckets=BUCKETS)
    if reading.container(path) == "parquet":
        needed = ("click", *TRACK2)
        read = partial(reading.read_parquet, rows_of=openml_rows, needed=needed)
        # Its negatives were thinned to balance the classes.
        return hashed(name="openml", columns=TRACK2, read=read, thinned=True)
    line = reading.first_line(path)
    if line.count(b"\t") >= 2 and b":" not in line:
        read = partial(reading.read_text, rows_of=track2_rows)
        return hashed(name="track2", columns=TRACK2, read=read)
    fields = tuple(f"field_{number}" for number in range(1, FIELDS + 1))
    words = line.split()
    with_field = len(words) > 1 and words[1].count(b":") == 2
    read = partial(reading.read_text, rows_of=partial(sparse_rows, with_field=with_field))
    return hashed(name="ffm" if with_field else "libsvm", columns=fields, read=read)


def sparse_rows(block: bytes, *, with_field: bool) -> Rows:
    """LIBSVM rows, `label index:value ...`, or FFM rows, `label field:index:value ...`.

    Values only say that a feature is present (KDD12 is one-hot), so they are checked and dropped.
    """
    from data_scripts.libsvm import parse

    rows = block.count(b"\n")
    labels, indices = np.empty(rows, np.uint8), np.empty((rows, FIELDS), np.uint64)
    read = parse(np.frombuffer(block, np.uint8), with_field, INDICES, labels, indices)
    if read < rows:
        line = block.split(b"\n", read + 1)[read][:40].decode(errors="replace")
        raise BadRow(
            read,
            f"{line!r} does not begin a row: a label of 0 or 1, then {FIELDS} features"
            f" {'field:' if with_field else ''}index:value, each after one space, with an index"
            f" from 1 to {INDICES} and a value above 0",
        )
    return Rows(bucket(0, indices), labels)


def track2_rows(block: bytes) -> Rows:
    """The raw rows: clicks, impressions, then tab-separated whole numbers to hash."""
    names, allowed = ("click", "impression", *TRACK2), b"0123456789\t\r\n"
    clicks, _, *columns = reading.read_columns(block, names, "\t", "uint64", allowed)
    return Rows(_hashed(columns), (clicks > 0).astype(np.uint8))


def openml_rows(batch: Any) -> Rows:
    """The rows of OpenML's table."""
    columns = [reading.numbers(batch, name, "ui") for name in TRACK2]
    clicks = reading.numbers(batch, "click")
    reading.check_rows(np.less(clicks, 0), "a number of clicks is below 0")
    return Rows(_hashed(columns), (clicks > 0).astype(np.uint8))


def _hashed(columns: Sequence[NDArray[Any]]) -> NDArray[np.int32]:
    return np.column_stack([bucket(number, values) for number, values in enumerate(columns)])


if __name__ == "__main__":
    from data_scripts.prepare import main

    sys.exit(main("kdd12"))
