"""The SQL function `certified_epsilon`: epsilon of the training run in each row, stored or computed."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from flows.answers.ask import LIMIT_SECONDS
from flows.answers.held import answered, any_held
from flows.answers.loaders import LOADERS
from flows.answers.samplers import SAMPLING, completed, problem_of
from flows.answers.sourced import Sourced, computed
from privcore import DomainError, LimitError, Problem
from privcore.training import from_sizes
from storage import Store
from storage.functions import SqlFunction
from storage.marks import origin_text

MOST_ANSWERS = 100_000
"""Computed answers that a process remembers."""

ARGUMENTS = {
    "sigma": "double",
    "steps": "double",
    "delta": "double",
    "sampling": "varchar",
    "sampling_probability": "double",
    "participations": "double",
    "epochs": "double",
    "redraw": "varchar",
    "largest_batch": "double",
    "adjacency": "varchar",
    "examples": "double",
    "batch_size": "double",
}
VALUE = {
    "lower": "double",
    "upper": "double",
    "method": "varchar",
    "source": "varchar",
    "imported": "varchar",
}


@dataclass
class CertifiedEpsilon:
    """The function, with the answers that it has given.

    Attributes:
        store: Store whose brackets save computing them again; it may be missing.
        limit_seconds: Seconds from now after which a query ends with an error.
        answers: Every answer, by question.
    """

    store: Store
    limit_seconds: float = LIMIT_SECONDS
    answers: dict[Problem, Sourced] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Set the time of the end."""
        self._end = time.monotonic() + self.limit_seconds
        self._one = threading.Lock()  # DuckDB calls a function in several threads

    @property
    def function(self) -> SqlFunction:
        """The function for `Store.sql`."""
        return SqlFunction(
            name="certified_epsilon",
            arguments=ARGUMENTS,
            returns=VALUE,
            call=lambda rows: [self._value(row) for row in rows],
        )

    def _value(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value for the arguments of a row."""
        problem = question(row)
        with self._one:
            answer = self.answers.get(problem) or self._answer(problem)
        if not answer.ok:
            raise DomainError(answer.detail)
        bracket = answer.bracket
        methods = dict.fromkeys(name for name in (bracket.lower_by, bracket.upper_by) if name)
        return {
            "lower": bracket.lower,
            "upper": bracket.upper,
            "method": ", ".join(methods),
            "source": answer.source,
            "imported": ", ".join(bracket.imported) or None,
        }

    @property
    def note(self) -> str:
        """The sentence about answers with an end from a lookup table that was not recomputed, or ""."""
        imported = [answer.bracket.imported for answer in self.answers.values() if answer.bracket.imported]
        if not imported:
            return ""
        tables = list(dict.fromkeys(table for each in imported for table in each))
        several = "1 answer" if len(imported) == 1 else f"{len(imported)} answers"
        are = "is" if len(imported) == 1 else "are"
        return f"{several} of certified_epsilon {are} {origin_text(tables)}."

    def _answer(self, problem: Problem) -> Sourced:
        if time.monotonic() > self._end:
            raise LimitError(f"The query took longer than {self.limit_seconds:g} s.")
        answer = answered(self.store, problem, computing=_computed)
        if not answer.ok:
            answer = any_held(self.store, problem) or answer
        self.answers[problem] = answer
        return answer


@lru_cache(maxsize=MOST_ANSWERS)
def _computed(problem: Problem) -> Sourced:
    """Return the computed answer to a problem, which a process computes once."""
    return computed(problem)


def question(row: Mapping[str, Any]) -> Problem:
    """Return the problem that the arguments of a row describe; a null is an argument that was left out.

    Raises:
        PrivsweepError: Arguments are missing, contradict one another, or are outside their domains.

    Example:
        >>> question({"sigma": 1.0, "steps": None, "delta": 1e-5, "sampling": "none"}).name
        'unamplified-epsilon'
    """
    given = {name: value for name, value in row.items() if value is not None}
    sampling = given.pop("sampling", None)
    if sampling not in SAMPLING:
        loaders = ", ".join(f"'{word}' ({code})" for word, code in LOADERS.items())
        raise DomainError(f"Expected sampling, since epsilon depends on the loader: {loaders}.")
    return from_sizes(problem_of(sampling), completed(sampling, given))
