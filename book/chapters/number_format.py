"""How numbers are written: one that is not exactly 0 or 1 is never rounded to it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

# Differences that are errors of floating-point arithmetic, not uncertainty.
NOISE = 1e-9
MAX_MORE_DIGITS = 9


def is_rounded_to_certainty(value: float, text: str) -> bool:
    """Whether a text shows 0, 1 or -1 for another value."""
    shown = float(text.rstrip("%").replace(",", "")) / (100 if text.endswith("%") else 1)
    return shown in (0, 1, -1) and abs(value - shown) >= NOISE


def format_number(value: Any, spec: str) -> str:
    """The value in a format; a fraction near 0 or 1 gets as many digits as it takes to show it.

    >>> [format_number(0.9996, spec) for spec in (".2f", ".0%", ".3g")]
    ['0.9996', '99.96%', '0.9996']
    >>> [format_number(value, ".2f") for value in (1.0, 0.0004, 1e-17)], format_number(3, ",")
    (['1.00', '0.0004', '0.00'], '3')
    """
    text = format(value, spec)
    if not isinstance(value, float) or not spec.endswith(("f", "g", "%")):
        return text
    before, _, precision = spec[:-1].partition(".")
    for more in range(1, MAX_MORE_DIGITS + 1):
        if not is_rounded_to_certainty(value, text):
            break
        text = format(value, f"{before}.{int(precision or 6) + more}{spec[-1]}")
    return text


def format_glue(text: str, spec: str) -> str:
    """What a page shows for a number that a notebook has stored as text.

    >>> format_glue("0.9996", ".2f"), format_glue("'ten'", "s"), format_glue("7", "")
    ('0.9996', 'ten', '7')
    """
    from myst_nb.core.variables import format_plain_text

    if spec.endswith(("f", "g", "%")):
        return format_number(float(text), spec)
    return format_plain_text(text, spec)


def short(value: float) -> str:
    """A float as the output of a cell shows it: six digits, or two where it is rounding error.

    >>> short(0.22999999999999998), short(1.0), short(2.7755575615628914e-17)
    ('0.23', '1.0', '2.8e-17')
    >>> short(4508684.868689919), short(0.99999993), short(float("inf"))
    ('4508684.87', '0.9999999', 'inf')
    """
    value = float(value)
    if not math.isfinite(value):
        return repr(value)
    if abs(value) < NOISE:
        return repr(float(f"{value:.1e}"))
    digits = max(6, len(str(int(abs(value)))) + 2)
    return repr(float(format_number(value, f".{digits}g")))


def shorten(formatter: Any) -> None:
    """Let an IPython formatter write floats, plain or of numpy, as `short` does.

    >>> from IPython.core.formatters import PlainTextFormatter
    >>> formatter = PlainTextFormatter()
    >>> shorten(formatter)
    >>> formatter((0.1 + 0.2, {"largest": np.float64(0.1) + 0.2}, [float("inf"), 7]))
    "(0.3, {'largest': 0.3}, [inf, 7])"
    """
    for kind in (float, np.float64):
        formatter.for_type(kind, lambda value, printer, cycle: printer.text(short(value)))


def format_probability(probability: float) -> str:
    """Four significant digits of a probability or of 1 minus it, whichever is smaller.

    >>> [format_probability(value) for value in (0.123456, 0.9999987654, 1e-7, 1)]
    ['0.1235', '0.999998765', '1e-07', '1']
    """
    nearest = min(probability, 1 - probability)
    if probability < 0.5 or nearest == 0:
        return f"{probability:.4g}"
    return f"{probability:.{3 - math.floor(math.log10(nearest))}f}"


def rounded(frame: pd.DataFrame, digits: int = 3) -> pd.DataFrame:
    """The frame as a page shows it: numbers as aligned text, nothing where a number is missing.

    A number that would round to 0 or 1 without being it shows on which side it lies. Rows that
    are only counted have no name.

    >>> import pandas as pd
    >>> rounded(pd.DataFrame({"k": [2, 4], "accuracy": [0.75, 0.9996]}))
      k accuracy
      2    0.750
      4   >0.999
    >>> rounded(pd.DataFrame({"bias": [1e-17, -3e-5, 0.25]}, index=["a", "b", "c"]))
          bias
    a    0.000
    b  >-0.001
    c    0.250
    """
    shown = frame.astype(object)
    for index in range(frame.shape[1]):
        shown.isetitem(index, _aligned(list(frame.iloc[:, index]), digits))
    if frame.index.equals(frame.reset_index(drop=True).index) and frame.index.name is None:
        shown.index = [""] * len(frame)
    return shown


def _aligned(values: list[Any], digits: int) -> list[Any]:
    """The texts of a column; zeros at the end that all its numbers share are left out."""
    texts = {
        at: _beside(value, digits) for at, value in enumerate(values) if isinstance(value, float)
    }
    decimals = [text.partition(".")[2] for text in texts.values() if "." in text]
    # The only number of a column may belong with those beside it: it keeps its zeros.
    kept = digits if len(decimals) < 2 else max(len(part.rstrip("0")) for part in decimals)
    dropped = digits - kept if kept else digits + 1
    for at, text in texts.items():
        values[at] = text[: len(text) - dropped] if "." in text else text
    return values


def _beside(value: float, digits: int) -> str:
    """A number with `digits` digits; on which side of 0, 1 or -1 it lies if it is next to it."""
    if math.isnan(value):
        return ""
    text = f"{value:.{digits}f}"
    near = float(text)
    if is_rounded_to_certainty(value, text):
        side, unit = ("<", 10.0**-digits) if value > near else (">", -(10.0**-digits))
        return f"{side}{near + unit:.{digits}f}"
    return text.removeprefix("-") if near == 0 else text
