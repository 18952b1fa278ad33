"""Widths of brackets of drawn shuffled runs that leave out examples; a part of the section of shuffling."""

import math
import random
import statistics
from collections.abc import Iterator
from typing import cast

from privcore import find_problem
from privcore.training.certified import RunsCertified
from privcore.training.problems import TrainingProblem
from tests.benchmarks.measure import forget, head, measured, row, verdict

RUNS, SEED = 200, 7
TARGETS = {"zero-out": (1.02, 1.08), "add-remove": (1.01, 1.01), "replace-one": (1.15, None)}
"""Upper over lower end that the median and 95 % of the runs should have, by relation."""


def table() -> Iterator[str]:
    """Yield quantiles of upper over lower end by relation, and the processor time."""
    yield head(["relation", "median", "95 %", "largest", "median time", "95 %"])
    missed = []
    for relation, (middle, most) in TARGETS.items():
        found = list(runs(relation))
        ratios, seconds = ([each[k] for each in found] for k in (0, 1))
        shown = [statistics.median(ratios), statistics.quantiles(ratios, n=20)[-1], max(ratios)]
        times = [statistics.median(seconds), statistics.quantiles(seconds, n=20)[-1]]
        if shown[0] > middle or (most and shown[1] > most):
            missed.append(relation)
        yield row([relation, *(f"{each:.4f}" for each in shown), *(f"{each:.1f} s" for each in times)])
    yield ""
    targets = "; ".join(
        f"{relation} {middle}" + (f" and {most} at 95 %" if most else "")
        for relation, (middle, most) in TARGETS.items()
    )
    yield verdict(
        f"median of upper / lower, {RUNS} runs: {targets}",
        "missed: " + ", ".join(missed) if missed else "all",
        not missed,
    )


def runs(relation: str) -> Iterator[tuple[float, float]]:
    """Yield upper over lower end of drawn runs, and the processor seconds of each."""
    draw, method = random.Random(SEED), RunsCertified()
    for _ in range(RUNS):
        sigma, steps = 0.3 * (20.0 / 0.3) ** draw.random(), round(10 ** draw.uniform(1, 5))
        phase = (
            f"shuffling(sigma={sigma:.3g},steps={steps},"
            f"epochs={round(10 ** draw.uniform(0, 2))},redraw=each-epoch,dropped=0.001)"
        )
        delta = float(f"{10 ** draw.uniform(-9, -3):.1e}")
        asked = cast(
            TrainingProblem,
            find_problem("run-epsilon").from_fields({"phases": phase, "adjacency": relation, "delta": delta}),
        )
        found = measured(lambda: method.answer(asked, seed=0), forget, runs=1)  # noqa: B023
        lower, upper = found.value.lower, found.value.upper
        yield 1.0 if lower == upper else upper / lower if lower else math.inf, found.seconds
