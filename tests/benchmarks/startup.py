"""Time of a command in a new process with warm disk caches; a section of bench.py."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".venv-peers" / "bin" / "python"
RUNS = 11
SWEEP = """
name = "startup"
[[grid]]
problem = "allocation-epsilon"
methods = ["allocation.certified"]
product = {sigma = {geometric = [0.5, 4, 30]}, steps = [1000, 10000], delta = [1e-8, 1e-5]}
"""
QUESTION = ["epsilon", "--sampling", "allocation", "--steps", "10000", "--delta", "1e-8", "--sigma"]


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Times of the runs of a command: median and worst seconds, and median processor seconds."""

    median: float
    worst: float
    processor: float


def table() -> Iterator[str]:
    """Yield a line for every command, then the imports of the commands of privsweep."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        sweep = Path(folder) / "startup.toml"
        sweep.write_text(SWEEP, encoding="utf-8")
        ours = [sys.executable, "-m", "flows.cli"]
        subprocess.run(
            [*ours, "run", str(sweep), "--engine", "ray", "--store", str(store)], check=True, **_quiet()
        )
        lookup = [*ours, *QUESTION, "4", "--store", str(store)]
        compute = [*ours, *QUESTION, "0.7", "--store", str(store)]
        work: list[tuple[str, Sequence[str], float | None]] = [
            ("`privsweep epsilon`, answered from the store", lookup, 0.6),
            ("the same with `--explain`", [*lookup, "--explain"], None),
            ("`privsweep epsilon`, computed", compute, 2.0),
            ("`privsweep --help`", [*ours, "--help"], None),
            ("`python -c pass`", [sys.executable, "-c", "pass"], None),
            ('`python -c "import numpy"`', [sys.executable, "-c", "import numpy"], None),
            ('`python -c "import duckdb, pyarrow"`', [sys.executable, "-c", "import duckdb, pyarrow"], None),
        ]
        if PEERS.exists():
            work.append(
                (
                    "`import dp_accounting`, the peer's package",
                    [str(PEERS), "-c", "import dp_accounting"],
                    None,
                )
            )
        yield "| command | median | worst | processor | target | met |"
        yield "|---|---|---|---|---|---|"
        for name, command, target in work:
            taken = _taken(command)
            met = "" if target is None else "yes" if taken.median <= target else "no"
            told = "" if target is None else f"{target:g} s"
            seconds = (f"{x:.2f} s" for x in (taken.median, taken.worst, taken.processor))
            yield f"| {' | '.join((name, *seconds, told, met))} |"
        yield ""
        yield (
            f"Each command runs in {RUNS} new processes, one after another. `processor` is the median of "
            "their user and system time. The median is compared with the target; the worst time includes the "
            "effects of other work on the machine."
        )


def _taken(command: Sequence[str]) -> Taken:
    walls, processors = [], []
    for k in range(-2, RUNS):
        before, started = _processor(), time.perf_counter()
        subprocess.run(command, check=True, **_quiet())
        if k >= 0:  # the first runs write bytecode and compiled kernels
            walls.append(time.perf_counter() - started)
            processors.append(_processor() - before)
    return Taken(median=statistics.median(walls), worst=max(walls), processor=statistics.median(processors))


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _quiet() -> dict[str, Any]:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")}
    return {"cwd": ROOT, "env": environment, "capture_output": True}
