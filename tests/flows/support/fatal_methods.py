"""A method after whose first batch, once that is published, its Ray worker or all of Ray is killed.

The worker imports this module before it runs the batch, since it must find the method; nothing is replaced
anywhere else.
"""

import os
import signal
import time
from typing import Annotated, ClassVar

from privcore import Answer, Cost, Direction, Method, Problem, find_problem
from privcore.parameter import Choice
from storage.place.folder import Folder
from tasks import worker
from tasks.batch import Batch
from tasks.guard import Guard
from tasks.work import Done, Job
from tasks.work import run_batch as run_batch_alive

_VICTIM = Choice(name="victim", symbol="", choices=("worker", "ray"), meaning="The killed process")


class Fatal(Method):
    """Answers 1/sigma; about ten points make a batch."""

    name: ClassVar[str] = "fatal.published"
    problems: ClassVar[tuple[type[Problem], ...]] = (find_problem("unamplified-epsilon"),)
    direction: ClassVar[Direction] = Direction.ESTIMATE
    reference: ClassVar[str] = "none"
    victim: Annotated[str, _VICTIM] = "worker"

    def cost(self, problem: Problem) -> Cost:
        return Cost(seconds=0.1, bytes=1e5)

    def answer(self, problem: Problem, seed: int) -> Answer:
        return Answer.enclosure(0.0, 1.0 / float(problem.as_fields()["sigma"]))


def run_batch(batch: Batch, job: Job, guard: Guard, place: Folder | None, *, last: bool = True) -> Done:
    """Run a batch and publish it; the first time, kill the victim before the result is known elsewhere."""
    done = run_batch_alive(batch, job, guard, place, last=last)
    assert place is not None
    killed = place.root.with_suffix(".killed")
    if isinstance(batch.method, Fatal) and not killed.exists():
        killed.touch()
        raylet = os.getppid()
        os.kill(raylet if batch.method.victim == "ray" else os.getpid(), signal.SIGKILL)
        time.sleep(60)  # the worker ends when it misses its raylet
    return done


worker.run_batch = run_batch  # type: ignore[attr-defined]  # a name it imports and does not export
