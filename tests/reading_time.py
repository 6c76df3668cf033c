"""How long a chapter takes to read, measured from its text.

The rates are those of careful reading of technical prose: 130 words a minute, two seconds
for each line of visible code, fifteen for a displayed formula, thirty for a figure. Folded
solutions are left out, and so is the time an exercise takes.
"""

from __future__ import annotations

import re
from pathlib import Path

from book.tools.markdown import SOLUTION

WORDS_PER_MINUTE = 130
SECONDS = {"line": 2.0, "formula": 15.0, "figure": 30.0}
STEP = 5

_CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FORMULA = re.compile(r"\$\$.+?\$\$", re.DOTALL)


def reading_minutes(source: str) -> int:
    """Minutes to read the text of a chapter, to the nearest five, at least five.

    >>> reading_minutes("word " * 1300)
    10
    """
    text = SOLUTION.sub("", source.split("\n---\n", 1)[-1])
    cells = _CELL.findall(text)
    shown = [cell for cell in cells if not re.search(r"(hide|remove)-(input|cell)", cell)]
    prose = _CELL.sub("", text)
    formulas = len(_FORMULA.findall(prose))
    words = len(re.findall(r"[^\W\d_]{2,}", _FORMULA.sub("", prose)))
    seconds = (
        60 * words / WORDS_PER_MINUTE
        + SECONDS["line"] * sum(cell.count("\n") for cell in shown)
        + SECONDS["formula"] * formulas
        + SECONDS["figure"] * sum("figure:" in cell for cell in cells)
    )
    return max(STEP, STEP * round(seconds / 60 / STEP))


def stated_minutes(source: str) -> int | None:
    """The time a chapter's opening box states, if it states one."""
    found = re.search(r"\*\*Time to read:\*\* (\d+) minutes", source)
    return int(found[1]) if found else None


def read_source(path: Path) -> tuple[int, int | None]:
    """Measured and stated minutes of a chapter's file."""
    source = path.read_text(encoding="utf-8")
    return reading_minutes(source), stated_minutes(source)
