r"""Upper ends for shuffled batches, if every epoch uses all examples: docs/shuffling.md.

A place of the first batch is a hole that takes the example w displaced by x. The output of the first step
gives each w a factor $r_w$ of mean 1 over all w, and a batch the mean $W_i$ of its factors as a weight. With
the numbers D of `shuffled`, $H_\kappa$ is at most $\mathbb E (D_1 + \sum_{i=2}^t W_i D_i)_+ / t$, for which
there are two bounds: from moments of the factors (`by_moments`), and from a cap on them (`by_cap`).
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import scipy

from privcore.likelihood_ratio.allocated import shuffled
from privcore.likelihood_ratio.allocated.differences import signed_law
from privcore.likelihood_ratio.chords import from_profile, thresholds_of
from privcore.likelihood_ratio.distribution import (
    RatioDistribution,
    Resolution,
)
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.potential import from_potential, potential_of
from privcore.likelihood_ratio.signed import SignedLaw, SumCells, mean_excess, sum_of
from privcore.numerics.compiled import compiled
from privcore.numerics.rounding import SUMMED, UNIT

FINENESS = 0.07
"""Width of the cells of sums, in local scales: they add .7 % to the profile."""
COARSE = 0.3
"""Width of the cells for the choice of a bound."""
BETWEEN = 0.3
"""Distance of the thresholds of the profile, in local standard deviations."""
WORK = 250
"""Time of a profile for each doubling of the steps, in combinations of two distributions."""
RATIO = 1.4
"""Ratio of the distances from 1 of neighbouring weights."""
NEAREST = 0.1
"""The smallest distance, in standard deviations of the weights of the smallest variance."""
VARIANCES: Array = 0.05 * np.power(1.5, np.arange(28.0))
"""Variances of the weights for which sums are computed, relative to that for Psi = 2."""
FEWER = 3
"""A choice uses each third variance."""
HOPELESS = 5.0
"""Quotient of a rough bound by moments and one by a cap from which only the cap counts."""
MOMENTS = np.geomspace(1.0, 64.0, 19)
"""Exponents q of the moments of Psi."""
RARITIES = {"remove": (1.0,), "add": (1.0, 4.0)}
"""Values of L; below 0, where most of D lies in direction add, weights of both signs cost much."""
CELLS = 4096
"""Number of cells of the mean gradient, for the bound of a moment."""
FARTHEST = 4.0
"""Largest level of the potentials, in units of minus the lowest node of a sum."""
CUTS = 60
"""Number of values of D at which the first term may be cut."""
CAPS = 4.0 * 1.4 ** np.arange(40)
"""Caps M' on the factors."""
MARGINS = (1.1, 1.3, 1.7, 2.5)
"""Quotients of both caps, M' / M."""
MOST_COUNTED = 1e5
"""Largest mean number of capped factors in a batch."""
NODES = 48
"""Number of nodes to which this number is spread."""


OTHER = {"remove": "add", "add": "remove"}


@dataclass(frozen=True)
class AllUsedAbove(shuffled.EpochAbove):
    """Ratio that dominates a shuffled epoch of at least 3 batches that uses all examples.

    Attributes:
        batch: Number b of examples in each batch; a smaller number is valid, too.
        kept: Share of the examples in a smaller last batch after these, or 0.
    """

    batch: int
    kept: float = 0.0

    def law(self, tail: float) -> RatioDistribution:
        return dominating(self, tail)

    @property
    def combinations(self) -> int:
        return WORK * (1 + self.steps.bit_length())


