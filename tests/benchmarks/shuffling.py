"""Shuffled DP-SGD: both ends, next to published and reported numbers; a section of bench.py."""

from collections.abc import Iterator
from typing import Any

from privcore import Bracket, Point, Problem, evaluate, find, find_problem, intersect
from privcore.allocation.shuffling import largest_output
from privcore.likelihood_ratio import profile
from privcore.likelihood_ratio.distribution import RatioBracket, Resolution, product_of
from tests.benchmarks import shuffled
from tests.benchmarks.measure import forget, head, measured, row, verdict

DELTA = 1e-6
RESOLUTION = Resolution(fineness=1.0 / 60.0, tail=1e-12)
METHODS = ("shuffling.composed", "shuffling.largest", "shuffling.clones")
POINTS = [
    # sigma, batches of an epoch, epochs; targets of the lower and of the upper end
    (1.0, 1000, 1, 3.7237, None),
    (1.0, 1000, 10, 5.53, None),
    (2.0, 235, 10, 0.809, None),
    (0.8, 390, 100, 48.6, None),
    (3.0, 200, 20, 0.546, None),
    (4.0, 1000, 10, 0.1045, 2.64),
    (3.0, 10**4, 10, None, 1.72),
    (2.5, 10**5, 10, 0.01795, 0.947),
    (2.5, 10**5, 100, None, 5.34),
]


def table() -> Iterator[str]:
    """Yield the bracket of every point, and four other numbers for the same run."""
    names = ["sigma", "batches", "epochs", "shuffled again for each epoch", "order kept", "seconds"]
    names += ["largest output of each epoch (arXiv:2411.04205)", "Poisson sampling", "no amplification"]
    yield head(names)
    met, below, refuted = True, 0, 0
    for sigma, steps, epochs, lower, upper in POINTS:
        fields = {"sigma": sigma, "delta": DELTA, "epochs": epochs}
        again = _shuffling(steps, "each-epoch", fields)
        timed = measured(lambda: _shuffling(steps, "each-epoch", fields), before=forget)  # noqa: B023
        kept = _shuffling(steps, "once", fields)
        poisson = _bracket(
            _problem("poisson-epsilon", steps=steps, sampling_probability=1.0 / steps, **fields),
            "poisson.certified",
        )
        public = _bracket(_problem("unamplified-epsilon", **fields), "unamplified.exact")
        met = met and (lower is None or again.lower >= lower) and (upper is None or again.upper <= upper)
        refuted += again.lower > poisson.upper
        below += again.upper < 0.999 * public.upper
        cells = [f"{sigma:g}", f"{steps}", f"{epochs}", _ends(again), _ends(kept), f"{timed.seconds:.2f}"]
        cells += [f"at least {_largest(sigma, steps, epochs):.5g}", _ends(poisson), f"{public.upper:.5g}"]
        yield row(cells)
    yield ""
    yield verdict("the ends of a prototype without proved rounding", f"{len(POINTS)} points", met)
    yield (
        f"* At {refuted} of {len(POINTS)} points, shuffling is proved to be less private than Poisson "
        'sampling. The statement of TensorFlow Privacy says of shuffled data "it is believed that the actual '
        'epsilon should be closer to" that of Poisson sampling than to that of an arbitrary order; the first '
        "row refutes this."
    )
    yield (
        f"* At {below} of {len(POINTS)} points, the upper end is below that of no amplification. At the "
        "others, no better upper end is known."
    )
    yield ""
    yield f"Epochs that leave out examples, {shuffled.RUNS} drawn runs for each relation:"
    yield ""
    yield from shuffled.table()


def _problem(name: str, **fields: Any) -> Problem:
    return find_problem(name).from_fields(fields)


def _bracket(problem: Problem, *methods: str) -> Bracket:
    """Return the intersection of the answers of several methods."""
    points = (Point(problem=problem, method=find(method)()) for method in methods)
    return intersect(evaluate(point).said_by(point.method.name) for point in points)


def _shuffling(steps: int, redraw: str, fields: dict[str, Any]) -> Bracket:
    return _bracket(_problem("shuffling-epsilon", steps=steps, redraw=redraw, **fields), *METHODS)


def _largest(sigma: float, steps: int, epochs: int) -> float:
    """Return the lower bound from the largest output of each epoch, computed with proved rounding."""
    law = largest_output(1.0 / sigma, steps, RESOLUTION)
    composed = product_of(RatioBracket(lower=law, upper=law), epochs, RESOLUTION).lower
    return profile.epsilon_lower(composed, DELTA, "zero-out")


def _ends(bracket: Bracket) -> str:
    return f"{bracket.lower:.5g} - {bracket.upper:.5g}"
