"""Likelihood-ratio distributions of one-step mechanisms: Gaussian, Laplace, randomized response, mixtures."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

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
    product_of,
)
from privcore.likelihood_ratio.grid import Array, choose_edges
from privcore.likelihood_ratio.questions import Question
from privcore.numerics.rounding import FEW_FUNCTIONS, FEW_OPERATIONS, UNIT, probability_at_most

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


@dataclass(frozen=True)
class Mixture:
    """Mixture of N(mean, 1): weights, at least 0, and means, ascending."""

    weights: tuple[float, ...]
    means: tuple[float, ...]

    def mass(self, low: Array, high: Array) -> Array:
        """Return the probabilities of the intervals from `low` to `high`."""
        total = np.zeros_like(low)
        for weight, mean in zip(self.weights, self.means, strict=True):
            total += weight * between(low - mean, high - mean)
        return total

    def extent(self, tail: float) -> tuple[float, float]:
        """Return the least mean, and the greatest one apart from means of total weight up to `tail`."""
        beyond = np.cumsum(self.weights[::-1])[::-1]
        return self.means[0], self.means[int(np.max(np.flatnonzero(beyond > tail), initial=0))]

    def log_density(self, z: Array) -> Array:
        """Return the logarithm of the density at z over that of N(0, 1)."""
        terms = np.stack(
            [
                math.log(weight) + mean * z - 0.5 * mean * mean
                for weight, mean in zip(self.weights, self.means, strict=True)
                if weight > 0.0
            ]
        )
        largest: Array = terms.max(axis=0)
        found: Array = largest + np.log(np.exp(terms - largest).sum(axis=0))
        return found


def between(low: Array, high: Array) -> Array:
    """Return the probabilities of intervals under N(0, 1), as a difference of the smaller tails."""
    flip = low > 0.0
    first, last = np.where(flip, -high, low), np.where(flip, -low, high)
    between: Array = np.maximum(scipy.special.ndtr(last) - scipy.special.ndtr(first), 0.0)
    return between


def sampled(probability: float, mean: float) -> Mixture:
    """Return the mixture of N(0, 1) with N(mean, 1) at a probability in (0, 1]."""
    if probability == 1.0:
        return Mixture((1.0,), (mean,))
    pairs = sorted([(0.0, 1.0 - probability), (mean, probability)])
    return Mixture(tuple(weight for _, weight in pairs), tuple(at for at, _ in pairs))


class Step(ABC):
    """Mechanism of one step; equal steps have equal distributions, so a step can be a key of caches."""

    @abstractmethod
    def ratio(self, res: Resolution) -> RatioBracket:
        """Return the bracket of the likelihood ratio."""

    def composed(self, copies: int, res: Resolution) -> RatioBracket:
        """Return the bracket of the ratio of independent copies whose steps are public."""
        return product_of(self.ratio(res), copies, res)

    @abstractmethod
    def width(self) -> float:
        """Return the approximate range of the logarithm of the ratio, as the argument s of `cost`."""


@dataclass(frozen=True)
class GaussianStep(Step):
    """Gaussian noise of standard deviation sigma at sensitivity 1."""

    sigma: float

    def ratio(self, res: Resolution) -> RatioBracket:
        return lognormal(1.0 / self.sigma, res)

    def composed(self, copies: int, res: Resolution) -> RatioBracket:
        return lognormal(math.sqrt(copies) / self.sigma, res)

    def width(self) -> float:
        return 1.0 / self.sigma


@dataclass(frozen=True)
class ResponseStep(Step):
    r"""Randomized response: the true answer has probability $e^{\varepsilon_0} / (1 + e^{\varepsilon_0})$.

    It dominates every pair whose likelihood ratio lies in $[e^{-\varepsilon_0}, e^{\varepsilon_0}]$: the
    distribution of mean 1 on the two ends is a mean-preserving spread of every other distribution of mean 1
    on this interval. With probability $\delta_0$ the answer is not randomized, and known to be true; this
    dominates every $(\varepsilon_0, \delta_0)$-private pair (Kairouz, Oh and Viswanath 2015, Theorem 3.3).
    """

    local_epsilon: float
    local_delta: float = 0.0

    def ratio(self, res: Resolution) -> RatioBracket:
        low, high = math.exp(-self.local_epsilon), math.exp(self.local_epsilon)
        p = 1.0 / (1.0 + low), low / (1.0 + low)
        distribution = RatioDistribution(
            x=np.array([0.0, low, high] if self.local_delta else [low, high]),
            p=np.append(self.local_delta, (1.0 - self.local_delta) * np.array(p))
            if self.local_delta
            else np.array(p),
            infinite=self.local_delta,
            mass_error=8.0 * UNIT,
            value_error=(2.0 + self.local_epsilon) * 2.0 * UNIT,
        )
        return RatioBracket(lower=distribution, upper=distribution)

    def width(self) -> float:
        return self.local_epsilon


@dataclass(frozen=True)
class LaplaceStep(Step):
    r"""Laplace noise of scale b at sensitivity 1: the logarithm of the ratio is $(|y| - |y - 1|) / b$.

    It has atoms at both ends, $\mp 1/b$, with masses $1/2$ and $e^{-1/b}/2$, and a density in between.
    """

    scale: float

    def ratio(self, res: Resolution) -> RatioBracket:
        reach = 1.0 / self.scale
        y = np.linspace(0.0, 1.0, 256)
        picture = np.exp(reach * (2.0 * y - 1.0))
        masses = np.exp(-reach * y) * (0.5 * reach * (y[1] - y[0]))
        masses[0] += 0.5
        masses[-1] += 0.5 * math.exp(-reach)
        edges = choose_edges(picture, masses, res.fineness, res.tail, False, 0.0, 0.0)
        inner = 0.5 + 0.5 * self.scale * np.log(edges[1:])
        inner = inner[(inner > 1e-9) & (inner < 1.0 - 1e-9)]
        return laplace_cells(self.scale, np.concatenate(([0.0], inner, [1.0])))

    def width(self) -> float:
        return 1.0 / self.scale


def laplace_cells(scale: float, cut: Array) -> RatioBracket:
    """Return the bracket of the ratio, in cells with given outputs as edges.

    The atoms are at the first and at the last cut. In between, mass and moment about the left end are
    integrals of non-negative smooth functions, by Gauss-Legendre quadrature. The cuts are exact by
    definition, and the ratios at the cuts, to which all values refer, have the rounding error of an
    exponential.

    Args:
        scale: Scale of the noise.
        cut: Outputs, ascending from 0 to 1.
    """
    reach = 1.0 / scale
    edges = np.append(0.0, np.exp(reach * (2.0 * cut - 1.0)))
    cell = np.diff(cut)
    pieces = math.ceil(max(1.0, reach * float(np.max(cell))))
    mass, moment = np.zeros(edges.size), np.zeros(edges.size)
    for piece in range(pieces):
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            from_left = (piece + 0.5 + 0.5 * node) * (cell / pieces)
            density = 0.25 * reach * weight * (cell / pieces) * np.exp(-reach * (cut[:-1] + from_left))
            mass[1:-1] += density
            moment[1:-1] += density * edges[1:-1] * np.expm1(2.0 * reach * from_left)
    mass[1] += 0.5
    mass[-1] += 0.5 * math.exp(-reach)
    error = 16.0 * UNIT * (64.0 + 4.0 * reach)
    widest = math.expm1(2.0 * reach * float(np.max(cell)))
    distribution = RatioDistribution(
        x=edges, p=mass, mass_error=error, value_error=error * widest + (16.0 + 8.0 * reach) * UNIT
    )
    return RatioBracket(
        lower=conditional_means(distribution, moment, 64),
        upper=mean_preserving_spread(distribution, moment, 64),
    )


def private_closed_form(
    question: Question, uses: int, local_epsilon: float, local_delta: float
) -> tuple[float, float]:
    """Return the bracket between revealing nothing and revealing the chosen steps, for private steps.

    Args:
        question: Quantity to compute.
        uses: Largest number of steps in all epochs that use the example.
        local_epsilon: Epsilon of one step.
        local_delta: Delta of one step, the probability that it leaks the example.
    """
    reach = uses * local_epsilon * (1.0 + FEW_OPERATIONS)
    leak = -math.expm1(uses * math.log1p(-local_delta)) * (1.0 + FEW_FUNCTIONS)
    if question.asks == "epsilon":
        return 0.0, reach if leak <= question.at else math.inf
    # (e^r - e^epsilon) / (1 + e^r) for |epsilon| < r, the randomized response of the composed epsilon
    apart = -math.expm1(min(0.0, question.at))  # for equal distributions of the outputs
    top = max(apart, -math.expm1(min(0.0, question.at - reach)) / (1.0 + math.exp(-reach)))
    return math.nextafter(apart, 0.0), probability_at_most(
        leak + (1.0 - leak) * top, FEW_FUNCTIONS if leak else FEW_OPERATIONS
    )