class WeightedStep(NamedTuple):
    """The number D of a step at a threshold, and the choice of the cells of sums."""

    one: SignedLaw
    """Distribution of D, from above."""
    opposite: SignedLaw
    """Distribution of -D, from above: $D$ of the other direction at 1 / kappa, times kappa."""
    s: float
    steps: int
    batch: int
    cells: SumCells

    @property
    def variances(self) -> Array:
        """The variances for which sums are computed."""
        return VARIANCES[:: FEWER if self.cells.fineness >= COARSE else 1]

    @property
    def others(self) -> int:
        """The number N of examples outside the first batch."""
        return self.batch * (self.steps - 1)

    def revealed(self, level: Array) -> Array:
        """Return the bound of the later steps given the first term, for every weight: no amplification."""
        later = self.steps - 1.0
        return later / self.steps * potential_of(self.one).at(-level / later) * (1.0 + 8.0 * UNIT)

    def levels(self) -> Array:
        """Return the levels at which potentials are computed."""
        x = self.one.x
        level: Array = np.unique(np.concatenate((x[:: 2 if x.size > 200 else 1], [0.0, x[-1]])))
        far = FARTHEST * self.cells.low / level[-1]
        return np.append(level, level[-1] * far ** (np.arange(1, 13) / 12.0)) if far > 1.0 else level

    def scaled(self, level: Array, weights: Array) -> Array:
        """Return upper bounds of the mean of (W D - c)_+ for levels c and numbers W, a column for each W."""
        above, below = potential_of(self.one), potential_of(self.opposite)
        columns = [
            abs(w) * (above if w > 0.0 else below).at(level / abs(w)) if w else np.maximum(-level, 0.0)
            for w in weights.tolist()
        ]
        return np.array(columns).T * (1.0 + 8.0 * UNIT)

    def cuts(self) -> tuple[Array, Array]:
        """Return values at which the first term may be cut, and the mean that is beyond them, over t."""
        x = self.one.x[self.one.x > 0.0]
        x = x[:: max(1, x.size // CUTS)]
        return x, potential_of(self.one).at(x) / float(self.steps)


@lru_cache(maxsize=1024)
def moment(q: float, s: float) -> float:
    r"""Return an upper bound of $\mathbb E \Psi^q - 1$ for all populations of gradients; it may be infinite.

    Args:
        q: Exponent, >= 1.
        s: Inverse noise multiplier.

    Example:
        >>> 2.8 < moment(1.0, 1 / 1.1) < 2.9
        True
    """
    m = np.arange(CELLS + 1) / CELLS
    low, high = m[:-1], m[1:]
    with np.errstate(over="ignore", invalid="ignore"):
        mean = 0.5 * q * s * s * (1.0 - low * low)
        far = (1.0 - low) / (1.0 + low) * np.expm1(0.5 * q * (q + 1.0) * s * s * np.square(1.0 + high))
        most = float(np.max(np.expm1(mean) + np.exp(mean) * far))
    return most * (1.0 + SUMMED) if math.isfinite(most) else math.inf


@lru_cache(maxsize=4096)
def beyond_cap(cap: float, s: float) -> float:
    r"""Return an upper bound of the mean of $(r_w - M)_+$ for all populations of gradients, at most 1.

    Args:
        cap: The cap M.
        s: Inverse noise multiplier.

    Example:
        >>> 1e-4 < beyond_cap(160.0, 1 / 1.1) < 1e-3
        True
    """
    m, share = np.arange(129) / 128.0, np.geomspace(0.05, 1.0, 128)
    low, high = m[:-1, None], m[1:, None]
    variance = 1.0 - low * low
    log_ratio = math.log(cap) - 0.5 * s * s * variance
    least = (1.0 + high) * share[0] * s
    if float(np.min(log_ratio - np.sqrt(least**2 + 0.25 * least**4))) <= 0.0:
        return 1.0
    shift = (1.0 + high) * share[None, 1:] * s
    at = log_ratio / shift - 0.5 * shift
    mills = [math.sqrt(0.5 * math.pi) * scipy.special.erfcx(x / math.sqrt(2.0)) for x in (at, at + shift)]
    excess = np.exp(-0.5 * at * at) / math.sqrt(2.0 * math.pi) * (mills[0] - mills[1])
    found = float(np.max(variance / np.square((1.0 + low) * share[None, :-1]) * excess)) * (1.0 + SUMMED)
    return min(1.0, found) if math.isfinite(found) else 1.0


@compiled()
def _envelopes(variance: Array, values: Array, at: Array) -> Array:
    """Return, per row of values, the least concave and rising function above the points, at ascending places.

    Args:
        variance: Places of the points, ascending, the first 0.
        values: Values of the points, a row for each function.
        at: Places of the result, ascending.
    """
    found = np.empty((values.shape[0], at.size))
    kept = np.empty(variance.size, np.int64)
    for row in range(values.shape[0]):
        v = values[row]
        size = 0
        for k in range(variance.size):
            if size > 0 and v[k] <= v[kept[size - 1]]:
                continue
            while size > 0 and variance[kept[size - 1]] == variance[k]:
                size -= 1
            while size > 1:
                i, j = kept[size - 2], kept[size - 1]
                if (v[k] - v[j]) * (variance[j] - variance[i]) < (v[j] - v[i]) * (variance[k] - variance[j]):
                    break
                size -= 1
            kept[size] = k
            size += 1
        j = 0
        for k in range(at.size):
            while j < size - 1 and variance[kept[j + 1]] <= at[k]:
                j += 1
            found[row, k] = v[kept[j]]
            if j < size - 1:
                left, right = kept[j], kept[j + 1]
                found[row, k] += (
                    (at[k] - variance[left]) / (variance[right] - variance[left]) * (v[right] - v[left])
                )
    return found


def _distances(least: float, most: float) -> Array:
    """Return distances of weights from 1, ascending, the last one a little more than the largest."""
    count = max(1, math.ceil(math.log(most / least) / math.log(RATIO)))
    return np.append(least * RATIO ** np.arange(count), most * (1.0 + 8.0 * UNIT))


def weighted(step: WeightedStep, low: float, high: float, variances: Array) -> list[SignedLaw]:
    r"""Return a distribution above W D for all W of mean 1 and at most a variance, for each variance.

    $\mathbb E (W D - c)_+$ is convex in W. So a weight may move to neighbouring nodes with its mean kept: the
    chord of $(W - 1)^2$ is at most this over `nearly`, or a quarter of the square of the smallest distance
    more. On nodes every distribution of mean 1 is a mixture of pairs, so the supremum is the least concave
    function above the values of pairs, in terms of their variances.

    Args:
        step: The number D.
        low: Largest distance of W from 1 downwards.
        high: Largest distance upwards.
        variances: Variances, ascending; the second one chooses the nodes.
    """
    least = NEAREST * math.sqrt(float(variances[1]))
    down, up = _distances(least, low), _distances(least, high)
    nearly = 4.0 * RATIO / (1.0 + RATIO) ** 2
    level = step.levels()
    at_one, left, right = (step.scaled(level, w) for w in (np.ones(1), 1.0 - down, 1.0 + up))
    both = down[:, None] + up[None, :]
    pairs = left[:, :, None] * (up[None, :] / both) + right[:, None, :] * (down[:, None] / both)
    variance = np.multiply.outer(down, up).ravel()
    order = np.argsort(variance)
    values = np.concatenate((at_one, pairs.reshape(level.size, -1)[:, order]), axis=1)
    moved = (variances / nearly + 0.25 * least * least) * (1.0 + SUMMED)
    found = _envelopes(np.append(0.0, variance[order]), values, moved) * (1.0 + 64.0 * UNIT)
    return [from_potential(level, u) for u in found.T]


def by_moments(step: WeightedStep, rarity: float) -> float:
    r"""Return an upper bound of the divergence from the moments of $\Psi$, the mean of $r_w^2$.

    Args:
        step: The number D.
        rarity: Each place has a factor with probability 1 / L, multiplied by L >= 1.
    """
    t, n = float(step.steps), step.others
    hit = -rarity * math.expm1(n * math.log1p(-1.0 / (rarity * n)))
    coupling = (n * hit - 1.0) / (n - 1.0) * (1.0 - SUMMED)
    unit = 1.0 / (step.batch * coupling**2)
    variances = (rarity - 1.0) * unit + np.append(0.0, step.variances) * rarity * unit
    first, *laws = weighted(step, 1.0 / coupling, (rarity * n - 1.0) / coupling, variances)
    rest = sum_of(step.one if rarity == 1.0 else first, step.steps - 1, step.cells)
    main = mean_excess(rest, step.one, 0.0) / t
    cuts, left = step.cuts()
    places = np.unique(np.concatenate((-rest.x, cuts)))
    places = places[places <= cuts[-1]]
    least = potential_of(rest)
    base = least.at(-places) / t * (1.0 - 4.0 * least.error)

    def over(values: Array) -> Array:
        """Return the excess over the base in cells that end at the places, from convex upper bounds there."""
        excess = np.maximum(values - base, 0.0)  # the base is linear in every cell
        ends: Array = np.maximum(excess, np.append(0.0, excess[:-1]))
        return ends

    always = over(step.revealed(places))
    grown = [
        np.minimum(always, over(potential_of(sum_of(law, step.steps - 1, step.cells)).at(-places) / t))
        for law in laws
    ]
    up_to = np.array([np.maximum.accumulate(each) for each in (*grown, always)])[
        :, np.searchsorted(places, cuts)
    ]
    return (main + float(np.min(_tail(np.maximum.accumulate(up_to, axis=0), step) + left))) * (
        1.0 + 64.0 * UNIT
    )


def _tail(most: Array, step: WeightedStep) -> Array:
    r"""Return upper bounds of the mean of an excess that is at most $\alpha + \beta (\Psi^q - 1)$, per cut.

    Args:
        most: Largest excess if the weights have at most each of the variances, and without a limit, by cut.
        step: The number D.
    """
    moments = np.array([moment(float(q), step.s) for q in MOMENTS])
    finite = np.isfinite(moments)
    rates = (
        moments[finite, None] / np.expm1(MOMENTS[finite, None] * np.log1p(step.variances)) * (1.0 + SUMMED)
    )
    found: Array = most[-1].copy()
    for j in range(most.shape[0] - 1):
        beyond = np.max(rates[:, j:, None] * (most[None, j + 1 :] - most[j]), axis=1)
        found = np.minimum(found, most[j] + beyond.min(axis=0, initial=math.inf))
    return found


def by_cap(step: WeightedStep, cap: float) -> float:
    r"""Return an upper bound of the divergence from a cap on the factors, and the mean beyond it.

    Args:
        step: The number D.
        cap: The cap M', at most half of the number of other examples.
    """
    marked = math.floor(step.others / cap)
    share = marked / step.others
    coupling = 1.0 - 0.5 / math.sqrt(marked * (1.0 - share)) - 8.0 * UNIT
    mean = step.batch * share
    count, p, rest = _poisson(mean)
    weights = 1.0 + (count / mean - 1.0) / coupling
    level = step.levels()
    bound = (step.scaled(level, weights) @ p) * (1.0 + 4.0 * NODES * UNIT)
    law = from_potential(level, bound + rest / (mean * coupling) * float(bound[0]))
    first, left = step.cuts()
    beyond = min(beyond_cap(cap / margin, step.s) * margin / (margin - 1.0) for margin in MARGINS)
    late = min(1.0, beyond * (1.0 + 8.0 * UNIT)) * step.revealed(first)
    main = mean_excess(sum_of(law, step.steps - 1, step.cells), step.one, 0.0) / step.steps
    return (main + float(np.min(late + left))) * (1.0 + 64.0 * UNIT)


def _poisson(mean: float) -> tuple[Array, Array, float]:
    """Return nodes and masses above a Poisson distribution in convex order, and the mass left out.

    Beyond the last number less than e^-600 is left out, by Chernoff's bound.
    """
    deviation = math.sqrt(mean)
    last = math.ceil(mean + 40.0 * deviation + 150.0)
    count = np.arange(last + 1.0)
    log_factorial = scipy.special.gammaln(count + 1.0)
    log_p = count * math.log(mean) - mean - log_factorial
    p = np.exp(log_p) * (1.0 + 8.0 * UNIT * (count * abs(math.log(mean)) + mean + log_factorial + 8.0))
    body = mean + deviation * np.linspace(-6.0, 6.0, NODES // 2)
    far = mean + deviation * np.geomspace(6.0, (last - mean) / deviation, NODES // 2)
    nodes = np.unique(
        np.concatenate(([0.0, float(last)], np.clip(np.round(np.append(body, far)), 0.0, last)))
    )
    j = np.clip(np.searchsorted(nodes, count, side="right"), 1, nodes.size - 1)
    right = (count - nodes[j - 1]) / (nodes[j] - nodes[j - 1])
    mass = np.bincount(j, p * right, nodes.size) + np.append(
        np.bincount(j, p * (1.0 - right), nodes.size)[1:], 0.0
    )
    return nodes, mass * (1.0 + (count.size + 16) * UNIT), 1e-250


def profile_above(epoch: AllUsedAbove, direction: str, threshold: float, res: Resolution) -> float:
    """Return an upper bound of the hockey-stick divergence of a shuffled epoch that uses all examples.

    Args:
        epoch: The epoch.
        direction: `remove` or `add`.
        threshold: Threshold kappa, >= 1.
        res: Width of the cells in local scales, and the mean that may lie beyond them.

    Raises:
        LikelihoodRangeError: The ratios that matter exceed the range of doubles.

    Example:
        >>> mnist = AllUsedAbove(1 / 1.1, 234, "zero-out", batch=256)
        >>> res = Resolution(fineness=0.1, tail=1e-12)
        >>> 0.0025 < profile_above(mnist, "remove", 2.7182818, res) < 0.0027
        True
    """
    rough = _step(epoch, direction, threshold, Resolution(fineness=max(COARSE, res.fineness), tail=res.tail))
    alone = float(potential_of(rough.one).at(np.zeros(1))[0])
    if alone <= res.tail:
        return alone
    by_rarity = {rarity: by_moments(rough, rarity) for rarity in RARITIES[direction]}
    rarity = min(by_rarity, key=by_rarity.__getitem__)
    caps = CAPS[(0.5 * rough.others >= CAPS) & (epoch.batch / CAPS <= MOST_COUNTED)].tolist()
    small = 0.02 * min(alone, by_rarity[rarity])
    start = next((k for k, cap in enumerate(caps) if beyond_cap(cap / 1.5, epoch.s) * alone <= small), None)
    by_caps = {} if start is None else _near(rough, caps, start)
    found = min(alone, by_rarity[rarity], *by_caps.values())
    if res.fineness < COARSE:
        step = _step(epoch, direction, threshold, res)
        if by_caps:
            found = min(found, by_cap(step, min(by_caps, key=by_caps.__getitem__)))
        if by_rarity[rarity] <= HOPELESS * found:
            found = min(found, by_moments(step, rarity))
    return found + epoch.kept * (alone - found) * (1.0 + 16.0 * UNIT)


def _step(epoch: AllUsedAbove, direction: str, threshold: float, res: Resolution) -> WeightedStep:
    """Return the number D of `profile_above`."""
    s, steps, relation = epoch.s, epoch.steps, epoch.relation
    cells = shuffled.cells_of(s, steps, threshold, 0.0, res)
    low = replace(cells, fineness=2.0 * res.fineness, least=cells.least / threshold)
    mirrored = signed_law(s, 1.0 / threshold, shuffled.BRANCHES[relation, OTHER[direction]], steps, low)
    more = threshold * (1.0 + 4.0 * UNIT)
    return WeightedStep(
        one=signed_law(s, threshold, shuffled.BRANCHES[relation, direction], steps, cells),
        opposite=SignedLaw(
            x=np.where(mirrored.x < 0.0, threshold * (1.0 - 4.0 * UNIT), more) * mirrored.x,
            p=mirrored.p,
            beyond=more * mirrored.beyond,
        ),
        s=s,
        steps=steps,
        batch=epoch.batch,
        cells=cells,
    )


def _near(step: WeightedStep, caps: list[float], start: int) -> dict[float, float]:
    """Return bounds by caps between a first cap and the cap of the least bound."""
    found = {start: by_cap(step, caps[start])}
    for way in (1, -1):
        k = start
        while 0 <= k + way < len(caps):
            found[k + way] = by_cap(step, caps[k + way])
            if found[k + way] >= found[k]:
                break
            k += way
    return {caps[k]: value for k, value in found.items()}


@lru_cache(maxsize=16)
def dominating(epoch: AllUsedAbove, tail: float) -> RatioDistribution:
    """Return a distribution that dominates the ratio of a shuffled epoch that uses all examples.

    Args:
        epoch: The epoch.
        tail: Mean that may be moved to infinity.

    Raises:
        LikelihoodRangeError: The ratios that matter exceed the range of doubles.
    """
    near = shuffled.ShuffledAbove(epoch.s, epoch.steps, epoch.relation, 1.0)
    thresholds = thresholds_of(partial(shuffled.profile_above, near), epoch.shift, tail, BETWEEN)
    return from_profile(partial(profile_above, epoch), thresholds, tail, FINENESS)
