"""Grade a class: run what students handed in, judge the answers here, and write the results.

A student's parameters come from the name and the seed, as when the copies were made. The right
answers come from the book's own run of the chapter with these parameters. The checks run in this
process, on plain numbers.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from book.chapters.exercises import check
from book.tools.answers import Submission, collect, read_notebook, written_parameters
from book.tools.class_copies import checked, csv_text, records
from book.tools.class_list import Sheet, file_name, read_sheet
from book.tools.markdown import FENCE, LABEL
from labelaudit.command_line import CommandError
from labelaudit.files import write_atomically

if TYPE_CHECKING:
    from nbformat import NotebookNode

MANUAL = "manual.csv"
MANUAL_COLUMNS = ["student", "exercise", "points"]


@dataclass(frozen=True)
class Exercise:
    """An exercise of a chapter; `name` is what its answer is called, or "" where it is a text."""

    label: str
    title: str
    name: str = ""


@dataclass
class Grade:
    """One student's results: for each exercise its answer, points and the reason for them."""

    student: str
    file: str = ""
    remarks: list[str] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    points: dict[str, float | None] = field(default_factory=dict)
    """None where a teacher has to give them."""
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """The points given so far."""
        return sum(points for points in self.points.values() if points is not None)


def exercises(notebook: NotebookNode) -> list[Exercise]:
    """The exercises of a chapter, in its order."""
    names = {label: name for cell in notebook.cells for label, name in checked(cell)}
    listed = []
    for cell in notebook.cells:
        for match in FENCE.finditer(cell.source if cell.cell_type == "markdown" else ""):
            label = LABEL.search(match["options"])
            if match["kind"] == "exercise" and label:
                listed.append(Exercise(label[1], match["title"].strip(), names.get(label[1], "")))
    return listed


def find_files(folder: Path, students: Sequence[str]) -> tuple[dict[str, Path], list[str]]:
    """The notebook of each student, and remarks on files that belong to nobody or are double.

    A learning platform may put words before and after the name of a file, or a folder around it.
    """
    if not folder.is_dir():
        raise CommandError(f"there is no folder {folder} of notebooks")
    files = sorted(
        path for path in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in str(path)
    )
    if not files:
        raise CommandError(f"{folder} holds no notebook (*.ipynb)")
    remarks, owners = [], dict[str, Path]()
    # The longest name first: "Ann-Lee-Smith.ipynb" is not Ann Lee's.
    by_length = sorted(students, key=lambda student: -len(file_name(student)))
    for path in files:
        text = path.relative_to(folder).as_posix().casefold()
        owner = next((name for name in by_length if _names(text, file_name(name))), None)
        if owner is None:
            remarks.append(f"{path.name} belongs to no student of the list")
        elif owner in owners:
            newer = max(owners[owner], path, key=lambda file: file.stat().st_mtime)
            remarks.append(
                f"{owner}: two notebooks, {owners[owner].name} and {path.name};"
                f" {newer.name} is graded, the newer one"
            )
            owners[owner] = newer
        else:
            owners[owner] = path
    return owners, remarks


def _names(text: str, name: str) -> bool:
    """Whether a path holds a name as a word of its own."""
    start = text.find(name.casefold())
    if start < 0:
        return False
    before, after = text[:start][-1:], text[start + len(name) :][:1]
    return not before.isalnum() and not after.isalnum()


def check_copies(owners: Mapping[str, Path], owned: Mapping[str, Mapping[str, Any]]) -> None:
    """Reject options that are not those of the copies, before a class's running time is spent."""
    written = []
    for path in owners.values():
        with contextlib.suppress(ValueError):  # said when this student is graded
            written.append(written_parameters(read_notebook(path)))
    if len(written) > 1 and not any(parameters in owned.values() for parameters in written):
        raise CommandError(
            f"none of the {len(written)} notebooks has the parameters of a student of the list:"
            " --chapter, --column, --seed and --scale must be those of `labelaudit teach`"
        )


def grade_class(
    owners: Mapping[str, Path],
    owned: Mapping[str, Mapping[str, Any]],
    runs: Mapping[str, NotebookNode],
    seconds: float,
    progress: Callable[[Grade], None],
) -> list[Grade]:
    """Grade every student of `owned`: `runs` are the book's own runs with their parameters."""
    grades = []
    for student, parameters in owned.items():
        listed = exercises(runs[student])
        grade = Grade(student)
        submission = Submission()
        if student not in owners:
            grade.remarks.append("nothing was handed in")
        else:
            grade.file = owners[student].name
            try:
                notebook = read_notebook(owners[student])
                names = [exercise.name for exercise in listed if exercise.name]
                submission = collect(notebook, parameters, names, seconds)
            except ValueError as error:
                grade.remarks.append(str(error))
        grade.remarks += submission.remarks + _parameters(student, submission.written, owned)
        judge(grade, submission, listed, records(runs[student]))
        grades.append(grade)
        progress(grade)
    return grades


