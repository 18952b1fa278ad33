"""The flow of deployments under the name of an embedded sweep: Prefect lists the runs of each sweep together.

The deployment of the sweep `lookup` has the entry point `flows.deployments.named.lookup`.
"""

from typing import Any

from flows.deployments.flow import scheduled_sweep
from flows.spec.sweep import embedded

PREFIX = "privsweep-"


def __getattr__(sweep: str) -> Any:
    """Return the flow under the name of an embedded sweep, for example `privsweep-lookup`.

    Raises:
        AttributeError: No embedded sweep has this name.
    """
    if sweep not in embedded():
        raise AttributeError(f"module {__name__!r} has no attribute {sweep!r}, since no sweep has this name")
    return scheduled_sweep.with_options(name=PREFIX + sweep)
