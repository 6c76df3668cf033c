"""What a lecture needs on paper: a sheet for predictions, cards for a game, figures as files."""

from __future__ import annotations

import ast
import base64
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote_to_bytes

import jupytext
from bs4 import BeautifulSoup
from jinja2 import Environment, FileSystemLoader

from book.tools.checkout import Checkout
from book.tools.page import write_page
from book.tools.runner import Execution
from book.tools.slides import make_slides, mathjax
from labelaudit.command_line import CommandError
from labelaudit.files import write_atomically

# The chapter whose people are on the cards.
GAME = "01_setting"
# Pixels of a png for a pixel of the page.
SHARPNESS = 3


def write_handout(checkout: Checkout, executions: Sequence[Execution], out: Path) -> list[str]:
    """Write sheet, cards and figures of some chapters; give the names of the figures."""
    predictions, names, scripts = [], list[str](), ("", "")
    for execution in executions:
        page = BeautifulSoup(
            write_page(checkout, execution).read_text(encoding="utf-8"), "html.parser"
        )
        scripts = mathjax(page)
        names += _figures(page, out / "figures")
        slides = [slide for slide in make_slides(page) if slide.kind == "prediction"]
        predictions += [(execution.chapter.title, slide.html) for slide in slides]
    folder = FileSystemLoader(Path(__file__).parent / "templates")
    environment = Environment(loader=folder, autoescape=True, trim_blocks=True)
    for name, values in (
        ("predictions", {"predictions": predictions, "scripts": scripts}),
        ("cards", {"people": people(checkout)}),
    ):
        html = environment.get_template(f"{name}.html").render(**values)
        write_atomically(out / f"{name}.html", html)
    return names


def people(checkout: Checkout) -> list[tuple[str, float, int]]:
    """Name, prior and label of everybody in the first chapter's example."""
    for cell in jupytext.read(checkout.source(GAME)).cells:
        if cell.cell_type == "code" and "everyone = [" in cell.source:
            for statement in ast.parse(cell.source).body:
                match statement:
                    case ast.Assign(targets=[ast.Name(id="everyone")], value=value):
                        return ast.literal_eval(value)
    raise CommandError(f"{GAME} no longer lists its people as `everyone`")


def _figures(page: BeautifulSoup, folder: Path) -> list[str]:
    """Write the pictures of a page under the names of its figures."""
    names = []
    for figure in page.select("figure[id]"):
        image = figure.find("img")
        address = str(image["src"]) if image else ""
        if address.startswith("data:image/svg+xml"):
            name = str(figure["id"])
            write_atomically(folder / f"{name}.svg", _data(address).decode())
            names.append(name)
    return names


def _data(address: str) -> bytes:
    head, _, data = address.partition(",")
    return base64.b64decode(data) if head.endswith(";base64") else unquote_to_bytes(data)


def write_png(svg: Path, browser: str) -> Path:
    """Draw an svg file as png, in its own size."""
    width, height = svg_size(svg.read_text(encoding="utf-8"))
    target = svg.with_suffix(".png").resolve()
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += ["--disable-background-networking", f"--user-data-dir={profile}"]
        command += [f"--force-device-scale-factor={SHARPNESS}", f"--screenshot={target}"]
        command += [f"--window-size={width},{height}", svg.resolve().as_uri()]
        drawn = subprocess.run(command, capture_output=True, timeout=120, check=False)
    if drawn.returncode or not target.is_file():
        raise CommandError(f"{browser} could not draw {svg.name}")
    return target


def svg_size(text: str) -> tuple[int, int]:
    """The width and the height of a picture in pixels.

    >>> svg_size('<svg width="72pt" height="36.5pt" viewBox="0 0 72 36.5">')
    (96, 49)
    """
    sides = [re.search(rf'<svg[^>]*\b{side}="([\d.]+)pt"', text) for side in ("width", "height")]
    if None in sides:
        raise CommandError("a figure does not state its size in points")
    width, height = (-(-float(side[1]) * 4 // 3) for side in sides if side)
    return int(width), int(height)
