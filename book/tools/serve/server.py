"""The addresses of the live book, and the server that answers at them."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import tornado.web
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from book.tools.checkout import Checkout
from book.tools.serve import audits
from book.tools.serve.chapter_pages import (
    CheckHandler,
    Form,
    Jobs,
    Page,
    RunFile,
    RunHandler,
    Shell,
)
from book.tools.serve.guard import ADDRESS, ENTER, UPLOAD, Enter, Guarded, Keys
from book.tools.serve.handlers import RUN, STATIC, Nothing
from book.tools.serve.jobs import Queue, Workers
from book.tools.serve.tables import Audits, DeleteUpload, ReportHandler, Upload

# In bytes, of a body that is no file.
MAX_BODY = 1_000_000


class Files(Guarded, tornado.web.StaticFileHandler):
    """Files as they are: those of the site, and the scripts of the form."""


def application(checkout: Checkout, keys: Keys, workers: Workers) -> tornado.web.Application:
    """The server's addresses."""
    queue = Queue({"chapter": workers.run, "audit": partial(audits.run, checkout)})
    return tornado.web.Application(
        [
            (ENTER, Enter),
            (r"/live/(.*)", Files, {"path": str(STATIC)}),
            (rf"/(compare)/({RUN})", Shell),
            (r"/(audit)", Shell),
            (r"/api/form/(\w+)", Form),
            (r"/api/(check|run)/(\w+)", CheckHandler),
            (r"/api/jobs/(\d+)", Jobs),
            (rf"/api/runs/({RUN})", RunHandler),
            (rf"/runs/({RUN})/(page)", RunFile),
            (rf"/runs/({RUN})/(figures|files)/({RUN})", RunFile),
            (UPLOAD, Upload),
            (r"/api/upload/delete", DeleteUpload),
            (r"/api/audits", Audits),
            (r"/audits/(\w+)/(page|numbers)", ReportHandler),
            (r"/api/reports/(\w+)", ReportHandler),
            (r"/api/.*", Nothing),
            (r"/(.*\.html|)", Page),
            (r"/(.*)", Files, {"path": str(checkout.site)}),
        ],
        keys=keys,
        checkout=checkout,
        queue=queue,
        workers=workers,
        tasks=set(),
        default_handler_class=Nothing,
        log_function=lambda handler: None,
    )


async def serve(
    checkout: Checkout, keys: Keys, port: int, *, workers: Workers | None = None, **hooks: Any
) -> None:
    """Answer requests until the task is cancelled, then end every process that was started."""
    workers = workers or Workers(checkout)
    app = application(checkout, keys, workers)
    server = HTTPServer(app, max_body_size=MAX_BODY)
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
