"""Registry of all problems and methods: finds a class by its name, and imports it on first use.

The stored names and the modules of their classes are in `privcore.stored_names`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Generic, TypeVar

from privcore import stored_names
from privcore.errors import unknown
from privcore.method import Direction, Method
from privcore.problem import Problem

TIGHT = 0.01
"""Relative width of a bracket at which no more methods are used."""

T = TypeVar("T", Method[Any], Problem)


class Classes(Sequence[type[T]], Generic[T]):
    """The classes of a table, in its order. Names and `len` import nothing; taking a class imports it."""

    def __init__(self, table: Mapping[str, str]) -> None:
        """Take a table from stored names to places, such as `allocation.certified:AllocationCertified`."""
        self.table: dict[str, str | type[T]] = {**table}

    @property
    def names(self) -> tuple[str, ...]:
        """The stored names, in the order of the table."""
        return tuple(self.table)

    def get(self, name: str) -> type[T] | None:
        """Return the class of that name, or None."""
        place = self.table.get(name)
        if not isinstance(place, str):  # a registered class, or None for an unknown name
            return place
        module, _, cls = place.partition(":")
        found: type[T] = getattr(import_module(f"privcore.{module}"), cls)
        return found

    def topic(self, name: str) -> str | None:
        """Return the package of a class below `privcore`; None for a registered class."""
        place = self.table.get(name)
        return place.partition(".")[0] if isinstance(place, str) else None

    def __len__(self) -> int:
        return len(self.table)

    def __contains__(self, kind: object) -> bool:
        name = getattr(kind, "name", None)
        return isinstance(name, str) and self.get(name) is kind

    def __iter__(self) -> Iterator[type[T]]:
        return (kind for name in self.names if (kind := self.get(name)))

    def __getitem__(self, index: Any) -> Any:
        return tuple(self)[index]


METHODS: Classes[Method[Any]] = Classes(stored_names.METHODS)
PROBLEMS: Classes[Problem] = Classes(stored_names.PROBLEMS)


def find(name: str) -> type[Method]:
    """Return the method class of that name, such as `allocation.certified`.

    Raises:
        UnknownNameError: The name is unknown; the closest name is suggested.
    """
    if kind := METHODS.get(name):
        return kind
    raise unknown("method", name, list(METHODS.names))


def find_problem(name: str) -> type[Problem]:
    """Return the problem class of that name, such as `allocation-epsilon`.

    Raises:
        UnknownNameError: The name is unknown; the closest name is suggested.
    """
    if kind := PROBLEMS.get(name):
        return kind
    raise unknown("problem", name, list(PROBLEMS.names))


def answering(kind: type[Problem]) -> list[type[Method]]:
    """Return the methods for a kind of problem; only methods of its topic are loaded."""
    near = [name for name in METHODS.names if METHODS.topic(name) in (kind.topic, None)]
    return [method for method in map(find, near) if issubclass(kind, method.problems)]


def methods_for(problem: Problem) -> dict[type[Method], str | None]:
    """Return every method for this kind of problem, with None if it applies, else the reason why not."""
    return {method: method().applies(problem) for method in answering(type(problem))}


def promise(method: Method, problem: Problem) -> tuple[bool, bool, float]:
    """Return a sort key: methods that apply first, then methods that give both ends, then cheap methods."""
    if method.applies(problem) is not None:
        return True, True, math.inf
    one_sided = method.direction is not Direction.ENCLOSURE
    return False, one_sided, method.cost(problem).seconds


def versions() -> dict[str, int]:
    """Return the version of every method by name, without importing the methods."""
    return {
        name: stored_names.VERSIONS.get(name, 1) if isinstance(place, str) else place.version
        for name, place in METHODS.table.items()
    }


def used_versions() -> dict[str, int]:
    """Return the oldest version of every method, by name, whose stored answers are used."""
    return {name: stored_names.USED_SINCE.get(name, newest) for name, newest in versions().items()}


def register(*methods: type[Method]) -> None:
    """Add methods, and the problems that only they answer, for the lifetime of this process."""
    for method in methods:
        METHODS.table[method.name] = method
        for kind in method.problems:
            PROBLEMS.table.setdefault(kind.name, kind)


@contextmanager
def registered(*methods: type[Method]) -> Iterator[None]:
    """Add methods, and the problems that only they answer, for the duration of a `with` statement.

    Tests use it to register their own methods. A registered method hides an existing one of the same name.

    Example:
        >>> from privcore import Method
        >>> class Guess(Method):
        ...     name, problems = "example.guess", (find_problem("unamplified-epsilon"),)
        >>> with registered(Guess):
        ...     find("example.guess") is Guess, Guess in METHODS
        (True, True)
        >>> Guess in METHODS
        False
    """
    before = METHODS.table, PROBLEMS.table
    METHODS.table, PROBLEMS.table = dict(METHODS.table), dict(PROBLEMS.table)
    try:
        register(*methods)
        yield
    finally:
        METHODS.table, PROBLEMS.table = before
