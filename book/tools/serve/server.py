"""The addresses of the live book: the site with a form on each chapter, runs, audits, jobs."""

from __future__ import annotations

import asyncio
import json
import mimetypes
import re
from functools import partial
from pathlib import Path
from typing import Any

import tornado.httputil
import tornado.web
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from book.tools.chapters import Chapter, Chapters, load_chapters
from book.tools.checkout import Checkout
from book.tools.panels import beside
from book.tools.parameters import ContractError
from book.tools.runs import (
    RECORD,
    book_facts,
    changes,
    delete_run,
    folder_name,
    list_runs,
    read_record,
)
from book.tools.serve import audits, uploads
from book.tools.serve.form import Entered, describe
from book.tools.serve.guard import (
    ADDRESS,
    ENTER,
    SANDBOX,
    UPLOAD,
    Enter,
    Guarded,
    Keys,
    Rejected,
)
from book.tools.serve.jobs import Queue, Workers

STATIC = Path(__file__).parent / "static"
# In bytes: of a body, and of a file that is given.
LARGEST_BODY = 1_000_000
LARGEST_UPLOAD = 100_000_000
LIVE = '<link rel="stylesheet" href="/live/live.css"><script type="module" src="/live/live.js"'
# The theme reads a store that a page in a sandbox does not have; links are handed to the frame's
# owner, because what a sandbox asks for is not answered.
FRAMED = (STATIC / "framed.html").read_text(encoding="utf-8")


class Answer(Guarded):
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
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise Rejected(400, "the body must be a JSON object")
        return body

    def run_folder(self, run: str) -> tuple[Path, dict[str, Any]]:
        """The folder of a finished run and its record; only names that are listed are opened."""
        folder = self.checkout.page(run)
        known = re.fullmatch(r"[\w.,=-]+", run) and folder.parent == self.checkout.build / "runs"
        record = read_record(folder) if known else None
        if record is None:
            raise Rejected(404, f"there is no run {run!r}")
        return folder, record

    def write_error(self, status_code: int, **details: Any) -> None:
        """An expected error in one line; of others nothing is told but their number."""
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


class Page(Answer):
    """A page of the built site; the form's script is added on its way out."""

    def get(self, path: str) -> None:
        """The file below the site's folder stays as it is on the disk."""
        root = self.checkout.site.resolve()
        file = (root / (path or "index.html")).resolve()
        if not file.is_relative_to(root) or not file.is_file():
            raise Rejected(404, f"the book has no page {path!r}")
        self._page(file)

    def _page(self, file: Path) -> None:
        name = file.stem if file.parent.name == "notebooks" else ""
        html = file.read_text(encoding="utf-8")
        self.set_header("Content-Type", "text/html; charset=utf-8")
        if "plain" in self.request.query_arguments or self.request.query == "plain":
            self.finish(html)
            return
        has_form = name in self.chapters and bool(self.chapters[name].parameters)
        if has_form:
            warming = asyncio.ensure_future(self.workers.warm(name))
            self.settings["tasks"].add(warming)
            warming.add_done_callback(self.settings["tasks"].discard)
        live = f'{LIVE} data-chapter="{name if has_form else ""}"></script>'
        head, end, rest = html.rpartition("</body>")
        self.finish(f"{head}{live}{end}{rest}" if end else html)


class Shell(Answer):
    """The two pages of the server's own: the comparison, and the audit."""

    def get(self, name: str, *rest: str) -> None:
        """A page that its script fills."""
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish((STATIC / f"{name}.html").read_bytes())


class Form(Answer):
    """What a chapter's form shows."""

    def get(self, name: str) -> None:
        """The fields, the jobs under way and the earlier runs of a chapter."""
        chapter = self.chapter(name)
        jobs = [job for job in self.queue.jobs.values() if job.subject == name]
        self.finish(
            describe(self.checkout, chapter)
            | {
                "jobs": [self.queue.shown(job) for job in jobs if not job.finished],
                "runs": [_listed(run) for run in list_runs(self.checkout, name)],
            }
        )


class Check(Answer):
    """Whether values are allowed, and the command for them; `run` also starts the run."""

    def post(self, action: str, name: str) -> None:
        """Errors by field, the command, and the run or the job where there is one."""
        entered = Entered(self.checkout, self.chapter(name), self.body())
        answer: dict[str, Any] = {"errors": entered.errors, "command": entered.command}
        if not entered.errors:
            run = folder_name(entered.chapter, entered.parameters)
            there = (self.checkout.page(run) / RECORD).is_file()
            answer |= {"run": run if there else None}
            if action == "run":
                order = {"run": name, "parameters": entered.parameters, "scale": entered.scale}
                job = self.queue.add("chapter", name, order)
                answer["job"] = self.queue.shown(job)
        elif action == "run":
            self.set_status(422)
        self.finish(answer)


