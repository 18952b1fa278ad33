"""Error of a mean estimated from private sums, by simulation of the estimate."""

import math
from dataclasses import dataclass
from typing import Annotated, get_args

import numpy as np

from privcore import params
from privcore.allocation.calibration import search_cost
from privcore.allocation.utility_formula import noise_error, noise_for, scheme_of, squared_error
from privcore.allocation.utility_problems import AllocationError, ErrorOfMean
from privcore.answer import Answer
from privcore.method import Cost, Direction, Method
from privcore.numerics.sums import dot
from privcore.papers import FELDMAN_SHENFELD

_PRECISION = 0.005
"""Relative distance of the ends of the noise multiplier."""
_BLOCK = 100_000
"""Repetitions that are drawn at once."""
_LARGEST_COUNT = 1e13
"""Largest number of trials of a binomial draw for which the generator's arithmetic in doubles is accurate."""
_WIDEST = 0.5
"""Largest relative half-width of the interval for which an estimate is given."""


@dataclass(frozen=True, kw_only=True)
class UtilitySimulation(Method[ErrorOfMean]):
    r"""Simulate the estimate R times, and enclose the mean of its squared errors.

    One coordinate is drawn, at the noise multiplier that is proved to suffice: a binomial number of ones, for
    Poisson sampling the binomial number of times that they are counted, and the sum of all noise. By
    Chebyshev's inequality, with probability at least c, the confidence, the mean squared error of R draws is
    within a factor $1 \pm a$ of its expectation, where $a^2 = \rho / (R (1 - c))$. Here $\rho$ is the
    relative variance of a squared error: 2 for a Gaussian, and in general known from the fourth cumulant. The
    least noise multiplier may be a little smaller, so the lower end is scaled by the ratio of the formulas.
    """

    name = "utility.simulation"
    problems = get_args(ErrorOfMean)
    direction = Direction.ENCLOSURE
    reference = f"{FELDMAN_SHENFELD}, Section 5.1 and Figure 3; Chebyshev's inequality"
    version = 3
    shares = ("epsilon", "delta", "steps")

    repetitions: Annotated[int, params.REPETITIONS] = 100_000
    confidence: Annotated[float, params.CONFIDENCE] = 0.99

    def applies(self, problem: ErrorOfMean) -> str | None:
        draws = problem.examples * (1 if isinstance(problem, AllocationError) else problem.steps)
        if draws > _LARGEST_COUNT:
            return f"Binomial draws with more than {_LARGEST_COUNT:.0e} trials are not exact enough."
        return None

    def cost(self, problem: ErrorOfMean) -> Cost:
        search = search_cost(scheme_of(problem), problem.epsilon, problem.delta, problem.steps, _PRECISION)
        arrays = 40.0 * min(_BLOCK, self.repetitions)
        return Cost(seconds=search.seconds + 3e-7 * self.repetitions, bytes=search.bytes + arrays)

    def answer(self, problem: ErrorOfMean, seed: int) -> Answer:
        noise = noise_for(problem, _PRECISION)
        if math.isinf(noise.upper):
            detail = "no noise multiplier is proved to suffice"
            return Answer.enclosure(0.0, math.inf, confidence=self.confidence, detail=detail)
        drawn = self._mean_square(problem, noise.upper, seed)
        least, most = squared_error(problem, noise.lower), squared_error(problem, noise.upper)
        width = self._half_width(problem, most)
        detail = f"{self.repetitions} repetitions, noise multiplier {noise.upper!r}"
        return Answer.enclosure(
            drawn / (1.0 + width) * (least / most) * (1.0 - 1e-12),
            drawn / (1.0 - width) * (1.0 + 1e-12) if width < 1.0 else math.inf,
            value=drawn if width <= _WIDEST else None,
            confidence=self.confidence,
            detail=detail if width <= _WIDEST else f"{detail}; too few repetitions for an estimate",
        )

    def _half_width(self, problem: ErrorOfMean, error: float) -> float:
        """Return a, the relative half-width of the interval by Chebyshev's inequality."""
        # Cumulants of independent parts add up, and the fourth cumulant of the noise is zero.
        excess = fourth_cumulant(problem) / problem.examples / (problem.examples * error) ** 2
        return math.sqrt((2.0 + excess) / (self.repetitions * (1.0 - self.confidence)))

    def _mean_square(self, problem: ErrorOfMean, sigma: float, seed: int) -> float:
        """Return the mean of the squared errors of all repetitions, drawn in blocks."""
        rng = np.random.default_rng(seed)
        n, t, p = problem.examples, problem.steps, problem.proportion
        spread = math.sqrt(noise_error(problem, sigma))
        total = 0.0
        for start in range(0, self.repetitions, _BLOCK):
            size = min(_BLOCK, self.repetitions - start)
            ones = rng.binomial(n, p, size)
            counted = ones if isinstance(problem, AllocationError) else rng.binomial(ones * t, 1.0 / t)
            errors = counted / n - p + spread * rng.standard_normal(size)
            total += float(dot(errors, errors))
        return total / self.repetitions


def fourth_cumulant(problem: ErrorOfMean) -> float:
    r"""Return the fourth cumulant of one example's contribution to a coordinate, or 0 if it is negative.

    The contribution is $X N$ with X Bernoulli(p), and N = 1 for allocation, or N binomial(t, 1/t) for Poisson
    sampling.
    """
    p = problem.proportion
    # Factorial moments of N; Stirling numbers give its moments.
    t = 1 if isinstance(problem, AllocationError) else problem.steps
    f2 = 1.0 - 1.0 / t
    f3 = f2 * (1.0 - 2.0 / t)
    f4 = f3 * (1.0 - 3.0 / t)
    m2, m3, m4 = f2 + 1.0, f3 + 3.0 * f2 + 1.0, f4 + 6.0 * f3 + 7.0 * f2 + 1.0
    q = p * p
    fourth = p * m4 - 4.0 * q * m3 - 3.0 * q * m2 * m2 + 12.0 * q * p * m2 - 6.0 * q * q
    return max(0.0, fourth + 1e-14 * p)
