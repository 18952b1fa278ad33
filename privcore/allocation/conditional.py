"""Both ends of k-of-t allocation from the moments of the ratio at every sum of losses."""

import math
from dataclasses import dataclass
from typing import Annotated, get_args

from privcore import params
from privcore.allocation.certified import Answered, closed_form, question_of, rate_of, step_of
from privcore.allocation.one_direction import OneDirection, narrow
from privcore.allocation.reduction import exact
from privcore.answer import Answer
from privcore.likelihood_ratio.distribution import (
    LikelihoodRangeError,
    Resolution,
    mixed,
    product_of,
)
from privcore.likelihood_ratio.enclose import FIRST_DELTA, SHARE, SMALLEST_DELTA, Question, tier
from privcore.likelihood_ratio.k_of_t import Level, k_of_t
from privcore.likelihood_ratio.profile import DIRECTIONS
from privcore.likelihood_ratio.saddle import saddle
from privcore.likelihood_ratio.steps import Step
from privcore.likelihood_ratio.tilted import Participation
from privcore.method import Cost, Direction, Method
from privcore.papers import FELDMAN_SHENFELD

MOST_STEPS = 10**6
"""Largest number of steps; more would need more sums than are affordable."""
LAWS = (
    Level(degree=0, nodes=0.2, lattice=0.15, fineness=0.05),
    Level(degree=16, nodes=0.1, lattice=0.1, fineness=0.03),
    Level(degree=32, nodes=0.06, lattice=0.06, fineness=0.02),
)
"""Resolutions of the distribution of one epoch, for several epochs."""
MANY = 6.0
"""Variance of the number of participations from which its place decides little."""
FEW = 12.0
"""Variance below which the distributions of an epoch take long."""
LAWS_OF_MANY = (
    Level(degree=0, nodes=0.2, lattice=0.15, fineness=0.05),
    Level(degree=0, nodes=0.1, lattice=0.1, fineness=0.03),
    Level(degree=16, nodes=0.07, lattice=0.08, fineness=0.03),
)
"""The same for many participations."""
MOST_LOOKS = 3
"""Number of distributions that may be computed to find the order of magnitude of a delta."""
PRODUCT = 0.5
"""Width of the cells of a product of epochs over the distance of two nodes."""


@dataclass(frozen=True, kw_only=True)
class AllocationConditional(Method[Answered]):
    r"""Enclose k-of-t allocation, for 1 < k < t, by the moments of its ratio at every sum of losses.

    The losses are those of Poisson sampling at the rate for which k participations are expected at the
    threshold. At every sum of them, the mass and the first two moments of the ratio R of k out of t are
    convolutions of those of one step. Parabolas above the hinge $(R - e^\varepsilon)_+$ give the upper end,
    and the event of the best sums the lower end. The expected number of participations is a second
    coordinate.
    """

    name = "allocation.conditional"
    problems = get_args(Answered)
    direction = Direction.ENCLOSURE
    reference = (
        f"{FELDMAN_SHENFELD}, Theorem 3.1 (dominating pair); conditional moments given sums of losses: "
        "docs/certified.md"
    )
    shares = ("sigma", "scale", "local_epsilon", "steps")

    tolerance: Annotated[float, params.TOLERANCE] = 0.01

    def applies(self, problem: Answered) -> str | None:
        if exact(problem.steps, problem.participations):
            return "Expected 1 < participations < steps: otherwise allocation.certified is tight."
        if problem.steps > MOST_STEPS:
            return f"Expected at most {MOST_STEPS} steps in an epoch."
        if getattr(problem, "epsilon", 0.0) < 0.0:
            return "Expected an epsilon of at least 0."
        return None

    def cost(self, problem: Answered) -> Cost:
        if self.applies(problem) is not None:
            return Cost(seconds=1e-3, bytes=1e5)
        k, t, epochs = problem.participations, problem.steps, problem.epochs
        sums = min(2.0**18, 150.0 * math.sqrt(t * epochs))
        overlaps = min(k, 16.0 * math.sqrt(k * (1.0 - k / t) + 1.0))
        seconds = len(DIRECTIONS[problem.adjacency]) * (0.2 + 1e-8 * sums * (overlaps + 20.0))
        if epochs > 1 or rate_of(problem) < 1.0:
            seconds += 10.0 if k * (1.0 - k / t) < FEW else 3.0  # the second level of the distributions
        return Cost(seconds=seconds, bytes=4e8)

    def answer(self, problem: Answered, seed: int) -> Answer:
        question, bracket, detail = question_of(problem), closed_form(problem), "closed-form bounds"
        sampled = rate_of(problem) < 1.0
        if not sampled:
            bracket, detail = _summed(problem, question, bracket, self.tolerance)
        if (problem.epochs > 1 or sampled) and not narrow(bracket, question, self.tolerance):
            bracket, detail = _composed(problem, question, bracket, self.tolerance)
        if bracket[1] > bracket[0] * (1.0 + self.tolerance):
            detail += f"; wider than the tolerance of {self.tolerance:g}"
        return Answer.enclosure(*bracket, detail=detail)


