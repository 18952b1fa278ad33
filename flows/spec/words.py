"""Words of a command line: numbers, `field=value`, and methods with options."""

import math
import operator
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from privcore import DomainError, Method, find, find_problem
from privcore.parameter import Value

DEFAULT_STORE = Path("store")
"""Store that answers unless another one is named; it may be missing."""


def number(text: str) -> float | int | str:
    """Return the number in a text, or any other text unchanged, for the parameter to check.

    Raises:
        DomainError: The number is too large or too small for a double, such as 1e-400.

    Example:
        >>> number("1e4"), number("12"), number("1/50000"), number("add-remove"), number("1_0")
        (10000.0, 12, 2e-05, 'add-remove', '1_0')
    """
    if re.fullmatch(r"[0-9]{1,300}/0*[1-9][0-9]{0,299}", text):
        return float(Fraction(text))
    if re.fullmatch(r"[+-]?[0-9]{1,400}", text):
        return int(text)
    if re.fullmatch(r"[+-]?(inf|infinity|nan)", text, re.IGNORECASE):
        return float(text)
    spelled = re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", text, re.ASCII | re.IGNORECASE)
    if not spelled:
        return text
    found = float(text)
    if math.isinf(found) or (found == 0 and re.search("[1-9]", spelled[1])):
        raise DomainError(f"Expected a number that a double can hold, got {text[:50]}.")
    return found


def fields_from(words: Sequence[str]) -> dict[str, Any]:
    """Return the fields in words such as `sigma=1`.

    Raises:
        PrivsweepError: A word is not `field=value`, or a field is given twice.
    """
    fields: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise DomainError(f"Expected field=value, got {word!r}.")
        if name in fields:
            raise DomainError(f"Expected each field once, got {name} twice.")
        fields[name] = number(text)
    return fields


RELATIONS = {
    "add-remove": "one record is added or removed",
    "replace-one": "one record is replaced by another; also called substitution",
}
"""Neighbouring relations of a claimed epsilon, with their meanings."""

SYNONYMS = {
    **dict.fromkeys(("add-or-remove", "add-or-remove-one", "unbounded"), "add-remove"),
    **dict.fromkeys(("replace-special", "zeroed-out"), "zero-out"),
    **dict.fromkeys(
        ("substitution", "substitute", "replace", "replace-one-record", "bounded"), "replace-one"
    ),
    **{word: word for word in ("add-remove", "zero-out", "replace-one")},
}
"""Words for neighbouring relations, in lower case and with hyphens, with the words that are printed."""


def printed_relation(word: str) -> str:
    """Return the word that is printed for a neighbouring relation; other words unchanged.

    Example:
        >>> printed_relation("ADD_OR_REMOVE_ONE"), printed_relation("remove")
        ('add-remove', 'remove')
    """
    return SYNONYMS.get(word.lower().replace("_", "-"), word)


def relation_between_records(word: str) -> str:
    """Return the neighbouring relation of a claimed epsilon, under its stored name.

    Raises:
        DomainError: The word is unknown.

    Example:
        >>> relation_between_records("replace-one"), relation_between_records("add-remove")
        ('substitution', 'add-remove')
    """
    word = printed_relation(word)
    if word not in RELATIONS:
        meanings = "; ".join(f"{name}: {meaning}" for name, meaning in RELATIONS.items())
        names = ", ".join(RELATIONS)
        raise DomainError(f"Expected adjacency in {{{names}}} ({meanings}), got adjacency={word!r}.")
    return "substitution" if word == "replace-one" else word


def method_from(word: str) -> Method:
    """Return the method in a word: a name, or a name with options such as `name(option=value,option=value)`.

    Raises:
        PrivsweepError: The word has another form, or the name, an option or a value is unknown or invalid.

    Example:
        >>> method_from("allocation.montecarlo(samples=1e3)").identity()
        {'samples': 1000}
    """
    name, options = method_options(word)
    return find(name).from_knobs(options)


def method_options(word: str) -> tuple[str, dict[str, Any]]:
    """Return the name of a method and its options, from `name` or `name(option=value,option=value)`.

    Raises:
        DomainError: The word has another form, or an option is given twice.
    """
    spelled = re.fullmatch(r"([^()]+)(?:\(([^()]*)\))?", word.strip())
    if not spelled:
        raise DomainError(f"Expected a method as NAME or NAME(option=value,...), got {word!r}.")
    name, options = spelled[1].strip(), {}
    for pair in filter(None, (part.strip() for part in (spelled[2] or "").split(","))):
        option, equals, text = (part.strip() for part in pair.partition("="))
        if not equals or not option or not text:
            raise DomainError(f"Expected option=value in {word!r}, got {pair!r}.")
        if option in options:
            raise DomainError(f"Expected each option of {name} once, got {option} twice.")
        options[option] = number(text)
    return name, options


def value_of(word: object, name: str) -> Any:
    """Return the value of a word of a command line, or of an argument in Python.

    Raises:
        DomainError: It is neither a word nor a number.

    Example:
        >>> value_of("1e3", "steps"), value_of(5, "steps")
        (1000.0, 5)
    """
    if getattr(word, "shape", None) == ():  # a number of numpy
        word = word.item()  # type: ignore[attr-defined]
    if isinstance(word, str):
        return number(word)
    if isinstance(word, bool) or not hasattr(word, "__float__"):
        raise DomainError(f"Expected a number for {name}, got {str(word)[:60]!r}.")
    return operator.index(word) if hasattr(word, "__index__") else float(word)


def checked(problem: str, field: str, word: object) -> Value:
    """Return the value of a field of this problem, from a word of a command line or a value of Python.

    Raises:
        DomainError: The word is outside the domain of the field.

    Example:
        >>> checked("allocation-epsilon", "steps", "1e3")
        1000
    """
    return find_problem(problem).parameters[field].check(value_of(word, field))
