"""Columns of numbers or categories from files of tables; no other numerics read files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcore.distributions.tables import MOST_ROWS, read_table
from privcore.errors import DomainError

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Words = Mapping[str, float]


def read_columns(
    path: Path,
    names: Sequence[str],
    what: str,
    words: Mapping[str, Words] = MappingProxyType({}),
    refused: Mapping[str, str] = MappingProxyType({}),
) -> list[Array]:
    """Return columns of a file as numbers; true and false count as 1 and 0.

    Args:
        path: A Parquet, CSV, JSONL, NPY or NPZ file; its first bytes determine the format.
        names: Names of the columns.
        what: Content of the columns, such as `probabilities`, for the messages.
        words: For the name of a column, the numbers of words, in lower case, that it may have as texts.
        refused: For the name of a column that must not exist, the sentence that refuses the file.

    Returns:
        One array per column, of equal lengths, without NaN.

    Raises:
        DomainError: The file cannot be read, has no rows, lacks a column or has a refused one, or a
            column has values that are not numbers.
    """
    import pyarrow as pa

    column, listed = ("column", "columns")[len(names) > 1], " and ".join(names)
    try:
        if not path.is_file():
            raise DomainError(f"Expected a file with a column of {what}, but {path} is not a file.")
        table = read_table(path, names, refused)
        # Missing values become NaN.
        arrays = [_in_numbers(table.column(name), words.get(name, {})).to_numpy() for name in names]
    except (pa.ArrowException, OSError, RuntimeError, UnicodeError) as error:
        reason = _sentence(error)
        raise DomainError(f"Cannot read {what} from the {column} {listed} of {path}: {reason}") from None
    if not 1 <= arrays[0].size <= MOST_ROWS:
        raise DomainError(f"Expected 1 to {MOST_ROWS} rows in {path}, got {arrays[0].size}.")
    for name, values in zip(names, arrays, strict=True):
        if np.isnan(values).any():
            row = int(np.argmax(np.isnan(values))) + 1
            raise DomainError(f"Expected {what} in the column {name} of {path}; row {row} has no value.")
    return [np.asarray(values + 0.0) for values in arrays]


def read_categories(path: Path, name: str) -> Counts:
    """Return the number of occurrences of each distinct value of a column of any type, in no order.

    Args:
        path: A Parquet, CSV, JSONL, NPY or NPZ file; its first bytes determine the format.
        name: Name of the column.

    Raises:
        DomainError: The file cannot be read, has no rows or lacks the column, or a value is missing.
    """
    import pyarrow as pa
    import pyarrow.compute

    try:
        if not path.is_file():
            raise DomainError(f"Expected a file with a column of categories, but {path} is not a file.")
        column = read_table(path, [name]).column(name).unify_dictionaries()
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
    if not 1 <= len(column) <= MOST_ROWS:
        raise DomainError(f"Expected 1 to {MOST_ROWS} rows in {path}, got {len(column)}.")
    return np.asarray(counts, dtype=np.int64)


def _in_numbers(column: Any, words: Words) -> Any:
    """Return a column with numbers in place of text: of words, in any case, or else of numerals."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        chunks = [pc.take(_in_numbers(chunk.dictionary, words), chunk.indices) for chunk in column.chunks]
        return pa.chunked_array(chunks, pa.float64())
    if words and (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        column = column.cast(pa.large_string())  # numpy and some writers of Parquet have text as bytes
    if words and (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        found = pc.index_in(pc.utf8_lower(pc.utf8_trim_whitespace(column)), pa.array(list(words)))
        unknown = column.filter(pc.and_(pc.is_null(found), pc.is_valid(column)))
        if not len(unknown):
            return pc.take(pa.array(list(words.values()), pa.float64()), found)
        try:
            return column.cast(pa.float64())
        except pa.ArrowInvalid:
            got = next((each for each in unknown.to_pylist() if not _is_numeral(each)), unknown[0].as_py())
            raise pa.ArrowInvalid(f"expected one of {', '.join(words)}, got {got[:40]!r}") from None
    return column.cast(pa.float64())  # names the first word that cannot be a number


def _is_numeral(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _sentence(error: Exception) -> str:
    """Return the first line of the message of a library, with a full stop."""
    text = str(error).splitlines()[0][:150] if str(error) else type(error).__name__
    if text.startswith("straddling object"):
        text = "a row is longer than 16 MB"
    shown = "".join(letter if letter.isprintable() else " " for letter in text)  # a file may hold anything
    return f"{shown.rstrip('.')}."
