"""Fetch, prepare and verify UCI HIGGS: see --help."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from data_scripts.measurements import Measurements
from data_scripts.reading import Layout
from labelaudit.datasets.columns import HIGGS


def layout_of(path: Path) -> Layout:
    """Parquet with the columns' names, or UCI's text without a header: label, 28 numbers."""
    return Measurements(columns=("label", *HIGGS), features=HIGGS).layout(path)


if __name__ == "__main__":
    from data_scripts.prepare import main

    sys.exit(main("higgs"))
