"""Widths of brackets over the whole domain of every sampler; a section of bench.py."""

import math
import random
import statistics
from collections.abc import Iterator
from time import perf_counter

from flows.answers.ask import ask, is_tight
from privcore import Problem, find_problem
from tests.benchmarks.measure import head, row, verdict

RUNS = 1000
LARGE = 1e-6
"""Epsilon from which a width counts."""
PHASES = {
    "poisson": "poisson(sigma={sigma},sampling_probability={rate},steps={total})",
    "allocation": "allocation(sigma={sigma},steps={steps},epochs={epochs})",
    "allocation, k of t": "allocation(sigma={sigma},steps={steps},epochs={epochs},participations={chosen})",
    "kept bins": "balls-in-bins(sigma={sigma},steps={steps},epochs={epochs},redraw=once)",
    "fixed-size": "fixed-size(sigma={sigma},sampling_probability={rate},steps={total})",
    "truncated-poisson": "truncated-poisson(sigma={sigma},sampling_probability={rate},examples={examples},"
    "largest_batch={largest},steps={total})",
    "with-replacement": "with-replacement(sigma={sigma},examples={examples},batch_size={batch},"
    "steps={total})",
    "shuffling": "shuffling(sigma={sigma},steps={steps},epochs={epochs},redraw=each-epoch)",
}
NARROW = ("poisson", "allocation", "kept bins")
APART = ("with-replacement", "shuffling")
"""Samplers whose gaps other pages explain."""


def drawn(rng: random.Random) -> tuple[str, Problem]:
    """Return a sampler and a run with it: sigma from 0.01 to 50, any rate, up to 100,000 steps."""
    name = rng.choice(list(PHASES))
    steps = max(2, round(10 ** rng.uniform(0.3, 4.0)))
    rate = rng.choice([10 ** rng.uniform(-4.0, 0.0), rng.uniform(0.0, 1.0)])
    examples = round(10 ** rng.uniform(2.0, 6.0))
    batch = max(1, round(rate * examples))
    phase = PHASES[name].format(
        sigma=f"{10 ** rng.uniform(-2.0, math.log10(50.0)):.4g}",
        rate=f"{max(rate, 1e-4):.4g}",
        steps=steps,
        epochs=max(1, round(10 ** rng.uniform(0.0, 5.0 - math.log10(steps)))),
        total=round(10 ** rng.uniform(0.0, 5.0)),
        chosen=rng.randint(1, steps),
        examples=examples,
        batch=batch,
        largest=min(examples, round(batch * rng.uniform(1.0, 1.5))),
    )
    directions = (
        ("zero-out", "replace-one") if name == "shuffling" else ("add-remove", "zero-out", "replace-one")
    )
    fields = {"phases": phase, "adjacency": rng.choice(directions), "delta": 10 ** rng.uniform(-10.0, -3.0)}
    return name, find_problem("run-epsilon").from_fields(fields)


def table(runs: int = RUNS, seed: int = 48) -> Iterator[str]:
    """Yield the widths of the brackets of drawn runs by sampler, and the widest ones."""
    rng = random.Random(seed)
    found: dict[str, list[tuple[float, float, float, Problem]]] = {name: [] for name in PHASES}
    for _ in range(runs):
        name, problem = drawn(rng)
        started = perf_counter()
        bracket = ask(problem, until=lambda asked: is_tight(asked, 0.01))
        found[name].append((bracket.lower, bracket.upper, perf_counter() - started, problem))
    yield head(
        ["sampler", "runs", "within 1 %", "within 10 %", "within a factor 2", "median time", "longest"]
    )
    wide, missed = list[tuple[str, float, float, float, Problem]](), list[str]()
    for name, answers in found.items():
        large = [each for each in answers if each[1] > LARGE]
        shares = [
            statistics.mean(upper <= lower * most for lower, upper, *_ in large) if large else 1.0
            for most in (1.01, 1.1, 2.0)
        ]
        seconds = sorted(each[2] for each in answers) or [0.0]
        yield row(
            [
                name,
                str(len(answers)),
                *(f"{100.0 * share:.1f} %" for share in shares),
                f"{statistics.median(seconds):.2f} s",
                f"{seconds[-1]:.1f} s",
            ]
        )
        wide += [(name, *each) for each in large if each[1] > 2.0 * each[0]]
        missed += [f"{name}: {100.0 * shares[0]:.1f} %"] if name in NARROW and shares[0] < 0.98 else []
    yield ""
    what = "1 % at 98 % of Poisson sampling, allocation and kept bins"
    yield verdict(what, ", ".join(missed) or "all", not missed)
    counted = [each for each in wide if each[0] not in APART]
    yield verdict("no end of 0 or above twice the other", f"{len(counted)} runs", not counted)
    yield from (f"* {each[1]:.4g} to {each[2]:.4g}: {each[4]}" for each in counted[:20])
