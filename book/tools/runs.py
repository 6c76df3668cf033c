"""The runs that readers made: how each is called, what is kept about it, and the list of them.

A run's folder is `_build/runs/<chapter>-<scale>-<what differs>-<digest>`. `run.json` inside it
describes the run; a folder without one is not a finished run.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from book.tools.chapters import Chapter
from book.tools.checkout import Checkout
from book.tools.panels import typed
from labelaudit.files import digest, write_atomically

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from book.tools.runner import Execution

RECORD = "run.json"
# Scales in the order in which they are tried where two are equally near.
NEAREST = ("laptop", "smoke", "paper")
MAX_FOLDER_NAME = 60
PICTURES = {"image/svg+xml": "svg", "image/png": "png"}
INDEX_STYLE = """\
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
td, th { border-bottom: 1px solid #8886; padding: 0.4rem 0.6rem; text-align: left; }
"""


def differences(chapter: Chapter, parameters: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """The scale nearest to the parameters, and what differs from it, as a reader would type it."""

    def differing(scale: str) -> dict[str, str]:
        declared = chapter.values(scale)
        return {
            name: typed(_shown(chapter, name, value))
            for name, value in parameters.items()
            if value != declared[name]
        }

    return min(((scale, differing(scale)) for scale in NEAREST), key=lambda pair: len(pair[1]))


def description(chapter: Chapter, parameters: Mapping[str, Any]) -> str:
    """What differs, in words: `laptop scale, bag_sizes [4, 16]`."""
    scale, changed = differences(chapter, parameters)
    return ", ".join([f"{scale} scale", *(f"{name} {value}" for name, value in changed.items())])


def folder_name(chapter: Chapter, parameters: Mapping[str, Any]) -> str:
    """The folder of a run: chapter, scale, what differs, and a digest of all parameters."""
    scale, changed = differences(chapter, parameters)
    pairs = "-".join(f"{name}={value}" for name, value in changed.items())
    readable = re.sub(r"[^\w.,=-]", "", pairs, flags=re.ASCII)[:MAX_FOLDER_NAME].rstrip("-.,=")
    parts = [chapter.id, scale, readable, digest(parameters)[:10]]
    return "-".join(part for part in parts if part)


def write_record(checkout: Checkout, execution: Execution, folder: Path) -> None:
    """Describe a finished run in its folder, with its figures beside it, and list it."""
    chapter, made = execution.chapter, execution.facts
    scale, changed = differences(chapter, made["parameters"])
    record = {
        "chapter": chapter.id,
        "title": chapter.title,
        "scale": scale,
        "changed": changed,
        "parameters": made["parameters"],
        "headlines": made["headlines"],
        "figures": _write_figures(execution.notebook, folder / "figures"),
        "files": sorted(path.name for path in (folder / chapter.id).glob("*") if path.is_file()),
        "started": made["started"],
        "seconds": made["seconds"],
        "written": time.time(),
    }
    write_atomically(folder / RECORD, json.dumps(record, indent=1))
    write_index(checkout)


def read_record(folder: Path) -> dict[str, Any] | None:
    """What is kept about a run; None where the folder holds no finished one."""
    try:
        return json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def list_runs(checkout: Checkout, chapter: str | None = None) -> list[dict[str, Any]]:
    """Every finished run, or those of one chapter, the latest first, with their folders."""
    folders = (checkout.build / "runs").glob(f"{chapter or ''}*")
    records = ((folder.name, read_record(folder)) for folder in folders)
    runs = [
        record | {"run": name}
        for name, record in records
        if record is not None and chapter in (None, record["chapter"])
    ]
    return sorted(runs, key=lambda record: -record["written"])


def delete_run(checkout: Checkout, run: str) -> None:
    """Remove a run's page and its execution, unless the execution is the book's own."""
    folder = checkout.page(run)
    record = read_record(folder)
    shutil.rmtree(folder, ignore_errors=True)
    if record is not None:
        from book.tools.cache_key import run_name

        executed = checkout.executed(run_name(record["chapter"], record["parameters"]))
        staged = book_facts(checkout, record["chapter"])
        if staged is None or staged["parameters"] != record["parameters"]:
            shutil.rmtree(executed, ignore_errors=True)
    write_index(checkout)


def book_facts(checkout: Checkout, chapter: str) -> dict[str, Any] | None:
    """What made the book's own page of a chapter: as built here, or else as published."""
    import nbformat

    try:
        notebook = nbformat.read(checkout.staged(chapter), as_version=4)
        return notebook.metadata["labelaudit"]
    except (OSError, KeyError, ValueError):
        return read_headlines(checkout).get(chapter)


def read_headlines(checkout: Checkout) -> dict[str, Any]:
    """The published book's headline numbers by chapter, with the parameters that made them."""
    try:
        return json.loads(checkout.headlines.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def write_index(checkout: Checkout) -> None:
    """Write `_build/runs/index.html`, a list of all runs."""
    rows = [
        f'<tr><td><a href="{escape(run["run"])}/{escape(run["chapter"])}.html">'
        f"{escape(run['title'])}</a>"
        f"<td>{escape(changes(run))}<td>{escape(str(run['started']))}<td>{run['seconds']:g} s"
        for run in list_runs(checkout)
    ]
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Your runs</title>'
        f'<meta name="viewport" content="width=device-width"><style>{INDEX_STYLE}</style>'
        "<h1>Your runs</h1><p>Each is a page of its own. A folder may be deleted at any time."
        "<table><thead><tr><th>chapter<th>what differs from the scale<th>started<th>took"
        f"<tbody>{''.join(rows)}</table></html>"
    )
    write_atomically(checkout.build / "runs" / "index.html", page)


def changes(record: Mapping[str, Any]) -> str:
    """A stored run in words, as `description` gives it for parameters."""
    pairs = (f"{name} {value}" for name, value in record["changed"].items())
    return ", ".join([f"{record['scale']} scale", *pairs])


def _shown(chapter: Chapter, name: str, value: Any) -> Any:
    """A value without the folders of a reader's own file."""
    if chapter.parameters[name].kind == "path" and isinstance(value, str):
        return Path(value).name
    return value


def _write_figures(notebook: NotebookNode, folder: Path) -> list[dict[str, str]]:
    """Write each labelled figure of a run as a picture, and give their names and alt texts."""
    shutil.rmtree(folder, ignore_errors=True)
    figures = []
    for cell in notebook.cells:
        settings = cell.metadata.get("mystnb", {})
        name = settings.get("figure", {}).get("name")
        drawn = [
            (kind, output["data"][kind])
            for output in cell.get("outputs", [])
            for kind in PICTURES
            if kind in output.get("data", {})
        ]
        if name and drawn:
            kind, picture = drawn[0]
            file = f"{name}.{PICTURES[kind]}"
            write_atomically(folder / file, _picture(kind, picture))
            alt = settings.get("image", {}).get("alt", "")
            figures.append({"name": name, "file": file, "alt": alt})
    return figures


def _picture(kind: str, picture: str | list[str]) -> bytes:
    import base64

    text = picture if isinstance(picture, str) else "".join(picture)
    return text.encode() if kind == "image/svg+xml" else base64.b64decode(text)
