"""The work on one batch: evaluate its points, make rows of the answers, publish them as a part."""

import os
import socket
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice

from privcore.answer import FAILURES, Answer, Status
from storage.folder import Folder
from storage.parts import Packed, ids_hash, pack, parts, publish_packed, read_part
from storage.schema import Provenance, Row, to_table
from tasks.batch import Batch
from tasks.guard import Guard
from tasks.limits import Limits

REASONS = 3  # told with a batch; its rows have them all


@dataclass(frozen=True, kw_only=True)
class Job:
    """Settings that every worker of a sweep shares.

    Attributes:
        sweep: Name of the sweep.
        limits: What a point may take.
        code: Where the workers' code comes from, if it was sent to them; else each knows that itself.
    """

    sweep: str
    limits: Limits
    code: Provenance | None = None


@dataclass(frozen=True, kw_only=True)
class Done:
    """What became of a batch; the answers themselves are in its part.

    Attributes:
        part: File name of the part.
        statuses: Number of points by status.
        seconds: Wall time of all evaluations together.
        method: Name of the method.
        problem: Name of the problem.
        worker: Host and process that evaluated them; empty where nobody did.
        reasons: What the first points without an answer say, for the log.
        packed: The part itself, where its worker could not publish it and somebody else has to.
    """

    part: str
    statuses: Mapping[Status, int]
    seconds: float
    method: str
    problem: str = ""
    worker: str = ""
    reasons: tuple[str, ...] = ()
    packed: Packed | None = None

    @property
    def points(self) -> int:
        """Number of points."""
        return sum(self.statuses.values())


def run_batch(batch: Batch, job: Job, guard: Guard, place: Folder | None) -> Done:
    """Evaluate the points of a batch and publish their rows as one part.

    An interruption ends the evaluation; what is finished by then is published before it is passed on.

    Args:
        batch: Points of one method and one kind of problem.
        job: The sweep that it is for.
        guard: Evaluates within its limits.
        place: The store, or None if this process does not see it: then the part is returned, and what an
            interruption leaves is lost.

    Raises:
        StoreError: The part cannot be written.
        ChildError: No point can be evaluated here at all.
    """
    rows: list[Row] = []
    try:
        for point, result in zip(batch.points(), guard.results(batch), strict=True):
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
    finally:
        packed = pack(to_table(rows, job.code)) if rows else None
        if packed and place:
            publish_packed(place, packed)
    done = _done(packed, rows, worker=f"{socket.gethostname()} {os.getpid()}")
    return done if place else replace(done, packed=packed)


def delivered(done: Done, place: Folder) -> Done:
    """Return what became of a batch after publishing its part, if its worker could not.

    Raises:
        StoreError: The part cannot be written.
    """
    if done.packed is None:
        return done
    publish_packed(place, done.packed)
    return replace(done, packed=None)


def names_of_parts(place: Folder) -> frozenset[str]:
    """Return the file names of the parts that are stored now, to tell those of a run from older ones."""
    place.refresh()
    return frozenset(path.name for path in parts(place))


def published(batch: Batch, place: Folder, before: Collection[str]) -> Done | None:
    """Return what became of a batch whose worker died after its work, None if it died before.

    Args:
        batch: The batch.
        place: The store.
        before: From `names_of_parts`, before the batch was handed out: these are of other runs.
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
            )
    return None


def give_up(batch: Batch, job: Job, place: Folder, reason: str) -> Done:
    """Publish rows that say that the points of a batch crashed, without evaluating them."""
    now = datetime.now(UTC)
    answer = Answer.without(Status.CRASHED, reason)
    rows = [
        Row(point=p, answer=answer, seconds=0.0, cpu_seconds=0.0, attempt=1, finished_at=now, sweep=job.sweep)
        for p in batch.points()
    ]
    packed = pack(to_table(rows))
    publish_packed(place, packed)
    return _done(packed, rows)


def _done(packed: Packed | None, rows: list[Row], worker: str = "") -> Done:
    statuses = Counter(row.answer.status for row in rows)
    without = (row.answer for row in rows if row.answer.status in FAILURES)
    return Done(
        part=packed.name.rpartition("/")[2] if packed else "",
        statuses=dict(statuses),
        seconds=sum(row.seconds for row in rows),
        method=rows[0].point.method.name if rows else "",
        problem=rows[0].point.problem.name if rows else "",
        worker=worker,
        reasons=tuple(f"{answer.status}: {answer.detail}" for answer in islice(without, REASONS)),
    )
