"""Notation shared by priors, record distributions and columns: numbers, and calls such as `beta(2,30)`."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from privcore.errors import DomainError
from privcore.parameter import SMALLEST_NORMAL

Values = TypeVar("Values")

CALL = re.compile(r"([a-z-]+)\s*\((.*)\)", re.DOTALL)
_HASHED = re.compile(r"(.*),(.*),sha256:([0-9a-f]{64})", re.DOTALL)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

FROM_FILE = r"(?:column|counts)\((.*),(.*),sha256:[0-9a-f]{64}\)"
"""Regular expression for a column in a canonical text; its groups are the file and the name of the column."""
ONLY_ITS_VALUES = r"values that are not in the column \2 of \1 do not exist"
"""Assumption behind taking a column as a distribution, with references to these groups."""


def spelled(x: float) -> str:
    """Return the shortest text of a number, without a trailing `.0`.

    Example:
        >>> spelled(30.0), spelled(0.1), spelled(1e-7)
        ('30', '0.1', '1e-07')
    """
    return repr(float(x)).removesuffix(".0")


def number(word: str) -> float | None:
    """Return the finite number that a word spells, without the sign of a zero; None for other words.

    Raises:
        DomainError: The number is nearer to 0 than doubles with all digits are.

    Example:
        >>> number(" .50"), number("-0"), number("1e400"), number("nan")
        (0.5, 0.0, None, None)
    """
    if not _NUMBER.fullmatch(word.strip()):
        return None
    x = float(word)
    if 0.0 < abs(x) < SMALLEST_NORMAL:
        least = f"{SMALLEST_NORMAL:.17g}"
        raise DomainError(f"Expected 0 or a number of at least {least}, got {word.strip()[:40]}.")
    return x + 0.0 if math.isfinite(x) else None


def absolute(path: str, what: str) -> str:
    """Return the absolute path of a file, which need not exist.

    Args:
        path: Path as the user wrote it.
        what: Content of the file, such as `probabilities`, for the message.

    Raises:
        DomainError: The path is not valid.
    """
    try:
        return str(Path(path).expanduser().resolve())
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, an unknown user, a NUL
        raise DomainError(f"Cannot read {what} from {path[:80]!r}: {str(error)[:80]}.") from None


def canonical_reference(kind: str, inside: str, what: str, digest: Callable[[Path, str], str]) -> str | None:
    """Return the canonical spelling of a reference to a column, which has the SHA-256 of its values.

    Args:
        kind: Word before the parenthesis.
        inside: `file,name`, or the absolute path, the name and the hash; a name has no comma.
        what: Content of the column, for the messages.
        digest: Returns the hash for a path and a name.

    Returns:
        `kind(path,name,sha256:hash)`, or None if the name is missing.

    Raises:
        DomainError: The path is not valid, or the file cannot be read.
    """
    given = _HASHED.fullmatch(inside)
    if given:
        return f"{kind}({absolute(given[1], what)},{given[2]},sha256:{given[3]})"
    path, comma, name = inside.rpartition(",")
    if not comma:
        return None
    place, name = absolute(path.strip(), what), name.strip()
    return f"{kind}({place},{name},sha256:{digest(Path(place), name)})"


def file_assumption(text: str) -> str:
    """Return the assumption behind taking a column of a file as a distribution; else an empty text.

    Args:
        text: Canonical spelling of a distribution.

    Example:
        >>> file_assumption("uniform(10)"), file_assumption(f"column(/data/v.csv,city,sha256:{'0' * 64})")
        ('', 'values that are not in the column city of /data/v.csv do not exist')
    """
    read = re.search(FROM_FILE, text, re.DOTALL)
    return read.expand(ONLY_ITS_VALUES) if read else ""


def referenced(inside: str, values: Callable[[Path, str], Values], digest: Callable[[Values], str]) -> Values:
    """Return the values of a column, given the text inside the parentheses of a canonical reference.

    Raises:
        DomainError: The file cannot be read, or its values no longer have that hash.
    """
    given = _HASHED.fullmatch(inside)
    assert given is not None
    path, name, sha256 = given.groups()
    found = values(Path(path), name)
    if digest(found) != sha256:
        raise DomainError(
            f"The column {name} of {path} has changed since it was first used, or an earlier release read "
            "its texts as numbers; restore the file, or refer to the column again without the hash."
        )
    return found
