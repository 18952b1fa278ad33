"""The work of a sweep: the seconds of its batches, from estimated and measured costs."""

import math
import time
import tracemalloc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from flows.runs.calibration import Calibration, calibration
from flows.runs.plan import MAX_POINTS, TooLargeError, make_plan, readable
from flows.spec.grid import Grid, count, expand
from flows.spec.sweep import Sweep
from privcore.point import Point
from tasks.batch import LONGEST, MOST_POINTS, PER_WORKER, SHORTEST, Group

if TYPE_CHECKING:
    from storage import Store

SAMPLED = 20_000  # points of a sweep that is too large to be planned, spread over its grids by their sizes
PER_BATCH = 0.03  # seconds of a worker for each batch, in addition to its points
PER_POINT = 1.9e-4
"""The same for each point: processor time of 4000 closed forms, in addition to their own.

The child uses 0.46e-4 of it to make the point and to send the answer, and its parent 1.4e-4 for the row; if
each core has a worker, both use the same core.
"""
MOST = 10**15  # points
LARGEST = 5_000_000  # batches; their schedule is one event each


@dataclass(frozen=True, kw_only=True)
class Work:
    """The batches of a sweep, in the order in which they are handed out.

    Attributes:
        seconds: Seconds that each takes a worker of average speed, with overhead.
        points: Number of points, of all batches together.
        planning: Seconds that the driver needs to make and price all points.
        driver_bytes: Memory that the driver needs for them.
        measured_share: Share of the estimated work that stored rows have calibrated.
        sampled: Number of sampled points, or None if all points were used.
    """

    seconds: NDArray[np.float64]
    points: int
    planning: float
    driver_bytes: float
    measured_share: float
    sampled: int | None


def work_of(
    sweep: Sweep, store: "Store", workers: int, *, max_points: float = MAX_POINTS, retry: bool = False
) -> Work:
    """Return the batches of a sweep with their seconds; nothing is started or written.

    Estimates are on the safe side; if the store has rows of the same method and kind of problem, their
    measured seconds calibrate the estimates. A sweep that is too large to be planned is sampled, and all of
    its points are assumed to be new.

    Args:
        sweep: The sweep.
        store: Opened with `missing_ok`.
        workers: Number of processes that would work on it.
        max_points: Number of points above which the sweep is sampled.
        retry: Whether stored failures would be computed again.

    Raises:
        TooLargeError: The sweep is too large to be simulated.
        DomainError: Parameters contradict one another at a point that no `where` excludes.
        StoreError: The store cannot be read.
    """
    ratios = calibration(store, dict.fromkeys(grid.problem for grid in sweep.grids))
    if count(sweep.grids) > max_points:
        return _sampled(sweep, ratios, workers)
    began = time.perf_counter()
    plan = make_plan(sweep, store, workers=workers, max_points=max_points, retry=retry)
    planning = time.perf_counter() - began
    known = [(batch, ratios.get((batch.problem.name, batch.method.name))) for batch in plan.batches]
    seconds = [b.seconds * (r.ratio if r else 1) + PER_BATCH + PER_POINT * len(b) for b, r in known]
    return Work(
        seconds=np.array(seconds),
        points=plan.new,
        planning=planning,
        driver_bytes=plan.total * _bytes_a_point(sweep),
        measured_share=sum(b.seconds for b, r in known if r) / (plan.cpu_seconds or 1.0),
        sampled=None,
    )


def _sampled(sweep: Sweep, ratios: Mapping[tuple[str, str], Calibration], workers: int) -> Work:
    """Return the batches of a sweep from sampled points, since it has too many points to make them all."""
    total = count(sweep.grids)
    if total > MOST:
        raise TooLargeError(f"{sweep.name} has {readable(total)} points; the limit is 10^15.")
    began = time.perf_counter()
    groups = [one for grid in sweep.grids for one in _drawn(grid, sweep, total)]
    drawn = sum(len(group.fields) for group, _ in groups)
    planning = (time.perf_counter() - began) / max(drawn, 1)
    work = [size * group.seconds / len(group.fields) for group, size in groups]
    aim = min(LONGEST, max(SHORTEST, sum(work) / (PER_WORKER * workers)))
    points = sum(size for _, size in groups)
    if sum(work) / aim + points / MOST_POINTS > LARGEST:
        raise TooLargeError(f"{sweep.name} would be cut into more than {LARGEST:,} batches.")
    known = [ratios.get((group.problem.name, group.method.name)) for group, _ in groups]
    batches = [
        _batches(group, size, aim, one.ratio if one else 1.0)
        for (group, size), one in zip(groups, known, strict=True)
    ]
    return Work(
        seconds=np.concatenate([np.empty(0), *batches]),
        points=round(points),
        planning=planning * points,
        driver_bytes=points * _bytes_a_point(sweep),
        measured_share=sum(w for w, one in zip(work, known, strict=True) if one) / (sum(work) or 1.0),
        sampled=drawn,
    )


def _drawn(grid: Grid, sweep: Sweep, total: int) -> Iterator[tuple[Group, float]]:
    """Yield sampled points of a grid by method, with the number of points that each group represents."""
    size = grid.candidates // len(grid.methods)
    tried = max(100, SAMPLED * grid.candidates // total // len(grid.methods))
    problems = list(grid.drawn(tried, seed=0))
    for method in grid.methods if problems else ():
        group = Group(grid.problem, method)
        for problem in problems:
            group.add(Point(problem=problem, method=method), sweep.limits)
        yield group, size * (len(problems) / tried)


def _batches(group: Group, size: float, aim: float, ratio: float) -> NDArray[np.float64]:
    """Return the seconds of each batch of a group that represents `size` points."""
    random = np.random.default_rng(0)
    costs = np.array(group.costs)
    each = min(MOST_POINTS, max(1, math.ceil(aim / max(costs.mean(), 1e-9))))
    number = math.ceil(size / each)
    seconds: NDArray[np.float64]
    if each == 1:
        seconds = random.choice(costs, number)
    else:  # sums of many costs
        seconds = each * costs.mean() + math.sqrt(each) * costs.std() * random.standard_normal(number)
    points = np.minimum(each, size - each * np.arange(number))  # the last batch has the remaining points
    whole: NDArray[np.float64] = seconds.clip(0.0) * ratio * points / each + PER_BATCH + PER_POINT * points
    return whole


def _bytes_a_point(sweep: Sweep) -> float:
    """Return the driver's memory for each point until it is in a batch, measured on the first thousand."""
    tracemalloc.start()
    try:
        points = list(islice(expand(sweep.grids), 1000))
        kept = [(point.id, tuple(point.problem.as_fields().values())) for point in points]
        del points
        return tracemalloc.get_traced_memory()[0] / max(len(kept), 1)
    finally:
        tracemalloc.stop()
