"""Notation of priors and bags: the grammar, and the canonical spelling of each."""

import math
import re
from fractions import Fraction

from privcore.distributions.notation import CALL, canonical_reference, number, spelled
from privcore.distributions.prior import Prior
from privcore.distributions.prior_density import Beta, LogitNormal, Uniform
from privcore.distributions.prior_finite import FinitePrior, certain_fingerprint, column_prior, fingerprint
from privcore.errors import DomainError
from privcore.numerics.kept import kept

MOST_MEMBERS = 10_000
"""Largest number of examples in a bag that is written out."""

_COLUMNS = {"column": fingerprint, "certain": certain_fingerprint}
_EQUAL = re.compile(r"equal\(\s*([0-9]{1,9})\s*(?:,\s*([0-9]{1,9})\s*)?\)")
_ARGUMENTS = {"point": 1, "two-point": 3, "beta": 2, "logit-normal": 2}


def canonical_prior(text: str) -> str | None:
    """Return the canonical spelling of a prior, or None; that of a column has the hash of its values.

    Args:
        text: `uniform`, `beta(a,b)`, `point(p)` or just `p`, `two-point(a,b,w)`, which is b with probability
            w and a otherwise, `logit-normal(m,s)`, `column(file,name)` of a file, or `certain(file,name)` for
            a column of labels, all 0 or 1, which are taken as probabilities.

    Raises:
        DomainError: A number is outside its domain, or the file is unreadable.

    Example:
        >>> canonical_prior("beta(2, 30.0)"), canonical_prior("0.30"), canonical_prior("normal(0,1)")
        ('beta(2,30)', 'point(0.3)', None)
        >>> canonical_prior("two-point(.7,.05,.75)")
        'two-point(0.05,0.7,0.25)'
    """
    text = text.strip()
    call = CALL.fullmatch(text)
    if call and call[1] in _COLUMNS:
        return canonical_reference("column", call[2], "probabilities", _COLUMNS[call[1]])
    parsed = _parsed(text)
    return None if parsed is None else parsed.text


@kept()
def prior(text: str) -> Prior:
    """Return the prior of a canonical spelling.

    Raises:
        DomainError: As for `canonical_prior`, or the values of a column no longer have the hash.
    """
    call = CALL.fullmatch(text)
    if call and call[1] == "column":
        return column_prior(text, call[2])
    parsed = _parsed(text)
    assert parsed is not None
    return parsed


def _parsed(text: str) -> Prior | None:
    """Return a prior that is written with numbers alone; None for other texts."""
    if text == "uniform":
        return Uniform()
    call = CALL.fullmatch(text)
    kind, inside = (call[1], call[2]) if call else ("point", text)
    numbers = [number(word) for word in inside.split(",")]
    if _ARGUMENTS.get(kind) != len(numbers) or any(x is None for x in numbers):
        return None
    values = [x for x in numbers if x is not None]
    if kind == "beta":
        return Beta(*values)
    if kind == "logit-normal":
        return LogitNormal(*values)
    return FinitePrior.point(*values) if kind == "point" else FinitePrior.two_point(*values)


def canonical_bag(text: str) -> str | None:
    """Return the canonical spelling of a list of probabilities; None if the text is not a list of numbers.

    Example:
        >>> canonical_bag(" .1, 0.40,1 "), canonical_bag("0.1;0.2")
        ('0.1,0.4,1', None)
    """
    values = _list(text)
    return None if values is None else ",".join(map(spelled, values))


def probabilities(text: str) -> list[float]:
    """Return the numbers of a canonical list."""
    return [float(word) for word in text.split(",")]


