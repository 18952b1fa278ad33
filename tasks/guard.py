"""A guard: points are evaluated in a child process that can be killed at any instant, whatever it is doing.

Compiled code ignores Python's signals, and a crash inside it takes its process along. So every worker has one
child that computes while the worker listens. A point that takes too long is killed with its child, one that
crashes dies with it, and in both cases a fresh child goes on with the next point. What came before is kept.
"""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Self

from privcore.answer import Answer, Status
from privcore.errors import PrivsweepError
from privcore.evaluate import evaluate
from privcore.numerics.compiled import load
from privcore.point import Point
from tasks.batch import Batch
from tasks.limits import Limits, estimate
from tasks.parent_death import die_with

ATTEMPTS = 2  # the first crash may have come from outside: a kill, or a machine short of memory
START_SECONDS = 300.0  # a child that has not imported the method by then never will
# One thread, so that sums are taken in the same order everywhere and workers do not fight over cores.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class ChildError(PrivsweepError):
    """The child process cannot begin a batch; nothing is known about any point then."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """An answer, what it took, when it ended, and at which attempt.

    Where the child was killed or crashed, the wall time stands for the processor time too.
    """

    answer: Answer
    seconds: float
    cpu_seconds: float
    finished_at: datetime
    attempt: int = 1


class Guard:
    """Evaluates batches within limits; used in a `with` block, in one thread, since a child ends with it."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._child: _Child | None = None
        self._stopped = False

    def __enter__(self) -> Self:
        """Return the guard."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the child."""
        self.close()

    def close(self) -> None:
        """Kill the child, if there is one."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def stop(self) -> None:
        """Kill the child and let no other begin, from any thread: what is being computed has crashed."""
        self._stopped = True
        if (child := self._child) is not None:
            child.end()

    def results(self, batch: Batch) -> Iterator[Measured]:
        """Yield one result for each point of the batch, in order, whatever happens to the child.

        Raises:
            ChildError: A fresh child cannot begin.
        """
        finished = 0
        if self._child is not None and not self._child.begins(batch, self.limits):
            self.close()  # it died while it was idle
        try:
            for i in range(len(batch)):
                yield self._result(batch, i)
                finished += 1
        finally:
            if finished < len(batch):
                self.close()  # nobody waits for the rest

    def _result(self, batch: Batch, i: int) -> Measured:
        """Return the result of point i, after a second attempt if the first one crashed."""
        attempt = 0
        while True:
            attempt += 1
            child = self._working(batch, i)
            began = time.monotonic()
            try:
                measured = child.next(self.limits.point_seconds)
            except TimeoutError:
                limit = f"It took longer than the limit of {self.limits.point_seconds:g} s."
                answer = Answer.without(Status.TIMEOUT, limit)
            except (EOFError, ConnectionError):
                answer = Answer.without(Status.CRASHED, f"The process that computed it {child.ending()}.")
            else:
                if measured.answer.status is Status.OUT_OF_MEMORY:
                    self.close()  # what ran out of memory may have left things half done
                return replace(measured, attempt=attempt)
            seconds, now = time.monotonic() - began, datetime.now(UTC)
            self.close()
            if answer.status is Status.TIMEOUT or attempt == ATTEMPTS or self._stopped:
                return Measured(
                    answer=answer, seconds=seconds, cpu_seconds=seconds, finished_at=now, attempt=attempt
                )

    def _working(self, batch: Batch, i: int) -> "_Child":
        """Return the child that is at point i, a fresh one if need be."""
        if self._child is None:
            self._child = _Child()
            if self._stopped:
                self._child.end()
            if not self._child.begins(batch.part(i), self.limits):
                ending = self._child.ending()
                self.close()
                raise ChildError(f"The process for {batch.method.name} {ending} before its first point.")
        return self._child


class _Child:
    """The child process as its parent sees it."""

    def __init__(self) -> None:
        self._pipe, theirs = Pipe()
        environment = os.environ | dict.fromkeys(_ONE_THREAD, "1")
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # what we can import, it can
        command = f"from tasks.guard import serve; serve({theirs.fileno()}, {os.getpid()})"
        self._process = subprocess.Popen(
            [sys.executable, "-c", command],
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # a library that prints must not end up in our JSON
            start_new_session=True,  # Ctrl-C is for the parent, which decides what to do
        )
        theirs.close()

    def begins(self, batch: Batch, limits: Limits) -> bool:
        """Send a batch; return whether the child has taken it and is about to start."""
        try:
            self._pipe.send((batch, limits))
            return self._pipe.poll(START_SECONDS) and bool(self._pipe.recv())
        except (EOFError, ConnectionError):
            return False

    def next(self, seconds: float) -> Measured:
        """Return the next result.

        Raises:
            TimeoutError: It did not come in time.
            EOFError, ConnectionError: The child is gone.
        """
        if not self._pipe.poll(seconds):
            raise TimeoutError
        result = self._pipe.recv()
        assert isinstance(result, Measured)
        return result

    def ending(self) -> str:
        """Return how the process ended, in words that follow its name."""
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            return "stopped answering"
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"

    def end(self) -> None:
        """End the process, in Python or in compiled code."""
        self._process.kill()

    def kill(self) -> None:
        """End the process and let go of it."""
        self.end()
        self._process.wait()
        self._pipe.close()


def serve(descriptor: int, parent: int) -> None:
    """Evaluate the batches that come through a pipe until it closes: the life of a child.

    Args:
        descriptor: File descriptor of the pipe's end.
        parent: Process id of the parent; without it there is nothing to live for.
    """
    die_with(parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    load()  # no point pays for it, in seconds or in bytes
    pipe: Connection[object, tuple[Batch, Limits]] = Connection(descriptor)
    while True:
        try:
            batch, limits = pipe.recv()
        except EOFError:
            return
        pipe.send(True)
        for point in batch.points():
            pipe.send(measure(point, limits))


def measure(point: Point, limits: Limits) -> Measured:
    """Evaluate a point in this process, with a limit on its memory and none on its time.

    A point whose own estimate exceeds a limit is not started; its status says which limit.
    """
    start, cpu = time.perf_counter(), time.process_time()
    answer = limits.refusal(estimate(point))
    if answer is None:
        _limit_memory(limits.point_bytes)
        answer = evaluate(point)
    return Measured(
        answer=answer,
        seconds=time.perf_counter() - start,
        cpu_seconds=time.process_time() - cpu,
        finished_at=datetime.now(UTC),
    )


def _limit_memory(more: float) -> None:
    """Let the address space of this process grow by that many bytes and no further."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = now + int(more)
    resource.setrlimit(
        resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard)
    )
