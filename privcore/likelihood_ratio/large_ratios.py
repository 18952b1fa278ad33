r"""Probabilities that the ratio of k out of t is large although the sum of losses is small.

The ratio is that of certain participation in k steps times the probability of k participations under Poisson
sampling, given the outputs. This is at most that of the likeliest number, which depends on its variance V
(`few_uncertain`).

The ratio is also an elementary symmetric mean of the ratios of the steps, so Maclaurin's inequality bounds it
by their mean (`large_means`): $R \le \bar X^k$, and over E epochs by $\bar X^{k E}$ with the mean over all
steps, since the geometric mean of the epochs is at most the arithmetic one. If R exceeds a threshold, so does
the mean, and the sum of the losses $\ln (1 - z + z X_i)$ is then usually near $t E \ln(1 - z + z \bar X)$: it
is smaller only by half the squared deviations of $z X_i$. For s, r >= 0,
$$\Pr_P\Big[\sum X_i \ge x, A \le a\Big] \le e^{r a - s x}\, E_P\, e^{s \sum X_i - r A} .$$
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from privcore.likelihood_ratio.kernel import Array
from privcore.likelihood_ratio.losses import PLACES, Losses
from privcore.likelihood_ratio.saddle import Saddle
from privcore.likelihood_ratio.tilted import Participation
from privcore.numerics.rounding import SCALED_BESSEL, UNIT

FALLS = np.array([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
"""Tilts r of the losses that are tried, relative to the slope of the tail."""
POWERS = np.array([0.5, 0.8, 1.0, 1.1, 1.25, 1.6, 2.5])
"""Tilts s of the mean in addition to those that cancel r, relative to the slope of the tail."""


@dataclass(frozen=True, kw_only=True)
class LargeMeans:
    r"""Logarithms of $E_P e^{s \sum X_i - r A}$ for pairs of s and r.

    Attributes:
        powers: The tilts s, shape (n,).
        falls: The tilts r, shape (n,).
        logs: The logarithms, shape (n,).
        uses: Number of participations in all epochs.
        steps: Number of steps in all epochs.
        rate: Sampling rate of the losses.
    """

    powers: Array
    falls: Array
    logs: Array
    uses: int
    steps: int
    rate: float

    def largest(self, epsilon: float) -> float:
        """Return the largest sum of losses at which the mean is at most that of R = e^epsilon."""
        return self.steps * math.log1p(self.rate * math.expm1(epsilon / self.uses))

    def probability(self, epsilon: float, most: float) -> float:
        """Return a bound of the probability under P that R >= e^epsilon and A <= most.

        Args:
            epsilon: Logarithm of the ratio of all epochs.
            most: Sum of losses of all epochs.
        """
        total = self.steps * math.exp(epsilon / self.uses)
        exponents = self.logs + self.falls * most - self.powers * total
        sizes = np.abs(self.logs) + np.abs(self.falls * most) + self.powers * total
        return math.exp(min(0.0, float(np.min(exponents + (64.0 * UNIT + PLACES) * sizes))))


def large_means(losses: Losses, choice: Participation, centre: Saddle) -> LargeMeans:
    """Return bounds of the probabilities of large means.

    Args:
        losses: Losses of one step, of an upper distribution at the rate of `centre`.
        choice: Steps of an epoch and epochs.
        centre: Sums near the threshold of the direction remove.
    """
    unused, used = losses.moments[0], losses.moments[1]
    x, loss = used / unused, losses.index * losses.spacing
    # A changes by about z / (1 - z + z x) for each unit of the sum of the X.
    mean = math.exp(centre.epsilon / (choice.participations * choice.epochs))
    change = centre.rate / (1.0 + centre.rate * (mean - 1.0))
    powers, falls, logs = [], [], []
    for fall in centre.slope * FALLS:
        for power in change * (fall + centre.slope * POWERS):
            exponents = power * x - fall * loss
            one, other = (float(scipy.special.logsumexp(exponents, b=each)) for each in (unused, used))
            epoch = (choice.steps - choice.participations) * one + choice.participations * other
            powers.append(float(power))
            falls.append(float(fall))
            logs.append(choice.epochs * epoch)
    return LargeMeans(
        powers=np.array(powers),
        falls=np.array(falls),
        logs=np.array(logs),
        uses=choice.participations * choice.epochs,
        steps=choice.steps * choice.epochs,
        rate=centre.rate,
    )


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


def _log(x: Array) -> Array:
    result: Array = np.log(np.maximum(x, 1e-300))
    return result
