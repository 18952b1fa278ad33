"""Upper bound of one shuffled epoch: an example is hidden among the clones that other examples send."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from privcore.numerics.gaussian import (
    gaussian_delta_bounds,
    gaussian_epsilon_bounds,
    last_true,
    log_gaussian_delta,
)
from privcore.numerics.rounding import CLONE_COUNTS, probability_at_most

SHARE = 0.4
"""Fraction of delta for the approximation of the Gaussian noise by a randomized response."""

LARGEST_EPSILON = 500.0
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
    $(1 + e^\varepsilon) e^{-\varepsilon_0} n \delta_0$. For replace-one, all distances are up to 2.

    Attributes:
        sigma: Noise multiplier.
        others: Number n - 1 of the other examples.
        distance: Largest distance of the two gradients of the example: 1 for zero-out, 2 for replace-one.
    """

    sigma: float
    others: int
    distance: float = 1.0

    def delta(self, epsilon: float, budget: float) -> float:
        """Return an upper bound of delta at epsilon in [0, 500]; 1 if no clones are expected.

        Args:
            epsilon: Privacy loss threshold.
            budget: Approximate cost in delta of the two approximations, > 0; it affects only the tightness.
        """
        terms = self.terms(epsilon, budget)
        if terms is None:
            return 1.0
        pair, rate, cost = terms
        total = clones_delta(pair, rate, self.others, epsilon) + (1.0 + math.exp(epsilon)) * cost
        return probability_at_most(total, CLONE_COUNTS)

    def terms(self, epsilon: float, budget: float, split: float = 0.5) -> tuple[float, float, float] | None:
        """Return the epsilon of the pair, the rate of clones, and the total variation of an epoch and side.

        Args:
            epsilon: As for `delta`.
            budget: As for `delta`.
            split: Share of the budget for the approximation of the pair; the rest is for the clones.

        Returns:
            The total variation is rounded up, the rate down; None if no clones are expected.
        """
        if not 0.0 < budget < 1.0 or self.others == 0:
            return None
        sigma = self.sigma / self.distance
        most = -float(np.logaddexp(0.0, epsilon))
        log_budget = math.log(budget * split) + most
        pair = self._smallest(lambda x: log_gaussian_delta(sigma, x) - np.logaddexp(0.0, x), log_budget)
        log_budget = math.log(budget * (1.0 - split)) + most
        # The cost at distance 2 is by far the larger, so the search leaves out the cost at distance 1.
        log_others = math.log(self.others) - math.log(2.0)
        clone = self._smallest(lambda x: log_others - x + log_gaussian_delta(0.5 * self.sigma, x), log_budget)
        if clone > math.log(self.others):
            return None
        rate = math.nextafter(math.exp(-clone), 0.0)
        cost_pair = gaussian_delta_bounds(sigma, pair)[1] / (1.0 + math.exp(min(pair, 700.0)))
        far = gaussian_delta_bounds(0.5 * self.sigma, clone)[1]
        near = gaussian_delta_bounds(sigma, clone)[1]
        return pair, rate, cost_pair + self.others * math.exp(-clone) * 0.5 * (far + near)

    def _smallest(self, log_cost: Any, log_budget: float) -> float:
        """Return the smallest epsilon, to 1e-6, at which a falling cost is within the budget."""
        low, high = 0.0, 1.0
        while log_cost(high) > log_budget:
            low, high = high, 2.0 * high
        while high - low > 1e-6 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if log_cost(middle) > log_budget else (low, middle)
        return high


def clones_epsilon(clones: Clones, delta: float) -> float:
    """Return an epsilon at which the bound by clones is at most delta; infinity if it stays above delta.

    Args:
        clones: The steps.
        delta: Probability in (0, 1).
    """
    budget = SHARE * delta
    top = min(LARGEST_EPSILON, gaussian_epsilon_bounds(clones.sigma / clones.distance, delta)[1])
    if budget == 0.0 or clones.delta(top, budget) > delta:
        return math.inf
    return last_true(lambda epsilon: clones.delta(epsilon, budget) > delta, 0.0, top)[1]


def clones_profile(clones: Clones, epsilon: float) -> float:
    """Return an upper bound of delta by clones; 1 if clones give no bound.

    Args:
        clones: The steps.
        epsilon: Privacy loss threshold in [0, 500].
    """
    high = math.log(gaussian_delta_bounds(clones.sigma / clones.distance, epsilon)[1])
    best, low = 1.0, high - 60.0
    for _ in range(20):
        # The budget should be a given fraction of the bound.
        middle = 0.5 * (low + high)
        found = clones.delta(epsilon, SHARE * math.exp(middle))
        best = min(best, found)
        low, high = (low, middle) if found <= math.exp(middle) else (middle, high)
    return best
