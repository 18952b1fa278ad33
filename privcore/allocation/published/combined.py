"""The analytic bound, the bound for large noise, and the least of the published bounds of allocation."""

import math
from dataclasses import replace
from functools import lru_cache
from typing import Annotated

from privcore import params
from privcore.allocation import params as allocation_params
from privcore.allocation.poisson import PoissonCertified
from privcore.allocation.problems import ALLOCATION, POISSON, Allocation, Poisson
from privcore.allocation.published.decomposition import AllocationDecomposition, AllocationRecursive
from privcore.allocation.published.renyi import AllocationDirect
from privcore.allocation.published.truncated import SHARES, block, bounded, cost_of, unamplified
from privcore.answer import Answer
from privcore.likelihood_ratio import profile
from privcore.likelihood_ratio.questions import SMALLEST_DELTA
from privcore.method import Cost, Direction, Method
from privcore.numerics.gaussian import gaussian_epsilon_bounds
from privcore.numerics.rounding import TRUNCATED_RATE
from privcore.papers import FELDMAN_SHENFELD
from privcore.published import published

AUTHORS_SHARE = 0.995
AUTHORS_PART = 0.99 / 0.995
_PARTS = (0.5, 0.9, 0.97, AUTHORS_PART, 0.999)
"""Fractions of the correction that are tried for t delta_0."""


class AllocationAnalytic(Method[Allocation]):
    r"""Bound k-of-t allocation by Poisson sampling whose probability has a closed form.

    With one step $(\varepsilon_0, \delta_0)$-DP, $f = \lfloor t/k \rfloor$ and any $\delta'$,
    $$\delta_A(\varepsilon) \le \delta_{P_{f k E, \eta}}(\varepsilon) + k E (f \delta_0 + \delta'), \quad
      \eta = \frac{1}{f (1 - \gamma)}, \quad \gamma = \sinh(\varepsilon_0) \sqrt{2 \ln(1/\delta') / f}.$$
    The paper has cosh in place of sinh: it bounds the range $e^{\varepsilon_0} - e^{-\varepsilon_0}$ of the
    one-step ratio by $2 \cosh \varepsilon_0$. The bound is claimed only up to $\varepsilon = \ln f$. For
    these $\varepsilon$ the proof uses a step whose ratio is clipped into that range and has mean 1. The
    clipped step is a post-processing of the true step, agrees with it in Q, and differs in P by the total
    variation $\delta_0$, which costs at most $\max(1, e^\varepsilon) \, k E \, \delta_0$ in either direction.

    Attributes:
        range_bound: `sinh`, exact, or `cosh`, as published.
        split: Split of delta, for epsilon: `optimal`, or `authors` for that of the authors' program.
        tolerance: Relative width of the bracket of Poisson sampling.
    """

    name = "allocation.analytic"
    problems = ALLOCATION
    direction = Direction.UPPER
    reference = f"{FELDMAN_SHENFELD}, Theorem 4.1; reduction to k = 1: Lemma 3.2; sinh: proved here"
    shares = ("sigma", "steps")

    range_bound: Annotated[str, allocation_params.RANGE_BOUND] = "sinh"
    split: Annotated[str, allocation_params.SPLIT] = "optimal"
    tolerance: Annotated[float, params.TOLERANCE] = 0.01

    def cost(self, problem: Allocation) -> Cost:
        return cost_of(problem, self.tolerance)

    def answer(self, problem: Allocation, seed: int) -> Answer:
        steps, copies = block(problem)
        optimal = self.split == "optimal"
        parts = _PARTS if optimal else (AUTHORS_PART,)

        def rate(direction: str, budget: float) -> float | None:
            beta = budget / copies * (1.0 - TRUNCATED_RATE)
            rates = (self._rate(problem.sigma, steps, part * beta, (1.0 - part) * beta) for part in parts)
            return min((eta for eta in rates if eta is not None), default=None)

        shares = SHARES if optimal else (AUTHORS_SHARE,)
        return bounded(
            problem, rate, self.tolerance, shares, largest=math.log(steps) * (1.0 - TRUNCATED_RATE)
        )

    def _rate(self, sigma: float, steps: int, first: float, second: float) -> float | None:
        local_epsilon = _local_epsilon(sigma, first / steps * (1.0 - TRUNCATED_RATE))
        return analytic_rate(local_epsilon, steps, second, self.range_bound)


