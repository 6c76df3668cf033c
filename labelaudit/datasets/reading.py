"""Files in blocks of whole lines, decompressed on the way, read ahead by a thread of their own."""

from __future__ import annotations

import hashlib
import io
import lzma
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelaudit.datasets.store import DataError

BLOCK_BYTES = 1 << 22
BLOCKS_AHEAD = 3

_MAGIC = {
    "gzip": b"\x1f\x8b",
    "bz2": b"BZh",
    "xz": b"\xfd7zXZ\x00",
    "parquet": b"PAR1",
    "zip": b"PK\x03\x04",
}


def container(path: Path) -> str:
    """What a file is by its first bytes: gzip, bz2, xz, parquet, or plain."""
    try:
        with open(path, "rb") as file:
            start = file.read(8)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    if not start:
        raise DataError(f"{path} is empty")
    for name, magic in _MAGIC.items():
        if start.startswith(magic):
            if name == "zip":
                raise DataError(f"{path} is a zip archive; unpack it and name the file inside")
            return name
    return "plain"


class HashedFile(io.RawIOBase):
    """A file whose checksum is computed beside whatever else reads it."""

    def __init__(self, path: Path, tell: Callable[[int], None] = lambda position: None) -> None:
        """`tell` hears of every position reached."""
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115
        self._digest = hashlib.sha256()
        self._hasher = ThreadPoolExecutor(1)
        self._tell = tell
        self.position = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer`, and have what was read hashed by another thread."""
        count = self._file.readinto(buffer)
        if count:
            self._hasher.submit(self._digest.update, bytes(memoryview(buffer)[:count]))
        self.position += count
        self._tell(self.position)
        return count

    def sha256(self) -> str:
        """The checksum of the whole file, whatever is left of it included."""
        while self.read(1 << 20):
            pass
        self._hasher.shutdown()
        return self._digest.hexdigest()

    def close(self) -> None:
        """Do nothing: decompressors close what they read, when its checksum is still to come."""

    def __exit__(self, *_: object) -> None:
        """Close the file and end the hashing thread."""
        self._hasher.shutdown()
        self._file.close()


def _decompressed(file: HashedFile, kind: str) -> Any:
    if kind == "plain":
        return file
    large_steps = io.BufferedReader(file, 1 << 20)
    if kind == "xz":
        return lzma.open(large_steps)
    import pyarrow

    # Arrow decompresses straight into our buffer, which the standard library's readers do not.
    return pyarrow.CompressedInputStream(pyarrow.PythonFile(large_steps, "r"), kind)


def text_blocks(path: Path, file: HashedFile) -> Iterator[NDArray[np.uint8]]:
    """The text of a file in blocks that end with a line end. Each is valid until the next.

    A last line without an end is refused: it is the mark of a file that was cut short.
    """
    free: queue.Queue[Any] = queue.Queue()
    full: queue.Queue[Any] = queue.Queue()
    for _ in range(BLOCKS_AHEAD):
        free.put(np.empty(BLOCK_BYTES, np.uint8))
    reader = threading.Thread(target=_read_ahead, args=(path, file, free, full), daemon=True)
    reader.start()
    try:
        while (block := full.get()) is not None:
            if isinstance(block, Exception):
                raise block
            buffer, length = block
            yield buffer[:length]
            free.put(buffer)
    finally:
        free.put(None)
        reader.join()


def _read_ahead(
    path: Path, file: HashedFile, free: queue.Queue[Any], full: queue.Queue[Any]
) -> None:
    try:
        stream = _decompressed(file, container(path))
        rest = np.empty(0, np.uint8)
        while (buffer := free.get()) is not None:
            buffer[: len(rest)] = rest
            length = len(rest) + _fill(stream, buffer[len(rest) :].data)
            if length < len(buffer):
                if length and buffer[length - 1] != 10:
                    raise DataError(f"{path} is cut short: its last line has no end")
                full.put((buffer, length))
                full.put(None)
                return
            ends = np.flatnonzero(buffer[length - (1 << 16) : length] == 10)
            if not ends.size:
                raise DataError(f"{path} is not text: no line end in 65,536 bytes")
            cut = length - (1 << 16) + int(ends[-1]) + 1
            rest = buffer[cut:length].copy()
            full.put((buffer, cut))
    except (OSError, EOFError, lzma.LZMAError, ValueError) as error:
        full.put(DataError(f"{path} is cut short or damaged: {error}"))
    except Exception as error:
        full.put(error)


def _fill(stream: Any, buffer: memoryview) -> int:
    """Read until the buffer is full or the stream ends."""
    filled = 0
    while filled < len(buffer) and (count := stream.readinto(buffer[filled:])):
        filled += count
    return filled


@contextmanager
def progress(name: str, size: int | None) -> Iterator[Callable[[int], None]]:
    """A line on the terminal that says how far one has come in a file; elsewhere, nothing.

    It is cleared at the end, so that whatever is said next stands on a line of its own.
    """
    last = 0.0
    if not sys.stderr.isatty():
        yield lambda position: None
        return

    def tell(position: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last > 0.2:
            last = now
            share = f" ({position / size:.1%})" if size else ""
            print(f"{name}: {position / 1e6:,.0f} MB{share}", end="\r", file=sys.stderr)

    try:
        yield tell
    finally:
        print("\x1b[K", end="", file=sys.stderr, flush=True)
