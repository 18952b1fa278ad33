"""A plan: the points of a sweep that are not stored, their work in seconds, and calibrated estimates."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from flows.runs.batches import Batches, Group, grouped
from flows.runs.ledger import Ledger
from flows.spec.grid import Grid, count
from flows.spec.sweep import Sweep
from privcore.answer import FAILURES, Status
from privcore.errors import PrivsweepError
from privcore.method import Method
from privcore.point import Point
from privcore.problem import Problem
from privcore.registry import find
from storage.schema import object_in
from tasks.batch import MOST_POINTS, aim
from tasks.guard import estimate

if TYPE_CHECKING:
    from storage import Store

SAMPLE = 2000  # rows of a method and a kind of problem, at most
UNUSUAL = 10.0
"""Multiple of the usual ratio above which a row took longer for a reason that most points do not have.

Measured: the first point of a worker took 12.8 s and others took 0.02 s, since the code was compiled for the
first. In 200 rows from two workers, the two first rows made the ratio six times too large.
"""


def calibration(store: "Store", kinds: Iterable[type[Problem]]) -> Mapping[tuple[str, str], float]:
    """Return measured over estimated seconds by names of problem and method; empty without a store.

    Options are not distinguished, since a method's estimate should depend on them. A row that took unusually
    long counts with at most `UNUSUAL` times the usual ratio.

    Args:
        store: Opened with `missing_ok`.
        kinds: The kinds of problems.

    Raises:
        StoreError: The store cannot be read.
    """
    from storage.sql.views import view_name

    found: dict[tuple[str, str], float] = {}
    stored = [kind for kind in kinds if store.names(kind.name)]
    for kind in stored:
        view = view_name(kind.name)  # a query over all problems takes 30 times as long
        query = f"select distinct method from {view} where status = 'ok'"
        for name in sorted(row["method"] for row in store.sql(query).to_pylist()):
            fields = ", ".join(f'"{field}"' for field in kind.parameters)
            rows = store.sql(
                f"select knobs, seconds, {fields} from {view} "
                f"where method = '{name}' and status = 'ok' order by point_id limit {SAMPLE}"
            ).to_pylist()  # ids are hashes: the first of them are a sample
            if ratio := _ratio(kind, name, rows):
                found[kind.name, name] = ratio
    return found


def _ratio(kind: type[Problem], name: str, rows: list[Mapping[str, object]]) -> float | None:
    """Return the sum of measured over that of estimated seconds; None without rows of this release."""
    took: list[float] = []
    estimated: list[float] = []
    for row in rows:
        fields = {field: row[field] for field in kind.parameters if row[field] is not None}
        try:
            method = find(name).from_knobs(object_in(str(row["knobs"])))
            cost = estimate(Point(problem=kind.from_fields(fields), method=method))
        except (PrivsweepError, ValueError, TypeError):
            continue  # of another release
        if cost.seconds > 0:
            took.append(float(str(row["seconds"])))
            estimated.append(cost.seconds)
    if not sum(took):
        return None
    seconds, estimates = np.array(took), np.array(estimated)
    ratios = seconds / estimates
    order = np.argsort(ratios)
    work = np.cumsum(estimates[order])
    median = ratios[order][np.searchsorted(work, work[-1] / 2)]  # of the estimated work
    return float(np.minimum(seconds, UNUSUAL * median * estimates).sum() / estimates.sum())


MAX_POINTS = 1_000_000
ROW_BYTES = 150.0  # on disk, compressed; a part of few rows needs more for its columns' headers
PART_BYTES = 20_000.0
PROCESS_BYTES = 3e8  # a worker and its child with everything loaded


class TooLargeError(PrivsweepError):
    """A sweep has more points than allowed; nothing was started, so this counts as misuse."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The work of a run of a sweep.

    Attributes:
        total: Number of points, each counted once; before `where` if the plan is refused.
        stored: Number of points that are not computed, by their stored status.
        ledger: The points of the sweep, with their stored statuses.
        repeated: Number of points to compute that have a stored failure.
        batches: The new points, cut for the workers.
        workers: Number of processes that work on it.
        refused: Reason why the sweep must not be started, or None.
    """

    total: int
    stored: Mapping[str, int] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=lambda: Ledger(()))
    repeated: int = 0
    batches: Batches = field(default_factory=lambda: Batches((), 1))
    workers: int = 1
    refused: str | None = None

    @property
    def groups(self) -> tuple[Group, ...]:
        """New points, by method and kind of problem."""
        return self.batches.groups

    @property
    def new(self) -> int:
        """Number of points to compute."""
        return sum(one.points for one in self.groups)

    @property
    def cpu_seconds(self) -> float:
        """Estimated seconds of one core, on the safe side."""
        return sum(one.seconds for one in self.groups)

    @property
    def memory_bytes(self) -> float:
        """Memory that the workers may need together, at most."""
        largest = max((one.bytes for one in self.groups), default=0.0)
        return min(self.workers, len(self.batches)) * (largest + PROCESS_BYTES)

    @property
    def disk_bytes(self) -> float:
        """Approximate size of the new rows."""
        return self.new * ROW_BYTES + len(self.batches) * PART_BYTES

    @property
    def beyond(self) -> int:
        """Number of new points that exceed a limit by their estimate: their rows say so, without a start."""
        return sum(one.beyond for one in self.groups)


def make_plan(
    sweep: Sweep,
    store: "Store",
    *,
    workers: int | Callable[[], int] = 1,
    max_points: float = MAX_POINTS,
    retry: bool = False,
) -> Plan:
    """Return the plan of a sweep, without starting or writing anything.

    A point is done if it is stored with any status except `crashed`.

    Args:
        sweep: The sweep.
        store: Opened with `missing_ok`.
        workers: Number of processes that would work on it, >= 1; or a function that returns it, called only
            if there are new points, since it may join a cluster.
        max_points: Number of points above which the plan is refused, before points are made.
        retry: Whether to compute stored failures again.

    Raises:
        DomainError: Parameters contradict one another at a point that no `where` excludes.
        StoreError: The store cannot be read.
    """
    try:
        check_size(sweep, max_points)
    except TooLargeError as error:
        return Plan(total=count(sweep.grids), refused=str(error))
    ledger = Ledger(sweep.grids)
    ledger.read(store)
    again = frozenset(FAILURES if retry else {Status.CRASHED})
    groups = grouped(ledger, again, sweep.limits)
    if callable(workers):
        workers = workers() if groups else 1
    counts = ledger.counts()
    return Plan(
        total=ledger.total,
        stored={status: number for status, number in counts.items() if status not in again},
        ledger=ledger,
        repeated=sum(number for status, number in counts.items() if status in again),
        batches=Batches(groups, workers),
        workers=workers,
    )


def check_size(sweep: Sweep, max_points: float = MAX_POINTS) -> None:
    """Raise `TooLargeError` if a sweep has more points; they are counted and not made."""
    candidates = count(sweep.grids)
    if candidates > max_points:
        sizes = [grid.candidates for grid in sweep.grids]
        largest = sizes.index(max(sizes))
        raise TooLargeError(
            f"{sweep.name} has {readable(candidates)} points, {readable(sizes[largest])} of them in "
            f"grid {largest + 1}, more than --max-points {max_points:g}."
        )


def readable(number: int) -> str:
    """Return a count with separators, or its order of magnitude if it has too many digits.

    Example:
        >>> readable(1234567), readable(10**300)
        ('1,234,567', 'about 10^300')
    """
    return f"{number:,}" if number < 10**15 else f"about 10^{math.floor(math.log10(number))}"


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
    known = [ratios.get(group.name) for group in plan.groups]
    ratio = np.array([one or 1.0 for one in known])[plan.batches.group]
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


def _sampled(sweep: Sweep, ratios: Mapping[tuple[str, str], float], workers: int) -> Work:
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
    batches = (_batches(group, least, one or 1.0) for group, one in zip(groups, known, strict=True))
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
