"""Whole sweeps of a method that costs nothing, killed in the middle and resumed; a section of bench.py.

The driver is the process of the command, without Ray and its workers. Some of the sweeps are computed. The
rows of others are made up, with the right fields and ids, except those of the last batches. The largest is
planned only.
"""

import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import ndtr

from flows.runs.batches import Batches, grouped
from flows.runs.ledger import Ledger
from flows.spec.sweep import load
from privcore.point import hashed
from storage import publish
from storage.place.located import located
from storage.schema import schema_for, to_table
from tasks.batch import MOST_POINTS, Batch
from tests.benchmarks.measure import head, row
from tests.storage.made_up import row as made_up

COMPUTED = (100_000, 1_000_000, 10_000_000)
MADE_UP = (1_000_000, 10_000_000)
PLANNED = (100_000_000,)
LEFT = 2
"""Batches of a made-up sweep that are computed."""
PRIVSWEEP = (sys.executable, "-m", "flows.cli")


@dataclass
class Command:
    """A finished command.

    Attributes:
        seconds: Wall time.
        cpu: Processor time of the process itself, in seconds.
        megabytes: Peak memory of the process itself.
        end: Seconds from the last part that it stored to its end; None if it stored nothing.
    """

    seconds: float
    cpu: float
    megabytes: float
    end: float | None


def table() -> Iterator[str]:
    """Yield a line for each sweep."""
    names = ["points", "rows are", "command", "seconds", "after the last part"]
    names += ["driver: processor seconds", "microseconds a point", "MB"]
    yield head(names)
    times: dict[str, list[tuple[int, float]]] = {}
    kinds = (
        ("computed", COMPUTED, _computed),
        ("made up", MADE_UP, _half_made_up),
        ("none", PLANNED, _planned),
    )
    for how, sizes, runs in kinds:
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                for name, done in runs(Path(folder), size):
                    times.setdefault(f"{name}, {how}", []).append((size, done.cpu))
                    each = f"{done.cpu / size * 1e6:.2f}"
                    end = "" if done.end is None else f"{done.end:.1f}"
                    cells = [f"{size:,}", how, name, f"{done.seconds:.1f}", end, f"{done.cpu:.1f}", each]
                    yield row([*cells, f"{done.megabytes:.0f}"])
    yield ""
    grown = [f"{name} {_exponent(found):.2f}" for name, found in times.items() if len(found) > 1]
    yield f"Exponents of the driver's seconds, from the smallest to the largest: {'; '.join(grown)}."


def _exponent(found: Sequence[tuple[int, float]]) -> float:
    (small, before), (large, after) = found[0], found[-1]
    return math.log(after / before) / math.log(large / small)


