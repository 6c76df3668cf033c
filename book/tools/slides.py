"""A deck of slides for a chapter: one HTML file that needs no network.

The deck is made from the chapter's page. Boxes, predictions, figures and small tables become
slides, exercises too. Prose, proofs and solutions become speaker notes of the slide that follows
them. A prediction always comes before the first figure. reveal.js is taken from the package
sphinx-revealjs, and everything is written into the file.
"""

from __future__ import annotations

import copy
import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bs4 import BeautifulSoup
from bs4.element import NavigableString, Tag

from book.tools import tall_figures
from book.tools.checkout import Checkout
from book.tools.page import write_page
from book.tools.runner import Execution
from labelaudit.command_line import CommandError
from labelaudit.files import digest, file_digest, write_atomically

# What fits on a slide, in words; a displayed formula and the row of a table count as some words.
FULL = 110
FORMULA, ROW = 18, 8
# The fewest words of prose that stand on a slide.
SENTENCE = 8
# Tables with more rows, or more words, belong to the page.
MAX_TABLE_ROWS, MAX_WORDS = 10, 80
PANELS = {"your-run", "run-this-chapter", "how-this-page-was-made"}
BLOCKS = ("p", "ul", "ol", "dl", "table", "pre", "figure")
PACKAGE = "sphinx_revealjs"
TEMPLATE = Path(__file__).parent / "templates" / "slides.html"
RULES = (Path(__file__), Path(tall_figures.__file__), TEMPLATE)


@dataclass(kw_only=True)
class Slide:
    """One slide: what is projected, and the notes that only the speaker sees."""

    heading: str
    kind: str
    blocks: list[Tag] = field(default_factory=list)
    title: str = ""
    notes: list[Tag] = field(default_factory=list)
    continued: bool = False

    @property
    def html(self) -> str:
        """The blocks as HTML."""
        return "".join(map(str, self.blocks))


def deck_path(checkout: Checkout, chapter: str) -> Path:
    """Where the deck of a chapter is written."""
    return checkout.build / "slides" / f"{chapter}.html"


def made_from(execution: Execution) -> str:
    """A digest of what a deck shows: the run, and the rules by which slides are made."""
    facts = {name: execution.facts[name] for name in ("key", "started", "parameters")}
    return digest([facts, *map(file_digest, RULES)])


def is_current(checkout: Checkout, execution: Execution) -> bool:
    """Whether the deck of the chapter is there and shows this execution."""
    path = deck_path(checkout, execution.chapter.id)
    return path.is_file() and f'content="{made_from(execution)}"' in _start(path)


def _start(path: Path) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read(2000)


def write_deck(checkout: Checkout, execution: Execution) -> list[Slide]:
    """Write the deck of a chapter's execution, and give its slides."""
    from jinja2 import Template

    assets = reveal_folder()
    page = BeautifulSoup(write_page(checkout, execution).read_text(encoding="utf-8"), "html.parser")
    slides = make_slides(page)
    settings, script = mathjax(page)
    html = Template(TEMPLATE.read_text(encoding="utf-8"), autoescape=True).render(
        title=execution.chapter.title,
        stamp=made_from(execution),
        slides=slides,
        mathjax_settings=settings,
        mathjax=script,
        style=(assets / "dist" / "reveal.css").read_text(encoding="utf-8"),
        reveal=_script(assets / "dist" / "reveal.js"),
        notes=_script(assets / "plugin" / "notes" / "notes.js"),
    )
    write_atomically(deck_path(checkout, execution.chapter.id), html)
    return slides


def mathjax(page: BeautifulSoup) -> tuple[str, str]:
    """The settings of MathJax and MathJax itself, as a page has them."""
    scripts = [script.string or "" for script in page.find_all("script")]
    settings = next(text for text in scripts if "window.MathJax" in text[:40])
    return settings, max(scripts, key=len)


