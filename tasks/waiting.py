"""Batches that wait for memory, or to be computed again, and the decision about a batch that Ray lost.

Ray starts tasks on a node as long as the sum of their requests fits; a request limits nothing. If the memory
of a node is used up all the same, by other programs or by estimates that are too low, Ray ends the youngest
tasks. This says nothing about their points, so they are computed again later, and fewer at once.

A batch is suspected of killing its worker only if every node is alive. Batches of a dead node, and batches
that Ray ended for lack of memory, are computed again without limit, as long as others finish in between.
"""

import math
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from privcore.answer import Status
from storage.place.folder import Folder
from tasks.batch import Batch
from tasks.errors import StoppedError, first_line
from tasks.work import Done, Job, give_up, names_of_parts, published

PROCESSES = 0.5e9  # bytes of a Ray worker and of its child, before the first point
STEP = 0.25e9  # bytes; with few different requests, Ray reuses the worker of one batch for the next
PER_KILL = 3  # fewer batches in flight after a kill: those of one processor
PER_RETURN = 4  # finished batches after which one more is in flight
FIRST_PAUSE = 1.0  # seconds without new batches after a kill; twice as long after each further one
LONGEST_PAUSE = 30.0
PATIENCE = 600.0  # longest time in seconds in which Ray ends batches and none finishes


def request(batch: Batch, kills: int, largest: float) -> int:
    """Return the memory to ask Ray for: that of the processes and of the most demanding point.

    Args:
        batch: The batch.
        kills: Number of times that Ray ended it for lack of memory; each doubles the request, so that the
            batch has a node to itself at last.
        largest: Memory of the largest node in bytes, which no request exceeds, or 0 if there is no node yet.

    Returns:
        Bytes, >= 0; no memory is asked for if 0.
    """
    needed = (PROCESSES + batch.bytes) * 2.0 ** min(kills, WHOLE)
    return int(min(STEP * math.ceil(needed / STEP), largest))


@dataclass
class Restraint:
    """Fewer batches at once after Ray ended one for lack of memory, and more again as batches finish.

    Times are in seconds of a monotonic clock.

    Attributes:
        most: Most batches in flight.
    """

    most: float = math.inf
    _finished: int = 0
    _pause: float = FIRST_PAUSE
    _until: float = field(default=-math.inf)
    _since: float | None = None

    def window(self, usual: int, now: float) -> int:
        """Return the number of batches that may be in flight now.

        Args:
            usual: The number without a lack of memory.
            now: The time.
        """
        return 0 if now < self._until else int(min(usual, self.most))

    def killed(self, flying: int, now: float) -> None:
        """Record that Ray ended a batch for lack of memory.

        Args:
            flying: Number of the other batches in flight.
            now: The time.

        Raises:
            StoppedError: No batch has finished for ten minutes, in which Ray ended several.
        """
        self.most = max(1.0, min(self.most, flying + 1) - PER_KILL)
        self._until, self._pause = now + self._pause, min(2.0 * self._pause, LONGEST_PAUSE)
        self._since = now if self._since is None else self._since
        if now - self._since > PATIENCE:
            raise StoppedError(
                f"Ray has ended every batch for {PATIENCE:g} s because the memory of its nodes is used up"
            )

    def finished(self) -> None:
        """Record that a batch finished."""
        self._pause, self._since = FIRST_PAUSE, None
        self._finished += 1
        if self._finished % PER_RETURN == 0:
            self.most += 1


DEATHS = 5  # deaths of nodes during one batch while no other batch finishes
WHOLE = 60  # kills after which a batch requests the whole memory of the largest node
ALONE = 3  # kills for lack of memory of a batch that had a node to itself


@dataclass(eq=False, slots=True)
class Attempt:
    """A batch, with its earlier fates.

    Attributes:
        batch: The batch.
        crashed: Whether its worker died although every node was alive.
        kills: Number of times that Ray ended it for lack of memory.
        alone: Number of these times in which it had the largest node to itself.
        late: Number of times that it was not finished at its deadline, each twice as late as the last.
        finished: Whether it has an outcome, so that copies of it in flight or waiting are not needed.
    """

    batch: Batch
    crashed: bool = False
    kills: int = 0
    alone: int = 0
    late: int = 0
    finished: bool = False


@dataclass(frozen=True, slots=True)
class Flight:
    """A batch in flight.

    Attributes:
        attempt: The batch, with its earlier fates.
        dead: The dead nodes at its submission.
        memory: Memory in bytes that it asked for.
        deadline: Time of a monotonic clock at which another node computes it, too.
    """

    attempt: Attempt
    dead: frozenset[str]
    memory: int
    deadline: float


