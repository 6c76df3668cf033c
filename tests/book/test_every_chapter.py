"""The rules that every chapter keeps, read from its source and from its run at smoke scale."""

import math
import re

import jupytext
import numpy as np
import pytest
from smoke import CHAPTERS, CHECKOUT, executed, exercises, figures, glued, outputs, table, text

pytestmark = pytest.mark.parametrize("chapter", CHAPTERS)

HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
# Lines of the cells a reader sees: nine in ten have fewer than the first number, half of them at
# most the second.
CELL_LENGTHS = (14, 6)
LONGER_CELLS = {
    "05_multiplicative_advantage": (14, 7),
    "06_proof_workshop": (15, 7),
    "13_sharper_bounds": (14, 7),
    "14_audit": (15, 9),
}
# Chapters of theory ask to prove, then to compute, and at last to explain.
THREE_KINDS = ("03", "04", "05", "09", "11", "13", "17")
FALSIFIERS = {"03": 4, "04": 4, "05": 4, "09": 6, "13": 9, "17": 2}
FIGURES = {"03": 4, "04": 4, "05": 4, "06": 6, "09": 4, "10": 7, "11": 4, "12": 6, "13": 8, "14": 4}
# How a caption says where its numbers come from. Where this may be a data set or a reader's table,
# the run says which.
ORIGINS = ("simulated", "no simulation", "real rows", "real test rows", "real data")
MORE_ORIGINS = {
    "06": ("exact",),
    "07": ("-sources`", "scatter-first`"),
    "08": ("-sources`", "scatter-first`"),
    "10": ("other real rows",),
    "14": ("-origin`",),
    "17": ("-origin`",),
}
# Chapters that train say on the figure itself that its data is simulated; the real data sets are
# not, nor is a reader's table.
DRAWN = ("10", "11", "14", "17")
OFFERED = {"10": 7, "13": 10}
# What a chapter writes for its own use and does not offer.
NOT_OFFERED = {"14_audit": {"diabetes.parquet", "fuzzy.csv", "majority.py", "priors.parquet"}}


def number(chapter):
    return chapter[:2]


def test_the_frame_is_complete(chapter):
    source = text(chapter)
    for part in ("You will be able to", "**Necessary:**", "**Helpful:**", "**Time to read:**"):
        assert part in source, part
    parts = ["Write down a prediction", "## Back to your prediction", "## Exercises", "## Summary"]
    positions = [source.index(part) for part in [*parts, "**What next.**"]]
    assert positions == sorted(positions)
    falsifiers = re.findall(r"\*What\s+would\s+falsify\s+it:\*", source)
    assert len(falsifiers) >= FALSIFIERS.get(number(chapter), 0)


def test_exercises_have_folded_solutions(chapter):
    source = text(chapter)
    labels = exercises(source)
    folded = r"\{solution(?:-start)?\} (\S+)\n:label: \S+\n:class: dropdown"
    assert re.findall(folded, source) == labels
    assert len(labels) >= 3
    if number(chapter) in THREE_KINDS:
        first, second, *_, last = (label.rsplit("-", 1)[1] for label in labels)
        assert (first, second, last) == ("prove", "compute", "explain")


def test_cells_are_short(chapter):
    cells = jupytext.read(CHECKOUT.source(chapter)).cells
    lengths = [
        len(cell.source.splitlines())
        for cell in cells
        if cell.cell_type == "code" and not set(cell.metadata.get("tags", [])) & HIDDEN
    ]
    ninth, middle = LONGER_CELLS.get(chapter, CELL_LENGTHS)
    assert np.quantile(lengths, 0.9) < ninth
    assert np.median(lengths) <= middle


def test_every_figure_is_captioned_described_light_and_says_its_origin(chapter):
    drawn = figures(executed(chapter))
    declared = re.findall(r"^  figure:$", text(chapter), re.MULTILINE)
    assert len(drawn) == len(declared) >= FIGURES.get(number(chapter), 2)
    for settings, picture in drawn:
        name = settings["figure"]["name"]
        caption = " ".join(settings["figure"]["caption"].split())
        alternative = settings["image"]["alt"]
        assert name.startswith("fig-")
        assert len(caption) > 60 and len(alternative) > 60 and alternative.endswith("."), name
        assert len(picture) < 700_000, name
        stated = caption.lower() + (picture if number(chapter) in DRAWN else "")
        words = (*ORIGINS, *MORE_ORIGINS.get(number(chapter), ()))
        assert any(word in stated for word in words), name


def test_headline_numbers_are_finite(chapter):
    headlines = executed(chapter).facts["headlines"]
    assert len(headlines) >= 2
    assert all(math.isfinite(float(headline["value"])) for headline in headlines)


def test_every_quoted_number_is_computed(chapter):
    quoted = set(re.findall(r"\{glue:text\}`([\w-]+)", text(chapter)))
    assert quoted
    assert quoted <= set(glued(executed(chapter)))


def test_the_tables_offered_are_those_written(chapter):
    execution = executed(chapter)
    offered = set(re.findall(rf"<{chapter}/([\w.-]+)>`", text(chapter)))
    written = {path.name for path in (execution.folder / "files").iterdir()}
    assert offered == written - NOT_OFFERED.get(chapter, set())
    assert len(offered) >= OFFERED.get(number(chapter), 1)
    for name in offered:
        assert not name.endswith(".csv") or len(table(execution, name)), name


def test_nothing_is_written_to_the_error_stream(chapter):
    streams = [output for _, output in outputs(executed(chapter))]
    assert [stream["text"] for stream in streams if stream.get("name") == "stderr"] == []
