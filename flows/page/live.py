"""Live answers for `privsweep serve`: one question at a time, by all methods that apply, within limits."""

import json
import math
import re
import threading
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

from flows.answers.question import question as read_question
from flows.page.clerk import SECONDS, Clerk
from privcore import DomainError, LimitError, Problem, find_problem
from privcore.parameter import Text

LARGEST = 10_000
"""Largest size of a question, in bytes."""
WAITING = 4
"""Number of questions that may wait for the current question."""
PER_MINUTE = 120
"""Number of questions that are accepted per minute."""

_FILES = re.compile(r"\b(column|counts|certain)\b")  # references to files in distributions and priors


class BusyError(LimitError):
    """Too many questions are waiting, or arrived within a minute."""


class Desk:
    """Answers questions in a separate process, which is killed if it takes too long or keeps too much."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._clerk = Clerk(seconds)
        self._thread = ThreadPoolExecutor(max_workers=1)  # the clerk's process lives as long as its thread
        self._room = threading.BoundedSemaphore(1 + WAITING)
        self._taken: deque[float] = deque()
        self._counting = threading.Lock()

    def __enter__(self) -> Self:
        """Return the desk; its process starts."""
        self._thread.submit(self._clerk.start)
        return self

    def stop(self) -> None:
        """End the process that computes, at once, and answer no more."""
        self._clerk.stop()

    def __exit__(self, *_: object) -> None:
        """Stop without waiting for answers."""
        self.stop()
        self._thread.submit(self._clerk.close)
        self._thread.shutdown()

    def answer(self, body: bytes) -> dict[str, Any]:
        """Return the answers of all methods, in the format of `privsweep ask --json`.

        Args:
            body: JSON: `{"problem": name, "fields": {...}}`.

        Raises:
            DomainError: The request is invalid, too long, or refers to a file.
            UnknownNameError: The problem or a field is unknown.
            BusyError: Too many questions are waiting.
            LimitError: The question took too long, and nothing was proved before.
        """
        self._count()
        problem = question(body)
        if not self._room.acquire(blocking=False):
            raise BusyError("Too many questions are waiting; ask again later.")
        try:
            return self._thread.submit(self._clerk.answer, problem).result()
        finally:
            self._room.release()

    def _count(self) -> None:
        """Reject more questions per minute than a person types."""
        now = time.monotonic()
        with self._counting:
            while self._taken and self._taken[0] < now - 60.0:
                self._taken.popleft()
            if len(self._taken) >= PER_MINUTE:
                raise BusyError(f"Expected at most {PER_MINUTE} questions a minute; ask again later.")
            self._taken.append(now)


def question(body: bytes) -> Problem:
    """Return the problem in a request.

    Raises:
        DomainError: The request is invalid, too long, or refers to a file.
        UnknownNameError: The problem or a field is unknown.

    Example:
        >>> question(b'{"problem": "unamplified-epsilon", "fields": {"sigma": 1, "delta": 1e-5}}').sigma
        1.0
    """
    if len(body) > LARGEST:
        raise DomainError(f"Expected a question of at most {LARGEST} bytes.")
    try:
        content = json.loads(body, parse_float=_float)
    except DomainError:
        raise
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or set(content) != {"problem", "fields"}:
        raise DomainError('Expected JSON such as {"problem": "allocation-epsilon", "fields": {"sigma": 1}}.')
    name, fields = content["problem"], content["fields"]
    if not isinstance(name, str) or not isinstance(fields, Mapping):
        raise DomainError("Expected the name of a problem, and its fields by name.")
    kind = find_problem(name)
    for field, value in fields.items():
        if isinstance(kind.parameters.get(field), Text) and _FILES.search(str(value)):
            raise DomainError(
                f"Expected {field} without a reference to a file, which only the command line reads."
            )
    return read_question({**fields, "problem": name}).problem


def _float(text: str) -> float:
    """Return a number from JSON; reject a number outside of the range of floats: 1e-400 is not 0."""
    x = float(text)
    if math.isinf(x) or (x == 0 and re.search("[1-9]", text.lower().partition("e")[0])):
        raise DomainError(f"Expected numbers between 1e-307 and 1e308, got {text[:60]}.")
    return x
