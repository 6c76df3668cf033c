"""Execute a chapter, if it is out of date: text notebook, jupytext, papermill, notebook.

An execution lives in `_build/executed/<chapter>-<digest of parameters>/`. Its notebook appears
there only when every cell has run; until then, and after a failure, the cells that did run are
in `partial.ipynb`. The ingredients that made it are stored inside, so no other record is needed.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import papermill
from nbclient.exceptions import DeadKernelError
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError

from book.tools.cache_key import (
    data_read,
    imported_files,
    ingredients,
    package_files,
    run_name,
)
from book.tools.chapters import Chapter, read_source, with_values
from book.tools.checkout import Checkout, cancelled, waiting_lock
from book.tools.kernel import (
    FACTS,
    SPECIFICATION,
    START_SECONDS,
    BookKernel,
    cancel_everything,
    started_kernel,
)
from book.tools.parameters import ContractError
from book.tools.runs import book_facts
from labelaudit.command_line import CommandError
from labelaudit.files import digest, write_atomically

# papermill logs every cell; the terminal has the progress bar, and failures are reported whole.
logging.getLogger("papermill").setLevel(logging.CRITICAL)
# In seconds. A Ctrl-C may reach any thread, and is acted upon when the main one wakes.
MAX_WAIT = 0.5
# In seconds: how old the notebook of a run that is killed may be.
SAVE_EVERY = 5

# What a cell tagged `refuses` may raise to reject a parameter.
REJECTIONS = (
    *("ValueError", "TypeError", "CommandError"),
    *("DataError", "NotPrepared", "GridError", "StoreError"),
)


# Starts a kernel, given `folder`, the file for `imports` and the number of `threads`.
Kernels = Callable[..., contextlib.AbstractContextManager[BookKernel]]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run is: the cell, how many there are, the heading above it, the seconds left."""

    chapter: Chapter
    cell: int
    cells: int
    heading: str
    seconds_left: float


class SparingEngine(NBClientEngine):  # type: ignore[misc]
    """papermill's own, which writes the notebook before and after every cell; this one seldom.

    To write a notebook full of figures takes longer than most cells. The end of a run, whichever it
    is, writes it whole.
    """

    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, *arguments: Any, **options: Any) -> None:
        """Run the cells."""
        write = nb_man.save

        def save() -> None:
            if (nb_man.now() - nb_man.last_save_time).total_seconds() > SAVE_EVERY:
                write()

        nb_man.save = save
        try:
            super().execute_managed_notebook(nb_man, *arguments, **options)
        finally:
            nb_man.save = write


papermill_engines.register("sparing", SparingEngine)


class ChapterFailed(CommandError):
    """A cell of a chapter raised, or its kernel died; the message says which cell and why."""

    status = 1


@dataclass(frozen=True, kw_only=True)
class Execution:
    """An executed chapter: its folder, its notebook, and why it ran now ("" if it did not)."""

    chapter: Chapter
    folder: Path
    notebook: nbformat.NotebookNode
    reason: str = ""

    @property
    def facts(self) -> dict[str, Any]:
        """What made it: parameters, scale, data, versions, device, time."""
        return self.notebook.metadata["labelaudit"]


