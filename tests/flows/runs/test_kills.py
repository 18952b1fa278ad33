"""A hundred runs in which a process is killed: no row is lost or doubled, and every end is true."""

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from storage import open_store
from tests.busy import stretched
from tests.flows.runs.test_faults import SLOW, parts, rows_and_points

pytestmark = [pytest.mark.soak, pytest.mark.xdist_group("ray")]

POINTS = 60
TIMES = 7
"""Kills of each victim at each moment."""
NAMES = {
    "driver": "",
    "raylet": "raylet",
    "worker": "ray::",
    "gcs": "gcs_server",
    "Prefect's server": "guarded_server",
}
"""Processes to kill, by a part of their names or commands; the driver is the command itself."""


def victims(running: Any, victim: str) -> list[psutil.Process]:
    """The processes of a run that can be killed."""
    if victim == "driver":
        return [psutil.Process(running.process.pid)]
    found = []
    for each in running.below:
        try:
            if NAMES[victim] in f"{each.name()} {' '.join(each.cmdline())}":
                found.append(each)
        except psutil.Error:
            continue
    return [each for each in found if victim != "worker" or "Agent" not in each.name()]


@pytest.mark.parametrize("moment", ["start", "middle", "end"])
@pytest.mark.parametrize("victim", list(NAMES))
def test_after_a_kill_no_row_is_lost_or_doubled_and_no_run_ends_as_a_success_without_all_points(
    victim: str, moment: str, folder: Path, start: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    spec = folder / "kills.toml"
    spec.write_text(SLOW.format(name="kills", points=POINTS))
    needed = {"start": 0, "middle": 2, "end": POINTS - 12}[moment]
    ends: Counter[int] = Counter()
    for k in range(TIMES):
        store = folder / f"{victim} {moment} {k}"
        words = ("run", spec, "--engine", "ray", "--store", store, "--workers", 2, "--json")
        running = start(*words)
        while running.alive and (stored(store) < needed or not victims(running, victim)):
            time.sleep(0.05)
        time.sleep(0.4 * k)
        before = answers(store)
        for process in victims(running, victim)[:1] if running.alive else []:
            process.kill()
        code, out, err = running.end(timeout=stretched(180))
        ends[code] += 1
        assert "Traceback" not in err, err
        time.sleep(2.0 if victim == "driver" else 0.0)  # its workers publish what they have just finished
        now = answers(store)
        assert now.items() >= before.items(), "nothing is lost"
        assert code != 0 or len(now) == json.loads(out)["points"] == POINTS, "no success without all points"
        again, out, err = start(*words).end(timeout=stretched(180))
        assert again == 0, err
        with open_store(store) as opened:
            assert rows_and_points(opened) == (POINTS, POINTS), "nothing is doubled"
            assert opened.verify() == []
        assert answers(store).items() >= now.items()
    with capsys.disabled():
        print(f"\n| {victim} | {moment} | {TIMES} | {dict(sorted(ends.items()))} | 0 | 0 |", flush=True)


def stored(store: Path) -> int:
    """The number of stored points, at least."""
    return len(answers(store)) if parts(store) else 0


def answers(store: Path) -> dict[str, tuple[float, float]]:
    """The stored answers by point."""
    if not parts(store):
        return {}
    with open_store(store) as opened:
        rows = opened.sql("select point_id, lower, upper from results").to_pylist()
    return {row["point_id"]: (row["lower"], row["upper"]) for row in rows}