def reveal_folder() -> Path:
    """The folder of reveal.js, in the package that brings it along."""
    specification = importlib.util.find_spec(PACKAGE)
    if specification is None or specification.origin is None:
        raise CommandError("slides need the package sphinx-revealjs: pip install '.[slides]'")
    return Path(specification.origin).parent / "_static" / "revealjs"


def _script(path: Path) -> str:
    # Either sequence alone would change how a browser reads the rest of the file.
    text = path.read_text(encoding="utf-8")
    return text.replace("</script", r"<\/script").replace("<!--", r"<\!--")


def make_slides(page: BeautifulSoup) -> list[Slide]:
    """The slides of a chapter's page, in order."""
    article = page.select_one("article section")
    if article is None:
        raise CommandError("the page of the chapter has no text")
    _clean(article)
    heading = article.find("h1")
    slides = [Slide(heading="", kind="title", title=_text(heading) if heading else "")]
    _section(article, slides)
    return [part for slide in _predictions_first(slides) for part in _split(slide)]


def _clean(article: Tag) -> None:
    """Remove what only a page can use: code, links, marks of headings, folded output."""
    for tag in article.select(
        "a.headerlink, a.download, style, script, .cell_input, details, .rubric"
    ):
        tag.decompose()
    for link in article.find_all("a"):
        link.unwrap()
    for section in article.select(".admonition section"):
        section.name = "div"  # reveal.js takes a section for a slide
    for tag in article.find_all(True):
        tag.attrs.pop("id", None)


def _section(section: Tag, slides: list[Slide]) -> None:
    """Add the slides of a section and of those inside it."""
    title = section.find(["h1", "h2", "h3"], recursive=False)
    heading = _text(title) if title and title.name != "h1" else ""
    waiting: list[Tag] = []
    before = len(slides)
    for element in _elements(section):
        if element.name == "section":
            _close(heading, waiting, slides, before)
            waiting = []
            _section(element, slides)
            before = 0
        elif slide := _slide(element, heading):
            slide.notes, waiting = waiting + slide.notes, []
            slides.append(slide)
        elif "solution" in _classes(element) and slides[-1].kind == "exercise":
            slides[-1].notes.append(element)
        elif not element.name.startswith("h") and not _is_panel(element):
            waiting.append(element)
    _close(heading, waiting, slides, before)


def _close(heading: str, waiting: list[Tag], slides: list[Slide], before: int) -> None:
    """Give prose that no slide follows to the last slide; a section of prose gets one itself."""
    if heading and len(slides) == before and waiting:
        prose = [tag for tag in waiting if tag.name in ("p", "ul", "ol", "dl")]
        prose = [tag for tag in prose if not _text(tag).startswith("What next")]
        blocks = [opening(tag) if tag.name == "p" else tag for tag in prose]
        slides.append(Slide(heading=heading, kind="prose", blocks=blocks, notes=waiting))
    else:
        slides[-1].notes += waiting


def _elements(section: Tag) -> Iterator[Tag]:
    """The elements of a section in order; a cell stands for the figures and tables it shows."""
    for child in section.find_all(True, recursive=False):
        if "cell" in _classes(child):
            yield from child.select("figure, table")
        elif child.name == "div" and not {"admonition", "math"} & _classes(child):
            yield from child.find_all(["figure", "table"])
        else:
            yield child


def _slide(element: Tag, heading: str) -> Slide | None:
    """The slide that a box, a figure or a small table becomes."""
    classes = _classes(element)
    if element.name == "figure":
        caption = element.find("figcaption")
        slide = Slide(heading=heading, kind="figure", blocks=[element])
        if caption:
            slide.notes = [copy.copy(caption)]
            for text in caption.find_all("p"):
                text.replace_with(opening(text))
        return slide
    if element.name == "table":
        rows, words = len(element.find_all("tr")), len(element.get_text(" ").split())
        small = rows <= MAX_TABLE_ROWS + 1 and words <= MAX_WORDS
        return Slide(heading=heading, kind="table", blocks=[element]) if small else None
    proof = "proof" in classes and len(classes) == 2
    if "admonition" not in classes or "dropdown" in classes or proof or _is_panel(element):
        return None
    title = element.find("p", class_="admonition-title")
    name = _text(title) if title else ""
    kind = "prediction" if "prediction" in name.lower() else "box"
    kind = "exercise" if "exercise" in classes else kind
    return Slide(
        heading=heading,
        kind=kind,
        blocks=list(_blocks(element)),
        title=title.decode_contents() if title else "",
    )


