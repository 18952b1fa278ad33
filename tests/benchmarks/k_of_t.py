"""Widths and times of brackets of k-of-t allocation at drawn points of a grid; a section of bench.py."""

import itertools
import random
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from privcore import Answer, find, find_problem
from tests.benchmarks.measure import head, measured, row, verdict

SIGMAS = (0.5, 0.7, 1.0, 1.5, 2.0, 5.0)
STEPS = (3, 10, 100, 1000, 10_000)
SHARES = (0.01, 0.03, 0.1, 0.3, 0.5, 0.9)
DELTAS = (1e-5, 1e-8)
EPOCHS = (1, 10)
POINTS = 240


@dataclass(frozen=True)
class Drawn:
    """A point of the grid, its relative width before and now, and the seconds of the new bracket."""

    sigma: float
    share: float
    epochs: int
    before: float
    now: float
    seconds: float

    @property
    def cell(self) -> tuple[float, float, int]:
        """The cell of the map."""
        return self.sigma, self.share, self.epochs


def table() -> Iterator[str]:
    """Yield the widths by noise and share, and the verdicts."""
    drawn = [_drawn(*point) for point in points()]
    for epochs in EPOCHS:
        yield f"Median and largest relative width, {epochs} epoch{'s' if epochs > 1 else ''}, by k/t:"
        yield ""
        yield head(["sigma", *(f"{share:g}" for share in SHARES)])
        for sigma in SIGMAS:
            cells = [[each.now for each in drawn if each.cell == (sigma, share, epochs)] for share in SHARES]
            yield row([f"{sigma:g}", *(_widths(cell) for cell in cells)])
        yield ""
    one, three = (sum(each.now <= most for each in drawn) / len(drawn) for most in (0.01, 0.03))
    yield verdict("at most 1 % wide at 80 % of the points", f"{one:.1%}", one >= 0.8)
    yield verdict("at most 3 % wide at 95 % of the points", f"{three:.1%}", three >= 0.95)
    wide = [each for each in drawn if each.now > max(0.5 * each.before, 0.01)]
    yield verdict("no width above 1 % and half of that before", f"{len(wide)} of {len(drawn)}", not wide)
    seconds = [each.seconds for each in drawn]
    median, worst = statistics.median(seconds), max(seconds)
    yield verdict("a median of 1 s", f"{median:.2f} s", median <= 1.0)
    yield verdict("at most 20 s", f"{worst:.1f} s", worst <= 20.0)


def points() -> list[tuple[float, int, float, int, float, int]]:
    """Return sigma, steps, k/t, k, delta and epochs of the drawn points."""
    grid = []
    for sigma, steps, delta, epochs in itertools.product(SIGMAS, STEPS, DELTAS, EPOCHS):
        counts = {max(2, round(share * steps)): share for share in reversed(SHARES)}
        grid += [(sigma, steps, share, k, delta, epochs) for k, share in sorted(counts.items()) if k < steps]
    return random.Random(1).sample(grid, POINTS)


def _drawn(sigma: float, steps: int, share: float, k: int, delta: float, epochs: int) -> Drawn:
    """Return the widths of the brackets without and with conditional moments."""
    problem = find_problem("allocation-epsilon").from_fields(
        {"sigma": sigma, "steps": steps, "participations": k, "epochs": epochs, "delta": delta}
    )
    old = [find(name)().answer(problem, 0) for name in ("allocation.certified", "allocation.sums")]
    found = measured(lambda: find("allocation.conditional")().answer(problem, 0), runs=1)
    return Drawn(sigma, share, epochs, _width(old), _width([*old, found.value]), found.seconds)


def _width(answers: list[Answer]) -> float:
    """Return the relative width of the intersection of brackets."""
    return min(answer.upper for answer in answers) / max(answer.lower for answer in answers) - 1.0


def _widths(cell: list[float]) -> str:
    return f"{100 * statistics.median(cell):.2g} % ({100 * max(cell):.2g} %)" if cell else ""
