"""What the scripts read files with: text in blocks of whole lines, parquet in batches of rows."""

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
import pyarrow
from numpy.typing import NDArray
from pyarrow import csv, parquet

from labelaudit.datasets.store import DataError

BLOCK_BYTES = 1 << 22
MAX_LINE = 1 << 16
PARQUET_ROWS = 1 << 16
MAGIC = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"PAR1": "parquet",
    b"PK\x03\x04": "zip",
}


class Rows(NamedTuple):
    """Some rows of a source, checked.

    Where the source says so, also the stratum of each row, or whether it is for testing.
    """

    features: NDArray[Any]
    labels: NDArray[np.uint8]
    strata: NDArray[np.int32] | None = None
    for_testing: NDArray[np.bool_] | None = None


class BadRow(Exception):
    """A row that cannot be read: its index in a block or a batch, and the reason."""


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


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a file is laid out, and how it is read."""

    name: str
    columns: tuple[str, ...]
    dtype: type
    read: Callable[[Path, HashedFile], Iterator[Rows]]
    thinned: bool = False  # negatives were dropped to balance the classes
    buckets: int | None = None  # features are hashed to indices below this number


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
        return next(_blocks(path, file), b"")[:4096].split(b"\n")[0]


def _blocks(path: Path, file: HashedFile) -> Iterator[bytes]:
    """The text of a file in blocks of whole lines.

    A last line without an end is an error: it is the mark of a file that was cut short.
    """
    kind, rest = container(path), b""
    buffered = io.BufferedReader(file, 1 << 20)
    try:
        stream: Any = buffered
        if kind == "xz":
            stream = lzma.LZMAFile(buffered)  # noqa: SIM115
        elif kind != "plain":  # twice as fast as the readers of the standard library
            stream = pyarrow.CompressedInputStream(pyarrow.PythonFile(buffered, "r"), kind)
        while piece := stream.read(BLOCK_BYTES):
            end = piece.rfind(b"\n") + 1
            if end:
                yield rest + piece[:end]
            rest = piece[end:] if end else rest + piece
            if len(rest) > MAX_LINE:
                raise DataError(f"{path} is not text: no line end in {len(rest):,} bytes")
    except (OSError, EOFError, lzma.LZMAError, ValueError) as error:
        raise DataError(f"{path} is cut short or damaged: {error}") from None
    if rest:
        raise DataError(f"{path} is cut short: its last line has no end")


def read_text(
    path: Path, file: HashedFile, rows_of: Callable[[bytes], Rows], *, header: bool = False
) -> Iterator[Rows]:
    """The rows of a text, block by block; with `header` the first line is passed over.

    Another thread reads the next block while one is in use.
    """
    blocks, before = _blocks(path, file), 0
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, blocks, b"")
        while block := following.result():
            following = pool.submit(next, blocks, b"")
            if header and before == 0:
                before, block = 1, block.partition(b"\n")[2]
            try:
                if block:
                    yield rows_of(block)
            except BadRow as error:
                row, reason = error.args
                if before + row == 0 and block.lstrip(b'\xef\xbb\xbf#" ')[:1].isalpha():
                    reason += " (a header?)"
                raise DataError(f"{path}, line {before + row + 1:,}: {reason}") from None
            before += block.count(b"\n")


def read_columns(
    block: bytes, names: Sequence[str], delimiter: str, kind: str, allowed: bytes
) -> list[NDArray[Any]]:
    """The columns of a block, all of one type; what cannot be read so is a `BadRow`.

    Arrow forgives blanks around a number and ends a line at a lone carriage return, so the text
    may only have the `allowed` bytes, and the rows are counted.
    """
    if stray := block.translate(None, allowed):
        position = block.index(stray[:1])
        start = block.rfind(b"\n", 0, position) + 1
        column = block[start:position].count(delimiter.encode())
        cell = block[start:].split(b"\n", 1)[0].split(delimiter.encode())[column][:20]
        reason = f"column {column + 1}: not a number: {cell.decode(errors='replace')!r}"
        raise BadRow(block[:position].count(b"\n"), reason)

    def parsed(**options: Any) -> pyarrow.Table:
        return csv.read_csv(
            pyarrow.BufferReader(block),
            csv.ReadOptions(column_names=names, **options),
            csv.ParseOptions(delimiter=delimiter, quote_char=False, ignore_empty_lines=False),
            csv.ConvertOptions(column_types=dict.fromkeys(names, kind), null_values=[]),
        )

    try:
        table = parsed()
    except pyarrow.ArrowInvalid:
        try:  # only one thread knows the row
            table = parsed(use_threads=False)
        except pyarrow.ArrowInvalid as error:
            reason = str(error).split("\n")[0]
            row = re.search(r"Row #(\d+): ", reason)
            if value := re.search(r"column #(\d+): .* invalid value ('.*')", reason):
                reason = f"column {int(value[1]) + 1}: not a number: {value[2]}"
            if count := re.search(r"Expected \d+ columns, got \d+", reason):
                reason = count[0]
            raise BadRow(int(row[1]) - 1 if row else 0, reason) from None
    if table.num_rows != block.count(b"\n"):
        raise BadRow(0, "from here on a line is empty or has a carriage return within it")
    return [column.to_numpy() for column in table.columns]


def check_rows(bad: NDArray[np.bool_], reason: str) -> None:
    """Raise an error that names the first bad row, and the column where rows have several."""
    if bad.any():
        row, *column = np.unravel_index(int(np.argmax(bad)), bad.shape)
        where = f"feature {column[0] + 1}: " if column else ""
        raise BadRow(int(row), f"{where}{reason}")


def parquet_names(path: Path) -> tuple[str, ...]:
    """The names of a table's columns."""
    try:
        return tuple(parquet.read_schema(path).names)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path} is cut short or damaged: {error}") from None


def read_parquet(
    path: Path,
    file: HashedFile,
    rows_of: Callable[[Any], Rows],
    *,
    needed: tuple[str, ...],
    optional: tuple[str, ...] = (),
) -> Iterator[Rows]:
    """The rows of a table, batch by batch, from the columns that are needed."""
    start = 0
    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as table:
            present = table.schema_arrow.names
            if missing := [name for name in needed if name not in present]:
                raise DataError(f"{path} has no column {missing[0]}; it needs {', '.join(needed)}")
            columns = [name for name in (*needed, *optional) if name in present]
            for batch in table.iter_batches(PARQUET_ROWS, columns=columns):
                batch.validate(full=True)
                yield rows_of(batch)
                start += batch.num_rows
    except BadRow as error:
        raise DataError(f"{path}, row {start + error.args[0] + 1:,}: {error.args[1]}") from None
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path} is cut short or damaged: {error}") from None


def numbers(batch: Any, name: str, kinds: str = "buif") -> NDArray[Any]:
    """A column of a batch as numbers, none of them missing; `kinds` "ui" are whole ones."""
    column = batch.column(name)
    check_rows(np.asarray(column.is_null()), f"column {name} is missing")
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in kinds:
        wanted = "numbers" if "f" in kinds else "whole numbers"
        raise BadRow(0, f"column {name} holds {column.type}, not {wanted}")
    return values
