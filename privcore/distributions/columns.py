"""Columns of numbers or categories from Parquet or CSV files; no other numerics read files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcore.errors import DomainError

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

_MOST_ROWS = 10**8


def read_columns(path: Path, names: Sequence[str], what: str) -> list[Array]:
    """Return columns of a file as numbers; true and false count as 1 and 0.

    Args:
        path: A Parquet or CSV file; its first bytes determine the format.
        names: Names of the columns.
        what: Content of the columns, such as `probabilities`, for the messages.

    Returns:
        One array per column, of equal lengths, without NaN.

    Raises:
        DomainError: The file cannot be read, has no rows or lacks a column, or a column has values that are
            not numbers.
    """
    import pyarrow as pa

    column, listed = ("column", "columns")[len(names) > 1], " and ".join(names)
    try:
        if not path.is_file():
            raise DomainError(f"Expected a file with a column of {what}, but {path} is not a file.")
        table = _table(path, names)
        # Missing values become NaN.
        arrays = [table.column(name).cast(pa.float64()).to_numpy() for name in names]
    except (pa.ArrowException, OSError, RuntimeError, UnicodeError) as error:
        reason = _sentence(error)
        raise DomainError(f"Cannot read {what} from the {column} {listed} of {path}: {reason}") from None
    if not 1 <= arrays[0].size <= _MOST_ROWS:
        raise DomainError(f"Expected 1 to {_MOST_ROWS} rows in {path}, got {arrays[0].size}.")
    for name, values in zip(names, arrays, strict=True):
        if np.isnan(values).any():
            row = int(np.argmax(np.isnan(values))) + 1
            raise DomainError(f"Expected {what} in the column {name} of {path}; row {row} has no value.")
    return [np.asarray(values + 0.0) for values in arrays]


def read_categories(path: Path, name: str) -> Counts:
    """Return the number of occurrences of each distinct value of a column of any type, in no order.

    Args:
        path: A Parquet or CSV file; its first bytes determine the format.
        name: Name of the column.

    Raises:
        DomainError: The file cannot be read, has no rows or lacks the column, or a value is missing.
    """
    import pyarrow as pa
    import pyarrow.compute

    try:
        if not path.is_file():
            raise DomainError(f"Expected a file with a column of categories, but {path} is not a file.")
        column = _table(path, [name]).column(name)
        if pa.types.is_floating(column.type):
            column = pyarrow.compute.add(column, 0.0)  # merges -0.0 and 0.0
        missing = column.is_null(nan_is_null=True)
        if pyarrow.compute.any(missing).as_py():
            row = int(missing.to_numpy().argmax()) + 1
            raise DomainError(f"Expected categories in the column {name} of {path}; row {row} has no value.")
        counts = pyarrow.compute.value_counts(column).field("counts").to_numpy(zero_copy_only=False)
    except (pa.ArrowException, OSError, RuntimeError, UnicodeError) as error:
        reason = _sentence(error)
        raise DomainError(f"Cannot read categories from the column {name} of {path}: {reason}") from None
    if not 1 <= len(column) <= _MOST_ROWS:
        raise DomainError(f"Expected 1 to {_MOST_ROWS} rows in {path}, got {len(column)}.")
    return np.asarray(counts, dtype=np.int64)


def _table(path: Path, names: Sequence[str]) -> Any:
    """Return a table with these columns, after checking that each exists once."""
    import pyarrow.csv
    import pyarrow.parquet

    with path.open("rb") as file:
        parquet = file.read(4) == b"PAR1"
    table = pyarrow.parquet.ParquetFile(path) if parquet else pyarrow.csv.read_csv(path)
    present = table.schema_arrow.names if parquet else table.column_names
    for name in names:
        if name not in present:
            raise DomainError(
                f"Expected a column named {name} in {path}; its columns are {', '.join(present)[:200]}."
            )
        if present.count(name) > 1:
            raise DomainError(f"Expected one column named {name} in {path}, got {present.count(name)}.")
    return table.read(columns=list(dict.fromkeys(names))) if parquet else table


def _sentence(error: Exception) -> str:
    """Return the first line of the message of a library, with a full stop."""
    text = str(error).splitlines()[0][:150] if str(error) else type(error).__name__
    shown = "".join(letter if letter.isprintable() else " " for letter in text)  # a file may hold anything
    return f"{shown.rstrip('.')}."
