r"""Lower distributions of the ratio of k steps out of t: symmetric means of one-step ratios, sums of losses.

With $e_i$ the elementary symmetric polynomial, the ratio of k out of t is $e_k(X_1..X_t) / \binom tk$. For
every part of n steps, the algorithm stores the conditional means of $e_i / \binom ni$ in cells, for all
$i \le k$. Two parts are combined by Vandermonde's identity, whose weights are hypergeometric. Only the cell
of an outcome is stored, so the result is a lower distribution for every choice of cells. The cells are
intervals of the conditional mean of the final ratio. A part stores only the counts i that have more than a
negligible probability when k of t steps are drawn, which are far fewer than k for a small part; leaving out
the others lowers the ratio.

A step with the ratio X has the loss $a = \ln(1 - z + z X)$ if its example is sampled with the rate z. The
outputs of t steps, if k steps use the example, are reduced to the sum of these losses for one rate z. The
losses are rounded to multiples of a spacing, so the sum is an integer, whose distributions P and Q are
convolutions of those of one step. The reduction is a post-processing for every rate and every spacing, so
the result is a lower distribution. It is nearly tight if the rate is such that about k participations are
expected, given outputs at which the ratio is near the threshold in question.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from privcore.likelihood_ratio.distribution import (
    PICTURE,
    UNDERFLOW,
    LikelihoodRangeError,
    RatioDistribution,
    Resolution,
    lowest_value,
)
from privcore.likelihood_ratio.grid import Array, choose_edges
from privcore.numerics.compiled import compiled
from privcore.numerics.rounding import MEAN_AT_INFINITY, UNIT

SMALLEST_MASS = 1e-200
"""Smaller atoms are dropped, which only lowers both directions, before their moments lose digits."""
SMALLEST_VALUE = 1e-150
"""Largest change of E(1 - kappa X)_+ by underflow of a value, below 1e-300, for every kappa up to 1e147."""
LARGEST_THRESHOLD = 338.0
"""Logarithm of this kappa: for larger epsilons a lower distribution of k of t gives no bound."""


@dataclass(frozen=True, kw_only=True)
class _Part:
    """Some of the steps: masses of cells, shape (N,), means of e_i from i = `least` on, shape (N, counts)."""

    steps: int
    least: int
    p: Array
    means: Array
    mass_error: float
    combinations: int


def chosen(
    base: RatioDistribution, participations: int, steps: int, res: Resolution, most: float = LARGEST_THRESHOLD
) -> RatioDistribution:
    """Return a lower distribution of the ratio of some steps chosen at random out of many.

    The counts that are left out have a total probability h of at most `res.tail` e^-most. Leaving them out
    lowers E(X - kappa)_+, and raises E(1 - kappa X)_+ by at most kappa h.

    Args:
        base: A lower distribution of the ratio of one step, its values ascending.
        participations: Number k of steps that use the example, 1 <= k <= steps.
        steps: Number t of steps among which they are chosen.
        res: Width of the cells in local standard deviations, and the mass that may be cut off.
        most: Largest epsilon at which the profile will be used.

    Raises:
        LikelihoodRangeError: Products of ratios exceed the range of doubles.
    """
    first = _Part(
        steps=1,
        least=0,
        p=base.p,
        means=np.stack((np.ones_like(base.x), base.x), axis=1),
        mass_error=base.mass_error,
        combinations=0,
    )
    # The steps are the leaves of a tree with 2 t - 1 nodes, each with two tails.
    nats = 1.0 + math.log(4.0 * steps) + max(0.0, most) - math.log(res.tail)
    part, atoms = first, base.p.size
    for bit in bin(steps)[3:]:
        part = _combined(part, part, participations, steps, res, nats)
        if bit == "1":
            part = _combined(part, first, participations, steps, res, nats)
        atoms = max(atoms, part.p.size)
    x = part.means[:, participations - part.least]
    order = np.argsort(x)
    # A mean of e_i is a sum of non-negative products of two numbers; by induction its logarithm has an error
    # of at most i (combinations + 1) roundings of one combination, plus i times that of a base value.
    one = 4.0 * (2 * atoms + 8 * participations + 32) * UNIT
    return RatioDistribution(
        x=x[order],
        p=part.p[order],
        infinite=-math.expm1(participations * math.log1p(-base.infinite)) * (1.0 - MEAN_AT_INFINITY),
        mass_error=part.mass_error,
        value_error=participations * (base.value_error + (part.combinations + 1) * one),
        drift_remove=participations * base.drift_remove,
        drift_add=steps * base.drift_add + SMALLEST_VALUE + res.tail,  # the masses of all steps count
    )


def _combined(a: _Part, b: _Part, participations: int, steps: int, res: Resolution, nats: float) -> _Part:
    """Return the union of two disjoint parts of the steps, in cells of the mean of the final ratio."""
    n = a.steps + b.steps
    least, greatest = _counts(n, participations, steps, nats)
    size, skipped = greatest - least + 1, least - a.least - b.least
    left, right = a.means.shape[1], b.means.shape[1]
    split = _vandermonde(a.steps, b.steps, a.least + left, b.least + right, greatest + 1)
    split = np.ascontiguousarray(split[a.least :, b.least :])
    final = _hypergeometric(n, steps - n, participations, greatest + 1)[least:]
    index = np.add.outer(np.arange(left), np.arange(right)) - skipped
    weights = split * np.where((index >= 0) & (index < size), final[np.clip(index, 0, size - 1)], 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        edges = _edges(a, b, weights, res)
        parts = (a.p, a.means, a.means @ weights), (b.p, b.means)
        mass, moments = _collect(*parts, edges, split, skipped, size, a is b)
        means = moments[mass > SMALLEST_MASS] / mass[mass > SMALLEST_MASS, None]
        rank = means @ final
    if not np.all(np.isfinite(means)) or not np.all(np.isfinite(rank)):
        raise LikelihoodRangeError
    order = np.argsort(rank)
    return _Part(
        steps=n,
        least=least,
        p=mass[mass > SMALLEST_MASS][order],
        means=means[order],
        mass_error=a.mass_error + b.mass_error + 2.0 * (a.p.size + b.p.size + 16) * UNIT,
        combinations=a.combinations + 1,
    )


def _counts(n: int, participations: int, steps: int, nats: float) -> tuple[int, int]:
    """Return the least and the greatest number of participations in n of the steps, except for tails.

    A hypergeometric count lies below the first or above the second with probability at most e^-nats each: the
    probability of a count of at least (or at most) a k is at most exp(-k KL(a || n/t)) (Hoeffding 1963,
    Theorems 1 and 4).
    """
    if n == steps:
        return participations, participations
    counts = np.arange(max(0, participations - (steps - n)), min(n, participations) + 1)
    a, share = counts / participations, n / steps
    divergence = scipy.special.xlogy(a, a / share) + scipy.special.xlogy(1.0 - a, (1.0 - a) / (1.0 - share))
    kept = counts[participations * divergence <= nats]
    return int(kept[0]), int(kept[-1])


def _edges(a: _Part, b: _Part, weights: Array, res: Resolution) -> Array:
    """Return the edges of the cells, from all pairs of two coarse pictures."""
    pa, ua = _coarse(a)
    pb, ub = (pa, ua) if a is b else _coarse(b)
    x = ((ua @ weights) @ ub.T).ravel()
    if not np.all(np.isfinite(x)):
        raise LikelihoodRangeError
    order = np.argsort(x)
    edges = choose_edges(x[order], np.outer(pa, pb).ravel()[order], res.fineness, res.tail, False, 0.0, 0.0)
    if edges.size < 2:
        raise LikelihoodRangeError
    return edges


def _coarse(part: _Part) -> tuple[Array, Array]:
    """Return about `PICTURE` atoms: groups of neighbours at their means, smaller groups at the two ends."""
    sizes = np.arange(part.p.size)
    width = np.minimum(math.ceil(part.p.size / PICTURE), 1 + np.minimum(sizes, sizes[::-1]) // 3)
    starts = np.flatnonzero(np.diff(np.floor(np.cumsum(1.0 / width) + 1e-9), prepend=-1.0))
    p = np.add.reduceat(part.p, starts)
    return p, np.add.reduceat(part.p[:, None] * part.means, starts, axis=0) / p[:, None]


def _hypergeometric(n: int, rest: int, draws: int, size: int) -> Array:
    """Return the probabilities that 0, 1, ... of the draws without replacement are among the first n.

    They are computed by ratios of neighbours, in time that does not depend on n, and decide only about the
    edges of cells.
    """
    least = max(0, draws - rest)
    i = np.arange(least, size - 1, dtype=float)
    growth = np.log((n - i) * (draws - i)) - np.log((i + 1.0) * (rest - draws + i + 1.0))
    logarithm = np.append(0.0, np.cumsum(growth))
    pmf = np.exp(logarithm - np.max(logarithm))
    return np.concatenate((np.zeros(least), pmf / np.sum(pmf)))


@compiled()
def _vandermonde(n: int, m: int, left: int, right: int, size: int) -> Array:
    """Return C(n, a) C(m, b) / C(n + m, a + b) for a < left, b < right, a + b < size, else 0.

    Computed by ratios of neighbours: a difference of logarithms of factorials would lose digits for many
    steps.
    """
    table = np.zeros((left, right))
    table[0, 0] = 1.0
    for a in range(left):
        for b in range(min(right, size - a)):
            if b > 0:
                table[a, b] = table[a, b - 1] * ((m - b + 1) / b * ((a + b) / (n + m - a - b + 1)))
            elif a > 0:
                table[a, 0] = table[a - 1, 0] * ((n - a + 1) / (n + m - a + 1))
    return table


@compiled(error_model="numpy")
def _collect(
    one_part: tuple[Array, Array, Array],
    other_part: tuple[Array, Array],
    edges: Array,
    split: Array,
    skipped: int,
    size: int,
    square: bool,
) -> tuple[Array, Array]:
    """Return, per cell, the mass and the moments of the stored e_i, of all pairs of two parts.

    Unsigned indices need no test for negative values at every access.

    Args:
        one_part: Masses, means, and means times the weights of the means of the other part in the final
            ratio.
        other_part: Masses and means.
        edges: Left ends of the cells, ascending.
        split: Weights of Vandermonde's identity.
        skipped: Number of the smallest sums of two counts that are not stored.
        size: Number of stored counts.
        square: Whether the parts are the same; then the diagonal counts once, every other pair twice.
    """
    (pa, ua, wa), (pb, ub) = one_part, other_part
    one, left, right = np.uintp(1), ua.shape[1], ub.shape[1]
    mass = np.zeros(edges.size)
    moments = np.zeros((edges.size, size))
    v, held = np.zeros(pb.size), np.zeros(right)
    columns = np.ascontiguousarray(ub.T)
    for i in range(np.uintp(pa.size)):
        j, end = i if square else np.uintp(0), np.uintp(pb.size)
        for column in range(j, end):
            v[column] = 0.0
        for b in range(np.uintp(right)):
            weight = wa[i, b]
            for column in range(j, end):
                v[column] += weight * columns[b, column]
        times = 2.0 * pa[i] if square else pa[i]
        while j < end:
            cell = np.uintp(np.searchsorted(edges, v[j], side="right") - 1)
            low = edges[cell]
            high = edges[cell + one] if cell + one < edges.size else np.inf
            for b in range(np.uintp(right)):
                held[b] = 0.0
            held_mass = 0.0
            same = True  # also for v out of range, which lies in no cell
            while same:
                p = 0.5 * pb[j] if square and j == i else pb[j]
                held_mass += p
                for b in range(np.uintp(right)):
                    held[b] += p * ub[j, b]
                j += one
                same = bool(j < end and low <= v[j] < high)
            mass[cell] += times * held_mass
            for a in range(left):
                factor = times * ua[i, a]
                first, last = max(0, skipped - a), min(right, skipped - a + size)
                begin, place = np.uintp(first), np.uintp(max(0, a - skipped))
                for b in range(np.uintp(max(0, last - first))):
                    moments[cell, place + b] += factor * split[np.uintp(a), begin + b] * held[begin + b]
    return mass, moments


LARGEST_SUMMED = 500.0
"""Logarithm of the largest kappa for which the distributions give a bound."""
MOST_SUMS = 2**16
"""Largest number of sums in a distribution; a finer spacing than this allows is refused."""


ENDS = 256.0 * UNIT
"""Counted: relative error of the values of the first and last cell of a step, 2 (64 + 16) u. The drifts of a
step are relative to the masses of these cells, which sums merge with others."""


@dataclass(frozen=True, kw_only=True)
class _Sums:
    """Masses of consecutive sums from `least` on; `error` is their relative error."""

    least: int
    p: Array
    error: float


def summed(
    base: RatioDistribution,
    participations: int,
    steps: int,
    *,
    epochs: int = 1,
    rate: float,
    spacing: float,
    tail: float,
    most: float,
) -> RatioDistribution:
    r"""Return a lower distribution of the ratio of some steps chosen at random out of many, in each epoch.

    Masses of P and Q of at most $h = \text{tail}\, e^{-\text{most}}$ in total are left out. This raises
    $\sum (P - \kappa Q)_+$ and $\sum (Q - \kappa P)_+$ by at most $\kappa h$.

    Args:
        base: A lower distribution of the ratio of one step.
        participations: Number k of steps of an epoch that use the example, 1 <= k <= steps.
        steps: Number t of steps of an epoch, among which they are chosen.
        epochs: Number of epochs whose losses are summed.
        rate: Sampling rate z of the losses, in (0, 1].
        spacing: Distance of two values of a loss, in nats.
        tail: Largest change of both directions by the tails left out, for epsilons of at most `most`.
        most: Largest epsilon at which the profile will be used, at most `LARGEST_SUMMED`.

    Raises:
        LikelihoodRangeError: The distributions have too many sums, or exceed the range of doubles.

    Example:
        >>> base = RatioDistribution(x=np.array([0.5, 3.0]), p=np.array([0.8, 0.2]))
        >>> law = summed(base, 2, 3, rate=0.5, spacing=0.01, tail=1e-12, most=1.0)
        >>> [float(round(x, 9)) for x in law.x], round(float(law.p @ law.x), 9)
        ([0.25, 1.083333333, 4.0, 9.0], 1.0)
    """
    unused, used = _one_step(base, rate, spacing)
    # The steps are the leaves of a tree with two tails a node.
    cut = tail * math.exp(-most) / (4.0 * steps * epochs)
    others = _power(unused, steps - participations, cut)
    p, q = (_trimmed(_convolved(others, _power(one, participations, cut)), cut) for one in (used, unused))
    p, q = _power(p, epochs, cut), _power(q, epochs, cut)
    least, end = min(p.least, q.least), max(p.least + p.p.size, q.least + q.p.size)
    mass, mean = np.zeros(end - least), np.zeros(end - least)
    mass[q.least - least :][: q.p.size] = q.p
    mean[p.least - least :][: p.p.size] = p.p
    possible = mass > 0.0  # elsewhere Q has only tails that are left out
    with np.errstate(over="ignore"):
        x = mean[possible] / mass[possible]
    if not np.all(np.isfinite(x)):
        raise LikelihoodRangeError
    order = np.argsort(x, kind="stable")
    lost = math.exp(most) * UNDERFLOW * MOST_SUMS**3  # products of masses that became 0, in all convolutions
    return RatioDistribution(
        x=x[order],
        p=mass[possible][order],
        infinite=float(np.sum(mean[~possible])),
        mass_error=max(p.error, q.error) + UNIT * (end - least),
        value_error=p.error + q.error + 4.0 * UNIT,
        drift_remove=participations * epochs * base.drift_remove + tail + lost,
        drift_add=steps * epochs * base.drift_add + tail + lost,
    )


def losses(base: RatioDistribution, rate: float) -> Array:
    """Return the loss of every atom; a value that became 0 has the loss of the smallest positive value."""
    x = np.maximum(base.x, lowest_value(base))
    loss: Array = np.log((1.0 - rate) + rate * x) if rate < 1.0 else np.log(x)
    return loss


def _one_step(base: RatioDistribution, rate: float, spacing: float) -> tuple[_Sums, _Sums]:
    """Return the masses of the rounded losses of a step without and with the example."""
    place = np.rint(losses(base, rate) / spacing).astype(np.int64)
    least, count = int(place.min()), int(np.ptp(place)) + 1
    if count > MOST_SUMS:
        raise LikelihoodRangeError
    added = (base.x.size + 2) * UNIT
    unused = np.bincount(place - least, weights=base.p, minlength=count).astype(np.float64)
    used = np.bincount(place - least, weights=base.p * base.x, minlength=count).astype(np.float64)
    return (
        _Sums(least=least, p=unused, error=base.mass_error + added),
        _Sums(least=least, p=used, error=base.mass_error + base.value_error + added + ENDS),
    )


def _power(one: _Sums, times: int, cut: float) -> _Sums:
    """Return the sum of several independent copies, by binary powering; 0 copies have the sum 0."""
    if times == 0:
        return _Sums(least=0, p=np.ones(1), error=0.0)
    result = one
    for bit in bin(times)[3:]:
        result = _trimmed(_convolved(result, result), cut)
        if bit == "1":
            result = _trimmed(_convolved(result, one), cut)
    return result


def _convolved(one: _Sums, other: _Sums) -> _Sums:
    """Return the sum of two independent sums."""
    if one.p.size + other.p.size > MOST_SUMS:
        raise LikelihoodRangeError
    short, long = sorted((one.p, other.p), key=len)
    rounding = (short.size + 2) * UNIT  # all terms are positive
    return _Sums(
        least=one.least + other.least,
        p=_products(short, long),
        error=one.error + other.error + rounding,
    )


def _trimmed(sums: _Sums, cut: float) -> _Sums:
    """Return the sums without a tail at either end whose mass is at most half of `cut`."""
    below, above = np.cumsum(sums.p), np.cumsum(sums.p[::-1])  # half, since both have rounding errors
    first = int(np.searchsorted(below, 0.5 * cut, side="right"))
    last = sums.p.size - int(np.searchsorted(above, 0.5 * cut, side="right"))
    if first >= last:
        raise LikelihoodRangeError
    return _Sums(least=sums.least + first, p=sums.p[first:last], error=sums.error)


@compiled()
def _products(short: Array, long: Array) -> Array:
    """Return the convolution of two sequences of non-negative numbers, in a fixed order of the terms."""
    result = np.zeros(short.size + long.size - 1)
    for i in range(short.size):
        weight = short[i]
        if weight > 0.0:
            for j in range(long.size):
                result[i + j] += weight * long[j]
    return result
