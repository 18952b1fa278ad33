"""Coverage of a sweep by a store: shown while it runs, from any shell, and recorded at its end.

The store is loaded when it is read, so that `privsweep status --help` does not load DuckDB.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from flows.runs.ledger import ByMethod, Ledger
from flows.runs.plan import Plan
from flows.spec.grid import expand
from flows.spec.sweep import Sweep, from_spec
from privcore.errors import DomainError
from tasks.tally import Outcomes, Tally

if TYPE_CHECKING:
    from storage import Store
    from storage.heartbeats import Heartbeat


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """The stored points of a sweep, by status.

    Attributes:
        sweep: Name of the sweep.
        total: Number of its points.
        statuses: Number of stored points by status.
        silent: Names of problem and method, for all with failed points and no answer.
    """

    sweep: str
    total: int
    statuses: Mapping[str, int]
    silent: tuple[tuple[str, str], ...] = ()

    @property
    def stored(self) -> int:
        """Number of stored points, with any status."""
        return sum(self.statuses.values())

    @property
    def failed(self) -> int:
        """Number of stored points without an answer, except points to which the method does not apply."""
        return Outcomes(Counter(self.statuses)).failed

    @property
    def missing(self) -> int:
        """Number of points that are not stored."""
        return self.total - self.stored


@dataclass(frozen=True, kw_only=True)
class Runs:
    """The runs of a sweep, from their heartbeats and its manifest.

    Attributes:
        alive: Active runs, the latest last.
        dead: Runs that were killed or whose machine stopped.
        begun: Whether a run was ever started.
    """

    alive: tuple["Heartbeat", ...] = ()
    dead: tuple["Heartbeat", ...] = ()
    begun: bool = False

    def state(self, now: Coverage) -> str:
        """Return `running`, `complete`, `interrupted` or `not run`, for the current coverage."""
        if self.alive:
            return "running"
        if now.missing:
            return "interrupted" if self.begun else "not run"
        return "complete"


def runs(sweep: Sweep, store: "Store", *, wait: bool = True) -> Runs:
    """Return the runs of a sweep; if a run may be on another machine, this can take a minute.

    Args:
        sweep: The sweep.
        store: The store.
        wait: Whether to wait for heartbeats of other machines; else, only fresh ones count.

    Raises:
        StoreError: The store cannot be read.
    """
    from storage.heartbeats import heartbeats, is_alive
    from storage.manifest import manifest_of

    found = [one for one in heartbeats(store.place) if one.digest == sweep.digest]
    with ThreadPoolExecutor(max(1, len(found))) as watching:  # all at once, since each may take a while
        lives = list(watching.map(partial(is_alive, store.place, wait=wait), found))
    alive = {one.run for one, living in zip(found, lives, strict=True) if living}
    return Runs(
        alive=tuple(one for one in found if one.run in alive),
        dead=tuple(one for one in found if one.run not in alive),
        begun=bool(found) or manifest_of(store.place, sweep.digest).exists(),
    )


def coverage(sweep: Sweep, ledger: Ledger) -> Coverage:
    """Return the coverage of a sweep, from the parts that its ledger has read."""
    return _covered(sweep, ledger.total, ledger.by_method())


def _covered(sweep: Sweep, total: int, counts: ByMethod) -> Coverage:
    """Return the coverage of a sweep; points to which a method does not apply do not make it silent."""
    silent = tuple(key for key, statuses in counts.items() if Outcomes(statuses).is_silent)
    return Coverage(sweep=sweep.name, total=total, statuses=sum(counts.values(), Counter()), silent=silent)


def after(plan: Plan, tally: Tally, sweep: Sweep, store: "Store") -> tuple[Coverage, set[str]]:
    """Return the coverage of a sweep after a run, and the names of the parts that hold its points.

    They follow from the ledger and from the outcomes of the batches. Only if other parts appeared, parts are
    gone, or points with a stored failure were computed again, the parts that are new to the ledger are read.
    """
    store.place.refresh()
    unread = plan.ledger.unread(store)
    if unread == tally.parts and not plan.repeated:
        counts = plan.ledger.by_method()
        for key, new in tally.by_method.items():
            counts[key] += new.statuses
        return _covered(sweep, plan.total, counts), plan.ledger.parts | tally.parts
    plan.ledger.read(store)
    return coverage(sweep, plan.ledger), plan.ledger.parts


def recorded(sweep: Sweep, store: "Store") -> Coverage | None:
    """Return the coverage when the manifest of a sweep was last written, or None without its counts."""
    from storage.manifest import manifest_of, read_manifest

    path = manifest_of(store.place, sweep.digest)
    if not path.exists():
        return None
    if not (counts := dict(read_manifest(store.place, path).counts)):
        return None  # an import that the sweep used was taken back
    missing = counts.pop("missing", 0)
    return Coverage(sweep=sweep.name, total=sum(counts.values()) + missing, statuses=counts)


def point_ids(sweep: Sweep) -> dict[str, list[str]]:
    """Return the ids of all points of a sweep, by name of their problem."""
    ids: dict[str, list[str]] = {}
    for point in expand(sweep.grids):
        ids.setdefault(point.problem.name, []).append(point.id)
    return ids


def recorded_sweeps(store: "Store") -> list[Sweep]:
    """Return the sweeps that were ever started on a store, the latest last.

    Raises:
        StoreError: The store cannot be read.
        SweepError: A manifest holds a sweep that this release cannot read.
    """
    return [from_spec(manifest.spec, f"manifest of {manifest.name}") for manifest in store.manifests()]


def is_broken(sweep: Sweep, store: "Store") -> bool:
    """Return whether the manifest of a sweep lists parts that are missing."""
    from storage.parts import parts

    listed = {part for m in store.manifests() if m.digest == sweep.digest for part in m.parts}
    return bool(listed) and not listed <= {f"{path.parent.name}/{path.name}" for path in parts(store.place)}


def record(sweep: Sweep, now: Coverage, parts: Iterable[str], store: "Store", started: datetime) -> None:
    """Write the manifest of a sweep.

    Args:
        sweep: The sweep.
        now: Its coverage.
        parts: Names of all parts with a point of the sweep, from any run.
        store: The store.
        started: Start of the run, in UTC.
    """
    from storage.export import write_store_sql
    from storage.manifest import COMPLETE, INCOMPLETE, Manifest, write_manifest
    from storage.schema import provenance

    manifest = Manifest(
        digest=sweep.digest,
        name=sweep.name,
        spec=sweep.spec,
        counts={**now.statuses, "missing": now.missing},
        parts=tuple(sorted(parts)),
        git_commit=provenance().git_commit,
        started_at=started,
        finished_at=datetime.now(UTC),
        status=INCOMPLETE if now.missing else COMPLETE,
    )
    write_manifest(store.place, manifest)
    write_store_sql(store.place)


NAMED = 3  # methods in a sentence, at most


def check_share(most: float | None) -> None:
    """Raise `DomainError` unless a share of failed points is between 0 and 1, or not given."""
    if most is not None and not 0 <= most <= 1:
        raise DomainError(f"Expected max_failed in [0, 1], a share of the points, got {most:g}.")


def too_many_failed(now: Coverage, most: float | None) -> str:
    """Return the sentence that says why too many points of a sweep failed, or "".

    Args:
        now: Coverage of the sweep.
        most: Largest share of failed points, 0 to 1; None means that every method must answer at least one
            point of each of its problems if any of them failed.
    """
    if not now.failed:
        return ""
    if most is not None:
        share = now.failed / now.total
        return f"{share:.1%} of the points failed, more than max_failed {most:g}." if share > most else ""
    silent = [f"{method} answered no point of {problem}" for problem, method in now.silent]
    more = f", and {len(silent) - NAMED} more" if len(silent) > NAMED else ""
    return f"{', '.join(silent[:NAMED])}{more}." if silent else ""
