"""Pieces of a page: tables, figures, numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from labelaudit.report.intervals import Interval


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML already; the first of a row is its heading."""
    titles = "".join(f'<th scope="col">{title}</th>' for title in head)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    return (
        f'<div class="wide" tabindex="0"><table><thead><tr>{titles}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def figure(svg: str, caption: str) -> str:
    """A picture with its caption; nothing where there is no picture."""
    inner = f'<div class="wide" tabindex="0">{svg}</div><figcaption>{caption}</figcaption>'
    return f"<figure>{inner}</figure>" if svg else ""


def number(value: float, digits: int = 3) -> str:
    """A number for a table: infinity as its sign, nothing at all as a dash."""
    if math.isnan(value):
        return "-"
    return ("&#8722;" if value < 0 else "") + (
        "&infin;" if math.isinf(value) else f"{abs(value):.{digits}f}"
    )


def interval(one: Interval | None, digits: int = 3, most: float = 1.0) -> str:
    """The value with the ends of its interval below it, cut off at -1 and `most`."""
    if one is None or math.isnan(one.value):
        return "-"
    ends = f"{number(max(one.low, -1), digits)} to {number(min(one.high, most), digits)}"
    return f"{number(one.value, digits)}<small>{ends}</small>"


def epsilon(value: float, checked: bool = True) -> str:
    """A guarantee, that there is none, or what a mechanism says of itself."""
    shown = "none" if math.isinf(value) else f"{value:g}"
    return shown if checked else f"{shown}<small>declared, not checked</small>"


def exposed_records(rows: Sequence[Mapping[str, Any]]) -> str:
    """Ids, each with its advantage; a record that shows none is not called exposed.

    >>> exposed_records([{"id": "Ada", "advantage": 0.02}, {"id": "Ben", "advantage": 0.0004}])
    'Ada&nbsp;(0.020)'
    """
    figures = [(row["id"], f"{row['advantage']:.3f}") for row in rows]
    shown = [f"{escape(name)}&nbsp;({figure})" for name, figure in figures if float(figure) > 0]
    return ", ".join(shown) or "below 0.001 for every record"
