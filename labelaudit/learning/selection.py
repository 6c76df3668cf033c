"""From the records of a sweep to what they say: the table, the learning rate, the comparisons.

A learning rate is chosen in one of two ways. `by="test"` is the paper's: the rate whose mean test
AUC is largest, reported with that same AUC. `by="released"` is the honest one: in each trial the
rate with the least loss on held-out *released* labels. That is post-processing of the release, so
it costs no privacy, and the test labels it is reported on had no part in it.

A training that diverged before it had any model has no AUC. It counts as 0.5, as a coin does: to
leave it out would reward a rate for its failures.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import integrate, optimize, stats

from labelaudit import checks
from labelaudit.learning.advantages import REVISION
from labelaudit.learning.store import Record, canonical

SETTING = ["dataset", "kind", "bag_size", "epsilon"]
MEASURES = [
    *("estimand", "additive", "additive_error", "sampling_error", "multiplicative"),
    *("infinite_share", "bags", "eta_auc", "eta_mean"),
    *("additive_as_sampled", "multiplicative_as_sampled", "infinite_share_as_sampled"),
]
# How a training was done, besides its learning rate.
TRAINING = ["model", "loss", "batch_size", "epochs", "patience", "validation", "clamp"]
# With fewer bags a training set says too little for a comparison of mechanisms.
LEAST_BAGS = 1000
# The AUC of a training that left no model: that of a guess.
NO_MODEL = 0.5


def table(records: Iterable[Record]) -> pd.DataFrame:
    """A row for each training, with the advantage of its mechanism beside it.

    Clean labels have bag size 1 and infinite epsilon. A number that is not known, such as the
    advantage while a grid is half done, is missing. Advantages of one data set must all come from
    one recipe for eta; those of an earlier revision of the package are not used.
    """
    runs, audits, recipes = [], {}, dict[tuple[str, str], str]()
    for record in records:
        one, result = record.configuration, record.result
        described = {"bag_size": 1, "epsilon": math.inf, **one["mechanism"]}
        where = {"dataset": one["dataset"], **{name: described[name] for name in SETTING[1:]}}
        name = (record.data, *where.values())
        if one["task"] == "train":
            runs.append((name, where | _trained(record)))
        elif one.get("revision") == REVISION:
            recipe = canonical({part: one[part] for part in ("eta", "estimand", "level", "seed")})
            if recipes.setdefault((record.data, one["dataset"]), recipe) != recipe:
                raise _mixed(one["dataset"], "advantages from different estimates of eta")
            origin = {"eta": one["eta"]["source"], "eta_recipe": _digest(recipe)}
            audits[name] = origin | {measure: result[measure] for measure in MEASURES}
    rows = [row | audits.get(name, {}) for name, row in runs]
    frame = pd.DataFrame(rows)
    order = [*SETTING, "learning_rate", "trial"]
    return frame if frame.empty else frame.sort_values(order, ignore_index=True)


def _trained(record: Record) -> dict[str, Any]:
    """What a table says of one training."""
    one, result = record.configuration, record.result
    names = ("auc", "log_loss", "validation_loss", "best_epoch", "epochs_run")
    return {
        **{name: one["settings"][name] for name in ("learning_rate", *TRAINING)},
        **{"trial": one["trial"], "seed": one["seed"], "fingerprint": record.data[:12]},
        **{name: result[name] for name in (*names, "seconds", "cpu_seconds")},
        "diverged": result["diverged"] is not None,
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
    `no_model` counts those that diverged before they had a model, with AUC 0.5. A table of more
    than one grid is refused.
    """
    if by not in ("released", "test"):
        raise ValueError(f"by must be 'released' or 'test', not {by!r}")
    if frame.empty:
        raise ValueError("there is no run to select from: the table is empty")
    _refuse_mixed(frame)
    kept = [name for name in (*TRAINING, "fingerprint", "eta", *MEASURES) if name in frame]
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
        rows.append(row | chosen[kept].iloc[0].to_dict())
    return pd.DataFrame(rows)


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


@dataclass(frozen=True)
class Difference:
    """A mean difference over trials, its interval, and the least difference that would be seen.

    `detectable` is the true difference that a two-sided test at the interval's level would notice
    four times in five.
    """

    value: float
    low: float
    high: float
    detectable: float
    trials: int

    @property
    def seen(self) -> bool:
        """Whether the interval leaves out 0."""
        return not self.low <= 0 <= self.high


def paired(one: Mapping[int, float], other: Mapping[int, float], level: float = 0.95) -> Difference:
    """The mean of one minus other over the trials they share, with Student's interval.

    Trials share initial weights, and mechanisms of one bag size their bags and shuffling too, so
    differences vary less than their terms.

    >>> paired({0: 0.71, 1: 0.72, 2: 0.74}, {0: 0.70, 1: 0.70, 2: 0.71}).value.__round__(6)
    0.02
    """
    shared = sorted(one.keys() & other.keys())
    if len(shared) < 2:
        raise ValueError(
            f"a paired comparison needs at least 2 trials in common, not {len(shared)}"
        )
    gaps = np.array([one[trial] - other[trial] for trial in shared])
    return difference(float(gaps.mean()), gaps.std(ddof=1) / math.sqrt(len(gaps)), len(gaps), level)


