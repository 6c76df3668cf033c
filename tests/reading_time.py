"""How long a chapter takes to read, measured from its text.

The rates are those of careful reading of technical prose: 130 words a minute, two seconds
for each line of visible code, three for a formula in a sentence, fifteen for a displayed one,
thirty for a figure. Exercises and solutions are left out.
"""

from __future__ import annotations

import re
from pathlib import Path

from book.tools.markdown import SOLUTION

WORDS_PER_MINUTE = 130
SECONDS = {"line": 2.0, "inline": 3.0, "formula": 15.0, "figure": 30.0}
STEP = 5

_CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROOF = re.compile(r"^(`{3,})\{prf:proof\}.*?^\1$", re.MULTILINE | re.DOTALL)
_FORMULA = re.compile(r"\$\$.+?\$\$", re.DOTALL)
_INLINE = re.compile(r"\$[^$]+\$")
_EXERCISES = re.compile(r"^## Exercises\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def reading_minutes(source: str) -> int:
    """Minutes to read the text of a chapter, to the nearest five, at least five.

    >>> reading_minutes("word " * 1300)
    10
    """
    text = _text(source)
    cells = _CELL.findall(text)
    shown = [cell for cell in cells if not re.search(r"(hide|remove)-(input|cell)", cell)]
    words, inline, displayed = contents(source)
    seconds = (
        60 * words / WORDS_PER_MINUTE
        + SECONDS["line"] * sum(cell.count("\n") for cell in shown)
        + SECONDS["inline"] * inline
        + SECONDS["formula"] * displayed
        + SECONDS["figure"] * sum("figure:" in cell for cell in cells)
    )
    return max(STEP, STEP * round(seconds / 60 / STEP))


def contents(source: str) -> tuple[int, int, int]:
    """The words of a chapter's prose, its formulas in sentences, and its displayed formulas.

    >>> contents("Here two words $x$.\\n\\n$$y$$\\n")
    (3, 1, 1)
    """
    prose = _CELL.sub("", _text(source))
    sentences = _FORMULA.sub("", prose)
    words = len(re.findall(r"[^\W\d_]{2,}", _INLINE.sub("", sentences)))
    return words, len(_INLINE.findall(sentences)), len(_FORMULA.findall(prose))


def _text(source: str) -> str:
    return SOLUTION.sub("", _EXERCISES.sub("", source.split("\n---\n", 1)[-1]))


def stated_minutes(source: str) -> tuple[int | None, int | None]:
    """The minutes that a chapter's opening box states, with and without proofs."""
    found = re.search(
        r"\*\*Time to read:\*\* (\d+) minutes(?:, exercises apart; (\d+) without the proofs)?",
        source,
    )
    both = found.groups() if found else (None, None)
    whole, short = (int(minutes) if minutes else None for minutes in both)
    return whole, short or whole


def read_source(path: Path) -> tuple[int, int | None]:
    """Measured and stated minutes of a chapter's file."""
    source = path.read_text(encoding="utf-8")
    return reading_minutes(source), stated_minutes(source)[0]


def read_without_proofs(path: Path) -> tuple[int, int | None]:
    """The same for a reader who leaves the folded proofs out."""
    source = path.read_text(encoding="utf-8")
    return reading_minutes(_PROOF.sub("", source)), stated_minutes(source)[1]
