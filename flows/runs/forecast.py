"""The schedule of a sweep on a cluster, simulated from estimated and measured costs."""

import heapq
import math
import re
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from flows.runs.plan import PART_BYTES, ROW_BYTES, Work
from privcore.errors import PrivsweepError

START = 5.0  # seconds until the first batch begins: Ray, and a worker with its child
START_HERE = 1.0  # seconds to import this program, and to start the child process that computes
END = 1.6  # seconds after the last batch: manifest, and Prefect, whose server starts during the batches
END_OF_RAY = 1.4  # in addition on one node, where a run stops the Ray that it started
END_OF_PART = 6e-5  # more for each part: it is listed, and named in the manifest; 0.24 s for 4,000 parts
DISPATCH = 1e-3  # seconds of the driver for each batch
LARGEST = 1_000_000  # worker processes
_CLUSTER = re.compile(r"nodes=([0-9]{1,9}),cores=([0-9]{1,9})(?:,spread=([0-9]{1,9}(?:\.[0-9]{1,9})?))?")


class ClusterError(PrivsweepError):
    """The description of a cluster is invalid."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Nodes of equal size, whose speeds may differ a little.

    Attributes:
        nodes: Number of nodes.
        cores: Worker processes on each.
        spread: Relative standard deviation of the nodes' speeds.
    """

    nodes: int = 1
    cores: int = 1
    spread: float = 0.05

    @property
    def workers(self) -> int:
        """Number of worker processes."""
        return self.nodes * self.cores

    def slowness(self) -> NDArray[np.float64]:
        """Return the relative slowness of each node, at the quantiles of a log-normal distribution."""
        law = NormalDist()
        levels = ((i + 0.5) / self.nodes for i in range(self.nodes))
        return np.array([math.exp(self.spread * law.inv_cdf(level)) for level in levels])


def read_cluster(text: str) -> Cluster:
    """Return the cluster that words such as `nodes=200,cores=32` describe.

    Raises:
        ClusterError: The words are invalid.

    Example:
        >>> read_cluster("nodes=200,cores=32").workers
        6400
    """
    spelled = _CLUSTER.fullmatch(text)
    if not spelled:
        raise ClusterError(f"Expected --cluster nodes=N,cores=N[,spread=X], got {text[:100]!r}.")
    nodes, cores, spread = spelled.groups(default="0.05")
    cluster = Cluster(nodes=int(nodes), cores=int(cores), spread=float(spread))
    if not 1 <= cluster.workers <= LARGEST or cluster.spread > 1:
        raise ClusterError(
            f"Expected 1 to {LARGEST:,} workers and a spread of at most 1, got {text[:100]!r}."
        )
    return cluster


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The course of a simulated run; times are in seconds.

    Attributes:
        work: The work of the run.
        makespan: Time from the start of the command to its end.
        span: Time from the start of the first batch to the end of the last.
        busy: Share of the workers' time, between the first batch and the last, in which they work.
        tail: Time from the moment when the first worker runs out of work to the end of the last batch.
        longest: Time of the longest batch.
        commits_per_second: Parts published per second: on average, and in the busiest tenth of the time.
        store_bytes: Approximate size of the new rows.
    """

    work: Work
    makespan: float
    span: float
    busy: float
    tail: float
    longest: float
    commits_per_second: tuple[float, float]
    store_bytes: float


def simulate(work: Work, cluster: Cluster) -> Schedule:
    """Simulate a run that gives batches, one after another, to the worker that is free first.

    Args:
        work: From `work_of`.
        cluster: The cluster of the run.
    """
    slowness = cluster.slowness()
    free = [(0.0, worker) for worker in range(cluster.workers)]
    ends = np.empty(len(work.seconds))
    busy = dispatched = 0.0
    for i, seconds in enumerate(work.seconds.tolist()):
        dispatched += DISPATCH
        moment, worker = free[0]
        taken = seconds * slowness[worker % cluster.nodes]
        ends[i] = max(moment, dispatched) + taken
        busy += taken
        heapq.heapreplace(free, (float(ends[i]), worker))
    last = float(ends.max(initial=0.0))
    span = max(last, 1e-9)
    around = START + END + END_OF_PART * len(ends) + (END_OF_RAY if cluster.nodes == 1 else 0.0)
    tenths = np.histogram(ends, bins=10, range=(0.0, span))[0]
    return Schedule(
        work=work,
        makespan=work.planning + (around + last if len(ends) else 0.0),
        span=last,
        busy=busy / (span * cluster.workers),
        tail=last - min((moment for moment, _ in free), default=0.0),
        longest=float(work.seconds.max(initial=0.0)),
        commits_per_second=(len(ends) / span, float(tenths.max()) * 10 / span),
        store_bytes=work.points * ROW_BYTES + len(ends) * PART_BYTES,
    )
