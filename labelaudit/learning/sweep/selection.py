"""From the records of a sweep to a table, and from the table to one row for each setting.

A learning rate is chosen in one of two ways. `by="test"` is the paper's: the rate whose mean test
AUC is largest, reported with that same AUC. `by="released"` is the honest one: in each trial the
rate with the least loss on held-out *released* labels. That is post-processing of the release, so
it costs no privacy, and the test labels it is reported on had no part in it.

A training that diverged before it had any model has no AUC. It counts as 0.5, as a coin does: to
leave it out would reward a rate for its failures. How settings then compare is in `comparisons`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from labelaudit.learning.sweep.advantages import REVISION
from labelaudit.learning.sweep.comparisons import SETTING
from labelaudit.learning.sweep.store import Record, canonical

MEASURES = [
    *("estimand", "additive", "additive_error", "sampling_error", "multiplicative"),
    *("infinite_share", "bags", "eta_auc", "eta_mean"),
    *("additive_as_sampled", "multiplicative_as_sampled", "infinite_share_as_sampled"),
]
# How a training was done, besides its learning rate.
TRAINING = ["model", "loss", "batch_size", "epochs", "patience", "validation", "clamp"]
# What a training found and what it took, and what made it.
FOUND = ["auc", "log_loss", "validation_loss", "best_epoch", "epochs_run", "seconds", "cpu_seconds"]
MADE = ["made_with", "made_on", "made_at"]
# The AUC of a training that left no model: that of a guess.
NO_MODEL = 0.5


def table(records: Iterable[Record]) -> pd.DataFrame:
    """A row for each training, with the advantage of its mechanism beside it.

    Clean labels have bag size 1 and infinite epsilon. A number that is not known, such as the
    advantage while a grid is half done, is missing; its column is there all the same. Advantages
    of one data set must all come from one recipe for eta; those of an earlier revision of the
    package are not used. The last columns say what made a training: versions, device, and the time
    at which it was finished.

    >>> table([]).columns[:5].tolist()
    ['dataset', 'kind', 'bag_size', 'epsilon', 'learning_rate']
    """
    runs, audits, recipes = [], {}, dict[tuple[str, str], str]()
    for record in records:
        one, result = record.configuration, record.result
        described = {"bag_size": 1, "epsilon": math.inf, **one["mechanism"]}
        where = {"dataset": one["dataset"], **{name: described[name] for name in SETTING[1:]}}
        name = (record.data, *where.values())
        if one["task"] == "train":
            runs.append((name, where | _trained(record), _made(record)))
        elif one.get("revision") == REVISION:
            recipe = canonical({part: one[part] for part in ("eta", "estimand", "level", "seed")})
            if recipes.setdefault((record.data, one["dataset"]), recipe) != recipe:
                raise _mixed(one["dataset"], "advantages from different estimates of eta")
            origin = {"eta": one["eta"]["source"], "eta_recipe": _digest(recipe)}
            audits[name] = origin | {measure: result[measure] for measure in MEASURES}
    rows = [row | audits.get(name, {}) | made for name, row, made in runs]
    own = ["trial", "seed", "fingerprint", *FOUND, "diverged", "eta", "eta_recipe"]
    columns = [*SETTING, "learning_rate", *TRAINING, *own, *MEASURES, *MADE]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.sort_values([*SETTING, "learning_rate", "trial"], ignore_index=True)


def _trained(record: Record) -> dict[str, Any]:
    """What a table says of one training."""
    one, result = record.configuration, record.result
    return {
        **{name: one["settings"][name] for name in ("learning_rate", *TRAINING)},
        **{"trial": one["trial"], "seed": one["seed"], "fingerprint": record.data[:12]},
        **{name: result[name] for name in FOUND},
        "diverged": result["diverged"] is not None,
    }


def _made(record: Record) -> dict[str, str | None]:
    """What made a training, as far as its record says."""
    made = record.made
    versions = [f"{name} {version}" for name, version in made.get("versions", {}).items()]
    return {
        "made_with": ", ".join(sorted(versions)) or None,
        "made_on": made.get("device"),
        "made_at": made.get("finished"),
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _mixed(dataset: str, what: str) -> ValueError:
    return ValueError(
        f"the results of {dataset} are of more than one grid: {what}; take those of one,"
        " as labelaudit results --grid FILE does"
    )


def _refuse_mixed(frame: pd.DataFrame) -> None:
    """Refuse a table in which settings differ by more than their mechanism and learning rate."""
    compared = frame.reindex(columns=["dataset", "fingerprint", *TRAINING, "eta_recipe"])
    if "seed" in frame:
        compared["seed"] = frame["seed"] - frame["trial"]
    # A batch holds at least one bag, so large bags have larger batches than their grid says.
    compared["batch_size"] = compared["batch_size"].where(
        compared["batch_size"] > frame["bag_size"]
    )
    for dataset, runs in compared.groupby("dataset"):
        for name in runs:
            # Without a recipe the advantage is not known yet: that is a partial grid, not another.
            partial = name in ("eta_recipe", "batch_size")
            found = runs[name].dropna() if partial else runs[name]
            if found.nunique(dropna=False) > 1:
                values = " and ".join(map(str, found.unique()[:2]))
                raise _mixed(str(dataset), f"{name} is {values}")
    repeated = frame.duplicated([*SETTING, "learning_rate", "trial"])
    if repeated.any():
        first = frame.loc[repeated.idxmax()]
        raise ValueError(
            f"trial {first['trial']} of {first['kind']} (bag_size {first['bag_size']}, epsilon"
            f" {first['epsilon']:g}) at learning rate {first['learning_rate']:g} on"
            f" {first['dataset']} is there more than once: give every run once"
        )


def select(frame: pd.DataFrame, by: str = "released") -> pd.DataFrame:
    """One row for each setting: the mean test AUC over trials at the chosen learning rate.

    `learning_rate` is the one chosen, or the one chosen most often; `aucs` holds the trials', and
    `no_model` counts those that diverged before they had a model, with AUC 0.5. `last_epoch` is
    the share of these runs that kept the weights of the last epoch they were allowed, and
    `trained_bags` the number of bags that were not held out. A table of more than one grid is
    refused.

    >>> import tempfile
    >>> from labelaudit.learning.sweep import load, plan, run
    >>> from labelaudit.learning.sweep.grid import Grid
    >>> from labelaudit.learning.sweep.store import Store
    >>> small = {"train_rows": 200, "training": {"epochs": 1}}
    >>> grid = Grid({"RR": {"epsilon": [1]}}, learning_rates=(1e-3, 1e-2), trials=2, **small)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     frame = table(run(plan(grid, load("fair", grid), store), store))
    >>> len(frame), select(frame)[["kind", "epsilon", "trials"]].to_numpy().tolist()
    (4, [['RR', 1.0, 2]])
    """
    if by not in ("released", "test"):
        raise ValueError(f"by must be 'released' or 'test', not {by!r}")
    if frame.empty:
        raise ValueError("there is no run to select from: the table is empty")
    _refuse_mixed(frame)
    kept = [*TRAINING, "fingerprint", "eta", *MEASURES]
    counted = frame.assign(auc=frame["auc"].fillna(NO_MODEL), no_model=frame["auc"].isna())
    rows = []
    for setting, runs in counted.groupby(SETTING, sort=False):
        chosen = _chosen(runs, by).sort_values("trial")
        aucs = chosen["auc"].to_numpy()
        error = aucs.std(ddof=1) / math.sqrt(len(aucs)) if len(aucs) > 1 else math.nan
        row = dict(zip(SETTING, setting, strict=True))
        row |= {"learning_rate": chosen["learning_rate"].mode().iloc[0], "trials": len(aucs)}
        row |= {"auc": aucs.mean(), "error": error, "no_model": int(chosen["no_model"].sum())}
        row |= {"aucs": dict(zip(chosen["trial"], aucs, strict=True))}
        row |= {"last_epoch": (chosen["best_epoch"] == chosen["epochs"]).mean()}
        row |= {"trained_bags": _trained_bags(chosen.iloc[0])}
        rows.append(row | chosen[kept].iloc[0].to_dict())
    return pd.DataFrame(rows)


def _trained_bags(run: pd.Series) -> float:
    """The bags of a partition less those held out, of which there is at least one (`bags.draw`)."""
    if pd.isna(run["bags"]) or not run["validation"]:
        return float(run["bags"])
    return float(run["bags"] - max(1, int(run["bags"] * run["validation"])))


def _chosen(runs: pd.DataFrame, by: str) -> pd.DataFrame:
    """One run for each trial.

    A trial's choice is among the rates it has, the smallest if none has a loss. The best mean is
    among the rates with the most trials: in half a grid one lucky trial is no mean.
    """
    if by == "released":
        least = runs["validation_loss"].fillna(math.inf).groupby(runs["trial"]).idxmin()
        return runs.loc[least]
    means = runs.groupby("learning_rate")["auc"].agg(["mean", "size"])
    best = means.loc[means["size"] == means["size"].max(), "mean"].idxmax()
    return runs[runs["learning_rate"] == best]
