"""Words that are never right, in the package, the book and the chapters."""

import re

import pytest
from commands import ROOT

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


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Mended: the line is upright.", 2),
        ("for one in found:", 1),
        ("we recommend an amendment", 0),
        ("everyone in the bag, its mates", 1),
        ("const row = (one) => one.name;", 1),
        ("const found = [];", 1),
    ],
)
def test_a_wrong_word_is_seen(text, count):
    assert len(wrong_words(text)) == count
