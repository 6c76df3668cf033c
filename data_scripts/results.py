"""Make the tables of `results/` that hold real results from the prepared sets.

They hold numbers derived from the test rows, and no feature of any row. A label is included where
the licence of the data set allows it. `eta` writes the estimates of eta and their calibration;
`chapters` runs the chapters on Higgs and KDD12 and keeps the tables they would otherwise read.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from book.chapters import tables
from book.chapters.held_out import HeldOut, Neighbours, held_out_eta
from book.chapters.number_format import format_probability
from book.chapters.real import REAL, RESULTS
from labelaudit import GeometricProportions, LabelProportions, RandomizedResponse
from labelaudit.command_line import Parser, exit_status
from labelaudit.datasets import DataError, Dataset, load, verify
from labelaudit.files import write_atomically
from labelaudit.learning.calibration import auc
from labelaudit.learning.learners import Boosting, Learner, NetworkLearner
from labelaudit.learning.training import TrainingSettings

SEED = 2023
PACKAGES = ("labelaudit", "numpy", "scikit-learn", "torch")
# UCI HIGGS is CC BY 4.0, and the survey belongs to the public. For KDD12 no licence is stated.
WITH_LABELS = ("higgs", "diabetes")
# Of each chapter: what differs from its laptop scale, and the tables that ship.
CHAPTERS: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "higgs": ("10_higgs", {"trials": 3, "epochs": 12}, ("auc", "roc", "bag_sizes")),
    "kdd12": (
        "11_kdd12",
        {"trials": 3, "epochs": 6},
        ("auc", "roc"),
    ),
}


def learners(name: str, data: Dataset) -> dict[str, Learner]:
    """The models that estimate the eta of a data set."""
    if name == "higgs":
        network = TrainingSettings("higgs", learning_rate=1e-3, batch_size=512, epochs=50)
        heart = TrainingSettings(
            "higgs", learning_rate=1e-3, batch_size=256, epochs=30, patience=None, validation=0
        )
        return {
            "network": NetworkLearner(network),
            "neighbours": Neighbours(100),
            "boosting": Boosting(),
            "by heart": NetworkLearner(heart),
        }
    if name == "kdd12":
        ours: dict[str, Any] = {"batch_size": 512, "epochs": 10, "patience": 2}
        network = TrainingSettings("kdd12", learning_rate=1e-3, **ours)
        line = TrainingSettings("linear", learning_rate=1e-2, buckets=data.buckets, **ours)
        return {
            "network": NetworkLearner(network),
            "linear": NetworkLearner(line),
            "boosting": Boosting(),
        }
    small = TrainingSettings("small", learning_rate=1e-3, batch_size=512, epochs=20)
    return {"network": NetworkLearner(small), "boosting": Boosting()}


def estimates(name: str, data: Dataset) -> dict[str, HeldOut]:
    """Each learner's eta of the test rows, from a generator of its own."""
    return {
        learner_name: held_out_eta(data, learner, np.random.default_rng([SEED, number]))
        for number, (learner_name, learner) in enumerate(learners(name, data).items())
    }


