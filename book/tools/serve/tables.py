"""Tables that a reader gives, and their audits."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import tornado.httputil
import tornado.web

from book.tools.serve import audits, uploads
from book.tools.serve.guard import Rejected
from book.tools.serve.handlers import AnswerHandler, Sandboxed

# In bytes, of a file that is given.
MAX_UPLOAD = 100_000_000


@tornado.web.stream_request_body
class Upload(AnswerHandler):
    """Takes a file; the rules are applied, and the size is limited, before its content arrives."""

    def prepare(self) -> None:
        """Reject before a byte of the content has been read."""
        self.chunks: list[bytes] = []
        connection: Any = self.request.connection
        connection.set_max_body_size(MAX_UPLOAD)
        super().prepare()
        length = self.request.headers.get("Content-Length", "0")
        if self._finished:
            return
        if not re.fullmatch(r"[0-9]{1,18}", length):
            self.reject(Rejected(400, f"the length {length[:40]!r} is no number of bytes"))
        elif int(length) > MAX_UPLOAD:
            limit = MAX_UPLOAD // 1_000_000
            self.reject(Rejected(413, f"the file is too large; at most {limit} MB are accepted"))

    def data_received(self, chunk: bytes) -> None:
        """Keep a piece of the content."""
        self.chunks.append(chunk)

    async def post(self) -> None:
        """Store the file, and answer with its reference and its columns."""
        files: dict[str, Any] = {}
        kind, content = self.request.headers["Content-Type"], b"".join(self.chunks)
        try:
            tornado.httputil.parse_body_arguments(kind, content, {}, files)
        except tornado.httputil.HTTPInputError:
            reason = "the form cannot be read; the file's name may be the reason"
            raise Rejected(400, reason) from None
        if list(files) != ["file"] or len(files["file"]) != 1:
            raise Rejected(400, "send one file, in a field named file")
        [file] = files["file"]
        self.finish(
            await asyncio.to_thread(uploads.store, self.checkout, file["filename"], file["body"])
        )


class DeleteUpload(AnswerHandler):
    """Deletes a file that was given."""

    def post(self) -> None:
        """Delete the file of the reference."""
        uploads.delete(self.checkout, str(self.body().get("reference", "")))
        self.finish({"deleted": True})


class Audits(AnswerHandler):
    """The audit of a table: what may be set, the tables and reports there are, a new one."""

    async def get(self) -> None:
        """What the page offers: a table with a report is deleted with it, any other by itself."""
        reports = audits.list_audits(self.checkout)
        audited = {report["table"] for report in reports}
        files = await asyncio.to_thread(uploads.list_files, self.checkout)
        self.finish(
            {
                "columns": audits.COLUMNS,
                "targets": audits.TARGETS,
                "audits": reports,
                "files": [file for file in files if file["reference"] not in audited],
                "limit": MAX_UPLOAD,
            }
        )

    def post(self) -> None:
        """Start an audit."""
        order = audits.order(self.checkout, self.body())
        self.finish(self.queue.shown(self.queue.add("audit", "audit", order)))


class ReportHandler(Sandboxed):
    """A report, in a sandbox; its numbers as a file; its deletion."""

    def get(self, name: str, kind: str) -> None:
        """The page of a report, or its numbers."""
        path = audits.folder(self.checkout, name) / audits.REPORT
        if not path.is_file():
            raise Rejected(404, f"there is no report {name}")
        if kind == "page":
            return self._framed(path.read_text(encoding="utf-8"), "/audit")
        return self._file(path.with_suffix(".json"), download=True)

    def post(self, name: str) -> None:
        """Delete a report and its table."""
        audits.delete(self.checkout, name)
        self.finish({"deleted": name})
