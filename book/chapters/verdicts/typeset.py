"""The ledger's plain text as HTML: letters for their names, raised and lowered marks.

Statements are written as they can be typed, because the command prints them too. On a page they
deserve better; they are too short, and too mixed with words, to be worth LaTeX.
"""

import re
from html import escape

NAMES = (
    "alpha beta gamma Gamma delta epsilon eps eta theta Theta kappa lambda mu pi sigma Sigma Omega"
)
LETTERS = dict(zip(NAMES.split(), "αβγΓδεεηθΘκλμπσΣΩ", strict=True))
SIGNS = {"<=": "≤", ">=": "≥", "!=": "≠", "+-": "±", "-+": "∓", "O~": "Õ"}

_LETTER = re.compile(rf"(?:(?<![A-Za-z])|(?<=/d))(?:{'|'.join(LETTERS)})(?![A-Za-z])")
_INDEX = re.compile(r"\b([cfsxIVXΣΓμ])(\di?)\b")
_SIGN = re.compile("|".join(map(re.escape, SIGNS)))
_SUM = re.compile(r"\b(?:sum|prod)(?=_)")
_ROOT = re.compile(r"\bsqrt(?:\((\d+|[A-Za-z]+)\)|(?=\())")
_SCRIPT = re.compile(
    r"(?<=[\w)\]}|∑∏])([\^_])(?:(?=[({])|([+-]?(?:\d+(?:\.\d+)?|[A-Za-z]+)|\+|\|\w\|))"
)


def typeset(text: str) -> str:
    """Plain text with its formulas set in HTML; names such as `non_asymptotic` stay as they are.

    >>> typeset("mu_i <= e^(-2 beta^2 k) sqrt(k)")
    'μ<sub>i</sub> ≤ e<sup>−2 β<sup>2</sup> k</sup> √k'
    >>> typeset("(eta - pi)^+ and q^|j|")
    '(η - π)<sup>+</sup> and q<sup>|j|</sup>'
    >>> typeset("P(y < 1) is in thm:non_asymptotic")
    'P(y &lt; 1) is in thm:non_asymptotic'
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
    return _INDEX.sub(r"\1<sub>\2</sub>", text)
