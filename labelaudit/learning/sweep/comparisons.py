"""From the records of a sweep to a table, to one row for each setting, to comparisons of settings.

A learning rate is chosen in one of two ways. `by="test"` is the paper's: the rate with the largest
mean test AUC, reported with that same AUC. `by="released"` is the honest way: in each trial the
rate with the least loss on held-out *released* labels, which costs no privacy. Settings are
compared trial by trial, with Student's interval over trials.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy import integrate, optimize, stats

from labelaudit import checks
from labelaudit.files import digest
from labelaudit.learning.sweep.advantages import REVISION
from labelaudit.learning.sweep.store import Record

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
# The AUC of a training that left no model is that of a random guess: to leave it out would reward a
# learning rate for its failures.
NO_MODEL = 0.5
# With fewer bags to train on, a sample says too little for a comparison of mechanisms.
LEAST_BAGS = 1000
# Two mechanisms that differ in AUC by less than this are called similar.
SIMILAR = 0.02
CLAIM_RESULTS = ("reproduced", "reproduced in shape", "differs", "not testable here")


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
                raise _mixed(dataset, "advantages from different estimates of eta")
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


def _mixed(dataset: str, what: str) -> ValueError:
    return ValueError(
        f"the results of {dataset} are of more than one grid: {what}; take those of one,"
        " as labelaudit results --grid FILE does"
    )


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
                raise _mixed(str(dataset), f"{name} is {both}")
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

    `learning_rate` is the one chosen, or the one chosen most often; `aucs` holds the trials', and
    `no_model` counts those that diverged before they had a model, with AUC 0.5. `last_epoch` is
    the fraction that kept the weights of the last epoch, `trained_bags` the number of bags not held
    out. A table of more than one grid is an error.

    >>> run = {"task": "train", "dataset": "fair", "trial": 0, "mechanism": {"kind": "RR"}}
    >>> settings = {"loss": "cross_entropy"}
    >>> results = {1e-3: {"auc": 0.6, "validation_loss": 0.6}, 1e-2: {"auc": 0.7}}
    >>> frame = table(
    ...     Record({**run, "settings": {**settings, "learning_rate": rate}}, "", result)
    ...     for rate, result in results.items()
    ... )
    >>> [select(frame, by=by)["auc"].item() for by in ("released", "test")]
    [0.6, 0.7]
    """
    if by not in ("released", "test"):
        raise ValueError(f"by must be 'released' or 'test', not {by!r}")
    if frame.empty:
        raise ValueError("there is no run to select from: the table is empty")
    _check_one_grid(frame)
    kept = [*TRAINING, "fingerprint", "eta", *MEASURES]
    counted = frame.assign(auc=frame["auc"].fillna(NO_MODEL), no_model=frame["auc"].isna())
    rows = []
    for _, runs in counted.groupby(SETTING, sort=False):
        chosen = _chosen(runs, by).sort_values("trial")
        first = chosen.iloc[0]
        row = {
            "learning_rate": chosen["learning_rate"].mode().iloc[0],
            "trials": len(chosen),
            "auc": chosen["auc"].mean(),
            "error": chosen["auc"].sem(),
            "no_model": int(chosen["no_model"].sum()),
            "aucs": dict(zip(chosen["trial"], chosen["auc"], strict=True)),
            "last_epoch": (chosen["best_epoch"] == chosen["epochs"]).mean(),
            "trained_bags": _trained_bags(first),
        }
        rows.append(first[SETTING].to_dict() | row | first[kept].to_dict())
    return pd.DataFrame(rows)


def _trained_bags(run: pd.Series) -> float:
    """The bags of a partition less those held out, of which there is at least one (`bags.draw`)."""
    if pd.isna(run["bags"]) or not run["validation"]:
        return float(run["bags"])
    return float(run["bags"] - max(1, int(run["bags"] * run["validation"])))


def _chosen(runs: pd.DataFrame, by: str) -> pd.DataFrame:
    """One run for each trial; the best mean is among the rates with the most trials."""
    if by == "released":
        least = runs["validation_loss"].fillna(math.inf).groupby(runs["trial"]).idxmin()
        return runs.loc[least]
    means = runs.groupby("learning_rate")["auc"].agg(["mean", "size"])
    best = means.loc[means["size"] == means["size"].max(), "mean"].idxmax()
    return runs[runs["learning_rate"] == best]


