"""The pages of the book with their forms, the runs that the forms start, and their results."""

from __future__ import annotations

import asyncio
from typing import Any

from book.tools.panels import beside
from book.tools.runs import RECORD, book_facts, changes, delete_run, folder_name, list_runs
from book.tools.serve import uploads
from book.tools.serve.form import Entered, describe, field_text
from book.tools.serve.guard import Rejected
from book.tools.serve.handlers import STATIC, AnswerHandler, Sandboxed

LIVE = '<link rel="stylesheet" href="/live/live.css"><script type="module" src="/live/live.js"'


class Page(AnswerHandler):
    """A page of the built site; the form's script is added on its way out."""

    def get(self, path: str) -> None:
        """The file below the site's folder stays as it is on the disk."""
        root = self.checkout.site.resolve()
        file = (root / (path or "index.html")).resolve()
        if not file.is_relative_to(root) or not file.is_file():
            raise Rejected(404, f"the book has no page {path!r}")
        name = file.stem if file.parent.name == "notebooks" else ""
        html = file.read_text(encoding="utf-8")
        self.set_header("Content-Type", "text/html; charset=utf-8")
        if "plain" in self.request.query_arguments:
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


class Shell(AnswerHandler):
    """The two pages of the server's own: the comparison, and the audit."""

    def get(self, name: str, *rest: str) -> None:
        """A page that its script fills."""
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish((STATIC / f"{name}.html").read_bytes())


class Form(AnswerHandler):
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


class CheckHandler(AnswerHandler):
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


class Jobs(AnswerHandler):
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


class RunHandler(AnswerHandler):
    """What is known about a run, beside the book; and its deletion."""

    def get(self, run: str) -> None:
        """Headline numbers of both, figures, files, and what was changed."""
        _, record = self.run_folder(run)
        chapter = self.chapter(record["chapter"])
        book = book_facts(self.checkout, chapter.id)
        values = record["parameters"] | {
            name: uploads.reference(self.checkout, record["parameters"][name])
            for name, parameter in chapter.parameters.items()
            if parameter.kind == "path" and name in record["parameters"]
        }
        self.finish(
            _listed(record | {"run": run})
            | {key: record[key] for key in ("figures", "files")}
            | {"numbers": beside(record, book) if book else []}
            | {"values": {name: field_text(value) for name, value in values.items()}}
        )

    def post(self, run: str) -> None:
        """Delete a run."""
        self.run_folder(run)
        delete_run(self.checkout, run)
        self.finish({"deleted": run})


class RunFile(Sandboxed):
    """The page, a figure or a file of a run."""

    def get(self, run: str, kind: str, name: str = "") -> None:
        """Only what the run's record lists is served."""
        folder, record = self.run_folder(run)
        chapter = record["chapter"]
        if kind == "page":
            html = (folder / f"{chapter}.html").read_text(encoding="utf-8")
            return self._framed(html, f"/compare/{run}")
        listed = {figure["file"] for figure in record["figures"]}
        if kind == "figures" and name in listed:
            return self._file(folder / "figures" / name)
        if kind == "files" and name in record["files"]:
            return self._file(folder / chapter / name, download=True)
        if kind == "files" and name == f"{chapter}.ipynb":
            return self._file(folder / name, download=True)
        raise Rejected(404, f"the run has no {kind} {name!r}")


def _listed(record: dict[str, Any]) -> dict[str, Any]:
    """A run as lists show it."""
    keys = ("run", "chapter", "title", "scale", "changed", "started", "seconds")
    return {key: record[key] for key in keys} | {"description": changes(record)}
