"""Likelihood ratio of one Gaussian step: lognormal, in cells with exact masses and means."""

import math

import numpy as np
import scipy

from privcore.likelihood_ratio.distribution import (
    LARGEST_RATIO,
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
    conditional_means,
    mean_preserving_spread,
)
from privcore.likelihood_ratio.grid import choose_edges
from privcore.likelihood_ratio.kernel import Array
from privcore.numerics.rounding import UNIT

NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
LONGEST = 1.0
"""Longest piece, in standard deviations, on which 12 nodes integrate to the last digit."""


def lognormal(s: float, res: Resolution) -> RatioBracket:
    r"""Return the bracket of $e^{sZ - s^2/2}$, the likelihood ratio of N(1, 1/s^2) against N(0, 1/s^2).

    Args:
        s: Inverse noise multiplier, > 0.
        res: Resolution of the cells.

    Raises:
        LikelihoodRangeError: The tail that matters exceeds the range of doubles.
    """
    end = 0.5 - float(scipy.special.ndtri_exp(np.log(res.tail)))
    if s * (end + s) > np.log(LARGEST_RATIO):
        raise LikelihoodRangeError
    z = np.linspace(-end, end + s, 512)
    picture = np.exp(s * (z + 0.5 * (z[1] - z[0])) - 0.5 * s * s)
    edges = choose_edges(
        picture,
        np.exp(-0.5 * z * z) * (z[1] - z[0]) / np.sqrt(2.0 * np.pi),
        res.fineness,
        res.tail,
        False,
        0.0,
        0.0,
    )
    mass, moment, error = lognormal_cells(s, edges)
    cells = RatioDistribution(x=edges, p=mass, mass_error=error, value_error=error)
    return RatioBracket(
        lower=conditional_means(cells, moment, 64), upper=mean_preserving_spread(cells, moment, 64)
    )


def lognormal_cells(s: float, edges: Array) -> tuple[Array, Array, float]:
    """Return mass and moment about the left end of every cell, and the relative error of both.

    In the inner cells both are integrals of non-negative smooth functions, by Gauss-Legendre quadrature, and
    so is the moment of the last cell (to infinity). Its mass, and the first cell (from 0), have closed forms
    in the normal distribution function.

    Args:
        s: Inverse noise multiplier.
        edges: Left ends of the cells, the first 0; the last cell has no right end.
    """
    cut = (np.log(edges[1:]) + 0.5 * s * s) / s
    pieces = int(np.ceil(max(1.0, float(np.max(np.diff(cut))) / LONGEST)))
    width = np.diff(cut) / pieces
    mass, moment = np.zeros(edges.size), np.zeros(edges.size)
    for piece in range(pieces):
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            z = cut[:-1] + (piece + 0.5 + 0.5 * node) * width
            density = 0.5 * weight * width * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
            mass[1:-1] += density
            moment[1:-1] += density * edges[1:-1] * np.maximum(np.expm1(s * (z - cut[:-1])), 0.0)
    first, last = cut[0], cut[-1]
    mass[0], moment[0] = scipy.special.ndtr(first), scipy.special.ndtr(first - s)
    mass[-1] = scipy.special.ndtr(-last)
    moment[-1] = _excess(s, float(last))
    largest = max(abs(float(first)), abs(float(last)), 1.0)
    # rounding of the integrand, and of the ends of a cell in proportion to its width
    error = 64.0 + largest * (largest + s) + (4.0 * largest + s) / float(np.min(width))
    return mass, moment, 16.0 * UNIT * error


def _excess(s: float, last: float) -> float:
    r"""Return the moment of the last cell, $\int_{z_n}^\infty \varphi(z - s) (1 - e^{-s (z - z_n)}) dz$.

    The difference of two tails, to which it is equal, has no digits if s is small. Twelve nodes suffice on
    pieces on which no factor changes by more than e^4. What lies beyond the last piece is below the share
    1e-25 of the whole, since the integrand falls like $e^{-(z_n - s) u}$ or $e^{-u^2 / 2}$ at the distance u
    from the larger one of z_n and s.

    Args:
        s: Inverse noise multiplier.
        last: Left end z_n of the cell, in standard deviations.
    """
    slope = max(1.0, last - s)
    longest = 1.0 / max(slope, 0.25 * s)
    reach = max(0.0, s - last) + min(13.0, 64.0 / slope)
    u = longest * np.add.outer(np.arange(math.ceil(reach / longest)) + 0.5, 0.5 * NODES)
    density = np.exp(-0.5 * np.square(last - s + u)) / np.sqrt(2.0 * np.pi)
    return float(np.sum(density * -np.expm1(-s * u) * (0.5 * longest * WEIGHTS)))
