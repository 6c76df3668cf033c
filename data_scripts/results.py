"""Make the tables of `results/` that hold real results from the prepared sets.

They hold numbers derived from the test rows, and no feature of any row. A label is included where
the licence of the data set allows it. `eta` writes the estimates of eta and their calibration;
`chapters` writes the tables of training that chapters 10 and 11 read where a set is not prepared.
"""

import gzip
import io
import json
import math
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from book.chapters import tables
from book.chapters.held_out import HeldOut, Neighbours, held_out_eta
from book.chapters.real import REAL, RESULTS
from labelaudit import (
    GeometricProportions,
    LabelProportions,
    RandomizedResponse,
    poisson_binomial,
)
from labelaudit.command_line import Parser, exit_status
from labelaudit.datasets import DataError, Dataset, load, verify
from labelaudit.files import write_atomically
from labelaudit.learning.calibration import auc
from labelaudit.learning.learners import Boosting, Learner, NetworkLearner
from labelaudit.learning.training import TrainingSettings, train

SEED = 2023
PACKAGES = ("labelaudit", "numpy", "scikit-learn", "torch")
# UCI HIGGS is CC BY 4.0, and the survey belongs to the public. For KDD12 no licence is stated.
WITH_LABELS = ("higgs", "diabetes")
MECHANISMS = {
    "RR": RandomizedResponse(1.0),
    "LLP": LabelProportions(8),
    "LLP+Geom": GeometricProportions(8, 1.0),
}
TRIALS, BAG_SIZES = 3, (1, 4, 16, 64, 256)


def network(name: str, epochs: int, **others: Any) -> TrainingSettings:
    """How a network is trained on a data set, but for its epochs."""
    settings: dict[str, Any] = {"learning_rate": 1e-3, "batch_size": 512, "epochs": epochs}
    if name == "kdd12":
        settings["patience"] = 2
    model = "small" if name == "diabetes" else name
    return TrainingSettings(**{"model": model, **settings, **others})


def learners(name: str, data: Dataset) -> dict[str, Learner]:
    """The models that estimate the eta of a data set."""
    if name == "higgs":
        heart = network(name, 30, batch_size=256, patience=None, validation=0)
        return {
            "network": NetworkLearner(network(name, 50)),
            "neighbours": Neighbours(100),
            "boosting": Boosting(),
            "by heart": NetworkLearner(heart),
        }
    if name == "kdd12":
        return {
            "network": NetworkLearner(network(name, 10)),
            "linear": NetworkLearner(linear(data, 10)),
            "boosting": Boosting(),
        }
    return {"network": NetworkLearner(network(name, 20)), "boosting": Boosting()}


def linear(data: Dataset, epochs: int) -> TrainingSettings:
    """Logistic regression on the buckets of KDD12."""
    return network("kdd12", epochs, model="linear", learning_rate=1e-2, buckets=data.buckets)


def facts(data: Dataset, estimated: dict[str, HeldOut]) -> dict[str, Any]:
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


def rounded(eta: float) -> str:
    """Four significant digits of eta or of 1 - eta, whichever is smaller.

    >>> rounded(0.123456), rounded(0.9999987654), rounded(1e-7), rounded(1)
    ('0.1235', '0.999998765', '1e-07', '1')
    """
    nearest = min(eta, 1 - eta)
    if eta < 0.5 or nearest == 0:
        return f"{eta:.4g}"
    return f"{eta:.{3 - math.floor(math.log10(nearest))}f}"


def eta_table(name: str, data: Dataset, estimated: dict[str, HeldOut]) -> pd.DataFrame:
    """A column for each estimate, calibrated and raw."""
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
    text = f"# {json.dumps(known)}\n" + table.map(rounded).to_csv(index=False)
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
    temperatures = [estimate.temperature for estimate in estimated.values()]
    graded["temperature"] = [*temperatures, *[1.0] * len(estimated)]
    return graded


