"""All problems and methods: their classes, imported when they are used, and the search for one by name.

The stored names and the modules behind them are in `privcore.stored_names`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Generic, TypeVar

from privcore import stored_names
from privcore.errors import unknown
from privcore.method import Method
from privcore.problem import Problem

T = TypeVar("T", Method[Any], Problem)


class Classes(Sequence[type[T]], Generic[T]):
    """The classes of a table, in its order. Names and `len` import nothing, taking a class its module."""

    def __init__(self, table: Mapping[str, str]) -> None:
        """Take the places of classes, such as `allocation.certified:AllocationCertified`, by stored name."""
        self.table: dict[str, str | type[T]] = {**table}

    @property
    def names(self) -> tuple[str, ...]:
        """The stored names, in the order of the table."""
        return tuple(self.table)

    def get(self, name: str) -> type[T] | None:
        """Return the class of that name, or None."""
        place = self.table.get(name)
        if not isinstance(place, str):  # a class that was registered, or no such name
            return place
        module, _, cls = place.partition(":")
        found: type[T] = getattr(import_module(f"privcore.{module}"), cls)
        return found

    def topic(self, name: str) -> str | None:
        """Return the package of a class below `privcore`; None for a class that was registered."""
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
        UnknownNameError: There is none; the closest name is suggested.
    """
    if kind := METHODS.get(name):
        return kind
    raise unknown("method", name, list(METHODS.names))


def find_problem(name: str) -> type[Problem]:
    """Return the problem class of that name, such as `allocation-epsilon`.

    Raises:
        UnknownNameError: There is none; the closest name is suggested.
    """
    if kind := PROBLEMS.get(name):
        return kind
    raise unknown("problem", name, list(PROBLEMS.names))


def answering(kind: type[Problem]) -> list[type[Method]]:
    """Return the methods for a kind of problem; only those of its topic are imported."""
    near = [name for name in METHODS.names if METHODS.topic(name) in (kind.topic, None)]
    return [method for method in map(find, near) if issubclass(kind, method.problems)]


def methods_for(problem: Problem) -> dict[type[Method], str | None]:
    """Return every method for this kind of problem; None where it applies, else the reason why not."""
    return {method: method().applies(problem) for method in answering(type(problem))}


def versions() -> dict[str, int]:
    """Return the version of every method by its name, without importing it."""
    return {
        name: stored_names.VERSIONS.get(name, 1) if isinstance(place, str) else place.version
        for name, place in METHODS.table.items()
    }


def register(*methods: type[Method]) -> None:
    """Add methods, and the problems that only they answer, for as long as this process lives."""
    for method in methods:
        METHODS.table[method.name] = method
        for kind in method.problems:
            PROBLEMS.table.setdefault(kind.name, kind)


@contextmanager
def registered(*methods: type[Method]) -> Iterator[None]:
    """Add methods, and the problems that only they answer, while a `with` statement lasts.

    This is how a test gives the registry a method of its own. A method of the same name is hidden meanwhile.

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
