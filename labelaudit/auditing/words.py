"""The sentences that the page, the JSON file and chapter 14 share; their text is in a template.

`paragraphs` and `sentence` hand what was decided to a passage of `sentences.txt.j2`; `WHY` holds
the reason of each decision. What the page alone says is in the template of the page.
"""

import math
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from labelaudit.intervals import Interval, Row

FOLDER = Path(__file__).parent
# Why a setting meets the target, misses it, or neither can be told: the end of a sentence.
WHY = {
    "channel refuted": "the true labels contradict the mechanism's channel",
    "epsilon known": "its epsilon is known",
    "epsilon declared": "its epsilon is declared, not checked",
    "epsilon too large": "its epsilon is {epsilon:g}",
    "epsilon of a person": "its epsilon is {epsilon:g} for a person with {rows} rows",
    "no epsilon": "its epsilon is none",
    "guaranteed": "by its guarantee, if labels are independent given what the attacker knows",
    "proves labels": "it proves {proven:.1%} of the labels",
    "undefined": "there is nothing to measure",
    "eta refuted": "the true labels contradict eta",
    "attack loses": "the attack loses on the true labels, so they contradict eta here",
    "noisier": "the same with more noise is not shown to meet it",
    "rows of a person": "one row may meet it, but not the {rows} rows of a person together",
    "both below": "both intervals are below it",
    "below": "the interval is below it",
    "both above": "both intervals are above it",
    "above": "the interval is above it",
    "both open": "the intervals do not settle it",
    "open": "the interval holds it",
    "unaware": ", for an attacker who does not know that labels move together",
}
# A small additive advantage is no promise about anybody's label.
ADDITIVE_ALONE = (
    "An additive target alone can be met by a release that reveals most labels: where the labels"
    " are easy to guess, proving them adds little. Look at the labels that are proven, too, or set"
    " a multiplicative target."
)
# What to do where labels are released again.
FIX_BAGS = (
    "If you publish again, fix the bags: keep everybody in the same bag, and give new people bags"
    " of their own. In bags drawn again each release adds to what the earlier ones told."
)


def templates(autoescape: bool) -> Any:
    """The templates of sentences and of pages; a page escapes what it is given."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=autoescape,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"fmt": format, "listed": listed, "quoted": repr, "two_digits": two_digits}
    made.filters["interval"] = Interval.of
    made.globals["inf"] = math.inf
    return made


@cache
def _passages() -> Any:
    made = templates(autoescape=False)
    made.filters |= {"explained": explained}
    made.globals |= {"ADDITIVE_ALONE": ADDITIVE_ALONE, "FIX_BAGS": FIX_BAGS}
    return made.get_template("sentences.txt.j2").module


def reason(rule: str, row: Row) -> str:
    """The text of a rule of `WHY` about a setting."""
    return WHY[rule].format(epsilon=row.declared, rows=row.rows, proven=row.revealed)


def paragraphs(name: str, *facts: Any) -> list[str]:
    """A passage of the template, each of its paragraphs in one line.

    >>> paragraphs("warnings", 100, 50, ["Ids repeat."], True, False, None)
    ['A random sample was attacked: 50 of 100 records.', 'Ids repeat.']
    """
    text = getattr(_passages(), name)(*facts)
    lines = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return [line for line in lines if line]


def sentence(name: str, *facts: Any) -> str:
    """A passage of the template in one line.

    >>> sentence("headline", [], [], [], False, ["zip"])
    "No recommendation: column 'zip' gives the label away."
    """
    return " ".join(paragraphs(name, *facts))


def listed(names: Sequence[str], last: str = "and") -> str:
    """Names in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def two_digits(number: float) -> str:
    """A number of at most a thousand without an exponent.

    >>> two_digits(2.718), two_digits(445.9)
    ('2.7', '450')
    """
    return f"{float(f'{number:.2g}'):g}"


def explained(row: Row) -> str:
    """What a setting publishes, and by how much it can change the odds about anybody.

    >>> from labelaudit.auditing.settings import settings_of
    >>> from types import SimpleNamespace
    >>> [setting] = settings_of(["rr"], [8], [1.0])
    >>> explained(SimpleNamespace(setting=setting, epsilon=1.0, guarantee=1.0, rows=1))
    'each label is replaced by its opposite with probability 0.27; odds change at most 2.7 times'
    """
    mechanism = row.setting.mechanism
    classes = getattr(mechanism, "classes", 2)
    what = row.setting.kind.explanation.format(
        k=mechanism.bag_size,
        flip=(classes - 1) / (classes - 1 + math.exp(min(row.epsilon, 700))),
        other="its opposite" if classes == 2 else "another class",
        counted="positive" if classes == 2 else "of each class",
    )
    factor = math.exp(min(row.guarantee, 700))
    return sentence("explained", what, row.guarantee, factor, row.rows)
