"""Let autodoc read the package's docstrings as they are written, and mend a role of docutils'.

Docstrings are plain text: bars mean absolute values, and single backticks mean code. To
reStructuredText a bar opens a substitution; a backtick is turned into code by `default_role` in
`_config.yml`.
"""

from __future__ import annotations

from typing import Any


def setup(app: Any) -> dict[str, bool]:
    """Connect to autodoc and to the writer of pages."""
    app.connect("autodoc-process-docstring", escape)
    app.connect("html-page-context", plain_citations)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def escape(app: Any, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Escape what prose does not mean as markup; examples stay as they are.

    >>> text = ["P(|I| <= t)", ">>> a | b", "3", "", "|x|"]
    >>> escape(None, "", "", None, None, text)
    >>> text[0], text[1], text[-1]
    ('P(\\\\|I\\\\| <= t)', '>>> a | b', '\\\\|x\\\\|')
    """
    in_example = False
    for number, line in enumerate(lines):
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        if not in_example:
            lines[number] = line.replace("|", "\\|")


def plain_citations(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Drop the list role from the bibliography: its entries have a role that no list may hold."""
    if "body" in context:
        context["body"] = context["body"].replace(
            '<div role="list" class="citation-list">', "<div>"
        )
