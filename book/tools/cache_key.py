"""The cache key: everything an executed chapter depends on, and nothing else.

A chapter is out of date as soon as one ingredient differs from those stored with its execution.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from book.tools.chapters import Chapter
from book.tools.checkout import Checkout
from book.tools.parameters import ContractError
from labelaudit.files import digest, file_digest


def ingredients(
    checkout: Checkout, chapter: Chapter, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """One digest per ingredient, so that a re-run can say which of them changed."""
    return {
        "source": digest_of_files([checkout.source(chapter.id)]),
        "parameters": digest(parameters),
        "package": package_digest(checkout),
        "lock file": digest_of_files([checkout.root / "requirements.lock"]),
        "data": digest(data_read(checkout, chapter, parameters)),
    }


def run_name(chapter: str, parameters: Mapping[str, Any]) -> str:
    """The folder of an execution: the chapter and a short digest of its parameters."""
    return f"{chapter}-{digest(parameters)[:10]}"


def digest_of_files(paths: Iterable[Path], root: Path | None = None) -> str:
    """A digest of files' contents, and of their places below `root` where one is given."""
    total = hashlib.sha256()
    for path in sorted(paths):
        place = path.relative_to(root).as_posix() if root else path.name
        content = file_digest(path) if path.is_file() else "absent"
        total.update(f"{place}\0{content}\n".encode())
    return total.hexdigest()


def package_digest(checkout: Checkout) -> str:
    """A digest of every source file of the package, compiled files left out."""
    package = checkout.package
    files = [path for path in package.rglob("*") if path.is_file()]
    kept = [
        path
        for path in files
        if path.suffix not in (".pyc", ".nbi", ".nbc") and "__pycache__" not in path.parts
    ]
    return digest_of_files(kept, package)


def data_read(
    checkout: Checkout, chapter: Chapter, parameters: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """What the chapter reads: name, fingerprint, and whether it is simulated.

    A declared name is a data set, or a file of the checkout where it has a suffix; a parameter
    of type path is a file of the reader's own.
    """
    read = [
        _file(name, checkout.root / name) if Path(name).suffix else _data_set(name)
        for name in chapter.data
    ]
    own = [
        Path(path)
        for name, value in parameters.items()
        if chapter.parameters[name].kind == "path"
        for path in (value if isinstance(value, list) else [value])
        if path
    ]
    return read + [_file(path.name, path) for path in own]


def _file(name: str, path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ContractError(f"there is no file {path}")
    return {"name": name, "fingerprint": file_digest(path), "simulated": False}


def _data_set(name: str) -> dict[str, Any]:
    # Imported by name: a book whose chapters read no data set must not need the module.
    data = importlib.import_module("labelaudit.datasets").load_or_standin(name)
    return {"name": name, "fingerprint": data.fingerprint, "simulated": data.simulated}