class Jobs(Answer):
    """How far a job is."""

    def get(self, number: str) -> None:
        """A job's state."""
        self.finish(self.queue.shown(self._job(number)))

    def post(self, number: str) -> None:
        """Cancel a job."""
        job = self._job(number)
        self.queue.cancel(job)
        self.finish(self.queue.shown(job))

    def _job(self, number: str) -> Any:
        if number not in self.queue.jobs:
            raise Rejected(404, f"there is no job {number}")
        return self.queue.jobs[number]


class Run(Answer):
    """What is known about a run, beside the book; and its deletion."""

    def get(self, run: str) -> None:
        """Headline numbers of both, figures, files, and what was changed."""
        _, record = self.run_folder(run)
        chapter = self.chapter(record["chapter"])
        book = book_facts(self.checkout, chapter.id)
        values = {
            name: uploads.reference(self.checkout, value)
            if chapter.parameters[name].kind == "path"
            else value
            for name, value in record["parameters"].items()
            if name in chapter.parameters
        }
        numbers = beside(record, book) if book else []
        self.finish(
            _listed(record | {"run": run})
            | {key: record[key] for key in ("figures", "files")}
            | {"numbers": numbers, "values": describe_values(values)}
        )

    def post(self, run: str) -> None:
        """Delete a run."""
        self.run_folder(run)
        delete_run(self.checkout, run)
        self.finish({"deleted": run})


class Sandboxed(Answer):
    """Answers with what a reader's run or table has made, which may hold a stranger's script."""

    policy = SANDBOX

    def _html(self, html: str) -> None:
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(html.replace("<head>", f"<head>{FRAMED}", 1))

    def _file(self, path: Path, *, download: bool = False) -> None:
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        self.set_header("Content-Type", kind)
        if download:
            self.set_header("Content-Disposition", f'attachment; filename="{path.name}"')
        self.finish(path.read_bytes())


class RunFile(Sandboxed):
    """The page, a figure or a file of a run."""

    def get(self, run: str, kind: str, name: str = "") -> None:
        """Only what the run's record lists is served."""
        folder, record = self.run_folder(run)
        chapter = record["chapter"]
        if kind == "page":
            html = (folder / f"{chapter}.html").read_text(encoding="utf-8")
            return self._html(html)
        listed = {figure["file"] for figure in record["figures"]}
        if kind == "figures" and name in listed:
            return self._file(folder / "figures" / name)
        if kind == "files" and name in record["files"]:
            return self._file(folder / chapter / name, download=True)
        if kind == "files" and name == f"{chapter}.ipynb":
            return self._file(folder / name, download=True)
        raise Rejected(404, f"the run has no {kind} {name!r}")


@tornado.web.stream_request_body
class Upload(Answer):
    """Takes a file; the rules are applied, and the size is limited, before its content arrives."""

    def prepare(self) -> None:
        """Reject before a byte of the content has been read."""
        self.chunks: list[bytes] = []
        connection: Any = self.request.connection
        connection.set_max_body_size(LARGEST_UPLOAD)
        super().prepare()
        length = int(self.request.headers.get("Content-Length", 0))
        if not self._finished and length > LARGEST_UPLOAD:
            limit = LARGEST_UPLOAD // 1_000_000
            self.reject(Rejected(413, f"the file is too large; at most {limit} MB are accepted"))

    def data_received(self, chunk: bytes) -> None:
        """Keep a piece of the content."""
        self.chunks.append(chunk)

    async def post(self) -> None:
        """Store the file, and answer with its reference and its columns."""
        files: dict[str, Any] = {}
        kind = self.request.headers["Content-Type"]
        boundary = tornado.httputil._parse_header(kind)[1].get("boundary", "")
        content = b"".join(self.chunks)
        try:
            tornado.httputil.parse_multipart_form_data(boundary.encode(), content, {}, files)
        except tornado.httputil.HTTPInputError:
            raise Rejected(
                400, "the form cannot be read; the file's name may be the reason"
            ) from None
        if list(files) != ["file"] or len(files["file"]) != 1:
            raise Rejected(400, "send one file, in a field named file")
        [file] = files["file"]
        stored = await asyncio.to_thread(
            uploads.store, self.checkout, file["filename"], file["body"]
        )
        path = uploads.find(self.checkout, stored["reference"])
        if path.suffix != ".py":
            stored["columns"] = await asyncio.to_thread(uploads.columns, path)
        self.finish(stored)


