"""Tuning: widths of brackets of the best of several drawn runs; a section of bench.py."""

import math
import random
import statistics
from collections.abc import Callable, Iterator
from typing import cast

from privcore import find_problem
from privcore.training.certified import RunsCertified
from privcore.training.problems import TrainingProblem
from privcore.training.tuning.certified import TunedCertified
from privcore.training.tuning.problems import BestRun
from tests.benchmarks.measure import forget, head, measured, row

RUNS, SEED = 20, 11

LAWS: dict[str, Callable[[random.Random, float], str]] = {
    "geometric": lambda draw, mean: f"geometric({mean:.3g})",
    "negative binomial, shape 0": lambda draw, mean: f"negative-binomial(0,{10 ** draw.uniform(-3, -1):.2g})",
    "Poisson": lambda draw, mean: f"poisson({mean:.3g})",
    "fixed": lambda draw, mean: f"fixed({round(mean)})",
}


def table() -> Iterator[str]:
    """Yield quantiles of upper over lower end by the distribution of the number of runs."""
    names = [
        "number of runs",
        "median",
        "90 %",
        "largest",
        "composition over the upper end",
        "time",
    ]
    yield head(names)
    for name, law in LAWS.items():
        found = list(_drawn(law))
        ratios, saved, seconds = ([each[k] for each in found] for k in (0, 1, 2))
        shown = [statistics.median(ratios), statistics.quantiles(ratios, n=10)[-1], max(ratios)]
        more = [f"{statistics.median(saved):.2f}", f"{statistics.median(seconds):.1f} s"]
        yield row([name, *(f"{each:.4f}" for each in shown), *more])
    yield ""
    yield f"{RUNS} drawn questions each: epsilon, Poisson sampling, 2 to 100 runs or their mean."


def _drawn(law: Callable[[random.Random, float], str]) -> Iterator[tuple[float, float, float]]:
    """Yield upper over lower end, the composition over the upper end, and the processor seconds."""
    draw = random.Random(SEED)
    for _ in range(RUNS):
        sigma, rate = 10 ** draw.uniform(-0.2, 0.7), 10 ** draw.uniform(-3, -1)
        steps, mean = round(10 ** draw.uniform(1.5, 4)), 10 ** draw.uniform(0.302, 2)
        phase = f"poisson(sigma={sigma:.3g},sampling_probability={rate:.2g},steps={steps})"
        delta = float(f"{10 ** draw.uniform(-9, -4):.1e}")
        fields = {"phases": phase, "adjacency": "add-remove", "delta": delta}
        asked = cast(
            BestRun, find_problem("tuned-epsilon").from_fields({**fields, "repeats": law(draw, mean)})
        )
        found = measured(lambda: TunedCertified().answer(asked, seed=0), forget, runs=1)  # noqa: B023
        lower, upper = found.value.lower, found.value.upper
        planned = round(mean)
        every = find_problem("run-epsilon").from_fields({**fields, "phases": "; ".join([phase] * planned)})
        composed = RunsCertified().answer(cast(TrainingProblem, every), seed=0)
        ratio = 1.0 if lower == upper else upper / lower if lower > 0.0 else math.inf
        yield ratio, composed.upper / upper if upper > 0.0 else 1.0, found.seconds
