r"""Distributions of the signed numbers of shuffled batches, from above: docs/shuffling.md.

With a standard normal z and $R_m = e^{m s z - m^2 s^2 / 2}$, a number has above 0 the distribution of one
difference $R_m - \kappa R_n$, and below 0 that of a second, each times an independent lognormal factor of
mean 1. Cells of outputs z are moved to their ends with their mean kept, which only raises the mean of every
convex function, and upwards where they are rounded.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy

from privcore.likelihood_ratio.distribution import LARGEST_RATIO, LikelihoodRangeError
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.signed import SignedLaw, SumCells, scales
from privcore.likelihood_ratio.steps import NODES, WEIGHTS
from privcore.numerics.rounding import UNIT

GRAIN = 2.0**-24
"""Outputs are cut at multiples of this, so that their distances are exact."""
PICTURE = 1000
FACTOR = 2.0**-2
"""Width of the cells of the independent factor, in standard deviations."""
LONGEST = 0.5
"""Longest cell, in standard deviations."""


class Branch(NamedTuple):
    r"""Size of the number above or below 0: $g = \beta R_b - \gamma R_c$ with b > c, from its zero on."""

    b: float
    c: float
    scaled: bool
    """Whether the first factor is the threshold and the second one 1, or the reverse."""
    factor: float = 0.0
    """Standard deviation of the logarithm of the independent factor, in units of s."""

    @property
    def falls(self) -> bool:
        """Whether the size falls again beyond its peak."""
        return self.b < 0.0


class _Half(NamedTuple):
    """One branch at a noise and a threshold."""

    branch: Branch
    s: float
    threshold: float

    @property
    def factors(self) -> tuple[float, float]:
        return (self.threshold, 1.0) if self.branch.scaled else (1.0, self.threshold)

    @property
    def zero(self) -> float:
        """The output at which the size is 0, to a few roundings."""
        b, c, scaled, _ = self.branch
        loss = math.log(self.threshold) * (-1.0 if scaled else 1.0)
        return loss / ((b - c) * self.s) + (b + c) * self.s / 2.0

    @property
    def peak(self) -> float:
        """The output at which the size is largest, infinite if it rises for ever."""
        b, c = self.branch.b, self.branch.c
        return self.zero + math.log(c / b) / ((b - c) * self.s) if self.branch.falls else math.inf

    def terms(self, z: Array) -> tuple[Array, Array]:
        """Return both terms of the size at z."""
        first, second = self.factors
        b, c = self.branch.b * self.s, self.branch.c * self.s
        with np.errstate(over="ignore"):
            return first * np.exp(b * z - 0.5 * b * b), second * np.exp(c * z - 0.5 * c * c)

    def size(self, z: Array) -> Array:
        """Return the size at z, at least 0."""
        more, less = self.terms(z)
        sizes: Array = np.maximum(more - less, 0.0)
        return sizes if self.branch.falls else np.maximum.accumulate(sizes)

    def growth(self, terms: tuple[Array, Array], step: Array) -> tuple[Array, Array]:
        """Return by how much both terms of the size grow from z to z + step, from the terms at z."""
        b, c = self.branch.b * self.s, self.branch.c * self.s
        return terms[0] * np.expm1(b * step), terms[1] * np.expm1(c * step)


def signed_law(
    s: float, threshold: float, branches: tuple[Branch, Branch], steps: int, cells: SumCells
) -> SignedLaw:
    r"""Return a distribution above that of a signed number, for the sum of `steps` copies.

    On the first cell above 0, which begins a little to the left of the zero, $g_+$ over its largest value is
    at most the growth of g over the whole growth.

    Args:
        s: Inverse noise multiplier.
        threshold: Threshold kappa of the hockey-stick divergence, >= 1.
        branches: Its size above and below 0.
        steps: Number of copies that will be added.
        cells: Choice of the cells.

    Raises:
        LikelihoodRangeError: The ratios that matter exceed the range of doubles.
    """
    above, below = (_Half(branch, s, threshold) for branch in branches)
    reach = 0.5 - float(scipy.special.ndtri_exp(math.log(cells.tail / steps)))
    starts = math.floor(above.zero / GRAIN - 1.0) * GRAIN, math.ceil(below.zero / GRAIN + 1.0) * GRAIN
    ends = [max(start, half.branch.b * s) + reach for half, start in zip((above, below), starts, strict=True)]
    if max(2.0 * s * ends[0], 2.0 * s * starts[1] + math.log(threshold)) > math.log(LARGEST_RATIO):
        raise LikelihoodRangeError
    pictures = [np.linspace(start, end, PICTURE) for start, end in zip(starts, ends, strict=True)]
    sizes = [half.size(z) for half, z in zip((above, below), pictures, strict=True)]
    kept = min(PICTURE, int(np.searchsorted(np.maximum.accumulate(sizes[1]), cells.low)) + 2)
    pictures[1], sizes[1] = pictures[1][:kept], sizes[1][:kept]
    masses = [-np.diff(scipy.special.ndtr(-z), append=0.0) for z in pictures]
    none = max(0.0, 1.0 - float(masses[0].sum()) - float(masses[1].sum())) + 8.0 * UNIT
    values = np.concatenate((-sizes[1][:0:-1], np.zeros(1), sizes[0][1:]))
    shares = np.concatenate((masses[1][:0:-1], [none + masses[0][0] + masses[1][0]], masses[0][1:]))
    order = np.argsort(values, kind="stable")
    place, width = scales(values[order], shares[order], cells.least)
    cuts = [
        _cut(half, z, sign * size, place, width, cells.fineness)
        for half, z, size, sign in zip((above, below), pictures, sizes, (1.0, -1.0), strict=True)
    ]
    return _spread(above, below, cuts, none)


def _cut(half: _Half, z: Array, values: Array, place: Array, width: Array, fineness: float) -> Array:
    """Return the outputs at which cells end: multiples of `GRAIN`, from the first output to the last."""
    step = np.abs(np.diff(values)) / (fineness * np.interp(0.5 * (values[1:] + values[:-1]), place, width))
    step *= min(1.0, 4000.0 / float(step.sum()))  # a coarser grid is still valid; a longer cell is not
    count = np.concatenate(([0.0], np.cumsum(np.maximum(step, np.diff(z) / _longest(z, half.s)))))
    size = max(4, math.ceil(count[-1]))
    inner = np.interp(np.linspace(0.0, count[-1], size + 1), count, z)
    if z[0] < half.peak < z[-1]:
        inner = np.append(inner, half.peak)
    grained: Array = np.unique(np.round(inner / GRAIN)) * GRAIN
    return grained


def _longest(z: Array, s: float) -> float:
    """Return the longest cell: no density changes by more than e^4 in it, so 12 nodes integrate it."""
    return min(LONGEST, 4.0 / (1.0 + float(np.max(np.abs(z))) + 2.0 * s))


def _spread(above: _Half, below: _Half, cuts: list[Array], none: float) -> SignedLaw:
    """Return the distribution on the values at the cuts, rounded upwards."""
    far = max(float(np.max(np.abs(cut))) for cut in cuts)
    error = _error(far, above.s)
    more = 1.0 + 4.0 * error
    p, q = _at_cuts(above, cuts[0], error, True), _at_cuts(below, cuts[1], error, False)
    x = above.size(cuts[0]) + error * sum(above.terms(cuts[0]))
    x[0] = 0.0
    p[-1] += float(scipy.special.ndtr(-cuts[0][-1])) * more
    b = above.branch.b * above.s
    beyond = 0.0
    if not above.branch.falls:
        beyond = above.factors[0] * float(scipy.special.ndtr(b - cuts[0][-1])) * more
        x = np.maximum.accumulate(x)
    y = np.maximum(0.0, below.size(cuts[1]) - error * sum(below.terms(cuts[1])))
    last = 0 if below.branch.falls else -1  # beyond the last cut, only a size that rises stays large
    q[last] += float(scipy.special.ndtr(-cuts[1][-1])) * more
    q[0] += p[0] + none
    if not below.branch.falls:
        y[1:] = np.minimum.accumulate(y[:0:-1])[::-1]
    values = np.concatenate((-y[:0:-1], x))
    order = np.argsort(values, kind="stable")
    return SignedLaw(x=values[order], p=np.concatenate((q[:0:-1], q[:1], p[1:]))[order], beyond=beyond)


def factor_law(s: float, branch: Branch, tail: float, up: bool) -> SignedLaw:
    """Return the independent factor of a branch, made larger, or smaller so that negative numbers rise.

    Args:
        s: Inverse noise multiplier.
        branch: The branch.
        tail: Mean that may lie beyond the largest factor.
        up: Whether to make it larger.
    """
    b = branch.factor * s
    if b == 0.0:
        return SignedLaw(x=np.ones(1), p=np.ones(1), beyond=0.0)
    reach = 0.5 - float(scipy.special.ndtri_exp(math.log(tail)))
    lognormal = _Half(Branch(branch.factor, 0.0, False), s, 1.0)
    cut = FACTOR * np.arange(float(math.floor(-reach / FACTOR)), math.ceil((reach + b) / FACTOR) + 1.0)
    error = _error(float(np.max(np.abs(cut))), s)
    more = 1.0 + 4.0 * error
    p = _at_cuts(lognormal, cut, error, up)
    p[-1] += float(scipy.special.ndtr(-cut[-1])) * more
    x = lognormal.terms(cut)[0] * (1.0 + error if up else 1.0 - error)
    beyond = float(scipy.special.ndtr(b - cut[-1])) * more if up else 0.0
    lowest = float(scipy.special.ndtr(cut[0])) * more
    return SignedLaw(x=np.append(x[0] if up else 0.0, x), p=np.append(lowest, p), beyond=beyond)


def _error(far: float, s: float) -> float:
    """Return the relative error of an integral; exponents are up to (L + 2 s)^2, with 12 terms in a sum."""
    return 32.0 * UNIT * (64.0 + (far + 2.0 * s) ** 2)


def _at_cuts(half: _Half, cut: Array, error: float, up: bool) -> Array:
    """Return the masses at the cuts, rounded up, with the means of cells rounded up or down."""
    mass, moments, growths = _cells(half, cut)
    more = 1.0 + 4.0 * error
    moment, growth = moments[0] - moments[1], growths[0] - growths[1]
    rising = growth > 0.0
    sign = np.where(rising == up, 4.0 * error, -4.0 * error)  # more at the right end raises a size that rises
    moment = np.abs(moment) + sign * (np.abs(moments[0]) + np.abs(moments[1]))
    growth = np.abs(growth) - sign * (np.abs(growths[0]) + np.abs(growths[1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(growth > 0.0, moment / growth, np.where(sign > 0.0, np.inf, 0.0))
    right = np.clip(share, 0.0, mass)
    p = np.zeros(cut.size)
    p[:-1] += mass * more - right
    p[1:] += right
    return p


def _cells(half: _Half, cut: Array) -> tuple[Array, Array, Array]:
    """Return the mass, and for both terms the moment of the growth and the whole growth, of every cell."""
    width = np.diff(cut)
    at_left = half.terms(cut[:-1])
    mass, moments = np.zeros(width.size), np.zeros((2, width.size))
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        step = (0.5 + 0.5 * node) * width
        density = 0.5 * weight * width * np.exp(-0.5 * np.square(cut[:-1] + step)) / math.sqrt(2.0 * math.pi)
        mass += density
        moments += density * np.array(half.growth(at_left, step))
    return mass, moments, np.array(half.growth(at_left, width))
