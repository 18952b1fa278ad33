"""The flow that deployments start, and what Prefect shows of it."""
