"""The pages as files: nothing foreign, nothing raw, every figure described, every link alive."""

import doctest
import gzip
import importlib.util
import inspect
import re
from functools import cache
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
import yaml
from bs4 import BeautifulSoup
from conftest import ROOT

import labelaudit
from book.tools.corrections import correct_pages

RAW = re.compile(
    r"\{(?:prf|glue|exercise|solution|numref|cite|ref|doc|math|figure)[:}]"
    r"|undefined label|unknown directive"
)

# What the API page shows without an example of its own: results and parts that another example
# makes, a protocol, an exception, and what needs a cluster.
WITHOUT_EXAMPLE = {
    "datasets.NotPrepared",
    *(f"learning.learners.{name}" for name in ("Fitted", "Boosting")),
    *(
        "learning.eta.CrossFitted",
        "book.chapters.held_out.HeldOut",
        "book.chapters.held_out.Neighbours",
        "book.chapters.real.PublishedEta",
    ),
    *("learning.models.Shape", "learning.training.Outcome"),
    *("learning.calibration.Reliability", "book.chapters.compared.Comparison"),
    *(f"auditing.table.{name}" for name in ("Columns", "Table")),
    *(f"auditing.decisions.{name}" for name in ("Recommendation", "Guarantee")),
    *("auditing.options.Options", "auditing.report.Report", "auditing.priors.PriorsReport"),
    *("redrawn.Redrawn", "design.DesignedChannel"),
    *("book.sweep.grid.read_grid", "book.chapters.differences.Difference"),
    "book.chapters.exercises.Feedback",
}


@cache
def parsed(path):
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@cache
def anchors(path):
    return {tag["id"] for tag in parsed(path).find_all(id=True)}


def pages(site):
    paths = sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)
    assert len(paths) > 30
    return paths


def fetched(page):
    """Addresses a browser would fetch on its own to show a page."""
    yield from (tag["src"] for tag in page.select("[src]"))
    yield from (tag["srcset"] for tag in page.select("[srcset]"))
    yield from (tag["data"] for tag in page.select("object[data]"))
    navigation = {"canonical", "author", "license", "search", "next", "prev", "index"}
    for tag in page.select("link[href]"):
        if not navigation.intersection(tag.get("rel", [])):
            yield tag["href"]


def is_foreign(address):
    return bool(re.match(r"\s*(?:https?:|ftp:)?//", address))


def undescribed(page):
    """Images of an article without a sentence of alt text, or outside a figure with a caption."""
    for image in page.select("article img"):
        figure = image.find_parent("figure")
        caption = figure and figure.find("figcaption")
        described = len(image.get("alt", "")) >= 20
        if not (described and caption and len(caption.get_text(strip=True)) >= 20):
            yield image.get("src", "")


def test_checks_can_fail():
    bad = '<article><img src="//cdn.example/x.png" alt="plot"></article>'
    page = BeautifulSoup(bad, "html.parser")
    assert [address for address in fetched(page) if is_foreign(address)]
    assert list(undescribed(page)) == ["//cdn.example/x.png"]
    assert RAW.search("see {prf:ref}`theorem`")


def test_nothing_is_fetched_from_elsewhere(site):
    for path in pages(site):
        foreign = [address for address in fetched(parsed(path)) if is_foreign(address)]
        assert not foreign, f"{path.relative_to(site)} fetches {foreign}"
        inline = " ".join(tag.get_text() for tag in parsed(path).select("script:not([src])"))
        assert "://" not in inline, f"{path.relative_to(site)} has an address in a script"


def test_style_sheets_fetch_nothing_from_elsewhere(site):
    sheets = list(site.rglob("*.css"))
    assert any(sheet.name == "labelaudit.css" for sheet in sheets)
    for sheet in sheets:
        text = sheet.read_text(encoding="utf-8")
        addresses = re.findall(r"(?:url\(|@import)\s*['\"]?([^'\")\s]+)", text)
        assert not [address for address in addresses if is_foreign(address)], sheet.name


def test_every_figure_is_described(site):
    for path in pages(site):
        assert not list(undescribed(parsed(path))), path.relative_to(site)


@pytest.mark.parametrize("source", sorted((ROOT / "notebooks").glob("*.md")), ids=lambda p: p.stem)
def test_the_numbers_of_every_figure_are_offered_in_its_section(source):
    for section in re.split(r"^## ", source.read_text(encoding="utf-8"), flags=re.MULTILINE):
        figures = re.findall(r"^    name: (fig-[\w-]+)", section, re.MULTILINE)
        offered = re.findall(r"\{download\}`[^`]+\.csv>`", section)
        assert offered or not figures, f"no table behind {', '.join(figures)}"


