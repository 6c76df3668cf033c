"""How numbers are written: one that is not exactly 0 or 1 is never rounded to it."""

from __future__ import annotations

from typing import Any

# Differences that are errors of floating-point arithmetic, not uncertainty.
NOISE = 1e-9
MAX_DIGITS = 9


def written(value: Any, spec: str) -> str:
    """The value in a format; a fraction near 0 or 1 gets as many digits as it takes to show it.

    >>> written(0.9996, ".2f"), written(0.9996, ".0%"), written(1.0, ".2f")
    ('0.9996', '99.96%', '1.00')
    >>> written(0.0004, ".2f"), written(0.00004, ".1%"), written(1e-17, ".2f"), written(3, ",")
    ('0.0004', '0.004%', '0.00', '3')
    """
    text = format(value, spec)
    if not isinstance(value, float) or spec[-1:] not in ("f", "%"):
        return text
    scale = 100 if spec.endswith("%") else 1
    for digits in range(MAX_DIGITS):
        shown = float(text.rstrip("%").replace(",", "")) / scale
        if shown not in (0, 1) or abs(value - shown) < NOISE:
            return text
        before, _, precision = spec[:-1].partition(".")
        text = format(value, f"{before}.{int(precision or 6) + digits + 1}{spec[-1]}")
    return text


def written_glue(text: str, spec: str) -> str:
    """What a page shows for a number that a notebook has stored as text.

    >>> written_glue("0.9996", ".2f"), written_glue("'ten'", "s"), written_glue("7", "")
    ('0.9996', 'ten', '7')
    """
    from myst_nb.core.variables import format_plain_text

    if spec[-1:] in ("f", "%"):
        return written(float(text), spec)
    return format_plain_text(text, spec)
