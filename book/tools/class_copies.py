"""A class's own copies of a chapter: for each student one without solutions, and one with.

Copies are made from the chapter's source. A solution stands between `{solution-start}` and
`{solution-end}`, or in a `{solution}` directive. The student's copy has neither; before each
`check` it gets a cell that binds the answer's name to three dots. Every copy has parameters of its
own.
"""

from __future__ import annotations

import ast
import copy
import csv
import hashlib
import io
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from book.tools.chapters import Chapter, read_source
from book.tools.checkout import Checkout
from book.tools.markdown import GATE, SOLUTION, for_jupyter
from book.tools.parameters import Parameter
from labelaudit.command_line import CommandError
from labelaudit.files import write_atomically

if TYPE_CHECKING:
    from nbformat import NotebookNode

# The values that a copy's own parameters are drawn from, within the range the chapter allows. With
# small bags and moderate noise a copy runs about as fast as the book and shows the same effects.
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
FOLDERS = ("students", "key")
MOST_SEATS = 1000
# In bytes: what file systems allow, without the suffix and the marks of a file being written.
LONGEST_NAME = 200
# A long list is an axis, which every copy shares; a short one is a choice of panels.
LONGEST_CHOICE = 4


def own_parameters(chapter: Chapter, scale: str, student: str, seed: int) -> dict[str, Any]:
    """The parameters of one student's copy: the same for the same student, chapter and seed.

    Priors, bag size and epsilon are drawn from small pools, the page's seed from all numbers. The
    other values are those of the scale.
    """
    text = json.dumps([seed, chapter.id, student])
    rng = np.random.default_rng(list(hashlib.sha256(text.encode()).digest()))
    values = {name: _own(chapter.parameters[name], scale, rng) for name in chapter.parameters}
    return chapter.resolve(scale, values)


def _own(parameter: Parameter, scale: str, rng: np.random.Generator) -> Any:
    default = parameter.values[scale]
    if parameter.name == "seed":
        return int(rng.integers(2**31))
    pool = parameter.choices if parameter.name == "priors" else POOLS.get(parameter.name, ())
    fitting = [value for value in pool if _allowed(parameter, value)]
    size = len(default) if isinstance(default, list) else 1
    if len(fitting) <= size or size > LONGEST_CHOICE:
        return default
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
    """A notebook of these cells with its parameters written in, cells named by their index."""
    import nbformat

    made = nbformat.v4.new_notebook(metadata={"title": title})
    head = nbformat.v4.new_markdown_cell(f"*{title}*\n\n{ABOUT}")
    made.cells = [head, *copy.deepcopy(list(cells))]
    for number, cell in enumerate(made.cells):
        cell.id = f"cell-{number}"
        if "parameters" in cell.metadata.get("tags", []):
            cell.source = "\n".join(f"{name} = {value!r}" for name, value in parameters.items())
    return made


def seats(number: int) -> list[str]:
    """Names for a number of seats: seat-01, seat-02, ..."""
    if not 1 <= number <= MOST_SEATS:
        raise CommandError(f"--seats: {number} is not a whole number from 1 to {MOST_SEATS}")
    width = max(2, len(str(number)))
    return [f"seat-{seat:0{width}d}" for seat in range(1, number + 1)]


def read_list(path: Path) -> list[str]:
    """The students of a class list, in its order: every line, or the first column of a table."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CommandError(f"--list: cannot read {path}: {error}") from None
    except UnicodeDecodeError:
        raise CommandError(f"--list: {path} is not UTF-8 text; save it again as UTF-8") from None
    # One name can be written in several ways, an accent apart or not; files would differ by it.
    names = _first_column(path, unicodedata.normalize("NFC", text))
    students = [" ".join(name.split()) for name in names if name.strip()]
    if not students:
        raise CommandError(f"--list: {path} names no student")
    files: dict[str, str] = {}
    for student in students:
        file = file_name(student).casefold()
        if len(file.encode()) > LONGEST_NAME:
            raise CommandError(f"--list: {student[:40]!r}... is too long for the name of a file")
        if file in files:
            other = files[file]
            both = "is there twice" if other == student else f"and {other!r} would share a file"
            raise CommandError(f"--list: {student!r} {both}; give each student a name of their own")
        files[file] = student
    return students


def _first_column(path: Path, text: str) -> list[str]:
    """The lines of a text; of a table their first entries, whatever separates the columns."""
    lines = text.splitlines()
    if path.suffix.lower() not in (".csv", ".tsv"):
        return lines
    # Where numbers have a comma, spreadsheets put semicolons between columns.
    filled = [line for line in lines if line.strip()]
    marks = (mark for mark in ";\t" if filled and all(mark in line for line in filled))
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=next(marks, ","), strict=True)
    try:
        return [row[0] for row in rows if row]
    except csv.Error as error:
        where = f"{path}, line {rows.line_num}"
        raise CommandError(f"--list: {where}: {error}; is a quotation mark unpaired?") from None


def file_name(student: str) -> str:
    """A student's name as the name of a file: letters, digits, dots and dashes are kept."""
    return re.sub(r"[^\w.-]+", "-", student).strip(".-") or "student"


def write_copies(
    checkout: Checkout, chapter: Chapter, students: list[str], out: Path, scale: str, seed: int
) -> int:
    """Write every copy that is not there yet and the table of parameters; give the number made."""
    import nbformat

    owned = {student: own_parameters(chapter, scale, student, seed) for student in students}
    table = key_table(out / "key.csv", chapter, owned)
    source = read_source(checkout.source(chapter.id))
    # Written first, so that after an interruption another seed cannot pass for the notebooks' own.
    write_atomically(out / "key.csv", table)
    written = 0
    for student, parameters in owned.items():
        makers = zip(FOLDERS, (student_copy, key_copy), ("", ", key"), strict=True)
        for folder, make, kind in makers:
            path = out / folder / f"{file_name(student)}.ipynb"
            if not path.exists():
                made = make(source, parameters, f"{chapter.title}: {student}{kind}")
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, nbformat.writes(for_jupyter(made, checkout)))
                written += 1
    return written


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
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows.values())
    return text.getvalue()


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