def without_labels(data: Dataset, estimated: dict[str, HeldOut]) -> dict[str, pd.DataFrame]:
    """What chapter 11 shows of the labels of KDD12, which do not ship."""
    eta = {key: estimate.eta for key, estimate in estimated.items()}
    both = {f"{key}, raw": estimate.raw for key, estimate in estimated.items()}
    both |= {f"{key}, calibrated": estimate for key, estimate in eta.items()}
    labels, rng = data.test.labels, np.random.default_rng(SEED)
    return {
        "grades": tables.grades(both, labels),
        "reliability": tables.reliability_table(both, labels, bins=10).set_index("estimate"),
        "realised": tables.checked_table(tables.checked(eta, labels, MECHANISMS, rng=rng)),
    }


def make_eta(names: list[str], folder: Path) -> None:
    """Write the tables of these data sets, and the calibration of all of them."""
    path = folder / "calibration.csv"
    graded = [pd.read_csv(path)] if path.is_file() else []
    graded = [rows[~rows["dataset"].isin(names)] for rows in graded]
    for name in names:
        verify(name)
        data = load(name)
        estimated = {  # each learner from a generator of its own
            key: held_out_eta(data, learner, np.random.default_rng([SEED, number]))
            for number, (key, learner) in enumerate(learners(name, data).items())
        }
        write_table(name, eta_table(name, data, estimated), facts(data, estimated), folder)
        graded.append(calibration_rows(name, data, estimated))
        if name not in WITH_LABELS:
            for key, rows in without_labels(data, estimated).items():
                write_atomically(folder / f"{name}_{key}.csv", rows.to_csv(float_format="%.6g"))
        aucs = {key: round(auc(data.test.labels, each.eta), 4) for key, each in estimated.items()}
        print(f"eta_{name}.csv.gz: {len(data.test):,} rows, AUC {aucs}")
    rows = pd.concat(graded).sort_values("dataset", kind="stable")
    write_atomically(path, rows.to_csv(index=False, float_format="%.5g"))


def make_trainings(names: list[str], folder: Path) -> None:
    """Write the tables of training that chapters 10 and 11 show, by the functions they use."""
    # One thread for torch, after numba has started its own: starting them changes torch's.
    poisson_binomial.pmf(np.full((1, 2), 0.5))
    torch.set_num_threads(1)
    for name in names:
        if name == "diabetes":
            continue
        verify(name)
        data, rng = load(name), np.random.default_rng(SEED)
        labels: Any = np.asarray(data.train.labels)
        trees = Boosting().fit(np.asarray(data.train.features), labels, rng)
        models: dict[str, Any] = {"boosted trees, clean": trees}
        settings = network(name, 12 if name == "higgs" else 6)
        if name == "kdd12":
            models["linear, clean"] = train(data.train, None, linear(data, 6), seed=SEED)
        references = {key: model.predict(data.test.features) for key, model in models.items()}
        mechanisms = {"clean": None, **MECHANISMS}
        scores, roc = tables.training_tables(
            data, mechanisms, settings, references, seed=SEED, trials=TRIALS
        )
        texts = {"auc": scores.to_csv(float_format="%.6g"), "roc": roc.to_csv(float_format="%.4g")}
        if name == "higgs":
            sizes = tables.network_against_ridge(data, BAG_SIZES, settings, seed=SEED, rng=rng)
            texts["bag_sizes"] = sizes.to_csv(float_format="%.6g")
        for key, text in texts.items():
            write_atomically(folder / f"{name}_{key}.csv", text)
            print(f"{folder / f'{name}_{key}.csv'}: {len(text):,} bytes")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and give its exit status."""
    steps = {"eta": make_eta, "chapters": make_trainings}
    parser = Parser(prog="results", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("step", choices=list(steps), help="which tables to make")
    about = f"of {', '.join(REAL)} (default: all)"
    parser.add_argument("names", nargs="*", default=[], metavar="NAME", help=about)
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where the tables go")

    def run() -> int:
        arguments = parser.parse_args(argv)
        if wrong := [name for name in arguments.names if name not in REAL]:
            raise DataError(f"a real data set is one of {', '.join(REAL)}, not {wrong[0]!r}")
        steps[arguments.step](arguments.names or list(REAL), arguments.folder)
        return 0

    return exit_status("results", run)


if __name__ == "__main__":
    sys.exit(main())
