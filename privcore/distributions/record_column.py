"""Distributions from a column of a file: the frequencies of its categories, or its counts."""

import hashlib
from pathlib import Path

import numpy as np

from privcore.distributions.columns import read_categories, read_columns
from privcore.distributions.notation import canonical_reference, referenced
from privcore.distributions.record import Array
from privcore.distributions.record_finite import FiniteRecord
from privcore.errors import DomainError

_MOST_RECORDS = 2.0**53


def canonical_column(kind: str, inside: str) -> str | None:
    """Return the canonical spelling of a distribution from a column, with the hash of the counts, or None.

    Args:
        kind: `column`, whose categories are counted, or `counts`, which holds counts.
        inside: File and name of the column.

    Raises:
        DomainError: The file cannot be read, or a value that should be a count is not.
    """
    values = _categories if kind == "column" else _counts
    return canonical_reference(kind, inside, kind, lambda path, name: _sha256(values(path, name)))


def column_law(text: str, kind: str, inside: str) -> FiniteRecord:
    """Return the distribution of a canonical spelling; raise `DomainError` if the counts have changed."""
    counts = referenced(inside, _categories if kind == "column" else _counts, _sha256)
    return FiniteRecord.weighted(text, counts)


def _categories(path: Path, name: str) -> Array:
    """Return the number of occurrences of each distinct value of a column, sorted."""
    return np.sort(read_categories(path, name)).astype(np.float64)


def _counts(path: Path, name: str) -> Array:
    """Return the counts of a column, sorted and without zeros."""
    (values,) = read_columns(path, [name], "counts")
    wrong = (values < 0.0) | (values != np.floor(values)) | (values > _MOST_RECORDS)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DomainError(
            f"Expected counts (whole numbers from 0 to 2^53) in the column {name} of {path}, "
            f"got {values[row]:.12g} in row {row + 1}."
        )
    if not 0.0 < values.sum() <= _MOST_RECORDS:
        raise DomainError(f"Expected counts with a sum from 1 to 2^53 in the column {name} of {path}.")
    return np.sort(values[values > 0.0])


def _sha256(counts: Array) -> str:
    """Return the hash of sorted counts; the names of the atoms do not matter."""
    return hashlib.sha256(counts.astype("<f8").tobytes()).hexdigest()