def _computed(folder: Path, size: int) -> Iterator[tuple[str, Command]]:
    """Yield the runs of a sweep that is killed when half of its points are stored."""
    sweep, store = _sweep(folder, size), folder / "store"
    yield "killed in the middle", _run("run", sweep, "--store", store, kill_at=size // 2)
    time.sleep(10.0)  # the remaining workers publish their finished points, and end
    yield "resumed", _run("run", sweep, "--store", store)
    yield from _afterwards(sweep, store)


def _half_made_up(folder: Path, size: int) -> Iterator[tuple[str, Command]]:
    """Yield the runs of a sweep whose points are stored, except those of its last batches."""
    sweep, store = _sweep(folder, size), folder / "store"
    yield from _planned(folder, size)
    asked = load(sweep)
    for batch in list(Batches(grouped(Ledger(asked.grids), frozenset(), asked.limits), workers=2))[:-LEFT]:
        publish(located(store), _rows(batch))
    yield "resumed", _run("run", sweep, "--store", store)
    yield from _afterwards(sweep, store)


def _planned(folder: Path, size: int) -> Iterator[tuple[str, Command]]:
    """Yield the plan of a sweep without a stored point."""
    yield "planned", _run("plan", _sweep(folder, size), "--store", folder / "store")


def _afterwards(sweep: Path, store: Path) -> Iterator[tuple[str, Command]]:
    yield "run again, nothing to do", _run("run", sweep, "--store", store)
    yield "`status`", _run("status", sweep, "--store", store)
    question = ("lookup", "unamplified-delta", "sigma=1", "epsilon=1", "--store", store)
    yield "first lookup", _run(*question)
    yield "second lookup", _run(*question)


def _sweep(folder: Path, size: int) -> Path:
    path = folder / "trivial.toml"
    path.write_text(
        'name = "trivial"\n[[grid]]\nproblem = "unamplified-delta"\nmethods = ["unamplified.exact"]\n'
        f"product = {{sigma = {{geometric = [0.5, 50, {size // 100}]}}, "
        "epsilon = {geometric = [0.01, 10, 100]}}\n",
        encoding="utf-8",
    )
    return path


def _rows(batch: Batch) -> pa.Table:
    """Return rows for a batch, with the right ids."""
    names = list(batch.problem.parameters)
    columns = dict(zip(names, map(np.array, batch.fields.values), strict=True))  # type: ignore[attr-defined]
    sigma, epsilon = columns["sigma"], columns["epsilon"]
    truth = ndtr(0.5 / sigma - epsilon * sigma) - np.exp(epsilon) * ndtr(-0.5 / sigma - epsilon * sigma)
    own: dict[str, Any] = columns | {"lower": 0.99 * truth, "upper": np.minimum(1.0, 1.01 * truth)}
    some = next(batch.points())
    (one,) = to_table([made_up(some.problem, method=batch.method)]).to_pylist()
    end = some.canonical.partition('},"method"')[2]
    fields = [
        f'{{"fields":{{"epsilon":{e!r},"sigma":{s!r}}}'
        for s, e in zip(sigma.tolist(), epsilon.tolist(), strict=True)
    ]
    own["point_id"] = [hashed(f'{text},"method"{end}') for text in fields]
    own["problem_id"] = [hashed(f'{text},"problem":"{batch.problem.name}"}}') for text in fields]
    assert own["point_id"][0] == some.id
    schema = schema_for(batch.problem)
    return pa.Table.from_arrays(
        [
            pa.array(own[f.name], f.type) if f.name in own else pa.array([one[f.name]] * len(batch), f.type)
            for f in schema
        ],
        schema=schema,
    )


def _run(*arguments: object, kill_at: int | None = None) -> Command:
    """Run a command, or kill it when about this number of points is stored."""
    more = {"run": ["--engine", "ray", "--json", "--max-points", "1e9"], "plan": ["--max-points", "1e9"]}
    command = [*PRIVSWEEP, *map(str, arguments), *more.get(str(arguments[0]), [])]
    store = Path(str(arguments[-1]))
    before = _parts(store)
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seen = [0.0, 0.0]
    watcher = threading.Thread(target=_watch, args=(process.pid, seen))
    watcher.start()
    if kill_at is not None:
        while len(_parts(store)) * MOST_POINTS < kill_at and process.poll() is None:
            time.sleep(0.1)
        process.kill()
    watcher.join()
    seconds = time.perf_counter() - began
    ended = time.time()
    code = process.wait()
    assert kill_at is not None or code == 0, command
    new = _parts(store) - before if kill_at is None else set()
    end = ended - max(path.stat().st_mtime for path in new) if new else None
    return Command(seconds=seconds, cpu=seen[0], megabytes=seen[1], end=end)


def _parts(store: Path) -> set[Path]:
    return set(store.glob("data/*/*.parquet"))


def _watch(process: int, seen: list[float]) -> None:
    """Note the processor time and the peak memory of a process until it ends."""
    try:
        while True:
            fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
            status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
            if fields[0] == "Z":
                return
            seen[0] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            peak = next((line for line in status.splitlines() if line.startswith("VmHWM")), None)
            seen[1] = float(peak.split()[1]) / 1024 if peak else seen[1]
            time.sleep(0.02)
    except OSError:
        return
