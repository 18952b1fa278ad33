r"""Upper bound of several shuffled epochs: the counts of clones as a finite distribution, composed.

An epoch of steps with pure differential privacy is a post-processing of a pair of counts:
$C \sim \mathrm{Bin}(n - 1, g)$ examples send clones, $A \sim \mathrm{Bin}(C, 1/2)$ of them with the first of
two messages, and the example sends the first message with probability
$a = e^{\varepsilon_1} / (1 + e^{\varepsilon_1})$ under P and $1 - a$ under Q. Gaussian steps differ from such
steps by a total variation of $\tau$ per epoch and side, so by the triangle inequality
$\delta(\varepsilon) \le \delta_{counts^E}(\varepsilon) + (1 + e^\varepsilon) E \tau$.
"""

import math
from functools import lru_cache

import numpy as np
import scipy

from privcore.allocation.shuffling_one_epoch import Clones
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
from privcore.numerics.rounding import CLONE_COUNTS, UNIT, probability_at_most

_BUDGET = 0.6
"""Fraction of delta for the approximation of the Gaussian noise; best among the tenths on five points."""
_SPLIT = 0.3
"""Fraction of this for the pair, best on the same points among 0.5, 0.3, 0.1, 0.03."""
_BLOCKS = 48
"""Largest number of blocks of the count C, each replaced by its smallest value."""
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
