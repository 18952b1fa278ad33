"""Least squares: the advantage from independent draws, with a confidence interval."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from privcore import params
from privcore.answer import Answer
from privcore.membership.gaussian_mean.problems import MembershipRegressionAdvantage
from privcore.membership.regression.draws import INTERPOLATES, RATIO_ERROR, block_sizes, gain_cost, gains
from privcore.membership.regression.likelihood_ratio import UNIFORMS
from privcore.method import Cost, Direction, Method
from privcore.numerics.bounded_mean import Tally
from privcore.papers import AUBINAIS, MAURER_PONTIL

_BLOCK = 2**16


@dataclass(frozen=True, kw_only=True)
class MembershipSampling(Method[MembershipRegressionAdvantage]):
    """Draw a release with a record, and average the gain of the best attack, which lies in [0, 1].

    The law of the draws and the likelihood ratio are exact, so that the interval holds for every number of
    draws, by the bounds of Hoeffding and of Maurer and Pontil.
    """

    name = "membership.sampling"
    problems = (MembershipRegressionAdvantage,)
    direction = Direction.ENCLOSURE
    reference = (
        f"{AUBINAIS}, equation 7, for least squares with Gaussian features; {MAURER_PONTIL}, Theorem 4"
    )

    samples: Annotated[int, params.SAMPLES] = 20_000
    confidence: Annotated[float, params.CONFIDENCE] = 0.99

    def applies(self, problem: MembershipRegressionAdvantage) -> str | None:
        return INTERPOLATES if problem.interpolates else None

    def cost(self, problem: MembershipRegressionAdvantage) -> Cost:
        if self.applies(problem) is not None:
            return Cost(seconds=1e-4, bytes=1e4)
        return gain_cost(self.samples, _BLOCK)

    def answer(self, problem: MembershipRegressionAdvantage, seed: int) -> Answer:
        rng = np.random.default_rng(seed)
        tally = Tally()
        for size in block_sizes(self.samples, _BLOCK):
            found = gains(problem, rng.random((UNIFORMS, size)))
            tally += Tally(samples=size, total=float(found.sum()), squares=float((found * found).sum()))
        error = 0.5 * (1.0 - self.confidence)
        lower, upper = tally.lower(error) - RATIO_ERROR, tally.upper(error) + RATIO_ERROR
        known = upper <= 2.0 * tally.mean and tally.mean <= 2.0 * lower
        return Answer.enclosure(
            max(0.0, lower),
            min(1.0, upper),
            value=tally.mean if known else None,
            confidence=self.confidence,
            detail=f"{self.samples} draws",
        )
