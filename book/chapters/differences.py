"""Settings of a sweep compared trial by trial, and with the paper's claims.

The interval over trials is Student's, with the least difference that as many trials would show.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy import integrate, optimize, stats

from book.sweep.results import SETTING
from labelaudit import checks

# AUCs are similar if they differ by less than this fraction of the range of a curve.
SIMILAR = 0.05
CLAIM_RESULTS = ("reproduced", "reproduced in shape", "differs", "not testable here")


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


def claim_result(claim: str, means: Mapping[int, float], margin: float) -> str:
    """Compare the differences of trials with a claim: that they are "lower" than 0, or "similar".

    Reproduced: Student's 95% interval lies below 0, or within `margin` of it. Differs: it lies
    wholly on the other side. Reproduced in shape: the interval does not decide, but every trial is
    on the claim's side; without any difference n trials all are "lower" with probability 1/2^n. Not
    testable here: everything else, and fewer than two trials.

    >>> claim_result("lower", {0: -0.03, 1: -0.03, 2: -0.02}, margin=0.02)
    'reproduced'
    >>> claim_result("similar", {0: -0.019, 1: 0.01}, margin=0.02)
    'reproduced in shape'
    """
    if claim not in ("lower", "similar"):
        raise ValueError(f"claim must be 'lower' or 'similar', not {claim!r}")
    reproduced, in_shape, differs, not_testable = CLAIM_RESULTS
    if len(means) < 2:
        return not_testable
    least, most = (-math.inf, 0.0) if claim == "lower" else (-margin, margin)
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
