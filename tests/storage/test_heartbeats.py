import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from storage.garbage import collect, find_garbage
from storage.heartbeats import Heartbeat, beat, heartbeats, is_alive, remove_dead, stop
from storage.place import layout
from storage.place.located import located

HOUR = timedelta(hours=1)


def heartbeat(run: str = "1234", **changes: Any) -> Heartbeat:
    usual: dict[str, Any] = {
        "sweep": "made-up",
        "digest": "d" * 16,
        "total": 10,
        "new": 8,
        "started_at": datetime.now(UTC),
    }
    return Heartbeat(run=run, **{**usual, **changes})


@pytest.fixture
def store(tmp_path: Path) -> Path:
    located(tmp_path / "store").create()
    return tmp_path / "store"


@pytest.fixture
def other() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that sleeps."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def of_process(process: int) -> Heartbeat:
    """The heartbeat of another process of this machine."""
    since = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    return heartbeat(process=process, place=f"{heartbeat().place.rpartition(' ')[0]} {since}")


def elsewhere(**changes: Any) -> Heartbeat:
    """The heartbeat of a process of another machine, every fifth of a second."""
    return heartbeat(place="another boot 1 2", host="another", every=0.2, **changes)


def test_a_heartbeat_comes_back_as_it_was_and_goes_without_a_trace(store: Path) -> None:
    before = sorted(store.rglob("*"))
    one = heartbeat(done=3, failed=1, points_per_second=2.5)
    beat(located(store), one)
    assert heartbeats(located(store)) == [one]
    assert one.seconds_left == 2.0
    stop(located(store), one.run)
    assert heartbeats(located(store)) == []
    assert sorted(store.rglob("*")) == before


def test_several_runs_of_a_store_are_told_in_the_order_of_their_starts(store: Path) -> None:
    late = heartbeat("a1", started_at=datetime.now(UTC) + HOUR)
    early = heartbeat("b2")
    beat(located(store), late)
    beat(located(store), early)
    assert [one.run for one in heartbeats(located(store))] == ["b2", "a1"]
    stop(located(store), "a1")
    assert [one.run for one in heartbeats(located(store))] == ["b2"], "the folder stays for the other"


def test_a_run_is_alive_while_its_process_is_whatever_the_clocks_say(
    store: Path, other: "subprocess.Popen[bytes]"
) -> None:
    one = of_process(other.pid)
    for moved in (-HOUR, timedelta(0), HOUR):
        assert is_alive(located(store), replace(one, beaten_at=datetime.now(UTC) + moved))
    other.send_signal(signal.SIGKILL)
    while Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    assert not is_alive(located(store), one), "a zombie that is not collected yet counts as dead"
    other.wait()
    assert not is_alive(located(store), one)


def test_another_process_with_the_same_id_is_not_taken_for_the_run(store: Path) -> None:
    mine = heartbeat()
    assert is_alive(located(store), mine)
    machine, _, since = mine.place.rpartition(" ")
    assert not is_alive(located(store), replace(mine, place=f"{machine} {int(since) - 1}"))


def test_a_run_elsewhere_is_alive_if_its_heartbeat_is_fresh(store: Path) -> None:
    assert is_alive(located(store), elsewhere())


@pytest.mark.parametrize("moved", [-HOUR, HOUR])
def test_a_run_elsewhere_whose_clock_is_wrong_is_alive_if_the_next_heartbeat_comes(
    store: Path, moved: timedelta
) -> None:
    one = elsewhere(beaten_at=datetime.now(UTC) + moved)
    beat(located(store), one)
    later = threading.Timer(0.1, beat, (located(store), replace(one, number=1)))
    later.start()
    assert is_alive(located(store), one)
    later.join()


def test_a_run_elsewhere_is_dead_if_the_next_heartbeat_fails_to_come(store: Path) -> None:
    one = elsewhere(beaten_at=datetime.now(UTC) - HOUR)
    beat(located(store), one)
    assert not is_alive(located(store), one)


