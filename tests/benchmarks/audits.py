"""Audits in one run beside jax-privacy; a section of bench.py."""

import json
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".venv-peers" / "bin" / "python"
POINTS = [
    (100, 80, 70, 1e-6),
    (100_000, 1500, 1429, 1e-5),
    (10_000_000, 10_000, 9790, 1e-5),
    (10_000_000, 4_000_000, 2_900_000, 1e-5),
]
REPEATS = 9
BATCH = 1000


def table() -> Iterator[str]:
    """Yield the epsilon of the Gaussian family by both, with seconds, then the time of a batch of audits."""
    from privcore import Point, evaluate, find, find_problem

    kind, method = find_problem("audit-epsilon"), find("auditing.gaussian")()

    def ours(canaries: int, guesses: int, correct: int, delta: float) -> tuple[float, float]:
        problem = kind.from_fields(
            {"canaries": canaries, "guesses": guesses, "correct": correct, "delta": delta}
        )
        point = Point(problem=problem, method=method)
        value, seconds = evaluate(point).value, []  # compiled code is loaded now
        assert value is not None
        for _ in range(REPEATS):
            started = time.perf_counter()
            evaluate(point)
            seconds.append(time.perf_counter() - started)
        return value, statistics.median(seconds)

    yield "| canaries | guesses | correct | delta | ours | seconds | jax-privacy 2.0 | seconds | ratio |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for counts in POINTS:
        value, seconds = ours(*counts)
        row = [*(f"{x:g}" for x in counts), f"{value:.7g}", f"{seconds:.5f}", *_peer(counts, seconds)]
        yield "| " + " | ".join(row) + " |"
    started = time.perf_counter()
    for i in range(BATCH):
        fields = {"canaries": 10_000 + i, "guesses": 400, "correct": 380 - i % 100, "delta": 1e-5}
        evaluate(Point(problem=kind.from_fields(fields), method=method))
    yield ""
    yield f"{BATCH} different audits take {time.perf_counter() - started:.2f} s on one core."


def _peer(counts: tuple[int, int, int, float], own_seconds: float) -> list[str]:
    """Return the peer's columns."""
    if not PEERS.exists():
        return ["not installed", "", ""]
    command = [str(PEERS), str(Path(__file__).with_name("peer_jax_privacy.py")), *map(str, counts)]
    found = json.loads(subprocess.check_output(command, text=True))
    ratio = found["seconds"] / own_seconds
    return [f"{found['epsilon']:.7g}", f"{found['seconds']:.3f}", f"{ratio:.0f}"]
