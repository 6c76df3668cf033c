"""The commands for a course: `teach` makes notebooks, `grade` judges what comes back."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from book.tools.chapters import find_chapter, load_chapters
from book.tools.checkout import find_checkout
from book.tools.commands import add_scale, report_execution
from labelaudit.command_line import CommandError, counted
from labelaudit.files import write_atomically

TEACH_EXAMPLES = """\
examples:
  labelbook teach 02_additive_advantage --seats 20 --out ../class
  labelbook teach 02 --list students.csv --seed 7 --out ../class
  labelbook teach 02 --list sheet.csv --column 'First name' Surname --out ../class

The list is UTF-8 text: one student a line, or a table as learning platforms export it. Of a table
with headings the name counts, or first name and surname; --column says which columns otherwise.
The chapter is run for each student, so that the text of a copy has that student's numbers. A copy
whose run does not show what the chapter claims is drawn again.
The folder gets students/<name>.ipynb, without solutions and with an empty answer for each exercise;
key/<name>.ipynb, the same pages with solutions and results; key.csv, the parameters of each; and
answers.csv, the right answers of each. The same name and seed give the same page. A folder is for
one chapter. Notebooks that are there already are left alone, so nobody's work is overwritten.

exit status: 0 done, 1 a chapter failed, 2 invalid input, nothing was written, 130 interrupted
"""
GRADE_EXAMPLES = """\
examples:
  labelbook grade collected --list students.csv --chapter 02 --out ../grades
  labelbook grade collected --list students.csv --chapter 02 --out ../grades \\
      --into sheet.csv --points 'Homework 2' --match 'Login ID'

This runs the students' code on this machine, as you: use a spare account or a container.

List, chapter, columns, seed and scale are those of `labelbook teach`. Parameters are derived from
name and seed again; what a notebook says about them is only compared. Each notebook runs in a fresh
kernel and an empty folder. The folder of the grades gets grades.csv; feedback/<name>.html for each
student; by-exercise/<label>.html with everybody's answer side by side; and manual.csv, where you
write the points for proofs and explanations. Run the same command again to add them.

A notebook belongs to the student whose name its file or folder has, otherwise to the one whose
numbers stand in its parameters, otherwise to the one in its title. Links are not followed.