def test_a_run_elsewhere_that_ends_while_it_is_watched_is_not_alive(store: Path) -> None:
    assert not is_alive(located(store), elsewhere(beaten_at=datetime.now(UTC) - HOUR))


def test_only_dead_runs_of_this_machine_and_sweep_are_removed(store: Path) -> None:
    mine = heartbeat("11")
    machine = mine.place.rpartition(" ")[0]
    dead = replace(mine, run="22", place=f"{machine} 1")
    other_sweep = replace(dead, run="33", digest="e" * 16)
    remote = elsewhere(run="44", beaten_at=datetime.now(UTC) - HOUR)
    for one in (mine, dead, other_sweep, remote):
        beat(located(store), one)
    remove_dead(located(store), mine.digest)
    assert sorted(one.run for one in heartbeats(located(store))) == ["11", "33", "44"]


def test_gc_removes_the_heartbeats_of_runs_that_were_killed_long_ago(store: Path) -> None:
    for run in ("11", "22"):
        beat(located(store), heartbeat(run))
    long_ago = time.time() - 2 * layout.DAY
    os.utime(store / layout.RUNNING / "22.json", (long_ago, long_ago))
    collect(located(store), find_garbage(located(store)))
    assert [one.run for one in heartbeats(located(store))] == ["11"]


def test_what_is_no_heartbeat_is_left_out(store: Path) -> None:
    good = heartbeat()
    beat(located(store), good)
    folder = store / layout.RUNNING
    content = json.loads((folder / "1234.json").read_text())
    wrong: list[object] = [
        {**content, "every": 1e9},
        {**content, "started_at": "2020-01-01"},
        {**content, "done": "3"},
    ]
    wrong += [{**content, "new": None}, {**content, "what": 1}, {}, [], 3, None, {**content, "beaten_at": 4}]
    for number, one in enumerate(wrong):
        (folder / f"w{number}.json").write_text(json.dumps(one))
    (folder / "half.json").write_text('{"run": ')
    (folder / "bytes.json").write_bytes(b"\xff\xfe\x00")
    (folder / "deep.json").write_text("[" * 100_000)
    (folder / "folder.json").mkdir()
    (folder / "link.json").symlink_to("nowhere")
    assert heartbeats(located(store)) == [good]


def test_a_forged_heartbeat_names_no_file_but_its_own(store: Path) -> None:
    victim = store.parent / "evil.json"
    victim.write_text("of somebody else")
    dead = replace(heartbeat(), place=f"{heartbeat().place.rpartition(' ')[0]} 1")
    beat(located(store), dead)
    content = json.loads((store / layout.RUNNING / "1234.json").read_text())
    (store / layout.RUNNING / "99.json").write_text(json.dumps({**content, "run": "../../evil"}))
    os.mkfifo(store / layout.RUNNING / "77.json")
    remove_dead(located(store), dead.digest)
    assert victim.exists()
    assert heartbeats(located(store)) == []


@pytest.mark.parametrize("wrong", [{"new": 10**400}, {"every": 600.0}, {"done": -1}, {"run": "99"}])
def test_a_heartbeat_beyond_reason_is_left_out(store: Path, wrong: dict[str, Any]) -> None:
    beat(located(store), heartbeat())
    path = store / layout.RUNNING / "1234.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **wrong}))
    assert heartbeats(located(store)) == []


def test_an_ended_process_without_a_start_is_dead(store: Path) -> None:
    machine = heartbeat().place.rpartition(" ")[0]
    assert not is_alive(located(store), heartbeat(place=f"{machine} ", process=2**22 + 1))


def test_a_heartbeat_that_cannot_be_written_is_left_out(store: Path) -> None:
    (store / layout.RUNNING).write_text("a file in the place of the folder")
    beat(located(store), heartbeat())
    stop(located(store), "1234")
    assert (store / layout.RUNNING).read_text().startswith("a file")
