"""The book's own Sphinx extension: badges, docstrings, folded proofs, references of a lone page.

Docstrings are plain text: bars mean absolute values, and single backticks mean code. To
reStructuredText a bar opens a substitution, so bars are escaped; `default_role` in `_config.yml`
turns a backtick into code.

The page of a reader's own run holds one chapter. Where the book has been built, its references to
other chapters become links into the book, under the numbers they have there. Where it has not, they
become these numbers, counted in the chapters' texts.
"""

from __future__ import annotations

import posixpath
import re
from html import unescape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxRole

from book import ledger
from book.chapters.number_format import format_glue
from book.tools.checkout import Checkout
from book.tools.module_map import ModuleMap
from book.tools.references import references

KINDS = {
    "con": "conjecture",
    "cor": "corollary",
    "def": "definition",
    "ex": "exercise",
    "fig": "figure",
    "lem": "lemma",
    "prop": "proposition",
    "rem": "remark",
    "thm": "theorem",
}

# From a run's folder, `_build/runs/<run>/`, to the site, `_build/html/`.
SITE = "../../html"


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx; `book_site` names the built book on the page of a reader's run."""
    app.setup_extension("sphinx.ext.autodoc")
    _write_numbers_honestly()
    app.add_config_value("book_site", "", "env")
    app.add_directive("module-map", ModuleMap)
    app.add_role("verdict", VerdictRole())
    app.connect("missing-reference", resolve)
    app.connect("autodoc-process-docstring", escape)
    app.connect("html-page-context", plain_citations)
    app.connect("doctree-resolved", fold_proofs)
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


def resolve(app: Any, env: Any, node: Any, content: nodes.Element) -> nodes.Node | None:
    """Turn a reference that a lone page cannot resolve into a link to the book, or into text."""
    if not app.config.book_site:
        return None
    target = node["reftarget"]
    site = Path(app.config.book_site)
    page = ""
    if node.get("reftype") == "doc":
        page = posixpath.normpath(posixpath.join(posixpath.dirname(node["refdoc"]), target))
        address, name = find_page(site, page)
    else:
        address, name = find_label(site, target)
    if not address:
        named = references(Checkout(site.parents[1]))
        name = named.get(posixpath.basename(page or target), name)
    text = content.astext() if node.get("refexplicit") else name
    if not address:
        return nodes.inline(text, text)
    return nodes.reference(text, text, internal=False, refuri=f"{SITE}/{address}")


def find_page(site: Path, page: str) -> tuple[str, str]:
    """A page's address in the site and its title; no address where there is no such page."""
    file = site / f"{page}.html"
    if not file.is_file():
        return "", _words(posixpath.basename(page))
    # The print header holds an <h1> too, without a link of its own.
    heading = re.compile(r'<h1>((?:(?!</h1>).)*?)<a class="headerlink"', re.DOTALL)
    title = heading.search(file.read_text("utf-8"))
    return f"{page}.html", _text(title[1]) if title else _words(posixpath.basename(page))


def chapter_number(site: Path, chapter: str) -> int:
    """The number a chapter has in the built book, or else that of its name; 0 where it has none."""
    file = site / "notebooks" / f"{chapter}.html"
    html = file.read_text(encoding="utf-8") if file.is_file() else ""
    number = re.search(r'<h1><span class="section-number">(\d+)\.', html)
    if number is None:
        number = re.match(r"(\d+)", chapter)
    return int(number[1]) if number else 0


def find_label(site: Path, label: str) -> tuple[str, str]:
    """A label's address in the site, and the number or heading it goes by there."""
    anchor = re.compile(rf'id="{re.escape(label.lower().replace("_", "-"))}"', re.IGNORECASE)
    for file in sorted(site.rglob("*.html")):
        html = file.read_text(encoding="utf-8")
        label_match = anchor.search(html)
        if label_match:
            named = re.compile(
                r'<span class="caption-number">(.*?)</span>|<h\d>(.*?)<a class="headerlink"',
                re.DOTALL,
            ).search(html, label_match.end())
            name = _text(named[1] or named[2]) if named else _words(label)
            return f"{file.relative_to(site).as_posix()}#{label_match[0][4:-1]}", name
    return "", _words(label)


def _words(name: str) -> str:
    """A label or a chapter's id in words, where the book's number for it is not known.

    >>> _words("thm-response-half"), _words("09_learning"), _words("ledger")
    ('theorem "response half"', 'chapter 9', 'ledger')
    """
    kind, *rest = re.split("[-_]", name)
    if kind.isdigit():
        return f"chapter {int(kind)}"
    words = " ".join(rest)
    return f'{KINDS[kind]} "{words}"' if kind in KINDS else f"{kind} {words}".strip()


def _text(html: str) -> str:
    html = re.sub(r'<span class="section-number">.*?</span>', "", html)
    return " ".join(unescape(re.sub(r"<[^>]*>", "", html)).split())
