"""Results that are found by what made them: one small file per run, written in one step.

A result's name is the sha256 of its configuration, the fingerprint of its data and `SCHEMA`, so a
changed configuration, data set or schema never finds an old result. A file appears complete or
not at all; any number of sweeps may write to one folder, on a shared file system too, and two
stores are merged by copying one into the other. A folder looks like this::

    store.json                 {"schema": 1}
    4f/4f21...c9.json          configuration, data, result, what made it, and a checksum of all
"""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labelaudit.command_line import CommandError
from labelaudit.files import canonical, digest, file_digest, write_atomically

# Raise it whenever the same configuration would give another result, or a record has a new layout.
SCHEMA = 1


class StoreError(CommandError):
    """The store cannot be used as it is; the message says which file and what to do."""

    status = 1


class Damaged(StoreError):
    """A result file that is not, byte for byte, what was written."""


def key(configuration: Mapping[str, Any], data: str, schema: int = SCHEMA) -> str:
    """The name of a result: a digest of the configuration, the data's fingerprint, the schema.

    >>> key({"seed": 1}, "abc")[:8], key({"seed": 2}, "abc")[:8]
    ('cdce0b5d', '48ce15e4')
    """
    return digest({"configuration": configuration, "data": data, "schema": schema})


@dataclass(frozen=True)
class Record:
    """A result and what made it.

    >>> Record({"seed": 1}, data="abc", result={"auc": 0.7}).key[:8]
    'cdce0b5d'
    """

    configuration: dict[str, Any]
    data: str
    result: dict[str, Any]
    made: dict[str, Any] = field(default_factory=dict)
    schema: int = SCHEMA

    @property
    def key(self) -> str:
        """The record's name."""
        return key(self.configuration, self.data, self.schema)


class Store:
    """A folder of results. Nothing is created before it is claimed or written to.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     name = store.write(Record({"seed": 1}, data="abc", result={"auc": 0.7}))
    ...     name in store, store.read(name).result
    (True, {'auc': 0.7})
    """

    def __init__(self, folder: str | Path) -> None:
        """Raise an error where a newer version of this package has written the results."""
        self.folder = Path(folder)
        self._marker = self.folder / "store.json"
        try:
            schema = json.loads(self._marker.read_text(encoding="utf-8"))["schema"]
        except (FileNotFoundError, NotADirectoryError):
            return
        except (ValueError, KeyError, TypeError):
            raise StoreError(f"{self._marker} is damaged; remove it, results are kept") from None
        _check_schema(schema, self.folder)

    def path(self, name: str) -> Path:
        """Where the result of that key is, or would be."""
        return self.folder / name[:2] / f"{name}.json"

    def __contains__(self, name: str) -> bool:
        """Whether there is a file for this key; it may be damaged."""
        return self.path(name).exists()

    def __iter__(self) -> Iterator[str]:
        for path in sorted(self.folder.glob("[0-9a-f][0-9a-f]/*.json")):
            if not path.name.startswith("."):
                yield path.stem

    def read(self, name: str) -> Record | None:
        """One record, checked; None where there is no file."""
        path = self.path(name)
        try:
            text = path.read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except UnicodeDecodeError:
            raise _damaged(path, "is not text") from None
        try:
            content = json.loads(text)
            checksum = content.pop("sha256")
            schema = content["schema"]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise _damaged(path, "is cut short or no result") from None
        _check_schema(schema, path)
        if checksum != digest(content):
            raise _damaged(path, "does not match its checksum")
        record = Record(**content)
        if record.key != name:
            raise _damaged(path, f"holds the result {record.key[:12]}")
        return record

    def claim(self) -> None:
        """Create the folder: one that cannot be written to is an error before any work."""
        if not self._marker.exists():
            self._put(self._marker, canonical({"schema": SCHEMA}))

    def write(self, record: Record) -> str:
        """Keep a record and give its key. An earlier result of the same key stays as it is."""
        name = record.key
        if name not in self:
            content = vars(record)
            self.claim()
            self._put(self.path(name), canonical({**content, "sha256": digest(content)}))
        return name

    def set_aside(self, name: str) -> Path | None:
        """Rename a damaged file, by a digest of its content: its run is done again.

        None where the file is sound or gone: another sweep was quicker.
        """
        path = self.path(name)
        try:
            self.read(name)
        except Damaged:
            with contextlib.suppress(FileNotFoundError):
                aside = path.with_suffix(f".{file_digest(path)[:12]}.damaged")
                os.replace(path, aside)
                return aside
        return None

    def _put(self, path: Path, text: str) -> None:
        try:
            write_atomically(path, text + "\n")
        except OSError as error:
            raise StoreError(
                f"cannot write to {self.folder} ({error.strerror or error}); every result stored so"
                " far is safe, and the same command goes on from there"
            ) from error


def verify(store: Store) -> tuple[int, list[str]]:
    """How many results are sound, and a line for each file that is not.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     name = store.write(Record({"seed": 1}, data="abc", result={"auc": 0.7}))
    ...     verify(store)
    (1, [])
    """
    sound, wrong = 0, []
    for name in store:
        try:
            store.read(name)
            sound += 1
        except StoreError as error:
            wrong.append(str(error))
    return sound, wrong


def _check_schema(schema: Any, where: Path) -> None:
    if not isinstance(schema, int) or schema > SCHEMA:
        raise StoreError(
            f"{where} was written by a newer version of labelaudit (schema {schema}, this one reads"
            f" up to {SCHEMA}); update the package, or choose another folder with --store"
        )


def _damaged(path: Path, what: str) -> Damaged:
    return Damaged(f"{path} {what}; the next sweep sets it aside and runs it again")
