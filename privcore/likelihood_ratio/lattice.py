r"""One Poisson-sampled Gaussian step on a lattice of losses, in convex order above and below it.

Write $d(t) = E(t - Y)_+$ and $u(t) = E(Y - t)_+$. A distribution on the points $y_j$ is given by its own u,
which is linear between them. The chord of u over a cell of width $\Delta$ is above u by at most
$G = \Delta^2 \max f / 8$ for a density f. So the values $u(y_j) - g_j$, with $g_j$ the larger G of the two
cells next to $y_j$, define a distribution that Y dominates. Compared with the spread to the same points, the
mass of $y_j$ changes by a second difference of g.

If a tail falls by more than a factor e within few cells, g is larger than d or u. There one line leads from
an end, whose value is that of no mass beyond it, to the first point from which the values are convex.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import scipy

from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.profile import Direction
from privcore.likelihood_ratio.steps import LONGEST, NODES, WEIGHTS
from privcore.numerics.rounding import SUMMED, UNIT

MARGIN = 1e-3
"""Relative margin of g, for errors of the density and of comparisons, which are below a millionth of it."""
HIDDEN = 1e-11
"""Share of d or u that is added to g: rounding could hide whether a line is below values so close."""
SUMS = 1e-8
"""Counted: relative error of sums of up to 2^21 masses, at the ends."""


def contracted(s: float, cut: Array, y: Array, mass: Array, moment: Array, error: float) -> Array | None:
    """Return lower bounds of the masses at 0 and at the ends of the cells, or None if cells are too wide.

    Args:
        s: Inverse noise multiplier, the standard deviation of log Y.
        cut: Ends of the cells in standard deviations, ascending.
        y: The same ends.
        mass: Masses of all cells; the first begins at 0, the last has no end.
        moment: Means of Y less the left end in all cells but the last, times their masses.
        error: Relative error of masses and moments.
    """
    wide = np.append(y[0], y[:-1] * np.expm1(s * np.diff(cut)))
    moved = np.minimum(moment / wide, mass[:-1])
    stays = mass - np.append(moved, 0.0)
    spread = stays + np.append(0.0, moved)
    gap = _largest_gap(s, cut, y, wide)
    below, above = np.cumsum(spread), np.cumsum(spread[::-1])[::-1]
    d = np.append(0.0, np.cumsum(below[:-1] * wide))  # E(y_j - Y)_+, for Y cut off at the last end
    u = np.append(np.cumsum((above[1:] * wide)[::-1])[::-1], 0.0)
    g = (1.0 + MARGIN) * np.maximum(np.append(gap, 0.0), np.append(0.0, gap)) + HIDDEN * np.minimum(d, u)
    at = np.append(0.0, y)
    low, high = d - g, u - g
    short = np.flatnonzero((low < MARGIN * g) & (d < u))
    first = int(short[-1]) + 1 if short.size else 0
    short = np.flatnonzero((high < MARGIN * g) & (u < d))
    last = int(short[0]) - 1 if short.size else -1
    if not first + 2 < last:
        return None
    left = first + 1 + int(np.argmin(low[first + 1 : last] / (at[first + 1 : last] - at[first])))
    right = first + 1 + int(np.argmin(high[first + 1 : last] / (at[last] - at[first + 1 : last])))
    if not left < right:
        return None
    slope = np.diff(g) / wide
    found = np.zeros_like(spread)
    inside = slice(left + 1, right)
    bend = slope[left + 1 : right] - slope[left : right - 1]
    doubt = 2.0 * (error + 64.0 * UNIT) * (moved[left + 1 : right] + moved[left : right - 1] + stays[inside])
    doubt += 64.0 * UNIT * (np.abs(slope[left + 1 : right]) + np.abs(slope[left : right - 1]))
    found[inside] = spread[inside] - bend - doubt
    ends = low[left] / (at[left] - at[first]), high[right] / (at[last] - at[right])
    found[left] = below[left] - slope[left] - ends[0]
    found[left] -= SUMS * (below[left] + abs(slope[left]) + ends[0])
    found[right] = above[right] + slope[right - 1] - ends[1]
    found[right] -= SUMS * (above[right] + abs(slope[right - 1]) + ends[1])
    found[first] = ends[0] - SUMS * d[left] / (at[left] - at[first])
    found[last] = ends[1] - SUMS * u[right] / (at[last] - at[right])
    return None if np.min(found) < 0.0 else found


def _largest_gap(s: float, cut: Array, y: Array, wide: Array) -> Array:
    """Return upper bounds of the distance of u from its chords, in all cells but the last.

    The density of Y is unimodal, with the mode at -s standard deviations.
    """
    density = np.exp(-0.5 * np.square(cut)) / (math.sqrt(2.0 * math.pi) * s * y)
    largest = np.maximum(density, np.append(0.0, density[:-1]))
    mode = int(np.searchsorted(cut, -s))
    if mode < cut.size:
        largest[mode] = math.exp(s * s) / (math.sqrt(2.0 * math.pi) * s)
    found: Array = np.square(wide) * largest / 8.0
    return found


LARGEST_LOSS = 650.0
"""Largest logarithm of Y on a lattice, so that its exponential is in the range of doubles."""
FEW_NODES = ((1e-3, 2), (0.15, 4))
"""Numbers of Gauss-Legendre nodes by the largest width x of a cell, in units of the length over which the
integrand changes by a factor e. The remainder of a mass is at most 2.4e-4 x^4 and 5.6e-10 x^8, relatively,
that of a moment x^3 / 540 and 9e-9 x^7: 2e-12 and 2e-14."""
STEEPEST, MOST_PIECES = 8.0, 500
"""Width of a piece of a wide cell with 12 nodes, in the same units, and largest number of pieces."""
FARTHEST = 35.0
"""Largest end of a lattice, in standard deviations of Q, if masses of P are those of Q times a ratio: at 37,
densities leave the range of doubles, and masses of P would be lost."""
VANISHED = 40.0
"""Standard deviations beyond which a density is 0 in doubles."""
QUADRATURE = 2e-12
"""Counted: relative error of a moment by quadrature."""


@dataclass(frozen=True)
class LatticeStep:
    """One step on a lattice of losses.

    Attributes:
        loss: The losses, ascending.
        least: The first loss as a multiple of the spacing.
        spacing: Distance of two losses.
        p: Masses of P, or of Q with reversed losses, of a distribution that dominates the step.
        beyond: Upper bound of the mass of P beyond the lattice.
        mass_error: Relative error of the masses.
        value_error: Absolute error of the losses.
        contracted: Lower bounds of the masses of a distribution that the step dominates, if there is one.
    """

    loss: Array
    least: int
    spacing: float
    p: Array
    beyond: float
    mass_error: float
    value_error: float
    contracted: Array | None = None

    @property
    def below(self) -> "LatticeStep | None":
        """The distribution that the step dominates."""
        return None if self.contracted is None else replace(self, p=self.contracted, contracted=None)

    def tilted(self, tau: float) -> tuple[float, Array]:
        """Return the logarithm of the moment of order tau, and the masses of the tilted distribution."""
        with np.errstate(divide="ignore"):
            exponents = tau * self.loss + np.log(self.p)
        top = float(np.max(exponents))
        weights = np.exp(exponents - top)
        total = float(np.sum(weights))
        return top + math.log(total), weights / total

    def tilt_error(self, tau: float) -> float:
        """Return the relative error of the tilted masses, and the absolute one of the logarithm."""
        largest = max(abs(float(self.loss[0])), abs(float(self.loss[-1])))
        return 16.0 * UNIT * (tau * largest + 800.0)  # the logarithm of a mass is below 745 in size


@lru_cache(maxsize=8)
def step_on_lattice(
    s: float,
    rate: float,
    end: float,
    direction: Direction,
    *,
    points: int = 0,
    negative: int = 0,
    most: int,
    both: bool = False,
) -> LatticeStep | None:
    r"""Return a step on a lattice, or None if it is too large, or leaves the range of doubles.

    The ratio $X = 1 - q + q Y$ is spread to the ends of its cell, and the mean of a cell is kept. The value
    1 - q is a point. The cells of Y have ends that are exact as doubles in standard deviations: their
    rounding moves losses, not masses. Above the last point, the mass of Q stays and that of P is `beyond`.

    Args:
        s: Inverse noise multiplier, > 0.
        rate: Sampling probability q, in (0, 1).
        end: Number of standard deviations of P up to which the lattice reaches.
        direction: Direction; for add, the losses are reversed.
        points: About the number of points.
        negative: Number of negative losses, in place of the number of points.
        most: Largest number of points.
        both: Whether to look for the distribution below, too.
    """
    lowest = -math.log1p(-rate)
    highest = s * (end + 0.5 * s)  # of the logarithm of Y
    if highest > LARGEST_LOSS:
        return None
    highest = math.log1p(rate * math.expm1(highest))
    below = negative or max(1, math.ceil(lowest / ((lowest + highest) / points)))
    spacing = lowest / below
    count = below + math.ceil(highest / spacing) + 1
    if count > most:
        return None
    y = np.expm1(np.arange(1, count) * spacing) * ((1.0 - rate) / rate)
    cut = (np.log(y) + 0.5 * s * s) / s
    if (direction == "remove" and cut[-1] > FARTHEST) or _pieces(s, np.diff(cut)) > MOST_PIECES:
        return None
    mass, moment, error = _cells(s, y, cut)
    moved = np.minimum(moment / np.diff(y, prepend=0.0), mass[:-1])
    q = mass.copy()
    q[:-1] -= moved
    q[1:] += moved
    touched = np.append(moved, 0.0) + np.append(0.0, moved)
    used = q > 0.0
    worst = float(np.max(touched[used] / q[used]))
    largest = max(abs(float(cut[0])), abs(float(cut[-1])), 1.0) + s
    loss = np.arange(-below, count - below).astype(np.float64) * spacing
    farthest = max(abs(float(loss[0])), abs(float(loss[-1])))
    mass_error = 16.0 * UNIT * (64.0 + largest * largest + farthest) + worst * error
    if mass_error > 1e-3:  # the bounds take errors for small
        return None
    value_error = 16.0 * UNIT * (4.0 + s * largest + farthest)
    less = contracted(s, cut, y, mass, moment, error) if both else None
    if direction == "remove":
        beyond = float(scipy.special.ndtr(s - cut[-1])) * (1.0 + SUMMED)
        ratio = np.exp(loss)
        less = None if less is None else less * ratio
        return LatticeStep(loss, -below, spacing, q * ratio, beyond, mass_error, value_error, less)
    less = None if less is None else less[::-1].copy()
    reverse, least = q[::-1].copy(), below + 1 - count
    return LatticeStep(-loss[::-1], least, spacing, reverse, 0.0, mass_error, value_error, less)


def _pieces(s: float, width: Array) -> int:
    """Return the number of pieces of the widest cell, so that each is short and flat enough."""
    widest = float(np.max(width))
    return math.ceil(max(1.0, widest / LONGEST, widest * (VANISHED + s + 4.0) / STEEPEST))


def _cells(s: float, y: Array, cut: Array) -> tuple[Array, Array, float]:
    """Return masses of all cells, the moments of Y about their left ends, and the relative error of a moment.

    The first cell begins at 0; the last one has no end, and no moment is returned for it. A node is given by
    its distance from the left end, a share of the width, so the rounding of the ends does not count.

    Args:
        s: Inverse noise multiplier.
        y: Ends of the cells, ascending; the first one is above 0.
        cut: The same in standard deviations.
    """
    width = np.diff(cut)
    largest = max(abs(float(cut[0])), abs(float(cut[-1])), 1.0) + s
    mass, moment = np.zeros(y.size + 1), np.zeros(y.size)
    steepness = width * (min(largest, VANISHED) + s + 4.0)
    done = np.zeros(width.size, dtype=bool)
    rules = [(limit, *np.polynomial.legendre.leggauss(nodes)) for limit, nodes in FEW_NODES]
    rules += [(STEEPEST, NODES, WEIGHTS), (math.inf, NODES, WEIGHTS)]
    for limit, nodes, weights in rules:
        chosen = np.flatnonzero((steepness <= limit) & ~done)
        if not chosen.size:
            continue
        done[chosen] = True
        left, wide = cut[chosen], width[chosen]
        pieces = _pieces(s, wide) if limit > STEEPEST else 1
        for piece in range(pieces):
            for node, weight in zip(nodes, weights, strict=True):
                u = ((piece + 0.5 + 0.5 * float(node)) / pieces) * wide
                density = (0.5 * float(weight) / pieces) * wide * np.exp(-0.5 * np.square(left + u))
                mass[1 + chosen] += density
                moment[1 + chosen] += density * np.expm1(s * u)
    mass *= 1.0 / math.sqrt(2.0 * math.pi)
    moment[1:] *= y[:-1] / math.sqrt(2.0 * math.pi)
    first = float(cut[0])
    mass[0], moment[0] = scipy.special.ndtr(first), scipy.special.ndtr(first - s)
    mass[-1] = scipy.special.ndtr(-cut[-1])
    return mass, moment, 16.0 * UNIT * (64.0 + largest * largest) + QUADRATURE
