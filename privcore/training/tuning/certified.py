"""Proved lower and upper bounds of the best of several runs: docs/tuning.md."""

import math
from typing import Annotated, TypeGuard

from privcore import params
from privcore.answer import Answer
from privcore.likelihood_ratio.questions import BEST_OF, FIRST_DELTA, Question
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import UNIT
from privcore.papers import KOSKELA, PAPERNOT
from privcore.training.brackets import enclosed_run, estimated
from privcore.training.phase import RELATIONS
from privcore.training.samplers import Bounds
from privcore.training.tuning.problems import BestRun, TunedDelta, TunedEpsilon
from privcore.training.tuning.repeats import BinomialRuns, Repeats, repeats
from privcore.training.tuning.selection import BestOf

ROUGH = {"epsilon": 0.003, "delta": 0.03}
"""Requested relative widths; the two ends of the theorem are about this far apart."""
FEW = 100
"""Largest number of planned runs whose composition is computed, unless nothing else gives an upper end."""
SMALL = 1e-30
"""Order of magnitude of a delta for which nothing smaller is known."""


class TunedCertified(Method[BestRun]):
    """Enclose the best of several runs, whose number is fixed or random and does not depend on the data.

    The upper end holds for every score that is computed from the outputs of a run. The lower end is that of
    the best of some scores. A fixed number of runs costs at most their composition.
    """

    name = "tuned.certified"
    problems = (TunedEpsilon, TunedDelta)
    direction = Direction.ENCLOSURE
    reference = f"docs/tuning.md (both ends); {PAPERNOT} (the mechanism); {KOSKELA} (bounds from a profile)"
    shares = ("phases", "adjacency")

    tolerance: Annotated[float, params.TOLERANCE] = params.WIDTH

    def applies(self, problem: BestRun) -> str | None:
        return problem.reason()

    def cost(self, problem: BestRun) -> Cost:
        if self.applies(problem) is not None:
            return Cost(seconds=1e-3, bytes=1e5)
        bounds, number, one = _bounds(problem), repeats(problem.repeats), _of_one(problem)
        work = 3.0 * estimated(bounds, one, self._width(problem)).seconds
        if _composes(number):
            work += estimated(bounds.repeated(number.planned), one, self.tolerance).seconds
        return Cost(seconds=4.0 + work, bytes=1e8 + 2.0 * estimated(bounds, one, self.tolerance).bytes)

    def answer(self, problem: BestRun, seed: int) -> Answer:
        bounds, mu = _bounds(problem), problem.unamplified()
        number, width = repeats(problem.repeats), self._width(problem)
        asks, size = BEST_OF[problem.asks], problem.at if problem.asks == "epsilon" else FIRST_DELTA
        while True:
            question = BestOf(
                asks=asks, at=problem.at, adjacency=problem.adjacency, repeats=number, size=size
            )
            lower, upper, detail = enclosed_run(bounds, question, width, mu)
            if problem.asks == "epsilon" or lower > 1e-3 * size or size <= SMALL:
                break
            size = max(min(lower, 1e-5 * size) if lower > 0.0 else 1e-10 * size, SMALL)
        if _composes(number) or (isinstance(number, BinomialRuns) and math.isinf(upper)):
            most = mu * math.sqrt(number.planned)
            together = enclosed_run(bounds.repeated(number.planned), _of_one(problem), self.tolerance, most)
            if together[1] < upper:
                upper, detail = together[1], f"{detail}; upper end: all runs together"
        if math.isinf(upper):
            upper = self._by_growth(problem, bounds, mu)
            detail += "; upper end: the growth of the weights"
        return Answer.enclosure(lower, upper, detail=detail)

    def _by_growth(self, problem: BestRun, bounds: Bounds, mu: float) -> float:
        """Return an upper bound of epsilon from two epsilons of one run, which sums of losses may give."""

        def epsilon(delta: float) -> float:
            one = Question(asks="epsilon", at=delta, adjacency=RELATIONS[problem.adjacency])
            return enclosed_run(bounds, one, self._width(problem), mu)[1]

        number = repeats(problem.repeats)
        share = problem.at / (number.mean * (1.0 + number.error))
        found = epsilon(min(share, 0.5) * (1.0 - 4.0 * UNIT)) + number.growth(epsilon)
        return found * (1.0 + 4.0 * UNIT)

    def _width(self, problem: BestRun) -> float:
        return max(self.tolerance, ROUGH[problem.asks])


def _composes(number: Repeats) -> TypeGuard[BinomialRuns]:
    """Return whether the composition of all planned runs may have the smaller upper end."""
    return isinstance(number, BinomialRuns) and number.planned <= FEW


def _of_one(problem: BestRun) -> Question:
    """Return the same question about one run."""
    return Question(asks=problem.asks, at=problem.at, adjacency=problem.adjacency)


def _bounds(problem: BestRun) -> Bounds:
    return problem.bounds(problem.at if problem.asks == "epsilon" else FIRST_DELTA)
