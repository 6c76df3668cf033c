"""The commands `chapters`, `run` and `book`."""

from __future__ import annotations

import argparse
import os
import sys
import time
import webbrowser
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from book.tools.chapters import Chapter, find_chapter, load_chapters
from book.tools.checkout import find_checkout, waiting_lock
from book.tools.parameters import SCALES, ContractError

if TYPE_CHECKING:
    from book.tools.runner import Execution, Progress

RUN_EXAMPLES = """\
examples:
  labelbook run 07_scatter_plots
  labelbook run 07_scatter_plots -p bag_sizes '[4, 16]' -p epsilons '[0.5]'
  labelbook run 02_additive_advantage --scale smoke

Values are YAML: 8, 0.5, true, uniform, '[4, 16]'. The page and the notebook go to
_build/runs/<chapter>-<scale>-<what differs>-<digest>/, and _build/runs/index.html lists them; the
book's own page stays as it is. A run that is there already and still up to date is not repeated.

exit status: 0 done, 1 the chapter failed, 2 invalid input, nothing ran, 130 interrupted
"""
BOOK_EXAMPLES = """\
examples:
  labelbook book                  the default book
  labelbook book --scale smoke    the same pages from tiny runs, in a few minutes
  labelbook book --fresh          run every chapter again, out of date or not

The site is in _build/html. A failing cell, or a warning of Sphinx, leaves the last good site there.

exit status: 0 done, 1 a chapter or the site failed, 2 invalid input, nothing ran, 130 interrupted
"""


def add_parser(subparsers: Any) -> None:
    """Register the three commands."""
    form = argparse.RawDescriptionHelpFormatter

    listing = subparsers.add_parser(
        "chapters",
        help="list the chapters, their parameters and what they cost",
        description="List the chapters with their parameters, ranges and expected times.",
    )
    listing.add_argument("chapter", nargs="?", help="show this chapter only")
    listing.set_defaults(run=list_chapters)

    run = subparsers.add_parser(
        "run",
        help="run one chapter with parameters of your own",
        epilog=RUN_EXAMPLES,
        description="Run one chapter and write its notebook and a page of its own.",
        formatter_class=form,
    )
    run.add_argument("chapter", help="a chapter's id, as `labelbook chapters` lists it")
    run.add_argument(
        "-p",
        "--parameter",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="set one parameter; may be repeated",
    )
    add_scale(run)
    run.add_argument("--fresh", action="store_true", help="run it even if it is up to date")
    run.add_argument("--open", action="store_true", help="open the page in the browser")
    run.set_defaults(run=run_chapter)

    book = subparsers.add_parser(
        "book",
        help="run what is out of date and build the site",
        epilog=BOOK_EXAMPLES,
        description="Run the chapters that are out of date, in parallel, and build the site.",
        formatter_class=form,
    )
    add_scale(book)
    book.add_argument("--fresh", action="store_true", help="run every chapter again")
    book.add_argument(
        "--workers",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="chapters to run at once (default: one per core, here %(default)s)",
    )
    book.set_defaults(run=build_book)


def add_scale(
    parser: argparse.ArgumentParser, values: str = "values of the parameters you do not set"
) -> None:
    """Offer the choice of a scale; `values` says what it decides."""
    parser.add_argument(
        "--scale",
        choices=SCALES,
        default="laptop",
        help=f"{values}: smoke takes seconds, laptop minutes, paper is the full experiment"
        " (default: laptop)",
    )


def list_chapters(arguments: argparse.Namespace) -> int:
    """Print every chapter with its parameters, ranges, values and costs."""
    chapters = load_chapters(find_checkout().chapters_file)
    named = arguments.chapter
    shown = [find_chapter(chapters, named)] if named else list(chapters.values())
    print("\n\n".join(_listing(chapter) for chapter in shown))
    return 0


def run_chapter(arguments: argparse.Namespace) -> int:
    """Run one chapter with the reader's parameters, and print the path of its page."""
    checkout = find_checkout()
    chapter = find_chapter(load_chapters(checkout.chapters_file), arguments.chapter)
    parameters = chapter.resolve(arguments.scale, chapter.read(arguments.parameter))

    from book.tools.page import write_page
    from book.tools.runner import execute_all

    [execution] = execute_all(
        checkout, [(chapter, parameters)], report_execution, workers=1, **_options(arguments)
    )
    if sys.stderr.isatty():
        print("making the page", file=sys.stderr)
    page = write_page(checkout, execution)
    print(checkout.shown(page))
    if arguments.open:
        webbrowser.open(page.resolve().as_uri())
    return 0


