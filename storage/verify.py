"""Verification of every file of a store, reading without the damaged ones, and salvage from them."""

import hashlib
import json
import os
import secrets
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from privcore import PROBLEMS, Point, find, find_problem
from privcore.errors import PrivsweepError
from privcore.registry import used_versions
from storage.errors import DamagedError, DegradedWarning, StoreError, reason
from storage.export import NAME as STORE_SQL
from storage.manifest import (
    Manifest,
    Replacement,
    files,
    missing,
    newest,
    reached,
    read_manifest,
    read_replacement,
    settled,
    successors,
    to_json,
)
from storage.parts import UNCHECKED, doubts, ids_hash, misnaming, problem_of, read_part, survey
from storage.place import disk, layout
from storage.place.folder import Folder
from storage.schema import SCHEMA_VERSION, object_in, schema_for
from storage.sql.build import LAYOUT
from storage.sql.snapshot import Contents
from storage.sql.views import CHOICE, contradictions

# Reading of a damaged store without the files that cannot be trusted, with one warning for each file.


def warn(sentence: str) -> None:
    """Warn of a file that is left out."""
    warnings.warn(sentence, DegradedWarning, stacklevel=4)


class Around:
    """A store without its damaged files.

    Attributes:
        place: The store.
        tell: Function that gets one sentence about each file that is left out, once.
    """

    def __init__(self, place: Folder, tell: Callable[[str], None] = warn) -> None:
        self.place = place
        self.tell = tell
        self._told: set[str] = set()
        self._sound: set[tuple[Path, int, int]] = set()

    def parts(self) -> list[Path]:
        """Return the sound parts, sorted, and warn about the others."""
        found, foreign = survey(self.place)
        for path in foreign:
            self._tell(f"{self.place.shown(path)} is not part of the store; it is left out.")
        return [path for path in found if self._is_sound(path)]

    def manifests(self) -> list[Manifest]:
        """Return the sound manifests, the latest last, and warn about the others."""
        sweeps: list[Manifest] = []
        made: list[Replacement] = []
        for path in self.place.entries(layout.SWEEPS) + self.place.entries(layout.REPLACED):
            if layout.is_no_file(path):
                self._tell(f"{self.place.shown(path)} is not part of the store; it is left out.")
                continue
            try:
                if path.parent.name == layout.SWEEPS:
                    sweeps.append(read_manifest(self.place, path))
                else:
                    made.append(read_replacement(self.place, path))
            except StoreError as error:
                if os.path.lexists(path):  # else gc deleted a record that no manifest needs
                    self._tell(str(error))
        current = [sweep.with_parts(newest(sweep.parts, made)) for sweep in sweeps]
        return sorted(current, key=lambda sweep: (sweep.finished_at, sweep.digest))

    def contents(self) -> Contents:
        """Return the contents of a snapshot, and warn about missing parts that manifests list."""
        self.place.check()
        before = files(self.place)
        sweeps = self.manifests()
        found = self.parts()
        lost = [(sweep, name) for sweep in sweeps for name in sweep.parts if not self._path(name).exists()]
        if lost and not files(self.place).issuperset(before):
            raise FileNotFoundError(self._path(lost[0][1]))  # replaced meanwhile: `steadily` reads again
        for sweep, name in lost:
            self._tell(missing(self.place, sweep, name))
        content = [
            ["degraded", LAYOUT, SCHEMA_VERSION, duckdb.__version__],
            [[p.name, str(schema_for(p))] for p in PROBLEMS],
            list(used_versions().items()),
            [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in found],
            [to_json(sweep) for sweep in sweeps],
        ]
        digest = hashlib.blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()
        return Contents(place=self.place, parts=tuple(found), manifests=tuple(sweeps), digest=digest)

    def _is_sound(self, path: Path) -> bool:
        """Return whether a part is sound; its bytes are read once after each change."""
        try:
            status = path.stat()
            state = path, status.st_size, status.st_mtime_ns
            if state not in self._sound:
                table = read_part(self.place, path)
                if predicate := misnaming(path, table):
                    self._tell(f"{self.place.shown(path)} {predicate}; it is left out.")
                    return False
                self._sound.add(state)
        except (OSError, StoreError) as error:
            if not os.path.lexists(path):  # replaced meanwhile: `steadily` reads again
                raise FileNotFoundError(path) from error
            self._tell(str(error))
            return False
        return True

    def _path(self, name: str) -> Path:
        return self.place.data / name

    def _tell(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self.tell(sentence)


# Salvage from a damaged store: quarantine of files, and recovery of the points that their bytes prove.


def set_aside(place: Folder, paths: Iterable[Path]) -> Path:
    """Move files into a new folder below `quarantine`, which readers ignore; names and folders are kept.

    Args:
        place: The store.
        paths: Files or folders below it; missing ones are ignored.

    Returns:
        The new folder; it does not exist if nothing was moved.

    Raises:
        StoreError: The quarantine is a link, or the disk refused; files that were moved before stay there.
    """
    place.entries(layout.QUARANTINE)  # refuses a link, which may lead anywhere
    folder = place.root / layout.QUARANTINE / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
    touched: set[Path] = set()
    try:
        for path in paths:
            target = folder / path.relative_to(place.root)
            if path.exists() or path.is_symlink():
                disk.make_folder(target.parent)
                place.rename(path, target)
                touched |= {path.parent, target.parent}
        for each in sorted(touched):
            disk.sync_folder(each)
    except OSError as error:
        raise StoreError(f"Cannot move {place.shown(error.filename)}: {reason(error)}.") from error
    return folder


def untrue_records(place: Folder, besides: Collection[Path] = ()) -> list[Path]:
    """Return the records of replacements that lead to missing parts.

    Without these records, a manifest lists its own parts again, so that missing parts are reported.

    Args:
        place: The store.
        besides: Parts that are about to be quarantined, and count as missing.
    """
    return settled(place, lambda: _untrue_records(place, besides))


def _untrue_records(place: Folder, besides: Collection[Path]) -> list[Path]:
    made: dict[Path, Replacement] = {}
    for path in place.entries(layout.REPLACED):
        try:
            made[path] = read_replacement(place, path)
        except StoreError:  # `verify` reports it
            continue
    after = successors(made.values())
    held = {
        path: [place.data / n for n in reached(one.new, after) - after.keys()] for path, one in made.items()
    }
    return [
        path
        for path, parts in held.items()
        if not parts or not all(part.exists() and part not in besides for part in parts)
    ]


def told_points(path: Path) -> tuple[dict[str, Point], bool]:
    """Return the points of a damaged part that can be proved from its bytes.

    A row proves its point if the id computed from its fields equals the stored id, a hash of 128 bits. All
    points are known if also their ids match the hash of points in the part's name, or the part's bytes match
    the hash of bytes in it. Answers are not checked.

    Args:
        path: A part, or any other file or folder.

    Returns:
        The points by id, and whether they are all points of the part.
    """
    if not path.is_file():
        return {}, False
    try:
        # Page checksums prevent changed bytes from being decoded.
        file = pq.ParquetFile(path, page_checksum_verification=True)
        (name,) = set(file.read(columns=["problem"])["problem"].to_pylist())
        problem = find_problem(name)
        present = [field for field in problem.parameters if field in file.schema_arrow.names]
        rows = file.read(columns=["point_id", "method", "knobs", *present]).to_pylist()
        ids = [str(row["point_id"]) for row in rows]
    except (pa.ArrowException, OSError, ArithmeticError, ValueError, LookupError, TypeError, MemoryError):
        return {}, False
    points = {}
    for row in rows:
        fields = {field: row[field] for field in present if row[field] is not None}
        try:
            method = find(row["method"]).from_knobs(object_in(row["knobs"]))
            point = Point(problem=problem.from_fields(fields), method=method)
        except (PrivsweepError, ValueError, LookupError, TypeError, AttributeError):
            continue
        if point.id == row["point_id"]:
            points[point.id] = point
    named = path.name[:32], path.name[33:97]
    whole = ids_hash(ids) == named[0] or hashlib.sha256(path.read_bytes()).hexdigest() == named[1]
    return points, points.keys() == set(ids) and whole


DAMAGED, TRUNCATED, MISSING, FOREIGN, MISNAMED = "damaged", "truncated", "missing", "foreign", "misnamed"
UNREADABLE, MANIFEST, CONTRADICTION = "unreadable", "manifest", "contradiction"
DUPLICATE, LEFTOVER = "duplicate", "leftover"
_ANSWERS = [
    *("point_id", "problem_id", "method", "method_version"),
    *("lower", "upper", "value", "confidence", "status", "finished_at", "versions"),
]
HARMLESS = frozenset({DUPLICATE, LEFTOVER, UNCHECKED})


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A defect of a store, or a harmless leftover.

    Attributes:
        kind: `damaged`, `truncated` or `misnamed` (a part), `missing` (a part that a manifest lists),
            `foreign` (not a part), `unreadable` (newer, or the system refuses), `manifest` (damaged record of
            a sweep or a replacement), `contradiction` (two answers to one point), `future` (a part with a
            time to come), `unchecked` (rows of a method or with values that this release lacks), `duplicate`
            or `leftover`.
        file: Path of the file below the store.
        problem: Name of the affected problem, or "".
        detail: One sentence with the file and the remedy.
    """

    kind: str
    file: str
    problem: str
    detail: str

    @property
    def harmless(self) -> bool:
        """Whether readers get the right rows despite this finding."""
        return self.kind in HARMLESS


@dataclass
class Verification:
    """The findings of a verification, and the amount of data that it read."""

    findings: list[Finding] = field(default_factory=list)
    parts: int = 0
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0

    @property
    def sound(self) -> bool:
        """Whether all findings are harmless."""
        return all(finding.harmless for finding in self.findings)

    @property
    def readable(self) -> bool:
        """Whether every row can be read, although rows may contradict one another."""
        return all(finding.harmless or finding.kind == CONTRADICTION for finding in self.findings)


def verify(place: Folder) -> Verification:
    """Return the findings about a store.

    Every byte is read, for a bucket from the server. The checks are: hashes, page checksums, schema, the
    points in a part against the hash in its name, the ids of its rows against their fields, their times, the
    parts that a manifest lists, and equal answers in all rows of one point. Writers, readers, `compact` and
    `gc` may run at the same time; files that they replace meanwhile are listed again.

    Raises:
        StoreError: The folders themselves cannot be read.
    """
    began = time.monotonic()
    place.refresh(afresh=True)
    place.check()
    seen: dict[Path, _Seen] = {}
    report = settled(place, lambda: _look(place, seen))
    report.seconds = time.monotonic() - began
    return report


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """A part that was read: its size, and its answers or findings."""

    bytes: int
    answers: pa.Table | None = None
    findings: tuple[Finding, ...] = ()


def _look(place: Folder, seen: dict[Path, _Seen]) -> Verification:
    """Return the findings of one pass over a store; parts in `seen` are not read again."""
    report = Verification()
    # Before the parts: a sweep that ends meanwhile lists later parts.
    sweeps, made, report.findings = _records(place)
    found, foreign = survey(place)
    report.findings += [
        _about(place, FOREIGN, path, "is not part of the store; `privsweep repair` will quarantine it.")
        for path in foreign
    ]
    if (sql := place.root / STORE_SQL).is_dir():
        foreign_sql = "is a folder, and not part of the store; `privsweep repair` will quarantine it."
        report.findings.append(_about(place, FOREIGN, sql, foreign_sql))
    answers: dict[str, list[pa.Table]] = {}
    for path in found:
        if path not in seen:
            seen[path] = _read(place, path)
        part = seen[path]
        report.findings += part.findings
        report.parts, report.bytes = report.parts + 1, report.bytes + part.bytes
        if part.answers is not None:
            report.rows += len(part.answers)
            answers.setdefault(problem_of(path), []).append(part.answers)
    names = {str(path.relative_to(place.data)) for path in found}
    report.findings += _untrue(place, made, names)
    report.findings += [
        _finding(place, MISSING, place.data / name, missing(place, sweep, name))
        for sweep in sweeps
        for name in sweep.parts
        if name not in names
    ]
    for tables in answers.values():
        report.findings += _compared(place, tables)
    report.findings += [
        _about(place, LEFTOVER, path, "is unfinished; `privsweep gc` deletes it when it is a day old.")
        for path in place.leftovers(older_than=0.0)
    ]
    return report


def _untrue(place: Folder, made: dict[Path, Replacement], names: set[str]) -> Iterator[Finding]:
    """Yield the records that lead in a circle, or to missing parts while an old part still exists."""
    after = successors(made.values())
    for path, one in made.items():
        held = reached(one.new, after) - after.keys()
        if not held or (names.intersection(one.old) and not names.issuperset(held)):
            where = f"to {min(held - names)}, which is missing" if held else "back to itself"
            yield _about(place, MANIFEST, path, f"leads {where}; `privsweep repair` will quarantine it.")


def _about(place: Folder, kind: str, path: Path, predicate: str) -> Finding:
    return _finding(place, kind, path, f"{place.shown(path)} {predicate}")


def _finding(place: Folder, kind: str, path: Path, detail: str) -> Finding:
    problem = problem_of(path) if path.parent.name.startswith("problem=") else ""
    return Finding(kind=kind, file=str(path.relative_to(place.root)), problem=problem, detail=detail)


def _read(place: Folder, path: Path) -> _Seen:
    """Read one part."""
    try:
        table = read_part(place, path)
    except StoreError as error:
        kind = UNREADABLE
        if isinstance(error, DamagedError):
            kind = DAMAGED if _is_complete(path) else TRUNCATED
        return _Seen(bytes=_size(path), findings=(_finding(place, kind, path, str(error)),))
    if not set(_ANSWERS) <= set(table.column_names):  # a problem unknown to this release
        foreign = _about(place, FOREIGN, path, "has no results; `privsweep repair` will quarantine it.")
        return _Seen(bytes=_size(path), findings=(foreign,))
    wrong: tuple[Finding, ...] = ()
    if predicate := misnaming(path, table):
        wrong = (_about(place, MISNAMED, path, f"{predicate}; `privsweep repair` will quarantine it."),)
    said = doubts(problem_of(path), table)
    wrong += tuple(_about(place, kind, path, predicate) for kind, predicate in said)
    table = table.select(_ANSWERS)
    name = pa.repeat(str(path.relative_to(place.data)), len(table)).dictionary_encode()
    return _Seen(bytes=_size(path), answers=table.append_column("part", name), findings=wrong)


def _is_complete(path: Path) -> bool:
    """Return whether a file has the ending of a Parquet file."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, _size(path) - 4))
            return file.read(4) == b"PAR1"
    except OSError:  # it vanished meanwhile
        return True


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _records(place: Folder) -> tuple[list[Manifest], dict[Path, Replacement], list[Finding]]:
    """Return the manifests with current names of parts, the replacements, and findings about other files."""
    sweeps: list[Manifest] = []
    made: dict[Path, Replacement] = {}
    findings = []
    for path in place.entries(layout.SWEEPS) + place.entries(layout.REPLACED):
        if layout.is_no_file(path):
            foreign = "is not part of the store; `privsweep repair` will quarantine it."
            findings.append(_about(place, FOREIGN, path, foreign))
            continue
        try:
            if path.parent.name == layout.SWEEPS:
                sweeps.append(read_manifest(place, path))
            else:
                made[path] = read_replacement(place, path)
        except StoreError as error:
            kind = MANIFEST if isinstance(error, DamagedError) else UNREADABLE
            findings.append(_finding(place, kind, path, str(error)))
    return [sweep.with_parts(newest(sweep.parts, made.values())) for sweep in sweeps], made, findings


def _compared(place: Folder, answers: list[pa.Table]) -> Iterator[Finding]:
    """Yield findings about answers that contradict one another, and about parts with superseded rows."""
    with duckdb.connect(config={"python_enable_replacements": "false"}) as connection:
        connection.register("answers", pa.concat_tables(answers))
        found = list(contradictions(connection, lambda part: place.shown(place.data / part)))
        idle = connection.execute(
            f"""
            select part, count(*) from (
                select part, row_number() over (partition by point_id order by {CHOICE}) as place from answers
            ) where place > 1 group by part order by part
            """
        ).fetchall()
    for part, detail in found:
        yield _finding(place, CONTRADICTION, place.data / part, detail)
    for part, count in idle:
        drop = f"has {count} rows of points whose answer is in another part; `privsweep gc` drops them."
        yield _about(place, DUPLICATE, place.data / part, drop)
