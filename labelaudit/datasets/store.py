"""Prepared sets on disk: memory-mapped arrays, and a manifest that names them.

A set is one folder. Its arrays lie in a subfolder with a name of its own, and `manifest.json`
says which: replacing that one small file, which a file system does in one step, is what makes a
new set current. So a process killed at any moment leaves the old set or the new one.

    higgs/manifest.json          {"format": 1, "arrays": "set-4f21...", "rows": ..., ...}
    higgs/set-4f21.../           features.npy, labels.npy, test_rows.npy
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from labelaudit.command_line import CommandError

FORMAT = 1
HEADER_BYTES = 128
READ_BYTES = 1 << 20
ROWS_MAPPED = 500


class DataError(CommandError):
    """A data set that is not as it should be: its message names the file and the reason."""

    status = 1


class NotPrepared(DataError):
    """The data set has not been prepared on this machine; the message says how to."""


def data_folder() -> Path:
    """Where prepared data live: `$LABELAUDIT_DATA`, or the user's cache folder."""
    if chosen := os.environ.get("LABELAUDIT_DATA"):
        return Path(chosen).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "labelaudit"


class ArrayWriter:
    """Appends rows to an `.npy` file whose length is known only at the end."""

    def __init__(self, path: Path, dtype: Any, columns: int | None) -> None:
        """`columns` is None for a vector."""
        self.dtype, self.columns, self.rows = np.dtype(dtype), columns, 0
        self._file: BinaryIO = open(path, "wb", buffering=0)  # noqa: SIM115
        self._file.write(bytes(HEADER_BYTES))

    def append(self, rows: NDArray[Any]) -> None:
        """Write contiguous rows of the array's type."""
        view = np.ascontiguousarray(rows, self.dtype).reshape(-1).view(np.uint8).data
        while len(view):
            view = view[self._file.write(view) :]
        self.rows += len(rows)

    def __enter__(self) -> ArrayWriter:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file, finished or not."""
        self._file.close()

    def finish(self) -> None:
        """Write the header, now that the shape is known, and wait until all is on disk."""
        shape = (self.rows,) if self.columns is None else (self.rows, self.columns)
        text = f"{{'descr': '{self.dtype.str}', 'fortran_order': False, 'shape': {shape}, }}"
        room = HEADER_BYTES - 10
        header = b"\x93NUMPY\x01\x00" + room.to_bytes(2, "little") + text.ljust(room - 1).encode()
        self._file.seek(0)
        self._file.write(header + b"\n")
        os.fsync(self._file.fileno())


def swap_rows(path: Path, some: NDArray[np.int64], others: NDArray[np.int64]) -> None:
    """Let rows of an `.npy` file change places, pair by pair.

    The file is mapped anew for every few of them: each row brings its neighbours into memory, and
    ten thousand rows all over a long file would bring in most of it.
    """
    for start in range(0, len(some), ROWS_MAPPED):
        here, there = (rows[start : start + ROWS_MAPPED] for rows in (some, others))
        values = np.load(path, mmap_mode="r+")
        values[here], values[there] = values[there], values[here]
        del values
    with open(path, "r+b") as file:
        os.fsync(file.fileno())


def digest_of(path: Path, algorithm: str = "sha256") -> str:
    """The checksum of a file, read in small pieces."""
    total = hashlib.new(algorithm)
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(READ_BYTES):
            total.update(piece)
    return total.hexdigest()


@contextmanager
def new_set(name: str, say: Any = print) -> Iterator[Path]:
    """An empty folder for the arrays of a set; it is removed unless `publish` made it current."""
    # Not on every system; loading what was prepared elsewhere must not need it.
    import fcntl

    root = data_folder() / name
    root.mkdir(parents=True, exist_ok=True)
    with open(root / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DataError(f"another process is preparing {name} in {root}; wait for it") from None
        if _remove_all_but(root, _current(root)):
            say(f"an earlier preparation of {name} did not finish; starting afresh")
        folder = Path(tempfile.mkdtemp(prefix="set-", dir=root))
        folder.chmod(0o755)
        try:
            yield folder
        finally:
            _remove_all_but(root, _current(root))


def publish(name: str, folder: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Make the arrays of `folder` the current set, in one step."""
    root = data_folder() / name
    sums = {path.name: digest_of(path) for path in sorted(folder.glob("*.npy"))}
    manifest = {"format": FORMAT, "name": name, "arrays": folder.name, **facts, "sha256": sums}
    text = json.dumps(manifest, indent=2) + "\n"
    staged = folder / "manifest.json"
    with open(staged, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    _sync_folder(folder)
    os.replace(staged, root / "manifest.json")
    _sync_folder(root)
    return manifest


def read_manifest(name: str) -> dict[str, Any] | None:
    """The manifest of the current set, or None where there is none."""
    path = data_folder() / name / "manifest.json"
    damaged = DataError(f"{path} is damaged; prepare {name} again")
    try:
        manifest = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise DataError(f"{data_folder()} is not a folder to keep data in") from None
    except ValueError:
        raise damaged from None
    if not isinstance(manifest, dict):
        raise damaged
    if manifest.get("format") != FORMAT:
        raise DataError(
            f"{path} has format {manifest.get('format')}, this version reads {FORMAT};"
            f" prepare {name} again"
        )
    if not _is_whole(name, manifest):
        raise damaged
    return manifest


def _is_whole(name: str, manifest: dict[str, Any]) -> bool:
    """Whether a manifest has all that loading and verifying read in it."""
    try:
        rows, columns, sums = (manifest[key] for key in ("rows", "columns", "sha256"))
        return bool(
            manifest["name"] == name
            and {"features.npy", "labels.npy"} <= sums.keys()
            and 0 < manifest["split"]["test_rows"] < rows
            and 0 <= manifest["positive_rate"] <= 1
            and 0 < manifest.get("negatives_kept", 1.0) <= 1
            and len(columns)
            and manifest["arrays"] == Path(manifest["arrays"]).name
            and manifest["source_file"]
            and manifest["source_sha256"]
        )
    except (KeyError, TypeError, AttributeError):
        return False


def open_array(name: str, manifest: Mapping[str, Any], array: str) -> NDArray[Any]:
    """One array of the current set, mapped into memory."""
    path = data_folder() / name / manifest["arrays"] / f"{array}.npy"
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}); prepare {name} again") from None


def check_arrays(name: str, manifest: Mapping[str, Any]) -> None:
    """Refuse a set whose arrays are not, byte for byte, those that were written."""
    for file, expected in manifest["sha256"].items():
        path = data_folder() / name / manifest["arrays"] / file
        if not path.is_file():
            raise DataError(f"{path} is missing; prepare {name} again")
        found = digest_of(path)
        if found != expected:
            raise DataError(
                f"{path} is damaged (sha256 {found[:12]}, expected {expected[:12]});"
                f" prepare {name} again"
            )


def _current(root: Path) -> str | None:
    try:
        return json.loads((root / "manifest.json").read_text(encoding="utf-8"))["arrays"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remove_all_but(root: Path, kept: str | None) -> bool:
    others = [path for path in root.glob("set-*") if path.name != kept]
    for path in others:
        shutil.rmtree(path, ignore_errors=True)
    return bool(others)


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
