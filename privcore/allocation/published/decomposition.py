"""Random allocation from Poisson sampling, which is less private given that the example takes part."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from privcore import params
from privcore.allocation import params as allocation_params
from privcore.allocation.poisson import poisson
from privcore.allocation.problems import ALLOCATION, Allocation
from privcore.allocation.published.truncated import SHARES, block, bounded, cost_of
from privcore.answer import Answer
from privcore.likelihood_ratio import profile
from privcore.likelihood_ratio.distribution import (
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
    given_participation,
    product_of,
)
from privcore.likelihood_ratio.questions import (
    Question,
    cost,
    enclose,
    first_fineness,
    powering,
    question_of,
    tier,
)
from privcore.method import Cost, Direction, Method
from privcore.numerics.gaussian import last_true
from privcore.numerics.rounding import SHORT_FORMULA, TRUNCATED_RATE
from privcore.papers import FELDMAN_SHENFELD

Profile = Callable[[float], float]
"""Upper bound of the delta of Poisson sampling, in one direction, at any real epsilon; or of its inverse."""

_Reader = Callable[[RatioDistribution, float, str], float]


@dataclass(frozen=True, kw_only=True)
class Decomposition:
    r"""Bounds of allocation from bounds of Poisson sampling, conditioned on participation.

    With $p$ the probability that the example takes part and $S$ the likelihood ratio of Poisson sampling, the
    ratio given participation is $1 + (S - 1) / p$, which dominates that of allocation in both directions.

    Attributes:
        log_absence: Logarithm of the probability 1 - p that no step uses the example.
    """

    log_absence: float

    @property
    def presence(self) -> float:
        """Probability p that some step uses the example."""
        return -math.expm1(self.log_absence)

    def _mixed(self, x: float) -> float:
        """Return ln(1 - p + p e^x), without overflow or cancellation."""
        p = self.presence
        if x > 30.0 or (x < -1.0 and p > 0.5):
            return float(np.logaddexp(self.log_absence, math.log(p) + x))
        return math.log1p(p * math.expm1(x))

    def remove_delta(self, poisson_delta: Profile, epsilon: float) -> float:
        r"""Return $\delta_P(\ln(1 + p (e^\varepsilon - 1))) / p$."""
        return min(1.0, poisson_delta(_down(self._mixed(epsilon))) / self.presence * (1.0 + SHORT_FORMULA))

    def add_delta(self, poisson_delta: Profile, epsilon: float) -> float:
        r"""Return $(1 + e^\varepsilon (1/p - 1)) \, \delta_P(-\ln(1 - p (1 - e^{-\varepsilon})))$."""
        delta = poisson_delta(_down(-self._mixed(-epsilon)))
        if delta <= 0.0:
            return 0.0
        log_delta = math.log(delta)
        log_factor = float(np.logaddexp(0.0, epsilon + self.log_absence - math.log(self.presence)))
        return math.exp(min(0.0, log_delta + log_factor + SHORT_FORMULA * (1.0 + abs(epsilon) - log_delta)))

    def remove_epsilon(self, poisson_epsilon: Profile, delta: float) -> float:
        r"""Return $\ln(1 + (e^{\varepsilon_P(p \delta)} - 1) / p)$, the inverse of `remove_delta`."""
        p = self.presence
        epsilon = poisson_epsilon(p * delta * (1.0 - SHORT_FORMULA))
        if epsilon < 30.0:
            return math.log1p(math.expm1(epsilon) / p) * (1.0 + SHORT_FORMULA)
        return (epsilon - math.log(p)) * (1.0 + SHORT_FORMULA)

    def add_epsilon(self, poisson_delta: Profile, delta: float, start: float) -> float:
        """Return the smallest epsilon at which `add_delta` is at most delta, up to 1e-12, or infinity.

        Args:
            poisson_delta: Upper bound of the profile of Poisson sampling in direction add.
            delta: Probability in (0, 1).
            start: First epsilon of the upward search, > 0.
        """

        def above(epsilon: float) -> bool:
            return self.add_delta(poisson_delta, epsilon) > delta

        high = start
        while above(high):
            high *= 1.25
            if high > params.EPSILON.upper:
                return math.inf
        return last_true(above, 0.0, high)[1]


def decomposition(rate: float, steps: int) -> Decomposition:
    """Return the decomposition of `steps` Poisson-sampled steps.

    Args:
        rate: Sampling probability in (0, 1].
        steps: Number of steps, >= 1.

    Example:
        >>> round(1.0 / decomposition(rate=0.001, steps=1000).presence, 3)
        1.582
    """
    return Decomposition(log_absence=steps * math.log1p(-rate) if rate < 1.0 else -math.inf)


def _down(x: float) -> float:
    return x - 2.0 * SHORT_FORMULA * abs(x)


@dataclass(frozen=True, kw_only=True)
class _Decomposed(Question):
    """A question about allocation, answered from a likelihood-ratio distribution of Poisson sampling."""

    part: Decomposition

    def upper(self, law: RatioDistribution) -> float:
        """Return the upper bound from a dominating distribution."""
        return self._read(law, profile.delta_upper, profile.epsilon_upper)

    def lower(self, law: RatioDistribution) -> float:
        """Return an estimate of the limit of `upper` under refinement.

        It is not a bound of the truth; it decides when to stop refining.
        """
        return self._read(law, profile.delta_lower, profile.epsilon_lower)

    def _read(self, law: RatioDistribution, delta: _Reader, epsilon: _Reader) -> float:
        return max(self._read_one(law, delta, epsilon, d) for d in profile.DIRECTIONS[self.adjacency])

    def _read_one(self, law: RatioDistribution, delta: _Reader, epsilon: _Reader, direction: str) -> float:
        poisson_delta: Profile = lambda x: delta(law, x, direction)
        poisson_epsilon: Profile = lambda x: epsilon(law, x, direction)
        if self.asks == "delta":
            read = self.part.remove_delta if direction == "remove" else self.part.add_delta
            return read(poisson_delta, self.at)
        if direction == "remove":
            return self.part.remove_epsilon(poisson_epsilon, self.at)
        start = max(poisson_epsilon(self.at), 1e-3)
        return self.part.add_epsilon(poisson_delta, self.at, start) if math.isfinite(start) else math.inf


class AllocationDecomposition(Method[Allocation]):
    r"""Bound k-of-t over E epochs by k E compositions of Poisson sampling, given that the example takes part.

    With $f = \lfloor t/k \rfloor$, the probability of Poisson sampling is thinning / f. For k E = 1 the bound
    is exact in the limit thinning -> 0.
    """

    name = "allocation.decomposition"
    problems = ALLOCATION
    direction = Direction.UPPER
    reference = f"{FELDMAN_SHENFELD}, Theorem 4.6; reduction to k = 1: Lemma 3.2"
    version = 2
    shares = ("sigma", "steps")

    thinning: Annotated[float, allocation_params.THINNING] = 1.0
    tolerance: Annotated[float, params.TOLERANCE] = 0.01

    def cost(self, problem: Allocation) -> Cost:
        steps, copies = block(problem)
        return cost(
            question_of(problem), 1.0 / problem.sigma, self.tolerance, powering(steps) + powering(copies)
        )

    def answer(self, problem: Allocation, seed: int) -> Answer:
        steps, copies = block(problem)
        rate = self.thinning / steps
        part = decomposition(rate, steps)
        sampled = partial(poisson, 1.0 / problem.sigma, rate, steps)
        asked = question_of(problem)

        def composed(res: Resolution) -> RatioBracket:
            return product_of(given_participation(sampled(res), part.log_absence), copies, res)

        _, upper, detail = enclose(
            sampled if copies == 1 else composed,
            _Decomposed(**vars(asked), part=part) if copies == 1 else asked,
            self.tolerance,
            copies=steps * copies,
            outer=(0.0, problem.largest),
            combinations=powering(steps) + powering(copies),
        )
        return Answer.at_most(upper, detail=detail)


AUTHORS_SHARE = 0.5
_SMALLEST_TAIL = 1e-140
_CUT = 1e-8
"""Largest mass, as a fraction of the correction, that may be cut off its underlying distribution."""


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
    problems = ALLOCATION
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
