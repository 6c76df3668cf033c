"""Numbers as pages show them: one that is not 0 or 1 is never rounded to it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

# Differences that are errors of floating-point arithmetic, not uncertainty.
NOISE = 1e-9


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
    for digits in range(max(6, len(str(int(abs(value)))) + 2), 17):
        near = float(f"{value:.{digits}g}")
        if near not in (1, -1) or abs(value - near) < NOISE:
            return repr(near)
    return repr(value)


def shorten(formatter: Any) -> None:
    """Let an IPython formatter write floats, plain or of numpy, as `short` does.

    >>> from IPython.core.formatters import PlainTextFormatter
    >>> formatter = PlainTextFormatter()
    >>> shorten(formatter)
    >>> formatter((0.1 + 0.2, {"largest": np.float64(0.1) + 0.2}, [float("inf"), 7]))
    "(0.3, {'largest': 0.3}, [inf, 7])"
    """

    def write(value: float, printer: Any, cycle: bool) -> None:
        printer.text(short(value))

    formatter.for_type(float, write)
    formatter.for_type(np.float64, write)


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
        at: _text(value, digits) for at, value in enumerate(values) if isinstance(value, float)
    }
    decimals = [text.partition(".")[2] for text in texts.values() if "." in text]
    # The only number of a column may belong with those beside it: it keeps its zeros.
    kept = digits if len(decimals) < 2 else max(len(part.rstrip("0")) for part in decimals)
    dropped = digits - kept if kept else digits + 1
    for at, text in texts.items():
        values[at] = text[: len(text) - dropped] if "." in text else text
    return values


def _text(value: float, digits: int) -> str:
    """A number with `digits` digits; on which side of 0, 1 or -1 it lies if it is next to it."""
    if value != value:
        return ""
    text = f"{value:.{digits}f}"
    near = float(text)
    if near not in (0, 1, -1) or abs(value - near) < NOISE:
        return text.removeprefix("-") if near == 0 else text
    unit = 10.0**-digits
    return f"<{near + unit:.{digits}f}" if value > near else f">{near - unit:.{digits}f}"
