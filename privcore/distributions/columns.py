"""Columns of numbers or categories from files of tables, and counts of the categories of a sample."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcore.distributions.notation import CALL, canonical_reference, referenced
from privcore.distributions.tables import read_table
from privcore.errors import DomainError
from privcore.numerics.kept import kept

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Words = Mapping[str, float]

TRUTH: Words = MappingProxyType({"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0})
"""Words that count as numbers in every column."""

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$|^[+-]?(inf|infinity)$"
_COMMA = r"^[+-]?[0-9]+,[0-9]+(e[+-]?[0-9]+)?$"
_NO_THOUSANDS = r"^[+-]?(0[0-9]*,|[0-9]{4,},|[0-9]+,([0-9]{1,2}|[0-9]{4,})(e|$))"
_WHOLE = re.compile(r"[+-]?[0-9]{1,1000}")


def read_columns(
    path: Path,
    names: Sequence[str],
    what: str,
    words: Mapping[str, Words] = MappingProxyType({}),
    refused: Mapping[str, str] = MappingProxyType({}),
) -> list[Array]:
    """Return columns of a file as numbers; true and yes count as 1, false and no as 0.

    Numbers may have decimal commas, if all numbers of the column have them and no number can be read in two
    ways, as 1,234 can.

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
    columns = read_table(path, names, what, refused)
    return [
        _numbers(path, name, column, what, words.get(name, TRUTH))
        for name, column in zip(names, columns, strict=True)
    ]


def read_integers(path: Path, name: str) -> list[int | float]:
    """Return a column of numbers with all digits of its integers, which doubles do not hold beyond 2^53.

    Raises:
        DomainError: As for `read_columns`.
    """
    (column,) = read_table(path, [name], "numbers")
    texts = [str(value).strip().strip('"') for value in column.to_pylist()]
    return [int(text) if _WHOLE.fullmatch(text) else float(text) for text in texts]


def read_categories(path: Path, name: str) -> Counts:
    """Return the number of occurrences of each distinct value of a column of any type, in no order.

    In CSV and JSONL, values are equal if they are written with the same characters.

    Args:
        path: A Parquet, CSV, JSONL, NPY or NPZ file; its first bytes determine the format.
        name: Name of the column.

    Raises:
        DomainError: The file cannot be read, has no rows or lacks the column, or a value is missing.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = read_table(path, [name], "categories")[0].unify_dictionaries()
    try:
        if pa.types.is_floating(column.type):
            column = pc.add(column.cast(pa.float64()), 0.0)  # merges -0.0 and 0.0
        counts = pc.value_counts(column).field("counts").to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        raise DomainError(
            f"Expected categories in the column {name} of {path}, got values of the type "
            f"{str(column.type)[:40]}; write them as texts."
        ) from None
    return np.asarray(counts, dtype=np.int64)


def _numbers(path: Path, name: str, column: Any, what: str, words: Words) -> Array:
    """Return the numbers of a column, or raise the error that names the first row without one."""
    import pyarrow as pa

    values = column
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
        values = pa.chunked_array([column.chunk(0).dictionary])
    try:
        if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
            values = values.cast(pa.large_string())  # numpy and some writers of Parquet have text as bytes
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            found = _parsed(values, words)
        else:
            found = values.cast(pa.float64(), safe=False).to_numpy()
    except pa.ArrowException:
        raise DomainError(
            f"Expected {what} in the column {name} of {path}, got values of the type {str(values.type)[:40]}."
        ) from None
    if pa.types.is_dictionary(column.type):
        found = found[np.concatenate([chunk.indices.to_numpy() for chunk in column.chunks])]
    if np.isnan(found).any():
        row = int(np.argmax(np.isnan(found)))
        cell = column[row].as_py()
        text = cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)
        known = what if words is TRUTH else f"one of {', '.join(words)}"
        remedy = "; write a decimal point, since a comma may separate thousands" if "," in text else ""
        raise DomainError(
            f"Expected {known} in the column {name} of {path}, got {text[:40]!r} in row {row + 1}{remedy}."
        )
    return np.asarray(found + 0.0)


def _parsed(texts: Any, words: Words) -> Array:
    """Return the numbers of words and numerals, with NaN for all other texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if words is TRUTH:
        try:
            return np.asarray(texts.cast(pa.float64()).to_numpy())
        except pa.ArrowInvalid:  # other spellings than those of numerals without blanks
            pass
    plain = pc.utf8_lower(pc.utf8_trim(texts, ' "\t\u00a0'))
    found = np.asarray(
        pc.take(
            pa.array(list(words.values()), pa.float64()), pc.index_in(plain, pa.array(list(words)))
        ).to_numpy()
    )
    if not np.isnan(found).any():
        return found
    plain = _with_points(plain)
    numeral = pc.match_substring_regex(plain, _NUMBER)
    numbers = pc.if_else(numeral, plain, None).cast(pa.float64()).to_numpy()
    return np.where(np.isnan(found), numbers, found)


