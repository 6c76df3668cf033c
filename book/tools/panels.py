"""What the runner adds to an executed chapter: how it was made, how to run it, how it compares.

Chapter sources stay clean; these boxes are added to the executed notebook before Sphinx reads it.
"""

from __future__ import annotations

import ast
import copy
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import nbformat

from book.tools.chapters import Chapter
from book.tools.parameters import Parameter

DEFAULT_SCALE = "laptop"
# Digits of an exponent.
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def with_panels(
    chapter: Chapter, notebook: nbformat.NotebookNode, book: Mapping[str, Any] | None = None
) -> nbformat.NotebookNode:
    """A copy of an executed notebook with its panels; `book` is what made the book's own page."""
    notebook = copy.deepcopy(notebook)
    made = notebook.metadata["labelaudit"]
    for name, text in [
        ("run-this-chapter", run_box(chapter, made)),
        ("how-this-page-was-made", made_panel(chapter, made)),
    ]:
        notebook.cells.append(nbformat.v4.new_markdown_cell(text, id=name))
    if book is not None and _changed(made, book):
        _insert_below_title(notebook, comparison(made, book))
    return notebook


def run_box(chapter: Chapter, made: Mapping[str, Any]) -> str:
    """The exact command that made the page, with every value, for the reader to edit."""
    values = {name: typed(made["parameters"][name]) for name in chapter.parameters}
    pairs = "\n  ".join(f"{name}={value.replace(', ', ',')}" for name, value in values.items())
    options = [f"-p {name} {shlex.quote(value)}" for name, value in values.items()]
    other_scale = made["scale"] != DEFAULT_SCALE
    by_make, by_command = ["make chapter", f"C={chapter.id}"], ["labelbook run", chapter.id]
    if other_scale:
        by_make.append(f"SCALE={made['scale']}")
        by_command.append(f"--scale {made['scale']}")
    if values:
        by_make.append(f"P={shlex.quote(pairs)}")
    cost = duration(chapter.seconds[made["scale"]])
    yours = "Change any value and you get" if values else "You get"
    return _box(
        "Run this chapter",
        "tip run-this-chapter",
        f"This command makes the page again, from a clone of the book. {yours} a page of your"
        f" own; the book's stays as it is. Expect about {cost}.",
        _code(" ".join(by_make)),
        "The same without `make`, in an environment where the package is installed:",
        _code(" \\\n  ".join([" ".join(by_command), *options])),
    )


def made_panel(chapter: Chapter, made: Mapping[str, Any]) -> str:
    """Everything that made the page, folded at its end."""
    parameters = [
        [
            f"`{name}`",
            _code_span(made["parameters"][name]),
            _code_span(parameter.values["paper"]),
            _allowed(parameter),
            parameter.meaning,
        ]
        for name, parameter in chapter.parameters.items()
    ]
    facts = {
        "scale": made["scale"],
        "data": "; ".join(map(_data, made["data"]))
        or "no data set: all of it is simulated from the parameters above, or computed exactly",
        "seed": f"`{made['parameters']['seed']}`" if "seed" in made["parameters"] else "none",
        "versions": ", ".join(made["versions"]),
        "device": made["device"],
        "time": f"{made['seconds']:g} s, started {made['started']}",
    }
    header = ["parameter", "this page", "paper scale", "allowed", "meaning"]
    return _box(
        "How this page was made",
        "dropdown note how-this-page-was-made",
        *([_table(header, parameters)] if parameters else ["The chapter has no parameters."]),
        "Made with:",
        "\n".join(f"- {name}: {fact}" for name, fact in facts.items()),
    )


def comparison(made: Mapping[str, Any], book: Mapping[str, Any]) -> str:
    """The headline numbers of a reader's run beside those of the book's page."""
    changed = [
        [f"`{name}`", _code_span(value), _code_span(book["parameters"][name])]
        for name, value in _changed(made, book).items()
    ]
    rows = [list(row.values()) for row in beside(made, book)]
    where = "the book's" if "versions" in book else "the published book's"
    parts = ["You changed:", _table(["parameter", "yours", where], changed)]
    if rows:
        parts += ["The headline numbers:", _table(["number", "yours", where], rows)]
    return _box("Your run against the book's", "important your-run", *parts)


