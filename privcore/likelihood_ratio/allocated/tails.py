r"""Probabilities that the ratio of k out of t is large or small although the sum of losses is not.

For outputs with the ratios $X_i$, let $\varphi(u) = \sum_i \ln(1 + e^u X_i) - k u$, with the minimum at u*.

* **Near a point u of a grid**: $\varphi'' \le \min(k, t - k)\, e^{|u - u^*|}$ there, so $\varphi(u)$ exceeds
  the minimum by at most a gap.
* **Beyond the ends**: $\varphi \ge \sum \max(\ln X_i + u', 0) - k u'$ for all $u \ge u'$ if at most t - k of
  the ratios are below $e^{-u'}$, and for all $u \le u'$ if at most k are above. Outputs for which neither
  holds are rare. Always, $\varphi \ge -k u'$ for $u \le u'$.

If more than t - k ratios are tiny, so is R, and negative powers of it have large means although this is rare.
For other outputs, $\tau\,(t - k - n)$ with the number n of tiny ratios is not negative, and may be subtracted
from $\varphi$ before the mean is taken.

The ratio is that of certain participation in k steps times the probability of k participations under Poisson
sampling, given the outputs. This is at most that of the likeliest number, which depends on its variance V
(`few_uncertain`).

The ratio is also an elementary symmetric mean of the ratios of the steps, so Maclaurin's inequality bounds it
by their mean (`large_means`): $R \le \bar X^k$, and over E epochs by $\bar X^{k E}$ with the mean over all
steps, since the geometric mean of the epochs is at most the arithmetic one. If R exceeds a threshold, so does
the mean, and the sum of the losses $\ln (1 - z + z X_i)$ is then usually near $t E \ln(1 - z + z \bar X)$: it
is smaller only by half the squared deviations of $z X_i$. For s, r >= 0,
$$\Pr_P\Big[\sum X_i \ge x, A \le a\Big] \le e^{r a - s x}\, E_P\, e^{s \sum X_i - r A} .$$

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

from privcore.likelihood_ratio.allocated.losses import PLACES, Losses, Participation
from privcore.likelihood_ratio.allocated.saddle import Saddle
from privcore.likelihood_ratio.grid import Array
from privcore.numerics.rounding import SCALED_BESSEL, SUMMED, UNIT

GAP, GAP_OF_EPOCHS = 0.02, 0.25
"""Largest difference of phi at its minimum and at the nearest point, for one epoch and for more,"""
STEEP = 0.2
"""and for one epoch this number over the slope of the tail."""
REACH, DEVIATIONS = 30.0, 60.0
"""Half of the range of u: at most the first, and the second over the root of the variance."""
PAST = 3.0
"""Distance of the last point of the grid from the logarithm of the least ratio that is not tiny."""
NEGLIGIBLE = 14.0
"""Negative logarithm of a share of delta that may be added to a bound,"""
NEARLY_NEGLIGIBLE = 7.0
"""and that may be added if the former would need a lattice without tiny ratios."""
TILTS = np.geomspace(0.01, 1e6, 96)
"""Tilts of the expected number of participations that are tried."""
ROUGH = 1e-9
"""Relative error that covers the rounding of a divergence."""


@dataclass(frozen=True)
class Floor:
    r"""A bound $\varphi(u^*) \ge \sum_i l_i - c$.

    Attributes:
        least: The term l for every point of the lattice of one step.
        less: The constant c.
        odds: The logarithm u of the odds of a rate near which the bound is tight.
    """

    least: Array
    less: float
    odds: float


@dataclass(frozen=True)
class Minima:
    """Bounds: every output that is not rare has a bound among them.

    Attributes:
        floors: The bounds.
        missed: Bound of the probability of these outputs under Q, in one epoch.
    """

    floors: list[Floor]
    missed: float


def minima(p: Array, x: Array, choice: Participation, centre: Saddle) -> Minima:
    """Return bounds of the minimum of phi; every output that is not rare has a bound among them.

    Args:
        p: Masses of the ratios of one step, shape (n,).
        x: The ratios, ascending.
        choice: Steps of an epoch and epochs; 1 < k < t.
        centre: Sums near the threshold of the direction add.
    """
    k, others = choice.participations, choice.steps - choice.participations
    apart, odds = apart_of(choice, centre), math.log(centre.rate / (1.0 - centre.rate))
    below, above = (_end(p, x, choice, centre, odds, side * apart) for side in (-1.0, 1.0))
    floors = [end.floor for end in (below, above) if end.floor is not None]
    for u in odds + apart * np.arange(-below.count, above.count + 1.0):
        credit = max(0.0, u + math.log(above.tiny)) if above.tiny else 0.0
        least = np.log1p(math.exp(u) * x) + credit * (x < above.tiny)
        floors.append(Floor(least, k * u + others * credit, float(u)))
    missed = math.exp(min(0.0, below.missed)) + math.exp(min(0.0, above.missed))
    return Minima(floors, missed * (1.0 + SUMMED))


def gap_of(choice: Participation, centre: Saddle) -> float:
    """Return a bound of the difference of phi at its minimum and at the nearest point."""
    half = 0.5 * apart_of(choice, centre)
    return 0.5 * min(choice.participations, choice.steps - choice.participations) * math.exp(half) * half**2


def apart_of(choice: Participation, centre: Saddle) -> float:
    """Return the distance of two points of the grid of u."""
    gap = min(GAP, STEEP / centre.slope) if choice.epochs == 1 else GAP_OF_EPOCHS
    fewer = min(choice.participations, choice.steps - choice.participations)
    return math.sqrt(8.0 * gap / fewer)


@dataclass(frozen=True)
class _End:
    """End of the grid on one side.

    Attributes:
        count: Number of points of the grid on this side.
        missed: Logarithm of a bound of the probability of minima beyond the end for which nothing is known.
        floor: Bound of the other minima beyond the end; None if there are none.
        tiny: Ratios below this one count as tiny.
    """

    count: int
    missed: float
    floor: Floor | None = None
    tiny: float = 0.0


def _end(p: Array, x: Array, choice: Participation, centre: Saddle, odds: float, apart: float) -> _End:
    """Return the end above the odds, or below them if the distance of two points is negative."""
    t, k, side = choice.steps, choice.participations, -math.copysign(1.0, apart)
    most = math.ceil(min(REACH, DEVIATIONS / math.sqrt(centre.variance)) / abs(apart))
    count = 1
    while True:
        u = odds + apart * (count + 0.5)
        # A minimum is below u if more than k participations are expected there, and above if fewer are.
        exponents = side * np.multiply.outer(TILTS, x / (x + math.exp(-u)) - k / t) + np.log(p)
        logs = scipy.special.logsumexp(exponents, axis=1) + (64.0 * UNIT + PLACES) * (TILTS + 64.0)
        missed = t * float(np.min(logs))
        if missed < centre.log_delta - NEGLIGIBLE:
            return _End(count, missed)
        if count >= most:
            break
        count = min(most, math.ceil(1.3 * count))
    if side > 0.0:
        return _End(count, -math.inf, Floor(np.zeros_like(x), k * u, u))
    masses = np.minimum(np.cumsum(p) * (1.0 + SUMMED), 1.0)
    rare = [_log_tail(t, t - k + 1, float(mass)) for mass in masses]
    place = int(np.searchsorted(rare, centre.log_delta - NEARLY_NEGLIGIBLE))
    place = min(max(place, 1), x.size - 1)
    tiny = float(x[place])
    edge = -math.log(tiny)
    count = max(1, min(most, math.ceil((edge + PAST - odds) / apart)))
    floor = Floor(np.log(np.maximum(x / tiny, 1.0)), k * edge, edge)
    return _End(count, rare[place - 1], floor, tiny)


def _log_tail(trials: int, least: int, rate: float) -> float:
    """Return the logarithm of a bound of the probability of at least `least` successes of all trials."""
    share = least / trials
    if not 0.0 < rate < share:
        return -math.inf if rate == 0.0 else 0.0
    other = (1.0 - share) * math.log((1.0 - rate) / (1.0 - share)) if share < 1.0 else 0.0
    return trials * (share * math.log(rate / share) + other) * (1.0 - ROUGH)


FALLS = np.array([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
"""Tilts r of the losses that are tried, relative to the slope of the tail."""
POWERS_OF_LARGE = np.array([0.5, 0.8, 1.0, 1.1, 1.25, 1.6, 2.5])
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
        for power in change * (fall + centre.slope * POWERS_OF_LARGE):
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


POWERS_OF_SMALL = np.array([0.6, 1.0, 1.5])
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
    pairs = [(rise + centre.slope * power, rise) for rise in rises for power in POWERS_OF_SMALL]
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
