"""The cell that lets a notebook run where the package is not installed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import nbformat

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


def add_install_cell(notebook: nbformat.NotebookNode, project: Path) -> None:
    """Put it before the first code cell.

    Where from is one setting: `install-from` under `[tool.labelaudit]` in pyproject.toml.
    """
    settings = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["labelaudit"]
    wanted = extras(notebook)
    where = requirement(settings["install-from"], wanted)
    cell = nbformat.v4.new_code_cell(CELL.format(where=where, extras=wanted), id="install")
    kinds = [cell.cell_type for cell in notebook.cells]
    notebook.cells.insert(kinds.index("code") if "code" in kinds else len(kinds), cell)


def extras(notebook: nbformat.NotebookNode) -> str:
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
