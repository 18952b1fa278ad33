"""The likelihood ratio of one Gaussian step: lognormal, in cells with exact masses and means."""

import numpy as np
from scipy.special import ndtr, ndtri_exp

from privcore.likelihood.grid import choose_edges
from privcore.likelihood.kernel import Array, spread
from privcore.likelihood.law import LARGEST_RATIO, Bracket, Law, LikelihoodRangeError, Resolution

CDF_ERROR = 1e-13
"""Relative error of scipy's normal distribution function, with room; tested against 50 digits."""


def normal_cells(z: Array) -> Array:
    """Return the standard normal masses of the cells between consecutive points, the two tails included.

    Args:
        z: Ascending points, shape (n,).

    Returns:
        Masses, shape (n + 1,); differences are taken on the side where they do not cancel.
    """
    z = np.concatenate(([-np.inf], z, [np.inf]))
    left, right = z[:-1], z[1:]
    return np.where(right <= 0.0, ndtr(right) - ndtr(left), ndtr(-left) - ndtr(-right))


def lognormal(s: float, res: Resolution) -> Bracket:
    r"""Return the bracket of $e^{sZ - s^2/2}$, the likelihood ratio of N(1, 1/s^2) against N(0, 1/s^2).

    Args:
        s: Inverse noise multiplier, > 0.
        res: Resolution of the cells.
    """
    end = 0.5 - float(ndtri_exp(np.log(res.tail)))
    z = np.linspace(-end, end + s, 512)
    picture_mass = normal_cells(z)
    picture_moment = normal_cells(z - s)
    keep = picture_mass > 0.0
    if s * (end + s) > np.log(LARGEST_RATIO):
        raise LikelihoodRangeError
    edges = choose_edges(
        picture_moment[keep] / picture_mass[keep], picture_mass[keep], res.fineness, res.tail, False
    )
    cut = (np.log(edges[1:]) + 0.5 * s * s) / s
    mass = normal_cells(cut)
    moment = normal_cells(cut - s)
    keep = mass > 0.0
    error = _cell_error(cut, s)
    lower = Law(x=moment[keep] / mass[keep], p=mass[keep], mass_error=error, value_error=2.0 * error)
    p, beyond = spread(edges, mass, moment)
    keep = p > 0.0
    upper = Law(x=edges[keep], p=p[keep], infinite=beyond, mass_error=error, value_error=2.0 * error)
    return Bracket(lower=lower, upper=upper)


def _cell_error(cut: Array, s: float) -> float:
    """Return the relative error of a cell's mass: that of its ends, magnified by their closeness."""
    closest = float(np.min(np.diff(cut)))
    return CDF_ERROR * (1.0 + 2.0 / min(1.0, closest))
