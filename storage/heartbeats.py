"""Heartbeats: a small file that a running sweep writes anew every few seconds, so that others know it lives.

It is no result: it goes with its run, nothing is decided by it but what `status` says, and a heartbeat that
cannot be written is left out. One of a killed run stays behind until the sweep is run again.
"""

import json
import math
import os
import re
import socket
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from storage import layout
from storage.errors import StoreError
from storage.folder import Folder

EVERY = 5.0  # seconds
EVERY_IN_BUCKET = 20.0
LONGEST = 60.0  # seconds between two of them that are believed
MISSED = 2.5  # heartbeats that fail to come before a run counts as dead

_NAME = re.compile(r"[0-9a-f]{1,32}\.json")
_NUMBERS = ("total", "new", "done", "failed", "number", "process")
_WORDS = ("run", "sweep", "digest", "host", "place")


@cache
def _machine() -> str:
    """Return what processes that see one another's ids have in common."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return socket.gethostname()


def _since(process: int) -> str:
    """Return when a process began, in ticks of its machine; "" where it has ended."""
    try:
        state, *rest = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else rest[18]


def _place() -> str:
    return f"{_machine()} {_since(os.getpid())}"


@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """What a run says of itself.

    Attributes:
        run: Id of the run, hexadecimal.
        sweep: Name of the sweep.
        digest: Hash of the sweep's content.
        total: Number of its points.
        new: Number of points that the run has to compute.
        done: How many of them are computed.
        failed: How many of those have no answer.
        points_per_second: Pace since the first batch, or None before the second one.
        started_at: When the run began, in UTC.
        beaten_at: When this was written, in UTC.
        number: How many heartbeats there were before.
        every: Seconds between two of them.
        host: Name of its machine.
        process: Id of its process.
        place: Tells the process from all others that ever had its id.
    """

    run: str
    sweep: str
    digest: str
    total: int
    new: int
    done: int = 0
    failed: int = 0
    points_per_second: float | None = None
    started_at: datetime
    beaten_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    number: int = 0
    every: float = EVERY
    host: str = field(default_factory=socket.gethostname)
    process: int = field(default_factory=os.getpid)
    place: str = field(default_factory=_place)

    @property
    def seconds_left(self) -> float | None:
        """Time that the rest takes at this pace, in seconds; None before there is a pace."""
        return (self.new - self.done) / self.points_per_second if self.points_per_second else None


def beat(place: Folder, heartbeat: Heartbeat) -> None:
    """Write a heartbeat, in place of the one before; what goes wrong is ignored."""
    path = _path(place, heartbeat.run)
    times = {name: getattr(heartbeat, name).isoformat() for name in ("started_at", "beaten_at")}
    content = json.dumps({**asdict(heartbeat), **times}).encode() + b"\n"
    with suppress(OSError, StoreError):
        place.put(path, content)


def stop(place: Folder, run: str) -> None:
    """Remove the heartbeat of a run that has ended; what goes wrong is ignored."""
    path = _path(place, run)
    with suppress(OSError, StoreError):
        place.delete(path)
        path.parent.rmdir()  # unless another one runs


def heartbeats(place: Folder) -> list[Heartbeat]:
    """Return the heartbeats in a store, the latest run last; what is none is left out."""
    found: list[Heartbeat] = []
    folder = place.root / layout.RUNNING
    for path in place.entries(layout.RUNNING) if folder.is_dir() else ():
        with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
            if stat.S_ISREG(path.lstat().st_mode) and _NAME.fullmatch(path.name):
                found.append(_parsed(json.loads(path.read_bytes()), path.stem))
    return sorted(found, key=lambda one: (one.started_at, one.run))


def is_alive(place: Folder, heartbeat: Heartbeat) -> bool:
    """Return whether the run of a heartbeat goes on.

    On this machine its process tells. For another machine, a heartbeat that is plainly fresh is enough; else
    clocks may differ, so it is watched until the next one comes or has failed to come.
    """
    machine, _, since = heartbeat.place.rpartition(" ")
    if machine == _machine():
        return since != "" and since == _since(heartbeat.process)
    age = (datetime.now(UTC) - heartbeat.beaten_at).total_seconds()
    return 0 <= age <= heartbeat.every or _beats_again(place, heartbeat)


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
    """Remove the heartbeats of killed runs of a sweep; on other machines, those that are a day old."""
    for one in heartbeats(place):
        here = one.place.rpartition(" ")[0] == _machine()
        old = (datetime.now(UTC) - one.beaten_at).total_seconds() > layout.DAY
        if one.digest == digest and (not is_alive(place, one) if here else old):
            stop(place, one.run)


def _path(place: Folder, run: str) -> Path:
    return place.root / layout.RUNNING / f"{run}.json"


def _parsed(content: Mapping[str, Any], run: str) -> Heartbeat:
    """Return the heartbeat of a run; raise `TypeError`, `ValueError` or `KeyError` if it is none."""
    times = {name: datetime.fromisoformat(content[name]) for name in ("started_at", "beaten_at")}
    heartbeat = Heartbeat(**{**content, **times})
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
    return heartbeat
