r"""Potentials of signed numbers: the mean excess $\mathbb E (D - c)_+$ as a function of the level c.

A number is below another one in convex order if their means agree and its potential is smaller everywhere.
Every convex function that falls to 0 with slopes from -1 on is the potential of some number.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcore.likelihood_ratio.distribution import LikelihoodRangeError
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.signed import SignedLaw
from privcore.numerics.compiled import compiled
from privcore.numerics.rounding import UNIT

SHORT = 1e-6
"""Largest share by which a computed potential may fall short; far below all other losses."""


class Potential(NamedTuple):
    """Mean excess of a number over every level, piecewise linear; computed with small relative errors."""

    x: Array
    u: Array
    mass: float
    error: float
    """Bound of the relative errors."""

    def at(self, level: Array) -> Array:
        """Return the mean excess over levels, which may have a few roundings, rounded up."""
        level = level - 4.0 * UNIT * np.abs(level)
        j = np.clip(np.searchsorted(self.x, level, side="right"), 1, self.x.size - 1)
        left, right = self.x[j - 1], self.x[j]
        inner = np.maximum(right - level, 0.0) * self.u[j - 1] + np.maximum(level - left, 0.0) * self.u[j]
        outer = np.where(level < left, self.u[0] + (left - level) * self.mass, self.u[-1])
        found: Array = np.where((left <= level) & (level <= right), inner / (right - left), outer)
        return found * (1.0 + self.error)


def mean_excesses(x: Array, p: Array, beyond: float) -> Array:
    """Return the mean excesses of a distribution over its atoms, as sums of positive terms.

    Args:
        x: Atoms, ascending.
        p: Their masses.
        beyond: Mean excess over the last atom.

    Example:
        >>> mean_excesses(np.array([0.0, 1.0, 3.0]), np.array([0.5, 0.25, 0.25]), 0.0)
        array([1. , 0.5, 0. ])
    """
    above = np.cumsum(p[::-1])[::-1]
    found: Array = np.append(np.cumsum((above[1:] * np.diff(x))[::-1])[::-1], 0.0) + beyond
    return found


def potential_of(law: SignedLaw) -> Potential:
    """Return the potential of a distribution."""
    u = mean_excesses(law.x, law.p, law.beyond)
    return Potential(law.x, u, float(np.cumsum(law.p[::-1])[-1]), (4 * law.x.size + 64) * UNIT)


def from_potential(level: Array, bound: Array) -> SignedLaw:
    """Return a distribution whose potential is at least a convex function that has upper bounds at levels.

    Its masses are differences of slopes, with the factor by which its own potential, sums of positive terms,
    falls short of the function.

    Args:
        level: Levels, ascending.
        bound: Upper bounds of the function there.

    Raises:
        LikelihoodRangeError: It falls short by more than `SHORT`.
    """
    x, u = hull(level, bound)
    slope = np.concatenate(([-1.0], np.clip(np.diff(u) / np.diff(x), -1.0, 0.0), [0.0]))
    law = SignedLaw(x=x, p=np.maximum(np.diff(slope), 0.0), beyond=float(u[-1]))
    found = potential_of(law)
    short = max(1.0, float(np.max(u / found.u))) * (1.0 + 2.0 * found.error)
    if not short <= 1.0 + SHORT:  # also if a potential is not a number
        raise LikelihoodRangeError
    return SignedLaw(x=x, p=law.p * short, beyond=law.beyond * short)


def hull(x: Array, y: Array) -> tuple[Array, Array]:
    """Return the vertices of the largest convex function below points.

    Every convex function below the points lies below it, so it is still an upper bound of a profile.

    Args:
        x: Ascending places.
        y: Upper bounds of a convex function there.

    Example:
        >>> hull(np.array([0.0, 1.0, 2.0]), np.array([1.0, 0.8, 0.0]))[0]
        array([0., 2.])
    """
    kept = _vertices(np.ascontiguousarray(x), np.ascontiguousarray(y))
    return x[kept], y[kept]


@compiled()
def _vertices(x: Array, y: Array) -> NDArray[np.int64]:
    """Return the places of the vertices of `hull`."""
    kept = np.empty(x.size, np.int64)
    size = 0
    for k in range(x.size):
        while size > 1:
            i, j = kept[size - 2], kept[size - 1]
            if (y[j] - y[i]) * (x[k] - x[j]) < (y[k] - y[j]) * (x[j] - x[i]):
                break
            size -= 1
        kept[size] = k
        size += 1
    return kept[:size]
