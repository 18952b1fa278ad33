r"""Probability that the ratio of k out of t is small although the sum of losses is not.

Let $G(w) = \prod_i (1 + w X_i)$, whose coefficient of $w^k$ is $\binom tk R$. With $\varphi(u) = \ln G(e^u) -
k u$, convex in u, and the minimum at $u^*$: at the rate with the odds $e^{u^*}$, the expected number of
participations is k. Among sums of t independent indicators with the mean k, the probability of k is least if
all chances are equal (Hoeffding 1956), so $\ln R \ge \varphi(u^*) + k \ln \frac kt + (t - k) \ln
\frac{t - k}t$, with equality for equal ratios.

One of a few bounds of $\varphi(u^*)$ by sums over the steps holds for all outputs that are not rare
(`minima`). For s, r >= 0,
$$\Pr_Q[R_1 \cdots R_E \le e^{-\varepsilon}, A \ge a] \le
  e^{-s \varepsilon - r a} \big(E_Q R_1^{-s} e^{r A_1}\big)^E,$$
where the power of the minimum is at most the sum of the powers of all bounds.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from privcore.likelihood_ratio.kernel import Array
from privcore.likelihood_ratio.losses import PLACES, Losses
from privcore.likelihood_ratio.minima import gap_of, minima
from privcore.likelihood_ratio.saddle import Saddle
from privcore.likelihood_ratio.tilted import Participation
from privcore.numerics.rounding import SUMMED, UNIT

POWERS = np.array([0.6, 1.0, 1.5])
"""Powers s that are tried, less the tilt r, relative to the slope of the tail."""
RISES, LEAST_RISE = 9, 0.25
"""Number of tilts r of the losses that are tried except for 0, and the least, relative to the slope."""


@dataclass(frozen=True, kw_only=True)
class SmallRatios:
    """Logarithms of $E_Q R_1^{-s} e^{r A_1}$ for pairs of s and r, and the chance of outputs without a bound.

    For one epoch, there is a row for every bound of the minimum, and their probabilities add up; for more
    epochs, there is one row for all bounds.

    Attributes:
        powers: The powers s, shape (rows, n).
        rises: The tilts r, shape (n,).
        logs: The logarithms, shape (rows, n).
        epochs: Number of epochs E.
        missed: Probability of outputs without a bound.
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
        logs = self.epochs * self.logs
        sizes = np.abs(logs) + np.abs(self.powers * epsilon) + np.abs(self.rises * least)
        exponents = logs - self.powers * epsilon - self.rises * least + 64.0 * UNIT * sizes
        best = np.minimum(exponents.min(axis=1), 0.0)
        return float(np.exp(best).sum()) * (1.0 + SUMMED) + self.missed


def floor(choice: Participation, centre: Saddle) -> float:
    """Return the largest sum of losses of an epoch for R = 1 if k participations are expected at the rate."""
    odds = math.log(centre.rate) - math.log1p(-centre.rate)
    steps = choice.steps * math.log1p(-centre.rate)
    return _offset(choice, centre) + choice.participations * odds + steps


def small_ratios(losses: Losses, choice: Participation, centre: Saddle) -> SmallRatios:
    """Return bounds of the probabilities of small ratios.

    Args:
        losses: Losses of one step, of an upper distribution at the rate of `centre`.
        choice: Steps of an epoch and epochs.
        centre: Sums near the threshold of the direction add.
    """
    p = losses.moments[0]
    found = minima(p, losses.moments[1] / p, choice, centre)
    powers, rises = _pairs(choice, centre, [floor.odds for floor in found.floors])
    rising = np.multiply.outer(rises, losses.index * losses.spacing) + np.log(p)
    logs = np.stack(
        [
            choice.steps * scipy.special.logsumexp(rising - np.multiply.outer(power, floor.least), axis=1)
            + power * floor.less
            for power, floor in zip(powers, found.floors, strict=True)
        ]
    )
    if choice.epochs > 1:
        logs, powers = scipy.special.logsumexp(logs, axis=0)[None], powers[:1]
    return SmallRatios(
        powers=powers,
        rises=rises,
        logs=logs + powers * _offset(choice, centre),
        epochs=choice.epochs,
        missed=choice.epochs * found.missed,
    )


def _pairs(choice: Participation, centre: Saddle, odds: list[float]) -> tuple[Array, Array]:
    """Return powers s that are tried for every bound, and tilts r.

    The tilts end at the rate at which exceptions of an epoch fall. For one epoch, the powers may differ: at
    other odds than those of the losses, phi changes more or less than they do if all ratios grow.
    """
    spread = max(centre.spread, 1e-3) ** 2 / choice.epochs
    most = max(4.0 * centre.slope, 1.5 * centre.variance / spread)
    rises = np.concatenate(([0.0], np.geomspace(LEAST_RISE * centre.slope, most, RISES)))
    pairs = [(rise + centre.slope * power, rise) for rise in rises for power in POWERS]
    powers, rises = np.array(pairs).T
    if choice.epochs > 1:
        return np.tile(powers, (len(odds), 1)), rises
    x = math.exp(centre.epsilon / choice.participations)
    chances = x / (x + np.exp(-np.array(odds)))
    others = np.multiply.outer(x / (x + (1.0 - centre.rate) / centre.rate) / chances, powers)
    return np.hstack((np.tile(powers, (len(odds), 1)), others)), np.tile(rises, 2)


def _offset(choice: Participation, centre: Saddle) -> float:
    """Return the difference of a bound of -ln R and -phi at the nearest point, with its rounding."""
    t, k = choice.steps, choice.participations
    rounding = PLACES * t + 64.0 * UNIT * float(scipy.special.gammaln(t + 2.0))
    even = -k * math.log(k / t) - (t - k) * math.log1p(-k / t)
    return even + gap_of(choice, centre) + rounding
