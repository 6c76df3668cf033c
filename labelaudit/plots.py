"""Figures of the book: a function for each kind of figure, a colour for each mechanism.

It needs matplotlib, so `import labelaudit` leaves it alone. Grounds are white and opaque, so that
figures read on a dark page. In grey a mechanism is known by its dashes or its marker, a parameter
value by how dark its shade is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from labelaudit import checks
from labelaudit.checks import Floats
from labelaudit.mechanisms import Mechanism
from labelaudit.mechanisms import kind_of as kind_of

Options = dict[str, Any]

LEAST_WIDTH = 5.4
FONT_SIZE = 11
# Beyond so many points a scatter is drawn as pixels, which keeps the page light.
MOST_VECTOR_POINTS = 200


def shades(mechanism: Mechanism, count: int) -> list[str]:
    """So many shades of a mechanism's colour, from light to dark: one for each parameter value.

    >>> from labelaudit import RandomizedResponse
    >>> shades(RandomizedResponse(1.0), 3)
    ['#b3b3b3', '#555555', '#262626']
    """
    # Imported here: seaborn takes a second, and most figures need no shades.
    from seaborn import blend_palette

    colour = kind_of(mechanism).colour
    wanted = checks.whole_number(count, "count")
    if wanted == 1:
        return [colour.lower()]
    ramp = blend_palette(["white", colour, "black"], as_cmap=True)
    return [to_hex(shade) for shade in ramp(np.linspace(0.225, 0.775, wanted))]


def grid(
    rows: int, columns: int, *, width: float = 3.1, height: float = 2.6, **options: Any
) -> tuple[Figure, Any]:
    """A figure with a table of axes, always two-dimensional; sizes are those of one, in inches."""
    with plt.rc_context({"font.size": FONT_SIZE}):
        figure, axes = plt.subplots(
            rows,
            columns,
            figsize=(max(width * columns, LEAST_WIDTH), height * rows),
            squeeze=False,
            layout="constrained",
            facecolor="white",
            **options,
        )
    for one in axes.flat:
        one.set_facecolor("white")
        one.spines[["top", "right"]].set_visible(False)
        one.title.set_fontsize(FONT_SIZE)
    return figure, axes


def simulated(figure: Figure, what: str = "simulated priors") -> None:
    """Say on the figure itself that its data is simulated."""
    figure.supxlabel(what, x=0.995, ha="right", fontsize=FONT_SIZE - 1, style="italic")


def beliefs(
    axes: Axes, names: Sequence[str], eta: ArrayLike, posteriors: Mapping[Mechanism, ArrayLike]
) -> None:
    """A bag's members, one line each: the prior as a bar across it, the posteriors as markers."""
    places = np.arange(len(names), dtype=float)
    axes.scatter(eta, places, marker="|", s=420, color="black", linewidths=2, label="prior")
    for mechanism, values in posteriors.items():
        one = kind_of(mechanism)
        axes.scatter(values, places, marker=one.marker, s=48, color=one.colour, label=one.name)
    axes.set_yticks(places, names)
    axes.set(xlim=(-0.03, 1.03), ylim=(len(names) - 0.4, -0.6))
    axes.set_xlabel("probability that the label is 1")
    axes.grid(axis="y", color="#dddddd")
    axes.set_axisbelow(True)


def likelihood(axes: Axes, mechanism: Mechanism, release: float) -> None:
    """How well each count explains a release, the best one scaled to 1."""
    values = mechanism.likelihood([release])[0]
    one = kind_of(mechanism)
    axes.bar(np.arange(values.size), values, color=one.colour, edgecolor="black", linewidth=0.5)
    axes.set(title=one.name, xlabel="number of ones", ylim=(0, 1.08))
    axes.set_xticks(np.arange(0, values.size, 1 + values.size // 9))


def lone(x: ArrayLike) -> Options:
    """What a line needs to be seen when it has one point: a marker. Nothing otherwise.

    >>> lone([8]), lone([8, 16])
    ({'marker': 'o'}, {})
    """
    return {"marker": "o"} if np.size(x) == 1 else {}


def curve(axes: Axes, x: ArrayLike, y: ArrayLike, mechanism: Mechanism, **options: Any) -> None:
    """A quantity against a parameter: a line in the mechanism's colour and dashes."""
    one = kind_of(mechanism)
    style: Options = {
        "color": one.colour,
        "linestyle": one.dashes,
        "linewidth": 2,
        "label": one.name,
    }
    axes.plot(np.asarray(x), np.asarray(y), **(style | lone(x) | options))


def measured(
    axes: Axes, x: ArrayLike, y: ArrayLike, error: ArrayLike, mechanism: Mechanism, **options: Any
) -> None:
    """Simulated values of the same quantity: markers with bars of two standard errors."""
    one = kind_of(mechanism)
    style: Options = {
        "color": one.colour,
        "marker": one.marker,
        "linestyle": "none",
        "markersize": 4.5,
    }
    bars = 2 * np.asarray(error)
    axes.errorbar(np.asarray(x), np.asarray(y), bars, capsize=2, elinewidth=1, **(style | options))


def arc(eta: ArrayLike, shift: float) -> Floats:
    """The posterior of a prior whose log-odds move by `shift`: one side of a spindle.

    >>> arc([0.5], 0.0).tolist()
    [0.5]
    """
    return np.asarray(expit(logit(np.asarray(eta, dtype=np.float64)) + shift))


def square(axes: Axes) -> None:
    """The unit square of priors and posteriors, with the dotted diagonal of nothing learned."""
    axes.plot([0, 1], [0, 1], color="black", linestyle=":", linewidth=1.2, zorder=3)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])


