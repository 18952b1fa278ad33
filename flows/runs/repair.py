"""Repair: damaged files are set aside, and exactly their lost points are computed again.

Manifests determine the lost points: the points of a finished sweep that the store no longer has. Points
outside of all finished sweeps are read from the damaged part, if its bytes still prove them, and become a new
sweep, whose manifest is written before anything is moved. A killed repair therefore leaves either damage that
the next repair finds, or an unfinished sweep that the next repair resumes.
"""

import hashlib
import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.runs.ledger import Ledger
from flows.runs.run import RunReport, Watch, run
from flows.runs.status import Coverage, coverage, point_ids, record
from flows.spec.sweep import Sweep, from_spec
from privcore.answer import FAILURES
from privcore.errors import PrivsweepError
from privcore.point import Point
from storage.parts import ids_hash
from storage.place.layout import DATA
from storage.verify import set_aside, told_points, untrue_records
from tasks.engine import AUTOMATIC, Engine

if TYPE_CHECKING:
    from storage import Store
    from storage.manifest import Manifest
    from storage.verify import Finding

NAME = "repair-"
MOVED = ("damaged", "truncated", "misnamed", "foreign", "manifest")


@dataclass
class Repair:
    """The work of a repair, planned or done.

    Attributes:
        moved: Files that are set aside, relative to the store.
        quarantine: Folder or address of the moved files, or None before the move.
        sweeps: Sweeps that are run for the lost points, those of this and of interrupted repairs first.
        retried: Digests of sweeps whose stored failures are computed again, since the answers that
            superseded them were lost.
        recorded: Unfinished sweeps that lost points; their manifests are written again, and they stay
            unfinished.
        lost: Number of points that are computed again.
        reports: Reports of the runs.
        hopeless: A sentence for each damage that cannot be repaired.
    """

    moved: list[str] = field(default_factory=list)
    quarantine: str | None = None
    sweeps: list[Sweep] = field(default_factory=list)
    retried: set[str] = field(default_factory=set)
    recorded: list[Sweep] = field(default_factory=list)
    lost: int = 0
    reports: list[RunReport] = field(default_factory=list)
    hopeless: list[str] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        """Whether the store needs no repair."""
        return not (self.moved or self.sweeps or self.recorded or self.hopeless)


def repair(
    store: "Store",
    *,
    dry_run: bool = False,
    engine: Engine = AUTOMATIC,
    watch: Watch = lambda _pace, _done: None,
) -> Repair:
    """Set damaged files aside, compute the lost points again, and write the manifests again.

    Args:
        store: The store.
        dry_run: Whether to report the work without doing it.
        engine: Computes the lost points.
        watch: Called with the progress.

    Returns:
        The work that was done; points that fail again are counted in its reports.

    Raises:
        StoreError: The store is missing, or a write failed.
        InterruptedRunError: SIGINT or SIGTERM arrived; the next repair resumes.
    """
    place = store.place
    findings = store.examine().findings
    bad = [place.root / f.file for f in findings if f.kind in MOVED]
    bad += [path for path in untrue_records(place, bad) if path not in bad]
    work = Repair(moved=[str(path.relative_to(place.root)) for path in bad])
    work.hopeless += [f.detail for f in findings if f.kind in ("unreadable", "contradiction")]
    work.hopeless += [
        f"{f.file} is damaged, and no other file records its sweep: run that sweep again."
        for f in findings
        if f.kind == "manifest" and f.file.startswith("sweeps/")
    ]
    own = _assess(work, store, findings)
    if dry_run:
        return work
    if own is not None:
        nothing = Coverage(sweep=own.name, total=Ledger(own.grids).total, statuses={})
        record(own, nothing, (), store, datetime.now(UTC))
    if bad:
        work.quarantine = place.shown(set_aside(place, bad))
    for sweep in work.sweeps:
        work.reports.append(
            run(
                sweep,
                store,
                engine=engine,
                max_points=float("inf"),
                retry=sweep.digest in work.retried,
                watch=watch,
            )
        )
    for sweep in work.recorded:
        ledger = Ledger(sweep.grids)
        ledger.read(store)
        record(sweep, coverage(sweep, ledger), ledger.parts, store, datetime.now(UTC))
    return work


