"""What the settings of a sweep say beside one another: differences, fronts, costs, verdicts.

Settings are compared trial by trial, with Student's interval over trials and the least difference
that so many trials would have noticed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import integrate, optimize, stats

from labelaudit import checks

# What names a setting.
SETTING = ["dataset", "kind", "bag_size", "epsilon"]
# With fewer bags to train on, a sample says too little for a comparison of mechanisms.
LEAST_BAGS = 1000
# Two mechanisms that differ in AUC by less than this are called alike.
ALIKE = 0.02
VERDICTS = ("reproduced", "reproduced in shape", "differs", "not testable here")


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
    """A difference with a standard error from so many trials.

    >>> found = difference(0.02, error=0.005, trials=10)
    >>> round(found.low, 4), round(found.high, 4), round(found.detectable, 4)
    (0.0087, 0.0313, 0.0157)
    """
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


def pareto(advantage: Sequence[float], auc: Sequence[float]) -> NDArray[np.bool_]:
    """Whether no other point has at most the advantage and at least the AUC, one of them strictly.

    A point whose advantage or AUC is not known is not on the front, and keeps no other off it.

    >>> pareto([0.1, 0.2, 0.3, 0.3], [0.6, 0.5, 0.7, 0.65]).tolist()
    [True, False, True, False]
    """
    x, y = np.asarray(advantage, dtype=float), np.asarray(auc, dtype=float)
    # Comparisons with NaN are false, so an unknown point beats nothing.
    no_worse = (x[:, None] <= x) & (y[:, None] >= y)
    better = (x[:, None] < x) | (y[:, None] > y)
    known = np.isfinite(y) & ~np.isnan(x)
    return known & ~(no_worse & better).any(axis=0)


def against(curve: pd.DataFrame, points: pd.DataFrame, measure: str) -> pd.DataFrame:
    """AUC of each point minus that of a curve at the same advantage, trial by trial in `gaps`.

    The curve's AUC is interpolated between the two neighbouring settings, in the trials that they
    and the point have, linearly in the *logarithm* of the advantage: epsilon doubles from one
    setting to the next, and AUC rises by about as much each time. A point without such a trial,
    beyond the curve's ends, or with an advantage of 0, infinite or not known is left out: nothing
    there can be compared. Of settings of the curve with one and the same advantage, the one of the
    largest epsilon counts.

    >>> import pandas as pd
    >>> columns = [*SETTING, "additive", "auc", "aucs"]
    >>> low = ("fair", "RR", 1, 1.0, 0.1, 0.6, {0: 0.6})
    >>> high = ("fair", "RR", 1, 4.0, 0.4, 0.8, {0: 0.8})
    >>> point = ("fair", "LLP", 4, float("inf"), 0.2, 0.75, {0: 0.75})
    >>> curve, points = (pd.DataFrame(rows, columns=columns) for rows in ([low, high], [point]))
    >>> found = against(curve, points, "additive")
    >>> found["difference"].round(6).tolist()
    [0.05]
    """
    known = curve[_has_logarithm(curve[measure])].sort_values([measure, "epsilon"])
    known = known.drop_duplicates(measure, keep="last")
    places = np.log(known[measure].to_numpy(dtype=float))
    rows = []
    for _, point in points[_has_logarithm(points[measure])].iterrows():
        place = math.log(point[measure])
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


def _has_logarithm(advantage: pd.Series) -> pd.Series:
    return np.isfinite(advantage) & (advantage > 0)


def by_trial(gaps: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """The mean of many differences in each trial that all of them have.

    >>> by_trial([{0: 0.5, 1: 0.25}, {0: 0.25, 1: 0.25, 2: 0.5}])
    {0: 0.375, 1: 0.25}
    """
    if not gaps:
        raise ValueError("there are no differences to take the mean of")
    shared = sorted(set.intersection(*map(set, gaps)))
    return {trial: float(np.mean([one[trial] for one in gaps])) for trial in shared}


def together(gaps: Sequence[Mapping[int, float]], level: float = 0.95) -> Difference:
    """The mean of many differences, with an interval over trials.

    Differences within a trial lean on one another, so they are averaged before they are compared.

    >>> together([{0: 0.1, 1: 0.2}, {0: 0.3, 1: 0.2}]).value
    0.2
    """
    means = by_trial(gaps)
    return paired(means, dict.fromkeys(means, 0.0), level)


def verdict(claim: str, means: Mapping[int, float]) -> str:
    """Hold the differences of trials against a claim: that they are "lower" than 0, or "alike".

    Reproduced: Student's 95% interval lies on the claim's side, that is below 0, or within `ALIKE`
    of it. Differs: it lies wholly on the other side. Reproduced in shape: the interval decides
    nothing, but every single trial goes the claim's way. Not testable here: all else, and fewer
    than two trials.

    >>> verdict("lower", {0: -0.03, 1: -0.03, 2: -0.02}), verdict("lower", {0: -0.05, 1: -0.01})
    ('reproduced', 'reproduced in shape')
    """
    if claim not in ("lower", "alike"):
        raise ValueError(f"claim must be 'lower' or 'alike', not {claim!r}")
    least, most = (-math.inf, 0.0) if claim == "lower" else (-ALIKE, ALIKE)
    if len(means) < 2:
        return VERDICTS[3]
    found = paired(means, dict.fromkeys(means, 0.0))
    if least < found.low and found.high < most:
        return VERDICTS[0]
    if found.high < least or found.low > most:
        return VERDICTS[2]
    return VERDICTS[1] if all(least < one < most for one in means.values()) else VERDICTS[3]


def cost(frame: pd.DataFrame, measure: str, limit: float, clean: float) -> dict[str, Any] | None:
    """The best setting whose advantage is at most `limit`, and the AUC it loses to clean labels.

    The best of many flatters: its AUC is the largest of `among` that are known with an error, so
    `loss` is on average too small. `optimism` is by how much if all of them were equally good,
    about the most it can be; a fair number needs new trials of the setting that was chosen.

    >>> import pandas as pd
    >>> rows = [("fair", "RR", 1, 1.0, 0.1, 0.6, 0.01), ("fair", "RR", 1, 4.0, 0.2, 0.75, 0.01)]
    >>> frame = pd.DataFrame(rows, columns=[*SETTING, "additive", "auc", "error"])
    >>> found = cost(frame, "additive", limit=0.25, clean=0.8)
    >>> found["epsilon"], round(float(found["loss"]), 6), found["among"]
    (4.0, 0.05, 2)
    """
    allowed = frame[(frame[measure] <= limit) & frame["auc"].notna()]
    if allowed.empty:
        return None
    best = allowed.loc[allowed["auc"].idxmax()]
    found = best[[*SETTING, measure, "auc", "error"]].to_dict()
    flattery = optimism(len(allowed)) * best["error"]
    return {**found, "loss": clean - best["auc"], "among": len(allowed), "optimism": flattery}