def canonical_classes(text: str) -> str | None:
    """Return the canonical spelling of rows of probabilities with the sum 1 each; None for other texts.

    `equal(c)` is one example of c equally likely classes, and `equal(c,k)` are k examples of them.

    Example:
        >>> canonical_classes("0.20,.8; 1,0"), canonical_classes("equal(4)"), canonical_classes("equal(2,3)")
        ('0.2,0.8;1,0', '0.25,0.25,0.25,0.25', '0.5,0.5;0.5,0.5;0.5,0.5')
    """
    if equal := _EQUAL.fullmatch(text.strip()):
        number, examples = int(equal[1]), int(equal[2] or 1)
        if number < 2 or examples < 1 or number * examples > MOST_MEMBERS:
            raise DomainError(
                f"Expected at least 2 classes, at least 1 example and at most {MOST_MEMBERS} probabilities, "
                f"got {number} classes of {examples} examples."
            )
        return ";".join([",".join([spelled(1.0 / number)] * number)] * examples)
    rows = [_list(row) for row in text.split(";")]
    if any(row is None for row in rows):
        return None
    lists = [row for row in rows if row is not None]
    for row in lists:
        if len(row) != len(lists[0]) or len(row) < 2:
            raise DomainError("Expected the same number of classes for every example, at least 2.")
        if abs(math.fsum(row) - 1.0) > 1e-12:
            raise DomainError(f"Expected class probabilities that sum to 1, got {math.fsum(row):.12g}.")
    return ";".join(",".join(map(spelled, row)) for row in lists)


def canonical_histogram(text: str) -> str | None:
    """Return the canonical spelling of a list of whole numbers from 0 on; None for other texts.

    Example:
        >>> canonical_histogram(" 2, 00,1"), canonical_histogram("1.5,0")
        ('2,0,1', None)
    """
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() and len(word) < 10 for word in words):
        return None
    return ",".join(str(int(word)) for word in words)


def canonical_numbers(text: str) -> str | None:
    """Return the canonical spelling of a list of numbers; None for other texts.

    Example:
        >>> canonical_numbers("1, 1.0,-.5"), canonical_numbers("1;2")
        ('1,1,-0.5', None)
    """
    words = text.split(",")
    if len(words) > MOST_MEMBERS:
        raise DomainError(f"Expected at most {MOST_MEMBERS} numbers in a list, got {len(words)}.")
    values = [number(word) for word in words]
    return None if None in values else ",".join(spelled(x) for x in values if x is not None)


def canonical_lists(text: str) -> str | None:
    """Return the canonical spelling of lists of numbers, separated by semicolons; None for other texts.

    Example:
        >>> canonical_lists("1, 1.0,0; 0,.50,-1")
        '1,1,0;0,0.5,-1'
    """
    rows = [canonical_numbers(row) for row in text.split(";")]
    return None if None in rows else ";".join(row for row in rows if row is not None)


def canonical_weights(text: str) -> str | None:
    """Return the canonical spelling of lists of exact decimal numbers; None for other texts.

    Raises:
        DomainError: A number has more digits than a double, so that its spelling would change it.

    Example:
        >>> canonical_weights("1, 1.0,0; 0,.50,-1")
        '1,1,0;0,0.5,-1'
    """
    found = canonical_lists(text)
    if found is not None:
        words = text.replace(";", ",").split(",")
        for word, kept in zip(words, found.replace(";", ",").split(","), strict=True):
            if Fraction(word.strip()) != Fraction(kept):
                raise DomainError(f"Expected weights of at most 15 digits, got {word.strip()}.")
    return found


def class_rows(text: str) -> list[list[float]]:
    """Return the class probabilities of a canonical text, one list per example."""
    return [probabilities(row) for row in text.split(";")]


def _list(text: str) -> list[float] | None:
    """Return the probabilities of a list; None if the text is not a list of numbers.

    Raises:
        DomainError: A number is not a probability, or there are too many numbers.
    """
    words = text.split(",")
    if len(words) > MOST_MEMBERS:
        raise DomainError(f"Expected at most {MOST_MEMBERS} probabilities, got {len(words)}.")
    values = []
    for word in words:
        x = number(word)
        if x is None:
            return None
        if not 0.0 <= x <= 1.0:
            raise DomainError(f"Expected probabilities in [0, 1], got {word.strip()[:40]}.")
        values.append(x)
    return values
