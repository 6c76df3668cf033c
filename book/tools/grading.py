"""Grade a class: run what students handed in, judge the answers here, and write the results.

A student's parameters come from the name and the seed, as when the copies were made. The right
answers come from the book's own run of the chapter with these parameters. The checks run in this
process, on plain numbers.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from book.chapters.exercises import check
from book.tools.answers import Submission, collect
from book.tools.class_copies import checked, csv_text, records
from book.tools.class_list import Sheet, file_name
from book.tools.handed_in import HandIn
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


@dataclass(kw_only=True)
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


def check_copies(hand_ins: Sequence[HandIn], drawn: Collection[Mapping[str, Any]]) -> None:
    """Reject options that are not those of the copies, before a class's running time is spent.

    `drawn` are all parameters that a student's copy can have with these options.
    """
    written = [hand_in.parameters for hand_in in hand_ins if hand_in.notebook]
    if len(written) > 1 and not any(parameters in drawn for parameters in written):
        raise CommandError(
            f"none of the {len(written)} notebooks has the parameters of a student of the list:"
            " --chapter, --column, --seed and --scale must be those of `labelbook teach`"
        )


def grade_class(
    owners: Mapping[str, HandIn],
    owned: Mapping[str, Mapping[str, Any]],
    runs: Mapping[str, NotebookNode],
    seconds: float,
) -> Iterator[Grade]:
    """Grade every student of `owned`: `runs` are the book's own runs with their parameters."""
    for student, parameters in owned.items():
        listed, key = exercises(runs[student]), records(runs[student])
        grade, submission = Grade(student=student), Submission()
        hand_in = owners.get(student)
        if hand_in is None:
            grade.remarks.append("nothing was handed in")
        else:
            grade.file = hand_in.path
            grade.remarks += _parameters(student, hand_in.parameters, owned)
            names = [exercise.name for exercise in listed if exercise.name]
            try:
                if hand_in.notebook is None:
                    raise ValueError(hand_in.fault)
                submission = collect(hand_in.notebook, parameters, names, seconds)
            except ValueError as error:
                grade.remarks.append(str(error))
            except Exception as error:  # one notebook must not stop those after it
                grade.remarks.append(f"the notebook is damaged ({type(error).__name__})")
            grade.remarks += submission.remarks
        judge(grade, submission, listed, key)
        yield grade


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
            text = submission.texts.get(label, "")
            grade.answers[label], grade.points[label] = text, None
            grade.reasons[label] = "for the teacher to read" if text else "no answer was found"
            continue
        if exercise.name not in submission.values:
            grade.points[label], grade.reasons[label] = 0, "no answer"
            continue
        answer = submission.values[exercise.name]
        grade.answers[label] = str(answer)
        feedback = check(label, answer, **key[label]["parameters"])
        grade.points[label] = int(feedback.right)
        grade.reasons[label] = "right" if feedback.right else feedback.hint


def read_manual(path: Path, most: float) -> dict[tuple[str, str], float | None]:
    """The teacher's points by student and exercise, at most `most` each; None where none stand."""
    if not path.is_file():
        return {}
    reader = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline=""))
    if reader.fieldnames != MANUAL_COLUMNS:
        raise CommandError(f"{path} must have the columns {', '.join(MANUAL_COLUMNS)}")
    return {
        (row["student"], row["exercise"]): _points((row["points"] or "").strip(), most, path, row)
        for row in reader
    }


def _points(text: str, most: float, path: Path, row: Mapping[str, str]) -> float | None:
    if not text:
        return None
    try:
        points = float(text.replace(",", "."))
    except ValueError:
        points = math.nan
    if not 0 <= points <= most:
        raise CommandError(
            f"{path}: {row['student']}, {row['exercise']}: points must be a number from 0 to"
            f" {most:g}, not {text!r}; --most sets another limit"
        )
    return points


def apply_manual(manual: dict[tuple[str, str], float | None], grade: Grade) -> None:
    """Take the teacher's points for what only a teacher can judge; without any, add a row."""
    for label, points in grade.points.items():
        if points is None:
            grade.points[label] = manual.setdefault((grade.student, label), None)


def manual_table(manual: Mapping[tuple[str, str], float | None]) -> str:
    """The table of the teacher's points, with a row for each that is still to be given."""
    rows = [
        dict(zip(MANUAL_COLUMNS, (*names, _short(points)), strict=True))
        for names, points in manual.items()
    ]
    return csv_text(MANUAL_COLUMNS, rows)


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
    sheet: Sheet,
    column: str,
    match: str,
    rows: Mapping[str, Mapping[str, str]],
    totals: Mapping[str, float],
) -> tuple[str, list[str]]:
    """An exported sheet with the totals in `column`, and the students that it does not list.

    A row belongs to the student whose name, or whose entry in the column `match` of the class
    list, equals the row's entry in that column. All other cells stay as they are.
    """
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
