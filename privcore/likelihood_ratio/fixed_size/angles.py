r"""Profiles of one step with a batch of a fixed size, by the angle of a gradient and that in its place.

A batch includes the example with probability q. Then its sum moves by the vector u in one data set and by v
in the other one, and the step has the densities $1 - q + q H R_\alpha$ and $1 - q + q H R_\beta$ with
$R_m = e^{m s z - m^2 s^2 / 2}$ and an independent lognormal H of mean 1: docs/notes/fixed-size-batches.md.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from privcore.likelihood_ratio.distribution import UNDERFLOW
from privcore.likelihood_ratio.grid import Array, spread
from privcore.numerics.compiled import compiled
from privcore.numerics.rounding import UNIT

FACTORS = 96
"""Number of values of H."""
FARTHEST = 9.0
"""Largest standard normal number that belongs to a value of H."""
MASSES = 1e-12
"""Counted: relative error of the masses of H: 9000 u, for tails at up to 9 + 2 s standard deviations."""
NEWTON, CLOSE = 60, 1e-9
"""Most steps to an end of outputs, and the size of the last one, as a share: the next one would be about its
square. The mean excess changes with the square of the error of an end."""
UNSEEN = 40.0
"""Outputs farther from all means have no probability in doubles."""


@dataclass(frozen=True)
class Angle:
    r"""A step with certain shifts of its output, in clipping norms.

    Attributes:
        probability: Batch size over number of examples, q, in (0, 1).
        s: Inverse noise multiplier.
        first: Part $\alpha$ of the shift under P in the direction of the difference of both shifts.
        second: That of the shift under Q, $\beta < \alpha$.
        across: Part of both shifts in another direction, which H has times s as its standard deviation.
    """

    probability: float
    s: float
    first: float
    second: float
    across: float

    @classmethod
    def of(cls, probability: float, s: float, cosine: float) -> "Angle":
        """Return the step for a gradient, of length 1, that becomes 0.

        Args:
            probability: Batch size over number of examples.
            s: Inverse noise multiplier.
            cosine: Cosine of its angle with the opposite of the gradient in its place.
        """
        return cls(probability, s, 1.0 + cosine, cosine, math.sqrt((1.0 - cosine) * (1.0 + cosine)))

    @property
    def exchanged(self) -> "Angle":
        """The step with P and Q exchanged, seen from the other side."""
        return Angle(self.probability, self.s, -self.second, -self.first, self.across)

    def excess(self, threshold: Array) -> Array:
        r"""Return upper bounds of the hockey-stick divergence of P and Q.

        It is $q\, E (H (R_\alpha - \kappa R_\beta) - c)_+$ with $c = (1 - q) (\kappa - 1) / q$. For each
        value of H, the outputs above c are a half-line, or an interval if alpha is negative.

        Args:
            threshold: Thresholds kappa >= 1, which may have an error of four roundings of their logarithms.
        """
        q, s = self.probability, self.s
        kappa = np.maximum(threshold * (1.0 - 8.0 * UNIT * (2.0 + np.log(threshold))), 1.0)
        level = (1.0 - q) / q * (kappa - 1.0) * (1.0 - 8.0 * UNIT)
        factor, weight, beyond = self._factors()
        left, right = self._outputs(kappa, level, factor)
        kappa, level = kappa[:, None], level[:, None]
        (p, r, n), sizes = zip(
            *(_between(left - m * s, right - m * s) for m in (self.first, self.second, 0.0)), strict=True
        )
        farthest = np.minimum(np.abs(left), UNSEEN) + s * max(abs(self.first), abs(self.second))
        error = 64.0 * UNIT * (1.0 + np.square(farthest))
        size = factor * (sizes[0] + kappa * sizes[1]) + level * sizes[2]
        value = np.maximum(factor * (p - kappa * r) - level * n, 0.0) + error * size
        found: Array = q * (value @ weight + beyond) * (1.0 + 64.0 * UNIT) + UNDERFLOW
        return np.minimum.accumulate(np.minimum(found, 1.0))

    def _factors(self) -> tuple[Array, Array, float]:
        """Return values above 0, with masses, that are above H in convex order, and the mean beyond them."""
        deviation = self.s * self.across
        if deviation == 0.0:
            return np.ones(1), np.ones(1), 0.0
        y = np.linspace(-FARTHEST, FARTHEST + deviation, FACTORS)
        edges = np.append(0.0, np.exp(deviation * (y - 0.5 * deviation)))
        ends = np.concatenate(([-np.inf], y, [np.inf]))
        mass = _between(ends[:-1], ends[1:])[0] * (1.0 + MASSES)
        mean = _between(ends[:-1] - deviation, ends[1:] - deviation)[0] * (1.0 + MASSES)
        moment = np.maximum(mean - edges * mass * (1.0 - 2.0 * MASSES), 0.0)
        found, beyond = spread(edges, mass, moment)
        return edges[1:], found[1:], beyond

    def _outputs(self, kappa: Array, level: Array, factor: Array) -> tuple[Array, Array]:
        """Return the ends of the outputs whose excess is positive, for each threshold and value of H.

        It is 0 at `start`, and t to its right, its logarithm is a line plus that of $e^{s d t} - 1$, which is
        concave in t.
        """
        s, apart = self.s, self.first - self.second
        start = np.log(kappa) / (s * apart) + 0.5 * s * (self.first + self.second)
        far = np.maximum(UNSEEN + s * max(self.first, 0.0) - start, 1e-9)
        with np.errstate(divide="ignore"):
            goal = np.log(level) - np.log(kappa) - self.second * s * (start - 0.5 * self.second * s)
        left, right = crossings(goal[:, None] - np.log(factor), s * apart, self.second * s, far)
        return start[:, None] + left, start[:, None] + right if self.first < 0.0 else np.array(np.inf)


@compiled(error_model="numpy")
def crossings(goal: Array, rate: float, slope: float, far: Array) -> tuple[Array, Array]:
    r"""Return between which t > 0 the concave function $\log(e^{r t} - 1) + b t$ is above a goal.

    Newton's steps start on the outer side of an end, where tangents reach the goal before the function does.

    Args:
        goal: The goals, -inf or a number.
        rate: The rate r > 0.
        slope: The slope b.
        far: For each row of goals, the largest t. Without values above the goal, both ends agree.
    """
    left, right = np.zeros_like(goal), np.zeros_like(goal)
    for i in range(goal.shape[0]):
        top = far[i]  # the place of the largest value
        if slope + rate < 0.0:
            top = min(top, np.log(slope / (slope + rate)) / rate)
        largest = np.log(-np.expm1(-rate * top)) + (rate + slope) * top
        last = np.log(-np.expm1(-rate * far[i])) + (rate + slope) * far[i]
        for k in range(goal.shape[1]):
            level = goal[i, k]
            if level >= largest:
                left[i, k] = right[i, k] = top
                continue
            # the end for the slope 0; for a larger slope, the first step passes the end
            t = (max(level, 0.0) + np.log1p(np.exp(-abs(level)))) / rate
            left[i, k] = min(newton(t, level, rate, slope), top)
            right[i, k] = far[i] if level <= last else max(newton(far[i], level, rate, slope), top)
    return left, right


@compiled(error_model="numpy")
def newton(t: float, level: float, rate: float, slope: float) -> float:
    r"""Return the end of Newton's steps for $\log(e^{r t} - 1) + b t$ and a level.

    Args:
        t: Start, on the outer side of the end.
        level: The level.
        rate: The rate r > 0.
        slope: The slope b.
    """
    for _ in range(NEWTON):
        gap = -np.expm1(-rate * t)
        if gap <= 0.0:  # the level is below the range of doubles
            return 0.0
        step = (np.log(gap) + (rate + slope) * t - level) / (rate / gap + slope)
        t = max(t - step, 0.0)
        if abs(step) <= CLOSE * t:
            break
    return t


def _between(left: Array, right: Array) -> tuple[Array, Array]:
    """Return the probabilities of intervals under N(0, 1), and the larger of both subtracted tails."""
    if right.ndim == 0 and right == np.inf:
        beyond: Array = scipy.special.ndtr(-left)
        return beyond, beyond
    swap = left + right > 0.0
    a, b = np.where(swap, -right, left), np.where(swap, -left, right)
    tail: Array = scipy.special.ndtr(b)
    return tail - scipy.special.ndtr(a), tail
