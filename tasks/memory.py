"""Memory of batches on Ray: the share of a node for each, and restraint if the nodes have too little.

Ray starts tasks on a node as long as the sum of their requests fits; a request limits nothing. If the memory
of a node is used up all the same, by other programs or by estimates that are too low, Ray ends the youngest
tasks. This says nothing about their points, so they are computed again later, and fewer at once.
"""

import math
from dataclasses import dataclass, field

from tasks.batch import Batch
from tasks.errors import StoppedError

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
    needed = (PROCESSES + batch.bytes) * 2.0 ** min(kills, 60)
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
