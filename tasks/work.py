"""The work on one batch: evaluate its points, make rows of the answers, publish them as a part."""

import os
import socket
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from privcore.answer import FAILURES, Answer, Status
from storage.layout import DATA
from storage.located import located, refresh
from storage.parts import Packed, ids_hash, pack, parts, publish_packed, read_part
from storage.schema import Provenance, Row, to_table
from tasks.batch import Batch
from tasks.guard import Guard
from tasks.limits import Limits

REASONS = 3  # told with a batch; its rows have them all


@dataclass(frozen=True, kw_only=True)
class Job:
    """What every worker of a sweep has to know: folder or address of the store, sweep, limits.

    Attributes:
        store: Folder or address of the store.
        sweep: Name of the sweep.
        limits: What a point may take.
        code: Where the workers' code comes from, if it was sent to them; else each knows that itself.
    """

    store: Path
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


def run_batch(batch: Batch, job: Job, guard: Guard, *, publishes: bool = True) -> Done:
    """Evaluate the points of a batch and publish their rows as one part.

    An interruption ends the evaluation; what is finished by then is published before it is passed on.

    Args:
        batch: Points of one method and one kind of problem.
        job: Where to publish, and for which sweep.
        guard: Evaluates within its limits.
        publishes: Whether this process sees the store; else the part is returned, and what an interruption
            leaves is lost.

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
        if packed and publishes:
            publish_packed(job.store, packed)
    done = _done(packed, rows, worker=f"{socket.gethostname()} {os.getpid()}")
    return done if publishes else replace(done, packed=packed)


def delivered(done: Done, job: Job) -> Done:
    """Return what became of a batch after publishing its part, if its worker could not.

    Raises:
        StoreError: The part cannot be written.
    """
    if done.packed is None:
        return done
    publish_packed(job.store, done.packed)
    return replace(done, packed=None)


def names_of_parts(job: Job) -> frozenset[str]:
    """Return the file names of the parts that are stored now, to tell those of a run from older ones."""
    root = located(job.store)
    refresh(root)
    return frozenset(path.name for path in parts(root))


def published(batch: Batch, job: Job, before: Collection[str]) -> Done | None:
    """Return what became of a batch whose worker died after its work, None if it died before.

    Args:
        batch: The batch.
        job: Where it would be.
        before: From `names_of_parts`, before the batch was handed out: these are of other runs.
    """
    wanted = ids_hash([point.id for point in batch.points()])
    root = located(job.store)
    refresh(root)  # workers on other machines publish into a bucket
    folder = root / DATA / f"problem={batch.problem.name}"
    for path in sorted(folder.glob(f"{wanted}-*.parquet")):
        if path.name not in before:
            rows = read_part(path, ["status", "seconds"]).to_pydict()
            statuses = Counter(Status(status) for status in rows["status"])
            return Done(
                part=path.name,
                statuses=dict(statuses),
                seconds=sum(rows["seconds"]),
                method=batch.method.name,
                problem=batch.problem.name,
            )
    return None


def give_up(batch: Batch, job: Job, reason: str) -> Done:
    """Publish rows that say that the points of a batch crashed, without evaluating them."""
    now = datetime.now(UTC)
    answer = Answer.without(Status.CRASHED, reason)
    rows = [
        Row(point=p, answer=answer, seconds=0.0, cpu_seconds=0.0, attempt=1, finished_at=now, sweep=job.sweep)
        for p in batch.points()
    ]
    packed = pack(to_table(rows))
    publish_packed(job.store, packed)
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