class Waiting:
    """Batches that wait; the methods `after_...` return the outcome of a lost batch, or queue it again.

    Attributes:
        restraint: The number of batches that memory allows in flight.
    """

    def __init__(self, batches: Iterable[Batch], job: Job, place: Folder) -> None:
        self.restraint = Restraint()
        self._attempts: deque[Attempt] = deque()
        self._others = map(Attempt, batches)  # each batch is made when its turn comes
        self._later: deque[Attempt] = deque()  # after all others
        self._deaths: Counter[int] = Counter()  # deaths of nodes by batch since a batch finished
        self._job = job
        self._place = place
        self._before = names_of_parts(place)

    def __bool__(self) -> bool:
        """Whether a batch waits."""
        self._fill()
        return bool(self._attempts)

    def next(self) -> Attempt:
        """Remove the first batch and return it."""
        self._fill()
        return self._attempts.popleft()

    def again(self, attempt: Attempt) -> None:
        """Queue a batch before all others."""
        self._attempts.appendleft(attempt)

    def finished(self) -> None:
        """Record that a batch finished."""
        self._deaths.clear()
        self.restraint.finished()

    def after_a_loss(self, attempt: Attempt) -> Done | None:
        """Return the outcome of a lost batch if it was published, else queue it before all others."""
        done = self._published(attempt)
        if done is None:
            self.again(attempt)
        return done

    def after_a_death(self, attempt: Attempt, error: Exception) -> Done | None:
        """Queue a batch again after the death of its node, which is not evidence against the batch.

        Raises:
            StoppedError: The nodes of this batch die again and again, and no other batch finishes.
        """
        if done := self._published(attempt):  # the node may have died after the work
            return done
        self._deaths[id(attempt)] += 1
        if self._deaths[id(attempt)] >= DEATHS:
            method = attempt.batch.method.name
            where = f"in a row while computing a batch of {method}, and no batch finished"
            raise StoppedError(f"{DEATHS} nodes of the Ray cluster died {where} ({first_line(error)})")
        self.again(attempt)
        return None

    def after_a_crash(self, attempt: Attempt) -> Done | None:
        """Retry a batch whose worker died, then its halves, until the point that kills it is alone."""
        if done := self._published(attempt):  # its worker may have died after its work
            return done
        if not attempt.crashed:
            attempt.crashed = True
            self.again(attempt)
            return None
        return self._blame(attempt.batch, Status.CRASHED, "Its worker died twice.")

    def after_a_kill(self, attempt: Attempt, memory: float, largest: float, flying: int) -> Done | None:
        """Retry a batch that Ray ended for lack of memory later, with more room and fewer others.

        It is evidence against the batch only if the limit of its points exceeds the memory of every node, and
        if the batch had the largest node to itself.

        Args:
            attempt: The batch.
            memory: Memory in bytes that it had asked for.
            largest: Memory in bytes of the largest node.
            flying: Number of other batches in flight.

        Raises:
            StoppedError: Ray has ended every batch for ten minutes.
        """
        if done := self._published(attempt):
            return done
        self.restraint.killed(flying, time.monotonic())
        attempt.kills += 1
        attempt.alone += memory >= largest
        if attempt.alone < ALONE or PROCESSES + self._job.limits.point_bytes <= largest:
            self._later.append(attempt)
            return None
        room = f"on a node of {largest:.3g} bytes for itself"
        return self._blame(
            attempt.batch, Status.OUT_OF_MEMORY, f"Ray ended it {ALONE} times for lack of memory, {room}."
        )

    def after_a_kernel_kill(self, attempt: Attempt, flying: int) -> Done | None:
        """Retry a batch that lost a process to the kernel, for lack of memory, with a node for itself.

        If that happens again there, the worker reports the points that need too much memory; if the worker
        itself is lost, the batch is divided until one point is alone.

        Args:
            attempt: The batch.
            flying: Number of other batches in flight.
        """
        if done := self._published(attempt):
            return done
        self.restraint.killed(flying, time.monotonic())
        if attempt.kills >= WHOLE:
            reason = "The kernel ended its worker for lack of memory, with a node for itself."
            return self._blame(attempt.batch, Status.OUT_OF_MEMORY, reason)
        attempt.kills = WHOLE
        self._later.append(attempt)
        return None

    def _fill(self) -> None:
        """Make the first batch, if there is one."""
        if not self._attempts:
            self._attempts.extend(islice(self._others, 1))
        if not self._attempts and self._later:
            self._attempts.append(self._later.popleft())

    def _published(self, attempt: Attempt) -> Done | None:
        return published(attempt.batch, self._place, self._before)

    def _blame(self, batch: Batch, status: Status, reason: str) -> Done | None:
        """Queue both halves of a batch before all others, or store that its only point failed."""
        if len(batch) == 1:
            return give_up(batch, self._job, self._place, status, reason)
        half = len(batch) // 2
        self._attempts.extendleft((Attempt(batch.part(half)), Attempt(batch.part(0, half))))
        return None
