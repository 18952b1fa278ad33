"""Ray's processes on this machine, without those that a run does not need.

`ray.init` also starts a dashboard that shows nothing, a monitor of autoscalers and a reader of logs. Workers
start after the dashboard, and when the agents of the raylet are listening.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tasks.ports import free_port

UNUSED = -1  # the port of a service that does not exist, as agents without the dashboard report it


@contextmanager
def few_processes() -> Iterator[None]:
    """Let `ray.init` start the processes that compute, and no others, inside the block."""
    import ray._private.node
    import ray._private.utils
    import ray._raylet

    nodes: Any = ray._private.node
    utilities: Any = ray._private.utils
    raylet: Any = ray._raylet
    whole: Any = nodes.Node

    class Small(whole):  # type: ignore[misc]
        """A node without a dashboard, a monitor and a reader of logs, whose raylet does not wait."""

        def __init__(self, ray_params: Any, **how: Any) -> None:
            ray_params.no_monitor = True
            ray_params.include_log_monitor = False
            ray_params.runtime_env_agent_port = free_port()
            super().__init__(ray_params, **how)

        def start_api_server(self, **how: Any) -> None:
            if utilities.get_dashboard_dependency_error() is None:  # agents look for it
                super().start_api_server(**how)
            else:
                self._webui_url = ""

        def start_ray_processes(self) -> None:
            for name in (
                raylet.METRICS_AGENT_PORT_NAME,
                raylet.METRICS_EXPORT_PORT_NAME,
                raylet.DASHBOARD_AGENT_LISTEN_PORT_NAME,
            ):
                raylet.persist_port(self._session_dir, self._node_id, name, UNUSED)
            super().start_ray_processes()

    nodes.Node = Small
    try:
        yield
    finally:
        nodes.Node = whole
