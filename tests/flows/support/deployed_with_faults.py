"""The flow of deployments, with the faulty methods in the registry."""

import privsweep_with_faults  # type: ignore[import-not-found]  # noqa: F401  beside this file; it registers them

from flows.deployments.flow import scheduled_sweep

__all__ = ["scheduled_sweep"]
