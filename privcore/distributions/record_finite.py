"""Distributions with finitely many atoms: written out, uniform, of one bit, from counts or a column."""

import hashlib
import math
from pathlib import Path
from typing import Self

import numpy as np

from privcore.distributions.columns import read_categories, read_columns
from privcore.distributions.notation import canonical_reference, referenced, spelled
from privcore.distributions.record import Array, Atoms, RecordDistribution
from privcore.errors import DomainError

MOST_WRITTEN = 10_000
"""Largest number of atoms that are written out."""
_SUM_ERROR = 1e-9
"""Largest deviation from 1 of the sum of written probabilities, which are divided by their sum."""


class FiniteRecord(RecordDistribution):
    """Distribution of finitely many atoms; atoms of equal probability are kept once, with their number."""

    def __init__(self, text: str, atoms: Atoms) -> None:
        self._text, self._atoms = text, atoms

    @classmethod
    def weighted(cls, text: str, weights: Array) -> Self:
        """Return the distribution with one atom for every positive weight."""
        distinct, number = np.unique(weights, return_counts=True)
        return cls(text, _normalised(distinct[::-1], number[::-1].astype(np.float64)))

    @classmethod
    def uniform(cls, size: int) -> Self:
        """Return the uniform distribution of `size` atoms."""
        return cls(f"uniform({size})", _normalised(np.ones(1), np.array([float(size)])))

    @classmethod
    def zipf(cls, s: float, size: int) -> Self:
        """Return the distribution of `size` atoms with probabilities proportional to $k^{-s}$."""
        with np.errstate(under="ignore"):
            weights = np.arange(1.0, size + 1.0) ** -s
        weights = weights[weights > 0.0]
        law = cls(f"zipf({spelled(s)},{size})", _normalised(weights, np.ones(weights.size)))
        law.error = 1e-14
        return law

    @classmethod
    def bernoulli(cls, p: float) -> Self:
        """Return the distribution of one bit."""
        text, small, large = f"bernoulli({spelled(p)})", min(p, 1.0 - p), max(p, 1.0 - p)
        if small == 0.0:
            return cls(text, Atoms(np.ones(1), np.zeros(1), np.ones(1)))
        if small == large:
            return cls(text, Atoms(np.array([0.5]), np.array([0.5]), np.array([2.0])))
        return cls(text, Atoms(np.array([large, small]), np.array([small, large]), np.ones(2)))

    @classmethod
    def atoms_of(cls, probabilities: list[float]) -> Self:
        """Return the distribution of atoms with the probabilities that `written` returned."""
        return cls.weighted(f"atoms({','.join(map(spelled, probabilities))})", np.array(probabilities))

    @property
    def text(self) -> str:
        return self._text

    @property
    def finite(self) -> bool:
        return True

    def reach(self, least: float) -> float:
        return float(self._atoms.p.size)

    def atoms(self, start: int, stop: int) -> Atoms:
        part = slice(start, stop)
        return Atoms(self._atoms.p[part], self._atoms.q[part], self._atoms.number[part])

    def at(self, places: Array) -> tuple[Array, Array]:
        index = places.astype(np.int64) - 1
        return self._atoms.p[index], self._atoms.q[index]

    def tail(self, power: float, after: Array) -> Array:
        sums = np.cumsum((self._atoms.number * self._atoms.p**power)[::-1])[::-1]
        return np.concatenate([sums, [0.0]])[np.minimum(after, sums.size).astype(np.int64)]


def written(probabilities: list[float]) -> list[float]:
    """Return the positive probabilities of atoms that are written out, in falling order.

    Raises:
        DomainError: There are too many, a number is not a probability, or the sum is not 1.

    Example:
        >>> written([0.25, 0.0, 0.75])
        [0.75, 0.25]
    """
    if len(probabilities) > MOST_WRITTEN:
        raise DomainError(f"Expected at most {MOST_WRITTEN} atoms, got {len(probabilities)}.")
    for x in probabilities:
        if not 0.0 <= x <= 1.0:
            raise DomainError(f"Expected probabilities of atoms in [0, 1], got {x:.12g}.")
    total = math.fsum(probabilities)
    if abs(total - 1.0) > _SUM_ERROR:
        raise DomainError(f"Expected probabilities that sum to 1, got {total:.12g}.")
    return sorted((x for x in probabilities if x > 0.0), reverse=True)


def _normalised(weights: Array, number: Array) -> Atoms:
    """Return the atoms for falling distinct weights and their numbers."""
    total = float(np.sum((weights * number)[::-1]))
    q = (total - weights) / total
    if 2.0 * weights[0] > total:  # a single atom, for which total - weight would cancel
        q[0] = float(np.sum((weights * number)[:0:-1])) / total
    return Atoms(weights / total, q, number)


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
