"""The students of a class: a list as learning platforms export it, or a number of seats."""

from __future__ import annotations

import codecs
import csv
import io
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from labelaudit.command_line import CommandError, did_you_mean

MAX_SEATS = 1000
# In bytes: what file systems allow, without the suffix and the marks of a file being written.
MAX_STUDENT_NAME = 200
# Headings as platforms write them, in lower case and without marks.
WHOLE_NAME = {"name", "student", "student name", "full name", "display name", "names", "students"}
FIRST_NAME = {"first name", "firstname", "given name", "forename", "first", "vorname", "prenom"}
SURNAME = {"surname", "last name", "lastname", "family name", "last", "nachname", "nom"}
OTHERS = {
    *("id", "student id", "user id", "id number", "sis user id", "sis login id", "login id"),
    *("email", "email address", "e mail", "username", "user name", "section", "group", "number"),
}
HEADINGS = WHOLE_NAME | FIRST_NAME | SURNAME | OTHERS
# Rows of an exported sheet that are no students.
NOT_STUDENTS = {"points possible", "student, test", "test student"}
MARKED = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A table as text: its headings (none if it has no heading row), its rows, its form."""

    path: Path
    headings: list[str]
    rows: list[list[str]]
    delimiter: str = ","
    terminator: str = "\n"
    marked: bool = field(default=False, kw_only=True)
    """Whether the file begins with a byte order mark, which spreadsheets need."""

    def column(self, heading: str, option: str) -> int:
        """The index of a column; an error names the headings there are."""
        wanted = _simple(heading)
        matches = [i for i, name in enumerate(self.headings) if _simple(name) == wanted]
        if len(matches) != 1:
            state = "several columns are called" if matches else "there is no column"
            known = ", ".join(self.headings) or "none: its first row is a student"
            hint = did_you_mean(heading, self.headings, f"; its headings are {known}")
            raise CommandError(f"{option}: {self.path}: {state} {heading!r}{hint}")
        return matches[0]


def seats(number: int) -> list[str]:
    """Names for a number of seats: seat-01, seat-02, ..."""
    if not 1 <= number <= MAX_SEATS:
        raise CommandError(f"--seats: {number} is not a whole number from 1 to {MAX_SEATS}")
    width = max(2, len(str(number)))
    return [f"seat-{seat:0{width}d}" for seat in range(1, number + 1)]


def read_list(path: Path, columns: Sequence[str] = ()) -> list[str]:
    """The students of a class list, in its order.

    A text file has one student in each line. In a .csv or .tsv file the student is the column of
    that heading in `columns`, or several joined by a space; without `columns`, the column that is
    called a name, the first name and the surname, or else the first column.
    """
    return list(class_rows(path, columns))


def class_rows(path: Path, columns: Sequence[str] = ()) -> dict[str, dict[str, str]]:
    """The rows of a class list by student; a row maps headings to entries."""
    sheet = read_sheet(path, "--list", headed=bool(columns))
    chosen = [sheet.column(heading, "--column") for heading in columns] or _name_columns(sheet)
    rows, files = dict[str, dict[str, str]](), dict[str, str]()
    for row in sheet.rows:
        parts = [row[index] for index in chosen if index < len(row)]
        student = " ".join(" ".join(parts).split())
        if not student or student.casefold() in NOT_STUDENTS:
            continue
        _own_file(student, files)
        rows[student] = dict(zip(sheet.headings, row, strict=False))
    if not rows:
        raise CommandError(f"--list: {path} names no student")
    return rows


def _own_file(student: str, files: dict[str, str]) -> None:
    """Raise an error if another student's notebook would have the same name."""
    file = file_name(student).casefold()
    if len(file.encode()) > MAX_STUDENT_NAME:
        raise CommandError(f"--list: {student[:40]!r}... is too long for the name of a file")
    if file in files:
        other = files[file]
        both = "is there twice" if other == student else f"and {other!r} would share a file"
        raise CommandError(
            f"--list: {student!r} {both}; give each student a name of their own, or choose"
            " the column that tells them apart with --column"
        )
    files[file] = student


def read_sheet(path: Path, option: str, headed: bool = False) -> Sheet:
    """A text or a table: whatever separates its columns, with or without headings.

    `headed` says that the first row has headings, also where none of them is a known one.
    """
    text, marked = _text(path, option)
    terminator = "\r\n" if "\r\n" in text else "\n"
    if path.suffix.lower() not in (".csv", ".tsv"):
        return Sheet(
            path=path, headings=[], rows=[[line] for line in text.splitlines() if line.strip()]
        )
    filled = [line for line in text.splitlines() if line.strip()]
    # Where numbers have a comma, spreadsheets put semicolons between columns.
    marks = (mark for mark in ";\t" if filled and all(mark in line for line in filled))
    delimiter = next(marks, ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        rows = [row for row in reader if any(entry.strip() for entry in row)]
    except csv.Error as error:
        where = f"{path}, line {reader.line_num}"
        raise CommandError(f"{option}: {where}: {error}; is a quotation mark unpaired?") from None
    headed = bool(rows) and (headed or any(_simple(entry) in HEADINGS for entry in rows[0]))
    headings = [entry.strip() for entry in rows[0]] if headed else []
    return Sheet(
        path=path,
        headings=headings,
        rows=rows[headed:],
        delimiter=delimiter,
        terminator=terminator,
        marked=marked,
    )


def _text(path: Path, option: str) -> tuple[str, bool]:
    """The text of a file in UTF-8; an error says which encoding it seems to have instead."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CommandError(f"{option}: cannot read {path}: {error.strerror}") from None
    marked = content.startswith(codecs.BOM_UTF8)
    try:
        if content[:2] not in MARKED and b"\x00" not in content:
            # One name can be written in several ways, an accent apart or not; files would differ.
            return unicodedata.normalize("NFC", content.decode("utf-8-sig")), marked
    except UnicodeDecodeError:
        pass
    likely = MARKED.get(content[:2], "Windows-1252 or Latin-1")
    likely = "UTF-16 or no text at all" if b"\x00" in content else likely
    raise CommandError(
        f"{option}: {path} is not UTF-8 text; it seems to be {likely}: save it again as UTF-8"
    )


def _name_columns(sheet: Sheet) -> list[int]:
    """The columns that make up a student's name."""
    simple = [_simple(heading) for heading in sheet.headings]
    for wanted in ([WHOLE_NAME], [FIRST_NAME, SURNAME]):
        indices = [
            next((i for i, name in enumerate(simple) if name in part), None) for part in wanted
        ]
        if None not in indices:
            return [index for index in indices if index is not None]
    return [0]


def _simple(heading: str) -> str:
    """A heading in lower case, without accents, marks and double spaces."""
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return " ".join(re.findall(r"[a-z0-9]+", plain.casefold()))


def file_name(student: str) -> str:
    """A student's name as the name of a file: letters, digits, dots and dashes are kept."""
    return re.sub(r"[^\w.-]+", "-", student).strip(".-") or "student"
