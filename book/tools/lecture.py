"""The commands for a lecture: `slides` makes a deck of a chapter, `handout` what goes on paper."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path
from typing import Any

from book.tools.chapters import find_chapter, load_chapters
from book.tools.checkout import find_checkout
from book.tools.commands import add_scale, report_execution
from labelaudit.command_line import counted

SLIDES_EXAMPLES = """\
examples:
  labelbook slides 02_additive_advantage
  labelbook slides 02 --check      is the deck up to date?

The deck is one file, _build/slides/<chapter>.html, and needs no network: boxes, figures and small
tables are slides, in the chapter's order, and predictions come before the first figure. Prose,
proofs and solutions are speaker notes: press S. It needs the extra `slides`.

exit status: 0 done, 1 the chapter failed or the deck is out of date, 2 invalid input
"""
HANDOUT_EXAMPLES = """\
examples:
  labelbook handout 01 02 07 --out ../handout

The folder gets predictions.html, a sheet to write on; cards.html, the cards of a first game; and
figures/, the figures of these chapters by name, as svg and png. It takes a Chromium.
"""


def add_parser(subparsers: Any) -> None:
    """Register the commands."""
    form = argparse.RawDescriptionHelpFormatter
    slides = subparsers.add_parser(
        "slides",
        help="make slides of a chapter",
        description="Make a deck of slides from a chapter, with speaker notes.",
        epilog=SLIDES_EXAMPLES,
        formatter_class=form,
    )
    slides.add_argument("chapter", help="a chapter's id, as `labelbook chapters` lists it")
    add_scale(slides, "values of the chapter's parameters")
    slides.add_argument("--check", action="store_true", help="only say whether it is up to date")
    slides.add_argument("--open", action="store_true", help="open the deck in the browser")
    slides.set_defaults(run=make_deck)

    handout = subparsers.add_parser(
        "handout",
        help="make what a lecture needs on paper",
        description="Make a sheet for predictions, cards for a game, and files of the figures.",
        epilog=HANDOUT_EXAMPLES,
        formatter_class=form,
    )
    handout.add_argument("chapters", nargs="+", metavar="CHAPTER", help="the lecture's chapters")
    add_scale(handout, "values of the chapters' parameters")
    handout.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where to write")
    handout.add_argument("--browser", metavar="PATH", help="the Chromium to draw with")
    handout.set_defaults(run=make_handout)


def make_deck(arguments: argparse.Namespace) -> int:
    """Write the deck of a chapter, unless it is up to date."""
    from book.tools.runner import execute, why_stale
    from book.tools.slides import deck_path, is_current, reveal_folder, write_deck

    reveal_folder()
    checkout = find_checkout()
    chapter = find_chapter(load_chapters(checkout.chapters_file), arguments.chapter)
    values = chapter.values(arguments.scale)
    deck = deck_path(checkout, chapter.id)
    if arguments.check and not deck.exists():
        print(f"there is no {checkout.shown(deck)}: make it with labelbook slides {chapter.id}")
        return 1
    if arguments.check and (reason := why_stale(checkout, chapter, values)):
        print(f"{checkout.shown(deck)} is out of date ({reason})")
        return 1
    execution = execute(checkout, chapter, values, scale=arguments.scale)
    current = is_current(checkout, execution)
    if arguments.check:
        print(f"{checkout.shown(deck)} is {'up to date' if current else 'out of date'}")
        return 0 if current else 1
    report_execution(execution)
    if not current:
        print(counted(len(write_deck(checkout, execution)), "slide"), flush=True)
    print(checkout.shown(deck))
    if arguments.open:
        webbrowser.open(deck.resolve().as_uri())
    return 0


def make_handout(arguments: argparse.Namespace) -> int:
    """Write the sheet, the cards and the figures."""
    from book.tools.handout import write_handout, write_png
    from book.tools.pdf import find_browser
    from book.tools.runner import execute

    browser = find_browser(arguments.browser)  # before minutes of running

    checkout = find_checkout()
    declared = load_chapters(checkout.chapters_file)
    chapters = [find_chapter(declared, name) for name in arguments.chapters]
    executions = []
    for chapter in chapters:
        values = chapter.values(arguments.scale)
        executions.append(execute(checkout, chapter, values, scale=arguments.scale))
        report_execution(executions[-1])
    names = write_handout(checkout, executions, arguments.out)
    for name in names:
        write_png(arguments.out / "figures" / f"{name}.svg", browser)
    print(f"sheet, cards and {counted(len(names), 'figure')} written to {arguments.out}")
    return 0
