"""What a class handed in: every file read before any of it runs, and whose each notebook is."""

from __future__ import annotations

import ast
import json
import os
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import nbformat
from nbformat import NotebookNode

from book.tools.class_copies import OWN
from book.tools.class_list import file_name
from labelaudit.command_line import CommandError

SUFFIX = ".ipynb"
Part = TypeVar("Part")


@dataclass(frozen=True, kw_only=True)
class HandIn:
    """One file: where it lay in the folder, when it was written, and its notebook or its fault."""

    path: str
    time: float
    notebook: NotebookNode | None = None
    fault: str = ""

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that stand in the notebook. They are compared, never used."""
        cell = parameter_cell(self.notebook) if self.notebook else None
        return {} if cell is None else _literals(cell.source)

    @property
    def title(self) -> str:
        """The title that a copy was given when it was made."""
        return str(self.notebook.metadata.get("title", "")) if self.notebook else ""


@dataclass
class Owners:
    """The notebook of each student, remarks, and the files that belong to no student."""

    found: dict[str, HandIn] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    unowned: list[str] = field(default_factory=list)


def read_folder(folder: Path) -> tuple[list[HandIn], list[str]]:
    """Every notebook in a folder and below it, and remarks on links, which are not followed."""
    if not folder.is_dir():
        raise CommandError(f"there is no folder {folder} of notebooks")
    hand_ins, remarks = [], []
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != ".ipynb_checkpoints")
        for path in (Path(parent, name) for name in sorted(files)):
            shown = path.relative_to(folder).as_posix()
            if path.suffix == SUFFIX and path.is_symlink():
                remarks.append(f"{shown} is a symbolic link, which is not followed")
            elif path.suffix == SUFFIX:
                hand_ins.append(_read(path, shown))
    if not hand_ins:
        raise CommandError(f"{folder} holds no notebook (*{SUFFIX})")
    return hand_ins, remarks


def _read(path: Path, shown: str) -> HandIn:
    time = path.lstat().st_mtime
    try:
        return HandIn(path=shown, time=time, notebook=read_notebook(path.read_bytes()))
    except Exception as error:  # a student's file may be anything
        return HandIn(path=shown, time=time, fault=f"not a notebook ({type(error).__name__})")


def read_notebook(content: bytes) -> NotebookNode:
    """The parts of a notebook that grading uses; a part of a wrong type counts as empty."""
    data = json.loads(content)
    if data.get("nbformat") != nbformat.v4.nbformat:  # an older form, which needs translation
        data = nbformat.reads(content.decode("utf-8-sig"), as_version=4)
    title = _part(data, "metadata", dict).get("title")
    cells = [_read_cell(cell) for cell in _part(data, "cells", list) if isinstance(cell, dict)]
    about = {"title": title if isinstance(title, str) else ""}
    return nbformat.v4.new_notebook(cells=cells, metadata=about)


def _read_cell(cell: dict[str, Any]) -> NotebookNode:
    lines = [_part(cell, "source", str), *_part(cell, "source", list)]
    source = "".join(line for line in lines if isinstance(line, str))
    metadata = _part(cell, "metadata", dict)
    tagged = "parameters" in _part(metadata, "tags", list)
    kept: dict[str, Any] = {"labelaudit": _part(metadata, "labelaudit", dict)}
    kept["tags"] = ["parameters"] if tagged else []
    is_code = cell.get("cell_type") == "code"
    make = nbformat.v4.new_code_cell if is_code else nbformat.v4.new_markdown_cell
    return make(source, metadata=kept)


def _part(data: Mapping[str, Any], name: str, kind: type[Part]) -> Part:
    """An entry, or an empty one where it is missing or of another type."""
    value = data.get(name)
    return value if isinstance(value, kind) else kind()


def parameter_cell(notebook: NotebookNode) -> NotebookNode | None:
    """The cell of the parameters, if it is still there."""
    tagged = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    return next((cell for cell in tagged if cell.cell_type == "code"), None)


def _literals(source: str) -> dict[str, Any]:
    """The plain values that a cell assigns."""
    values: dict[str, Any] = {}
    try:
        for statement in ast.parse(source).body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    values[name] = ast.literal_eval(value)
    except Exception:  # text that is nested too deeply ends in one of several errors
        return values
    return values


def find_owners(hand_ins: Sequence[HandIn], owned: Mapping[str, Mapping[str, Any]]) -> Owners:
    """Whose notebook each file is: by its name, else by its own parameters, else by its title.

    A learning platform may put words before and after the name of a file, or a folder around it.
    A file that only its content assigns to a student never replaces one with the student's name.
    """
    owners, unnamed = Owners(), []
    for hand_in in hand_ins:
        owner = _named_in(hand_in.path, owned)
        if owner is None:
            unnamed.append(hand_in)
        else:
            _add(owners, owner, hand_in)
    named = set(owners.found)
    for hand_in in unnamed:
        owner = _by_content(hand_in, owned)
        if owner is None:
            owners.unowned.append(hand_in.path)
            owners.remarks.append(f"{hand_in.path} belongs to no student of the list")
        elif owner in named:
            owners.unowned.append(hand_in.path)
            kept = owners.found[owner].path
            owners.remarks.append(
                f"{hand_in.path} is the copy of {owner}, of whom {kept} is graded"
            )
        else:
            owners.remarks.append(f"{hand_in.path} is the copy of {owner} under another name")
            _add(owners, owner, hand_in)
    return owners


def _add(owners: Owners, owner: str, hand_in: HandIn) -> None:
    """Note the file of a student; of two files the newer one counts."""
    other = owners.found.get(owner)
    newer = max(other, hand_in, key=lambda file: file.time) if other else hand_in
    if other:
        owners.remarks.append(
            f"{owner}: two notebooks, {other.path} and {hand_in.path};"
            f" {newer.path} is graded, the newer one"
        )
    owners.found[owner] = newer


def _named_in(path: str, students: Mapping[str, Any]) -> str | None:
    """The student whose name a path holds as a word of its own."""
    text = "/".join(_comparable(file_name(part)) for part in _composed(path).split("/"))
    # The longest name first: "Ann-Lee-Smith.ipynb" is not Ann Lee's.
    for student in sorted(students, key=len, reverse=True):
        name = _comparable(file_name(_composed(student)))
        start = text.find(name)
        before, after = text[:start][-1:], text[start + len(name) :][:1]
        if start >= 0 and not before.isalnum() and not after.isalnum():
            return student
    return None


def _by_content(hand_in: HandIn, owned: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The only student with the numbers that the notebook's exercises have, or with its title."""
    own = _own_numbers(hand_in.parameters)
    matches = [name for name, values in owned.items() if own and _own_numbers(values) == own]
    if len(matches) == 1:
        return matches[0]
    title = _comparable(hand_in.title)
    matches = [name for name in owned if title.endswith(f": {_comparable(name)}")]
    return max(matches, key=len, default=None)


def _own_numbers(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name.startswith(OWN)}


def _composed(text: str) -> str:
    """A text with each accent in its letter: archives of some systems write the two apart."""
    return unicodedata.normalize("NFC", text)


def _comparable(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
