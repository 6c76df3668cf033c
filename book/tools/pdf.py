"""The whole book as one PDF: Chromium prints each page of the built site, pypdf joins them.

MathJax sets the formulas as it does on the site. A link to another page of the book becomes one
inside the document; a link to a file of the site, which paper cannot follow, becomes text. The
pages of the package's functions and what is about running a chapter again are left out.
"""

from __future__ import annotations

import argparse
import io
import logging
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag

import yaml

from book.tools.checkout import Checkout, find_checkout
from labelaudit.command_line import CommandError
from labelaudit.files import write_atomically

if TYPE_CHECKING:
    from playwright.sync_api import Page
    from pypdf import PdfReader, PdfWriter

# It warns of the count of objects in every PDF that Chromium has written.
logging.getLogger("pypdf").setLevel(logging.ERROR)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NOT_PRINTED = ("book/api",)
EXAMPLES = """\
examples:
  labelbook pdf                       _build/labelaudit.pdf, from the site in _build/html
  labelbook pdf --output book.pdf

The site must have been built (`labelbook book`). It takes a Chromium and the extra `pdf`.

exit status: 0 done, 1 the book could not be printed, 2 invalid input, 130 interrupted
"""
# Beside the rules of the book's own style sheet for paper.
STYLE = """
@page { size: A4; margin: 18mm 17mm;
  @bottom-center { content: counter(page); font: 9pt sans-serif; color: #48566b; } }
html { counter-reset: page %d; }
/* What is unfolded would fade in while it is printed. */
* { animation: none !important; transition: none !important; }
.run-this-chapter, .how-this-page-was-made, .toctree-wrapper, .sd-stretched-link,
  .bd-article::after, button { display: none !important; }
.bd-article :is(.admonition, .proof, .solution, details) { overflow: visible !important; }
.bd-article details.ledger-proof > summary { display: block; font-style: italic; }
"""
# Give a page its form on paper, and its headings of the first two levels with their anchors. The
# hidden links let Chromium write down where every anchor is, so that other pages can lead there.
PREPARE = """(printed) => {
  const article = document.querySelector("article.bd-article");
  // Prose refers to a folded table. Other code and results that are folded are left out.
  const code = ".tag_hide-output:has(table.dataframe) details:not(:has(table.dataframe))";
  article.querySelectorAll(`.headerlink, ${code}`).forEach((part) => part.remove());
  const open = "details:is(.folded-proof, .ledger-proof, .hide:has(table.dataframe))";
  article.querySelectorAll(open).forEach((folded) => { folded.open = true; });
  for (const link of article.querySelectorAll("a[href]")) {
    const path = decodeURI(link.href.split("#")[0]);
    if (link.protocol === "file:" && !printed.includes(path)) {
      link.replaceWith(...link.childNodes);
    }
  }
  const solutions = article.querySelectorAll("div.solution");
  if (solutions.length) {
    const last = Object.assign(document.createElement("section"), { id: "solutions-at-the-end" });
    last.innerHTML = "<h2>Solutions</h2>";
    last.append(...solutions);
    article.querySelector("section").append(last);
  }
  for (const { id } of article.querySelectorAll("[id]")) {
    const link = Object.assign(document.createElement("a"), { href: `#${id}`, hidden: true });
    document.body.append(link);
  }
  return [...article.querySelectorAll("h1, h2")].map((heading) =>
    [heading.textContent.trim().replace(/\\s+/g, " "), heading.closest("[id]").id]);
}"""
# The formulas of the page that are still TeX, or an error message of MathJax.
UNSET = """() => [...document.querySelectorAll('.math')]
    .filter(formula => !formula.querySelector('mjx-container') ||
                       formula.querySelector('[data-mml-node="merror"]'))
    .map(formula => formula.textContent.trim().slice(0, 80)).slice(0, 5)"""


class PdfFailed(CommandError):
    """Chromium could not print the book, or not all of it."""

    status = 1


@dataclass(frozen=True)
class Printed:
    """A page of the site as a PDF, with its headings: text and anchor, its title first."""

    address: str
    headings: Sequence[tuple[str, str]]
    reader: PdfReader


def add_parser(subparsers: Any) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "pdf",
        help="print the whole book as one PDF",
        description="Print the pages of the built site and join them in one PDF.",
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
    sheets = write_pdf(checkout, output, find_browser(arguments.browser))
    print(f"{checkout.shown(output)} ({sheets} pages)")
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
    """Print every page and join them; give the number of sheets."""
    try:
        import playwright
        import pypdf
    except ModuleNotFoundError as error:
        raise CommandError(
            f"`labelbook pdf` needs {error.name}: pip install --editable '.[book,pdf]'"
        ) from None
    del playwright, pypdf
    parts, addresses = zip(*contents(checkout), strict=True)
    print(f"printing {len(addresses)} pages of the site", file=sys.stderr, flush=True)
    book = join(zip(parts, print_pages(addresses, browser), strict=True))
    config = yaml.safe_load((checkout.root / "_config.yml").read_text(encoding="utf-8"))
    version = f"version {metadata.version('labelaudit')}"
    author = config.get("author", "")
    book.add_metadata({"/Title": config["title"], "/Author": author, "/Subject": version})
    content = io.BytesIO()
    book.write(content)
    write_atomically(output, content.getvalue())
    return len(book.pages)


