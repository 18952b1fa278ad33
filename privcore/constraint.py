"""Constraints between fields: conditions that the domains of single fields do not express."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from string import Formatter
from typing import Any, ClassVar

from privcore.errors import DomainError


@dataclass(frozen=True)
class Constraint(ABC):
    """Base of all constraints: a field, and a bound for it.

    Attributes:
        field: Name of the field, or of a property of the problem.
        bound: A value, or the name of another field.
        message: Text of the error, with names of fields in braces, and `{bound}` for the value of the bound.
        where: A constraint that selects the problems to check; None selects all.
    """

    kind: ClassVar[str]

    field: str
    bound: Any
    message: str = ""
    where: "Constraint | None" = None

    @property
    def names(self) -> set[str]:
        """Names of the fields that are compared: two, or one if the bound is a value."""
        return {self.field, self.bound} if isinstance(self.bound, str) else {self.field}

    def check(self, problem: object) -> None:
        """Raise `DomainError` if a problem, or any object with its fields, breaks the constraint."""
        if self.where is not None and not self.where.holds(problem):
            return
        if not self.holds(problem):
            names = {name for _, name, _, _ in Formatter().parse(self.message) if name} - {"bound"}
            values = {name: getattr(problem, name) for name in names}
            raise DomainError(self.message.format(bound=self._value(problem), **values))

    def holds(self, problem: object) -> bool:
        """Return whether the field satisfies the comparison."""
        return self._compare(getattr(problem, self.field), self._value(problem))

    def as_content(self) -> dict[str, Any]:
        """Return the constraint in JSON types, for programs in other languages."""
        where = None if self.where is None else self.where.as_content()
        return {"kind": self.kind} | vars(self) | {"where": where}

    def _value(self, problem: object) -> Any:
        """Return the value of the bound."""
        return self.bound

    @abstractmethod
    def _compare(self, value: Any, bound: Any) -> bool:
        """Return whether a value of the field satisfies the comparison."""


@dataclass(frozen=True)
class AtLeast(Constraint):
    """The field is at least a number."""

    kind = "at_least"

    def _compare(self, value: Any, bound: Any) -> bool:
        return bool(value >= bound)


@dataclass(frozen=True)
class AtMost(Constraint):
    """The field is at most a number, or at most another field."""

    kind = "at_most"

    def __post_init__(self) -> None:
        """Set the default message."""
        if not self.message:
            got = f"{self.field}={{{self.field}}}, {self.bound}={{bound}}"
            object.__setattr__(self, "message", f"Expected {self.field} <= {self.bound}, got {got}.")

    def _value(self, problem: object) -> Any:
        return getattr(problem, self.bound) if isinstance(self.bound, str) else self.bound

    def _compare(self, value: Any, bound: Any) -> bool:
        return bool(value <= bound)


@dataclass(frozen=True)
class CountOf(Constraint):
    """The field is an integer from 0 to the length of the comma-separated list in another field."""

    kind = "count_of"

    def _value(self, problem: object) -> Any:
        return len(getattr(problem, self.bound).split(","))

    def _compare(self, value: Any, bound: Any) -> bool:
        return value in range(bound + 1)


@dataclass(frozen=True)
class OneOf(Constraint):
    """The field has one of these values."""

    kind = "one_of"

    def _compare(self, value: Any, bound: Any) -> bool:
        return value in bound


@dataclass(frozen=True)
class NoneOf(Constraint):
    """The field has none of these values."""

    kind = "none_of"

    def _compare(self, value: Any, bound: Any) -> bool:
        return value not in bound
