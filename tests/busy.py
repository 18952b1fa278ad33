"""Deadlines and expectations on a machine where other processes work, too."""

import os

import psutil

CORES = os.cpu_count() or 1
IDLE = 15.0
"""Largest use of the processors, in percent, at which a machine counts as idle."""


def stretched(seconds: float) -> float:
    """Return a deadline for an idle machine, longer by the number of processes that share a processor."""
    return seconds * max(1.0, os.getloadavg()[0] / CORES)


def idle() -> bool:
    """Return whether the processors have nothing to do now, as measured for two seconds."""
    return psutil.cpu_percent(interval=2.0) < IDLE
