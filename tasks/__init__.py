"""Execution of sweeps: batches of points, guarded child processes, and the engines that run batches."""