def spindle(axes: Axes, shift: float, colour: str = "black", **options: Any) -> None:
    """The two arcs of points whose multiplicative advantage is `shift` in absolute value."""
    # Even steps of log-odds: the arcs bend where priors are near 0 or 1.
    eta = np.concatenate([[0.0], 1 / (1 + np.exp(np.linspace(12, -12, 241))), [1.0]])
    style: Options = {"color": colour, "linewidth": 1, "zorder": 3}
    for side in (shift, -shift):
        axes.plot(eta, arc(eta, side), **(style | options))


def scatter(axes: Axes, eta: ArrayLike, posterior: ArrayLike, colour: str, **options: Any) -> None:
    """Posterior against prior, a point for each run."""
    points = np.ravel(eta), np.ravel(posterior)
    style: Options = {"s": 5, "linewidths": 0, "alpha": 0.75, "clip_on": False}
    dense = points[0].size > MOST_VECTOR_POINTS
    axes.scatter(*points, color=colour, rasterized=dense, **(style | options))


def exact_cdf(axes: Axes, t: ArrayLike, share: ArrayLike, mechanism: Mechanism) -> None:
    """A distribution function known exactly, as a line."""
    curve(axes, t, share, mechanism, drawstyle="steps-post")


def sampled_cdf(
    axes: Axes, sample: ArrayLike, mechanism: Mechanism, *, count: int = 25, **options: Any
) -> None:
    """A sample's distribution function, as `count` markers; infinite values lie off the plot."""
    one = kind_of(mechanism)
    values = np.sort(np.ravel(sample))
    places = np.unique(np.linspace(0, values.size - 1, count).round().astype(int))
    # A value that repeats takes its highest share, where the distribution function is.
    shares = np.searchsorted(values, values[places], side="right") / values.size
    here = np.isfinite(values[places])
    style: Options = {
        "marker": one.marker,
        "markersize": 5,
        "linestyle": "none",
        "color": one.colour,
    }
    style |= {"markerfacecolor": "white", "clip_on": False, "zorder": 4}
    axes.plot(values[places][here], shares[here], **(style | options))


def infinite_share(axes: Axes, share: float, mechanism: Mechanism) -> None:
    """Write the share of mass at infinity, where a distribution function stops short of 1."""
    colour = kind_of(mechanism).colour
    right = axes.get_xlim()[1]
    wide = share >= 0.05
    if wide:
        ends: Options = {"arrowstyle": "<->", "color": colour, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (right, 1 - share), (right, 1.0), arrowprops=ends, annotation_clip=False)
    # A curve that ends low leaves room above it, one that ends high leaves room below.
    axes.annotate(
        f"{share:.2%}\nat infinity",
        (right, 1 - share / 2 if share > 0.4 else 0.4),
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
    """A reliability diagram: shares of ones against scores, with bars of two standard errors."""
    style: Options = {"color": "black", "marker": "o", "markersize": 4, "linewidth": 1}
    bars = 2 * np.asarray(error)
    axes.errorbar(
        np.asarray(predicted), np.asarray(observed), bars, elinewidth=1, **(style | options)
    )
    square(axes)
    axes.set_xlabel("score")


def plug_in_and_realised(
    axes: Axes,
    names: Sequence[str],
    plug_in: ArrayLike,
    realised: ArrayLike,
    error: ArrayLike,
    mechanism: Mechanism,
) -> None:
    """What each estimate of eta promises (open) and what the attack does (filled), a line each.

    Bars are two standard errors of the difference, around the realised advantage: a plug-in
    outside its bar is a warning, and gets an exclamation mark.
    """
    one = kind_of(mechanism)
    places = np.arange(len(names), dtype=float)
    promised, done, bars = np.asarray(plug_in), np.asarray(realised), 2 * np.asarray(error)
    common: Options = {"color": one.colour, "marker": one.marker, "linestyle": "none"}
    axes.errorbar(done, places, xerr=bars, capsize=2, markersize=6, label="realised", **common)
    axes.plot(
        promised, places, markerfacecolor="white", markersize=9, zorder=3, label="plug-in", **common
    )
    for place in places[np.abs(promised - done) > bars]:
        far = max(promised[int(place)], done[int(place)] + bars[int(place)])
        axes.annotate(
            "!", (far, place), (7, 0), textcoords="offset points", va="center", weight="bold"
        )
    axes.set_yticks(places, names)
    axes.set(title=one.name, ylim=(len(names) - 0.4, -0.6))
    axes.margins(x=0.12)
    axes.grid(axis="y", color="#dddddd")
    axes.set_axisbelow(True)


def legend(figure: Figure, axes: Axes, *, columns: int = 4, **options: Any) -> None:
    """One legend for a whole figure, above its axes, with what the given axes show."""
    handles, labels = axes.get_legend_handles_labels()
    style: Options = {
        "loc": "outside upper center",
        "ncols": min(columns, len(labels)),
        "frameon": False,
    }
    figure.legend(handles, labels, **(style | options))
