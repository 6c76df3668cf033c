"""The layouts in which Higgs and KDD12 are published, and how each is read, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labelaudit.datasets.hashing import BUCKETS, bucket
from labelaudit.datasets.reading import BLOCK_BYTES, HashedFile, container, text_blocks
from labelaudit.datasets.standins import HIGGS_COLUMNS, KDD12_COLUMNS
from labelaudit.datasets.store import DataError

PARQUET_ROWS = 1 << 16
KDD12_FIELDS = 11
KDD12_INDICES = 54_686_452
TRACK2_COLUMNS = KDD12_COLUMNS[:10]
# Bytes of a cell that a refusal shows.
MOST_SHOWN = 20


class Rows(NamedTuple):
    """Some rows of a source, checked, and the stratum of each where the source has strata."""

    features: NDArray[Any]
    labels: NDArray[np.uint8]
    strata: NDArray[np.int32] | None = None


@dataclass(frozen=True)
class Layout:
    """How a file is laid out, and how it is read."""

    name: str
    columns: tuple[str, ...]
    dtype: type
    read: Callable[[Path, HashedFile], Iterator[Rows]]
    thinned: bool = False  # negatives were dropped to balance the classes


def find_layout(name: str, path: Path) -> Layout:
    """The layout of a file, by its first bytes and, for KDD12, its first line."""
    kind = container(path)
    if name == "higgs":
        if kind == "parquet":
            return Layout("parquet", HIGGS_COLUMNS, np.float32, _higgs_parquet)
        return Layout("csv", HIGGS_COLUMNS, np.float32, _higgs_text)
    if kind == "parquet":
        return Layout("openml", TRACK2_COLUMNS, np.int32, _kdd12_parquet, thinned=True)
    line = _first_line(path)
    token = (line.split() or [b""])[1:2]
    if line.count(b"\t") >= 2 and b":" not in line:
        return Layout("track2", TRACK2_COLUMNS, np.int32, _kdd12_track2)
    fields = tuple(f"field_{number}" for number in range(1, KDD12_FIELDS + 1))
    if token and token[0].count(b":") == 2:
        return Layout("ffm", fields, np.int32, _kdd12_ffm)
    return Layout("libsvm", fields, np.int32, _kdd12_libsvm)


def _first_line(path: Path) -> bytes:
    with HashedFile(path) as file:
        block = next(text_blocks(path, file))
        return block[:4096].tobytes().split(b"\n")[0]


def _text(
    path: Path,
    file: HashedFile,
    columns: int,
    dtype: type,
    parser: Callable[..., Any],
    between: bytes | None = None,
    **say: Any,
) -> Iterator[Rows]:
    """Blocks of text as rows; `between` parts the columns, white space where it is None."""
    from labelaudit.datasets.parse import FEW, GOOD, MANY, REASONS

    # Every row takes at least two bytes a column, so no block holds more rows than this.
    most = BLOCK_BYTES // (2 * columns) + 1
    labels: NDArray[np.uint8] = np.empty(most, np.uint8)
    features: NDArray[Any] = np.empty((most, columns), dtype)
    line = 1
    for text in text_blocks(path, file):
        rows, code, column = parser(text, len(text), labels, features)
        if code != GOOD:
            start = f"{path}, line {line + rows:,}"
            bad = text.tobytes().split(b"\n", rows + 1)[rows]
            if not bad.strip():
                raise DataError(f"{start}: an empty line")
            reason = REASONS[code].format(**say)
            if line + rows == 1 and bad.lstrip(b'\xef\xbb\xbf#" ')[:1].isalpha():
                reason += " (a header?)"
            if code not in (FEW, MANY):
                cell = b"".join(bad.split(between)[column - 1 : column])[:MOST_SHOWN]
                reason += f": {cell.decode(errors='replace')!r}"
            raise DataError(f"{start}, column {column}: {reason}")
        yield Rows(features[:rows], labels[:rows])
        line += rows


def _higgs_text(path: Path, file: HashedFile) -> Iterator[Rows]:
    from labelaudit.datasets.parse import parse_csv

    return _text(path, file, len(HIGGS_COLUMNS), np.float32, parse_csv, b",")


def _kdd12_sparse(path: Path, file: HashedFile, with_field: bool) -> Iterator[Rows]:
    from labelaudit.datasets.parse import parse_libsvm

    def parser(text: Any, stop: int, labels: Any, features: Any) -> Any:
        limit = np.uint64(KDD12_INDICES)
        return parse_libsvm(text, stop, with_field, limit, BUCKETS, labels, features)

    return _text(path, file, KDD12_FIELDS, np.int32, parser, limit=KDD12_INDICES)


def _kdd12_libsvm(path: Path, file: HashedFile) -> Iterator[Rows]:
    return _kdd12_sparse(path, file, with_field=False)


def _kdd12_ffm(path: Path, file: HashedFile) -> Iterator[Rows]:
    return _kdd12_sparse(path, file, with_field=True)


def _kdd12_track2(path: Path, file: HashedFile) -> Iterator[Rows]:
    from labelaudit.datasets.parse import parse_track2

    def parser(text: Any, stop: int, labels: Any, features: Any) -> Any:
        return parse_track2(text, stop, BUCKETS, labels, features)

    return _text(path, file, len(TRACK2_COLUMNS), np.int32, parser, b"\t")


def _higgs_parquet(path: Path, file: HashedFile) -> Iterator[Rows]:
    known: dict[str, int] = {}
    for start, batch in _parquet(path, ("label", *HIGGS_COLUMNS), optional="source"):
        columns = [_plain(batch, name, path, start) for name in HIGGS_COLUMNS]
        with np.errstate(over="ignore"):
            features = np.column_stack([values.astype(np.float32) for values in columns])
        sound = np.isfinite(features).all(axis=1)
        _refuse_rows(np.asarray(~sound), path, start, "a NaN or infinite feature")
        labels = _plain(batch, "label", path, start)
        _refuse_rows(~np.isin(labels, (0, 1)), path, start, "the label is not 0 or 1")
        strata = None
        if "source" in batch.schema.names:
            sources = batch.column("source").to_pylist()
            codes = [known.setdefault(str(source), len(known)) for source in sources]
            strata = np.array(codes, np.int32)
        yield Rows(features, labels.astype(np.uint8), strata)


def _kdd12_parquet(path: Path, file: HashedFile) -> Iterator[Rows]:
    for start, batch in _parquet(path, ("click", *TRACK2_COLUMNS)):
        columns = [_plain(batch, name, path, start) for name in TRACK2_COLUMNS]
        for name, values in zip(TRACK2_COLUMNS, columns, strict=True):
            if values.dtype.kind not in "ui":
                raise DataError(f"{path}: column {name} holds {values.dtype}, not whole numbers")
        buckets = [bucket(field, values) for field, values in enumerate(columns)]
        clicks = _plain(batch, "click", path, start)
        _refuse_rows(np.less(clicks, 0), path, start, "a number of clicks is below 0")
        yield Rows(np.column_stack(buckets), (clicks > 0).astype(np.uint8))


def _parquet(path: Path, needed: tuple[str, ...], optional: str = "") -> Iterator[tuple[int, Any]]:
    """Batches of the columns that are needed, each with the number of rows before it."""
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as table:
            present = table.schema_arrow.names
            if missing := [name for name in needed if name not in present]:
                raise DataError(f"{path} has no column {missing[0]}; it needs {', '.join(needed)}")
            columns = [name for name in (*needed, optional) if name in present]
            start = 0
            for batch in table.iter_batches(PARQUET_ROWS, columns=columns):
                batch.validate(full=True)
                yield start, batch
                start += batch.num_rows
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path} is cut short or damaged: {error}") from None


def _plain(batch: Any, name: str, path: Path, start: int) -> NDArray[Any]:
    column = batch.column(name)
    if column.null_count:
        rows = np.asarray(column.is_null())
        _refuse_rows(rows, path, start, f"column {name} is missing")
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "buif":
        raise DataError(f"{path}: column {name} holds {column.type}, not numbers")
    return values


def _refuse_rows(bad: NDArray[np.bool_], path: Path, start: int, reason: str) -> None:
    if bad.any():
        raise DataError(f"{path}, row {start + int(np.argmax(bad)) + 1:,}: {reason}")
