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

from book.tools.checkout import Checkout

if TYPE_CHECKING:
    from nbformat import NotebookNode

SOLUTION = re.compile(
    r"^(`{3,})\{solution-start\}.*?^(`{3,})\{solution-end\}|^(`{3,})\{solution\}.*?^\3\s*?$\n?",
    re.MULTILINE | re.DOTALL,
)

KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}

# A directive, or a block of code, which stays as it is.
FENCE = re.compile(
    r"^(?P<ticks>`{3,}|:{3,})(?:\{(?P<kind>[\w:-]+)\})?[ ]*(?P<title>[^\n`]*)\n"
    r"(?P<options>(?::[\w-]+:[^\n]*\n)*)(?P<body>.*?)^(?P=ticks)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
DISPLAY = re.compile(r"\$\$(?P<formula>.+?)\$\$[ \t]*\((?P<label>[\w-]+)\)", re.DOTALL)
FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$]+\$", re.DOTALL)
GLUED = re.compile(r"\{glue:text\}`(?P<name>[\w-]+)(?::(?P<format>[^`]*))?`")


@dataclass(frozen=True)
class Plain:
    """Turns MyST into ordinary Markdown, with the book's macros and the numbers of one run.

    >>> print(Plain()("```{exercise} Two people\\n:label: ex-two\\nCompute.\\n```"))
    > **Exercise: Two people** (*ex-two*)
    >
    > Compute.
    >>> Plain()("See {doc}`02_additive_advantage` and {ref}`the end <sec-end>`.")
    'See *02_additive_advantage* and the end.'
    >>> Plain({"eps": r"\\varepsilon"}, {"share": 0.25})("at $\\\\eps$ {glue:text}`share:.1%`")
    'at $\\\\varepsilon$ 25.0%'
    """

    macros: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, source: str) -> str:
        """The text of a cell; a block is set off by blank lines, whatever stood around it."""
        parts, start = [], 0
        for found in FENCE.finditer(source):
            block = self._box(found) if found["kind"] else found[0]
            parts += [self._prose(source[start : found.start()]), block]
            start = found.end()
        parts.append(self._prose(source[start:]))
        return "\n\n".join(part.strip("\n") for part in parts if part.strip())

    def _box(self, found: re.Match[str]) -> str:
        kind = found["kind"].removeprefix("prf:").removesuffix("-start")
        body = self(found["body"])
        if kind == "solution-end":
            return ""
        if kind == "math":
            return f"$$\n{body}\n$$"
        title = self._prose(found["title"]).strip()
        if kind != "admonition":
            title = f"{kind.capitalize()}: {title}" if title else kind.capitalize()
        label = re.search(r"^:label: *(\S+)", found["options"], re.MULTILINE)
        heading = f"**{title}**" + (f" (*{label[1]}*)" if label and kind != "solution" else "")
        # Jupyter takes formulas out before it reads quotations, marks at line starts included.
        body = FORMULA.sub(lambda formula: " ".join(formula[0].split()), body)
        return "\n".join(f"> {line}".rstrip() for line in [heading, "", *body.splitlines()])

    def _prose(self, text: str) -> str:
        text = re.sub(r"^\([\w-]+\)=\n", "", text, flags=re.MULTILINE)
        text = DISPLAY.sub(r"$$\g<formula>\\tag{\g<label>}$$", text)
        text = re.sub(r"\[([^][]+)\]\{[.#][A-Za-z][^}]*\}", r"`\1`", text)
        text = GLUED.sub(self._number, text)
        text = re.sub(r"\{cite(?::\w+)?\}`([^`]+)`", r"[\1]", text)
        text = re.sub(r"\{download\}`([^<`]+?)\s*<(?:[^>]*/)?([^>/]*)>`", r"\1 `\2`", text)
        text = re.sub(r"\{[\w:]+\}`([^<`]+?)\s*<[^>]*>`", r"\1", text)
        text = re.sub(r"\{[\w:]+\}`([^`]+)`", r"*\1*", text)
        for name, meaning in self.macros.items():
            text = re.sub(rf"\\{name}(?![A-Za-z])", meaning.replace("\\", r"\\"), text)
        return text

    def _number(self, found: re.Match[str]) -> str:
        if found["name"] not in self.values:
            return f"`{found['name']}`"
        return format(self.values[found["name"]], found["format"] or "")


