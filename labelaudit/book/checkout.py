"""The checkout a book is built from: where its files are, and how they are written safely."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from labelaudit.command_line import CommandError

# Set when the build is interrupted or has failed: whatever waits, or is about to start, gives up.
cancelled = threading.Event()


class Cancelled(Exception):
    """The work was given up because another part of it failed or the user stopped it."""


class NoCheckout(CommandError):
    """There is no checkout of the book here, so there is nothing to run or to build."""


@dataclass(frozen=True)
class Checkout:
    """The folders of one checkout. Sources are read only; everything written is in `_build`."""

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
        """The finished site, replaced only by one that built without a warning."""
        return self.build / "html"

    @property
    def site_stamp(self) -> Path:
        """A digest of what the site was built from, there as long as the site is."""
        return self.build / "site.stamp"

    def source(self, chapter: str) -> Path:
        """The text notebook of a chapter."""
        return self.root / "notebooks" / f"{chapter}.md"

    def executed(self, run: str) -> Path:
        """The folder that holds one execution, named by chapter and parameters."""
        return self.build / "executed" / run

    def page(self, run: str) -> Path:
        """The folder that holds the page a reader made with parameters of their own."""
        return self.build / "runs" / run

    def staged(self, chapter: str) -> Path:
        """The book's own executed notebook of a chapter."""
        return self.stage / "notebooks" / f"{chapter}.ipynb"

    @property
    def package(self) -> Path:
        """The package the chapters import: the checkout's own, or else the one running now."""
        own = self.root / "labelaudit"
        return own if (own / "__init__.py").is_file() else Path(__file__).resolve().parents[1]

    def shown(self, path: Path) -> str:
        """Name a path as short as possible: from the current folder where it lies below it."""
        with contextlib.suppress(ValueError):
            return str(path.relative_to(Path.cwd()))
        return str(path)


def find_checkout(start: Path | None = None) -> Checkout:
    """Find the checkout around a folder (the current one), or the one this package lies in."""
    here = (start or Path.cwd()).resolve()
    for folder in [here, *here.parents, Path(__file__).resolve().parents[2]]:
        if (folder / "notebooks" / "chapters.yml").is_file():
            return Checkout(folder)
    raise NoCheckout(
        f"no checkout of the book at {here}: the installed package holds no chapters, so clone the"
        " repository and run this command inside it"
    )


def _try_lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold an exclusive lock on `path`, waiting for whoever has it; killed holders lose it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+", encoding="utf-8") as file:
        if not _try_lock(file):
            file.seek(0)
            holder = file.read().strip() or "unknown"
            print(f"waiting for process {holder}, which is {what}", file=sys.stderr, flush=True)
            while not _try_lock(file):
                if cancelled.wait(0.2):
                    raise Cancelled
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
