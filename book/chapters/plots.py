"""Figures of the book: a function for each kind of figure, a colour for each mechanism.

Printed in grey, a mechanism is recognised by its dashes or its marker, and a parameter value by how
dark its shade is.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from labelaudit import checks
from labelaudit.checks import Floats
from labelaudit.mechanisms import Mechanism, kind_of
from labelaudit.plots import FONT_SIZE, grid, legend, simulated

__all__ = ["FONT_SIZE", "arc", "curve", "grid", "kind_of", "legend", "lone", "markers", "measured"]
__all__ += ["scatter", "shades", "simulated", "spindle", "square"]

Options = dict[str, Any]

# A scatter plot of more points than this is drawn as pixels, which keeps the page small.
MAX_VECTOR_POINTS = 200


def shades(mechanism: Mechanism, count: int) -> list[str]:
    """`count` shades of a mechanism's colour, from light to dark, for its parameter values.

    >>> from labelaudit import RandomizedResponse
    >>> shades(RandomizedResponse(1.0), 3)
    ['#b3b3b3', '#555555', '#262626']
    """
    colour = kind_of(mechanism).colour
    wanted = checks.whole_number(count, "count")
    if wanted == 1:
        return [colour.lower()]
    # Imported late: seaborn takes a second, and most figures need no shades.
    from seaborn import blend_palette

    ramp = blend_palette(["white", colour, "black"], as_cmap=True)
    return [to_hex(shade) for shade in ramp(np.linspace(0.225, 0.775, wanted))]


def lone(x: ArrayLike) -> Options:
    """A marker for a line of one point, which is invisible without; nothing for longer lines.

    >>> lone([8]), lone([8, 16])
    ({'marker': 'o'}, {})
    """
    return {"marker": "o"} if np.size(x) == 1 else {}


def markers(mechanism: Mechanism) -> Options:
    """Markers of a mechanism's colour and shape, without a line."""
    kind = kind_of(mechanism)
    return {"color": kind.colour, "marker": kind.marker, "linestyle": "none"}


def curve(axes: Axes, x: ArrayLike, y: ArrayLike, mechanism: Mechanism, **options: Any) -> None:
    """A quantity against a parameter: a line in the mechanism's colour and dashes."""
    kind = kind_of(mechanism)
    style: Options = {"color": kind.colour, "linestyle": kind.dashes}
    style |= {"linewidth": 2, "label": kind.name}
    axes.plot(np.asarray(x), np.asarray(y), **(style | lone(x) | options))


def measured(
    axes: Axes, x: ArrayLike, y: ArrayLike, error: ArrayLike, mechanism: Mechanism, **options: Any
) -> None:
    """Simulated values of the same quantity: markers with bars of two standard errors."""
    style = markers(mechanism) | {"markersize": 4.5}
    bars = 2 * np.asarray(error)
    axes.errorbar(np.asarray(x), np.asarray(y), bars, capsize=2, elinewidth=1, **(style | options))


def arc(eta: ArrayLike, shift: float) -> Floats:
    """The posterior of a prior whose log-odds move by `shift`: one side of a spindle.

    >>> arc([0.5], 0.0).tolist()
    [0.5]
    """
    return np.asarray(expit(logit(np.asarray(eta, dtype=np.float64)) + shift))


def square(axes: Axes) -> None:
    """The unit square of priors and posteriors; on the dotted diagonal nothing is learned."""
    axes.plot([0, 1], [0, 1], color="black", linestyle=":", linewidth=1.2, zorder=3)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])


def spindle(axes: Axes, shift: float, colour: str = "black", **options: Any) -> None:
    """The two arcs of points whose multiplicative advantage is `shift` in absolute value."""
    # Equal steps of log-odds, because the arcs bend where priors are near 0 or 1.
    eta = np.concatenate([[0.0], 1 / (1 + np.exp(np.linspace(12, -12, 241))), [1.0]])
    style: Options = {"color": colour, "linewidth": 1, "zorder": 3}
    for side in (shift, -shift):
        axes.plot(eta, arc(eta, side), **(style | options))


def scatter(axes: Axes, eta: ArrayLike, posterior: ArrayLike, colour: str, **options: Any) -> None:
    """Posterior against prior, a point for each run."""
    points = np.ravel(eta), np.ravel(posterior)
    style: Options = {"s": 5, "linewidths": 0, "alpha": 0.75, "clip_on": False}
    dense = points[0].size > MAX_VECTOR_POINTS
    axes.scatter(*points, color=colour, rasterized=dense, **(style | options))
