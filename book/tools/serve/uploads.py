"""The files a reader gives to the server: kept by their content, deleted when asked.

Over HTTP a file is named by its digest alone, so that no path of the machine is ever accepted.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path
from typing import Any

from book.tools.checkout import Checkout
from book.tools.parameters import ContractError
from labelaudit.files import write_atomically

SUFFIXES = (".csv", ".parquet", ".py")
REFERENCE = re.compile(r"upload:([0-9a-f]{64})")
LONGEST_NAME = 80


def store(checkout: Checkout, name: str, content: bytes) -> dict[str, Any]:
    """Keep a file, and give the reference by which it is named from now on."""
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise ContractError(f"{Path(name).name!r} is not a file of {', '.join(SUFFIXES)}")
    if not content:
        raise ContractError(f"{Path(name).name!r} is empty")
    stem = re.sub(r"[^\w-]+", "_", Path(name).stem).strip("_")[:LONGEST_NAME] or "table"
    digest = hashlib.sha256(content).hexdigest()
    folder = checkout.uploads / digest
    # The same content under another name takes the new name.
    shutil.rmtree(folder, ignore_errors=True)
    path = folder / f"{stem}{suffix}"
    write_atomically(path, content)
    return {"reference": f"upload:{digest}", "name": path.name, "bytes": len(content)}


def find(checkout: Checkout, reference: str) -> Path:
    """The file of a reference; anything else, a path above all, is an error."""
    match = REFERENCE.fullmatch(reference)
    if match is None:
        raise ContractError("a file is given by choosing it here; no path is accepted")
    files = sorted((checkout.uploads / match[1]).glob("*"))
    if not files:
        raise ContractError("this file is no longer here; choose it again")
    return files[0].resolve()


def delete(checkout: Checkout, reference: str) -> None:
    """Remove a file that was given."""
    shutil.rmtree(find(checkout, reference).parent)


def columns(path: Path) -> list[str]:
    """The names of a table's columns, without reading the rest of it."""
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet

            return [str(name) for name in pyarrow.parquet.read_schema(path).names]
        import pandas

        return [str(name) for name in pandas.read_csv(path, nrows=1, dtype=str).columns]
    except Exception as error:
        raise ContractError(f"{path.name} cannot be read as a table: {error}") from None


def reference(checkout: Checkout, path: str) -> str:
    """The reference of a file that was given; empty for any other."""
    parent = Path(path).parent
    return f"upload:{parent.name}" if path and parent.parent == checkout.uploads.resolve() else ""
