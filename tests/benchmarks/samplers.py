"""Time of one epsilon for every sampler, and of a run of 100 phases; a section of bench.py."""

import random
import statistics
from collections.abc import Iterator
from typing import Any

from flows.answers.ask import ask, is_tight
from flows.answers.parse import SAMPLING
from flows.answers.question import question, typed
from privcore import Problem, find_problem
from tests.benchmarks.measure import head, measured, row, verdict

RUNS = 30
FURTHER: dict[str, dict[str, str]] = {
    "balls-in-bins": {"redraw": "once"},
    "shuffling": {"redraw": "each-epoch", "adjacency": "zero-out"},
    "fixed-size": {"adjacency": "zero-out"},
    "with-replacement": {"adjacency": "zero-out"},
    "truncated-poisson": {"adjacency": "zero-out"},
}
PHASES = {
    "poisson": "poisson(sigma={},sampling_probability=0.01,steps={})",
    "fixed-size": "fixed-size(sigma={},sampling_probability=0.01,steps={})",
}


def table() -> Iterator[str]:
    """Yield the seconds of drawn runs by sampler, and of runs of 100 different phases."""
    yield head(["sampler", "median", "largest"])
    slow = []
    for sampling in SAMPLING:
        rng = random.Random(sampling)
        ask(_drawn(sampling, rng))  # compiles
        seconds = [_seconds(_drawn(sampling, rng)) for _ in range(RUNS)]
        median = statistics.median(seconds)
        slow += [f"{sampling} {1e3 * median:.0f} ms"] if median > 0.05 else []
        yield row([sampling, f"{1e3 * median:.0f} ms", f"{1e3 * max(seconds):.0f} ms"])
    yield ""
    yield verdict("a median of 50 ms for every sampler", ", ".join(slow) or "all below", not slow)
    for name, text in PHASES.items():
        phases = "; ".join(text.format(1.0 + k / 100.0, 10 + k) for k in range(100))
        asked = find_problem("run-epsilon").from_fields(
            {"phases": phases, "adjacency": "zero-out", "delta": 1e-6}
        )
        taken = _seconds(asked)
        yield verdict(f"100 phases ({name}, zero-out) in 2 s", f"{taken:.1f} s", taken <= 2.0)


def _drawn(sampling: str, rng: random.Random) -> Problem:
    """Return a run of 5,000 to 1,000,000 examples in 2 to 50 epochs."""
    batch = rng.choice([64, 128, 256, 512, 1024])
    options: dict[str, str | None] = {
        "sigma": f"{rng.uniform(0.6, 4.0):.2f}",
        "delta": rng.choice(["1e-5", "1e-6", "1e-8"]),
        "epochs": rng.choice(["2", "5", "10", "50"]),
        **FURTHER.get(sampling, {}),
    }
    if sampling == "truncated-poisson":
        options["largest_batch"] = str(int(batch * rng.uniform(1.1, 1.6)))
    size = rng.choice(["5000", "50000", "60000", "1000000"])
    words = {"sampling": sampling, **options, "examples": size, "batch_size": batch}
    return question(typed(words)).problem


def _seconds(problem: Problem) -> float:
    """Return the processor seconds of one answer, by the methods that `epsilon` asks."""
    found: Any = measured(lambda: ask(problem, until=lambda asked: is_tight(asked, 0.01)), runs=1)
    return float(found.seconds)
