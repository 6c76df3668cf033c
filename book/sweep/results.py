"""Tables of a sweep: a row for each training, written to a file and taken back into a store."""

import io
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from book.sweep.audits import REVISION
from book.sweep.grid import Grid, describe
from book.sweep.runs import training_settings
from book.sweep.store import Record, Store, key
from labelaudit.command_line import CommandError
from labelaudit.datasets import Dataset
from labelaudit.files import digest, file_digest, write_atomically

MECHANISM = ["kind", "bag_size", "epsilon"]
# The columns that name a setting.
SETTING = ["dataset", *MECHANISM, "loss"]
MEASURES = [
    *("estimand", "additive", "additive_error", "sampling_error", "multiplicative"),
    *("maximum", "infinite_share", "worth", "bags", "eta_auc", "eta_mean"),
    *("additive_as_sampled", "multiplicative_as_sampled", "infinite_share_as_sampled"),
]
# How a training was done, besides its loss and learning rate.
TRAINING = ["model", "batch_size", "epochs", "patience", "validation", "clamp"]
# What tells the trainings of a grid apart, and those of all grids.
RUN = [*SETTING, "learning_rate", "trial"]
IDENTITY = [*SETTING, "learning_rate", *TRAINING, "trial", "seed", "fingerprint"]
RESULT = ["auc", "log_loss", "validation_loss", "best_epoch", "epochs_run"]
RESULT += ["seconds", "cpu_seconds"]
MADE = ["made_with", "made_on", "made_at"]
COLUMNS = [*IDENTITY, *RESULT, "diverged", "eta", "eta_recipe", *MEASURES, *MADE]


def results_frame(records: Iterable[Record | None]) -> pd.DataFrame:
    """A row for each training, with the advantage of its mechanism beside it.

    Clean labels have bag size 1 and infinite epsilon. A number that is not known, such as the
    advantage while a grid is half done, is missing. Advantages of one data set must all come from
    one recipe for eta; those of an earlier revision of the package are not used.
    """
    trained, audited, recipes = [], {}, dict[Any, str]()
    for record in filter(None, records):
        run, made = record.configuration, record.made
        row: dict[str, Any] = {"bag_size": 1, "epsilon": math.inf, "fingerprint": record.data[:12]}
        row |= {**run, **run.get("settings", {}), **run["mechanism"]}
        name = tuple(row[column] for column in ("fingerprint", "dataset", *MECHANISM))
        if row["task"] == "train":
            versions = sorted(" ".join(part) for part in made.get("versions", {}).items())
            row["made_with"] = ", ".join(versions) or None
            row |= {"made_on": made.get("device"), "made_at": made.get("finished")}
            row |= record.result | {"diverged": record.result.get("diverged") is not None}
            trained.append((name, row))
        elif row.get("revision") == REVISION:
            recipe = digest({part: row[part] for part in ("eta", "estimand", "level", "seed")})[:12]
            if recipes.setdefault(name[:2], recipe) != recipe:
                raise mixed_grids(row["dataset"], "advantages from different estimates of eta")
            audited[name] = {measure: record.result[measure] for measure in MEASURES}
            audited[name] |= {"eta": row["eta"]["source"], "eta_recipe": recipe}
    rows = [row | audited.get(name, {}) for name, row in trained]
    return pd.DataFrame(rows, columns=COLUMNS).sort_values(RUN, ignore_index=True)


def mixed_grids(dataset: str, what: str) -> ValueError:
    """The error about runs that no comparison should put side by side."""
    return ValueError(
        f"the results of {dataset} are of more than one grid: {what}; take those of one,"
        " as labelbook results --grid FILE does"
    )


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table as .csv, .csv.gz or .parquet."""
    content = io.BytesIO()
    if path.suffix == ".parquet":
        frame.to_parquet(content, index=False)
    else:  # without the time in its header, a packed table has the same bytes each time
        packed = {"method": "gzip", "mtime": 0} if path.suffix == ".gz" else None
        frame.to_csv(content, index=False, float_format="%.7g", compression=packed)
    write_atomically(path, content.getvalue())


def read_table(path: Path) -> pd.DataFrame:
    """A written table, each training once."""
    try:
        frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    except (OSError, EOFError, ValueError) as error:
        raise CommandError(f"cannot read the table {path}: {error}") from None
    if missing := [name for name in (*IDENTITY, *RESULT, "diverged", *MADE) if name not in frame]:
        raise CommandError(f"{path} is no table of results: it lacks {', '.join(missing)}")
    if frame.duplicated(IDENTITY).any():
        raise CommandError(f"{path} has a training more than once")
    return frame.astype(object).where(frame.notna(), None)


def adopt(path: Path, grid: Grid, data: Dataset, store: Store) -> int:
    """Store the table's trainings on this data, each by its key in the grid; how many are new.

    A table has no curve of epochs, and its numbers are rounded, so `made` holds its digest.
    """
    frame, source = read_table(path), f"{path.name}, sha256 {file_digest(path)[:12]}"
    before, training = len(list(store)), grid.for_data(data.name).training
    for row in frame[frame["fingerprint"] == data.fingerprint[:12]].to_dict("records"):
        own = {name: row[name] for name in ("loss", "learning_rate", *TRAINING)}
        run = {
            "task": "train",
            "dataset": data.name,
            "mechanism": describe(row["kind"], row),
            "settings": training_settings(data, "training", **{**training, **own}),
            "trial": row["trial"],
            "seed": row["seed"],
        }
        made = {"device": row["made_on"], "finished": row["made_at"], "table": source}
        versions = [text.rsplit(" ", 1) for text in (row["made_with"] or "").split(", ")]
        made["versions"] = dict(pair for pair in versions if len(pair) == 2)
        result = {name: row[name] for name in RESULT} | {"curve": []}
        result["diverged"] = "the table does not say how" if row["diverged"] else None
        store.set_aside(key(run, data.fingerprint))
        store.write(Record(configuration=run, data=data.fingerprint, result=result, made=made))
    return len(list(store)) - before
