"""Flows: sweeps and their plans, the run under Prefect, and the command line."""
