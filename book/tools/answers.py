"""Run a student's notebook and take the answers out as plain numbers and text.

The notebook runs in a fresh kernel, in an empty folder, with the parameters that belong to the
student. A cell that takes too long is interrupted. The answers leave the kernel as JSON, so nothing
that a notebook redefines can take part in the judgement.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import os
import re
import secrets
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_output

from book.chapters import IN_BOOK
from book.tools.handed_in import parameter_cell
from book.tools.kernel import START_SECONDS, BookKernel

# Runs in the student's kernel. It reads numbers as the self-check does; what the self-check cannot
# read leaves as a text that no number is written like, so that it is wrong here as well.
EXPORT = """\
def _export(names, mark):
    import json
    from collections.abc import Mapping
    import numpy as np

    def plain(value):
        if value is None:
            return None
        try:
            return np.asarray(value, dtype=float).tolist()
        except Exception:
            return f"{{type(value).__name__}}: {{value!r:.200}}"

    def written(value):
        try:
            if isinstance(value, Mapping):
                value = {{name: plain(value[name]) for name in value if isinstance(name, str)}}
            else:
                value = plain(value)
            text = json.dumps(value)
        except Exception as error:
            text = json.dumps(type(error).__name__)
        return text if len(text) <= {longest} else json.dumps("too long")

    scope = globals()
    answered = [name for name in names if name in scope and scope[name] is not ...]
    print(mark + json.dumps({{name: written(scope[name]) for name in answered}}) + mark)

_export({names!r}, {mark!r})
"""
# In characters of JSON.
MAX_ANSWER = 100_000
# The line of a cell for a text, which asks for it.
ASKED = re.compile(r"^\*Your answer to [^\n]*:\*$", re.MULTILINE)
# In seconds: how long an interrupted kernel may take to become idle again.
PATIENCE = 5


@dataclass
class Submission:
    """What a student handed in: answers by name, texts by exercise, and remarks for the teacher."""

    values: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def collect(
    notebook: NotebookNode, parameters: Mapping[str, Any], names: list[str], seconds: float
) -> Submission:
    """Run a notebook with the student's own parameters, `seconds` at most for a cell."""
    notebook = copy.deepcopy(notebook)
    submission = Submission(texts=texts_of(notebook))
    own = "\n".join(f"{name} = {value!r}" for name, value in parameters.items())
    cell = parameter_cell(notebook)
    if cell is not None:
        cell.source = own
    else:
        submission.remarks.append("the cell of parameters is gone")
    with tempfile.TemporaryDirectory() as folder:
        try:
            asyncio.run(_run(notebook, folder, names, seconds, submission))
        except Exception as error:  # a notebook can break its kernel in any way
            submission.remarks.append(
                f"the kernel broke ({type(error).__name__}), later cells did not run"
            )
    return submission


def texts_of(notebook: NotebookNode) -> dict[str, str]:
    """The answers in words, by exercise, without the line that asks for them.

    Everything that a student wrote between the text of an exercise and the next cell of the book
    belongs to that exercise, whatever cell it is in.
    """
    texts, label = dict[str, list[str]](), ""
    for cell in notebook.cells:
        mark = cell.metadata.get("labelaudit", {})
        if not mark and label:
            texts[label].append(cell.source.strip())
            continue
        label = str(mark.get("answer") or mark.get("exercise") or "")
        written = texts.setdefault(label, [])
        if "answer" in mark:
            written.append(ASKED.sub("", cell.source).strip())
    texts.pop("", None)
    return {label: "\n\n".join(filter(None, parts)) for label, parts in texts.items()}


class _QuietClient(NotebookClient):
    """Keeps nothing that a cell shows, which may fill the memory: only whether it had an error."""

    def output(self, outs: list[NotebookNode], msg: dict[str, Any], *others: Any) -> None:
        if msg["msg_type"] == "error" and not outs:
            outs.append(new_output("error", ename="", evalue="", traceback=[]))


async def _run(
    notebook: NotebookNode, folder: str, names: list[str], seconds: float, submission: Submission
) -> None:
    """Execute every cell, and read the answers after each of them."""
    client = _QuietClient(
        notebook,
        km=BookKernel(transport_encryption="auto"),
        extra_arguments=["--log-level=ERROR"],
        timeout=seconds,
        startup_timeout=START_SECONDS,
        allow_errors=True,
        resources={"metadata": {"path": folder}},
    )
    environment = {name: os.environ[name] for name in os.environ if name != IN_BOOK}
    environment |= {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    async with client.async_setup_kernel(env=environment):
        for number, cell in enumerate(notebook.cells):
            if cell.cell_type != "code":
                continue
            try:
                await client.async_execute_cell(cell, number)
                await _read(client, names, submission)
            except CellTimeoutError:
                submission.remarks.append(
                    f"cell {number} ran longer than {seconds:g} s and was stopped"
                )
                if not await _interrupted(client):
                    submission.remarks.append("the kernel did not stop; later cells did not run")
                    return
            except DeadKernelError:
                submission.remarks.append(f"the kernel died in cell {number}")
                return
    errors = sum(
        output.output_type == "error"
        for cell in notebook.cells
        for output in cell.get("outputs", [])
    )
    if errors:
        submission.remarks.append(f"cells that ended in an error: {errors}")


async def _interrupted(client: Any) -> bool:
    """Whether the kernel answers again after an interrupt; if not, it is killed."""
    await client.km.interrupt_kernel()
    with contextlib.suppress(Exception):
        await asyncio.wait_for(client.kc.kernel_info(reply=True), PATIENCE)
        return True
    await client.km.shutdown_kernel(now=True)
    return False


async def _read(client: Any, names: list[str], submission: Submission) -> None:
    """Ask the kernel for the answers there are; a later value of a name replaces an earlier one."""
    mark = secrets.token_hex(16)
    asked = EXPORT.format(names=names, mark=mark, longest=MAX_ANSWER)
    printed: list[str] = []

    def hear(message: Mapping[str, Any]) -> None:
        if message["msg_type"] == "stream":
            printed.append(message["content"]["text"])

    with contextlib.suppress(TimeoutError):
        await client.kc.execute_interactive(
            asked, store_history=False, output_hook=hear, timeout=PATIENCE, allow_stdin=False
        )
    parts = "".join(printed).split(mark)
    if len(parts) == 3 and len(parts[1]) <= 2 * MAX_ANSWER * (len(names) + 1):
        with contextlib.suppress(ValueError, TypeError, AttributeError, RecursionError):
            answers = json.loads(parts[1])
            read = {name: json.loads(answers[name]) for name in names if name in answers}
            submission.values |= read
