"""Agreement between the pages: names are used where the notation says, one word for one thing."""

import re

import pytest
from commands import ROOT
from smoke import text

CHAPTERS = sorted(path.stem for path in (ROOT / "notebooks").glob("[01]*.md"))
# Words that mean the same as the one the glossary has.
OTHER_WORDS = {
    r"homogeneous|uniform bag|bags? (?:is|are|be) uniform": "a bag of equal labels",
    r"exact (?:label )?proportions|exact shares": "label proportions",
}


def page(name):
    return (ROOT / "book" / f"{name}.md").read_text(encoding="utf-8")


def test_the_notation_names_chapters_that_use_the_name():
    rows = [row.strip("| ").split(" | ") for row in page("notation").splitlines()]
    rows = [row for row in rows if row[-1].isdigit()]
    assert len(rows) > 25
    for row in rows:
        (chapter,) = [name for name in CHAPTERS if name.startswith(f"{int(row[-1]):02}_")]
        for name in re.findall(r"`([\w.]+)`", " ".join(row[:-1])):
            last = name.split(".")[-1]
            assert re.search(rf"\b{last}\b", text(chapter)), f"{name} is not in {chapter}"


@pytest.mark.parametrize("words", OTHER_WORDS)
def test_one_word_for_one_thing(words):
    folders = ("notebooks/*.md", "book/*.md", "book/chapters/exercises/*.py")
    sources = [path for pattern in folders for path in ROOT.glob(pattern)]
    assert len(sources) > 30
    for path in sources:
        source = path.read_text(encoding="utf-8")
        match = re.search(words, " ".join(source.split()), re.IGNORECASE)
        assert not match, f"{match and match.group()!r} means {OTHER_WORDS[words]}"
