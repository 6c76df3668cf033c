"""What a chapter's form shows, and how what a reader entered becomes a run's parameters."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from book.tools.chapters import Chapter
from book.tools.checkout import Checkout
from book.tools.panels import DEFAULT_SCALE, typed
from book.tools.parameters import SCALES, ContractError, Parameter
from book.tools.runs import book_facts
from book.tools.serve.uploads import find

# A slider over more values than this moves in steps that nobody wants.
MAX_SLIDER = 10_000_000
# Beyond this ratio between its ends a slider is logarithmic.
LOGARITHMIC = 100


def describe(checkout: Checkout, chapter: Chapter) -> dict[str, Any]:
    """All that the page needs to draw the form: every field, with its values at each scale."""
    book = book_facts(checkout, chapter.id) or {}
    scale = book.get("scale", DEFAULT_SCALE)
    values = chapter.values(scale) | book.get("parameters", {})
    fields = [
        _field(parameter) | {"book": field_text(values[name])}
        for name, parameter in chapter.parameters.items()
    ]
    return {
        "chapter": chapter.id,
        "title": chapter.title,
        "scale": scale,
        "seconds": {scale: chapter.seconds[scale] for scale in SCALES},
        "fields": fields,
    }


def _field(parameter: Parameter) -> dict[str, Any]:
    field: dict[str, Any] = {
        "name": parameter.name,
        "meaning": parameter.meaning,
        "allowed": parameter.allowed,
        "kind": parameter.kind,
        "list": parameter.is_list,
        "choices": [str(choice) for choice in parameter.choices],
        "scales": {scale: field_text(parameter.values[scale]) for scale in SCALES},
    }
    numeric = parameter.kind in ("integer", "number") and not parameter.is_list
    if numeric and math.isfinite(parameter.low) and math.isfinite(parameter.high):
        low, high = parameter.low, parameter.high
        field |= {"low": low, "high": high, "slider": high - low <= MAX_SLIDER}
        field["logarithmic"] = low > 0 and high / low >= LOGARITHMIC
    return field


def field_text(value: Any) -> str:
    """A value as the field shows it; text needs no quotation marks there."""
    return value if isinstance(value, str) else typed(value)


class Entered:
    """A reader's values: the parameters of a run, or for each field what is wrong with it."""

    def __init__(self, checkout: Checkout, chapter: Chapter, body: Mapping[str, Any]) -> None:
        """`body` holds the scale and, by name, the text of each field."""
        self.chapter = chapter
        self.errors: dict[str, str] = {}
        self.overrides: dict[str, Any] = {}
        self.scale = str(body.get("scale", DEFAULT_SCALE))
        if self.scale not in SCALES:
            self.errors[""] = f"{self.scale!r} is not a scale; there are {', '.join(SCALES)}"
            self.scale = DEFAULT_SCALE
        values = body.get("values", {})
        if not isinstance(values, dict):
            self.errors[""] = "the values must be an object of names and texts"
            values = {}
        for name, text in values.items():
            try:
                self.overrides[name] = self._value(checkout, name, text)
            except ContractError as error:
                known = name in chapter.parameters
                self.errors[name if known else ""] = str(error).removeprefix(f"{name}: ")

    def _value(self, checkout: Checkout, name: str, text: Any) -> Any:
        if name not in self.chapter.parameters:
            return self.chapter.resolve(self.scale, {name: text})
        if not isinstance(text, str):
            raise ContractError(f"{name}: {text!r} is not text")
        parameter = self.chapter.parameters[name]
        if parameter.kind == "path":
            return parameter.check(str(find(checkout, text)) if text else "")
        if parameter.kind == "text" and not parameter.is_list:
            return parameter.check(text)
        return parameter.check(parameter.read(text))

    @property
    def parameters(self) -> dict[str, Any]:
        """Every parameter of the run."""
        return self.chapter.values(self.scale) | self.overrides

    @property
    def command(self) -> str:
        """What a reader would type for the same run; values of the scale are left out."""
        words = ["labelbook run", self.chapter.id]
        if self.scale != DEFAULT_SCALE:
            words.append(f"--scale {self.scale}")
        for name, value in self.overrides.items():
            if value != self.chapter.parameters[name].values[self.scale]:
                is_file = self.chapter.parameters[name].kind == "path"
                shown = Path(value).name if is_file else typed(value)
                words.append(f"-p {name} {shlex.quote(shown)}")
        return " ".join(words)
