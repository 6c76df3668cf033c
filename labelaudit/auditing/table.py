"""A user's own table: csv or parquet in; labels, features, bags or ready-made priors out.

`notes` records every decision about the table: which columns were left out and why, how many
values were missing, how rare categories were pooled.
"""

import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from labelaudit.auditing.frame import check_columns, quoted, read_frame
from labelaudit.checks import Floats, Ints
from labelaudit.files import file_digest

Singles = NDArray[np.float32]
# The kinds of numpy dtype that hold measurements: numbers and dates.
MEASURED = "uifM"
# Features are held in single precision.
MAX_SINGLE = float(np.finfo(np.float32).max)
# The largest number of levels of scikit-learn's gradient boosting, less one for the pooled rest.
MAX_LEVELS = 254
# More distinct labels are numbers or names rather than classes.
MAX_CLASSES = 20
# A text column with more distinct values than this fraction of the rows names rows, not kinds.
NAMES_ROWS = 0.5
POSITIVE = {"1", "1.0", "true", "t", "yes", "y"}
NEGATIVE = {"0", "0.0", "false", "f", "no", "n"}


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What the columns of a table are; all but the label may be left out.

    Without `features`, every other usable column is one, the bag column too unless `hide_bag`: an
    attacker must know the bags to use the release. A column in `features` must be usable. None in
    `leave_out` is used, such as one that was made from the label. With `prior`, a column of
    P(y = 1 | x), no features are kept. `person` says whose row it is, `by` which group it belongs
    to. `positive` says which of two labels counts as 1, unless they are 1, true or yes against 0,
    false or no.
    """

    label: str
    positive: str | float | bool | None = None
    features: Sequence[str] | None = None
    leave_out: Sequence[str] = ()
    prior: str | None = None
    bag: str | None = None
    hide_bag: bool = False
    person: str | None = None
    by: str | None = None
    identifier: str | None = None

    def __post_init__(self) -> None:
        """Reject what needs no table to be seen."""
        if self.label is None or self.label == "":
            raise ValueError(
                f"label must name the column with the sensitive label, not {self.label!r}"
            )
        for name, value in (("features", self.features), ("leave_out", self.leave_out)):
            if isinstance(value, str):
                raise TypeError(f"{name} must be a list of columns, as in [{value!r}], not a text")
        if self.features is not None and not len(self.features) and self.prior is None:
            raise ValueError(
                "features is empty: name a column, or leave it out to use all, or a prior"
            )
        if self.named.count(self.label) > 1:
            raise ValueError(
                f"the label {self.label!r} cannot be a feature, a prior or a bag as well"
            )
        if self.bag is not None and self.bag == self.prior:
            raise ValueError(f"the bag {self.bag!r} cannot be the prior as well")

    @property
    def named(self) -> list[str]:
        """Every column that is named, as often as it is."""
        roles = (self.label, self.prior, self.bag, self.person, self.identifier, self.by)
        names = (*roles, *(self.features or ()), *self.leave_out)
        return [name for name in names if name is not None]

    def possible_features(self, names: Sequence[str]) -> list[str]:
        """Those of the table's columns that may be features."""
        hidden = {self.label, self.prior, self.person, self.identifier, *self.leave_out}
        hidden |= {self.bag} if self.hide_bag else set()
        return [name for name in names if name not in hidden]


