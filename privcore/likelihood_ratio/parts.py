r"""Ratio of two Gaussian mixtures, from cells of outputs: both distributions of its likelihood ratio.

Outputs z are in standard deviations of the noise, and so are the means of the mixtures. A cell of outputs has
the masses q under Q and p under P. Its conditional mean of X = dP/dQ is p / q, which gives the lower
distribution for every choice of cells. If the ratio increases with z, a cell of outputs is a cell of ratios,
and moving its mass to its ends, with the mean p / q, gives the upper distribution.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from privcore.likelihood_ratio.distribution import (
    LARGEST_RATIO,
    SMALLEST_MASS,
    UNDERFLOW,
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
)
from privcore.likelihood_ratio.grid import Array, choose_edges
from privcore.likelihood_ratio.steps import Mixture
from privcore.numerics.rounding import MEAN_AT_INFINITY, UNIT

PICTURE = 2048
"""Number of outputs of the picture from which the cells are chosen."""
NARROWEST = 5e-4
"""Least width of a cell, in standard deviations; probabilities of narrower cells would lack digits."""


@dataclass(frozen=True)
class Part:
    """Pair of mixtures on an interval of outputs, on which the ratio p / q increases.

    Attributes:
        p: Mixture P.
        q: Mixture Q.
        low: Left end of the interval; the ratio is 1 there if it is finite.
        high: Right end of the interval; the ratio is 1 there if it is finite.
        increasing: Whether the ratio is proved to increase; without a proof, only the lower distribution is
            valid.
        error: Relative error of the weights.
        cut: Whether components of total weight up to 1e-280 are left out.
    """

    p: Mixture
    q: Mixture
    low: float = -math.inf
    high: float = math.inf
    increasing: bool = True
    error: float = 0.0
    cut: bool = False

    def log_ratio(self, z: Array) -> Array:
        """Return the logarithm of the ratio at z."""
        return self.p.log_density(z) - self.q.log_density(z)

    def masses(self, low: Array, high: Array) -> tuple[Array, Array, float]:
        """Return the masses of cells under Q and P, and the part of their ends in the relative error."""
        return self.q.mass(low, high), self.p.mass(low, high), 0.0

    def precision(self, cuts: Array) -> tuple[float, float]:
        r"""Return the largest distance Z of a cut from a mean, and the relative error of masses and ratios.

        Let u be the unit roundoff and w the least width of a cell. A tail $\Phi(-a)$ has a relative error of
        at most (16 + 2 Z^2) u, since the exponent $a^2 / 2$ has the relative error 2 u, and the probability
        of a cell is at least min(1, w (1 + a)) / 3 times its larger tail. So the difference of two tails has
        a relative error of at most 6 (16 + 2 Z^2) u / min(1, w (1 + Z)), which is below
        u (96 + 12 Z^2 + (96 + 12 Z) / w). The rounding of an argument by 2 u Z adds at most
        4 u Z (1 + 1 / w) Z / max(1, Z) <= 4 u Z (1 + 1/w). A ratio at a cut is the exponential of a
        difference of two logarithms of at most Z^2 with errors of at most 8 u (1 + Z^2).
        """
        far = max(abs(float(cut) - mean) for cut in cuts[[0, -1]] for mean in self.p.means + self.q.means)
        narrow = min(1.0, float(np.min(np.diff(cuts)))) if cuts.size > 1 else 1.0
        error = UNIT * (128.0 + 32.0 * far * far + (128.0 + 32.0 * far) / narrow)
        return far, error + 2.0 * self.error

    @property
    def least(self) -> float:
        """Limit of the ratio at minus infinity, rounded down; 0 if the smallest mean is that of Q alone."""
        if self.p.means[0] != self.q.means[0]:
            return 0.0
        return self.p.weights[0] / self.q.weights[0] * (1.0 - 4.0 * UNIT - 2.0 * self.error)


@dataclass(frozen=True)
class _Cells:
    """Cells of ratios: ends, masses under Q and under P, and the relative error of masses and ends."""

    left: Array
    right: Array
    q: Array
    p: Array
    error: float


def bracket_of(parts: tuple[Part, ...], atom: float, res: Resolution) -> RatioBracket:
    """Return the bracket of a ratio that is given on disjoint intervals of outputs, and is 1 elsewhere.

    Args:
        parts: The intervals, with increasing ratios.
        atom: Mass under Q of the outputs with ratio 1 outside the intervals.
        res: Resolution of the cells.

    Raises:
        LikelihoodRangeError: Ratios that matter exceed the range of doubles.
    """
    cells = [_cells(part, cuts) for part, cuts in zip(parts, _cuts(parts, atom, res), strict=True)]
    lower = _lower(cells, atom)
    increasing = all(part.increasing for part in parts)
    return RatioBracket(lower=lower, upper=_upper(cells, atom) if increasing else lower)


def _cuts(parts: tuple[Part, ...], atom: float, res: Resolution) -> list[Array]:
    """Return the outputs at which every interval is cut, its finite ends included."""
    end = 0.5 - float(scipy.special.ndtri_exp(math.log(res.tail)))
    grids = []
    for part in parts:
        ends = part.p.extent(res.tail) + part.q.extent(res.tail)
        low, high = max(part.low, min(ends) - end), min(part.high, max(ends) + end)
        grids.append(np.linspace(min(low, high), high, PICTURE))
    ratios = [part.log_ratio(z) for part, z in zip(parts, grids, strict=True)]
    if max(float(np.max(ratio)) for ratio in ratios) > math.log(LARGEST_RATIO):
        raise LikelihoodRangeError
    x = np.concatenate([*(np.exp(0.5 * (r[1:] + r[:-1])) for r in ratios), np.ones(1)])
    p = np.concatenate(
        [*(part.masses(z[:-1], z[1:])[0] for part, z in zip(parts, grids, strict=True)), np.full(1, atom)]
    )
    order = np.argsort(x, kind="stable")
    edges = choose_edges(x[order], p[order], res.fineness, res.tail, False, 0.0, 0.0)
    if edges.size < 2:
        raise LikelihoodRangeError
    found = []
    for part, z, ratio in zip(parts, grids, ratios, strict=True):
        least = 0 if part.increasing else int(np.argmin(ratio))  # to its left, a ratio may fall
        falling, rising = np.maximum.accumulate(ratio[least::-1]), np.maximum.accumulate(ratio[least:])
        at = np.log(edges[1:])
        inner = np.append(np.interp(at, falling, z[least::-1]), np.interp(at, rising, z[least:]))
        inner = inner[(inner > z[0]) & (inner < z[-1])]
        finite = [end for end in (part.low, part.high) if math.isfinite(end)]
        cuts = np.unique(np.concatenate((inner, finite))) if finite or inner.size else z[:1]
        apart = np.concatenate(([True], np.diff(cuts) > NARROWEST))
        if cuts.size > 1 and not apart[-1]:  # a finite right end stays
            apart[-2:] = cuts.size == 2, True
        found.append(cuts[apart])
    return found


def _cells(part: Part, cuts: Array) -> _Cells:
    """Return the cells between the cuts, and beyond them if the interval is unbounded."""
    low = np.concatenate(([-np.inf], cuts)) if part.low == -math.inf else cuts
    high = np.append(low[1:], np.inf)
    if part.high < math.inf:
        low, high = low[:-1], high[:-1]
    ratio = np.exp(np.maximum.accumulate(part.log_ratio(cuts)))
    if math.isfinite(part.low):
        ratio = np.maximum(ratio, 1.0)
        ratio[0] = 1.0
    if math.isfinite(part.high):
        ratio = np.minimum(ratio, 1.0)
        ratio[-1] = 1.0
    left = np.concatenate(([part.least], np.maximum(ratio, part.least))) if part.low == -math.inf else ratio
    right = np.append(left[1:], np.inf)
    left, right = left[: low.size], right[: low.size]
    q, p, more = part.masses(low, high)
    return _Cells(left=left, right=right, q=q, p=p, error=part.precision(cuts)[1] + more)


def _lower(cells: list[_Cells], atom: float) -> RatioDistribution:
    """Return the lower distribution: every cell at its conditional mean. Tiny cells are left out."""
    q = np.concatenate([each.q for each in cells])
    p = np.concatenate([each.p for each in cells])
    keep = q > SMALLEST_MASS
    x, mass = p[keep] / q[keep], q[keep]
    if atom > 0.0:
        x, mass = np.append(x, 1.0), np.append(mass, atom)
    order = np.argsort(x, kind="stable")
    error = max(each.error for each in cells)
    return RatioDistribution(x=x[order], p=mass[order], mass_error=error, value_error=2.0 * error)


def _upper(cells: list[_Cells], atom: float) -> RatioDistribution:
    r"""Return the upper distribution: the mass of every cell at its ends, with the mean of the cell.

    Let the computed mean have a relative error of at most 2 e. It is first moved by 4 e: upwards if less than
    half of the mass goes to the right end, otherwise downwards. So the true mean m differs from the moved one
    by at most 8 e m, to a known side. Moving the end with the larger mass by at most 16 e m, outwards,
    restores the true mean. The moved ends enclose the cell, so they give a mean-preserving spread, and they
    differ from the used ends by a factor of at most 1 + 16 e m / end. The end is at least the left end, and
    m is at most the middle of the cell if the left end moves.

    In a first cell whose left end is 0, the mean is always moved downwards, and the right end moves by
    8 e times itself. A cell so narrow that the moved mean lies outside has all its ratios within a factor of
    1 + 16 e of the end that gets the mass. Masses of the size of an underflow are moved to 0 and to infinity.
    """
    error = max(each.error for each in cells)
    values, masses, infinite, spread = [np.ones(1)], [np.full(1, atom)], 0.0, 1.0
    lost = 0.0
    for each in cells:
        bounded = np.isfinite(each.right)
        left, right, q, p = (v[bounded] for v in (each.left, each.right, each.q, each.p))
        mean = np.divide(p, q, out=left.copy(), where=q > 0.0)
        gap = np.maximum(right - left, 1e-300)
        upwards = (mean - left <= 0.5 * gap) & (left > 0.0)
        mean = np.where(upwards, mean * (1.0 + 4.0 * error), mean * (1.0 - 4.0 * error))
        with np.errstate(over="ignore"):
            share = np.clip((mean - left) / gap, 0.0, 1.0)
        values += [left, right]
        masses += [q * (1.0 - share), q * share]
        inner = upwards & (q > 0.0)
        if np.any(inner):
            spread = max(spread, float(np.max(right[inner] / left[inner])))
        if not bounded[-1]:
            edge, q_last, p_last = float(each.left[-1]), float(each.q[-1]), float(each.p[-1])
            values.append(np.full(1, edge))
            masses.append(np.full(1, q_last))
            infinite += max(0.0, p_last * (1.0 + 4.0 * error) - edge * q_last * (1.0 - 4.0 * error))
        lost += UNDERFLOW * each.q.size
    x, place = np.unique(np.concatenate(values), return_inverse=True)
    total = np.zeros_like(x)
    np.add.at(total, place, np.concatenate(masses))
    keep = total > 0.0
    return RatioDistribution(
        x=x[keep],
        p=total[keep],
        infinite=infinite * (1.0 + MEAN_AT_INFINITY),
        mass_error=error + 4.0 * UNIT,
        value_error=8.0 * error * (1.0 + spread) + 16.0 * UNIT,
        drift_remove=lost * (1.0 + float(x[-1])),
        drift_add=lost,
    )
