"""What the book calls its statements, figures, exercises, pages and sources.

The numbers are counted in the chapters' texts as Sphinx counts them: for each kind from 1 in each
chapter. So they are known before the book has been built.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from book.tools.checkout import Checkout

# In the order of the text: a statement or an exercise, the name of a figure, a formula, a heading.
LABELLED = re.compile(
    r"^[`:]{3,}\{(?:prf:(?P<statement>\w+)|(?P<exercise>exercise))\}[^\n]*\n"
    r"(?:(?!:label:):[\w-]+:[^\n]*\n)*:label: *(?P<label>\S+)"
    r"|^ *figure: *\n(?: +[^\n]*\n)*? +name: *(?P<figure>\S+)"
    r"|\$\$[ \t]*\((?P<formula>[\w-]+)\)"
    r"|^\((?P<heading>[\w-]+)\)=\s+#+ (?P<title>.+)$",
    re.MULTILINE,
)
# A verdict's badge, another role, and the signs of markup.
MARKUP = re.compile(r"\{verdict\}`[^`]*`|\{[\w:]+\}|[`*$]")


def references(checkout: Checkout) -> dict[str, str]:
    """The name of every label, page and source, as "Lemma 2.1", "Fig. 2.1" or a title.

    >>> from book.tools.checkout import find_checkout
    >>> names = references(find_checkout())
    >>> names["lem-additive-bayes"], names["fig-additive-individual"], names["01_setting"]
    ('Lemma 2.1', 'Fig. 2.1', 'A bag, a prior, a release')
    >>> names["guerra2026understanding"]
    'Guerra-Balboa et al. [2026]'
    """
    names = dict(_sources(checkout.root / "book" / "references.bib"))
    for path in sorted([*checkout.root.glob("notebooks/*.md"), *checkout.root.glob("book/*.md")]):
        text = path.read_text(encoding="utf-8")
        heading = re.search(r"^# (.+)$", text, re.MULTILINE)
        title = names[path.stem] = plain_title(heading[1]) if heading else path.stem
        names |= dict(_labels(text, path.stem, title))
    return names


def _labels(text: str, page: str, title: str) -> Iterator[tuple[str, str]]:
    number = re.match(r"\d+", page)
    chapter = f"{int(number[0])}." if number else ""
    counts: Counter[str] = Counter()
    for match in LABELLED.finditer(text):
        if match["heading"]:
            yield match["heading"], plain_title(match["title"])
        elif match["formula"]:
            counts["formula"] += 1
            yield match["formula"], f"{chapter}{counts['formula']}"
        else:
            kind = match["statement"] or match["exercise"] or "fig."
            counts[kind] += 1
            numbered = f"{kind.capitalize()} {chapter}{counts[kind]}"
            # A page that is no chapter has no number of its own.
            yield match["label"] or match["figure"], numbered if chapter else f"“{title}”"


def _sources(bibliography: Path) -> Iterator[tuple[str, str]]:
    """Authors and year of each source that is cited, as the book prints them."""
    if not bibliography.is_file():
        return
    from pybtex.database import parse_file

    for key, entry in parse_file(str(bibliography)).entries.items():
        authors = [
            " ".join(str(name) for name in person.rich_last_names)
            for person in entry.persons.get("author", [])
        ]
        first = authors[0] if authors else entry.fields.get("title", key)
        others = {0: "", 1: "", 2: f" and {authors[-1]}"}.get(len(authors), " et al.")
        yield key, f"{re.sub(r'[{}]', '', first + others)} [{entry.fields.get('year', 'no year')}]"


def plain_title(markdown: str) -> str:
    """A heading without the signs of its markup, and without the badge of a verdict."""
    return MARKUP.sub("", markdown).strip()
