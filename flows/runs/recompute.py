"""Recompute stored rows, drawn or all, and compare their answers with the stored ones."""

import hashlib
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from flows.runs.progress import EVERY
from flows.runs.reproduction import Recomputed, compare
from privcore import METHODS, PROBLEMS, Point, Problem, find_problem
from privcore.errors import DomainError, PrivsweepError
from storage.marks import IMPORTED
from storage.schema import object_in
from tasks.limits import estimate

if TYPE_CHECKING:
    from storage import Store
    from storage.lookup_table import LookupTable

Entry = tuple[dict[str, Any], list[str]]
"""A row, with the names of the fields of its problem."""


def sample_size(text: str) -> int | None:
    """Return the number of rows of a sample; None for `all`.

    Raises:
        DomainError: The text is neither a whole number of at least 1 nor `all`.

    Example:
        >>> sample_size("20"), sample_size("all")
        (20, None)
    """
    if text == "all":
        return None
    if text.isascii() and text.isdigit() and 0 < int(text) <= 10**9:
        return int(text)
    raise DomainError(f"Expected a number of rows, at least 1, or all, got {text[:60]!r}.")


def recompute(
    store: "Store",
    count: int | None,
    seed: int = 0,
    watch: Callable[[int, int], None] = lambda done, total: None,
) -> Recomputed:
    """Recompute answered rows of a store, with their methods and options, in this process.

    The random numbers of a method are a function of the point, so intervals with a confidence are
    reproduced, too. Points that are estimated to exceed the usual limits of a sweep are left out.

    Args:
        store: The store.
        count: Size of the sample; None for all rows.
        seed: Seed of the sample.
        watch: Called every ten seconds with the number of finished rows and of all rows of the sample.
    """
    ids = _sample(store, count, seed)
    missed = {(problem, point) for problem, points in ids.items() for point in points}
    found = compared(_watched(_seen(_rows(store, ids), missed), len(missed), watch))
    found.skipped += [
        f"{problem}, row {point}: this release lacks the problem, or the row is gone"
        for problem, point in sorted(missed)
    ]
    return found


def _seen(rows: Iterable[Entry], missed: set[tuple[str, str]]) -> Iterator[Entry]:
    """Yield rows, and take each of them from the set of the rows that are missing."""
    for row, names in rows:
        missed.discard((row["problem"], row["point_id"]))
        yield row, names


def _watched(rows: Iterable[Entry], total: int, watch: Callable[[int, int], None]) -> Iterator[Entry]:
    last = time.monotonic()
    for done, row in enumerate(rows):
        if time.monotonic() - last >= EVERY:
            last = time.monotonic()
            watch(done, total)
        yield row


def compared(rows: Iterable[Entry]) -> Recomputed:
    """Recompute rows, and compare their answers with the given ones.

    Args:
        rows: Rows, each with the names of the fields of its problem.
    """
    found = Recomputed()
    for row, names in rows:
        problem = _problem(row, names)
        compare(found, row, problem, _point(row, problem))
    return found


QUICK = 1e-2
"""Estimated seconds of a row whose method is quick: all of these rows of an import are recomputed."""
QUICK_TOTAL = 10.0
"""Estimated seconds of all quick rows that are recomputed at most."""
SLOW = 30.0
"""Estimated seconds above which a row of an import is not drawn."""


def check_import(table: "LookupTable", count: int, seed: int = 0) -> Recomputed:
    """Recompute drawn rows of a lookup table, and all rows whose method is quick.

    Rows that this release cannot compute are left out.

    Args:
        table: The table.
        count: Number of drawn rows, >= 0.
        seed: Seed of the draw.
    """
    from storage.lookup_table import answered_rows

    names = {kind.name: list(kind.parameters) for kind in PROBLEMS}
    rows = sorted(answered_rows(table), key=lambda row: _drawn(row["point_id"], seed)) if count else []
    chosen, drawn, spent = [], 0, 0.0
    for row in rows:
        problem = _problem(row, names[row["problem"]])
        point = _point(row, problem)
        seconds = float("inf") if point is None else estimate(point).seconds
        if seconds <= QUICK and spent + seconds <= QUICK_TOTAL:
            spent += seconds
        elif seconds <= SLOW and drawn < count:
            drawn += 1
        else:
            continue
        chosen.append((row, names[row["problem"]]))
    return compared(chosen)


def new_seed() -> int:
    """Return a seed that the maker of the rows could not predict."""
    return secrets.randbelow(2**32)


def _drawn(point: str, seed: int) -> str:
    """Return a key that sorts points in an order of the seed."""
    return hashlib.md5(f"{point}{seed}".encode(), usedforsecurity=False).hexdigest()


def _sample(store: "Store", count: int | None, seed: int) -> dict[str, list[str]]:
    """Return the ids of the rows of the sample, by problem."""
    limit = "" if count is None else f"limit {count}"
    drawn = store.sql(
        f"""
        select problem::varchar as problem, point_id from results where status = 'ok'
        order by md5(point_id || '{seed}') {limit}
        """
    ).to_pylist()
    ids: dict[str, list[str]] = {}
    for row in drawn:
        ids.setdefault(row["problem"], []).append(row["point_id"])
    return ids


def _rows(store: "Store", ids: dict[str, list[str]]) -> Iterator[Entry]:
    """Yield rows, with the names of the fields of their problems."""
    for kind in PROBLEMS:
        names = list(kind.parameters)
        fields = ", ".join(f'"{name}"' for name in names)
        wanted = ids.get(kind.name, [])
        for start in range(0, len(wanted), 1000):
            chosen = ", ".join(f"'{each}'" for each in wanted[start : start + 1000])
            rows = store.sql(
                f"""
                select '{kind.name}' as problem, point_id, method::varchar as method, method_version,
                    knobs::varchar as knobs, {fields}, lower, upper, value, confidence,
                    versions::varchar as versions, {IMPORTED} as imported
                from "{kind.name.replace("-", "_")}" where point_id in ({chosen}) order by point_id
                """
            )
            yield from ((row, names) for row in rows.to_pylist())


def _problem(row: dict[str, Any], names: list[str]) -> Problem | None:
    """Return the problem of a row; None if this release rejects the fields."""
    try:
        fields = {name: row[name] for name in names if row[name] is not None}
        return find_problem(row["problem"]).from_fields(fields)
    except (PrivsweepError, ValueError, LookupError, TypeError):
        return None


def _point(row: dict[str, Any], problem: Problem | None) -> Point | None:
    """Return the point of a row; None if this release lacks the method, or rejects fields or options."""
    method = METHODS.get(row["method"])
    if method is None or problem is None:
        return None
    try:
        return Point(problem=problem, method=method.from_knobs(object_in(row["knobs"])))
    except (PrivsweepError, ValueError, LookupError, TypeError):
        return None
