"""Figures of the chapters on data: distributions of the advantage, ROC curves, the three rows.

They are drawn with the functions of `book.chapters.plots`, in one colour for each mechanism.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy.special import logit
from sklearn.metrics import roc_curve

from book.chapters import plots
from book.chapters.drawn import named_lines
from book.chapters.plots import Options
from book.chapters.real import REAL
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


def shifts(axes: Axes, eta: ArrayLike, shift: ArrayLike, mechanism: Mechanism, top: float) -> None:
    """|I| against the log-odds of the prior; what exceeds `top` is drawn on a line above it."""
    kind, sizes = kind_of(mechanism), np.abs(shift)
    heights = np.where(sizes > top, 1.08 * top, sizes)
    options: Options = {"marker": kind.marker, "s": 9, "label": kind.name}
    plots.scatter(axes, logit(np.asarray(eta, dtype=np.float64)), heights, kind.colour, **options)
    axes.set(xlabel="log-odds of the prior", ylim=(-0.04 * top, 1.14 * top))
    if np.isinf(mechanism.epsilon):
        axes.annotate(
            f"{np.mean(sizes > top):.1%} above",
            (1, 0.85),
            xycoords="axes fraction",
            ha="right",
            color=kind.colour,
            fontweight="bold",
            fontsize=plots.FONT_SIZE - 1,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
        )


def fraction_above(
    axes: Axes, values: ArrayLike, fraction: ArrayLike, mechanism: Mechanism
) -> None:
    """The fraction of people whose advantage exceeds each value, on logarithmic axes."""
    x, y = np.asarray(values), np.asarray(fraction)
    drawn = (x > 0) & (y > 1e-12)
    plots.curve(axes, x[drawn], y[drawn], mechanism)
    axes.set(xscale="log", yscale="log", xlim=(1e-6, 0.6), ylim=(1e-4, 1.4))
    axes.set(xlabel="additive advantage", xticks=[1e-6, 1e-4, 1e-2])


def exact_cdf(axes: Axes, t: ArrayLike, probability: ArrayLike, mechanism: Mechanism) -> None:
    """A distribution function known exactly, as a line."""
    plots.curve(axes, t, probability, mechanism, drawstyle="steps-post")


def sampled_cdf(
    axes: Axes, sample: ArrayLike, mechanism: Mechanism, *, count: int = 25, **options: Any
) -> None:
    """A sample's distribution function, as `count` markers; infinite values are not drawn."""
    values = np.sort(np.ravel(sample))
    chosen = np.unique(np.linspace(0, values.size - 1, count).round().astype(int))
    chosen = chosen[np.isfinite(values[chosen])]
    if not chosen.size:  # an empty line takes space in the figure's corner and squeezes the panels
        return
    # A value that occurs several times gets its highest rank, as in the distribution function.
    fractions = np.searchsorted(values, values[chosen], side="right") / values.size
    style = plots.markers(mechanism) | {"markersize": 5, "markerfacecolor": "white"}
    style |= {"clip_on": False, "zorder": 4}
    axes.plot(values[chosen], fractions, **(style | options))


def infinite_fraction(axes: Axes, fraction: float, mechanism: Mechanism) -> None:
    """Write the fraction of mass at infinity, where a distribution function ends below 1."""
    colour = kind_of(mechanism).colour
    right = axes.get_xlim()[1]
    if fraction >= 0.05:
        ends: Options = {"arrowstyle": "<->", "color": colour, "shrinkA": 0, "shrinkB": 0}
        bottom, top = (right, 1 - fraction), (right, 1.0)
        axes.annotate("", bottom, top, arrowprops=ends, annotation_clip=False)
    # There is space above a curve that ends low, and below a curve that ends high.
    axes.annotate(
        f"{fraction:.2%}\nat infinity",
        (right, 1 - fraction / 2 if fraction > 0.4 else 0.4),
        (-6, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        color=colour,
        fontweight="bold",
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.5},
        zorder=5,
    )


def reliability(
    axes: Axes, predicted: ArrayLike, observed: ArrayLike, error: ArrayLike, **options: Any
) -> None:
    """A reliability diagram: fractions of ones against scores, with two standard errors."""
    style: Options = {"color": "black", "marker": "o", "markersize": 4, "linewidth": 1}
    bars = 2 * np.asarray(error)
    axes.errorbar(
        np.asarray(predicted), np.asarray(observed), bars, elinewidth=1, **(style | options)
    )
    plots.square(axes)
    axes.set_xlabel("score")


def plug_in_and_realised(
    axes: Axes,
    names: Sequence[str],
    plug_in: ArrayLike,
    realised: ArrayLike,
    error: ArrayLike,
    mechanism: Mechanism,
) -> None:
    """The plug-in advantage (open) and the realised one (filled) of each estimate of eta.

    Bars are two standard errors of the difference, around the realised advantage. A plug-in value
    outside its bar has an exclamation mark.
    """
    lines = np.arange(len(names), dtype=float)
    expected, actual, bars = np.asarray(plug_in), np.asarray(realised), 2 * np.asarray(error)
    style = plots.markers(mechanism)
    axes.errorbar(actual, lines, xerr=bars, capsize=2, markersize=6, label="realised", **style)
    style |= {"markerfacecolor": "white", "markersize": 9, "zorder": 3}
    axes.plot(expected, lines, label="plug-in", **style)
    for line in np.flatnonzero(np.abs(expected - actual) > bars):
        point = (max(expected[line], actual[line] + bars[line]), line)
        axes.annotate("!", point, (7, 0), textcoords="offset points", va="center", weight="bold")
    axes.set_title(kind_of(mechanism).name)
    axes.margins(x=0.12)
    named_lines(axes, names)


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
    clean labels. Any other name is a reference, thin: the first dotted, the second dash-dotted.
    """
    figure, axes = plots.grid(1, 1, width=5.4, height=4.6)
    thin = cycle([":", "-."])
    for name in table:
        style: dict[str, Any] = {"color": "black", "linewidth": 2}
        if name not in mechanisms:
            style |= {"linestyle": next(thin), "linewidth": 1.2}
        elif (mechanism := mechanisms[name]) is not None:
            kind = kind_of(mechanism)
            style |= {"color": kind.colour, "linestyle": kind.dashes}
        label = f"{name}, AUC {areas[name]:.3f}"
        axes[0, 0].plot(table.index, table[name], label=label, **style)
    plots.square(axes[0, 0])
    axes[0, 0].set(xlabel="false-positive rate", ylabel="true-positive rate")
    axes[0, 0].legend(loc="lower right", frameon=False, fontsize=10)
    return figure


@dataclass(frozen=True, kw_only=True)
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
            audited[name, kind] = Panel(
                mechanism=mechanism, bags=bags, posterior=after, additive=gain
            )
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
        shifts(top, before, shift, panel.mechanism, points[-1])
        exact_cdf(middle, points, panel.cdf(points), panel.mechanism)
        above = 1 - np.searchsorted(panel.additive, ADVANTAGES, side="right") / len(panel.additive)
        fraction_above(bottom, ADVANTAGES, above, panel.mechanism)
        middle.set_xlim(0, points[-1])
        if np.isinf(panel.mechanism.epsilon):
            infinite_fraction(middle, panel.infinite, panel.mechanism)
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
