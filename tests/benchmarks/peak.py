"""Peak rates of one core of this machine: bytes copied, multiply-adds, exponentials."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_RUNS = 7
_CHAINED = 8


@dataclass(frozen=True, kw_only=True)
class Peak:
    """Reached rates per second."""

    bytes: float
    """Bytes read and written by a copy that fits into no cache."""
    multiply_adds: float
    """Multiply-adds of doubles in the first-level cache, vectorised by the compiler."""
    exponentials: float
    """Exponentials of doubles in the first-level cache, by NumPy."""


def peak() -> Peak:
    """Return the rates that a core reaches now."""
    source = np.ones(2**24)
    target = np.empty_like(source)
    small, result = np.linspace(-1.0, 1.0, 1024), np.empty(1024)
    return Peak(
        bytes=2.0 * source.nbytes / _best(lambda: np.copyto(target, source)),
        multiply_adds=_CHAINED * small.size * 2000 / _best(lambda: _multiply_add(small.copy(), 2000)),
        exponentials=small.size * 200 / _best(lambda: [np.exp(small, out=result) for _ in range(200)]),
    )


def _best(work: Callable[[], object]) -> float:
    times = []
    work()
    for _ in range(_RUNS):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


@numba.njit(cache=True)
def _multiply_add(x: Array, times: int) -> None:
    """Replace every number by eight steps of x -> x / 2 + 1 / 4, many times."""
    for _ in range(times):
        for k in range(x.size):
            v = x[k]
            v = v * 0.5 + 0.25
            v = v * 0.5 + 0.25
            v = v * 0.5 + 0.25
            v = v * 0.5 + 0.25
            v = v * 0.5 + 0.25
            v = v * 0.5 + 0.25
            v = v * 0.5 + 0.25
            v = v * 0.5 + 0.25
            x[k] = v
