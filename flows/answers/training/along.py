"""Epsilon of a training run along one of its parameters, for one or several samplers."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.answers.parse import DROP_LAST, UNKNOWN, checked
from flows.answers.question import SPELLINGS, adjacency_of, phases_of, question, typed
from flows.answers.sourced import Sourced
from flows.answers.training.any_sampler import candidates
from flows.answers.training.compare import SIZED, problems
from flows.printing import exactly, listed
from flows.spec.words import value_of
from privcore import DomainError, LimitError, Problem, Status
from privcore.errors import PrivsweepError
from privcore.parameter import Value
from privcore.training import PHASES

ALL = "all"
"""Word for all samplers of a picture."""
REAL = ("sigma", "delta", "sampling_probability")
WHOLE = ("steps", "participations", "epochs", "largest_batch", "examples", "batch_size", "group")
SHARED = ("sigma", "delta", "epochs")
"""Parameters that mean the same in the problems of all samplers."""
POINTS = 7
"""Number of values of a range."""
DELTAS = tuple(10.0**-k for k in range(10, 0, -1))
"""Values of delta in a privacy profile."""
DIGITS = 4
"""Significant digits of the values of a range."""

Asking = Callable[[Value], tuple[Mapping[str, Problem], Sequence[str]]]
"""Function that returns the problems at a value, by sampler, and notes about them."""


Answering = Callable[[Problem, str], Sourced]
"""Function that answers a problem; the second argument says where on the axis the problem is."""


@dataclass(frozen=True, kw_only=True)
class SamplerCurve:
    """Brackets of a sampler along a parameter, where they are known.

    Attributes:
        sampling: Its word, or "" for a run of several phases.
        adjacency: Its neighbouring relation.
        x: Values of the parameter, rising.
        ends: Lower and upper ends; an unknown upper end is infinity.
    """

    sampling: str
    adjacency: str
    x: tuple[float, ...]
    ends: tuple[tuple[float, ...], tuple[float, ...]]


def axis_of(over: str, here: Mapping[str, Any]) -> tuple[str, list[Value]]:
    """Return a parameter and its values.

    Args:
        over: `sigma=1,2,4`, or `sigma=0.5..4` for seven values with equal quotients; `sigma` alone is from
            half to twice the value of the run.
        here: The parameters of the run.

    Raises:
        DomainError: The parameter is unknown, or its values are not those of an axis.

    Example:
        >>> axis_of("epochs=1..3", {}), axis_of("sigma", {"sigma": 1.0})[1][::3]
        (('epochs', [1, 2, 3]), [0.5, 1.0, 2.0])
    """
    word, equals, text = over.partition("=")
    name = word.strip().replace("-", "_")
    name = SPELLINGS.get(name, name)
    if name not in (*REAL, *WHOLE):
        raise DomainError(f"Expected --over with one of {', '.join((*REAL, *WHOLE))}, got {word[:50]!r}.")
    if not equals:
        if not isinstance(value := here.get(name), int | float):
            raise DomainError(f"Expected --over {name}=FIRST..LAST, since the run has no {name}.")
        return name, _between(name, 0.5 * value, 2.0 * value)
    first, dots, last = text.partition("..")
    if dots:
        return name, _between(name, *(_number(each, name) for each in (first, last)))
    values = sorted({_number(each, name) for each in text.split(",")})
    if len(values) < 2:
        raise DomainError(f"Expected at least two values of {name} for an axis, got {text[:50]!r}.")
    return name, list(values)


def _number(text: str, name: str) -> float:
    value: Any = value_of(text, name)
    if isinstance(value, str) or not math.isfinite(value):
        raise DomainError(f"Expected numbers for --over {name}, got {text[:50]!r}.")
    return float(value) if name in REAL else int(value) if value == int(value) else float(value)


def _between(name: str, first: float, last: float) -> list[Value]:
    """Return values with equal quotients, both ends as given."""
    if not 0 < first < last:
        raise DomainError(f"Expected --over {name}=FIRST..LAST with 0 < FIRST < LAST, got {first}..{last}.")
    inner = [first * (last / first) ** (k / (POINTS - 1)) for k in range(1, POINTS - 1)]
    if name in WHOLE:
        return list(dict.fromkeys(max(1, round(x)) for x in (first, *inner, last)))
    return [first, *(float(f"{x:.{DIGITS}g}") for x in inner), last]


def asking(words: Mapping[str, Any], axis: str) -> Asking:
    """Return the function that asks about a run at each value of a parameter.

    One sampler has all options of `privsweep epsilon`; several samplers are rows of `privsweep compare`.

    Args:
        words: As in `question`; `sampling` is a word, several with commas between them, or `all`.
        axis: The parameter.

    Raises:
        PrivsweepError: The sampler is missing or unknown.
    """
    if "run" in words:
        return lambda value: _one({**words, axis: value})
    several = [word.strip() for word in str(words.get("sampling") or checked(None)).split(",")]
    if several not in ([ALL], [UNKNOWN]):
        for word in several:
            if word != DROP_LAST or len(several) == 1:
                checked(word)
        if len(several) == 1:
            return lambda value: _one({**words, axis: value})
        if missing := {"truncated-poisson"} & {*several}:
            raise DomainError(f"Expected {missing.pop()} alone: `privsweep compare` does not list it.")
    named = None if several in ([ALL], [UNKNOWN]) else several
    return lambda value: _rows({**words, axis: value}, named)


def _one(words: Mapping[str, Any]) -> tuple[dict[str, Problem], list[str]]:
    found = question(words)
    return {sampling_of(found.problem): found.problem}, found.notes


def _rows(words: dict[str, Any], named: Sequence[str] | None) -> tuple[dict[str, Problem], list[str]]:
    """Return the named samplers of a comparison; all of them without the slow rows of shuffling."""
    words.pop("sampling")
    found, notes = candidates(words) if named is None else problems(words)
    wanted = [name for name in found if name not in (SIZED, DROP_LAST)] if named is None else named
    if words.get("drop_last") and DROP_LAST in found:
        wanted = [DROP_LAST if name == "shuffling" else name for name in wanted]
    return {name: found[name] for name in wanted if name in found}, notes


def sampling_of(problem: Problem) -> str:
    """Return the word of the sampler of a problem about epsilon; "" for a run of several phases.

    Example:
        >>> from privcore import find_problem
        >>> sampling_of(find_problem("unamplified-epsilon").from_fields({"sigma": 1.0, "delta": 1e-5}))
        'none'
    """
    first, *others = phases_of(problem)
    if others:
        return ""
    if first.as_fields().get("dropped"):
        return DROP_LAST
    return next(word for word, kind in PHASES.items() if kind is type(first))


def varied(found: Mapping[str, Problem], axis: str) -> Asking:
    """Return the function that asks about the same problems at each value of a parameter.

    Args:
        found: Problems, by sampler.
        axis: The parameter.

    Raises:
        DomainError: A problem does not have it.
    """
    if len(found) > 1 and axis not in SHARED:
        raise DomainError(f"Expected {', '.join(SHARED)} as the axis of several samplers, got {axis}.")
    for problem in found.values():
        if axis not in problem.parameters:
            raise DomainError(f"Expected a parameter of {problem.name} as the axis, got {axis}.")
    return lambda value: (
        {name: type(each).from_fields({**each.as_fields(), axis: value}) for name, each in found.items()},
        [],
    )


def curves(
    asked: Asking, axis: str, values: Sequence[Value], answering: Answering
) -> tuple[list[SamplerCurve], list[str]]:
    """Return the brackets of each sampler along a parameter, and notes.

    Args:
        asked: Function that asks at a value.
        axis: The parameter.
        values: Its values, rising.
        answering: Function that answers a problem.

    Raises:
        LimitError: A limit stopped the methods everywhere.
        PrivsweepError: No point has an answer.
    """
    found: dict[str, list[tuple[float, Sourced]]] = {}
    notes = dict[str, None]()
    reasons = list[Sourced]()
    for number, value in enumerate(values, 1):
        each, said = asked(value)
        notes.update(dict.fromkeys(said if axis in REAL else ()))
        for sampling, problem in each.items():
            answer = answering(problem, f"{axis}={exactly(value)} ({number} of {len(values)})")
            if answer.ok and not answer.bracket.crossed:
                found.setdefault(sampling, []).append((float(value), answer))
            else:
                reasons.append(answer)
                what = f"{sampling or 'run'} has no point at {axis}={exactly(value)}"
                notes[f"{what}: {answer.detail or 'methods contradict one another'}"] = None
    if not found:
        limits = {Status.TIMEOUT.value, Status.OUT_OF_MEMORY.value}
        kind = LimitError if any(each.status in limits for each in reasons) else PrivsweepError
        raise kind(reasons[0].detail if reasons else "No named sampler applies to this run.")
    drawn = []
    for sampling, points in found.items():
        drawn.append(
            SamplerCurve(
                sampling=sampling,
                adjacency=adjacency_of(points[0][1].problem),
                x=tuple(x for x, _ in points),
                ends=(
                    tuple(answer.bracket.lower for _, answer in points),
                    tuple(answer.bracket.upper for _, answer in points),
                ),
            )
        )
    return drawn, list(notes)


def told(fields: Mapping[str, Any], axis: str, relations: Collection[str]) -> str:
    """Return the sentences above a picture.

    Args:
        fields: Parameters of the run.
        axis: The parameter that varies, or "".
        relations: The neighbouring relations; a single one is named.
    """
    apart = ("sampling", "adjacency", axis)
    said = listed({name: value for name, value in fields.items() if name not in apart})
    (own,) = relations if len(relations) == 1 else ("",)
    return (
        f"{said} {own}".strip().replace(",", ", ")
        + ". Both ends are proved"
        + (" at the marks." if axis else ".")
    )


def words_of(run: Mapping[str, object]) -> dict[str, Any]:
    """Return the words of a run; `sampling` may be several."""
    given = dict(run)
    sampling = given.pop("sampling", None)
    return typed(given) | ({} if sampling is None else {"sampling": sampling})
