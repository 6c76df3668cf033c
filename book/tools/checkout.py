"""The clone a book is built from: where its files are, and waiting for those who write them."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import labelaudit
from book.chapters import clone_folder
from book.tools.locks import Busy, locked
from labelaudit.command_line import CommandError

# Set when the build is interrupted or has failed: whatever waits, or is about to start, gives up.
cancelled = threading.Event()


class Cancelled(Exception):
    """The work was given up because another part of it failed or the user stopped it."""


class NoCheckout(CommandError):
    """The command was not called inside a clone, so there is nothing to run or to build."""


@dataclass(frozen=True)
class Checkout:
    """The folders of one clone. Sources are read only; everything written is in `_build`."""

    root: Path

    @property
    def chapters_file(self) -> Path:
        """The declarations of every chapter and parameter."""
        return self.root / "notebooks" / "chapters.yml"

    @property
    def build(self) -> Path:
        """The one folder that is ever written to."""
        return self.root / "_build"

    @property
    def stage(self) -> Path:
        """What Sphinx reads: executed chapters, the prose pages, the configuration."""
        return self.build / "stage"

    @property
    def site(self) -> Path:
        """The finished site, replaced only by one that was built without a warning."""
        return self.build / "html"

    @property
    def doctrees(self) -> Path:
        """Sphinx's environment of the finished site, in which pages of runs are made."""
        return self.build / "doctrees"

    @property
    def site_stamp(self) -> Path:
        """A digest of what the site was built from, written last."""
        return self.build / "site.stamp"

    @property
    def headlines(self) -> Path:
        """The published book's headline numbers, for comparisons before the book is built."""
        return self.root / "results" / "headlines.json"

    @property
    def uploads(self) -> Path:
        """The files that a reader has given to the local server."""
        return self.build / "uploads"

    @property
    def package(self) -> Path:
        """The package the chapters import: the clone's own, or else the one running now.

        Its path has no links: numba keeps compiled loops by the path of their source.
        """
        own = self.root / "labelaudit"
        running = Path(labelaudit.__file__).parent
        return (own if (own / "__init__.py").is_file() else running).resolve()

    def source(self, chapter: str) -> Path:
        """The text notebook of a chapter."""
        return self.root / "notebooks" / f"{chapter}.md"

    def executed(self, run: str) -> Path:
        """The folder that holds one execution, named by chapter and parameters."""
        return self.build / "executed" / run

    def page(self, run: str) -> Path:
        """The folder that holds the page of a reader's own run."""
        return self.build / "runs" / run

    def staged(self, chapter: str) -> Path:
        """The book's own executed notebook of a chapter."""
        return self.stage / "notebooks" / f"{chapter}.ipynb"

    def shown(self, path: Path) -> str:
        """A path as the reader may type it: relative where it lies below the current folder."""
        with contextlib.suppress(ValueError):
            return str(path.relative_to(Path.cwd()))
        return str(path)


def find_checkout() -> Checkout:
    """The clone around the current folder, or the one the package lies in."""
    folder = clone_folder()
    if folder is None:
        raise NoCheckout(
            f"no clone of the book at {Path.cwd()}: the installed package holds no chapters, so"
            " clone the repository and run this command inside it"
        )
    return Checkout(folder)


@contextlib.contextmanager
def waiting_lock(path: Path, work: str) -> Iterator[None]:
    """Hold the lock on `path`; wait for another process that does the same `work`, and say so."""

    def waiting() -> None:
        print(f"waiting for another process, which is {work}", file=sys.stderr, flush=True)

    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(path, waiting=waiting, stop=cancelled))
        except Busy:
            raise Cancelled from None
        yield
