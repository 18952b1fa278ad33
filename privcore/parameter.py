"""Parameters: named quantities with a domain of real numbers, integers, words or texts."""

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import FrozenInstanceError, dataclass
from types import MappingProxyType
from typing import Annotated, dataclass_transform, get_origin, get_type_hints

from privcore.errors import DomainError

SMALLEST_NORMAL = 2.2250738585072014e-308
Value = float | int | str


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A named quantity with its domain, which is used by validation, schemas, docs and tests."""

    name: str
    symbol: str
    meaning: str
    unit: str = "1"

    @property
    def domain(self) -> str:
        """Text of the domain for error messages and docs."""
        raise NotImplementedError

    def check(self, value: object) -> Value:
        """Return the value in its canonical type, or raise `DomainError`."""
        raise NotImplementedError

    def typical_values(self) -> Sequence[Value]:
        """A few values that are common in practice, for tests and docs."""
        raise NotImplementedError

    def _as_float(self, value: object) -> float:
        """Return a real number as a float; booleans, text and other types are rejected."""
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise self._refuse(value)
        try:
            return float(value)
        except OverflowError:
            raise self._refuse(value) from None

    def _refuse(self, value: object) -> DomainError:
        shown = repr(value) if isinstance(value, str | bool) or value is None else f"{value}"
        return DomainError(f"Expected {self.name} in {self.domain}, got {self.name}={shown[:60]}.")


@dataclass(frozen=True, kw_only=True)
class Real(Parameter):
    """A finite real number in an interval; `lower_open` and `upper_open` exclude an end.

    If `infinite` is set, infinity is a value too; it means that the limit is absent.
    """

    lower: float
    upper: float
    lower_open: bool = False
    upper_open: bool = False
    infinite: bool = False
    typical: tuple[float, ...]

    @property
    def domain(self) -> str:
        """Interval notation, such as `(0, 1)`."""
        left, right = "(["[not self.lower_open], ")]"[not self.upper_open]
        return f"{left}{self.lower:.12g}, {self.upper:.12g}{right}{' or inf' if self.infinite else ''}"

    def check(self, value: object) -> float:
        """Return `value` as a float; NaN, infinities, -0.0, subnormals, booleans and text are rejected."""
        if self.infinite and value == "inf":  # JSON has no number for infinity
            return math.inf
        x = self._as_float(value)
        if self.infinite and x == math.inf:
            return x
        negative_zero = x == 0 and math.copysign(1.0, x) < 0
        if not math.isfinite(x) or negative_zero or 0 < abs(x) < SMALLEST_NORMAL:
            raise self._refuse(value)
        below = x <= self.lower if self.lower_open else x < self.lower
        above = x >= self.upper if self.upper_open else x > self.upper
        if below or above:
            raise self._refuse(value)
        return x

    def typical_values(self) -> Sequence[float]:
        """The declared typical values."""
        return self.typical


@dataclass(frozen=True, kw_only=True)
class Integer(Parameter):
    """A whole number in a closed interval; a float is accepted if it is exactly whole (1e6)."""

    lower: int
    upper: int
    typical: tuple[int, ...]

    @property
    def domain(self) -> str:
        """Set notation, such as `{1, ..., 1000000000}`."""
        return f"{{{self.lower}, ..., {self.upper}}}"

    def check(self, value: object) -> int:
        """Return `value` as an int; fractions, NaN, booleans and text are rejected."""
        x = self._as_float(value)
        if not x.is_integer() or (x == 0 and math.copysign(1.0, x) < 0) or not self.lower <= x <= self.upper:
            raise self._refuse(value)
        return int(x)

    def typical_values(self) -> Sequence[int]:
        """The declared typical values."""
        return self.typical


@dataclass(frozen=True, kw_only=True)
class Choice(Parameter):
    """One of a few words.

    Attributes:
        choices: The words.
        former: Pairs of a word of earlier releases and the word that replaces it: stores and sweep files
            may have the former word. Questions of users may not, see `refuse_former`.
        refusal: Message for a question with a former word.
    """

    choices: tuple[str, ...]
    former: tuple[tuple[str, str], ...] = ()
    refusal: str = ""

    @property
    def domain(self) -> str:
        """The words in braces."""
        return "{" + ", ".join(self.choices) + "}"

    def check(self, value: object) -> str:
        """Return the word, or that which replaces a former word, or raise `DomainError`."""
        if not isinstance(value, str):
            raise self._refuse(value)
        word = dict(self.former).get(value, value)
        if word not in self.choices:
            raise self._refuse(value)
        return word

    def refuse_former(self, value: object) -> None:
        """Raise `DomainError` with the reason if a value is a former word."""
        if value in [old for old, _ in self.former]:
            raise DomainError(self.refusal)

    def typical_values(self) -> Sequence[str]:
        """All the words."""
        return self.choices


@dataclass(frozen=True, kw_only=True)
class Text(Parameter):
    """A text with its own grammar, such as the name of a distribution with its parameters.

    Attributes:
        grammar: The grammar, as messages and docs print it.
        canonical: Function that returns the canonical spelling of a text, or None if the text does not
            match the grammar; raises `DomainError` if the text matches but its values are impossible.
        typical: Canonical texts.
        assumes: Function that returns the assumption behind a canonical text, in words, or an empty text;
            None if no text needs one.
    """

    grammar: str
    canonical: Callable[[str], str | None]
    typical: tuple[str, ...]
    assumes: Callable[[str], str] | None = None

    @property
    def domain(self) -> str:
        """The grammar."""
        return self.grammar

    def check(self, value: object) -> str:
        """Return the canonical spelling, or raise `DomainError`; a number is read as its text."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = repr(value)
        spelled = self.canonical(value) if isinstance(value, str) else None
        if spelled is None:
            raise self._refuse(value)
        return spelled

    def typical_values(self) -> Sequence[str]:
        """The declared texts."""
        return self.typical


_NONE: Mapping[str, Parameter] = MappingProxyType({})


@dataclass_transform(kw_only_default=True, frozen_default=True)
@dataclass(frozen=True, kw_only=True)
class Declared:
    """Base of frozen dataclasses whose fields have declared domains; their classes need no decorator.

    A field is written `sigma: Annotated[float, params.SIGMA]`. Its name is that of the parameter.
    """

    parameters = _NONE

    def __init_subclass__(cls) -> None:
        """Make a dataclass of the class, and collect the declared parameters from the annotations."""
        super().__init_subclass__()
        dataclass(frozen=True, kw_only=True)(cls)
        del cls.__setattr__, cls.__delattr__  # so that a class may also have the decorator; see below
        hints = get_type_hints(cls, include_extras=True)
        declared = {n: h.__metadata__[0] for n, h in hints.items() if get_origin(h) is Annotated}
        cls.parameters = MappingProxyType(declared)

    def __post_init__(self) -> None:
        """Replace every field by its canonical value."""
        for name, parameter in self.parameters.items():
            object.__setattr__(self, name, parameter.check(getattr(self, name)))


def _frozen(self: object, name: str, value: object = None) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


Declared.__setattr__ = Declared.__delattr__ = _frozen  # type: ignore[method-assign]
