"""A chapter as a notebook for plain Jupyter, where nothing renders directives.

Boxes become quotations, references the names they refer to, numbers of the run the numbers
themselves; formulas lose the macros that only the book's configuration defines.
"""

from __future__ import annotations

import ast
import copy
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from book import ledger
from book.chapters.number_format import format_number
from book.tools.checkout import Checkout
from book.tools.kernel import SPECIFICATION
from book.tools.references import references

if TYPE_CHECKING:
    from nbformat import NotebookNode

# A directive, or a block of code, which stays as it is.
FENCE = re.compile(
    r"^(?P<ticks>`{3,}|:{3,})(?:\{(?P<kind>[\w:-]+)\})?[ ]*"
    r"(?P<title>(?:[^\n`]|\{verdict\}`[^\n`]*`)*)\n"
    r"(?P<options>(?::[\w-]+:[^\n]*\n)*)(?P<body>.*?)^(?P=ticks)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
# A solution: a directive, or all that stands between its two gates.
SOLUTION = re.compile(
    r"^(`{3,})\{solution-start\}.*?^(`{3,})\{solution-end\}|^(`{3,})\{solution\}.*?^\3\s*?$\n?",
    re.MULTILINE | re.DOTALL,
)
GATE = re.compile(
    r"^(`{3,})\{solution-(?P<kind>start|end)\}.*?^\1\s*$\n?", re.MULTILINE | re.DOTALL
)
LABEL = re.compile(r"^:label: *(\S+)", re.MULTILINE)
DISPLAY = re.compile(r"\$\$(?P<formula>.+?)\$\$[ \t]*\((?P<label>[\w-]+)\)", re.DOTALL)
FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$]+\$", re.DOTALL)
GLUED = re.compile(r"\{glue:text\}`(?P<name>[\w-]+)(?::(?P<format>[^`]*))?`")

INSTALL = """\
# In the book's own environment this does nothing.
import importlib.util

if importlib.util.find_spec("labelaudit") is None:
    """
NOT_INSTALLED = """\
raise ModuleNotFoundError(
        "this notebook needs the package labelaudit, which is on no package index: clone the"
        " book's repository and run  pip install --editable '.[{extras}]'  in it"
    )"""
# Chapters that import one of these need torch and what goes with it; the others do without.
HEAVY = "learning|report|torch|sklearn|differences|figures|real|tables|tradeoff"
TRAINS = re.compile(rf"^(?:from|import) [^\n]*\b(?:{HEAVY})\b", re.MULTILINE)


@dataclass(frozen=True)
class PlainMarkdown:
    """Turns MyST into ordinary Markdown, with the book's macros and the numbers of one run.

    >>> print(PlainMarkdown()("```{exercise} Two people\\n:label: ex-two\\nCompute.\\n```"))
    > **Exercise: Two people**
    >
    > Compute.
    >>> PlainMarkdown()("See {doc}`02_additive_advantage` and {ref}`the end <sec-end>`.")
    'See *02_additive_advantage* and the end.'
    >>> PlainMarkdown()("## A rise {verdict}`T3.5`")
    '## A rise `T3.5 holds`'
    >>> plain = PlainMarkdown({"eps": r"\\varepsilon"}, {"rate": 0.25}, {"lem-a": "Lemma 2.1"})
    >>> plain("at $\\\\eps$ {glue:text}`rate:.1%` by {prf:ref}`lem-a`")
    'at $\\\\varepsilon$ 25.0% by Lemma 2.1'
    """

    macros: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    """What the book calls its labels, pages and sources."""

    def __call__(self, source: str) -> str:
        """The text of a cell, with blank lines around every block."""
        parts, start = [], 0
        for match in FENCE.finditer(source):
            block = self._box(match) if match["kind"] else match[0]
            parts += [self._prose(source[start : match.start()]), block]
            start = match.end()
        parts.append(self._prose(source[start:]))
        return "\n\n".join(part.strip("\n") for part in parts if part.strip())

    def _box(self, match: re.Match[str]) -> str:
        kind = match["kind"].removeprefix("prf:").removesuffix("-start")
        body = self(match["body"])
        if kind == "solution-end":
            return ""
        if kind == "math":
            return f"$$\n{body}\n$$"
        heading = f"**{self._heading(kind, match)}**"
        # Jupyter takes formulas out before it reads quotations, marks at line starts included.
        body = FORMULA.sub(lambda formula: " ".join(formula[0].split()), body)
        return "\n".join(f"> {line}".rstrip() for line in [heading, "", *body.splitlines()])

    def _heading(self, kind: str, match: re.Match[str]) -> str:
        """What a box is called: by its number where it has one."""
        title = self._prose(match["title"]).strip()
        if kind == "admonition":
            return title
        if kind == "solution" and title in self.names:
            return f"Solution to {self.names[title]}"
        label = LABEL.search(match["options"])
        name = kind.capitalize()
        if label and kind != "solution":
            name = self.names.get(label[1], name)
        return f"{name}: {title}" if title else name

    def _name(self, label: str) -> str:
        return self.names.get(label.rpartition("/")[2], f"*{label}*")

    def _formula(self, match: re.Match[str]) -> str:
        label = match["label"]
        return f"$${match['formula']}\\tag{{{self.names.get(label, label)}}}$$"

    def _cited(self, match: re.Match[str]) -> str:
        keys = [key.strip() for key in match[1].split(",")]
        return ", ".join(self.names.get(key, f"[{key}]") for key in keys)

    def _prose(self, text: str) -> str:
        text = re.sub(r"^\([\w-]+\)=\n", "", text, flags=re.MULTILINE)
        text = DISPLAY.sub(self._formula, text)
        text = re.sub(r"\[([^][]+)\]\{[.#][A-Za-z][^}]*\}", r"`\1`", text)
        text = re.sub(r"\{verdict\}`([^`]+)`", lambda badge: f"`{ledger.badge(badge[1])}`", text)
        text = GLUED.sub(self._number, text)
        text = re.sub(r"\{cite(?::\w+)?\}`([^`]+)`", self._cited, text)
        text = re.sub(r"\{download\}`([^<`]+?)\s*<(?:[^>]*/)?([^>/]*)>`", r"\1 `\2`", text)
        text = re.sub(r"\{[\w:]+\}`([^<`]+?)\s*<[^>]*>`", r"\1", text)
        text = re.sub(r"\{eq\}`([^`]+)`", r"({eq}`\1`)" if self.names else r"{eq}`\1`", text)
        text = re.sub(r"\{[\w:]+\}`([^`]+)`", lambda match: self._name(match[1]), text)
        for name, meaning in self.macros.items():
            text = re.sub(rf"\\{name}(?![A-Za-z])", meaning.replace("\\", r"\\"), text)
        return text

    def _number(self, match: re.Match[str]) -> str:
        if match["name"] not in self.values:
            return f"`{match['name']}`"
        return format_number(self.values[match["name"]], match["format"] or "")


