"""From the table of a sweep to one row for each setting, at a learning rate that is chosen.

A learning rate is chosen in one of three ways. `by="test"` is the paper's: the rate with the
largest mean test AUC, reported with that same AUC. `by="released"` is the honest way: in each trial
the rate with the least loss on held-out *released* labels, which costs no privacy. `by="mean"`
takes the least mean of that loss over trials, as the search for rates does.
"""

import math

import pandas as pd
from scipy import stats

from book.sweep.results import MEASURES, RUN, SETTING, TRAINING, mixed_grids

# The AUC of a training that left no model is that of a random guess: to leave it out would reward a
# learning rate for its failures.
NO_MODEL = 0.5
# With fewer bags to train on, a sample says too little for a comparison of mechanisms.
LEAST_BAGS = 1000


def _check_one_grid(frame: pd.DataFrame) -> None:
    """Raise an error where runs differ by more than mechanism, loss and learning rate."""
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
            values = runs[name].dropna() if partial else runs[name]
            if values.nunique(dropna=False) > 1:
                both = " and ".join(map(str, values.unique()[:2]))
                raise mixed_grids(str(dataset), f"{name} is {both}")
    repeated = frame.duplicated(RUN)
    if repeated.any():
        first = frame.loc[repeated.idxmax()]
        raise ValueError(
            f"trial {first['trial']} of {first['kind']} (bag_size {first['bag_size']}, epsilon"
            f" {first['epsilon']:g}) at learning rate {first['learning_rate']:g} on"
            f" {first['dataset']} is there more than once: give every run once"
        )


def select(frame: pd.DataFrame, by: str = "released") -> pd.DataFrame:
    """One row for each setting: the mean test AUC over trials at the chosen learning rate.

    `error` is the standard error of `auc`, and `reach` half of Student's 95% interval over trials.
    `learning_rate` is the one chosen, or the one chosen most often; `aucs` holds the trials', and
    `no_model` counts those that diverged before they had a model, with AUC 0.5. `last_epoch` is
    the fraction that kept the weights of the last epoch, `trained_bags` the number of bags not held
    out. A table of more than one grid is an error.

    >>> from book.sweep.results import results_frame
    >>> from book.sweep.store import Record
    >>> run = {"task": "train", "dataset": "fair", "trial": 0, "mechanism": {"kind": "RR"}}
    >>> settings = {"loss": "cross_entropy"}
    >>> results = {1e-3: {"auc": 0.6, "validation_loss": 0.6}, 1e-2: {"auc": 0.7}}
    >>> frame = results_frame(
    ...     Record(
    ...         configuration={**run, "settings": {**settings, "learning_rate": rate}},
    ...         data="",
    ...         result=result,
    ...     )
    ...     for rate, result in results.items()
    ... )
    >>> [select(frame, by=by)["auc"].item() for by in ("released", "test")]
    [0.6, 0.7]
    """
    if by not in ("released", "mean", "test"):
        raise ValueError(f"by must be 'released', 'mean' or 'test', not {by!r}")
    if frame.empty:
        raise ValueError("there is no run to select from: the table is empty")
    _check_one_grid(frame)
    counted = frame.assign(auc=frame["auc"].fillna(NO_MODEL), no_model=frame["auc"].isna())
    counted["setting"] = counted.groupby(SETTING, sort=False).ngroup()
    chosen = _chosen(counted.reset_index(drop=True), by).sort_values(["setting", "trial"])
    settings = chosen.groupby("setting")
    first = settings.head(1).set_index("setting")
    aucs = {
        setting: dict(zip(runs["trial"], runs["auc"], strict=True)) for setting, runs in settings
    }
    summary = {
        "learning_rate": settings["learning_rate"].agg(lambda rates: rates.mode().iloc[0]),
        "trials": settings.size(),
        "auc": settings["auc"].mean(),
        "error": settings["auc"].sem(),
        "reach": settings["auc"].sem() * stats.t(settings.size() - 1).ppf(0.975),
        "no_model": settings["no_model"].sum(),
        "aucs": pd.Series(aucs),
        "last_epoch": (chosen["best_epoch"] == chosen["epochs"]).groupby(chosen["setting"]).mean(),
        "trained_bags": _trained_bags(first),
    }
    kept = [*TRAINING, "fingerprint", "eta", *MEASURES]
    table = pd.concat([first[SETTING], pd.DataFrame(summary), first[kept]], axis="columns")
    return table.reset_index(drop=True)


def _trained_bags(runs: pd.DataFrame) -> pd.Series:
    """The bags of a partition less those held out, of which there is at least one (`bags.draw`)."""
    bags, validation = runs["bags"].astype(float), runs["validation"].fillna(0).astype(float)
    held_out = (bags * validation).floordiv(1).clip(lower=1)
    return bags - held_out.where(validation > 0, 0)


def _chosen(runs: pd.DataFrame, by: str) -> pd.DataFrame:
    """One run for each trial; the best mean is among the rates with the most trials."""
    losses = runs["validation_loss"].fillna(math.inf)
    if by == "released":
        return runs.loc[losses.groupby([runs["setting"], runs["trial"]]).idxmin()]
    scored = runs.assign(score=runs["auc"] if by == "test" else -losses)
    means = scored.groupby(["setting", "learning_rate"])["score"].agg(["mean", "size"])
    most = means["size"].groupby("setting").transform("max")
    best = means.loc[means["size"] == most, "mean"].groupby("setting").idxmax()
    return runs.set_index(["setting", "learning_rate"], drop=False).loc[best].reset_index(drop=True)
