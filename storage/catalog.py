"""The interface of a store: stored points, SQL queries, lookups and verification."""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

import duckdb
import pyarrow as pa

from privcore.problem import Problem
from storage.errors import QueryError
from storage.export import Framed
from storage.manifest import Manifest, manifests, steadily
from storage.parts import parts, problem_of, read_part
from storage.place import layout
from storage.place.folder import FRESH, Folder
from storage.place.located import located
from storage.schema import IMPORTS
from storage.sql import snapshot
from storage.sql.lookup import Found, lookup
from storage.sql.query import SqlFunction, pieces, registered, run_query
from storage.sql.views import CHOICE
from storage.verify import Around, Verification, verify, warn

if TYPE_CHECKING:
    from storage.manifest import StoredPoints


# The status of every stored point of a problem, read from the parts without a snapshot.


def statuses(place: Folder, parts: Sequence[Path]) -> dict[str, str]:
    """Return the status of every point, by point id; that of several rows is chosen as in the views.

    Args:
        place: The store.
        parts: Parts of one problem.

    Raises:
        StoreError: A part is damaged; the sentence names it.
    """
    tables = []
    for path in parts:
        table = read_part(place, path, ["point_id", "status", "versions", "finished_at"])
        tables.append(table.append_column("part", pa.repeat(path.name, len(table))))
    if not tables:
        return {}
    rows = pa.concat_tables(tables).unify_dictionaries()
    status = _by_point(rows)
    return status if len(status) == len(rows) else _by_point(_chosen(rows))


def _chosen(rows: pa.Table) -> pa.Table:
    """Return one row of each point, chosen as in the views."""
    query = f"from rows qualify row_number() over (partition by point_id order by {CHOICE}) = 1"
    with duckdb.connect(config={"python_enable_replacements": "false"}) as connection:
        connection.register("rows", rows)
        return connection.sql(query).to_arrow_table()


def _by_point(rows: pa.Table) -> dict[str, str]:
    """Return the status by point id; numpy decodes the words many times faster than `to_pylist`."""
    return dict(zip(rows["point_id"].to_pylist(), rows["status"].to_numpy().tolist(), strict=True))


T = TypeVar("T")


def open_store(
    path: str | Path,
    *,
    create: bool = False,
    missing_ok: bool = False,
    degraded: bool | Callable[[str], None] = False,
) -> "Store":
    """Return the store in a folder or bucket.

    Args:
        path: The folder, or an address `s3://bucket/prefix`.
        create: Whether to create an empty store if the path has none, and to tidy up after killed writers.
        missing_ok: Whether the path may be missing or an empty folder; the store is then empty.
        degraded: Whether to skip damaged, foreign and missing parts, with a `DegradedWarning` for each part;
            or a function to call with a sentence about each part instead. If false, such a part raises.

    Raises:
        StoreError: The path is missing, is not a store, or has a store of a newer release.
    """
    place = located(path)
    place.refresh()
    store = Store(place, degraded=degraded)
    if create:
        store.create()
    elif missing_ok and place.is_empty():
        place.check_path()
    else:
        place.check()
    return store


