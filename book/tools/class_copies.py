"""A class's own copies of a chapter: for each student one without solutions, and one with.

The chapter is run once with each student's own parameters. Both copies take the numbers in their
text from that run. A solution stands between `{solution-start}` and `{solution-end}`, or in a
`{solution}` directive. The student's copy has neither, and an empty answer for every exercise:
before each `check` a cell that binds the answer's name to three dots, otherwise a cell for text.
"""

from __future__ import annotations

import ast
import copy
import csv
import hashlib
import io
import itertools
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from book.chapters.exercises import RECORD
from book.tools.chapters import Chapter
from book.tools.checkout import Checkout
from book.tools.class_list import file_name
from book.tools.markdown import FENCE, GATE, LABEL, SOLUTION, for_jupyter, glued_values
from book.tools.parameters import Parameter
from labelaudit.command_line import CommandError
from labelaudit.files import write_atomically

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from book.tools.runner import Execution

# The values that a copy's own parameters are drawn from, within the range the chapter allows. With
# small bags and moderate noise a copy runs about as fast as the book and shows the same effects.
POOLS: dict[str, Sequence[Any]] = {
    "bag_size": (4, 5, 6, 7, 8, 9, 10, 12, 16),
    "bag_sizes": (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32),
    "epsilon": np.linspace(0.5, 2, 15_001).round(4).tolist(),
    "epsilons": np.linspace(0.25, 4, 376).round(2).tolist(),
    "level": np.linspace(0.9, 0.99, 91).round(3).tolist(),
}
ABOUT = """\
Run the cells in order. The numbers in the text belong to your parameters: other students have other
numbers. An exercise to compute ends in a self-check; round no answer to fewer than four digits. An
exercise to prove or to explain has a cell for your text. What the notebook writes goes to a folder
of its own."""
OWN_FOLDER = """\
# Files of this notebook go to a folder of its own.
import os
from pathlib import Path

if Path.cwd().name != {name!r}:
    Path({name!r}).mkdir(exist_ok=True)
    os.chdir({name!r})"""
# Numbers of the exercises, drawn from their whole range to six digits: in a class of thirty, the
# probability that two students have the same one is one or two thousandths.
OWN = "own_"
# The folded box that gives a chapter's answer before its question; a notebook cannot fold it.
HURRY = re.compile(
    r"^(`{3,})\{admonition\} The answer, if you are in a hurry *\n.*?^\1[ \t]*$\n?",
    re.MULTILINE | re.DOTALL,
)
# In the metadata of a cell: whether it is the book's, and which exercise it states or answers.
MARK = "labelaudit"
FOLDERS = ("students", "key")
# How often a copy is drawn whose run does not show what its chapter claims.
MAX_DRAWS = 20
# A long list is an axis, which every copy shares; a short one is a choice of panels.
MAX_CHOICE = 4


def own_parameters(
    chapter: Chapter, scale: str, student: str, seed: int, draw: int = 0
) -> dict[str, Any]:
    """The parameters of one student's copy: the same for the same student, chapter, seed and draw.

    The numbers of the exercises and the seed are drawn from all that are allowed; priors but the
    first, bag size and epsilon from pools. The other values are those of the scale.
    """
    text = json.dumps([seed, chapter.id, student, draw][: 4 if draw else 3])
    rng = np.random.default_rng(list(hashlib.sha256(text.encode()).digest()))
    values = {name: _own(chapter.parameters[name], scale, rng) for name in chapter.parameters}
    return chapter.resolve(scale, values)


def possible_parameters(
    chapter: Chapter, scale: str, students: Sequence[str], seed: int
) -> list[dict[str, Any]]:
    """The parameters of every draw that a copy of these students can have."""
    draws = range(MAX_DRAWS if chapter.claims else 1)
    return [
        own_parameters(chapter, scale, student, seed, draw)
        for student, draw in itertools.product(students, draws)
    ]


