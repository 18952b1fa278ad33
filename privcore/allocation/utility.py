"""Error of a mean with the noise that a sampler needs: by formula, by published bounds, and by simulation."""

import math
from functools import lru_cache
from typing import Annotated, get_args

import numpy as np
from numpy.typing import NDArray

from privcore import params
from privcore.allocation import params as allocation_params
from privcore.allocation.calibration import search_cost, smallest_noise
from privcore.allocation.problems import Allocation, AllocationEpsilon, AllocationError, ErrorOfMean
from privcore.allocation.published.combined import AllocationCombined
from privcore.answer import Answer, Status
from privcore.method import Cost, Direction, Method
from privcore.numerics.bounded_mean import BETTING, betting_lower, betting_upper, width_note
from privcore.numerics.rounding import SHORT_FORMULA, SUBNORMAL, SUMMED
from privcore.papers import FELDMAN_SHENFELD


class UtilityFormula(Method[ErrorOfMean]):
    r"""Enclose the error: the formula is exact, and its noise multiplier is enclosed.

    With n examples in t steps, dimension d and proportion p, at the noise multiplier $\sigma$ of a scheme,

    $$\frac{p(1-p)}n + \frac{t\,d\,\sigma^2}{n^2} \text{ for allocation, and }
      \frac{p\,(1 - 1/t)}n \text{ more for Poisson sampling},$$

    whose participation is random. The estimate is the error at the upper end of the noise.
    """

    name = "utility.formula"
    problems = get_args(ErrorOfMean)
    direction = Direction.ENCLOSURE
    reference = (
        f"{FELDMAN_SHENFELD}, Section 5.1, with the factor 1 - 1/t that is dropped there; noise by "
        "allocation.certified and poisson.certified"
    )
    version = 3
    shares = ("epsilon", "delta", "steps")

    tolerance: Annotated[float, params.TOLERANCE] = 0.01

    def cost(self, problem: ErrorOfMean) -> Cost:
        return search_cost(
            scheme_of(problem), problem.epsilon, problem.delta, problem.steps, 0.5 * self.tolerance
        )

    def answer(self, problem: ErrorOfMean, seed: int) -> Answer:
        noise = noise_for(problem, 0.5 * self.tolerance)
        lower = squared_error(problem, noise.lower) * (1.0 - SHORT_FORMULA) - SUBNORMAL
        highest = squared_error(problem, noise.upper)
        return Answer.enclosure(
            max(0.0, lower),
            highest * (1.0 + SHORT_FORMULA) + SUBNORMAL,
            value=highest if math.isfinite(highest) else None,
            detail=f"noise multiplier in [{noise.lower!r}, {noise.upper!r}]",
        )


def scheme_of(problem: ErrorOfMean) -> str:
    """Return `allocation` or `poisson`."""
    return "allocation" if isinstance(problem, AllocationError) else "poisson"


def noise_for(problem: ErrorOfMean, precision: float) -> Answer:
    """Return the noise multiplier that meets epsilon and delta; cached."""
    return smallest_noise(
        scheme_of(problem),
        epsilon=problem.epsilon,
        delta=problem.delta,
        steps=problem.steps,
        precision=precision,
    )


def squared_error(problem: ErrorOfMean, sigma: float) -> float:
    """Return the error at this noise multiplier, irrespective of privacy; rounded to nearest.

    Example:
        >>> from privcore.allocation.problems import AllocationError, PoissonError
        >>> asked = {"epsilon": 1.0, "delta": 1e-10, "steps": 1000, "examples": 100, "proportion": 0.9}
        >>> round(squared_error(AllocationError(**asked), 1.0), 6)
        0.1009
        >>> round(squared_error(PoissonError(**asked), 1.0), 6)
        0.109891
    """
    return sampling_error(problem) + noise_error(problem, sigma)


def sampling_error(problem: ErrorOfMean) -> float:
    """Return the part of the error due to random examples and random steps, without noise."""
    p, n = problem.proportion, float(problem.examples)
    drawn = p * (1.0 - p) / n
    if isinstance(problem, AllocationError):
        return drawn
    return drawn + p * ((problem.steps - 1) / problem.steps) / n


def noise_error(problem: ErrorOfMean, sigma: float) -> float:
    """Return the part of the error due to the noise of all steps, with sensitivity sqrt(dimension)."""
    a_step = sigma / problem.examples
    return problem.steps * problem.dimension * a_step * a_step


