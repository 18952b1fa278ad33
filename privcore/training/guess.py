r"""The largest probability of naming the example of a run among equally likely candidates: docs/profile.md.

With the trade-off curve T of a run with one candidate against the run without, and M candidates, it is at
most T(1/M): the sets on which an attacker names one of them have a sum of at most 1 under the run without,
and T is concave. If the gradients of the candidates are orthogonal, and nothing else depends on them, the
likelihood ratios X of all candidates are independent, and the best guess is right with probability
$E \max X / M$, which is the mean of T(U) for the least U of M - 1 uniform numbers.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from privcore import params
from privcore.answer import Answer
from privcore.likelihood_ratio import profile
from privcore.likelihood_ratio.distribution import LikelihoodRangeError, RatioDistribution
from privcore.likelihood_ratio.questions import PowerQuestion, requested
from privcore.likelihood_ratio.ratios import gaussian_bracket
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import SUMMED, UNIT
from privcore.parameter import Integer
from privcore.problem import CurveQuantity, asked, falls, proved
from privcore.training.batches import PoissonPhase, Public
from privcore.training.brackets import enclosed_run, estimated
from privcore.training.epochs import AllocationPhase
from privcore.training.phase import RELATIONS
from privcore.training.problems import InPhases

CANDIDATES = Integer(
    name="candidates",
    symbol="M",
    lower=2,
    upper=10**9,
    typical=(2, 10, 1000, 10**6),
    meaning="Number of equally likely candidates; training has used one of them",
)
RATES = 20_000
"""Number of rates at which the mean of T(U) is summed; a step of them adds about .1 %."""
WIDTH = 0.01
"""Requested relative width; the two ends are usually farther apart."""


class AtCandidates(CurveQuantity):
    """The success of the best guess which candidate was used, by an attacker with everything else."""

    asks = "reconstruction"
    short = "reconstruction"
    given = "candidates"
    says = "Largest probability of naming, among equally likely candidates, the example that was used in"
    largest = 1.0
    monotone = proved(
        candidates=falls(
            "A guess among M + 1 candidates, restricted to M of them, is as good in the mean over the M + 1 "
            "choices of those."
        )
    )

    candidates: Annotated[int, CANDIDATES]


(RunReconstruction,) = asked("run", InPhases, "a run of several phases.", (AtCandidates,))


@dataclass(frozen=True, kw_only=True)
class GuessQuestion(PowerQuestion):
    """The largest true positive rate at 1 / M from above, and the mean of T(U) from below.

    Attributes:
        candidates: Number M of candidates.
        attained: Whether the ratio is that of outputs in which nothing but the candidates differs.
    """

    alone = "cells of a Gaussian mechanism"

    candidates: int
    attained: bool

    @property
    def trivial(self) -> float:
        return (1.0 / self.candidates) * (1.0 - 2.0 * UNIT)

    def gaussian(self, mu: float) -> tuple[float, float]:
        upper = super().gaussian(mu)[1]
        try:
            return self.lower(gaussian_bracket(mu, self.scale).lower), upper
        except LikelihoodRangeError:
            return self.trivial, upper

    def lower(self, distribution: RatioDistribution) -> float:
        if not self.attained:
            return self.trivial
        rates = np.geomspace(1e-9 * self.at, 1.0, RATES)
        rates[-1] = 1.0
        power = profile.powers_lower(distribution, rates[:-1], self.adjacency)
        with np.errstate(divide="ignore"):
            beyond = np.exp((self.candidates - 1.0) * np.log1p(-rates))  # all M - 1 numbers are larger
        mean = float(power @ -np.diff(beyond)) * (1.0 - SUMMED)
        return max(mean, self.trivial)


class RunsGuess(Method[InPhases]):
    """Enclose the success of a guess: T(1 / M) above, the best guess among orthogonal candidates below.

    The lower end is 1 / M if other examples than the candidates decide the ratio of the sampler.
    """

    name = "runs.guess"
    problems = (RunReconstruction,)
    direction = Direction.ENCLOSURE
    reference = "docs/profile.md (both ends); docs/certified.md (the trade-off curve)"
    shares = ("phases", "adjacency")

    tolerance: Annotated[float, params.TOLERANCE] = params.WIDTH

    def applies(self, problem: InPhases) -> str | None:
        return problem.reason()

    def cost(self, problem: InPhases) -> Cost:
        if self.applies(problem) is not None:
            return Cost(seconds=1e-3, bytes=1e5)
        question = _question(problem)
        one = estimated(problem.bounds(1.0 / problem.at), question, self._width(question))
        return Cost(seconds=0.1 + one.seconds, bytes=1e7 + one.bytes)

    def answer(self, problem: InPhases, seed: int) -> Answer:
        question, bounds = _question(problem), problem.bounds(1.0 / problem.at)
        width, mu = self._width(question), problem.unamplified()
        lower, upper, detail = enclosed_run(bounds, question, width, mu)
        return Answer.enclosure(lower, upper, detail=detail)

    def _width(self, question: GuessQuestion) -> float:
        return max(WIDTH, requested(question.asks, self.tolerance))


def _question(problem: InPhases) -> GuessQuestion:
    """Return the true positive rate in question, in the direction remove."""
    own = all(isinstance(phase, Public | PoissonPhase | AllocationPhase) for phase in problem.run())
    return GuessQuestion(
        at=(1.0 / problem.at) * (1.0 + 2.0 * UNIT),
        adjacency="remove",
        candidates=round(problem.at),
        attained=own and RELATIONS[problem.adjacency] != "replace-one",
    )
