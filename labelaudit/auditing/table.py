"""A user's own table: csv or parquet in; labels, features, bags or ready-made priors out.

`notes` records every decision about the table: which columns were left out and why, how many
values were missing, how rare categories were pooled.
"""

import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelaudit.auditing.frame import check_columns, quoted, read_frame
from labelaudit.checks import Floats, Ints
from labelaudit.files import file_digest

# The kinds of numpy dtype that hold measurements: numbers and dates.
MEASURED = "uifM"
# Features are held in single precision.
LARGEST = float(np.finfo(np.float32).max)
# The largest number of levels of scikit-learn's gradient boosting, less one for the pooled rest.
MOST_LEVELS = 254
# A text column with more distinct values than this fraction of the rows names rows, not kinds.
NAMES_ROWS = 0.5
POSITIVE = {"1", "1.0", "true", "t", "yes", "y"}
NEGATIVE = {"0", "0.0", "false", "f", "no", "n"}


@dataclass(frozen=True)
class Column:
    """A feature as it is used: numbers, or codes of categories with NaN for missing."""

    name: str
    categorical: bool
    levels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table with a sensitive label. Missing features are NaN; categories are codes from 0."""

    name: str
    fingerprint: str  # the checksum of the file, or of the data frame's values
    label: str
    positive: str  # the value that counts as 1
    # What is about persons stays out of a repr, which may end up in a log.
    labels: NDArray[np.uint8] = field(repr=False)
    features: NDArray[np.float32] = field(repr=False)
    columns: tuple[Column, ...]
    prior: Floats | None = field(repr=False)
    bags: Ints | None = field(repr=False)  # the bag of each row, numbered from 0
    bag_names: tuple[str, ...] = field(repr=False)
    ids: tuple[str, ...] = field(repr=False)
    notes: tuple[str, ...]
    named: bool = False  # whether a column names the rows
    persons: Ints | None = field(default=None, repr=False)  # whose row it is, numbered from 0
    groups: Ints | None = field(default=None, repr=False)
    group_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def categorical(self) -> NDArray[np.bool_]:
        """Which features are codes of categories."""
        return np.array([column.categorical for column in self.columns], dtype=bool)

    @property
    def rows_of_a_person(self) -> int:
        """The largest number of rows of one person; 1 if no column names the persons."""
        return 1 if self.persons is None else int(np.bincount(self.persons).max())

    @property
    def bag_sizes(self) -> Ints | None:
        """How many rows each bag has; bags may be of unequal size."""
        return None if self.bags is None else np.bincount(self.bags)


def read_table(
    source: Any,
    *,
    label: str,
    features: Sequence[str] | None = None,
    prior: str | None = None,
    model: Any = None,
    bag: str | None = None,
    hide_bag: bool = False,
    person: str | None = None,
    by: str | None = None,
    identifier: str | None = None,
    positive: str | float | bool | None = None,
    leave_out: Sequence[str] = (),
) -> Table:
    """Read a csv or parquet file or a data frame for an audit, or say in one line why not.

    Without `features`, every other usable column is used, the bag column too unless `hide_bag`:
    an attacker must know the bags to use the release. A column in `features` must be usable. None
    in `leave_out` is used, such as one that was made from the label. With `prior`, a column of
    P(y = 1 | x), or a fitted scikit-learn classifier as `model`, no features are kept. `person`
    says whose row it is, `by` which group it belongs to. `positive` says which of two labels counts
    as 1, unless they are 1, true or yes against 0, false or no.

    >>> import pandas
    >>> frame = pandas.DataFrame({"age": [30, 41, 52], "bought": ["yes", "no", "no"]})
    >>> table = read_table(frame, label="bought", features=["age"])
    >>> table.labels.tolist(), table.features.tolist()
    ([1, 0, 0], [[30.0], [41.0], [52.0]])
    """
    if label is None or label == "":
        raise ValueError(f"label must name the column with the sensitive label, not {label!r}")
    if isinstance(features, str):
        raise TypeError(f"features must be a list of columns, as in [{features!r}], not a text")
    if isinstance(leave_out, str):
        raise TypeError(f"leave_out must be a list of columns, as in [{leave_out!r}], not a text")
    ready_made = prior is not None or model is not None
    if features is not None and not len(features) and not ready_made:
        raise ValueError("features is empty: name a column, or leave it out to use all, or a prior")
    if prior is not None and model is not None:
        raise ValueError("a prior and a model are two ways to say the same: give one of them")
    frame, name, fingerprint = _frame_of(source)
    special = {"label": label, "prior": prior, "bag": bag, "person": person, "id": identifier}
    asked = [*special.values(), by, *(features or ()), *leave_out]
    asked = [column for column in asked if column is not None]
    for column in asked:
        if column not in frame.columns:
            raise ValueError(f"{name} has no column {column!r}; it has {quoted(frame.columns)}")
    if asked.count(label) > 1:
        raise ValueError(f"the label {label!r} cannot be a feature, a prior or a bag as well")
    if bag is not None and bag == prior:
        raise ValueError(f"the bag {bag!r} cannot be the prior as well")
    notes: list[str] = []
    needed = [column for column in dict.fromkeys((label, bag, person, by)) if column is not None]
    incomplete = frame[needed].isna().any(axis=1)
    if incomplete.any():
        notes.append(f"{int(incomplete.sum()):,} rows without {' or '.join(needed)} were left out")
        frame = frame[~incomplete]
    if frame.empty:
        raise ValueError(f"{name} has no row with a label")
    labels, positive_label = _labels(frame[label], positive)
    kept_out = {*special.values()} - (set() if hide_bag or bag in (person, identifier) else {bag})
    others = [column for column in frame.columns if column not in {*kept_out, *leave_out}]
    values: NDArray[np.float32] = np.empty((len(frame), 0), np.float32)
    columns: list[Column] = []
    priors = None if prior is None else _prior(frame[prior])
    if model is not None:
        priors = _predicted(model, frame, others if features is None else features, positive_label)
    elif prior is None:
        chosen = (
            others if features is None else [each for each in features if each not in leave_out]
        )
        values, columns = _features(frame, chosen, features is not None, notes)
    rows = frame.index if identifier is None else frame[identifier]
    bags, bag_names = _codes(frame, bag)
    groups, group_names = _codes(frame, by)
    return Table(
        name=name,
        fingerprint=fingerprint,
        label=label,
        positive=positive_label,
        labels=labels,
        features=values,
        columns=tuple(columns),
        prior=priors,
        bags=bags,
        bag_names=bag_names,
        ids=tuple(str(row) for row in rows),
        notes=tuple(notes),
        named=identifier is not None,
        persons=_codes(frame, person)[0],
        groups=groups,
        group_names=group_names,
    )


def _frame_of(source: Any) -> tuple[Any, str, str]:
    """A data frame, its name and its checksum, from a path or a data frame."""
    if isinstance(source, str | Path):
        path = Path(source)
        return read_frame(path), path.name, file_digest(path)
    import pandas

    if not isinstance(source, pandas.DataFrame):
        raise TypeError(f"a table is a path or a pandas DataFrame, not {type(source).__name__}")
    frame = source.set_axis([str(name) for name in source.columns], axis=1)
    check_columns("the data frame", list(frame.columns))
    if frame.empty:
        raise ValueError("the data frame has no rows")
    frame.index = pandas.RangeIndex(1, len(frame) + 1)
    hashes = pandas.util.hash_pandas_object(frame.astype(str), index=False).to_numpy()
    return frame, "a data frame", hashlib.sha256(hashes.tobytes()).hexdigest()


def _predicted(model: Any, frame: Any, others: Sequence[str], positive: str) -> Floats:
    """The prior of a fitted classifier, by the columns that it names or by all others."""
    names = [str(name) for name in getattr(model, "feature_names_in_", others)]
    if not hasattr(model, "predict_proba"):
        raise TypeError(f"a model must have predict_proba, and {type(model).__name__} has none")
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise ValueError(f"the model was fitted on columns that are not there: {quoted(missing)}")
    classes = [str(value).removesuffix(".0").lower() for value in model.classes_]
    wanted = "1" if positive.lower() not in classes and "1" in classes else positive.lower()
    if wanted not in classes or len(classes) != 2:
        raise ValueError(f"the model tells {quoted(classes)} apart, not {positive!r} and another")
    rows = frame[names] if hasattr(model, "feature_names_in_") else frame[names].to_numpy()
    return np.asarray(model.predict_proba(rows), dtype=np.float64)[:, classes.index(wanted)]


def _whole(values: Any) -> Any:
    """Whole numbers again, where pandas made them floats because some were missing."""
    if values.dtype.kind == "f" and (values % 1 == 0).all() and (values.abs() < 2**53).all():
        return values.astype(np.int64)
    return values


def _labels(values: Any, positive: str | float | bool | None) -> tuple[NDArray[np.uint8], str]:
    """The labels as 0 and 1, and the value that counts as 1."""
    words = _whole(values).astype(str).str.strip()
    distinct = sorted(words.unique())
    if len(distinct) != 2:
        shown = quoted(distinct)
        raise ValueError(
            f"the label {values.name!r} must have two values, not {len(distinct)}: {shown}"
        )
    if positive is not None:
        word = str(positive).strip()
        word = word if word in distinct else word.removesuffix(".0")
        if word not in distinct:
            raise ValueError(f"positive must be one of {quoted(distinct)}, not {positive!r}")
        return (words == word).to_numpy(np.uint8), word
    low, high = sorted(distinct, key=lambda word: word.lower() in POSITIVE)
    if low.lower() not in NEGATIVE or high.lower() not in POSITIVE:
        raise ValueError(
            f"the label {values.name!r} has values {quoted(distinct)}; say which of them is"
            f" positive, as in positive={distinct[1]!r} (--positive {shlex.quote(distinct[1])})"
        )
    return (words == high).to_numpy(np.uint8), high


def _prior(values: Any) -> Floats:
    if values.isna().any():
        row = values.index[values.isna()][0]
        raise ValueError(f"the prior {values.name!r} is missing in row {row}")
    if values.dtype.kind not in "uif":
        raise ValueError(f"the prior {values.name!r} must hold numbers, not {values.dtype}")
    outside = values.index[~values.between(0, 1)]
    if len(outside):
        row = outside[0]
        raise ValueError(
            f"the prior {values.name!r} must lie in [0, 1], not {values[row]} as in row {row}"
        )
    return values.to_numpy(np.float64)


def _codes(frame: Any, column: str | None) -> tuple[Ints | None, tuple[str, ...]]:
    import pandas

    if column is None:
        return None, ()
    codes, names = pandas.factorize(_whole(frame[column]), sort=True)
    return codes.astype(np.int64), tuple(str(name) for name in names)


def _features(
    frame: Any, chosen: Sequence[str], named: bool, notes: list[str]
) -> tuple[NDArray[np.float32], list[Column]]:
    values, columns = [], []
    for name in chosen:
        if reason := _unusable(frame[name]):
            if named:
                raise ValueError(f"the feature {name!r} cannot be used: {reason}")
            notes.append(f"{name} was left out: {reason}")
            continue
        numbers, column = _feature(frame[name], notes)
        values.append(numbers)
        columns.append(column)
    if not columns:
        raise ValueError(
            "no usable feature is left: " + ("; ".join(notes) or "there is no other column")
        )
    return np.column_stack(values), columns


def _unusable(values: Any) -> str | None:
    """Why a column cannot be a feature; None if it can."""
    if values.isna().all():
        return "every value is missing"
    try:
        distinct = values.nunique()
    except TypeError:
        return "its values are lists or records"
    if distinct == 1:
        return "it is constant" if not values.isna().any() else None
    if values.dtype.kind in MEASURED:
        whole = values.dtype.kind in "ui" and distinct == len(values)
        without_gap = whole and int(values.max()) - int(values.min()) == len(values) - 1
        return "it numbers the rows" if without_gap else None
    if distinct > max(NAMES_ROWS * len(values), MOST_LEVELS):
        return f"its {distinct:,} distinct texts name rows rather than kinds"
    return None


def _feature(values: Any, notes: list[str]) -> tuple[NDArray[np.float32], Column]:
    name, missing = str(values.name), int(values.isna().sum())
    if values.dtype.kind in MEASURED:
        if values.dtype.kind == "M":
            notes.append(f"{name} is a date; its number of days is used")
            values = (values - values.min()).dt.total_seconds() / 86_400
        numbers = values.to_numpy(np.float64, na_value=np.nan)
        infinite = np.isinf(numbers)
        if infinite.any():
            notes.append(f"{name}: {int(infinite.sum()):,} infinite values are taken as missing")
        beyond = ~infinite & (np.abs(numbers) > LARGEST)
        if beyond.any():
            notes.append(
                f"{name}: {int(beyond.sum()):,} values beyond {LARGEST:.1e} are taken as missing"
            )
        numbers = np.where(infinite | beyond, np.nan, numbers)
        if missing:
            notes.append(f"{name}: {missing:,} values are missing and stay so, as NaN")
        return numbers.astype(np.float32), Column(name, categorical=False)
    counts = values.astype(str)[values.notna()].value_counts()
    levels = counts.sort_index().sort_values(ascending=False, kind="stable").index
    if len(levels) > MOST_LEVELS:
        rest = int(counts[levels[MOST_LEVELS:]].sum())
        notes.append(
            f"{name}: of {len(levels):,} categories the {MOST_LEVELS} most frequent are kept;"
            f" the others, in {rest:,} rows, count as one"
        )
    if missing:
        notes.append(f"{name}: {missing:,} missing values stay so, as NaN, and join no category")
    kept = {level: float(code) for code, level in enumerate(levels[:MOST_LEVELS])}
    pooled = float(len(kept))
    codes = values.astype(str).map(kept).fillna(pooled).to_numpy(np.float64).copy()
    codes[values.isna().to_numpy()] = np.nan
    shown = (*levels[:MOST_LEVELS], *(("(other)",) if len(levels) > MOST_LEVELS else ()))
    return codes.astype(np.float32), Column(name, categorical=True, levels=shown)
