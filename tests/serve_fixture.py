"""A live book of two small chapters, served by a thread of this process, without Sphinx or kernels.

Run as a script, this file is the worker that stands in for the real one: it speaks the same
protocol, counts through the cells of a chapter that it does not run, and writes a small page.
"""

import asyncio
import contextlib
import http.client
import json
import sys
import threading
import time
from pathlib import Path

import yaml

STANDIN = [sys.executable, __file__]
# A bias for which the picture of a run is that of the book; no other test may use it.
UNSEEN_BIAS = 0.5625
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="80" height="40"><title>{}</title></svg>'
HOSTILE = """<script>
  let secret = "";
  try { secret = parent.localStorage.getItem("labelaudit-page"); } catch {}
  fetch("/api/run/01_coin", {method: "POST", body: '{"scale": "smoke"}',
    headers: {"Content-Type": "application/json", "X-Labelaudit-Page": secret}}).then(
      () => document.body.dataset.sent = "yes", () => document.body.dataset.sent = "no");
  try { document.body.dataset.cookie = parent.document.title; }
  catch { document.body.dataset.cookie = "unreachable"; }
</script>"""
PAGE = """<!doctype html><html lang="en" data-theme="light"><head><title>{title}</title></head>
<body>
<article><h1>{title}</h1><p>Some words.</p>
<div class="cell tag_parameters"><pre>bias = 0.5</pre></div>
<figure id="fig-coin"><img src="../_images/coin.svg" alt="the book's coin">
<figcaption><span class="caption-number">Fig. 1.1 </span><span class="caption-text">A coin.</span>
</figcaption></figure></article></body></html>"""
TABLE_CHAPTER = {
    "title": "A table",
    "data": [],
    "seconds": {"smoke": 1, "laptop": 2, "paper": 3},
    "parameters": {
        "table": {"type": "path", "meaning": "a file"},
        "mechanisms": {
            "type": "list of text",
            "choices": ["rr", "llp", "geometric"],
            "meaning": "mechanisms to compare",
            "smoke": ["rr"],
        },
    },
}


def make_book(root):
    """The small book with a third chapter, and pages that Sphinx did not make."""
    from book_fixture import HEADER, make_checkout

    from book.tools.checkout import Checkout

    checkout = Checkout(make_checkout(root))
    chapters = yaml.safe_load(checkout.chapters_file.read_text())
    chapters["03_table"] = TABLE_CHAPTER
    checkout.chapters_file.write_text(yaml.safe_dump(chapters, sort_keys=False))
    values = 'table = ""\nmechanisms = ["rr", "llp"]'
    cell = f"```{{code-cell}} ipython3\n:tags: [parameters]\n{values}\n```\n"
    checkout.source("03_table").write_text(f"{HEADER}\n# A table\n\n{cell}")
    pages = {"index.html": PAGE.format(title="The book")}
    for name in ("01_coin", "02_plain", "03_table"):
        pages[f"notebooks/{name}.html"] = PAGE.format(title=name)
    pages["_images/coin.svg"] = PICTURE.format("book")
    for name, text in pages.items():
        path = checkout.site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    book = {"scale": "smoke", "parameters": {}, "headlines": [headline("0.5", "fair coin")]}
    checkout.headlines.parent.mkdir()
    checkout.headlines.write_text(json.dumps({"01_coin": book}))
    return checkout


def headline(value, setting):
    return {"name": "mean", "meaning": "fraction of heads", "value": value, "setting": setting}


