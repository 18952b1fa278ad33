"""Priors from a column of a Parquet or CSV file."""

import hashlib
from pathlib import Path

import numpy as np

from privcore.columns import read_columns
from privcore.errors import DomainError
from privcore.priors.finite import Finite
from privcore.priors.prior import Array


def fingerprint(path: str, name: str) -> tuple[str, str, str]:
    """Return the absolute path of a file, the column's name and the SHA-256 of its values.

    Raises:
        DomainError: The file cannot be read, has no such column, or the column is no list of probabilities.
    """
    place = absolute(path)
    return place, name, _sha256(_values(Path(place), name))


def absolute(path: str) -> str:
    """Return the absolute path of a file, which need not exist; raises `DomainError` where there is none."""
    try:
        return str(Path(path).expanduser().resolve())
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, no such user, a NUL
        raise DomainError(f"Cannot read probabilities from {path[:80]!r}: {str(error)[:80]}.") from None


def column_prior(path: str, name: str, sha256: str) -> Finite:
    """Return the law that gives every row of a column the same probability.

    Raises:
        DomainError: As `fingerprint`, or the values are no longer those of the hash.
    """
    values = _values(Path(path), name)
    if _sha256(values) != sha256:
        raise DomainError(
            f"Expected the column {name} of {path} as it was when it was first used; it changed."
        )
    distinct, counts = np.unique(values, return_counts=True)
    text = f"column({path},{name},sha256:{sha256})"
    return Finite(text, distinct, counts / values.size, error=1e-12)


def _sha256(values: Array) -> str:
    """Return the hash of the sorted values, the same for a Parquet and a CSV file, in any order."""
    return hashlib.sha256(np.sort(values).astype("<f8").tobytes()).hexdigest()


def _values(path: Path, name: str) -> Array:
    """Return the values of a column, each in [0, 1]."""
    (values,) = read_columns(path, [name], "probabilities")
    if not ((values >= 0.0) & (values <= 1.0)).all():
        row = int(np.argmax((values < 0.0) | (values > 1.0)))
        raise DomainError(
            f"Expected probabilities in the column {name} of {path}, got {values[row]} in row {row + 1}."
        )
    return values
