"""Base of methods: a method answers some problems, and states its claims and its cost before it runs."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self

from privcore.answer import Answer
from privcore.errors import UnknownNameError, unknown
from privcore.parameter import Declared, Parameter, Value
from privcore.problem import Problem


class Direction(StrEnum):
    """Kind of bound that a method claims to give, before it runs."""

    ENCLOSURE = "enclosure"
    UPPER = "upper"
    LOWER = "lower"
    ESTIMATE = "estimate"

    def allows(self, lower: float, upper: float, largest: float) -> bool:
        """Return whether a method with this claim can give these ends.

        Args:
            lower: Lower end; 0 says nothing.
            upper: Upper end; `largest` or more says nothing.
            largest: Largest possible truth.

        Example:
            >>> Direction.UPPER.allows(0.0, 0.5, 1.0), Direction.ESTIMATE.allows(0.0, 0.5, 1.0)
            (True, False)
        """
        below = self in (Direction.ENCLOSURE, Direction.LOWER)
        above = self in (Direction.ENCLOSURE, Direction.UPPER)
        return (below or lower <= 0.0) and (above or upper >= largest)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Estimated upper limits of time and memory; the contract tests allow a fixed factor above them."""

    seconds: float
    bytes: float


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    P = TypeVar("P", bound=Problem, default=Any)  # `Method` without a parameter answers any problems
else:
    from typing import TypeVar

    P = TypeVar("P", bound=Problem)


class Method(Declared, ABC, Generic[P]):
    """Base of all methods: class attributes are claims, fields are options (stored as `knobs`).

    An option (`tolerance: Annotated[float, params.TOLERANCE] = 0.01`) changes tightness or speed, never
    the truth. A subclass is a frozen keyword-only dataclass; every option has a default.
    """

    name: ClassVar[str]
    problems: ClassVar[tuple[type[Problem], ...]]
    direction: ClassVar[Direction]
    reference: ClassVar[str]
    version: ClassVar[int] = 1
    shares: ClassVar[tuple[str, ...]] = ()
    """Problem fields; points that agree in them share their expensive state."""
    covers: ClassVar[tuple[str, ...]] = ()
    """Names of methods whose intervals always contain that of this method, at the same confidence."""
    knobs: ClassVar[Mapping[str, Parameter]] = MappingProxyType({})

    def __init_subclass__(cls) -> None:
        """Name the declared parameters as options."""
        super().__init_subclass__()
        cls.knobs = cls.parameters

    @classmethod
    def from_knobs(cls, given: Mapping[str, Any]) -> Self:
        """Return the method with these options; an unknown name raises `PrivsweepError`."""
        for name in given:
            if not cls.knobs:
                raise UnknownNameError(f"Unknown option of {cls.name} {name}: the method has no options.")
            if name not in cls.knobs:
                raise unknown(f"option of {cls.name}", str(name), list(cls.knobs))
        return cls(**given)

    def identity(self) -> dict[str, Value]:
        """Return the options that differ from their defaults."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}

    def applies(self, problem: P) -> str | None:
        """Return None if the theorem covers the problem, else the reason why not."""
        return None

    @abstractmethod
    def cost(self, problem: P) -> Cost:
        """Return a conservative estimate of the time and memory of an answer, without computing it."""

    @abstractmethod
    def answer(self, problem: P, seed: int) -> Answer:
        """Return the answer to a problem that the method covers; the seed is the only randomness."""
