"""Advantage of the best threshold on the squared loss of a record, for least squares."""

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore.answer import Answer
from privcore.membership.gaussian_mean.problems import MembershipRegressionAdvantage
from privcore.membership.regression.sampling import INTERPOLATES
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import LOSS_RATES
from privcore.papers import AUBINAIS

Array = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_STEPS = (4, 16, 24)
"""Nodes per width of a Beta distribution: for finding the threshold, and for the two compared quadratures."""
_REACH = 46.0
"""Logarithm of the peak density over the density where the nodes end."""


class MembershipThreshold(Method[MembershipRegressionAdvantage]):
    """Classify a record as a member if its squared residual is below the best threshold.

    Residuals are normal given the leverage, which has a Beta distribution, and the advantage is a sum of two
    positive integrals over the leverage. The trapezoid rule in the logit converges faster than any power. Its
    error is not proved but checked by a finer rule: the lower end is the smaller value of both rules, minus
    ten times their difference.
    """

    name = "membership.threshold"
    problems = (MembershipRegressionAdvantage,)
    direction = Direction.LOWER
    reference = f"{AUBINAIS}, Section 4, for least squares with Gaussian features"
    version = 2

    def applies(self, problem: MembershipRegressionAdvantage) -> str | None:
        return INTERPOLATES if problem.interpolates else None

    def cost(self, problem: MembershipRegressionAdvantage) -> Cost:
        return Cost(seconds=0.05, bytes=2e6)

    def answer(self, problem: MembershipRegressionAdvantage, seed: int) -> Answer:
        rough, coarse, fine = (LossRates.of(problem.records, problem.coordinates, steps) for steps in _STEPS)
        root = best_root(rough, problem.odds)
        (one, size), (other, _) = (rates.advantage(root, problem.odds) for rates in (coarse, fine))
        far = max(1.0, (root / 20.0) ** 2)  # the relative error of erf grows with the squared argument
        lower = min(one, other) - 10.0 * abs(one - other) - LOSS_RATES * far * size
        return Answer.enclosure(min(1.0, max(0.0, lower)), 1.0, detail=f"threshold {root * root:.6g}")


@dataclass(frozen=True)
class LossRates:
    """True and false positive rates of thresholds, by quadrature over leverages.

    Attributes:
        shrinking: Leverages, by which the variance of a training residual is smaller than that of the noise.
        growing: Numbers by which the variance of a fresh residual is larger than that of the noise.
        inside: Weights of `shrinking`, which sum to 1.
        outside: Weights of `growing`, which sum to 1.
    """

    shrinking: Array
    growing: Array
    inside: Array
    outside: Array

    @classmethod
    def of(cls, records: int, coordinates: int, steps: int) -> "LossRates":
        """Return nodes and weights for n records and d features, with `steps` per width of a distribution."""
        inner, inside = _beta_nodes(0.5 * coordinates, 0.5 * (records - coordinates), steps)
        outer, outside = _beta_nodes(0.5 * coordinates, 0.5 * (records - coordinates + 1), steps)
        return cls(np.exp(inner - np.logaddexp(0.0, inner)), np.exp(outer), inside, outside)

    def gain(self, root: float) -> tuple[float, float]:
        r"""Return the differences of both rates from that of a unit normal residual, at threshold $t^2$."""
        # 1 / sqrt(1 - h) - 1 and 1 - 1 / sqrt(1 + g), without cancellation
        h, g = self.shrinking, self.growing
        left = np.sqrt(np.maximum(1.0 - h, 1e-300))
        more = _erf_between(root, root * h / (left * (1.0 + left)))
        right = np.sqrt(1.0 + g)
        fewer = _erf_between(root, -root * g / (right * (1.0 + right)))
        return float((more * self.inside).sum()), float((fewer * self.outside).sum())

    def advantage(self, root: float, odds: float) -> tuple[float, float]:
        """Return the advantage of a threshold, which may be negative, and the sum of its absolute terms."""
        more, fewer = self.gain(root)
        if odds >= 1.0:
            gain, loss = more + odds * fewer, (odds - 1.0) * math.erf(root * math.sqrt(0.5))
        else:
            gain, loss = fewer + more / odds, (1.0 / odds - 1.0) * math.erfc(root * math.sqrt(0.5))
        return gain - loss, gain + loss


def best_root(rates: LossRates, odds: float) -> float:
    """Return the square root of a nearly optimal threshold, in standard deviations of the noise."""
    low, high = -12.0, 4.0  # logarithms
    while True:
        grid = np.linspace(low, high, 33)
        values = [rates.advantage(math.exp(x), odds)[0] for x in grid]
        best = int(np.argmax(values))
        if high - low < 1e-5:
            return math.exp(float(grid[best]))
        low, high = float(grid[max(0, best - 1)]), float(grid[min(32, best + 1)])


def _beta_nodes(a: float, b: float, steps: int) -> tuple[Array, Array]:
    """Return equally spaced logits of a Beta distribution, and their weights, which sum to 1."""
    centre, width = math.log(a / b), math.sqrt(1.0 / a + 1.0 / b)

    def log_density(t: Array) -> Array:
        # log density of the logit relative to the peak, as a function of the distance from the peak
        tail = a / (a + b) * np.expm1(t)
        return np.asarray(a * t - (a + b) * np.log1p(tail))

    ends = []
    for sign in (-1.0, 1.0):
        reach = width
        while float(log_density(np.array([sign * reach]))[0]) > -_REACH:
            reach *= 1.2
        ends.append(sign * reach)
    step = min(0.5, width) / steps
    t = np.arange(math.floor(ends[0] / step), math.ceil(ends[1] / step) + 1.0) * step
    weights = np.exp(log_density(t))
    return centre + t, weights / weights.sum()


def _erf_between(root: float, difference: Array) -> Array:
    """Return the difference of the probabilities that |N(0, 1)| is at most t and at most t + difference."""
    inner = root + 0.5 * difference[:, None] * (1.0 + _NODES)
    short = 0.5 * difference * (np.exp(-0.5 * inner * inner) * _WEIGHTS).sum(axis=1)
    scale = math.sqrt(0.5)
    long = scipy.special.erfc((root + difference) * scale) - scipy.special.erfc(root * scale)
    return np.asarray(
        np.abs(np.where(np.abs(difference) < min(0.5, 5.0 / root), short * math.sqrt(2.0 / math.pi), long))
    )
