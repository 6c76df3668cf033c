"""What every handler shares: the checkout, the queue, answers in JSON, errors in one line."""

from __future__ import annotations

import json
import mimetypes
import re
from pathlib import Path
from typing import Any

from book.tools.chapters import Chapter, Chapters, load_chapters
from book.tools.checkout import Checkout
from book.tools.parameters import ContractError
from book.tools.runs import read_record
from book.tools.serve.guard import SANDBOX, STILL, Guarded, Rejected
from book.tools.serve.jobs import Queue, Workers

# The name of a run's folder: one word that does not begin with a dot, so never `..`.
RUN = r"\w[\w.,=-]*"
STATIC = Path(__file__).parent / "static"
# The theme reads a store that a page in a sandbox does not have; links are handed to the frame's
# owner, because what a sandbox asks for is not answered.
FRAMED = (STATIC / "framed.html").read_text(encoding="utf-8")


class AnswerHandler(Guarded):
    """What the handlers below share: the checkout, and answers in JSON."""

    checkout: Checkout
    queue: Queue
    workers: Workers

    def initialize(self) -> None:
        """Take the parts of the server from the application."""
        for name in ("checkout", "queue", "workers"):
            setattr(self, name, self.settings[name])

    @property
    def chapters(self) -> Chapters:
        """The declarations, as they are now."""
        return load_chapters(self.checkout.chapters_file)

    def chapter(self, name: str) -> Chapter:
        """A declared chapter, or an error that ends the request."""
        if name not in self.chapters:
            raise Rejected(404, f"there is no chapter {name!r}")
        return self.chapters[name]

    def body(self) -> dict[str, Any]:
        """The JSON object that was sent."""
        try:
            body = json.loads(self.request.body)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise Rejected(400, "the body must be a JSON object")
        return body

    def run_folder(self, run: str) -> tuple[Path, dict[str, Any]]:
        """The folder of a finished run and its record; only names that are listed are opened."""
        folder = self.checkout.page(run)
        record = read_record(folder) if re.fullmatch(RUN, run) else None
        if record is None:
            raise Rejected(404, f"there is no run {run!r}")
        return folder, record

    def write_error(self, status_code: int, **details: Any) -> None:
        """An expected error in one line; of others only the number is shown."""
        error = details.get("exc_info", (None, None, None))[1]
        if isinstance(error, Rejected):
            return self.reject(error)
        if isinstance(error, ContractError):
            return self.reject(Rejected(422, str(error)))
        return self.reject(Rejected(status_code, "this cannot be answered"))

    def log_exception(self, *error: Any) -> None:
        """Expected errors are answers, not faults of the server."""
        if not isinstance(error[1], (Rejected, ContractError)):
            super().log_exception(*error)


class Sandboxed(AnswerHandler):
    """Answers with what a reader's run or table has made, which may hold somebody else's script."""

    policy = SANDBOX

    def _framed(self, html: str, owner: str) -> None:
        """A page for a frame. A tab of its own could go elsewhere, so it gets the frame's owner."""
        if self.request.headers.get("Sec-Fetch-Dest", "iframe") != "iframe":
            return self.redirect(owner)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(html.replace("<head>", f"<head>{FRAMED}", 1))

    def _file(self, path: Path, *, download: bool = False) -> None:
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        self.set_header("Content-Type", kind)
        self.set_header("Content-Security-Policy", STILL)
        if download:
            self.set_header("Content-Disposition", f'attachment; filename="{path.name}"')
        self.finish(path.read_bytes())


class Nothing(AnswerHandler):
    """Every other address."""

    def get(self) -> None:
        """There is nothing."""
        raise Rejected(404, f"there is nothing at {self.request.path!r}")

    post = get
