"""A parameter of a chapter: its type, its range, its values, and the check of a reader's own."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from labelaudit.command_line import CommandError

SCALES = ("smoke", "laptop", "paper")
# Bits of the longest whole number that a float can hold as well.
MAX_NUMBER_LENGTH = 1023
# Characters of a value, and brackets inside brackets: far more than any list of numbers needs.
MAX_TEXT, MAX_DEPTH = 20_000, 3


class ContractError(CommandError, ValueError):
    """A declaration, a parameters cell or a reader's value is invalid."""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


# What one item may be: how to test it, and what an error calls it.
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


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One declared parameter: what it means, what it may be, its value at each scale.

    >>> sizes = Parameter(
    ...     name="sizes", type="list of integer", meaning="", values={}, low=1, high=512
    ... )
    >>> sizes.check([4, 16])
    [4, 16]
    >>> sizes.check([0])
    Traceback (most recent call last):
    book.tools.parameters.ContractError: sizes: 0 is out of range; allowed: 1 to 512
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
            return "true, false" if self.kind == "boolean" else f"any {self.kind}"
        if self.high == math.inf:
            return f"{_short(self.low)} or more"
        return f"{_short(self.low)} to {_short(self.high)}"

    def read(self, text: str) -> Any:
        """A reader's value as YAML; what must be text stays as it was typed."""
        _check_size(self.name, text)
        return parse_value(self.name, text, as_text=self.kind in ("text", "path"))

    def check(self, value: Any) -> Any:
        """Give the value back in canonical form, or raise an error that says what is allowed."""
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
        if isinstance(value, int) and value.bit_length() > MAX_NUMBER_LENGTH:
            raise ContractError(
                f"{self.name}: the number has too many digits; allowed: {self.allowed}"
            )
        if not _KIND_TESTS[self.kind](value):
            raise ContractError(
                f"{self.name}: {value!r} is not {_NOUNS[self.kind]}; allowed: {self.allowed}"
            )
        if self.kind in ("integer", "number"):
            value = int(value) if self.kind == "integer" else float(value)
            if not self.low <= value <= self.high:
                raise ContractError(
                    f"{self.name}: {_short(value)} is out of range; allowed: {self.allowed}"
                )
        if self.kind == "path" and value:
            # A chapter runs in a folder of its own, from where a relative path leads nowhere.
            path = Path(value).expanduser().resolve()
            if not path.is_file():
                raise ContractError(f"{self.name}: there is no file {value!r}")
            value = str(path)
        if self.choices and value not in self.choices:
            raise ContractError(f"{self.name}: {value!r} is not among: {self.allowed}")
        return value


def parse_value(name: str, text: str, *, as_text: bool = False) -> Any:
    """Read a value as YAML, with numbers such as 1e-3 and inf read as numbers.

    With `as_text` every item stays text: a column may be called 2024, its values yes and no.

    >>> parse_value("epsilons", "[0.5, 1e-3, inf]")
    [0.5, 0.001, inf]
    >>> parse_value("features", "[age, 2024, no]", as_text=True)
    ['age', '2024', 'no']
    """
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """PyYAML follows YAML 1.1, where 1e-3 is a word."""

    number = re.compile(r"[-+]?(\d+(\.\d*)?[eE][-+]?\d+|inf)$")
    Loader.add_implicit_resolver("!number", number, list("-+0123456789i"))
    Loader.add_constructor("!number", lambda loader, node: float(node.value))
    try:
        value = yaml.load(text, yaml.BaseLoader if as_text else Loader)
        return "" if value is None and as_text else value
    except (yaml.YAMLError, ValueError) as error:
        # A ValueError is an impossible date, or a number of too many digits.
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark and "\n" in text else ""
        what = getattr(error, "problem", None) or "it cannot be read"
        raise ContractError(f"{name} is not valid YAML: {what}{where}") from None


def _check_size(name: str, text: str) -> None:
    """Reject a value that takes more memory than its text, or more depth than Python has."""
    import yaml

    if len(text) > MAX_TEXT:
        raise ContractError(f"{name}: the value has more than {MAX_TEXT} characters")
    depth = 0
    with contextlib.suppress(yaml.YAMLError):
        for event in yaml.parse(text):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > MAX_DEPTH:
                raise ContractError(f"{name}: a list in a list in a list is no value")


def declared_parameter(chapter: str, name: str, entry: Any, own: Any) -> Parameter:
    """Check an entry of `chapters.yml`, and the chapter's `own` value, that of laptop scale.

    The entry has the values of the other scales where they differ.
    """
    where = f"{chapter}: {name}"
    needed, optional = {"type", "meaning"}, {"range", "choices", "smoke", "paper"}
    if not isinstance(entry, dict) or not needed <= set(entry) <= needed | optional:
        raise ContractError(f"{where}: needs {sorted(needed)}, may have {sorted(optional)}")
    low, high = entry.get("range", (-math.inf, math.inf))
    choices = tuple(entry.get("choices", ()))
    draft = Parameter(
        name=name,
        type=entry["type"],
        meaning=entry["meaning"],
        values={},
        low=low,
        high=high,
        choices=choices,
    )
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
        values = {scale: draft.check(entry.get(scale, own)) for scale in SCALES}
    except ContractError as error:
        raise ContractError(f"{chapter}: {error}") from None
    return replace(draft, values=values)


def _short(number: float) -> str:
    return str(int(number)) if math.isfinite(number) and number == int(number) else f"{number:g}"
