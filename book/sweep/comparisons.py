"""From the records of a sweep to a table with a row for each training."""

import math
from collections.abc import Iterable

import pandas as pd

from book.sweep.advantages import REVISION
from book.sweep.store import Record
from labelaudit.files import digest

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
MADE = ["made_with", "made_on", "made_at"]
# What tells the trainings of a grid apart.
RUN = [*SETTING, "learning_rate", "trial"]
COLUMNS = [
    *(*SETTING, "learning_rate", *TRAINING, "trial", "seed", "fingerprint"),
    *("auc", "log_loss", "validation_loss", "best_epoch", "epochs_run", "seconds", "cpu_seconds"),
    *("diverged", "eta", "eta_recipe", *MEASURES, *MADE),
]


def table(records: Iterable[Record]) -> pd.DataFrame:
    """A row for each training, with the advantage of its mechanism beside it.

    Clean labels have bag size 1 and infinite epsilon. A number that is not known, such as the
    advantage while a grid is half done, is missing. Advantages of one data set must all come from
    one recipe for eta; those of an earlier revision of the package are not used.

    >>> table([]).columns[:5].tolist()
    ['dataset', 'kind', 'bag_size', 'epsilon', 'loss']
    """
    runs, audits, recipes = [], {}, dict[tuple[str, str], str]()
    for record in records:
        configuration, result = record.configuration, record.result
        dataset = configuration["dataset"]
        described = {"bag_size": 1, "epsilon": math.inf, **configuration["mechanism"]}
        name = (record.data, dataset, *(described[column] for column in MECHANISM))
        if configuration["task"] == "train":
            row = {**configuration, **configuration["settings"], **described, **result}
            runs.append(
                (name, row | _made(record) | {"diverged": result.get("diverged") is not None})
            )
        elif configuration.get("revision") == REVISION:
            parts = ("eta", "estimand", "level", "seed")
            recipe = digest({part: configuration[part] for part in parts})[:12]
            if recipes.setdefault((record.data, dataset), recipe) != recipe:
                raise mixed_grids(dataset, "advantages from different estimates of eta")
            origin = {"eta": configuration["eta"]["source"], "eta_recipe": recipe}
            audits[name] = origin | {measure: result[measure] for measure in MEASURES}
    rows = [row | audits.get(name, {}) for name, row in runs]
    return pd.DataFrame(rows, columns=COLUMNS).sort_values(RUN, ignore_index=True)


def _made(record: Record) -> dict[str, str | None]:
    """The data and what made a training, as far as its record says."""
    versions = record.made.get("versions", {}).items()
    return {
        "fingerprint": record.data[:12],
        "made_with": ", ".join(sorted(f"{name} {version}" for name, version in versions)) or None,
        "made_on": record.made.get("device"),
        "made_at": record.made.get("finished"),
    }


def mixed_grids(dataset: str, what: str) -> ValueError:
    """The error about runs that no comparison should put side by side."""
    return ValueError(
        f"the results of {dataset} are of more than one grid: {what}; take those of one,"
        " as labelbook results --grid FILE does"
    )
