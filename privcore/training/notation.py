"""Kinds of phases, and the notation of a run: one line, such as `poisson(sigma=1,...); none(...)`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, TypeVar

from privcore.distributions.notation import CALL, number, spelled
from privcore.errors import DomainError, unknown
from privcore.parameter import Choice, Text
from privcore.problem import Checked
from privcore.stored_names import SAMPLERS
from privcore.training.phase import Phase
from privcore.training.sizes import with_steps


def _phase(sampler: str) -> type[Phase]:
    """Return the kind of phase of a sampler."""
    module, _, kind = SAMPLERS[sampler].place.partition(":")
    found: type[Phase] = getattr(import_module(f"privcore.training.{module}"), kind)
    return found


PHASES = {kind.name: kind for kind in sorted(map(_phase, SAMPLERS), key=lambda kind: kind.__name__)}
"""Kinds of phases by name; the names are the words of `--sampling`."""
MOST_PHASES = 1000
"""Largest number of phases of a run."""
_FIELD = re.compile(r"\s*([a-z_]+)\s*=\s*([^=]+)")


Part = TypeVar("Part", bound=Checked)


def grammar(kinds: Iterable[str]) -> str:
    """Return the grammar of parts with these names."""
    return "{KIND(FIELD=VALUE,...); ... of " + ", ".join(kinds) + "}"


def phase_named(sampling: str, fields: Mapping[str, Any]) -> Phase:
    """Return the phase with this sampling and these fields.

    Examples and batch size may replace the steps and the sampling probability.

    Raises:
        UnknownNameError: The sampling or a field does not exist; the closest name is suggested.
        DomainError: A field is missing or outside its domain.
    """
    return _named(sampling, fields, PHASES)


def _named(name: str, fields: Mapping[str, Any], kinds: Mapping[str, type[Part]]) -> Part:
    if name not in kinds:
        raise unknown("sampling", name, list(kinds))
    kind = kinds[name]
    sized = with_steps(name, kind.parameters, fields) if name in PHASES and "batch_size" in fields else fields
    return kind.from_fields(sized)


@lru_cache(maxsize=256)
def phases(text: str) -> tuple[Phase, ...]:
    """Return the phases of a text; the result is shared.

    Raises:
        UnknownNameError: As in `phase_named`.
        DomainError: The text does not match the grammar, or a field is outside its domain.

    Example:
        >>> [each.uses for each in phases("none(sigma=2, steps=3); shuffling(sigma=1,steps=9,redraw=once)")]
        [3, 1]
    """
    return parsed(text, PHASES)


def parsed(text: str, kinds: Mapping[str, type[Part]]) -> tuple[Part, ...]:
    """Return the parts that a text names, each of one of these kinds; raises as `phases`."""
    calls = [call.strip() for call in text.split(";") if call.strip()]
    if len(calls) > MOST_PHASES:
        raise DomainError(f"Expected at most {MOST_PHASES} phases, got {len(calls)}.")
    found = [CALL.fullmatch(call) for call in calls]
    if not found or None in found:
        raise DomainError(f"Expected phases in {grammar(kinds)}, got {text[:60]!r}.")
    return tuple(_part(call, kinds) for call in found if call)


def _part(call: re.Match[str], kinds: Mapping[str, type[Part]]) -> Part:
    """Return the part of a name and its fields."""
    fields: dict[str, Any] = {}
    for word in call[2].split(",") if call[2].strip() else []:
        field = _FIELD.fullmatch(word)
        if field is None:
            raise DomainError(f"Expected FIELD=VALUE in the phase {call[1]}, got {word.strip()[:60]!r}.")
        name, value = field[1], field[2].strip()
        if name in fields:
            raise DomainError(f"Expected {name} once in the phase {call[1]}, got it twice.")
        known = kinds[call[1]].parameters.get(name) if call[1] in kinds else None
        read = None if isinstance(known, Choice | Text) else number(value)
        fields[name] = value if read is None else read
    return _named(call[1], fields, kinds)


def written(run: Sequence[Checked]) -> str:
    """Return the canonical text of phases: fields in order of declaration, without defaults.

    Example:
        >>> written(phases(" none( steps=1e1,sigma=2.0 ,epochs=1) ;"))
        'none(sigma=2,steps=10)'
        >>> written(phases("allocation(sigma=1,examples=60000,batch_size=256,epochs=10)"))
        'allocation(sigma=1,steps=234,epochs=10)'
    """
    return "; ".join(
        f"{each.name}({','.join(f'{name}={_spelled(value)}' for name, value in each.identity().items())})"
        for each in run
    )


def _spelled(value: Any) -> str:
    if isinstance(value, str | int):
        return str(value)
    return spelled(value)


def canonical(text: str, kinds: Mapping[str, type[Checked]] = PHASES) -> str | None:
    """Return the canonical spelling of a run, or of other parts, or None for a text of another grammar.

    Raises:
        PrivsweepError: As in `phases`, if the text matches.
    """
    calls = [CALL.fullmatch(call.strip()) for call in text.split(";") if call.strip()]
    known = bool(calls) and all(call is not None and call[1] in kinds for call in calls)
    return written(parsed(text, kinds)) if known else None


PHASES_TEXT = Text(
    name="phases",
    symbol=r"\Pi",
    grammar=grammar(PHASES),
    canonical=canonical,
    typical=(
        "poisson(sigma=1,sampling_probability=0.01,steps=100)",
        "none(sigma=3,steps=2); poisson(sigma=2,sampling_probability=0.1,steps=20)",
        "balls-in-bins(sigma=1,steps=10,epochs=3,redraw=once)",
        "shuffling(sigma=2,steps=50,epochs=2,redraw=each-epoch); none(sigma=4,steps=1)",
        "fixed-size(sigma=1.5,sampling_probability=0.05,steps=10)",
        "allocation(sigma=2,steps=10,participations=3)",
        "truncated-poisson(sigma=1,sampling_probability=0.05,examples=1000,largest_batch=70,steps=10)",
        "with-replacement(sigma=2,examples=1000,batch_size=20,steps=10)",
    ),
    meaning="Phases of a training run: the sampling of each, with its noise multiplier, rate and steps",
)