@dataclass(frozen=True)
class Feature:
    """A feature as it is used: numbers, or codes of categories with NaN for missing."""

    name: str
    levels: tuple[str, ...] = ()

    @property
    def categorical(self) -> bool:
        """Whether its numbers are codes of categories."""
        return bool(self.levels)


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table with a sensitive label. Missing features are NaN; categories are codes from 0.

    `labels` are positions among the `classes`, of which two have the positive one last. `bags`,
    `persons` and `groups` number those of each row from 0.
    """

    name: str
    fingerprint: str  # the checksum of the file, or of the data frame's values
    label: str
    classes: tuple[str, ...]
    # What is about persons stays out of a repr, which may end up in a log.
    labels: Ints = field(repr=False)
    features: Singles = field(repr=False)
    columns: tuple[Feature, ...]
    prior: Floats | None = field(repr=False)  # P(positive) of each row
    bags: Ints | None = field(repr=False)
    ids: tuple[str, ...] = field(repr=False)
    notes: tuple[str, ...]
    named: bool = False  # whether a column names the rows
    persons: Ints | None = field(default=None, repr=False)
    groups: Ints | None = field(default=None, repr=False)
    group_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def positive(self) -> str:
        """Of two classes the one that counts as 1."""
        return self.classes[-1]

    @property
    def rows_of_a_person(self) -> int:
        """The largest number of rows of one person; 1 if no column names the persons."""
        return 1 if self.persons is None else int(np.bincount(self.persons).max())


def read(source: str | Path | pd.DataFrame, columns: Columns) -> Table:
    """Read a csv or parquet file or a data frame for an audit, or say in one line why not.

    >>> frame = pd.DataFrame({"age": [30, 41, 52], "bought": ["yes", "no", "no"]})
    >>> table = read(frame, Columns(label="bought", features=["age"]))
    >>> table.classes, table.labels.tolist(), table.features.tolist()
    (('no', 'yes'), [1, 0, 0], [[30.0], [41.0], [52.0]])
    """
    frame, name, fingerprint = _open(source)
    for column in columns.named:
        if column not in frame.columns:
            raise ValueError(f"{name} has no column {column!r}; it has {quoted(frame.columns)}")
    roles = (columns.label, columns.bag, columns.person, columns.by)
    needed = [column for column in dict.fromkeys(roles) if column is not None]
    complete = frame.dropna(subset=needed)
    notes: list[str] = []
    if lost := len(frame) - len(complete):
        notes.append(f"{lost:,} rows without {' or '.join(needed)} were left out")
    if complete.empty:
        raise ValueError(f"{name} has no row with a label")
    labels, classes = _labels(complete[columns.label], columns)
    prior, used = None, (np.empty((len(complete), 0), np.float32), tuple[Feature, ...]())
    if columns.prior is not None:
        prior = _prior(complete[columns.prior])
    else:
        used = _features(complete, columns, notes)
    rows = complete.index if columns.identifier is None else complete[columns.identifier]
    groups, group_names = _codes(complete, columns.by)
    return Table(
        name=name,
        fingerprint=fingerprint,
        label=columns.label,
        classes=classes,
        labels=labels,
        features=used[0],
        columns=used[1],
        prior=prior,
        bags=_codes(complete, columns.bag)[0],
        ids=tuple(map(str, rows)),
        notes=tuple(notes),
        named=columns.identifier is not None,
        persons=_codes(complete, columns.person)[0],
        groups=groups,
        group_names=group_names,
    )


def _open(source: str | Path | pd.DataFrame) -> tuple[pd.DataFrame, str, str]:
    """A data frame whose rows count from 1, its name and its checksum."""
    if isinstance(source, str | Path):
        path = Path(source)
        return read_frame(path), path.name, file_digest(path)
    if not isinstance(source, pd.DataFrame):
        raise TypeError(f"a table is a path or a pandas DataFrame, not {type(source).__name__}")
    frame = source.rename(columns=str)
    check_columns("the data frame", list(frame.columns))
    if frame.empty:
        raise ValueError("the data frame has no rows")
    hashes = pd.util.hash_pandas_object(frame.astype(str), index=False).to_numpy()
    digest = hashlib.sha256(hashes.tobytes()).hexdigest()
    return frame.set_axis(pd.RangeIndex(1, len(frame) + 1)), "a data frame", digest


def _whole(values: pd.Series) -> pd.Series:
    """Whole numbers again, where pandas made them floats because some were missing."""
    if values.dtype.kind == "f" and (values % 1 == 0).all() and (values.abs() < 2**53).all():
        return values.astype(np.int64)
    return values


def _labels(values: pd.Series, columns: Columns) -> tuple[Ints, tuple[str, ...]]:
    """Positions of the labels among the classes; of two classes the positive one is the last."""
    words = _whole(values).astype(str).str.strip()
    classes = sorted(words.unique())
    if not 2 <= len(classes) <= MAX_CLASSES:
        raise ValueError(
            f"the label {values.name!r} must have 2 to {MAX_CLASSES} values, not {len(classes)}:"
            f" {quoted(classes)}"
        )
    if len(classes) == 2:
        positive = _positive(classes, columns.positive, str(values.name))
        classes = sorted(classes, key=lambda word: word == positive)
    else:
        for name in ("prior", "bag", "positive"):
            if getattr(columns, name) is not None:
                raise ValueError(
                    f"an audit of {len(classes)} classes takes no {name}: leave it out"
                )
    return pd.Index(classes).get_indexer(words).astype(np.int64), tuple(classes)


def _positive(pair: Sequence[str], given: str | float | bool | None, label: str) -> str:
    """The one of two labels that counts as 1."""
    if given is not None:
        word = str(given).strip()
        word = word if word in pair else word.removesuffix(".0")
        if word not in pair:
            raise ValueError(f"positive must be one of {quoted(pair)}, not {given!r}")
        return word
    low, high = sorted(pair, key=lambda word: word.lower() in POSITIVE)
    if low.lower() not in NEGATIVE or high.lower() not in POSITIVE:
        raise ValueError(
            f"the label {label!r} has values {quoted(pair)}; say which of them is"
            f" positive, as in positive={pair[1]!r} (--positive {shlex.quote(pair[1])})"
        )
    return high


def _prior(values: pd.Series) -> Floats:
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


def _codes(frame: pd.DataFrame, column: str | None) -> tuple[Ints | None, tuple[str, ...]]:
    if column is None:
        return None, ()
    codes, names = pd.factorize(_whole(frame[column]), sort=True)
    return codes.astype(np.int64), tuple(map(str, names))


def _features(
    frame: pd.DataFrame, columns: Columns, notes: list[str]
) -> tuple[Singles, tuple[Feature, ...]]:
    """Every usable column, or those that are named, which must be usable."""
    chosen = columns.features
    if chosen is None:
        names = columns.possible_features(frame.columns)
    else:
        names = [name for name in chosen if name not in columns.leave_out]
    values, features = [], []
    for name in names:
        if reason := _why_unusable(frame[name]):
            if chosen is not None:
                raise ValueError(f"the feature {name!r} cannot be used: {reason}")
            notes.append(f"{name} was left out: {reason}")
            continue
        read_column = _numbers if frame[name].dtype.kind in MEASURED else _categories
        numbers, feature = read_column(frame[name], notes)
        values.append(numbers.astype(np.float32))
        features.append(feature)
    if not features:
        raise ValueError(
            "no usable feature is left: " + ("; ".join(notes) or "there is no other column")
        )
    return np.column_stack(values), tuple(features)


def _why_unusable(values: pd.Series) -> str | None:
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
    if distinct > max(NAMES_ROWS * len(values), MAX_LEVELS):
        return f"its {distinct:,} distinct texts name rows rather than kinds"
    return None


def _numbers(values: pd.Series, notes: list[str]) -> tuple[Floats, Feature]:
    """Numbers, and dates as days; what single precision cannot hold counts as missing."""
    name, missing = str(values.name), int(values.isna().sum())
    if values.dtype.kind == "M":
        notes.append(f"{name} is a date; its number of days is used")
        values = (values - values.min()).dt.total_seconds() / 86_400
    numbers = values.to_numpy(np.float64, na_value=np.nan)
    infinite, beyond = np.isinf(numbers), np.abs(numbers) > MAX_SINGLE
    if infinite.any():
        notes.append(f"{name}: {int(infinite.sum()):,} infinite values are taken as missing")
    if finite := int((beyond & ~infinite).sum()):
        notes.append(f"{name}: {finite:,} values beyond {MAX_SINGLE:.1e} are taken as missing")
    if missing:
        notes.append(f"{name}: {missing:,} values are missing and stay so, as NaN")
    return np.where(beyond, np.nan, numbers), Feature(name)


def _categories(values: pd.Series, notes: list[str]) -> tuple[Floats, Feature]:
    """Codes of categories, the frequent ones first; rare ones beyond `MAX_LEVELS` count as one."""
    name, missing = str(values.name), int(values.isna().sum())
    words = values.astype(str)
    counts = words[values.notna()].value_counts()
    levels = counts.sort_index().sort_values(ascending=False, kind="stable").index
    kept = [*levels[:MAX_LEVELS]]
    codes = words.map({level: float(code) for code, level in enumerate(kept)}).fillna(len(kept))
    if len(levels) > MAX_LEVELS:
        rest = int(counts[levels[MAX_LEVELS:]].sum())
        notes.append(
            f"{name}: of {len(levels):,} categories the {MAX_LEVELS} most frequent are kept;"
            f" the others, in {rest:,} rows, count as one"
        )
        kept.append("(other)")
    if missing:
        notes.append(f"{name}: {missing:,} missing values stay so, as NaN, and join no category")
    return codes.where(values.notna()).to_numpy(np.float64), Feature(name, tuple(kept))
