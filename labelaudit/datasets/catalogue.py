"""Where each data set comes from, as `catalogue.yml` lists it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from labelaudit.datasets.dataset import TEST_ROWS


@dataclass(frozen=True)
class RemoteFile:
    """A file that can be fetched, from any of several addresses."""

    name: str
    mirrors: tuple[str, ...]
    size: int | None = None
    checksum: str | None = None  # "sha256:..." or "md5:..."


@dataclass(frozen=True)
class Source:
    """A data set as its owners publish it."""

    name: str
    title: str
    rows: int
    positive_rate: float
    files: tuple[RemoteFile, ...]
    home: str
    layouts: str
    licence: str
    citation: str
    test_rows: int = TEST_ROWS
    first_rows_for_testing: bool = True  # as in the paper; otherwise they are drawn by seed
    note: str = ""


def _source(name: str, entry: dict[str, Any]) -> Source:
    files = (RemoteFile(**file | {"mirrors": tuple(file["mirrors"])}) for file in entry["files"])
    return Source(name=name, **entry | {"files": tuple(files)})


_ENTRIES = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text(encoding="utf-8"))
CATALOGUE = {name: _source(name, entry) for name, entry in _ENTRIES.items()}