def test_no_raw_directives(site):
    for path in pages(site):
        page = parsed(path)
        text = " ".join(part.get_text(" ") for part in page.select("article, title, nav"))
        raw = RAW.search(text)
        assert not raw, f"{path.relative_to(site)} shows {raw and raw.group()!r}"


def test_no_page_shows_a_warning_or_an_error(site):
    for path in pages(site):
        shown = parsed(path).select(".cell_output .stderr, .cell_output .traceback")
        assert [stream.get_text()[:200] for stream in shown] == [], path.name


def test_links_lead_somewhere(site):
    inner = 0
    for path in pages(site):
        for link in parsed(path).select("a[href]"):
            target = urlsplit(link["href"])
            if target.scheme or target.netloc:
                continue
            inner += 1
            goal = (path.parent / unquote(target.path)).resolve() if target.path else path
            assert goal.exists(), f"{path.relative_to(site)}: {link['href']}"
            if target.fragment and goal.suffix == ".html":
                there = unquote(target.fragment) in anchors(goal)
                assert there, f"{path.relative_to(site)}: nothing at {link['href']}"
    assert inner > 1000


@cache
def compressed(path):
    return len(gzip.compress(path.read_bytes()))


def sent(site, path):
    """The bytes a host sends for a page: text compressed, all that it fetches, MathJax apart."""
    fetched_files = {
        (path.parent / unquote(urlsplit(link).path)).resolve() for link in fetched(parsed(path))
    }
    files = [file for file in fetched_files if file.is_file() and "mathjax" not in file.parts]
    return sum(compressed(file) for file in [path, *files])


def test_pages_are_light(site):
    for path in pages(site):
        assert path.stat().st_size < 2_000_000, path.relative_to(site)
        assert sent(site, path) < 2_000_000, path.relative_to(site)


def test_the_landing_page_is_lighter(site):
    assert sent(site, site / "book" / "index.html") < 500_000


def test_icons_come_from_one_font(site):
    for path in pages(site):
        icons = [link for link in fetched(parsed(path)) if "fontawesome" in link]
        assert [urlsplit(link).path.rsplit("/")[-1] for link in icons] in (
            [],
            ["all.min.css", "fa-solid-900.woff2"],
        )
        assert not parsed(path).find_all(class_=["fa-brands", "fab", "fa-regular", "far"])


def test_figures_open_by_themselves(site):
    """Where a screen is small they can be enlarged."""
    figures = [image for path in pages(site) for image in parsed(path).select("figure img")]
    assert len(figures) > 30
    assert all(image.find_parent("a")["href"] == image["src"] for image in figures)


def test_powers_of_ten_are_written_as_such(tmp_path):
    (tmp_path / "_images").mkdir()
    page = tmp_path / "page.html"
    page.write_text('<td>1.5e-07</td><td>beta-2-30</td><span class="pasted-text">2e+230</span>')
    correct_pages(tmp_path)
    assert BeautifulSoup(page.read_text(), "html.parser").get_text() == (
        "1.5\u202f\u00d7\u202f10\u22127beta-2-302\u202f\u00d7\u202f10230"
    )


def test_a_drawing_tells_the_page_how_wide_it_is(tmp_path):
    """In pixels, for the rule that keeps its letters legible on a phone; narrow ones fit there."""
    (tmp_path / "_images").mkdir()
    widths = {"dots": "600pt", "three": "900", "line": "300pt", "one": "300", "user": "100%"}
    for name, width in widths.items():
        drawing = f'<svg height="9pt" width="{width}"></svg>'
        (tmp_path / "_images" / f"{name}.svg").write_text(drawing)
    page = tmp_path / "page.html"
    page.write_text(
        "".join(
            f'<figure id="fig-{name}">\n<img alt="" src="_images/{name}.svg"/></figure>'
            for name in widths
        )
    )
    correct_pages(tmp_path)
    dots, three, *others = BeautifulSoup(page.read_text(), "html.parser").find_all("img")
    assert dots["style"] == "--natural: 800px" and three["style"] == "--natural: 900px"
    assert not any("style" in image.attrs for image in others)


def test_the_page_that_leads_to_the_book_has_its_icon(tmp_path):
    """Without one a browser asks for favicon.ico, which does not exist."""
    (tmp_path / "_images").mkdir()
    page = tmp_path / "index.html"
    page.write_text('\n<meta http-equiv="Refresh" content="0; url=book/index.html" />\n')
    correct_pages(tmp_path)
    root = BeautifulSoup(page.read_text(), "html.parser")
    assert root.find("link", rel="icon")["href"] == "_static/favicon.svg"
    assert (ROOT / "book/_static/favicon.svg").is_file()
    assert root.meta["http-equiv"] == "Refresh"


