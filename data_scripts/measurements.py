"""Tables of numbers: a label and features as comma-separated text or parquet."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data_scripts import reading
from data_scripts.reading import HashedFile, Layout, Rows, check_rows, numbers

# Where a table says which rows it has of UCI's file, those below this number are for testing.
UCI_TEST_ROWS = 10_000


@dataclass(frozen=True, kw_only=True)
class Measurements:
    """Which columns a file has, in its order, and which of them are the label and the features.

    A label above 0 is positive; `largest_label` is 2 where the file tells two positives apart.
    """

    columns: tuple[str, ...]
    features: tuple[str, ...]
    label: str = "label"
    largest_label: int = 1
    header: bool = False
    sources: dict[str, int] = field(default_factory=dict)

    def layout(self, path: Path) -> Layout:
        """How to read the file, by its first bytes."""
        is_table = reading.container(path) == "parquet"
        read = self.read_parquet if is_table else self.read_text
        name = "parquet" if is_table else "csv"
        return Layout(name=name, columns=self.features, dtype=np.float32, read=read)

    def read_text(self, path: Path, file: HashedFile) -> Iterator[Rows]:
        """The rows of comma-separated text."""
        return reading.read_text(path, file, self._rows_of_block, header=self.header)

    def _rows_of_block(self, block: bytes) -> Rows:
        allowed = b"0123456789.eE+-,\r\n"
        read = reading.read_columns(block, self.columns, ",", "float32", allowed)
        columns = dict(zip(self.columns, read, strict=True))
        return self._rows(columns[self.label], [columns[name] for name in self.features])

    def _rows(self, labels: NDArray[Any], columns: list[NDArray[Any]], **others: Any) -> Rows:
        wrong = ~np.isin(labels, range(self.largest_label + 1))
        check_rows(
            wrong, f"the label is not {'0 or 1' if self.largest_label == 1 else '0, 1 or 2'}"
        )
        with np.errstate(over="ignore"):
            features = np.column_stack(
                [values.astype(np.float32, copy=False) for values in columns]
            )
        check_rows(~np.isfinite(features), "NaN or infinite, or beyond the range of float32")
        return Rows(features, (labels > 0).astype(np.uint8), **others)

    def read_parquet(self, path: Path, file: HashedFile) -> Iterator[Rows]:
        """The rows of a table; `source` names strata, `uci_row` the rows for testing."""
        needed = (self.label, *self.features)
        optional = ("source", "uci_row")
        rows_of = self._rows_of_batch
        return reading.read_parquet(path, file, rows_of, needed=needed, optional=optional)

    def _rows_of_batch(self, batch: Any) -> Rows:
        strata = for_testing = None
        if "uci_row" in batch.schema.names:  # -1 marks a row of unknown position
            positions = numbers(batch, "uci_row", "ui")
            for_testing = (positions >= 0) & (positions < UCI_TEST_ROWS)
        elif "source" in batch.schema.names:
            names = batch.column("source").to_pylist()
            codes = [self.sources.setdefault(str(name), len(self.sources)) for name in names]
            strata = np.array(codes, np.int32)
        columns = [numbers(batch, name) for name in self.features]
        labels = numbers(batch, self.label)
        return self._rows(labels, columns, strata=strata, for_testing=for_testing)
