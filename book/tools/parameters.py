"""The contract between a chapter and whoever runs it: which parameters, of what type and range.

`notebooks/chapters.yml` declares every parameter; the chapter's cell tagged `parameters` gives
each of them the paper's value. Both must agree, and every value a reader passes is checked
against the declaration before anything runs.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labelaudit.command_line import CommandError, did_you_mean

SCALES = ("smoke", "laptop", "paper")
# Bits of a whole number that a float can hold as well.
LONGEST_NUMBER = 1023


class ContractError(CommandError, ValueError):
    """A declaration, a parameters cell or a passed value breaks the contract."""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


# What one item may be: how to test it, and what to call it in a refusal.
_KIND_TESTS: dict[str, Callable[[Any], bool]] = {
    "integer": lambda value: _is_number(value) and math.isfinite(value) and value == int(value),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "text": lambda value: isinstance(value, str),
    "path": lambda value: isinstance(value, str),
}
_NOUNS = {
    "integer": "one whole number",
    "number": "one number",
    "boolean": "true or false",
    "text": "one piece of text",
    "path": "the path of one file",
}
KINDS = tuple(_KIND_TESTS)


@dataclass(frozen=True)
class Parameter:
    """One declared parameter: what it means, what it may be, its value at each scale.

    >>> sizes = Parameter("bag_sizes", "list of integer", "people per bag", {}, low=1, high=512)
    >>> sizes.check([4, 16])
    [4, 16]
    >>> sizes.check([0])
    Traceback (most recent call last):
    book.tools.parameters.ContractError: bag_sizes: 0 is out of range; allowed: 1 to 512
    """

    name: str
    type: str
    meaning: str
    values: Mapping[str, Any]
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[Any, ...] = ()

    @property
    def is_list(self) -> bool:
        """Whether a value is a list of items rather than one item."""
        return self.type.startswith("list of ")

    @property
    def kind(self) -> str:
        """The type of one item."""
        return self.type.removeprefix("list of ")

    @property
    def allowed(self) -> str:
        """The allowed values of one item, for messages and for listings."""
        if self.choices:
            return ", ".join(str(choice) for choice in self.choices)
        if self.kind not in ("integer", "number") or (self.low, self.high) == (-math.inf, math.inf):
            return f"any {self.kind}"
        if self.high == math.inf:
            return f"{_short(self.low)} or more"
        return f"{_short(self.low)} to {_short(self.high)}"

    def check(self, value: Any) -> Any:
        """Give the value back in canonical form, or refuse it with what is allowed."""
        if not self.is_list:
            return self._item(value)
        if value is None or value == "":
            raise ContractError(f"{self.name}: no value given; write a list, as in [first, second]")
        if not isinstance(value, list):
            raise ContractError(f"{self.name}: {value!r} is not a list; write it as [{value}]")
        if not value:
            raise ContractError(f"{self.name}: the list is empty; give at least one value")
        return [self._item(item) for item in value]

    def _item(self, value: Any) -> Any:
        if value is None:
            raise ContractError(f"{self.name}: no value given; allowed: {self.allowed}")
        if isinstance(value, int) and value.bit_length() > LONGEST_NUMBER:
            raise ContractError(
                f"{self.name}: a number of so many digits fits no range; allowed: {self.allowed}"
            )
        if not _KIND_TESTS[self.kind](value):
            raise ContractError(f"{self.name}: {value!r} is not {_NOUNS[self.kind]}")
        if self.kind in ("integer", "number"):
            value = int(value) if self.kind == "integer" else float(value)
            if not self.low <= value <= self.high:
                raise ContractError(
                    f"{self.name}: {_short(value)} is out of range; allowed: {self.allowed}"
                )
        if self.kind == "path" and value:
            if not Path(value).is_file():
                raise ContractError(f"{self.name}: there is no file {value!r}")
            # A chapter runs in a folder of its own, from where a relative path leads nowhere.
            value = str(Path(value).absolute())
        if self.choices and value not in self.choices:
            raise ContractError(f"{self.name}: {value!r} is not among: {self.allowed}")
        return value


@dataclass(frozen=True)
class Chapter:
    """One declared chapter: its title, the data it reads, its cost, its parameters."""

    id: str
    title: str
    data: tuple[str, ...]
    seconds: Mapping[str, float]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)

    def values(self, scale: str) -> dict[str, Any]:
        """Every parameter's value at a scale."""
        return {name: parameter.values[scale] for name, parameter in self.parameters.items()}

    def resolve(self, scale: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """The values a run uses: the scale's, with the reader's own on top, each one checked."""
        for name in overrides:
            if name not in self.parameters:
                raise ContractError(f"{self.id} has no parameter {name!r}{self._hint(name)}")
        own = {name: self.parameters[name].check(value) for name, value in overrides.items()}
        return self.values(scale) | own

    def _hint(self, name: str) -> str:
        if not self.parameters:
            return "; it has none at all"
        known = ", ".join(self.parameters)
        return did_you_mean(name, self.parameters, f"; its parameters are: {known}")


def parse_value(name: str, text: str) -> Any:
    """Read a value as YAML, with numbers such as 1e-3 and inf read as what they plainly are.

    >>> parse_value("epsilons", "[0.5, 1e-3, inf]")
    [0.5, 0.001, inf]
    """
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """PyYAML follows YAML 1.1, where 1e-3 is a word."""

    number = re.compile(r"[-+]?(\d+(\.\d*)?[eE][-+]?\d+|inf)$")
    Loader.add_implicit_resolver("!number", number, list("-+0123456789i"))
    Loader.add_constructor("!number", lambda loader, node: float(node.value))
    try:
        return yaml.load(text, Loader)
    except (yaml.YAMLError, ValueError) as error:
        # A ValueError is a date that is none, or a number of too many digits.
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark and "\n" in text else ""
        what = getattr(error, "problem", None) or "it cannot be read"
        raise ContractError(f"{name} is not valid YAML: {what}{where}") from None


def load_chapters(path: Path) -> dict[str, Chapter]:
    """Read `chapters.yml`, refusing a declaration that is incomplete or contradicts itself."""
    declared = parse_value(path.name, path.read_text(encoding="utf-8")) or {}
    if not isinstance(declared, dict):
        raise ContractError(f"{path.name} must map chapter ids to their declarations")
    return {str(name): _chapter(str(name), entry) for name, entry in declared.items()}


def find_chapter(chapters: Mapping[str, Chapter], name: str) -> Chapter:
    """The chapter of that id, or a refusal that names the nearest one.

    The number alone will do: `07` or `7` for `07_scatter_plots`.
    """
    if name in chapters:
        return chapters[name]
    numbered = [chapter for chapter in chapters if chapter.split("_")[0] == name.zfill(2)]
    if len(numbered) == 1:
        return chapters[numbered[0]]
    hint = did_you_mean(name, chapters, "; `labelaudit chapters` lists them")
    raise ContractError(f"there is no chapter {name!r}{hint}")


def read_parameters_cell(source: Path) -> dict[str, Any]:
    """The names and paper values assigned in a chapter's cell tagged `parameters`.

    Only plain literals are allowed there, so that the values can be read without running
    anything, and compared with the declaration.
    """
    import jupytext

    notebook = jupytext.read(source)
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


def check_source(chapter: Chapter, source: Path) -> None:
    """Refuse a chapter that is not written, or whose parameters cell differs from its declaration.

    Names must be the same, and the cell's values must be those declared for paper scale.
    """
    if not source.is_file():
        raise ContractError(f"{chapter.id} is declared in chapters.yml, but {source} is absent")
    cell = read_parameters_cell(source)
    for name in sorted(set(chapter.parameters) ^ set(cell)):
        has, lacks = (
            ("chapters.yml", "the parameters cell")
            if name in chapter.parameters
            else ("the parameters cell", "chapters.yml")
        )
        raise ContractError(f"{chapter.id}: {has} has {name!r}, {lacks} does not")
    for name, value in cell.items():
        paper = chapter.parameters[name].values["paper"]
        if chapter.parameters[name].check(value) != paper:
            raise ContractError(
                f"{chapter.id}: {name} is {value!r} in the parameters cell,"
                f" but {paper!r} at paper scale in chapters.yml"
            )


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


def _chapter(name: str, entry: Any) -> Chapter:
    fields = {"title", "data", "seconds", "parameters"}
    if not isinstance(entry, dict) or set(entry) != fields:
        found = sorted(entry) if isinstance(entry, dict) else entry
        raise ContractError(f"{name}: needs {sorted(fields)}, has {found}")
    if set(entry["seconds"]) != set(SCALES):
        raise ContractError(f"{name}: seconds needs one number for each of {', '.join(SCALES)}")
    declared = entry["parameters"] or {}
    parameters = {key: _parameter(name, key, value) for key, value in declared.items()}
    return Chapter(name, entry["title"], tuple(entry["data"]), entry["seconds"], parameters)


def _parameter(chapter: str, name: str, entry: Any) -> Parameter:
    where = f"{chapter}: {name}"
    needed, optional = {"type", "meaning", *SCALES}, {"range", "choices"}
    if not isinstance(entry, dict) or not needed <= set(entry) <= needed | optional:
        raise ContractError(f"{where}: needs {sorted(needed)}, may have {sorted(optional)}")
    low, high = entry.get("range", (-math.inf, math.inf))
    choices = tuple(entry.get("choices", ()))
    draft = Parameter(name, entry["type"], entry["meaning"], {}, low, high, choices)
    if draft.kind not in KINDS:
        raise ContractError(
            f"{where}: the type {entry['type']!r} is not one of {', '.join(KINDS)}"
            " or a list of one of them"
        )
    if not (name.isidentifier() and name == name.lower()):
        raise ContractError(f"{where}: a parameter's name is a lower-case identifier")
    if draft.kind in ("integer", "number") and "range" not in entry:
        raise ContractError(f"{where}: a {draft.kind} needs a range")
    try:
        values = {scale: draft.check(entry[scale]) for scale in SCALES}
    except ContractError as error:
        raise ContractError(f"{chapter}: {error}") from None
    return Parameter(name, entry["type"], entry["meaning"], values, low, high, choices)


def _short(number: float) -> str:
    return str(int(number)) if math.isfinite(number) and number == int(number) else f"{number:g}"
