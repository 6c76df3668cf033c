"""The files a reader gives to the server: kept by their content, deleted when asked.

Over HTTP a file is named by its digest alone, so that no path of the machine is ever accepted.
"""

from __future__ import annotations

import hashlib
import io
import re
import shutil
from pathlib import Path
from typing import IO, Any

from book.tools.checkout import Checkout
from book.tools.parameters import ContractError
from labelaudit.files import write_atomically

PROGRAM = ".py"
SUFFIXES = (".csv", ".parquet", PROGRAM)
REFERENCE = re.compile(r"upload:([0-9a-f]{64})")
MAX_FILE_NAME = 80
# In bytes, of the first line of a table; more would be columns that nobody has named.
MAX_HEADER_LINE = 1_000_000
# Values of a table: a small parquet file can claim more than any memory holds.
MAX_TABLE_VALUES = 200_000_000


def store(checkout: Checkout, name: str, content: bytes) -> dict[str, Any]:
    """Keep a file that can be read, and describe it; one that is rejected is never written."""
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise ContractError(f"{Path(name).name!r} is not a file of {', '.join(SUFFIXES)}")
    if not content:
        raise ContractError(f"{Path(name).name!r} is empty")
    stem = re.sub(r"[^\w-]+", "_", Path(name).stem).strip("_")[:MAX_FILE_NAME] or "table"
    digest = hashlib.sha256(content).hexdigest()
    path = checkout.uploads / digest / f"{stem}{suffix}"
    if suffix != PROGRAM:
        _columns(path.name, io.BytesIO(content))
    write_atomically(path, content)
    # The same content under another name takes the new name.
    for other in path.parent.iterdir():
        if other != path:
            other.unlink()
    return describe(path)


def describe(path: Path) -> dict[str, Any]:
    """A stored file as pages name it; a table with its columns."""
    about: dict[str, Any] = {"reference": f"upload:{path.parent.name}", "name": path.name}
    about["bytes"] = path.stat().st_size
    return about if path.suffix == PROGRAM else about | {"columns": columns(path)}


def list_files(checkout: Checkout) -> list[dict[str, Any]]:
    """Every file that is kept; one that cannot be read, by its name alone."""
    described = []
    for folder in sorted(checkout.uploads.glob("*")):
        for path in folder.glob("*"):
            try:
                described.append(describe(path))
            except (ContractError, OSError):
                described.append({"reference": f"upload:{folder.name}", "name": path.name})
    return described


def _folder(checkout: Checkout, reference: str) -> Path:
    match = REFERENCE.fullmatch(reference)
    if match is None:
        raise ContractError("a file is given by choosing it here; no path is accepted")
    return checkout.uploads.resolve() / match[1]


def find(checkout: Checkout, reference: str) -> Path:
    """The file of a reference; anything else, a path above all, is an error."""
    files = [path for path in _folder(checkout, reference).glob("*") if not path.is_symlink()]
    if not files:
        raise ContractError("this file is no longer here; choose it again")
    return min(files)


def delete(checkout: Checkout, reference: str) -> None:
    """Remove a file that was given, if it is still there."""
    shutil.rmtree(_folder(checkout, reference), ignore_errors=True)


def columns(path: Path) -> list[str]:
    """The names of a table's columns, without reading the rest of it."""
    with path.open("rb") as file:
        return _columns(path.name, file)


def _columns(name: str, file: IO[bytes]) -> list[str]:
    read = _parquet_columns if name.endswith(".parquet") else _csv_columns
    try:
        return read(file)
    except Exception as error:
        raise ContractError(f"{name} cannot be read as a table: {error}") from None


def _parquet_columns(file: IO[bytes]) -> list[str]:
    import pyarrow.parquet

    about = pyarrow.parquet.read_metadata(file)
    if about.num_rows * about.num_columns > MAX_TABLE_VALUES:
        rows = f"{about.num_rows:,} rows of {about.num_columns:,} columns"
        raise ValueError(f"it has {rows}; at most {MAX_TABLE_VALUES:,} values are accepted")
    return [str(name) for name in about.schema.to_arrow_schema().names]


def _csv_columns(file: IO[bytes]) -> list[str]:
    import pandas

    start = file.read(MAX_HEADER_LINE)
    if len(start) == MAX_HEADER_LINE and b"\n" not in start and b"\r" not in start:
        raise ValueError(f"its first line has more than {MAX_HEADER_LINE:,} bytes")
    start = start[: start.rfind(b"\n") + 1] or start
    return [str(name) for name in pandas.read_csv(io.BytesIO(start), nrows=0, dtype=str).columns]


def reference(checkout: Checkout, path: str) -> str:
    """The reference of a file that was given; empty for any other."""
    parent = Path(path).parent
    return f"upload:{parent.name}" if path and parent.parent == checkout.uploads.resolve() else ""
