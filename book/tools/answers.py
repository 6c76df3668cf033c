"""Run a student's notebook and take the answers out as plain numbers and text.

The notebook runs in a fresh kernel, in an empty folder, with the parameters that belong to the
student. A cell that takes too long is interrupted. The answers leave the kernel as JSON, so nothing
that a notebook redefines can take part in the judgement.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import json
import os
import secrets
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError

from book.chapters import IN_BOOK
from book.tools.kernel import START_SECONDS, BookKernel

if TYPE_CHECKING:
    from nbformat import NotebookNode

# Runs in the student's kernel. What is no number, text, list or dictionary leaves as text.
EXPORT = """\
def _export(names, mark):
    import json

    def plain(value, depth=0):
        if depth > 6:
            return "..."
        if isinstance(value, dict):
            return {{str(name): plain(item, depth + 1) for name, item in value.items()}}
        if hasattr(value, "tolist"):
            value = value.tolist()
        if isinstance(value, (list, tuple)):
            return [plain(item, depth + 1) for item in value]
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        return repr(value)[:200]

    def written(value):
        try:
            text = json.dumps(plain(value))
        except Exception as error:
            text = json.dumps(type(error).__name__)
        return text if len(text) <= {longest} else json.dumps("too long")

    scope = globals()
    answered = [name for name in names if name in scope and scope[name] is not ...]
    print(mark + json.dumps({{name: written(scope[name]) for name in answered}}) + mark)

_export({names!r}, {mark!r})
"""
# In characters of JSON.
LONGEST_ANSWER = 100_000
# In seconds: how long an interrupted kernel may take to become idle again.
PATIENCE = 5


@dataclass
class Submission:
    """What a student handed in: answers by name, texts by exercise, and remarks for the teacher."""

    values: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    written: dict[str, Any] = field(default_factory=dict)
    """The parameters that stand in the notebook. They are compared, never used."""


def collect(
    notebook: NotebookNode, parameters: Mapping[str, Any], names: list[str], seconds: float
) -> Submission:
    """Run a notebook with the student's own parameters, `seconds` at most for a cell."""
    submission = Submission(texts=texts_of(notebook))
    own = "\n".join(f"{name} = {value!r}" for name, value in parameters.items())
    cell = _parameter_cell(notebook)
    if cell is not None:
        submission.written = _literals(cell.source)
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


def written_parameters(notebook: NotebookNode) -> dict[str, Any]:
    """The parameters that stand in a notebook; none if their cell is gone."""
    cell = _parameter_cell(notebook)
    return {} if cell is None else _literals(cell.source)


def _parameter_cell(notebook: NotebookNode) -> NotebookNode | None:
    for cell in notebook.cells:
        if cell.cell_type == "code" and "parameters" in cell.metadata.get("tags", []):
            return cell
    return None


def texts_of(notebook: NotebookNode) -> dict[str, str]:
    """The answers in words, by exercise, without the line that asks for them."""
    texts = {}
    for cell in notebook.cells:
        label = cell.metadata.get("labelaudit", {})
        label = label.get("answer") if isinstance(label, dict) else None
        if cell.cell_type == "markdown" and isinstance(label, str):
            texts[label] = cell.source.replace(f"*Your answer to {label}:*", "").strip()
    return texts


async def _run(
    notebook: NotebookNode, folder: str, names: list[str], seconds: float, submission: Submission
) -> None:
    """Execute every cell, and read the answers after each of them."""
    client = NotebookClient(
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
    asked = EXPORT.format(names=names, mark=mark, longest=LONGEST_ANSWER)
    printed: list[str] = []

    def hear(message: Mapping[str, Any]) -> None:
        if message["msg_type"] == "stream":
            printed.append(message["content"]["text"])

    with contextlib.suppress(TimeoutError):
        await client.kc.execute_interactive(
            asked, store_history=False, output_hook=hear, timeout=PATIENCE, allow_stdin=False
        )
    parts = "".join(printed).split(mark)
    if len(parts) == 3 and len(parts[1]) <= 2 * LONGEST_ANSWER * (len(names) + 1):
        with contextlib.suppress(ValueError, TypeError, AttributeError, RecursionError):
            answers = json.loads(parts[1])
            read = {name: json.loads(answers[name]) for name in names if name in answers}
            submission.values |= read


def _literals(source: str) -> dict[str, Any]:
    """The plain values that a cell assigns."""
    values: dict[str, Any] = {}
    with contextlib.suppress(SyntaxError, ValueError, RecursionError):
        for statement in ast.parse(source).body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    values[name] = ast.literal_eval(value)
    return values


def read_notebook(path: Path) -> NotebookNode:
    """A notebook from a file; a ValueError says what is wrong with it."""
    import nbformat

    try:
        return nbformat.read(path, as_version=4)
    except Exception as error:  # a student's file may be anything
        raise ValueError(f"not a notebook ({type(error).__name__})") from None
