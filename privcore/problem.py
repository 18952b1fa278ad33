"""A problem: a mathematical question with validated parameters, independent of who answers it."""

import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from types import MappingProxyType
from typing import Any, ClassVar, Self

from privcore.errors import DomainError, unknown
from privcore.parameter import Parameter, Value


class Trend(Enum):
    """In which direction the truth moves when a parameter grows; claimed only with a proof."""

    INCREASING = 1
    DECREASING = -1


@dataclass(frozen=True, kw_only=True)
class Monotone:
    """A proved monotonicity of the truth in one parameter, with where the proof stands."""

    trend: Trend
    proof: str


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Base of all problems; a subclass is a frozen keyword-only dataclass of annotated parameters.

    A field is written `sigma: Annotated[float, params.SIGMA]`. Its name is the parameter's, and its
    meaning never changes: a new field must have a default that keeps the old truth.
    """

    name: ClassVar[str]
    topic: ClassVar[str]
    """The area of questions that it belongs to: the folder of `privcore` that it lives in."""
    asks: ClassVar[str]
    """The quantity asked for: the name of a column in reports, such as epsilon or delta."""
    largest: ClassVar[float] = float("inf")
    """No truth of this problem exceeds this."""
    monotone: ClassVar[Mapping[str, Monotone]] = MappingProxyType({})
    parameters: ClassVar[Mapping[str, Parameter]] = MappingProxyType({})

    def __init_subclass__(cls) -> None:
        """Collect the declared parameters from the annotations."""
        super().__init_subclass__()
        hints = typing.get_type_hints(cls, include_extras=True)
        declared = {
            n: h.__metadata__[0] for n, h in hints.items() if typing.get_origin(h) is typing.Annotated
        }
        cls.parameters = MappingProxyType(declared)

    def __post_init__(self) -> None:
        """Replace every field by its canonical value, then check what concerns several fields."""
        for name, parameter in self.parameters.items():
            object.__setattr__(self, name, parameter.check(getattr(self, name)))
        self.check()

    def check(self) -> None:
        """Raise `DomainError` where fields contradict one another."""

    @classmethod
    def defaults(cls) -> dict[str, Value]:
        """Return the fields that may be left out, with their values."""
        return {f.name: f.default for f in fields(cls) if f.default is not MISSING}

    @classmethod
    def from_fields(cls, given: Mapping[str, Any]) -> Self:
        """Return the problem with these fields.

        Raises:
            UnknownNameError: A field does not exist; the closest one is suggested.
            DomainError: A field is missing or outside its domain.
        """
        for name in given:
            if name not in cls.parameters:
                raise unknown(f"field of {cls.name}", str(name), list(cls.parameters))
        missing = [n for n in cls.parameters if n not in given and n not in cls.defaults()]
        if missing:
            raise DomainError(f"Expected {', '.join(missing)} for {cls.name}.")
        return cls(**given)

    def as_fields(self) -> dict[str, Value]:
        """Return all fields by name, in the order of declaration."""
        return {name: getattr(self, name) for name in self.parameters}

    def identity(self) -> dict[str, Value]:
        """Return the fields that differ from their defaults: what a point's id is made of."""
        defaults = self.defaults()
        return {n: v for n, v in self.as_fields().items() if n not in defaults or defaults[n] != v}
