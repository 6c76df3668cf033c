"""Draw the figure of the landing page and the README: one law, one question, two answers.

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

TARGET = Path(__file__).parent / "_static" / "question.svg"
BAG_SIZE, EPSILON, N_BAGS, SEED = 8, 1.0, 4000, 2024
LARGEST_SHIFT = 3.0
MECHANISMS = {
    "RR": (la.RandomizedResponse(EPSILON), "#555555"),
    "LLP": (la.LabelProportions(BAG_SIZE), "#0072B2"),
    "LLP+Geom": (la.GeometricProportions(BAG_SIZE, EPSILON), "#E69F00"),
}


@dataclass(frozen=True)
class Answer:
    """What one mechanism does to the attacker: accuracy, and each level of the log-odds shift."""

    accuracy: float
    levels: np.ndarray
    shifts: np.ndarray


def answers() -> tuple[float, dict[str, Answer]]:
    """The accuracy of the attacker who sees nothing, and both answers for each mechanism."""
    rng = np.random.default_rng(SEED)
    eta = la.priors.Beta(2, 30).sample((N_BAGS, BAG_SIZE), rng)
    blind = float(np.maximum(eta, 1 - eta).mean())
    levels = np.linspace(0.0, 1.0, 201)[1:-1]
    found = {}
    for name, (mechanism, _) in MECHANISMS.items():
        bags = eta.reshape(-1, mechanism.bag_size)
        gain = float(la.additive_advantage(bags, mechanism).mean())
        shifts = [la.multiplicative_quantile(bags, mechanism, level) for level in levels]
        found[name] = Answer(blind + gain, levels, np.array(shifts))
    return blind, found


def draw(target: Path = TARGET) -> None:
    """Write the figure as SVG, the same bytes for the same numbers."""
    blind, found = answers()
    style = {
        "font.size": 11,
        "svg.hashsalt": "question",
        "axes.spines.top": False,
        "axes.spines.right": False,
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
    for name, answer in found.items():
        axes.barh(name, 100 * answer.accuracy, color=MECHANISMS[name][1], height=0.6)
        axes.text(
            100 * answer.accuracy - 1.5,
            name,
            f"{100 * answer.accuracy:.2f}%",
            va="center",
            ha="right",
            color="black" if name == "LLP+Geom" else "white",
        )
    axes.axvline(100 * blind, color="black", linestyle="--", linewidth=1.2)
    axes.invert_yaxis()
    axes.set(xlim=(0, 103), xlabel="right guesses, in % (simulated priors)")
    axes.set_title(
        f"On average: {100 * blind:.2f}% are guessed with no release",
        loc="left",
        fontsize=11,
        fontweight="bold",
    )


def draw_shifts(axes, found: dict[str, Answer]) -> None:
    """The share of people moved by more than t; what never comes down is certainty."""
    for name, answer in found.items():
        finite = answer.shifts <= LARGEST_SHIFT
        shifts = np.append(answer.shifts[finite], LARGEST_SHIFT)
        shares = 1 - answer.levels[finite]
        last = shares[-1] if not finite.all() else 0.0
        axes.step(
            np.insert(shifts, 0, 0.0),
            np.concatenate([[1.0], shares, [last]]),
            where="post",
            color=MECHANISMS[name][1],
            linewidth=2.5,
            label=name,
            linestyle="-" if name != "RR" else (0, (4, 2)),
        )
    certain = float(np.mean(np.isinf(found["LLP"].shifts)))
    note = f"LLP: for {100 * certain:.0f}% the shift is infinite:\ntheir label is certain"
    axes.annotate(
        note,
        (LARGEST_SHIFT, certain),
        (LARGEST_SHIFT, certain + 0.06),
        ha="right",
        va="bottom",
        color=MECHANISMS["LLP"][1],
    )
    axes.set(
        xlim=(0, LARGEST_SHIFT),
        ylim=(0, 1.03),
        xlabel="shift t of the log-odds",
        ylabel="share moved by more than t",
    )
    axes.set_title(
        "Person by person: how far a belief moves", loc="left", fontsize=11, fontweight="bold"
    )
    axes.legend(frameon=False, loc="lower right")


if __name__ == "__main__":
    draw()
