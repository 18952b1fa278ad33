"""Columns of numbers from a Parquet or CSV file: the only module of the numerics that reads files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcore.errors import DomainError

Array = NDArray[np.float64]

_MOST_ROWS = 10**8


def read_columns(path: Path, names: Sequence[str], what: str) -> list[Array]:
    """Return columns of a file as numbers; true and false count as 1 and 0.

    Args:
        path: A Parquet or CSV file; which of the two is seen from its first bytes.
        names: Names of the columns.
        what: What they hold, such as `probabilities`, for the messages.

    Returns:
        One array of equal length each, without NaN.

    Raises:
        DomainError: The file cannot be read, has no rows or no such column, or a column has something else
            than numbers.
    """
    import pyarrow as pa

    column, listed = ("column", "columns")[len(names) > 1], " and ".join(names)
    try:
        if not path.is_file():
            raise DomainError(f"Expected a file with a column of {what}, got {path}, which is none.")
        table = _table(path, names)
        # What is missing becomes NaN.
        arrays = [table.column(name).cast(pa.float64()).to_numpy() for name in names]
    except (pa.ArrowException, OSError, RuntimeError, UnicodeError) as error:
        reason = str(error).splitlines()[0][:150] if str(error) else type(error).__name__
        raise DomainError(f"Cannot read {what} from the {column} {listed} of {path}: {reason}") from None
    if not 1 <= arrays[0].size <= _MOST_ROWS:
        raise DomainError(f"Expected 1 to {_MOST_ROWS} rows in {path}, got {arrays[0].size}.")
    for name, values in zip(names, arrays, strict=True):
        if np.isnan(values).any():
            row = int(np.argmax(np.isnan(values))) + 1
            raise DomainError(f"Expected {what} in the column {name} of {path}, got none in row {row}.")
    return [np.asarray(values + 0.0) for values in arrays]


def _table(path: Path, names: Sequence[str]) -> Any:
    """Return a table with these columns, after a look at the names of all."""
    import pyarrow.csv
    import pyarrow.parquet

    with path.open("rb") as file:
        parquet = file.read(4) == b"PAR1"
    table = pyarrow.parquet.ParquetFile(path) if parquet else pyarrow.csv.read_csv(path)
    present = table.schema_arrow.names if parquet else table.column_names
    for name in names:
        if name not in present:
            raise DomainError(
                f"Expected a column {name} in {path}; its columns are {', '.join(present)[:200]}."
            )
        if present.count(name) > 1:
            raise DomainError(f"Expected one column {name} in {path}, got {present.count(name)}.")
    return table.read(columns=list(dict.fromkeys(names))) if parquet else table