@pytest.mark.parametrize(
    "source", sorted((ROOT / "notebooks").glob("[01]*.md")), ids=lambda p: p.stem
)
def test_every_chapter_gives_its_answer_first(source):
    """Folded, so as not to spoil the prediction; chapter 12 opens with its answer in full."""
    opening = source.read_text(encoding="utf-8").split("\n## ")[0]
    box = re.search(
        r"\{admonition\} The answer, if you are in a hurry\n(:class: [\w ]*dropdown\n)?", opening
    )
    assert box and (box[1] is None) == (source.stem == "12_privacy_utility")


def test_contents_list_every_chapter():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    listed = {entry["file"] for part in toc["parts"] for entry in part["chapters"]}
    chapters = {f"notebooks/{path.stem}" for path in (ROOT / "notebooks").glob("*.md")}
    prose = {f"book/{path.stem}" for path in (ROOT / "book").glob("*.md")} - {"book/index"}
    assert listed == chapters | prose


def test_notation_names_exist():
    text = (ROOT / "book" / "notation.md").read_text(encoding="utf-8")
    cells = [row.split(" | ") for row in text.splitlines() if row.startswith("| ")]
    names = re.findall(r"`([\w.]+)`( \(\w+\))?", " ".join(row[1] for row in cells))
    assert len(names) > 20
    public = vars(labelaudit).values()
    arguments = {
        name
        for function in public
        if inspect.isfunction(function) or inspect.isclass(function)
        for name in inspect.signature(function).parameters
    }
    for name, kind in names:
        if kind == " (argument)":
            assert name in arguments, f"no public function takes {name}"
        elif kind == " (method)":
            assert callable(getattr(labelaudit.LabelProportions, name)), name
        else:
            item = labelaudit
            for word in name.split("."):
                item = getattr(item, word)


def shown_on_the_api_page():
    """Functions and classes that autodoc finds for the page, each with its name."""
    text = (ROOT / "book" / "api.md").read_text(encoding="utf-8")
    for kind, target, options in re.findall(r"\.\. auto(\w+):: (\S+)\n((?:   :.+\n)*)", text):
        home, _, name = (target, "", "") if kind == "module" else target.rpartition(".")
        module = importlib.import_module(home)
        named = re.search(r":members: (.+)", options)
        own = [
            word for word in vars(module) if getattr(vars(module)[word], "__module__", "") == home
        ]
        every = getattr(module, "__all__", [word for word in own if not word.startswith("_")])
        for word in [name] if name else (named[1].split(", ") if named else every):
            item = getattr(module, word)
            if callable(item):
                yield f"{home}.{word}".removeprefix("labelaudit."), item


def test_what_the_api_page_shows_has_an_example():
    shown = dict(shown_on_the_api_page())
    assert len(shown) > 100
    finder = doctest.DocTestFinder(exclude_empty=True)
    bare = {
        name
        for name, item in shown.items()
        if not any(test.examples for test in finder.find(item, name))
    }
    assert bare == WITHOUT_EXAMPLE


@pytest.fixture(scope="module")
def question():
    """The script that draws the landing page's figure, as a module."""
    specification = importlib.util.spec_from_file_location(
        "question", ROOT / "book" / "question.py"
    )
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_committed_figure_is_what_the_script_draws(question, tmp_path):
    question.draw(tmp_path / "question.svg")
    number = re.compile(r"-?\d+\.\d+")
    drawn, committed = (
        (folder / "question.svg").read_text(encoding="utf-8")
        for folder in (tmp_path, question.TARGET.parent)
    )
    assert number.sub("#", drawn) == number.sub("#", committed), "run make figure"
    positions = [np.array(number.findall(text), dtype=float) for text in (drawn, committed)]
    np.testing.assert_allclose(*positions, atol=0.01)


def test_landing_page_tells_the_numbers_of_its_figure(question):
    blind, informed = question.answers()
    text = " ".join((ROOT / "book" / "index.md").read_text(encoding="utf-8").split())
    assert f"rises from {blind:.2%} to {informed['LLP'].accuracy:.2%}." in text
    everyone_zero = (30 / 32) ** question.BAG_SIZE
    assert round(10 * everyone_zero) == 6 and "In six bags out of ten all labels are 0." in text
    for name in ("RR", "LLP+Geom"):
        assert informed[name].moved[question.SHIFTS > question.EPSILON].max() < 1e-12


@pytest.mark.parametrize("verdict", ["holds", "false", "misprint", "gap", "unchecked"])
def test_every_verdict_has_a_badge(verdict):
    style = (ROOT / "book" / "_static" / "labelaudit.css").read_text(encoding="utf-8")
    assert f".verdict-{verdict} {{" in style
