"""Bounds for any column or prior: attackers who see a lattice of etas, and second moments over bags."""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import get_args

import numpy as np
import scipy.fft
import scipy.special
from numpy.typing import NDArray

from privcore.answer import Answer
from privcore.labels.bounds.response import accuracy
from privcore.labels.cells import BINS, coarser_and_spread, spread
from privcore.labels.problems import (
    SINGLE,
    LabelAdvantage,
    LabelAdvantageAt,
    LabelAttackAccuracy,
    LabelProblem,
)
from privcore.labels.sums.noisy_sums import RATES, Complex, CountNoise, noise_of
from privcore.labels.sums.partition import in_partition
from privcore.labels.sums.poisson_binomial import Array
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import SUMMED, UNIT
from privcore.numerics.sums import dot

_ROUNDING = float(np.finfo(np.longdouble).eps)
_LOST = 1e-22
"""Probability outside the window of differences; bounds have its square root."""
_OUTSIDE = 1e-14
"""Probability outside the window of residuals."""


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


def window(members: Members, others: int, noise: CountNoise) -> tuple[int, float]:
    r"""Return half the width, in counts, of a window of residuals, and the probability outside it.

    Chernoff's inequality for the sum of independent $y - c / L$ and of the noise.
    """
    deviations = members.points / members.fineness
    logs = []
    for sign in (1.0, -1.0):
        rate = sign * RATES[:, None]
        each = (1.0 - members.rates) * np.exp(-rate * deviations) + members.rates * np.exp(
            rate * (1.0 - deviations)
        )
        logs.append(others * np.log(dot(each, members.masses)) + noise.logs)
    return _reach(np.maximum(*logs), _OUTSIDE)


def _reach(logs: Array, probability: float) -> tuple[int, float]:
    """Return the least t with 2 exp(log - rate t) at most a probability for some rate, and that bound."""
    reach = math.ceil(float(np.min((logs - math.log(0.5 * probability)) / RATES))) + 2
    return reach, 4.0 * math.exp(float(np.min(logs - RATES * (reach - 1))))


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


def residual_law(
    members: Members, levels: int, others: int, noise: CountNoise, counts: int
) -> tuple[Array, float]:
    r"""Return the distribution of $\sum (L y - c)$ plus L times the noise, and of a sum of variance classes.

    Both are folded into a window, as a weaker attacker may do.

    Args:
        members: A member, with the lattice.
        levels: Number of classes of variances; 0 for none.
        others: Number of members, >= 1.
        noise: Kernels of the noise.
        counts: Width of the window in counts.

    Returns:
        Probabilities for each kernel, shape (kernels, window, classes), rounded to doubles, and the largest
        error of an entry.
    """
    size = counts * members.fineness
    classes, width = members.classes(levels, others)
    one = np.zeros((size, width), dtype=np.longdouble)
    ones, zeros = members.masses * members.rates, members.masses * (1.0 - members.rates)
    np.add.at(one, ((-members.points) % size, classes % width), zeros)
    np.add.at(one, ((members.fineness - members.points) % size, classes % width), ones)
    base = scipy.fft.fft2(one)
    powers = power(base, others - 1)
    error = _error(float(np.mean(np.abs(powers) ** 2)), others, one.size)
    powers *= base
    angles = members.fineness * _angles(size)
    laws = [scipy.fft.ifft2(powers * kernel(angles)[:, None]).real for kernel in noise.kernels]
    return np.maximum(np.stack(laws), 0.0).astype(float) + 0.0, error