def _assess(work: Repair, store: "Store", findings: "list[Finding]") -> Sweep | None:
    """Find the sweeps to run; return the new sweep for points outside of all other sweeps, or None."""
    gone = {f.file for f in findings if f.kind in (*MOVED, "missing")}
    told: dict[str, Point] = {}
    whole: set[str] = set()  # hashes of points, as in file names, of parts whose points are all known
    unknown = []
    for finding in findings:
        if finding.kind in MOVED and finding.file.startswith(f"{DATA}/"):
            points, complete = told_points(store.place.root / finding.file)
            told |= points
            whole.add(ids_hash(list(points)))
            unknown += [] if complete else [finding]
    covered: set[str] = set()
    lost: set[str] = set()
    with warnings.catch_warnings(action="ignore"):
        around = store.around_damage()
        sweeps = around.manifests()
        stored = cache(around.stored)
        for manifest in sweeps:
            harmed = any(f"{DATA}/{part}" in gone for part in manifest.parts)
            unfinished_repair = manifest.name.startswith(NAME) and manifest.status != "complete"
            if not (harmed or unfinished_repair):
                continue
            try:
                sweep = from_spec(manifest.spec, f"manifest of {manifest.name}")
                ids = {i: problem for problem, wanted in point_ids(sweep).items() for i in wanted}
            except PrivsweepError as error:
                work.hopeless.append(f"Sweep {manifest.name} cannot be run by this release: {error}")
                continue
            if manifest.status == "complete" or unfinished_repair:
                work.sweeps.append(sweep)
                covered |= ids.keys()
                lost |= {i for i, problem in ids.items() if i not in stored(problem)}
                failures = {i for i, problem in ids.items() if stored(problem).get(i) in FAILURES}
                if unfinished_repair or len(failures) > sum(manifest.counts.get(s, 0) for s in FAILURES):
                    work.retried.add(sweep.digest)
                    lost |= failures
            else:
                work.recorded.append(sweep)
        rest = [p for p in told.values() if _is_lost(p, stored(p.problem.name), covered)]
    for finding in unknown:
        if Path(finding.file).name[:32] not in whole:
            _doubt(work, finding, sweeps)
    work.lost = len(lost | {p.id for p in rest})
    if not rest:
        return None
    own = sweep_of(rest)
    work.sweeps.insert(0, own)
    work.retried.add(own.digest)
    return own


def _is_lost(point: Point, stored: Mapping[str, str], covered: Collection[str]) -> bool:
    """Return whether a point of a damaged part is lost: it is missing, or only a failure is stored."""
    return stored[point.id] in FAILURES if point.id in stored else point.id not in covered


def _doubt(work: Repair, finding: "Finding", sweeps: "list[Manifest]") -> None:
    """Report a damaged part whose points are unknown."""
    if finding.kind == "foreign":  # it may never have held points
        return
    asking = [m for m in sweeps if any(f"{DATA}/{part}" == finding.file for part in m.parts)]
    for manifest in asking:
        if manifest.status != "complete" and not manifest.name.startswith(NAME):
            work.hopeless.append(
                f"{finding.file} held points of sweep {manifest.name}, which was not finished: run it again."
            )
    if not asking:
        work.hopeless.append(f"{finding.file} cannot be computed again: no record of its points is left.")


def sweep_of(points: Iterable[Point]) -> Sweep:
    """Return a sweep of exactly these points."""
    grids: dict[tuple[str, str, str], dict[str, Any]] = {}
    ids = []
    for point in points:
        ids.append(point.id)
        knobs = point.method.identity()
        key = point.problem.name, point.method.name, repr(sorted(knobs.items()))
        grid = grids.setdefault(
            key,
            {
                "problem": point.problem.name,
                "methods": [{"name": point.method.name, **knobs}],
                "zip": {name: [] for name in point.problem.parameters},
            },
        )
        for name, value in point.problem.as_fields().items():
            grid["zip"][name].append(value)
    digest = hashlib.blake2b("".join(sorted(ids)).encode(), digest_size=6).hexdigest()
    spec = {"name": f"{NAME}{digest}", "title": "Points of a damaged part", "grid": list(grids.values())}
    return from_spec(spec, "repair")
