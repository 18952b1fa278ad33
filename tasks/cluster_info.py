"""The probe of each node of a cluster before the first batch: its code, and its access to the store."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tasks import cluster
from tasks import probe as travelling
from tasks.address import Address
from tasks.errors import EngineError, SetupError
from tasks.sources import Code, code
from tasks.worker import why_other_code

PROBE_SECONDS = (
    120.0  # for a node to start a worker with all imports; workers of a slower node check themselves later
)


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
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ray.cloudpickle.register_pickle_by_value(travelling)  # type: ignore[no-untyped-call]
    try:
        remote = ray.remote(num_cpus=0, max_retries=0)(travelling.probe)
        asked = [
            remote.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            ).remote(store, token)
            for node in ray.nodes()  # type: ignore[no-untyped-call]
            if node["Alive"] and node["Resources"].get("CPU")
        ]
    finally:
        ray.cloudpickle.unregister_pickle_by_value(travelling)  # type: ignore[no-untyped-call]
    answered = ray.wait(asked, num_returns=len(asked), timeout=PROBE_SECONDS)[0] if asked else []
    found = []
    for reference in answered:
        try:
            found.append(ray.get(reference))
        except RayTaskError as error:
            raise EngineError(f"A node of the Ray cluster cannot be used: {error.cause}") from error
        except RayError:
            continue
    return found
