"""The book as one PDF, made from a small site: bookmarks, links, formulas, page numbers."""

import argparse
import re
import shutil

import pytest
import yaml
from bs4 import BeautifulSoup

from book.tools import pdf
from book.tools.checkout import Checkout
from book.tools.merged import NO_EXPLORER, STYLE, _hang, merge
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
        "config": {"mathjax_path": "mathjax/tex-svg-full.js"},
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
        }
    ],
}
COIN = """# A coin

## Toss it

A share is $\\frac{1}{k} \\sum_i y_i$, see {doc}`02_sum` and [elsewhere](https://example.org).

```{prf:theorem} Large numbers
:label: large-numbers
It tends to $p$.
```

```{exercise} Heads
:label: ex-heads
How often?
```

```{solution} ex-heads
:label: sol-heads
:class: dropdown
Half of the time.
```

## A heading so long that on a sheet of paper it breaks into two lines, where Chromium loses a space

The last words of the chapter.
"""
SUM = """# A sum

By {prf:ref}`large-numbers`, all is well; {download}`a file <02_sum.md>`.

```{figure} dot.svg
:name: fig-dot

One dot, whose points are in {download}`a table <02_sum.md>`. {download}`The numbers <02_sum.md>`.
```

```{raw} html
<div id="explorer" hidden><p>Sliders</p></div>
<div class="cell tag_hide-output">
<details class="hide"><summary>Show</summary><p>Folded code</p></details>
<details class="hide"><summary></summary>
<table class="dataframe"><tr><td>Folded table</td></tr></table></details>
</div>
<details class="hide"><summary>Show</summary><p>Folded verdict</p></details>
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
    pages = pdf.write_pdf(checkout, output, chromium)
    reader = pypdf.PdfReader(output)
    assert len(reader.pages) == pages
    return reader


@pytest.fixture(scope="module")
def texts(printed):
    return [page.extract_text() for page in printed.pages]


def test_every_heading_of_the_site_has_a_bookmark(printed, checkout):
    headings = ["Contents"]
    for name in ("book/index", "notebooks/01_coin", "notebooks/02_sum"):
        page = BeautifulSoup((checkout.site / f"{name}.html").read_text("utf-8"), "html.parser")
        for link in page.select("article .headerlink"):
            if re.match(r"h\d", link.parent.name):
                headings.append(link.parent.get_text()[:-1])
        headings += ["Solutions"] if page.select("article .solution") else []
    assert [title for _, title, _ in pdf.bookmarks(printed)] == headings
    assert [level for level, _, _ in pdf.bookmarks(printed)] == [1, 1, 1, 2, 2, 2, 1]


def test_every_link_inside_the_book_leads_to_a_page_of_it(printed, checkout):
    (coin,) = [page for _, title, page in pdf.bookmarks(printed) if title == "1. A coin"]
    named, outside, targets = printed.named_destinations, set(), []
    for page in printed.pages:
        for annotation in page.get("/Annots") or []:
            link = annotation.get_object()
            if "/A" in link:
                outside.add(link["/A"]["/URI"])
            else:
                target = named[link["/Dest"]]
                targets.append((link["/Dest"], printed.get_destination_page_number(target) + 1))
    assert outside == {"https://example.org/"}
    # Seven lines of contents but its own, and four links in the text.
    assert len(targets) >= 6 + 4
    assert ("/notebooks-01_coin--large-numbers", coin) in targets
    assert ("/notebooks-01_coin", coin) in targets


def test_contents_name_the_pages_of_the_bookmarks(printed, texts):
    contents = texts[1]
    listed = [
        f"{title} {page}"
        for level, title, page in pdf.bookmarks(printed)
        if title != "Contents" and level <= 2
    ]
    assert len(listed) >= 3
    for line in listed:
        assert line in " ".join(contents.split())


def test_formulas_are_set(texts):
    for text in texts:
        assert "\\" not in text
        assert "$" not in text


def test_no_page_is_blank_and_each_has_its_number_once(texts):
    assert "A small book" in texts[0]
    assert "A. Writer" in texts[0]
    assert not re.search(r"^1$", texts[0], re.MULTILINE)
    for number, text in enumerate(texts[1:], 2):
        assert len(re.findall(rf"^{number}$", text, re.MULTILINE)) == 1
        assert len(text.split()) > 1


def test_solutions_stand_at_the_end_of_their_chapter(texts):
    whole = "\n".join(texts[2:])
    words = ["How often?", "The last words", "Half of the time", "all is well", "One dot"]
    assert sorted(words, key=whole.index) == words
    # An offer of a file names it on paper, and is left out where it is a caption's last sentence.
    assert "all is well; a file (02_sum.md)." in " ".join(whole.split())
    assert "The numbers" not in whole
    assert "whose points are in a table (02_sum.md)." in " ".join(whole.split())


def test_what_needs_a_browser_is_named_but_not_printed(texts):
    whole = " ".join("\n".join(texts).split())
    assert NO_EXPLORER in whole
    assert "Sliders" not in whole
    # A folded table is printed, since prose refers to it; folded code and verdicts are not.
    assert "Folded table" in whole
    assert "Folded code" not in whole and "Folded verdict" not in whole


def test_screen_readers_get_tags_and_a_language(printed):
    assert printed.root_object["/MarkInfo"]["/Marked"]
    assert printed.root_object["/Lang"] == "en"
    assert printed.metadata.title == "A small book"
    assert printed.metadata.author == "A. Writer"


def test_a_link_to_nowhere_is_reported(checkout, tmp_path):
    site = tmp_path / "html"
    shutil.copytree(checkout.site, site)
    page = site / "notebooks" / "01_coin.html"
    page.write_text(page.read_text("utf-8").replace('id="large-numbers"', ""), "utf-8")
    book = merge(site, pdf.parts(checkout), "", "", "")
    assert book.dangling == {"notebooks-01_coin--large-numbers"}


def test_a_formula_that_is_not_set_stops_the_print(chromium, checkout, tmp_path):
    source = tmp_path / "page.html"
    source.write_text('<html><body><p class="math">\\(x\\)</p></body></html>', "utf-8")
    with pytest.raises(pdf.PdfFailed, match=re.escape(r"\(x\)")):
        pdf.print_page(source, tmp_path / "page.pdf", chromium)


def printed_texts(browser, folder, body, more=""):
    """The texts of the pages of an article; the room for its text is 986 pixels high."""
    source = folder / "page.html"
    rules = "p { height: 40px; margin: 0; } .whole { break-inside: avoid; margin: 0; }"
    source.write_text(
        f"<html><head><style>{STYLE}{rules}{more}</style></head><body><article"
        f' class="bd-article page-of-book"><section>{body}</section></article></body></html>',
        "utf-8",
    )
    pdf.print_page(source, folder / "page.pdf", browser)
    return [page.extract_text() for page in pypdf.PdfReader(folder / "page.pdf").pages]


def test_what_is_wider_than_the_paper_stops_the_print(chromium, tmp_path):
    """Chromium would shrink every page of the book to fit it."""
    with pytest.raises(pdf.PdfFailed, match="wider than the paper: div broad"):
        printed_texts(chromium, tmp_path, '<div style="width: 900px">broad</div>')


def lines(word, count):
    return "".join(f"<p>{word}{number}</p>" for number in range(count))


def figure(height):
    image = DOT.replace('"', "'")
    return (
        '<figure class="whole"><img alt="" style="display: block; width: 300px;'
        f' height: {height}px" src="data:image/svg+xml,{image}">'
        "<figcaption>caption</figcaption></figure>"
    )


def test_prose_fills_the_page_that_a_tall_figure_leaves(chromium, tmp_path):
    body = lines("before", 12) + figure(800) + lines("after", 12)
    first, second = printed_texts(chromium, tmp_path, body)[:2]
    assert "before11" in first
    assert "after3" in first
    assert "caption" in second
    assert "after11" in second


def test_a_figure_that_nearly_fits_gets_smaller(chromium, tmp_path):
    """Below the text there are 506 pixels."""
    (page,) = printed_texts(chromium, tmp_path, lines("before", 12) + figure(560))
    assert "caption" in page


def test_tall_boxes_break_where_much_would_stay_blank(chromium, tmp_path):
    box = f'<div class="whole">{lines("inside", 15)}</div>'
    first, second = printed_texts(chromium, tmp_path, lines("before", 12) + box)
    assert "inside0" in first
    assert "inside14" in second
    low = f'<div class="whole">{lines("inside", 6)}</div>'
    first, second = printed_texts(chromium, tmp_path, lines("before", 19) + low)
    assert "inside" not in first
    assert "inside0" in second


def test_a_tall_figure_goes_behind_a_heading_rather_than_leave_half_a_page_blank(
    chromium, tmp_path
):
    body = lines("before", 12) + figure(800) + "</section><section><h2>Next</h2>"
    first, second = printed_texts(chromium, tmp_path, body + lines("after", 10))[:2]
    assert "Next" in first and "after0" in first and "caption" not in first
    assert "caption" in second and "after9" in second


def test_code_stays_behind_where_its_result_does_not_fit(chromium, tmp_path):
    keep = "break-inside: avoid; break-after: avoid"
    result = f'<div class="cell_output"><div class="output whole">{lines("result", 5)}</div></div>'
    code = f'<div class="cell_input" style="{keep}">{lines("code", 3)}</div>'
    first, second = printed_texts(chromium, tmp_path, lines("before", 17) + code + result)
    assert "code2" in first and "result" not in first
    assert "result0" in second


def test_a_last_page_of_a_line_or_two_is_saved(chromium, tmp_path):
    """38 lines of 26.4 pixels are higher than the page, of 24 pixels they are not."""
    items = "".join(f"<li>item{number}</li>" for number in range(38))
    rule = "body { line-height: 1.65; } ul { font-size: 16px; margin: 0; }"
    (page,) = printed_texts(chromium, tmp_path, f"<ul>{items}</ul>", rule)
    assert "item37" in page


def test_rows_of_a_table_take_one_line_where_they_fit(chromium, tmp_path):
    def pages(words):
        row = f"<tr><td>{'several words ' * words}</td><td>{'and more ' * words}</td></tr>"
        table = f'<table class="dataframe" style="font-size: 16px">{row * 30}</table>'
        return printed_texts(chromium, tmp_path, table)

    narrow, wide = pages(2), pages(12)
    assert len(narrow) == 1 < len(wide)


def test_headings_of_a_table_break_before_its_cells_do(chromium, tmp_path):
    """Without the rule both columns get the same width, and the cells break."""
    row = f"<tr><th>{'a long heading ' * 8}</th><td>{'cell ' * 12}end</td></tr>"
    table = f'<table class="dataframe" style="font-size: 16px; width: 100%">{row}</table>'
    (page,) = printed_texts(chromium, tmp_path, table)
    assert f"{'cell ' * 12}end" in page and f"{'a long heading ' * 8}".strip() not in page


def test_a_long_line_of_code_goes_on_with_an_indent():
    soup = BeautifulSoup(
        '<pre><span class="k">def</span> f():\n    <span class="s">"a\n    b"</span>\n</pre>',
        "html.parser",
    )
    _hang(soup, soup.pre)
    code = soup.pre.find_all("span", class_="code-line", recursive=False)
    assert [line.get_text() for line in code] == ["def f():\n", '    "a\n', '    b"\n']
    assert [line["style"] for line in code] == ["--indent: 0ch", "--indent: 4ch", "--indent: 4ch"]
    assert code[2].find(class_="s").get_text() == '    b"'


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
