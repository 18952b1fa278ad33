"""Notation of record distributions: the grammar, and the canonical spelling of each."""

import math

from privcore.distributions.notation import CALL, file_assumption, number, spelled
from privcore.distributions.record import RecordDistribution
from privcore.distributions.record_finite import FiniteRecord, canonical_column, column_law, written
from privcore.distributions.record_infinite import Geometric, Mixed, Zipf
from privcore.errors import DomainError
from privcore.numerics.kept import kept

_COLUMNS = ("column", "counts")
_MOST_ATOMS = 10**7
"""Largest number of atoms of a distribution that keeps all of them in memory."""


def canonical_law(text: str) -> str | None:
    """Return the canonical spelling of a distribution, or None; that of a column has the hash of its counts.

    Args:
        text: `uniform(K)`, `geometric(r)` with $p_k = (1 - r) r^{k - 1}$, `zipf(s)` or `zipf(s,K)` with
            infinitely many or K atoms and $p_k$ proportional to $k^{-s}$, `bernoulli(p)`, `atoms(...)` with
            probabilities that sum to 1, `column(file,name)` for the categories of a column,
            `counts(file,name)` for counts in a column, or `mixed(w,LAW)`, which has no atoms with
            probability w and is the distribution LAW otherwise.

    Raises:
        DomainError: A number is outside its domain, or the file is unreadable.

    Example:
        >>> canonical_law("zipf(1.50)"), canonical_law("atoms(.2, 0.5, 0.3, 0)"), canonical_law("normal(0,1)")
        ('zipf(1.5)', 'atoms(0.5,0.3,0.2)', None)
        >>> canonical_law("mixed(0,uniform(1e3))"), canonical_law("zipf(0,12)")
        ('uniform(1000)', 'uniform(12)')
    """
    call = CALL.fullmatch(text.strip())
    if call is None:
        return None
    if call[1] == "mixed":
        return _canonical_mixed(call[2])
    if call[1] in _COLUMNS:
        return canonical_column(call[1], call[2])
    words = [number(word) for word in call[2].split(",")]
    values = [x for x in words if x is not None]
    return None if len(values) < len(words) else _canonical_numeric(call[1], values)


def law_assumption(text: str) -> str:
    """Return the assumption behind taking a column of a file as a distribution; else an empty text.

    Args:
        text: Canonical spelling of a distribution.
    """
    assumed = file_assumption(text)
    return assumed and f"{assumed}; for a sample of records use membership-sample-advantage, or --sample"


@kept()
def law(text: str) -> RecordDistribution:
    """Return the distribution of a canonical spelling.

    Raises:
        DomainError: The counts of a column no longer have the hash.
    """
    call = CALL.fullmatch(text)
    assert call is not None
    kind, inside = call.groups()
    if kind == "mixed":
        w, _, inner = inside.partition(",")
        return Mixed(float(w), law(inner))
    if kind in _COLUMNS:
        return column_law(text, kind, inside)
    values = [float(word) for word in inside.split(",")]
    return _numeric(kind, values)


def _numeric(kind: str, values: list[float]) -> RecordDistribution:
    """Return the distribution of a canonical spelling with numbers alone."""
    found: RecordDistribution
    match kind, values:
        case "uniform", [size]:
            found = FiniteRecord.uniform(int(size))
        case "bernoulli", [p]:
            found = FiniteRecord.bernoulli(p)
        case "geometric", [r]:
            found = Geometric(r)
        case "zipf", [s]:
            found = Zipf(s)
        case "zipf", [s, size]:
            found = FiniteRecord.zipf(s, int(size))
        case _:
            found = FiniteRecord.atoms_of(values)
    return found


def _canonical_mixed(inside: str) -> str | None:
    """Return the canonical spelling of a mixture, or None; mixtures cannot be nested."""
    word, _, inner = inside.partition(",")
    if inner.strip().startswith("mixed("):
        return None
    w, atoms = number(word), canonical_law(inner)
    if w is None or atoms is None:
        return None
    _check("w of mixed(w,LAW) in [0, 1)", w, 0.0 <= w < 1.0)
    return f"mixed({spelled(w)},{atoms})" if w else atoms


def _canonical_numeric(kind: str, values: list[float]) -> str | None:
    """Return the canonical spelling of a distribution that is written with numbers alone, or None."""
    found = None
    match kind, values:
        case "atoms", _:
            found = f"atoms({','.join(map(spelled, written(values)))})"
        case "uniform", [size]:
            _check("a whole number K of uniform(K) in {1, ..., 10^12}", size, _whole(size, 10**12))
            found = f"uniform({int(size)})"
        case "bernoulli", [p]:
            _check("p of bernoulli(p) in [0, 1]", p, 0.0 <= p <= 1.0)
            found = f"bernoulli({spelled(p)})"
        case "geometric", [r]:
            _check("r of geometric(r) in [1e-06, 0.99999]", r, 1e-6 <= r <= 0.99999)
            found = f"geometric({spelled(r)})"
        case "zipf", [s]:
            _check("s of zipf(s), with infinitely many atoms, in [1.01, 50]", s, 1.01 <= s <= 50.0)
            found = f"zipf({spelled(s)})"
        case "zipf", [s, size]:
            _check("s of zipf(s,K) in [0, 50]", s, 0.0 <= s <= 50.0)
            _check("a whole number K of zipf(s,K) in {1, ..., 10^7}", size, _whole(size, _MOST_ATOMS))
            found = f"zipf({spelled(s)},{int(size)})" if s else f"uniform({int(size)})"
    return found


def _whole(x: float, most: int) -> bool:
    """Return whether a number is whole and from 1 to `most`."""
    return 1.0 <= x <= most and x == math.floor(x)


def _check(expected: str, got: float, holds: bool) -> None:
    """Raise `DomainError` with the expected and the given number, unless the condition holds."""
    if not holds:
        raise DomainError(f"Expected {expected}, got {got:.12g}.")
