"""What makes an audit look better than it is: a copy of the label, repeated persons or rows."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from labelaudit.auditing import words
from labelaudit.auditing.table import Table
from labelaudit.learning.calibration import Curve

# A single column with an area under the curve above this probably holds the label.
LEAKS = 0.99
# Values of a column that are taken one by one; more are taken by their order.
MAX_VALUES = 255


@dataclass(frozen=True)
class Leak:
    """A column that alone separates the labels, or of several classes the one named `value`."""

    column: str
    area: float
    value: str = ""


def leaking_columns(table: Table) -> tuple[Leak, ...]:
    """The columns that alone give the label away; of several classes that separate any of them.

    >>> from labelaudit.auditing import Columns, read
    >>> frame = pd.DataFrame({"age": range(0, 400, 2), "copy": ["a", "b"] * 100})
    >>> leaking_columns(read(frame.assign(ill=[0, 1] * 100), Columns(label="ill")))
    (Leak(column='copy', area=1.0, value=''),)
    """
    of_classes = {"": table.labels == 1}
    if len(table.classes) > 2:
        of_classes = {name: table.labels == code for code, name in enumerate(table.classes)}
    leaks = []
    for column, values in zip(table.columns, table.features.T, strict=True):
        areas = {name: single_column_auc(values, ones) for name, ones in of_classes.items()}
        name = max(areas, key=lambda each: areas[each])
        if areas[name] > LEAKS:
            leaks.append(Leak(column.name, areas[name], name))
    return tuple(leaks)


def warnings_of(table: Table, copies: Sequence[Leak] = ()) -> list[str]:
    """Sentences about repeated persons or rows, and copies of the label.

    >>> from labelaudit.auditing import Columns, read
    >>> frame = pd.DataFrame({"age": [1, 1, 2, 3], "ill": [0, 0, 1, 1]})
    >>> [text.split(" equal")[0] for text in warnings_of(read(frame, Columns(label="ill")))]
    ['1 rows (25.0%)']
    """
    persons = 0 if table.persons is None else int(table.persons.max()) + 1
    occurrences = Counter(table.ids if table.named else ())
    duplicated = 0
    if table.columns and not persons:
        rows = pd.DataFrame(table.features).assign(label=table.labels)
        duplicated = int(rows.duplicated().sum())
    repeated = occurrences.total() - len(occurrences)
    most = max(occurrences.values(), default=0)
    return words.paragraphs("leaks", table, persons, repeated, most, duplicated, copies)


def single_column_auc(values: NDArray[np.floating], ones: NDArray[np.bool_]) -> float:
    """How well one column separates the ones, in either direction; values may be categories.

    A column with few values is scored by the fraction of ones of each value, learned on the other
    half of the rows.

    >>> single_column_auc(np.array([3.0, 3.0, 1.0, 1.0] * 10), np.array([0, 0, 1, 1] * 10) == 1)
    1.0
    """
    distinct_values, codes = np.unique(values, return_inverse=True, equal_nan=True)
    if distinct_values.size > MAX_VALUES:
        area = Curve.of(codes.astype(float), ones).area.value
        return max(area, 1 - area)
    half = np.random.default_rng(0).permutation(ones.size) % 2 == 0
    scores = np.empty(ones.size)
    for learned, scored in ((half, ~half), (~half, half)):
        positive = np.bincount(codes[learned], ones[learned], distinct_values.size)
        number = np.bincount(codes[learned], minlength=distinct_values.size)
        scores[scored] = ((positive + ones.mean()) / (number + 1))[codes[scored]]
    return Curve.of(scores, ones).area.value
