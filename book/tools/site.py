"""Stage the executed chapters beside the prose pages, and let Jupyter Book make the site.

Sphinx builds in a folder of its own. Only a site that was built without a warning replaces the one
in `_build/html`; until then the last good site stays there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import nbformat
import yaml

from book.tools.cache_key import folder_files
from book.tools.chapters import Chapter, load_chapters
from book.tools.checkout import Checkout
from book.tools.corrections import correct_pages
from book.tools.markdown import for_jupyter
from book.tools.panels import with_panels
from book.tools.parameters import ContractError
from book.tools.runner import Execution
from labelaudit.command_line import CommandError
from labelaudit.files import digest, file_digest, write_atomically

# Makes the HTML of a project: its folder, the folder for the result, whether a warning is an error,
# and a configuration if it is not the project's own.
Builder = Callable[..., Path]
# Where in the folder for the result Sphinx leaves its environment.
DOCTREES = Path("_build", ".doctrees")
# Sphinx keeps most of what it makes, so looking for garbage as often as by default takes a quarter
# of the time.
JUPYTER_BOOK = """\
import gc
from jupyter_book.cli.main import main
gc.set_threshold(100_000, 50, 100)
main()
"""


class SiteFailed(CommandError):
    """Sphinx warned or failed; the message holds its warnings and errors."""

    status = 1


def chapters_in_toc(checkout: Checkout) -> list[Chapter]:
    """The chapters the book shows, in its order; each must be declared and written."""
    chapters = load_chapters(checkout.chapters_file)
    listed = [Path(entry).name for entry in _toc_files(checkout) if entry.startswith("notebooks/")]
    for chapter in listed:
        if chapter not in chapters:
            raise ContractError(f"_toc.yml lists {chapter!r}, which chapters.yml does not declare")
    return [chapters[chapter] for chapter in listed]


def stage(checkout: Checkout, executions: Sequence[Execution]) -> None:
    """Fill the staging folder; files that would not change are left alone, others removed."""
    folder = checkout.stage
    wanted = {
        folder / "_config.yml": (checkout.root / "_config.yml").read_text(encoding="utf-8"),
        folder / "_toc.yml": (checkout.root / "_toc.yml").read_text(encoding="utf-8"),
    }
    for execution in executions:
        notebook = with_panels(execution.chapter, execution.notebook)
        wanted[checkout.staged(execution.chapter.id)] = nbformat.writes(notebook)
    for path, text in wanted.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            write_atomically(path, text)
    for stale in set((folder / "notebooks").glob("*.ipynb")) - set(wanted):
        stale.unlink()
        shutil.rmtree(stale.with_suffix(""), ignore_errors=True)
    for execution in executions:
        copy_files(execution, folder / "notebooks" / execution.chapter.id)
    if not (folder / "book").exists():
        (folder / "book").symlink_to(Path("..", "..", "book"), target_is_directory=True)


def build_site(checkout: Checkout) -> bool:
    """Build the site from the staging folder; False where nothing has changed since last time."""
    stamp = checkout.site_stamp
    inputs = _inputs(checkout)
    entry = checkout.site / "index.html"
    if entry.is_file() and stamp.is_file() and stamp.read_text(encoding="utf-8") == inputs:
        return False
    work = checkout.build / "sphinx"
    shutil.rmtree(work, ignore_errors=True)
    built = jupyter_book(checkout.stage, work, strict=True)
    _make_downloads_plain(checkout, built)
    stamp.unlink(missing_ok=True)
    replace_folder(checkout.site, built)
    replace_folder(checkout.doctrees, work / DOCTREES)
    write_atomically(stamp, inputs)
    shutil.rmtree(work, ignore_errors=True)
    return True


def jupyter_book(source: Path, output: Path, *, strict: bool, config: Path | None = None) -> Path:
    """Run Jupyter Book over a folder and give the folder of HTML, MathJax included."""
    command = [sys.executable, "-c", JUPYTER_BOOK, *_arguments(source, output, config)]
    if strict:
        command += ["-W", "-n", "--keep-going"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    html = output / "_build" / "html"
    if done.returncode and (strict or not html.is_dir()):
        messages = _sphinx_messages(done.stderr or done.stdout, source)
        what = "Sphinx warns, so the last good site stays" if strict else "Sphinx made no page"
        raise SiteFailed(f"{what}:\n{messages}")
    return _completed(source, html)


def jupyter_book_here(
    source: Path, output: Path, *, strict: bool, config: Path | None = None
) -> Path:
    """The same in this process, for a server that has loaded Jupyter Book ahead of time."""
    from jupyter_book.cli.main import build

    html = output / "_build" / "html"
    try:
        build.main(_arguments(source, output, config)[1:], standalone_mode=False)
    except (Exception, SystemExit) as error:
        if strict or not html.is_dir():
            raise SiteFailed(f"Sphinx made no page:\n{error}") from error
    return _completed(source, html)


def _arguments(source: Path, output: Path, config: Path | None) -> list[str]:
    config = config or source / "_config.yml"
    options = ["--path-output", str(output), "--config", str(config), "--quiet"]
    return ["build", str(source), *options]


def _completed(source: Path, html: Path) -> Path:
    correct_pages(html)
    _put_mathjax(html, yaml.safe_load((source / "_config.yml").read_text(encoding="utf-8")))
    return html


def _put_mathjax(html: Path, config: dict[str, Any]) -> None:
    """Copy MathJax to the address that the configuration gives to pages.

    It goes straight into the site, not into a source's `_static`: Jupyter Book would load every
    script it finds there on every page, whether the page has formulas or not.
    """
    address = config["sphinx"]["config"]["mathjax_path"]
    files = metadata.files("sphinx-mathjax-offline") or []
    (script,) = (file for file in files if file.name == Path(address).name)
    target = html / "_static" / address
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(str(script.locate()), target)


def _make_downloads_plain(checkout: Checkout, html: Path) -> None:
    """Rewrite the notebooks that pages offer for download, which Sphinx has copied as staged."""
    for path in (html / "_sources" / "notebooks").glob("*.ipynb"):
        notebook = for_jupyter(nbformat.read(path, as_version=4), checkout)
        write_atomically(path, nbformat.writes(notebook))


def _toc_files(checkout: Checkout) -> Iterable[str]:
    def walk(node: Any) -> Iterable[str]:
        if isinstance(node, dict):
            for key, value in node.items():
                if key in ("root", "file"):
                    yield str(value).removesuffix(".ipynb").removesuffix(".md")
                yield from walk(value)
        elif isinstance(node, list):
            for item in node:
                yield from walk(item)

    return walk(yaml.safe_load((checkout.root / "_toc.yml").read_text(encoding="utf-8")))


def _inputs(checkout: Checkout) -> str:
    """A digest of all that Sphinx reads, the package included: its docstrings are a page."""
    folders = [checkout.stage, checkout.root / "book", checkout.package]
    pinned = [checkout.root / "requirements.lock", checkout.root / "pyproject.toml"]
    return digest([*map(folder_files, folders), *map(file_digest, pinned)])


def copy_files(execution: Execution, target: Path) -> None:
    """Put what a chapter wrote, such as the table behind a figure, beside its page."""
    source = execution.folder / "files"
    shutil.rmtree(target, ignore_errors=True)
    if source.is_dir() and any(source.iterdir()):
        shutil.copytree(source, target)


def replace_folder(target: Path, new: Path) -> None:
    """Replace the folder `target` by `new`, with two renames, so there is never half a site."""
    restore_folder(target)
    old = target.with_name(f"{target.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        os.rename(target, old)
    os.rename(new, target)
    shutil.rmtree(old, ignore_errors=True)


def restore_folder(target: Path) -> None:
    """Take back what a replacement that was killed between its two renames has put away."""
    old = target.with_name(f"{target.name}.old")
    if not target.exists() and old.exists():
        os.rename(old, target)


def _sphinx_messages(output: str, source: Path) -> str:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output).replace(f"{source}/", "")
    lines = plain.splitlines()
    faults = [line for line in lines if "WARNING" in line or "ERROR" in line.upper()]
    return "\n".join(faults or lines[-20:])