@dataclass(frozen=True, kw_only=True)
class Moments:
    r"""Second moments of the distribution q of the noisy sum in a bag, weighted by $e^{\tau V}$.

    Attributes:
        weights: Means of $e^{-\tau V}$ over bags with one remainder and one sum of classes.
        squares: Means of $e^{\tau V} q(u)^2$, one for each residual u; for each pair of kernels of the noise,
            of products of both, twice if they are different.
        products: Means of $e^{\tau V} q(u) q(u + L)$, rounded down; for different kernels, of both orders.
        error: Largest error of an entry.
    """

    weights: Array
    squares: Array
    products: Array
    error: float

    def of_mixture(self, shares: Array) -> tuple[Array, Array]:
        """Return the squares, rounded up, and products, rounded down, of a mixture of the kernels."""
        if shares.size == 1:
            return self.squares[0], self.products[0]
        pairs = [x * y for x, y in combinations_with_replacement(shares.tolist(), 2)]
        squares, products = (
            sum(share * each for share, each in zip(pairs, table, strict=True))
            for table in (self.squares, self.products)
        )
        sizes = sum(share * np.abs(each) for share, each in zip(pairs, self.products, strict=True))
        # a pair takes at most two products and three sums
        return squares * (1.0 + 8.0 * UNIT), products - 8.0 * UNIT * sizes


