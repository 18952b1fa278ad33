"""Counts of the categories of a sample: written out, or read from a column of a file."""

import hashlib
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privcore.distributions.columns import read_categories
from privcore.distributions.notation import CALL, canonical_reference, referenced
from privcore.errors import DomainError
from privcore.numerics.kept import kept

Counts = NDArray[np.int64]

_MOST_WRITTEN = 10_000
_MOST_RECORDS = 10**12
_WHOLE = re.compile(r"[0-9]{1,13}")
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
    if not all(_WHOLE.fullmatch(word) for word in words):
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