def macros(checkout: Checkout) -> dict[str, str]:
    """The macros of the book's formulas, by name, from the configuration of its MathJax."""
    import yaml

    config = yaml.safe_load((checkout.root / "_config.yml").read_text(encoding="utf-8"))
    mathjax = config["sphinx"]["config"].get("mathjax3_config", {})
    return mathjax.get("tex", {}).get("macros", {})


def for_jupyter(notebook: NotebookNode, checkout: Checkout) -> NotebookNode:
    """A copy that reads and runs outside the book, with every figure's caption below it."""
    import nbformat

    plain = Plain(macros(checkout), _stored(notebook))
    notebook = copy.deepcopy(notebook)
    notebook.metadata["kernelspec"] = dict(KERNEL)
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        if cell.cell_type == "markdown":
            cell.source = plain(cell.source)
        figure = cell.metadata.get("mystnb", {}).get("figure", {})
        if "caption" in figure:
            caption = f"*{figure['name']}*: {plain(figure['caption'])}"
            cells.append(nbformat.v4.new_markdown_cell(caption, id=f"{cell.id}-caption"))
    notebook.cells = cells
    add_install_cell(notebook, checkout.root / "pyproject.toml")
    return notebook


def _stored(notebook: NotebookNode) -> dict[str, Any]:
    """The values a chapter has glued, where it has been run."""
    found = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            name = output.get("metadata", {}).get("scrapbook", {}).get("name")
            if name:
                (literal,) = output["data"].values()
                found[name] = _value(literal)
    return found


def _value(literal: str) -> Any:
    try:
        return ast.literal_eval(literal)
    except ValueError:
        return float(literal)


CELL = """\
# In the book's own environment this does nothing; anywhere else it installs what the page needs.
import importlib.util
import subprocess
import sys

install_from = {where!r}
if importlib.util.find_spec("labelaudit") is None:
    if not install_from:
        raise ModuleNotFoundError(
            "the package labelaudit is not installed, and this notebook does not know where to get"
            " it: set install_from above to a folder, a wheel or an address, as in"
            " '/path/to/checkout[{extras}]' or 'labelaudit[{extras}] @ git+https://...'"
        )
    subprocess.check_call([sys.executable, "-m", "pip", "install", "--quiet", install_from])
    importlib.invalidate_caches()"""
# Chapters that name one of these need torch and what goes with it; the others do without.
TRAINS = re.compile(r"\b(?:learning|report|torch|sklearn)\b")


def add_install_cell(notebook: NotebookNode, project: Path) -> None:
    """Put it before the first code cell.

    Where from is one setting: `install-from` under `[tool.labelaudit]` in pyproject.toml.
    """
    import nbformat

    settings = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["labelaudit"]
    wanted = extras(notebook)
    where = requirement(settings["install-from"], wanted)
    cell = nbformat.v4.new_code_cell(CELL.format(where=where, extras=wanted), id="install")
    kinds = [cell.cell_type for cell in notebook.cells]
    notebook.cells.insert(kinds.index("code") if "code" in kinds else len(kinds), cell)


def extras(notebook: NotebookNode) -> str:
    """The extras of the package that a chapter's code needs, as pip takes them."""
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    imports = re.findall(r"^(?:from|import) [^\n]*", "\n".join(code), re.MULTILINE)
    return "notebook,train" if any(map(TRAINS.search, imports)) else "notebook"


def requirement(where: str, extras: str) -> str:
    """What pip installs: an address, a folder, a wheel or a name, with the extras; or nothing.

    >>> requirement("git+https://example.org/book.git", "notebook")
    'labelaudit[notebook] @ git+https://example.org/book.git'
    >>> requirement("wheels/labelaudit-0.1.0-py3-none-any.whl", "notebook,train")
    'wheels/labelaudit-0.1.0-py3-none-any.whl[notebook,train]'
    """
    if not where:
        return ""
    return f"labelaudit[{extras}] @ {where}" if "://" in where else f"{where}[{extras}]"
