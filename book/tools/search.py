"""What the search page needs besides Sphinx's index: numbers of statements, text for excerpts.

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
# A statement of the book: its kind, anchor, number and title.
OWN_STATEMENT = re.compile(
    r'<div class="proof (?:\w+) admonition" id="([^"]*)">\s*<p class="admonition-title">'
    r'<span class="caption-number">(\w+) ([\d.]+)\s*</span>(.*?)</p>',
    re.DOTALL,
)
INDEX_OF_PAPER = "book/paper"
# What an excerpt shows in place of a formula's commands. Others show their name, or nothing.
SIGNS = {
    "eps": "ε", "eta": "η", "pi": "π", "mu": "μ", "rho": "ρ", "theta": "θ", "tau": "τ",  # noqa: RUF001
    "alpha": "α", "beta": "β", "delta": "δ", "lambda": "λ", "sigma": "σ", "varphi": "φ",
    "le": "≤", "ge": "≥", "ne": "≠", "in": "∈", "infty": "∞", "to": "→", "approx": "≈", "pm": "±",
    "sqrt": "√", "sum": "∑", "prod": "∏", "int": "∫", "cdot": "·", "dots": "…", "PP": "P",
    "lvert": "|", "rvert": "|", "mid": "|",
}  # fmt: skip
SILENT = {
    "left", "right", "bigl", "bigr", "Bigl", "Bigr", "quad", "qquad", "text", "mathrm", "mathbf",
    "operatorname", "displaystyle",
}  # fmt: skip
PART = r"\s*(\w|\\[A-Za-z]+|\{(?:[^{}]|\{[^{}]*\})*\})"
FRACTION = re.compile(rf"\\[dt]?frac{PART}{PART}")
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
    """For numbers such as "theorem 3.7" and "3.7": the paper's statement first, then the book's."""
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
                results_of.setdefault(number.lower(), list(results))
    for page, text in texts.items():
        for anchor, kind, number, title in OWN_STATEMENT.findall(text):
            about = f"{kind} {number} of this book: {_words(title)}"
            result = (page, _title(text), f"#{anchor}", about)
            for key in (f"{kind} {number}".lower(), number):
                results_of.setdefault(key, []).append(result)
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
    text = unescape(re.sub(r"<[^>]*>", "", html))
    return " ".join(re.sub(r"\\[(\[](.*?)\\[)\]]", _formula, text, flags=re.DOTALL).split())


def _formula(match: re.Match[str]) -> str:
    r"""A formula in letters and signs, as far as a line of plain text can show it.

    >>> _words(r"at most \((\min\{\eta, 1-\eta\} - \pi)^{+}\), \(\tfrac12 \le \frac{a}{b}\)")
    'at most (min{η, 1-η} - π)^+, 1/2 ≤ a/b'
    """
    text = FRACTION.sub(_fraction, FRACTION.sub(_fraction, match[1]))
    text = re.sub(r"\\(begin|end|label)\{[^{}]*\}", " ", text)
    text = re.sub(r"\\([A-Za-z]+)", _sign, text)
    text = re.sub(r"\\([{}])|[{}&]", lambda brace: brace[1] or "", text)
    return re.sub(r"\\.|\\", " ", text)


def _sign(command: re.Match[str]) -> str:
    return "" if command[1] in SILENT else SIGNS.get(command[1], command[1])


def _fraction(match: re.Match[str]) -> str:
    return f"{match[1]}/{match[2]}"
