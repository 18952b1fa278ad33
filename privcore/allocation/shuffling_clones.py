"""Upper bound of shuffling: an example is hidden among the clones of itself that other examples send."""

import math
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import scipy

from privcore.allocation.comparisons import Shuffling, ShufflingEpsilon
from privcore.answer import Answer
from privcore.method import Cost, Direction, Method
from privcore.numerics.gaussian import (
    gaussian_delta_bounds,
    gaussian_epsilon_bounds,
    last_true,
    log_gaussian_delta,
)
from privcore.numerics.rounding import CLONE_COUNTS, probability_at_most
from privcore.papers import FELDMAN_MCMILLAN

_SHARE = 0.4
"""Fraction of delta for the approximation of the Gaussian noise by a randomized response."""

_LARGEST_EPSILON = 500.0
_BLOCKS = 48


def clones_delta(pair_epsilon: float, clone_rate: float, others: int, epsilon: float) -> float:
    r"""Return the hockey-stick divergence of the counts to which a shuffled epoch reduces.

    $C \sim \mathrm{Bin}(n - 1, g)$ other examples send clones, $A \sim \mathrm{Bin}(C, 1/2)$ of them with the
    first of two messages. The example sends the first message with probability
    $a = e^{\varepsilon_1} / (1 + e^{\varepsilon_1})$ under P and $1 - a$ under Q. Given C = c, with $x_0$ the
    smallest count at which P exceeds $e^\varepsilon Q$,

    $$H_c = (a - e^\varepsilon (1 - a)) \Pr(A = x_0 - 1) - (e^\varepsilon - 1) \Pr(A \ge x_0).$$

    One more clone is post-processing, so $H_c$ decreases in c, and all c of a block are replaced by the
    smallest.

    Args:
        pair_epsilon: Epsilon of the pure differential privacy of the step, example against neighbour, > 0.
        clone_rate: Probability g in (0, 1) that another example sends a clone.
        others: Number n - 1 of the other examples, >= 1.
        epsilon: Privacy loss threshold in [0, 500].

    Returns:
        Upper bound in [0, 1].

    Reference:
        Feldman, McMillan and Talwar (2021), arXiv:2012.12803v3, Theorem 3.1 and its proof.

    Example:
        >>> round(clones_delta(pair_epsilon=1.0, clone_rate=0.5, others=100, epsilon=0.1), 6)
        0.017872
    """
    if epsilon >= pair_epsilon:
        return 0.0
    mean = others * clone_rate
    spread = math.sqrt(mean * (1.0 - clone_rate)) + 1.0
    if mean > _BLOCKS:
        edges = np.floor(mean + spread * np.linspace(-11.0 - 60.0 / spread, 1.0, _BLOCKS))
    else:
        edges = np.arange(4.0 * _BLOCKS)
    edges = np.unique(np.clip(edges, 0.0, others))
    edges = np.concatenate(([0.0], edges[edges > 0.0]))
    heights = np.minimum.accumulate(np.minimum(1.0, _given_clones(pair_epsilon, edges, epsilon)))
    # Summation by parts: drops of H times probabilities of fewer clones, without cancellation.
    drops = heights - np.append(heights[1:], 0.0)
    fewer = np.append(scipy.stats.binom.cdf(edges[1:] - 1.0, others, clone_rate), 1.0)
    # 1 - g is rounded before its power is taken: an error of up to n 2^-53; measured: 5e-8 at n = 1e9.
    return min(1.0, float(drops @ fewer) * (1.0 + CLONE_COUNTS + others * 2.0**-51))


def _given_clones(pair_epsilon: float, clones: Any, epsilon: float) -> Any:
    """Return an upper bound of H_c for every number of clones c."""
    kappa, pure = math.exp(epsilon), math.exp(pair_epsilon)
    gain = -pure * math.expm1(epsilon - pair_epsilon) / (1.0 + pure)
    part = math.expm1(epsilon + pair_epsilon) / (math.expm1(pair_epsilon) * (1.0 + kappa))
    best = np.zeros_like(clones)
    for shift in (0.0, 1.0, 2.0):  # despite rounding, the true count is among them
        start = np.floor((clones + 1.0) * part) + shift
        one = scipy.stats.binom.pmf(start - 1.0, clones, 0.5)
        tail = scipy.stats.binom.sf(start - 1.0, clones, 0.5)
        value = gain * one * (1.0 + CLONE_COUNTS) - math.expm1(epsilon) * tail * (1.0 - CLONE_COUNTS)
        best = np.maximum(best, value)
    return best


