"""Which field of the problems of a chart goes where, and whether numbers rise like powers."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from privcore.parameter import Value

MOST_WORDS = 8
"""Words that colours tell apart."""


@dataclass(frozen=True, kw_only=True)
class Axes:
    """What the fields of problems become in a chart.

    Attributes:
        x: The field along the axis.
        series: The field that tells curves apart, or nothing.
        rest: Fields of which one combination is seen at a time.
        implied: Fields that follow from these.
    """

    x: str
    series: str
    rest: tuple[str, ...]
    implied: tuple[str, ...]


def axes(fields: Sequence[Mapping[str, Value]]) -> Axes | None:
    """Return which fields go where, the most varied number along the axis; None where nothing varies.

    Args:
        fields: Of each problem.
    """
    values = {name: {row[name] for row in fields} for name in (fields[0] if fields else {})}
    varied = sorted((name for name in values if len(values[name]) > 1), key=lambda name: -len(values[name]))
    if not varied:
        return None
    x = next((name for name in varied if _are_numbers(values[name])), varied[0])
    kept, implied = [x], list[str]()
    for name in varied:
        if name != x:
            follows = any(len({(row[k], row[name]) for row in fields}) == len(values[k]) for k in kept)
            (implied if follows else kept).append(name)
    series = next((n for n in kept[1:] if _are_numbers(values[n]) or len(values[n]) <= MOST_WORDS), "")
    rest = tuple(name for name in kept[1:] if name != series)
    return Axes(x=x, series=series, rest=rest, implied=tuple(implied))


def is_geometric(values: Iterable[Value]) -> bool:
    """Return whether values are positive and spread like powers rather than like multiples.

    Example:
        >>> is_geometric([1, 10, 100]), is_geometric([1, 2, 3]), is_geometric([0, 10, 100])
        (True, False, False)
    """
    found = sorted(_finite(values))
    if len(found) < 2 or found[0] <= 0.0 or found[-1] < 4.0 * found[0]:
        return False
    middle = (
        found[len(found) // 2]
        if len(found) % 2
        else math.sqrt(found[len(found) // 2 - 1] * found[len(found) // 2])
    )
    arithmetic, geometric = 0.5 * (found[0] + found[-1]), math.sqrt(found[0] * found[-1])
    return middle < math.sqrt(arithmetic * geometric)


def _finite(values: Iterable[Value]) -> Iterator[float]:
    return (float(value) for value in set(values) if not isinstance(value, str) and math.isfinite(value))


def _are_numbers(values: Iterable[Value]) -> bool:
    return not any(isinstance(value, str) for value in values)
