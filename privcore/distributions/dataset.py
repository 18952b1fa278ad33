"""Training sets of discrete records, written as counts and probabilities of their values."""

import math
import re

from privcore.errors import DomainError

_PAIR = re.compile(r"\s*([0-9]{1,13})\s*/\s*([0-9.eE+-]{1,30})\s*")
_MOST_VALUES = 10_000
_TOLERANCE = 1e-9
"""Excess over 1 of the sum of probabilities that is taken as rounding."""


def canonical_dataset(text: str) -> str | None:
    """Return the canonical spelling of a training set, or None: pairs in falling order of the counts.

    Raises:
        DomainError: A count or probability is impossible, or the probabilities exceed 1.

    Example:
        >>> canonical_dataset("1/0.2, 3/.5"), canonical_dataset("3,1")
        ('3/0.5,1/0.2', None)
    """
    matches = [_PAIR.fullmatch(word) for word in text.split(",")]
    pairs = []
    for match in matches:
        if match is None:
            return None
        try:
            pairs.append((int(match[1]), abs(float(match[2])) if float(match[2]) == 0.0 else float(match[2])))
        except ValueError:
            return None
    if len(pairs) > _MOST_VALUES:
        raise DomainError(f"Expected at most {_MOST_VALUES} values, got {len(pairs)}.")
    for count, p in pairs:
        if count < 1 or not 0.0 <= p <= 1.0:
            raise DomainError(f"Expected a count >= 1 and a probability in [0, 1], got {count}/{p:g}.")
    if (total := math.fsum(p for _, p in pairs)) > 1.0 + _TOLERANCE:
        raise DomainError(f"Expected probabilities with a sum of at most 1, got {total:.12g}.")
    return ",".join(f"{count}/{p!r}" for count, p in sorted(pairs, reverse=True))


def dataset_pairs(text: str) -> list[tuple[int, float]]:
    """Return the counts and probabilities of a canonical spelling; a sum above 1 is divided out.

    Example:
        >>> dataset_pairs("3/0.5,1/0.2")
        [(3, 0.5), (1, 0.2)]
    """
    pairs = [(int(count), float(p)) for count, _, p in (word.partition("/") for word in text.split(","))]
    total = max(1.0, math.fsum(p for _, p in pairs))
    return [(count, p / total) for count, p in pairs]
