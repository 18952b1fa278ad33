"""Both ends of k-of-t allocation from the moments of the ratio at every sum of losses."""

import math
from dataclasses import dataclass
from typing import Annotated, get_args

from privcore import params
from privcore.allocation.certified import Answered, closed_form, leaks, question_of, rate_of, step_of
from privcore.allocation.one_direction import OneDirection, narrow
from privcore.allocation.reduction import MOST_STEPS, exact
from privcore.answer import Answer
from privcore.likelihood_ratio.distribution import (
    LikelihoodRangeError,
    Resolution,
    mixed,
    product_of,
)
from privcore.likelihood_ratio.k_of_t import k_of_t, levels_of
from privcore.likelihood_ratio.losses import Participation, saddle
from privcore.likelihood_ratio.profile import DIRECTIONS
from privcore.likelihood_ratio.questions import FIRST_DELTA, SHARE, SMALLEST_DELTA, Question, tier
from privcore.likelihood_ratio.steps import Step
from privcore.method import Cost, Direction, Method
from privcore.papers import FELDMAN_SHENFELD

FEW = 12.0
"""Variance below which the distributions of an epoch take long."""
WIDE = 0.6
"""Width of one step, as in `Step.width`, from which the sums of few participations take long."""
RARE = 0.01
"""Share of the steps below which they take long, too."""
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
        return leaks(problem)

    def cost(self, problem: Answered) -> Cost:
        if self.applies(problem) is not None:
            return Cost(seconds=1e-3, bytes=1e5)
        return cost_of_choice(step_of(problem), _choice(problem), rate_of(problem), question_of(problem))

    def answer(self, problem: Answered, seed: int) -> Answer:
        lower, upper, detail = enclosed_choice(
            step_of(problem),
            _choice(problem),
            rate_of(problem),
            question_of(problem),
            self.tolerance,
            closed_form(problem),
        )
        return Answer.enclosure(lower, upper, detail=detail)


def _choice(problem: Answered) -> Participation:
    return Participation(participations=problem.participations, steps=problem.steps, epochs=problem.epochs)


def cost_of_choice(step: Step, choice: Participation, rate: float, question: Question) -> Cost:
    """Return a conservative estimate of the cost of `enclosed_choice`.

    Args:
        step: Mechanism of a step.
        choice: Numbers of participations, steps and epochs, 1 < k < t.
        rate: Probability that an epoch includes the example.
        question: Whether epsilon or delta is computed, and where.
    """
    k, t, epochs = choice.participations, choice.steps, choice.epochs
    sums = min(2.0**18, 150.0 * math.sqrt(t * epochs))
    overlaps = min(k, 16.0 * math.sqrt(k * (1.0 - k / t) + 1.0))
    one = 0.2 if question.asks == "epsilon" else 0.8  # a delta needs finer levels more often
    seconds = len(DIRECTIONS[question.adjacency]) * (one + 2e-8 * sums * (overlaps + 20.0))
    if (k * (1.0 - k / t) < FEW) + (step.width() > WIDE) + (k < RARE * t) >= 2:
        seconds += 3.0
    if epochs > 1 or rate < 1.0:
        seconds += 10.0 if k * (1.0 - k / t) < FEW else 3.0  # the second level of the distributions
    return Cost(seconds=seconds, bytes=4e8)


def enclosed_choice(
    step: Step,
    choice: Participation,
    rate: float,
    question: Question,
    tolerance: float,
    outer: tuple[float, float],
) -> tuple[float, float, str]:
    """Return a bracket of k out of t over several epochs, and a note.

    Args:
        step: Mechanism of a step.
        choice: Numbers of participations, steps and epochs, 1 < k < t.
        rate: Probability that an epoch includes the example.
        question: Whether epsilon or delta is computed, and where.
        tolerance: Requested relative width.
        outer: A known bracket; the result lies within it.
    """
    bracket, detail = outer, "closed-form bounds"
    if rate == 1.0:
        bracket, detail = _summed(step, choice, question, bracket, tolerance)
    if (choice.epochs > 1 or rate < 1.0) and not narrow(bracket, question, tolerance):
        bracket, detail = _composed(step, choice, rate, question, bracket, tolerance)
    if bracket[1] > bracket[0] * (1.0 + tolerance):
        detail += f"; wider than the tolerance of {tolerance:g}"
    return *bracket, detail


def _summed(
    step: Step, choice: Participation, question: Question, outer: tuple[float, float], tolerance: float
) -> tuple[tuple[float, float], str]:
    """Return both ends from the sums of the losses of all epochs, and a note."""
    lower, upper, details = 0.0, 0.0, []
    for direction in DIRECTIONS[question.adjacency]:
        run = OneDirection(step, choice, direction, question, tolerance)
        low, high, detail = run.enclosed((max(lower, outer[0]), outer[1]))
        lower, upper = max(lower, low), max(upper, high)
        details.append(f"{direction}: {detail}")
    return (max(lower, outer[0]), min(upper, outer[1])), "; ".join(details)


def _composed(
    step: Step,
    choice: Participation,
    rate: float,
    question: Question,
    outer: tuple[float, float],
    tolerance: float,
) -> tuple[tuple[float, float], str]:
    """Return both ends from the distributions of one epoch, and a note."""
    k, t, epochs = choice.participations, choice.steps, choice.epochs
    (lower, upper), note = outer, "closed-form bounds"
    scouting = question.asks == "delta"
    try:
        delta = _expected(step, choice, question)
    except LikelihoodRangeError as error:
        return (lower, upper), f"{note}; {error}"
    looks = 0
    levels = list(levels_of(k, t))
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