def _parameters(
    student: str, written: Mapping[str, Any], owned: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """What the parameters in a notebook say about where it comes from."""
    if not written or written == owned[student]:
        return []
    others = [name for name, parameters in owned.items() if parameters == written]
    if others:
        return [f"this is the copy of {others[0]}"]
    return ["the parameters in the notebook were changed; the right ones were used"]


def judge(
    grade: Grade,
    submission: Submission,
    listed: Sequence[Exercise],
    key: Mapping[str, Mapping[str, Any]],
) -> None:
    """Give points for what can be computed, and leave the rest to the teacher."""
    for exercise in listed:
        label = exercise.label
        if not exercise.name:
            text = submission.texts.get(label)
            grade.answers[label] = text or ""
            grade.points[label] = None if text else 0
            grade.reasons[label] = "for the teacher to read" if text else "no answer"
            continue
        if exercise.name not in submission.values:
            grade.points[label], grade.reasons[label] = 0, "no answer"
            continue
        answer = submission.values[exercise.name]
        grade.answers[label] = str(answer)
        feedback = check(label, answer, **key[label]["parameters"])
        grade.points[label] = int(feedback.right)
        grade.reasons[label] = "right" if feedback.right else feedback.hint


def apply_manual(path: Path, grades: Sequence[Grade]) -> None:
    """Take the teacher's points from an earlier table, and write the table anew with all rows."""
    manual: dict[tuple[str, str], str] = {}
    if path.is_file():
        reader = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline=""))
        if reader.fieldnames != MANUAL_COLUMNS:
            raise CommandError(f"{path} must have the columns {', '.join(MANUAL_COLUMNS)}")
        for row in reader:
            manual[row["student"], row["exercise"]] = (row["points"] or "").strip()
    for grade in grades:
        for label in [label for label, points in grade.points.items() if points is None]:
            text = manual.setdefault((grade.student, label), "")
            if text:
                grade.points[label] = _points(text, f"{path}: {grade.student}, {label}")
    rows = [
        dict(zip(MANUAL_COLUMNS, (*names, points), strict=True)) for names, points in manual.items()
    ]
    write_atomically(path, csv_text(MANUAL_COLUMNS, rows))


def _points(text: str, where: str) -> float:
    try:
        points = float(text.replace(",", "."))
    except ValueError:
        points = math.nan
    if not 0 <= points < math.inf:
        raise CommandError(f"{where}: points must be a number of at least 0, not {text!r}")
    return points


def grade_table(grades: Sequence[Grade]) -> str:
    """A row for each student: points by exercise, the total, what is still to read, remarks."""
    labels = list(grades[0].points)
    columns = ["student", *labels, "total", "to read", "remarks"]
    rows = [
        {
            "student": grade.student,
            **{label: _short(grade.points[label]) for label in labels},
            "total": _short(grade.total),
            "to read": sum(points is None for points in grade.points.values()),
            "remarks": "; ".join(grade.remarks),
        }
        for grade in grades
    ]
    return csv_text(columns, rows)


def _short(points: float | None) -> str:
    return "" if points is None else f"{points:g}"


def write_pages(out: Path, title: str, listed: Sequence[Exercise], grades: Sequence[Grade]) -> None:
    """Feedback for each student, and for each exercise everybody's answer side by side."""
    from jinja2 import Environment, FileSystemLoader

    templates = FileSystemLoader(Path(__file__).parent / "templates")
    environment = Environment(loader=templates, autoescape=True, trim_blocks=True)
    feedback, side_by_side = (
        environment.get_template(name) for name in ("feedback.html", "exercise.html")
    )
    for grade in grades:
        page = feedback.render(title=title, exercises=listed, grade=grade)
        write_atomically(out / "feedback" / f"{file_name(grade.student)}.html", page)
    for exercise in listed:
        page = side_by_side.render(title=title, exercise=exercise, grades=grades)
        write_atomically(out / "by-exercise" / f"{exercise.label}.html", page)


def fill_sheet(
    path: Path,
    column: str,
    match: str,
    rows: Mapping[str, Mapping[str, str]],
    totals: Mapping[str, float],
) -> tuple[str, list[str]]:
    """An exported sheet with the totals in `column`, and the students that it does not list.

    A row belongs to the student whose name, or whose entry in the column `match` of the class
    list, equals the row's entry in that column. All other cells stay as they are.
    """
    sheet = read_sheet(path, "--into", headed=True)
    target, key = sheet.column(column, "--points"), sheet.column(match, "--match")
    students = {student: student for student in rows}
    students |= {row[match].strip(): student for student, row in rows.items() if row.get(match)}
    matched = set()
    for row in sheet.rows:
        student = students.get(row[key].strip() if key < len(row) else "")
        if student is not None:
            row += [""] * (len(sheet.headings) - len(row))
            row[target] = _short(totals[student])
            matched.add(student)
    return _sheet_text(sheet), [student for student in rows if student not in matched]


def _sheet_text(sheet: Sheet) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=sheet.delimiter, lineterminator=sheet.terminator)
    writer.writerows([sheet.headings, *sheet.rows])
    return ("\ufeff" if sheet.marked else "") + text.getvalue()
