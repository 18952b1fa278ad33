"""The work of a sweep: the seconds of its batches, from estimated and measured costs."""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from flows.runs.calibration import Calibration, calibration
from flows.runs.plan import MAX_POINTS, TooLargeError, make_plan, readable
from flows.spec.grid import Grid, count
from flows.spec.sweep import Sweep
from privcore.method import Method
from privcore.point import Point
from privcore.problem import Problem
from tasks.batch import MOST_POINTS, aim
from tasks.limits import estimate

if TYPE_CHECKING:
    from storage import Store

SAMPLED = 20_000  # points of a sweep that is too large to be planned, spread over its grids by their sizes
PER_BATCH = 0.03  # seconds of a worker for each batch, in addition to its points
PER_POINT = 1.9e-4
"""The same for each point: processor time of 4000 closed forms, in addition to their own.

The child uses 0.46e-4 of it to make the point and to send the answer, and its parent 1.4e-4 for the row; if
each core has a worker, both use the same core.
"""
PLANNING = 0.5e-6  # seconds of the driver for each point: its code, and its share of the priced points
DRIVER_BYTES = 2.9e8  # of the driver with Prefect and Ray
POINT_BYTES = 1.0  # of the driver for each point: its code
BATCH_BYTES = 300.0  # of the driver for each batch: its bounds, and the name of its part
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
    known = [ratios.get((kind.name, method.name)) for kind, method in plan.batches.of_groups]
    ratio = np.array([one.ratio if one else 1.0 for one in known])[plan.batches.group]
    calibrated = np.array([one is not None for one in known], np.bool_)[plan.batches.group]
    return Work(
        seconds=plan.batches.seconds * ratio + PER_BATCH + PER_POINT * plan.batches.points,
        points=plan.new,
        planning=planning,
        driver_bytes=_driver_bytes(count(sweep.grids), len(plan.batches)),
        measured_share=float(plan.batches.seconds[calibrated].sum()) / (plan.cpu_seconds or 1.0),
        sampled=None,
    )


@dataclass(frozen=True)
class _Drawn:
    """Drawn points of a method and a kind of problem, and the number of points that they represent."""

    problem: type[Problem]
    method: Method
    costs: NDArray[np.float64]
    size: float

    @property
    def seconds(self) -> float:
        """Estimated seconds of the points that they represent."""
        return float(self.costs.mean()) * self.size


def _sampled(sweep: Sweep, ratios: Mapping[tuple[str, str], Calibration], workers: int) -> Work:
    """Return the batches of a sweep from sampled points, since it has too many points to plan them."""
    total = count(sweep.grids)
    if total > MOST:
        raise TooLargeError(f"{sweep.name} has {readable(total)} points; the limit is 10^15.")
    groups = [one for grid in sweep.grids for one in _drawn(grid, sweep, total)]
    work = sum(group.seconds for group in groups)
    points = sum(group.size for group in groups)
    least = aim(work, workers)
    if work / least + points / MOST_POINTS > LARGEST:
        raise TooLargeError(f"{sweep.name} would be cut into more than {LARGEST:,} batches.")
    known = [ratios.get((group.problem.name, group.method.name)) for group in groups]
    batches = [
        _batches(group, least, one.ratio if one else 1.0) for group, one in zip(groups, known, strict=True)
    ]
    seconds = np.concatenate([np.empty(0), *batches])
    return Work(
        seconds=seconds,
        points=round(points),
        planning=PLANNING * total,
        driver_bytes=_driver_bytes(total, len(seconds)),
        measured_share=sum(g.seconds for g, one in zip(groups, known, strict=True) if one) / (work or 1.0),
        sampled=sum(len(group.costs) for group in groups),
    )


def _drawn(grid: Grid, sweep: Sweep, total: int) -> Iterator[_Drawn]:
    """Yield sampled points of a grid by method."""
    size = grid.candidates // len(grid.methods)
    tried = max(100, SAMPLED * grid.candidates // total // len(grid.methods))
    problems = list(grid.drawn(tried, seed=0))
    for method in grid.methods if problems else ():
        costs = [estimate(Point(problem=problem, method=method)) for problem in problems]
        seconds = [cost.seconds if sweep.limits.refusal(cost) is None else 0.0 for cost in costs]
        yield _Drawn(grid.problem, method, np.array(seconds), size * (len(problems) / tried))


def _batches(group: _Drawn, least: float, ratio: float) -> NDArray[np.float64]:
    """Return the seconds of each batch of the points that drawn points represent."""
    random = np.random.default_rng(0)
    costs, size = group.costs, group.size
    each = min(MOST_POINTS, max(1, math.ceil(least / max(costs.mean(), 1e-9))))
    number = math.ceil(size / each)
    seconds: NDArray[np.float64]
    if each == 1:
        seconds = random.choice(costs, number)
    else:  # sums of many costs
        seconds = each * costs.mean() + math.sqrt(each) * costs.std() * random.standard_normal(number)
    points = np.minimum(each, size - each * np.arange(number))  # the last batch has the remaining points
    whole: NDArray[np.float64] = seconds.clip(0.0) * ratio * points / each + PER_BATCH + PER_POINT * points
    return whole


def _driver_bytes(points: int, batches: int) -> float:
    """Return the memory of the driver."""
    return DRIVER_BYTES + points * POINT_BYTES + batches * BATCH_BYTES
