"""Health of a cluster while batches are in flight: its head, its processors and its nodes."""

import time
from typing import Any

from tasks.address import why_refused, why_unreachable
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
    """

    def __init__(self) -> None:
        import ray

        self._head = str(ray.get_runtime_context().gcs_address)
        self.dead = self._dead()
        self._processors = 0
        now = time.monotonic()
        self._looked = now - LOOK_EVERY
        self._fertile = now
        self._silent_since: float | None = None

    def processors(self) -> int:
        """Return the number of processors, which grows and shrinks with the cluster.

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
        self.dead = self._dead()
        self._processors = int(ray.cluster_resources().get("CPU", 0))  # type: ignore[no-untyped-call]
        if self._processors:
            self._fertile = now
        elif now - self._fertile > BARREN_SECONDS:
            raise StoppedError(f"No node of the Ray cluster had a processor for {BARREN_SECONDS:g} s")
        return self._processors

    def has_lost_a_node(self, dead_before: frozenset[str]) -> bool:
        """Return whether a node died that is not in `dead_before`; Ray itself takes 15 s to notice."""
        if why_unreachable(self._head):
            return True
        self.dead = self._dead()
        if self.dead != dead_before:
            return True
        alive = [node for node in self._nodes() if node["Alive"]]
        return any(why_refused(node["NodeManagerAddress"], node["NodeManagerPort"]) for node in alive)

    def _dead(self) -> frozenset[str]:
        return frozenset(node["NodeID"] for node in self._nodes() if not node["Alive"])

    @staticmethod
    def _nodes() -> list[dict[str, Any]]:
        """Return all nodes that ever joined the head, including dead nodes."""
        import ray

        return list(ray.nodes())  # type: ignore[no-untyped-call]
