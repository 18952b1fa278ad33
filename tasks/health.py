"""Health of a cluster while batches are in flight: its head, its free processors, memory and nodes."""

import time
from typing import Any

from tasks.address import why_unreachable
from tasks.errors import StoppedError

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
