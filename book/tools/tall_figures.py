"""Tall figures on slides: their rows of panels, some on each slide, below the same heading."""

import base64
import copy
import re
from collections.abc import Iterator

from bs4.element import Tag

BASE64 = "data:image/svg+xml;base64,"
ROOT = re.compile(r'<svg\b[^>]*viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>')
# The background of a panel as matplotlib writes it: bottom left, bottom right, top right.
PANEL = re.compile(
    r'<g id="axes_\d+">\s*<g id="patch_\d+">\s*<path d="M [\d.]+ ([\d.]+)\s+L [\d.]+ [\d.]+\s+'
    r"L [\d.]+ ([\d.]+)"
)
# Heights as parts of the width: what is still one slide, and what a slide shows with large letters.
TALLEST, WELL = 0.85, 0.6
# In points: tick labels stand out above a panel.
MARGIN = 6.0


def in_bands(figure: Tag) -> Iterator[Tag]:
    """A figure, or where it is too tall for a slide one figure for each band of its rows."""
    image = figure.find("img")
    source = str(image["src"]) if isinstance(image, Tag) else ""
    if not source.startswith(BASE64):
        yield figure
        return
    for number, part in enumerate(bands(base64.b64decode(source[len(BASE64) :]).decode())):
        piece = copy.copy(figure)
        if number:
            del piece["id"]
        piece.find("img")["src"] = BASE64 + base64.b64encode(part.encode()).decode()  # type: ignore[index]
        yield piece


def bands(svg: str) -> list[str]:
    """A tall SVG as several, each with what stands above the first row and some of the rows."""
    root = ROOT.search(svg)
    tops = sorted({round(float(top), 1) for _, top in PANEL.findall(svg)})
    if root is None or len(tops) < 3:
        return [svg]
    width, height = float(root[1]), float(root[2])
    if height <= TALLEST * width:
        return [svg]
    head = tops[0] - MARGIN
    edges = [top - MARGIN for top in tops] + [height]
    rows = max(1, int((WELL * width - head) / (tops[1] - tops[0])))
    content = svg[root.end() : svg.rindex("</svg>")]
    parts = []
    for first in range(0, len(tops), rows):
        start, end = edges[first], edges[min(first + rows, len(tops))]
        size = f'width="{width}" height="{head + end - start}"'
        parts.append(
            '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
            f' {size} viewBox="0 0 {width} {head + end - start}">'
            f'<svg width="{width}" height="{head}" viewBox="0 0 {width} {head}">'
            f'<g id="whole">{content}</g></svg>'
            f'<svg y="{head}" width="{width}" height="{end - start}"'
            f' viewBox="0 {start} {width} {end - start}"><use href="#whole"/></svg></svg>'
        )
    return parts
