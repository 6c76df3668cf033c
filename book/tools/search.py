"""What the search page needs besides Sphinx's index: the paper's numbers, and text for excerpts.

Sphinx's index knows no number such as 3.7, and reads excerpts from the pages themselves, which
browsers do not allow from a disk.
"""

from __future__ import annotations

import json
import posixpath
import re
from html import unescape
from pathlib import Path

STATEMENT = re.compile(
    r"(Theorem|Lemma|Definition|Proposition|Remark|Figure|Section)s? ([A-D]?\d*\.?\d+)"
)
INDEX_OF_PAPER = "book/paper"
SCRIPTS = '<script src="_static/search-data.js"></script><script src="_static/search.js"></script>'

# A result: the page, its title, the anchor, and what is found there.
Result = tuple[str, str, str, str]


def add_to_search(html: Path) -> None:
    """Write the data beside the site's scripts, and load both on the search page."""
    page = html / "search.html"
    script = html / "_static" / "search.js"
    if not page.is_file() or not script.is_file():
        return
    names = sorted(
        path.relative_to(html).with_suffix("").as_posix() for path in html.glob("*/*.html")
    )
    texts = {name: (html / f"{name}.html").read_text(encoding="utf-8") for name in names}
    data = {
        "statements": statements(texts) if INDEX_OF_PAPER in texts else {},
        "pages": {name: plain_text(text) for name, text in texts.items()},
    }
    content = f"window.BOOK_SEARCH = {json.dumps(data, ensure_ascii=False)};\n"
    (html / "_static" / "search-data.js").write_text(content, encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    index = '<script src="searchindex.js"></script>'
    page.write_text(text.replace(index, index + SCRIPTS), encoding="utf-8")


def statements(texts: dict[str, str]) -> dict[str, list[Result]]:
    """For each number of the paper, such as "theorem 3.7" and "3.7", where the book treats it."""
    results_of: dict[str, list[Result]] = {}
    for row in re.findall(r"<tr[^>]*>(.*?)</tr>", texts[INDEX_OF_PAPER], re.DOTALL):
        cells = re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)
        if len(cells) != 3:
            continue
        about = _words(cells[1])
        for kind, number in STATEMENT.findall(_words(cells[0])):
            named = f"the paper's {kind} {number}: {about}"
            results = [
                (page, _title(texts[page]), anchor, named)
                for page, anchor in _targets(cells[2])
                if page in texts
            ]
            results.append((INDEX_OF_PAPER, _title(texts[INDEX_OF_PAPER]), "", named))
            results_of.setdefault(f"{kind} {number}".lower(), results)
            if "." in number:
                results_of.setdefault(number.lower(), results)
    return results_of


def plain_text(html: str) -> str:
    """The words of a page's article, without its code.

    >>> plain_text('<p>no</p><article class="a"><h1>A<a class="headerlink">#</a></h1> b</article>')
    'A b'
    """
    article = re.search(r"<article[^>]*>(.*?)</article>", html, re.DOTALL)
    if article is None:
        return ""
    text = re.sub(r'<a class="headerlink".*?</a>', "", article[1], flags=re.DOTALL)
    text = re.sub(r"<(script|style|svg|pre|summary)\b.*?</\1>", "", text, flags=re.DOTALL)
    text = re.sub(r"</(?:p|li|dt|dd|div|h\d|td|th|figcaption)>", " ", text)
    return _words(text)


def _targets(cell: str) -> list[tuple[str, str]]:
    """The pages and anchors that a cell of the paper's index links to, a page once."""
    pages: dict[str, str] = {}
    for path, anchor in re.findall(r'href="([^"#]*?)\.html(#[^"]*)?"', cell):
        page = posixpath.normpath(posixpath.join(posixpath.dirname(INDEX_OF_PAPER), path))
        pages.setdefault(page, anchor)
    return list(pages.items())


def _title(html: str) -> str:
    title = re.search(r"<title>(.*?)(?: &#8212;.*?)?</title>", html, re.DOTALL)
    return _words(title[1]) if title else ""


def _words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", "", html)).replace("\\", "").split())