def _with_points(texts: Any) -> Any:
    """Return numerals with decimal points in place of commas, unless the commas may separate thousands."""
    import pyarrow.compute as pc

    commas = texts.filter(pc.match_substring(texts, ","))
    if (
        not len(commas)
        or pc.any(pc.match_substring(texts, ".")).as_py()
        or not pc.all(pc.match_substring_regex(commas, _COMMA)).as_py()
        or not pc.any(pc.match_substring_regex(commas, _NO_THOUSANDS)).as_py()
    ):
        return texts
    return pc.replace_substring(texts, ",", ".")


_MOST_WRITTEN = 10_000
_MOST_RECORDS = 10**12
_COUNT = re.compile(r"[0-9]{1,13}")
_KIND = "column"
_WHAT = "categories"


def canonical_sample(text: str) -> str | None:
    """Return the canonical spelling of a sample, or None; that of a column has the hash of its counts.

    Order and names of the categories do not matter: counts are sorted, and zeros are left out.

    Args:
        text: Counts such as `50,30,20`, or `column(file,name)` of a Parquet or CSV file.

    Raises:
        DomainError: The sample has no records or too many, or the file is unreadable.

    Example:
        >>> canonical_sample("20, 50,0,30"), canonical_sample("0.5,0.5")
        ('50,30,20', None)
    """
    text = text.strip()
    call = CALL.fullmatch(text)
    if call:
        if call[1] != _KIND:
            return None
        return canonical_reference(_KIND, call[2], _WHAT, lambda path, name: _sha256(_counted(path, name)))
    words = [word.strip() for word in text.split(",")]
    if not all(_COUNT.fullmatch(word) for word in words):
        return None
    if len(words) > _MOST_WRITTEN:
        raise DomainError(f"Expected at most {_MOST_WRITTEN} counts, got {len(words)}.")
    counts = sorted((int(word) for word in words if int(word) > 0), reverse=True)
    if not 1 <= sum(counts) <= _MOST_RECORDS:
        raise DomainError(f"Expected a sample of 1 to {_MOST_RECORDS} records, got {sum(counts)}.")
    return ",".join(map(str, counts))


@kept()
def sample_counts(text: str) -> Counts:
    """Return the counts of a canonical spelling, in falling order; the array is read-only.

    Raises:
        DomainError: The file cannot be read, or its counts no longer have the hash.

    Example:
        >>> sample_counts("50,30,20").tolist()
        [50, 30, 20]
    """
    call = CALL.fullmatch(text)
    if call:
        counts = referenced(call[2], _counted, _sha256)
    else:
        counts = np.array([int(word) for word in text.split(",")], dtype=np.int64)
    counts.flags.writeable = False
    return counts


def _counted(path: Path, name: str) -> Counts:
    """Return the number of occurrences of each distinct value of a column, in falling order."""
    return np.sort(read_categories(path, name))[::-1].copy()


def _sha256(counts: Counts) -> str:
    """Return the hash of the sorted counts, which does not depend on the format or the order of the file."""
    return hashlib.sha256(counts.astype("<i8").tobytes()).hexdigest()
