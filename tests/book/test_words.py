"""Words that are never right, in the package, the book and the chapters."""

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
# Each with what to write instead.
WORDS = {
    r"\bmend(?:s|ed|ing)?\b": "correct, corrected, correction",
    r"\bupright\b": "vertical",
    r"\bconceit\b": "overconfident",
    r"\bflattery\b": "optimism",
    r"\bmates\b": "other members of the bag",
    r"\bfor (?:\w+, )*(?:one|given|found|here|few|said)(?:, \w+)* in\b": (
        "a loop variable named by what it holds"
    ),
    # The same in a script.
    r"(?:\((?:one|given|found|here|few|said)\) =>|\bconst (?:given|found|here|few|said)\b)": (
        "a variable named by what it holds"
    ),
}
SUFFIXES = {".css", ".html", ".j2", ".js", ".md", ".py", ".yml"}
FOLDERS = ("labelaudit", "book", "notebooks", "data_scripts", "benchmarks", ".ci", ".github")


def sources():
    folders = (ROOT / name for name in FOLDERS)
    paths = [path for folder in folders for path in folder.rglob("*") if path.suffix in SUFFIXES]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *paths]


def wrong_words(text):
    """Each line with such a word, and what to write instead."""
    return [
        f"{number}: {line.strip()} ({instead})"
        for number, line in enumerate(text.splitlines(), start=1)
        for pattern, instead in WORDS.items()
        if re.search(pattern, line, re.IGNORECASE)
    ]


def test_no_wrong_word_is_written():
    paths = sources()
    assert len(paths) > 50
    wrong = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in paths
        for line in wrong_words(path.read_text(encoding="utf-8"))
    ]
    assert not wrong, "\n".join(wrong)


def test_a_wrong_word_is_seen():
    wrong = ["Mended at last", "upright", "for one in found:", "its mates", "const found = [];"]
    assert len(wrong_words("\n".join(wrong))) == len(wrong)
    assert wrong_words("we recommend an amendment\nconst row = 1;") == []


def test_the_notation_names_chapters_that_use_the_name():
    rows = [
        row.strip("| ").split(" | ")
        for row in (ROOT / "book" / "notation.md").read_text(encoding="utf-8").splitlines()
    ]
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
