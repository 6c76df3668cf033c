"""Where each data set comes from, as `labelaudit/datasets/catalogue.yml` lists it."""

from dataclasses import dataclass
from typing import Any

from labelaudit import datasets
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


CATALOGUE = {name: _source(name, entry) for name, entry in datasets.CATALOGUE.items()}
