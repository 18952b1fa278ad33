"""The heartbeats of a run, from a separate thread."""

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from flows.runs.pace import Pace
from flows.spec.sweep import Sweep
from storage.heartbeats import EVERY, EVERY_IN_BUCKET, Heartbeat, beat, remove_dead, stop
from tasks.work import Done

if TYPE_CHECKING:
    from flows.runs.plan import Plan
    from storage.folder import Folder


@contextmanager
def beating(
    place: "Folder", sweep: Sweep, plan: "Plan", *, started: datetime
) -> Iterator[Callable[[Done], None]]:
    """Write heartbeats with the progress of a run inside the block; yield a function that counts a batch.

    Args:
        place: The store.
        sweep: The sweep.
        plan: The work of the run.
        started: When it began, in UTC.
    """
    pace, over = Pace(plan), threading.Event()
    every = EVERY_IN_BUCKET if place.is_remote else EVERY
    heartbeat = Heartbeat(
        run=secrets.token_hex(8),
        sweep=sweep.name,
        digest=sweep.digest,
        total=plan.total,
        new=plan.new,
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
                work_seconds_left=pace.seconds_left,
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