def draw_class(
    checkout: Checkout,
    chapter: Chapter,
    students: Sequence[str],
    scale: str,
    seed: int,
    report: Callable[[Execution, str], None],
) -> tuple[dict[str, dict[str, Any]], dict[str, NotebookNode]]:
    """Everybody's parameters and runs; a run that fails a claim of the chapter is drawn again."""
    owned: dict[str, dict[str, Any]] = {}
    runs: dict[str, NotebookNode] = {}
    to_run = list(students)
    for draw in range(MAX_DRAWS):
        drawn = {student: own_parameters(chapter, scale, student, seed, draw) for student in to_run}
        owned |= drawn
        runs |= run_class(checkout, chapter, drawn, scale, report)
        to_run = [name for name in to_run if chapter.fails(glued_values(runs[name]))]
        if not to_run:
            return {name: owned[name] for name in students}, runs
    failed = chapter.fails(glued_values(runs[to_run[0]]))
    raise CommandError(
        f"{chapter.id}: none of {MAX_DRAWS} draws for {to_run[0]!r} satisfies {failed[0]!r},"
        " which the chapter claims"
    )


def _own(parameter: Parameter, scale: str, rng: np.random.Generator) -> Any:
    default = parameter.values[scale]
    if parameter.name == "seed":
        return int(rng.integers(2**31))
    if parameter.name.startswith(OWN):
        return float(f"{rng.uniform(parameter.low, parameter.high):.6g}")
    pool = parameter.choices if parameter.name == "priors" else POOLS.get(parameter.name, ())
    fitting = [value for value in pool if _allowed(parameter, value)]
    if parameter.name == "priors" and isinstance(default, list):
        # The first distribution is the one that the text of a chapter is about.
        first, others = default[0], [value for value in fitting if value != default[0]]
        if not 1 < len(default) <= MAX_CHOICE or len(others) < len(default):
            return default
        picks = sorted(rng.choice(len(others), len(default) - 1, replace=False))
        return [first, *(others[index] for index in picks)]
    size = len(default) if isinstance(default, list) else 1
    if len(fitting) <= size or size > MAX_CHOICE:
        return default
    chosen = [fitting[index] for index in sorted(rng.choice(len(fitting), size, replace=False))]
    return chosen if parameter.is_list else chosen[0]


def _allowed(parameter: Parameter, value: Any) -> bool:
    return value in parameter.choices or (
        not parameter.choices and parameter.low <= value <= parameter.high
    )


def student_copy(
    notebook: NotebookNode, parameters: Mapping[str, Any], student: str, title: str
) -> NotebookNode:
    """The chapter without its solutions and outputs, with an empty answer to every exercise."""
    import nbformat

    cells = list[Any]()
    computed = {label for cell in notebook.cells for label, _ in checked(cell)}
    for cell, in_solution in _walk(notebook.cells):
        if in_solution:
            continue
        if cell.cell_type == "markdown":
            cells += _with_answers(HURRY.sub("", SOLUTION.sub("", cell.source)), computed)
            continue
        if blanks := [f"{name} = ...  # your answer" for _, name in checked(cell)]:
            cells.append(nbformat.v4.new_code_cell("\n".join(blanks)))
        cells.append(nbformat.v4.new_code_cell(cell.source, metadata=cell.metadata))
    for cell in cells:  # what has no mark when it comes back was written by the student
        cell.metadata.setdefault(MARK, {"book": True})
    return _finished(cells, parameters, student, title)


def key_copy(
    notebook: NotebookNode, parameters: Mapping[str, Any], student: str, title: str
) -> NotebookNode:
    """The chapter whole, with its outputs, for the same parameters as the student's copy."""
    return _finished(notebook.cells, parameters, student, title)


