"""Measurement of our work and of the peers': processor time of one thread, peak memory, medians."""

import ctypes
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import _lru_cache_wrapper
from pathlib import Path
from typing import Any

REPEATS = 5
ONCE_SECONDS = 1.0
"""Seconds beyond which work is measured once, because its noise is negligible in the comparison."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The value of some work, with its time and memory.

    Attributes:
        value: Value that the work returned.
        seconds: Median processor time.
        runs: Number of measured runs.
        megabytes: Peak memory of the first run, minus the memory before it.
    """

    value: Any
    seconds: float
    runs: int
    megabytes: float

    def as_fields(self) -> dict[str, Any]:
        """Return the measurement in JSON types."""
        return asdict(self)


def measured(
    work: Callable[[], Any], before: Callable[[], object] = lambda: None, runs: int = REPEATS
) -> Measured:
    """Return the value of some work with its time and memory; compiled code should already be loaded.

    Args:
        work: The work.
        before: Function that is called before each run, outside of the measured time.
        runs: Number of runs if a run is quick.
    """
    before()
    resident = _forget_peak()
    value, first = _timed(work)
    megabytes = max(0.0, _status("VmHWM") - resident)
    seconds = [first]
    while first < ONCE_SECONDS and len(seconds) < runs:
        before()
        seconds.append(_timed(work)[1])
    return Measured(value=value, seconds=statistics.median(seconds), runs=len(seconds), megabytes=megabytes)


OURS = ("privcore.allocation", "privcore.likelihood_ratio", "privcore.training")
THEIRS = ("PLD_accounting", "dp_accounting", "prv_accountant", "random_allocation", "riskcal")


def forget() -> None:
    """Empty the caches of our numerics and the peers', so that no run profits from the previous run."""
    for name, module in list(sys.modules.items()):
        if name.startswith(OURS + THEIRS):
            for value in list(vars(module).values()):
                if isinstance(value, _lru_cache_wrapper):
                    value.cache_clear()


def verdict(target: str, found: str, met: bool) -> str:
    """Return the line that compares a measurement with its target."""
    return f"* Target: {target}. Measured: {found}. {'Met' if met else '**Not met**'}."


def row(cells: list[str]) -> str:
    """Return a row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def head(names: list[str]) -> str:
    """Return the header of a Markdown table."""
    return row(names) + "\n" + "|---" * len(names) + "|"


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.process_time()
    value = work()
    return value, time.process_time() - started


def _forget_peak() -> float:
    """Reset the kernel's peak memory of this process; return its current memory in megabytes."""
    ctypes.CDLL(None).malloc_trim(0)  # returns free memory, whose reuse would not raise the peak
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status("VmRSS")


def _status(name: str) -> float:
    """Return one number of /proc/self/status, in megabytes."""
    with Path("/proc/self/status").open(encoding="ascii") as lines:
        return next(float(line.split()[1]) / 1024.0 for line in lines if line.startswith(name))
