"""Verification of every file of a store against its name and its manifest."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa

from storage import layout
from storage.contradictions import contradictions
from storage.errors import DamagedError, StoreError
from storage.export import NAME as STORE_SQL
from storage.folder import Folder
from storage.identities import misnaming
from storage.manifest import Manifest, missing, read_manifest
from storage.parts import problem_of, read_part, survey
from storage.plausible import UNCHECKED, doubts
from storage.replacements import Replacement, newest, reached, read_replacement, settled, successors
from storage.views import CHOICE

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
