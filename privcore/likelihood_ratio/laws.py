"""Laws of likelihood ratios as expressions of a few operations: hashable, and built into brackets on demand.

A law belongs to a pair (P, Q) of output distributions, for example of one step, of an epoch or of a whole
run. Equal laws have equal brackets, so a law is a key of caches.

One file: each operation is a small class, and they are read together.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privcore.likelihood_ratio.distribution import (
    RatioBracket,
    RatioDistribution,
    Resolution,
    combine,
    mean_of,
    mixed,
    product_of,
)
from privcore.likelihood_ratio.enclose import Question, enclose, powering
from privcore.likelihood_ratio.lognormal import lognormal
from privcore.numerics.rounding import UNIT


class Law(ABC):
    """Law of the ratio X = dP/dQ under Q."""

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
        """Number of combinations from a leaf to the result, each of which adds its part to the width."""
        return self.combinations

    @property
    def copies(self) -> int:
        """Largest number of times that a cut-off tail enters the result."""
        return 1


@lru_cache(maxsize=64)
def _bracket(law: Law, res: Resolution) -> RatioBracket:
    return law.build(res)


@dataclass(frozen=True)
class Gaussian(Law):
    """Law of N(mu, 1) against N(0, 1): a lognormal distribution; mu > 0."""

    mu: float

    def build(self, res: Resolution) -> RatioBracket:
        return lognormal(self.mu, res)

    @property
    def width(self) -> float:
        return self.mu


@dataclass(frozen=True)
class Sampled(Law):
    """Law of a part that includes the example with a probability, and otherwise does not depend on it."""

    law: Law
    probability: float

    def build(self, res: Resolution) -> RatioBracket:
        return mixed(self.law.bracket(res), self.probability, res)

    @property
    def width(self) -> float:
        return self.law.width

    @property
    def combinations(self) -> int:
        return self.law.combinations

    @property
    def levels(self) -> int:
        return self.law.levels

    @property
    def copies(self) -> int:
        return self.law.copies


@dataclass(frozen=True)
class OneOfSteps(Law):
    """Law of several steps of which one, chosen uniformly at random, uses the example."""

    law: Law
    steps: int

    def build(self, res: Resolution) -> RatioBracket:
        return mean_of(self.law.bracket(res), self.steps, res)

    @property
    def width(self) -> float:
        return self.law.width

    @property
    def combinations(self) -> int:
        return self.law.combinations + powering(self.steps)

    @property
    def levels(self) -> int:
        return self.law.levels + powering(self.steps)


@dataclass(frozen=True)
class Composed(Law):
    """Law of independent repetitions."""

    law: Law
    times: int

    def build(self, res: Resolution) -> RatioBracket:
        return product_of(self.law.bracket(res), self.times, res)

    @property
    def width(self) -> float:
        return self.law.width

    @property
    def combinations(self) -> int:
        return self.law.combinations + powering(self.times)

    @property
    def levels(self) -> int:
        return self.law.levels + powering(self.times)

    @property
    def copies(self) -> int:
        return self.law.copies * self.times


@dataclass(frozen=True)
class Product(Law):
    """Law of several independent parts; at least one."""

    laws: tuple[Law, ...]

    def build(self, res: Resolution) -> RatioBracket:
        brackets = [law.bracket(res) for law in self.laws]
        while len(brackets) > 1:  # neighbours, so that no factor passes more levels than necessary
            pairs = zip(brackets[::2], brackets[1::2], strict=False)
            rest = brackets[len(brackets) - len(brackets) % 2 :]
            brackets = [combine(a, b, res, product=True) for a, b in pairs] + rest
        return brackets[0]

    @property
    def width(self) -> float:
        return max(law.width for law in self.laws)

    @property
    def combinations(self) -> int:
        return sum(law.combinations for law in self.laws) + len(self.laws) - 1

    @property
    def levels(self) -> int:
        return max(law.levels for law in self.laws) + (len(self.laws) - 1).bit_length()

    @property
    def copies(self) -> int:
        return sum(law.copies for law in self.laws)


@dataclass(frozen=True)
class Blend(Law):
    """Law of a part that follows one of several laws, chosen at random and revealed.

    A law dominates the true one if it has at least the true weights; their sum may exceed 1.
    """

    weights: tuple[float, ...]
    laws: tuple[Law, ...]

    def build(self, res: Resolution) -> RatioBracket:
        brackets = [law.bracket(res) for law in self.laws]
        return RatioBracket(
            lower=_blended(self.weights, [bracket.lower for bracket in brackets]),
            upper=_blended(self.weights, [bracket.upper for bracket in brackets]),
        )

    @property
    def width(self) -> float:
        return max(law.width for law in self.laws)

    @property
    def combinations(self) -> int:
        return sum(law.combinations for law in self.laws)

    @property
    def levels(self) -> int:
        return max(law.levels for law in self.laws)

    @property
    def copies(self) -> int:
        return max(law.copies for law in self.laws)


def _blended(weights: tuple[float, ...], parts: list[RatioDistribution]) -> RatioDistribution:
    """Return the mixture of distributions; an atom is listed once for each part that has it."""
    x = np.concatenate([part.x for part in parts])
    p = np.concatenate([weight * part.p for weight, part in zip(weights, parts, strict=True)])
    order = np.argsort(x, kind="stable")
    pairs = list(zip(weights, parts, strict=True))
    return RatioDistribution(
        x=x[order],
        p=p[order],
        infinite=sum(weight * part.infinite for weight, part in pairs),
        mass_error=max(part.mass_error for part in parts) + 2.0 * UNIT,
        value_error=max(part.value_error for part in parts),
        drift_remove=1.01 * sum(weight * part.drift_remove for weight, part in pairs),
        drift_add=1.01 * sum(weight * part.drift_add for weight, part in pairs),
    )


def product(laws: tuple[Law, ...]) -> Law:
    """Return the law of independent parts: equal parts are counted, and Gaussian parts added.

    Example:
        >>> product((Gaussian(3.0), Gaussian(4.0)))
        Gaussian(mu=5.0)
    """
    squares, counted = list[float](), dict[Law, int]()
    for law in laws:
        base, times = (law.law, law.times) if isinstance(law, Composed) else (law, 1)
        if isinstance(base, Gaussian):
            squares.append(times * base.mu * base.mu)
        else:
            counted[base] = counted.get(base, 0) + times
    parts: list[Law] = [Composed(law, times) if times > 1 else law for law, times in counted.items()]
    if squares:
        parts.append(Gaussian(math.sqrt(math.fsum(squares))))
    return parts[0] if len(parts) == 1 else Product(tuple(parts))


def enclosed(
    law: Law, question: Question, tolerance: float, outer: tuple[float, float]
) -> tuple[float, float, str]:
    """Return a bracket of the quantity in question of the pair with this law, and a note.

    Args:
        law: The law.
        question: Quantity to compute.
        tolerance: Requested relative width.
        outer: A known bracket.
    """
    return enclose(law.bracket, question, tolerance, copies=law.copies, outer=outer, combinations=law.levels)
