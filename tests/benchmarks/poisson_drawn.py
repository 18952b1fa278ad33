"""Upper ends of drawn runs with Poisson sampling, next to those of dp-accounting; a part of bench.py."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant

from privcore.allocation.poisson import PoissonCertified
from privcore.allocation.problems import Poisson, PoissonEpsilon
from privcore.answer import Answer
from tests.benchmarks.measure import forget, head, measured, row, verdict

RUNS, SEED = 30, 44
LARGEST = 20.0
"""Epsilon above which a drawn run is replaced: it would have no guarantee."""
INTERVAL = 1e-4
"""The default interval of losses of dp-accounting."""


@dataclass(frozen=True)
class DrawnRun:
    """A drawn run with our bracket and the upper end of dp-accounting, and the processor seconds of both."""

    asked: Poisson
    ours: Answer
    our_seconds: float
    theirs: float
    their_seconds: float


def runs() -> Iterator[DrawnRun]:
    """Yield the drawn runs."""
    draw, count = random.Random(SEED), 0
    while count < RUNS:
        asked = PoissonEpsilon.from_fields(
            {
                "sigma": float(f"{0.6 * (4.0 / 0.6) ** draw.random():.3g}"),
                "sampling_probability": float(f"{10 ** draw.uniform(-3.0, -1.0):.3g}"),
                "steps": round(10 ** draw.uniform(1.0, 4.3)),
                "delta": draw.choice((1e-5, 1e-6, 1e-8)),
            }
        )
        ours = measured(lambda: PoissonCertified().answer(asked, seed=0), forget, runs=3)  # noqa: B023
        if ours.value.upper > LARGEST:
            continue
        count += 1
        theirs = measured(lambda: pessimistic(asked), runs=1)  # noqa: B023
        yield DrawnRun(asked, ours.value, ours.seconds, theirs.value, theirs.seconds)


def pessimistic(asked: Poisson) -> float:
    """Return the upper end of dp-accounting by privacy loss distributions."""
    step = dp_event.PoissonSampledDpEvent(asked.sampling_probability, dp_event.GaussianDpEvent(asked.sigma))
    accountant = PLDAccountant(value_discretization_interval=INTERVAL)
    return float(accountant.compose(dp_event.SelfComposedDpEvent(step, asked.steps)).get_epsilon(asked.at))


def table() -> Iterator[str]:
    """Yield a row for each run, then the number of runs with our upper end at most that of dp-accounting."""
    names = ["sigma", "steps", "q", "delta", "ours: lower", "ours: upper", "theirs: upper"]
    yield head([*names, "theirs above ours", "ours, ms", "theirs, ms"])
    found = []
    for each in runs():
        asked, ours = each.asked, each.ours
        found.append(each)
        numbers = [
            f"{asked.sigma:g}",
            str(asked.steps),
            f"{asked.sampling_probability:g}",
            f"{asked.at:g}",
        ]
        ends = [f"{ours.lower:.7g}", f"{ours.upper:.9g}", f"{each.theirs:.9g}"]
        above = f"{each.theirs / ours.upper - 1.0:.1e}"
        yield row(
            [*numbers, *ends, above, f"{each.our_seconds * 1e3:.0f}", f"{each.their_seconds * 1e3:.0f}"]
        )
    below = sum(each.ours.upper <= each.theirs for each in found)
    yield ""
    yield verdict(
        f"an upper end of at most that of dp-accounting at {INTERVAL:g}, at all drawn runs",
        f"{below} of {len(found)}",
        below == len(found),
    )
