"""Badges: the ledger's table fills them, and the page runs the check behind each."""

import re
from pathlib import Path

import pytest
from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import roles
from docutils.utils import SystemMessage
from myst_parser.docutils_ import Parser

from book.chapters.verdicts import verdicts
from book.tools.sphinx_extension import VerdictRole

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
CALL = re.compile(r"^(?:verdicts|erratum)\((.*?)\)$", re.DOTALL | re.MULTILINE)


def read(text):
    roles.register_local_role("verdict", VerdictRole())
    settings = {"halt_level": 3, "warning_stream": False}
    return publish_doctree(text, parser=Parser(), settings_overrides=settings)


def test_a_badge_says_what_the_table_declares():
    badges = read("{verdict}`T3.7`, {verdict}`~T3.7`").findall(nodes.inline)
    assert [(badge.astext(), badge["classes"]) for badge in badges] == [
        ("T3.7 false", ["verdict", "verdict-false"]),
        ("false", ["verdict", "verdict-false"]),
    ]


def test_a_badge_of_an_unknown_statement_stops_the_build():
    with pytest.raises(SystemMessage, match=r"no statement 'T3\.55'.* did you mean T3\.5\?"):
        read("{verdict}`T3.55`")


@pytest.mark.parametrize("page", sorted(NOTEBOOKS.glob("*.md")), ids=lambda page: page.stem)
def test_no_badge_is_typed_by_hand_and_each_is_backed_by_a_check_on_its_page(page):
    text = page.read_text(encoding="utf-8")
    checked = {name for call in CALL.findall(text) for name in re.findall(r'"([^"]+)"', call)}
    assert set(re.findall(r"\{verdict\}`~?([^`]+)`", text)) <= checked
    if page.stem != "ledger":  # its legend shows a badge of every kind
        assert "{.verdict" not in text and "<span" not in text


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
