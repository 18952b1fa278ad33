r"""Residuals of two learners without training: least squares of minimum norm, and the nearest neighbour.

A residual is Gaussian given all features, and the residual of a fresh record is Gaussian given any trained
model. So its probability of being small is known: the average is over these probabilities, and no noise is
drawn.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore.numerics.sums import dot

Array = NDArray[np.float64]

FRESH = 2000
"""Fresh records of a run."""
_BLOCK = 500
"""Fresh records that are in memory at a time."""


@dataclass(frozen=True)
class Residuals:
    """Gaussian distributions of the residuals of records; a deviation of 0 means a known number.

    Attributes:
        mean: Means, shape (m,).
        deviation: Standard deviations, shape (m,).
    """

    mean: Array
    deviation: Array

    def share(self, loss_level: float) -> float:
        r"""Return the mean of $P(|r| \le \sqrt{\varepsilon})$ over the records.

        Example:
            >>> Residuals(np.array([0.0, 0.1]), np.zeros(2)).share(1e-6)
            0.5
        """
        t, far = math.sqrt(loss_level), np.abs(self.mean)
        scale = np.where(self.deviation > 0.0, self.deviation, 1.0)
        # If the mean is far, both ends are on one side of it, so that nothing cancels against 1.
        inside = scipy.special.ndtr((t - far) / scale) - scipy.special.ndtr((-t - far) / scale)
        return float(np.where(self.deviation > 0.0, inside, far <= t).mean())


def sphere(rng: np.random.Generator, number: int, coordinates: int) -> Array:
    """Return points that are uniform on the unit sphere, shape (number, coordinates)."""
    x = rng.standard_normal((number, coordinates))
    x /= np.sqrt(dot(x, x))[:, None]
    return x


def linear(
    coordinates: int, records: int, noise: float, seed: tuple[int, ...], slope: float = math.pi
) -> tuple[Residuals, Residuals]:
    r"""Return the residuals of training records and of fresh records, for least squares of minimum norm.

    The target is $b x_1$. With the projection $P = X^+ X$ and the leverages h, a training residual has the
    standard deviation $s \sqrt{1 - h_i}$, and a fresh residual has the mean $b x^T (P - I) e_1$ and the
    standard deviation $s \sqrt{1 + |X^{+T} x|^2}$. So b matters only for fresh records, and only if d > n.

    Args:
        coordinates: Number d of features, >= 2.
        records: Number n of training records.
        noise: Standard deviation s of the noise.
        seed: Seed of the features.
        slope: Slope b of the target; pi in the authors' program, and 1 in their appendix D.1.

    Example:
        >>> fitted, fresh = linear(20, 10, 0.1, (1,))
        >>> fitted.share(0.0), round(fresh.share(1e-4), 3)
        (1.0, 0.016)
    """
    rng = np.random.default_rng(seed)
    x = sphere(rng, records, coordinates)
    if records > coordinates:
        q, r = np.linalg.qr(x)
        spread = noise * np.sqrt(np.maximum(0.0, 1.0 - dot(q, q)))
        basis, root = np.eye(coordinates), r.T
    else:
        basis, root = np.linalg.qr(x.T)
        spread = np.zeros(records)
    means, deviations = [], []
    for size in _blocks():
        fresh = sphere(rng, size, coordinates)
        seen = fresh @ basis
        weights = np.linalg.solve(root, seen.T).T
        means.append(slope * (dot(seen, basis[0]) - fresh[:, 0]))
        deviations.append(noise * np.sqrt(1.0 + dot(weights, weights)))
    return Residuals(np.zeros(records), spread), Residuals(np.concatenate(means), np.concatenate(deviations))


def nearest(
    coordinates: int, records: int, noise: float, seed: tuple[int, ...]
) -> tuple[Residuals, Residuals]:
    r"""Return the residuals of training records, all 0, and of fresh records, for the nearest neighbour.

    If the neighbour of x is u, a fresh residual has the mean $\sin(\pi u_1) - \sin(\pi x_1)$ and the standard
    deviation $s \sqrt 2$.

    Args:
        coordinates: Number d of features, >= 2.
        records: Number n of training records.
        noise: Standard deviation s of the noise.
        seed: Seed of the features.

    Example:
        >>> fitted, fresh = nearest(2, 1000, 0.1, (1,))
        >>> fitted.share(0.0), round(fresh.share(1e-4), 3)
        (1.0, 0.056)
    """
    rng = np.random.default_rng(seed)
    x = sphere(rng, records, coordinates)
    target = np.sin(math.pi * x[:, 0])
    means = []
    for size in _blocks():
        fresh = sphere(rng, size, coordinates)
        closest = np.argmax(fresh @ x.T, axis=1)  # of unit vectors
        means.append(target[closest] - np.sin(math.pi * fresh[:, 0]))
    known = np.zeros(records)
    return Residuals(known, known), Residuals(np.concatenate(means), np.full(FRESH, math.sqrt(2.0) * noise))


def _blocks() -> list[int]:
    """Return the sizes of the blocks of fresh records."""
    return [_BLOCK] * (FRESH // _BLOCK)
