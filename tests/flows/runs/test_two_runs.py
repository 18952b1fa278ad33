"""A second run of a sweep says that the first one is going on."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from flows.spec.sweep import load
from storage.heartbeats import Heartbeat, beat
from storage.place.located import located
from tests.flows.small_store import Command

SWEEP = """
name = "small"
[[grid]]
problem = "unamplified-epsilon"
methods = ["unamplified.exact"]
product = {sigma = [1, 2], steps = 10, delta = 1e-5}
"""


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SWEEP)
    return path


def begin_elsewhere(store: Path, sweep: Path) -> Heartbeat:
    """Leave the heartbeat of another run, by this process."""
    asked, place = load(str(sweep)), located(store)
    place.create()
    going = Heartbeat(
        run="ab12",
        sweep=asked.name,
        digest=asked.digest,
        total=9,
        new=9,
        done=4,
        started_at=datetime.now(UTC),
    )
    beat(place, going)
    return going


def test_a_run_names_the_run_of_the_same_sweep_on_the_same_store(
    tmp_path: Path, sweep: Path, privsweep: Command
) -> None:
    going = begin_elsewhere(tmp_path / "store", sweep)
    assert privsweep("run", sweep, "--store", tmp_path / "store") == 0
    out, err = (privsweep.out, privsweep.err)
    assert (
        f"privsweep: small is already running on {going.where}, at 4 of 9 points: "
        "both runs compute the missing points; Ctrl-C stops this one.\n"
    ) in err
    assert "2 computed" in out


def test_a_run_alone_says_nothing(tmp_path: Path, sweep: Path, privsweep: Command) -> None:
    store = tmp_path / "store"
    assert privsweep("run", sweep, "--store", store) == 0
    assert privsweep("run", sweep, "--store", store) == 0
    assert "already running" not in privsweep.err
