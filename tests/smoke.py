"""A chapter at smoke scale, as its tests read it: its text, what it stored, its tables."""

import ast
import math
import re
from functools import cache

import pandas as pd
from conftest import ROOT

from book.tools.chapters import load_chapters
from book.tools.checkout import Checkout
from book.tools.runner import execute

CHECKOUT = Checkout(ROOT)


@cache
def executed(chapter, **overrides):
    declared = load_chapters(CHECKOUT.chapters_file)[chapter]
    given = {k: list(v) if isinstance(v, tuple) else v for k, v in overrides.items()}
    return execute(CHECKOUT, declared, declared.resolve("smoke", given), scale="smoke")


def outputs(execution):
    for cell in execution.notebook.cells:
        for output in cell.get("outputs", []):
            yield cell, output


def glued(execution):
    """Every number and piece of text the chapter stored for its prose."""
    found = {}
    for _, output in outputs(execution):
        if name := output.get("metadata", {}).get("scrapbook", {}).get("name"):
            (value,) = output["data"].values()
            found[name] = math.inf if value == "inf" else ast.literal_eval(value)
    return found


def table(execution, name, **options):
    return pd.read_csv(execution.folder / "files" / name, **options)


def text(chapter):
    return CHECKOUT.source(chapter).read_text(encoding="utf-8")


def assert_framed(source):
    """The opening box, the prediction and its answer, exercises, summary, what comes next."""
    for part in ("You will be able to", "**Necessary:**", "**Helpful:**", "**Time to read:**"):
        assert part in source, part
    order = ["Write down a prediction", "## Back to your prediction", "## Exercises", "## Summary"]
    places = [source.index(part) for part in [*order, "**What next.**"]]
    assert places == sorted(places)


def folded_exercises(source):
    """The labels of the exercises, each of which must have its folded solution."""
    exercises = re.findall(r"\{exercise\} .*\n:label: (\S+)", source)
    folded = r"\{solution(?:-start)?\} (\S+)\n:label: \S+\n:class: dropdown"
    assert re.findall(folded, source) == exercises
    return exercises
