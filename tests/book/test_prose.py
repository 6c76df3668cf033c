"""Agreement between the pages: names are used where the notation says, one word for one thing."""

import re

import pytest
from commands import ROOT
from smoke import executed, glued, text

CHAPTERS = sorted(path.stem for path in (ROOT / "notebooks").glob("[01]*.md"))
FIRST_EIGHT = [name for name in CHAPTERS if name < "09"]
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


def test_the_glossary_is_in_alphabetical_order():
    body = page("glossary").split(":::{glossary}\n")[1].split("\n:::")[0]
    terms = [entry.splitlines()[0] for entry in body.split("\n\n")]
    assert len(terms) > 40
    assert terms == sorted(terms, key=lambda term: term.lower().replace("-", " "))


@pytest.mark.parametrize("words", OTHER_WORDS)
def test_one_word_for_one_thing(words):
    folders = ("notebooks/*.md", "book/*.md", "book/chapters/exercises/*.py")
    sources = [path for pattern in folders for path in ROOT.glob(pattern)]
    assert len(sources) > 30
    for path in sources:
        source = path.read_text(encoding="utf-8")
        match = re.search(words, " ".join(source.split()), re.IGNORECASE)
        assert not match, f"{match and match.group()!r} means {OTHER_WORDS[words]}"


@pytest.mark.parametrize("chapter", FIRST_EIGHT)
def test_the_time_to_read_is_stated_in_one_form(chapter):
    form = r"^\*\*Time to read:\*\* \d+ minutes, exercises apart(?:; \d+ without the proofs)?\.$"
    assert re.search(form, text(chapter), re.M)


def test_the_workshop_does_not_answer_its_prediction_first():
    before = text("06_proof_workshop").split("## ", 1)[0]
    assert "How large must the bag be" in " ".join(before.split())
    assert not re.search(r"thousand|\d{4,}", before.split("```{code-cell}", 1)[0])


def test_the_limits_quote_chapter_eight():
    fraction = glued(executed("08_advantage_distributions"))["distribution-infinite"]
    assert f"for {fraction:.0%} of the people" in page("limits")