def analytic_rate(local_epsilon: float, steps: int, delta: float, range_bound: str = "sinh") -> float | None:
    """Return the sampling probability of the analytic bound.

    Args:
        local_epsilon: Epsilon of one step, >= 0, possibly infinite.
        steps: Number of steps, >= 1.
        delta: Probability in (0, 1) that the posterior exceeds the returned probability.
        range_bound: `sinh` or `cosh`.

    Returns:
        Probability, rounded up, in [1 / steps, 1); None if gamma >= 1 - 1 / steps, when the theorem gives no
        probability below 1.

    Reference:
        Feldman and Shenfeld (2025), arXiv:2502.08202v3, Theorem 4.1.

    Example:
        >>> round(1000.0 * analytic_rate(0.2, 1000, 1e-9), 3)
        1.043
    """
    if not local_epsilon < 30.0 or not 1e-300 < delta < 1.0:
        return None
    half_range = math.sinh(local_epsilon) if range_bound == "sinh" else math.cosh(local_epsilon)
    gamma = half_range * math.sqrt(-2.0 * math.log(delta) / steps) * (1.0 + TRUNCATED_RATE)
    if gamma >= 1.0 - 1.0 / steps:
        return None
    eta = (1.0 + TRUNCATED_RATE) / (steps * (1.0 - gamma))
    return eta if eta < 1.0 else None


@lru_cache(maxsize=4096)
def _local_epsilon(sigma: float, delta: float) -> float:
    """Return an upper bound of the epsilon of one step; infinity for delta <= 1e-300."""
    return gaussian_epsilon_bounds(sigma, delta)[1] if delta > 1e-300 else math.inf


def correction(problem: Allocation) -> float:
    r"""Return the least delta' of Corollary 4.5 for the noise: $\sigma > 8 \max\{\sqrt L, \sqrt{k/t} L\}$.

    Here $L = \ln(t / \delta')$, and the bound adds $2 \delta'$ to Poisson sampling with probability 2k/t.

    Example:
        >>> from privcore.allocation.problems import AllocationDelta
        >>> round(math.log(correction(AllocationDelta(sigma=40.0, steps=1000, epsilon=1.0)) / 1000.0), 6)
        -25.0
    """
    part = problem.sigma / 8.0
    most = min(part * part, part * math.sqrt(problem.steps / problem.participations))
    return max(SMALLEST_DELTA, problem.steps * math.exp(-most * (1.0 - TRUNCATED_RATE)))


def _added(problem: Allocation) -> float:
    """Return the delta that is added to Poisson sampling."""
    return 2.0 * correction(problem) * (1.0 + TRUNCATED_RATE)


def _uncovered(problem: Allocation) -> str | None:
    """Return the reason why Corollary 4.5 says nothing, or None."""
    if problem.epochs > 1:
        return "Expected one epoch."
    if 2 * problem.participations > problem.steps:
        return "Expected at most half of the steps as participations."
    block = problem.steps // problem.participations
    if block == 2 and problem.steps > 2.8 * problem.participations:
        return "Expected a rate of at most 2 k / t by Theorem 4.1, which blocks of 2 steps do not have."
    if problem.asks == "delta" and problem.at > math.log(block) * (1.0 - TRUNCATED_RATE):
        return "Expected epsilon up to ln floor(t / k), as far as Theorem 4.1 is proved."
    if _added(problem) >= (problem.at if problem.asks == "epsilon" else 1.0):
        return "Expected sigma above 8 max(sqrt(L), sqrt(k/t) L), with L = ln(2 t / delta)."
    return None


def _sampled_twice(problem: Allocation) -> tuple[Poisson, float]:
    """Return Poisson sampling as in the corollary, and the delta that is added to it."""
    added = _added(problem)
    at = problem.at if problem.asks == "delta" else (problem.at - added) * (1.0 - TRUNCATED_RATE)
    fields = {
        "sigma": problem.sigma,
        "steps": problem.steps,
        "sampling_probability": math.nextafter(2.0 * problem.participations / problem.steps, 1.0),
        "adjacency": problem.adjacency,
        problem.given: at,
    }
    return next(kind for kind in POISSON if kind.asks == problem.asks).from_fields(fields), added


