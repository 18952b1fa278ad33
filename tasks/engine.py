"""Engines: the same batches one after another in this process, or on the workers of a Ray cluster."""

import os
from collections.abc import Generator, Sequence

from storage.folder import Folder
from tasks import dispatch
from tasks.address import checked, named_cluster
from tasks.batch import Batch
from tasks.cluster import processors as processors_of
from tasks.guard import Guard
from tasks.work import Done, Job, run_batch

SERIAL = "serial"
RAY = "ray"


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0))


def processors(engine: str, address: str | None = None) -> int:
    """Return the number of batches that an engine computes at once: one for each core or cluster processor.

    Args:
        engine: `serial` or `ray`.
        address: Address of the cluster, as for `run`.

    Raises:
        EngineError: The named cluster is unreachable, or cannot be joined.
    """
    if engine == SERIAL or not (cluster := named_cluster(address)):
        return cores()
    return processors_of(checked(cluster)) or cores()  # 0 if the nodes of the cluster have not joined yet


def run(
    engine: str,
    batches: Sequence[Batch],
    job: Job,
    place: Folder,
    workers: int | None = None,
    address: str | None = None,
) -> Generator[Done]:
    """Yield the outcome of each batch as it finishes; close the generator to stop early.

    Batches that were yielded are stored, each as one part. Rows do not depend on the engine.

    Args:
        engine: `serial` or `ray`.
        batches: From `tasks.batch.cut`.
        job: Settings for workers.
        place: The store.
        workers: Number of worker processes, or None for one for each core. On a named cluster: number of
            batches in flight, or None for a number that keeps the whole cluster busy. Ignored by the serial
            engine.
        address: Address of the cluster, `host:port` or `auto`; None for the value of RAY_ADDRESS. If both are
            missing, or with `local`, Ray is started on this machine.

    Raises:
        EngineError: The named cluster is unreachable (raised at once), cannot be used, or stops working.
        StoreError: A part cannot be written.
    """
    if engine == SERIAL:
        return run_serially(batches, job, place)

    if cluster := named_cluster(address):
        return dispatch.run_on_cluster(batches, job, place, checked(cluster), workers)
    return dispatch.run_here(batches, job, place, workers or cores())


def run_serially(batches: Sequence[Batch], job: Job, place: Folder) -> Generator[Done]:
    """Yield the outcome of each batch, computed in this process one after another."""
    with Guard(job.limits) as guard:
        for batch in batches:
            yield run_batch(batch, job, guard, place)
