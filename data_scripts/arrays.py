"""Where the arrays of a new set are written, and the one step that makes it the current set."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from book.tools.locks import Busy, locked
from labelaudit.datasets.store import FORMAT, DataError, data_folder
from labelaudit.files import file_digest, write_atomically

ROWS_MAPPED = 500


@contextmanager
def new_set(name: str, say: Callable[[str], None] = print) -> Iterator[Path]:
    """An empty folder for the arrays of a set; it is removed unless `publish` made it current."""
    root = data_folder() / name
    try:
        with locked(root / "lock"):
            if _remove_unused(root):
                say(f"an earlier preparation of {name} did not finish; starting afresh")
            folder = Path(tempfile.mkdtemp(prefix="set-", dir=root))
            folder.chmod(0o755)
            try:
                yield folder
            except OSError as error:
                if error.filename is not None:
                    raise
                raise DataError(f"{folder} cannot be written: {error.strerror or error}") from None
            finally:
                _remove_unused(root)
    except Busy:
        raise DataError(f"another process is preparing {name} in {root}; wait for it") from None


def _remove_unused(root: Path) -> bool:
    """Remove every set but the current one; whether there was any."""
    current = None
    with suppress(OSError, ValueError, KeyError, TypeError):
        current = json.loads((root / "manifest.json").read_text(encoding="utf-8"))["arrays"]
    others = [path for path in root.glob("set-*") if path.name != current]
    for path in others:
        shutil.rmtree(path, ignore_errors=True)
    return bool(others)


def publish(name: str, folder: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """Make the arrays of `folder` the current set, in one step."""
    sums = {path.name: file_digest(path) for path in sorted(folder.glob("*.npy"))}
    manifest = {
        "format": FORMAT,
        "name": name,
        "arrays": folder.name,
        **facts,
        "sha256": sums,
    }
    _sync(folder)
    write_atomically(folder.parent / "manifest.json", json.dumps(manifest, indent=2) + "\n")
    _sync(folder.parent)
    return manifest


def _sync(folder: Path) -> None:
    """Have the names in a folder written to the disk, on systems where a folder can be opened."""
    with suppress(PermissionError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def swap_rows(path: Path, front: NDArray[np.int64], behind: NDArray[np.int64]) -> None:
    """Swap rows of an `.npy` file, pair by pair.

    The file is mapped anew for every few pairs: each row brings its neighbours into memory, and
    ten thousand rows all over a long file would bring in most of it.
    """
    for start in range(0, len(front), ROWS_MAPPED):
        some, others = (rows[start : start + ROWS_MAPPED] for rows in (front, behind))
        values = np.load(path, mmap_mode="r+")
        values[some], values[others] = values[others], values[some]
        del values
    with open(path, "r+b") as file:
        os.fsync(file.fileno())


def write_header(file: BinaryIO, dtype: type, shape: tuple[int, ...]) -> None:
    """Write the header of an `.npy` file; numpy leaves room in it for the rows to become more."""
    file.seek(0)
    header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
