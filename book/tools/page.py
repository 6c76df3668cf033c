"""The page of a reader's own run: one HTML file that needs nothing beside it, and no network.

Sphinx makes it in the environment of the built book, where the run's notebook stands for its
chapter. So theorems, exercises, numbers and references come out as they do in the book, and lead
into it. Where the book was never built, the notebook is a book of its own, whose references to
other pages are text.
"""

from __future__ import annotations

import base64
import mimetypes
import re
import shutil
from html import escape
from pathlib import Path
from typing import Any

import nbformat
import yaml

from book.tools.checkout import Checkout, waiting_lock
from book.tools.markdown import for_jupyter
from book.tools.panels import with_panels
from book.tools.references import references
from book.tools.runner import Execution
from book.tools.runs import book_facts, description, folder_name, write_record
from book.tools.site import DOCTREES, Builder, copy_files, jupyter_book
from labelaudit.files import digest, file_digest, write_atomically


def write_page(checkout: Checkout, execution: Execution, build: Builder | None = None) -> Path:
    """Write a run's notebook, page and record, unless they are up to date.

    `build` makes the HTML of a project; by default it is Jupyter Book in a process of its own.
    """
    chapter = execution.chapter
    folder = checkout.page(folder_name(chapter, execution.facts["parameters"]))
    page = folder / f"{chapter.id}.html"
    notebook = with_panels(chapter, execution.notebook, book_facts(checkout, chapter.id))
    text = nbformat.writes(notebook)
    with waiting_lock(checkout.build / "pages" / f"{folder.name}.lock", "making the same page"):
        stamp = folder / ".stamp"
        # The page links into the book where it has been built, under the numbers it has there.
        settings = [checkout.root / "_config.yml", checkout.root / "pyproject.toml"]
        inputs = [path for path in [*settings, checkout.site_stamp] if path.is_file()]
        made_from = digest([text, *map(file_digest, inputs)])
        if page.is_file() and stamp.is_file() and stamp.read_text(encoding="utf-8") == made_from:
            return page
        html = _build(checkout, execution, text, folder.name, build or jupyter_book)
        download = nbformat.writes(for_jupyter(notebook, checkout))
        write_atomically(folder / f"{chapter.id}.ipynb", download)
        write_atomically(page, _titled(html, description(chapter, execution.facts["parameters"])))
        copy_files(execution, folder / chapter.id)
        write_record(checkout, execution, folder)
        write_atomically(stamp, made_from)
    return page


def _titled(html: str, changed: str) -> str:
    """The page with what differs in its title, so that tabs can be told apart."""
    return re.sub(
        r"<title>\s*(.*?)\s*(&#8212;|</title>)",
        lambda match: f"<title>{match[1]}: {escape(changed)} {match[2]}",
        html,
        count=1,
        flags=re.DOTALL,
    )


def _build(
    checkout: Checkout, execution: Execution, notebook: str, name: str, build: Builder
) -> str:
    """Render a notebook as the page of its chapter, and give the page as one piece of HTML."""
    chapter = execution.chapter.id
    work = checkout.build / "pages" / name
    shutil.rmtree(work, ignore_errors=True)
    project, config = checkout.stage, page_config(checkout)
    source = work / "notebooks" / f"{chapter}.ipynb"
    try:
        write_atomically(source, notebook)
        if checkout.doctrees.is_dir():
            config["sphinx"]["config"]["run_notebook"] = str(source)
            shutil.copytree(checkout.doctrees, work / "out" / DOCTREES)
        else:
            config["sphinx"]["config"]["names_of_references"] = references(checkout)
            project = work
            _write_contents(project, chapter)
            copy_files(execution, source.with_suffix(""))
            (project / "book").symlink_to(checkout.root / "book", target_is_directory=True)
        write_atomically(work / "_config.yml", yaml.safe_dump(config))
        site = build(project, work / "out", strict=False, config=work / "_config.yml")
        html = inlined(site / "notebooks" / f"{chapter}.html")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    # Files a chapter offers for download lie in a folder beside the page.
    return re.sub(r'href="[./]*_downloads/\w+/', f'href="{chapter}/', html)


def _write_contents(project: Path, chapter: str) -> None:
    """A table of contents with empty chapters before this one, so that it has the book's number."""
    number = re.match(r"\d+", chapter)
    empty = [f"empty{before}" for before in range(int(number[0]) if number else 1)]
    for name in empty:
        write_atomically(project / f"{name}.md", f"# {name}\n")
    files = [{"file": name} for name in [*empty[1:], f"notebooks/{chapter}"]]
    parts = [{"numbered": number is not None, "chapters": files}]
    contents = {"format": "jb-book", "root": empty[0], "parts": parts}
    write_atomically(project / "_toc.yml", yaml.safe_dump(contents))


def page_config(checkout: Checkout) -> dict[str, Any]:
    """The book's configuration without what only a whole site can use: sidebar and buttons."""
    config = yaml.safe_load((checkout.root / "_config.yml").read_text(encoding="utf-8"))
    config["only_build_toc_files"] = True
    sphinx = config.setdefault("sphinx", {}).setdefault("config", {})
    sphinx["html_sidebars"] = {"**": []}
    theme = sphinx.setdefault("html_theme_options", {})
    theme |= {"use_download_button": False, "show_prev_next": False}
    return config


def inlined(page: Path) -> str:
    """The page's HTML with its styles, scripts and pictures inside it."""
    html = page.read_text(encoding="utf-8")

    def local(address: str) -> Path | None:
        path = page.parent / address.split("?")[0].split("#")[0]
        return path if path.is_file() and "://" not in address else None

    def script(match: re.Match[str]) -> str:
        path = local(match["address"])
        if path is None:
            return match[0]
        # This sequence alone would end the element early.
        code = path.read_text(encoding="utf-8").replace("</script", r"<\/script")
        rest = match["before"] + match["after"]
        return f"<script{rest}>{code}</script>"

    def style(match: re.Match[str]) -> str:
        path = local(match["address"])
        if path is None:
            return match[0]
        # Preloads and icons are links to files as well; a page alone can do without them.
        return f"<style>{_with_data(path)}</style>" if "stylesheet" in match[0] else ""

    def picture(match: re.Match[str]) -> str:
        path = local(match["address"])
        return match[0] if path is None else f'src="{_data_address(path)}"'

    html = re.sub(r'src="(?P<address>[^"]+\.(?:svg|png|jpe?g|gif))"', picture, html)
    html = re.sub(r'<link[^>]*href="(?P<address>[^"]+)"[^>]*>', style, html)
    element = r'<script(?P<before>[^>]*?) src="(?P<address>[^"]+)"(?P<after>[^>]*)>\s*</script>'
    return re.sub(element, script, html)


def _with_data(style: Path) -> str:
    """A style sheet with the fonts and pictures it names inside it."""

    def data(match: re.Match[str]) -> str:
        path = style.parent / match["address"].split("?")[0].split("#")[0]
        return f"url({_data_address(path)})" if path.is_file() else match[0]

    def imported(match: re.Match[str]) -> str:
        path = style.parent / match["address"]
        return _with_data(path) if path.is_file() else match[0]

    # Every browser takes the compressed font, which each style sheet names first.
    text = re.sub(r',\s*url\([^)]*\.ttf\)\s*format\("truetype"\)', "", style.read_text("utf-8"))
    text = re.sub(r"""@import (?:url\()?["'](?P<address>[^"']+)["']\)?;""", imported, text)
    return re.sub(r"""url\(["']?(?P<address>[^"')]+)["']?\)""", data, text)


def _data_address(path: Path) -> str:
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
