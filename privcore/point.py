"""Points: a point is a problem with a method that answers it. Its id names the stored row.

Its evaluation returns an answer also if the method fails: an error becomes a status with its reason.
"""

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from privcore.answer import Answer, Status
from privcore.errors import DomainError, PrivsweepError, interrupted
from privcore.method import Method
from privcore.problem import Problem

encoded = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
"""Canonical JSON, without the cost of an encoder for each point."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """A problem with a method; points with equal ids have equal answers, bit for bit."""

    problem: Problem
    method: Method

    def __post_init__(self) -> None:
        """Reject classes, and a method that does not answer this kind of problem."""
        if not isinstance(self.method, Method):
            raise _no_instance("method", 'find("allocation.certified")()', self.method)
        if not isinstance(self.problem, Problem):
            example = 'find_problem("unamplified-epsilon")(sigma=1.0, delta=1e-5)'
            raise _no_instance("problem", example, self.problem)
        if not isinstance(self.problem, self.method.problems):
            raise PrivsweepError(f"Method {self.method.name} does not answer {self.problem.name}.")

    @cached_property
    def canonical(self) -> str:
        """Canonical JSON of everything that affects the answer; defaults are left out, keys are sorted."""
        method = self.method
        return canonical(self.problem, method.name, method.version, method.identity())

    @cached_property
    def id(self) -> str:
        """BLAKE2b-128 of the canonical JSON, 32 hexadecimal digits."""
        return hashed(self.canonical)

    @property
    def seed(self) -> int:
        """Seed in [0, 2^63) for methods that draw random numbers; it is the same on every engine."""
        return int(self.id[:16], 16) >> 1


def _no_instance(noun: str, example: str, value: object) -> DomainError:
    """Return the error for a value, usually a class, in the place of a problem or a method."""
    word = f"the class {value.__name__}" if isinstance(value, type) else repr(value)[:100]
    return DomainError(f"Expected a {noun} such as {example}, got {word}.")


def canonical(problem: Problem, method: str, version: int, knobs: Mapping[str, Any]) -> str:
    """Return the canonical JSON of a point, whether or not this release has the method."""
    content: dict[str, Any] = {
        "problem": problem.name,
        "fields": problem.identity(),
        "method": method,
        "version": version,
    }
    if knobs:
        content["knobs"] = knobs
    return encoded(content)


def hashed(text: str) -> str:
    """Return the id of a canonical text."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def evaluate(point: Point) -> Answer:
    """Return the answer to a point.

    Args:
        point: Problem and method; both were validated when they were constructed.

    Returns:
        The method's answer; `not_applicable`, `out_of_memory` or `failed` with the reason otherwise.
        A numerical failure never raises.

    Raises:
        KeyboardInterrupt: Ctrl-C; compiled code may have turned it into another error.

    Example:
        >>> from privcore import Point, find, find_problem
        >>> problem = find_problem("unamplified-epsilon")(sigma=1.0, delta=1e-5)
        >>> answer = evaluate(Point(problem=problem, method=find("unamplified.exact")()))
        >>> answer.status, round(answer.upper, 4)
        (<Status.OK: 'ok'>, 4.3772)
    """
    outer = sys.exception()
    try:
        if (reason := point.method.applies(point.problem)) is not None:
            return Answer.without(Status.NOT_APPLICABLE, reason)
        return point.method.answer(point.problem, point.seed)
    except PrivsweepError as error:  # a file that the problem refers to has changed
        return Answer.without(Status.FAILED, str(error))
    except MemoryError:
        return Answer.without(Status.OUT_OF_MEMORY, f"{point.method.name} ran out of memory.")
    except Exception as error:  # a sweep must survive each point; the row has the reason
        if interrupted(error, outer):
            raise KeyboardInterrupt from error
        return Answer.without(Status.FAILED, f"{type(error).__name__}: {error}")
