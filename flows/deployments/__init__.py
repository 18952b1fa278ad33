"""The flow that deployments start, and its display in Prefect."""

from flows.deployments.flow import scheduled_sweep

__all__ = ["scheduled_sweep"]  # servers keep the entry point `flows.deployments.scheduled_sweep`
