"""A compiled parser of LIBSVM and FFM text, for files of a hundred million lines."""

from typing import Any

from numba import njit

LINE_END, RETURN, SPACE, COLON, POINT, ZERO, NINE = b"\n\r :.09"
# A number with at most this many characters fits 64 bits as an index and float32 as a value.
MAX_CHARACTERS = 18


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def parse(text: Any, with_field: bool, limit: int, labels: Any, indices: Any) -> int:
    """Fill `labels` and `indices` from whole lines; how many are plain before one that is not.

    Plain is: a label of 0 or 1; before each feature one space; indices from 1 to `limit`; values
    without sign or exponent, and not 0. The text ends with a line end, which stops every loop.
    """
    at = 0
    for row in range(len(labels)):
        if text[at] != ZERO and text[at] != ZERO + 1:
            return row
        labels[row] = text[at] - ZERO
        at += 1
        for column in range(indices.shape[1]):
            if text[at] != SPACE:
                return row
            index = 0
            for _ in range(2 if with_field else 1):
                at += 1
                start, index = at, 0
                while ZERO <= text[at] <= NINE:
                    index = index * 10 + text[at] - ZERO
                    at += 1
                if text[at] != COLON or not 1 <= at - start <= MAX_CHARACTERS:
                    return row
            if not 1 <= index <= limit:
                return row
            indices[row, column] = index
            at += 1
            start, points, not_zero = at, 0, False
            while ZERO <= text[at] <= NINE or text[at] == POINT:
                points += text[at] == POINT
                not_zero |= text[at] > ZERO
                at += 1
            if not not_zero or points > 1 or at - start > MAX_CHARACTERS:
                return row
        if text[at] == SPACE:
            at += 1
        if text[at] == RETURN:
            at += 1
        if text[at] != LINE_END:
            return row
        at += 1
    return len(labels)
