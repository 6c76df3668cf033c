"""The directive `module-map`: the Python files of a folder, with the first sentence of each."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

from book.tools.checkout import find_checkout


class ModuleMap(Directive):  # type: ignore[misc]
    """List the files of the folders that are named, so that the page cannot fall behind them."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """One list item for each file that has more than an empty docstring."""
        root = find_checkout().package.parent
        files = [
            file
            for folder in self.arguments[0].split()
            for file in sorted(Path(root, folder).glob("*.py"))
        ]
        if not files:
            raise self.error(f"there is no Python file in {self.arguments[0]}")
        items = nodes.bullet_list()
        for file in files:
            sentence = first_sentence(file.read_text(encoding="utf-8"))
            if sentence:
                name = file.relative_to(root).as_posix()
                entry = nodes.paragraph("", "", nodes.literal(text=name), nodes.Text(": "))
                entry += with_code(sentence)
                items += nodes.list_item("", entry)
        return [items]


def first_sentence(source: str) -> str:
    """The first sentence of a module's docstring, or "" where there is none.

    >>> first_sentence('"Attack a bag. Then more."')
    'Attack a bag.'
    """
    text = " ".join((ast.get_docstring(ast.parse(source)) or "").split("\n\n")[0].split())
    sentence, stop, _ = text.partition(". ")
    return sentence + stop.strip()


def with_code(text: str) -> list[Any]:
    """Text nodes, with code where the text has backticks.

    >>> [node.astext() for node in with_code("calls `train` once")]
    ['calls ', 'train', ' once']
    """
    parts = text.split("`")
    return [
        nodes.literal(text=part) if index % 2 else nodes.Text(part)
        for index, part in enumerate(parts)
        if part
    ]
