"""Distributions of the sum of labels less a lattice of etas, and moments of two releases of one bag."""

import math
from dataclasses import dataclass

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from privcore.labels.poisson_binomial import Array
from privcore.numerics.sums import dot

Complex = NDArray[np.complexfloating]

_ROUNDING = float(np.finfo(np.longdouble).eps)
_LOST = 1e-22
"""Probability outside the window of differences; bounds have its square root."""
_OUTSIDE = 1e-14
"""Probability outside the window of residuals."""
_RATES = np.geomspace(0.01, 8.0, 64)
"""Parameters of Chernoff's bounds."""


@dataclass(frozen=True, kw_only=True)
class Members:
    """A member of a bag, whose eta is near a point of a lattice.

    Attributes:
        fineness: Number L of steps of the lattice in [0, 1].
        points: Points c of the lattice, between 0 and L.
        masses: Their probabilities.
        rates: Mean eta of the members at each point.
    """

    fineness: int
    points: NDArray[np.int64]
    masses: Array
    rates: Array

    @property
    def variances(self) -> Array:
        """Variances of a label at each point."""
        return self.rates * (1.0 - self.rates)

    def classes(self, levels: int, others: int) -> tuple[NDArray[np.int64], int]:
        """Return the class of the variance at each point, and a modulus by which most sums of them differ.

        Args:
            levels: Largest class; with 0, all variances are in one class.
            others: Number of members.
        """
        classes = np.rint(4.0 * self.variances * levels).astype(np.int64)
        if not levels:
            return classes, 1
        first, second = (float(np.sum(self.masses * classes**p)) for p in (1, 2))
        spread = math.sqrt(max(0.0, others * (second - first**2)))
        return classes, scipy.fft.next_fast_len(int(12.0 * spread) + 2)


def window(members: Members, others: int, epsilon: float) -> tuple[int, float]:
    r"""Return half the width, in counts, of a window of residuals, and the probability outside it.

    Chernoff's inequality for the sum of independent $y - c / L$ and of the noise.
    """
    deviations = members.points / members.fineness
    logs = []
    for sign in (1.0, -1.0):
        rate = sign * _RATES[:, None]
        each = (1.0 - members.rates) * np.exp(-rate * deviations) + members.rates * np.exp(
            rate * (1.0 - deviations)
        )
        logs.append(others * np.log(dot(each, members.masses)) + _noise_logs(epsilon))
    return _reach(np.maximum(*logs), _OUTSIDE)


def _reach(logs: Array, probability: float) -> tuple[int, float]:
    """Return the least t with 2 exp(log - rate t) at most a probability for some rate, and that bound."""
    reach = math.ceil(float(np.min((logs - math.log(0.5 * probability)) / _RATES))) + 2
    return reach, 4.0 * math.exp(float(np.min(logs - _RATES * (reach - 1))))


def _noise_logs(epsilon: float) -> Array:
    """Return the logarithms of the moment generating function of two-sided geometric noise."""
    if math.isinf(epsilon):
        return np.zeros(_RATES.size)
    allowed = 0.9 * epsilon > _RATES
    r = math.exp(-epsilon)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        value = 2.0 * math.log1p(-r) - np.log1p(-r * np.exp(_RATES)) - np.log1p(-r * np.exp(-_RATES))
    return np.asarray(np.where(allowed, value, math.inf))


def noise_transform(epsilon: float, angles: Array) -> Array:
    r"""Return the characteristic function of two-sided geometric noise, $(1-r)^2 / |1 - r e^{i t}|^2$."""
    if math.isinf(epsilon):
        return np.ones(angles.shape, dtype=np.longdouble)
    r = np.exp(-np.longdouble(epsilon))
    return np.asarray((1 - r) ** 2 / ((1 - r) ** 2 + 4 * r * np.sin(angles / 2) ** 2))


def geometric_noise(epsilon: float, fineness: int, counts: int) -> Array:
    """Return the characteristic function of L times two-sided geometric noise; of 0 for no noise."""
    return noise_transform(epsilon, fineness * _angles(fineness * counts))


def cut_laplace_noise(epsilon: float, fineness: int, counts: int) -> Complex:
    """Return the characteristic function of L times Laplace noise, cut to a whole number."""
    r = np.exp(-np.longdouble(epsilon) / fineness)
    turn = np.exp(1j * _angles(fineness * counts).astype(np.clongdouble))
    return np.asarray((1 - r) / 2 * (1 / (1 - r * turn) + 1 / (turn * (1 - r / turn))))


def power(base: Complex, exponent: int) -> Complex:
    """Return a power by repeated squaring, with a relative error of a few roundings times the exponent."""
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result = result * base
        exponent >>= 1
        base = base * base if exponent else base
    return result


def _angles(number: int) -> Array:
    return np.asarray(2 * np.arange(number) * (np.longdouble(np.pi) / number))


def _error(squares: float, others: int, entries: int) -> float:
    """Return the largest error of an entry of an inverse transform of a power.

    A transform has an error of 8 log2(n) roundings of its Euclidean norm; a power multiplies it by the
    exponent; by the inequality of Cauchy and Schwarz, `squares`, the mean square of the powers, is the other
    factor.
    """
    return (others + 4.0) * 16.0 * (math.log2(entries) + 4.0) * _ROUNDING * math.sqrt(squares)


