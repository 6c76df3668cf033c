"""The book's own Sphinx extension: badges, docstrings, folded proofs, the page of a reader's run.

Docstrings are plain text: bars mean absolute values, and single backticks mean code. To
reStructuredText a bar opens a substitution, so bars are escaped; `default_role` in `_config.yml`
turns a backtick into code.

A reader's own run takes the place of its chapter in the environment that the book's build has left,
and its page is written alone.
"""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxRole

from book import ledger
from book.chapters.number_format import format_glue
from book.tools.module_map import ModuleMap
from book.tools.search import add_entries

# From a run's folder, `_build/runs/<run>/`, to the site, `_build/html/`.
SITE = "../../html"


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx; the two values of the configuration are for the page of a run."""
    app.setup_extension("sphinx.ext.autodoc")
    _write_numbers_honestly()
    app.add_config_value("run_notebook", "", "")
    app.add_config_value("names_of_references", {}, "")
    app.add_directive("module-map", ModuleMap)
    app.add_role("verdict", VerdictRole())
    app.connect("builder-inited", write_one_page)
    app.connect("missing-reference", name_reference)
    app.connect("autodoc-process-docstring", escape)
    app.connect("html-page-context", plain_citations)
    app.connect("doctree-resolved", fold_proofs)
    app.connect("doctree-resolved", add_entries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class VerdictRole(SphinxRole):
    """The badge of a statement, in the colour of its verdict, as the ledger's table declares it.

    No check runs here. The ledger's page fails its build where a check finds another verdict.
    """

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """A badge; an unknown statement is an error."""
        try:
            text = ledger.badge(self.text)
        except ValueError as unknown:
            return [], [self.inliner.reporter.error(str(unknown), line=self.lineno)]
        classes = ["verdict", f"verdict-{text.split()[-1]}"]
        return [nodes.inline(self.rawtext, text, classes=classes)], []


def _write_numbers_honestly() -> None:
    """Let glued numbers in prose and captions never be rounded to 0 or 1."""
    from myst_nb.ext.glue import crossref, roles

    roles.format_plain_text = crossref.format_plain_text = format_glue


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


def fold_proofs(app: Any, tree: nodes.document, page: str) -> None:
    """Fold every proof, so that statements and checks can be read without it."""
    proofs = [node for node in tree.findall(nodes.Element) if node.tagname == "proof_node"]
    for proof in proofs:
        position = proof.parent.index(proof)
        opening = '<details class="folded-proof"><summary>The proof</summary>'
        proof.parent.insert(position, nodes.raw("", opening, format="html"))
        proof.parent.insert(position + 2, nodes.raw("", "</details>", format="html"))


def write_one_page(app: Any) -> None:
    """Let the notebook of a reader's run stand for its chapter, whose links lead into the book."""
    notebook = Path(app.config.run_notebook)
    page = f"notebooks/{notebook.stem}"

    def replace_source(app: Any, name: str, source: list[str]) -> None:
        if name == page:
            source[0] = notebook.read_text(encoding="utf-8")

    def address(from_page: str, to_page: str, kind: str | None = None) -> str:
        return "" if from_page == to_page else f"{SITE}/{app.builder.get_target_uri(to_page)}"

    if app.config.run_notebook:
        app.connect("env-get-outdated", lambda *_: [page])
        app.connect("source-read", replace_source)
        app.builder.get_outdated_docs = lambda: [page]
        app.builder.get_relative_uri = address


def name_reference(app: Any, env: Any, node: Any, content: nodes.Element) -> nodes.Node | None:
    """Where the book was never built, let a reference read as what it refers to."""
    names = app.config.names_of_references
    if not names:
        return None
    target = posixpath.basename(node["reftarget"])
    text = content.astext() if node.get("refexplicit") else names.get(target, target)
    return nodes.inline(text, text)