def _corollary(problem: Allocation) -> Answer:
    """Return the bound of the corollary."""
    sampled, added = _sampled_twice(problem)
    upper = PoissonCertified(tolerance=0.01).answer(sampled, 0).upper
    if problem.asks == "delta":
        upper = min(1.0, (upper + added) * (1.0 + TRUNCATED_RATE))
    elif upper > math.log(problem.steps // problem.participations) * (1.0 - TRUNCATED_RATE):
        return Answer.at_most(math.inf, detail="epsilon above ln floor(t / k), where nothing is proved")
    detail = f"Poisson sampling with probability {sampled.sampling_probability:.4g}, added {added:.1e}"
    return Answer.at_most(upper, detail=detail)


def _cost(problem: Allocation) -> Cost:
    """Return the cost of Poisson sampling, and a second that the first distribution may take."""
    if _uncovered(problem) is not None:
        return Cost(seconds=1e-3, bytes=1e5)
    found = PoissonCertified(tolerance=0.01).cost(_sampled_twice(problem)[0])
    return Cost(seconds=1.0 + found.seconds, bytes=found.bytes)


AllocationCorollary = published(
    "allocation.corollary",
    ALLOCATION,
    Direction.UPPER,
    """Bound allocation by Poisson sampling with twice the expected participations, for large noise.""",
    _corollary,
    reference=f"{FELDMAN_SHENFELD}, Corollary 4.5",
    unless=_uncovered,
    cost=_cost,
    shares=("sigma", "steps"),
)


class AllocationCombined(Method[Allocation]):
    """Take the least of no amplification, analytic, decomposition, direct and recursive, per direction.

    Each of these is a bound in each direction, so the least is too. The answer is the larger direction.
    """

    name = "allocation.combined"
    problems = ALLOCATION
    direction = Direction.UPPER
    reference = f"{FELDMAN_SHENFELD}, the minimum over Theorems 4.1, 4.2, 4.6, 4.8 and 4.9"
    version = 3
    shares = ("sigma", "steps")

    tolerance: Annotated[float, params.TOLERANCE] = 0.01

    def cost(self, problem: Allocation) -> Cost:
        costs = [
            method.cost(part)
            for part in _directions(problem)
            for method in self._methods()
            if method.applies(part) is None
        ]
        # Directions share distributions, and theorems that do not apply take no time.
        return Cost(
            seconds=0.4 * sum(cost.seconds for cost in costs), bytes=max(cost.bytes for cost in costs)
        )

    def answer(self, problem: Allocation, seed: int) -> Answer:
        found = [self._least(part, seed) for part in _directions(problem)]
        return Answer.at_most(max(upper for upper, _ in found), detail="; ".join(text for _, text in found))

    def _methods(self) -> tuple[Method, ...]:
        """Return the methods of the paper, by falling priority in case of equal bounds."""
        return (
            AllocationDirect(),
            AllocationDecomposition(tolerance=self.tolerance),
            AllocationRecursive(tolerance=self.tolerance),
            AllocationAnalytic(tolerance=self.tolerance),
        )

    def _least(self, problem: Allocation, seed: int) -> tuple[float, str]:
        """Return the least bound in one direction, and the method that gives it."""
        upper, text = unamplified(problem), f"{problem.adjacency}: no amplification"
        for method in self._methods():
            if method.applies(problem) is None:
                answer = method.answer(problem, seed)
                if answer.upper < upper:
                    detail = answer.detail.removeprefix(f"{problem.adjacency}: ")
                    upper, text = answer.upper, f"{problem.adjacency}: {method.name}, {detail}"
        return upper, text


def _directions(problem: Allocation) -> list[Allocation]:
    """Return the problem in each direction of its adjacency."""
    return [replace(problem, adjacency=direction) for direction in profile.DIRECTIONS[problem.adjacency]]
