"""Error of a mean estimated from private sums: a formula exact in the noise, which is bracketed."""

import math
from dataclasses import dataclass
from typing import Annotated, get_args

from privcore import params
from privcore.allocation import params as allocation_params
from privcore.allocation.calibration import NoiseBracket, search_cost, smallest_noise
from privcore.allocation.utility_problems import AllocationError, ErrorOfMean
from privcore.answer import Answer
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import SHORT_FORMULA, SUBNORMAL
from privcore.papers import FELDMAN_SHENFELD


@dataclass(frozen=True, kw_only=True)
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


def noise_for(problem: ErrorOfMean, precision: float) -> NoiseBracket:
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
        >>> from privcore.allocation.utility_problems import AllocationError, PoissonError
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
    allocation: NoiseBracket, poisson: NoiseBracket, *, steps: int, examples: int, proportion: float
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
        >>> noise = [NoiseBracket(lower=sigma, upper=sigma) for sigma in (1.1, 1.0)]
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
