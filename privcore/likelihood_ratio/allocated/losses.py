r"""Sums of the losses of k out of t, with the moments of the ratio: on a lattice, and tilted.

A step with the ratio X has the loss $a = \ln(1 - z + z X)$ if its example is sampled with the rate z. For an
upper distribution, X is spread to values whose losses are multiples of a spacing, which keeps its mean. For a
lower one, the losses are rounded to such multiples at random, a post-processing, and the means of X are kept.

Of every sum the mass $\Pr_Q$ and the moments $E_Q[R]$ and $E_Q[R^2]$ of the ratio R of k out of t on the
outputs with this sum are convolutions of the moments of one step: with $F_i$ the masses of the losses times
$X^i$, $E_Q[R]$ is $F_1^{*k} * F_0^{*(t-k)}$, and $E_Q[R^2]$ is the mean of $F_2^{*o} * F_1^{*2(k-o)} *
F_0^{*(t-2k+o)}$ over the overlap o of two independent draws. The error of a transform is absolute, so each
moment is multiplied by $e^{s a}$ with its own tilt s, which moves its centre to the sums in question.

A second coordinate is the expected number B of participations, which is not on a lattice: it is reported with
noise, as one of `2 M + 2` places of a circle, with probabilities that are a trigonometric polynomial of
degree M in B, so that M + 1 frequencies suffice.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from privcore.likelihood_ratio.distribution import LikelihoodRangeError, RatioDistribution
from privcore.likelihood_ratio.grid import Array
from privcore.numerics.rounding import FOURIER, UNIT

MOST_LOSSES = 2**17
"""Largest number of points of a lattice; a finer spacing than this allows is refused."""
PLACES = 64.0 * UNIT
"""Counted: relative error of a value by the spread of an atom to the lattice, 4 u for its place in the cell
and 16 u for the two values of the lattice; and of the mean of X at a point."""


@dataclass(frozen=True, kw_only=True)
class Losses:
    """Points of the lattice, ascending, and moments of the ratio of one step there.

    Attributes:
        spacing: Distance of two points, in nats.
        index: Multiple of the spacing of every point.
        moments: Masses of the points without the example, and their products with the mean and, for an upper
            distribution, with the square of X, shape (2, n) or (3, n).
        chance: Probability that the example was sampled, given the point.
        distribution: The distribution of X to which `moments` belongs, whose errors by rounding count.
    """

    spacing: float
    index: NDArray[np.int64]
    moments: Array
    chance: Array
    law: RatioDistribution


def spread_losses(base: RatioDistribution, rate: float, spacing: float) -> Losses:
    r"""Return the losses of an upper distribution: a mean-preserving spread of X to the lattice.

    Args:
        base: An upper distribution of the ratio of one step.
        rate: Sampling rate z of the losses, in (0, 1).
        spacing: Largest spacing; it is reduced until X = 0 is a point of the lattice.

    Raises:
        LikelihoodRangeError: The lattice has too many points.

    Example:
        >>> base = RatioDistribution(x=np.array([0.5, 3.0]), p=np.array([0.8, 0.2]))
        >>> losses = spread_losses(base, rate=0.5, spacing=0.4)
        >>> [float(round(moment.sum(), 9)) for moment in losses.moments[:2]]
        [1.0, 1.0]
    """
    lowest = -math.log1p(-rate)
    below = max(1, math.ceil(lowest / spacing))
    spacing = lowest / below
    above = math.ceil(math.log1p(rate * max(0.0, float(base.x[-1]) - 1.0)) / spacing) + 1
    if not below + above < MOST_LOSSES:
        raise LikelihoodRangeError
    index = np.arange(-below, above + 1)
    # e^a = (1 - z) e^(a - lowest a), so small values have their digits
    x = np.expm1((index + below) * spacing) * ((1.0 - rate) / rate)
    left = np.clip(np.searchsorted(x, base.x, side="right") - 1, 0, x.size - 2)
    right = np.clip((base.x - x[left]) / (x[left + 1] - x[left]), 0.0, 1.0)
    p = np.bincount(left, weights=base.p * (1.0 - right), minlength=x.size)
    p[1:] += np.bincount(left, weights=base.p * right, minlength=x.size)[:-1]
    return _losses(spacing, index, np.stack((p, p * x, p * x * x)), rate, base)


def rounded_losses(base: RatioDistribution, rate: float, spacing: float) -> Losses:
    """Return the losses of a lower distribution, rounded at random to one of the two nearest points.

    The expected loss of a step is kept: errors of many steps with the same loss would add up otherwise.

    Args:
        base: A lower distribution of the ratio of one step.
        rate: Sampling rate z of the losses, in (0, 1).
        spacing: Distance of two points, in nats.

    Raises:
        LikelihoodRangeError: The lattice has too many points.

    Example:
        >>> base = RatioDistribution(x=np.array([0.5, 3.0]), p=np.array([0.8, 0.2]))
        >>> rounded_losses(base, rate=0.5, spacing=0.4).index.tolist()  # losses -0.288 and 0.693
        [-1, 0, 1, 2]
    """
    exact = np.log1p(rate * (base.x - 1.0)) / spacing
    place = np.floor(exact).astype(np.int64)
    if not np.ptp(place) < MOST_LOSSES:
        raise LikelihoodRangeError
    least, up = int(place.min()), exact - place
    index = np.arange(least, int(place.max()) + 2)
    moments = [
        np.bincount(place - least, weights=value * (1.0 - up), minlength=index.size)
        + np.bincount(place - least + 1, weights=value * up, minlength=index.size)
        for value in (base.p, base.p * base.x)
    ]
    return _losses(spacing, index, np.stack(moments), rate, base)


def _losses(
    spacing: float, index: NDArray[np.int64], moments: Array, rate: float, base: RatioDistribution
) -> Losses:
    """Return the points that have mass."""
    used = moments[0] > 0.0
    index, moments = index[used], moments[:, used]
    chance = 1.0 - (1.0 - rate) * np.exp(-index * spacing)
    return Losses(spacing=spacing, index=index, moments=moments, chance=np.clip(chance, 0.0, 1.0), law=base)


Numbers = NDArray[Any]

FLOOR = 0.1
"""Least size of a characteristic function for its bound of rounding: smaller ones have no power worth
bounding."""
BITS = 2.0**40
RARE = 1e-22
"""Overlaps of a smaller share are left out."""


@dataclass(frozen=True, kw_only=True)
class Participation:
    """Random choice of steps: k = `participations` of t = `steps`, in each of `epochs`."""

    participations: int
    steps: int
    epochs: int


@dataclass(frozen=True, kw_only=True)
class Circle:
    """Places of the expected number of participations, modulo a circumference.

    Attributes:
        degree: Degree M of the probabilities of the places; 0 for one place.
        circumference: Numbers of participations on one turn.
    """

    degree: int
    circumference: float

    def turn(self, chance: Array) -> Array:
        """Return the part of a turn of one step, rounded to 40 bits, so that its multiples are exact."""
        part: Array = np.rint(np.mod(chance / self.circumference, 1.0) * BITS) / BITS
        return part

    @property
    def weights(self) -> Array:
        """Coefficients of the least-variance kernel of Fejer and Korovkin, for cosines, shape (M + 1,)."""
        root = np.sin(math.pi / (self.degree + 2.0) * np.arange(1.0, self.degree + 2.0))
        kernel = np.correlate(root, root, "full")[self.degree :]
        weights: Array = np.where(np.arange(self.degree + 1) == 0, 1.0, 2.0) * kernel / kernel[0]
        return weights


@dataclass(frozen=True, kw_only=True)
class Sums:
    """One moment of the ratio at all sums and places, tilted: shape (places, sums).

    The moment at a sum of losses A is `tilted` times `exp(scale - tilt * A)`, up to an absolute error of
    `error` before the multiplication, and a relative one of `relative`. Sums that differ by the size of the
    window are not distinguished.
    """

    tilted: Array
    tilt: float
    scale: float
    error: float
    relative: float


def log_moments(losses: Losses, tilt: float) -> tuple[Array, Array]:
    """Return the tilted masses of one step for every moment, each of sum 1, and logarithms of the sums."""
    exponent = np.where(losses.moments > 0.0, tilt * losses.spacing * losses.index, -np.inf)
    largest = exponent.max(axis=1)
    weights = losses.moments * np.exp(exponent - largest[:, None])
    totals = weights.sum(axis=1)
    return weights / totals[:, None], np.log(totals) + largest


def overlaps(steps: int, participations: int) -> tuple[Array, Array]:
    """Return the possible overlaps of two draws, and the logarithms of their probabilities."""
    t, k = steps, participations
    o = np.arange(max(0, 2 * k - t), k + 1.0)
    log = scipy.special.gammaln
    ways = log(k + 1.0) - log(o + 1.0) - log(k - o + 1.0)
    ways += log(t - k + 1.0) - log(k - o + 1.0) - log(t - 2.0 * k + o + 1.0)
    ways -= log(t + 1.0) - log(k + 1.0) - log(t - k + 1.0)
    return o, ways


def log_total(losses: Losses, moment: int, choice: Participation, tilt: float) -> tuple[float, float]:
    """Return the logarithm of the sum of a moment times `exp(tilt * A)` over all sums A, and its slope.

    Args:
        losses: Losses of one step.
        moment: Power of the ratio: 0, 1 or 2.
        choice: Steps of an epoch and epochs.
        tilt: Tilt of the sums; the slope is the mean of A after tilting.
    """
    weights, logs = log_moments(losses, tilt)
    means = weights @ (losses.spacing * losses.index)
    t, k = choice.steps, choice.participations
    if moment < 2:
        counts = np.array([t - moment * k, moment * k])
        total, mean = float(counts @ logs[:2]), float(counts @ means[:2])
    else:
        o, ways = overlaps(t, k)
        terms = ways + o * logs[2] + 2.0 * (k - o) * logs[1] + (t - 2.0 * k + o) * logs[0]
        total = float(scipy.special.logsumexp(terms))
        shared = float(np.exp(terms - total) @ o)
        mean = float(shared * means[2] + 2.0 * (k - shared) * means[1] + (t - 2.0 * k + shared) * means[0])
    return choice.epochs * total, choice.epochs * mean


def sums(
    losses: Losses,
    moment: int,
    choice: Participation,
    *,
    tilt: float,
    first: int,
    size: int,
    circle: Circle,
) -> Sums:
    """Return a moment of the ratio of k out of t in every epoch, at all sums of losses.

    Args:
        losses: Losses of one step.
        moment: Power of the ratio: 0, 1 or 2.
        choice: Steps of an epoch and epochs.
        tilt: Tilt s of the sums.
        first: Index of the first sum of the window.
        size: Number of sums in the window, a power of 2.
        circle: Places of the expected number of participations.
    """
    t, k, epochs = choice.steps, choice.participations, choice.epochs
    weights, logs = log_moments(losses, tilt)
    rows = [np.zeros((circle.degree + 1, size), dtype=np.complex128) for _ in weights]
    phases = _roots(
        np.mod(np.multiply.outer(np.arange(circle.degree + 1.0), circle.turn(losses.chance)), 1.0)
    )
    place = losses.index % size
    for row, weight in zip(rows, weights, strict=True):
        for line, phase in zip(row, phases, strict=True):
            values = weight * phase
            line.real = np.bincount(place, weights=values.real, minlength=size)
            line.imag = np.bincount(place, weights=values.imag, minlength=size)
    spectra = [np.fft.fft(row, axis=1) for row in rows]
    transform = FOURIER * max(1.0, math.log2(size)) + 16.0 * UNIT
    sizes = [np.maximum(np.abs(spectrum) + transform, FLOOR) for spectrum in spectra]
    if moment < 2:
        counts = (t - moment * k, moment * k)
        spectrum, bound = _powers(spectra, counts), _powers(sizes, counts)
        scale = float(counts[0] * logs[0] + counts[1] * logs[1])
        lost = 0.0
    else:
        spectrum, bound, scale, lost = _second(spectra, sizes, logs, t, k)
    spectrum, bound, scale, lost = (
        _power(spectrum, epochs),
        _power(bound, epochs),
        epochs * scale,
        epochs * lost,
    )
    # Factors that err by the transform relative to `FLOOR`, and products of complex numbers
    grown = math.expm1(1.01 * epochs * (t + 2) * (transform + 8.0 * UNIT) / FLOOR)
    peaks = bound.mean(axis=1)
    inverse = np.fft.ifft(spectrum, axis=1)
    places = 2 * circle.degree + 2 if circle.degree else 1
    products = np.multiply.outer(np.arange(places), np.arange(circle.degree + 1)) % places
    turn = np.conj(_roots(products / places))
    tilted = ((turn * (circle.weights / places)) @ inverse).real
    error = float(circle.weights @ peaks) / places * (grown + transform + 16.0 * (circle.degree + 1) * UNIT)
    exponents = np.abs(tilt * losses.spacing * losses.index)
    relative = epochs * t * UNIT * (32.0 + 8.0 * float(np.max(exponents)) + losses.law.x.size)
    if moment == 2:
        relative += 64.0 * UNIT * epochs * float(scipy.special.gammaln(t + 2.0))  # logarithms of the overlaps
    return Sums(
        tilted=np.roll(tilted, -(first % size), axis=1),
        tilt=tilt,
        scale=scale,
        error=error + lost,
        relative=relative + 16.0 * UNIT * abs(scale),
    )


def _roots(part: Array) -> NDArray[np.complex128]:
    """Return the points on the unit circle at parts of a turn."""
    result: NDArray[np.complex128] = np.exp(2j * math.pi * part)
    return result


def _powers(factors: Sequence[Numbers], counts: tuple[int, int]) -> Numbers:
    """Return the product of the first two factors, each to its power."""
    result = _power(factors[0], counts[0])
    return result * _power(factors[1], counts[1]) if counts[1] else result


def _power(factor: Numbers, times: int) -> Numbers:
    """Return a power by squaring, with at most two roundings for every factor."""
    result, square = np.ones_like(factor), factor
    while times:
        if times & 1:
            result = result * square
        times >>= 1
        if times:
            square = square * square
    return result


def _second(
    spectra: Sequence[Numbers], sizes: Sequence[Numbers], logs: Array, t: int, k: int
) -> tuple[Numbers, Numbers, float, float]:
    """Return the spectrum of the second moment, a bound of its size, its scale, and the share left out."""
    o, ways = overlaps(t, k)
    terms = ways + o * logs[2] + 2.0 * (k - o) * logs[1] + (t - 2.0 * k + o) * logs[0]
    scale = float(scipy.special.logsumexp(terms))
    shares = np.exp(terms - scale)
    kept = np.flatnonzero(shares > RARE)
    low, high = int(kept[0]), int(kept[-1])
    lost = 2.0 * float(shares[:low].sum() + shares[high + 1 :].sum())
    least = int(o[low])
    results = []
    for f0, f1, f2 in (spectra, sizes):
        both, apart = f2 * f0, f1 * f1
        total, further = np.full_like(both, shares[high]), np.ones_like(both)
        for share in shares[low:high][::-1]:
            further = further * apart
            total = total * both + share * further
        rest = k - least - (high - low)  # participations of the second draw alone, at the largest overlap
        total = total * _power(f2, least) * _power(apart, rest) * _power(f0, t - 2 * k + least)
        results.append(total)
    return results[0], results[1], scale, lost


LEAST_SLOPE, LARGEST_SLOPE = 1e-4, 2000.0
"""Slopes of the logarithm of the tail among which that of the threshold is searched."""
