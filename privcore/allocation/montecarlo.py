"""Simulation of random allocation: delta as a mean of bounded variables, with a confidence interval."""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from privcore import params
from privcore.allocation import params as allocation_params
from privcore.allocation.problems import AllocationDelta
from privcore.allocation.sampled_ratio import Simulation
from privcore.answer import Answer
from privcore.likelihood_ratio import profile
from privcore.method import Cost, Direction, Method
from privcore.numerics.betting import BETTING, width_note
from privcore.numerics.bounded_mean import MOST_GROUPS
from privcore.numerics.rounding import FEW_OPERATIONS, probability_at_most
from privcore.papers import CHUA_BALLS

_MOST_DRAWS = 1e10
_SECONDS_PER_DRAW, _SECONDS_PER_BET = 1.5e-7, 6e-7
_SMALLEST_EVENT = 1e-280


@dataclass(frozen=True, kw_only=True)
class AllocationMonteCarlo(Method[AllocationDelta]):
    r"""Estimate delta of 1-of-t over E epochs, with a confidence interval for the true value.

    The integrand lies in [0, 1], and its mean is bounded by bets. The error probability is split equally
    among the two ends, and that of the lower end among the directions (union bound): an upper end fails only
    if that of the direction with the larger delta does. Unless samples are conditioned on a rare event, the
    interval with n samples is at least about $5 / n$ wide.
    """

    name = "allocation.montecarlo"
    problems = (AllocationDelta,)
    direction = Direction.ENCLOSURE
    reference = f"{CHUA_BALLS} (importance sampling, order statistics); {BETTING}"
    version = 3

    samples: Annotated[int, params.SAMPLES] = 10_000
    sampling: Annotated[str, allocation_params.SAMPLING] = "order"
    confidence: Annotated[float, params.CONFIDENCE] = 0.99

    def applies(self, problem: AllocationDelta) -> str | None:
        if problem.participations > 1:
            return (
                "The simulation covers participations=1 only: for more, the likelihood ratio is not a mean "
                "of independent ratios."
            )
        if self._draws(problem) > _MOST_DRAWS:
            return (
                f"The samples would take more than {_MOST_DRAWS:.0e} random numbers; reduce samples, steps "
                "or epochs."
            )
        return None

    def cost(self, problem: AllocationDelta) -> Cost:
        if self.applies(problem) is not None:
            return Cost(seconds=1e-3, bytes=1e5)
        per_sample = self._draws(problem) / self.samples
        betting = (
            _SECONDS_PER_BET * min(self.samples, MOST_GROUPS) * len(profile.DIRECTIONS[problem.adjacency])
        )
        seconds = 0.01 + _SECONDS_PER_DRAW * self._draws(problem) + betting
        return Cost(seconds=seconds, bytes=1e8 + 100.0 * per_sample)

    def answer(self, problem: AllocationDelta, seed: int) -> Answer:
        rng = np.random.default_rng(seed)
        directions = profile.DIRECTIONS[problem.adjacency]
        error = 0.5 * (1.0 - self.confidence)
        errors = error / len(directions), error
        found = [self._one(problem, direction, rng, errors) for direction in directions]
        lower, upper, value, spread, apart = (max(column) for column in zip(*found, strict=True))
        # An estimate is given if it is known to about a factor of 2.
        shown = value if upper <= 2.0 * value and value <= 2.0 * lower else None
        detail = f"{self.samples} samples in {' and '.join(directions)}, {self.sampling} sampling"
        if note := width_note(upper - lower, spread, self.confidence):
            detail += note
            if apart > 0.5 * (upper - lower):
                detail += ", for order statistics bracket each sample; sampling=importance draws all outputs"
        return Answer.enclosure(lower, upper, value=shown, confidence=self.confidence, detail=detail)

    def _draws(self, problem: AllocationDelta) -> float:
        """Return the number of random numbers that all samples take."""
        directions = len(profile.DIRECTIONS[problem.adjacency])
        return (self._simulation(problem).draws() + 4.0 * problem.epochs) * self.samples * directions

    def _simulation(self, problem: AllocationDelta) -> Simulation:
        return Simulation(
            steps=problem.steps,
            epochs=problem.epochs,
            shift=1.0 / problem.sigma,
            epsilon=abs(problem.epsilon),
            conditional=self.sampling != "plain",
            sparse=self.sampling == "order",
        )

    def _one(
        self, problem: AllocationDelta, direction: str, rng: np.random.Generator, errors: tuple[float, float]
    ) -> tuple[float, float, float, float, float]:
        """Return confidence bounds of one direction, with these error probabilities, and the estimate.

        Its standard error, and the distance of the means from below and from above, come last.
        """
        reflected = problem.epsilon < 0.0
        if reflected:  # delta(x) = 1 - e^x + e^x delta'(-x), delta' that of the other direction
            direction = "add" if direction == "remove" else "remove"
        simulation = self._simulation(problem)
        h, probability = simulation.event(direction)
        if probability < _SMALLEST_EVENT:
            lower, upper, value, spread, apart = 0.0, _SMALLEST_EVENT, 0.0, 0.0, 0.0
        else:
            low, high = simulation.means(rng, direction, h, self.samples)
            ends = low.lower(errors[0]), high.upper(errors[1]), 0.5 * (low.mean + high.mean)
            spreads = high.standard_error, high.mean - low.mean
            lower, upper, value, spread, apart = (probability * each for each in (*ends, *spreads))
        if not reflected:
            return lower, upper, value, spread, apart
        base, scale = -math.expm1(problem.epsilon), math.exp(problem.epsilon)
        lower, upper = base + scale * lower, base + scale * upper
        return (
            lower * (1.0 - FEW_OPERATIONS),
            probability_at_most(upper, FEW_OPERATIONS),
            min(1.0, base + scale * value),
            scale * spread,
            scale * apart,
        )