class Store(Framed):
    """A folder of parts with queries, lookups and verification; use `open_store` to get one.

    Attributes:
        place: The folder, or the bucket with the folder that mirrors it.
    """

    def __init__(self, place: Folder, *, degraded: bool | Callable[[str], None] = False) -> None:
        self.place = place
        self._around = Around(place, degraded if callable(degraded) else warn) if degraded else None
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._digest = ""
        self._stamp: tuple[tuple[str, int], ...] | None = None
        self._lock = threading.Lock()
        self._still = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        """Name of the store in messages."""
        return self.place.name

    @property
    def exists(self) -> bool:
        """Whether the path exists; a store opened with `missing_ok` may be missing."""
        return self.place.root.exists()

    @property
    def degraded(self) -> bool:
        """Whether damaged, foreign and missing parts are skipped."""
        return self._around is not None

    def around_damage(self) -> "Store":
        """Return the same store without its damaged, foreign and missing parts."""
        return Store(self.place, degraded=True)

    def create(self) -> None:
        """Create an empty store if the path has none, and tidy up after killed writers.

        Raises:
            StoreError: The path is not a store, or has a store of a newer release.
        """
        self.place.create()
        self.place.check()
        self.place.remove_leftovers()

    def close(self) -> None:
        """Close the snapshot; the store can still be used afterwards."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection, self._digest, self._stamp = None, "", None

    def stored(self, problem_name: str) -> dict[str, str]:
        """Return the status of every stored point of a problem, by point id.

        A point that several writers computed has the status of the row that the views show.

        Raises:
            StoreError: A part is damaged; the sentence names it.
        """
        return steadily(self.place, lambda: statuses(self.place, self._parts(problem_name)))

    def names(self, problem_name: str) -> list[str]:
        """Return the names of the parts of a problem, relative to the data folder."""
        return [str(path.relative_to(self.place.data)) for path in self._parts(problem_name)]

    def points(self, kind: type[Problem], without: Collection[str] = ()) -> "Iterator[StoredPoints]":
        """Yield the points of each part of a problem; the caller reads again if parts vanish: `steadily`.

        Args:
            kind: The problem.
            without: Names of parts that are left out.

        Raises:
            StoreError: A part is damaged; the sentence names it.
        """
        from storage.manifest import read_points  # not needed by lookups

        for path in self._parts(kind.name):
            if str(path.relative_to(self.place.data)) not in without:
                yield read_points(self.place, path, kind)

    def _parts(self, problem_name: str) -> list[Path]:
        """Return the parts of a problem."""
        self.place.refresh(older_than=FRESH)
        found = self._around.parts() if self._around else parts(self.place)
        return [path for path in found if problem_of(path) == problem_name]

    def sql(
        self, query: str, *, limit_seconds: float = 60.0, functions: Sequence[SqlFunction] = ()
    ) -> pa.Table:
        """Return the result of one SELECT over the views; it can read no file and change nothing.

        Args:
            query: DuckDB SQL over `results`, `best`, `conflicts`, `failures`, `provenance`, `sweeps`, and the
                view of each problem, for example `allocation_epsilon`.
            limit_seconds: Time limit of the query in seconds.
            functions: Python functions that the query may call.

        Raises:
            QueryError: The query is not one valid SELECT.
            LimitError: The query took too long, needed too much memory, or returned too many bytes.
            StoreError: A part is missing, damaged or foreign; the sentence names it.
        """

        def read(cursor: duckdb.DuckDBPyConnection) -> pa.Table:
            with registered(cursor, functions):
                return run_query(cursor, query, limit_seconds)

        return self._read(read)

    def stream(
        self,
        query: str,
        use: Callable[[Iterator[pa.Table]], T],
        *,
        limit_seconds: float = 60.0,
        functions: Sequence[SqlFunction] = (),
    ) -> T:
        """Return the value of a function of the result of one SELECT, which it gets in pieces; see `sql`.

        Memory is limited for any number of rows, if the function keeps none.

        Args:
            query: As for `sql`.
            use: The function; its argument has at least one piece, also if there is no row.
            limit_seconds: Limit in seconds of the time of the query and the processor time of the function.
            functions: As for `sql`.

        Raises:
            QueryError: The query is not one valid SELECT.
            LimitError: The query took too long, or needed too much memory.
            StoreError: A part is missing, damaged or foreign; the sentence names it.
        """
        begun = False

        def read(cursor: duckdb.DuckDBPyConnection) -> T:
            with registered(cursor, functions), closing(pieces(cursor, query, limit_seconds)) as found:
                return use(noted(found))

        def noted(found: Iterator[pa.Table]) -> Iterator[pa.Table]:
            nonlocal begun
            for piece in found:
                begun = True
                yield piece

        return self._read(read, may_repeat=lambda: not begun)

    def tables(self) -> dict[str, str]:
        """Return the published table of each row that came from one, by the id of its point."""
        found = self.sql(f"select point_id, source from {IMPORTS}")
        return dict(zip(found["point_id"].to_pylist(), found["source"].to_pylist(), strict=True))

    def lookup(self, problem: Problem) -> Found | None:
        """Return the bracket of a problem from stored brackets and proved monotonicity, or None.

        Args:
            problem: The problem; it need not be on the grid.

        Raises:
            StoreError: A part is missing, damaged or foreign, or two stored brackets contradict one another.
        """
        return self._read(lambda cursor: lookup(cursor, problem))

    def _read(
        self, read: Callable[[duckdb.DuckDBPyConnection], T], may_repeat: Callable[[], bool] = lambda: True
    ) -> T:
        """Return a value read from the snapshot, from a new one if DuckDB finds this one damaged."""
        try:
            with self._cursor() as cursor:
                return read(cursor)
        except (duckdb.Error, QueryError) as error:
            if snapshot.DAMAGE not in str(error):
                raise
            digest = self._digest
            self.close()
            snapshot.discard(self.place, digest)
            if not may_repeat():
                raise
        with self._cursor() as cursor:
            return read(cursor)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Make queries and lookups use one state of the store, also if it changes meanwhile."""
        self._cursor().close()
        self._still = True
        try:
            yield
        finally:
            self._still = False

    def verify(self) -> list[str]:
        """Return a sentence for each harmful finding of a verification; each names the file."""
        return [finding.detail for finding in self.examine().findings if not finding.harmless]

    def examine(self) -> Verification:
        """Return all findings of a verification, including harmless ones."""
        return verify(self.place)

    def manifests(self) -> list[Manifest]:
        """Return the manifests of the sweeps in the store, the latest last."""
        self.place.refresh(older_than=FRESH)
        return (
            self._around.manifests() if self._around else steadily(self.place, lambda: manifests(self.place))
        )

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a cursor on a snapshot of the current contents of the store."""
        with self._lock:
            if self._still and self._connection is not None:
                return self._connection.cursor()
            self.place.refresh(older_than=FRESH)
            stamp = _stamp(self.place)
            if self._connection is None or stamp is None or stamp != self._stamp:
                self._connection = steadily(self.place, self._connected)
                self._stamp = stamp
            return self._connection.cursor()

    def _connected(self) -> duckdb.DuckDBPyConnection:
        """Return a connection to a snapshot of the current contents, the open one if it is still current."""
        now = self._around.contents() if self._around else snapshot.contents(self.place)
        if self._connection is not None and now.digest == self._digest:
            return self._connection
        connection = snapshot.connect(now)
        if self._connection is not None:
            self._connection.close()
        self._digest = now.digest
        return connection


def _stamp(place: Folder) -> tuple[tuple[str, int], ...] | None:
    """Return the times of the folders' last changes, or None if a further change could go unnoticed.

    Publishing renames a file into a folder, which changes the folder's time. The resolution of times is
    coarse on some file systems, so a time within the last two seconds proves nothing.
    """
    data = place.data
    times = []
    for folder in (
        place.root / layout.SWEEPS,
        place.root / layout.REPLACED,
        data,
        *sorted(data.glob("problem=*")),
    ):
        try:
            times.append((folder.name, folder.stat().st_mtime_ns))
        except FileNotFoundError:
            continue
    recent = time.time_ns() - 2_000_000_000
    return tuple(times) if all(changed < recent for _, changed in times) else None
