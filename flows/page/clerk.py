"""The process that answers the questions of `privsweep serve`, which its parent can kill at any instant.

It asks the methods one after another, and lets each compute in a child of its own. Its parent kills both if a
question takes too long, and starts new ones if they keep too much memory for the next question.
"""

import os
import resource
import signal
import subprocess
import time
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from typing import Any

from flows.answers.ask import ask
from privcore import Answer, LimitError, Point, PrivsweepError, Problem, Status
from tasks import own_process
from tasks.batch import Batch
from tasks.guard import Guard, Limits, estimate, resident_bytes
from tasks.own_process import die_with

SECONDS = 20.0
"""Seconds of one question, from its start to its answer."""
METHODS_SHARE = 0.85
"""Share of the seconds after which no method computes, so that the bounds proved before are still sent."""
BYTES = 2e9
"""Memory of one method, in addition to that of its process."""
KEPT_BYTES = 500_000_000
"""Memory above which a process is not kept for the next question."""
START_SECONDS = 300.0
"""Seconds for the process to start, which happens before the first question."""


class Clerk:
    """The process, for its parent; used by one thread, except `stop`."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection[Any, Any] | None = None
        self._stopped = False

    def start(self) -> None:
        """Start the process unless it runs.

        Raises:
            LimitError: It does not start.
        """
        if self._process is not None or self._stopped:
            return
        self._pipe, theirs = Pipe()
        code = (
            f"from flows.page.clerk import serve; serve({theirs.fileno()}, {os.getpid()}, {self._seconds!r})"
        )
        self._process = subprocess.Popen(
            own_process.command(code),
            pass_fds=[theirs.fileno()],
            env=own_process.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C reaches only the parent
        )
        theirs.close()
        if self._stopped:
            self._end()
        try:
            ready = self._pipe.poll(START_SECONDS) and self._pipe.recv()
        except (EOFError, ConnectionError):
            ready = False
        if not ready:
            self.close()
            raise LimitError("The process that computes answers did not start.")

    def answer(self, problem: Problem) -> dict[str, Any]:
        """Return the answer of all methods, in the format of `privsweep ask --json`.

        Raises:
            LimitError: The question took too long, or its process was ended.
            PrivsweepError: The question has no answer.
        """
        for _ in range(2):  # the process may have ended while it was idle
            self.start()
            if self._stopped or self._pipe is None:
                raise LimitError("The server is stopping.")
            try:
                self._pipe.send(problem)
                break
            except ConnectionError:
                self.close()
        return self._received()

    def _received(self) -> dict[str, Any]:
        assert self._pipe is not None
        try:
            if not self._pipe.poll(max(self._seconds, 2.0)):
                self.close()
                raise LimitError(f"The question took longer than {self._seconds:g} s.")
            content, keeps = self._pipe.recv()
        except (EOFError, ConnectionError):
            self.close()
            raise LimitError("The process that computed the answer was ended.") from None
        if keeps > KEPT_BYTES:
            self.close()
        if isinstance(content, PrivsweepError):
            raise content
        assert isinstance(content, dict)
        return content

    def stop(self) -> None:
        """End the process, at once and from any thread, and start no other one."""
        self._stopped = True
        self._end()

    def close(self) -> None:
        """End the process, and release its resources."""
        self._end()
        if self._process is not None and self._pipe is not None:
            self._process.wait()
            self._pipe.close()
        self._process = self._pipe = None

    def _end(self) -> None:
        if (process := self._process) is not None and process.poll() is None:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)  # its child ends with it


def serve(descriptor: int, parent: int, seconds: float) -> None:
    """Answer the questions that arrive through a pipe until it closes; the main function of the process.

    Args:
        descriptor: File descriptor of the pipe's end.
        parent: Process id of the parent; this process is killed when the parent ends.
        seconds: Seconds of one question.
    """
    die_with(parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pipe: Connection[Any, Problem] = Connection(descriptor)
    pipe.send(True)
    with Guard(Limits(point_seconds=seconds, point_bytes=BYTES)) as guard:
        while True:
            try:
                problem = pipe.recv()
            except EOFError:
                return
            try:
                content: Any = _asked(problem, guard, seconds * METHODS_SHARE)
            except PrivsweepError as error:
                content = error
            if guard.kept_bytes() > KEPT_BYTES:
                guard.close()
            pipe.send((content, resident_bytes(os.getpid())))


def _asked(problem: Problem, guard: Guard, seconds: float) -> dict[str, Any]:
    """Return the answer of all methods within a time."""
    deadline = time.monotonic() + seconds

    def evaluated(point: Point) -> Answer:
        left = deadline - time.monotonic()
        if left <= 0:
            sentence = f"Not started: the other methods took all of the {seconds:g} s."
            return Answer.without(Status.TIMEOUT, sentence)
        guard.limits = Limits(point_seconds=left, point_bytes=BYTES)
        cost = estimate(point)
        batch = Batch(
            problem=type(problem),
            method=point.method,
            fields=(tuple(point.problem.as_fields().values()),),
            seconds=cost.seconds,
            bytes=cost.bytes,
        )
        return next(iter(guard.results(batch))).answer

    return ask(problem, limit_seconds=seconds, limit_bytes=BYTES, evaluated=evaluated).as_content()
