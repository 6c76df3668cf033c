"""The command `teach`: a chapter for every seat of a class, and the key."""

from __future__ import annotations

import argparse
import csv
import io
import re
import unicodedata
from pathlib import Path
from typing import Any

from labelaudit.book.checkout import Checkout, find_checkout, write_atomically
from labelaudit.book.contract import SCALES, Chapter, check_source, find_chapter, load_chapters
from labelaudit.command_line import CommandError

EXAMPLES = """\
examples:
  labelaudit teach 02_additive_advantage --seats 20 --out ../class
  labelaudit teach 02_additive_advantage --list students.txt --seed 7 --out ../class

The list is UTF-8 text with one student a line and no heading; of a .csv or .tsv file the first
column counts. The folder gets
students/<name>.ipynb, without solutions and with an empty answer before each self-check,
key/<name>.ipynb, the same pages with solutions, and key.csv, the parameters of each. Law, bag size,
epsilon and seed are drawn from the student's name: the same name and seed give the same page. A
folder is for one chapter.
Notebooks that are there already are left alone, so that nobody's work is overwritten.

exit status: 0 done, 1 a page could not be written, 2 refused before anything was written
"""
FOLDERS = ("students", "key")
MOST_SEATS = 1000
# In bytes: what file systems allow, less the suffix and the marks of a file being written.
LONGEST_NAME = 200


def add_parser(subparsers: Any) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "teach",
        help="make a class's own copies of a chapter, and the key",
        description="Make a copy of a chapter for each student, with parameters of their own.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("chapter", help="a chapter's id, as `labelaudit chapters` lists it")
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--seats", type=int, metavar="N", help="the number of seats: seat-01 ...")
    group.add_argument("--list", type=Path, metavar="FILE", help="a file with a student a line")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other parameters")
    parser.add_argument("--scale", choices=SCALES, default="laptop", help="size of the pages' runs")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where to write")
    parser.set_defaults(run=make_copies)


def make_copies(arguments: argparse.Namespace) -> int:
    """Write a notebook and a key for every student, and say where they are."""
    checkout = find_checkout()
    chapter = find_chapter(load_chapters(checkout.chapters_file), arguments.chapter)
    check_source(chapter, checkout.source(chapter.id))
    students = read_list(arguments.list) if arguments.list else seats(arguments.seats)
    written = write_copies(
        checkout, chapter, students, arguments.out, arguments.scale, arguments.seed
    )
    kept = 2 * len(students) - written
    print(f"{written} notebooks written to {arguments.out}" + (f", {kept} kept" if kept else ""))
    return 0


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
    found = (mark for mark in ";\t" if filled and all(mark in line for line in filled))
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=next(found, ","), strict=True)
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
    import jupytext
    import nbformat

    from labelaudit.book.plain import for_jupyter
    from labelaudit.teach.copies import key_copy, own_parameters, student_copy

    owned = {student: own_parameters(chapter, scale, student, seed) for student in students}
    table = key_table(out / "key.csv", chapter, owned)
    source = jupytext.read(checkout.source(chapter.id))
    # First of all: without it, after an interruption, another seed would pass for the notebooks'.
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

    A folder is for one chapter. A row that says otherwise than the notebook to be kept would be a
    wrong key: it is refused, and so is a notebook to be kept that no row told of.
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
    """The rows of an earlier call, by student; refused where they are not of this chapter."""
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
