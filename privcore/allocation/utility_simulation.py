"""Error of a mean estimated from private sums, by simulation of the estimate."""

import math
from dataclasses import dataclass
from typing import Annotated, get_args

import numpy as np
from numpy.typing import NDArray

from privcore import params
from privcore.allocation.calibration import search_cost
from privcore.allocation.utility_formula import noise_error, noise_for, scheme_of, squared_error
from privcore.allocation.utility_problems import AllocationError, ErrorOfMean
from privcore.answer import Answer
from privcore.method import Cost, Direction, Method
from privcore.numerics.betting import BETTING, betting_lower, betting_upper, width_note
from privcore.numerics.rounding import SUMMED
from privcore.papers import FELDMAN_SHENFELD

_WIDEST_NOISE, _NOISE_SHARE = 0.005, 0.3
"""Largest relative distance of the ends of the noise multiplier, and that distance in standard errors."""
_BLOCK = 100_000
"""Repetitions that are drawn at once."""
_LARGEST_COUNT = 1e13
"""Largest number of trials of a binomial draw for which the generator's arithmetic in doubles is accurate."""
_WIDEST = 0.5
"""Largest relative half-width of the interval for which an estimate is given."""
_CAPS = tuple(30.0 * 2.0**k for k in range(12))
"""Caps of squared errors, relative to their mean."""
_NEGLIGIBLE = 1e-4
"""Part of the mean beyond a cap that is small enough."""
_SLOPES = np.geomspace(0.01, 1.0, 25)
"""Slopes of exponentials above the tail of the error, relative to the best one for Gaussian errors."""


@dataclass(frozen=True, kw_only=True)
class UtilitySimulation(Method[ErrorOfMean]):
    r"""Simulate the estimate R times, and enclose the mean of its squared errors.

    One coordinate is drawn, at the noise multiplier that is proved to suffice: a binomial number of ones, for
    Poisson sampling the binomial number of times that they are counted, and the sum of all noise. Squared
    errors are cut at a cap c, and their mean is enclosed by bets. The mean beyond the cap follows from the
    moment generating function M of the error, by Chernoff's inequality:
    $$E (X^2 - c)_+ \le 2 (\sqrt c / \theta + 1 / \theta^2) e^{-\theta \sqrt c} (M(\theta) + M(-\theta)).$$
    The least noise multiplier may be a little smaller, so the lower end is scaled by the ratio of the
    formulas.
    """

    name = "utility.simulation"
    problems = get_args(ErrorOfMean)
    direction = Direction.ENCLOSURE
    reference = f"{FELDMAN_SHENFELD}, Section 5.1 and Figure 3; {BETTING}"
    version = 5
    shares = ("epsilon", "delta", "steps")

    repetitions: Annotated[int, params.REPETITIONS] = 100_000
    confidence: Annotated[float, params.CONFIDENCE] = 0.99

    def applies(self, problem: ErrorOfMean) -> str | None:
        draws = problem.examples * (1 if isinstance(problem, AllocationError) else problem.steps)
        if draws > _LARGEST_COUNT:
            return f"Binomial draws with more than {_LARGEST_COUNT:.0e} trials are not exact enough."
        return None

    def cost(self, problem: ErrorOfMean) -> Cost:
        search = search_cost(
            scheme_of(problem), problem.epsilon, problem.delta, problem.steps, self._precision
        )
        arrays = 40.0 * min(_BLOCK, self.repetitions) + 40.0 * self.repetitions
        return Cost(seconds=search.seconds + 1.5e-6 * self.repetitions, bytes=search.bytes + arrays)

    def answer(self, problem: ErrorOfMean, seed: int) -> Answer:
        noise = noise_for(problem, self._precision)
        if math.isinf(noise.upper):
            detail = "no noise multiplier is proved to suffice"
            return Answer.enclosure(0.0, math.inf, confidence=self.confidence, detail=detail)
        drawn = self._squares(problem, noise.upper, seed)
        least, most = squared_error(problem, noise.lower), squared_error(problem, noise.upper)
        cap, beyond = cap_of(problem, noise.upper)
        shares, error = np.minimum(drawn / cap, 1.0), 0.5 * (1.0 - self.confidence)
        low, high = cap * betting_lower(shares, error), cap * betting_upper(shares, error) + beyond
        mean = float(drawn.mean())
        known = high - low <= 2.0 * _WIDEST * mean
        spread = float(drawn.std()) / math.sqrt(self.repetitions)
        detail = f"{self.repetitions} repetitions, noise multiplier {noise.upper!r}"
        detail += width_note(high - low, spread, self.confidence)
        return Answer.enclosure(
            low * (least / most) * (1.0 - 1e-12),
            high * (1.0 + 1e-12),
            value=min(max(mean, low), high) if known else None,
            confidence=self.confidence,
            detail=detail if known else f"{detail}; too few repetitions for an estimate",
        )

    @property
    def _precision(self) -> float:
        """Relative distance of the ends of the noise multiplier, which is small in the interval."""
        return min(_WIDEST_NOISE, _NOISE_SHARE / math.sqrt(self.repetitions))

    def _squares(self, problem: ErrorOfMean, sigma: float, seed: int) -> NDArray[np.float64]:
        """Return the squared errors of all repetitions, drawn in blocks."""
        rng = np.random.default_rng(seed)
        n, t, p = problem.examples, problem.steps, problem.proportion
        spread = math.sqrt(noise_error(problem, sigma))
        squares = np.empty(self.repetitions)
        for start in range(0, self.repetitions, _BLOCK):
            size = min(_BLOCK, self.repetitions - start)
            ones = rng.binomial(n, p, size)
            counted = ones if isinstance(problem, AllocationError) else rng.binomial(ones * t, 1.0 / t)
            errors = counted / n - p + spread * rng.standard_normal(size)
            squares[start : start + size] = errors * errors
        return squares


def cap_of(problem: ErrorOfMean, sigma: float) -> tuple[float, float]:
    """Return a cap of the squared error, and an upper bound of the mean beyond it.

    Args:
        problem: The question.
        sigma: Noise multiplier.
    """
    mean = squared_error(problem, sigma)
    cap, beyond = math.inf, math.inf
    for multiple in _CAPS:
        cap = multiple * mean
        root = math.sqrt(cap)
        slopes = _SLOPES * root / mean
        logs = np.logaddexp(log_moment(problem, sigma, slopes), log_moment(problem, sigma, -slopes))
        logs += np.log(2.0 * (root / slopes + 1.0 / slopes**2)) - slopes * root
        beyond = math.exp(min(float(logs.min()), 700.0)) * (1.0 + SUMMED)
        if beyond <= _NEGLIGIBLE * mean:
            break
    return cap, beyond


def log_moment(problem: ErrorOfMean, sigma: float, slopes: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return the logarithm of $E e^{\theta X}$ for the error X of the estimate.

    An example contributes $B N / n$ with B Bernoulli(p), and N = 1 for allocation, or N binomial(t, 1/t) for
    Poisson sampling.

    Args:
        problem: The question.
        sigma: Noise multiplier.
        slopes: The numbers theta.
    """
    n, p = problem.examples, problem.proportion
    t = 1 if isinstance(problem, AllocationError) else problem.steps
    with np.errstate(over="ignore"):
        of_one = t * np.log1p(np.expm1(slopes / n) / t)
        single = np.log1p(p * np.expm1(of_one)) - slopes / n * p
        logs: NDArray[np.float64] = n * single + 0.5 * noise_error(problem, sigma) * slopes**2
    return logs
