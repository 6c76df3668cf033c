"""The commands `chapters`, `run` and `book`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Any

from labelaudit.book.checkout import Checkout, NoCheckout, find_checkout, locked
from labelaudit.book.contract import (
    SCALES,
    Chapter,
    ContractError,
    check_cell,
    find_chapter,
    load_chapters,
)
from labelaudit.cli import Refusal

RUN_EXAMPLES = """\
examples:
  labelaudit run 07_scatter_plots
  labelaudit run 07_scatter_plots -p bag_sizes '[4, 16]' -p epsilons '[0.5]'
  labelaudit run 02_additive_advantage --scale smoke

Values are YAML: 8, 0.5, true, uniform, '[4, 16]'. The page and the notebook go to
_build/runs/<chapter>-<digest of the parameters>/; the book's own page stays as it is. A run that is
there already and still up to date is shown, not repeated.

exit status: 0 done, 1 the chapter failed, 2 refused before anything ran, 130 interrupted
"""
BOOK_EXAMPLES = """\
examples:
  labelaudit book                  the default book
  labelaudit book --scale smoke    the same pages from tiny runs, in about a minute
  labelaudit book --fresh          run every chapter again, out of date or not

The site is in _build/html. A failing cell, or a warning of Sphinx, leaves the last good site there.

exit status: 0 done, 1 a chapter or the site failed, 2 refused before anything ran, 130 interrupted
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
    run.add_argument("chapter", help="a chapter's id, as `labelaudit chapters` lists it")
    run.add_argument(
        "-p",
        "--parameter",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="set one parameter; may be repeated",
    )
    _add_scale(run)
    run.add_argument("--fresh", action="store_true", help="run it even if it is up to date")
    run.set_defaults(run=run_chapter)

    book = subparsers.add_parser(
        "book",
        help="run what is out of date and build the site",
        epilog=BOOK_EXAMPLES,
        description="Run the chapters that are out of date, side by side, and build the site.",
        formatter_class=form,
    )
    _add_scale(book)
    book.add_argument("--fresh", action="store_true", help="run every chapter again")
    book.add_argument(
        "--workers",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="chapters to run at once (default: one per core, here %(default)s)",
    )
    book.set_defaults(run=build_book)


def _add_scale(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scale",
        choices=SCALES,
        default="laptop",
        help="values of the parameters you do not set: smoke takes seconds, laptop minutes,"
        " paper is the full experiment (default: laptop)",
    )


def list_chapters(arguments: argparse.Namespace) -> int:
    """Print every chapter with its parameters, ranges, values and costs."""
    _, chapters = _open()
    shown = [_find(chapters, arguments.chapter)] if arguments.chapter else chapters.values()
    print("\n\n".join(_listing(chapter) for chapter in shown))
    return 0


def run_chapter(arguments: argparse.Namespace) -> int:
    """Run one chapter with the reader's parameters, and say where the page is."""
    checkout, chapters = _open()
    chapter = _find(chapters, arguments.chapter)
    try:
        check_source(checkout, chapter)
        overrides = {name: _yaml(name, text) for name, text in arguments.parameter}
        _absolute_paths(chapter, overrides)
        parameters = chapter.resolve(arguments.scale, overrides)
    except ContractError as error:
        raise Refusal(str(error)) from None

    from labelaudit.book.page import write_page

    job = {"scale": arguments.scale, "fresh": arguments.fresh, "threads": os.cpu_count() or 1}
    progress = {"desc": chapter.id, "leave": False} if sys.stderr.isatty() else False
    [execution] = _execute_all(
        checkout, [(chapter, parameters)], workers=1, progress=progress, **job
    )
    page = write_page(checkout, execution)
    print(checkout.shown(page))
    return 0