@dataclass(frozen=True)
class Difference:
    """A mean difference over trials and its interval.

    `detectable` is the true difference that a test at its level would notice four times in five.
    """

    value: float
    low: float
    high: float
    detectable: float
    trials: int


def paired(
    first: Mapping[int, float], second: Mapping[int, float], level: float = 0.95
) -> Difference:
    """The mean of first minus second over the trials in common, with Student's interval.

    >>> paired({0: 0.71, 1: 0.72, 2: 0.74}, {0: 0.70, 1: 0.70, 2: 0.71}).value.__round__(6)
    0.02
    """
    common = sorted(first.keys() & second.keys())
    if (n := len(common)) < 2:
        raise ValueError(f"a paired comparison needs at least 2 trials in common, not {n}")
    gaps = np.array([first[trial] - second[trial] for trial in common])
    return difference(float(gaps.mean()), gaps.std(ddof=1) / math.sqrt(n), n, level)


def difference(value: float, error: float, trials: int, level: float = 0.95) -> Difference:
    """The interval of a difference whose standard error comes from `trials` trials.

    >>> gap = difference(0.02, error=0.005, trials=10)
    >>> round(gap.low, 4), round(gap.high, 4), round(gap.detectable, 4)
    (0.0087, 0.0313, 0.0157)
    """
    reach = float(stats.t(trials - 1).ppf((1 + level) / 2)) * error
    return Difference(value, value - reach, value + reach, _noticed(trials, level) * error, trials)


@cache
def _noticed(trials: int, level: float) -> float:
    """How many standard errors a true difference needs to be seen four times in five.

    The tail of Student's non-central distribution, as an average of normal tails over the estimated
    standard error. Unlike scipy's, this also works for two trials, where quantiles are far out.

    >>> round(_noticed(3, 0.95), 2), round(_noticed(10, 0.95), 2)
    (5.65, 3.15)
    """
    freedom = trials - 1
    threshold = stats.t(freedom).ppf((1 + level) / 2)
    middles = (np.arange(4000) + 0.5) / 4000
    edges = threshold * np.sqrt(stats.chi2(freedom).ppf(middles) / freedom)

    def missing(shift: float) -> float:
        return float((stats.norm.sf(edges - shift) + stats.norm.cdf(-edges - shift)).mean() - 0.8)

    return float(optimize.brentq(missing, 0.0, 4.0 * threshold))


@cache
def optimism(count: int) -> float:
    """The mean of the largest of `count` standard normal numbers: how optimistic a best mean is.

    >>> round(optimism(1), 6), round(optimism(8), 3)
    (0.0, 1.424)
    """
    number = checks.whole_number(count, "count")

    def density(z: float) -> float:
        return number * z * float(stats.norm.pdf(z)) * float(stats.norm.cdf(z)) ** (number - 1)

    return float(integrate.quad(density, -12, 12)[0])


def against(curve: pd.DataFrame, points: pd.DataFrame, measure: str) -> pd.DataFrame:
    """AUC of each point minus that of a curve at the same advantage, trial by trial in `gaps`.

    The curve's AUC is interpolated between the two neighbouring settings, in the trials that they
    and the point have, linearly in the *logarithm* of the advantage. A point without such a trial,
    beyond the curve's ends, or without a finite positive advantage is left out. Of settings with
    the same advantage, that of the largest epsilon is used.

    >>> columns = [*SETTING, "additive", "auc", "aucs"]
    >>> low = ("fair", "RR", 1, 1.0, "squared", 0.1, 0.6, {0: 0.6})
    >>> high = ("fair", "RR", 1, 4.0, "squared", 0.4, 0.8, {0: 0.8})
    >>> point = ("fair", "LLP", 4, float("inf"), "squared", 0.2, 0.75, {0: 0.75})
    >>> curve, points = (pd.DataFrame(rows, columns=columns) for rows in ([low, high], [point]))
    >>> against(curve, points, "additive")["difference"].round(6).tolist()
    [0.05]
    """
    known = curve[_has_logarithm(curve[measure])].sort_values([measure, "epsilon"])
    known = known.drop_duplicates(measure, keep="last")
    grid = np.log(known[measure].to_numpy(dtype=float))
    rows = []
    for _, point in points[_has_logarithm(points[measure])].iterrows():
        value = math.log(point[measure])
        if not (len(known) and grid[0] <= value <= grid[-1]):
            continue
        right = int(np.searchsorted(grid, value))
        near = slice(max(right - 1, 0), right + 1)
        neighbours = list(known["aucs"].iloc[near])
        gaps = {
            trial: auc - np.interp(value, grid[near], [aucs[trial] for aucs in neighbours])
            for trial, auc in point["aucs"].items()
            if all(trial in aucs for aucs in neighbours)
        }
        if not gaps:
            continue
        row = {name: point[name] for name in (*SETTING, measure, "auc")}
        rows.append(row | {"difference": np.mean(list(gaps.values())), "gaps": gaps})
    return pd.DataFrame(rows, columns=[*SETTING, measure, "auc", "difference", "gaps"])


