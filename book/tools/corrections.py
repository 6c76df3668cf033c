"""What is corrected on every page that Sphinx has written."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

# Patterns and replacements.
CORRECTIONS = {
    # The theme loads its icons as a style sheet with fonts and once more as a script of 1.5 MB,
    # and asks for all three fonts ahead of time, of which pages use one.
    r"<script[^>]*/fontawesome/[^>]*></script>\s*": "",
    r'<link[^>]*rel="preload"[^>]*/fa-(?:brands|regular)-[^>]*>\s*': "",
    # A line would break between a formula and the bracket or full stop that touches it.
    r'([^\s<>&;]{0,3})(<span class="math [^>]*>\\\([^<]*\\\)</span>)([^\s<&]{1,12})': (
        r'<span class="unbroken">\1\2\3</span>'
    ),
    # Numbers from the run are bold; a list of them, or of names, is easier to read plain.
    r'<span class="pasted-text">(?=[^<]{24})': '<span class="pasted-text plain">',
    # Powers of ten as people write them.
    r'(<td>|<span class="pasted-text">)(-?[\d.]+)e-0*(\d+)(?=<)': (
        r"\1\2&#8239;&times;&#8239;10<sup>&minus;\3</sup>"
    ),
    r'(<td>|<span class="pasted-text">)(-?[\d.]+)e\+0*(\d+)(?=<)': (
        r"\1\2&#8239;&times;&#8239;10<sup>\3</sup>"
    ),
    # The page at the root only leads on, and a browser would ask for an icon that does not exist.
    r'\A\s*(?=<meta http-equiv="Refresh")': '<link rel="icon" href="_static/favicon.svg">\n',
    # A figure of several panels is small on a phone; a link to it alone lets a reader enlarge it.
    r'(<figure [^>]*>\s*)(<img [^>]*src="(?!data:)([^"]+)"[^>]*>)': (
        r'\1<a class="image-reference" href="\3">\2</a>'
    ),
}
FIGURE = re.compile(
    r'(?P<before><figure [^>]*id="fig-(?P<name>[\w-]+)"[^>]*>\s*<img [^>]*src=")'
    r'(?P<folder>(?:\.\./)*_images/)(?P<file>[^"/]+)(?P<suffix>\.\w+)"'
)
WIDTH = re.compile(r'<svg[^>]*? width="([\d.]+)(pt)?"')
# Three quarters of this are the column of a phone.
ON_A_PHONE = 460
DATAFRAME = re.compile(r'<table border="1" class="dataframe">.*?</table>', re.DOTALL)
LONG_NAME = re.compile(r"<th((?: (?:rowspan|valign)=\"[^\"]*\")*)>([^<]{19,})</th>")
INDEX = re.compile(r"(<tr[^>]*>\s*)<th>([^<]*)</th>\s*")


def correct_pages(html: Path) -> None:
    """Correct all pages of a folder, in place, and name the figures by their labels."""
    renamed: set[Path] = set()
    for page in html.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        text = FIGURE.sub(lambda figure: _named(figure, html / "_images", renamed), text)
        text = DATAFRAME.sub(lambda table: readable_table(table[0]), text)
        for pattern, replacement in CORRECTIONS.items():
            text = re.sub(pattern, replacement, text)
        page.write_text(text, encoding="utf-8")
    for picture in renamed:
        picture.unlink()
    for picture in (html / "_images").glob("*.svg"):
        source = json.dumps(picture.read_text(encoding="utf-8"))
        picture.with_suffix(".svg.js").write_text(f"figureSource({source});", encoding="utf-8")
    for script in html.glob("_static/vendor/fontawesome/*/js"):
        shutil.rmtree(script)


def _named(figure: re.Match[str], images: Path, renamed: set[Path]) -> str:
    """A figure whose file has the name of its label, so that a saved copy says what it is."""
    old = images / (figure["file"] + figure["suffix"])
    new = images / (figure["name"] + figure["suffix"])
    if old != new and old.is_file():
        shutil.copyfile(old, new)
        renamed.add(old)
    return f'{figure["before"]}{figure["folder"]}{new.name}"{_natural_width(new)}'


def _natural_width(picture: Path) -> str:
    """The attribute that tells the style sheet how wide a drawing is, if it is wider than a phone.

    A drawing of matplotlib is measured in points, a page in pixels, and so are drawings by hand.
    """
    if picture.suffix != ".svg" or not picture.is_file():
        return ""
    width = WIDTH.search(picture.read_text(encoding="utf-8"))
    pixels = float(width[1]) * (4 / 3 if width[2] else 1) if width else 0.0
    return f' style="--natural: {pixels:.0f}px"' if pixels > ON_A_PHONE else ""


def readable_table(html: str) -> str:
    """A table of pandas without the numbers of its rows, where they mean nothing, and with ∞.

    Long names of rows are marked, so that a phone gives them more than one word in a line.

    >>> rows = "<tr><th>0</th><td>inf</td></tr><tr><th>1</th><td>2.0</td></tr>"
    >>> readable_table(f"<thead><tr><th></th><th>a</th></tr></thead><tbody>{rows}</tbody>")
    '<thead><tr><th>a</th></tr></thead><tbody><tr><td>∞</td></tr><tr><td>2.0</td></tr></tbody>'
    """
    html = re.sub(r"<td>(-?)inf</td>", r"<td>\1∞</td>", html)
    head, body, rest = html.partition("<tbody>")
    rest = LONG_NAME.sub(r'<th\1 class="long">\2</th>', rest)
    named = [name for _, name in INDEX.findall(rest)]
    one_empty_corner = [name for _, name in INDEX.findall(head)] == [""]
    if not one_empty_corner or named != [str(number) for number in range(len(named))]:
        return head + body + rest
    return INDEX.sub(r"\1", head) + body + INDEX.sub(r"\1", rest)
