"""Points per second of a sweep over noise, by the methods and by the command; a section of bench.py."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from privcore import Point, evaluate, find, find_problem
from storage import open_store
from tests.benchmarks.enclosures import WIDTH, ours_at, theirs_at
from tests.benchmarks.measure import forget, head, row, verdict
from tests.benchmarks.peer import Peer

POINTS, SAMPLE = 1000, 5
LEAST, MOST = 0.4, 4.0
GRIDS = ((10**3, 1e-5), (10**4, 1e-8), (10**6, 1e-10))
TARGET = 40.0
LIMIT = 10.0
SWEEP = """
name = "throughput"
[[grid]]
problem = "allocation-epsilon"
methods = ["allocation.certified"]
product = {{sigma = {{geometric = [{least}, {most}, {points}]}}, steps = [{steps}], delta = [{delta}]}}
"""


def table() -> Iterator[str]:
    """Yield points per second: evaluated in order, by the command with one worker, and by a peer."""
    peer = Peer("peer_allocation.py")
    ours_at("allocation-epsilon", "allocation.certified", {"sigma": 1.0, "steps": 7, "delta": 1e-3})
    names = ["t", "delta", "points", "ours, points per second", "widest bracket"]
    names += ["`privsweep run`, computing", "the whole command"]
    yield head([*names, f"PLD-accounting adaptive, {SAMPLE} of the points"])
    slowest = float("inf")
    for steps, delta in GRIDS:
        rate, width = _evaluated(steps, delta)
        computing, whole = _run(steps, delta)
        slowest = min(slowest, rate, computing)
        cells = [f"{steps:g}", f"{delta:g}", f"{POINTS}", f"{rate:.1f}", f"{width:.2%}"]
        yield row([*cells, f"{computing:.1f}", f"{whole:.1f}", _peer(peer, steps, delta)])
    peer.close()
    yield ""
    yield (
        f"{POINTS} values of sigma, geometric from {LEAST} to {MOST}. Our rate is by processor time in one "
        "process; the rates of the command are by wall time with one worker, from the first to the last "
        "point, and in total."
    )
    yield ""
    yield verdict(
        f"at least {TARGET:g} points per second on one core with {WIDTH:.0%} brackets",
        f"at least {slowest:.1f}",
        slowest >= TARGET,
    )


def _sigmas(count: int) -> list[float]:
    return [LEAST * (MOST / LEAST) ** (i / (count - 1)) for i in range(count)]


def _evaluated(steps: int, delta: float) -> tuple[float, float]:
    """Return the points per second of processor time, evaluated as a batch, and the widest bracket."""
    kind, method = find_problem("allocation-epsilon"), find("allocation.certified")()
    forget()
    width, started = 0.0, time.process_time()
    for sigma in _sigmas(POINTS):
        problem = kind.from_fields({"sigma": sigma, "steps": steps, "delta": delta})
        answer = evaluate(Point(problem=problem, method=method))
        assert answer.lower is not None
        assert answer.upper is not None
        width = max(width, answer.upper / answer.lower - 1.0)
    return POINTS / (time.process_time() - started), width


def _run(steps: int, delta: float) -> tuple[float, float]:
    """Return the points per second of wall time by the command: while it computes, and in total."""
    with tempfile.TemporaryDirectory() as folder:
        sweep, store = Path(folder) / "throughput.toml", Path(folder) / "store"
        text = SWEEP.format(least=LEAST, most=MOST, points=POINTS, steps=steps, delta=delta)
        sweep.write_text(text, encoding="utf-8")
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
        started = time.perf_counter()
        done = subprocess.run([*command, "--workers", "1"], check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - started
        assert json.loads(done.stdout)["failed"] == 0
        with open_store(store) as opened:
            (found,) = opened.sql(
                "select epoch(max(finished_at)) - min(epoch(finished_at) - seconds) as span from results"
            ).to_pylist()
        return POINTS / float(found["span"]), POINTS / seconds


def _peer(peer: Peer, steps: int, delta: float) -> str:
    """Return the peer's points per second over some of the points, at our width."""
    seconds, hit = 0.0, 0
    for sigma in _sigmas(SAMPLE):
        fields: dict[str, Any] = {"sigma": sigma, "steps": steps, "delta": delta}
        ours = ours_at("allocation-epsilon", "allocation.certified", fields)
        fields |= {"participations": 1, "epochs": 1, "adjacency": "add-remove"}
        width = ours.upper - ours.lower
        said = theirs_at(peer, "adaptive", "adaptive", LIMIT, fields=fields, accuracy=width)
        if said.measured is None and not said.failure.startswith(">"):
            return said.failure
        hit += said.measured is None
        seconds += LIMIT if said.measured is None else said.measured.seconds
    return f"{'<' if hit else ''} {SAMPLE / seconds:.2g}" + (f" ({hit} hit {LIMIT:g} s)" if hit else "")