def facts(name: str, data: Dataset, estimated: dict[str, HeldOut]) -> dict[str, Any]:
    """What a reader must know of a table, and what makes it again."""
    return {
        "data": data.description,
        "source_sha256": data.facts["source_sha256"],
        "split": data.facts["split"]["by"],
        "train_rows": len(data.train),
        "test_rows": len(data.test),
        "positive_rate": round(float(np.mean(data.test.labels)), 6),
        "negatives_kept": data.negatives_kept,
        "seed": SEED,
        "temperature": {key: round(estimate.temperature, 4) for key, estimate in estimated.items()},
        "made_with": {package: version(package) for package in PACKAGES},
        "made_at": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def eta_table(name: str, data: Dataset, estimated: dict[str, HeldOut]) -> pd.DataFrame:
    """A column for each estimate, calibrated and raw; four significant digits."""
    columns: dict[str, Any] = {}
    if name in WITH_LABELS:
        columns["label"] = np.asarray(data.test.labels)
    for key, estimate in estimated.items():
        columns[key] = estimate.eta
        if name != "diabetes":
            columns[f"{key} raw"] = estimate.raw
    return pd.DataFrame(columns)


def write_table(name: str, table: pd.DataFrame, known: dict[str, Any], folder: Path) -> Path:
    """Write a table with its facts in the first line; the same content gives the same bytes."""
    text = f"# {json.dumps(known)}\n" + table.map(format_probability).to_csv(index=False)
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(text.encode())
    path = folder / f"eta_{name}.csv.gz"
    write_atomically(path, packed.getvalue())
    return path


def calibration_rows(name: str, data: Dataset, estimated: dict[str, HeldOut]) -> pd.DataFrame:
    """How well each estimate is calibrated on the test labels, which it has not seen."""
    named = {key: estimate.eta for key, estimate in estimated.items()}
    named |= {f"{key} raw": estimate.raw for key, estimate in estimated.items()}
    graded = tables.grades(named, data.test.labels).rename_axis("estimate").reset_index()
    graded.insert(0, "dataset", name)
    graded["temperature"] = [
        *(estimate.temperature for estimate in estimated.values()),
        *[1.0] * len(estimated),
    ]
    return graded


def without_labels(data: Dataset, estimated: dict[str, HeldOut]) -> dict[str, pd.DataFrame]:
    """What chapter 11 shows of the labels of KDD12, which do not ship."""
    eta = {key: estimate.eta for key, estimate in estimated.items()}
    both = {f"{key}, raw": estimate.raw for key, estimate in estimated.items()}
    both |= {f"{key}, calibrated": estimate for key, estimate in eta.items()}
    mechanisms = {
        "RR": RandomizedResponse(1.0),
        "LLP": LabelProportions(8),
        "LLP+Geom": GeometricProportions(8, 1.0),
    }
    labels, rng = data.test.labels, np.random.default_rng(SEED)
    return {
        "grades": tables.grades(both, labels),
        "reliability": tables.reliability_table(both, labels, bins=10).set_index("estimate"),
        "realised": tables.checked_table(tables.checked(eta, labels, mechanisms, rng=rng)),
    }


def make(names: list[str], folder: Path) -> int:
    """Write the tables of these data sets, and the calibration of all of them."""
    path = folder / "calibration.csv"
    graded = [pd.read_csv(path)] if path.is_file() else []
    graded = [rows[~rows["dataset"].isin(names)] for rows in graded]
    for name in names:
        verify(name)
        data = load(name)
        estimated = estimates(name, data)
        table = eta_table(name, data, estimated)
        written = write_table(name, table, facts(name, data, estimated), folder)
        graded.append(calibration_rows(name, data, estimated))
        if name not in WITH_LABELS:
            for key, rows in without_labels(data, estimated).items():
                text = rows.to_csv(float_format="%.6g")
                write_atomically(folder / f"{name}_{key}.csv", text)
        reached = {
            key: round(auc(data.test.labels, estimate.eta), 4)
            for key, estimate in estimated.items()
        }
        print(f"{written}: {len(table):,} rows, {written.stat().st_size:,} bytes, AUC {reached}")
    rows = pd.concat(graded).sort_values("dataset", kind="stable")
    write_atomically(path, rows.to_csv(index=False, float_format="%.5g"))
    return 0


def run_chapters(names: list[str], folder: Path) -> int:
    """Run the chapters of these data sets from prepared rows, and copy the tables they write."""
    from book.tools.chapters import load_chapters
    from book.tools.checkout import Checkout
    from book.tools.runner import execute

    checkout = Checkout(RESULTS.parent)
    for name in (name for name in names if name in CHAPTERS):
        load(name)  # rejects a set that is not prepared, before any work
        verify(name)
        chapter, overrides, written = CHAPTERS[name]
        declared = load_chapters(checkout.chapters_file)[chapter]
        values = declared.resolve("laptop", overrides)
        execution = execute(checkout, declared, values, scale="laptop")
        for table in written:
            content = (execution.folder / "files" / f"{table}.csv").read_bytes()
            write_atomically(folder / f"{name}_{table}.csv", content)
            print(f"{folder / f'{name}_{table}.csv'}: {len(content):,} bytes")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and give its exit status."""
    steps = {"eta": make, "chapters": run_chapters}
    parser = Parser(prog="results", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("step", choices=list(steps), help="which tables to make")
    parser.add_argument(
        "names", nargs="*", default=[], metavar="NAME", help=f"of {', '.join(REAL)} (default: all)"
    )
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where the tables go")

    def run() -> int:
        arguments = parser.parse_args(argv)
        for name in arguments.names:
            if name not in REAL:
                raise DataError(f"a real data set is one of {', '.join(REAL)}, not {name!r}")
        return steps[arguments.step](arguments.names or list(REAL), arguments.folder)

    return exit_status("results", run)


if __name__ == "__main__":
    sys.exit(main())