class DeleteUpload(Answer):
    """Deletes a file that was given."""

    def post(self) -> None:
        """Delete the file of the reference."""
        uploads.delete(self.checkout, str(self.body().get("reference", "")))
        self.finish({"deleted": True})


class Audits(Answer):
    """The audit of a table: what may be set, the reports there are, a new one."""

    def get(self) -> None:
        """What the page offers."""
        self.finish(
            {
                "columns": audits.known_options(),
                "targets": audits.TARGETS,
                "audits": audits.list_audits(self.checkout),
                "limit": LARGEST_UPLOAD,
            }
        )

    def post(self) -> None:
        """Start an audit."""
        order = audits.order(self.checkout, self.body())
        self.finish(self.queue.shown(self.queue.add("audit", "audit", order)))


class Report(Sandboxed):
    """A report, in a sandbox; its numbers as a file; its deletion."""

    def get(self, name: str, kind: str) -> None:
        """The page of a report, or its numbers."""
        path = audits.folder(self.checkout, name) / audits.REPORT
        if not path.is_file():
            raise Rejected(404, f"there is no report {name}")
        if kind == "page":
            return self._html(path.read_text(encoding="utf-8"))
        return self._file(path.with_suffix(".json"), download=True)

    def post(self, name: str) -> None:
        """Delete a report and its table."""
        audits.delete(self.checkout, name)
        self.finish({"deleted": name})


class Nothing(Answer):
    """Every other address."""

    def get(self) -> None:
        """There is nothing."""
        raise Rejected(404, f"there is nothing at {self.request.path!r}")

    post = get


def describe_values(values: dict[str, Any]) -> dict[str, str]:
    """Values as the fields of a form show them."""
    from book.tools.panels import typed

    return {
        name: value if isinstance(value, str) else typed(value) for name, value in values.items()
    }


def _listed(record: dict[str, Any]) -> dict[str, Any]:
    """A run as lists show it."""
    keys = ("run", "chapter", "title", "scale", "changed", "started", "seconds")
    return {key: record[key] for key in keys} | {"description": changes(record)}


def application(checkout: Checkout, keys: Keys, workers: Workers) -> tornado.web.Application:
    """The server's addresses."""
    queue = Queue({"chapter": workers.run, "audit": partial(audits.run, checkout)})
    return tornado.web.Application(
        [
            (ENTER, Enter),
            (r"/live/(.*)", Files, {"path": str(STATIC)}),
            (r"/(compare)/([\w.,=-]+)", Shell),
            (r"/(audit)", Shell),
            (r"/api/form/(\w+)", Form),
            (r"/api/(check|run)/(\w+)", Check),
            (r"/api/jobs/(\d+)", Jobs),
            (r"/api/runs/([\w.,=-]+)", Run),
            (r"/runs/([\w.,=-]+)/(page)", RunFile),
            (r"/runs/([\w.,=-]+)/(figures|files)/([\w.,=-]+)", RunFile),
            (UPLOAD, Upload),
            (r"/api/upload/delete", DeleteUpload),
            (r"/api/audits", Audits),
            (r"/audits/(\w+)/(page|numbers)", Report),
            (r"/api/reports/(\w+)", Report),
            (r"/api/.*", Nothing),
            (r"/(.*\.html|)", Page),
            (r"/(.*)", Files, {"path": str(checkout.site)}),
        ],
        keys=keys,
        checkout=checkout,
        queue=queue,
        workers=workers,
        tasks=set(),
        log_function=lambda handler: None,
    )


class Files(Guarded, tornado.web.StaticFileHandler):
    """Files as they are: those of the site, and the scripts of the form."""


async def serve(
    checkout: Checkout, keys: Keys, port: int, *, workers: Workers | None = None, **hooks: Any
) -> None:
    """Answer requests until the task is cancelled, then end every process that was started."""
    workers = workers or Workers(checkout)
    app = application(checkout, keys, workers)
    server = HTTPServer(app, max_body_size=LARGEST_BODY)
    sockets = bind_sockets(port, ADDRESS)
    server.add_sockets(sockets)
    working = asyncio.ensure_future(app.settings["queue"].work())
    await workers.start()
    try:
        hooks.get("started", lambda port: None)(sockets[0].getsockname()[1])
        await asyncio.Event().wait()
    finally:
        server.stop()
        working.cancel()
        for job in app.settings["queue"].jobs.values():
            app.settings["queue"].cancel(job)
        await workers.close()
