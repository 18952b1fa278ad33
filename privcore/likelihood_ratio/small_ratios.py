r"""Probability that the ratio of k out of t is small although the sum of losses is not.

Let $G(w) = \prod_i (1 + w X_i)$, whose coefficient of $w^k$ is $\binom tk R$. With $\varphi(u) = \ln G(e^u) -
k u$, convex in u, and the minimum at $u^*$: at the rate with the odds $e^{u^*}$, the expected number of
participations is k, so k is its mode (Darroch 1964), and its variance is at most $v = k (1 - k/t)$. The mode
of an integer with the variance v has a probability of at least $(1 + 12 v)^{-1/2}$, so $\ln R \ge
\varphi(u^*) - \ln \binom tk - \frac12 \ln (1 + 12 v)$.

The minimum is near a point of a grid: $\varphi'' \le \min(k, t - k)\, e^{|u - u^*|}$ near it. For s, r >= 0,
$$\Pr_Q[R_1 \cdots R_E \le e^{-\varepsilon}, A \ge a] \le
  e^{-s \varepsilon - r a} \big(E_Q R_1^{-s} e^{r A_1}\big)^E,$$
where the power of the minimum is at most the sum of the powers at all points of the grid.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from privcore.likelihood_ratio.kernel import Array
from privcore.likelihood_ratio.losses import PLACES, Losses
from privcore.likelihood_ratio.saddle import Saddle
from privcore.likelihood_ratio.tilted import Participation
from privcore.numerics.rounding import SCALED_BESSEL, SUMMED, UNIT

GAP, GAP_OF_EPOCHS = 0.02, 0.25
"""Largest difference of phi at its minimum and at the nearest point, for one epoch and for more."""
REACH, DEVIATIONS = 10.0, 60.0
"""Half of the range of u: at most the first, and the second over the root of the variance."""
NEGLIGIBLE = 14.0
"""Negative logarithm of a share of delta that may be added to a bound."""
POWERS = np.array([0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0])
RISES = np.array([0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 4.0])
"""Powers s and tilts r that are tried, relative to the slope of the tail."""


@dataclass(frozen=True, kw_only=True)
class SmallRatios:
    """Logarithms of $E_Q R_1^{-s} e^{r A_1}$ for all s and r, and the probability of minima beyond the grid.

    For one epoch, `logs` has a term for every point of the grid, whose probabilities add up; for more epochs,
    one term for all points.
    """

    powers: Array
    rises: Array
    logs: Array
    epochs: int
    missed: float

    def probability(self, epsilon: float, least: float) -> float:
        """Return a bound of the probability that R <= e^-epsilon and A >= least.

        Args:
            epsilon: Negative logarithm of the ratio.
            least: Sum of losses.
        """
        exponents = self.epochs * self.logs - self.powers[:, None] * epsilon - self.rises * least
        slack = 64.0 * UNIT * float(np.max(np.abs(self.epochs * self.logs)) + np.max(self.rises) * abs(least))
        best = np.minimum(exponents.min(axis=(1, 2)) + slack, 0.0)
        return float(np.exp(best).sum()) * (1.0 + SUMMED) + self.missed


def floor(choice: Participation, rate: float) -> float:
    """Return the sum of losses of an epoch for R = 1 if k participations are expected at this rate.

    It is larger than the true one by at most the slack of the probability of the mode.
    """
    odds = math.log(rate) - math.log1p(-rate)
    return _offset(choice) + choice.participations * odds + choice.steps * math.log1p(-rate)


def small_ratios(losses: Losses, choice: Participation, centre: Saddle) -> SmallRatios:
    """Return bounds of the probabilities of small ratios.

    Args:
        losses: Losses of one step, of an upper distribution at the rate of `centre`.
        choice: Steps of an epoch and epochs.
        centre: Sums near the threshold of the direction add.
    """
    t, k = choice.steps, choice.participations
    p = losses.moments[0]
    x = losses.moments[1] / p
    loss = losses.index * losses.spacing
    apart = _apart(choice)
    half = math.ceil(min(REACH, DEVIATIONS / math.sqrt(centre.variance)) / apart)
    grid = math.log(centre.rate / (1.0 - centre.rate)) + apart * np.arange(-half, half + 1.0)
    powers, rises = centre.slope * POWERS, centre.slope * RISES
    highest = float(loss.max())
    up = np.exp(np.multiply.outer(rises, loss - highest)) * p
    tilts = np.geomspace(0.01, 500.0, 64)
    first, last = (_chance(x, edge) for edge in (grid[0] - 0.5 * apart, grid[-1] + 0.5 * apart))
    # A minimum below the grid: more than k participations are expected at its first point; also, ln G >= 0.
    more = float(np.min(t * _log(np.exp(np.multiply.outer(tilts, first)) @ p) - tilts * k))
    fewer = float(np.min(t * _log(np.exp(-np.multiply.outer(tilts, last)) @ p) + tilts * k))
    rarely = more < centre.log_delta - NEGLIGIBLE
    logs = [] if rarely else [powers[:, None] * k * (grid[0] - 0.5 * apart) + _log(up.sum(axis=1)) * t]
    for u in grid:
        down = np.exp(-np.multiply.outer(powers, np.log1p(math.exp(u) * x)))
        logs.append(t * _log(down @ up.T) + powers[:, None] * k * u)
    terms = np.stack(logs)
    if choice.epochs > 1:
        terms = scipy.special.logsumexp(terms, axis=0)[None]
    offset = powers[:, None] * _offset(choice) + rises * t * highest
    return SmallRatios(
        powers=powers,
        rises=rises,
        logs=terms + offset,
        epochs=choice.epochs,
        missed=choice.epochs
        * (math.exp(min(0.0, fewer)) + rarely * math.exp(min(0.0, more)))
        * (1.0 + SUMMED),
    )


def _chance(x: Array, odds: float) -> Array:
    """Return the chances of participation of a step at the logarithm of the odds of a rate."""
    chance: Array = x / (x + math.exp(-odds))
    return chance


def _apart(choice: Participation) -> float:
    """Return the distance of two points of the grid of u."""
    gap = GAP if choice.epochs == 1 else GAP_OF_EPOCHS
    return math.sqrt(8.0 * gap / min(choice.participations, choice.steps - choice.participations))


def _offset(choice: Participation) -> float:
    """Return the difference of a bound of -ln R and -phi at the nearest point, with its rounding."""
    t, k = choice.steps, choice.participations
    half, log = 0.5 * _apart(choice), scipy.special.gammaln
    ways = float(log(t + 1.0) - log(k + 1.0) - log(t - k + 1.0))
    rounding = PLACES * t + 64.0 * UNIT * float(log(t + 2.0))
    return (
        ways
        + 0.5 * math.log1p(12.0 * k * (1.0 - k / t))
        + 0.5 * min(k, t - k) * math.exp(half) * half**2
        + rounding
    )


def _log(x: Array) -> Array:
    result: Array = np.log(np.maximum(x, 1e-300))
    return result


@dataclass(frozen=True, kw_only=True)
class FewUncertain:
    """Logarithms of $E_P e^{-s V + r A}$ for all s and r, with the variance V of participations."""

    powers: Array
    rises: Array
    logs: Array

    def probability(self, least: float, variance: float) -> float:
        """Return a bound of the probability under P that A >= least and V <= variance in some epoch.

        Args:
            least: Sum of losses of all epochs.
            variance: Variance of the number of participations in an epoch.
        """
        exponents = self.logs + self.powers[:, None] * variance - self.rises * least
        sizes = np.abs(self.logs) + self.powers[:, None] * variance + np.abs(self.rises * least)
        return math.exp(min(0.0, float(np.min(exponents + 64.0 * UNIT * sizes))))


def likeliest(variance: float) -> float:
    r"""Return a bound of the probability of any number of participations, $e^{-V} I_0(V)$ for the variance V.

    The characteristic function of an indicator of the variance v has the square $1 - 2 v (1 - \cos \theta)
    \le e^{-2 v (1 - \cos \theta)}$, and a probability is at most the mean of the size of the product.

    Example:
        >>> likeliest(0.0), round(likeliest(4.0), 6)
        (1.0, 0.207002)
    """
    return min(1.0, float(scipy.special.ive(0, variance)) * (1.0 + SCALED_BESSEL))


def few_uncertain(losses: Losses, choice: Participation, centre: Saddle) -> FewUncertain:
    """Return bounds of the probabilities of small variances.

    Args:
        losses: Losses of one step, of an upper distribution at the rate of `centre`.
        choice: Steps of an epoch and epochs.
        centre: Sums near the threshold of the direction remove.
    """
    variance, loss = losses.chance * (1.0 - losses.chance), losses.index * losses.spacing
    rises = centre.slope * np.array([0.0, 0.25, 0.5, 0.75, 1.0, 1.25])
    powers = np.geomspace(0.3, 3e3, 40) / centre.variance
    highest = float(loss.max())
    up = np.exp(np.multiply.outer(rises, loss - highest))
    down = np.exp(-np.multiply.outer(powers, variance))
    others = (choice.epochs - 1.0) * _epoch(choice, up @ losses.moments[0], up @ losses.moments[1])
    one = _epoch(choice, down @ (up * losses.moments[0]).T, down @ (up * losses.moments[1]).T)
    logs = math.log(choice.epochs) + one + others + rises * (choice.epochs * choice.steps * highest)
    return FewUncertain(powers=powers, rises=rises, logs=logs)


def _epoch(choice: Participation, unused: Array, used: Array) -> Array:
    """Return the logarithm of a mean over the steps of an epoch under P, from those of one step."""
    result: Array = (choice.steps - choice.participations) * _log(unused) + choice.participations * _log(used)
    return result