@dataclass(frozen=True, kw_only=True)
class Clones:
    r"""Bound for a Gaussian step, with its two approximations by pure differential privacy.

    The step is $(\varepsilon_1, \delta_1)$-DP for the example and its neighbour. Wherever the absolute loss
    exceeds $\varepsilon_1$, redistribute the sum of both densities in the ratio $e^{\varepsilon_1} : 1$. This
    gives an $\varepsilon_1$-DP pair with the same mean m, and moves mass $\delta_1 / (1 + e^{\varepsilon_1})$
    of each. Moving mass $e^{-\varepsilon_2} \delta_2$ of the output distribution $\nu$ of another example
    gives a distribution above $e^{-\varepsilon_2} m$, where $\delta_2 = H_{e^{\varepsilon_2}}(m \| \nu)$. So
    with $g = e^{-\varepsilon_2}$

    $$\delta \le \delta_{clones}(\varepsilon; \varepsilon_1, g)
      + (1 + e^\varepsilon) \left( \frac{\delta_1}{1 + e^{\varepsilon_1}} + (n - 1) g \delta_2 \right).$$

    Clipped gradients of two examples have a distance of up to 2, and a clipped gradient has a distance of up
    to 1 from the zero gradient. So
    $\delta_2 = (\delta_{\sigma / 2}(\varepsilon_2) + \delta_\sigma(\varepsilon_2)) / 2$. With the same
    $(\varepsilon_0, \delta_0)$ for both approximations, the last term is at most
    $(1 + e^\varepsilon) e^{-\varepsilon_0} n \delta_0$.

    Attributes:
        sigma: Noise multiplier.
        others: Number n - 1 of the other examples.
    """

    sigma: float
    others: int

    def delta(self, epsilon: float, budget: float) -> float:
        """Return an upper bound of delta at epsilon in [0, 500]; 1 if no clones are expected.

        Args:
            epsilon: Privacy loss threshold.
            budget: Approximate cost in delta of the two approximations, > 0; it affects only the tightness.
        """
        if not 0.0 < budget < 1.0 or self.others == 0:
            return 1.0
        log_budget = math.log(budget / 2.0) - float(np.logaddexp(0.0, epsilon))
        pair = self._smallest(lambda x: log_gaussian_delta(self.sigma, x) - np.logaddexp(0.0, x), log_budget)
        # The cost at distance 2 is by far the larger, so the search leaves out the cost at distance 1.
        log_others = math.log(self.others) - math.log(2.0)
        clone = self._smallest(lambda x: log_others - x + log_gaussian_delta(0.5 * self.sigma, x), log_budget)
        if clone > math.log(self.others):
            return 1.0
        rate = math.nextafter(math.exp(-clone), 0.0)
        cost_pair = gaussian_delta_bounds(self.sigma, pair)[1] / (1.0 + math.exp(min(pair, 700.0)))
        far = gaussian_delta_bounds(0.5 * self.sigma, clone)[1]
        near = gaussian_delta_bounds(self.sigma, clone)[1]
        cost = cost_pair + self.others * math.exp(-clone) * 0.5 * (far + near)
        total = clones_delta(pair, rate, self.others, epsilon) + (1.0 + math.exp(epsilon)) * cost
        return probability_at_most(total, CLONE_COUNTS)

    def _smallest(self, log_cost: Any, log_budget: float) -> float:
        """Return the smallest epsilon, to 1e-6, at which a falling cost is within the budget."""
        low, high = 0.0, 1.0
        while log_cost(high) > log_budget:
            low, high = high, 2.0 * high
        while high - low > 1e-6 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if log_cost(middle) > log_budget else (low, middle)
        return high


