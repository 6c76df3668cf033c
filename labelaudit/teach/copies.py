"""A class's own copies of a chapter, made from its source: one without solutions, one with.

The chapter is the only source. A solution stands between `{solution-start}` and `{solution-end}`,
or in a `{solution}` directive; the student copy loses both and gets, before each `check`, a cell
in which the answer's name is bound to three dots. Every copy has parameters of its own.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from labelaudit.book.contract import Chapter, Parameter
from labelaudit.book.reading import SOLUTION
from labelaudit.command_line import CommandError

if TYPE_CHECKING:
    from nbformat import NotebookNode

# What a copy's own value is drawn from, within the range the chapter allows. Small bags and
# moderate noise: every choice runs about as fast as the book's, and shows the same effects.
POOLS: dict[str, Sequence[Any]] = {
    "bag_size": (4, 5, 6, 7, 8, 9, 10, 12, 16),
    "bag_sizes": (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32),
    "epsilon": (0.5, 0.75, 1.0, 1.25, 1.5, 2.0),
    "epsilons": (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0),
    "level": (0.9, 0.95, 0.98, 0.99),
}
# Jupyter quotes no number in a sentence, and a self-check cannot know that 0.19 was meant for 3/16.
ABOUT = """\
Run the cells in order. A name in the text such as `scatter-runs` stands for a number of your run;
a cell near it prints the number. Exercises to compute end in a self-check. Round no answer to fewer
than three decimals."""
# A long list is an axis, which every copy shares; a short one is a choice of panels.
LONGEST_CHOICE = 4


def own_parameters(chapter: Chapter, scale: str, student: str, seed: int) -> dict[str, Any]:
    """The parameters of one student's copy: the same for the same student, chapter and seed.

    Law, bag size and epsilon are drawn from small pools, the page's seed from everything; what is
    left is as at the scale.
    """
    text = json.dumps([seed, chapter.id, student])
    rng = np.random.default_rng(list(hashlib.sha256(text.encode()).digest()))
    values = {name: _own(chapter.parameters[name], scale, rng) for name in chapter.parameters}
    return chapter.resolve(scale, values)


def _own(parameter: Parameter, scale: str, rng: np.random.Generator) -> Any:
    given = parameter.values[scale]
    if parameter.name == "seed":
        return int(rng.integers(2**31))
    pool = parameter.choices if parameter.name == "priors" else POOLS.get(parameter.name, ())
    fitting = [value for value in pool if _allowed(parameter, value)]
    size = len(given) if isinstance(given, list) else 1
    if len(fitting) <= size or size > LONGEST_CHOICE:
        return given
    chosen = [fitting[index] for index in sorted(rng.choice(len(fitting), size, replace=False))]
    return chosen if parameter.is_list else chosen[0]


def _allowed(parameter: Parameter, value: Any) -> bool:
    return value in parameter.choices or (
        not parameter.choices and parameter.low <= value <= parameter.high
    )


def student_copy(notebook: NotebookNode, parameters: Mapping[str, Any], title: str) -> NotebookNode:
    """The chapter without its solutions, with an empty answer before every self-check."""
    import nbformat

    cells = []
    for cell, in_solution in _walk(notebook.cells):
        if in_solution:
            continue
        if cell.cell_type == "markdown":
            cell = nbformat.v4.new_markdown_cell(SOLUTION.sub("", cell.source).strip())
            if not cell.source:
                continue
        names = _answers(cell)
        if names:
            blanks = "\n".join(f"{name} = ...  # your answer" for name in names)
            cells.append(nbformat.v4.new_code_cell(blanks))
        cells.append(cell)
    return _finished(cells, parameters, title)


def key_copy(notebook: NotebookNode, parameters: Mapping[str, Any], title: str) -> NotebookNode:
    """The chapter whole, with the same parameters as the student's copy."""
    return _finished(notebook.cells, parameters, title)


def _walk(cells: Sequence[NotebookNode]) -> Iterator[tuple[NotebookNode, bool]]:
    """Every cell, split at the gates of solutions, and whether it belongs to a solution."""
    import nbformat

    gate = re.compile(r"^(`{3,})\{solution-(start|end)\}.*?^\1\s*$\n?", re.MULTILINE | re.DOTALL)
    inside = False
    for cell in cells:
        if cell.cell_type != "markdown":
            yield cell, inside
            continue
        start = 0
        for found in gate.finditer(cell.source):
            yield nbformat.v4.new_markdown_cell(cell.source[start : found.start()]), inside
            inside = found[2] == "start"
            start = found.end()
        yield nbformat.v4.new_markdown_cell(cell.source[start:]), inside
    if inside:
        raise CommandError("a solution is opened with solution-start and never ended")


def _answers(cell: NotebookNode) -> list[str]:
    """The names that the self-checks of a cell look at: `check("ex-...", name)`."""
    if cell.cell_type != "code" or "check(" not in cell.source:
        return []
    names = []
    for call in ast.walk(ast.parse(cell.source)):
        match call:
            case ast.Call(func=ast.Name(id="check"), args=[_, ast.Name(id=name)]):
                names.append(name)
            case ast.Call(func=ast.Name(id="check")):
                raise CommandError(
                    "a self-check looks at one name, which student copies leave empty, as in"
                    f' check("ex-...", answer); not: {ast.unparse(call)}'
                )
    return names


def _finished(
    cells: Sequence[NotebookNode], parameters: Mapping[str, Any], title: str
) -> NotebookNode:
    """A notebook of these cells with its parameters written in, cells named by their place."""
    import nbformat

    made = nbformat.v4.new_notebook(metadata={"title": title})
    head = nbformat.v4.new_markdown_cell(f"*{title}*\n\n{ABOUT}")
    made.cells = [head, *copy.deepcopy(list(cells))]
    for number, cell in enumerate(made.cells):
        cell.id = f"cell-{number}"
        if "parameters" in cell.metadata.get("tags", []):
            cell.source = "\n".join(f"{name} = {value!r}" for name, value in parameters.items())
    return made
