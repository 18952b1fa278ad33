"""Random trees of DpEvents that dp-accounting supports, of moderate privacy losses."""

import math
import random
from collections.abc import Callable

import attr
from dp_accounting import NeighboringRelation
from dp_accounting.dp_event import (
    ComposedDpEvent,
    DiscreteLaplaceDpEvent,
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    MixtureOfGaussiansDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    SelfComposedDpEvent,
    TruncatedSubsampledGaussianDpEvent,
)


@attr.s(frozen=True, auto_attribs=True)
class EpsilonDeltaDpEvent(DpEvent):  # type: ignore[misc]
    """The event of this name in releases of dp-accounting after 0.6."""

    epsilon: float
    delta: float


EpsilonDeltaDpEvent.__module__ = "dp_accounting.dp_event"

Draw = Callable[[random.Random, int], DpEvent]


def between(rng: random.Random, low: float, high: float) -> float:
    """Return a number whose logarithm is uniform."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def gaussian(rng: random.Random, count: int) -> DpEvent:
    return GaussianDpEvent(between(rng, 0.6, 4.0) * math.sqrt(count))


def poisson(rng: random.Random, count: int) -> DpEvent:
    rate = between(rng, 1e-3, 0.5) / math.sqrt(count)
    return PoissonSampledDpEvent(rate, GaussianDpEvent(between(rng, 0.7, 3.0)))


def laplace(rng: random.Random, count: int) -> DpEvent:
    return LaplaceDpEvent(between(rng, 0.5, 3.0) * math.sqrt(count))


def poisson_laplace(rng: random.Random, count: int) -> DpEvent:
    return PoissonSampledDpEvent(between(rng, 1e-3, 0.5), laplace(rng, count))


def discrete_laplace(rng: random.Random, count: int) -> DpEvent:
    sensitivity = rng.randint(1, 5)
    return DiscreteLaplaceDpEvent(between(rng, 0.3, 2.0) / (sensitivity * math.sqrt(count)), sensitivity)


def mixture(rng: random.Random, count: int) -> DpEvent:
    weights = [rng.random() for _ in range(rng.randint(2, 4))]
    means = [0.0, *(between(rng, 0.1, 2.0) for _ in weights[1:])]
    shares = [weight / math.fsum(weights) for weight in weights]
    return MixtureOfGaussiansDpEvent(between(rng, 0.7, 3.0) * math.sqrt(count), means, shares)


def response(rng: random.Random, count: int) -> DpEvent:
    return RandomizedResponseDpEvent(rng.uniform(0.2, 0.95), rng.randint(2, 6))


def truncated(rng: random.Random, count: int) -> DpEvent:
    examples, rate = rng.randint(20, 2000), between(rng, 0.01, 0.3)
    mean = examples * rate
    largest = max(1, round(mean + rng.uniform(1.0, 6.0) * math.sqrt(mean)))
    noise = between(rng, 0.8, 3.0) * max(1.0, rate * math.sqrt(count))
    return TruncatedSubsampledGaussianDpEvent(examples, rate, largest, noise)


ADD_OR_REMOVE: tuple[Draw, ...] = (gaussian, poisson, laplace, poisson_laplace, discrete_laplace, mixture)
DRAWS: dict[NeighboringRelation, tuple[Draw, ...]] = {
    NeighboringRelation.ADD_OR_REMOVE_ONE: ADD_OR_REMOVE,
    NeighboringRelation.REPLACE_ONE: (gaussian, poisson, response),
    NeighboringRelation.REPLACE_SPECIAL: (*ADD_OR_REMOVE, response),
}


def tree(rng: random.Random, draws: tuple[Draw, ...]) -> DpEvent:
    """Return a composition of one to three parts, each repeated and possibly nested."""
    parts: list[DpEvent] = []
    for _ in range(rng.randint(1, 3)):
        draw = rng.choice(draws)
        count = 1 if draw is response else round(between(rng, 1.0, 300.0))
        part = draw(rng, count)
        if count > 1:
            part = SelfComposedDpEvent(part, count)
        parts.append(ComposedDpEvent([part, NoOpDpEvent()]) if rng.random() < 0.2 else part)
    return parts[0] if len(parts) == 1 else ComposedDpEvent(parts)


def factors(event: DpEvent, count: int = 1) -> tuple[int, int]:
    """Return the numbers of factors that dp-accounting moves to its grid: by spreading, and by rounding up.

    Losses with finitely many values are rounded up; all others are spread to their neighbours in the grid.
    Gaussian steps without sampling are one factor.
    """
    if isinstance(event, SelfComposedDpEvent):
        return factors(event.event, event.count * count)
    if isinstance(event, ComposedDpEvent):
        found = [factors(each, count) for each in event.events]
        return sum(spread for spread, _ in found), sum(rounded for _, rounded in found)
    if isinstance(event, DiscreteLaplaceDpEvent | RandomizedResponseDpEvent):
        return 0, count
    return (0 if isinstance(event, NoOpDpEvent) else 1 if isinstance(event, GaussianDpEvent) else count), 0
