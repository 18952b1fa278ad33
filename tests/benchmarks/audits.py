"""Audits in one run, compared with jax-privacy; a section of bench.py."""

import time
from collections.abc import Iterator

from privcore import Point, evaluate, find, find_problem
from tests.benchmarks.measure import Measured, head, measured, row, verdict
from tests.benchmarks.peer import PYTHON, Peer, PeerError

POINTS = [
    # canaries, guesses, correct, delta
    (100, 80, 70, 1e-6),
    (1000, 100, 100, 1e-5),
    (1000, 1000, 520, 1e-5),
    (100_000, 1500, 1429, 1e-5),
    (100_000, 1500, 1429, 1e-12),
    (1_000_000, 10, 10, 1e-9),
    (10_000_000, 10_000, 9790, 1e-5),
    (10_000_000, 4_000_000, 2_900_000, 1e-5),
]
BATCH = 1000
TARGET = 20.0
LIMIT = 60.0
TOLERANCE = 1e-4
"""Tolerance of the comparison: both find the root of the same equation, and the peer stops at about this."""


def table() -> Iterator[str]:
    """Yield both epsilons of the Gaussian family, with seconds, then the time of a batch of audits."""
    peer = Peer("peer_audits.py")
    _ours(*POINTS[0])  # loads compiled code
    names = ["canaries", "guesses", "correct", "delta", "ours", "ms", "MB"]
    yield head([*names, "jax-privacy 2.0", "ms", "MB", "difference", "ratio"])
    ratios, apart = [], []
    for counts in POINTS:
        ours = _ours(*counts)
        cells = [*(f"{x:g}" for x in counts), f"{ours.value:.7g}"]
        cells += [f"{ours.seconds * 1e3:.3g}", f"{ours.megabytes:.1f}"]
        try:
            found = _theirs(peer, *counts)
        except PeerError as error:
            yield row([*cells, str(error), "", "", "", ""])
            continue
        ratios.append(found.seconds / ours.seconds)
        apart.append(abs(found.value - ours.value))
        cells += [f"{found.value:.7g}", f"{found.seconds * 1e3:.3g}", f"{found.megabytes:.1f}"]
        yield row([*cells, f"{found.value - ours.value:.1g}", f"{ratios[-1]:.0f}"])
    peer.close()
    yield ""
    if ratios:
        yield verdict(
            f"{TARGET:g} times as fast as jax-privacy",
            f"at least {min(ratios):.0f} times, at {len(ratios)} of {len(POINTS)} points",
            min(ratios) >= TARGET,
        )
        yield verdict(f"the same epsilon to {TOLERANCE:g}", f"{max(apart):.1g}", max(apart) <= TOLERANCE)
    kind, method = find_problem("audit-epsilon"), find("auditing.gaussian")()
    started = time.process_time()
    for i in range(BATCH):
        fields = {"canaries": 10_000 + i, "guesses": 400, "correct": 380 - i % 100, "delta": 1e-5}
        evaluate(Point(problem=kind.from_fields(fields), method=method))
    yield f"* {BATCH} different audits take {time.process_time() - started:.2f} s on one core."


def _ours(canaries: int, guesses: int, correct: int, delta: float) -> Measured:
    fields = {"canaries": canaries, "guesses": guesses, "correct": correct, "delta": delta}
    problem = find_problem("audit-epsilon").from_fields(fields)
    point = Point(problem=problem, method=find("auditing.gaussian")())
    return measured(lambda: evaluate(point).value)


def _theirs(peer: Peer, canaries: int, guesses: int, correct: int, delta: float) -> Measured:
    if not PYTHON.exists():
        raise PeerError("not installed")
    return peer.ask("audit", LIMIT, canaries=canaries, guesses=guesses, correct=correct, delta=delta)
