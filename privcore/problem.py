"""Base of problems: questions with validated parameters, proved trends, and constraints between fields."""

import math
import sys
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from functools import cache, partial
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Self, TypeVar, cast

from privcore import params
from privcore.constraint import Constraint
from privcore.errors import DomainError, unknown
from privcore.parameter import Choice, Declared, Text, Value
from privcore.stored_names import titled


class Trend(Enum):
    """Direction in which the truth moves when a parameter grows; claimed only with a proof."""

    INCREASING = 1
    DECREASING = -1


@dataclass(frozen=True, kw_only=True)
class Monotone:
    """A proved monotonicity of the truth in one parameter, with its proof."""

    trend: Trend
    proof: str


def grows(proof: str) -> Monotone:
    """Return the monotonicity of a truth that does not fall as a parameter grows."""
    return Monotone(trend=Trend.INCREASING, proof=proof)


def falls(proof: str) -> Monotone:
    """Return the monotonicity of a truth that does not rise as a parameter grows."""
    return Monotone(trend=Trend.DECREASING, proof=proof)


def proved(**trends: Monotone) -> Mapping[str, Monotone]:
    """Return the monotonicities of a truth in its parameters.

    Example:
        >>> proved(sigma=falls("More noise is post-processing."))["sigma"].trend.name
        'DECREASING'
    """
    return MappingProxyType(trends)


@dataclass(frozen=True, kw_only=True)
class LookupAxis:
    """A quantity by which lookups compare two problems: a field, or a product of whole numbers.

    Attributes:
        factors: Names of the fields whose product it is.
        monotone: The proved monotonicity of the truth in this quantity; None if nothing is proved.
    """

    factors: tuple[str, ...]
    monotone: Monotone | None

    @property
    def name(self) -> str:
        """Name of the field, or text of the product, such as `steps*epochs`."""
        return "*".join(self.factors)

    def value(self, given: Mapping[str, Any]) -> Any:
        """Return the quantity of a problem with these fields."""
        first, *rest = (given[name] for name in self.factors)
        return math.prod(rest, start=first) if rest else first


def product(*factors: str, monotone: Monotone) -> LookupAxis:
    """Return the product of fields through which alone the truth depends on these fields.

    Example:
        >>> product("steps", "epochs", monotone=grows("Steps compose.")).value({"steps": 3, "epochs": 2})
        6
    """
    return LookupAxis(factors=factors, monotone=monotone)


@cache
def _defaults(cls: type["Checked"]) -> dict[str, Value]:
    """Return the fields of a class with defaults; they are needed several times for each point of a sweep."""
    return {f.name: f.default for f in fields(cls) if f.default is not MISSING}


class Checked(Declared):
    """Base of problems, and of the phases of a training run: fields with constraints."""

    name: ClassVar[str]
    constraints: ClassVar[tuple[Constraint, ...]] = ()
    """Conditions on several fields, in the order in which they are checked."""
    stated: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Fields that a question of a user must state, although stores and sweep files may leave them out: their
    default is not the safe value, or no value is. Each with its values and their effect in words."""

    def __post_init__(self) -> None:
        """Replace every field by its canonical value, then check the constraints."""
        super().__post_init__()
        for constraint in self.constraints:
            constraint.check(self)

    @classmethod
    def defaults(cls) -> dict[str, Value]:
        """Return the fields that may be left out, with their default values."""
        return dict(_defaults(cls))  # type: ignore[arg-type]  # mypy looks for the hash of an instance

    @classmethod
    def from_fields(cls, given: Mapping[str, Any]) -> Self:
        """Return the object with these fields, as stores and sweep files have them.

        Raises:
            UnknownNameError: A field does not exist; the closest name is suggested.
            DomainError: A field is missing or outside its domain.
        """
        for name in given:
            if name not in cls.parameters:
                raise unknown(f"field of {cls.name}", str(name), list(cls.parameters))
        missing = [n for n in cls.parameters if n not in given and n not in cls.defaults()]
        if missing:
            raise DomainError(f"Expected {', '.join(missing)} for {cls.name}.")
        return cls(**given)

    @classmethod
    def asked(cls, given: Mapping[str, Any]) -> Self:
        """Return the object for a question of a user; unlike `from_fields`, it refuses earlier words.

        Raises:
            UnknownNameError: As `from_fields`.
            DomainError: As `from_fields`, or a field has a former word, or a field of `stated` is missing.
        """
        for name, value in given.items():
            if isinstance(parameter := cls.parameters.get(name), Choice):
                parameter.refuse_former(value)
        found = cls.from_fields(given)
        if reason := found.unstated(given):
            raise DomainError(reason)
        return found

    def unstated(self, given: Collection[str]) -> str | None:
        """Return a sentence about the first field of `stated` that was not given; None if all are known.

        A field is known without a statement if the other fields leave it one value only.

        Args:
            given: Names of the fields that were given.
        """
        for name, why in self.stated.items():
            if name not in given and any(map(partial(self._allows, name), self.others(name))):
                return f"Expected {name} for {self.name}: {why}."
        return None

    @classmethod
    def others(cls, name: str) -> list[Value]:
        """Return typical values of a field other than its default."""
        typical = dict.fromkeys(cls.parameters[name].typical_values())
        return [value for value in typical if value != cls.defaults().get(name)]

    def _allows(self, name: str, value: Value) -> bool:
        """Return whether a field may have another value, the other fields being the same."""
        try:
            self.from_fields({**self.as_fields(), name: value})
        except DomainError:
            return False
        return True

    def as_fields(self) -> dict[str, Value]:
        """Return all fields by name, in the order of declaration."""
        return {name: getattr(self, name) for name in self.parameters}

    def assumption(self) -> str:
        """Return the assumption behind the fields in words; empty if no file is taken as a distribution."""
        return self.assumed_by(self.as_fields())

    @classmethod
    def assumed_by(cls, fields: Mapping[str, Value]) -> str:
        """Return the assumption behind checked fields of this class; fields may be left out.

        Args:
            fields: Canonical values by name; other names do not matter.
        """
        texts = [(p.assumes, fields.get(n)) for n, p in cls.parameters.items() if isinstance(p, Text)]
        return "; ".join(filter(None, (assumes(str(text)) for assumes, text in texts if assumes and text)))

    def identity(self) -> dict[str, Value]:
        """Return the fields that differ from their defaults, which determine the id of a point."""
        defaults = self.defaults()
        return {n: v for n, v in self.as_fields().items() if n not in defaults or defaults[n] != v}


class Problem(Checked):
    """Base of all problems; a subclass is a frozen keyword-only dataclass of annotated parameters.

    The meaning of a field never changes, and a new field must have a default with which stored answers stay
    true.
    """

    topic: ClassVar[str]
    """Area of the question: the name of its folder in `privcore`."""
    asks: ClassVar[str]
    """Quantity asked for, which is the name of a column in reports, such as epsilon or delta."""
    given: ClassVar[str] = ""
    """Name of the field at which a quantity of a privacy curve is asked, such as delta, or empty."""
    largest: ClassVar[float] = float("inf")
    """Largest possible truth."""
    whole: ClassVar[bool] = False
    """Whether the truth is the least whole number from which a condition holds."""
    monotone: ClassVar[Mapping[str, Monotone]] = proved()
    """Monotonicities of the truth in fields; a class has those of its bases, too."""
    products: ClassVar[tuple[LookupAxis, ...]] = ()
    """Products of fields, without a common factor, through which alone the truth depends on these fields."""
    irrelevant: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Fields on which the truth does not depend, with the proof."""
    exp_convex: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """At most one field in which the exponential of the truth is convex and does not grow, with the proof."""

    def __init_subclass__(cls) -> None:
        """Collect the monotonicities from the bases."""
        super().__init_subclass__()
        stated = [vars(base).get("monotone", {}) for base in reversed(cls.__mro__)]
        cls.monotone = proved(**{name: each for one in stated for name, each in one.items()})

    @property
    def at(self) -> float:
        """The number at which a quantity of a privacy curve is asked; 0 if there is none."""
        return float(getattr(self, self.given)) if self.given else 0.0

    def relation(self) -> str:
        """Return the neighbouring relation of a problem that has no field for it; empty if none matters."""
        return ""

    @classmethod
    def lookup_axes(cls) -> tuple[LookupAxis, ...]:
        """Return the quantities on which alone the truth depends."""
        of_field = {name: axis for axis in cls.products for name in axis.factors}
        fields = [name for name in cls.parameters if name not in cls.irrelevant]
        found = [of_field.get(n) or LookupAxis(factors=(n,), monotone=cls.monotone.get(n)) for n in fields]
        return tuple(dict.fromkeys(found))


