"""Likelihood-ratio distributions of one-step mechanisms: Gaussian, Laplace, randomized response."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from privcore.likelihood_ratio.distribution import (
    RatioBracket,
    RatioDistribution,
    Resolution,
    conditional_means,
    mean_preserving_spread,
    product_of,
)
from privcore.likelihood_ratio.grid import choose_edges
from privcore.likelihood_ratio.kernel import Array
from privcore.likelihood_ratio.lognormal import NODES, WEIGHTS, lognormal
from privcore.numerics.rounding import UNIT


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
    on this interval.
    """

    local_epsilon: float

    def ratio(self, res: Resolution) -> RatioBracket:
        low, high = math.exp(-self.local_epsilon), math.exp(self.local_epsilon)
        p = 1.0 / (1.0 + low), low / (1.0 + low)
        distribution = RatioDistribution(
            x=np.array([low, high]),
            p=np.array(p),
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