def contents(checkout: Checkout) -> list[tuple[str, str]]:
    """The pages that are printed, in the book's order: the part and the address of each."""
    toc = yaml.safe_load((checkout.root / "_toc.yml").read_text(encoding="utf-8"))
    return [
        (part.get("caption", ""), unquote((checkout.site / f"{page['file']}.html").as_uri()))
        for part in [{"chapters": [{"file": toc["root"]}]}, *toc["parts"]]
        for page in part["chapters"]
        if page["file"] not in NOT_PRINTED
    ]


def print_pages(addresses: Sequence[str], browser: str) -> list[Printed]:
    """Let Chromium print the pages one after the other; their sheets are numbered through."""
    from playwright.sync_api import Error, sync_playwright

    printed: list[Printed] = []
    try:
        with sync_playwright() as api:
            running = api.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            try:
                tab = running.new_page()
                tab.set_default_timeout(0)
                for address in addresses:
                    before = sum(len(page.reader.pages) for page in printed)
                    printed.append(print_page(tab, address, addresses, before))
            finally:
                running.close()
    except Error as error:
        raise PdfFailed(f"Chromium could not print the book: {error.message}") from None
    return printed


def print_page(tab: Page, address: str, addresses: Sequence[str], before: int) -> Printed:
    """Print a page once all its formulas are set; `before` is the number of sheets before it."""
    from pypdf import PdfReader

    tab.goto(address, wait_until="load")
    tab.add_style_tag(content=STYLE % before)
    tab.evaluate("window.MathJax?.startup?.promise")
    if unset := tab.evaluate(UNSET):
        raise PdfFailed(f"{address}: formulas that MathJax could not set: {'; '.join(unset)}")
    headings = tab.evaluate(PREPARE, addresses)
    content = tab.pdf(prefer_css_page_size=True, print_background=True, tagged=True)
    return Printed(address, headings, PdfReader(io.BytesIO(content)))


def join(pages: Iterable[tuple[str, Printed]]) -> PdfWriter:
    """One document of all pages with their parts: with an outline, inner links and tags."""
    from pypdf import PdfWriter
    from pypdf.generic import Destination, Fit, NameObject

    book = PdfWriter()
    parts: dict[str, Any] = {"": None}
    # Where an anchor of an address is: its sheet, and how high on it.
    places: dict[tuple[str, str], tuple[Any, Fit]] = {}
    goals: list[tuple[Any, tuple[str, str]]] = []
    for part, printed in pages:
        address, reader = printed.address, printed.reader
        sheets = [book.add_page(sheet) for sheet in reader.pages]
        links = [link.get_object() for sheet in sheets for link in sheet.get("/Annots", ())]
        goals += [(link, goal(link, address)) for link in links]
        add_tags(book, reader, sheets, links)
        places[address, ""] = sheets[0], Fit.xyz()
        for anchor, point in reader.named_destinations.items():
            sheet = sheets[reader.get_destination_page_number(point) or 0]
            places[address, anchor[1:]] = sheet, Fit.xyz(top=point.top)
        if part not in parts:
            parts[part] = book.add_outline_item(title=part, page_number=sheets[0])
        (title, _), *sections = printed.headings
        options = {"parent": parts[part], "is_open": False}
        above = book.add_outline_item(title=title, page_number=sheets[0], **options)
        for section, anchor in sections:
            sheet, fit = places[address, anchor]
            book.add_outline_item(title=section, page_number=sheet, parent=above, fit=fit)
    for link, place in goals:
        if place in places:
            sheet, fit = places[place]
            link.pop("/A", None)
            target = Destination("", sheet.indirect_reference, fit)
            link[NameObject("/Dest")] = target.dest_array
    return book


def goal(link: Any, address: str) -> tuple[str, str]:
    """The address and the anchor that a link of a page leads to."""
    if "/Dest" in link:
        return address, str(link["/Dest"])[1:]
    path, anchor = urldefrag(str(link["/A"]["/URI"]))
    return unquote(path), unquote(anchor)


def add_tags(
    book: PdfWriter,
    reader: PdfReader,
    sheets: Sequence[Any],
    links: Sequence[Any],
) -> None:
    """Join the tree of tags of a document, which screen readers use, to that of the book."""
    from pypdf.generic import ArrayObject, NameObject, NumberObject

    catalog: Any = reader.root_object
    originals: Sequence[Any] = reader.pages
    tree = catalog["/StructTreeRoot"].clone(book)
    whole: Any = book.root_object.get("/StructTreeRoot", tree).get_object()
    offset = 0
    if whole is tree:
        book.root_object[NameObject("/StructTreeRoot")] = tree.indirect_reference
        for key in ("/MarkInfo", "/ViewerPreferences", "/Lang"):
            book.root_object[NameObject(key)] = catalog[key].clone(book)
        tree[NameObject("/K")] = ArrayObject([tree.raw_get("/K")])
    else:
        offset = whole["/ParentTreeNextKey"]
        tree["/K"][NameObject("/P")] = whole.indirect_reference
        whole["/K"].append(tree.raw_get("/K"))
        numbers = tree["/ParentTree"]["/Nums"]
        for number, parents in zip(numbers[::2], numbers[1::2], strict=True):
            whole["/ParentTree"]["/Nums"].extend((NumberObject(offset + number), parents))
        last = NumberObject(offset + tree["/ParentTreeNextKey"])
        whole[NameObject("/ParentTreeNextKey")] = last
    for sheet, original in zip(sheets, originals, strict=True):
        # A copied sheet has lost its number.
        sheet[NameObject("/StructParents")] = NumberObject(offset + original["/StructParents"])
    for link in links:
        link[NameObject("/StructParent")] = NumberObject(offset + link["/StructParent"])
