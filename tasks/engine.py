"""Engines: the same batches one after another in this process, or on the workers of a Ray cluster.

The engine `auto` is one of the two: `chosen` says which, and why.
"""

import os
from collections.abc import Generator, Sequence

from privcore.errors import DomainError
from privcore.extras import installed, require
from privcore.parameter import Integer
from storage.place.folder import Folder
from tasks import dispatch
from tasks.batch import Batch
from tasks.cluster import bypass_proxies, checked, named_cluster
from tasks.cluster import processors as processors_of
from tasks.guard import Guard
from tasks.work import Done, Job, run_batch

AUTO = "auto"
SERIAL = "serial"
RAY = "ray"
ENGINES = AUTO, RAY, SERIAL
WORKERS = Integer(
    name="workers",
    symbol="w",
    unit="processes",
    lower=1,
    upper=100_000,
    typical=(1, 8),
    meaning="Number of worker processes",
)

SHORT = 10.0
"""Estimated seconds of one core below which a sweep is computed without Ray, which takes longer to start."""


def cores() -> int:
    """Return the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_engine(engine: str, address: str | None = None) -> None:
    """Raise `DomainError` for an unknown engine, or an address of a cluster for the serial engine."""
    if engine not in ENGINES:
        raise DomainError(f"Expected --engine {', '.join(ENGINES[:-1])} or {SERIAL}, got {str(engine)[:50]}.")
    if engine == SERIAL and address:
        raise DomainError(f"Expected --ray-address with --engine {RAY} only, got it with {SERIAL}.")


def checked_workers(workers: int | None) -> int | None:
    """Return a number of worker processes; raise `DomainError` unless it is None or in its domain."""
    return None if workers is None else WORKERS.check(workers)


def chosen(engine: str, cpu_seconds: float, address: str | None = None) -> tuple[str, str]:
    """Return the engine that computes, and the reason as a sentence if the engine was `auto`.

    Args:
        engine: `auto`, `ray` or `serial`.
        cpu_seconds: Estimated seconds of one core.
        address: Address of the cluster, as for `run`.

    Example:
        >>> chosen("ray", 1.0)
        ('ray', '')
        >>> chosen("auto", 1.0)[0]
        'serial'
    """
    if engine != AUTO:
        return engine, ""
    if address or named_cluster():
        return RAY, ""
    if cpu_seconds < SHORT:
        return (
            SERIAL,
            f"in this process, since the estimate is below {SHORT:g} s: --engine ray starts workers",
        )
    if not installed("ray"):
        return SERIAL, "in this process, on one core: pip install 'privsweep[sweep]' adds parallel workers"
    return RAY, ""


def processors(engine: str, address: str | None = None) -> int:
    """Return the number of batches that an engine computes at once: one for each core or cluster processor.

    Args:
        engine: `auto`, `ray` or `serial`.
        address: Address of the cluster, as for `run`.

    Raises:
        EngineError: The named cluster is unreachable, or cannot be joined.
    """
    if engine == SERIAL or not (cluster := named_cluster(address)):
        return cores()
    require("ray", "The engine ray")
    return processors_of(checked(cluster)) or cores()  # 0 if the nodes of the cluster have not joined yet


def run(
    engine: str,
    batches: Sequence[Batch],
    job: Job,
    place: Folder,
    workers: int | None = None,
    address: str | None = None,
) -> Generator[Done | str | None]:
    """Yield the outcome of each batch as it finishes; close the generator to stop early.

    Batches that were yielded are stored, each as one part. Rows do not depend on the engine. None means that
    no batch has finished for a while: the caller can do other work. Words describe the cluster.

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

    require("ray", "The engine ray")
    cluster = named_cluster(address)
    bypass_proxies(cluster and checked(cluster))
    if cluster:
        return dispatch.run_on_cluster(batches, job, place, cluster, workers)
    return dispatch.run_here(batches, job, place, workers or cores())


def run_serially(batches: Sequence[Batch], job: Job, place: Folder) -> Generator[Done]:
    """Yield the outcome of each batch, computed in this process one after another."""
    with Guard(job.limits) as guard:
        for batch in batches:
            yield run_batch(batch, job, guard, place)
