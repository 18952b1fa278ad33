r"""Upper bounds of epsilon of Poisson-sampled Gaussian steps, by Fourier transforms on a lattice of losses.

A step has the ratio $X = 1 - q + q Y$ with Y lognormal. A mean-preserving spread moves X to values whose
logarithms, the losses, are multiples of a spacing. It dominates the step, and its composition is an exact
convolution: nothing is rounded between the steps, so the error of epsilon falls with the square of the
spacing, and does not depend on the number of combinations as in `grid`.

The profile is $\sum_J p^{*n}_J (1 - e^{\varepsilon - \ell_J})_+$ with the masses p of P (remove), or those of
Q with reversed losses (add). They are tilted by $e^{\tau \ell} / M$, which puts the bulk of the sum near
epsilon, so errors of a transform are small relative to delta. All errors are added.

One file, since window, tilt and errors of the transform are chosen together.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore.likelihood_ratio.kernel import Array
from privcore.likelihood_ratio.lattice import LARGEST_LOSS, LatticeStep, step_on_lattice
from privcore.likelihood_ratio.profile import DIRECTIONS, LARGEST_EPSILON, Direction
from privcore.method import Cost
from privcore.numerics.rounding import FOURIER, SUMMED, UNIT

SPACING = 5e-5
"""Distance of two losses, in nats, unless the window would have too many or too few points."""
COARSE = 2000
"""Number of points of the lattice that shows the extent of the losses."""
FEWEST, MOST = 2**12, 2**21
"""Smallest and largest number of points of the window in which sums are computed."""
RELATIVE, LONG = 3000, 2**18
"""Number of points up to a small epsilon, unless the lattice would have more than the second number."""
MOST_STEPS = 10**6
"""Largest number of steps."""
BEYOND = 1e-6
"""Share of delta that the losses beyond the lattice take, in all steps."""
OUTSIDE = (14.0, 27.0)
"""Minus the logarithms of the tilted masses below and above the window. Sums below it are counted at its
upper end, where they hardly matter."""
NEGLIGIBLE = 45.0
"""Minus the logarithm of the size of a power of a transform that is dropped."""
FARTHEST = 600.0
"""Largest distance of epsilon from the start of the window, with minus the logarithm of the mass above it:
further away, terms of the profile leave the range of doubles."""
PRECISION = 1e-10
"""Relative precision of the search for epsilon."""


@lru_cache(maxsize=256)
def epsilon_by_sums(s: float, rate: float, times: int, delta: float, adjacency: str) -> float:
    """Return an upper bound of epsilon of Poisson-sampled Gaussian steps; infinity outside of the range.

    Args:
        s: Inverse noise multiplier, > 0.
        rate: Sampling probability, in (0, 1).
        times: Number of steps.
        delta: Probability in (0, 1).
        adjacency: A word of `DIRECTIONS`, except replace-one.

    Example:
        >>> round(epsilon_by_sums(1.0, 0.01, 1000, 1e-5, "add-remove"), 4)
        1.8282
    """
    if not (times <= MOST_STEPS and delta > 1e-100 and rate < 1.0):
        return math.inf
    found = 0.0
    for direction in DIRECTIONS[adjacency]:
        each = _epsilon(s, rate, times, delta, direction, found)
        found = math.inf if math.isnan(each) else max(found, each)
    return found


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


def _epsilon(s: float, rate: float, times: int, delta: float, direction: Direction, other: float) -> float:
    """Return an upper bound of epsilon in a direction, or that of the other direction if it suffices."""
    end = 1.0 - float(scipy.special.ndtri(BEYOND * delta / times))
    coarse = step_on_lattice(s, rate, end, direction, points=COARSE, most=MOST)
    if coarse is None:
        return math.inf
    epsilon, tau = _chernoff(coarse, times, delta)
    if epsilon <= other:  # the bound by moments alone shows that the other direction is larger
        return other
    if epsilon > LARGEST_EPSILON:
        return math.inf
    low, high, theta = _window(coarse, times, tau)
    if not low < high:
        return epsilon
    reach = float(coarse.loss[-1] - coarse.loss[0])
    fine = max(epsilon / RELATIVE, reach / LONG)
    spacing = max(min(SPACING, (high - low) / FEWEST, fine), 1.01 * (high - low) / MOST)
    step = step_on_lattice(s, rate, end, direction, spacing=spacing, most=MOST)
    if step is None or (high - low) / step.spacing > MOST:  # its spacing may be smaller
        return epsilon
    return min(epsilon, _Tail.of(step, times, tau, (low, high), theta).epsilon(delta))


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

    orders = np.linspace(math.log(1e-2), math.log(1e4), 29)
    start = int(np.argmin([bound(float(each)) for each in orders]))
    ends = orders[max(0, start - 1)], orders[min(orders.size - 1, start + 1)]
    found = scipy.optimize.minimize_scalar(bound, bounds=ends, method="bounded", options={"xatol": 0.02})
    return bound(float(found.x)), math.exp(float(found.x))


def _log_peak(tau: float) -> float:
    """Return the logarithm of the largest value of e^(-tau u) (1 - e^-u) for u >= 0."""
    return tau * math.log(tau) - (tau + 1.0) * math.log1p(tau)


def _window(step: LatticeStep, times: int, tau: float) -> tuple[float, float, float]:
    """Return an interval that has nearly all of the tilted sum, and the order that bounds the mass above."""
    tilted = step.tilted(tau)[1]
    mean = float(np.sum(tilted * step.loss))
    centred = step.loss - mean
    deviation = math.sqrt(times * float(np.sum(tilted * centred * centred)))
    if not deviation > 0.0:
        return times * mean, times * mean, 1.0
    thetas = np.geomspace(0.5, 200.0, 24) / deviation
    used, found = tilted > 0.0, []
    for side, outside in zip((-1.0, 1.0), OUTSIDE, strict=True):
        exponents = np.outer(side * thetas, centred[used]) + np.log(tilted[used])
        top = exponents.max(axis=1)
        log_moments = top + np.log(np.sum(np.exp(exponents - top[:, None]), axis=1))
        reach = (times * log_moments + outside) / thetas
        best = int(np.argmin(reach))
        far = min(float(reach[best]), times * float(np.max(side * centred)))
        found.append((times * mean + side * far, float(thetas[best])))
    return found[0][0], found[1][0], found[1][1]


@dataclass(frozen=True)
class _Tail:
    """The tail of the composed profile.

    Attributes:
        step: One step.
        times: Number of steps.
        tau: Order of the tilt.
        log_moment: Logarithm of the moment of the composition.
        loss: Sums of losses, ascending.
        masses: Upper bounds of their tilted masses.
        outside: Bound of the tilted mass above the window.
    """

    step: LatticeStep
    times: int
    tau: float
    log_moment: float
    loss: Array
    masses: Array
    outside: float

    @classmethod
    def of(
        cls, step: LatticeStep, times: int, tau: float, window: tuple[float, float], theta: float
    ) -> "_Tail":
        """Return the sums in a window, from the n-th power of a transform.

        Sums outside of the window are counted inside, at multiples of its length. Those from below only add
        mass, since epsilon is taken from the window alone; those above it are bounded by `outside`.
        """
        log_moment, tilted = step.tilted(tau)
        first, last = (math.floor(end / step.spacing) for end in window)
        size = 2 ** math.ceil(math.log2(last - first + 2))
        folded = np.bincount(np.arange(step.least, step.least + tilted.size) % size, tilted, size)
        transform = np.fft.rfft(folded)
        slack = FOURIER * math.log2(size)  # relative to the sum of the sizes of the terms, which is 1
        sizes = np.abs(transform)
        kept = np.flatnonzero(sizes > math.exp(-NEGLIGIBLE / times))
        powers = np.zeros_like(transform)
        powers[kept] = _power(transform[kept], times)
        total = np.fft.irfft(powers, size)
        # Means over both halves of the transform: of the powers, and of the (n - 1)-th powers.
        mean = 2.0 * float(np.sum(np.abs(powers[kept]))) / size
        raised = np.exp((times - 1) * np.log(sizes[kept] + slack))
        dropped = (math.exp(-NEGLIGIBLE / times) + slack) ** times
        moved = times * slack * 2.0 * float(np.sum(raised)) / size
        error = 1.01 * (moved + dropped + (8.0 * times * UNIT + slack) * (mean + moved))
        centre = float(np.sum(tilted * step.loss))
        used = tilted > 0.0
        exponents = theta * (step.loss[used] - centre) + np.log(tilted[used])
        top = float(np.max(exponents))
        above = times * (top + math.log(float(np.sum(np.exp(exponents - top)))))
        reached = (first + size - 1) * step.spacing - times * centre
        is_whole = first + size > times * (step.least + tilted.size - 1)
        order = np.arange(first, first + size)
        return cls(
            step,
            times,
            tau,
            times * log_moment,
            order * step.spacing,
            np.maximum(total[order % size], 0.0) + error,
            0.0 if is_whole else math.exp(min(0.0, above + 0.01 - theta * reached)),
        )

    def epsilon(self, delta: float) -> float:
        """Return an upper bound of epsilon; infinity if the window does not show one."""
        step, n, tau, loss = self.step, self.times, self.tau, self.loss
        slack = n * (step.mass_error + step.value_error + step.tilt_error(tau)) + SUMMED
        slack += 16.0 * UNIT * (abs(self.log_moment) + tau * float(np.max(np.abs(loss))) + loss.size)
        target = delta * math.exp(-slack) - n * step.beyond
        start = int(np.searchsorted(loss, 0.0))
        weights = np.exp(np.minimum(self.log_moment - tau * loss[start:], 300.0)) * self.masses[start:]
        above = np.cumsum(weights[::-1])[::-1]
        # At a loss l, the profile is the integral of e^(l - u) above(u) over the losses u > l.
        scaled = np.exp(loss[start] - loss[start:-1]) * above[1:] * -math.expm1(-step.spacing)
        at = np.cumsum(scaled[::-1])[::-1] * np.exp(np.minimum(loss[start:-1] - loss[start], 700.0))
        peak = math.exp(_log_peak(tau))
        extra = np.exp(np.minimum(self.log_moment - tau * loss[start:-1], 300.0)) * peak * self.outside
        fits = at + extra <= target
        if not fits.any():
            return math.inf
        # The profile falls: the first point that fits, and a chord of its logarithm in the cell before.
        place = int(np.argmax(fits))
        right = float(loss[start + place])
        if right - loss[start] - math.log(max(float(above[place]), 1e-300)) > FARTHEST:
            return math.inf
        left = right - step.spacing
        found = right
        if place > 0:
            found = self._inside(target, above, at, place, (left, right), peak)
        return (max(found, 0.0) + n * step.value_error) * (1.0 + 4.0 * UNIT)

    def _inside(
        self, target: float, above: Array, at: Array, place: int, cell: tuple[float, float], peak: float
    ) -> float:
        """Return the epsilon within a cell: there the profile is c - e^(epsilon - right) d."""
        left, right = cell
        c, d = float(above[place]), float(above[place] - at[place])
        extra = math.exp(self.log_moment - self.tau * left) * peak * self.outside
        room = (c + extra - target) / d if d > 0.0 else 0.0
        if not 0.0 < room < 1.0:
            return right
        return min(right, max(left, right + math.log(room) + PRECISION * self.step.spacing))


def _power(base: NDArray[np.complex128], times: int) -> NDArray[np.complex128]:
    """Return the power of complex numbers by repeated squaring, which errs by at most 8 u for each factor."""
    power = np.ones_like(base)
    while times:
        if times & 1:
            power = power * base
        times >>= 1
        if times:
            base = base * base
    return power