def residual_law(members: Members, levels: int, others: int, noise: Complex | Array) -> tuple[Array, float]:
    r"""Return the distribution of $\sum (L y - c)$ plus L times the noise, and of a sum of variance classes.

    Both are folded into a window, as a weaker attacker may do.

    Args:
        members: A member, with the lattice.
        levels: Number of classes of variances; 0 for none.
        others: Number of members, >= 1.
        noise: Characteristic function of the noise of U, shape (window,); its size is that of the window.

    Returns:
        Probabilities, shape (window, classes), rounded to doubles, and the largest error of an entry.
    """
    size = noise.size
    classes, width = members.classes(levels, others)
    one = np.zeros((size, width), dtype=np.longdouble)
    ones, zeros = members.masses * members.rates, members.masses * (1.0 - members.rates)
    np.add.at(one, ((-members.points) % size, classes % width), zeros)
    np.add.at(one, ((members.fineness - members.points) % size, classes % width), ones)
    base = scipy.fft.fft2(one)
    powers = power(base, others - 1)
    error = _error(float(np.mean(np.abs(powers) ** 2)), others, one.size)
    powers *= base * noise[:, None]
    return np.maximum(scipy.fft.ifft2(powers).real, 0.0).astype(float) + 0.0, error


@dataclass(frozen=True, kw_only=True)
class Moments:
    r"""Second moments of the distribution q of the noisy sum in a bag, weighted by $e^{\tau V}$.

    Attributes:
        weights: Means of $e^{-\tau V}$ over bags with one remainder and one sum of classes.
        squares: Means of $e^{\tau V} q(u)^2$, one for each residual u.
        products: Means of $e^{\tau V} q(u) q(u + L)$, rounded down.
        error: Largest error of an entry.
    """

    weights: Array
    squares: Array
    products: Array
    error: float


def second_moments(
    members: Members, levels: int, tau: float, others: int, epsilon: float, counts: int
) -> Moments:
    r"""Return the second moments as probabilities that two releases of the same bag agree, or differ by 1.

    Given the etas, let two copies of the labels and of the noise be independent. The copies differ by
    $\Delta$, and $E q(u)^2 = P(U = u, \Delta = 0)$. For each frequency of $\Delta$ the joint distribution is
    a power, as the members are independent.

    Args:
        members: A member at the points of the lattice.
        levels: Number of classes of variances; 0 for none.
        tau: Weight of the variances.
        others: Number of members.
        epsilon: Label differential privacy of the geometric noise; infinity for none.
        counts: Width of the window in counts.
    """
    size, steps = counts * members.fineness, members.fineness
    v, e = members.variances, members.rates
    mean = float(np.sum(members.masses * v))
    heavy = members.masses * np.exp(tau * (v - mean))
    light = members.masses * np.exp(-tau * (v - mean))
    means = heavy.sum() + 2.0 * (np.cosh(_RATES) - 1.0) * float(np.sum(heavy * v))
    logs = others * np.log(means) + 2.0 * _noise_logs(epsilon)
    reach, lost = _reach(logs, _LOST)
    frequencies = 2 * scipy.fft.next_fast_len(reach // 2 + 2)
    classes, width = members.classes(levels, others)
    classes %= width
    remainders = np.zeros((steps, width), dtype=np.longdouble)
    np.add.at(remainders, ((-members.points) % steps, classes), light)
    weights = np.maximum(scipy.fft.ifft2(power(scipy.fft.fft2(remainders), others)).real, 0.0)
    left, right = (-members.points) % size, (steps - members.points) % size
    angles = _angles(size)[:, None] * steps
    squares = np.zeros((size, width), dtype=np.longdouble)
    products = np.zeros((size, width), dtype=np.longdouble)
    norm = 0.0
    for j in range(frequencies // 2 + 1):
        phase = 2 * np.longdouble(np.pi) * j / frequencies
        turn = np.exp(1j * np.clongdouble(phase))
        one = np.zeros((size, width), dtype=np.clongdouble)
        np.add.at(one, (left, classes), heavy * (1.0 - e) * ((1.0 - e) + e * turn))
        np.add.at(one, (right, classes), heavy * e * ((1.0 - e) / turn + e))
        base = scipy.fft.fft2(one)
        powers = power(base, others - 1)
        times = 1.0 if j in (0, frequencies // 2) else 2.0
        norm += times * float(np.mean(np.abs(powers) ** 2)) / frequencies
        powers *= base
        if math.isfinite(epsilon):
            powers *= noise_transform(epsilon, angles + phase) * noise_transform(epsilon, np.asarray(phase))
        here = scipy.fft.ifft2(powers)
        squares += times * here.real
        products += times * (here / turn).real
    error = _error(norm, others, size * width * frequencies) + lost
    small = float(np.finfo(float).tiny)
    every = np.tile(weights.astype(float), (counts, 1))
    return Moments(
        weights=every * (1.0 + others * 1e-14) + others * 100.0 * _ROUNDING,
        squares=np.maximum(squares / frequencies, 0.0).astype(float) + error + small,
        products=(products / frequencies).astype(float) - error,
        error=error,
    )
