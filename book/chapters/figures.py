"""The figures that the chapters on Higgs and KDD12 share: ROC curves, and the three rows.

They are drawn with the functions of `labelaudit.plots`, in one colour for each mechanism.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy.special import logit
from sklearn.metrics import roc_curve

from book.chapters.real import REAL
from labelaudit import plots
from labelaudit.advantage import additive_advantage
from labelaudit.attack import posterior
from labelaudit.checks import Floats
from labelaudit.distribution import multiplicative_cdf, multiplicative_quantile
from labelaudit.mechanisms import Mechanism, kind_of

TITLES = REAL | {f"{name}-like": f"{title}, simulated" for name, title in REAL.items()}
# The most points of a scatter.
SCATTERED = 600
# The fractions at which the distribution of the additive advantage is drawn.
LEVELS = np.linspace(0, 1, 2001)
# The values at which the fraction above is drawn.
ADVANTAGES = np.geomspace(1e-6, 0.5, 400)


def roc_table(labels: ArrayLike, scores: Mapping[str, ArrayLike]) -> pd.DataFrame:
    """The true-positive rate of each score, by name, at 201 false-positive rates."""
    rates = pd.Index(np.linspace(0, 1, 201), name="false-positive rate")
    drawn = {}
    for name, score in scores.items():
        false, true, _ = roc_curve(labels, score)
        drawn[name] = np.interp(rates, false, true)
    return pd.DataFrame(drawn, index=rates)


def roc(
    table: pd.DataFrame, areas: Mapping[str, float], mechanisms: Mapping[str, Mechanism | None]
) -> Figure:
    """The curves of `roc_table`, with the AUC of each in the legend.

    A name among the mechanisms has its mechanism's colour, or solid black where that is None:
    clean labels. Any other name is a reference, thin and dotted.
    """
    figure, axes = plots.grid(1, 1, width=5.4, height=4.6)
    for name in table:
        style: dict[str, Any] = {"color": "black", "linewidth": 2}
        if name not in mechanisms:
            style |= {"linestyle": ":", "linewidth": 1.2}
        elif (mechanism := mechanisms[name]) is not None:
            kind = kind_of(mechanism)
            style |= {"color": kind.colour, "linestyle": kind.dashes}
        label = f"{name}, AUC {areas[name]:.3f}"
        axes[0, 0].plot(table.index, table[name], label=label, **style)
    plots.square(axes[0, 0])
    axes[0, 0].set(xlabel="false-positive rate", ylabel="true-positive rate")
    axes[0, 0].legend(loc="lower right", frameon=False, fontsize=10)
    return figure


@dataclass(frozen=True)
class Panel:
    """What the three rows show of one estimate of eta and one mechanism, and its bags."""

    mechanism: Mechanism
    bags: Floats
    posterior: Floats
    additive: Floats

    def cdf(self, points: ArrayLike) -> Floats:
        """The distribution function of the absolute multiplicative advantage, exact."""
        return multiplicative_cdf(self.bags, self.mechanism, points)

    @property
    def infinite(self) -> float:
        """The probability of an infinite multiplicative advantage."""
        return float(1 - self.cdf(1e300))


Panels = Mapping[tuple[str, str], Panel]


def panels(
    estimates: Mapping[str, Floats],
    labels: ArrayLike,
    mechanisms: Mapping[str, Mechanism],
    *,
    rng: np.random.Generator,
) -> dict[tuple[str, str], Panel]:
    """Each mechanism audited with each estimate of eta, in bags of consecutive rows.

    Rows left over from whole bags are dropped. Releases are made from the true labels.
    """
    truth, audited = np.asarray(labels), {}
    for name, eta in estimates.items():
        for kind, mechanism in mechanisms.items():
            whole = len(eta) // mechanism.bag_size * mechanism.bag_size
            bags = eta[:whole].reshape(-1, mechanism.bag_size)
            releases = mechanism.release(truth[:whole].reshape(bags.shape), rng)
            after = posterior(bags, mechanism, releases)[:, 0]
            gain = np.sort(additive_advantage(bags, mechanism).ravel())
            audited[name, kind] = Panel(mechanism, bags, after, gain)
    return audited


def three_rows(shown: Panels, epsilon: float) -> Figure:
    """Shifts in log-odds, then the distributions of both advantages; a column per estimate."""
    names = list(dict.fromkeys(name for name, _ in shown))
    figure, axes = plots.grid(3, len(names), width=2.65, height=2.5, sharey="row")
    points = _points(epsilon)
    for (name, _), panel in shown.items():
        top, middle, bottom = axes[:, names.index(name)]
        every = slice(None, None, -(-len(panel.bags) // SCATTERED))
        before, after = panel.bags[every, 0], panel.posterior[every]
        with np.errstate(divide="ignore"):
            shift = logit(after) - logit(before)
        plots.shifts(top, before, shift, panel.mechanism, points[-1])
        plots.exact_cdf(middle, points, panel.cdf(points), panel.mechanism)
        above = 1 - np.searchsorted(panel.additive, ADVANTAGES, side="right") / len(panel.additive)
        plots.fraction_above(bottom, ADVANTAGES, above, panel.mechanism)
        middle.set_xlim(0, points[-1])
        if np.isinf(panel.mechanism.epsilon):
            plots.infinite_fraction(middle, panel.infinite, panel.mechanism)
    for name, (top, middle, _) in zip(names, axes.T, strict=True):
        top.axhline(epsilon, color="black", linewidth=0.8, zorder=0)
        top.set_title(name)
        middle.set(ylim=(0, 1.05), xlabel="shift |I|")
    texts = ("shift |I|", "fraction at most this", "fraction above this")
    for axis, text in zip(axes[:, 0], texts, strict=True):
        axis.set_ylabel(text)
    plots.legend(figure, axes[1, 0])
    return figure


def three_tables(shown: Panels, epsilon: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The distributions in the three rows: the CDF of |I|, quantiles of the additive advantage."""
    points = pd.Index(_points(epsilon), name="t")
    levels = pd.Index(LEVELS, name="fraction")
    cdfs = {name: panel.cdf(points) for name, panel in shown.items()}
    quantiles = {name: np.quantile(panel.additive, levels) for name, panel in shown.items()}
    return pd.DataFrame(cdfs, index=points), pd.DataFrame(quantiles, index=levels)


def three_summaries(shown: Panels, level: float) -> pd.DataFrame:
    """Mean and largest additive advantage, and a quantile of |I|: a row for each panel."""
    columns = ("mean additive", "largest additive", f"quantile of |I| at {level}")
    rows = {}
    for name, panel in shown.items():
        quantile = multiplicative_quantile(panel.bags, panel.mechanism, level)
        rows[name] = (panel.additive.mean(), panel.additive.max(), quantile)
    return pd.DataFrame(rows, index=columns).T


def _points(epsilon: float) -> Floats:
    """Values of |I|, with one on either side of epsilon, where there is a step."""
    reach = 4.0 * max(epsilon, 1.0)
    return np.union1d(np.linspace(0, reach, 401), epsilon * (1 + np.array([-1e-9, 1e-9])))
