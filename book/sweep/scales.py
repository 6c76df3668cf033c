"""The grid that the chapter on privacy and utility runs at each scale of the book."""

from book.sweep.grid import CLEAN, Grid
from book.tools.chapters import load_chapters
from book.tools.checkout import find_checkout


def scale_grid(scale: str) -> Grid:
    """The grid that chapter 12 runs at a scale; at `paper` with all rows there are.

    The paper's grid (appendix C) is as printed: its list of learning rates seems to have lost 5e-5.
    The paper gives no batch size, number of epochs or stopping rule; the chapter's are our own.
    """
    values = load_chapters(find_checkout().chapters_file)["12_privacy_utility"].values(scale)
    pairs = {"bag_size": values["pair_bag_sizes"], "epsilon": values["pair_epsilons"]}
    alone = {"RR": {"epsilon": values["epsilons"]}, "LLP": {"bag_size": values["bag_sizes"]}}
    return Grid(
        mechanisms={CLEAN: {}, **alone, "LLP+Lap": pairs, "LLP+Geom": pairs},
        losses=tuple(values["losses"]),
        learning_rates=tuple(values["learning_rates"]),
        trials=values["trials"],
        seed=values["seed"],
        train_rows=None if scale == "paper" else values["train_rows"],
        training={name: values[name] for name in ("epochs", "batch_size")},
    )
