"""Quantities of a privacy curve, and the problems that ask for each of them about a sampler."""

import sys
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar, TypeVar, cast

from privcore import params
from privcore.problem import Problem, falls, proved
from privcore.stored_names import titled

PROFILE = "The privacy profile is non-increasing in epsilon; its inverse is non-increasing in delta."
CONVEX = (
    "The profile is the supremum of P(S) - e^epsilon Q(S) over neighbours and events, so it is convex in "
    "e^epsilon; so e^epsilon is convex in delta, below its chords and above their extensions."
)

S = TypeVar("S", bound=Problem)


@dataclass(frozen=True, kw_only=True)
class Quantity(Problem):
    """Base of the quantities, each with its name `asks`, and the field `given` at which it is asked."""

    short: ClassVar[str]
    """The last word of the stored names of problems about it."""
    says: ClassVar[str]
    """The first words of the documentation of these problems."""


@dataclass(frozen=True, kw_only=True)
class EpsilonAtDelta(Quantity):
    """The smallest epsilon at a delta."""

    asks = short = "epsilon"
    given = "delta"
    says = "Smallest epsilon"
    monotone = proved(delta=falls(PROFILE))
    exp_convex = MappingProxyType({"delta": CONVEX})

    delta: Annotated[float, params.DELTA]


@dataclass(frozen=True, kw_only=True)
class DeltaAtEpsilon(Quantity):
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
    quantities: tuple[type[Quantity], ...] = (EpsilonAtDelta, DeltaAtEpsilon),
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
        found.append(cast(type[S], dataclass(frozen=True, kw_only=True)(row)))
    return tuple(found)
