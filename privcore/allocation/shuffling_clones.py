r"""Upper ends for shuffled batches by clones: counts of their outputs in one epoch, and their composition.

An epoch of steps with pure differential privacy is a post-processing of a pair of counts:
$C \sim \mathrm{Bin}(n - 1, g)$ examples send clones, $A \sim \mathrm{Bin}(C, 1/2)$ of them with the first of
two messages, and the example sends the first message with probability
$a = e^{\varepsilon_1} / (1 + e^{\varepsilon_1})$ under P and $1 - a$ under Q. Gaussian steps differ from such
steps by a total variation of $\tau$ per epoch and side, so by the triangle inequality
$\delta(\varepsilon) \le \delta_{counts^E}(\varepsilon) + (1 + e^\varepsilon) E \tau$.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
import scipy

from privcore import params
from privcore.allocation.problems import SHUFFLING, Shuffling
from privcore.answer import Answer
from privcore.likelihood_ratio import profile
from privcore.likelihood_ratio.distribution import (
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
    conditional_means,
    mean_preserving_spread,
    product_of,
)
from privcore.likelihood_ratio.grid import Array, choose_edges, coarsen, collect
from privcore.likelihood_ratio.questions import SHARE, SMALLEST_DELTA, first_fineness, powering, tier
from privcore.method import Cost, Direction, Method
from privcore.numerics.gaussian import (
    gaussian_bounds,
    gaussian_delta_bounds,
    gaussian_epsilon_bounds,
    last_true,
    log_gaussian_delta,
)
from privcore.numerics.rounding import CLONE_COUNTS, UNIT, probability_at_most
from privcore.papers import FELDMAN_MCMILLAN

TAIL_SHARE = 0.4
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
    budget = TAIL_SHARE * delta
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
        found = clones.delta(epsilon, TAIL_SHARE * math.exp(middle))
        best = min(best, found)
        low, high = (low, middle) if found <= math.exp(middle) else (middle, high)
    return best


_BUDGET = 0.6
"""Fraction of delta for the approximation of the Gaussian noise; best among the tenths on five points."""
_SPLIT = 0.3
"""Fraction of this for the pair, best on the same points among 0.5, 0.3, 0.1, 0.03."""

_NARROW = 0.004
"""Relative width of a block that is narrow enough: epsilon changes by half of it."""
_CUT = 1e-3
"""Share of the tail of a resolution that the cut tails of the counts may have."""
_COARSE = 1.0 / 8.0
"""Width of cells, in local standard deviations, while the approximation is chosen."""


@lru_cache(maxsize=16)
def counts(pair_epsilon: float, clone_rate: float, others: int, res: Resolution) -> RatioBracket:
    """Return a bracket whose upper distribution dominates the counts of one epoch, to be shared.

    Fewer clones are more informative, and every block of the number of clones is replaced by its smallest
    value. The lower distribution belongs to these blocks, too: it guides the grid and bounds nothing.

    Args:
        pair_epsilon: Epsilon of the pure differential privacy of the step, example against neighbour, > 0.
        clone_rate: Probability g in (0, 1) that another example sends a clone.
        others: Number n - 1 of the other examples, >= 1.
        res: Resolution of the cells.

    Raises:
        LikelihoodRangeError: The ratios exceed the range of doubles.

    Reference:
        Feldman, McMillan and Talwar (2021), arXiv:2012.12803v3, Theorem 3.1 and its proof.
    """
    blocks = [
        (weight, *_given(pair_epsilon, int(clones), res.tail))
        for clones, weight in zip(*_weights(clone_rate, others, res.tail), strict=True)
        if weight > 0.0
    ]
    pictures = [coarsen(x, weight * q, 2 * _BLOCKS) for weight, x, q, _ in blocks]
    x, q = (np.concatenate(parts) for parts in zip(*pictures, strict=True))
    order = np.argsort(x)
    edges = choose_edges(x[order], q[order], res.fineness, res.tail, False, 0.0, 0.0)
    if edges.size < 2:
        raise LikelihoodRangeError
    mass, moment, cut, atoms = np.zeros(edges.size), np.zeros(edges.size), 0.0, 0
    for weight, x, q, beyond in blocks:
        found = collect(x, weight * q, np.ones(1), np.ones(1), edges, False, True)
        mass, moment, atoms = mass + found[0], moment + found[1], max(atoms, x.size)
        cut += weight * beyond
    mass[0] += cut  # spread to 0 and to infinity, which dominates
    rounding = 4.0 * (4 * atoms + 64) * UNIT + 2.0 * cut
    cells = RatioDistribution(
        x=edges, p=mass, infinite=cut, mass_error=rounding, value_error=(16.0 + 4.0 * pair_epsilon) * UNIT
    )
    return RatioBracket(
        lower=conditional_means(cells, moment, atoms + len(blocks)),
        upper=mean_preserving_spread(cells, moment, atoms + len(blocks)),
    )


def _weights(clone_rate: float, others: int, tail: float) -> tuple[Array, Array]:
    """Return the smallest counts of clones in blocks, and their probabilities.

    The probabilities of fewer clones than a block has are rounded up, which moves mass to fewer clones.
    """
    mean = others * clone_rate
    spread = math.sqrt(mean * (1.0 - clone_rate)) + 1.0
    deepest = math.sqrt(2.0 * math.log(1.0 / (_CUT * tail)))
    if mean > _BLOCKS:
        several = math.ceil((deepest + 1.0) * spread / (_NARROW * mean))
        edges = np.floor(
            mean + spread * np.linspace(-deepest - 60.0 / spread, 1.0, min(_BLOCKS, several + 1))
        )
    else:
        edges = np.arange(4.0 * _BLOCKS)
    edges = np.unique(np.clip(edges, 0.0, others))
    edges = np.concatenate(([0.0], edges[edges > 0.0]))
    # 1 - g is rounded before its power is taken: an error of up to n 2^-53, as in `clones_delta`
    error = CLONE_COUNTS + others * 2.0**-51
    fewer = np.minimum(1.0, scipy.stats.binom.cdf(edges[1:] - 1.0, others, clone_rate) * (1.0 + error))
    fewer = np.concatenate(([0.0], np.maximum.accumulate(fewer), [1.0]))
    return edges, np.diff(fewer)


def _given(pair_epsilon: float, clones: int, tail: float) -> tuple[Array, Array, float]:
    """Return values and masses of the ratio given the number of clones, and the mass and mean cut off.

    With B a binomial count of c + 1 trials at 1/2 and m = c + 1, the count k has probability 2 Pr(B = k) (a k
    + (1 - a) (m - k)) / m under P, and the same with a and 1 - a exchanged under Q. Tails of B beyond z
    standard deviations have together at most 2 exp(-z^2 / 2) (Hoeffding), their masses at most twice this.
    """
    m = clones + 1
    deepest = math.sqrt(2.0 * math.log(4.0 / (_CUT * tail)))
    middle, reach = m // 2, math.ceil(0.5 * deepest * math.sqrt(m)) + 1
    above = np.arange(middle, min(m, middle + reach), dtype=float)
    below = np.arange(middle, max(0, middle - reach), -1.0)
    rising, falling = np.cumprod((m - above) / (above + 1.0)), np.cumprod(below / (m - below + 1.0))
    base = np.concatenate((falling[::-1], [1.0], rising))
    base /= np.sum(base)
    k = np.concatenate((below[::-1] - 1.0, [float(middle)], above + 1.0))
    share = k / m
    yes, no = 1.0 / (1.0 + math.exp(-pair_epsilon)), 1.0 / (1.0 + math.exp(pair_epsilon))
    p, q = yes * share + no * (1.0 - share), no * share + yes * (1.0 - share)
    beyond = 4.0 * math.exp(-0.5 * deepest * deepest) if k.size <= m else 0.0
    return p / q, 2.0 * base * q, beyond


def composed_epsilon(clones: Clones, epochs: int, delta: float, top: float, tolerance: float) -> float:
    """Return an epsilon at which the composed bound is at most delta; infinity if it is not below `top`.

    Args:
        clones: The steps of an epoch.
        epochs: Number E of epochs.
        delta: Probability in (0, 1).
        top: Epsilon of another bound.
        tolerance: Relative tightness.
    """
    if delta < SMALLEST_DELTA:
        return math.inf
    best, guess = math.inf, top
    for _ in range(9):  # the approximation depends on epsilon, which is not known yet
        found = _epsilon(clones, epochs, delta, guess, _COARSE)
        if found < min(best, top):
            best = found
        elif best < math.inf:
            break
        guess = min(0.5 * guess, best)
    fineness = first_fineness("epsilon", tolerance, powering(epochs))
    for _ in range(3 if best < math.inf else 0):
        last, found = best, _epsilon(clones, epochs, delta, 1.000001 * best, fineness)
        best = min(best, found)
        if not found < (1.0 - 0.1 * tolerance) * last:
            break
    return best


def _epsilon(clones: Clones, epochs: int, delta: float, guess: float, fineness: float) -> float:
    """Return the bound with the approximation for a guess of epsilon; infinity if epsilon exceeds it."""
    terms = clones.terms(guess, _BUDGET * delta / epochs, _SPLIT)
    law = terms and _composed(*terms[:2], clones.others, epochs, delta, fineness)
    if not terms or not law:
        return math.inf
    epsilon = profile.epsilon_upper(law, (1.0 - _BUDGET) * delta, "add-remove")
    if epsilon > guess or (1.0 - _BUDGET) * delta + _cost(epochs, epsilon, terms[2]) > delta:
        return math.inf
    return epsilon


def composed_delta(clones: Clones, epochs: int, epsilon: float, top: float, tolerance: float) -> float:
    """Return an upper bound of delta over all epochs; 1 if clones give no bound below `top`.

    Args:
        clones: The steps of an epoch.
        epochs: Number E of epochs.
        epsilon: Privacy loss threshold, at most 500.
        top: Delta of another bound.
        tolerance: Relative tightness.
    """
    best, budget = 1.0, 0.0
    high = math.log(max(top, SMALLEST_DELTA))
    low = max(high - 100.0, math.log(SMALLEST_DELTA))
    for _ in range(12):  # the cost of the approximation should be a given share of the bound
        middle = 0.5 * (low + high)
        found = _delta(clones, epochs, epsilon, math.exp(middle), _COARSE)
        if found < best:
            best, budget = found, math.exp(middle)
        low, high = (low, middle) if found <= math.exp(middle) else (middle, high)
    if not best < top:
        return best
    return min(
        best, _delta(clones, epochs, epsilon, budget, first_fineness("delta", tolerance, powering(epochs)))
    )


def _delta(clones: Clones, epochs: int, epsilon: float, scale: float, fineness: float) -> float:
    """Return the bound with the approximation for a delta of this size."""
    terms = clones.terms(epsilon, _BUDGET * scale / epochs, _SPLIT)
    law = terms and _composed(*terms[:2], clones.others, epochs, scale, fineness)
    if not terms or not law:
        return 1.0
    found = profile.delta_upper(law, epsilon, "add-remove") + _cost(epochs, epsilon, terms[2])
    return probability_at_most(found, CLONE_COUNTS)


def _composed(
    pair_epsilon: float, clone_rate: float, others: int, epochs: int, delta: float, fineness: float
) -> RatioDistribution | None:
    """Return the dominating distribution of all epochs; None beyond the range of doubles."""
    res = Resolution(fineness=fineness, tail=tier(SHARE * delta) * tier(1.0 / epochs))
    try:
        return product_of(counts(pair_epsilon, clone_rate, others, res), epochs, res).upper
    except LikelihoodRangeError:
        return None


def _cost(epochs: int, epsilon: float, variation: float) -> float:
    """Return the cost in delta of the total variation of all epochs, rounded up."""
    return (1.0 + math.exp(epsilon)) * epochs * variation * (1.0 + CLONE_COUNTS)


class ShufflingClones(Method[Shuffling]):
    """Bound shuffling by the clones of Feldman et al., or by no amplification if that is less.

    Examples have clipped gradients, of norm at most 1; the neighbour has the zero gradient, or any other for
    replace-one, in one place of the permutation. The bound is the same in both directions. Clones are sent by
    examples whose gradients have a distance of up to 2; with a distance of 1 the formula would fall below
    `shuffling.largest`. Of every batch one example is designated, and all others and their places are
    revealed; the designated examples are uniformly permuted over the batches. So the bound holds for batches
    of any size. The counts of clones of several epochs are composed. If the order is kept for all epochs and
    gradients depend on earlier outputs, nothing better than no amplification is known.
    """

    name = "shuffling.clones"
    problems = SHUFFLING
    direction = Direction.UPPER
    reference = f"{FELDMAN_MCMILLAN}, Theorem 3.1; batches, noise and epochs: docs/shuffling.md"

    tolerance: Annotated[float, params.TOLERANCE] = 0.01

    def cost(self, problem: Shuffling) -> Cost:
        several = 0.2 if problem.asks == "epsilon" else 0.4
        return Cost(
            seconds=0.15 if problem.epochs == 1 else several, bytes=1e6 if problem.epochs == 1 else 5e7
        )

    def answer(self, problem: Shuffling, seed: int) -> Answer:
        distance = 2.0 if problem.adjacency == "replace-one" else 1.0
        sigma = problem.sigma / (distance * math.sqrt(problem.epochs))
        clones = Clones(sigma=problem.sigma, others=problem.steps - 1, distance=distance)
        local = gaussian_bounds(problem.asks, sigma, problem.at)[1]
        if problem.redraw == "once" and problem.epochs > 1:
            return Answer.at_most(local, detail=f"no amplification; {_KEPT}")
        read = self._epsilon if problem.asks == "epsilon" else self._delta
        found = read(clones, problem.epochs, problem.at, local)
        if found < local:
            return Answer.at_most(found, detail="amplification by clones")
        return Answer.at_most(local, detail=f"no amplification; {_UNKNOWN}")

    def _epsilon(self, clones: Clones, epochs: int, delta: float, local: float) -> float:
        """Return the bound of epsilon by clones."""
        if epochs == 1:
            return clones_epsilon(clones, delta)
        return composed_epsilon(clones, epochs, delta, min(local, LARGEST_EPSILON), self.tolerance)

    def _delta(self, clones: Clones, epochs: int, epsilon: float, local: float) -> float:
        """Return the bound of delta by clones."""
        if abs(epsilon) > LARGEST_EPSILON:
            return 1.0
        if epochs > 1:
            return composed_delta(clones, epochs, epsilon, local, self.tolerance)
        found = clones_profile(clones, abs(epsilon))
        if epsilon < 0.0:  # delta(x) = 1 - e^x + e^x delta'(-x), delta' that of the other direction
            found = -math.expm1(epsilon) + math.exp(epsilon) * found
            found = math.nextafter(found * (1.0 + CLONE_COUNTS), 2.0)
        return found


_UNKNOWN = "no better upper end is known at this noise without the batch size"
_KEPT = "no better upper end is known for an order that is kept for all epochs"
