"""The cache key: everything an executed chapter depends on, and nothing else.

A chapter is out of date as soon as one ingredient differs from those stored with its execution. Of
the package only the modules count that the execution imported, with the data files beside them. A
module that it would import from now on is seen as well: the module that imports it has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from book.tools.chapters import Chapter
from book.tools.checkout import Checkout
from book.tools.kernel import SETTINGS
from book.tools.parameters import ContractError
from labelaudit.files import digest, file_digest

Data = list[dict[str, Any]]
# The folders of `book` that chapters import.
BOOK_PARTS = ("chapters", "ledger", "sweep")


def ingredients(
    checkout: Checkout, chapter: Chapter, parameters: Mapping[str, Any], data: Data
) -> dict[str, str]:
    """One digest per ingredient but the package, so that a re-run can say which has changed."""
    return {
        "source": file_digest(checkout.source(chapter.id)),
        "parameters": digest(parameters),
        "lock file": file_digest(checkout.root / "requirements.lock"),
        "data": digest(data),
        "kernel": digest(SETTINGS),
    }


def run_name(chapter: str, parameters: Mapping[str, Any]) -> str:
    """The folder of an execution: the chapter and a short digest of its parameters."""
    return f"{chapter}-{digest(parameters)[:10]}"


def folder_files(folder: Path) -> dict[str, str]:
    """The digest of every file below a folder, by its relative path, compiled files left out."""
    return {
        path.relative_to(folder).as_posix(): file_digest(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path.suffix not in (".pyc", ".nbi", ".nbc")
        and "__pycache__" not in path.parts
    }


def package_files(checkout: Checkout) -> dict[str, str]:
    """The digest of every file that chapters may import, in the package and in the book."""
    files = folder_files(checkout.package)
    for part in BOOK_PARTS:
        helpers = folder_files(checkout.package.parent / "book" / part)
        files |= {f"{part}/{name}": value for name, value in helpers.items()}
    return files


def imported_files(package: Mapping[str, str], modules: Iterable[str]) -> dict[str, str]:
    """The files of the package that belong to imported modules, with their digests.

    A file that is not Python, such as a table or a template, counts with the innermost package
    around it.

    >>> files = {"__init__.py": "1", "a/__init__.py": "2", "a/b.py": "3", "a/t/x.yml": "4"}
    >>> list(imported_files(files, ["labelaudit", "labelaudit.a"]))
    ['__init__.py', 'a/__init__.py', 'a/t/x.yml']
    """
    stems = {name.replace(".", "/").partition("/")[2] for name in modules}
    imported = {str(PurePosixPath(stem, "__init__.py")) for stem in stems}
    imported |= {f"{stem}.py" for stem in stems}
    return {
        name: value
        for name, value in package.items()
        if name in imported or (not name.endswith(".py") and _package_of(name, package) in imported)
    }


def _package_of(name: str, package: Mapping[str, str]) -> str:
    inits = [str(folder / "__init__.py") for folder in PurePosixPath(name).parents]
    return next(init for init in inits if init in package)


def data_read(checkout: Checkout, chapter: Chapter, parameters: Mapping[str, Any]) -> Data:
    """What the chapter reads: name, fingerprint, and whether it is simulated.

    A declared name is a data set, or a file of the clone where it has a suffix. `prepared higgs` is
    a data set that counts only where it is prepared. A parameter of type path is a file of the
    reader's own.
    """
    declared = [
        _file(name, checkout.root / name) if Path(name).suffix else _data_set(name)
        for name in chapter.data
        if not name.startswith("prepared ") or _is_prepared(name.removeprefix("prepared "))
    ]
    own = [
        Path(path)
        for name, value in parameters.items()
        if chapter.parameters[name].kind == "path"
        for path in (value if isinstance(value, list) else [value])
        if path
    ]
    return declared + [_file(path.name, path) for path in own]


def _file(name: str, path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ContractError(f"there is no file {path}")
    return {"name": name, "fingerprint": file_digest(path), "simulated": False}


def _is_prepared(name: str) -> bool:
    from labelaudit.datasets.store import read_manifest

    return read_manifest(name) is not None


def _data_set(name: str) -> dict[str, Any]:
    from labelaudit import datasets

    name = name.removeprefix("prepared ")
    data = datasets.load_or_standin(name)
    return {"name": name, "fingerprint": data.fingerprint, "simulated": data.simulated}
