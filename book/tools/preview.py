"""A first site while the chapters still run: the prose pages and the finished chapters.

It is built without strictness, since its pages refer to chapters that are not there yet, and the
finished site replaces it. `labelbook serve` and a browser can show it meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence

import nbformat

from book.tools import site
from book.tools.chapters import Chapter
from book.tools.checkout import Checkout, cancelled
from book.tools.runner import Execution
from labelaudit.command_line import CommandError
from labelaudit.files import write_atomically

WAITING = """\
# {title}

```{{admonition}} This chapter is still running
:class: note
It takes about {minutes}. Its page follows when the book is complete; reload the page then.
```
"""
# The last chapters take a large part of the time; a second preview has all others.
LAST = 3
# In seconds of all chapters together; a shorter book is built before a preview would be.
LONG = 300


class Previews:
    """Builds a preview in the background at the start, and one before the last few chapters."""

    def __init__(self, checkout: Checkout, chapters: Sequence[Chapter], scale: str) -> None:
        """Previews are made only where there is no site yet, and the chapters take minutes."""
        self.checkout, self.scale = checkout, scale
        self.waiting = {chapter.id: chapter for chapter in chapters}
        self.finished: list[Execution] = []
        long = sum(chapter.seconds[scale] for chapter in chapters) > LONG
        self.wanted = long and not (checkout.site / "index.html").is_file()
        self.thread: threading.Thread | None = None

    def start(self, say: Callable[[str], None] = print) -> None:
        """Build a preview in the background, unless one is being built."""
        if self.wanted and (self.thread is None or not self.thread.is_alive()):
            finished, waiting = list(self.finished), list(self.waiting.values())
            self.thread = threading.Thread(target=self._build, args=(finished, waiting, say))
            self.thread.start()

    def report(self, execution: Execution) -> None:
        """Take down that a chapter has finished."""
        self.finished.append(execution)
        self.waiting.pop(execution.chapter.id)
        if 0 < len(self.waiting) <= LAST < len(self.finished):
            self.start()

    def end(self) -> None:
        """Wait for the preview that is being built, so that the real site comes after it."""
        if self.thread is not None:
            self.thread.join()

    def _build(
        self, finished: list[Execution], waiting: list[Chapter], say: Callable[[str], None]
    ) -> None:
        # A preview that fails, or is interrupted, leaves the chapters and the real site alone.
        with contextlib.suppress(CommandError, OSError):
            build_preview(self.checkout, finished, waiting, self.scale)
            if not cancelled.is_set():
                entry = self.checkout.shown(self.checkout.site / "index.html")
                part = "the pages without computations are"
                if finished:
                    count = f"{len(finished)} of {len(finished) + len(waiting)} chapters"
                    part = f"a first version with {count} is"
                say(f"{part} ready to read: {entry}")


def build_preview(
    checkout: Checkout, finished: Sequence[Execution], waiting: Sequence[Chapter], scale: str
) -> None:
    """Build the site from the finished chapters; the others get a page that says they run."""
    site.stage(checkout, finished)
    for chapter in waiting:
        minutes = max(1, round(chapter.seconds[scale] / 60))
        count = f"{minutes} minute" + ("s" if minutes > 1 else "")
        text = WAITING.format(title=chapter.title, minutes=count)
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
        write_atomically(checkout.staged(chapter.id), nbformat.writes(notebook))
    built = site.jupyter_book(checkout.stage, checkout.build / "preview", strict=False)
    site.replace_folder(checkout.site, built)
