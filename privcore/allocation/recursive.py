"""Recursive bound: truncated Poisson sampling, with the tail of the posterior from a known profile."""

import math
from dataclasses import dataclass
from typing import Annotated, get_args

import numpy as np

from privcore import params
from privcore.allocation import params as allocation_params
from privcore.allocation.decomposition import decomposition
from privcore.allocation.poisson_certified import poisson
from privcore.allocation.problems import Allocation
from privcore.allocation.truncation import SHARES, block, bounded, cost_of
from privcore.answer import Answer
from privcore.likelihood_ratio import profile
from privcore.likelihood_ratio.distribution import LikelihoodRangeError, RatioDistribution, Resolution
from privcore.likelihood_ratio.questions import first_fineness, powering, tier
from privcore.method import Cost, Direction, Method
from privcore.numerics.gaussian import last_true
from privcore.numerics.rounding import TRUNCATED_RATE
from privcore.papers import FELDMAN_SHENFELD

AUTHORS_SHARE = 0.5
_SMALLEST_TAIL = 1e-140
_CUT = 1e-8
"""Largest mass, as a fraction of the correction, that may be cut off its underlying distribution."""


@dataclass(frozen=True, kw_only=True)
class AllocationRecursive(Method[Allocation]):
    r"""Bound k-of-t allocation by its profile in direction add, which the decomposition bounds.

    With $f = \lfloor t/k \rfloor$, any $\varepsilon' > 0$, $\eta = e^{2 \varepsilon'} / f \le 1$ and
    $\tau = 1 / (e^{\varepsilon'} (e^{\varepsilon'} - 1))$,
    $$\delta_{A,remove}(\varepsilon) \le \delta_{P_{f k E, \eta},remove}(\varepsilon)
      + k E \tau \, \delta_{A_f,add}(\varepsilon'), \quad
      \delta_{A,add}(\varepsilon) \le \delta_{P_{f k E, \eta},add}(\varepsilon)
      + k E \tau e^{2 \varepsilon'} \, \delta_{A_f,add}(\varepsilon').$$

    Attributes:
        split: Split of delta, for epsilon: `optimal`, or `authors` for that of the authors' program.
        tolerance: Relative width of the bracket of Poisson sampling.
    """

    name = "allocation.recursive"
    problems = get_args(Allocation)
    direction = Direction.UPPER
    reference = f"{FELDMAN_SHENFELD}, Theorem 4.2, from Theorem 4.6; reduction to k = 1: Lemma 3.2"
    version = 2
    shares = ("sigma", "steps")

    split: Annotated[str, allocation_params.SPLIT] = "optimal"
    tolerance: Annotated[float, params.TOLERANCE] = 0.01

    def cost(self, problem: Allocation) -> Cost:
        return cost_of(problem, self.tolerance)

    def answer(self, problem: Allocation, seed: int) -> Answer:
        steps, copies = block(problem)

        def rate(direction: str, budget: float) -> float | None:
            return recursive_rate(problem.sigma, steps, budget / copies, direction, self.tolerance)

        shares = SHARES if self.split == "optimal" else (AUTHORS_SHARE,)
        return bounded(problem, rate, self.tolerance, shares)


def recursive_rate(sigma: float, steps: int, beta: float, direction: str, tolerance: float) -> float | None:
    """Return the sampling probability of the recursive bound.

    Args:
        sigma: Noise multiplier of one step.
        steps: Number of steps f, >= 1.
        beta: Largest allowed correction for one block, in (0, 1).
        direction: Direction of the bound, `remove` or `add`; the correction uses the profile for add in both.
        tolerance: Relative accuracy of the distribution behind that profile.

    Returns:
        Probability, rounded up, in (1 / steps, 1]; None if even probability 1 leaves a larger correction.

    Example:
        >>> round(1000.0 * recursive_rate(1.0, 1000, 5e-9, "remove", 0.01), 2)
        1.85
    """
    fineness = first_fineness("epsilon", tolerance, powering(steps))
    tail = max(tier(max(_CUT * beta, _SMALLEST_TAIL)) * tier(1.0 / steps), _SMALLEST_TAIL)
    if steps == 1 or beta <= _SMALLEST_TAIL:
        return None
    try:
        law = poisson(1.0 / sigma, 1.0 / steps, steps, Resolution(fineness=fineness, tail=tail)).upper
    except LikelihoodRangeError:
        return None
    correction = _Correction(law=law, steps=steps, direction=direction)
    most = 0.5 * math.log(steps) * (1.0 - TRUNCATED_RATE)
    if correction.log(most) > math.log(beta):
        return None
    at = last_true(lambda x: correction.log(x) > math.log(beta), 1e-9 * most, most)[1]
    return min(1.0, math.exp(2.0 * at) / steps * (1.0 + TRUNCATED_RATE))


@dataclass(frozen=True, kw_only=True)
class _Correction:
    """Correction at any epsilon', from a dominating distribution of Poisson sampling at rate 1 / f."""

    law: RatioDistribution
    steps: int
    direction: str

    def log(self, epsilon: float) -> float:
        """Return the logarithm of the correction, rounded up."""
        part = decomposition(1.0 / self.steps, self.steps)
        delta = part.add_delta(lambda x: profile.delta_upper(self.law, x, "add"), epsilon)
        if delta <= 0.0:
            return -math.inf
        factor = -float(np.log(np.expm1(epsilon))) + (epsilon if self.direction == "add" else -epsilon)
        return math.log(delta) + factor + TRUNCATED_RATE * (1.0 + abs(factor) - math.log(delta))
