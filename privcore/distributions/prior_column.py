"""Priors from a column of a Parquet or CSV file."""

import hashlib
from pathlib import Path

import numpy as np

from privcore.distributions.columns import read_columns
from privcore.distributions.notation import referenced
from privcore.distributions.prior import Array
from privcore.distributions.prior_finite import FinitePrior
from privcore.errors import DomainError


def fingerprint(path: Path, name: str) -> str:
    """Return the SHA-256 of the values of a column of probabilities.

    Raises:
        DomainError: The file cannot be read or lacks the column, a value is not a probability, or all values
            are 0 or 1: labels, which taken as probabilities would leave nothing to guess.
    """
    values = _values(path, name)
    if ((values == 0.0) | (values == 1.0)).all():
        raise DomainError(
            f"Expected probabilities of label 1 in the column {name} of {path}, got labels, since all values "
            f"are 0 or 1: use their mean, {values.mean():.6g}, or scores of a calibrated model; if every "
            f"label is known for certain, write certain({path},{name})."
        )
    return _sha256(values)


def certain_fingerprint(path: Path, name: str) -> str:
    """Return the SHA-256 of the values of a column, which may be labels; raise as `fingerprint`."""
    return _sha256(_values(path, name))


def column_prior(text: str, inside: str) -> FinitePrior:
    """Return the distribution that gives every row of a column the same probability.

    Args:
        text: Canonical spelling.
        inside: Text in its parentheses: path, name and hash.

    Raises:
        DomainError: As for `fingerprint`, or the values no longer have the hash.
    """
    values = referenced(inside, _values, _sha256)
    starts = np.flatnonzero(np.diff(values, prepend=-1.0))
    counts = np.diff(starts, append=values.size)
    return FinitePrior(text, values[starts], counts / values.size, error=1e-12, counts=counts)


def _sha256(values: Array) -> str:
    """Return the hash of sorted values, which does not depend on the format of the file."""
    return hashlib.sha256(values.astype("<f8").tobytes()).hexdigest()


def _values(path: Path, name: str) -> Array:
    """Return the sorted values of a column, each in [0, 1]."""
    (values,) = read_columns(path, [name], "probabilities")
    if not ((values >= 0.0) & (values <= 1.0)).all():
        row = int(np.argmax((values < 0.0) | (values > 1.0)))
        raise DomainError(
            f"Expected probabilities in the column {name} of {path}, got {values[row]} in row {row + 1}."
        )
    return np.sort(values)
