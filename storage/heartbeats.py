"""Heartbeats: a small file that a running sweep rewrites every few seconds, as a sign that it is alive.

A heartbeat is not a result: it is deleted at the end of its run, only the output of `status` depends on it,
and errors in writing it are ignored. The heartbeat of a killed run stays until the sweep is run again.
"""

import json
import math
import os
import re
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from storage.errors import StoreError
from storage.place import layout
from storage.place.folder import Folder

EVERY = 5.0  # seconds
EVERY_IN_BUCKET = 20.0
LONGEST = 60.0  # most seconds between two heartbeats
MISSED = 2.5  # missed heartbeats after which a run counts as dead

_NAME = re.compile(r"[0-9a-f]{1,32}\.json")
_NUMBERS = ("total", "new", "done", "failed", "number", "process")
_WORDS = ("run", "sweep", "digest", "host", "place")


@cache
def _machine() -> str:
    """Return an identifier of this PID namespace of this boot."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return socket.gethostname()


def _since(process: int) -> str:
    """Return the start of a process as a word that is fixed on its machine, or "" if it has ended."""
    try:
        if not _has_proc():
            return _since_by_ps(process)
        state, *rest = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else rest[18]


@cache
def _has_proc() -> bool:
    """Return whether the system describes its processes in files; macOS does not."""
    try:
        return bool(Path("/proc/self/stat").read_bytes())
    except OSError:
        return False


def _since_by_ps(process: int) -> str:
    """Return the same from the command `ps`, which every system of the POSIX family has."""
    command = ["ps", "-o", "stat=", "-o", "lstart=", "-p", str(process)]
    english = os.environ | {"LC_ALL": "C"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=english)
    state, *start = done.stdout.split() or ["Z"]
    return "" if state[0] in "ZX" else "-".join(start)


def _place() -> str:
    return f"{_machine()} {_since(os.getpid())}"


@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """The progress of a run.

    Attributes:
        run: Id of the run, hexadecimal.
        sweep: Name of the sweep.
        digest: Hash of the sweep's content.
        total: Number of points of the sweep.
        new: Number of points that the run computes.
        done: Number of computed points.
        failed: Number of computed points without an answer.
        points_per_second: Pace since the first batch, or None before the second batch.
        work_seconds_left: Seconds for the remaining points by their costs, or None before the first batch.
        started_at: Start of the run, in UTC.
        beaten_at: Time of this heartbeat, in UTC.
        number: Number of earlier heartbeats.
        every: Seconds between two heartbeats.
        host: Name of the machine.
        process: Id of the process.
        place: PID namespace and start of the process, which identify it if its id is used again.
    """

    run: str
    sweep: str
    digest: str
    total: int
    new: int
    done: int = 0
    failed: int = 0
    points_per_second: float | None = None
    work_seconds_left: float | None = None
    started_at: datetime
    beaten_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    number: int = 0
    every: float = EVERY
    host: str = field(default_factory=socket.gethostname)
    process: int = field(default_factory=os.getpid)
    place: str = field(default_factory=_place)

    @property
    def shown_host(self) -> str:
        """The name of the machine, safe to print."""
        return self.host[:100] if self.host.isprintable() else "?"

    @property
    def where(self) -> str:
        """The machine and the process, safe to print."""
        return f"{self.shown_host}, process {self.process}"

    @property
    def seconds_left(self) -> float | None:
        """Seconds for the remaining points, by their costs or else at this pace; None if neither is known."""
        if self.work_seconds_left is not None:
            return self.work_seconds_left
        return (self.new - self.done) / self.points_per_second if self.points_per_second else None


def beat(place: Folder, heartbeat: Heartbeat) -> None:
    """Write a heartbeat over the previous one; errors are ignored."""
    path = _path(place, heartbeat.run)
    times = {name: getattr(heartbeat, name).isoformat() for name in ("started_at", "beaten_at")}
    content = json.dumps({**asdict(heartbeat), **times}).encode() + b"\n"
    with suppress(OSError, StoreError):
        place.put(path, content)


def stop(place: Folder, run: str) -> None:
    """Remove the heartbeat of a run that has ended; errors are ignored."""
    path = _path(place, run)
    with suppress(OSError, StoreError):
        place.delete(path)
        path.parent.rmdir()  # fails if another run has a heartbeat


def heartbeats(place: Folder) -> list[Heartbeat]:
    """Return the valid heartbeats in a store, the latest run last."""
    found: list[Heartbeat] = []
    folder = place.root / layout.RUNNING
    for path in place.entries(layout.RUNNING) if folder.is_dir() else ():
        with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
            if _NAME.fullmatch(path.name):
                found.append(_parsed(json.loads(layout.content_of(path)), path.stem))
    return sorted(found, key=lambda one: (one.started_at, one.run))


def is_alive(place: Folder, heartbeat: Heartbeat, *, wait: bool = True) -> bool:
    """Return whether the run of a heartbeat is alive.

    On this machine, its process is looked up. On another machine, a fresh heartbeat suffices; since clocks
    may differ, this function otherwise waits for the next heartbeat until it is overdue, or not if `wait` is
    false.
    """
    machine, _, since = heartbeat.place.rpartition(" ")
    if machine == _machine():
        return since != "" and since == _since(heartbeat.process)
    age = (datetime.now(UTC) - heartbeat.beaten_at).total_seconds()
    return 0 <= age <= heartbeat.every or (wait and _beats_again(place, heartbeat))


def _beats_again(place: Folder, heartbeat: Heartbeat) -> bool:
    until = time.monotonic() + MISSED * heartbeat.every
    while time.monotonic() < until:
        time.sleep(min(1.0, heartbeat.every / 5))
        place.refresh()
        now = [one.number for one in heartbeats(place) if one.run == heartbeat.run]
        if not now:
            return False  # it has ended meanwhile
        if now[0] != heartbeat.number:
            return True
    return False


def remove_dead(place: Folder, digest: str) -> None:
    """Remove the heartbeats of killed runs of a sweep; of other machines, only those that are a day old."""
    for one in heartbeats(place):
        here = one.place.rpartition(" ")[0] == _machine()
        old = (datetime.now(UTC) - one.beaten_at).total_seconds() > layout.DAY
        if one.digest == digest and (not is_alive(place, one) if here else old):
            stop(place, one.run)


def _path(place: Folder, run: str) -> Path:
    return place.root / layout.RUNNING / f"{run}.json"


def _parsed(content: Mapping[str, Any], run: str) -> Heartbeat:
    """Return the heartbeat of a run; raise `TypeError`, `ValueError` or `KeyError` if it is invalid."""
    times = {name: datetime.fromisoformat(content[name]) for name in ("started_at", "beaten_at")}
    known = {name: content[name] for name in content if name in Heartbeat.__dataclass_fields__}
    heartbeat = Heartbeat(**{**known, **times})
    kinds = {int: _NUMBERS, str: _WORDS}
    if not all(isinstance(content[name], kind) for kind, names in kinds.items() for name in names):
        raise TypeError("A heartbeat has a field of the wrong type.")
    if content["run"] != run or not all(0 <= content[name] < 2**53 for name in _NUMBERS):
        raise ValueError("A heartbeat has the id of another run, or an impossible count.")
    pace = heartbeat.points_per_second
    if not all(time.tzinfo for time in times.values()) or not 0 < heartbeat.every <= LONGEST:
        raise ValueError("A heartbeat has a time without a time zone, or an impossible interval.")
    if pace is not None and not 0 < pace < math.inf:
        raise ValueError("A heartbeat has an impossible pace.")
    left = heartbeat.work_seconds_left
    if left is not None and not 0 <= left < math.inf:
        raise ValueError("A heartbeat has an impossible time left.")
    return heartbeat
