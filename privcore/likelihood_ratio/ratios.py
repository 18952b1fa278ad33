"""Likelihood ratios as expressions of a few operations: hashable, and built into brackets on demand.

A ratio dP/dQ belongs to a pair (P, Q) of output distributions, for example of one step, of an epoch or of a
whole run. Equal ratios have equal brackets, so a ratio is a key of caches.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privcore.likelihood_ratio.distribution import (
    LARGEST_RATIO,
    PICTURE,
    UNDERFLOW,
    LikelihoodRangeError,
    RatioBracket,
    RatioDistribution,
    Resolution,
    combine,
    conditional_means,
    lowest_value,
    mean_of,
    mean_preserving_spread,
    mixed,
    product_of,
)
from privcore.likelihood_ratio.grid import Array, choose_edges, coarsen, collect
from privcore.likelihood_ratio.questions import Question, enclose, powering
from privcore.likelihood_ratio.steps import lognormal
from privcore.numerics.rounding import MEAN_AT_INFINITY, UNIT

BEYOND = str(LikelihoodRangeError())
"""End of the note of a bracket that no distribution has narrowed."""


class Ratio(ABC):
    """Likelihood ratio X = dP/dQ under Q, as an expression."""

    def bracket(self, res: Resolution) -> RatioBracket:
        """Return the bracket of the ratio at a resolution; the result is cached and shared.

        Raises:
            LikelihoodRangeError: Ratios that matter exceed the range of doubles.
        """
        return _bracket(self, res)

    @abstractmethod
    def build(self, res: Resolution) -> RatioBracket:
        """Compute the bracket."""

    @property
    @abstractmethod
    def width(self) -> float:
        """Approximate inverse noise multiplier of one step, as the argument s of `enclose.cost`."""

    @property
    def combinations(self) -> int:
        """Number of combinations of two distributions in a build, which take its time."""
        return 0

    @property
    def levels(self) -> int:
        """Number of combinations from a leaf to the result; each adds its part to the width."""
        return self.combinations

    @property
    def copies(self) -> int:
        """Largest number of times that a cut-off tail enters the result."""
        return 1


@lru_cache(maxsize=64)
def _bracket(ratio: Ratio, res: Resolution) -> RatioBracket:
    return ratio.build(res)


@dataclass(frozen=True)
class Gaussian(Ratio):
    """Ratio of N(mu, 1) against N(0, 1): a lognormal distribution; mu > 0."""

    mu: float

    def build(self, res: Resolution) -> RatioBracket:
        return lognormal(self.mu, res)

    @property
    def width(self) -> float:
        return self.mu


@dataclass(frozen=True)
class Sampled(Ratio):
    """Ratio of a part that includes the example with a probability, and otherwise does not depend on it."""

    ratio: Ratio
    probability: float

    def build(self, res: Resolution) -> RatioBracket:
        return mixed(self.ratio.bracket(res), self.probability, res)

    @property
    def width(self) -> float:
        return self.ratio.width

    @property
    def combinations(self) -> int:
        return self.ratio.combinations

    @property
    def levels(self) -> int:
        return self.ratio.levels

    @property
    def copies(self) -> int:
        return self.ratio.copies


@dataclass(frozen=True)
class OneOfSteps(Ratio):
    """Ratio of several steps if one of them, chosen uniformly at random, uses the example."""

    ratio: Ratio
    steps: int

    def build(self, res: Resolution) -> RatioBracket:
        return mean_of(self.ratio.bracket(res), self.steps, res)

    @property
    def width(self) -> float:
        return self.ratio.width

    @property
    def combinations(self) -> int:
        return self.ratio.combinations + powering(self.steps)

    @property
    def levels(self) -> int:
        return self.ratio.levels + powering(self.steps)


@dataclass(frozen=True)
class Composed(Ratio):
    """Ratio of independent repetitions."""

    ratio: Ratio
    times: int

    def build(self, res: Resolution) -> RatioBracket:
        return product_of(self.ratio.bracket(res), self.times, res)

    @property
    def width(self) -> float:
        return self.ratio.width

    @property
    def combinations(self) -> int:
        return self.ratio.combinations + powering(self.times)

    @property
    def levels(self) -> int:
        return self.ratio.levels + powering(self.times)

    @property
    def copies(self) -> int:
        return self.ratio.copies * self.times


@dataclass(frozen=True)
class Product(Ratio):
    """Ratio of several independent parts; at least one."""

    ratios: tuple[Ratio, ...]

    def build(self, res: Resolution) -> RatioBracket:
        brackets = [ratio.bracket(res) for ratio in self.ratios]
        while len(brackets) > 1:  # neighbours, so that no factor passes more levels than necessary
            pairs = zip(brackets[::2], brackets[1::2], strict=False)
            rest = brackets[len(brackets) - len(brackets) % 2 :]
            brackets = [combine(a, b, res, product=True) for a, b in pairs] + rest
        return brackets[0]

    @property
    def width(self) -> float:
        return max(ratio.width for ratio in self.ratios)

    @property
    def combinations(self) -> int:
        return sum(ratio.combinations for ratio in self.ratios) + len(self.ratios) - 1

    @property
    def levels(self) -> int:
        return max(ratio.levels for ratio in self.ratios) + (len(self.ratios) - 1).bit_length()

    @property
    def copies(self) -> int:
        return sum(ratio.copies for ratio in self.ratios)


def sampled(ratio: Ratio, probability: float) -> Ratio:
    """Return the ratio of a part that includes the example with a probability in (0, 1]."""
    return ratio if probability == 1.0 else Sampled(ratio, probability)


def repeated(ratio: Ratio, times: int) -> Ratio:
    """Return the ratio of independent repetitions."""
    if isinstance(ratio, Gaussian):
        return Gaussian(math.sqrt(float(times)) * ratio.mu)
    return Composed(ratio, times) if times > 1 else ratio


def halved(ratio: Ratio) -> Ratio | None:
    """Return the ratio with half of its repetitions, rounded down; None if nothing is repeated."""
    if isinstance(ratio, Composed):
        return repeated(ratio.ratio, ratio.times // 2) if ratio.times > 1 else None
    if isinstance(ratio, Product):
        fewer = [halved(part) for part in ratio.ratios]
        kept = tuple(some or part for some, part in zip(fewer, ratio.ratios, strict=True))
        return product(kept) if any(fewer) else None
    return None


def product(ratios: tuple[Ratio, ...]) -> Ratio:
    """Return the ratio of independent parts: equal parts are counted, and Gaussian parts added.

    Example:
        >>> product((Gaussian(3.0), Gaussian(4.0)))
        Gaussian(mu=5.0)
    """
    squares, counted = list[float](), dict[Ratio, int]()
    for ratio in ratios:
        base, times = (ratio.ratio, ratio.times) if isinstance(ratio, Composed) else (ratio, 1)
        if isinstance(base, Gaussian):
            squares.append(times * base.mu * base.mu)
        else:
            counted[base] = counted.get(base, 0) + times
    parts: list[Ratio] = [Composed(ratio, times) if times > 1 else ratio for ratio, times in counted.items()]
    if squares:
        parts.append(Gaussian(math.sqrt(math.fsum(squares))))
    return parts[0] if len(parts) == 1 else Product(tuple(parts))


def enclosed(
    ratio: Ratio, question: Question, tolerance: float, outer: tuple[float, float]
) -> tuple[float, float, str]:
    """Return a bracket of the quantity in question of the pair with this ratio, and a note.

    Args:
        ratio: The ratio.
        question: Quantity to compute.
        tolerance: Requested relative width.
        outer: A known bracket.
    """
    return enclose(
        ratio.bracket, question, tolerance, copies=ratio.copies, outer=outer, combinations=ratio.levels
    )


def attained(ratio: Ratio, question: Question, tolerance: float, outer: tuple[float, float]) -> float:
    """Return the end that the ratio of data sets proves: the lower one, unless the quantity falls.

    If the ratio is beyond doubles, half of its steps are used, since leaving out steps is post-processing.

    Args:
        ratio: The ratio.
        question: Quantity to compute.
        tolerance: Requested relative width.
        outer: A known bracket.
    """
    (lower, upper), fewer = outer, ratio
    while True:
        found = enclosed(fewer, question, tolerance, outer)
        lower, upper = max(lower, found[0]), min(upper, found[1])
        less = halved(fewer) if found[2].endswith(BEYOND) else None
        if less is None:
            return upper if question.falls else lower
        fewer = less


@dataclass(frozen=True)
class Blend(Ratio):
    """Ratio of a part that follows one of several ratios, chosen at random and revealed.

    A ratio dominates the true one if it has at least the true weights; their sum may exceed 1.
    """

    weights: tuple[float, ...]
    ratios: tuple[Ratio, ...]

    def build(self, res: Resolution) -> RatioBracket:
        return _blended(self.weights, [ratio.bracket(res) for ratio in self.ratios], res)

    @property
    def width(self) -> float:
        return max(ratio.width for ratio in self.ratios)

    @property
    def combinations(self) -> int:
        return sum(ratio.combinations for ratio in self.ratios)

    @property
    def levels(self) -> int:
        return max(ratio.levels for ratio in self.ratios) + 1

    @property
    def copies(self) -> int:
        return max(ratio.copies for ratio in self.ratios)


def _blended(weights: tuple[float, ...], parts: list[RatioBracket], res: Resolution) -> RatioBracket:
    """Return the bracket of the mixture, with the atoms of all parts in the cells of one grid."""
    pictures = [
        coarsen(part.lower.x, w * part.lower.p, PICTURE) for w, part in zip(weights, parts, strict=True)
    ]
    x, p = (np.concatenate(each) for each in zip(*pictures, strict=True))
    order = np.argsort(x, kind="stable")
    lowest = min(lowest_value(part.upper) for part in parts)
    highest = max(float(part.upper.x[-1]) for part in parts)
    edges = choose_edges(x[order], p[order], res.fineness, res.tail, False, lowest, highest)
    if edges.size < 2 or not edges[-1] <= LARGEST_RATIO:
        raise LikelihoodRangeError
    lower = _cells(weights, [part.lower for part in parts], edges)
    upper = _cells(weights, [part.upper for part in parts], edges)
    return RatioBracket(lower=conditional_means(*lower), upper=mean_preserving_spread(*upper))


def _cells(
    weights: tuple[float, ...], parts: list[RatioDistribution], edges: Array
) -> tuple[RatioDistribution, Array, int]:
    """Return the mixture of distributions in cells, with their moments and the number of additions."""
    mass, moment = np.zeros(edges.size), np.zeros(edges.size)
    for weight, part in zip(weights, parts, strict=True):
        found = collect(part.x, weight * part.p, np.ones(1), np.ones(1), edges, False, True)
        mass, moment = mass + found[0], moment + found[1]
    atoms = sum(part.x.size for part in parts)
    pairs = list(zip(weights, parts, strict=True))
    lost = UNDERFLOW * atoms  # a product of two tiny masses may have become 0
    cells = RatioDistribution(
        x=edges,
        p=mass,
        infinite=sum(weight * part.infinite for weight, part in pairs) * (1.0 + MEAN_AT_INFINITY),
        mass_error=max(part.mass_error for part in parts) + 2.0 * UNIT,
        value_error=max(part.value_error for part in parts),
        drift_remove=1.01 * sum(weight * part.drift_remove for weight, part in pairs)
        + lost * float(edges[-1]),
        drift_add=1.01 * sum(weight * part.drift_add for weight, part in pairs) + lost,
    )
    return cells, moment, atoms + len(parts)
