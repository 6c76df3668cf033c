"""Merge the pages of the built site into one HTML page, to be printed.

Anchors get the name of their page in front. A link to another page of the book becomes a
link inside the document; a link to a file of the site, which paper cannot follow, becomes text.
Solutions go to the end of their chapter.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString, PageElement

HEADINGS = re.compile(r"^h[1-6]$")
# What a page needs a browser for, or repeats on every page.
LEFT_OUT = (
    "script, noscript, link, style, button, .headerlink, .ledger-controls, .toggle-button, "
    ".toctree-wrapper, .sd-stretched-link"
)

NO_EXPLORER = "The explorer itself works in a browser, not on paper: open this page on the site."

STYLE = """
@page { size: A4; margin: 18mm 17mm;
  @bottom-center { content: counter(page); font: 9pt sans-serif; color: #48566b; } }
@page :first { @bottom-center { content: none; } }
html { font-size: 10.5pt; }
body { margin: 0; }
.bd-article { display: block; }
.bd-main .bd-content .bd-article h1 { display: block !important; }
.bd-article::after { display: none !important; }
.book-title { break-after: page; padding-top: 30vh; text-align: center; }
.book-title p { margin: 0 0 1em; }
.book-title .title { font-size: 2.6em; font-weight: 700; line-height: 1.2; }
.page-of-book { break-before: page; }
.bd-article details.ledger-proof > summary { display: block; font-style: italic; }
.run-this-chapter, .how-this-page-was-made { break-inside: avoid !important; }
/* Chromium breaks a box that could scroll on paper, but not in the columns of `paper.js`. */
.page-of-book :is(.admonition, .proof, .solution, details) { overflow: visible !important; }
.paper-broken { break-inside: auto !important; }
.paper-apart { break-after: auto !important; }
.how-this-page-was-made th:last-child { width: 29%; }
.paper-one-line :is(th, td), .paper-one-line-cells td { white-space: nowrap; }
.bd-main .bd-content table.paper-small { font-size: 0.84em; }
.bd-main .bd-content table.paper-small :is(th, td) { padding: 0.15em 0.35em; }
.paper-tight { line-height: 1.5; }
.bd-article.paper-tight p, .bd-article.paper-tight :is(ul, ol) { margin-bottom: 0.8em; }
.bd-article figure img { object-fit: contain; }
.code-line { display: block; padding-left: calc(var(--indent) + 4ch);
  text-indent: calc(-4ch - var(--indent)); }
.book-contents { columns: 2; column-gap: 2.5em; font-size: 0.86em; }
.book-contents p, .book-contents li { margin: 0; line-height: 1.45; }
.book-contents ol { list-style: none; margin: 0 0 0.5em; padding: 0; break-before: avoid; }
.book-contents .part { font-weight: 700; margin: 1em 0 0.3em; break-after: avoid; }
.book-contents a { display: flex; gap: 0.6em; justify-content: space-between;
  color: inherit !important; text-decoration: none; }
.book-contents .chapter { font-weight: 600; }
.book-contents li a { padding-left: 1.1em; }
.book-contents .number { min-width: 2.2em; text-align: right; }
"""


@dataclass
class Merged:
    """The merged book: its head, the articles, and the headings in their order."""

    title: str
    author: str
    version: str
    head: str
    body: str
    # For each part its caption and its headings of the first two levels: level, text, anchor, and
    # the index of the heading in `headings`.
    contents: list[tuple[str, list[tuple[int, str, str, int]]]]
    headings: list[tuple[int, str]]
    dangling: set[str] = field(default_factory=set)

    def html(self, numbers: Sequence[int]) -> str:
        """The page to print; `numbers` are the pages of the headings, if they are known."""
        return (
            f'<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
            f"<title>{escape(self.title)}</title>{self.head}<style>{STYLE}</style></head><body>"
            f'<main class="bd-main"><div class="bd-content"><div class="bd-article-container">'
            f'<div class="book-title"><p class="title">{escape(self.title)}</p>'
            f"<p>{escape(self.author)}</p><p>version {escape(self.version)}</p></div>"
            f'<article class="bd-article page-of-book"><h1 id="contents">Contents</h1>'
            f'<nav class="book-contents">{self._contents(numbers)}</nav></article>{self.body}'
            "</div></div></main></body></html>"
        )

    def _contents(self, numbers: Sequence[int]) -> str:
        lines = []
        for caption, entries in self.contents:
            if caption:
                lines.append(f'<p class="part">{escape(caption)}</p>')
            for level, text, anchor, index in entries:
                # The first copy reserves the width that a number will take.
                number = numbers[index] if numbers else 888
                link = (
                    f'<a href="#{anchor}"><span>{escape(text)}</span>'
                    f'<span class="number">{number}</span></a>'
                )
                lines.append(
                    f'<p class="chapter">{link}</p>' if level == 1 else f"<ol><li>{link}</li></ol>"
                )
        return "".join(lines).replace("</ol><ol>", "")


def merge(
    site: Path, parts: Sequence[tuple[str, Sequence[str]]], title: str, author: str, version: str
) -> Merged:
    """Merge the pages of a site, in the order of its parts."""
    names = [name for _, pages in parts for name in pages]
    soups = {name: _read(site / f"{name}.html") for name in names}
    anchors: set[str] = {"contents"}
    articles = {name: _article(soups[name], name, names, anchors) for name in names}
    contents, headings = [], [(1, "Contents")]
    for caption, pages in parts:
        entries = []
        for name in pages:
            for heading in articles[name].find_all(HEADINGS):
                level, text = int(heading.name[1]), heading_text(heading)
                if level <= 2:
                    entries.append((level, text, _anchor(heading), len(headings)))
                headings.append((level, text))
        contents.append((caption, entries))
    links = {
        str(link["href"])[1:]
        for article in articles.values()
        for link in article.find_all("a", href=re.compile("^#"))
    }
    body = "".join(str(article) for article in articles.values())
    head = _head(list(soups.values()), names)
    return Merged(title, author, version, head, body, contents, headings, links - anchors)


def heading_text(heading: Tag) -> str:
    """The words of a heading in one line."""
    return " ".join(heading.get_text().split())


def _read(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def _head(soups: Sequence[BeautifulSoup], names: Sequence[str]) -> str:
    """The style sheets of all pages, and MathJax with its settings if a page has formulas."""
    kept: dict[str, None] = {}
    for soup, name in zip(soups, names, strict=True):
        for element in soup.select("link[rel=stylesheet], script"):
            attribute = "href" if element.name == "link" else "src"
            settings = "window.MathJax" in (element.string or "")
            script = element.name == "script" and "mathjax" not in str(element.get("src"))
            if script and not settings:
                continue
            if attribute in element.attrs:
                element[attribute] = _from_site(str(element[attribute]), name)
            kept.setdefault(str(element))
    return "".join(kept)


def _article(soup: BeautifulSoup, name: str, names: Sequence[str], anchors: set[str]) -> Tag:
    """The article of a page with its own anchors, its links turned inwards, solutions last."""
    article = soup.select_one("article.bd-article")
    if article is None:
        raise ValueError(f"{name} has no article")
    article.extract()
    article["class"] = "bd-article page-of-book"
    for element in article.select(LEFT_OUT):
        if not element.decomposed:
            element.decompose()
    for proof in article.select("details.folded-proof, details.ledger-proof"):
        proof["open"] = ""
    for explorer in article.select("#explorer"):
        explorer.clear()
        explorer.attrs = {"class": "admonition note"}
        explorer.string = NO_EXPLORER
    for cell in article.select(".cell.tag_hide-output:has(table.dataframe)"):
        # Prose refers to such a table. Folded verdicts are left out: the ledger has them all.
        for folded in cell.select("details.hide"):
            if folded.select_one("table.dataframe") is None:
                folded.decompose()
                continue
            for summary in folded.find_all("summary", recursive=False):
                summary.decompose()
            folded.unwrap()
    for code in article.select("pre:not(.tag_wrapped-output pre)"):
        _hang(soup, code)
    _solutions_last(soup, article)
    article["id"] = ""
    for element in article.find_all(id=True):
        _name_anchor(element, _inner(name, str(element["id"])), anchors)
    _name_anchor(article, _inner(name, ""), anchors)
    for link in article.select("figcaption a.download"):
        _drop(link)
    for link in article.find_all("a", href=True):
        _turn_inwards(link, name, names)
    for image in article.find_all("img", src=True):
        image["src"] = _from_site(str(image["src"]), name)
    return article


def _name_anchor(element: Tag, anchor: str, anchors: set[str]) -> None:
    """Give an element its anchor, unless an earlier one of the page has taken it."""
    if anchor in anchors:
        del element["id"]
    else:
        element["id"] = anchor
        anchors.add(anchor)


def _solutions_last(soup: BeautifulSoup, article: Tag) -> None:
    solutions = article.select("div.solution")
    section = article.find("section")
    if not solutions or not isinstance(section, Tag):
        return
    last = soup.new_tag("section")
    heading = soup.new_tag("h2", id="solutions-at-the-end")
    heading.string = "Solutions"
    last.append(heading)
    for solution in solutions:
        last.append(solution.extract())
    section.append(last)


def _hang(soup: BeautifulSoup, code: Tag) -> None:
    """Make each line of code a block of its own: the rest of a long line is then indented."""
    lines = [soup.new_tag("span")]
    for part in list(code.children):
        for piece in part.get_text().splitlines(keepends=True):
            copied: PageElement = NavigableString(piece)
            if isinstance(part, Tag):
                copied = soup.new_tag(part.name, string=piece)
                copied.attrs = dict(part.attrs)
            lines[-1].append(copied)
            if piece.endswith("\n"):
                lines.append(soup.new_tag("span"))
    code.clear()
    for line in lines:
        text = line.get_text()
        if text:
            line["class"] = "code-line"
            line["style"] = f"--indent: {len(text) - len(text.lstrip())}ch"
            code.append(line)


def _drop(link: Tag) -> None:
    """Remove a link that is a sentence, such as the offer of a figure's numbers."""
    before, after = link.previous_sibling, link.next_sibling
    alone = before is None or str(before).rstrip().endswith(".")
    if alone and isinstance(after, NavigableString) and after.startswith("."):
        after.replace_with(after[1:])
        link.decompose()


def _turn_inwards(link: Tag, name: str, names: Sequence[str]) -> None:
    """Point a link into the merged page; a link to another file of the site becomes its text."""
    address = str(link["href"])
    if urlsplit(address).scheme:
        link["class"] = "external"
        return
    path, anchor = urldefrag(address)
    target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
    target = target.removesuffix(".html")
    if target in names:
        link["href"] = f"#{_inner(target, unquote(anchor))}"
        return
    if "download" in link.get_attribute_list("class"):
        text, file = " ".join(link.get_text().split()), posixpath.basename(target)
        link.string = text if text == file else f"{text} ({file})"
    link.unwrap()


def _inner(name: str, anchor: str) -> str:
    """The anchor in the merged page of an anchor of a page; "" is the page itself.

    >>> _inner("notebooks/01_coin", "thm-heads"), _inner("book/index", "")
    ('notebooks-01_coin--thm-heads', 'book-index')
    """
    return f"{name.replace('/', '-')}--{anchor}".removesuffix("--")


def _from_site(address: str, name: str) -> str:
    """The address of a file of the site, seen from a folder beside the site."""
    if urlsplit(address).scheme:
        return address
    return posixpath.normpath(posixpath.join("../html", posixpath.dirname(name), address))


def _anchor(heading: Tag) -> str:
    """The anchor that leads to a heading: its own, or that of the section it opens."""
    holder: Any = heading if heading.get("id") else heading.find_parent(id=True)
    return str(holder["id"])
