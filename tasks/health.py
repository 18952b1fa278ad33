"""Health of a cluster: each node before the first batch; its head, processors and memory during the run."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tasks import cluster
from tasks import probe as travelling
from tasks.cluster import Address, why_unreachable
from tasks.errors import EngineError, SetupError, StoppedError
from tasks.sources import Code, code
from tasks.worker import why_other_code

PROBE_SECONDS = 120.0
"""Time for a node to start a worker with all imports; workers of a slower node check themselves later."""
ANSWER_SECONDS = 10.0
"""Time for a node to start a worker, before it is given a late batch of another node."""


@dataclass(frozen=True, kw_only=True)
class ClusterInfo:
    """The nodes of a cluster that answered the probe.

    Attributes:
        sent: Whether the code of this machine was sent to the cluster.
        nodes: Number of nodes with processors.
        seeing: Number of these nodes with access to the store.
    """

    sent: bool
    nodes: int
    seeing: int

    def __str__(self) -> str:
        """Return one line for the user."""
        whose = "code was sent to the nodes" if self.sent else "the nodes have the same code"
        if self.seeing == self.nodes:
            how = "all nodes share the store" if self.nodes else "no node has joined yet"
        else:
            share = "node shares" if self.seeing == 1 else "nodes share"
            how = f"{self.seeing} {share} the store, and the others send their parts here to be stored"
        return f"Ray cluster of {self.nodes} {'node' if self.nodes == 1 else 'nodes'}: {whose}; {how}"


def probe_cluster(address: Address, store: str, token: str) -> ClusterInfo:
    """Probe a joined cluster; if a node has different code, send the code of this machine and probe again.

    Raises:
        SetupError: A node lacks a package, or has another version of a package.
    """
    nodes = _probe_everywhere(store, token)
    sent = not nodes or any(node["missing"] or _why_other(node, code()) for node in nodes)
    if sent:
        cluster.send_code(address)
        nodes = _probe_everywhere(store, token)
    for node in nodes:
        if node["missing"]:
            raise SetupError(
                f"Node {node['host']} of the Ray cluster at {address} lacks the package {node['missing']}: "
                "install the packages of requirements.lock."
            )
        if sentence := _why_other(node, code()):
            raise SetupError(sentence)
    return ClusterInfo(sent=sent, nodes=len(nodes), seeing=sum(bool(node["sees"]) for node in nodes))


def _why_other(node: dict[str, Any], wanted: Code) -> str | None:
    return why_other_code(node["host"], node["digest"], node["versions"], wanted)


def _probe_everywhere(store: str, token: str) -> Sequence[dict[str, Any]]:
    """Return the probe of each node with processors, except nodes that die meanwhile or are slow."""
    import ray
    from ray.exceptions import RayError, RayTaskError

    ray.cloudpickle.register_pickle_by_value(travelling)  # type: ignore[no-untyped-call]
    try:
        answered = _on_each_node(PROBE_SECONDS, travelling.probe, store, token)
    finally:
        ray.cloudpickle.unregister_pickle_by_value(travelling)  # type: ignore[no-untyped-call]
    found = []
    for reference in answered:
        try:
            found.append(ray.get(reference))
        except RayTaskError as error:
            raise EngineError(f"A node of the Ray cluster cannot be used: {error.cause}") from error
        except RayError:
            continue
    return found


def answering() -> list[str]:
    """Return the ids of the nodes with processors that start a task now; a frozen node can still be alive."""
    return list(_on_each_node(ANSWER_SECONDS, lambda: None).values())


def _on_each_node(seconds: float, function: Callable[..., Any], *arguments: Any) -> dict[Any, str]:
    """Run a function on each node with processors; return the runs that end in time, with the node's id."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    remote = ray.remote(num_cpus=0, max_retries=0)(function)
    asked = {
        remote.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote(
            *arguments
        ): str(node["NodeID"])
        for node in ray.nodes()  # type: ignore[no-untyped-call]
        if node["Alive"] and node["Resources"].get("CPU")
    }
    answered = ray.wait(list(asked), num_returns=len(asked), timeout=seconds)[0] if asked else []
    return {reference: asked[reference] for reference in answered}


LOOK_EVERY = 5.0  # seconds between checks of the head and of the number of processors
HEAD_SECONDS = 25.0  # longest silence of the head; Ray itself would kill this process after 60
BARREN_SECONDS = 600.0  # longest time without processors: an autoscaler needs some minutes


class HeadGoneError(StoppedError):
    """The head of the cluster stopped answering."""


class Health:
    """The state of the head and the nodes; the head is queried only while it accepts connections.

    Attributes:
        dead: Ids of the nodes that were dead at the last check.
        largest: Memory in bytes for tasks on the largest node with processors, or 0 without such a node.
    """

    def __init__(self) -> None:
        import ray

        self._head = str(ray.get_runtime_context().gcs_address)
        self._processors = 0
        self._see()
        now = time.monotonic()
        self._looked = now - LOOK_EVERY
        self._fertile = now
        self._silent_since: float | None = None

    def processors(self, flying: int) -> int:
        """Return the number of processors for this run: those that are free, and those that it uses.

        It grows with the cluster, and as other users leave it. Processors that others take later are still
        counted, since Ray does not report whose tasks occupy them.

        Args:
            flying: Number of batches of this run in flight.

        Raises:
            HeadGoneError: The head has not answered for 25 s.
            StoppedError: The cluster has had no processor for 600 s.
        """
        import ray

        now = time.monotonic()
        if now - self._looked < LOOK_EVERY:
            return self._processors
        self._looked = now
        if reason := why_unreachable(self._head):
            self._silent_since = self._silent_since or now
            if now - self._silent_since > HEAD_SECONDS:
                raise HeadGoneError(f"The head of the Ray cluster does not answer ({reason})")
            return self._processors
        self._silent_since = None
        self._see()
        total = int(ray.cluster_resources().get("CPU", 0))  # type: ignore[no-untyped-call]
        free = int(ray.available_resources().get("CPU", 0))  # type: ignore[no-untyped-call]
        self._processors = min(total, free + min(self._processors, flying))
        if total:
            self._fertile = now
        elif now - self._fertile > BARREN_SECONDS:
            raise StoppedError(f"No node of the Ray cluster had a processor for {BARREN_SECONDS:g} s")
        return self._processors

    def has_lost_a_node(self, dead_before: frozenset[str]) -> bool:
        """Return whether Ray has noticed the death of a node that is not in `dead_before`."""
        if why_unreachable(self._head):
            return True
        self._see()
        return self.dead != dead_before

    def _see(self) -> None:
        """Update the dead nodes and the largest memory; dead nodes stay in the list of Ray."""
        import ray

        nodes: list[dict[str, Any]] = list(ray.nodes())  # type: ignore[no-untyped-call]
        self.dead = frozenset(node["NodeID"] for node in nodes if not node["Alive"])
        able = [node["Resources"] for node in nodes if node["Alive"] and node["Resources"].get("CPU")]
        self.largest = max((float(resources.get("memory", 0.0)) for resources in able), default=0.0)