exit status: 0 done, 1 a chapter failed or a notebook belongs to no student, 2 invalid input,
nothing was written, 130 interrupted
"""


def add_parser(subparsers: Any) -> None:
    """Register the commands."""
    form = argparse.RawDescriptionHelpFormatter
    teach = subparsers.add_parser(
        "teach",
        help="make a class's own copies of a chapter, and the key",
        description="Make a copy of a chapter for each student, with parameters of their own.",
        epilog=TEACH_EXAMPLES,
        formatter_class=form,
    )
    teach.add_argument("chapter", help="a chapter's id, as `labelbook chapters` lists it")
    group = teach.add_mutually_exclusive_group(required=True)
    group.add_argument("--seats", type=int, metavar="N", help="the number of seats: seat-01 ...")
    _add_list(group)
    _add_class(teach)
    teach.set_defaults(run=make_copies)

    grade = subparsers.add_parser(
        "grade",
        help="grade what a class handed in",
        description="Run the notebooks of a class and grade the answers.",
        epilog=GRADE_EXAMPLES,
        formatter_class=form,
    )
    grade.add_argument("collected", type=Path, metavar="FOLDER", help="the students' notebooks")
    grade.add_argument("--chapter", required=True, help="the chapter that was handed out")
    _add_list(grade, required=True)
    _add_class(grade)
    grade.add_argument(
        "--seconds",
        type=float,
        default=120,
        help="the longest time that a cell may take (default: %(default)g)",
    )
    grade.add_argument(
        "--most",
        type=float,
        default=1,
        metavar="POINTS",
        help="the most points for a proof or an explanation (default: %(default)g)",
    )
    grade.add_argument("--into", type=Path, metavar="SHEET", help="an exported sheet to fill in")
    grade.add_argument("--points", metavar="HEADING", help="the sheet's column for the total")
    grade.add_argument(
        "--match", metavar="HEADING", help="the sheet's column that identifies a student"
    )
    grade.set_defaults(run=grade_collected)


def _add_list(parser: Any, **options: Any) -> None:
    parser.add_argument("--list", type=Path, metavar="FILE", help="the class list", **options)


def _add_class(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--column",
        nargs="+",
        default=[],
        metavar="HEADING",
        help="the columns of the list that make up a student's name",
    )
    parser.add_argument("--seed", type=int, default=0, help="another seed, other parameters")
    add_scale(parser, "values of the parameters that are the same for all students")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where to write")


def make_copies(arguments: argparse.Namespace) -> int:
    """Write a notebook and a key for every student."""
    from book.tools.class_copies import write_copies
    from book.tools.class_list import read_list, seats

    checkout = find_checkout()
    chapter = find_chapter(load_chapters(checkout.chapters_file), arguments.chapter)
    students = (
        read_list(arguments.list, arguments.column) if arguments.list else seats(arguments.seats)
    )
    first_to_last = f"{students[0]} to {students[-1]}" if len(students) > 1 else students[0]
    print(f"{counted(len(students), 'student')}: {first_to_last}", flush=True)
    written = write_copies(
        checkout,
        chapter,
        students,
        arguments.out,
        arguments.scale,
        arguments.seed,
        report_execution,
    )
    kept = 2 * len(students) - written
    print(f"{written} notebooks written to {arguments.out}" + (f", {kept} kept" if kept else ""))
    return 0


def grade_collected(arguments: argparse.Namespace) -> int:
    """Run and judge every notebook, and write the tables and pages."""
    from book.tools import grading
    from book.tools.class_copies import draw_class, possible_parameters
    from book.tools.class_list import class_rows, read_sheet
    from book.tools.handed_in import find_owners, read_folder

    _check_grading(arguments)
    checkout = find_checkout()
    chapter = find_chapter(load_chapters(checkout.chapters_file), arguments.chapter)
    rows, out = class_rows(arguments.list, arguments.column), arguments.out
    # All that is read is read now: a student's code could change it.
    hand_ins, remarks = read_folder(arguments.collected)
    manual = grading.read_manual(out / grading.MANUAL, arguments.most)
    into, columns = arguments.into, (arguments.points, arguments.match)
    sheet = read_sheet(into, "--into", headed=True) if into else None
    if sheet:  # an unknown column must not cost a class's running time
        grading.fill_sheet(sheet, *columns, rows, dict.fromkeys(rows, 0.0))
    scale, students, seed = arguments.scale, list(rows), arguments.seed
    grading.check_copies(hand_ins, possible_parameters(chapter, scale, students, seed))
    owned, runs = draw_class(checkout, chapter, students, scale, seed, report_execution)
    owners = find_owners(hand_ins, owned)
    for remark in remarks + owners.remarks:
        print(remark, file=sys.stderr)

    grades: list[grading.Grade] = []
    for grade in grading.grade_class(owners.found, owned, runs, arguments.seconds):
        grading.apply_manual(manual, grade)
        grades.append(grade)
        # After each student: whatever happens later, what was graded stays.
        write_atomically(out / "grades.csv", grading.grade_table(grades))
        write_atomically(out / grading.MANUAL, grading.manual_table(manual))
        why = f" ({'; '.join(grade.remarks)})" if grade.remarks else ""
        unit = "point" if grade.total == 1 else "points"
        print(f"{grade.student}: {grade.total:g} {unit}{why}", flush=True)

    grading.write_pages(out, chapter.title, grading.exercises(next(iter(runs.values()))), grades)
    if sheet:
        totals = {grade.student: grade.total for grade in grades}
        text, absent = grading.fill_sheet(sheet, *columns, rows, totals)
        for student in absent:
            print(f"{student} is not in {into}", file=sys.stderr)
        write_atomically(out / into.name, text)
        print(f"the sheet with the points written to {out / into.name}")
    print(f"grades of {counted(len(grades), 'student')} written to {out / 'grades.csv'}")
    for path in owners.unowned:
        print(f"not graded: {path}", file=sys.stderr)
    return 1 if owners.unowned else 0


def _check_grading(arguments: argparse.Namespace) -> None:
    """Reject options that do not fit each other."""
    for name in ("seconds", "most"):
        value = getattr(arguments, name)
        if not 0 < value < float("inf"):
            raise CommandError(f"--{name}: {value} is not a positive number")
    sheet = (arguments.into, arguments.points, arguments.match)
    if any(sheet) and not all(sheet):
        raise CommandError("--into, --points and --match go together")
