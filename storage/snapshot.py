"""A snapshot: all parts of a store in one sorted DuckDB file, built aside, that queries run on."""

import hashlib
import json
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from privcore import METHODS, PROBLEMS
from storage import layout
from storage.errors import StoreError
from storage.manifest import Manifest, manifests, missing, to_json
from storage.parts import ROW_GROUP, parts, problem_of, read_part
from storage.schema import SCHEMA_VERSION, schema_for
from storage.views import LAYOUT, add_problem, add_views, quote

KEPT = 2  # snapshots that stay: the newest, and one that another process may be about to open

_OPENING = threading.Lock()

# Queries come from users: no file, no network, no write, no change of these settings.
_LOCKED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "memory_limit": "2GB",
}


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What a store held at one moment, and the digest that names its snapshot."""

    root: Path
    parts: tuple[Path, ...]
    manifests: tuple[Manifest, ...]
    digest: str


def contents(root: Path) -> Contents:
    """Return what a store holds now.

    Raises:
        StoreError: A file does not belong there, or a part that a manifest lists is missing.
    """
    layout.check(root)
    sweeps = manifests(root)  # before the parts: a sweep that ends in between lists parts that came later
    found = parts(root)
    names = {str(path.relative_to(root / layout.DATA)) for path in found}
    for sweep in sweeps:
        for name in sorted(set(sweep.parts) - names):
            raise StoreError(missing(root, sweep, name))
    content = [
        [LAYOUT, SCHEMA_VERSION, duckdb.__version__],
        [[p.name, str(schema_for(p))] for p in PROBLEMS],
        [[m.name, m.version] for m in METHODS],
        [[path.name, *_size_and_time(path)] for path in found],
        [to_json(sweep) for sweep in sweeps],
    ]
    digest = hashlib.blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()
    return Contents(root=root, parts=tuple(found), manifests=tuple(sweeps), digest=digest)


def _size_and_time(path: Path) -> tuple[int, int]:
    """Return what changes when somebody tampers with a part, so that it is read and checked again."""
    try:
        status = path.stat()
    except OSError as error:
        raise StoreError(f"Cannot read {path}: {layout.reason(error)}.") from error
    return status.st_size, status.st_mtime_ns


def connect(what: Contents) -> duckdb.DuckDBPyConnection:
    """Return a read-only, locked connection to the snapshot of these contents; build it where it is missing.

    Raises:
        StoreError: A part is damaged; the sentence names it.
    """
    try:
        folder = what.root / layout.CACHE
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:  # a store on a read-only disk can be queried all the same
        with tempfile.TemporaryDirectory(prefix="privsweep-") as scratch:
            path = Path(scratch) / "snapshot.duckdb"
            _build(what, path)
            return _open(path)  # the file lives as long as the connection
    path = folder / f"snapshot-{what.digest}.duckdb"
    for _ in range(3):
        if not path.exists():
            try:
                _build_aside(what, path)
            except (duckdb.Error, pa.ArrowException, OSError) as error:  # disk or memory is full
                raise StoreError(f"Cannot build {path}: {str(error).splitlines()[0]}.") from error
        try:
            return _open(path)
        except duckdb.Error:  # removed by another process in between, or not what we wrote
            path.unlink(missing_ok=True)
    raise StoreError(f"Cannot open {path}; delete the folder {folder}.")


def _open(path: Path) -> duckdb.DuckDBPyConnection:
    with _OPENING:  # connections of one process to one file share their settings
        connection = duckdb.connect(str(path), read_only=True, config=dict(_LOCKED))
        if not connection.execute("select current_setting('lock_configuration')").fetchall()[0][0]:
            connection.execute("set global TimeZone = 'UTC'")
            connection.execute("set global lock_configuration = true")
    return connection


def _build_aside(what: Contents, path: Path) -> None:
    """Build a snapshot under another name, put it in place whole, and remove old ones."""
    with tempfile.TemporaryDirectory(prefix=".snapshot-", suffix=".tmp", dir=path.parent) as scratch:
        unfinished = Path(scratch) / path.name
        _build(what, unfinished)
        unfinished.replace(path)
    others = [p for p in path.parent.glob("snapshot-*.duckdb") if p != path]
    for old in sorted(others, key=_age)[KEPT - 1 :]:
        old.unlink(missing_ok=True)


def _age(path: Path) -> float:
    """Return a number that is larger for older files."""
    try:
        return -path.stat().st_mtime
    except OSError:
        return 0.0


def _build(what: Contents, path: Path) -> None:
    """Write the snapshot: every part is read once, and its hash is compared on the way."""
    of_problem: dict[str, list[Path]] = {problem.name: [] for problem in PROBLEMS}
    for part in what.parts:
        of_problem.setdefault(problem_of(part), []).append(part)
    known = {problem.name: schema_for(problem) for problem in PROBLEMS}
    schemas: dict[str, pa.Schema] = {}
    with duckdb.connect(str(path), config={"python_enable_replacements": "false"}) as connection:
        connection.execute("create schema brackets")
        for problem, files in of_problem.items():
            schemas[problem] = _load(connection, files, known.get(problem), what.root / layout.DATA)
            add_problem(connection, problem, schemas[problem])
        _load_sweeps(connection, what.manifests)
        add_views(connection, schemas)


def _load(
    connection: duckdb.DuckDBPyConnection, files: list[Path], schema: pa.Schema | None, data: Path
) -> pa.Schema:
    """Fill the temporary table `raw` with the rows of these parts; return its columns."""
    if schema is None:  # a problem of another release: its columns are those that any part has
        schema = pa.unify_schemas([read_part(file).schema for file in files])
    # Not `create table as` from no rows: DuckDB 2.0.0 can lose what is inserted into such a table later on.
    connection.register("rows", schema.empty_table())
    columns = [f"{quote(name)} {kind}" for name, kind, *_ in connection.execute("describe rows").fetchall()]
    connection.execute(f"create or replace temp table raw ({', '.join(columns)}, part varchar)")
    read = 0
    for table in _in_chunks(files, data):
        connection.register("rows", table)
        connection.execute("insert into raw by name from rows")
        read += len(table)
    connection.unregister("rows")
    # The condition has every row looked at; a bare count is answered from statistics.
    kept = connection.execute("select count(*) from raw where point_id <> ''").fetchall()[0][0]
    if kept != read:
        raise StoreError(f"DuckDB {duckdb.__version__} kept {kept} of {read} rows; do not use this version.")
    return schema


def _in_chunks(files: list[Path], data: Path) -> Iterator[pa.Table]:
    """Yield the rows of all parts, many small parts together: an insertion costs more than its rows."""
    waiting: list[pa.Table] = []
    for file in files:
        table = read_part(file)
        name = pa.repeat(str(file.relative_to(data)), len(table)).dictionary_encode()
        waiting.append(table.append_column("part", name))
        if sum(map(len, waiting)) >= ROW_GROUP or file == files[-1]:
            yield pa.concat_tables(waiting, promote_options="default").combine_chunks()
            waiting = []


def _load_sweeps(connection: duckdb.DuckDBPyConnection, sweeps: tuple[Manifest, ...]) -> None:
    connection.execute(
        """
        create table sweeps (
            name varchar, digest varchar, status varchar, started_at timestamptz, finished_at timestamptz,
            git_commit varchar, schema_version bigint, parts bigint, counts varchar, spec varchar
        )
        """
    )
    for m in sweeps:
        values = [m.name, m.digest, m.status, m.started_at, m.finished_at, m.git_commit, m.schema_version]
        values += [len(m.parts), json.dumps(m.counts), json.dumps(m.spec, sort_keys=True)]
        connection.execute(f"insert into sweeps values ({', '.join('?' * len(values))})", values)
