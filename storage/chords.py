"""Ends that follow from two stored problems, by the convexity of the privacy profile between their deltas."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privcore.numerics.profile_chord import epsilon_above, epsilon_below
from privcore.parameter import Value
from privcore.problem import Problem

NEAREST = 4
"""Stored values on each side of a question whose corners are combined."""

Corner = tuple[float, str | None, dict[str, Value] | None]
"""An end of a stored bracket, its method, and the fields of its problem; method and fields may be None."""


@dataclass(frozen=True, kw_only=True)
class Chord:
    """An end that follows from two stored problems.

    Attributes:
        bound: The end.
        near: The corner whose own end is of the same side.
        far: The corner whose upper end is used.
    """

    bound: float
    near: Corner
    far: Corner


def neighbours(stored: Sequence[Any], value: Any) -> list[Any]:
    """Return the nearest stored values on both sides of a value; none if the value itself is stored.

    Args:
        stored: Stored values in order.
        value: The value of the question.

    Example:
        >>> neighbours([1e-8, 1e-6, 1e-5], 3e-6), neighbours([1e-8, 1e-6, 1e-5], 1e-6)
        ([1e-08, 1e-06, 1e-05], [])
    """
    place = bisect_left(stored, value)
    if place != bisect_right(stored, value):
        return []
    return [*stored[max(0, place - NEAREST) : place], *stored[place : place + NEAREST]]


def best_chords(problem: Problem, corners: Sequence[tuple[Corner, Corner]]) -> dict[str, Chord]:
    """Return the best chord for each end of a question that has any.

    A corner of the question with another delta bounds the question's other fields at the delta of the corner
    itself, so its own delta is used.

    Args:
        problem: The question.
        corners: For each neighbouring delta in order, the corners below and above of the question at it.
    """
    (name,) = problem.exp_convex
    asked = getattr(problem, name)
    lowers = [(float(fields[name]), corner) for corner, _ in corners if (fields := corner[2]) is not None]
    uppers = [(float(fields[name]), corner) for _, corner in corners if (fields := corner[2]) is not None]
    found: dict[str, Chord] = {}
    for at, near in uppers:
        for further, far in uppers:
            if at < asked < further:
                bound = epsilon_above(asked, (at, near[0]), (further, far[0]))
                if "upper" not in found or bound < found["upper"].bound:
                    found["upper"] = Chord(bound=bound, near=near, far=far)
    for at, near in lowers:
        for further, far in uppers:
            if asked < at < further or further < at < asked:
                bound = epsilon_below(asked, (at, near[0]), (further, far[0]))
                if bound > (found["lower"].bound if "lower" in found else 0.0):
                    found["lower"] = Chord(bound=bound, near=near, far=far)
    return found