def _has_logarithm(advantage: pd.Series) -> pd.Series:
    return np.isfinite(advantage) & (advantage > 0)


def by_trial(gaps: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """The mean of many differences in each trial that all of them have.

    >>> by_trial([{0: 0.5, 1: 0.25}, {0: 0.25, 1: 0.25, 2: 0.5}])
    {0: 0.375, 1: 0.25}
    """
    if not gaps:
        raise ValueError("there are no differences to take the mean of")
    common = sorted(set.intersection(*map(set, gaps)))
    return {trial: float(np.mean([gap[trial] for gap in gaps])) for trial in common}


def together(gaps: Sequence[Mapping[int, float]], level: float = 0.95) -> Difference:
    """The mean of many differences, averaged within each trial, with an interval over trials.

    >>> together([{0: 0.1, 1: 0.2}, {0: 0.3, 1: 0.2}]).value
    0.2
    """
    means = by_trial(gaps)
    return paired(means, dict.fromkeys(means, 0.0), level)


def claim_result(claim: str, means: Mapping[int, float]) -> str:
    """Compare the differences of trials with a claim: that they are "lower" than 0, or "similar".

    Reproduced: Student's 95% interval lies below 0, or within `SIMILAR` of it. Differs: it lies
    wholly on the other side. Reproduced in shape: the interval does not decide, but every trial is
    on the claim's side. Not testable here: everything else, and fewer than two trials.

    >>> claim_result("lower", {0: -0.03, 1: -0.03, 2: -0.02})
    'reproduced'
    >>> claim_result("lower", {0: -0.05, 1: -0.01})
    'reproduced in shape'
    """
    if claim not in ("lower", "similar"):
        raise ValueError(f"claim must be 'lower' or 'similar', not {claim!r}")
    reproduced, in_shape, differs, not_testable = CLAIM_RESULTS
    if len(means) < 2:
        return not_testable
    least, most = (-math.inf, 0.0) if claim == "lower" else (-SIMILAR, SIMILAR)
    interval = paired(means, dict.fromkeys(means, 0.0))
    if least < interval.low and interval.high < most:
        return reproduced
    if interval.high < least or interval.low > most:
        return differs
    return in_shape if all(least < mean < most for mean in means.values()) else not_testable


def cost(frame: pd.DataFrame, measure: str, limit: float, clean: float) -> dict[str, Any] | None:
    """The best setting whose advantage is at most `limit`, and the AUC it loses to clean labels.

    The best of `among` settings is optimistic, so `cost` is on average too small: by `optimism` if
    all were equally good, which is about the most.

    >>> rows = [("fair", "RR", 1, 1.0, "squared", 0.1, 0.6, 0.01)]
    >>> rows += [("fair", "RR", 1, 4.0, "squared", 0.2, 0.75, 0.01)]
    >>> frame = pd.DataFrame(rows, columns=[*SETTING, "additive", "auc", "error"])
    >>> best = cost(frame, "additive", limit=0.25, clean=0.8)
    >>> best["epsilon"], round(float(best["cost"]), 6), best["among"]
    (4.0, 0.05, 2)
    """
    allowed = frame[(frame[measure] <= limit) & frame["auc"].notna()]
    if allowed.empty:
        return None
    best = allowed.loc[allowed["auc"].idxmax()]
    return {
        **best[[*SETTING, measure, "auc", "error"]].to_dict(),
        "cost": clean - best["auc"],
        "among": len(allowed),
        "optimism": optimism(len(allowed)) * best["error"],
    }
