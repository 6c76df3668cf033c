"""Badges in the chapters: they say what the ledger says, and the page runs the check."""

import json
import re
from pathlib import Path

import pytest

from book.chapters.verdicts import verdicts

ROOT = Path(__file__).resolve().parents[1]
RECORDED = json.loads((ROOT / "tests" / "ledger_verdicts.json").read_text(encoding="utf-8"))
VERDICTS = {name: text.split()[0] for name, text in RECORDED.items()}
BADGE = re.compile(r"\[(\S+)\s+(\w+)\]\{\.verdict\s+\.verdict-(\w+)\}")
CALL = re.compile(r"^verdicts\((.*?)\)$", re.DOTALL | re.MULTILINE)
CHAPTERS = sorted(path.stem for path in (ROOT / "notebooks").glob("0[1-8]_*.md"))


def source(chapter):
    return (ROOT / "notebooks" / f"{chapter}.md").read_text(encoding="utf-8")


def checked_on(text):
    return {name for call in CALL.findall(text) for name in re.findall(r'"([^"]+)"', call)}


def wrong_badges(text):
    """Statements whose badge has another word, or another colour, than the ledger's verdict."""
    return [
        name for name, word, colour in BADGE.findall(text) if not word == colour == VERDICTS[name]
    ]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_badges_agree_with_the_ledger(chapter):
    text = source(chapter)
    assert len(BADGE.findall(text)) == text.count("{.verdict") >= 3
    assert "<span" not in text, "a badge without the name of its statement"
    assert wrong_badges(text) == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_badge_is_backed_by_a_check_on_its_page(chapter):
    text = source(chapter)
    assert {name for name, _, _ in BADGE.findall(text)} <= checked_on(text)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_wrong_badge_is_seen(chapter):
    name, word, colour = BADGE.findall(source(chapter))[0]
    other = "gap" if word != "gap" else "holds"
    right = re.search(rf"\[{re.escape(name)}\s+{word}\]", source(chapter))[0]
    wrong_word = source(chapter).replace(right, right.replace(word, other), 1)
    wrong_colour = source(chapter).replace(f".verdict-{colour}", f".verdict-{other}", 1)
    assert wrong_badges(wrong_word) == [name]
    assert wrong_badges(wrong_colour) != []


def test_the_table_shows_badge_evidence_and_corrected_form():
    shown = verdicts("N-0.46", "T3.5")
    assert [item["id"] for item in shown.entries] == ["N-0.46", "T3.5"]
    html = shown._repr_html_()
    assert '<span class="verdict verdict-misprint">misprint</span>' in html
    assert "<em>Corrected:</em> 1\xa0− 2/(1 + e<sup>ε</sup>)" in html
    assert "0.4621" in repr(shown)
    assert '<span class="grade grade-exact">exact</span>' in html and "exact" in repr(shown)


def test_an_unknown_statement_is_an_error():
    with pytest.raises(ValueError, match=r"no statement 'T9\.9' in the ledger"):
        verdicts("T9.9")
