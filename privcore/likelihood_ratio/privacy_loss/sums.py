r"""Sums of privacy losses of any size: both ends of epsilon and delta.

The losses of every part are rounded at random to one of two multiples of a spacing, so that their means are
kept. The sum then differs from that of the losses by a sum of independent errors of mean 0, whose exponential
moments bound the probability $\eta$ that it exceeds w (Chernoff's inequality). As the profile
$E_P (1 - e^{\varepsilon - L})_+$ grows with the loss L, the rounded sum J gives

$$D_J(\varepsilon + w) - \eta \le \delta(\varepsilon) \le D_J(\varepsilon - w) + \eta$$

with the lower ends of the losses on the left and the upper ones on the right. The masses of J follow from
Fourier transforms, of losses tilted by $e^{\tau \ell}$ so that the sums near epsilon have a large part.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privcore.likelihood_ratio.distribution import LikelihoodRangeError
from privcore.likelihood_ratio.fourier import power
from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.privacy_loss.distribution import PrivacyLoss
from privcore.numerics.rounding import FOURIER, SUMMED, UNIT

TILT = 0.7
"""Share of the best order of moments by which losses are tilted, as in `fourier`."""
OUTSIDE = 32.0
"""Minus the logarithm of the tilted mass on each side of the window of the sums."""
GROUPS = 2048
"""Number of groups of losses from which the ends of the window are computed."""
NEGLIGIBLE = 45.0
"""Minus the logarithm of the size of a power of a transform that is dropped."""
MOST_SUMS = 2**23
"""Largest number of sums of a window, which take 400 MB."""
FAR = 50.0
"""Distance above epsilon from which a loss counts with all of its mass; the error is 2e-22 of it."""

Factor = tuple[PrivacyLoss, int]
"""The losses of a part, and its number of repetitions."""


def log_moment(factors: Sequence[Factor], tau: float) -> float:
    """Return the logarithm of the mean of e^(tau L) of the sum L of all finite losses."""
    return math.fsum(times * _log_sum(tau * law.loss, law.mass) for law, times in factors)


def slack_of(factors: Sequence[Factor], tau: float) -> float:
    """Return the logarithm of the largest relative error of a moment of the sum."""
    return SUMMED + math.fsum(
        times * (law.mass_error + 16.0 * UNIT * (tau * float(np.max(np.abs(law.loss), initial=0.0)) + 800.0))
        for law, times in factors
    )


def outside(factors: Sequence[Factor]) -> float:
    """Return an upper bound of the profile that infinite losses and drifts add to the sum."""
    return math.fsum(times * (law.infinite + law.drift) for law, times in factors) * (1.0 + SUMMED)


def log_peak(tau: float) -> float:
    """Return the logarithm of the largest value of e^(-tau u) (1 - e^-u) for u >= 0."""
    return tau * math.log(tau) - (tau + 1.0) * math.log1p(tau)


def least(bound: Callable[[float], float]) -> tuple[float, float]:
    """Return the least value of a bound over the orders of moments, and its order."""
    low, high, found = math.log(1e-7), math.log(1e3), (math.inf, 1.0)
    for points in (47, 9, 5):  # finer and finer, between the neighbours of the least bound
        orders = np.linspace(low, high, points).tolist()
        values = [bound(math.exp(order)) for order in orders]
        best = int(np.argmin(values))
        found = min(found, (values[best], math.exp(orders[best])))
        low, high = orders[max(0, best - 1)], orders[min(points - 1, best + 1)]
    return found


def epsilon_by_moments(factors: Sequence[Factor], delta: float) -> tuple[float, float]:
    r"""Return an upper bound of epsilon by moments, and their order tau.

    $\delta(\varepsilon) \le e^{-\tau \varepsilon} E e^{\tau L} \sup_u e^{-\tau u} (1 - e^{-u})$ for every
    $\tau > 0$, and the mass of infinite losses is added.
    """
    rest = delta - outside(factors)
    if rest <= 0.0:
        return math.inf, 1.0

    def bound(tau: float) -> float:
        moment = log_moment(factors, tau) + slack_of(factors, tau)
        return (moment + log_peak(tau) - math.log(rest)) / tau

    return least(bound)


def log_delta_by_moments(factors: Sequence[Factor], epsilon: float) -> tuple[float, float]:
    """Return a bound of the logarithm of delta without infinite losses, by moments, and its order."""
    return least(
        lambda tau: log_moment(factors, tau) + slack_of(factors, tau) + log_peak(tau) - tau * epsilon
    )


@dataclass(frozen=True)
class RoundedLoss:
    """Losses of a part rounded at random to multiples of a spacing.

    Attributes:
        first: The first multiple.
        mass: Masses of the multiples.
        variance: Mean variance of the error of rounding, in squared spacings.
        times: Number of repetitions.
    """

    first: int
    mass: Array
    variance: float
    times: int

    @classmethod
    def of(cls, factor: Factor, spacing: float) -> "RoundedLoss":
        """Return the rounded losses of a part."""
        law, times = factor
        place = law.loss / spacing
        down = np.floor(place)
        up = place - down
        first = int(down.min())
        index = (down - first).astype(np.int64)
        size = int(index.max()) + 2
        mass: Array = np.bincount(index, law.mass * (1.0 - up), size).astype(np.float64)
        mass += np.bincount(index + 1, law.mass * up, size)
        variance = float(law.mass @ (up * (1.0 - up))) / float(law.mass.sum())
        return cls(first, mass, variance + SUMMED, times)

    @property
    def last(self) -> int:
        """The last multiple."""
        return self.first + self.mass.size - 1


def deviation(parts: Sequence[RoundedLoss], log_eta: float) -> float:
    r"""Return the sum of errors, in spacings, that is exceeded with probability eta at most; on either side.

    An error is at most 1 and has the mean 0. With V the sum of the variances, the exponential moment of the
    sum is at most $\exp(V (e^\theta - 1 - \theta))$ (Bennett's inequality).

    Args:
        parts: The rounded losses.
        log_eta: Logarithm of eta, below 0.
    """
    variance = math.fsum(part.times * part.variance for part in parts)
    order = np.geomspace(1e-4, 50.0, 200)
    found = (variance * (np.expm1(order) - order + 1e-15) - log_eta) / order
    return min(float(np.min(found)) * (1.0 + SUMMED), float(sum(part.times for part in parts)))


@dataclass(frozen=True)
class LossSum:
    """The sum of rounded losses.

    Attributes:
        spacing: Distance of two sums.
        loss: The sums, ascending.
        tilted: Their tilted masses.
        error: Largest error of a tilted mass.
        tau: Order of the tilt.
        log_scale: Logarithm of the moment of order tau.
        slack: Logarithm of the largest relative error of a mass.
        rest: Upper bound of the part of infinite losses and drifts in the profile.
    """

    spacing: float
    loss: Array
    tilted: Array
    error: float
    tau: float
    log_scale: float
    slack: float
    rest: float

    @classmethod
    def of(
        cls, factors: Sequence[Factor], parts: Sequence[RoundedLoss], spacing: float, tau: float
    ) -> "LossSum":
        """Return the sum in a window that has nearly all of the tilted mass.

        Sums outside of the window, with a tilted mass of at most 2 e^-`OUTSIDE`, are counted inside, at
        multiples of its length.

        Raises:
            LikelihoodRangeError: The window has more than `MOST_SUMS` sums.
        """
        logs, tilted = [], []
        for part in parts:
            orders = tau * spacing * np.arange(part.first, part.last + 1).astype(np.float64)
            logs.append(_log_sum(orders, part.mass))
            tilted.append(np.exp(orders - logs[-1] + _log(part.mass)))
        low, high = _window(parts, tilted)
        size = 2 ** math.ceil(math.log2(high - low + 2))
        if size > MOST_SUMS:
            raise LikelihoodRangeError
        slack = FOURIER * math.log2(size)
        powers, raised = np.ones(size // 2 + 1, dtype=np.complex128), np.zeros(size // 2 + 1)
        inexact = np.full(size // 2 + 1, 8.0 * UNIT * sum(part.times for part in parts) + slack)
        for part, masses in zip(parts, tilted, strict=True):
            folded = np.bincount(np.arange(part.first, part.last + 1) % size, masses, size)
            transform = np.fft.rfft(folded)
            sizes = np.abs(transform)
            kept = sizes > math.exp(-NEGLIGIBLE / part.times)
            powers = powers * np.where(kept, power(np.where(kept, transform, 0.0), part.times), 0.0)
            raised = raised + part.times * np.log(sizes + slack)
            inexact = inexact + part.times * slack / np.maximum(sizes, slack)
        inexact = np.where(powers == 0.0, 1.0, np.minimum(1.0, inexact))
        error = 2.02 * float(np.sum(np.exp(raised) * inexact)) / size
        sums = np.arange(low, low + size)
        factor_slack = slack_of(factors, tau)
        log_scale = math.fsum(part.times * log for part, log in zip(parts, logs, strict=True))
        loss = sums * spacing
        farthest = float(np.max(np.abs(loss[[0, -1]])))
        return cls(
            spacing,
            loss,
            np.fft.irfft(powers, size)[sums % size],
            error,
            tau,
            log_scale,
            factor_slack + 16.0 * UNIT * (abs(log_scale) + tau * farthest + size),
            outside(factors),
        )

    def profile(self, epsilon: float, side: float) -> float:
        """Return an end of the mean of (1 - e^(epsilon - J))_+, apart from infinite losses.

        Args:
            epsilon: Any number.
            side: -1 for the lower end, 1 for the upper one.
        """
        masses, above = self._lower if side < 0.0 else self._upper
        start = int(np.searchsorted(self.loss, epsilon, side="right"))
        stop = int(np.searchsorted(self.loss, epsilon + FAR))
        with np.errstate(over="ignore"):
            found = float(above[stop] - masses[start:stop] @ np.expm1(epsilon - self.loss[start:stop]))
            folded = math.log(2.0) - OUTSIDE + self.log_scale - self.tau * epsilon + log_peak(self.tau)
            found += side * math.exp(min(folded, 300.0))
        return max(0.0, found) * math.exp(side * (self.slack + SUMMED))

    @cached_property
    def _lower(self) -> tuple[Array, Array]:
        return self._masses(-1.0)

    @cached_property
    def _upper(self) -> tuple[Array, Array]:
        return self._masses(1.0)

    def _masses(self, side: float) -> tuple[Array, Array]:
        """Return an end of the masses, and of the mass at and above each sum."""
        scale = np.exp(np.minimum(self.log_scale - self.tau * self.loss, 300.0))
        masses = np.maximum(self.tilted + side * self.error, 0.0) * scale
        return masses, np.append(np.cumsum(masses[::-1])[::-1], 0.0)


def _window(parts: Sequence[RoundedLoss], tilted: Sequence[Array]) -> tuple[int, int]:
    """Return the multiples between which the sum has all of its tilted mass but 2 e^-`OUTSIDE`.

    Neighbouring multiples are grouped, and counted at the end of their group on the side in question.
    """
    places = [np.arange(part.first, part.last + 1) for part in parts]
    means = [float(masses @ place) for masses, place in zip(tilted, places, strict=True)]
    spread = sum(
        part.times * float(masses @ np.square(place - mean))
        for part, masses, place, mean in zip(parts, tilted, places, means, strict=True)
    )
    starts = [np.arange(0, masses.size, 1 + masses.size // GROUPS) for masses in tilted]
    grouped = [np.add.reduceat(masses, start) for masses, start in zip(tilted, starts, strict=True)]
    centre, ends = sum(part.times * mean for part, mean in zip(parts, means, strict=True)), list[float]()
    for side in (-1.0, 1.0):
        reach = math.inf
        far = [
            place[start] if side < 0.0 else np.append(place[start[1:] - 1], place[-1])
            for place, start in zip(places, starts, strict=True)
        ]
        for order in np.geomspace(0.01, 100.0, 17) / math.sqrt(max(spread, 1e-12)):
            log = sum(
                part.times * _log_sum(side * order * (place - mean), masses)
                for part, masses, place, mean in zip(parts, grouped, far, means, strict=True)
            )
            reach = min(reach, (log + 1e-6 + OUTSIDE) / order)
        ends.append(centre + side * reach)
    low = max(math.floor(ends[0]), sum(part.times * part.first for part in parts))
    high = min(math.ceil(ends[1]), sum(part.times * part.last for part in parts))
    return low, max(low, high)


def _log_sum(exponents: Array, masses: Array) -> float:
    """Return the logarithm of the sum of masses times exponentials."""
    terms = exponents + _log(masses)
    top = float(np.max(terms))
    return top + math.log(float(np.sum(np.exp(terms - top))))


def _log(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(x)
