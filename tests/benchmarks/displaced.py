"""Widths of brackets of drawn runs whose batches displace other examples; a section of bench.py."""

import random
import statistics
from collections.abc import Iterator
from typing import cast

from privcore import find_problem
from privcore.training.certified import BatchesCertified
from privcore.training.problems import TrainingProblem
from tests.benchmarks.measure import forget, head, measured, row, verdict

RUNS = 100
LARGEST = 20.0
"""Epsilon above which a drawn run is replaced: it would have no guarantee."""
SMALLEST = 1e-3
"""Epsilon below which a drawn run is replaced: delta alone is almost a guarantee."""
TARGETS = {"fixed-size": 1.01, "with-replacement": 1.05}
"""Upper over lower end that 95 % of the runs should have."""


def table() -> Iterator[str]:
    """Yield quantiles of upper over lower end by sampler and relation, and the processor time."""
    yield head(["sampler", "relation", "median", "95 %", "within the target", "median time", "95 %"])
    missed = []
    for sampling, target in TARGETS.items():
        for relation in ("zero-out", "replace-one"):
            ratios, seconds = [], []
            for lower, upper, time in runs(sampling, relation):
                ratios.append(upper / lower)
                seconds.append(time)
            within = sum(ratio <= target for ratio in ratios)
            missed += [f"{sampling}, {relation}: {within} of {RUNS}"] if within < 0.95 * RUNS else []
            quantiles = [statistics.quantiles(each, n=20) for each in (ratios, seconds)]
            shown = [f"{statistics.median(ratios):.4f}", f"{quantiles[0][-1]:.4f}", f"{within} of {RUNS}"]
            times = [f"{statistics.median(seconds):.2f} s", f"{quantiles[1][-1]:.2f} s"]
            yield row([sampling, relation, *shown, *times])
    yield ""
    targets = ", ".join(f"{target} for {sampling}" for sampling, target in TARGETS.items())
    yield verdict(f"upper / lower of at most {targets} at 95 %", "; ".join(missed) or "all", not missed)


def runs(sampling: str, relation: str) -> Iterator[tuple[float, float, float]]:
    """Yield both ends of drawn runs and the processor seconds of each."""
    draw, count, method = random.Random(f"{sampling} {relation}"), 0, BatchesCertified()
    while count < RUNS:
        asked, alike = _drawn(draw, sampling, relation)
        if method.answer(alike, seed=0).lower > LARGEST:
            continue
        found = measured(lambda: method.answer(asked, seed=0), forget, runs=1)  # noqa: B023
        if found.value.upper >= SMALLEST and found.value.lower <= LARGEST:
            count += 1
            yield max(found.value.lower, 1e-9), found.value.upper, found.seconds


def _drawn(draw: random.Random, sampling: str, relation: str) -> tuple[TrainingProblem, TrainingProblem]:
    """Return a run with noise .3 to 20, 10^3 to 10^6 examples and batches of up to a tenth of them.

    The second problem is that of batches of the same fixed size.
    """
    examples = round(10 ** draw.uniform(3.0, 6.0))
    batch = round(10 ** draw.uniform(0.5, min(3.5, len(str(examples)) - 1.5)))
    fields = {
        "sigma": float(f"{0.3 * (20.0 / 0.3) ** draw.random():.3g}"),
        "steps": round(10 ** draw.uniform(1.0, 4.3)),
        "delta": float(f"{10 ** draw.uniform(-9.0, -3.0):.3g}"),
        "adjacency": relation,
    }
    rate = float(f"{batch / examples:.3g}")
    sizes = {"examples": examples, "batch_size": batch}
    drawn, alike = (
        cast(TrainingProblem, find_problem(f"{name}-epsilon").from_fields({**fields, **more}))
        for name, more in (("with-replacement", sizes), ("fixed-size", {"sampling_probability": rate}))
    )
    return (alike if sampling == "fixed-size" else drawn), alike