# ---------------------------------------------------------------------- quantities of a privacy curve

PROFILE = "The privacy profile is non-increasing in epsilon; its inverse is non-increasing in delta."
CONVEX = (
    "The profile is the supremum of P(S) - e^epsilon Q(S) over neighbours and events, so it is convex in "
    "e^epsilon; so e^epsilon is convex in delta, below its chords and above their extensions."
)

S = TypeVar("S", bound=Problem)


class CurveQuantity(Problem):
    """Base of the quantities, each with its name `asks`, and the field `given` at which it is asked."""

    short: ClassVar[str]
    """The last word of the stored names of problems about it."""
    says: ClassVar[str]
    """The first words of the documentation of these problems."""


class EpsilonAtDelta(CurveQuantity):
    """The smallest epsilon at a delta."""

    asks = short = "epsilon"
    given = "delta"
    says = "Smallest epsilon"
    monotone = proved(delta=falls(PROFILE))
    exp_convex = MappingProxyType({"delta": CONVEX})

    delta: Annotated[float, params.DELTA]


class DeltaAtEpsilon(CurveQuantity):
    """The delta at an epsilon."""

    asks = short = "delta"
    given = "epsilon"
    says = "Delta, at a given epsilon,"
    largest = 1.0
    monotone = proved(epsilon=falls(PROFILE))

    epsilon: Annotated[float, params.EPSILON]


def asked(
    sampler: str,
    kind: type[S],
    about: str,
    quantities: tuple[type[CurveQuantity], ...] = (EpsilonAtDelta, DeltaAtEpsilon),
) -> tuple[type[S], ...]:
    """Return the problems about a sampler, one for each quantity.

    Their fields are those of the last base of the kind, then that of the quantity, then all others. The
    problems belong to the calling module, under their stored names in camel case, as the registry and pickle
    expect: `PoissonEpsilon, PoissonDelta = asked("poisson", Poisson, ...)`.

    Args:
        sampler: Stored name of the sampler: the problems are `<sampler>-epsilon`, `<sampler>-delta`.
        kind: Base of the problems, with the fields of the sampler.
        about: The documentation of the problems without its first words, which name the quantity.
        quantities: The quantities.
    """
    module = sys._getframe(1).f_globals["__name__"]
    *others, last = kind.__bases__
    found = []
    for quantity in quantities:
        name = f"{sampler}-{quantity.short}"
        notes = "".join((quantity.__doc__ or "").partition("\n\n")[1:])
        body = {"__doc__": f"{quantity.says} {about}{notes}", "__module__": module, "name": name}
        row = type(titled(name), (kind, *others, quantity, last), body)
        found.append(cast(type[S], row))
    return tuple(found)
