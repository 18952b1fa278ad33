"""Growth of time and memory with the size of a question, and the machine's limit; a section of bench.py."""

import gc
import math
import multiprocessing
import os
import resource
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.benchmarks.growth_chart import CHART, draw
from tests.benchmarks.growth_series import SERIES, Series
from tests.benchmarks.peak import Peak, peak
from tests.work import clear_caches

LONG = 1.0  # seconds beyond which a value is measured once
REPEATS = 7
DECADES = 2.01  # the exponents are those of the last two decades
LEAST_BYTES = 2**20  # smaller growth also happens in idle processes
REASONS = Path(__file__).with_name("growth.md")
WORDS = {
    "multiply_adds": "multiply-adds",
    "exponentials": "exponentials",
    "bytes": "bytes copied",
}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Measurement of one value of a series.

    Attributes:
        value: The number that grows.
        seconds: Seconds of processor time.
        bytes: Largest growth of the process in bytes.
        work: Units of work.
        limit: Seconds that the work would take at the peak of the machine.
    """

    value: float
    seconds: float
    bytes: float
    work: float
    limit: float


def table() -> Iterator[str]:
    """Yield the exponents with the reached share of the peak, then the chart."""
    best = peak()
    results = [(series, measured(series, best)) for series in SERIES]
    yield (
        f"Peak rates of one core, per second: {best.bytes / 1e9:.0f}e9 bytes read or written by a copy, "
        f"{best.multiply_adds / 1e9:.0f}e9 multiply-adds of doubles, "
        f"{best.exponentials / 1e9:.2f}e9 exponentials."
    )
    yield ""
    columns = ["parameter", "work", "from", "to", "seconds at both", "exponent of time"]
    columns += [
        "largest MB",
        "exponent of memory",
        "work at the last value",
        "nanoseconds per unit",
        "peak rate of",
        "share of peak",
    ]
    yield "| " + " | ".join(columns) + " |"
    yield "|---" * len(columns) + "|"
    for series, points in results:
        yield _row(series, points)
    draw(results)
    yield ""
    chart = CHART.relative_to(CHART.parents[1])
    yield f"![Seconds as a function of each parameter, with the limit of the machine]({chart})"
    yield ""
    yield from REASONS.read_text(encoding="utf-8").splitlines()


def _row(series: Series, points: Sequence[Measured]) -> str:
    first, last = points[0], points[-1]
    seconds = exponent([(p.value, p.seconds) for p in points])
    large = [(p.value, p.bytes) for p in points if p.bytes >= LEAST_BYTES]
    memory = exponent(large) if len(large) > 2 else None
    cells = [
        series.topic,
        series.name,
        f"{first.value:g}",
        f"{last.value:g}",
        f"{first.seconds:.2g}, {last.seconds:.2g}",
        f"{seconds:.2f}",
        f"{max(p.bytes for p in points) / 2**20:.0f}",
        "0" if memory is None else f"{memory:.2f}",
        f"{last.work:.2g} {series.unit}",
        f"{last.seconds / last.work * 1e9:.2g}",
        WORDS[series.limit],
        f"{last.limit / last.seconds:.1%}",
    ]
    return f"| {' | '.join(cells)} |"


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """Return the exponent of growth over the last decades, by least squares of logarithms.

    Example:
        >>> round(exponent([(1.0, 5.0), (10.0, 1.0), (100.0, 100.0), (1000.0, 10000.0)]), 6)
        2.0
    """
    last = max(x for x, _ in points)
    upper = [(math.log(x), math.log(y)) for x, y in points if math.log10(last / x) <= DECADES]
    x, y = np.array(upper).T
    return float(np.polyfit(x, y, 1)[0])


def measured(series: Series, best: Peak) -> list[Measured]:
    """Return the measurements of all values, each in a separate process with all code loaded."""
    for value in (series.values[0], series.values[1]):
        series.work(value)
    found = []
    for value in series.values:
        seconds, grown = _alone(series, value)
        work = series.count(value)
        limit = work * series.each / getattr(best, series.limit)
        found.append(Measured(value=value, seconds=seconds, bytes=grown, work=work, limit=limit))
    return found


def _alone(series: Series, value: float) -> tuple[float, float]:
    """Return the median processor time of some work, and the growth in bytes of a process that does it."""
    clear_caches()
    gc.collect()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(_times, (SERIES.index(series), value))


def _times(number: int, value: float) -> tuple[float, float]:
    series = SERIES[number]
    series.work(series.values[0])  # touches the pages that a new process shares with its parent
    seconds: list[float] = []
    before, grown = _resident(), 0.0
    while not seconds or (len(seconds) < REPEATS and sum(seconds) < LONG):
        clear_caches()
        started = time.process_time()
        series.work(value)
        seconds.append(time.process_time() - started)
        grown = grown or max(1.0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0 - before)
    return statistics.median(seconds), grown


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return float(pages * os.sysconf("SC_PAGE_SIZE"))
