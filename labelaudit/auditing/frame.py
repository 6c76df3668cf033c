"""A user's csv or parquet file as a pandas frame, or an error of one line that says why not."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pyarrow
from pyarrow import csv, parquet

SPREADSHEET = b"PK\x03\x04"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
NOT_UTF_8 = "{} is not UTF-8 text; save it again as UTF-8"


def read_frame(path: Path) -> pd.DataFrame:
    """The file as a pandas frame whose index counts the rows of the file from 1."""
    options = csv.ConvertOptions(strings_can_be_null=True)
    is_parquet = _is_parquet(path)
    try:
        table = (
            parquet.read_table(path) if is_parquet else csv.read_csv(path, convert_options=options)
        )
        # Arrow keeps a column it cannot decode as bytes, and decodes the names when asked.
        if not is_parquet and any(map(pyarrow.types.is_binary, table.schema.types)):
            raise UnicodeError
        check_columns(path, table.column_names)
    except UnicodeError:
        raise ValueError(NOT_UTF_8.format(path)) from None
    except (pyarrow.ArrowException, OSError) as error:
        kind = "parquet" if is_parquet else "csv"
        raise ValueError(f"{path} cannot be read as {kind}: {str(error).splitlines()[0]}") from None
    if table.num_rows == 0:
        raise ValueError(f"{path} has no rows below its header")
    frame = table.to_pandas(date_as_object=False)
    return frame.set_axis(pd.RangeIndex(1, len(frame) + 1))


def quoted(names: Iterable[object], most: int = 8) -> str:
    """The names in quotes, and dots where there are many.

    >>> quoted(["age", "town", "pay"], most=2)
    "'age', 'town', ..."
    """
    shown = [repr(str(name)) for name in names]
    return ", ".join(shown[:most]) + (", ..." if len(shown) > most else "")


def _is_parquet(path: Path) -> bool:
    """Whether the file is parquet rather than text; any other kind is an error."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a csv or parquet file in it")
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    with open(path, "rb") as file:
        start = file.read(4)
    if not start:
        raise ValueError(f"{path} is empty")
    if start == SPREADSHEET:
        raise ValueError(f"{path} is a spreadsheet or an archive; save the table as csv")
    if start[:2] in UTF_16:
        raise ValueError(NOT_UTF_8.format(path))
    is_parquet = start == b"PAR1"
    if is_parquet != (path.suffix.lower() in (".parquet", ".pq")):
        content = "is a parquet file" if is_parquet else "is not a parquet file"
        raise ValueError(f"{path} {content}, whatever its name says")
    return is_parquet


def check_columns(path: Path | str, names: list[str]) -> None:
    """Reject repeated names, and a single name that holds another separator than a comma."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(f"{path} has more than one column of the name {quoted(twice)}")
    if len(names) == 1 and (marks := [mark for mark in ";\t|" if mark in names[0]]):
        raise ValueError(f"{path} has columns separated by {marks[0]!r}; a comma is needed")
