"""A guard: points are evaluated within limits, in a child process that can be killed at any instant.

Compiled code ignores Python's signals, and a crash in it ends its process. So every worker has a child
process that computes while the worker waits. If a point takes too long, its child is killed; if it crashes,
its child dies. In both cases a new child continues with the next point, and earlier results are kept.

The child holds the results of brief points for a moment and sends several at once. If it ends before, these
points are evaluated again, each on its own, so that the one at fault is found.
"""

import os
import resource
import signal
import subprocess
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Self

from privcore.answer import Answer, Status
from privcore.errors import PrivsweepError
from privcore.method import Cost
from privcore.numerics.compiled import load
from privcore.parameter import Real
from privcore.point import Point, evaluate
from tasks import own_process
from tasks.batch import Batch
from tasks.own_process import die_with

POINT_SECONDS = Real(
    name="point_seconds",
    symbol="",
    unit="s",
    lower=0.0,
    lower_open=True,
    upper=1e7,
    typical=(300.0,),
    meaning="Wall time that one point may take",
)
POINT_BYTES = Real(
    name="point_bytes",
    symbol="",
    unit="bytes",
    lower=1e6,
    upper=1e15,
    typical=(2e9,),
    meaning="Memory that one point may take in addition to the memory of its process",
)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one point: seconds of wall time, and bytes in addition to the memory of its process."""

    point_seconds: float = POINT_SECONDS.typical[0]
    point_bytes: float = POINT_BYTES.typical[0]

    def refusal(self, cost: Cost) -> Answer | None:
        """Return the answer of a point whose estimate exceeds a limit, or None if it may be started.

        Example:
            >>> Limits(point_seconds=60).refusal(Cost(seconds=1e4, bytes=0)).detail
            'Not started: it may need 1e+04 s, the limit is 60 s.'
        """
        if cost.seconds > self.point_seconds:
            reason = f"Not started: it may need {cost.seconds:.3g} s, the limit is {self.point_seconds:g} s."
            return Answer.without(Status.TIMEOUT, reason)
        if cost.bytes > self.point_bytes:
            reason = f"Not started: it may need {cost.bytes:.3g} bytes, the limit is {self.point_bytes:g}."
            return Answer.without(Status.OUT_OF_MEMORY, reason)
        return None


def estimate(point: Point) -> Cost:
    """Return the estimated cost of a point, or 0 if its method does not apply or the estimate fails."""
    try:
        if point.method.applies(point.problem) is None:
            return point.method.cost(point.problem)
    except (ArithmeticError, ValueError, PrivsweepError):
        pass  # the evaluation will store the error in a row
    return Cost(seconds=0.0, bytes=0.0)


ATTEMPTS = 2  # the cause of the first crash may be external: a kill, or a machine short of memory
START_SECONDS = 300.0  # time for a child to import the method
BRIEF_SECONDS = 5e-3
"""Estimated seconds below which a point is brief; estimates of methods of microseconds are 2e-3."""
HELD_SECONDS = 0.02
"""Longest time for which the results of brief points are held."""
LOOK_SECONDS = 0.5
"""Time between two looks at a child; clocks go on while processes are stopped, as in a suspended session."""
# One thread, so that sums have the same order everywhere, and workers do not compete for cores.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class KilledError(PrivsweepError):
    """The kernel ended the process of a point for lack of memory, and a caller may compute it elsewhere."""


class ChildError(PrivsweepError):
    """The child process cannot start a batch; this says nothing about any point."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """An answer with its cost, the end of its evaluation, and the number of the attempt.

    If the child was killed or crashed, the processor time is set to the wall time.
    """

    answer: Answer
    seconds: float
    cpu_seconds: float
    finished_at: datetime
    attempt: int = 1


class Guard:
    """Evaluation of batches within limits, in a `with` block and one thread, since the child ends with it."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._child: _Child | None = None
        self._stopped = self._last = False
        self._oom_kills = 0
        self._held = 0.0

    def __enter__(self) -> Self:
        """Return the guard."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the child."""
        self.close()

    def kept_bytes(self) -> int:
        """Return the memory of the child, or 0 without a child."""
        return 0 if self._child is None else resident_bytes(self._child.process_id)

    def close(self) -> None:
        """Kill the child, if there is one."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def stop(self) -> None:
        """Kill the child and prevent new ones, from any thread; the current point counts as crashed."""
        self._stopped = True
        if (child := self._child) is not None:
            child.end()

    def results(self, batch: Batch, *, last: bool = True) -> Iterator[Measured]:
        """Yield one result for each point of the batch, in order, also if the child dies.

        Args:
            batch: The points.
            last: Whether a point that the kernel ends for lack of memory gets its answer here.

        Raises:
            ChildError: A new child cannot start.
            KilledError: The kernel ended the process of the next point for lack of memory; not if `last`.
        """
        finished = 0
        self._last, self._oom_kills = last, oom_kills()
        self._held = HELD_SECONDS if batch.seconds < BRIEF_SECONDS * len(batch) else 0.0
        if self._child is not None and not self._child.begins(batch, self.limits, self._held):
            self.close()  # it died while it was idle
        try:
            for i in range(len(batch)):
                yield self._result(batch, i)
                finished += 1
        finally:
            if finished < len(batch):
                self.close()  # the caller does not want the rest

    def _result(self, batch: Batch, i: int) -> Measured:
        """Return the result of point i, after a second attempt if the first one crashed."""
        attempt = 1
        while True:
            child = self._working(batch, i)
            began = time.monotonic()
            try:
                measured = child.next(self.limits.point_seconds + self._held)
            except TimeoutError:
                limit = f"It took longer than the limit of {self.limits.point_seconds:g} s."
                answer = Answer.without(Status.TIMEOUT, limit)
            except (EOFError, ConnectionError):
                answer = self._after_a_crash(child.ending())
            else:
                if measured.answer.status is Status.OUT_OF_MEMORY:
                    self.close()  # running out of memory may have left inconsistent state
                return measured if attempt == 1 else replace(measured, attempt=attempt)
            seconds, now = time.monotonic() - began, datetime.now(UTC)
            self.close()
            if self._held and not self._stopped:
                self._held = 0.0  # the point at fault may be a later one, and this one's result was held
            elif answer.status is Status.OUT_OF_MEMORY and not self._last:
                raise KilledError(answer.detail)
            elif answer.status is Status.TIMEOUT or attempt == ATTEMPTS or self._stopped:
                return Measured(
                    answer=answer, seconds=seconds, cpu_seconds=seconds, finished_at=now, attempt=attempt
                )
            else:
                attempt += 1

    def _after_a_crash(self, ending: str) -> Answer:
        """Return the answer of a point whose process ended by itself, or by the kernel for lack of memory."""
        if signal.SIGKILL.name in ending and not self._stopped and oom_kills() > self._oom_kills:
            return Answer.without(Status.OUT_OF_MEMORY, "The kernel ended its process for lack of memory.")
        return Answer.without(Status.CRASHED, f"The process that computed it {ending}.")

    def _working(self, batch: Batch, i: int) -> "_Child":
        """Return the child that is at point i; start a new one if necessary."""
        if self._child is None:
            self._child = _Child()
            if self._stopped:
                self._child.end()
            if not self._child.begins(batch.part(i), self.limits, self._held):
                ending = self._child.ending()
                self.close()
                raise ChildError(f"The process for {batch.method.name} {ending} before its first point.")
        return self._child


class _Child:
    """The child process, for its parent."""

    def __init__(self) -> None:
        self._pipe, theirs = Pipe()
        self._received: deque[Measured] = deque()
        code = f"from tasks.guard import serve; serve({theirs.fileno()}, {os.getpid()})"
        self._process = subprocess.Popen(
            own_process.command(code),
            pass_fds=[theirs.fileno()],
            env=own_process.environment() | dict.fromkeys(_ONE_THREAD, "1"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # output of libraries must not mix with our JSON
            start_new_session=True,  # Ctrl-C reaches only the parent, which then stops the child
        )
        theirs.close()

    def begins(self, batch: Batch, limits: Limits, held: float) -> bool:
        """Send a batch, and the seconds for which results are held; return whether the child received it."""
        try:
            self._pipe.send((batch, limits, held))
            return self._speaks(START_SECONDS) and bool(self._pipe.recv())
        except (EOFError, ConnectionError):
            return False

    def next(self, seconds: float) -> Measured:
        """Return the next result.

        Raises:
            TimeoutError: The result did not arrive in time.
            EOFError, ConnectionError: The child is dead.
        """
        if not self._received:
            if not self._speaks(seconds):
                raise TimeoutError
            self._received.extend(self._pipe.recv())
        return self._received.popleft()

    def _speaks(self, seconds: float) -> bool:
        """Return whether the child sends something in time; a stop of all processes counts as one look."""
        while not self._pipe.poll(min(seconds, LOOK_SECONDS)):
            seconds -= LOOK_SECONDS
            if seconds <= 0:
                return False
        return True

    @property
    def process_id(self) -> int:
        """Id of the process."""
        return self._process.pid

    def ending(self) -> str:
        """Return the end of the process as a predicate for a sentence."""
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            return "stopped answering"
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"

    def end(self) -> None:
        """Kill the process, also in compiled code."""
        self._process.kill()

    def kill(self) -> None:
        """Kill the process and release its resources."""
        self.end()
        self._process.wait()
        self._pipe.close()


def serve(descriptor: int, parent: int) -> None:
    """Evaluate the batches that arrive through a pipe until it closes; the main function of a child.

    Args:
        descriptor: File descriptor of the pipe's end.
        parent: Process id of the parent; this process is killed when the parent ends.
    """
    die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # else an interrupt of all processes would count as a crash
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    load()  # now, so that it does not count towards the time and memory of a point
    pipe: Connection[object, tuple[Batch, Limits, float]] = Connection(descriptor)
    while True:
        try:
            batch, limits, held = pipe.recv()
        except EOFError:
            return
        pipe.send(True)
        ready: list[Measured] = []
        began = 0.0
        for point in batch.points():
            if not ready:
                began = time.monotonic()
                _limit_memory(limits.point_bytes)
            ready.append(_measure(point, limits))
            if time.monotonic() - began >= held or ready[-1].answer.status is Status.OUT_OF_MEMORY:
                pipe.send(ready)
                ready = []
        if ready:
            pipe.send(ready)


def _measure(point: Point, limits: Limits) -> Measured:
    """Evaluate a point without a limit on its time.

    A point whose estimate exceeds a limit is not started; its status names the limit.
    """
    start, cpu = time.perf_counter(), time.process_time()
    answer = limits.refusal(estimate(point)) or evaluate(point)
    return Measured(
        answer=answer,
        seconds=time.perf_counter() - start,
        cpu_seconds=time.process_time() - cpu,
        finished_at=datetime.now(UTC),
    )


def resident_bytes(process: int) -> int:
    """Return the memory of a process, or 0 where the system has no file with it."""
    statm = _lines(f"/proc/{process}/statm")
    return int(statm[0].split()[1]) * resource.getpagesize() if statm else 0


def oom_kills() -> int:
    """Return the number of processes of this control group that the kernel ended for lack of memory."""
    groups = [
        line.split(":", 2)[2] for line in _lines("/proc/self/cgroup") if ":memory:" in line or "::" in line
    ]
    for name in ("memory.events", "memory/memory.oom_control"):  # versions 2 and 1
        kind, _, file = name.rpartition("/")
        for group in [*groups, "/"]:
            for line in _lines(f"/sys/fs/cgroup/{kind}{group}/{file}"):
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
    return 0


def _lines(file: str) -> list[str]:
    """Return the lines of a file of the kernel, or no lines where it does not exist."""
    try:
        return Path(file).read_text().splitlines()
    except OSError:
        return []


def _limit_memory(more: float) -> None:
    """Limit the growth of the address space of this process to `more` bytes, on Linux."""
    if not (statm := _lines("/proc/self/statm")):
        return  # macOS does not have the size in a file, and does not enforce the limit
    now = int(statm[0].split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = now + int(more)
    resource.setrlimit(
        resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard)
    )
