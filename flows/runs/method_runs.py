"""Prefect task runs of a sweep: one for each problem and method, from its first batch to its last."""

import threading
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Cancelled, Completed, Failed

from flows.runs.batches import StatusTally
from flows.runs.plan import Share
from tasks.work import Done

WITH_FAILURES = "Completed with failures"
"""Name of the state of runs in which some points have no answer; automations refer to it."""


class MethodRuns:
    """The task runs of one flow run. Each waits in a thread of its own, so Prefect never delays a batch."""

    def __init__(self, shares: Iterable[Share]) -> None:
        """Expect the points of these shares.

        Args:
            shares: New points, by problem and method; a method with several options is one task run.
        """
        self._expected: Counter[tuple[str, str]] = Counter()
        for share in shares:
            self._expected[share.problem, share.method.partition("(")[0]] += share.points
        self._running: dict[tuple[str, str], _MethodRun] = {}
        self._all = StatusTally()

    def add(self, done: Done) -> None:
        """Add a finished batch to the task run of its problem and method, which begins if it is the first."""
        key = done.problem, done.method
        if key not in self._running:
            share = self._expected[key] / max(1, self._expected.total())
            self._running[key] = _MethodRun(*key, self._expected[key], share)
        self._running[key].add(done)
        self._all.add(done)

    def end(self, error: BaseException | None = None) -> None:
        """End the task runs.

        Args:
            error: The error that ended the run early; the unfinished task runs get its state.
        """
        for each in self._running.values():
            each.end(error)
        for each in self._running.values():
            each.wait()

    def state(self) -> State[None]:
        """Return the state of the whole run, from the batches that it computed."""
        if self._all.points < self._expected.total():
            return _incomplete(self._all, self._expected.total())
        silent = [
            f"{method} on {problem}" for (problem, method), each in self._running.items() if each.is_silent
        ]
        if silent:
            return Failed(message=f"No answers by {', '.join(silent)}. {self._all}.")
        return _completed(self._all)


class _MethodRun:
    """The task run of one problem and method."""

    def __init__(self, problem: str, method: str, expected: int, share: float) -> None:
        self._tally = StatusTally()
        self._expected = expected
        self._over = threading.Event()
        self._error: BaseException | None = None

        title = f"{method} on {problem}: {expected} points, {share:.0%}"

        @task(name=method, task_run_name=title, persist_result=False, cache_policy=NO_CACHE)
        def points() -> State[None]:
            self._over.wait()
            return self._state()

        self._future: Any = None
        with suppress(Exception):  # the display of a run is never a reason to stop
            self._future = points.submit()

    def add(self, done: Done) -> None:
        self._tally.add(done)
        if self._tally.points >= self._expected:
            self._over.set()

    @property
    def is_silent(self) -> bool:
        return self._tally.is_silent

    def end(self, error: BaseException | None) -> None:
        if not self._over.is_set():
            self._error = error
            self._over.set()

    def wait(self) -> None:
        if self._future is not None:
            with suppress(Exception):
                self._future.wait()

    def _state(self) -> State[None]:
        if isinstance(self._error, KeyboardInterrupt):
            return Cancelled(message=f"Interrupted. {self._tally}.")
        if self._error is not None:
            return Failed(message=f"{type(self._error).__name__}: {self._error} {self._tally}.")
        if self._tally.points < self._expected:
            return _incomplete(self._tally, self._expected)
        if self._tally.is_silent:
            return Failed(message=f"No point has an answer. {self._tally}.")
        return _completed(self._tally)


def _incomplete(tally: StatusTally, expected: int) -> State[None]:
    return Failed(message=f"Computed {tally.points} of {expected} points. {tally}.")


def _completed(tally: StatusTally) -> State[None]:
    return Completed(name=WITH_FAILURES if tally.failed else None, message=f"{tally}.")
