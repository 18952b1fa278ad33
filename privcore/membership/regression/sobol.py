"""Least squares: an estimate of the advantage from scrambled Sobol points."""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from privcore import params
from privcore.answer import Answer, Status
from privcore.membership.gaussian_mean.problems import MembershipRegressionAdvantage
from privcore.membership.regression.draws import INTERPOLATES, gain_cost, gains
from privcore.membership.regression.likelihood_ratio import UNIFORMS
from privcore.method import Cost, Direction, Method
from privcore.papers import AUBINAIS

_SCRAMBLES = 8
_LEAST_RATIO = 5.0
"""Standard errors that an estimate has to be away from 0."""


@dataclass(frozen=True, kw_only=True)
class MembershipSobol(Method[MembershipRegressionAdvantage]):
    """Average the gain of the best attack over Sobol points, in eight independent scrambles.

    Hundreds of times nearer than as many independent draws; the standard error of the scrambles' mean, in the
    detail, has seven degrees of freedom and is no proof. The number of points is rounded up so that a
    scramble has a power of two.
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
        from scipy.stats.qmc import Sobol  # half a second to import

        rng = np.random.default_rng(seed)
        means = []
        for _ in range(_SCRAMBLES):
            points = Sobol(UNIFORMS, scramble=True, rng=rng).random_base2(self._log_points)
            means.append(float(gains(problem, points.T).mean()))
        value = float(np.mean(means))
        error = float(np.std(means, ddof=1)) / math.sqrt(_SCRAMBLES)
        if not value > _LEAST_RATIO * error:
            return Answer.without(Status.FAILED, "Too few of the points tell a member from a fresh record.")
        detail = f"{_SCRAMBLES} scrambles of {2**self._log_points} points, standard error {error:.3g}"
        return Answer.about(min(1.0, value), detail=detail)