def difference(value: float, error: float, trials: int, level: float = 0.95) -> Difference:
    """A difference with a standard error from so many trials."""
    reach = float(stats.t(trials - 1).ppf((1 + level) / 2)) * error
    return Difference(value, value - reach, value + reach, _noticed(trials, level) * error, trials)


@cache
def _noticed(trials: int, level: float) -> float:
    """How many standard errors a true difference needs to be seen four times in five.

    The statistic then follows Student's non-central law. Its tail is an average of normal tails
    over the estimated standard error, taken here at midpoints of equal probability: unlike the
    library's law this also works for two trials, where quantiles are far out.

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
    """How many standard errors the best of `count` equal means lies above the truth, on average.

    The mean of the largest of independent standard normal numbers.

    >>> round(optimism(1), 6), round(optimism(8), 3)
    (0.0, 1.424)
    """
    number = checks.whole_number(count, "count")

    def density(z: float) -> float:
        return number * z * float(stats.norm.pdf(z)) * float(stats.norm.cdf(z)) ** (number - 1)

    return float(integrate.quad(density, -12, 12)[0])


def enough_bags(rows: int, bag_size: int) -> bool:
    """Whether so many training rows make at least 1,000 bags.

    >>> enough_bags(41_233, 32), enough_bags(41_233, 64)
    (True, False)
    """
    return rows // bag_size >= LEAST_BAGS


def pareto(advantage: Sequence[float], auc: Sequence[float]) -> NDArray[np.bool_]:
    """Whether no other point has at most the advantage and at least the AUC, one of them strictly.

    >>> pareto([0.1, 0.2, 0.3, 0.3], [0.6, 0.5, 0.7, 0.65]).tolist()
    [True, False, True, False]
    """
    x, y = np.asarray(advantage, dtype=float), np.asarray(auc, dtype=float)
    no_worse = (x[:, None] <= x) & (y[:, None] >= y)
    better = (x[:, None] < x) | (y[:, None] > y)
    return np.logical_not((no_worse & better).any(axis=0))


def against(curve: pd.DataFrame, points: pd.DataFrame, measure: str) -> pd.DataFrame:
    """AUC of each point minus that of a curve at the same advantage, trial by trial in `gaps`.

    The curve's AUC is interpolated linearly between the two neighbouring settings, in the trials
    that they and the point have. A point without such a trial, beyond the curve's ends, or with an
    infinite advantage is left out: nothing there can be compared. Of settings of the curve with
    one and the same advantage, the one of the largest epsilon counts.
    """
    known = curve[np.isfinite(curve[measure])].sort_values([measure, "epsilon"])
    known = known.drop_duplicates(measure, keep="last")
    places = known[measure].to_numpy()
    rows = []
    for _, point in points.iterrows():
        place = point[measure]
        if not (len(known) and places[0] <= place <= places[-1]):
            continue
        right = int(np.searchsorted(places, place))
        near = slice(max(right - 1, 0), right + 1)
        beside = list(known["aucs"].iloc[near])
        gaps = {
            trial: auc - np.interp(place, places[near], [aucs[trial] for aucs in beside])
            for trial, auc in point["aucs"].items()
            if all(trial in aucs for aucs in beside)
        }
        if not gaps:
            continue
        row = {name: point[name] for name in (*SETTING, measure, "auc")}
        rows.append(row | {"difference": np.mean(list(gaps.values())), "gaps": gaps})
    return pd.DataFrame(rows, columns=[*SETTING, measure, "auc", "difference", "gaps"])


def together(gaps: Sequence[Mapping[int, float]], level: float = 0.95) -> Difference:
    """The mean of many differences, with an interval over trials.

    Differences within a trial lean on one another, so they are averaged before they are compared.

    >>> together([{0: 0.1, 1: 0.2}, {0: 0.3, 1: 0.2}]).value
    0.2
    """
    if not gaps:
        raise ValueError("there are no differences to take the mean of")
    trials = set.intersection(*map(set, gaps))
    means = {trial: float(np.mean([one[trial] for one in gaps])) for trial in trials}
    return paired(means, dict.fromkeys(trials, 0.0), level)


def cost(frame: pd.DataFrame, measure: str, limit: float, clean: float) -> dict[str, Any] | None:
    """The best setting whose advantage is at most `limit`, and the AUC it loses to clean labels.

    The best of many flatters: its AUC is the largest of `among` that are known with an error, so
    `loss` is on average too small. `optimism` is by how much if all of them were equally good,
    about the most it can be; a fair number needs new trials of the setting that was chosen.
    """
    allowed = frame[(frame[measure] <= limit) & frame["auc"].notna()]
    if allowed.empty:
        return None
    best = allowed.loc[allowed["auc"].idxmax()]
    found = best[[*SETTING, measure, "auc", "error"]].to_dict()
    flattery = optimism(len(allowed)) * best["error"]
    return {**found, "loss": clean - best["auc"], "among": len(allowed), "optimism": flattery}
