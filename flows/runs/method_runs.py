"""Prefect task runs of a sweep: one for each problem and method, from its first batch to its last."""

import threading
from collections import Counter
from contextlib import suppress
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Cancelled, Completed, Failed

from flows.runs.progress import Pace
from tasks.tally import Outcomes
from tasks.work import Done

WITH_FAILURES = "Completed with failures"
"""Name of the state of runs in which some points have no answer; automations refer to it."""


class MethodRuns:
    """The task runs of one flow run. Each waits in a thread of its own, so Prefect never delays a batch.

    A method with several options is one task run.

    Args:
        pace: The progress of the run.
    """

    def __init__(self, pace: Pace) -> None:
        self._tally = pace.tally
        self._expected: Counter[tuple[str, str]] = Counter()
        for group in pace.plan.groups:
            self._expected[group.name] += group.points
        self._running: dict[tuple[str, str], _MethodRun] = {}

    def show(self, done: Done) -> None:
        """Begin the task run of a method with its first batch in the tally, and end it with its last."""
        key = done.problem, done.method
        if key not in self._running:
            share = self._expected[key] / max(1, self._expected.total())
            self._running[key] = _MethodRun(*key, self._expected[key], share, self._tally.by_method[key])
        self._running[key].end_if_complete()

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
        tally = self._tally
        if tally.points < self._expected.total():
            return _incomplete(tally, self._expected.total())
        silent = [f"{method} on {problem}" for (problem, method), n in tally.by_method.items() if n.is_silent]
        if silent:
            return Failed(message=f"No answers by {', '.join(silent)}. {tally}.")
        return _completed(tally)


class _MethodRun:
    """The task run of one problem and method."""

    def __init__(self, problem: str, method: str, expected: int, share: float, sums: Outcomes) -> None:
        self._sums = sums
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

    def end_if_complete(self) -> None:
        if self._sums.points >= self._expected:
            self._over.set()

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
            return Cancelled(message=f"Interrupted. {self._sums}.")
        if self._error is not None:
            return Failed(message=f"{type(self._error).__name__}: {self._error} {self._sums}.")
        if self._sums.points < self._expected:
            return _incomplete(self._sums, self._expected)
        if self._sums.is_silent:
            return Failed(message=f"No point has an answer. {self._sums}.")
        return _completed(self._sums)


def _incomplete(sums: Outcomes, expected: int) -> State[None]:
    return Failed(message=f"Computed {sums.points} of {expected} points. {sums}.")


def _completed(sums: Outcomes) -> State[None]:
    return Completed(name=WITH_FAILURES if sums.failed else None, message=f"{sums}.")
