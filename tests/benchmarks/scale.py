"""Speed-up from one to two workers on certified points; a section of bench.py.

Runs with one and with two workers alternate, so that other work on the machine affects both equally.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from storage import open_store

REPEATS = 3
TARGET = 0.85
SWEEP = """
name = "scale"
[[grid]]
problem = "allocation-epsilon"
methods = ["allocation.certified"]
product = {sigma = {geometric = [0.5, 4, 600]}, steps = [1000, 3000, 10000, 30000], delta = [1e-8, 1e-5]}
"""


def table() -> Iterator[str]:
    """Yield the times of every pair of runs, then the efficiency: medians, and the spread of the pairs."""
    yield "| run | 1 worker: computing, all | 2 workers: computing, all | efficiency: computing, all |"
    yield "|---|---|---|---|"
    pairs = []
    for number in range(1, REPEATS + 1):
        one, two = _seconds(1), _seconds(2)
        pairs.append((one[0] / two[0] / 2, one[1] / two[1] / 2))
        yield (
            f"| {number} | {one[0]:.1f} s, {one[1]:.1f} s | {two[0]:.1f} s, {two[1]:.1f} s "
            f"| {pairs[-1][0]:.2f}, {pairs[-1][1]:.2f} |"
        )
    yield ""
    for what, found in zip(("start-up excluded", "start-up included"), zip(*pairs, strict=True), strict=True):
        median = statistics.median(found)
        verdict = f"; target {TARGET}: {'met' if median >= TARGET else 'missed'}" if "ex" in what else ""
        yield f"* {what}: {median:.2f} ({min(found):.2f} to {max(found):.2f}){verdict}"


def _seconds(workers: int) -> tuple[float, float]:
    """Return the wall time from the first point's start to the last point's end, and that of the command."""
    with tempfile.TemporaryDirectory() as folder:
        sweep, store = Path(folder) / "scale.toml", Path(folder) / "store"
        sweep.write_text(SWEEP, encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "flows.cli",
            "run",
            str(sweep),
            "--engine",
            "ray",
            "--store",
            str(store),
            "--json",
        ]
        done = subprocess.run(
            [*command, "--workers", str(workers)], check=True, capture_output=True, text=True
        )
        with open_store(store) as opened:
            (row,) = opened.sql(
                "select epoch(max(finished_at)) - min(epoch(finished_at) - seconds) as span from results"
            ).to_pylist()
        return float(row["span"]), float(json.loads(done.stdout)["seconds"])
