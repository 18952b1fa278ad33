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
    """Return how many batches an engine computes at once: one a core, or one a processor of the cluster.

    Args:
        engine: `serial` or `ray`.
        address: The cluster, as `run` takes it.

    Raises:
        EngineError: The named cluster is not there, or cannot be joined.
    """
    if engine == SERIAL or not (cluster := named_cluster(address)):
        return cores()
    return processors_of(checked(cluster)) or cores()  # of a cluster whose nodes are still to come


def run(
    engine: str,
    batches: Sequence[Batch],
    job: Job,
    place: Folder,
    workers: int | None = None,
    address: str | None = None,
) -> Generator[Done]:
    """Yield what became of each batch, as they finish; close the generator to stop early.

    What was yielded is stored: every batch becomes its own part. Rows do not depend on the engine.

    Args:
        engine: `serial` or `ray`.
        batches: From `tasks.batch.cut`.
        job: What workers have to know.
        place: The store.
        workers: Number of worker processes, None for one a core; on a named cluster the number of batches in
            flight, None for as many as keep all of it busy. The serial engine has one.
        address: The cluster, `host:port` or `auto`; None for what RAY_ADDRESS says, and where that says
            nothing, or with `local`, Ray is started here.

    Raises:
        EngineError: The named cluster is not there, at once; or it cannot be used, or is gone, later.
        StoreError: A part cannot be written.
    """
    if engine == SERIAL:
        return run_serially(batches, job, place)

    if cluster := named_cluster(address):
        return dispatch.run_on_cluster(batches, job, place, checked(cluster), workers)
    return dispatch.run_here(batches, job, place, workers or cores())


def run_serially(batches: Sequence[Batch], job: Job, place: Folder) -> Generator[Done]:
    """Yield what became of each batch, computed here one after another."""
    with Guard(job.limits) as guard:
        for batch in batches:
            yield run_batch(batch, job, guard, place)
