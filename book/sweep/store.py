"""Results that are found by what made them: one small file per run, written in one step.

A result's name is the sha256 of its configuration, the fingerprint of its data and `SCHEMA`, so a
changed configuration, data set or schema never finds an old result. A file appears complete or
not at all; any number of sweeps may write to one folder, on a shared file system too, and two
stores are merged by copying one into the other. A folder looks like this::

    4f/4f21...c9.json          configuration, data, result, what made it, and a checksum of all
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labelaudit.files import canonical, digest, file_digest, write_atomically

# Raise it whenever the same configuration would give another result, or a record has a new layout.
SCHEMA = 1


def key(configuration: Mapping[str, Any], data: str, schema: int = SCHEMA) -> str:
    """The name of a result: a digest of the configuration, the data's fingerprint, the schema.

    >>> key({"seed": 1}, "abc")[:8], key({"seed": 2}, "abc")[:8]
    ('cdce0b5d', '48ce15e4')
    """
    return digest({"configuration": configuration, "data": data, "schema": schema})


@dataclass(frozen=True, kw_only=True)
class Record:
    """A result and what made it."""

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
    """A folder of results. Nothing is created before the first is written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     name = store.write(Record(configuration={"seed": 1}, data="abc", result={"auc": 0.7}))
    ...     list(store) == [name], store.read(name).result
    (True, {'auc': 0.7})
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, name: str) -> Path:
        """Where the result of that key is, or would be."""
        return self.folder / name[:2] / f"{name}.json"

    def __contains__(self, name: str) -> bool:
        return self.path(name).exists()

    def __iter__(self) -> Iterator[str]:
        for path in sorted(self.folder.glob("[0-9a-f][0-9a-f]/[!.]*.json")):
            yield path.stem

    def read(self, name: str) -> Record | None:
        """One record; None where there is no file, or one that is not what was written."""
        try:
            content = json.loads(self.path(name).read_text(encoding="utf-8"))
            checksum = content.pop("sha256")
            record = Record(**content)
        except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
            return None
        return record if (checksum, name) == (digest(content), record.key) else None

    def write(self, record: Record) -> str:
        """Keep a record and give its key. An earlier result of the same key stays as it is."""
        name, content = record.key, vars(record)
        if name not in self:
            text = canonical({**content, "sha256": digest(content)})
            write_atomically(self.path(name), text + "\n")
        return name

    def set_aside(self, name: str) -> None:
        """Rename a damaged file, by a digest of its content; one that is sound or gone stays so."""
        path = self.path(name)
        with contextlib.suppress(FileNotFoundError):  # another sweep was quicker
            if self.read(name) is None:
                path.rename(path.with_suffix(f".{file_digest(path)[:12]}.damaged"))
