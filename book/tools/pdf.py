"""The whole book as one PDF: the pages of the built site merged into one, printed by Chromium.

MathJax sets the formulas as it does on the site. Chromium writes the bookmarks, the links and the
tags that screen readers use. It cannot write page numbers into a list of contents, so the
book is printed twice: the bookmarks of the first copy give the numbers for the second.
"""

from __future__ import annotations

import argparse
import io
import itertools
import logging
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from book.tools.checkout import Checkout, find_checkout
from labelaudit.command_line import CommandError
from labelaudit.files import write_atomically

if TYPE_CHECKING:
    from book.tools.merged import Merged

# It warns of the count of objects in every PDF that Chromium has written.
logging.getLogger("pypdf").setLevel(logging.ERROR)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
EXAMPLES = """\
examples:
  labelbook pdf                       _build/labelaudit.pdf, from the site in _build/html
  labelbook pdf --output book.pdf

The site must have been built (`labelbook book`). It takes a Chromium and the extra `pdf`.

exit status: 0 done, 1 the book could not be printed, 2 invalid input, 130 interrupted
"""

# A heading as the bookmarks show it: level, text, and the page it stands on, from 1.
Bookmark = tuple[int, str, int]


class PdfFailed(CommandError):
    """The merged book is not complete, or Chromium could not print it."""

    status = 1


def add_parser(subparsers: Any) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "pdf",
        help="print the whole book as one PDF",
        description="Merge the pages of the built site and print them as one PDF.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="where the PDF goes")
    parser.add_argument("--browser", metavar="PATH", help="the Chromium to print with")
    parser.set_defaults(run=make_pdf)


def make_pdf(arguments: argparse.Namespace) -> int:
    """Write the PDF and print its path."""
    checkout = find_checkout()
    output = arguments.output or checkout.build / "labelaudit.pdf"
    if output.is_dir():
        raise CommandError(f"--output: {output} is a folder; name a file")
    if not (checkout.site / "index.html").is_file():
        raise CommandError("there is no site to print: run `labelbook book` first")
    browser = find_browser(arguments.browser)
    pages = write_pdf(checkout, output, browser)
    print(f"{checkout.shown(output)} ({pages} pages)")
    return 0


def find_browser(path: str | None) -> str:
    """The Chromium that is asked for, or else the system's."""
    if path and not shutil.which(path):
        raise CommandError(f"--browser: {path!r} is not a program")
    for name in [path] if path else BROWSERS:
        if program := shutil.which(name):
            return program
    raise CommandError(f"no Chromium: looked for {', '.join(BROWSERS)}; name one with --browser")


def write_pdf(checkout: Checkout, output: Path, browser: str) -> int:
    """Print the merged book twice, with the page numbers of the first copy; give the pages."""
    try:
        import playwright
        import pypdf
    except ModuleNotFoundError as error:
        raise CommandError(
            f"`labelbook pdf` needs {error.name}: pip install --editable '.[book,pdf]'"
        ) from None
    del playwright
    from book.tools.merged import merge

    config = yaml.safe_load((checkout.root / "_config.yml").read_text(encoding="utf-8"))
    book = merge(
        checkout.site, parts(checkout), config["title"], config.get("author", ""), version()
    )
    if book.dangling:
        raise PdfFailed(f"links that lead nowhere: {', '.join(sorted(book.dangling))}")
    # Beside the site, so that the merged page reads its images and style sheets by short paths.
    with tempfile.TemporaryDirectory(dir=checkout.site.parent, prefix=".pdf-") as folder:
        source, printed = Path(folder, "book.html"), Path(folder, "book.pdf")
        numbers: list[int] = []
        for copy in (1, 2):
            say(f"printing the book, copy {copy} of 2")
            source.write_text(book.html(numbers), encoding="utf-8")
            print_page(source, printed, browser)
            outline = list(bookmarks(pypdf.PdfReader(printed)))
            check_outline(book, outline)
            previous, numbers = numbers, [page for _, _, page in outline]
        if previous != numbers:
            raise PdfFailed("the list of contents is longer with its page numbers than without")
        pages = len(pypdf.PdfReader(printed).pages)
        write_atomically(output, finish(printed, book))
    return pages


def version() -> str:
    """The version that the title page names."""
    return metadata.version("labelaudit")


def parts(checkout: Checkout) -> list[tuple[str, list[str]]]:
    """The parts of the book with their pages, in its order; the first holds the landing page."""
    toc = yaml.safe_load((checkout.root / "_toc.yml").read_text(encoding="utf-8"))
    listed = [("", [toc["root"]])]
    for part in toc["parts"]:
        pages = [str(chapter["file"]) for chapter in part["chapters"]]
        listed.append((part.get("caption", ""), pages))
    return listed


