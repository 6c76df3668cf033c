"""Draw the figure of the landing page and the README: one distribution, one question, two answers.

Run by `make figure`. The result is committed, so that the README shows it, and a test draws it
again and compares. Everything on it is computed with the package's public functions: exact over
releases, for priors drawn once from Beta(2, 30).
"""

from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

import labelaudit as la
from labelaudit.plots import look

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
    """What one mechanism does to the attacker.

    `accuracy` is the fraction of right guesses; `moved` the fraction of people, and releases, whose
    log-odds move by more than each of `SHIFTS`; `certain` the fraction moved without end.
    """

    accuracy: float
    moved: np.ndarray
    certain: float


def answers() -> tuple[float, dict[str, Answer]]:
    """The accuracy of the attacker who sees nothing, and both answers for each mechanism."""
    rng = np.random.default_rng(SEED)
    eta = la.priors.Beta(2, 30).sample((N_BAGS, BAG_SIZE), rng)
    blind = float(np.maximum(eta, 1 - eta).mean())
    found = {}
    for mechanism in MECHANISMS:
        bags = eta.reshape(-1, mechanism.bag_size)
        gain = float(la.additive_advantage(bags, mechanism).mean())
        *moved, certain = 1 - la.multiplicative_cdf(bags, mechanism, [*SHIFTS, 1e300])
        found[look(mechanism).name] = Answer(blind + gain, np.array(moved), float(certain))
    return blind, found


def draw(target: Path = TARGET) -> None:
    """Write the figure as SVG, the same bytes for the same numbers."""
    blind, found = answers()
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
        draw_accuracy(above, blind, found)
        draw_shifts(below, found)
        figure.savefig(target, format="svg", facecolor="white", metadata={"Date": None})
        plt.close(figure)


def draw_accuracy(axes, blind: float, found: dict[str, Answer]) -> None:
    """Bars that all but touch the line of the attacker who saw nothing."""
    for mechanism in MECHANISMS:
        one = look(mechanism)
        right = 100 * found[one.name].accuracy
        ink = "black" if isinstance(mechanism, la.GeometricProportions) else "white"
        axes.barh(one.name, right, color=one.colour, height=0.6)
        axes.text(right - 1.5, one.name, f"{right:.2f}%", va="center", ha="right", color=ink)
    axes.axvline(100 * blind, color="black", linestyle="--", linewidth=1.2)
    axes.invert_yaxis()
    axes.set(xlim=(0, 103), xlabel="right guesses, in % (simulated priors)")
    axes.set_title(f"On average: {blind:.2%} are guessed with no release")


def draw_shifts(axes, found: dict[str, Answer]) -> None:
    """The fraction of people moved by more than t; what never comes down is certainty."""
    for mechanism in MECHANISMS:
        one = look(mechanism)
        line = {"color": one.colour, "linestyle": one.dashes, "linewidth": 2.2}
        axes.plot(SHIFTS, found[one.name].moved, label=one.name, **line)
    certain = found["LLP"].certain
    axes.text(
        SHIFTS[-1],
        certain + 0.05,
        f"LLP: for {certain:.0%} the shift is infinite:\ntheir label is certain",
        ha="right",
        color=look(MECHANISMS[1]).colour,
    )
    axes.set(xlim=(0, SHIFTS[-1]), ylim=(0, 1.03), xlabel="shift t of the log-odds")
    axes.set(ylabel="fraction moved by more than t")
    axes.set_title("Person by person: how far a belief moves")
    axes.legend(frameon=False, loc="lower right", handlelength=3)


if __name__ == "__main__":
    draw()
