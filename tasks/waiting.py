"""Batches that wait to be computed, and the decision about a batch that Ray lost.

A batch is suspected of killing its worker only if every node is alive. Batches of a dead node, and batches
that Ray ended for lack of memory, are computed again without limit, as long as others finish in between.
"""

import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from privcore.answer import Status
from storage.folder import Folder
from tasks.batch import Batch
from tasks.errors import StoppedError, first_line
from tasks.memory import PROCESSES, Restraint
from tasks.work import Done, Job, give_up, names_of_parts, published

DEATHS = 5  # deaths of nodes during one batch while no other batch finishes
ALONE = 3  # kills for lack of memory of a batch that had a node to itself


@dataclass(eq=False, slots=True)
class Attempt:
    """A batch, with its earlier fates.

    Attributes:
        batch: The batch.
        crashed: Whether its worker died although every node was alive.
        kills: Number of times that Ray ended it for lack of memory.
        alone: Number of these times in which it had the largest node to itself.
    """

    batch: Batch
    crashed: bool = False
    kills: int = 0
    alone: int = 0


@dataclass(frozen=True, slots=True)
class Flight:
    """A batch in flight, with the dead nodes at its submission and the memory in bytes that it asked for."""

    attempt: Attempt
    dead: frozenset[str]
    memory: int


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
