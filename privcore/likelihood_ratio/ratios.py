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
from privcore.likelihood_ratio.parts import Part, bracket_of
from privcore.likelihood_ratio.privacy_loss.bounds import FEWEST, enclosed_losses
from privcore.likelihood_ratio.privacy_loss.distribution import LossEnds, from_ratios, mixture
from privcore.likelihood_ratio.privacy_loss.outputs import losses_of_one_step, losses_of_parts
from privcore.likelihood_ratio.profile import Direction
from privcore.likelihood_ratio.questions import (
    SHARE,
    SMALLEST_DELTA,
    WIDER,
    Question,
    enclose,
    powering,
    tier,
)
from privcore.likelihood_ratio.steps import lognormal
from privcore.likelihood_ratio.steps import sampled as sampled_mean
from privcore.numerics.rounding import MEAN_AT_INFINITY, UNIT

BEYOND = str(LikelihoodRangeError())
"""End of the note of a bracket that no distribution has narrowed."""
ALONE = 1.0 / 60.0
"""Width of the cells of a Gaussian mechanism alone, in standard deviations: they add some 1e-5 to epsilon."""
LOSSES = "sums of losses"
"""Note of a bracket by sums of losses."""
COARSEST = 1.0 / 64.0
"""Width of the cells of a ratio, in local standard deviations, from which the fewest losses are taken."""


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

    def privacy_loss(self, direction: Direction, cells: int, tail: float) -> LossEnds:
        """Return the ends of the privacy loss, also if the ratio exceeds the range of doubles.

        Args:
            direction: Direction.
            cells: About the number of cells of outputs.
            tail: Mass that may lie outside the cells.

        Raises:
            LikelihoodRangeError: The loss is only known from a ratio that exceeds the range of doubles.
        """
        fineness = COARSEST * max(FEWEST / cells, 0.25)
        return from_ratios(self.bracket(Resolution(fineness=fineness, tail=tier(tail))), direction)

    @property
    def factors(self) -> "tuple[tuple[Ratio, int], ...]":
        """The independent parts, each with its number of repetitions."""
        return ((self, 1),)

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


class OfOutputs(Ratio):
    """Ratio of a pair of Gaussian mixtures, or of such pairs on disjoint intervals of outputs."""

    @abstractmethod
    def parts(self) -> tuple[tuple[Part, ...], float]:
        """Return the intervals, and the mass under Q of the outputs with ratio 1 outside of them."""

    def build(self, res: Resolution) -> RatioBracket:
        return bracket_of(*self.parts(), res)

    def privacy_loss(self, direction: Direction, cells: int, tail: float) -> LossEnds:
        return losses_of_parts(*self.parts(), direction, cells, tail)


@dataclass(frozen=True)
class Gaussian(OfOutputs):
    """Ratio of N(mu, 1) against N(0, 1): a lognormal distribution; mu > 0."""

    mu: float

    def build(self, res: Resolution) -> RatioBracket:
        return lognormal(self.mu, res)

    def parts(self) -> tuple[tuple[Part, ...], float]:
        return (Part(sampled_mean(1.0, self.mu), sampled_mean(1.0, 0.0)),), 0.0

    @property
    def width(self) -> float:
        return self.mu


def gaussian_bracket(mu: float, scale: float) -> RatioBracket:
    """Return the bracket of N(mu, 1) against N(0, 1) for quantities without a formula.

    Args:
        mu: Distance of the means.
        scale: Size of the probability in question.

    Raises:
        LikelihoodRangeError: Ratios that matter exceed the range of doubles.
    """
    tail = max(tier(SHARE * scale), SMALLEST_DELTA)
    return Gaussian(mu).bracket(Resolution(fineness=ALONE, tail=tail))


@dataclass(frozen=True)
class Sampled(Ratio):
    """Ratio of a part that includes the example with a probability, and otherwise does not depend on it."""

    ratio: Ratio
    probability: float

    def build(self, res: Resolution) -> RatioBracket:
        return mixed(self.ratio.bracket(res), self.probability, res)

    def privacy_loss(self, direction: Direction, cells: int, tail: float) -> LossEnds:
        if not isinstance(self.ratio, Gaussian):
            return super().privacy_loss(direction, cells, tail)
        part = Part(sampled_mean(self.probability, self.ratio.mu), sampled_mean(1.0, 0.0))
        return losses_of_parts((part,), 0.0, direction, cells, tail)

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

    def privacy_loss(self, direction: Direction, cells: int, tail: float) -> LossEnds:
        try:
            return super().privacy_loss(direction, cells, tail)
        except LikelihoodRangeError:
            if not isinstance(self.ratio, Gaussian):
                raise
            return losses_of_one_step(self.ratio.mu, self.steps, direction, cells, tail)

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
    def factors(self) -> tuple[tuple[Ratio, int], ...]:
        return tuple((ratio, times * self.times) for ratio, times in self.ratio.factors)

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
    def factors(self) -> tuple[tuple[Ratio, int], ...]:
        return tuple(factor for ratio in self.ratios for factor in ratio.factors)

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
    found = enclose(
        ratio.bracket, question, tolerance, copies=ratio.copies, outer=outer, combinations=ratio.levels
    )
    return beyond(ratio, question, tolerance, found)


def beyond(
    ratio: Ratio, question: Question, tolerance: float, found: tuple[float, float, str]
) -> tuple[float, float, str]:
    """Return a bracket and its note, narrowed by sums of losses if the ratio exceeds the range of doubles.

    Args:
        ratio: The ratio.
        question: Quantity to compute.
        tolerance: Requested relative width; no less than `WIDER` is tried.
        found: Bracket and note of distributions of the ratio.
    """
    lower, upper, note = found
    if not note.endswith(BEYOND) or question.asks not in ("epsilon", "delta"):
        return found
    try:
        parts = [(part.privacy_loss, times) for part, times in ratio.factors]
        ends = enclosed_losses(parts, question, max(tolerance, WIDER), (lower, upper))
    except LikelihoodRangeError:
        return found
    return *ends, LOSSES


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

    def privacy_loss(self, direction: Direction, cells: int, tail: float) -> LossEnds:
        return mixture(self.weights, [ratio.privacy_loss(direction, cells, tail) for ratio in self.ratios])

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
