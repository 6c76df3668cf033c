"""The process that runs chapters for the server, with everything loaded before it is asked.

It reads one order a line from its standard input and writes one event a line to its standard
output, both as JSON. Orders are `{"warm": CHAPTER}` and `{"run": CHAPTER, "parameters": ...}`. When
its input ends, because the server has stopped or was killed, it ends its kernels and itself.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import json
import os
import queue
import shutil
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import yaml
from jupyter_core.utils import run_sync

from book.tools.cache_key import package_files
from book.tools.chapters import Chapter, load_chapters, read_source
from book.tools.checkout import Checkout
from book.tools.kernel import (
    START_SECONDS,
    BookKernel,
    cancel_everything,
    process_of,
    start,
    started_kernel,
    stop,
)
from book.tools.page import page_config, write_page
from book.tools.parameters import ContractError
from book.tools.runner import Progress, execute
from book.tools.runs import book_facts
from book.tools.site import jupyter_book_here
from labelaudit.command_line import CommandError

Send = Callable[..., None]
# A kernel that has started and imported enters another folder at once, or something is wrong.
MOVE_SECONDS = 60
# Loads what every figure needs: the backend, a font, the writer of SVG.
DRAW_ONCE = """
import io, matplotlib.pyplot as plt
figure, axes = plt.subplots(); axes.set_title("$x$"); figure.savefig(io.BytesIO(), format="svg")
plt.close(figure)
"""

# What `plots.shades` imports when it is first called, which takes a second.
SHADES = "from seaborn import blend_palette"
# A call for each module of compiled kernels, which loads its machine code from the disk.
LOAD_KERNELS = {
    "labelaudit.kernels.attack": "la.posterior(eta, m, m.release((eta > 0.25).astype(int), rng))",
    "labelaudit.kernels.advantage": "la.additive_advantage(eta, m)",
    "labelaudit.kernels.distribution": "la.multiplicative_quantile(eta, m, 0.9)",
}
EACH_MECHANISM = """
import numpy as np, labelaudit as la
rng = np.random.default_rng(0)
for m in (la.RandomizedResponse(1.0), la.LabelProportions(2), la.GeometricProportions(2, 1.0)):
    eta = np.array([[0.2, 0.3]])[:, : m.bag_size]
    {}