class Live:
    """A running server: its address, its keys, its queue, and requests with any headers."""

    def __init__(self, checkout, command=None):
        self.checkout, self.command = checkout, command or [*STANDIN, str(checkout.root)]
        self.ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self.thread.start()
        assert self.ready.wait(20), "the server did not start"

    async def _serve(self):
        from book.tools.serve import server
        from book.tools.serve.guard import Keys
        from book.tools.serve.jobs import Workers

        self.keys, self.loop = Keys(), asyncio.get_running_loop()
        self.task = asyncio.current_task()
        plain = server.application

        def application(*parts):
            self.app = plain(*parts)
            return self.app

        def started(port):
            self.port = port
            self.ready.set()

        server.application = application
        workers = Workers(self.checkout, self.command)
        with contextlib.suppress(asyncio.CancelledError):
            await server.serve(self.checkout, self.keys, 0, workers=workers, started=started)
        server.application = plain

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def entrance(self):
        return f"{self.address}/enter?token={self.keys.token}"

    @property
    def jobs(self):
        return list(self.app.settings["queue"].jobs.values())

    def ask(self, path, body=None, method=None, **headers):
        """A request with both secrets; an underscore in a header's name is a hyphen."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        plain = {
            "Cookie": f"labelaudit-{self.port}={self.keys.cookie}",
            "X-Labelaudit-Page": self.keys.page,
        }
        if body is not None:
            plain["Content-Type"] = "application/json"
        content = json.dumps(body) if isinstance(body, dict) else body
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        method = method or ("GET" if body is None else "POST")
        sent = {name: value for name, value in (plain | named).items() if value is not None}
        connection.request(method, path, content, sent)
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        connection.close()
        return answer

    def json(self, path, body=None):
        return self.json_of(self.ask(path, body))

    @staticmethod
    def json_of(answer):
        return json.loads(answer.text)

    def upload(self, name, content, **headers):
        body = (
            b'--edge\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n'
            b"Content-Type: text/csv\r\n\r\n%s\r\n--edge--\r\n" % (name.encode(), content)
        )
        kind = {"Content_Type": "multipart/form-data; boundary=edge"}
        return self.ask("/api/upload", body, **(kind | headers))

    def finished(self, job, seconds=120):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            state = self.json(f"/api/jobs/{job}")
            if state["state"] in ("done", "refused", "failed", "cancelled"):
                return state
            time.sleep(0.02)
        raise AssertionError(f"the job did not end: {state}")

    def run(self, chapter="01_coin", scale="smoke", **values):
        answer = self.json(f"/api/run/{chapter}", {"scale": scale, "values": values})
        return self.finished(answer["job"]["id"])

    @contextlib.contextmanager
    def holding(self):
        """Every run stays at its second cell, however slow the machine is."""
        (self.checkout.root / "hold").touch()
        try:
            yield
        finally:
            (self.checkout.root / "hold").unlink()

    def close(self):
        self.loop.call_soon_threadsafe(self.task.cancel)
        self.thread.join(10)
        assert not self.thread.is_alive()


def _stand_in():
    """Orders in, events out, as `book.tools.serve.worker` does it."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from book.tools.chapters import load_chapters
    from book.tools.checkout import Checkout
    from book.tools.runs import differences, folder_name

    checkout = Checkout(Path(sys.argv[1]))
    for line in sys.stdin:
        order = json.loads(line)
        if "warm" in order:
            continue
        values = order["parameters"]
        chapter = load_chapters(checkout.chapters_file)[order["run"]]
        for cell in (1, 2, 3):
            step = {"cell": cell, "cells": 3, "heading": "Tosses", "seconds_left": 4 - cell}
            print(json.dumps({"state": "running"} | step), flush=True)
            time.sleep(values.get("sleep", 0) / 3)
            while cell == 2 and (checkout.root / "hold").exists():
                time.sleep(0.02)
        if values.get("fail"):
            print(json.dumps({"state": "refused", "message": "bias does not fit"}), flush=True)
            continue
        print(json.dumps({"state": "page"}), flush=True)
        run = folder_name(chapter, values)
        folder = checkout.page(run)
        (folder / "figures").mkdir(parents=True, exist_ok=True)
        (folder / chapter.id).mkdir(exist_ok=True)
        (folder / chapter.id / "tosses.csv").write_text("1\n")
        (folder / f"{chapter.id}.ipynb").write_text("{}")
        owner = "book" if values.get("bias") == UNSEEN_BIAS else "yours"
        (folder / "figures" / "fig-coin.svg").write_text(PICTURE.format(owner) + "\n")
        body = f"<article><h1>{chapter.title}, yours</h1></article>{HOSTILE}"
        page = f"<!doctype html><html><head></head><body>{body}</body></html>"
        (folder / f"{chapter.id}.html").write_text(page)
        scale, changed = differences(chapter, values)
        record = {
            "chapter": chapter.id,
            "title": chapter.title,
            "scale": scale,
            "changed": changed,
            "parameters": values,
            "headlines": [headline(str(values.get("bias", 0)), "this coin")],
            "figures": [{"name": "fig-coin", "file": "fig-coin.svg", "alt": "your coin"}],
            "files": ["tosses.csv"],
            "started": "2026-01-01 12:00",
            "seconds": 0.1,
            "written": time.time(),
        }
        (folder / "run.json").write_text(json.dumps(record))
        print(json.dumps({"state": "done", "run": run}), flush=True)


if __name__ == "__main__":
    _stand_in()
