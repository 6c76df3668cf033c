"""Draw the figure of the landing page and the README: one distribution, two measures.

`make figure` runs it. The result is committed for the README, and a test draws it again and
compares. The numbers come from the package's public functions: exact over releases, for priors
drawn once from Beta(2, 30).
"""

from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

import labelaudit as la
from labelaudit.mechanisms import kind_of

TARGET = Path(__file__).parent / "_static" / "question.svg"
BAG_SIZE, EPSILON, N_BAGS, SEED = 8, 1.0, 4000, 2024
SHIFTS = np.linspace(0.0, 3.0, 301)
MECHANISMS = (
    la.RandomizedResponse(EPSILON),
    la.LabelProportions(BAG_SIZE),
    la.GeometricProportions(BAG_SIZE, EPSILON),
)


@dataclass(frozen=True)
class Answer:
    """The two measures of one mechanism.

    `accuracy` is the fraction of right guesses; `moved` the fraction of people and releases whose
    log-odds change by more than each of `SHIFTS`; `certain` the fraction with an infinite change.
    """

    accuracy: float
    moved: np.ndarray
    certain: float


def answers() -> tuple[float, dict[str, Answer]]:
    """The accuracy without a release, and both measures for each mechanism."""
    rng = np.random.default_rng(SEED)
    eta = la.priors.Beta(2, 30).sample((N_BAGS, BAG_SIZE), rng)
    blind = float(np.maximum(eta, 1 - eta).mean())
    results = {}
    for mechanism in MECHANISMS:
        bags = eta.reshape(-1, mechanism.bag_size)
        gain = float(la.additive_advantage(bags, mechanism).mean())
        *moved, certain = 1 - la.multiplicative_cdf(bags, mechanism, [*SHIFTS, 1e300])
        results[kind_of(mechanism).name] = Answer(blind + gain, np.array(moved), float(certain))
    return blind, results


def draw(target: Path = TARGET) -> None:
    """Write the figure as SVG, the same bytes for the same numbers."""
    blind, results = answers()
    style = {
        "font.size": 11,
        "svg.hashsalt": "question",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 11,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
    }
    with plt.rc_context(style):
        figure, (above, below) = plt.subplots(
            2, 1, figsize=(6, 5.6), height_ratios=[1, 1.9], layout="constrained"
        )
        draw_accuracy(above, blind, results)
        draw_shifts(below, results)
        figure.savefig(target, format="svg", facecolor="white", metadata={"Date": None})
        plt.close(figure)


def draw_accuracy(axes, blind: float, results: dict[str, Answer]) -> None:
    """Bars that end close to the line of the attacker without a release."""
    for mechanism in MECHANISMS:
        kind = kind_of(mechanism)
        right = 100 * results[kind.name].accuracy
        ink = "black" if isinstance(mechanism, la.GeometricProportions) else "white"
        axes.barh(kind.name, right, color=kind.colour, height=0.6)
        axes.text(right - 1.5, kind.name, f"{right:.2f}%", va="center", ha="right", color=ink)
    axes.axvline(100 * blind, color="black", linestyle="--", linewidth=1.2)
    axes.invert_yaxis()
    axes.set(xlim=(0, 103), xlabel="right guesses, in % (simulated priors)")
    axes.set_title(f"On average: {blind:.2%} are guessed right without a release")


def draw_shifts(axes, results: dict[str, Answer]) -> None:
    """The fraction of people moved by more than t; a curve that never falls shows certainty."""
    for mechanism in MECHANISMS:
        kind = kind_of(mechanism)
        line = {"color": kind.colour, "linestyle": kind.dashes, "linewidth": 2.2}
        axes.plot(SHIFTS, results[kind.name].moved, label=kind.name, **line)
    certain = results["LLP"].certain
    axes.text(
        SHIFTS[-1],
        certain + 0.05,
        f"LLP: for {certain:.0%} the shift is infinite:\ntheir label is certain",
        ha="right",
        color=kind_of(MECHANISMS[1]).colour,
    )
    axes.set(xlim=(0, SHIFTS[-1]), ylim=(0, 1.03), xlabel="shift t of the log-odds")
    axes.set(ylabel="fraction moved by more than t")
    axes.set_title("For each person: the shift of the log-odds")
    axes.legend(frameon=False, loc="lower right", handlelength=3)


if __name__ == "__main__":
    draw()
