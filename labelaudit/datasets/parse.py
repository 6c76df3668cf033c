"""Text to arrays: compiled parsers that check every byte they read.

Each takes whole lines, the last byte a line end, and fills arrays row by row. It returns the number
of good rows and, where it had to stop, why and in which column: see `REASONS`. Every line end
stops every inner loop, so none of them needs to ask whether the text goes on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

GOOD, LABEL, NUMBER, FINITE, FEW, MANY, INDEX, VALUE = range(8)
REASONS = {
    LABEL: "the label is not 0 or 1",
    NUMBER: "not a number",
    FINITE: "NaN or infinite, or beyond the range of float32",
    FEW: "too few columns",
    MANY: "too many columns",
    INDEX: "not an index from 1 to {limit}",
    VALUE: "the value of a feature is not a number other than zero",
}

_LINE_END, _RETURN, _SPACE, _TAB, _COMMA, _COLON, _DOT = 10, 13, 32, 9, 44, 58, 46
_PLUS, _MINUS, _ZERO = 43, 45, 48
# Powers of ten that float64 holds exactly.
_TENS = np.array([10.0**power for power in range(23)])
_LARGEST = float(np.finfo(np.float32).max)
# Below this, a mantissa can take one more digit without leaving 64 bits.
_ROOM = np.uint64(10**18)

# All but the last digit of 2 ** 64 - 1.
_FULL = np.uint64((2**64 - 1) // 10)

# Those of `hashing`, written out: numba's cache looks only at the file a function stands in, and
# would go on using code compiled with the old numbers after a change over there.
GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

compiled: Any = njit(cache=True, nogil=True, error_model="numpy")


@compiled
def _number(text: Any, at: int) -> Any:
    """A decimal number: its value, the place after it, and whether there was one.

    The first nineteen digits count, which is exact for float32 printed with nine or more.
    """
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += 1
    mantissa, power, digits = np.uint64(0), 0, 0
    while _ZERO <= text[at] <= _ZERO + 9:
        if mantissa < _ROOM:
            mantissa = mantissa * np.uint64(10) + np.uint64(text[at] - _ZERO)
        else:
            power += 1
        digits += 1
        at += 1
    if text[at] == _DOT:
        at += 1
        while _ZERO <= text[at] <= _ZERO + 9:
            if mantissa < _ROOM:
                mantissa = mantissa * np.uint64(10) + np.uint64(text[at] - _ZERO)
                power -= 1
            digits += 1
            at += 1
    if digits == 0:
        return 0.0, at, False
    if text[at] == 101 or text[at] == 69:
        at += 1
        falling = text[at] == _MINUS
        if falling or text[at] == _PLUS:
            at += 1
        if not _ZERO <= text[at] <= _ZERO + 9:
            return 0.0, at, False
        exponent = 0
        while _ZERO <= text[at] <= _ZERO + 9:
            exponent = min(exponent * 10 + text[at] - _ZERO, 99999)
            at += 1
        power += -exponent if falling else exponent
    value = float(mantissa)
    if 0 <= power <= 22:
        value *= _TENS[power]
    elif -22 <= power < 0:
        value /= _TENS[-power]
    elif mantissa > 0:
        value *= 10.0 ** max(power, -330)
    return (-value if negative else value), at, True


@compiled
def _is_line_end(text: Any, at: int) -> bool:
    return text[at] == _LINE_END or (text[at] == _RETURN and text[at + 1] == _LINE_END)


@compiled
def _unnumbered(text: Any, at: int) -> int:
    """Why there is no number here: nothing at all, "nan" or "inf", or something else."""
    if _is_line_end(text, at):
        return FEW
    if text[at] == _MINUS or text[at] == _PLUS:
        at += 1
    first = text[at] | 32
    return FINITE if first == 110 or first == 105 else NUMBER


@compiled
def parse_csv(text: Any, stop: int, labels: Any, features: Any) -> Any:
    """Comma-separated rows: a label, then as many numbers as `features` has columns."""
    columns = features.shape[1]
    at = row = 0
    while at < stop:
        value, at, found = _number(text, at)
        if not found or (value != 0 and value != 1):
            return row, LABEL, 1
        labels[row] = np.uint8(value)
        for column in range(columns):
            if text[at] != _COMMA:
                return row, FEW if _is_line_end(text, at) else NUMBER, column + 1
            at += 1
            value, after, found = _number(text, at)
            if not found:
                return row, _unnumbered(text, at), column + 2
            if not abs(value) <= _LARGEST:
                return row, FINITE, column + 2
            features[row, column] = value
            at = after
        if text[at] == _RETURN:
            at += 1
        if text[at] != _LINE_END:
            return row, MANY if text[at] == _COMMA else NUMBER, columns + 1
        at += 1
        row += 1
    return row, GOOD, 0


@compiled
def _bucket(field: int, value: Any, buckets: int) -> Any:
    """`hashing.bucket` for one value."""
    word = value + np.uint64(field + 1) * np.uint64(GOLDEN)
    word ^= word >> np.uint64(30)
    word *= np.uint64(FIRST)
    word ^= word >> np.uint64(27)
    word *= np.uint64(SECOND)
    word ^= word >> np.uint64(31)
    return np.int32(((word >> np.uint64(32)) * np.uint64(buckets)) >> np.uint64(32))


@compiled
def _whole(text: Any, at: int) -> Any:
    """An unsigned whole number of at most 64 bits: its value, the place after it, and if found."""
    value, before, start = np.uint64(0), np.uint64(0), at
    while _ZERO <= text[at] <= _ZERO + 9:
        before = value
        value = value * np.uint64(10) + np.uint64(text[at] - _ZERO)
        at += 1
    digits = at - start
    # Nineteen digits always fit; the twentieth does if it did not make the number wrap around.
    fits = digits < 20 or (digits == 20 and (before < _FULL or (before == _FULL and value >= 6)))
    return value, at, digits > 0 and fits


@compiled
def _is_blank(byte: Any) -> bool:
    return byte in (_SPACE, _LINE_END, _TAB, _RETURN)


@compiled
def _skip_blanks(text: Any, at: int) -> int:
    while text[at] == _SPACE or text[at] == _TAB:
        at += 1
    return at


@compiled
def parse_libsvm(
    text: Any, stop: int, with_field: bool, limit: Any, buckets: int, labels: Any, features: Any
) -> Any:
    """LIBSVM rows, `label index:value ...`, or FFM rows, `label field:index:value ...`.

    Exactly as many features as `features` has columns; each index is replaced by its bucket.
    Values only say that a feature is present (KDD12 is one-hot), so any but zero will do.
    """
    columns = features.shape[1]
    at = row = 0
    while at < stop:
        label = text[at] - _ZERO
        blank = text[at + 1] if at + 1 < stop else _LINE_END
        if (label != 0 and label != 1) or (blank != _SPACE and blank != _TAB):
            return row, LABEL, 1
        labels[row] = label
        at += 1
        for column in range(columns):
            at = _skip_blanks(text, at)
            if _is_line_end(text, at):
                return row, FEW, column + 1
            if with_field:
                _, at, found = _whole(text, at)
                if not found or text[at] != _COLON:
                    return row, INDEX, column + 2
                at += 1
            index, at, found = _whole(text, at)
            if not found or text[at] != _COLON or index < 1 or index > limit:
                return row, INDEX, column + 2
            at += 1
            # Nearly every value is a lone 1, and then the general reader would take half the time.
            if text[at] == _ZERO + 1 and _is_blank(text[at + 1]):
                at += 1
            else:
                value, at, found = _number(text, at)
                if not found or value == 0 or not abs(value) <= _LARGEST or not _is_blank(text[at]):
                    return row, VALUE, column + 2
            features[row, column] = _bucket(0, index, buckets)
        at = _skip_blanks(text, at)
        if text[at] == _RETURN:
            at += 1
        if text[at] != _LINE_END:
            return row, MANY, columns + 2
        at += 1
        row += 1
    return row, GOOD, 0


@compiled
def parse_track2(text: Any, stop: int, buckets: int, labels: Any, features: Any) -> Any:
    """The raw rows of track 2: clicks, impressions, then tab-separated whole numbers to hash."""
    columns = features.shape[1]
    at = row = 0
    while at < stop:
        clicks, at, found = _whole(text, at)
        if not found:
            return row, NUMBER, 1
        labels[row] = 1 if clicks > 0 else 0
        for column in range(-1, columns):
            if text[at] != _TAB:
                return row, FEW if _is_line_end(text, at) else NUMBER, column + 2
            value, at, found = _whole(text, at + 1)
            if not found:
                return row, NUMBER, column + 3
            if column >= 0:
                features[row, column] = _bucket(column, value, buckets)
        if text[at] == _RETURN:
            at += 1
        if text[at] != _LINE_END:
            return row, MANY if text[at] == _TAB else NUMBER, columns + 2
        at += 1
        row += 1
    return row, GOOD, 0
