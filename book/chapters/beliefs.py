"""Figures of chapter 01: what is believed of each member of a bag, and what a release explains."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from labelaudit.mechanisms import Mechanism, kind_of


def beliefs(
    axes: Axes, names: Sequence[str], eta: ArrayLike, posteriors: Mapping[Mechanism, ArrayLike]
) -> None:
    """A line for each member of a bag: the prior as a vertical bar, the posteriors as markers."""
    lines = np.arange(len(names), dtype=float)
    axes.scatter(eta, lines, marker="|", s=420, color="black", linewidths=2, label="prior")
    for mechanism, values in posteriors.items():
        kind = kind_of(mechanism)
        axes.scatter(values, lines, marker=kind.marker, s=48, color=kind.colour, label=kind.name)
    axes.set(xlim=(-0.03, 1.03), xlabel="probability that the label is 1")
    named_lines(axes, names)


def named_lines(axes: Axes, names: Sequence[str]) -> None:
    """Name the horizontal lines 0, 1, ... from top to bottom."""
    axes.set_yticks(np.arange(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="y", color="#dddddd")
    axes.set_axisbelow(True)


def likelihood(axes: Axes, mechanism: Mechanism, release: float) -> None:
    """How well each count explains a release, the best one scaled to 1."""
    values = mechanism.likelihood([release])[0]
    kind = kind_of(mechanism)
    axes.bar(np.arange(values.size), values, color=kind.colour, edgecolor="black", linewidth=0.5)
    axes.set(title=kind.name, xlabel="number of ones", ylim=(0, 1.08))
    axes.set_xticks(np.arange(0, values.size, 1 + values.size // 9))