def second_moments(
    members: Members, levels: int, tau: float, others: int, noise: CountNoise, counts: int
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
        noise: Kernels of the noise.
        counts: Width of the window in counts.
    """
    size, steps = counts * members.fineness, members.fineness
    v, e = members.variances, members.rates
    mean = float(np.sum(members.masses * v))
    heavy = members.masses * np.exp(tau * (v - mean))
    light = members.masses * np.exp(-tau * (v - mean))
    means = heavy.sum() + 2.0 * (np.cosh(RATES) - 1.0) * float(np.sum(heavy * v))
    logs = others * np.log(means) + 2.0 * noise.logs
    reach, lost = _reach(logs, _LOST)
    frequencies = 2 * scipy.fft.next_fast_len(reach // 2 + 2)
    classes, width = members.classes(levels, others)
    classes %= width
    remainders = np.zeros((steps, width), dtype=np.longdouble)
    np.add.at(remainders, ((-members.points) % steps, classes), light)
    weights = np.maximum(scipy.fft.ifft2(power(scipy.fft.fft2(remainders), others)).real, 0.0)
    left, right = (-members.points) % size, (steps - members.points) % size
    angles = _angles(size)[:, None] * steps
    pairs = list(combinations_with_replacement(range(len(noise.kernels)), 2))
    squares = np.zeros((len(pairs), size, width), dtype=np.longdouble)
    products = np.zeros((len(pairs), size, width), dtype=np.longdouble)
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
        firsts = [kernel(angles + phase) for kernel in noise.kernels]
        seconds = [np.conj(kernel(np.asarray(phase))) for kernel in noise.kernels]
        for place, (first, second) in enumerate(pairs):
            here = scipy.fft.ifft2(powers * (firsts[first] * seconds[second]))
            both = 1.0 if first == second else 2.0
            squares[place] += both * times * here.real
            products[place] += times * (here / turn).real
            if first != second:  # the other order, shifted to the residual of its first copy
                products[place] += times * np.roll((here * turn).real, -steps, axis=0)
    error = 2.0 ** (len(pairs) > 1) * (_error(norm, others, size * width * frequencies) + lost)
    small = float(np.finfo(float).tiny)
    every = np.tile(weights.astype(float), (counts, 1))
    return Moments(
        weights=every * (1.0 + others * 1e-14) + others * 100.0 * _ROUNDING,
        squares=np.maximum(squares / frequencies, 0.0).astype(float) + error + small,
        products=(products / frequencies).astype(float) - error,
        error=error,
    )


_NODES = 128
_FINEST, _COARSEST = 64, 16
_LOSS = 0.002
"""Share of the variance of a label that may be lost by moving etas to the lattice."""
_TILTS = (1.0, 0.75, 0.5, 0.25, 0.0, -0.25, -0.5, -1.0, -1.5, -2.0, -3.0, -4.5, -6.5, -9.0, -13.0)
_FEW_TILTS = (0.5, 0.0, -1.0, -3.0)
_SMALLEST, _LARGEST = 3, 10_000
_LEAST_EPSILON = 0.02
_LITTLE_NOISE = 1.0
"""Least epsilon of noise that leaves a difference between bags with the same remainder."""

Answered = LabelAdvantage | LabelAdvantageAt | LabelAttackAccuracy


class LabelsResidual(Method[Answered]):
    r"""Replace the features of the others by a lattice of their etas, from below and from above.

    Lower end: an attacker with only $U = \sum_j (L y_j - c_j)$, with each other eta rounded to a point
    $c_j / L$, and a sum of classes of the variances, gains no more. As L shifts U by one label, this is a sum
    over one distribution. Upper end: each other eta is spread to the two points next to it, which keeps its
    mean, so by convexity an attacker gains no less; and with $d = \eta g_1 - (1 - \eta) g_0$ and any $\tau$,
    $$E d_+ \le \tfrac12 \left( E d + \sqrt{E[d^2 e^{\tau V}] \, E e^{-\tau V}} \right)$$
    over bags with the same remainder of $\sum c_j$ by L, by the inequality of Cauchy and Schwarz, where V is
    the variance of the sum. Second moments are probabilities of two copies of the labels of a bag, see
    `residuals`. In small bags, a sum of classes of the variances is fixed, too. The attacked eta is
    spread to a grid. Laplace noise lies between an output that is cut to parts of a count, for the lower end,
    and geometric noise on these parts, for the upper end.

    In a partition of N rows, different rows are drawn with at most $N^k (N - k)! / N!$ times the probability
    of independent draws; and the different rows among more independent draws are a smaller bag of the
    partition, which reveals more.
    """

    name = "labels.residual"
    problems = get_args(Answered)
    direction = Direction.ENCLOSURE
    reference = (
        "Jensen's inequality, its converse, and the inequality of Cauchy and Schwarz; the method is ours"
    )
    version = 2

    def applies(self, problem: Answered) -> str | None:
        if problem.mechanism in SINGLE:
            return "The mechanism has no bags; labels.response has the closed forms."
        if not _SMALLEST <= problem.bag_size <= _LARGEST:
            return f"The method is for bags of {_SMALLEST} to {_LARGEST} examples."
        if problem.label_epsilon < _LEAST_EPSILON:
            return (
                "The noise is too wide for a window of outputs; the method needs label_epsilon >= "
                f"{_LEAST_EPSILON:g}."
            )
        if problem.distribution.atoms is None and problem.distribution.cells(2) is None:
            return "The means of the prior over intervals have no closed form."
        if problem.is_partition and isinstance(problem, LabelAdvantageAt):
            return "The bound is for a random row of a partition."
        return problem.contradiction() or None

    def cost(self, problem: Answered) -> Cost:
        epsilon = min(max(problem.label_epsilon, _LEAST_EPSILON), 1e3)
        deviation = math.sqrt(0.25 * problem.bag_size + 2.0 / epsilon**2 + 1.0)
        wide = 20.0 * deviation + 60.0 + 70.0 / epsilon
        classes = 100.0 if _levels(problem.bag_size - 1, problem.label_epsilon) else 4.0
        entries = wide * _FINEST * wide * len(_FEW_TILTS) * classes
        if problem.mechanism == "llp-laplace":
            entries *= 1.0 + 0.25 * _parts(problem.bag_size - 1)
        entries *= 1.0 + problem.bag_size / 5000.0
        size = 0 if problem.distribution.atoms is None else problem.distribution.atoms[0].size
        seconds = 0.5 + 2.5e-8 * entries * min(1.0, (problem.bag_size + 2.0) / 16.0) + 3e-7 * size
        return Cost(seconds=seconds, bytes=2e8 + 100.0 * size)

    def answer(self, problem: Answered, seed: int) -> Answer:
        about = problem
        if isinstance(problem, LabelAttackAccuracy):
            about = LabelAdvantage(**problem.as_fields())  # type: ignore[arg-type]  # the fields are the same
        low, high, fineness = _advantage(about)
        if isinstance(problem, LabelAttackAccuracy):
            low, high = accuracy(problem.distribution, (max(0.0, low), high))
        return Answer.enclosure(
            max(0.0, min(low, problem.largest)),
            min(problem.largest, high),
            detail=f"lattice of {fineness} steps",
        )


@lru_cache(maxsize=8)
def _advantage(problem: LabelProblem) -> tuple[float, float, int]:
    """Return bounds of the advantage, which the accuracy needs too, and the steps of the lattice."""
    law, k = problem.distribution, problem.bag_size
    low_law, high_law = coarser_and_spread(law)
    own = problem.eta if isinstance(problem, LabelAdvantageAt) else None
    fineness = _fineness(high_law)
    # Bins have the means of their rows. The coefficients of the kernels of Laplace noise err by 16 UNIT in
    # all, since the error of e^-y is at most y e^-y UNIT, and these sum to less than 1.
    slack = (k + 10.0) * (law.error + 128.0 * UNIT) + 1e-15 * BINS

    def upper(others: int) -> float:
        return _upper(problem, high_law, own, fineness, others) + slack

    def lower(others: int) -> float:
        return _lower(problem, low_law, own, fineness, others) - slack

    if problem.is_partition:
        assert law.counts is not None
        low, high = in_partition(int(law.counts.sum()), k, lower, upper)
    else:
        low, high = lower(k - 1), upper(k - 1)
    return float(low), float(high), fineness


def _levels(others: int, epsilon: float) -> int:
    """Return the number of classes of variances; small bags with little noise need them most."""
    if epsilon < _LITTLE_NOISE:
        return 0
    return 8 if others < 16 else 4 if others < 32 else 0


def _parts(others: int) -> int:
    """Return a number of parts between two counts; the gap of geometric to Laplace noise is about 0.4 / k."""
    return max(1, round(20.0 / math.sqrt(others + 1.0)))


def _fineness(law: tuple[Array, Array]) -> int:
    """Return a number of steps of the lattice that loses little of the variance of a label."""
    values, weights = law
    variance = float(np.sum(weights * values * (1.0 - values)))
    for steps in range(_COARSEST, _FINEST, 8):
        place = np.floor(values * steps)
        lost = float(np.sum(weights * (values - place / steps) * ((place + 1.0) / steps - values)))
        if lost <= _LOSS * variance:
            return steps
    return _FINEST


def _lower(
    problem: LabelProblem, law: tuple[Array, Array], own: float | None, fineness: int, others: int
) -> float:
    """Return the advantage of the attacker with the residual, rounded down."""
    values, weights = law
    place = np.floor(values * fineness + 0.5).astype(np.int64)
    mass = np.asarray(np.bincount(place, weights, fineness + 1), dtype=np.float64)
    points = np.flatnonzero(mass > 0.0)
    rates = np.bincount(place, weights * values, fineness + 1)[points] / mass[points]
    members = Members(fineness=fineness, points=points, masses=mass[points], rates=np.minimum(1.0, rates))
    noise = noise_of(problem.mechanism, problem.label_epsilon, 2 * _parts(others))
    counts = scipy.fft.next_fast_len(2 * window(members, others, noise)[0])
    laws, error = residual_law(members, _levels(others, problem.label_epsilon), others, noise, counts)
    own_values, own_weights = law if own is None else (np.array([own]), np.ones(1))
    total = 0.0
    for shares in noise.coarser:
        q = np.tensordot(shares, laws, axes=1)
        one, zero = np.roll(q, fineness, axis=0), q
        total += _overturned(own_values, own_weights, one.ravel(), zero.ravel())
    return total - 2.0 * laws.size * error


def _overturned(values: Array, weights: Array, one: Array, zero: Array) -> float:
    """Return the sum of the overturned masses, for a few thousand values."""
    order = np.argsort(values)
    values, weights = values[order], weights[order]
    total = one + zero
    t = np.divide(zero, total, out=np.full_like(total, 0.5), where=total > 0.0)
    middle = int(np.searchsorted(values, 0.5, side="right"))

    def outwards(terms: Array) -> Array:
        before, after = np.cumsum(terms[:middle][::-1])[::-1], -np.cumsum(terms[middle:])
        return np.concatenate([before, [0.0], after])

    mass, moment = outwards(weights * (1.0 - values)), outwards(weights * values)
    at = np.searchsorted(values, t, side="right")
    gains = np.maximum(0.0, one * moment[at] - zero * mass[at])
    return float(gains.sum()) - values.size * 2.0**-50


def _upper(
    problem: LabelProblem, law: tuple[Array, Array], own: float | None, fineness: int, others: int
) -> float:
    """Return the bound from second moments, rounded up."""
    lattice = np.arange(fineness + 1) / fineness
    mass = spread(*law, lattice)
    points = np.flatnonzero(mass > 0.0)
    members = Members(fineness=fineness, points=points, masses=mass[points], rates=lattice[points])
    # one part is the geometric noise itself
    mechanism = problem.mechanism if _parts(others) > 1 else "llp-geometric"
    noise = noise_of(mechanism, problem.label_epsilon, _parts(others))
    reach, outside = window(members, others, noise)
    counts = scipy.fft.next_fast_len(2 * reach)
    levels = _levels(others, problem.label_epsilon)
    laws, error = residual_law(members, levels, others, noise, counts)
    variance = max(0.3, others * float(np.sum(members.masses * members.variances)))
    tilts = _FEW_TILTS if levels else _TILTS
    found = [second_moments(members, levels, tilt / variance, others, noise, counts) for tilt in tilts]
    half = 0.5 * (1.0 - (np.arange(_NODES, -1.0, -1.0) / _NODES) ** 1.5)
    nodes = np.concatenate([half, 1.0 - half[-2::-1]])
    owns = (nodes, spread(*law, nodes)) if own is None else (np.array([own]), np.ones(1))
    total = math.fsum(_of_mixture(shares, found, laws, error, fineness, *owns) for shares in noise.finer)
    return total * (1.0 + SUMMED) + 2.0 * outside


def _of_mixture(
    shares: Array, found: list[Moments], sums: Array, error: float, fineness: int, etas: Array, weights: Array
) -> float:
    """Return the bound for one mixture of the kernels of the noise, over the attacked etas.

    Args:
        shares: Coefficients of the kernels.
        found: Second moments for several tilts.
        sums: Those of `residual_law`.
        error: Largest error of an entry of them.
        fineness: Steps of the lattice.
        etas: Those of the attacked examples.
        weights: Their probabilities.
    """
    zero = np.tensordot(shares, sums, axes=1)
    one, shifted = np.roll(zero, fineness, axis=0), []
    for moments in found:
        squares, products = moments.of_mixture(shares)
        on, both = (np.roll(each, fineness, axis=0) for each in (squares, products))
        shifted.append((moments.weights, squares, on, both))
    total = 0.0
    for eta, weight in zip(etas, weights, strict=True):
        if weight == 0.0 or eta in (0.0, 1.0):
            continue
        sign = 1.0 if eta <= 0.5 else -1.0
        mean = sign * (eta * one - (1.0 - eta) * zero) + error
        least = np.minimum.reduce([means * _square(eta, *tables) for means, *tables in shifted])
        most = (eta * one if sign > 0.0 else (1.0 - eta) * zero) + error
        bound = 0.5 * (mean + np.sqrt(least * (1.0 + SUMMED)))
        total += weight * float(np.minimum(np.maximum(0.0, bound), most).sum())
    return total


def _square(eta: float, squares: Array, on: Array, both: Array) -> Array:
    """Return the mean of d squared, rounded up: its terms may nearly cancel, and each has a few roundings.

    Args:
        eta: That of the attacked example.
        squares: The means of squares.
        on: The same for label 1, shifted by a label.
        both: The means of products, shifted by a label.
    """
    positive = eta**2 * on + (1.0 - eta) ** 2 * squares
    negative = 2.0 * eta * (1.0 - eta) * both
    return np.maximum(0.0, positive - negative + 8.0 * UNIT * (positive + np.abs(negative)))