def build_book(arguments: argparse.Namespace) -> int:
    """Run what is out of date, in parallel, and build the site."""
    if arguments.workers < 1:
        raise ContractError(f"--workers: {arguments.workers} is not a whole number of at least 1")
    checkout = find_checkout()

    from book.tools.runner import execute_all
    from book.tools.site import build_site, chapters_in_toc, restore_folder, stage

    started = time.monotonic()
    listed = chapters_in_toc(checkout)
    longest_first = sorted(listed, key=lambda chapter: -chapter.seconds[arguments.scale])
    work = [(chapter, chapter.values(arguments.scale)) for chapter in longest_first]
    workers = max(1, min(arguments.workers, len(work)))
    with waiting_lock(checkout.build / "book.lock", "building the book"):
        restore_folder(checkout.site)
        clock = Clock(listed, arguments.scale, workers)

        def report(execution: Execution) -> None:
            report_execution(execution, f" [{clock.after(execution)}]")

        executions = execute_all(checkout, work, report, workers=workers, **_options(arguments))
        stage(checkout, executions)
        print("making the pages", flush=True)
        built = build_site(checkout)
    state = "built" if built else "is up to date"
    print(f"the site {state} ({time.monotonic() - started:.0f} s)")
    print(checkout.shown(checkout.site / "index.html"))
    return 0


class Clock:
    """How long a build will still take: the declared times, at the pace of the chapters so far."""

    # What Sphinx takes, which no chapter declares.
    PAGES = 60.0

    def __init__(self, chapters: Sequence[Chapter], scale: str, workers: int) -> None:
        """All chapters are still to come."""
        self.declared = {chapter.id: chapter.seconds[scale] for chapter in chapters}
        self.count, self.workers = len(chapters), workers
        self.took, self.expected = 0.0, 0.0

    def after(self, execution: Execution) -> str:
        """Take down a finished chapter, and say how many there are and how long the rest takes."""
        expected = self.declared.pop(execution.chapter.id)
        if execution.reason:
            self.took += execution.facts["seconds"]
            self.expected += expected
        pace = self.took / self.expected if self.expected else 1.0
        # The rest is shared by the workers, but no chapter is divided among them.
        rest = max([sum(self.declared.values()) / self.workers, *self.declared.values()])
        minutes = (pace * rest + self.PAGES) / 60
        left = f"about {minutes:.0f} min left" if minutes >= 1.5 else "about a minute left"
        return f"{self.count - len(self.declared)} of {self.count}, {left}"


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    options = {"scale": arguments.scale, "fresh": arguments.fresh}
    if sys.stderr.isatty():
        return options | {"progress": Bars()}
    # Where nobody watches bars, as in a log, a line says what has been begun.
    return options | {"starting": lambda chapter: print(f"{chapter.id}: running", flush=True)}


class Bars:
    """A progress bar for each chapter that runs: its cells, the heading, the time left."""

    def __init__(self) -> None:
        """No bar yet; chapters in several threads share this object."""
        self.bars: dict[str, Any] = {}

    def __call__(self, progress: Progress) -> None:
        """Move a chapter's bar; the one of its last cell is removed."""
        from tqdm import tqdm

        chapter = progress.chapter.id
        if chapter not in self.bars:
            shape = "{desc} |{bar:20}| cell {n_fmt} of {total_fmt}{postfix}"
            self.bars[chapter] = tqdm(
                total=progress.cells, desc=chapter, bar_format=shape, leave=False
            )
        bar = self.bars[chapter]
        bar.n = progress.cell
        left = f"about {progress.seconds_left:.0f} s left"
        bar.set_postfix_str(f"{left}, {progress.heading[:40]}")
        if progress.cell == progress.cells:
            self.bars.pop(chapter).close()


def report_execution(execution: Execution, progress: str = "") -> None:
    """Print the outcome of a chapter, on a line of its own above the progress bars."""
    from tqdm import tqdm

    outcome = "up to date"
    if execution.reason:
        outcome = f"ran in {execution.facts['seconds']:.1f} s ({execution.reason})"
    tqdm.write(f"{execution.chapter.id}: {outcome}{progress}")
    sys.stdout.flush()


def _listing(chapter: Chapter) -> str:
    from book.tools.panels import duration

    costs = ", ".join(f"{scale} {duration(chapter.seconds[scale])}" for scale in SCALES)
    reads = ", ".join(chapter.data) or "none"
    lines = [f"{chapter.id}: {chapter.title}", f"  expected time: {costs}; data: {reads}"]
    for parameter in chapter.parameters.values():
        lines.append(f"  {parameter.name}: {parameter.meaning}")
        lines.append(f"    {parameter.type}, allowed: {parameter.allowed}")
        values = [f"{scale} {_plain(parameter.values[scale])}" for scale in SCALES]
        lines.append(f"    {', '.join(values)}")
    return "\n".join(lines)


def _plain(value: Any) -> str:
    return (
        f"[{', '.join(map(_plain, value))}]" if isinstance(value, list) else str(value) or "empty"
    )
