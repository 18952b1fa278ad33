"""The heartbeats of a run, from a separate thread, and the pace that they report."""

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from flows.spec.sweep import Sweep
from privcore.answer import FAILURES
from storage.heartbeats import EVERY, EVERY_IN_BUCKET, Heartbeat, beat, remove_dead, stop
from tasks.work import Done

if TYPE_CHECKING:
    from storage.folder import Folder


class Pace:
    """Points per second since the first finished batch; before it, workers were starting."""

    def __init__(self) -> None:
        self.points = 0
        self.failed = 0
        self._first: tuple[int, float] | None = None

    def add(self, done: Done) -> None:
        """Count a batch."""
        self.points += done.points
        self.failed += sum(number for status, number in done.statuses.items() if status in FAILURES)
        if self._first is None:
            self._first = self.points, time.monotonic()

    @property
    def per_second(self) -> float | None:
        """Points per second; None before the second batch."""
        before, moment = self._first or (0, 0.0)
        seconds = time.monotonic() - moment
        return (self.points - before) / seconds if self.points > before > 0 and seconds > 0 else None


@contextmanager
def beating(
    place: "Folder", sweep: Sweep, *, total: int, new: int, started: datetime
) -> Iterator[Callable[[Done], None]]:
    """Write heartbeats with the progress of a run inside the block; yield a function that counts a batch.

    Args:
        place: The store.
        sweep: The sweep.
        total: Number of its points.
        new: Number of points that this run computes.
        started: When it began, in UTC.
    """
    pace, over = Pace(), threading.Event()
    every = EVERY_IN_BUCKET if place.is_remote else EVERY
    heartbeat = Heartbeat(
        run=secrets.token_hex(8),
        sweep=sweep.name,
        digest=sweep.digest,
        total=total,
        new=new,
        started_at=started,
        every=every,
    )

    def go_on() -> None:
        now = heartbeat
        while True:
            beat(place, now)
            if over.wait(every):
                return
            now = replace(
                now,
                number=now.number + 1,
                beaten_at=datetime.now(UTC),
                done=pace.points,
                failed=pace.failed,
                points_per_second=pace.per_second,
            )

    remove_dead(place, sweep.digest)
    thread = threading.Thread(target=go_on, name="heartbeats", daemon=True)
    thread.start()
    try:
        yield pace.add
    finally:
        over.set()
        thread.join()
        stop(place, heartbeat.run)
