"""The commands on a store in a bucket, with a real S3 server and Ray; then from other machines."""

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.place.located import CACHE_VARIABLE
from storage.place.server import connected
from tests.s3 import keys

pytestmark = pytest.mark.xdist_group("ray")

Run = Callable[..., tuple[int, str, str]]

SPEC = """
name = "far"
[[grid]]
problem = "unamplified-epsilon"
methods = [{name = "faulty.slow", seconds = 0.1}, "unamplified.exact"]
product = {sigma = {linear = [1, 2, 40]}, delta = 1e-5}
"""


@pytest.mark.thorough
def test_a_sweep_into_a_bucket_is_killed_finished_damaged_and_repaired_from_other_machines(
    address: str, folder: Path, start: Callable[..., object], process: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = folder / "far.toml"
    spec.write_text(SPEC)

    def on(machine: str) -> None:
        monkeypatch.setenv(CACHE_VARIABLE, str(folder / machine))

    def done(*arguments: object) -> str:
        code, out, err = process(*arguments, "--store", address)
        assert code == 0, (out, err)
        return out

    on("a")
    running = start("run", spec, "--engine", "ray", "--store", address, "--workers", 2)
    while sum(name.endswith(".parquet") for name in keys(address)) < 2:
        assert running.alive, running.end()  # type: ignore[attr-defined]
    os.killpg(running.process.pid, signal.SIGKILL)  # type: ignore[attr-defined]
    running.end()  # type: ignore[attr-defined]

    on("b")
    report = json.loads(done("run", spec, "--json", "--engine", "serial"))
    assert (report["stored"], report["failed"], report["store"]) == (80, 0, address)
    assert 0 < report["computed"] < 80, "points stored by the killed run are not computed again"

    on("c")
    done("compact")
    key = f"{address}/{next(name for name in keys(address) if name.endswith('.parquet'))}"
    content = bytearray(connected("").cat_file(key))
    content[-200] ^= 4
    connected("").pipe_file(key, bytes(content))

    on("b")
    code, out, err = process("sql", "select 1", "--store", address)
    assert (code, out) == (2, "")
    assert re.fullmatch(rf"privsweep: {address}/data/\S+\.parquet is damaged: [^\n]+\n", err)
    done("repair", "--engine", "serial")

    on("c")
    assert "sound" in done("verify")
    assert json.loads(done("sql", "select count(*) as n from results", "--json"))[0]["n"] == 80
    assert sum(bool(re.fullmatch(r"quarantine/.*\.parquet", name)) for name in keys(address)) == 1
