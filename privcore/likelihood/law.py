r"""A likelihood ratio X = dP/dQ under Q, bracketed in convex order by two discrete laws.

Both directions of the hockey-stick divergence are expectations of convex functions of X. A mean-preserving
spread of X is a pair that dominates, a conditional expectation of X is a garbling, and both relations
survive averaging (random allocation), products (composition) and affine maps (subsampling).
"""

from dataclasses import dataclass

import numpy as np

from privcore.likelihood.grid import choose_edges
from privcore.likelihood.kernel import Array, all_pairs, coarsen, collect, spread

LARGEST_RATIO = 1e147
"""Largest value on a grid; the product of two stays within the range of doubles."""
ROUNDING = 2.0**-53
UNDERFLOW = 1e-307
PICTURE = 48
"""Atoms per factor of the coarse picture from which a grid is chosen."""


class LikelihoodRangeError(ArithmeticError):
    """The likelihood ratios that matter exceed the range of doubles."""

    def __str__(self) -> str:
        """Return the reason in words."""
        return "the likelihood ratio exceeds the range of double precision"


@dataclass(frozen=True, kw_only=True)
class Law:
    """Atoms of X under Q, the mean at infinity (mass of P where Q has none), and what rounding did.

    The law that was meant has masses within a factor 1 + `mass_error` of these, on values within a factor
    1 + `value_error` of these.
    """

    x: Array
    p: Array
    infinite: float = 0.0
    mass_error: float = 0.0
    value_error: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Bracket:
    """Two laws between which X lies in convex order: `lower` is a garbling, `upper` dominates."""

    lower: Law
    upper: Law


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """How fine the cells are, in local standard deviations, and how far they go.

    Attributes:
        fineness: Width of a cell over the local standard deviation.
        tail: Mass or mean that may be cut off outwards at either end.
    """

    fineness: float
    tail: float


def combine(
    a: Bracket, b: Bracket, res: Resolution, *, product: bool, weights: tuple[float, float] = (1.0, 1.0)
) -> Bracket:
    """Return the bracket of the product of two independent ratios, or of their weighted mean.

    Args:
        a: First factor.
        b: Second factor; the same object as `a` for a square, which takes half the work.
        res: Resolution of the result.
        product: Multiply (composition) instead of average (random allocation).
        weights: Weights of the mean.
    """
    wa, wb = weights
    twin = a is b
    picture_a = coarsen(wa * a.lower.x, a.lower.p, PICTURE)
    picture_b = picture_a if twin else coarsen(wb * b.lower.x, b.lower.p, PICTURE)
    x, p = all_pairs(*picture_a, *picture_b, product)
    if not x[-1] * p[-1] < np.inf:
        raise LikelihoodRangeError
    edges = choose_edges(x, p, res.fineness, res.tail, product)
    if edges[-1] > LARGEST_RATIO:
        raise LikelihoodRangeError
    low_a, low_b, up_a, up_b = a.lower, b.lower, a.upper, b.upper
    mass, moment = collect(wa * low_a.x, low_a.p, wb * low_b.x, low_b.p, edges, twin, product)
    keep = mass > 0.0
    lower = _after(low_a, low_b, moment[keep] / mass[keep], mass[keep], 0.0, product)

    mass, moment = collect(wa * up_a.x, up_a.p, wb * up_b.x, up_b.p, edges, twin, product)
    p, beyond = spread(edges, mass, moment)
    lost = UNDERFLOW * up_a.x.size * up_b.x.size * edges[-1]
    if product:
        infinite = up_a.infinite + up_b.infinite - up_a.infinite * up_b.infinite
    else:
        infinite = wa * up_a.infinite + wb * up_b.infinite
    keep = p > 0.0
    return Bracket(
        lower=lower, upper=_after(up_a, up_b, edges[keep], p[keep], infinite + beyond + lost, product)
    )


def _after(a: Law, b: Law, x: Array, p: Array, infinite: float, product: bool) -> Law:
    """Return the law with the rounding errors of its factors and of their combination added up."""
    step = 8.0 * (a.x.size + b.x.size + 16) * ROUNDING
    return Law(
        x=x,
        p=p,
        infinite=infinite,
        mass_error=a.mass_error + b.mass_error + step,
        value_error=(a.value_error + b.value_error if product else max(a.value_error, b.value_error)) + step,
    )


def mean_of(base: Bracket, times: int, res: Resolution) -> Bracket:
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


def product_of(base: Bracket, times: int, res: Resolution) -> Bracket:
    """Return the bracket of the product of `times` independent copies, by binary powering."""
    result = base
    for bit in bin(times)[3:]:
        result = combine(result, result, res, product=True)
        if bit == "1":
            result = combine(result, base, res, product=True)
    return result