def macros(checkout: Checkout) -> dict[str, str]:
    """The macros of the book's formulas, by name, from the configuration of its MathJax."""
    import yaml

    config = yaml.safe_load((checkout.root / "_config.yml").read_text(encoding="utf-8"))
    mathjax = config["sphinx"]["config"].get("mathjax3_config", {})
    return mathjax.get("tex", {}).get("macros", {})


def for_jupyter(
    notebook: NotebookNode, checkout: Checkout, values: Mapping[str, Any] | None = None
) -> NotebookNode:
    """A copy that reads and runs outside the book, with every figure's caption below it.

    The numbers of its text are `values`, or those that the notebook itself has stored.
    """
    import nbformat

    values = glued_values(notebook) if values is None else values
    names = references(checkout)
    plain = PlainMarkdown(macros(checkout), values, names)
    notebook = copy.deepcopy(notebook)
    notebook.metadata["kernelspec"] = dict(SPECIFICATION)
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        if cell.cell_type == "markdown":
            cell.source = plain(cell.source)
        figure = cell.metadata.get("mystnb", {}).get("figure", {})
        if "caption" in figure:
            name = names.get(figure["name"], figure["name"])
            caption = f"*{name}*: {plain(figure['caption'])}"
            cells.append(nbformat.v4.new_markdown_cell(caption, id=f"{cell.id}-caption"))
    first = next((i for i, cell in enumerate(cells) if cell.cell_type == "code"), len(cells))
    install = install_code(checkout.root / "pyproject.toml", extras(notebook))
    cells.insert(first, nbformat.v4.new_code_cell(install, id="install"))
    notebook.cells = cells
    return notebook


def install_code(project: Path, extras: str) -> str:
    """Code that installs the package where it is missing, or says how, if no address is known.

    The address is `install-from` under `[tool.labelaudit]` in pyproject.toml: an address such as
    git+https://..., a wheel, a folder, or a name on a package index.
    """
    where = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["labelaudit"]["install-from"]
    if not where:
        return INSTALL + NOT_INSTALLED.format(extras=extras)
    package = f"labelaudit[{extras}] @ {where}" if "://" in where else f"{where}[{extras}]"
    return f"{INSTALL}%pip install --quiet '{package}'"


def extras(notebook: NotebookNode) -> str:
    """The extras of the package that a chapter's code needs, as pip takes them."""
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    return "notebook,train" if TRAINS.search(code) else "notebook"


def glued_values(notebook: NotebookNode) -> dict[str, Any]:
    """The values a chapter has glued, where it has been run."""
    values = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            name = output.get("metadata", {}).get("scrapbook", {}).get("name")
            if name:
                (literal,) = output["data"].values()
                values[name] = _value(literal)
    return values


def _value(literal: str) -> Any:
    try:
        return ast.literal_eval(literal)
    except ValueError:
        return float(literal)