def _changed(made: Mapping[str, Any], book: Mapping[str, Any]) -> dict[str, Any]:
    """The values that differ from the book's; published numbers may be older than a parameter."""
    theirs = book["parameters"]
    return {
        name: value
        for name, value in made["parameters"].items()
        if value != theirs.get(name, value)
    }


def beside(made: Mapping[str, Any], book: Mapping[str, Any]) -> list[dict[str, str]]:
    """The headline numbers of a run, each beside the book's."""
    theirs = {number["name"]: number for number in book["headlines"]}
    rows = []
    for number in made["headlines"]:
        other = theirs.get(number["name"])
        differ = other is not None and number.get("setting") != other.get("setting")
        rows.append(
            {
                "meaning": number["meaning"],
                "yours": _number(number, named=differ),
                "book": _number(other, named=differ) if other else "not computed",
            }
        )
    return rows


def _insert_below_title(notebook: nbformat.NotebookNode, text: str) -> None:
    for cell in notebook.cells:
        title = re.search(r"^# .*$", cell.source, flags=re.MULTILINE)
        if cell.cell_type == "markdown" and title:
            end = title.end()
            cell.source = f"{cell.source[:end]}\n\n{text}\n{cell.source[end:]}"
            return


def _box(title: str, classes: str, *parts: str) -> str:
    return "\n".join(
        [f"````{{admonition}} {title}", f":class: {classes}", "", "\n\n".join(parts), "````"]
    )


def _code(command: str) -> str:
    return f"```sh\n{command}\n```"


def _table(header: list[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in lines
    )


def typed(value: Any) -> str:
    """A value as a reader would type it: YAML on one line.

    >>> typed([1.0, float("inf"), "beta-2-30", "two words"])
    '[1.0, .inf, beta-2-30, "two words"]'
    """
    if isinstance(value, list):
        return f"[{', '.join(map(typed, value))}]"
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return ".inf" if value > 0 else "-.inf"
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w./-]*", value):
        return value
    return json.dumps(value)


def _code_span(value: Any) -> str:
    return f"`{typed(value)}`"


def _allowed(parameter: Parameter) -> str:
    return f"list: {parameter.allowed}" if parameter.is_list else parameter.allowed


def _number(headline: Mapping[str, str], *, named: bool) -> str:
    """A stored value for reading: four significant digits, infinity by its name.

    Where the two sides are about different things, each is named: `0.69 (KDD12)`.
    """
    literal = headline["value"]
    try:
        value = ast.literal_eval(literal)
    except ValueError:
        value = "infinite" if literal == "inf" else literal
    text = _readable(value) if isinstance(value, (int, float)) else str(value)
    return f"{text} ({headline['setting']})" if named and headline.get("setting") else text


def _readable(value: float) -> str:
    """Four significant digits, whole thousands, and powers of ten as people write them.

    >>> _readable(0.88281), _readable(17278), _readable(2.1e8)
    ('0.8828', '17,278', '210,000,000')
    >>> _readable(4.657e-10) == "4.657 \\u00d7 10⁻¹⁰"
    True
    """
    if isinstance(value, int) or 1e4 <= abs(value) < 1e9:
        return f"{value:,.0f}"
    digits, _, exponent = f"{value:.4g}".partition("e")
    return f"{digits} \u00d7 10{str(int(exponent)).translate(RAISED)}" if exponent else digits


def _data(entry: Mapping[str, Any]) -> str:
    is_file = bool(Path(entry["name"]).suffix)
    kind = "simulated stand-in" if entry["simulated"] else "file" if is_file else "real data"
    return f"{entry['name']} ({kind}, fingerprint `{entry['fingerprint'][:12]}`)"


def duration(seconds: float) -> str:
    """An expected time in words.

    >>> duration(5), duration(600), duration(3.6e6)
    ('5 seconds', '10 minutes', '1,000 hours')
    """
    if seconds < 90:
        return f"{seconds:g} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:,.0f} hours"
