"""The audit of a table that a reader has given: `labelaudit audit` in a process of its own.

The report lies in `_build/audits/<digest>`, named by the table and by what was asked about it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from book.tools.checkout import Checkout
from book.tools.parameters import ContractError
from book.tools.serve import uploads
from book.tools.serve.jobs import MAX_REPORT_LINE, Job, Queue, end
from labelaudit.auditing.command import NOT_RECOMMENDED, RECOMMENDED
from labelaudit.command_line import CommandError
from labelaudit.files import digest, write_atomically

# The columns that the page may set, with the text beside them; options of the command.
COLUMNS = {
    "label": "the sensitive column, with two values",
    "bag": "the bag of each record, if bags are given",
    "id": "the name of each record, if it has one",
    "person": "the person of each record, if a person has several",
}
# The default is the command's own: a tenth of what an attacker gets wrong without any release.
TARGETS = ("default", "additive", "multiplicative", "epsilon")
REPORT = "report.html"
# Characters of a message that a page shows: a table's values and names may be very long.
MAX_SHOWN_MESSAGE = 2000
COMMAND = (sys.executable, "-m", "labelaudit", "audit")


def order(checkout: Checkout, body: Mapping[str, Any]) -> dict[str, Any]:
    """Check what the page sends, and give the arguments of the command and the report's folder."""
    table = uploads.find(checkout, str(body.get("table", "")))
    there = uploads.columns(table)
    chosen = {name: str(body[name]) for name in COLUMNS if body.get(name)}
    if "label" not in chosen:
        raise ContractError("label: choose the column to protect")
    for name, column in chosen.items():
        if column not in there:
            raise ContractError(f"{name}: {column!r} is not a column of {table.name}")
    kind, limit = str(body.get("target", TARGETS[0])), body.get("limit", 0.05)
    if kind not in TARGETS:
        raise ContractError(f"target: {kind!r} is not among: {', '.join(TARGETS)}")
    if kind != "default":
        number = isinstance(limit, (int, float)) and not isinstance(limit, bool)
        if not number or not 0 <= limit <= sys.float_info.max:
            raise ContractError(f"limit: {f'{limit!r}'[:40]} is not a number of at least 0")
        chosen["target"] = f"{kind}={limit:g}"
    if positive := str(body.get("positive", "")):
        chosen["positive"] = positive
    for name, text in chosen.items():
        if "\0" in text:
            raise ContractError(
                f"{name}: {text!r} holds a null byte, which no command can be given"
            )
    # One word for an option and its value: a column may be called --output.
    options = [f"--{name}={value}" for name, value in chosen.items()]
    name = digest([table.parent.name, options])[:16]
    return {
        "audit": name,
        "table": str(body["table"]),
        "name": table.name,
        "chosen": chosen,
        "arguments": [*options, "--", str(table)],
    }


def folder(checkout: Checkout, name: str) -> Path:
    """The folder of a report; a name is made of hexadecimal digits alone."""
    if not re.fullmatch(r"[0-9a-f]{16}", name):
        raise ContractError(f"{name!r} is not the name of a report")
    return checkout.build / "audits" / name


async def run(checkout: Checkout, job: Job, queue: Queue) -> None:
    """Run the command, and pass on the lines of its progress."""
    report = folder(checkout, job.order["audit"])
    await asyncio.to_thread(report.mkdir, parents=True, exist_ok=True)
    *options, _, table = job.order["arguments"]
    output = [f"--output={report / REPORT}", "--overwrite"]
    process = await asyncio.create_subprocess_exec(
        *(*COMMAND, *options, *output, "--", table),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        limit=MAX_REPORT_LINE,
        env=os.environ | {"PYTHONPATH": str(checkout.package.parent)},
    )
    job.processes.add(process.pid)
    last = ""
    assert process.stderr is not None
    try:
        while line := await process.stderr.readline():
            last = line.decode(errors="replace").strip() or last
            step = re.sub(r"^\[.*?\] *", "", last).replace(table, Path(table).name)
            if not step.startswith("labelaudit: "):  # an error is shown when the command ends
                queue.update(job, {"state": "running", "heading": step[:MAX_SHOWN_MESSAGE]})
        status = await process.wait()
    except ValueError:
        last, status = "it wrote a line that is too long to be read", 1
    finally:  # however this ends, no audit goes on that nobody can cancel
        end({process.pid})
        await process.wait()
        job.processes.discard(process.pid)
    if status in (RECOMMENDED, NOT_RECOMMENDED):
        record = {key: job.order[key] for key in ("audit", "table", "name", "chosen")}
        write_atomically(report / "audit.json", json.dumps(record))
        queue.update(job, {"state": "done", "audit": job.order["audit"]})
        return
    await asyncio.to_thread(shutil.rmtree, report, ignore_errors=True)
    message = last.replace(table, Path(table).name).removeprefix("labelaudit: ")[:MAX_SHOWN_MESSAGE]
    state = "refused" if status == CommandError.status else "failed"
    queue.update(
        job,
        {"state": state, "message": message or f"it ended with status {status}"},
    )


def list_audits(checkout: Checkout) -> list[dict[str, Any]]:
    """Every report that is there."""
    records = (checkout.build / "audits").glob("*/audit.json")
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(records)]


def delete(checkout: Checkout, name: str) -> None:
    """Remove a report and, unless another report is about it, the table."""
    report = folder(checkout, name)
    tables = {record["audit"]: record["table"] for record in list_audits(checkout)}
    shutil.rmtree(report, ignore_errors=True)
    table = tables.pop(name, None)
    if table is not None and table not in tables.values():
        uploads.delete(checkout, table)
