"""What all figures have in common: white panels, one legend above them, the word "simulated".

It needs matplotlib, so `import labelaudit` does not import it. Backgrounds are white and opaque, so
that figures can be read on a dark page.
"""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["grid", "legend", "simulated"]

MIN_WIDTH = 5.4
FONT_SIZE = 11


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