def _with_answers(text: str, computed: set[str]) -> Iterator[NotebookNode]:
    """A text as cells, with a cell for an answer below every exercise without a self-check."""
    import nbformat

    start = 0
    for match in FENCE.finditer(text):
        label = LABEL.search(match["options"])
        if match["kind"] != "exercise" or not label or label[1] in computed:
            continue
        statement, marks = text[start : match.end()].strip(), ("exercise", "answer")
        empty = f"*Your answer to {match['title'].strip()}:*"
        for source, mark in zip((statement, empty), marks, strict=True):
            metadata = {MARK: {mark: label[1]}}
            yield nbformat.v4.new_markdown_cell(source, metadata=metadata)
        start = match.end()
    if rest := text[start:].strip():
        yield nbformat.v4.new_markdown_cell(rest)


def _walk(cells: Sequence[NotebookNode]) -> Iterator[tuple[NotebookNode, bool]]:
    """Every cell, split at the gates of solutions, and whether it belongs to a solution."""
    import nbformat

    inside = False
    for cell in cells:
        if cell.cell_type != "markdown":
            yield cell, inside
            continue
        start = 0
        for gate in GATE.finditer(cell.source):
            yield nbformat.v4.new_markdown_cell(cell.source[start : gate.start()]), inside
            inside = gate["kind"] == "start"
            start = gate.end()
        yield nbformat.v4.new_markdown_cell(cell.source[start:]), inside
    if inside:
        raise CommandError("a solution is opened with solution-start and never ended")


def checked(cell: NotebookNode) -> list[tuple[str, str]]:
    """The self-checks of a cell, `check("ex-...", name)`: the label and the name it looks at."""
    if cell.cell_type != "code" or "check(" not in cell.source:
        return []
    checks = []
    for call in ast.walk(ast.parse(cell.source)):
        match call:
            case ast.Call(
                func=ast.Name(id="check"), args=[ast.Constant(value=str(label)), ast.Name(id=name)]
            ):
                checks.append((label, name))
            case ast.Call(func=ast.Name(id="check")):
                raise CommandError(
                    "a self-check looks at one name, which student copies leave empty, as in"
                    f' check("ex-...", answer); not: {ast.unparse(call)}'
                )
    return checks


def records(notebook: NotebookNode) -> dict[str, dict[str, Any]]:
    """The self-checks of a chapter that the book has run: right answer and parameters, by label."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    kept = [
        output["metadata"][RECORD] for output in outputs if RECORD in output.get("metadata", {})
    ]
    return {record["label"]: record for record in kept}


def _finished(
    cells: Sequence[NotebookNode], parameters: Mapping[str, Any], student: str, title: str
) -> NotebookNode:
    """A notebook of these cells with its parameters written in, cells named by their index."""
    import nbformat

    made = nbformat.v4.new_notebook(metadata={"title": title})
    head = nbformat.v4.new_markdown_cell(f"*{title}*\n\n{ABOUT}")
    folder = nbformat.v4.new_code_cell(OWN_FOLDER.format(name=f"{file_name(student)}-files"))
    own = [cell for cell in cells if "injected-parameters" not in cell.metadata.get("tags", [])]
    made.cells = [head, folder, *copy.deepcopy(own)]
    for number, cell in enumerate(made.cells):
        cell.id = f"cell-{number}"
        if "parameters" in cell.metadata.get("tags", []):
            cell.source = "\n".join(f"{name} = {value!r}" for name, value in parameters.items())
    return made


def run_class(
    checkout: Checkout,
    chapter: Chapter,
    owned: Mapping[str, Mapping[str, Any]],
    scale: str,
    report: Callable[[Execution, str], None],
) -> dict[str, NotebookNode]:
    """The chapter, run with each student's parameters where it has not been, by student."""
    from book.tools.runner import execute_all

    workers, done = min(os.cpu_count() or 1, max(1, len(owned))), 0

    def count(execution: Execution) -> None:
        nonlocal done
        done += 1
        report(execution, f" [{done} of {len(owned)}]")

    work = [(chapter, parameters) for parameters in owned.values()]
    executions = execute_all(checkout, work, count, workers=workers, scale=scale)
    return {
        student: execution.notebook for student, execution in zip(owned, executions, strict=True)
    }


