"""What the scripts read files with: text in blocks of whole lines, parquet in batches of rows.

Text has two readers. A fast one reads a block of lines at once, or gives up. Then a slow one reads
the block line by line: it is the specification, and its errors name the line and the column.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labelaudit.datasets.store import DataError

BLOCK_BYTES = 1 << 22
LONGEST_LINE = 1 << 16
PARQUET_ROWS = 1 << 16
# Characters of a cell that a message shows.
MOST_SHOWN = 20
LARGEST = float(np.finfo(np.float32).max)
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
MAGIC = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"PAR1": "parquet",
    b"PK\x03\x04": "zip",
}

Columns = Sequence[NDArray[Any]] | NDArray[Any]
IntegerArray = NDArray[np.int32]


class Rows(NamedTuple):
    """Some rows of a source, checked.

    Where the source says so, also the stratum of each row, or whether it is for testing.
    """

    features: NDArray[Any]
    labels: NDArray[np.uint8]
    strata: NDArray[np.int32] | None = None
    for_testing: NDArray[np.bool_] | None = None


class HashedFile(io.FileIO):
    """A file whose checksum and progress are kept as it is read."""

    def __init__(self, path: Path, progress: Callable[[int], Any] = lambda count: None) -> None:
        """Call `progress` with the number of bytes of each read."""
        super().__init__(path)
        self._sha256, self._progress = hashlib.sha256(), progress

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer`."""
        count = super().readinto(buffer) or 0
        self._sha256.update(memoryview(buffer)[:count])
        self._progress(count)
        return count

    def checksum(self) -> str:
        """The sha256 of the whole file, including what has not been read."""
        rest = bytearray(BLOCK_BYTES)
        while self.readinto(rest):
            pass
        return self._sha256.hexdigest()

    def close(self) -> None:
        """Do nothing: a decompressor closes what it reads, but the checksum comes later."""

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        super().close()


@dataclass(frozen=True)
class Layout:
    """How a file is laid out, and how it is read."""

    name: str
    columns: tuple[str, ...]
    dtype: type
    read: Callable[[Path, HashedFile], Iterator[Rows]]
    thinned: bool = False  # negatives were dropped to balance the classes
    buckets: int | None = None  # features are hashed to indices below this number


class BadCell(Exception):
    """A cell that cannot be read: its column, the reason, and its text where that helps."""


def progress_bar(name: str, size: int | None, position: int = 0) -> Any:
    """A line on the terminal that shows how many bytes are done; nothing where there is none."""
    from tqdm import tqdm

    # The default lock is shared between processes; one that is killed would never release it.
    tqdm.set_lock(threading.RLock())
    options: dict[str, Any] = {"unit": "B", "unit_scale": True, "leave": False, "disable": None}
    return tqdm(desc=name, total=size, initial=position, **options)


def container(path: Path) -> str:
    """What a file is by its first bytes: gzip, bz2, xz, parquet, or plain."""
    try:
        with open(path, "rb") as file:
            start = file.read(8)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    if not start:
        raise DataError(f"{path} is empty")
    kind = next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), "plain")
    if kind == "zip":
        raise DataError(f"{path} is a zip archive; unpack it and name the file inside")
    return kind


def first_line(path: Path) -> bytes:
    """The first line of a text, or its beginning where it is long."""
    with HashedFile(path) as file:
        return next(text_blocks(path, file), b"")[:4096].split(b"\n")[0]


def text_blocks(path: Path, file: HashedFile) -> Iterator[bytes]:
    """The text of a file in blocks of whole lines.

    A last line without an end is an error: it is the mark of a file that was cut short.
    """
    kind, rest = container(path), b""
    buffered = io.BufferedReader(file, 1 << 20)
    try:
        stream: Any = buffered
        if kind == "xz":
            stream = lzma.LZMAFile(buffered)  # noqa: SIM115
        elif kind != "plain":
            import pyarrow

            # Twice as fast as the readers of the standard library.
            stream = pyarrow.CompressedInputStream(pyarrow.PythonFile(buffered, "r"), kind)
        while piece := stream.read(BLOCK_BYTES):
            end = piece.rfind(b"\n") + 1
            if end:
                yield rest + piece[:end]
            rest = piece[end:] if end else rest + piece
            if len(rest) > LONGEST_LINE:
                raise DataError(f"{path} is not text: no line end in {len(rest):,} bytes")
    except (OSError, EOFError, lzma.LZMAError, ValueError) as error:
        raise DataError(f"{path} is cut short or damaged: {error}") from None
    if rest:
        raise DataError(f"{path} is cut short: its last line has no end")