def _summed(
    problem: Answered, question: Question, outer: tuple[float, float], tolerance: float
) -> tuple[tuple[float, float], str]:
    """Return both ends from the sums of the losses of all epochs, and a note."""
    choice = Participation(participations=problem.participations, steps=problem.steps, epochs=problem.epochs)
    lower, upper, details = 0.0, 0.0, []
    for direction in DIRECTIONS[problem.adjacency]:
        run = OneDirection(step_of(problem), choice, direction, question, tolerance)
        low, high, detail = run.enclosed((max(lower, outer[0]), outer[1]))
        lower, upper = max(lower, low), max(upper, high)
        details.append(f"{direction}: {detail}")
    return (max(lower, outer[0]), min(upper, outer[1])), "; ".join(details)


def _composed(
    problem: Answered, question: Question, outer: tuple[float, float], tolerance: float
) -> tuple[tuple[float, float], str]:
    """Return both ends from the distributions of one epoch, and a note."""
    step, rate = step_of(problem), rate_of(problem)
    k, t, epochs = problem.participations, problem.steps, problem.epochs
    (lower, upper), note = outer, "closed-form bounds"
    scouting = question.asks == "delta"
    try:
        delta = _expected(step, Participation(participations=k, steps=t, epochs=epochs), question)
    except LikelihoodRangeError as error:
        return (lower, upper), f"{note}; {error}"
    looks = 0
    levels = list(LAWS if k * (1.0 - k / t) < MANY else LAWS_OF_MANY)
    while levels and delta >= SMALLEST_DELTA:
        level = levels[0] if scouting else levels.pop(0)
        tail = tier(SHARE * delta / epochs)
        try:
            epoch = k_of_t(step, k, t, tail, level)
            res = Resolution(fineness=PRODUCT * level.nodes, tail=tail)
            bracket = product_of(epoch if rate == 1.0 else mixed(epoch, rate, res), epochs, res)
        except LikelihoodRangeError as error:
            return (lower, upper), f"{note}; {error}"
        low, high = question.ends(bracket)
        lower, upper = max(lower, low), min(upper, high)
        note = f"{epoch.upper.x.size} atoms of an epoch, degree {level.degree}"
        if scouting:
            scouting = 0.5 * delta > low and delta > SMALLEST_DELTA
            delta = max(min(low if low > 0.0 else 1e-10 * delta, delta), SMALLEST_DELTA)
            looks += 1
            scouting &= looks < MOST_LOOKS
        elif narrow((lower, upper), question, tolerance):
            break
    return (lower, upper), note


def _expected(step: Step, choice: Participation, question: Question) -> float:
    """Return the delta in question, or about the delta if every epoch includes the example."""
    if question.asks == "epsilon":
        return question.at
    base = step.ratio(Resolution(fineness=0.1, tail=1e-30))
    ends = [
        saddle(base.upper, choice, direction, epsilon=side * question.at).log_delta
        for direction, side in (("remove", 1.0), ("add", -1.0))
        if direction in DIRECTIONS[question.adjacency]
    ]
    return max(min(FIRST_DELTA, math.exp(max(ends))), SMALLEST_DELTA)
