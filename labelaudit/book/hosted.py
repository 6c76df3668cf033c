"""The cell that lets a notebook run where the package is not installed."""

from __future__ import annotations

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
    subprocess.check_call([sys.executable, "-m", "pip", "install", "--quiet", install_from])"""


def add_install_cell(notebook: nbformat.NotebookNode, project: Path) -> None:
    """Put it before the first code cell, hidden from the page.

    Where from is one setting: `install-from` under `[tool.labelaudit]` in pyproject.toml.
    """
    settings = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["labelaudit"]
    cell = nbformat.v4.new_code_cell(
        CELL.format(where=settings["install-from"]),
        id="install",
        metadata={"tags": ["remove-cell"]},
    )
    kinds = [cell.cell_type for cell in notebook.cells]
    notebook.cells.insert(kinds.index("code") if "code" in kinds else len(kinds), cell)
