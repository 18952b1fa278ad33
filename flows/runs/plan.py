"""A plan: the points of a sweep that are not stored, with their cost; too large sweeps are rejected."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flows.runs.batches import Batches, Group, grouped
from flows.runs.ledger import Ledger
from flows.spec.grid import count
from flows.spec.sweep import Sweep
from privcore.answer import FAILURES, Status
from privcore.errors import PrivsweepError
from privcore.method import Method

if TYPE_CHECKING:
    from storage import Store

MAX_POINTS = 1_000_000
ROW_BYTES = 150.0  # on disk, compressed; a part of few rows needs more for its columns' headers
PART_BYTES = 20_000.0
PROCESS_BYTES = 3e8  # a worker and its child with everything imported


class TooLargeError(PrivsweepError):
    """A sweep has more points than allowed; nothing was started, so this counts as misuse."""


@dataclass(frozen=True, kw_only=True)
class Share:
    """New points of one method and one kind of problem, and their estimated seconds of one core."""

    problem: str
    method: str
    points: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The work of a run of a sweep.

    Attributes:
        total: Number of points, each counted once; before `where` if the plan is refused.
        stored: Number of points that are not computed, by their stored status.
        ledger: The points of the sweep, with their stored statuses.
        repeated: Number of points to compute that have a stored failure.
        shares: New points, by method and kind of problem.
        batches: The new points, cut for the workers.
        workers: Number of processes that work on it.
        memory_bytes: Memory that the workers may need together, at most.
        disk_bytes: Approximate size of the new rows.
        beyond: Number of new points that exceed a limit of the sweep by their estimate; they get a row that
            says so and are not started.
        refused: Reason why the sweep must not be started, or None.
    """

    total: int
    stored: Mapping[str, int] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=lambda: Ledger(()))
    repeated: int = 0
    shares: tuple[Share, ...] = ()
    batches: Batches = field(default_factory=lambda: Batches((), 1))
    workers: int = 1
    memory_bytes: float = 0.0
    disk_bytes: float = 0.0
    beyond: int = 0
    refused: str | None = None

    @property
    def new(self) -> int:
        """Number of points to compute."""
        return sum(share.points for share in self.shares)

    @property
    def cpu_seconds(self) -> float:
        """Estimated seconds of one core, on the safe side."""
        return sum(share.seconds for share in self.shares)


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
    batches = Batches(groups, workers)
    largest = max((one.bytes for one in groups), default=0.0)
    counts = ledger.counts()
    return Plan(
        total=ledger.total,
        stored={status: number for status, number in counts.items() if status not in again},
        ledger=ledger,
        repeated=sum(number for status, number in counts.items() if status in again),
        shares=tuple(_share(one) for one in groups),
        batches=batches,
        workers=workers,
        memory_bytes=min(workers, len(batches)) * (largest + PROCESS_BYTES) if groups else 0.0,
        beyond=sum(one.beyond for one in groups),
        disk_bytes=sum(one.points for one in groups) * ROW_BYTES + len(batches) * PART_BYTES,
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


def _share(one: Group) -> Share:
    return Share(problem=one.kind.name, method=label(one.method), points=one.points, seconds=one.seconds)


def label(method: Method) -> str:
    """Return a method's name, with the options that differ from their defaults."""
    knobs = ", ".join(f"{name}={value}" for name, value in method.identity().items())
    return f"{method.name}({knobs})" if knobs else method.name


def readable(number: int) -> str:
    """Return a count with separators, or its order of magnitude if it has too many digits.

    Example:
        >>> readable(1234567), readable(10**300)
        ('1,234,567', 'about 10^300')
    """
    return f"{number:,}" if number < 10**15 else f"about 10^{math.floor(math.log10(number))}"