def build_book(arguments: argparse.Namespace) -> int:
    """Run what is out of date, side by side, and build the site."""
    checkout, chapters = _open()
    if arguments.workers < 1:
        raise Refusal(f"--workers: {arguments.workers} is not a whole number of at least 1")

    from labelaudit.book.site import SiteFailed, build_site, chapters_in_toc, stage

    try:
        listed = chapters_in_toc(checkout, chapters)
        for chapter in listed:
            check_source(checkout, chapter)
    except ContractError as error:
        raise Refusal(str(error)) from None
    started = time.monotonic()
    workers = max(1, min(arguments.workers, len(listed)))
    with locked(checkout.build / "book.lock", "building the book"):
        executions = _execute_all(
            checkout,
            [(chapter, chapter.values(arguments.scale)) for chapter in listed],
            workers=workers,
            scale=arguments.scale,
            fresh=arguments.fresh,
            threads=max(1, (os.cpu_count() or 1) // workers),
            progress=False,
        )
        stage(checkout, executions)
        try:
            built = build_site(checkout)
        except SiteFailed as error:
            raise Refusal(
                f"the site has warnings, so the last good one stays:\n{error}", 1
            ) from None
    state = "built" if built else "is up to date"
    print(f"the site {state} ({time.monotonic() - started:.0f} s)")
    print(checkout.shown(checkout.site / "index.html"))
    return 0


def check_source(checkout: Checkout, chapter: Chapter) -> None:
    """Refuse a chapter that is not there, or whose cell does not fit its declaration."""
    source = checkout.source(chapter.id)
    if not source.is_file():
        raise ContractError(
            f"{chapter.id} is declared in chapters.yml, but {source.name} is absent"
        )
    check_cell(chapter, source)


def _execute_all(
    checkout: Checkout, work: list[tuple[Chapter, dict[str, Any]]], *, workers: int, **options: Any
) -> list[Any]:
    """Execute chapters in threads, one kernel each; the first failure, or Ctrl-C, ends them all."""
    from labelaudit.book.kernel import kill_running_kernels
    from labelaudit.book.runner import ChapterFailed, execute

    with ThreadPoolExecutor(workers) as pool:
        futures: list[Future[Any]] = [
            pool.submit(execute, checkout, chapter, parameters, **options)
            for chapter, parameters in work
        ]
        try:
            for future in futures:
                future.add_done_callback(_report)
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            kill_running_kernels()
            if isinstance(error, ChapterFailed):
                raise Refusal(str(error), 1) from None
            raise
    return [future.result() for future in futures]


def _open() -> tuple[Checkout, dict[str, Chapter]]:
    try:
        checkout = find_checkout()
        return checkout, load_chapters(checkout.chapters_file)
    except (NoCheckout, ContractError) as error:
        raise Refusal(str(error)) from None


def _find(chapters: dict[str, Chapter], name: str) -> Chapter:
    try:
        return find_chapter(chapters, name)
    except ContractError as error:
        raise Refusal(str(error)) from None


def _yaml(name: str, text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise ContractError(f"{name}: {text!r} is not valid YAML") from None


def _absolute_paths(chapter: Chapter, overrides: dict[str, Any]) -> None:
    """A reader names files from where they stand; the chapter runs somewhere else."""
    for name, value in overrides.items():
        parameter = chapter.parameters.get(name)
        if parameter and parameter.type == "path" and isinstance(value, str) and value:
            overrides[name] = os.path.abspath(os.path.expanduser(value))


def _report(future: Future[Any]) -> None:
    if not future.cancelled() and future.exception() is None:
        print(_outcome(future.result()), flush=True)


def _outcome(execution: Any) -> str:
    name = execution.chapter.id
    if not execution.reason:
        return f"{name}: up to date"
    return f"{name}: ran in {execution.facts['seconds']:.1f} s ({execution.reason})"


def _listing(chapter: Chapter) -> str:
    costs = ", ".join(f"{scale} {chapter.seconds[scale]:g} s" for scale in SCALES)
    reads = ", ".join(chapter.data) or "none"
    lines = [f"{chapter.id}: {chapter.title}", f"  expected time: {costs}; data: {reads}"]
    for parameter in chapter.parameters.values():
        lines.append(f"  {parameter.name}: {parameter.meaning}")
        lines.append(f"    {parameter.type}, allowed: {parameter.allowed}")
        values = [f"{scale} {_plain(parameter.values[scale])}" for scale in SCALES]
        lines.append(f"    {', '.join(values)}")
    return "\n".join(lines)


def _plain(value: Any) -> str:
    return f"[{', '.join(map(_plain, value))}]" if isinstance(value, list) else str(value)
