"""The chapters of the book, as they are declared, and the parameters each of them takes.

The chapter's cell tagged `parameters` holds the values at laptop scale, so that any tool that runs
a notebook does what the book does. `notebooks/chapters.yml` declares every parameter, with its
values at the other scales where they differ.
"""

from __future__ import annotations

import ast
import copy
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from book.tools.parameters import (
    SCALES,
    ContractError,
    Parameter,
    declared_parameter,
    parse_value,
)
from labelaudit.command_line import did_you_mean

if TYPE_CHECKING:
    from nbformat import NotebookNode


# A claim compares two of these: a value that the chapter glues, or a number.
CLAIM = re.compile(r"(?P<left>[\w.-]+) (?P<relation>[<>]) (?P<right>[\w.-]+)")


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """One declared chapter: its title, data, cost and parameters, and what a copy must show."""

    id: str
    title: str
    data: tuple[str, ...]
    seconds: Mapping[str, float]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    claims: tuple[str, ...] = ()

    def fails(self, glued: Mapping[str, Any]) -> list[str]:
        """The claims that a run with these glued values does not satisfy.

        >>> claims = ("additive-rr < 0.01", "additive-tail-one > additive-tail-hundred")
        >>> chapter = Chapter(id="02", title="", data=(), seconds={}, claims=claims)
        >>> chapter.fails({"additive-rr": 0.02, "additive-tail-one": 1, "additive-tail-hundred": 0})
        ['additive-rr < 0.01']
        """
        failed = []
        for claim in self.claims:
            match = CLAIM.fullmatch(claim)
            if match is None:
                raise ContractError(f"{self.id}: the claim {claim!r} is not of the form a < b")
            left, right = (self._number(match[side], glued) for side in ("left", "right"))
            if not (left < right if match["relation"] == "<" else left > right):
                failed.append(claim)
        return failed

    def _number(self, text: str, glued: Mapping[str, Any]) -> float:
        try:
            return float(glued.get(text, text))
        except ValueError:
            raise ContractError(f"{self.id}: a claim names {text!r}, which is not glued") from None

    def values(self, scale: str) -> dict[str, Any]:
        """Every parameter's value at a scale."""
        return {name: parameter.values[scale] for name, parameter in self.parameters.items()}

    def resolve(self, scale: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """The values a run uses: the reader's own, each checked, and otherwise the scale's."""
        own = {name: self._parameter(name).check(value) for name, value in overrides.items()}
        return self.values(scale) | own

    def read(self, typed: list[tuple[str, str]]) -> dict[str, Any]:
        """The reader's values, as YAML, by the names of their parameters."""
        overrides: dict[str, Any] = {}
        for name, text in typed:
            if name in overrides:
                raise ContractError(f"{name} is given twice")
            overrides[name] = self._parameter(name).read(text)
        return overrides

    def _parameter(self, name: str) -> Parameter:
        if name in self.parameters:
            return self.parameters[name]
        others = f"its parameters are: {', '.join(self.parameters)}"
        hint = did_you_mean(name, self.parameters, f"; {others}")
        hint = hint if self.parameters else "; it has none at all"
        raise ContractError(f"{self.id} has no parameter {name!r}{hint}")


@dataclass(frozen=True)
class Chapters(Mapping[str, Chapter]):
    """The chapters that a file declares, by id; each is read and checked when it is asked for."""

    file: Path
    declared: Mapping[str, Any]

    def __getitem__(self, name: str) -> Chapter:
        """The declaration of a chapter, with the values of its parameters cell."""
        entry, source = self.declared[name], self.file.with_name(f"{name}.md")
        fields = {"title", "data", "seconds", "parameters"}
        if not isinstance(entry, dict) or set(entry) - {"claims"} != fields:
            fault = sorted(entry) if isinstance(entry, dict) else entry
            raise ContractError(f"{name}: needs {sorted(fields)}, has {fault}")
        if set(entry["seconds"]) != set(SCALES):
            raise ContractError(f"{name}: seconds needs one number for each of {', '.join(SCALES)}")
        if not source.is_file():
            raise ContractError(f"{name} is declared in {self.file.name}, but {source} is absent")
        declared, cell = entry["parameters"] or {}, read_parameters_cell(source)
        for key in sorted(set(declared) ^ set(cell)):
            texts = [self.file.name, "the parameters cell"]
            has, lacks = texts if key in declared else reversed(texts)
            raise ContractError(f"{name}: {has} has {key!r}, {lacks} does not")
        parameters = {
            key: declared_parameter(name, key, declared[key], cell[key]) for key in declared
        }
        return Chapter(
            id=name,
            title=entry["title"],
            data=tuple(entry["data"]),
            seconds=entry["seconds"],
            parameters=parameters,
            claims=tuple(entry.get("claims", ())),
        )

    def __contains__(self, name: object) -> bool:
        """Whether the chapter is declared, without a check of its declaration."""
        return name in self.declared

    def __iter__(self) -> Iterator[str]:
        """The ids, in the order of the file."""
        return iter(self.declared)

    def __len__(self) -> int:
        """The number of chapters."""
        return len(self.declared)


def load_chapters(path: Path) -> Chapters:
    """The chapters that `chapters.yml` declares; their sources lie beside it."""
    declared = parse_value(path.name, path.read_text(encoding="utf-8")) or {}
    if not isinstance(declared, dict):
        raise ContractError(f"{path.name} must map chapter ids to their declarations")
    return Chapters(path, {str(name): entry for name, entry in declared.items()})


def find_chapter(chapters: Mapping[str, Chapter], name: str) -> Chapter:
    """The chapter of that id, or an error that names the nearest one.

    The number alone will do: `07` or `7` for `07_scatter_plots`.
    """
    if name in chapters:
        return chapters[name]
    numbered = [chapter for chapter in chapters if chapter.split("_")[0] == name.zfill(2)]
    if len(numbered) == 1:
        return chapters[numbered[0]]
    hint = did_you_mean(name, chapters, "; `labelbook chapters` lists them")
    raise ContractError(f"there is no chapter {name!r}{hint}")


def read_source(source: Path) -> NotebookNode:
    """The notebook of a chapter's text; an unchanged text is parsed once."""
    return copy.deepcopy(_parsed(source.read_text(encoding="utf-8")))


@lru_cache
def _parsed(text: str) -> NotebookNode:
    import jupytext

    return jupytext.reads(text, "md:myst")


def read_parameters_cell(source: Path) -> dict[str, Any]:
    """The names and values assigned in a chapter's cell tagged `parameters`.

    Only plain literals are allowed there, so that the values can be read without running anything.
    """
    notebook = read_source(source)
    cells = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    if len(cells) != 1:
        raise ContractError(
            f"{source.name} needs exactly one cell tagged parameters; it has {len(cells)}"
        )
    values: dict[str, Any] = {}
    for statement in ast.parse(cells[0].source).body:
        name, value = _assignment(statement, source.name)
        if name in values:
            raise ContractError(f"{source.name} assigns the parameter {name!r} twice")
        values[name] = value
    return values


def with_values(notebook: NotebookNode, values: Mapping[str, Any]) -> NotebookNode:
    """The notebook with a run's values in its parameters cell; a value that stays keeps its line.

    So a page prints one cell of parameters, with the values that made it.
    """
    [cell] = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    lines = cell.source.splitlines()
    for statement in reversed(ast.parse(cell.source).body):
        name, before = _assignment(statement, "the chapter")
        if values[name] != before:
            line = f"{name} = {_literal(values[name])}"
            lines[statement.lineno - 1 : statement.end_lineno] = [line]
    cell.source = "\n".join(lines)
    return notebook


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return f'float("{value}")' if value in (math.inf, -math.inf) else repr(value)


def _assignment(statement: ast.stmt, where: str) -> tuple[str, Any]:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            pass
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            pass
        case _:
            raise ContractError(
                f"{where}: the parameters cell may hold only name = literal,"
                f" not: {ast.unparse(statement).splitlines()[0]}"
            )
    try:
        return name, ast.literal_eval(value)
    except ValueError:
        raise ContractError(
            f"{where}: the parameter {name!r} is not a plain literal: {ast.unparse(value)}"
        ) from None