def _read_ahead(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same blocks; another thread reads the next while one is in use."""
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, blocks, b"")
        while block := following.result():
            following = pool.submit(next, blocks, b"")
            yield block


def read_lines(
    path: Path,
    file: HashedFile,
    fast_rows: Callable[[bytes], Rows | None],
    slow_row: Callable[[bytes], tuple[int, list[Any]]],
    dtype: type,
    *,
    header: bool = False,
) -> Iterator[Rows]:
    """The rows of a text; `slow_row` reads the lines of a block that `fast_rows` gave up on.

    With `header` the first line is passed over.
    """
    before = 0
    for block in _read_ahead(text_blocks(path, file)):
        if header and before == 0:
            before, block = 1, block.partition(b"\n")[2]
            if not block:
                continue
        rows = fast_rows(block)
        if rows is None:
            lines = block[:-1].split(b"\n")
            pairs = [
                _row(line, number, path, slow_row) for number, line in enumerate(lines, before)
            ]
            labels, features = zip(*pairs, strict=True)
            rows = Rows(np.array(features, dtype), np.array(labels, np.uint8))
        yield rows
        before += len(rows.labels)


def _row(
    line: bytes, before: int, path: Path, slow_row: Callable[[bytes], tuple[int, list[Any]]]
) -> tuple[int, list[Any]]:
    where = f"{path}, line {before + 1:,}"
    if not line.strip():
        raise DataError(f"{where}: an empty line")
    try:
        return slow_row(line.removesuffix(b"\r"))
    except BadCell as error:
        column, reason, *cells = error.args
        if before == 0 and line.lstrip(b'\xef\xbb\xbf#" ')[:1].isalpha():
            reason += " (a header?)"
        for cell in cells:
            reason += f": {cell[:MOST_SHOWN].decode(errors='replace')!r}"
        raise DataError(f"{where}, column {column}: {reason}") from None


def check_count(cells: Sequence[bytes], count: int) -> None:
    """Raise an error unless a line has this number of cells."""
    if len(cells) != count:
        amount = "few" if len(cells) < count else "many"
        raise BadCell(len(cells), f"too {amount} columns")


def read_csv(
    block: bytes, names: Sequence[str], delimiter: str, kind: str
) -> list[NDArray[Any]] | None:
    """The columns of a block, all of one type; None where Arrow cannot read it so."""
    import pyarrow
    from pyarrow import csv

    try:
        table = csv.read_csv(
            pyarrow.BufferReader(block),
            csv.ReadOptions(column_names=names),
            csv.ParseOptions(delimiter=delimiter, quote_char=False, ignore_empty_lines=False),
            csv.ConvertOptions(column_types=dict.fromkeys(names, kind), null_values=[]),
        )
    except pyarrow.ArrowInvalid:
        return None
    # Arrow ends a line at a lone carriage return too.
    if table.num_rows != block.count(b"\n"):
        return None
    return [column.to_numpy() for column in table.columns]


def parquet_names(path: Path) -> tuple[str, ...]:
    """The names of a table's columns."""
    import pyarrow
    from pyarrow import parquet

    try:
        return tuple(parquet.read_schema(path).names)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path} is cut short or damaged: {error}") from None


def parquet_batches(
    path: Path, needed: tuple[str, ...], optional: tuple[str, ...] = ()
) -> Iterator[tuple[int, Any]]:
    """Batches of the columns that are needed, each with the number of rows before it."""
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as table:
            present = table.schema_arrow.names
            if missing := [name for name in needed if name not in present]:
                raise DataError(f"{path} has no column {missing[0]}; it needs {', '.join(needed)}")
            columns = [name for name in (*needed, *optional) if name in present]
            start = 0
            for batch in table.iter_batches(PARQUET_ROWS, columns=columns):
                batch.validate(full=True)
                yield start, batch
                start += batch.num_rows
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path} is cut short or damaged: {error}") from None


def numbers(batch: Any, name: str, path: Path, start: int) -> NDArray[Any]:
    """A column of a batch as numbers, none of them missing."""
    column = batch.column(name)
    check_rows(np.asarray(column.is_null()), path, start, f"column {name} is missing")
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "buif":
        raise DataError(f"{path}: column {name} holds {column.type}, not numbers")
    return values


def check_rows(bad: NDArray[np.bool_], path: Path, start: int, reason: str) -> None:
    """Raise an error that names the first bad row, where there is one."""
    if bad.any():
        raise DataError(f"{path}, row {start + int(np.argmax(bad)) + 1:,}: {reason}")
