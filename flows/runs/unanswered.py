"""Failures that are too many: a run whose method answers nothing should not look like a success."""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from flows.runs.status import Coverage
from flows.spec.sweep import Sweep
from privcore.answer import FAILURES, Status
from privcore.errors import DomainError
from privcore.point import Point

if TYPE_CHECKING:
    from storage import Store

FIRST_LOOK = 1000
"""Points of a method in the first query: one of them nearly always has an answer."""
LOOK = 20_000  # points in a later query
LIMIT = 600.0  # seconds of a query
NAMED = 3  # methods in a sentence, at most


def check_share(most: float | None) -> None:
    """Raise `DomainError` unless a share of failed points is between 0 and 1, or not given."""
    if most is not None and not 0 <= most <= 1:
        raise DomainError(f"Expected max_failed in [0, 1], a share of the points, got {most:g}.")


def too_many_failed(sweep: Sweep, store: "Store", now: Coverage, most: float | None) -> str:
    """Return the sentence that says why too many points of a sweep failed, or "".

    Args:
        sweep: The sweep.
        store: Opened store.
        now: Coverage of the sweep.
        most: Largest share of failed points, 0 to 1; None means that every method must answer at least one
            point of each of its problems if any of them failed.

    Raises:
        StoreError: The store cannot be read.
        LimitError: A query took too long.
    """
    if not now.failed:
        return ""
    if most is not None:
        share = now.failed / now.total
        return f"{share:.1%} of the points failed, more than max_failed {most:g}." if share > most else ""
    silent = [f"{method} answered no point of {problem}" for problem, method in unanswered(sweep, store)]
    more = f", and {len(silent) - NAMED} more" if len(silent) > NAMED else ""
    return f"{', '.join(silent[:NAMED])}{more}." if silent else ""


def unanswered(sweep: Sweep, store: "Store") -> list[tuple[str, str]]:
    """Return the problems and methods of a sweep with failed points and no answer at all.

    Points to which a method does not apply count neither way. Only methods with failures in the store are
    looked at, and each only until the first answer, so this costs little unless a method fails everywhere.

    Args:
        sweep: The sweep.
        store: Opened store.

    Returns:
        Names of problem and method, in the order of the grids.

    Raises:
        StoreError: The store cannot be read.
        LimitError: A query took too long.
    """
    rows = store.sql("select distinct problem, method from failures", limit_seconds=LIMIT).to_pylist()
    failing = {(row["problem"], row["method"]) for row in rows}
    asked = dict.fromkeys((grid.problem.name, method.name) for grid in sweep.grids for method in grid.methods)
    return [
        (problem, method)
        for problem, method in asked
        if (problem, method) in failing and _has_only_failures(sweep, store, problem, method)
    ]


def _has_only_failures(sweep: Sweep, store: "Store", problem: str, method: str) -> bool:
    """Return whether a method failed at points of the sweep, and answered none of them."""
    ids = _ids(sweep, problem, method)
    look, failed = FIRST_LOOK, False
    while some := list(islice(ids, look)):
        counts = store.sql(
            "select status, count(*) as n from results "
            f"where problem = '{problem}' and point_id in ({', '.join(map(repr, some))}) group by status",
            limit_seconds=LIMIT,
        ).to_pylist()
        statuses = {Status(row["status"]) for row in counts}
        if Status.OK in statuses:
            return False
        failed |= bool(statuses & FAILURES)
        look = LOOK
    return failed


def _ids(sweep: Sweep, problem: str, method: str) -> Iterator[str]:
    """Yield the ids of the points of a method, some of them twice if grids overlap."""
    for grid in sweep.grids:
        mine = [each for each in grid.methods if each.name == method]
        if grid.problem.name == problem and mine:
            for each in grid.problems():
                yield from (Point(problem=each, method=one).id for one in mine)
