"""Tables of numbers: a label and features as comma-separated text or parquet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data_scripts import reading
from data_scripts.reading import BadCell, HashedFile, Layout, Rows
from labelaudit.datasets.store import DataError

# Where a table says which rows it has of UCI's file, those below this number are for testing.
UCI_TEST_ROWS = 10_000


@dataclass(frozen=True)
class Measurements:
    """Which columns a file has, in its order, and which of them are the label and the features.

    A label above 0 is positive; `largest_label` is 2 where the file tells two positives apart.
    """

    columns: tuple[str, ...]
    features: tuple[str, ...]
    label: str = "label"
    largest_label: int = 1
    header: bool = False

    def layout(self, path: Path) -> Layout:
        """How to read the file, by its first bytes."""
        if reading.container(path) == "parquet":
            return Layout("parquet", self.features, np.float32, self.read_parquet)
        return Layout("csv", self.features, np.float32, self.read_text)

    def read_text(self, path: Path, file: HashedFile) -> Iterator[Rows]:
        """The rows of comma-separated text."""
        fast, slow = self.fast_rows, self.slow_row
        return reading.read_lines(path, file, fast, slow, np.float32, header=self.header)

    def fast_rows(self, block: bytes) -> Rows | None:
        """The rows of a block, or None if any of its bytes is unusual."""
        if block.translate(None, b"0123456789.eE+-,\r\n"):
            return None
        columns = reading.read_csv(block, self.columns, ",", "float32")
        if columns is None:
            return None
        by_name = dict(zip(self.columns, columns, strict=True))
        features = np.column_stack([by_name[name] for name in self.features])
        labels = by_name[self.label]
        if not np.isfinite(features).all() or self._invalid(labels).any():
            return None
        return Rows(features, (labels > 0).astype(np.uint8))

    def slow_row(self, line: bytes) -> tuple[int, list[float]]:
        """The label and the features of one line."""
        cells = line.split(b",")
        values = {}
        for column, (name, cell) in enumerate(zip(self.columns, cells, strict=False), start=1):
            if name == self.label:
                values[name] = self._label(column, cell)
            elif name in self.features:
                values[name] = _feature(column, cell)
        reading.check_count(cells, len(self.columns))
        return int(values[self.label] > 0), [values[name] for name in self.features]

    def _label(self, column: int, cell: bytes) -> float:
        start = reading.NUMBER.match(cell)
        if start and start.end() < len(cell):
            raise BadCell(column, "not a number", cell)
        if not start or self._invalid(np.array(float(cell))):
            raise BadCell(column, self._expected_label, cell)
        return float(cell)

    def _invalid(self, labels: NDArray[Any]) -> NDArray[np.bool_]:
        return ~np.isin(labels, range(self.largest_label + 1))

    @property
    def _expected_label(self) -> str:
        return (
            "the label is not 0 or 1" if self.largest_label == 1 else "the label is not 0, 1 or 2"
        )

    def read_parquet(self, path: Path, file: HashedFile) -> Iterator[Rows]:
        """The rows of a table; `source` names strata, `uci_row` the rows for testing."""
        known: dict[str, int] = {}
        needed = (self.label, *self.features)
        for start, batch in reading.parquet_batches(path, needed, ("source", "uci_row")):
            columns = [reading.numbers(batch, name, path, start) for name in self.features]
            with np.errstate(over="ignore"):
                features = np.column_stack([values.astype(np.float32) for values in columns])
            unsound = np.asarray(~np.isfinite(features).all(axis=1))
            reading.check_rows(unsound, path, start, "a NaN or infinite feature")
            labels = reading.numbers(batch, self.label, path, start)
            reading.check_rows(self._invalid(labels), path, start, self._expected_label)
            strata = for_testing = None
            if "uci_row" in batch.schema.names:
                for_testing = _in_uci_test_set(batch, path, start)
            elif "source" in batch.schema.names:
                sources = batch.column("source").to_pylist()
                codes = [known.setdefault(str(source), len(known)) for source in sources]
                strata = np.array(codes, np.int32)
            yield Rows(features, (labels > 0).astype(np.uint8), strata, for_testing)


def _feature(column: int, cell: bytes) -> float:
    is_number = reading.NUMBER.fullmatch(cell)
    if not is_number and not re.match(rb"[+-]?(nan|inf)", cell, re.IGNORECASE):
        raise BadCell(column, "not a number", cell)
    if not is_number or abs(float(cell)) > reading.LARGEST:
        raise BadCell(column, "NaN or infinite, or beyond the range of float32", cell)
    return float(cell)


def _in_uci_test_set(batch: Any, path: Path, start: int) -> NDArray[np.bool_]:
    """Which rows are among the first 10,000 of UCI's file; -1 marks a row of unknown position."""
    positions = reading.numbers(batch, "uci_row", path, start)
    if positions.dtype.kind not in "ui":
        raise DataError(f"{path}: column uci_row holds {positions.dtype}, not whole numbers")
    return np.asarray((positions >= 0) & (positions < UCI_TEST_ROWS))
