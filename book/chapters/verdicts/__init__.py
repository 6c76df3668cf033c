"""The ledger on a page: badges, the tables under a chapter's statements, errata, the whole ledger.

The tables are macros of `tables.html`, the pages' style sheet is `book/_static/labelaudit.css`. The
colour shows the verdict, a mark with a second word the grade. Every row is in the text, so a page
can be read and printed without scripts. A little JavaScript adds a filter by verdict, grade and
words.

Statements are written as they can be typed, because the command prints them too; `typeset` sets
their letters and raised marks. They are too short, and too mixed with words, to be worth LaTeX.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any, get_args

from book import ledger
from book.ledger import Entry, Grade, Row, Verdict

PARTS = {
    "section_2": "Section 2: the setting",
    "section_3": "Section 3: the measures and their bounds",
    "section_4": "Section 4: experiments",
    "appendix_a": "Appendix A: proofs for the additive advantage",
    "appendix_b": "Appendix B: proof for the multiplicative advantage",
    "appendix_c": "Appendix C: experimental setup",
    "appendix_d": "Appendix D: proportion matching with noise",
}
TITLES = {"gap": "Closed by", "answered": "Answer"}
NAMES = (
    "alpha beta gamma Gamma delta epsilon eps eta theta Theta kappa lambda mu pi sigma Sigma Omega"
)
LETTERS = dict(zip(NAMES.split(), "αβγΓδεεηθΘκλμπσΣΩ", strict=True))
SIGNS = {"<=": "≤", ">=": "≥", "!=": "≠", "+-": "±", "-+": "∓", "O~": "Õ"}

# A letter's name, but not in an id such as D3.6-eps.
_LETTER = re.compile(
    rf"(?:(?<![A-Za-z])(?<![A-Z]\d\.\d-)|(?<=/d))(?:{'|'.join(LETTERS)})(?![A-Za-z])"
)
_INDEX = re.compile(r"(?<!\.\d-)(?<!\.\d\d-)\b([cfsxIVXΣΓμ])(\di?)\b")
_SIGN = re.compile("|".join(map(re.escape, SIGNS)))
_SUM = re.compile(r"\b(?:sum|prod)(?=_)")
_ROOT = re.compile(r"\bsqrt(?:\((\d+|[A-Za-z]+)\)|(?=\())")
_SCRIPT = re.compile(
    r"(?<=[\w)\]}|∑∏])([\^_])(?:(?=[({])|([+-]?(?:\d+(?:\.\d+)?|[A-Za-z]+)|\+|\|\w\|))"
)
# A minus of a formula, but not the hyphen of a word, of an id such as T3.7-I, or of 1e-4. No line
# breaks beside a true minus sign, unless a space follows.
_GREEK = "αβγδεηθλμπσΣ"
_MINUS = re.compile(
    rf"(?:(?<=[)\]}}|])|(?<![\w.-])(\d+|\d*[a-df-z{_GREEK}]\d?|e)|(?<=[\s(=])|^)-"
    rf"(?=[(|]|ln|(?:\d+[a-z{_GREEK}]?|\d*\.\d+|[a-zA-Z{_GREEK}]\d?)(?!\w))"
)
_CITED = re.compile(r"[Cc]hapter (\d+) \[([\w-]+)\]")


@dataclass(frozen=True, repr=False)
class Verdicts:
    """Ledger entries in the order in which they were asked for; `table` names their macro."""

    entries: list[Entry]
    table: str

    def __repr__(self) -> str:
        """Plain text, for a notebook that shows no HTML."""
        return "\n".join(map(ledger.as_block, self.entries))

    def _repr_html_(self) -> str:
        return _macro(self.table, _with_rows(self.entries))


def verdicts(*ids: str) -> Verdicts:
    """Run the quick checks of these statements; show each verdict with its badge and evidence.

    >>> verdicts("N-0.46").entries[0]["verdict"]
    'misprint'
    """
    ledger.select(ids)  # an unknown id is an error before any check runs
    return Verdicts([_quick_entry(id) for id in ids], "verdicts")


def erratum(*ids: str) -> Verdicts:
    """Show what the paper prints and the corrected form, as the quick checks of `ids` give it.

    >>> erratum("N-0.46").entries[0]["corrected"]
    '1 - 2/(1 + e^epsilon), which is 0.4621 at epsilon = 1'
    """
    return Verdicts(verdicts(*ids).entries, "errata")


def anchor(id: str) -> str:
    """A statement's id as it can stand in an address.

    >>> anchor("D-1/k2")
    'd-1-k2'
    """
    return re.sub(r"[^a-z0-9]+", "-", id.lower())


def as_html(entries: Sequence[Entry], chapters: Collection[str] = ()) -> str:
    """The whole ledger with its filters; it links to those of `chapters` that a row belongs to."""
    parts: dict[str, list[tuple[Entry, Row, dict[str, str]]]] = {}
    for item, row in _with_rows(entries):
        part = PARTS["_".join(row.section.split("_")[:2])]
        parts.setdefault(part, []).append((item, row, _links(row, item["verdict"], chapters)))
    verdicts, grades = Counter(x["verdict"] for x in entries), Counter(x["grade"] for x in entries)
    counts = [
        {name: counted[name] for name in names if counted[name]}
        for counted, names in ((verdicts, get_args(Verdict)), (grades, get_args(Grade)))
    ]
    script = files(__name__).joinpath("filter.js").read_text(encoding="utf-8")
    letters = json.dumps({name.lower(): sign.lower() for name, sign in LETTERS.items()})
    return _macro("ledger", parts, *counts, script.replace("LETTERS", letters), chapters=chapters)


def misprints(entries: Sequence[Entry]) -> str:
    """The misprints among the entries: where, what is printed, what is meant."""
    return _macro("misprints", _with_rows(entries))


def summary(groups: Mapping[str, Sequence[str]], entries: Sequence[Entry]) -> str:
    """A line for each group of statements, such as the parts of a theorem, with their verdicts."""
    item_of = {item["id"]: item for item in entries}
    return _macro("summary", {name: [item_of[id] for id in ids] for name, ids in groups.items()})


@cache
def _quick_entry(id: str) -> Entry:
    return ledger.run(id, quick=True)[0]


def _with_rows(entries: Sequence[Entry]) -> list[tuple[Entry, Row]]:
    known = {row.id: row for row in ledger.rows()}
    return [(item, known[item["id"]]) for item in entries]


def _macro(name: str, *values: Any, chapters: Collection[str] = ()) -> str:
    """A table of `tables.html`; statements of the book that a proof cites are links if they can."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def link(cited: re.Match[str]) -> str:
        page = next((c for c in chapters if c.startswith(f"{int(cited[1]):02d}_")), None)
        words = f"{cited[0].split()[0]} {cited[1]}"
        return f'<a href="{page}.html#{cited[2]}">{words}</a>' if page else words

    environment = Environment(
        loader=PackageLoader(__name__, ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters["typeset"] = lambda text: Markup(typeset(text))
    environment.filters["cited"] = lambda text: Markup(_CITED.sub(link, text))
    environment.filters["anchor"] = anchor
    environment.globals["titles"] = TITLES
    return str(getattr(environment.get_template("tables.html").module, name)(*values)).strip()


def _links(row: Row, verdict: Verdict, chapters: Collection[str]) -> dict[str, str]:
    """Addresses of the pages about a row, with their names."""
    links = {}
    if row.chapter in chapters:
        links[f"{row.chapter}.html"] = f"chapter {int(row.chapter.split('_')[0])}"
    if "errata" in chapters and verdict == "misprint":
        links["errata.html#errata-misprints"] = "errata"
    elif "errata" in chapters and verdict not in ("holds", "unchecked"):
        links[f"errata.html#errata-{anchor(row.id)}"] = "errata, with a cell to run"
    return links


def typeset(text: str) -> str:
    """Plain text with its formulas set in HTML; names such as `non_asymptotic` stay as they are.

    >>> typeset("mu_i <= e^(-2 beta^2 k) sqrt(k)")
    'μ<sub>i</sub> ≤ e<sup>−2 β<sup>2</sup> k</sup> √k'
    >>> typeset("(eta - pi)^+ and q^|j|")
    '(η\xa0− π)<sup>+</sup> and q<sup>|j|</sup>'
    >>> typeset("min{p,1-p} in D-1/k2 and T3.7-I")
    'min{p,1−p} in D-1/k2 and T3.7-I'
    >>> typeset("P(y < 1) is in thm:non_asymptotic")
    'P(y &lt; 1) is in thm:non_asymptotic'
    >>> typeset("|I| <= eps in D3.6-eps, V1 in LA.10-V1")
    '|I| ≤ ε in D3.6-eps, V<sub>1</sub> in LA.10-V1'
    """
    text = _SUM.sub(lambda match: "∑" if match[0] == "sum" else "∏", text)
    text = _ROOT.sub(lambda match: f"√{match[1] or ''}", text)
    parts, done = [], 0
    for match in _SCRIPT.finditer(text):
        if match.start() < done:
            continue
        body, end = _body(text, match)
        if body is None:
            continue
        kind = "sup" if match[1] == "^" else "sub"
        raised = re.sub("^-", "−", typeset(body))
        parts += [_plain(text[done : match.start()]), f"<{kind}>{raised}</{kind}>"]
        done = end
    return "".join([*parts, _plain(text[done:])])


def _body(text: str, match: re.Match[str]) -> tuple[str | None, int]:
    """What a mark raises or lowers, without its brackets, and where the text goes on."""
    if match[2] is not None:
        word = match[2].lstrip("+-")
        is_mark = word in LETTERS or not word.isalpha() or len(word) <= 2
        return (match[2] if is_mark else None), match.end()
    depth = 0
    for at in range(match.end(), len(text)):
        depth += (text[at] in "({") - (text[at] in ")}")
        if depth == 0:
            return text[match.end() + 1 : at], at + 1
    return None, match.end()


def _plain(text: str) -> str:
    text = _SIGN.sub(lambda match: SIGNS[match[0]], text)
    text = escape(_LETTER.sub(lambda match: LETTERS[match[0]], text), quote=False)
    text = _MINUS.sub(lambda match: f"{match[1] or ''}−", text.replace(" - ", "\xa0− "))
    return _INDEX.sub(r"\1<sub>\2</sub>", text)