def execute_all(
    checkout: Checkout,
    work: Sequence[tuple[Chapter, Mapping[str, Any]]],
    report: Callable[[Execution], None],
    *,
    workers: int,
    **options: Any,
) -> list[Execution]:
    """Execute chapters in parallel, a kernel each; the first failure, or Ctrl-C, ends them all.

    The threads that watch the kernels share no state but the kernels' registry, and the cores are
    divided among the kernels.
    """
    threads = max(1, (os.cpu_count() or 1) // workers)
    try:
        with ThreadPoolExecutor(workers) as pool:
            try:
                futures = [
                    pool.submit(execute, checkout, chapter, parameters, threads=threads, **options)
                    for chapter, parameters in work
                ]
                waiting = set(futures)
                while waiting:
                    done, waiting = wait(waiting, MAX_WAIT, FIRST_COMPLETED)
                    for future in done:
                        report(future.result())
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                cancel_everything()
                raise
    finally:
        cancelled.clear()
    return [future.result() for future in futures]


def execute(
    checkout: Checkout,
    chapter: Chapter,
    parameters: Mapping[str, Any],
    *,
    scale: str,
    fresh: bool = False,
    threads: int = 1,
    progress: Callable[[Progress], None] = lambda progress: None,
    starting: Callable[[Chapter], None] = lambda chapter: None,
    kernels: Kernels = started_kernel,
) -> Execution:
    """Bring one chapter up to date with the given parameters, running it only where needed."""
    folder = checkout.executed(run_name(chapter.id, parameters))
    with waiting_lock(folder / "lock", f"running {chapter.id} with the same parameters"):
        data = data_read(checkout, chapter, parameters)
        # Both are taken before the run: what changes while the chapter runs is seen next time.
        key = ingredients(checkout, chapter, parameters, data)
        package = package_files(checkout)
        notebook = read_executed(folder)
        reason = "asked to" if fresh else _what_changed(notebook, key, package)
        if notebook is not None and not reason:
            # Where two scales have the same values, one execution serves both.
            notebook.metadata["labelaudit"]["scale"] = scale
            return Execution(chapter=chapter, folder=folder, notebook=notebook)
        made: dict[str, Any] = {
            "chapter": chapter.id,
            "key": key,
            "scale": scale,
            "parameters": dict(parameters),
            "data": data,
            "started": time.strftime("%Y-%m-%d %H:%M"),
        }
        starting(chapter)
        started = time.monotonic()
        before = notebook.metadata["labelaudit"] if notebook else book_facts(checkout, chapter.id)
        steps = Steps(chapter, before or {}, scale, progress)
        start = functools.partial(kernels, checkout, threads=threads)
        notebook, modules = _run(checkout, chapter, folder, parameters, start, steps)
        made["cell_seconds"] = steps.seconds
        made["seconds"] = round(time.monotonic() - started, 1)
        made["modules"] = modules
        key["package"] = digest(imported_files(package, modules))
        notebook = _kept(folder, notebook, made)
        return Execution(chapter=chapter, folder=folder, notebook=notebook, reason=reason)


def why_stale(checkout: Checkout, chapter: Chapter, parameters: Mapping[str, Any]) -> str:
    """Why a chapter would run again with these parameters; "" if its execution is up to date."""
    key = ingredients(checkout, chapter, parameters, data_read(checkout, chapter, parameters))
    stored = read_executed(checkout.executed(run_name(chapter.id, parameters)))
    return _what_changed(stored, key, package_files(checkout))


class Steps:
    """Follows a run from cell to cell: reports how far it is, and keeps what each cell took."""

    def __init__(
        self,
        chapter: Chapter,
        before: Mapping[str, Any],
        scale: str,
        progress: Callable[[Progress], None],
    ) -> None:
        """`before` is what made an earlier run, whose cells show how the time is divided."""
        self.chapter, self.progress = chapter, progress
        self.seconds: dict[str, float] = {}
        self.weights: Mapping[str, float] = before.get("cell_seconds", {})
        measured = before.get("seconds") if before.get("scale") == scale else None
        self.total = measured or chapter.seconds[scale]
        self.started = 0.0
        self.headings: dict[str, str] = {}

    def follow(self, notebook: nbformat.NotebookNode) -> None:
        """Take down the cells to come, each with the last heading above it."""
        heading = self.chapter.title
        for cell in notebook.cells:
            if cell.cell_type == "code":
                self.headings[cell.id] = heading
            elif titles := re.findall(r"^#+ +(.+)$", cell.source, re.MULTILINE):
                heading = titles[-1]

    def starts(self, cell: nbformat.NotebookNode, **position: Any) -> None:
        """Called by the notebook's client before each cell of code."""
        self.started = time.monotonic()
        names = list(self.headings)
        number = names.index(cell.id)
        weights = [self.weights.get(name, 0.01) for name in names]
        left = self.total * sum(weights[number:]) / sum(weights)
        self.progress(
            Progress(
                chapter=self.chapter,
                cell=number + 1,
                cells=len(names),
                heading=self.headings[cell.id],
                seconds_left=round(left, 1),
            )
        )

    def ended(self, cell: nbformat.NotebookNode, **reply: Any) -> None:
        """Called by the notebook's client after each cell of code."""
        self.seconds[cell.id] = round(time.monotonic() - self.started, 2)


def _run(
    checkout: Checkout,
    chapter: Chapter,
    folder: Path,
    parameters: Mapping[str, Any],
    start: Kernels,
    steps: Steps,
) -> tuple[nbformat.NotebookNode, list[str]]:
    """Run the chapter; give the notebook and the modules of the package that it imported."""
    files, partial, imports = (
        folder / name for name in ("files.partial", "partial.ipynb", "imports")
    )
    shutil.rmtree(files, ignore_errors=True)
    files.mkdir()
    imports.unlink(missing_ok=True)
    source = _prepared(with_values(read_source(checkout.source(chapter.id)), parameters))
    steps.follow(source)
    try:
        with start(folder=files, imports=imports) as kernel:
            notebook = papermill.execute_notebook(
                source,
                str(partial),
                engine_name="sparing",
                kernel_name="python3",
                km=kernel,
                start_timeout=START_SECONDS,
                progress_bar=False,
                on_cell_execute=steps.starts,
                on_cell_executed=steps.ended,
            )
    except PapermillExecutionError as error:
        if _rejects(source, error):
            partial.unlink(missing_ok=True)
            shutil.rmtree(files)
            raise ContractError(f"{chapter.id}: {error.evalue}") from None
        raise ChapterFailed(_failure(chapter, error, checkout.shown(partial))) from None
    except DeadKernelError:
        raise ChapterFailed(
            f"{chapter.id} failed: its kernel died, perhaps for lack of memory;"
            f" the cells that ran are in {checkout.shown(partial)}"
        ) from None
    modules = imports.read_text(encoding="utf-8").split() if imports.is_file() else []
    return notebook, sorted(set(modules))


def _kept(
    folder: Path, notebook: nbformat.NotebookNode, made: dict[str, Any]
) -> nbformat.NotebookNode:
    """Store a finished run, and give its notebook as a later build reads it back."""
    _finish(notebook, made)
    notebook = nbformat.reads(nbformat.writes(notebook), as_version=4)
    notebook.metadata["labelaudit"]["digest"] = _digest(notebook)
    text = nbformat.writes(notebook)
    # Python puts one beside a module that a chapter writes and imports; it is no file to offer.
    shutil.rmtree(folder / "files.partial" / "__pycache__", ignore_errors=True)
    # A run that is killed here must not leave an earlier notebook beside half of the files.
    (folder / "notebook.ipynb").unlink(missing_ok=True)
    shutil.rmtree(folder / "files", ignore_errors=True)
    os.replace(folder / "files.partial", folder / "files")
    write_atomically(folder / "notebook.ipynb", text)
    for leftover in ("partial.ipynb", "imports"):
        (folder / leftover).unlink(missing_ok=True)
    return nbformat.reads(text, as_version=4)


def _prepared(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Name the cells by their index, and add the one that asks for facts."""
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    notebook.metadata["kernelspec"] = dict(SPECIFICATION)
    notebook.cells.append(nbformat.v4.new_code_cell(FACTS, id="facts"))
    return notebook


def _finish(notebook: nbformat.NotebookNode, made: dict[str, Any]) -> None:
    """Take out all that differs between equal runs, and store what made this one."""
    facts = notebook.cells.pop()
    [printed] = [output["text"] for output in facts.outputs if output.get("name") == "stdout"]
    made |= json.loads(printed)
    made["headlines"] = _headlines(notebook)
    notebook.metadata.pop("papermill", None)
    for cell in notebook.cells:
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
    notebook.metadata["labelaudit"] = made


def _headlines(notebook: nbformat.NotebookNode) -> list[dict[str, str]]:
    """The numbers a chapter marked with `headline`, in its own order."""
    headlines = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            metadata = output.get("metadata", {})
            if "labelaudit" in metadata:
                (value,) = output["data"].values()
                name = metadata["scrapbook"]["name"]
                headlines.append({"name": name, "value": value} | metadata["labelaudit"])
    return headlines


def _digest(notebook: nbformat.NotebookNode) -> str:
    """The digest of everything in a notebook except itself."""
    made = notebook.metadata["labelaudit"]
    rest = {name: made[name] for name in made if name != "digest"}
    return digest({**notebook, "metadata": {**notebook.metadata, "labelaudit": rest}})


def read_executed(folder: Path) -> nbformat.NotebookNode | None:
    """The finished notebook of an earlier run, if there is one and it is as it was written."""
    try:
        notebook = nbformat.read(folder / "notebook.ipynb", as_version=4)
        sound = _digest(notebook) == notebook.metadata["labelaudit"]["digest"]
    # A damaged file may hold anything in the place of anything.
    except (OSError, ValueError, KeyError, TypeError, AttributeError, nbformat.ValidationError):
        return None
    return notebook if sound else None


def _what_changed(
    notebook: nbformat.NotebookNode | None, key: Mapping[str, str], package: Mapping[str, str]
) -> str:
    if notebook is None:
        return "first run"
    made = notebook.metadata["labelaudit"]
    now = {**key, "package": digest(imported_files(package, made["modules"]))}
    changed = [name for name in now if made["key"].get(name) != now[name]]
    return f"changed: {', '.join(changed)}" if changed else ""


def _rejects(source: nbformat.NotebookNode, error: PapermillExecutionError) -> bool:
    """Whether a cell tagged `refuses` has rejected the parameters.

    It checks what no declaration can: values that must fit each other, a reader's table.
    """
    expected = error.ename in REJECTIONS
    cells = (cell for cell in source.cells if "refuses" in cell.metadata.get("tags", []))
    return expected and any(cell.source == error.source for cell in cells)


def _failure(chapter: Chapter, error: PapermillExecutionError, partial: str) -> str:
    # papermill has put a notice above the notebook, so cell numbers in the file are one off;
    # the execution count is what Jupyter and the page both show.
    lines = [f"  {line}" for line in error.source.rstrip().splitlines()]
    shown = lines if len(lines) <= 12 else [*lines[:11], "  ..."]
    return "\n".join(
        [
            f"{chapter.id} failed in cell [{error.exec_count}]: {error.ename}: {error.evalue}",
            *shown,
            f"the cells that ran, and the whole traceback, are in {partial}",
        ]
    )
