"""Engines: the same batches one after another in this process, or on the workers of a Ray cluster.

The engine `auto` is one of the two: `Engine.chosen` says which, and why.
"""

import os
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Self

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


def checked_workers(workers: int | None) -> int | None:
    """Return a number of worker processes; raise `DomainError` unless it is None or in its domain."""
    return None if workers is None else WORKERS.check(workers)


@dataclass(frozen=True, kw_only=True)
class Engine:
    """An engine, with the processes that it uses.

    Attributes:
        name: `auto`, `ray` or `serial`; only `ray` runs under Prefect.
        workers: Number of worker processes, or None for one for each core. On a named cluster: number of
            batches in flight, or None for a number that keeps the whole cluster busy. Ignored by `serial`.
        address: Address of a cluster, `host:port` or `auto`; None for the value of RAY_ADDRESS. If both are
            missing, or with `local`, Ray is started on this machine.

    Raises:
        DomainError: The engine is unknown, or has the address of a cluster although it needs none.
    """

    name: str = AUTO
    workers: int | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        """Check name and address."""
        if self.name not in ENGINES:
            expected = f"{', '.join(ENGINES[:-1])} or {SERIAL}"
            raise DomainError(f"Expected --engine {expected}, got {str(self.name)[:50]}.")
        if self.name == SERIAL and self.address:
            raise DomainError(f"Expected --ray-address with --engine {RAY} only, got it with {SERIAL}.")

    def chosen(self, cpu_seconds: float) -> tuple[Self, str]:
        """Return the engine that computes, and the reason as a sentence if this one is `auto`.

        Args:
            cpu_seconds: Estimated seconds of one core.

        Example:
            >>> Engine(name="ray").chosen(1.0)[1]
            ''
            >>> Engine().chosen(1.0)[0].name
            'serial'
        """
        serial, ray = replace(self, name=SERIAL, address=None), replace(self, name=RAY)
        if self.name != AUTO:
            return self, ""
        if self.address or named_cluster():
            return ray, ""
        if cpu_seconds < SHORT:
            reason = f"since the estimate is below {SHORT:g} s: --engine ray starts workers"
            return serial, f"in this process, {reason}"
        if not installed("ray"):
            reason = "on one core: pip install 'privsweep[sweep]' adds parallel workers"
            return serial, f"in this process, {reason}"
        return ray, ""

    def processors(self) -> int:
        """Return the number of batches computed at once: one for each core, or processor of the cluster.

        Raises:
            EngineError: The named cluster is unreachable, or cannot be joined.
        """
        if self.name == SERIAL or not (cluster := named_cluster(self.address)):
            return cores()
        require("ray", "The engine ray")
        return processors_of(checked(cluster)) or cores()  # 0 if the nodes of the cluster have not joined yet

    def outcomes(self, batches: Sequence[Batch], job: Job, place: Folder) -> Generator[Done | str | None]:
        """Yield the outcome of each batch as it finishes; close the generator to stop early.

        Batches that were yielded are stored, each as one part. Rows do not depend on the engine. None means
        that no batch has finished for a while: the caller can do other work. Words describe the cluster.

        Args:
            batches: From `tasks.batch.cut`.
            job: Settings for workers.
            place: The store.

        Raises:
            EngineError: The named cluster is unreachable (raised at once), cannot be used, or stops working.
            StoreError: A part cannot be written.
        """
        if self.name == SERIAL:
            return run_serially(batches, job, place)
        require("ray", "The engine ray")
        cluster = named_cluster(self.address)
        bypass_proxies(cluster and checked(cluster))
        if cluster:
            return dispatch.run_on_cluster(batches, job, place, cluster, self.workers)
        return dispatch.run_here(batches, job, place, self.workers or cores())


AUTOMATIC = Engine()
"""The engine that the work decides about."""


def run_serially(batches: Sequence[Batch], job: Job, place: Folder) -> Generator[Done]:
    """Yield the outcome of each batch, computed in this process one after another."""
    with Guard(job.limits) as guard:
        for batch in batches:
            yield run_batch(batch, job, guard, place)