def print_page(source: Path, output: Path, browser: str) -> None:
    """Let Chromium set the formulas of a page and print it."""
    from playwright.sync_api import Error, sync_playwright

    try:
        with sync_playwright() as api:
            running = api.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            try:
                page = running.new_page()
                page.set_default_timeout(0)
                page.goto(source.as_uri(), wait_until="load")
                page.evaluate("window.MathJax?.startup?.promise")
                if unset := page.evaluate(UNSET):
                    raise PdfFailed(f"formulas that MathJax could not set: {'; '.join(unset)}")
                page.emulate_media(media="print")
                page.evaluate(FILL_PAGES, PAGE)
                if wide := page.evaluate(TOO_WIDE, PAGE):
                    raise PdfFailed(f"wider than the paper: {'; '.join(wide)}")
                page.pdf(
                    path=output,
                    outline=True,
                    tagged=True,
                    prefer_css_page_size=True,
                    print_background=True,
                )
            finally:
                running.close()
    except Error as error:
        raise PdfFailed(f"Chromium could not print the book: {error.message}") from None


FILL_PAGES = Path(__file__).with_name("paper.js").read_text(encoding="utf-8")
# What `merged.STYLE` leaves of a sheet of A4, in pixels of 1/96 inch.
PAGE = {"width": (210 - 2 * 17) * 96 / 25.4, "height": (297 - 2 * 18) * 96 / 25.4}

# The formulas of the page that are still TeX, or an error message of MathJax.
UNSET = """() => [...document.querySelectorAll('.math')]
    .filter(formula => !formula.querySelector('mjx-container') ||
                       formula.querySelector('[data-mml-node="merror"]'))
    .map(formula => formula.textContent.trim().slice(0, 80)).slice(0, 5)"""

# What is wider than a sheet: Chromium would shrink all pages to fit it, not this one alone.
TOO_WIDE = """({ width }) => [...document.querySelectorAll('.page-of-book')].flatMap(article => {
    const style = article.getAttribute('style') ?? '';
    article.style.width = `${width}px`;
    const edge = article.getBoundingClientRect().right + 1;
    const wide = [...article.querySelectorAll('table, pre, img, div')]
        .filter(element => element.checkVisibility())
        .filter(element => element.getBoundingClientRect().right > edge)
        .map(element => `${element.localName} ${element.textContent.trim().slice(0, 40)}`);
    article.setAttribute('style', style);
    return wide;
}).slice(0, 5)"""


def bookmarks(reader: Any) -> Iterator[Bookmark]:
    """The bookmarks of a PDF from top to bottom, each with its level and its page, from 1."""

    def walk(items: Sequence[Any], level: int) -> Iterator[Bookmark]:
        for item in items:
            if isinstance(item, list):
                yield from walk(item, level + 1)
            else:
                yield (
                    level,
                    " ".join(item.title.split()),
                    reader.get_destination_page_number(item) + 1,
                )

    return walk(reader.outline, 1)


def check_outline(book: Merged, outline: Sequence[Bookmark]) -> None:
    """Make sure that every heading has its bookmark, in order and at its level."""
    # Chromium drops the space where a heading breaks into two lines.
    bookmarks = [(level, "".join(title.split())) for level, title, _ in outline]
    wanted = [(level, "".join(title.split())) for level, title in book.headings]
    if bookmarks != wanted:
        pairs = itertools.zip_longest(bookmarks, wanted, fillvalue=(0, "nothing"))
        (_, bookmark), (_, heading) = next(pair for pair in pairs if pair[0] != pair[1])
        raise PdfFailed(f"the bookmark {bookmark!r} stands where the heading {heading!r} should")


def finish(printed: Path, book: Merged) -> bytes:
    """Write the headings into the bookmarks as they read on the page, and the author's name."""
    import pypdf
    from pypdf.generic import NameObject, TextStringObject

    writer = pypdf.PdfWriter(clone_from=printed)
    titles = (title for _, title in book.headings)

    def walk(item: Any) -> None:
        while item is not None:
            item = item.get_object()
            item[NameObject("/Title")] = TextStringObject(next(titles))
            if "/First" in item:
                walk(item["/First"])
            item = item.get("/Next")

    outlines: Any = writer.root_object["/Outlines"]
    walk(outlines["/First"])
    writer.add_metadata({"/Title": book.title, "/Author": book.author})
    content = io.BytesIO()
    writer.write(content)
    return content.getvalue()


def say(text: str) -> None:
    """Tell a person at the terminal what takes the time."""
    print(text, file=sys.stderr, flush=True)
