"""The book as one PDF, made from a small site: outline, links, formulas, page numbers, tags."""

import argparse
import re
import shutil

import pytest
import yaml
from conftest import ROOT

from book.tools import pdf
from book.tools.checkout import Checkout
from book.tools.site import jupyter_book
from labelaudit.command_line import CommandError

pypdf = pytest.importorskip("pypdf")
pytestmark = pytest.mark.browser

CONFIG = {
    "title": "A small book",
    "author": "A. Writer",
    "only_build_toc_files": True,
    "execute": {"execute_notebooks": "off"},
    "parse": {"myst_enable_extensions": ["amsmath", "dollarmath"]},
    "sphinx": {
        "extra_extensions": ["sphinx_proof", "sphinx_exercise"],
        "config": {
            "mathjax_path": "mathjax/tex-svg-full.js",
            "html_static_path": [str(ROOT / "book" / "_static")],
            "html_css_files": ["labelaudit.css"],
        },
    },
}
TOC = {
    "format": "jb-book",
    "root": "book/index",
    "parts": [
        {
            "caption": "Chapters",
            "numbered": True,
            "chapters": [{"file": "notebooks/01_coin"}, {"file": "notebooks/02_sum"}],
        },
        {"caption": "Functions", "chapters": [{"file": "book/api"}]},
    ],
}
LONG = "A heading so long that on paper it breaks into two lines, where Chromium may lose a space"
COIN = f"""# A coin

## Toss it

A share is $\\frac{{1}}{{k}} \\sum_i y_i$, see {{doc}}`02_sum` and [elsewhere](https://example.org).

```{{prf:theorem}} Large numbers
:label: large-numbers
It tends to $p$.
```

```{{exercise}} Heads
:label: ex-heads
How often?
```

```{{solution}} ex-heads
:label: sol-heads
:class: dropdown
Half of the time.
```

## {LONG}

The last words of the chapter.

```{{admonition}} Run this chapter
:class: tip run-this-chapter
labelbook run
```
"""
SUM = """# A sum

By {prf:ref}`large-numbers`, all is well; {download}`a file <02_sum.md>`, {doc}`../book/api`.

```{figure} dot.svg
:name: fig-dot

One dot, whose points are in {download}`a table <02_sum.md>`.
```

```{raw} html
<div class="cell tag_hide-output">
<details class="hide"><summary>Show</summary><p>Folded code</p></details>
<details class="hide"><summary></summary>
<table class="dataframe"><tr><td>Folded table</td></tr></table></details>
</div>
```
"""
DOT = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><circle r="9"/></svg>'


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    root = tmp_path_factory.mktemp("small")
    files = {
        "_config.yml": yaml.safe_dump(CONFIG),
        "_toc.yml": yaml.safe_dump(TOC, sort_keys=False),
        "book/index.md": "# Welcome\n\nTwo chapters: {doc}`../notebooks/01_coin`.\n",
        "book/api.md": "# Functions\n",
        "notebooks/01_coin.md": COIN,
        "notebooks/02_sum.md": SUM,
        "notebooks/dot.svg": DOT,
    }
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    built = jupyter_book(root, root / "work", strict=True)
    (root / "_build").mkdir()
    shutil.move(built, root / "_build" / "html")
    return Checkout(root)


@pytest.fixture(scope="module")
def printed(checkout, chromium):
    output = checkout.build / "small.pdf"
    sheets = pdf.write_pdf(checkout, output, chromium)
    reader = pypdf.PdfReader(output)
    assert len(reader.pages) == sheets
    return reader


@pytest.fixture(scope="module")
def texts(printed):
    return [" ".join(page.extract_text().split()) for page in printed.pages]


def outline(reader, items=None, level=1):
    """The bookmarks from top to bottom: level, title, and the page from 1."""
    for item in reader.outline if items is None else items:
        if isinstance(item, list):
            yield from outline(reader, item, level + 1)
        else:
            yield level, item.title, reader.get_destination_page_number(item) + 1


def test_parts_pages_and_sections_have_bookmarks(printed, texts):
    marks = list(outline(printed))
    assert [(level, title) for level, title, _ in marks] == [
        (1, "Welcome"),
        (1, "Chapters"),
        (2, "1. A coin"),
        (3, "1.1. Toss it"),
        (3, f"1.2. {LONG}"),
        (3, "Solutions"),
        (2, "2. A sum"),
    ]
    for _, title, page in marks[2:]:
        assert title in texts[page - 1]


def test_links_between_pages_lead_to_the_sheet_of_their_target(printed, texts):
    inside, outside = [], set()
    for number, page in enumerate(printed.pages):
        for annotation in page.get("/Annots", ()):
            link = annotation.get_object()
            if "/A" in link:
                outside.add(link["/A"]["/URI"])
            else:
                inside.append((number, printed.get_page_number(link["/Dest"][0].get_object())))
    assert outside == {"https://example.org/"}
    (coin,) = [number for number, text in enumerate(texts) if "1. A coin" in text]
    # From the landing page to the chapter, and from the second chapter back to its theorem.
    assert (0, coin) in inside and (len(texts) - 1, coin) in inside


def test_formulas_are_set_and_each_sheet_has_its_number(texts):
    for number, text in enumerate(texts, 1):
        assert "\\" not in text and "$" not in text
        assert re.match(rf"{number}\b|.*\b{number}$", text)


def test_solutions_stand_at_the_end_and_what_needs_a_screen_is_left_out(texts):
    whole = " ".join(texts)
    words = ["How often?", "The last words", "Half of the time", "all is well", "One dot"]
    assert sorted(words, key=whole.index) == words
    assert "all is well; a file , Functions." in whole
    # A folded table is printed, since prose refers to it; folded code is not.
    assert "Folded table" in whole
    assert "Folded code" not in whole
    assert "labelbook run" not in whole


def test_screen_readers_get_tags_and_a_language(printed):
    root = printed.root_object
    assert root["/MarkInfo"]["/Marked"] and root["/Lang"] == "en"
    assert (printed.metadata.title, printed.metadata.author) == ("A small book", "A. Writer")
    tree = root["/StructTreeRoot"]
    numbers = tree["/ParentTree"]["/Nums"]
    parents = dict(zip(numbers[::2], numbers[1::2], strict=True))
    assert len(tree["/K"]) == 3 and len(parents) == len(numbers) // 2
    # What a sheet's number leads to are elements of this sheet.
    for page in printed.pages:
        for element in parents[page["/StructParents"]].get_object():
            element = element.get_object()
            assert element.get("/Pg", page.indirect_reference) == page.indirect_reference


def test_a_formula_that_is_not_set_stops_the_print(chromium, tmp_path):
    source = tmp_path / "page.html"
    source.write_text('<html><body><p class="math">\\(x\\)</p></body></html>', "utf-8")
    with pytest.raises(pdf.PdfFailed, match=re.escape(r"\(x\)")):
        pdf.print_pages([source.as_uri()], chromium)


def test_invalid_input_is_rejected_before_any_work(checkout, tmp_path, monkeypatch):
    monkeypatch.setattr(pdf, "find_checkout", lambda: Checkout(tmp_path))
    arguments = argparse.Namespace(output=None, browser=None)
    with pytest.raises(CommandError, match="labelbook book"):
        pdf.make_pdf(arguments)
    monkeypatch.setattr(pdf, "find_checkout", lambda: checkout)
    arguments.output = tmp_path
    with pytest.raises(CommandError, match="is a folder"):
        pdf.make_pdf(arguments)
    with pytest.raises(CommandError, match="'nothing-such' is not a program"):
        pdf.find_browser("nothing-such")
