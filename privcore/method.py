"""A method: one way to answer some problems, with its claims and its cost stated before it runs."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Self, get_origin, get_type_hints

from privcore.answer import Answer
from privcore.errors import unknown
from privcore.parameter import Parameter, Value
from privcore.problem import Problem


class Direction(StrEnum):
    """What a method claims about its answers before it runs."""

    ENCLOSURE = "enclosure"
    UPPER = "upper"
    LOWER = "lower"
    ESTIMATE = "estimate"


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What an evaluation will need at most, to within the factor that the contract tests allow."""

    seconds: float
    bytes: float


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    P = TypeVar("P", bound=Problem, default=Any)  # `Method` alone is a method for whatever problems
else:
    from typing import TypeVar

    P = TypeVar("P", bound=Problem)


@dataclass(frozen=True, kw_only=True)
class Method(ABC, Generic[P]):
    """Base of all methods: class attributes are claims, fields are knobs.

    A knob (`tolerance: Annotated[float, params.TOLERANCE] = 0.01`) changes tightness or speed, never
    the truth. A subclass is a frozen keyword-only dataclass; every knob has a default.
    """

    name: ClassVar[str]
    problems: ClassVar[tuple[type[Problem], ...]]
    direction: ClassVar[Direction]
    reference: ClassVar[str]
    version: ClassVar[int] = 1
    shares: ClassVar[tuple[str, ...]] = ()
    """Problem fields whose equality lets points share their expensive state."""
    covers: ClassVar[tuple[str, ...]] = ()
    """Names of methods whose intervals contain this one, which holds at the same confidence all the same."""
    knobs: ClassVar[Mapping[str, Parameter]] = MappingProxyType({})

    def __init_subclass__(cls) -> None:
        """Collect the declared knobs from the annotations."""
        super().__init_subclass__()
        hints = get_type_hints(cls, include_extras=True)
        declared = {n: h.__metadata__[0] for n, h in hints.items() if get_origin(h) is Annotated}
        cls.knobs = MappingProxyType(declared)

    def __post_init__(self) -> None:
        """Replace every knob by its canonical value."""
        for name, parameter in self.knobs.items():
            object.__setattr__(self, name, parameter.check(getattr(self, name)))

    @classmethod
    def from_knobs(cls, given: Mapping[str, Any]) -> Self:
        """Return the method with these knobs; an unknown one raises `UnknownNameError`."""
        for name in given:
            if name not in cls.knobs:
                raise unknown(f"option of {cls.name}", str(name), list(cls.knobs))
        return cls(**given)

    def identity(self) -> dict[str, Value]:
        """Return the knobs that differ from their defaults."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}

    def applies(self, problem: P) -> str | None:
        """Return None where the theorem covers the problem, else the reason why not."""
        return None

    @abstractmethod
    def cost(self, problem: P) -> Cost:
        """Return what an answer needs, conservatively, without computing it."""

    @abstractmethod
    def answer(self, problem: P, seed: int) -> Answer:
        """Return the answer to a problem to which the method applies; only the seed is random."""
