"""Advantage for least squares as a mean over draws: independent draws, or scrambled Sobol points."""

import math
from collections.abc import Iterator
from typing import Annotated

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore import params
from privcore.answer import Answer, Status
from privcore.membership.gaussian_mean.problems import MembershipRegressionAdvantage
from privcore.membership.regression.likelihood_ratio import UNIFORMS, draw, log_ratio
from privcore.method import Cost, Direction, Method
from privcore.numerics.bounded_mean import BETTING, MOST_GROUPS, SampledMean, width_note
from privcore.numerics.rounding import BESSEL_RATIO
from privcore.papers import AUBINAIS

Array = NDArray[np.float64]

INTERPOLATES = "With no more records than features the regression interpolates, and the advantage is 1."
_CLEAR = 2.0**-40
"""Distance of uniform numbers from 0 and 1."""


def gains(problem: MembershipRegressionAdvantage, uniforms: Array) -> Array:
    r"""Return the gain of the best attack for draws whose mean is the advantage.

    It is $(1 - \gamma / L)_+$ of training records for $\gamma \ge 1$, and $(1 - L / \gamma)_+$ of fresh
    records for $\gamma < 1$.

    Args:
        problem: Problem with more records than features.
        uniforms: Uniform numbers, shape (6, draws).

    Returns:
        Numbers in [0, 1], shape (draws,).

    Reference:
        arXiv:2310.13786v6, equation 7.
    """
    n, d, odds = problem.records, problem.coordinates, problem.odds
    drawn = draw(np.clip(uniforms, _CLEAR, 1.0 - _CLEAR), n, d, member=odds >= 1.0)
    above = log_ratio(drawn, n, d) - np.log(odds)
    return np.asarray(-np.expm1(np.minimum(0.0, -above if odds >= 1.0 else above)))


def block_sizes(draws: int, block: int) -> Iterator[int]:
    """Yield the sizes of successive blocks of draws."""
    for start in range(0, draws, block):
        yield min(block, draws - start)


def gain_cost(draws: int, block: int) -> Cost:
    """Return the cost of `draws` gains, computed in blocks."""
    return Cost(seconds=0.005 + 4e-6 * draws, bytes=500.0 * min(draws, block))


_BLOCK = 2**16


class MembershipSampling(Method[MembershipRegressionAdvantage]):
    """Draw releases with a record, and average the gain of the best attack, which lies in [0, 1].

    The distribution of the draws and the likelihood ratio are exact, so the interval, by bets, holds for
    every number of draws.
    """

    name = "membership.sampling"
    problems = (MembershipRegressionAdvantage,)
    direction = Direction.ENCLOSURE
    reference = f"{AUBINAIS}, equation 7, for least squares with Gaussian features; {BETTING}"
    version = 3

    samples: Annotated[int, params.SAMPLES] = 20_000
    confidence: Annotated[float, params.CONFIDENCE] = 0.99

    def applies(self, problem: MembershipRegressionAdvantage) -> str | None:
        return INTERPOLATES if problem.interpolates else None

    def cost(self, problem: MembershipRegressionAdvantage) -> Cost:
        if self.applies(problem) is not None:
            return Cost(seconds=1e-4, bytes=1e4)
        drawing = gain_cost(self.samples, _BLOCK)
        kept = float(min(self.samples, MOST_GROUPS))
        return Cost(seconds=drawing.seconds + 1e-6 * kept, bytes=drawing.bytes + 40.0 * kept)

    def answer(self, problem: MembershipRegressionAdvantage, seed: int) -> Answer:
        rng = np.random.default_rng(seed)
        sampled = SampledMean(self.samples)
        for size in block_sizes(self.samples, _BLOCK // sampled.group * sampled.group):
            sampled.add(gains(problem, rng.random((UNIFORMS, size))))
        error = 0.5 * (1.0 - self.confidence)
        lower, upper = sampled.lower(error) - BESSEL_RATIO, sampled.upper(error) + BESSEL_RATIO
        known = upper <= 2.0 * sampled.mean and sampled.mean <= 2.0 * lower
        note = width_note(upper - lower, sampled.standard_error, self.confidence)
        return Answer.enclosure(
            max(0.0, lower),
            min(1.0, upper),
            value=sampled.mean if known else None,
            confidence=self.confidence,
            detail=f"{self.samples} draws{note}",
        )


_SCRAMBLES = 8
_LEAST_RATIO = 5.0
"""Least distance of an estimate from 0, in standard errors."""


class MembershipSobol(Method[MembershipRegressionAdvantage]):
    """Average the gain of the best attack over Sobol points, in eight independent scrambles.

    The error is hundreds of times smaller than with the same number of independent draws. The standard error
    of the mean over the scrambles, in the detail, has seven degrees of freedom and is not a proved bound. The
    number of points is rounded up so that each scramble has a power of two.
    """

    name = "membership.sobol"
    problems = (MembershipRegressionAdvantage,)
    direction = Direction.ESTIMATE
    reference = (
        f"{AUBINAIS}, equation 7, for least squares with Gaussian features; Owen (1997), Scrambled net "
        "variance for integrals of smooth functions"
    )

    samples: Annotated[int, params.SAMPLES] = 32_768

    def applies(self, problem: MembershipRegressionAdvantage) -> str | None:
        return INTERPOLATES if problem.interpolates else None

    def cost(self, problem: MembershipRegressionAdvantage) -> Cost:
        if self.applies(problem) is not None:
            return Cost(seconds=1e-4, bytes=1e4)
        return gain_cost(2**self._log_points * _SCRAMBLES, 2**self._log_points)

    @property
    def _log_points(self) -> int:
        """Binary logarithm of the points of a scramble."""
        return max(0, math.ceil(math.log2(self.samples / _SCRAMBLES)))

    def answer(self, problem: MembershipRegressionAdvantage, seed: int) -> Answer:

        rng = np.random.default_rng(seed)
        means = []
        for _ in range(_SCRAMBLES):
            points = scipy.stats.qmc.Sobol(UNIFORMS, scramble=True, rng=rng).random_base2(self._log_points)
            means.append(float(gains(problem, points.T).mean()))
        value = float(np.mean(means))
        error = float(np.std(means, ddof=1)) / math.sqrt(_SCRAMBLES)
        if not value > _LEAST_RATIO * error:
            return Answer.without(
                Status.FAILED, "Too few points distinguish a member from a fresh record; increase `samples`."
            )
        detail = f"{_SCRAMBLES} scrambles of {2**self._log_points} points, standard error {error:.3g}"
        return Answer.about(min(1.0, value), detail=detail)
