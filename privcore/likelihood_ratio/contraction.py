r"""One step contracted to a lattice: the distribution there that the step dominates in convex order.

Write $d(t) = E(t - Y)_+$ and $u(t) = E(Y - t)_+$. A distribution on the points $y_j$ is given by its own u,
which is linear between them. The chord of u over a cell of width $\Delta$ is above u by at most
$G = \Delta^2 \max f / 8$ for a density f. So the values $u(y_j) - g_j$, with $g_j$ the larger G of the two
cells next to $y_j$, define a distribution that Y dominates. Compared with the spread to the same points, the
mass of $y_j$ changes by a second difference of g.

If a tail falls by more than a factor e within few cells, g is larger than d or u. There one line leads from
an end, whose value is that of no mass beyond it, to the first point from which the values are convex.
"""

import math

import numpy as np

from privcore.likelihood_ratio.kernel import Array
from privcore.numerics.rounding import UNIT

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