def _classes(tag: Tag) -> set[str]:
    return {str(name) for name in tag.get_attribute_list("class") if name}


def _is_panel(element: Tag) -> bool:
    return not PANELS.isdisjoint(_classes(element))


def _blocks(element: Tag) -> Iterator[Tag]:
    """What stands in a box, without the containers around it."""
    for child in element.find_all(True, recursive=False):
        if "admonition-title" in _classes(child):
            continue
        if child.name in BLOCKS or "math" in _classes(child):
            yield child
        else:
            yield from _blocks(child)


def _predictions_first(slides: list[Slide]) -> list[Slide]:
    """The slides with every prediction before the first figure."""
    kinds = [slide.kind for slide in slides]
    first = kinds.index("figure") if "figure" in kinds else len(slides)
    late = [slide for slide in slides[first:] if slide.kind == "prediction"]
    rest = [slide for slide in slides[first:] if slide.kind != "prediction"]
    return [*slides[:first], *late, *rest]


def _split(slide: Slide) -> Iterator[Slide]:
    """A slide as several, each with as much as can be read from the last row."""
    parts: list[list[Tag]] = [[]]
    for block in slide.blocks:
        for piece in _pieces(block):
            full = sum(map(weight, parts[-1])) + weight(piece) > FULL or piece.name == "figure"
            if parts[-1] and full:
                parts.append([])
            parts[-1].append(piece)
    for number, blocks in enumerate(parts):
        notes = [] if number else slide.notes
        yield Slide(
            heading=slide.heading,
            kind=slide.kind,
            blocks=blocks,
            title=slide.title,
            notes=notes,
            continued=bool(number),
        )


def _pieces(block: Tag) -> Iterator[Tag]:
    """A long list as several lists, a tall figure as several figures, all else as it is."""
    if block.name == "figure":
        yield from tall_figures.in_bands(block)
        return
    if block.name not in ("ul", "ol") or weight(block) <= FULL:
        yield block
        return
    for number, item in enumerate(block.find_all("li", recursive=False), 1):
        piece = BeautifulSoup("", "html.parser").new_tag(block.name)
        if block.name == "ol":
            piece["start"] = str(number)
        piece.append(copy.copy(item))
        yield piece


def weight(block: Tag) -> int:
    """How much of a slide a block fills, in words."""
    formulas = [block] if "math" in _classes(block) else block.select("div.math")
    words = len(re.sub(r"\\\(.*?\\\)", "x", block.get_text(" "), flags=re.DOTALL).split())
    if block.name == "div" and formulas:
        words = 0
    return words + FORMULA * len(formulas) + ROW * len(block.find_all("tr"))


def opening(paragraph: Tag) -> Tag:
    """A copy of a paragraph up to the end of a sentence, with a few words at least.

    A sentence ends only between the elements of the paragraph, so formulas stay whole.
    """
    short = copy.copy(paragraph)
    inner = short.find("span", class_="caption-text") or short
    words, ended = 0, False
    for child in list(inner.children):
        if ended:
            child.extract()
            continue
        text = str(child) if isinstance(child, NavigableString) else ""
        for end in re.finditer(r"[.?!](?=\s+[A-Z\"“(]|\s*$)", text):
            if words + len(text[: end.end()].split()) >= SENTENCE:
                child.replace_with(text[: end.end()])
                ended = True
                break
        words += len(child.get_text().split())
    return short


def _text(tag: Tag) -> str:
    return " ".join(tag.get_text(" ").split())
