"""Methods that sleep, hang, crash, leak and lie, for tests of everything around a method.

They answer `unamplified-epsilon`. What `faulty.mixed` does depends on `steps`.
"""

import ctypes
import os
import signal
import time
from typing import Annotated, ClassVar

from privcore import Answer, Cost, Direction, Method, Problem, find_problem
from privcore.parameter import Real

LOG = "FAULTY_LOG"
"""Names a file in which every evaluation of a slow point writes a line with its worker's process id."""

GOOD, HANGS, CRASHES, EATS_MEMORY, RAISES, KILLS_PARENT, EXITS, TOO_DEAR, TOO_BIG = range(1, 10)

_SECONDS = Real(name="seconds", symbol="", lower=0.0, upper=1e6, typical=(0.1,), meaning="Time it takes")
_BYTES = Real(name="bytes", symbol="", lower=0.0, upper=1e15, typical=(2e9,), meaning="Memory it declares")


class Slow(Method):
    """Sleeps, then answers at most 10/sigma, which is true for one step, sigma >= 1 and delta >= 1e-5."""

    name: ClassVar[str] = "faulty.slow"
    problems: ClassVar[tuple[type[Problem], ...]] = (find_problem("unamplified-epsilon"),)
    direction: ClassVar[Direction] = Direction.ESTIMATE
    reference: ClassVar[str] = "none"
    seconds: Annotated[float, _SECONDS] = 0.1

    def cost(self, problem: Problem) -> Cost:
        return Cost(seconds=self.seconds, bytes=1e5)

    def answer(self, problem: Problem, seed: int) -> Answer:
        time.sleep(self.seconds)
        if log := os.environ.get(LOG):
            with open(log, "a") as file:  # noqa: PTH123  one short write, which nothing can divide
                file.write(f"{os.getppid()}\n")
        return Answer.enclosure(0.0, 10.0 / float(problem.as_fields()["sigma"]), value=seed / 2**63)


class Large(Slow):
    """Sleeps as long, and declares memory that it does not take; the log has a line when it begins, too."""

    name: ClassVar[str] = "faulty.large"
    bytes: Annotated[float, _BYTES] = 2e9

    def cost(self, problem: Problem) -> Cost:
        return Cost(seconds=self.seconds, bytes=self.bytes)

    def answer(self, problem: Problem, seed: int) -> Answer:
        with open(os.environ[LOG], "a") as file:  # noqa: PTH123  one short write, which nothing can divide
            file.write("begins\n")
        return super().answer(problem, seed)


class Filling(Slow):
    """Sleeps as long with more memory than it declares, which is less than the default limit."""

    name: ClassVar[str] = "faulty.filling"

    def answer(self, problem: Problem, seed: int) -> Answer:
        filled = b"x" * 1_500_000_000
        answer = super().answer(problem, len(filled))
        del filled
        return answer


class Mixed(Method):
    """Misbehaves as the number of steps says."""

    name: ClassVar[str] = "faulty.mixed"
    problems: ClassVar[tuple[type[Problem], ...]] = (find_problem("unamplified-epsilon"),)
    direction: ClassVar[Direction] = Direction.ESTIMATE
    reference: ClassVar[str] = "none"

    def applies(self, problem: Problem) -> str | None:
        return "Only for one epoch." if problem.as_fields()["epochs"] != 1 else None

    def cost(self, problem: Problem) -> Cost:
        steps = problem.as_fields()["steps"]
        return Cost(seconds=1e9 if steps == TOO_DEAR else 1e-3, bytes=1e15 if steps == TOO_BIG else 1e5)

    def answer(self, problem: Problem, seed: int) -> Answer:
        match problem.as_fields()["steps"]:
            case x if x == HANGS:
                ctypes.PyDLL(None).sleep(1000)  # holds the interpreter's lock and handles no signal
            case x if x == CRASHES:
                ctypes.string_at(0)
            case x if x == EATS_MEMORY:
                bytearray(8 * 10**9)
            case x if x == RAISES:
                raise ValueError("no such luck")
            case x if x == KILLS_PARENT:
                os.kill(os.getppid(), signal.SIGKILL)
                time.sleep(60)
            case x if x == EXITS:
                os._exit(3)
        return Answer.enclosure(0.0, 1.0)