def crossing_dimension(
    allocation: Answer, poisson: Answer, *, steps: int, examples: int, proportion: float
) -> tuple[float, float]:
    r"""Return proved ends of the dimension at which Poisson sampling becomes more accurate than allocation.

    Allocation has the smaller error if and only if
    $$d < d^* = \frac{n\,p\,(1 - 1/t)}{t\,(\sigma_A^2 - \sigma_P^2)}.$$
    If $\sigma_A \le \sigma_P$ it has the smaller error in every dimension, and both ends are infinite.

    Args:
        allocation: Noise multiplier of random allocation.
        poisson: Noise multiplier of Poisson sampling at rate 1/steps.
        steps: Number of steps.
        examples: Number of examples.
        proportion: Probability that a coordinate is 1, in [0, 1].

    Returns:
        Lower end, up to which allocation is proved to be at least as accurate, and upper end, beyond which
        Poisson sampling is; infinity if nothing is proved, or if the errors do not cross.

    Raises:
        DomainError: Steps, examples or proportion is outside its domain.

    Reference:
        arXiv:2502.08202v3, Section 5.1 and Figure 3.

    Example:
        >>> noise = [Answer(lower=sigma, upper=sigma) for sigma in (1.1, 1.0)]
        >>> ends = crossing_dimension(*noise, steps=1000, examples=100_000, proportion=0.9)
        >>> [round(end, 3) for end in ends]
        [428.143, 428.143]
    """
    t, n = params.STEPS.check(steps), params.EXAMPLES.check(examples)
    p = allocation_params.PROPORTION.check(proportion)

    def crossing(above: float, below: float, side: int) -> float:
        """Return d* for sigma_A = above and sigma_P = below, moved to one side."""
        if above <= below:
            return math.inf
        excess = (above - below) * (above + below)
        if math.isinf(excess):
            return 0.0
        return (n * p * ((t - 1) / t) / t / excess) * (1.0 + side * SHORT_FORMULA)

    lower = crossing(allocation.upper, poisson.lower, -1)
    upper = crossing(allocation.lower, poisson.upper, 1)
    return max(0.0, lower - SUBNORMAL), upper + SUBNORMAL


_START = 1.0
"""Noise multiplier from which the search doubles or halves."""


class UtilityPublished(Method[AllocationError]):
    """Bound the error from above by the error at the noise that the published bounds of epsilon require.

    The least noise multiplier is at most any one at which `allocation.combined` meets epsilon. A bisection
    ends at such a noise multiplier, so the result is a bound even if the published bound is not monotone.
    """

    name = "utility.published"
    problems = (AllocationError,)
    direction = Direction.UPPER
    reference = f"{FELDMAN_SHENFELD}, Section 5.1, with noise by the minimum over its theorems"
    shares = ("epsilon", "delta", "steps")

    tolerance: Annotated[float, params.TOLERANCE] = 0.01

    def applies(self, problem: AllocationError) -> str | None:
        return AllocationCombined().applies(_epsilon_at(1.0, problem.delta, problem.steps))

    def cost(self, problem: AllocationError) -> Cost:
        one = AllocationCombined().cost(_epsilon_at(1.0, problem.delta, problem.steps))
        looks = 12.0 + math.log2(1.0 / self.tolerance)
        return Cost(seconds=looks * one.seconds, bytes=one.bytes)

    def answer(self, problem: AllocationError, seed: int) -> Answer:
        sigma = sufficient_noise(problem.epsilon, problem.delta, problem.steps, 0.5 * self.tolerance)
        if math.isinf(sigma):
            return Answer.without(Status.FAILED, "No noise multiplier meets epsilon by the published bounds.")
        error = squared_error(problem, sigma)
        return Answer.at_most(
            error * (1.0 + SHORT_FORMULA) + SUBNORMAL, detail=f"noise multiplier {sigma!r}, which suffices"
        )


@lru_cache(maxsize=64)
def sufficient_noise(epsilon: float, delta: float, steps: int, precision: float) -> float:
    """Return a noise multiplier at which the published bounds meet epsilon; infinity if none was found.

    Args:
        epsilon: Largest allowed epsilon, > 0.
        delta: Largest allowed delta, in (0, 1).
        steps: Number of steps, >= 1.
        precision: Relative distance at which the bisection ends, > 0.

    Returns:
        A noise multiplier that suffices: an upper bound of the least one.

    Reference:
        arXiv:2502.08202v3, Theorems 4.1, 4.2, 4.6, 4.8 and 4.9.

    Example:
        >>> 2.4 < sufficient_noise(0.1, 1e-10, 1000, 0.01) < 2.6
        True
    """

    def enough(sigma: float) -> bool:
        found = AllocationCombined().answer(_epsilon_at(sigma, delta, steps), 0)
        return found.status is Status.OK and found.upper <= epsilon

    high = _START
    while not enough(high):
        if high >= params.SIGMA.upper:
            return math.inf
        high = min(2.0 * high, params.SIGMA.upper)
    low = 0.5 * high
    while low > params.SIGMA.lower and enough(low):
        low, high = max(0.5 * low, params.SIGMA.lower), low
    while high > low * (1.0 + precision):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _epsilon_at(sigma: float, delta: float, steps: int) -> Allocation:
    return AllocationEpsilon.from_fields({"sigma": sigma, "delta": delta, "steps": steps})


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
