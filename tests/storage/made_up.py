"""Rows whose answers are made up, so that a store can be tested without computing anything."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

import pyarrow as pa

from privcore import Answer, Cost, Direction, Method, Point, Problem, find, find_problem
from privcore.parameter import Integer
from storage import Manifest, Row, Store, open_store, publish, to_table
from storage.parts import read_part
from storage.place.located import located
from storage.table.lookup_table import LookupTable, import_lookup_table, lookup_table

UnamplifiedEpsilon = find_problem("unamplified-epsilon")
T = TypeVar("T")
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


class Claims(Method):
    """A second method for a registered problem; its setting distinguishes several instances."""

    name: ClassVar[str] = "test.claims"
    problems: ClassVar[tuple[type[Problem], ...]] = (UnamplifiedEpsilon,)
    direction: ClassVar[Direction] = Direction.ENCLOSURE
    reference: ClassVar[str] = "none"

    number: Annotated[
        int, Integer(name="number", symbol="n", meaning="Which", lower=0, upper=99, typical=(0,))
    ] = 0

    def cost(self, problem: Problem) -> Cost:
        return Cost(seconds=1e-6, bytes=1e3)

    def answer(self, problem: Problem, seed: int) -> Answer:
        return Answer()


def epsilon(*, sigma: float = 1.0, delta: float = 1e-5, **fields: Any) -> Problem:
    return UnamplifiedEpsilon.from_fields({"sigma": sigma, "delta": delta, **fields})


def row(
    problem: Problem,
    answer: Answer | None = None,
    *,
    method: Method | None = None,
    seconds_later: float = 0.0,
    sweep: str = "made-up",
) -> Row:
    return Row(
        point=Point(problem=problem, method=method or find("unamplified.exact")()),
        answer=answer or Answer.enclosure(1.0, 2.0),
        seconds=0.25,
        cpu_seconds=0.125,
        attempt=1,
        finished_at=NOON + timedelta(seconds=seconds_later),
        sweep=sweep,
    )


def claimed(problem: str, method: str, answer: Answer, **fields: Any) -> Row:
    """A row of a problem and a method by their names."""
    return row(find_problem(problem).from_fields(fields), answer, method=find(method)())


def rows(count: int, *, first: int = 0, seconds_later: float = 0.0) -> list[Row]:
    """Rows of different points: sigma 1, 1.01, 1.02, ..."""
    return [row(epsilon(sigma=1 + i / 100), seconds_later=seconds_later) for i in range(first, first + count)]


def put(root: Path, content: Row | Iterable[Row]) -> Path:
    """Publish rows as one part."""
    several: Sequence[Row] = [content] if isinstance(content, Row) else list(content)
    return publish(located(root), to_table(several))


def put_each(root: Path, content: Iterable[Row]) -> None:
    """Publish each row as a part, since a part has one kind of problem."""
    for each in content:
        put(root, each)


def table_of(folder: Path, content: Row | Iterable[Row]) -> LookupTable:
    """Publish rows as one part, and return the lookup table of the store in the folder."""
    put(folder, content)
    with open_store(folder) as store:
        return lookup_table(store)


def imported(root: Path, content: Row | Iterable[Row]) -> LookupTable:
    """Import the rows of another author, whose store is in the folder `author` next to this one."""
    table = table_of(root.parent / "author", content)
    import_lookup_table(table, located(root))
    return table


def manifest(*made: Path, digest: str = "0123abcd") -> Manifest:
    """The manifest of a sweep that made these parts."""
    return Manifest(
        digest=digest,
        name="made-up",
        spec={"grid": [1, 2]},
        counts={"ok": 3},
        parts=tuple(f"{part.parent.name}/{part.name}" for part in made),
        git_commit="unknown",
        started_at=NOON,
        finished_at=NOON,
        status="complete",
    )


def read_rows(part: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of a part in any store."""
    return read_part(located(part.parents[2]), part, columns)


def with_store(folder: Path, make: Callable[[Store], T]) -> T:
    """Return the value of a function of the store in a folder, which need not exist."""
    with open_store(folder, missing_ok=True) as store:
        return make(store)