"""


class Spare:
    """A kernel that has imported what a chapter imports. It is handed over once and then ended."""

    def __init__(self, checkout: Checkout, chapter: Chapter, threads: int) -> None:
        """Start the kernel and let it import, which takes seconds."""
        self.checkout, self.chapter = checkout, chapter
        self.package = package_files(checkout)
        self.folder = Path(tempfile.mkdtemp(prefix="spare-", dir=checkout.build))
        try:
            self.kernel = start(checkout, self.folder, self.folder / "imports", threads)
            self.client = self.kernel.client()
            self.client.start_channels()
            run_sync(self.client.wait_for_ready)(timeout=START_SECONDS)
            self._do(f"exec({imports_of(checkout, chapter)!r}, {{}})", START_SECONDS)
        except BaseException:
            self.end()
            raise

    def fits(self, chapter: Chapter) -> bool:
        """Whether it can run this chapter: nothing has changed since, and its process is there."""
        same = self.chapter.id == chapter.id and self.package == package_files(self.checkout)
        return same and bool(run_sync(self.kernel.is_alive)())

    def move(self, folder: Path, imports: Path) -> None:
        """Let the kernel work in `folder`, and note in `imports` what it has imported."""
        shutil.copyfile(self.folder / "imports", imports)
        moved = {"LABELAUDIT_IMPORTS": str(imports)}
        code = f"import os; os.chdir({str(folder)!r}); os.environ.update({moved!r}); del os"
        self._do(code, MOVE_SECONDS)

    def end(self) -> None:
        """End the kernel and remove its folder."""
        with contextlib.suppress(Exception):
            stop(self.kernel)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _do(self, code: str, seconds: float) -> None:
        # Silent code leaves no trace: no output, no number of a cell.
        execute = run_sync(self.client.execute_interactive)
        execute(code, silent=True, store_history=False, timeout=seconds)


def imports_of(checkout: Checkout, chapter: Chapter) -> str:
    """The import statements of a chapter, and the compiled kernels that its last run loaded.

    Nothing else may be imported: a page lists the versions of what its chapter has loaded.
    """
    lines = []
    for cell in read_source(checkout.source(chapter.id)).cells:
        if cell.cell_type == "code":
            if "shades(" in cell.source:
                lines.append(SHADES)
            with contextlib.suppress(SyntaxError):
                body = ast.parse(cell.source).body
                lines += [ast.unparse(part) for part in body if isinstance(part, IMPORTS)]
    made = book_facts(checkout, chapter.id) or {}
    used = [name for name in made.get("modules", []) if name.startswith("labelaudit.kernels")]
    lines += [f"import {name}" for name in used]
    lines += [EACH_MECHANISM.format(call) for name, call in LOAD_KERNELS.items() if name in used]
    if any("matplotlib" in line for line in lines):
        lines.append(DRAW_ONCE)
    parts = [f"try:\n    {_indented(line)}\nexcept Exception:\n    pass" for line in lines]
    return "\n".join(parts)


IMPORTS = (ast.Import, ast.ImportFrom)


def _indented(code: str) -> str:
    return code.strip().replace("\n", "\n    ")


def load_sphinx(checkout: Checkout) -> None:
    """Build an empty page, which loads Sphinx, its extensions and the theme."""
    with tempfile.TemporaryDirectory(dir=checkout.build) as folder:
        project = Path(folder)
        cells = [nbformat.v4.new_markdown_cell("# A page\n\n$x$"), nbformat.v4.new_code_cell("1")]
        notebook = nbformat.v4.new_notebook(cells=cells)
        (project / "index.ipynb").write_text(nbformat.writes(notebook), encoding="utf-8")
        (project / "_config.yml").write_text(yaml.safe_dump(page_config(checkout)))
        (project / "_toc.yml").write_text("format: jb-book\nroot: index\n")
        (project / "book").symlink_to(checkout.root / "book", target_is_directory=True)
        jupyter_book_here(project, project / "out", strict=False)


class Worker:
    """Carries out orders one after the other."""

    def __init__(self, checkout: Checkout, send: Send) -> None:
        """`send` takes the fields of one event."""
        self.checkout, self.send = checkout, send
        self.threads = os.cpu_count() or 1
        self.spare: Spare | None = None

    def warm(self, name: str) -> None:
        """Have a kernel ready for a chapter; without one the next run starts its own."""
        with contextlib.suppress(CommandError):
            chapter = self._chapter(name)
            if self.spare is not None and self.spare.fits(chapter):
                return
            self._drop()
            try:
                self.spare = Spare(self.checkout, chapter, self.threads)
            except Exception:
                traceback.print_exc()

    def run(self, order: dict[str, Any]) -> None:
        """Run a chapter, make its page, and say what became of it."""
        try:
            page = self._run(order)
        except ContractError as error:
            self.send(state="refused", message=str(error))
        except CommandError as error:
            self.send(state="failed", message=str(error))
        except Exception as error:
            self.send(state="failed", message=f"{type(error).__name__}: {error}")
        else:
            self.send(state="done", run=page.parent.name)

    def _run(self, order: dict[str, Any]) -> Path:
        chapter = self._chapter(order["run"])

        def progress(step: Progress) -> None:
            self.send(
                state="running",
                cell=step.cell,
                cells=step.cells,
                heading=step.heading,
                seconds_left=step.seconds_left,
            )

        execution = execute(
            self.checkout,
            chapter,
            order["parameters"],
            scale=order["scale"],
            threads=self.threads,
            progress=progress,
            kernels=functools.partial(self._kernels, chapter),
        )
        self.send(state="page", kernel=None)
        return write_page(self.checkout, execution, jupyter_book_here)

    @contextlib.contextmanager
    def _kernels(self, chapter: Chapter, *arguments: Any, **named: Any) -> Iterator[BookKernel]:
        """The spare kernel if it fits, otherwise a new one: no kernel is handed out twice."""
        with contextlib.ExitStack() as stack:
            stack.callback(self._drop)
            if self.spare is not None and self.spare.fits(chapter):
                kernel = self.spare.kernel
                self.spare.move(named["folder"], named["imports"])
            else:
                self._drop()
                kernel = stack.enter_context(started_kernel(*arguments, **named))
            self.send(kernel=process_of(kernel))
            yield kernel

    def _drop(self) -> None:
        """End the spare kernel, used or not."""
        spare, self.spare = self.spare, None
        if spare is not None:
            spare.end()

    def _chapter(self, name: str) -> Chapter:
        return load_chapters(self.checkout.chapters_file)[name]


def main() -> None:
    """Load everything, then carry out orders until the input ends."""
    checkout = Checkout(Path(sys.argv[1]).resolve())
    # Whatever prints from now on, Sphinx included, prints to the log.
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def send(**event: Any) -> None:
        events.write(json.dumps(event) + "\n")
        events.flush()

    orders: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            orders.put(json.loads(line))
        cancel_everything()
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    worker = Worker(checkout, send)
    checkout.build.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(CommandError):
        load_sphinx(checkout)
    send(state="ready")
    while True:
        order = orders.get()
        if "warm" in order:
            worker.warm(order["warm"])
            send(state="ready")
        else:
            worker.run(order)


if __name__ == "__main__":
    main()
