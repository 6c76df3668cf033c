"""A chapter's text for a notebook opened outside the book, where nothing renders directives."""

from __future__ import annotations

import re

FENCE = re.compile(
    r"^(?P<ticks>`{3,}|:{3,})\{(?P<kind>[\w:-]+)\}[ ]?(?P<title>[^\n]*)\n"
    r"(?P<options>(?::[\w-]+:[^\n]*\n)*)(?P<body>.*?)^(?P=ticks)\s*$",
    re.MULTILINE | re.DOTALL,
)
QUOTED = ("admonition", "note", "tip", "warning", "important")


def plain(source: str) -> str:
    """Directives and roles of MyST as ordinary Markdown.

    >>> print(plain("```{exercise} Two people\\n:label: ex-two\\nCompute.\\n```"))
    **Exercise: Two people.** Compute.
    >>> plain("See {doc}`02_additive_advantage` and {prf:ref}`thm-rr`.")
    'See *02_additive_advantage* and *thm-rr*.'
    >>> plain("a share of {glue:text}`scatter-share:.1%` is revealed")
    'a share of `scatter-share` is revealed'
    """
    text = FENCE.sub(_directive, source)
    text = re.sub(r"^\([\w-]+\)=\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"\{glue:text\}`([\w-]+)(?::[^`]*)?`", r"`\1`", text)
    text = re.sub(r"\{cite(?::\w+)?\}`([^`]+)`", r"[\1]", text)
    text = re.sub(r"\{download\}`([^<`]+?)\s*<[^>]*>`", r"\1", text)
    return re.sub(r"\{[\w:]+\}`(?:[^<`]*<)?([^>`]+)>?`", r"*\1*", text)


def _directive(found: re.Match[str]) -> str:
    kind, title, body = found["kind"].removeprefix("prf:"), found["title"].strip(), found["body"]
    body = plain(body).strip()
    if kind in QUOTED:
        lines = [f"**{title or kind.capitalize()}**", "", *body.splitlines()]
        return "\n".join(f"> {line}".rstrip() for line in lines)
    if kind == "math":
        return f"$$\n{body}\n$$"
    heading = f"{kind.capitalize()}: {title}" if title else kind.capitalize()
    return f"**{heading}.** {body}"