def write_copies(
    checkout: Checkout,
    chapter: Chapter,
    students: list[str],
    out: Path,
    scale: str,
    seed: int,
    report: Callable[[Execution, str], None],
) -> int:
    """Write every copy that is not there yet, parameters and answers; give the number made."""
    import nbformat

    owned, runs = draw_class(checkout, chapter, students, scale, seed, report)
    table = key_table(out / "key.csv", chapter, owned)
    # Written first, so that after an interruption another seed cannot pass for the notebooks' own.
    write_atomically(out / "key.csv", table)
    missing = {
        student: [folder for folder in FOLDERS if not _copy(out, folder, student).exists()]
        for student in students
    }
    written = 0
    for student, notebook in runs.items():
        values = glued_values(notebook)
        for folder in missing[student]:
            make, kind = (student_copy, "") if folder == "students" else (key_copy, ", key")
            made = make(notebook, owned[student], student, f"{chapter.title}: {student}{kind}")
            path = _copy(out, folder, student)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, nbformat.writes(for_jupyter(made, checkout, values)))
            written += 1
    write_atomically(out / "answers.csv", answer_table(out, chapter, list(owned)))
    return written


def _copy(out: Path, folder: str, student: str) -> Path:
    return out / folder / f"{file_name(student)}.ipynb"


def answer_table(out: Path, chapter: Chapter, students: Sequence[str]) -> str:
    """The right answers of every student, from their keys: a column for each checked exercise."""
    import nbformat

    answers = {
        student: {
            label: json.dumps(record["answer"])
            for label, record in records(
                nbformat.read(_copy(out, "key", student), as_version=4)
            ).items()
        }
        for student in students
    }
    labels = list(dict.fromkeys(label for own in answers.values() for label in own))
    rows = [{"student": student, **own} for student, own in answers.items()]
    return csv_text(["student", *labels], rows)


def csv_text(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """A table as the text of a .csv file."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def key_table(path: Path, chapter: Chapter, owned: dict[str, dict[str, Any]]) -> str:
    """The table of everybody's parameters, with the rows of students made earlier.

    A folder is for one chapter. Notebooks that are there are kept, so it is an error if a row of
    the table contradicts one of them, or if no row of an earlier table belongs to it.
    """
    columns = ["student", "chapter", *chapter.parameters]
    rows = _read_key(path, chapter, columns)
    for student, parameters in owned.items():
        row = {"student": student, "chapter": chapter.id}
        row |= {name: str(value) for name, value in parameters.items()}
        file = f"{file_name(student)}.ipynb"
        if student not in rows and any((path.parent / part / file).exists() for part in FOLDERS):
            raise CommandError(
                f"--out: {path.parent} already holds {file}, which its key.csv does not list for"
                f" {student!r}; choose another folder"
            )
        if rows.setdefault(student, row) != row:
            raise CommandError(
                f"--out: {path.parent} already holds notebooks of {student!r} for another seed or"
                " scale; choose another folder"
            )
    return csv_text(columns, list(rows.values()))


def _read_key(path: Path, chapter: Chapter, columns: list[str]) -> dict[str, dict[str, str]]:
    """The rows of an earlier call, by student; an error if they are not of this chapter."""
    if not path.is_file():
        return {}
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    for other in {row.get("chapter") for row in rows} - {chapter.id}:
        raise CommandError(
            f"--out: {path.parent} already holds notebooks of {other or 'something else'};"
            f" choose another folder for {chapter.id}"
        )
    if reader.fieldnames != columns:
        raise CommandError(
            f"--out: {path} was made when {chapter.id} had other parameters; choose another folder"
        )
    return {row["student"]: row for row in rows}