def clones_epsilon(sigma: float, steps: int, delta: float) -> float:
    """Return an epsilon at which the bound by clones is at most delta; infinity if it stays above delta.

    Args:
        sigma: Noise multiplier.
        steps: Number n of steps and of examples.
        delta: Probability in (0, 1).
    """
    clones, budget = Clones(sigma=sigma, others=steps - 1), _SHARE * delta
    top = min(_LARGEST_EPSILON, gaussian_epsilon_bounds(sigma, delta)[1])
    if budget == 0.0 or clones.delta(top, budget) > delta:
        return math.inf
    return last_true(lambda epsilon: clones.delta(epsilon, budget) > delta, 0.0, top)[1]


def clones_profile(sigma: float, steps: int, epsilon: float) -> float:
    """Return an upper bound of delta by clones; 1 if clones give no bound.

    Args:
        sigma: Noise multiplier.
        steps: Number n of steps and of examples.
        epsilon: Privacy loss threshold in [0, 500].
    """
    clones = Clones(sigma=sigma, others=steps - 1)
    high = math.log(gaussian_delta_bounds(sigma, epsilon)[1])
    best, low = 1.0, high - 60.0
    for _ in range(20):
        # The budget should be a given fraction of the bound.
        middle = 0.5 * (low + high)
        found = clones.delta(epsilon, _SHARE * math.exp(middle))
        best = min(best, found)
        low, high = (low, middle) if found <= math.exp(middle) else (middle, high)
    return best


@dataclass(frozen=True, kw_only=True)
class ShufflingClones(Method[Shuffling]):
    """Bound shuffling by the clones of Feldman et al., or by no amplification if that is less.

    Examples have clipped gradients, of norm at most 1; the neighbour has the zero gradient in one place of
    the permutation. The bound is the same in both directions. Clones are sent by examples whose gradients
    have a distance of up to 2; with a distance of 1 the formula would fall below `shuffling.largest`.
    """

    name = "shuffling.clones"
    problems = get_args(Shuffling)
    direction = Direction.UPPER
    reference = f"{FELDMAN_MCMILLAN}, Theorem 3.1; approximate differential privacy as proved in the code"

    def cost(self, problem: Shuffling) -> Cost:
        return Cost(seconds=0.15, bytes=1e6)

    def answer(self, problem: Shuffling, seed: int) -> Answer:
        sigma, n = problem.sigma, problem.steps
        if problem.epochs > 1 or problem.adjacency == "replace-one":
            return unamplified(problem)
        if isinstance(problem, ShufflingEpsilon):
            local = gaussian_epsilon_bounds(sigma, problem.delta)[1]
            clones = clones_epsilon(sigma, n, problem.delta)
        else:
            local = gaussian_delta_bounds(sigma, problem.epsilon)[1]
            clones = 1.0
            if abs(problem.epsilon) <= _LARGEST_EPSILON:
                clones = clones_profile(sigma, n, abs(problem.epsilon))
                if (
                    problem.epsilon < 0.0
                ):  # delta(x) = 1 - e^x + e^x delta'(-x), delta' that of the other direction
                    clones = -math.expm1(problem.epsilon) + math.exp(problem.epsilon) * clones
                    clones = math.nextafter(clones * (1.0 + CLONE_COUNTS), 2.0)
        if clones < local:
            return Answer.at_most(clones, detail="amplification by clones")
        return Answer.at_most(local, detail="no amplification")


def unamplified(problem: Shuffling) -> Answer:
    """Return the bound without amplification, for steps that are public."""
    distance = 2.0 if problem.adjacency == "replace-one" else 1.0
    sigma = problem.sigma / (distance * math.sqrt(problem.epochs))
    if isinstance(problem, ShufflingEpsilon):
        upper = gaussian_epsilon_bounds(sigma, problem.delta)[1]
    else:
        upper = gaussian_delta_bounds(sigma, problem.epsilon)[1]
    return Answer.at_most(upper, detail="no amplification: nothing better is known at this noise")
