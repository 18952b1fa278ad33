r"""A likelihood ratio X = dP/dQ under Q, bracketed in convex order by two discrete distributions.

Both directions of the hockey-stick divergence are expectations of convex functions of X. A mean-preserving
spread of X belongs to a dominating pair, and a conditional mean of X to a post-processing. Averaging (random
allocation), products (composition) and affine maps (subsampling) keep both relations.

If no step uses the example with probability $a$, the ratio $S$ of all steps is at least $a$, and the ratio
given that some step uses it is $W = (S - a) / (1 - a) \ge 0$.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from privcore.likelihood_ratio.grid import Array, all_pairs, choose_edges, coarsen, collect, spread
from privcore.numerics.rounding import MEAN_AT_INFINITY, SUMMED, UNIT

LARGEST_RATIO = 1e147
"""Largest value on a grid; the product of two stays within the range of doubles."""
UNDERFLOW = 1e-307
SMALLEST_MASS = 1e-280
"""Smaller atoms of a lower distribution are dropped, which lowers it: their means would lack digits."""
PICTURE = 48
"""Number of atoms of each factor in the coarse picture from which a grid is chosen."""


class LikelihoodRangeError(ArithmeticError):
    """The likelihood ratios that matter exceed the range of doubles."""

    def __str__(self) -> str:
        """Return the reason in words."""
        return "the likelihood ratio exceeds the range of double precision"


@dataclass(frozen=True, kw_only=True)
class RatioDistribution:
    """Atoms of X under Q, the mean at infinity (mass of P outside the support of Q), and errors by rounding.

    The exact distribution differs from this one by three kinds of errors. All masses differ by a factor of at
    most e^`mass_error`, and all values by a factor of at most e^`value_error`. Values at the two ends may
    differ more, which changes E(X - kappa)_+ by at most `drift_remove` and E(1 - kappa X)_+ by at most
    `drift_add`, for every kappa and after every later combination. A distribution of `symmetric.chosen` has
    this property only for kappa up to the largest value that was requested.
    """

    x: Array
    p: Array
    infinite: float = 0.0
    mass_error: float = 0.0
    value_error: float = 0.0
    drift_remove: float = 0.0
    drift_add: float = 0.0


@dataclass(frozen=True, kw_only=True)
class RatioBracket:
    """Distributions that enclose X in convex order: `lower` is a post-processing, `upper` dominates."""

    lower: RatioDistribution
    upper: RatioDistribution


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """Width of the cells in local standard deviations, and extent of the grid.

    Attributes:
        fineness: Width of a cell over the local standard deviation.
        tail: Mass or mean that may lie beyond the grid at either end.
    """

    fineness: float
    tail: float


Kind = TypeVar("Kind")


def combine(
    a: RatioBracket,
    b: RatioBracket,
    res: Resolution,
    *,
    product: bool,
    weights: tuple[float, float] = (1.0, 1.0),
) -> RatioBracket:
    """Return the bracket of the product of two independent ratios, or of their weighted mean.

    Args:
        a: First factor.
        b: Second factor; the same object as `a` for a square, which takes half the work.
        res: Resolution of the result.
        product: Multiply (composition) instead of average (random allocation).
        weights: Weights of the mean.
    """
    square = a is b
    if float(a.upper.p.sum()) * float(b.upper.p.sum()) > LARGEST_RATIO:  # outward weights, multiplied often
        raise LikelihoodRangeError
    lower, upper = (a.lower, b.lower), (a.upper, b.upper)
    edges = _edges(lower, upper, res, square, product, weights)
    return RatioBracket(
        lower=conditional_means(*_in_cells(lower, edges, square, product, weights)),
        upper=mean_preserving_spread(*_in_cells(upper, edges, square, product, weights)),
    )


Factors = tuple[RatioDistribution, RatioDistribution]
Cells = tuple[RatioDistribution, Array, int]
"""Left ends and masses of cells, with the errors so far; moments about the left ends; number of additions."""


def _edges(
    shape: Factors,
    factors: Factors,
    res: Resolution,
    square: bool,
    product: bool,
    weights: tuple[float, float] = (1.0, 1.0),
) -> Array:
    """Return the cells of a combination, from the shape of its factors and their least and largest values.

    Raises:
        LikelihoodRangeError: Ratios that matter exceed the range of doubles.
    """
    wa, wb = weights
    (a, b), (fa, fb) = shape, factors
    means = float(a.x[-1]), float(b.x[-1])  # may lie beyond the last edge
    if product and means[0] * means[1] > LARGEST_RATIO**2:
        raise LikelihoodRangeError
    picture_a = coarsen(wa * a.x, a.p, PICTURE)
    picture_b = picture_a if square else coarsen(wb * b.x, b.p, PICTURE)
    x, p = all_pairs(*picture_a, *picture_b, product)
    lowest, highest = (
        (wa * lowest_value(fa), wb * lowest_value(fb)),
        (wa * float(fa.x[-1]), wb * float(fb.x[-1])),
    )
    ends = [end[0] * end[1] if product else end[0] + end[1] for end in (lowest, highest)]
    edges = choose_edges(x, p, res.fineness, res.tail, product, *ends)
    if edges.size < 2 or not edges[-1] <= LARGEST_RATIO:
        raise LikelihoodRangeError
    return edges


def _in_cells(
    factors: Factors, edges: Array, square: bool, product: bool, weights: tuple[float, float] = (1.0, 1.0)
) -> Cells:
    """Return the combination of two distributions, in cells."""
    (fa, fb), (wa, wb) = factors, weights
    mass, moment = collect(wa * fa.x, fa.p, wb * fb.x, fb.p, edges, square, product)
    if product:
        infinite = fa.infinite + fb.infinite - fa.infinite * fb.infinite
        value_error, drift = fa.value_error + fb.value_error, fa.drift_remove + fb.drift_remove
    else:
        infinite = wa * fa.infinite + wb * fb.infinite
        value_error = max(fa.value_error, fb.value_error)
        drift = wa * fa.drift_remove + wb * fb.drift_remove
    lost = UNDERFLOW * fa.x.size * fb.x.size  # a product of two tiny masses may have become 0
    cells = RatioDistribution(
        x=edges,
        p=mass,
        infinite=infinite,
        mass_error=fa.mass_error + fb.mass_error,
        value_error=value_error,
        drift_remove=drift + lost * float(edges[-1]),
        drift_add=fa.drift_add + fb.drift_add + lost,
    )
    return cells, moment, fa.x.size + fb.x.size


def dominating_product(a: RatioDistribution, b: RatioDistribution, res: Resolution) -> RatioDistribution:
    """Return an upper distribution of the product of two independent ratios, in half the time of both.

    Args:
        a: Upper distribution of the first ratio.
        b: That of the second one; the same object as `a` for a square, which takes half the work.
        res: Resolution of the result.

    Raises:
        LikelihoodRangeError: Ratios that matter exceed the range of doubles.
    """
    square = a is b
    if float(a.p.sum()) * float(b.p.sum()) > LARGEST_RATIO:
        raise LikelihoodRangeError
    edges = _edges((a, b), (a, b), res, square, product=True)
    return mean_preserving_spread(*_in_cells((a, b), edges, square, product=True))


def conditional_means(cells: RatioDistribution, moment: Array, additions: int) -> RatioDistribution:
    """Return the lower distribution of the cells: every cell is moved to its conditional mean.

    Args:
        cells: Left ends and masses of the cells, with the errors so far.
        moment: Moments of the cells about their left ends.
        additions: Largest number of terms in the sum of a cell, for the bound on rounding.
    """
    keep = cells.p > SMALLEST_MASS
    x = cells.x[keep] + moment[keep] / cells.p[keep]
    return _rounded(replace(cells, x=x, p=cells.p[keep]), cells, moment, additions)


def mean_preserving_spread(cells: RatioDistribution, moment: Array, additions: int) -> RatioDistribution:
    """Return the upper distribution of the cells: a mean-preserving spread of every cell to its ends.

    Args:
        cells: Left ends and masses of the cells, with the errors so far.
        moment: Moments of the cells about their left ends.
        additions: Largest number of terms in the sum of a cell, for the bound on rounding.
    """
    p, beyond = spread(cells.x, cells.p, moment)
    keep = p > 0.0
    infinite = (cells.infinite + beyond) * (1.0 + MEAN_AT_INFINITY)
    return _rounded(replace(cells, x=cells.x[keep], p=p[keep], infinite=infinite), cells, moment, additions)


def _rounded(
    distribution: RatioDistribution, cells: RatioDistribution, moment: Array, additions: int
) -> RatioDistribution:
    """Return the distribution with the rounding of one combination added to its errors.

    Masses and moments have relative errors of at most u = (additions + 16) x 2^-53, which includes the few
    operations around them. So the error of a conditional mean is u times the width of its cell. The first and
    the last cell are wide, but hold little mass. The value of the first cell has the relative error u, which
    changes E(1 - kappa X R)_+ by at most u times its mass, and E(X R - kappa)_+ by at most u times its mean,
    for any independent R >= 0 of mean at most 1. In the last cell the excess over its edge has the relative
    error u.
    """
    u = 2.0 * (additions + 16) * UNIT
    inner = cells.x[1:]
    width = float(np.max(np.diff(inner) / inner[:-1])) if inner.size > 1 else 1.0
    ends_mean = float(cells.p[0] * inner[0] + moment[0] + moment[-1])
    return replace(
        distribution,
        mass_error=distribution.mass_error + u,
        value_error=distribution.value_error + u * width + 8.0 * UNIT,
        drift_remove=distribution.drift_remove + 2.0 * u * ends_mean,
        drift_add=distribution.drift_add + 2.0 * u * float(cells.p[0] + moment[-1] / cells.x[-1]),
    )


def lowest_value(distribution: RatioDistribution) -> float:
    """Return the smallest positive value."""
    if distribution.x[-1] <= 0.0:  # the mean is at infinity
        raise LikelihoodRangeError
    return float(distribution.x[0]) if distribution.x[0] > 0.0 else float(distribution.x[1])


def mean_of(base: RatioBracket, times: int, res: Resolution) -> RatioBracket:
    """Return the bracket of the mean of `times` independent copies, by binary powering."""
    result, count = base, 1
    for bit in bin(times)[3:]:
        count *= 2
        result = combine(result, result, res, product=False, weights=(0.5, 0.5))
        if bit == "1":
            count += 1
            weights = ((count - 1) / count, 1.0 / count)
            result = combine(result, base, res, product=False, weights=weights)
    return result


def product_of(base: RatioBracket, times: int, res: Resolution) -> RatioBracket:
    """Return the bracket of the product of `times` independent copies, by binary powering."""
    return _powered(base, times, lambda a, b: combine(a, b, res, product=True))


def dominating_power(base: RatioDistribution, times: int, res: Resolution) -> RatioDistribution:
    """Return an upper distribution of the product of `times` independent copies, in half the time of both."""
    return _powered(base, times, lambda a, b: dominating_product(a, b, res))


def _powered(base: Kind, times: int, multiply: Callable[[Kind, Kind], Kind]) -> Kind:
    result = base
    for bit in bin(times)[3:]:
        result = multiply(result, result)
        if bit == "1":
            result = multiply(result, base)
    return result


def mixed(base: RatioBracket, probability: float, res: Resolution) -> RatioBracket:
    """Return the bracket of 1 - probability + probability X: a step that samples the example.

    Args:
        base: Bracket of X.
        probability: Sampling probability, in (0, 1].
        res: Resolution of the later combinations; only its tail is used.
    """
    return RatioBracket(
        lower=_mixed(base.lower, probability, res.tail), upper=_mixed(base.upper, probability, res.tail)
    )


def _mixed(distribution: RatioDistribution, probability: float, tail: float) -> RatioDistribution:
    """Return the distribution of the mixture, whose values depend strongly on X only if X is large.

    With v the error of X and s the share of X in a value, the value differs by a factor of at most 1 + s (e^v
    - 1). The largest values are rare but would dominate the error of all others. Those whose errors change
    the mean by at most `tail` in total are charged to the drifts instead. For R >= 0 independent of X and of
    mean at most 1, an error d of the value x changes E(x R - kappa)_+ by at most d, and E(1 - kappa x R)_+ by
    at most d / x.
    """
    x = (1.0 - probability) + probability * distribution.x
    share = np.divide(probability * distribution.x, x, out=np.zeros_like(x), where=x > 0.0)
    error = float(np.expm1(min(distribution.value_error, 100.0)))  # a larger error makes every bound trivial
    above = (
        2.0 * error * np.cumsum((distribution.p * probability * distribution.x)[::-1])[::-1]
    )  # factor 2, since masses have errors, too
    inner = int(np.searchsorted(-above, -tail))
    return replace(
        distribution,
        x=x,
        infinite=probability * distribution.infinite,
        value_error=error * float(share[inner - 1] if inner else 0.0) + 8.0 * UNIT,
        drift_remove=probability * distribution.drift_remove + float(above[inner] if inner < x.size else 0.0),
        drift_add=distribution.drift_add
        + 2.0 * error * float(np.sum(distribution.p[inner:] * share[inner:])),
    )


def given_participation(sampled: RatioBracket, log_absence: float) -> RatioBracket:
    r"""Return a dominating distribution of $W = (S - a) / (1 - a)$, and an estimate of its limit.

    A dominating distribution of S may have values below a. Its least values, together with as many more as
    bring their mean to a, are then spread to a and to the largest of them, which keeps the mean. The result
    still dominates S: between these two points, $E(c - S)_+$ is convex in c and 0 at c = a, so it is below
    its chord, which is the same expectation of the result.

    Args:
        sampled: Bracket of S.
        log_absence: Logarithm of a, in [-inf, 0); its relative error is at most 4 u.

    Returns:
        The upper distribution dominates W, rounding included. The lower one is that of S, mapped; it shows
        when a finer resolution would not help.

    Raises:
        LikelihoodRangeError: The values are too close to a for their errors.

    Source:
        Feldman and Shenfeld (2025), arXiv:2502.08202v3, Theorem 4.6.
    """
    absence, presence = math.exp(log_absence), -math.expm1(log_absence)
    lower, upper = sampled.lower, sampled.upper
    return RatioBracket(
        lower=replace(
            lower,
            x=np.maximum(0.0, (lower.x - absence) / presence),
            infinite=lower.infinite / presence,
            drift_remove=lower.drift_remove / presence,
        ),
        upper=_dominating(upper, log_absence),
    )


def _dominating(law: RatioDistribution, log_absence: float) -> RatioDistribution:
    """Return a dominating distribution of W from one of S, with masses rounded up.

    An error of E(1 - kappa S)_+ is that of an atom at S = 0, which is spread with the least values. An error
    of the values of S is larger relative to the distance from a, and largest for the smallest of them.
    """
    absence, presence = math.exp(log_absence), -math.expm1(log_absence)
    relative = math.expm1(min(law.value_error, 100.0))
    terms = law.p * (law.x - absence)
    sizes = np.cumsum(law.p * (law.x + absence)) * (2.0 * law.mass_error + relative + SUMMED)
    apart = law.x - absence >= 0.5 * np.diff(law.x, prepend=0.0)
    enough = np.flatnonzero((np.cumsum(terms) >= sizes) & apart & (law.x > absence))
    if enough.size == 0:
        raise LikelihoodRangeError
    last = int(enough[0])
    end, least = float(law.x[last]), law.x[:last]
    width = end - absence
    error = (relative * end + 4.0 * UNIT * (1.0 - max(log_absence, -1e3)) * absence) / width + 8.0 * UNIT
    nearest = 2.0 * relative * end / (end - float(least[-1])) if last else 0.0
    if error > 0.01 or nearest > 0.01:
        raise LikelihoodRangeError
    outward = 1.0 + 2.0 * error + SUMMED
    at_absence = (
        (float(law.p[:last] @ (end - least)) * (1.0 + nearest) + end * law.drift_add) / width * outward
    )
    at_end = (float(terms[: last + 1].sum()) + float(sizes[last])) / width * outward
    return replace(
        law,
        x=np.append([0.0, width / presence], (law.x[last + 1 :] - absence) / presence),
        p=np.append([at_absence, at_end], law.p[last + 1 :]),
        infinite=law.infinite / presence * (1.0 + SUMMED),
        value_error=error * (1.0 + error),
        drift_remove=law.drift_remove / presence * (1.0 + SUMMED),
        drift_add=0.0,
    )
