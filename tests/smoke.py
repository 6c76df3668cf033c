"""A chapter at smoke scale, as its tests read it: its text, what it stored, its tables.

With the book's own parameters a chapter comes from the folder of executions that the site is built
from, so it runs once for the whole suite. With other parameters it runs in this process, which has
numba, pandas and torch loaded already, instead of in a kernel of its own.
"""

import ast
import contextlib
import io
import math
import os
import re
import tempfile
import warnings
from functools import cache
from pathlib import Path
from unittest import mock

import jupytext
import nbformat
import numpy as np
import pandas as pd
from commands import ROOT

from book.tools.chapters import load_chapters
from book.tools.checkout import Checkout
from book.tools.parameters import ContractError
from book.tools.runner import Execution, execute
from labelaudit.command_line import CommandError

CHECKOUT = Checkout(ROOT)
DECLARED = load_chapters(CHECKOUT.chapters_file)
# Chapters are numbered; the ledger, the errata and the page on data have no exercises.
CHAPTERS = sorted(name for name in DECLARED if name[:2].isdigit())
_folders = []


@cache
def executed(chapter, **overrides):
    """A chapter's run, with parameters of its smoke scale where none are passed."""
    declared = DECLARED[chapter]
    lists = {k: list(v) if isinstance(v, tuple) else v for k, v in overrides.items()}
    values = declared.resolve("smoke", lists)
    if values == declared.values("smoke"):
        return execute(CHECKOUT, declared, values, scale="smoke")
    return executed_in_process(chapter, values)


def rejected(chapter, **overrides):
    """Run only a chapter's imports and the cells that may reject its parameters."""

    def kept(cell):
        tags = cell.metadata.get("tags", [])
        return {"parameters", "refuses"} & set(tags) or cell.source.startswith("import ")

    return executed_in_process(chapter, DECLARED[chapter].resolve("smoke", overrides), kept)


def executed_in_process(chapter, values, kept=lambda cell: True, *, pictures=False):
    """Run a chapter's cells, those that are `kept`, with `values` in place of its parameters.

    They run in this process. The outputs are those the tests read: glued numbers, the text of a
    cell's last expression, and both streams. Figures are laid out and drawn, but become SVG only
    where `pictures` are asked for, which takes longer than all the rest of most chapters. As under
    the runner, an error in a cell tagged `refuses` is an error in the parameters.
    """
    notebook = jupytext.read(CHECKOUT.source(chapter))
    folder = tempfile.TemporaryDirectory(prefix=f"{chapter}-")
    _folders.append(folder)
    files = Path(folder.name, "files")
    files.mkdir()
    scope = {"__name__": "__main__"}
    with _isolated(files):
        for cell in notebook.cells:
            if cell.cell_type != "code" or not kept(cell):
                continue
            tags = cell.metadata.get("tags", [])
            cell.outputs = []
            try:
                _run(cell, scope, pictures)
            except (ValueError, TypeError, CommandError) as error:
                if "refuses" in tags:
                    raise ContractError(f"{chapter}: {error}") from error
                raise
            if "parameters" in tags:
                scope |= values
    stored = [
        output for _, output in _outputs(notebook) if "labelaudit" in output.get("metadata", {})
    ]
    headlines = [{"value": value} for output in stored for value in output["data"].values()]
    notebook.metadata["labelaudit"] = {"parameters": values, "headlines": headlines}
    return Execution(chapter=DECLARED[chapter], folder=Path(folder.name), notebook=notebook)


@contextlib.contextmanager
def _isolated(folder):
    """Work in `folder`, as in the book, and leave this process as it was."""
    import matplotlib
    import matplotlib.pyplot as plt

    before = Path.cwd()
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        stack.enter_context(np.errstate())
        stack.enter_context(matplotlib.rc_context({"backend": "agg"}))
        stack.enter_context(mock.patch.dict(os.environ, {"LABELAUDIT_BOOK": "1"}))
        # An earlier test may have left a figure open, which no cell of the chapter drew.
        plt.close("all")
        stack.callback(plt.close, "all")
        stack.callback(os.chdir, before)
        os.chdir(folder)
        yield


def _run(cell, scope, pictures):
    """Execute a cell and keep its outputs, in their order."""
    from IPython.core.formatters import DisplayFormatter

    def keep(data, metadata=None, kind="display_data"):
        cell.outputs.append(nbformat.v4.new_output(kind, data=data, metadata=metadata or {}))

    def display(value, raw=False, metadata=None):
        keep(value if raw else DisplayFormatter().format(value)[0], metadata)

    def show():
        import matplotlib.pyplot as plt

        for figure in map(plt.figure, plt.get_fignums()):
            if not pictures:
                figure.draw_without_rendering()
                continue
            picture = io.StringIO()
            figure.savefig(picture, format="svg", bbox_inches="tight")
            keep({"image/svg+xml": picture.getvalue()})
        plt.close("all")

    body = ast.parse(cell.source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    streams = {"stdout": io.StringIO(), "stderr": io.StringIO()}
    with (
        mock.patch("IPython.display.display", display),
        mock.patch("matplotlib.pyplot.show", show),
        contextlib.redirect_stdout(streams["stdout"]),
        contextlib.redirect_stderr(streams["stderr"]),
    ):
        exec(compile(ast.Module(body, []), "<cell>", "exec"), scope)
        if last:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), scope)
            if value is not None and not cell.source.rstrip().endswith(";"):
                keep(DisplayFormatter().format(value)[0], kind="execute_result")
        show()
    for name, stream in streams.items():
        if text := stream.getvalue():
            cell.outputs.append(nbformat.v4.new_output("stream", name=name, text=text))


def _outputs(notebook):
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            yield cell, output


def outputs(execution):
    """Every cell's outputs, each with its cell."""
    return _outputs(execution.notebook)


def glued(execution):
    """Every number and piece of text the chapter stored for its prose."""
    values = {}
    for _, output in outputs(execution):
        if name := output.get("metadata", {}).get("scrapbook", {}).get("name"):
            value = output["data"]["application/papermill.record/text/plain"]
            values[name] = math.inf if value == "inf" else ast.literal_eval(value)
    return values


def figures(execution):
    """The settings of each figure's cell, with the figure as SVG."""
    return [
        (cell.metadata["mystnb"], output["data"]["image/svg+xml"])
        for cell, output in outputs(execution)
        if "image/svg+xml" in output.get("data", {})
    ]


def prose(execution):
    """The chapter's text as a reader sees it, with the stored numbers where they are quoted."""
    numbers = glued(execution)
    cells = [cell.source for cell in execution.notebook.cells if cell.cell_type == "markdown"]
    quoted = re.compile(r"\{glue:text\}`([\w-]+):?([^`]*)`")
    text = quoted.sub(lambda match: format(numbers[match[1]], match[2]), "\n".join(cells))
    return " ".join(text.split())


def table(execution, name, **options):
    """A table that the chapter wrote."""
    return pd.read_csv(execution.folder / "files" / name, **options)


def glued_in(chapter, **overrides):
    """What a chapter stored for its prose at smoke scale."""
    return glued(executed(chapter, **overrides))


def table_of(chapter, name, **overrides):
    """A table of a chapter at smoke scale."""
    return table(executed(chapter, **overrides), name)


def text(chapter):
    """The chapter's source."""
    return CHECKOUT.source(chapter).read_text(encoding="utf-8")


def exercises(source):
    """The labels of a chapter's exercises."""
    return re.findall(r"\{exercise\} .*\n:label: (\S+)", source)
