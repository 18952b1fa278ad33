r"""Bounds of epsilon of Poisson-sampled Gaussian steps, by Fourier transforms on a lattice of losses.

A step has the ratio $X = 1 - q + q Y$ with Y lognormal. A mean-preserving spread moves X to values whose
logarithms, the losses, are multiples of a spacing. It dominates the step, and its composition is an exact
convolution: nothing is rounded between the steps, so the error of epsilon falls with the square of the
spacing, and does not depend on the number of combinations as in `grid`. A contraction to the same losses
(`contraction`) is dominated by the step, and gives the lower end in the same way.

The profile is $\sum_J p^{*n}_J (1 - e^{\varepsilon - \ell_J})_+$ with the masses p of P (remove), or those of
Q with reversed losses (add). They are tilted by $e^{\tau \ell} / M$, which puts the bulk of the sum near
epsilon, so errors of a transform are small relative to delta. All errors are added.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore.likelihood_ratio.grid import Array
from privcore.likelihood_ratio.lattice import LARGEST_LOSS, LatticeStep, step_on_lattice
from privcore.likelihood_ratio.profile import DIRECTIONS, LARGEST_EPSILON, Direction
from privcore.method import Cost
from privcore.numerics.rounding import FOURIER, SUMMED, UNIT
from privcore.params import WIDTH

SPACING = 5e-5
"""Distance of two losses, in nats, unless the window would have too many or too few points."""
COARSE = 2000
"""Number of points of the lattice that shows the extent of the losses."""
PASSES = 2
"""Largest number of spacings tried."""
FEWEST, MOST = 2**12, 2**20
"""Smallest and largest number of points of the window in which sums are computed."""
RELATIVE, LONG, LONGEST = 3000, 2**18, 2**19
"""Number of points up to a small epsilon, unless the lattice would have more than the second number; the
third is the largest number of points of a lattice, since brackets of grids take less time then."""
WIDER = 4e-4
"""Relative error of epsilon by the spread, about, unless the lattice would have more than `LONG` points."""
MOST_STEPS = 10**6
"""Largest number of steps."""
BEYOND = 1e-6
"""Share of delta that the losses beyond the lattice take, in all steps."""
TILT = 0.7
"""Share of the best order of moments by which losses are tilted: with a heavy tail, the best order is at the
edge beyond which a few large losses have most of the tilted mass."""
OUTSIDE = 12.0
"""Minus the logarithm of the tilted mass on each side of the window. Sums there are counted at the opposite
end of the window, where they hardly matter."""
NEGLIGIBLE = 45.0
"""Minus the logarithm of the size of a power of a transform that is dropped."""
FARTHEST = 600.0
"""Largest distance of epsilon from the start of the window, with minus the logarithm of the mass above it:
further away, terms of the profile leave the range of doubles."""
PRECISION = 1e-10
"""Relative precision of the search for epsilon."""


@lru_cache(maxsize=256)
def epsilon_by_sums(s: float, rate: float, times: int, delta: float, adjacency: str) -> tuple[float, float]:
    """Return both ends of epsilon of Poisson-sampled Gaussian steps; 0 and infinity outside of the range.

    Args:
        s: Inverse noise multiplier, > 0.
        rate: Sampling probability, in (0, 1).
        times: Number of steps.
        delta: Probability in (0, 1).
        adjacency: A word of `DIRECTIONS`, except replace-one.

    Example:
        >>> [round(end, 4) for end in epsilon_by_sums(1.0, 0.01, 1000, 1e-5, "add-remove")]
        [1.8282, 1.8282]
    """
    if not (times <= MOST_STEPS and delta > 1e-100 and rate < 1.0):
        return 0.0, math.inf
    lower, upper = 0.0, 0.0
    for direction in DIRECTIONS[adjacency]:
        least, most = _epsilon(s, rate, times, delta, direction, upper)
        lower = max(least, lower)
        upper = math.inf if math.isnan(most) else max(upper, most)
    return lower, upper


def cost_of_sums(s: float, rate: float, times: int) -> Cost:
    """Return a conservative estimate of the cost of `epsilon_by_sums`.

    Args:
        s: Inverse noise multiplier, > 0.
        rate: Sampling probability, in (0, 1).
        times: Number of steps.
    """
    far = min(s * (12.0 + 0.5 * s), LARGEST_LOSS)
    reach = math.log1p(rate * math.expm1(far))
    deviation = math.sqrt(times) * min(reach, rate * math.sqrt(math.expm1(min(s * s, 100.0))))
    points = min((reach + 40.0 * deviation) / SPACING, float(MOST))
    return Cost(seconds=0.02 + 3e-7 * points, bytes=2e7 + 400.0 * points)


def _epsilon(
    s: float, rate: float, times: int, delta: float, direction: Direction, other: float
) -> tuple[float, float]:
    """Return both ends of epsilon in a direction; 0 and that of the other direction if it suffices."""
    end = 1.0 - float(scipy.special.ndtri(BEYOND * delta / times))
    coarse = step_on_lattice(s, rate, end, direction, points=COARSE, most=LONG)
    if coarse is None:
        return 0.0, math.inf
    epsilon, tau = _chernoff(coarse, times, delta)
    if epsilon <= other:  # the bound by moments alone shows that the other direction is larger
        return 0.0, other
    if epsilon > LARGEST_EPSILON:
        return 0.0, math.inf
    tilt = TILT * tau
    window = _Window.of(coarse, times, tilt)
    if not window.low < window.high:
        return 0.0, epsilon
    reach, length = float(coarse.loss[-1] - coarse.loss[0]), window.high - window.low
    curved = math.sqrt(12.0 * WIDER * epsilon / (times * tau))  # a spread adds h^2 / 6 to a variance
    fine = max(min(SPACING, length / FEWEST, epsilon / RELATIVE, curved), reach / LONG)
    lowest = -math.log1p(-rate)  # a multiple of the spacing
    negative = min(math.ceil(lowest / fine), math.floor(0.99 * lowest / length * MOST))
    lower = 0.0
    for _ in range(PASSES):
        if not 1 <= negative <= lowest / length * MOST:
            break
        step = step_on_lattice(s, rate, end, direction, negative=negative, most=LONGEST, both=True)
        if step is None:
            break
        epsilon = min(epsilon, _Tail.of(step, times, tilt, window).epsilon_upper(delta))
        if step.below is not None:
            lower = max(lower, _Tail.of(step.below, times, tilt, window).epsilon_lower(delta))
        if lower * (1.0 + WIDTH) >= epsilon or lower == 0.0:
            break  # else the spacing was for the much larger epsilon that moments show
        negative = math.ceil(negative * min(math.sqrt((epsilon / lower - 1.0) / WIDER), MOST))
    return lower, epsilon


def _chernoff(step: LatticeStep, times: int, delta: float) -> tuple[float, float]:
    r"""Return the least bound of epsilon by moments, and its order tau.

    $\delta(\varepsilon) \le e^{-\tau \varepsilon} M^n \sup_u e^{-\tau u} (1 - e^{-u})$ for every $\tau > 0$.
    """
    rest = math.log(delta * (1.0 - 2.0 * BEYOND))

    def bound(log_tau: float) -> float:
        tau = math.exp(log_tau)
        slack = times * (step.mass_error + (tau + 1.0) * step.value_error + step.tilt_error(tau)) + SUMMED
        log_moment = times * step.tilted(tau)[0] + slack
        return (log_moment + _log_peak(tau) - rest) / tau + times * step.value_error

    low, high, least = math.log(1e-2), math.log(1e4), (math.inf, 1.0)
    for points in (29, 9, 5):  # finer and finer, between the neighbours of the least bound
        orders = np.linspace(low, high, points).tolist()
        bounds = [bound(order) for order in orders]
        best = int(np.argmin(bounds))
        least = bounds[best], math.exp(orders[best])
        low, high = orders[max(0, best - 1)], orders[min(points - 1, best + 1)]
    return least


def _log_peak(tau: float) -> float:
    """Return the logarithm of the largest value of e^(-tau u) (1 - e^-u) for u >= 0."""
    return tau * math.log(tau) - (tau + 1.0) * math.log1p(tau)


@dataclass(frozen=True)
class _Window:
    """An interval that has nearly all of the tilted sum.

    Attributes:
        low: First sum.
        high: Last sum.
        orders: Orders of the moments that bound the masses below and above.
    """

    low: float
    high: float
    orders: tuple[float, float]

    @classmethod
    def of(cls, step: LatticeStep, times: int, tau: float) -> "_Window":
        """Return the window of a number of steps."""
        tilted = step.tilted(tau)[1]
        mean = float(np.sum(tilted * step.loss))
        centred = step.loss - mean
        deviation = math.sqrt(times * float(np.sum(tilted * centred * centred)))
        if not deviation > 0.0:
            return cls(times * mean, times * mean, (1.0, 1.0))
        thetas = np.geomspace(0.005, 200.0, 36) / deviation  # small ones for heavy tails
        used, found = tilted > 0.0, []
        for side in (-1.0, 1.0):
            exponents = np.outer(side * thetas, centred[used]) + np.log(tilted[used])
            top = exponents.max(axis=1)
            log_moments = top + np.log(np.sum(np.exp(exponents - top[:, None]), axis=1))
            reach = (times * log_moments + OUTSIDE) / thetas
            best = int(np.argmin(reach))
            far = min(float(reach[best]), times * float(np.max(side * centred)))
            found.append((times * mean + side * far, float(thetas[best])))
        return cls(found[0][0], found[1][0], (found[0][1], found[1][1]))


@dataclass(frozen=True)
class _Tail:
    """The tail of the composed profile.

    Attributes:
        step: One step.
        times: Number of steps.
        tau: Order of the tilt.
        log_moment: Logarithm of the moment of the composition.
        loss: Sums of losses, ascending.
        masses: Their tilted masses.
        error: Largest error of a mass.
        outside: Logarithms of bounds of the tilted masses below and above the window.
        orders: The rates at which these fall with the distance from the window.
    """

    step: LatticeStep
    times: int
    tau: float
    log_moment: float
    loss: Array
    masses: Array
    error: float
    outside: tuple[float, float]
    orders: tuple[float, float]

    @classmethod
    def of(cls, step: LatticeStep, times: int, tau: float, window: _Window) -> "_Tail":
        """Return the sums in a window, from the n-th power of a transform.

        Sums outside of the window are counted inside, at multiples of its length.
        """
        log_moment, tilted = step.tilted(tau)
        first, last = (math.floor(end / step.spacing) for end in (window.low, window.high))
        size = 2 ** math.ceil(math.log2(last - first + 2))
        folded = np.bincount(np.arange(step.least, step.least + tilted.size) % size, tilted, size)
        transform = np.fft.rfft(folded)
        slack = FOURIER * math.log2(size)  # relative to the sum of the sizes of the terms, which is 1
        sizes = np.abs(transform)
        kept = np.flatnonzero(sizes > math.exp(-NEGLIGIBLE / times))
        powers = np.zeros_like(transform)
        powers[kept] = power(transform[kept], times)
        total = np.fft.irfft(powers, size)
        # Means over both halves of the transform: of the powers, and of the (n - 1)-th powers.
        mean = 2.0 * float(np.sum(np.abs(powers[kept]))) / size
        raised = np.exp((times - 1) * np.log(sizes[kept] + slack))
        dropped = (math.exp(-NEGLIGIBLE / times) + slack) ** times
        moved = times * slack * 2.0 * float(np.sum(raised)) / size
        error = 1.01 * (moved + dropped + (8.0 * times * UNIT + slack) * (mean + moved))
        under = above = -math.inf
        if first > times * step.least:
            under = _mass_beyond(step, tilted, times, first * step.spacing, -window.orders[0])
        if first + size <= times * (step.least + tilted.size - 1):
            above = _mass_beyond(step, tilted, times, (first + size - 1) * step.spacing, window.orders[1])
        order = np.arange(first, first + size)
        return cls(
            step,
            times,
            tau,
            times * log_moment,
            order * step.spacing,
            total[order % size],
            error,
            (under, above),
            window.orders,
        )

    def epsilon_upper(self, delta: float) -> float:
        """Return an upper bound of epsilon of the step; infinity if the window does not show one.

        Sums from below the window only add to the profile. Each of those above it adds less than its mass.
        """
        loss, start = self.loss, self._start
        target = delta * math.exp(-self._slack) - self.times * self.step.beyond
        target -= math.exp(min(300.0, self.log_moment + self.outside[1] - self.tau * float(loss[-1])))
        above, at = self._profile(np.maximum(self.masses, 0.0) + self.error)
        fits = at <= target
        if not fits.any():
            return math.inf
        # The profile falls: the first point that fits, and a chord of its logarithm in the cell before.
        place = int(np.argmax(fits))
        found = right = float(loss[start + place])
        if right - loss[start] - math.log(max(float(above[place]), 1e-300)) > FARTHEST:
            return math.inf
        inside = self._inside(target, above, at, place) if place > 0 else math.nan
        if not math.isnan(inside):
            found = min(right, inside + PRECISION * self.step.spacing)
        return (max(found, 0.0) + self.times * self.step.value_error) * (1.0 + 4.0 * UNIT)

    def epsilon_lower(self, delta: float) -> float:
        r"""Return a lower bound of epsilon of each step that dominates this one.

        Sums outside of the window are counted at a distance of its length r + x. At a distance x above it,
        they count if x is larger than that of epsilon from the lower end, with at most the largest weight at
        epsilon. At a distance x below it, they are counted at x from the upper end t: with the mass
        $e^{-\beta - \theta x}$ beyond x, they add at most
        $M^n e^{-\beta} (e^{\tau h} + \tau r + 1) \max(e^{-\tau t}, e^{-\theta r - \tau \varepsilon})$ to the
        profile at epsilon, for the spacing h and $r = t - \varepsilon$.
        """
        h, tau, epsilon = self.step.spacing, self.tau, self.loss[self._start : -1]
        above, at = self._profile(np.maximum(self.masses - self.error, 0.0))
        distance, room = epsilon - self.loss[0], self.loss[-1] + h - epsilon
        under, over = self.outside
        from_above = over - self.orders[1] * distance + _log_peak(tau)
        from_below = under + np.maximum(-tau * room, -self.orders[0] * room)
        from_below += np.log(math.exp(tau * h) + tau * room + 1.0)
        weights = self.log_moment - tau * epsilon
        extra = sum(np.exp(np.minimum(weights + each, 300.0)) for each in (from_above, from_below))
        target = delta * math.exp(self._slack)
        fits = np.flatnonzero(at - extra >= target)
        if not fits.size:
            return 0.0
        place, found = int(fits[-1]) + 1, float(epsilon[fits[-1]])
        if place < at.size:
            most = 3.0 * float(np.max(extra[place - 1 : place + 1]))  # in the whole cell
            inside = self._inside(target + most, above, at, place)
            if not math.isnan(inside):
                found = max(found, inside - PRECISION * h)
        return max(0.0, (found - self.times * self.step.value_error) * (1.0 - 4.0 * UNIT))

    @property
    def _start(self) -> int:
        """Place of the first sum that is not negative."""
        return int(np.searchsorted(self.loss, 0.0))

    @property
    def _slack(self) -> float:
        """Bound of the relative error of the profile, rounding included."""
        step = self.step
        slack = self.times * (step.mass_error + step.value_error + step.tilt_error(self.tau)) + SUMMED
        farthest = float(np.max(np.abs(self.loss)))
        return slack + 16.0 * UNIT * (abs(self.log_moment) + self.tau * farthest + self.loss.size)

    def _weights(self, loss: Array) -> Array:
        """Return the mass at each loss for each unit of tilted mass."""
        found: Array = np.exp(np.minimum(self.log_moment - self.tau * loss, 300.0))
        return found

    def _profile(self, masses: Array) -> tuple[Array, Array]:
        """Return the mass at and above each loss from 0 on, and the profile at all but the last."""
        loss, start = self.loss, self._start
        above = np.cumsum((self._weights(loss[start:]) * masses[start:])[::-1])[::-1]
        # At a loss l, the profile is the integral of e^(l - u) above(u) over the losses u > l.
        scaled = np.exp(loss[start] - loss[start:-1]) * above[1:] * -math.expm1(-self.step.spacing)
        at = np.cumsum(scaled[::-1])[::-1] * np.exp(np.minimum(loss[start:-1] - loss[start], 700.0))
        return above, at

    def _inside(self, target: float, above: Array, at: Array, place: int) -> float:
        """Return the epsilon, or NaN, in the cell before a loss: the profile is c - e^(epsilon - right) d."""
        c, d = float(above[place]), float(above[place] - at[place])
        room = (c - target) / d if d > 0.0 else 0.0
        if not 0.0 < room < 1.0:
            return math.nan
        return float(self.loss[self._start + place]) + math.log(room)


def _mass_beyond(step: LatticeStep, tilted: Array, times: int, end: float, order: float) -> float:
    """Return the logarithm of a bound of the tilted mass of the sums beyond an end; below it if order < 0."""
    centre = float(np.sum(tilted * step.loss))
    used = tilted > 0.0
    exponents = order * (step.loss[used] - centre) + np.log(tilted[used])
    top = float(np.max(exponents))
    log_moment = top + math.log(float(np.sum(np.exp(exponents - top))))
    return times * log_moment + 0.01 - order * (end - times * centre)


def power(base: NDArray[np.complex128], times: int) -> NDArray[np.complex128]:
    """Return the power of complex numbers by repeated squaring, which errs by at most 8 u for each factor."""
    power = np.ones_like(base)
    while times:
        if times & 1:
            power = power * base
        times >>= 1
        if times:
            base = base * base
    return power
