"""Fetch, prepare and verify CDC Diabetes Health Indicators (BRFSS 2015): see --help."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from data_scripts import reading
from data_scripts.measurements import Measurements
from data_scripts.reading import Layout
from labelaudit.datasets.columns import DIABETES
from labelaudit.datasets.store import DataError

# Under each name of the label column, its largest value. 012 tells prediabetes from diabetes.
LABELS = {"Diabetes_binary": 1, "Diabetes_012": 2, "label": 1}


def layout_of(path: Path) -> Layout:
    """UCI's csv, a csv of the same columns in any order, or the same as parquet."""
    if reading.container(path) == "parquet":
        columns = reading.parquet_names(path)
    else:
        header = reading.first_line(path).decode(errors="replace")
        columns = tuple(name.strip('" \r\ufeff') for name in header.split(","))
    label = next((name for name in LABELS if name in columns), None)
    if label is None:
        raise DataError(f"{path} has no column {', '.join(LABELS)}; it begins with {columns[0]!r}")
    if missing := [name for name in DIABETES if name not in columns]:
        raise DataError(f"{path} has no column {missing[0]}; it needs {', '.join(DIABETES)}")
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise DataError(f"{path} has two columns {twice!r}")
    table = Measurements(
        columns=columns,
        features=DIABETES,
        label=label,
        largest_label=LABELS[label],
        header=True,
    )
    return table.layout(path)


if __name__ == "__main__":
    from data_scripts.prepare import main

    sys.exit(main("diabetes"))
