"""Work on one batch: evaluate its points, and publish the answers as one part."""

import os
import socket
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice

from privcore.answer import FAILURES, Answer, Status
from storage.parts import Packed, ids_hash, pack, parts, publish_packed, read_part
from storage.place.folder import Folder
from storage.schema import Provenance, Row, to_table
from tasks.batch import Batch
from tasks.guard import Guard, KilledError, Limits

REASONS = 3  # most reasons of failures in the outcome of a batch; its rows have all of them


@dataclass(frozen=True, kw_only=True)
class Job:
    """Settings that every worker of a sweep shares.

    Attributes:
        sweep: Name of the sweep.
        limits: Limits of each point.
        code: Provenance of the workers' code if it was sent to them; None if each worker has its own code.
    """

    sweep: str
    limits: Limits
    code: Provenance | None = None


@dataclass(frozen=True, kw_only=True)
class Done:
    """The outcome of a batch; the answers themselves are in its part.

    Attributes:
        part: File name of the part.
        statuses: Number of points by status.
        seconds: Wall time of all evaluations together.
        method: Name of the method.
        problem: Name of the problem.
        worker: Host and process that evaluated the points, or "" if they were not evaluated.
        reasons: Reasons of the first points without an answer, for the log.
        packed: The part itself, if its worker could not publish it and the driver must.
        estimate: Estimated seconds of the batch.
        left: Number of its last points that need more memory than was free, and are not computed.
    """

    part: str
    statuses: Mapping[Status, int]
    seconds: float
    method: str
    problem: str = ""
    worker: str = ""
    reasons: tuple[str, ...] = ()
    packed: Packed | None = None
    estimate: float = 0.0
    left: int = 0

    @property
    def points(self) -> int:
        """Number of points."""
        return sum(self.statuses.values())

    @property
    def failed(self) -> int:
        """Number of points without an answer, except points to which the method does not apply."""
        return sum(n for status, n in self.statuses.items() if status in FAILURES)


def run_batch(batch: Batch, job: Job, guard: Guard, place: Folder | None, *, last: bool = True) -> Done:
    """Evaluate the points of a batch and publish their rows as one part.

    An interruption ends the evaluation; finished points are published before the exception propagates.

    Args:
        batch: Points of one method and one kind of problem.
        job: Settings of the sweep.
        guard: Evaluates the points within limits.
        place: The store, or None if this process has no access to it; then the part is returned, and an
            interruption loses the finished points.
        last: Whether points that the kernel ends for lack of memory fail; else the batch ends before them.

    Raises:
        StoreError: The part cannot be written.
        ChildError: This machine cannot evaluate any point.
    """
    rows: list[Row] = []
    try:
        for point, result in zip(batch.points(), guard.results(batch, last=last), strict=True):
            rows.append(
                Row(
                    point=point,
                    answer=result.answer,
                    seconds=result.seconds,
                    cpu_seconds=result.cpu_seconds,
                    attempt=result.attempt,
                    finished_at=result.finished_at,
                    sweep=job.sweep,
                )
            )
    except KilledError:
        pass  # the rest is left
    finally:
        packed = pack(to_table(rows, job.code)) if rows else None
        if packed and place:
            publish_packed(place, packed)
    done = _done(packed, rows, batch, worker=f"{socket.gethostname()} {os.getpid()}")
    return replace(done, left=len(batch) - len(rows), packed=None if place else packed)


def delivered(done: Done, place: Folder) -> Done:
    """Publish the part of a batch if its worker could not, and return the outcome without the part.

    Raises:
        StoreError: The part cannot be written.
    """
    if done.packed is None:
        return done
    publish_packed(place, done.packed)
    return replace(done, packed=None)


def names_of_parts(place: Folder) -> frozenset[str]:
    """Return the file names of the stored parts, by which later parts of a run are recognised."""
    place.refresh()
    return frozenset(path.name for path in parts(place))


def published(batch: Batch, place: Folder, before: Collection[str]) -> Done | None:
    """Return the outcome of a batch whose worker published it and then died, or None.

    Args:
        batch: The batch.
        place: The store.
        before: Parts of other runs, from `names_of_parts` before the batch was submitted.
    """
    wanted = ids_hash([point.id for point in batch.points()])
    place.refresh()  # workers on other machines publish into a bucket
    folder = place.data / f"problem={batch.problem.name}"
    for path in sorted(folder.glob(f"{wanted}-*.parquet")):
        if path.name not in before:
            rows = read_part(place, path, ["status", "seconds"]).to_pydict()
            statuses = Counter(Status(status) for status in rows["status"])
            return Done(
                part=path.name,
                statuses=dict(statuses),
                seconds=sum(rows["seconds"]),
                method=batch.method.name,
                problem=batch.problem.name,
                estimate=batch.seconds,
            )
    return None


def give_up(batch: Batch, job: Job, place: Folder, status: Status, reason: str) -> Done:
    """Publish rows with a status of failure for the points of a batch, without evaluating them."""
    now = datetime.now(UTC)
    answer = Answer.without(status, reason)
    rows = [
        Row(point=p, answer=answer, seconds=0.0, cpu_seconds=0.0, attempt=1, finished_at=now, sweep=job.sweep)
        for p in batch.points()
    ]
    packed = pack(to_table(rows))
    publish_packed(place, packed)
    return _done(packed, rows, batch)


def _done(packed: Packed | None, rows: list[Row], batch: Batch, worker: str = "") -> Done:
    statuses = Counter(row.answer.status for row in rows)
    without = (row.answer for row in rows if row.answer.status in FAILURES)
    return Done(
        part=packed.name.rpartition("/")[2] if packed else "",
        statuses=dict(statuses),
        seconds=sum(row.seconds for row in rows),
        method=rows[0].point.method.name if rows else "",
        problem=rows[0].point.problem.name if rows else "",
        worker=worker,
        estimate=batch.seconds,
        reasons=tuple(f"{answer.status}: {answer.detail}" for answer in islice(without, REASONS)),
    )
