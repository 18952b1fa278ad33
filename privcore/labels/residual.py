"""Bounds for any column or prior: attackers who see a lattice of etas, and second moments over bags."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

import numpy as np
import scipy.fft
import scipy.special

from privcore.answer import Answer
from privcore.labels.cells import BINS, coarser_and_spread, spread
from privcore.labels.different_rows import in_partition
from privcore.labels.poisson_binomial import Array
from privcore.labels.problems import (
    SINGLE,
    LabelAdvantage,
    LabelAdvantageAt,
    LabelAttackAccuracy,
    LabelProblem,
)
from privcore.labels.residuals import (
    Members,
    Moments,
    cut_laplace_noise,
    geometric_noise,
    residual_law,
    second_moments,
    window,
)
from privcore.labels.response import accuracy
from privcore.method import Cost, Direction, Method
from privcore.numerics.rounding import SUMMED, UNIT

_NODES = 128
_FINEST, _COARSEST = 64, 16
_LOSS = 0.002
"""Share of the variance of a label that may be lost by moving etas to the lattice."""
_TILTS = (1.0, 0.75, 0.5, 0.25, 0.0, -0.25, -0.5, -1.0, -1.5, -2.0, -3.0, -4.5, -6.5, -9.0, -13.0)
_FEW_TILTS = (0.5, 0.0, -1.0, -3.0)
_SMALLEST, _LARGEST = 3, 2000
_LEAST_EPSILON = 0.02
_LITTLE_NOISE = 1.0
"""Least epsilon of noise that leaves a difference between bags with the same remainder."""

Answered = LabelAdvantage | LabelAdvantageAt | LabelAttackAccuracy


@dataclass(frozen=True, kw_only=True)
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
    spread to a grid. With Laplace noise, the release is cut to the lattice for the lower end, and the upper
    end is that of geometric noise.

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
    slack = (k + 10.0) * (law.error + 128.0 * UNIT) + 1e-15 * BINS  # bins have the means of their rows

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
    epsilon = problem.label_epsilon
    counts = scipy.fft.next_fast_len(2 * window(members, others, epsilon)[0])
    levels = _levels(others, epsilon)
    noise = cut_laplace_noise if problem.mechanism == "llp-laplace" else geometric_noise
    q, error = residual_law(members, levels, others, noise(epsilon, fineness, counts))
    one, zero = np.roll(q, fineness, axis=0), q
    own_values, own_weights = law if own is None else (np.array([own]), np.ones(1))
    return _overturned(own_values, own_weights, one.ravel(), zero.ravel()) - 2.0 * q.size * error


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
    epsilon = problem.label_epsilon
    lattice = np.arange(fineness + 1) / fineness
    mass = spread(*law, lattice)
    points = np.flatnonzero(mass > 0.0)
    members = Members(fineness=fineness, points=points, masses=mass[points], rates=lattice[points])
    reach, outside = window(members, others, epsilon)
    counts = scipy.fft.next_fast_len(2 * reach)
    levels = _levels(others, epsilon)
    q, error = residual_law(members, levels, others, geometric_noise(epsilon, fineness, counts))
    one, zero = np.roll(q, fineness, axis=0), q
    variance = max(0.3, others * float(np.sum(members.masses * members.variances)))
    tilts = _FEW_TILTS if levels else _TILTS
    found = [second_moments(members, levels, tilt / variance, others, epsilon, counts) for tilt in tilts]
    half = 0.5 * (1.0 - (np.arange(_NODES, -1.0, -1.0) / _NODES) ** 1.5)
    nodes = np.concatenate([half, 1.0 - half[-2::-1]])
    owns = (nodes, spread(*law, nodes)) if own is None else (np.array([own]), np.ones(1))
    shifted = [
        (m, np.roll(m.squares, fineness, axis=0), np.roll(m.products, fineness, axis=0)) for m in found
    ]
    total = 0.0
    for eta, weight in zip(*owns, strict=True):
        if weight == 0.0 or eta in (0.0, 1.0):
            continue
        sign = 1.0 if eta <= 0.5 else -1.0
        mean = sign * (eta * one - (1.0 - eta) * zero) + error
        squares = np.minimum.reduce([m.weights * _square(m, on, both, eta) for m, on, both in shifted])
        most = (eta * one if sign > 0.0 else (1.0 - eta) * zero) + error
        bound = 0.5 * (mean + np.sqrt(squares * (1.0 + SUMMED)))
        total += weight * float(np.minimum(np.maximum(0.0, bound), most).sum())
    return total * (1.0 + SUMMED) + 2.0 * outside


def _square(moments: Moments, on: Array, both: Array, eta: float) -> Array:
    """Return the mean of d squared, rounded up: its terms may nearly cancel, and each has a few roundings.

    Args:
        moments: The second moments.
        on: `moments.squares` for label 1, shifted by a label.
        both: `moments.products`, shifted by a label.
        eta: That of the attacked example.
    """
    positive = eta**2 * on + (1.0 - eta) ** 2 * moments.squares
    negative = 2.0 * eta * (1.0 - eta) * both
    return np.maximum(0.0, positive - negative + 8.0 * UNIT * (positive + np.abs(negative)))
