"""What all figures have in common: white panels, one legend above them, the word "simulated".

It needs matplotlib, so `import labelaudit` does not import it. Backgrounds are white and opaque, so
that figures can be read on a dark page.
"""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labelaudit.intervals import Interval

__all__ = ["grid", "legend", "literal", "simulated", "spread", "useful_range"]

MIN_WIDTH = 5.4
FONT_SIZE = 11
# A name may be the path of a file; the axes need their room.
MAX_LETTERS = 40
# An interval this many times as long as usual is cut at the edge of its axis.
MAX_LENGTH = 1.5


def grid(
    rows: int, columns: int, *, width: float = 3.1, height: float = 2.6, **options: Any
) -> tuple[Figure, Any]:
    """A figure with a two-dimensional array of axes; `width` and `height` of each are in inches."""
    with plt.rc_context({"font.size": FONT_SIZE}):
        figure, axes = plt.subplots(
            rows,
            columns,
            figsize=(max(width * columns, MIN_WIDTH), height * rows),
            squeeze=False,
            layout="constrained",
            facecolor="white",
            **options,
        )
    for panel in axes.flat:
        panel.set_facecolor("white")
        panel.spines[["top", "right"]].set_visible(False)
        panel.title.set_fontsize(FONT_SIZE)
    return figure, axes


def simulated(figure: Figure, what: str = "simulated priors") -> None:
    """Say on the figure itself that its data is simulated."""
    figure.supxlabel(what, x=0.995, ha="right", fontsize=FONT_SIZE - 1, style="italic")


def legend(figure: Figure, axes: Axes, *, columns: int = 4, **options: Any) -> None:
    """One legend for the whole figure, above its axes, with the labels of `axes`."""
    handles, labels = axes.get_legend_handles_labels()
    style: dict[str, Any] = {"loc": "outside upper center", "frameon": False}
    style["ncols"] = min(columns, len(labels))
    figure.legend(handles, labels, **(style | options))


def spread(values: Sequence[float], panel: Axes) -> None:
    """Let the axis grow by factors where most values are far smaller than the greatest."""
    limit = float(f"{np.median(values):.0g}")
    if not 0 < limit < max(values) / 4:
        return
    panel.set_xscale("symlog", linthresh=limit)
    steps = np.outer(10.0 ** np.arange(-9, 1), [1, 2, 5]).ravel()
    ticks = [0.0, *(step for step in steps if limit / 2 <= step <= max(values))]
    panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.minorticks_off()
    panel.set_xlabel(f"{panel.get_xlabel()} (logarithmic beyond {limit:g})")


def useful_range(intervals: Sequence[Interval]) -> tuple[float, float]:
    """An axis for all values and for intervals of usual length, so that none flattens the others.

    >>> usual = [Interval(value, 0.01, value - 0.02, value + 0.02) for value in (0.6, 0.7)]
    >>> low, high = useful_range([*usual, Interval(0.65, 0.3, 0.05, 1.0)])
    >>> round(low, 2), round(high, 2)
    (0.57, 0.73)
    """
    longest = MAX_LENGTH * float(np.median([each.high - each.low for each in intervals])) / 2
    low = min(max(each.low, each.value - longest) for each in intervals)
    high = max(min(each.high, each.value + longest) for each in intervals)
    room = max(0.05 * (high - low), 0.005)
    return low - room, high + room


def literal(name: str) -> str:
    """A name for a figure: short, no formula in dollars, a leading underscore kept in a legend.

    >>> literal("$x$"), literal("m" * 60).count("m")
    ('\\\\$x\\\\$', 39)
    """
    short = name if len(name) <= MAX_LETTERS else f"…{name[1 - MAX_LETTERS :]}"
    return ("\u200b" if short.startswith("_") else "") + short.replace("$", r"\$")
