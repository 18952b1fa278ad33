r"""Bounds of hockey-stick divergences from the mass and two moments of the ratio in every cell.

Let y be the ratio relative to the threshold. The mean of a parabola that lies above the hinge $(y - 1)_+$ is
a bound of the mean of the hinge, for every distribution of y in the cell, and this mean is a sum of the mass
and of two moments with fixed coefficients. So any choice of the parabola is valid, and errors of the moments
are multiplied by its coefficients. The choice here is the best one for the given mean and variance.
"""

from dataclasses import dataclass

import numpy as np

from privcore.likelihood_ratio.kernel import Array

LARGEST = 1e100
"""Largest second moment relative to the mass for which a parabola is computed."""
NARROWEST = 1e-4
"""Least distance of the vertex of a parabola from the threshold, relative to the threshold."""


@dataclass(frozen=True, kw_only=True)
class Coefficients:
    """Coefficients of the mass, the mean and the second moment of y in every cell."""

    mass: Array
    mean: Array
    square: Array

    @property
    def all(self) -> tuple[Array, Array, Array]:
        """The coefficients in the order of the moments."""
        return self.mass, self.mean, self.square


def above(mass: Array, mean: Array, square: Array, most: Array) -> Coefficients:
    r"""Return coefficients whose sum bounds the mean of $(y - 1)_+$ in every cell.

    Args:
        mass: Approximate masses of the cells.
        mean: Approximate means of y on the cells, times their masses.
        square: Approximate means of y^2 on the cells, times their masses.
        most: Largest y in each cell; where it is at most 1, all coefficients are 0.

    Example:
        >>> cell = [np.array([value]) for value in (1.0, 0.5, 0.26)]
        >>> bound = sum(a * b for a, b in zip(above(*cell, most=np.array([np.inf])).all, cell, strict=True))
        >>> float(bound[0].round(6)), round((0.26**0.5 - 0.5) / 2, 6)  # (sqrt(v + (1 - m)^2) - (1 - m)) / 2
        (0.004951, 0.004951)
    """
    known = (mass > 0.0) & (mean > 0.0) & (square > 0.0) & (square < LARGEST * mass)
    m = np.where(known, mean, 0.0) / np.where(known, mass, 1.0)
    second = np.where(known, square, 1.0) / np.where(known, mass, 1.0)
    variance = np.maximum(second - m * m, 0.0)
    far = np.maximum(np.sqrt(variance + (1.0 - m) ** 2), NARROWEST)
    # A parabola that touches the axis at 1 - far and the line y - 1 at 1 + far
    vertex, factor = 1.0 - far, 0.25 / far
    # ... or meets the line at the largest y, if it would touch the line beyond
    short = (1.0 + far > most) & (m < most)
    room = np.where(short, most - m, 1.0)
    ended = np.minimum(m - variance / room, 2.0 - np.where(short, most, 1.0))
    ended_factor = (np.where(short, most, 1.0) - 1.0) / np.maximum(
        np.where(short, most, 2.0) - ended, 1e-300
    ) ** 2
    vertex, factor = np.where(short, ended, vertex), np.where(short, ended_factor, factor)
    alpha, beta, gamma = factor * vertex**2, -2.0 * factor * vertex, factor
    # ... or a parabola through the origin, since y >= 0
    touch = np.maximum(2.0, second / np.where(known, m, 1.0))
    low = known & (vertex < 0.0) & ~short
    alpha, beta, gamma = (
        np.where(low, other, one)
        for one, other in ((alpha, 0.0), (beta, 1.0 - 2.0 / touch), (gamma, touch**-2.0))
    )
    # ... or y itself, where nothing is known
    value = alpha * mass + beta * mean + gamma * square
    plain = ~known | ~(value < mean)
    possible = most > 1.0
    return Coefficients(
        mass=np.where(possible & ~plain, alpha, 0.0),
        mean=np.where(possible, np.where(plain, 1.0, beta), 0.0),
        square=np.where(possible & ~plain, gamma, 0.0),
    )


def below(mass: Array, mean: Array, square: Array) -> Coefficients:
    r"""Return coefficients whose sum bounds the mean of $(1 - y)_+$ in every cell.

    Args:
        mass: Approximate masses of the cells.
        mean: Approximate means of y on the cells, times their masses.
        square: Approximate means of y^2 on the cells, times their masses.
    """
    known = (mass > 0.0) & (mean > 0.0) & (square > 0.0) & (square < LARGEST * mass)
    m = np.where(known, mean, 0.0) / np.where(known, mass, 1.0)
    second = np.where(known, square, 1.0) / np.where(known, mass, 1.0)
    far = np.maximum(np.sqrt(np.maximum(second - m * m, 0.0) + (1.0 - m) ** 2), NARROWEST)
    vertex, factor = 1.0 + far, 0.25 / far
    alpha, beta, gamma = factor * vertex**2, -2.0 * factor * vertex, factor
    # ... or a parabola through (0, 1) that touches the axis, since y >= 0
    touch = np.maximum(2.0, second / np.where(known, m, 1.0))
    low = known & (far > 1.0)
    alpha, beta, gamma = (
        np.where(low, other, one) for one, other in ((alpha, 1.0), (beta, -2.0 / touch), (gamma, touch**-2.0))
    )
    plain = ~known | ~(alpha * mass + beta * mean + gamma * square < mass)
    return Coefficients(
        mass=np.where(plain, 1.0, alpha),
        mean=np.where(plain, 0.0, beta),
        square=np.where(plain, 0.0, gamma),
    )
